//! Messages between the program and its helper processes: length-prefixed JSON.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum size of a message in bytes; a plan has a few kilobytes, mostly arguments and variables.
const MAX_MESSAGE: usize = 4 << 20;

/// From the program to the supervisor. Followed by `stdin` bytes for the script, then single bytes [`STOP`] and
/// [`KILL`]; the end of the stream means that the program has ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct LaunchMessage {
    pub plan: Plan,
    /// Number of bytes for the script's stdin that follow.
    pub stdin: usize,
    /// The command that wraps the helper, up to the helper's own command line.
    pub wrapper: Option<Vec<String>>,
}

/// Asks the script to end.
pub const STOP: u8 = b't';
/// Kills the script and everything it started.
pub const KILL: u8 = b'k';

/// From the supervisor to the process that becomes the script: the restrictions to apply, and the program to execute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// The unprivileged user to become.
    pub identity: Option<Identity>,
    /// Whether to enter a user namespace, in which processes are counted separately.
    pub namespace: bool,
    pub limits: Option<ResourceLimits>,
    /// A separate file system for the work directory.
    pub disk: Option<Disk>,
    pub files: Option<FileAccess>,
    /// Which system calls to deny; see `helper::syscalls`.
    pub syscalls: Option<CallFilter>,
    /// The text of a Seatbelt profile (macOS).
    pub seatbelt: Option<String>,
    /// Instead of becoming the script: attempt forbidden operations in this folder, which is outside of the sandbox
    /// and contains a file [`PROBE_FILE`], and print the [`Findings`].
    pub probe: Option<PathBuf>,
}

/// The file in the folder of a probe.
pub const PROBE_FILE: &str = "witness";

/// A user id and a group id with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity(pub u32);

/// A file system of limited size for the files that a script writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The mount point: the work directory.
    pub work: PathBuf,
    /// A folder outside of it to which the produced files are copied.
    pub out: PathBuf,
    /// Maximum number of bytes that the script may write.
    pub bytes: u64,
    /// Maximum number of files, folders and links that it may create.
    pub files: u64,
}

/// The usage of a script's own file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Whether no byte was left at some time.
    pub bytes_full: bool,
    /// Whether no file was left at some time.
    pub files_full: bool,
    /// Whether more was produced than was copied.
    pub truncated: bool,
    /// Why produced files could not be copied completely; in a probe, why there was no file system.
    pub error: Option<String>,
}

/// The resource limits that the kernel enforces for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    pub cpu_seconds: u64,
    /// Private writable memory.
    pub data: u64,
    /// All mappings; more than `data`, since runtimes reserve memory that they never use.
    pub address_space: u64,
    pub file_size: u64,
    pub open_files: u64,
    /// Number of tasks of the user as which the script runs.
    pub tasks: u64,
}

/// The allowed file access; everything else is denied.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileAccess {
    /// The required Landlock ABI; `None` uses the best supported one (only for a probe).
    pub landlock: Option<i32>,
    /// Folders with read and execute access.
    pub readable: Vec<PathBuf>,
    /// Folders with read and execute access, if they exist.
    pub readable_if_present: Vec<PathBuf>,
    /// Files with read and write access, if they exist.
    pub devices: Vec<PathBuf>,
    /// Folder with full access.
    pub writable: PathBuf,
}

/// How strict the system call filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFilter {
    /// Whether changing modes, owners and times of files has no effect. For a script that runs as the user who started
    /// it: Landlock does not cover these calls, and that user owns more than the work directory.
    pub freeze_metadata: bool,
}

/// From the supervisor to the program, after everything has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorReport {
    pub end: ScriptEnd,
    /// Number of processes killed after the script's own had ended.
    pub leftovers: u32,
    /// The processes that could not be killed, if there are any.
    pub remaining: Option<String>,
    /// Whether the supervisor adopts orphaned processes, so that none can escape.
    pub adopts: bool,
    /// The usage of the script's own file system, if it was to have one.
    pub disk: Option<DiskUse>,
}

/// How the script's own process ended, as seen by the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptEnd {
    Exited(i32),
    Signaled(i32),
    NotStarted(String),
}

/// The findings of a probe: the result of each restriction, and what was still possible afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Whether the user was changed; the reason if it was not.
    pub identity: Option<Result<(), String>>,
    /// Whether a user namespace was entered.
    pub namespace: Option<Result<(), String>>,
    pub limits: Option<Result<(), String>>,
    /// The ABI in use; the reason if there is none.
    pub landlock: Option<Result<i32, String>>,
    pub syscalls: Option<Result<(), String>>,
    /// What was still possible with all restrictions in place; should be empty.
    pub leaks: Vec<SandboxViolation>,
}

/// Something forbidden that a probe was able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxViolation {
    ReadsOutside,
    WritesOutside,
    OpensSockets,
    SignalsOthers,
}

pub fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    to.write_all(&frame(message)?)?;
    to.flush()
}

/// Encodes one message.
pub fn frame<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length as usize <= MAX_MESSAGE)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the message is too large"))?;
    let mut out = Vec::with_capacity(body.len() + 4);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&body);
    Ok(out)
}

/// Reads exactly one message, and no byte after it.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too large"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_ends_before_the_next_bytes() {
        let report = SupervisorReport {
            end: ScriptEnd::Signaled(9),
            leftovers: 2,
            remaining: None,
            adopts: true,
            disk: None,
        };
        let mut wire = frame(&report).expect("small");
        wire.extend_from_slice(b"rest");
        let mut reader = wire.as_slice();
        assert_eq!(receive::<SupervisorReport>(&mut reader).expect("whole"), report);
        assert_eq!(reader, b"rest");
    }

    #[test]
    fn invalid_length_is_rejected_before_allocation() {
        let mut wire: &[u8] = &[0xff, 0xff, 0xff, 0xff, b'{'];
        assert!(receive::<SupervisorReport>(&mut wire).is_err());
    }
}
