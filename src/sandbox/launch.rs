//! Starts a prepared script, reads its output, and stops it on timeout or on demand.

use std::future::Future;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::SandboxError;
use super::helper::{HELPER_ARG, SUPERVISOR_ARG};
use super::outcome::{DiskLimit, End, ExceededLimit, Stream};
use super::output_stream::{Channel, LineBuffer, OutputListener};
use super::plan::{KILL, LaunchMessage, Plan, STOP, ScriptEnd, SupervisorReport, frame};
use super::spec::Limits;
use super::workdir::{POLL_INTERVAL, WorkDir};
use skills_base::sync::MutexExt as _;

/// Time that the helper may take in addition to the script's time.
const HELPER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for output after the script has ended, if something else still holds its pipe.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of running a script.
#[derive(Debug)]
pub struct LaunchResult {
    pub end: End,
    pub stdout: Stream,
    pub stderr: Stream,
    pub timed_out: bool,
    pub canceled: bool,
    pub duration: Duration,
    pub leftovers: u32,
    /// The write limit that was reached, if any.
    pub exceeded: Option<ExceededLimit>,
    /// Whether more was produced than could be copied out of its file system.
    pub truncated: bool,
}

/// Runs a script under the helper.
pub async fn run_isolated(
    helper: &Path,
    message: &LaunchMessage,
    stdin: &[u8],
    limits: &Limits,
    listener: Option<OutputListener>,
    counted: Option<&Arc<WorkDir>>,
    cancel: &CancellationToken,
) -> Result<LaunchResult, SandboxError> {
    let lost = |error: io::Error| SandboxError::Lost { why: error.to_string() };
    let started = Instant::now();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(lost)?;
    ours.set_nonblocking(true).map_err(lost)?;
    let mut command = Command::new(helper);
    command.args([HELPER_ARG, SUPERVISOR_ARG]).env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| SandboxError::NotStarted {
        why: format!("starting the helper {}: {error}", helper.display()),
    })?;
    // The command keeps the helper's end of the socket open, and only its closing shows that the helper has died.
    drop(command);
    let output = Output::capture(&mut child, limits.output, listener.as_ref());
    let (mut from, mut to) = UnixStream::from_std(ours).map_err(lost)?.into_split();

    let handed_over = timeout(HELPER_TIMEOUT, async {
        to.write_all(&frame(message)?).await?;
        to.write_all(stdin).await
    });
    let handed_over = handed_over.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    if let Err(error) = handed_over {
        let _ = child.start_kill();
        let (_, stderr) = output.collect().await;
        return Err(SandboxError::Lost { why: format!("{error}; output: {}", stderr.text().trim()) });
    }
    let answer = async {
        let mut length = [0; 4];
        from.read_exact(&mut length).await?;
        let mut body = vec![0; u32::from_le_bytes(length).min(1 << 20) as usize];
        from.read_exact(&mut body).await?;
        Ok::<SupervisorReport, io::Error>(serde_json::from_slice(&body)?)
    };
    let (answer, stopped) =
        supervise(answer, &mut ChildControl::Supervisor(to), limits, counted, cancel).await;
    let report = match answer {
        Some(Ok(report)) => report,
        Some(Err(error)) => {
            let _ = child.start_kill();
            let (_, stderr) = output.collect().await;
            return Err(SandboxError::Lost { why: format!("{error}; output: {}", stderr.text().trim()) });
        }
        // The helper is not killed: the processes below it would lose the one that ends them.
        None => {
            return Err(SandboxError::Lost {
                why: format!("not within {} s after SIGKILL", HELPER_TIMEOUT.as_secs()),
            });
        }
    };
    if let Some(processes) = report.remaining {
        return Err(SandboxError::ProcessesLeft { processes });
    }
    // The report was the last message; only reaping is left.
    let _ = timeout(HELPER_TIMEOUT, child.wait()).await;
    let duration = started.elapsed();
    let (stdout, stderr) = output.collect().await;
    let end = match report.end {
        ScriptEnd::Exited(code) => End::ExitCode(code),
        ScriptEnd::Signaled(signal) => End::Signal(signal),
        ScriptEnd::NotStarted(why) => {
            let error_output = stderr.text().trim().to_owned();
            let why = if error_output.is_empty() { why } else { format!("{why}: {error_output}") };
            return Err(SandboxError::NotStarted { why });
        }
    };
    let disk = report.disk.unwrap_or_default();
    if let Some(why) = disk.error {
        return Err(SandboxError::FilesLost { why });
    }
    let exceeded = match (disk.bytes_full, disk.files_full) {
        (true, _) => Some(ExceededLimit { limit: DiskLimit::Bytes, allowed: limits.disk }),
        (_, true) => Some(ExceededLimit { limit: DiskLimit::Files, allowed: limits.files }),
        _ => stopped.exceeded.or_else(|| find_exceeded_limit(counted?, limits)),
    };
    let StopReason { timed_out, canceled, .. } = stopped;
    let (leftovers, truncated) = (report.leftovers, disk.truncated);
    Ok(LaunchResult { end, stdout, stderr, timed_out, canceled, duration, leftovers, exceeded, truncated })
}

/// Runs a script as an ordinary child process: its own process group, a clean environment, and no isolation.
pub async fn run_unsandboxed(
    plan: &Plan,
    stdin: Vec<u8>,
    limits: &Limits,
    listener: Option<OutputListener>,
    counted: Option<&Arc<WorkDir>>,
    cancel: &CancellationToken,
) -> Result<LaunchResult, SandboxError> {
    use std::os::unix::process::ExitStatusExt;
    let started = Instant::now();
    let mut command = Command::new(&plan.program);
    command.args(&plan.args).env_clear().envs(&plan.env).current_dir(&plan.directory).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| SandboxError::NotStarted {
        why: format!("starting {}: {error}", plan.program.display()),
    })?;
    let mut control = ChildControl::Group(Group(child.id().map(|id| Pid::from_raw(id.cast_signed()))));
    let output = Output::capture(&mut child, limits.output, listener.as_ref());
    if let Some(mut pipe) = child.stdin.take() {
        // Ends when the script has read it completely, or has ended.
        tokio::spawn(async move { pipe.write_all(&stdin).await });
    }
    let (status, stopped) = supervise(child.wait(), &mut control, limits, counted, cancel).await;
    let status = match status {
        Some(Ok(status)) => status,
        Some(Err(error)) => return Err(SandboxError::Lost { why: error.to_string() }),
        None => return Err(SandboxError::Lost { why: "it cannot be killed".to_owned() }),
    };
    control.disarm();
    let duration = started.elapsed();
    let (stdout, stderr) = output.collect().await;
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => End::ExitCode(code),
        (None, signal) => End::Signal(signal.unwrap_or_default()),
    };
    let exceeded = stopped.exceeded.or_else(|| find_exceeded_limit(counted?, limits));
    let StopReason { timed_out, canceled, .. } = stopped;
    let (leftovers, truncated) = (0, false);
    Ok(LaunchResult { end, stdout, stderr, timed_out, canceled, duration, leftovers, exceeded, truncated })
}

/// Controls a running script.
enum ChildControl {
    Supervisor(OwnedWriteHalf),
    Group(Group),
}

/// A process group that is killed on drop.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

impl ChildControl {
    /// Sends SIGTERM, or SIGKILL if `hard`. An error means that there is no process left.
    async fn send_stop(&mut self, hard: bool) {
        match self {
            Self::Supervisor(socket) => {
                let _ = socket.write_all(&[if hard { KILL } else { STOP }]).await;
            }
            Self::Group(Group(Some(pid))) => {
                let _ = killpg(*pid, if hard { Signal::SIGKILL } else { Signal::SIGTERM });
            }
            Self::Group(Group(None)) => {}
        }
    }

    fn disarm(&mut self) {
        if let Self::Group(group) = self {
            group.0 = None;
        }
    }
}

#[derive(Clone, Copy, Default)]
struct StopReason {
    timed_out: bool,
    canceled: bool,
    exceeded: Option<ExceededLimit>,
}

/// Returns the write limit that the script has exceeded so far.
fn find_exceeded_limit(work: &WorkDir, limits: &Limits) -> Option<ExceededLimit> {
    let usage = work.usage();
    if usage.bytes > limits.disk || usage.is_closed {
        return Some(ExceededLimit { limit: DiskLimit::Bytes, allowed: limits.disk });
    }
    (usage.files > limits.files).then_some(ExceededLimit { limit: DiskLimit::Files, allowed: limits.files })
}

/// Counts what a script writes until it exceeds a limit; never returns if a file system limits it.
async fn wait_for_exceeded_limit(work: Option<&Arc<WorkDir>>, limits: Limits) -> ExceededLimit {
    let Some(work) = work else { return std::future::pending().await };
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let work = Arc::clone(work);
        if let Ok(Some(found)) =
            tokio::task::spawn_blocking(move || find_exceeded_limit(&work, &limits)).await
        {
            return found;
        }
    }
}

/// Waits for the end of the script; requests it on timeout or on demand of the caller, and forces it after the grace
/// period. Returns `None` if even that did not end it.
async fn supervise<T>(
    end: impl Future<Output = T>,
    control: &mut ChildControl,
    limits: &Limits,
    counted: Option<&Arc<WorkDir>>,
    cancel: &CancellationToken,
) -> (Option<T>, StopReason) {
    tokio::pin!(end);
    let mut stopped = StopReason::default();
    tokio::select! {
        end = &mut end => return (Some(end), stopped),
        () = tokio::time::sleep(limits.wall) => stopped.timed_out = true,
        () = cancel.cancelled() => stopped.canceled = true,
        found = wait_for_exceeded_limit(counted, *limits) => stopped.exceeded = Some(found),
    }
    // A script that exceeds a write limit gets no grace period to continue.
    if stopped.exceeded.is_none() {
        control.send_stop(false).await;
        if let Ok(end) = timeout(limits.grace, &mut end).await {
            return (Some(end), stopped);
        }
    }
    control.send_stop(true).await;
    (timeout(HELPER_TIMEOUT, &mut end).await.ok(), stopped)
}

/// Both output streams of a child, which are read to their end regardless of how much is stored.
struct Output {
    streams: [Arc<Mutex<Stream>>; 2],
    readers: Vec<JoinHandle<()>>,
}

impl Output {
    fn capture(child: &mut Child, keep: usize, listener: Option<&OutputListener>) -> Self {
        let streams = [Arc::default(), Arc::default()];
        let mut readers = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            readers.push(tokio::spawn(drain(
                pipe,
                keep,
                Arc::clone(&streams[0]),
                LineBuffer::new(listener.cloned(), Channel::Stdout),
            )));
        }
        if let Some(pipe) = child.stderr.take() {
            readers.push(tokio::spawn(drain(
                pipe,
                keep,
                Arc::clone(&streams[1]),
                LineBuffer::new(listener.cloned(), Channel::Stderr),
            )));
        }
        Self { streams, readers }
    }

    async fn collect(self) -> (Stream, Stream) {
        let until = tokio::time::Instant::now() + OUTPUT_DRAIN_TIMEOUT;
        for reader in self.readers {
            let stop = reader.abort_handle();
            if tokio::time::timeout_at(until, reader).await.is_err() {
                stop.abort();
            }
        }
        let [stdout, stderr] = self.streams.map(|stream| std::mem::take(&mut *stream.locked()));
        (stdout, stderr)
    }
}

async fn drain(
    mut pipe: impl AsyncRead + Unpin,
    keep: usize,
    into: Arc<Mutex<Stream>>,
    mut lines: LineBuffer,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let stored = {
            let mut stream = into.locked();
            let stored = keep.saturating_sub(stream.bytes.len()).min(read);
            stream.bytes.extend_from_slice(&buffer[..stored]);
            stream.total += read as u64;
            stored
        };
        lines.push(&buffer[..stored]);
        if stored < read {
            lines.finish(true);
        }
    }
    lines.finish(false);
}
