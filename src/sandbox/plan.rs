//! What the program tells its helper processes, and how they answer: length-prefixed JSON.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The largest message; a plan is a few kilobytes, its largest parts are arguments and variables.
const MAX_MESSAGE: usize = 4 << 20;

/// From the program to the warden. `stdin` bytes for the script follow the message, then single bytes
/// [`STOP`] and [`KILL`]; the end of the stream means that the program is gone.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub plan: Plan,
    /// How many bytes for the script's stdin follow.
    pub stdin: usize,
    /// The command that is put around the helper, up to where the helper's own command line begins.
    pub wrapper: Option<Vec<String>>,
}

/// Ask the script to end.
pub const STOP: u8 = b't';
/// End the script and everything it started.
pub const KILL: u8 = b'k';

/// From the warden to the process that becomes the script: what to give up, and what to become.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// The unprivileged user to become.
    pub identity: Option<Identity>,
    /// Enter a user namespace, in which processes are counted for themselves.
    pub namespace: bool,
    pub limits: Option<ResourceLimits>,
    /// A file system of its own for the work directory.
    pub disk: Option<Disk>,
    pub files: Option<FileAccess>,
    /// Refuse system calls; see `helper::syscalls`.
    pub syscalls: Option<CallFilter>,
    /// The text of a Seatbelt profile (macOS).
    pub seatbelt: Option<String>,
    /// Instead of becoming the script: try what is still possible with this folder, which lies outside and holds a
    /// file [`WITNESS`], and print the [`Findings`].
    pub probe: Option<PathBuf>,
}

/// The file in the folder of a probe.
pub const WITNESS: &str = "witness";

/// A user and a group of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity(pub u32);

/// A file system of limited size for what a script writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Where it is mounted: the work directory.
    pub work: PathBuf,
    /// A folder outside of it that gets what the script has produced.
    pub out: PathBuf,
    /// Bytes that the script may write.
    pub bytes: u64,
    /// Files, folders and links that it may make.
    pub files: u64,
}

/// The outcome of a script's own file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// At some moment no byte was left.
    pub bytes_full: bool,
    /// At some moment no file was left.
    pub files_full: bool,
    /// More was produced than was executed of it.
    pub truncated: bool,
    /// Why what was produced, or a part of it, could not be executed; in a trial, why there was none.
    pub error: Option<String>,
}

/// The limits that the kernel keeps for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    pub cpu_seconds: u64,
    /// Private writable memory.
    pub data: u64,
    /// All mappings; more than `data`, since runtimes reserve what they never touch.
    pub address_space: u64,
    pub file_size: u64,
    pub open_files: u64,
    /// Tasks of the user the script runs as.
    pub tasks: u64,
}

/// What the file system rules allow; everything else is refused.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileAccess {
    /// The Landlock ABI that must be in force; none takes what there is (only for a probe).
    pub landlock: Option<i32>,
    /// Read and execute, below each.
    pub readable: Vec<PathBuf>,
    /// Read and execute, where they exist.
    pub readable_if_present: Vec<PathBuf>,
    /// Read and write each of these, where they exist.
    pub devices: Vec<PathBuf>,
    /// Everything below it.
    pub writable: PathBuf,
}

/// How strict the system call filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFilter {
    /// Changing modes, owners and times of files does nothing. For a script that runs as the person who started
    /// it: Landlock does not look at these calls, and that person owns more than the work directory.
    pub freeze_metadata: bool,
}

/// From the warden to the program, once everything is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub end: Ended,
    /// Processes killed after the script's own had ended.
    pub leftovers: u32,
    /// The warden adopts orphans, so none of them can get away.
    pub adopts: bool,
    /// The outcome of the script's own file system, where it was to have one.
    pub disk: Option<DiskUse>,
}

/// How the script's own process ended, as the warden sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    Exited(i32),
    Signaled(i32),
    NotStarted(String),
}

/// What a probe found: how each step went, and what was still possible afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Became another user; the reason why not.
    pub identity: Option<Result<(), String>>,
    /// Entered a user namespace.
    pub namespace: Option<Result<(), String>>,
    pub limits: Option<Result<(), String>>,
    /// The ABI in force; the reason why none.
    pub landlock: Option<Result<i32, String>>,
    pub syscalls: Option<Result<(), String>>,
    /// What was still possible with everything in place; it should be empty.
    pub leaks: Vec<Leak>,
}

/// Something that no script may do and that a probe could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leak {
    ReadsOutside,
    WritesOutside,
    OpensSockets,
    SignalsOthers,
}

/// Writes one message.
pub fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    to.write_all(&frame(message)?)?;
    to.flush()
}

/// One message as it goes over the wire.
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

/// Reads one message, and no byte past its end.
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
    fn a_message_ends_where_the_next_bytes_begin() {
        let verdict = Verdict { end: Ended::Signaled(9), leftovers: 2, adopts: true, disk: None };
        let mut wire = frame(&verdict).expect("small");
        wire.extend_from_slice(b"rest");
        let mut reader = wire.as_slice();
        assert_eq!(receive::<Verdict>(&mut reader).expect("whole"), verdict);
        assert_eq!(reader, b"rest");
    }

    #[test]
    fn a_length_that_lies_is_refused_before_memory_is_taken() {
        let mut wire: &[u8] = &[0xff, 0xff, 0xff, 0xff, b'{'];
        assert!(receive::<Verdict>(&mut wire).is_err());
    }
}
