//! How a script ended and what it produced.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use skills_base::files;

use super::error::SandboxError;
use super::report::Report;
use super::workdir::WorkDir;

#[derive(Debug)]
pub struct Outcome {
    /// The exit code, or the signal that ended the script.
    pub end: End,
    /// What it printed to stdout.
    pub stdout: Stream,
    /// What it printed to stderr.
    pub stderr: Stream,
    /// Whether it was stopped because of its time limit.
    pub timed_out: bool,
    /// Whether it was stopped by the caller.
    pub canceled: bool,
    /// Time from the start of the helper to the end of the last process.
    pub duration: Duration,
    /// The write limit that was reached, if any; the written files may then be incomplete.
    pub exceeded: Option<ExceededLimit>,
    /// Number of processes that were still alive when the script ended, and were killed.
    pub leftovers: u32,
    /// Regular files in the work directory that are new or changed, by path.
    pub produced: Vec<Produced>,
    /// Whether more files were produced than are listed.
    pub produced_truncated: bool,
    /// The isolation that was in force.
    pub report: Report,
    pub(super) work: Arc<WorkDir>,
}

impl Outcome {
    /// Returns the path of the private work directory, which is deleted together with this outcome.
    pub fn work_directory(&self) -> &Path {
        self.work.path()
    }

    /// Opens a produced file for reading. Symbolic links, and files behind them, are never listed as produced.
    pub fn open(&self, produced: &Produced) -> Result<File, SandboxError> {
        let path = self.work.produced_at(&produced.path);
        // A process that an unsandboxed script left behind may have replaced it by a pipe.
        let opened = files::open_regular(&path);
        opened.map(|(file, _)| file).map_err(|source| SandboxError::io("opening", &path, source))
    }
}

/// A reached limit on what a script may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExceededLimit {
    pub limit: DiskLimit,
    /// The maximum value.
    pub allowed: u64,
}

/// Kind of a limit on what a script may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DiskLimit {
    /// Total size of all files in bytes.
    #[serde(rename = "disk_bytes")]
    Bytes,
    /// The number of files, folders and links.
    #[serde(rename = "disk_files")]
    Files,
}

impl std::fmt::Display for ExceededLimit {
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
    ExitCode(i32),
    Signal(i32),
}

impl End {
    /// Returns the exit code, if the script exited by itself.
    pub const fn exit_code(self) -> Option<i32> {
        match self {
            Self::ExitCode(code) => Some(code),
            Self::Signal(_) => None,
        }
    }
}

/// The stored beginning of one output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// The first bytes, up to the limit. They are untrusted text: sanitize them before display.
    pub bytes: Vec<u8>,
    /// Total number of bytes that were printed.
    pub total: u64,
}

impl Stream {
    /// Returns whether more was printed than is stored.
    pub fn truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// Returns the stored bytes as text, with U+FFFD in place of invalid UTF-8.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// A regular file that the script wrote into its work directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Produced {
    /// Path relative to the work directory.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}
