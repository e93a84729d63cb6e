//! The helper mode of the program: started again with a special first argument, it isolates *itself* and then becomes
//! the script.
//!
//! That way, no code runs between fork and exec of the large multi-threaded program, and nothing here needs `unsafe`.
//! Two processes of this kind are between the program and a script: the *supervisor* ([`supervisor`]), which adopts
//! and kills the processes that the script leaves behind, and the *inner* helper ([`child_setup`]), which drops its
//! privileges one by one and calls `exec`.

mod child_setup;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod files;
mod limits;
mod probe;
mod supervisor;
#[cfg(target_os = "linux")]
mod syscalls;
mod tree;

use std::process::ExitCode;

/// The first argument that selects helper mode.
pub const HELPER_ARG: &str = "__isolate";
/// The second argument of a supervisor.
pub const SUPERVISOR_ARG: &str = "warden";
/// The second argument of an inner helper; followed by the number of the pipe on which it reports failures.
pub const CHILD_SETUP_ARG: &str = "inner";

/// Exit code of a failed helper (`EX_SOFTWARE` of sysexits.h).
const FAILED: u8 = 70;

/// Runs as a helper if the program was started as one; call it at the start of `main`, before any thread is started or
/// file is opened.
///
/// Returns `None` in a normal start. As an inner helper it does not return on success: the process has become the
/// script.
pub fn helper_entry() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != HELPER_ARG {
        return None;
    }
    let role = args.next();
    Some(match role.as_ref().and_then(|role| role.to_str()) {
        Some(SUPERVISOR_ARG) => supervisor::run(),
        Some(CHILD_SETUP_ARG) => child_setup::run(args.next().as_ref().and_then(|fd| fd.to_str())),
        _ => ExitCode::from(FAILED),
    })
}
