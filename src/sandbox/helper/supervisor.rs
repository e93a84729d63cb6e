//! The parent process of the script: starts it, forwards commands of the program, and leaves no process behind.
//!
//! Its stdin is a socket to the program. As a child subreaper it inherits every process whose parent has died,
//! including a daemon in its own session, so "the script and everything it started" is exactly the tree below it. When
//! the socket is closed, the program has ended, and the script is killed a moment later.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid, fchown, pipe};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::super::plan::{
    DiskUse, Identity, LaunchMessage, Plan, STOP, ScriptEnd, SupervisorReport, frame, receive, send,
};
#[cfg(target_os = "linux")]
use super::disk::Mounted;
use super::{CHILD_SETUP_ARG, FAILED, HELPER_ARG, tree};

/// How long a tree is killed that forks as fast as it is killed, or that cannot be killed; less than the program waits
/// for the helper.
const KILL_TIMEOUT: Duration = Duration::from_secs(8);
const KILL_INTERVAL: Duration = Duration::from_millis(1);
/// Number of rounds of killing after which the interval doubles, up to [`MAX_KILL_INTERVAL`].
const ROUNDS_PER_INTERVAL: u32 = 500;
const MAX_KILL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of children that are reaped between two rounds of killing.
const MAX_REAPED: u32 = 1_000;

/// Reads one order from stdin and executes it.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The program shows the output of its helper if no report arrived.
            let _ = writeln!(io::stderr(), "the sandbox helper failed: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn serve() -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let message: LaunchMessage = receive(&mut control)?;
    let mut stdin = vec![0; message.stdin];
    control.read_exact(&mut stdin)?;
    let mut answer = control.try_clone()?;
    let report = run_script(&message, &stdin, control)?;
    let sent = send(&mut answer, &report);
    drop(answer);
    // What could not be killed so far stays below this process, whose other thread tries it again.
    while report.remaining.is_some() && reap_ended() {
        std::thread::sleep(MAX_KILL_INTERVAL);
    }
    sent
}

/// Starts the script and waits until it and everything it started has ended.
fn run_script(message: &LaunchMessage, stdin: &[u8], control: UnixStream) -> io::Result<SupervisorReport> {
    let adopts = become_subreaper();
    let mounted = match mount(&message.plan) {
        Ok(mounted) => Ok(mounted),
        // A probe continues without it.
        Err(why) if message.plan.probe.is_some() => Err(why),
        Err(why) => {
            let why = format!("limiting what it can write: {why}");
            return Ok(not_started(why, adopts));
        }
    };
    let wrapped = message.wrapper.is_some();
    let (mut failures, failures_end) = failure_pipe()?;
    let mut command = inner_command(message.wrapper.as_deref());
    command.args([HELPER_ARG, CHILD_SETUP_ARG]).arg(failures_end.as_raw_fd().to_string());
    command.env_clear().current_dir("/").stdin(Stdio::piped());
    // The allocator would reserve more than the script may map, and the process could not allocate until it becomes
    // the script.
    command.env("MIMALLOC_ARENA_RESERVE", "0");
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = format!("starting `{}`: {error}", command.get_program().display());
            return Ok(not_started(why, adopts));
        }
    };
    drop(failures_end);
    let pid = Pid::from_raw(child.id().cast_signed());

    if let Some(Identity(number)) = message.plan.identity {
        set_pipe_owner(&child, number);
    }
    let mut first = frame(&message.plan)?;
    first.extend_from_slice(stdin);
    if let Some(mut pipe) = child.stdin.take() {
        // A script may never read its stdin, which must not block anything else.
        std::thread::spawn(move || pipe.write_all(&first));
    }
    if let Ok(Some(mounted)) = &mounted {
        mounted.watch();
    }
    let state = Arc::new(State::default());
    let obeying = Arc::clone(&state);
    std::thread::spawn(move || handle_control(control, pid, wrapped, &obeying));

    let mut report = Vec::new();
    let status = failures.read_to_end(&mut report).and_then(|_| reap(pid));
    let (leftovers, remaining) = kill_descendants(pid);
    state.over.store(remaining.is_none(), Ordering::SeqCst);
    let end = script_end(
        &String::from_utf8_lossy(&report),
        status?,
        wrapped && state.stopping.load(Ordering::SeqCst),
    );
    let disk = match mounted {
        // A process that still runs could replace a folder by a link while it is copied.
        Ok(_) if remaining.is_some() => None,
        Ok(mounted) => mounted.map(Mounted::export),
        Err(why) => Some(DiskUse { error: Some(why), ..DiskUse::default() }),
    };
    Ok(SupervisorReport { end, leftovers, remaining, adopts, disk })
}

/// Returns the report of a script that was not started.
fn not_started(why: String, adopts: bool) -> SupervisorReport {
    SupervisorReport { end: ScriptEnd::NotStarted(why), leftovers: 0, remaining: None, adopts, disk: None }
}

/// Mounts the separate file system of the script, if the plan has one.
fn mount(plan: &Plan) -> Result<Option<Mounted>, String> {
    plan.disk.as_ref().map(|disk| Mounted::mount(disk, plan.identity)).transpose()
}

#[derive(Default)]
struct State {
    /// The script was asked to end.
    stopping: AtomicBool,
    /// None of its processes is left.
    over: AtomicBool,
}

/// Executes single-byte orders until the stream ends, which means that the program has died.
fn handle_control(mut control: UnixStream, script: Pid, wrapped: bool, state: &State) {
    let mut byte = [0];
    while control.read_exact(&mut byte).is_ok() && byte[0] == STOP {
        state.stopping.store(true, Ordering::SeqCst);
        tree::signal(script, Signal::SIGTERM, wrapped);
    }
    state.stopping.store(true, Ordering::SeqCst);
    let mut round = 0;
    while !state.over.load(Ordering::SeqCst) {
        tree::signal(script, Signal::SIGKILL, false);
        std::thread::sleep(kill_interval(round));
        round = round.saturating_add(1);
    }
}

/// Returns the pause after a round of killing, which grows: what survives many rounds is not killed by more of them.
fn kill_interval(round: u32) -> Duration {
    let doublings = (round / ROUNDS_PER_INTERVAL).min(10);
    (KILL_INTERVAL * 2_u32.pow(doublings)).min(MAX_KILL_INTERVAL)
}

/// Waits for the script's own process, reaping adopted ones on the way.
fn reap(script: Pid) -> io::Result<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid() == script.as_raw() => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills and reaps processes until there is no child left, at most for [`KILL_TIMEOUT`]. Returns the number of killed
/// processes, and the remaining ones as text, if there are any.
fn kill_descendants(script: Pid) -> (u32, Option<String>) {
    let started = Instant::now();
    let mut killed = BTreeSet::new();
    let mut last = Vec::new();
    let mut round = 0;
    while reap_ended() {
        if started.elapsed() > KILL_TIMEOUT {
            return (killed.len() as u32, Some(describe(&last)));
        }
        last = tree::signal(script, Signal::SIGKILL, false);
        killed.extend(last.iter().copied());
        std::thread::sleep(kill_interval(round));
        round += 1;
    }
    (killed.len() as u32, None)
}

/// Reaps children that have ended; returns whether there are others. A subreaper without children has no descendants.
fn reap_ended() -> bool {
    for _ in 0..MAX_REAPED {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return true,
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Names processes by their ids.
fn describe(processes: &[Pid]) -> String {
    const MAX_NAMED: usize = 10;
    let ids: BTreeSet<Pid> = processes.iter().copied().collect();
    if ids.is_empty() {
        return "processes that this system does not list".to_owned();
    }
    let named: Vec<String> = ids.iter().take(MAX_NAMED).map(Pid::to_string).collect();
    let more = if ids.len() > MAX_NAMED { " and others" } else { "" };
    format!("processes with the ids {}{more}", named.join(", "))
}

/// Combines the failure pipe and the wait status. `+` on the pipe: all restrictions were applied and the script was
/// started; `!`: the following text is the reason why it was not.
fn script_end(report: &str, status: ExitStatus, stopped_in_wrapper: bool) -> ScriptEnd {
    if let Some((_, why)) = report.split_once('!') {
        return ScriptEnd::NotStarted(why.to_owned());
    }
    match (status.code(), status.signal()) {
        (Some(_), _) if !report.starts_with('+') => ScriptEnd::NotStarted(format!(
            "the helper ended before it could start the script ({status}); see what it printed"
        )),
        // A wrapper reports the signal that ended its child in the same way as a shell.
        (Some(code), _) if stopped_in_wrapper && code > 128 => ScriptEnd::Signaled(code - 128),
        (Some(code), _) => ScriptEnd::Exited(code),
        (None, Some(signal)) => ScriptEnd::Signaled(signal),
        (None, None) => ScriptEnd::NotStarted(format!("unexpected end: {status}")),
    }
}

/// Creates a pipe whose write end survives `exec`: the only file that the inner helper inherits in addition to its
/// three standard ones.
fn failure_pipe() -> io::Result<(File, std::os::fd::OwnedFd)> {
    let (read, write) = pipe()?;
    fcntl(&read, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok((File::from(read), write))
}

/// Makes the script's user the owner of its three standard pipes, so that it can also open them by name
/// (`/dev/stderr`). The script starts even if that fails.
fn set_pipe_owner(child: &Child, number: u32) {
    let (user, group) = (Some(Uid::from_raw(number)), Some(Gid::from_raw(number)));
    let _ = fchown(io::stdout(), user, group);
    let _ = fchown(io::stderr(), user, group);
    if let Some(pipe) = &child.stdin {
        let _ = fchown(pipe, user, group);
    }
}

/// Returns the command of the helper, or of the wrapper that starts it.
fn inner_command(wrapper: Option<&[String]>) -> Command {
    match wrapper.and_then(<[String]>::split_first) {
        Some((program, args)) => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
        None => Command::new(own_program()),
    }
}

/// Returns the path of the running program itself, even if its file has been replaced.
fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    std::env::current_exe().unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> bool {
    nix::sys::prctl::set_child_subreaper(true).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> bool {
    false
}

/// On other systems, written files are counted while the script runs.
#[cfg(not(target_os = "linux"))]
struct Mounted;

#[cfg(not(target_os = "linux"))]
impl Mounted {
    fn mount(_: &super::super::plan::Disk, _: Option<Identity>) -> Result<Self, String> {
        Err("this system has no tmpfs".to_owned())
    }

    fn watch(&self) {}

    fn export(self) -> DiskUse {
        DiskUse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid::from_raw(7);

    #[test]
    fn killing_slows_down() {
        assert_eq!(kill_interval(0), KILL_INTERVAL);
        assert_eq!(kill_interval(ROUNDS_PER_INTERVAL), KILL_INTERVAL * 2);
        assert_eq!(kill_interval(u32::MAX), MAX_KILL_INTERVAL);
    }

    #[test]
    fn remaining_processes_are_named() {
        assert_eq!(describe(&[PID, PID, Pid::from_raw(3)]), "processes with the ids 3, 7");
        assert_eq!(describe(&[]), "processes that this system does not list");
    }

    #[test]
    fn the_kind_of_an_exit_is_reported() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(script_end("+", exited(3), false), ScriptEnd::Exited(3));
        assert_eq!(script_end("+", exited(143), false), ScriptEnd::Exited(143));
        assert_eq!(script_end("+", exited(143), true), ScriptEnd::Signaled(15));
        for signal in [9, 34] {
            let killed = ExitStatus::from_raw(signal);
            assert_eq!(
                script_end("+", killed, false),
                ScriptEnd::Signaled(signal),
                "also a real-time signal"
            );
        }
        assert_eq!(
            script_end("+!no such file", exited(70), false),
            ScriptEnd::NotStarted("no such file".into())
        );
        assert!(
            matches!(script_end("", exited(1), false), ScriptEnd::NotStarted(_)),
            "a wrapper that failed"
        );
    }
}
