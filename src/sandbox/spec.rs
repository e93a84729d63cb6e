//! What a caller asks for: one script of one bundle, with its arguments, files and limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bundle::Contents;
use super::error::SandboxError;
use super::output_stream::Tap;

/// Bytes that may be handed to a script on stdin.
const MAX_STDIN: usize = 64 << 20;
/// Bytes of all arguments together; the system's own limit is a multiple of it.
const MAX_ARGUMENTS: usize = 128 << 10;

/// One run of one script.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The bundle's folder.
    pub bundle_root: PathBuf,
    /// Whether links in the path of the bundle are followed.
    pub follow_links: bool,
    /// The script, relative to the bundle, below `scripts/`.
    pub script: PathBuf,
    /// Arguments after the script's name.
    pub args: Vec<String>,
    /// Variables beside the few that every script gets; those that make a program load code are refused.
    pub env: BTreeMap<String, String>,
    /// Bytes the script reads on stdin, then end of file.
    pub stdin: Vec<u8>,
    /// Files copied into the work directory before the start.
    pub files: Vec<InputFile>,
    /// The script's current directory, relative to the private work directory; created when missing.
    pub workdir: PathBuf,
    /// How much the script may use.
    pub limits: Limits,
    /// Run without isolation. Time and output stay limited, the environment stays scrubbed.
    pub unsandboxed: bool,
    /// Looks at what the script would find in its bundle and in its work directory, before it starts.
    pub verify: Option<Verify>,
    /// Gets what is printed line by line while the script runs, as far as it is kept.
    pub tap: Option<Tap>,
}

impl Spec {
    /// A run of `script` with nothing handed over and the default limits.
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
            tap: None,
        }
    }

    /// Checks everything that can be checked without touching the disk.
    pub(super) fn check(&self) -> Result<(), SandboxError> {
        if let Some(arg) = self.args.iter().find(|arg| arg.contains('\0')) {
            return Err(SandboxError::bad(format!("argument {arg:?}"), "holds a NUL byte"));
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
        inside("workdir", &self.workdir)?;
        for file in &self.files {
            inside("input file", &file.to)?;
            if file.to.as_os_str().is_empty() {
                return Err(SandboxError::bad("input file", "has no name inside the work directory"));
            }
        }
        self.limits.check()
    }
}

/// What a script would find when it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supplied {
    /// In its bundle.
    pub bundle: Contents,
    /// In its work directory: the SHA-256 of each input file, by its name there.
    pub files: Contents,
}

/// Looks at what a script would find, and says why it must not start.
#[derive(Clone)]
pub struct Verify(Arc<dyn Fn(&Supplied) -> Result<(), String> + Send + Sync>);

impl Verify {
    /// A check that is made on the copies that the script is about to run from.
    pub fn new(check: impl Fn(&Supplied) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn check(&self, supplied: &Supplied) -> Result<(), SandboxError> {
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
    /// Its location now; whether the caller may read it is the caller's business.
    pub from: PathBuf,
    /// Its path inside the work directory.
    pub to: PathBuf,
}

/// How much a script may use. Each figure is a hard limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Time by the clock until the script is asked to end (SIGTERM).
    pub wall: Duration,
    /// Time between asking and killing (SIGKILL).
    pub grace: Duration,
    /// Time on a processor, of each process by itself; counted in whole seconds, at least one.
    pub cpu: Duration,
    /// Bytes of private memory, of each process by itself.
    pub memory: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Bytes of each file written.
    pub file_size: u64,
    /// Bytes of everything written to the work directory.
    pub disk: u64,
    /// Files, folders and links in the work directory beside those that were put in.
    pub files: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Bytes kept of stdout and of stderr; what comes after is read and dropped.
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

/// Refuses a path that is not plainly below the place it is meant for.
fn inside(what: &str, path: &Path) -> Result<(), SandboxError> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain && !path.as_os_str().as_encoded_bytes().contains(&0) {
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
    fn limits_that_no_interpreter_survives_are_refused() {
        let mut spec = Spec::new("/b", "scripts/x.py");
        spec.limits.processes = 0;
        let told = spec.check().expect_err("no process at all").to_string();
        assert!(told.contains("`processes`"), "{told}");
    }
}
