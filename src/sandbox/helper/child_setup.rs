//! The process that drops its privileges and becomes the script.
//!
//! Single-threaded from start to `exec`. The order matters: first a new session, then limits and identity while the
//! privileges for them are available, then the current directory and the irreversible restrictions, and the memory
//! limits last.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, chdir, close, setgid, setsid, setuid};

use super::super::plan::{Findings, Identity, Plan, receive};
use super::{FAILED, limits, probe};

/// The folder in which a process finds its open files by number.
#[cfg(target_os = "linux")]
const OWN_FILES: &str = "/proc/self/fd";
#[cfg(not(target_os = "linux"))]
const OWN_FILES: &str = "/dev/fd";

/// Reads the plan from stdin, executes it, and becomes the script, which reads the rest of stdin.
pub fn run(failures: Option<&str>) -> ExitCode {
    let Some(mut failures) = failures.and_then(open_failures) else { return ExitCode::from(FAILED) };
    let why = match receive::<Plan>(&mut UnbufferedStdin) {
        Err(error) => format!("reading the plan: {error}"),
        Ok(plan) => match (apply(&plan, plan.probe.is_none()), &plan.probe) {
            (Err(why), _) => why,
            (Ok(_), None) => start(&plan, &mut failures),
            (Ok(found), Some(outside)) => match print(&mut failures, &probe::probe(found, outside)) {
                Ok(()) => return ExitCode::SUCCESS,
                Err(error) => format!("reporting the findings: {error}"),
            },
        },
    };
    let _ = write!(failures, "!{why}");
    ExitCode::from(FAILED)
}

/// Reopens the failure pipe, so that it closes on `exec`, and closes every inherited file.
fn open_failures(number: &str) -> Option<File> {
    let pipe = File::options().write(true).open(format!("{OWN_FILES}/{number}")).ok()?;
    let open: Vec<i32> = std::fs::read_dir(OWN_FILES)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && *fd != pipe.as_raw_fd())
        .collect();
    for fd in open {
        // The file descriptor of the listing itself is closed already.
        let _ = close(fd);
    }
    Some(pipe)
}

/// Becomes the script; returns the reason if that fails.
fn start(plan: &Plan, failures: &mut File) -> String {
    let mut command = match &plan.seatbelt {
        None => Command::new(&plan.program),
        Some(profile) => {
            let mut command = Command::new("/usr/bin/sandbox-exec");
            command.arg("-p").arg(profile).arg(&plan.program);
            command
        }
    };
    command.args(&plan.args).env_clear().envs(&plan.env);
    if let Err(error) = failures.write_all(b"+") {
        return format!("reporting the start: {error}");
    }
    format!("starting {}: {}", plan.program.display(), command.exec())
}

/// Applies all restrictions of the plan. With `strict`, the first failure is returned; a probe records it and
/// continues.
fn apply(plan: &Plan, strict: bool) -> Result<Findings, String> {
    let mut found = Findings::default();
    // Fails only in a process that already leads a group, which then has no terminal to lose either.
    let _ = setsid();
    // Before the limits: those in force when a namespace is entered apply to all processes of the user permanently.
    if plan.namespace {
        found.namespace = Some(fail_if_strict(strict, enter_namespace())?);
    }
    umask(Mode::from_bits_truncate(0o077));
    if let Some(requested) = &plan.limits {
        found.limits = Some(fail_if_strict(strict, limits::set(requested))?);
    }
    if let Some(identity) = plan.identity {
        found.identity = Some(fail_if_strict(strict, become_user(identity))?);
    }
    // The directory is accessible only to the new user.
    chdir(&plan.directory).map_err(|error| format!("entering {}: {error}", plan.directory.display()))?;
    drop_privileges(plan, strict, &mut found)?;
    if let (Some(requested), Some(Ok(()))) = (&plan.limits, &found.limits) {
        found.limits = Some(fail_if_strict(strict, limits::set_memory(requested))?);
    }
    Ok(found)
}

/// Returns an error if `strict`, and otherwise records it in the result.
fn fail_if_strict<T>(strict: bool, result: Result<T, String>) -> Result<Result<T, String>, String> {
    match result {
        Err(why) if strict => Err(why),
        other => Ok(other),
    }
}

#[cfg(target_os = "linux")]
fn drop_privileges(plan: &Plan, strict: bool, found: &mut Findings) -> Result<(), String> {
    use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
    // Reset by a change of the user, so it is set afterwards.
    set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .map_err(|error| format!("setting the parent-death signal: {error}"))?;
    set_no_new_privs().map_err(|error| format!("setting no_new_privs: {error}"))?;
    if let Some(access) = &plan.files {
        found.landlock = Some(fail_if_strict(strict, super::files::restrict(access))?);
    }
    if let Some(filter) = plan.syscalls {
        found.syscalls = Some(fail_if_strict(strict, super::syscalls::install(filter))?);
    }
    Ok(())
}

/// Enters a user namespace in which this user keeps its id, and has no additional privileges after `exec`.
#[cfg(target_os = "linux")]
pub fn enter_namespace() -> Result<(), String> {
    use nix::sched::{CloneFlags, unshare};
    let (user, group) = (nix::unistd::getuid(), nix::unistd::getgid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("entering a user namespace: {error}"))?;
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("entering a user namespace: {file}: {error}"))?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn enter_namespace() -> Result<(), String> {
    Err("this system has none".to_owned())
}

/// On other systems the profile around the script restricts it.
#[cfg(not(target_os = "linux"))]
fn drop_privileges(_: &Plan, _: bool, _: &mut Findings) -> Result<(), String> {
    Ok(())
}

/// Drops all groups and permanently sets the user id: real, effective and saved.
fn become_user(identity: Identity) -> Result<(), String> {
    let Identity(number) = identity;
    #[cfg(target_os = "linux")]
    nix::unistd::setgroups(&[]).map_err(|error| format!("dropping all groups: {error}"))?;
    setgid(Gid::from_raw(number)).map_err(|error| format!("setting the group id {number}: {error}"))?;
    setuid(Uid::from_raw(number)).map_err(|error| format!("setting the user id {number}: {error}"))?;
    if setuid(Uid::from_raw(0)).is_ok() {
        return Err(format!("user {number} could become root again"));
    }
    Ok(())
}

fn print(failures: &mut File, findings: &Findings) -> io::Result<()> {
    serde_json::to_writer(io::stdout(), findings)?;
    failures.write_all(b"+")
}

/// Unbuffered stdin: the bytes after the plan belong to the script.
struct UnbufferedStdin;

impl Read for UnbufferedStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(nix::unistd::read(io::stdin().as_fd(), buffer)?)
    }
}
