//! The hidden second life of the program: started again with a secret first word, it isolates *itself* and then
//! becomes the script.
//!
//! Nothing has to happen between fork and exec of the big, threaded program that way, and so nothing here
//! needs `unsafe`. Two processes of this kind are between the program and a script: the *warden*
//! ([`warden`]), which adopts and kills whatever the script leaves behind, and the *inner* helper
//! ([`inner`]), which gives up its rights one after the other and calls `exec`.

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

/// The first argument that makes the program a helper.
pub const WORD: &str = "__isolate";
/// The second argument of a warden.
pub const WARDEN: &str = "warden";
/// The second argument of an inner helper; the number of the pipe on which it tells failures follows.
pub const INNER: &str = "inner";

/// Exit code of a helper that could not do its work (`EX_SOFTWARE` of sysexits.h).
const FAILED: u8 = 70;

/// Does the helper's work when the program was started as one; call it first thing in `main`, before any thread
/// or file is there.
///
/// Answers nothing in an ordinary start. As an inner helper it does not return when all goes well: the process has
/// become the script.
pub fn helper_entry() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let role = args.next();
    Some(match role.as_ref().and_then(|role| role.to_str()) {
        Some(WARDEN) => supervisor::run(),
        Some(INNER) => child_setup::run(args.next().as_ref().and_then(|fd| fd.to_str())),
        _ => ExitCode::from(FAILED),
    })
}
