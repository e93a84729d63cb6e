//! The request of a caller: one script of one bundle, with its arguments, files and limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bundle::Contents;
use super::error::SandboxError;
use super::output_stream::OutputListener;

/// Maximum number of bytes for a script's stdin.
const MAX_STDIN: usize = 64 << 20;
/// Maximum total size of all arguments in bytes; the system's own limit is several times larger.
const MAX_ARGUMENTS: usize = 128 << 10;

/// One run of one script.
#[derive(Clone, Debug)]
pub struct Spec {
    pub bundle_root: PathBuf,
    /// Whether links in the path of the bundle are followed.
    pub follow_links: bool,
    /// The script, relative to the bundle, below `scripts/`.
    pub script: PathBuf,
    /// Arguments after the script's name.
    pub args: Vec<String>,
    /// Environment variables in addition to those that every script gets; variables that make a program load code are
    /// rejected.
    pub env: BTreeMap<String, String>,
    /// The content of the script's stdin.
    pub stdin: Vec<u8>,
    /// Files copied into the work directory before the start.
    pub files: Vec<InputFile>,
    /// The script's current directory, relative to the private work directory; created if missing.
    pub workdir: PathBuf,
    /// Resource limits of the script.
    pub limits: Limits,
    /// Whether to run without isolation. Time and output remain limited, and the environment remains scrubbed.
    pub unsandboxed: bool,
    /// Verifies the files of the bundle and of the work directory as seen by the script, before it starts.
    pub verify: Option<Verify>,
    /// Receives the output line by line while the script runs, up to the output limit.
    pub output: Option<OutputListener>,
}

impl Spec {
    /// Creates a request for `script` without arguments and input, and with the default limits.
    pub fn new(bundle_root: impl Into<PathBuf>, script: impl Into<PathBuf>) -> Self {
        Self {
            bundle_root: bundle_root.into(),
            follow_links: true,
            script: script.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            stdin: Vec::new(),
            files: Vec::new(),
            workdir: PathBuf::new(),
            limits: Limits::default(),
            unsandboxed: false,
            verify: None,
            output: None,
        }
    }

    /// Checks everything that can be checked without accessing the disk.
    pub(super) fn check(&self) -> Result<(), SandboxError> {
        if let Some(arg) = self.args.iter().find(|arg| arg.contains('\0')) {
            return Err(SandboxError::bad(format!("argument {arg:?}"), "contains a NUL byte"));
        }
        let size: usize = self.args.iter().map(String::len).sum();
        if size > MAX_ARGUMENTS {
            return Err(SandboxError::bad(
                "arguments",
                format!("{size} bytes, the maximum is {MAX_ARGUMENTS}; pass large data on stdin"),
            ));
        }
        if self.stdin.len() > MAX_STDIN {
            return Err(SandboxError::bad(
                "stdin",
                format!("{} bytes, the maximum is {MAX_STDIN}; pass large data as a file", self.stdin.len()),
            ));
        }
        check_relative("workdir", &self.workdir)?;
        for file in &self.files {
            check_relative("input file", &file.to)?;
            if file.to.as_os_str().is_empty() {
                return Err(SandboxError::bad("input file", "has no name inside the work directory"));
            }
        }
        self.limits.check()
    }
}

/// Files that a script receives when it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuppliedFiles {
    pub bundle: Contents,
    /// SHA-256 of each input file, by its name in the work directory.
    pub files: Contents,
}

/// Verifies the files as seen by a script; returns the reason if it must not start.
#[derive(Clone)]
pub struct Verify(Arc<dyn Fn(&SuppliedFiles) -> Result<(), String> + Send + Sync>);

impl Verify {
    /// Creates a check of the copies from which the script will run.
    pub fn new(check: impl Fn(&SuppliedFiles) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn check(&self, supplied: &SuppliedFiles) -> Result<(), SandboxError> {
        (self.0)(supplied).map_err(|why| SandboxError::Changed { why })
    }
}

impl fmt::Debug for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verify")
    }
}

/// A file copied into the private work directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its current path; the caller is responsible for checking the permission to read it.
    pub from: PathBuf,
    /// Its path in the work directory.
    pub to: PathBuf,
}

/// Resource limits of a script. Each is a hard limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Elapsed time until the script is asked to end (SIGTERM).
    pub wall: Duration,
    /// Time between asking and killing (SIGKILL).
    pub grace: Duration,
    /// Processor time of each process; rounded down to whole seconds, at least one.
    pub cpu: Duration,
    /// Maximum private memory of each process in bytes.
    pub memory: u64,
    /// Maximum number of processes and threads at the same time.
    pub processes: u64,
    /// Maximum size of each written file in bytes.
    pub file_size: u64,
    /// Maximum total size of everything written to the work directory in bytes.
    pub disk: u64,
    /// Maximum number of files, folders and links in the work directory in addition to the initial ones.
    pub files: u64,
    /// Maximum number of open files of each process.
    pub open_files: u64,
    /// Maximum number of stored bytes of stdout and of stderr each; the rest is read and discarded.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            cpu: Duration::from_secs(60),
            memory: 512 << 20,
            processes: 64,
            file_size: 64 << 20,
            disk: 256 << 20,
            files: 2_000,
            open_files: 256,
            output: 1 << 20,
        }
    }
}

impl Limits {
    fn check(&self) -> Result<(), SandboxError> {
        let too_small = [
            ("wall", self.wall.is_zero()),
            ("cpu", self.cpu.is_zero()),
            ("memory", self.memory < 16 << 20),
            ("processes", self.processes == 0),
            ("open_files", self.open_files < 16),
            ("disk", self.disk < 1 << 20),
            ("files", self.files == 0),
        ];
        match too_small.iter().find(|(_, small)| *small) {
            Some((name, _)) => Err(SandboxError::bad(
                format!("limit `{name}`"),
                "too small for any interpreter (minimum memory: 16 MiB, open files: 16, disk: 1 MiB, \
                    others: 1)",
            )),
            None => Ok(()),
        }
    }
}

/// Rejects a path that is not below the folder for which it is meant.
fn check_relative(what: &str, path: &Path) -> Result<(), SandboxError> {
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if is_inside && !path.as_os_str().as_encoded_bytes().contains(&0) {
        return Ok(());
    }
    Err(SandboxError::bad(
        format!("{what} `{}`", path.display()),
        "must be a relative path without `..`, inside the work directory",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_the_work_directory_are_refused() {
        for bad in ["../up", "/etc", "a/../../b"] {
            let mut spec = Spec::new("/b", "scripts/x.py");
            spec.workdir = bad.into();
            assert!(spec.check().is_err(), "{bad}");
            let mut spec = Spec::new("/b", "scripts/x.py");
            spec.files = vec![InputFile { from: "/tmp/a".into(), to: bad.into() }];
            assert!(spec.check().is_err(), "{bad}");
        }
        let mut spec = Spec::new("/b", "scripts/x.py");
        spec.workdir = "out/today".into();
        assert!(spec.check().is_ok());
    }

    #[test]
    fn limits_below_the_needs_of_interpreters_are_rejected() {
        let mut spec = Spec::new("/b", "scripts/x.py");
        spec.limits.processes = 0;
        let message = spec.check().expect_err("no process at all").to_string();
        assert!(message.contains("`processes`"), "{message}");
    }
}
