//! How a script ended and what it left behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::error::SandboxError;
use super::report::Report;
use super::workdir::WorkDir;

/// The end of one run.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code, or the signal that ended the script.
    pub end: End,
    /// What it printed to stdout.
    pub stdout: Stream,
    /// What it printed to stderr.
    pub stderr: Stream,
    /// It was stopped because its time was over.
    pub timed_out: bool,
    /// It was stopped because the caller asked for it.
    pub cancelled: bool,
    /// From the start of the helper to the end of the last process.
    pub duration: Duration,
    /// It reached a limit on what it may write; what it has written may be incomplete.
    pub exceeded: Option<Exceeded>,
    /// Processes that were still alive when the script ended, and were killed then.
    pub leftovers: u32,
    /// Regular files in the work directory that are new or changed, by path.
    pub produced: Vec<Produced>,
    /// More files were produced than are listed.
    pub produced_truncated: bool,
    /// The isolation that was in force.
    pub report: Report,
    pub(super) work: Arc<WorkDir>,
}

impl Outcome {
    /// The private work directory; it is deleted together with this outcome.
    pub fn work_directory(&self) -> &Path {
        self.work.path()
    }

    /// Opens a produced file for reading. Nothing that is, or is behind, a symbolic link is listed as
    /// produced.
    pub fn open(&self, produced: &Produced) -> Result<File, SandboxError> {
        let path = self.work.produced_at(&produced.path);
        File::open(&path).map_err(|source| SandboxError::io("opening", &path, source))
    }
}

/// A limit on what a script may write, and that it reached it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Exceeded {
    /// Which limit.
    pub limit: DiskLimit,
    /// How much it allows.
    pub allowed: u64,
}

/// What a script writes is limited in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DiskLimit {
    /// Bytes of all files together.
    #[serde(rename = "disk_bytes")]
    Bytes,
    /// The number of files, folders and links.
    #[serde(rename = "disk_files")]
    Files,
}

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.limit {
            DiskLimit::Bytes => {
                write!(
                    f,
                    "its limit of {} MiB; `scripts.disk_mb` in your config.yaml raises it",
                    self.allowed >> 20
                )
            }
            DiskLimit::Files => {
                write!(
                    f,
                    "its limit of {} files; `scripts.files` in your config.yaml raises it",
                    self.allowed
                )
            }
        }
    }
}

/// How the script's own process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited by itself with this code.
    ExitCode(i32),
    /// This signal ended it.
    Signal(i32),
}

impl End {
    /// The exit code, when it exited by itself.
    pub const fn exit_code(self) -> Option<i32> {
        match self {
            Self::ExitCode(code) => Some(code),
            Self::Signal(_) => None,
        }
    }
}

/// The kept beginning of one output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// The first bytes, as many as the limit allows. They are text of a stranger: clean them before showing.
    pub bytes: Vec<u8>,
    /// All bytes that were printed.
    pub total: u64,
}

impl Stream {
    /// Whether more was printed than is kept.
    pub fn truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// The kept bytes as text, with U+FFFD where they are not UTF-8.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// A regular file that the script wrote into its work directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Produced {
    /// Relative to the work directory.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}
