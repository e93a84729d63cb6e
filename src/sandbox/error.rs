//! Errors before, during or after the start of a script.

use std::path::{Path, PathBuf};

/// Why a script was not run, or why its result is not known.
///
/// A script that ran and failed is not an error, but an [`Outcome`](super::Outcome) with an exit code.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The path of the script is not a path below `scripts/`.
    #[error("`{}` is not a script of the bundle: {why}; use a file in `scripts/`, without `..`", path.display())]
    NotAScript {
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The path points outside the bundle, for example through a link.
    #[error("`{}` points outside its bundle, to `{}`; put the file itself into the bundle", path.display(), target.display())]
    Escapes {
        path: PathBuf,
        /// The resolved path.
        target: PathBuf,
    },
    /// The script does not exist.
    #[error("script `{}` not found in the bundle {}", script.display(), bundle.display())]
    Missing {
        /// The script, relative to its bundle.
        script: PathBuf,
        bundle: PathBuf,
    },
    /// The script's extension has no interpreter, and the file itself is not executable.
    #[error(
        "no interpreter for `{}`: its extension is not one of {known}, and the file is not executable \
            (use chmod +x)",
        script.display()
    )]
    NoInterpreterKnown {
        /// The script, relative to its bundle.
        script: PathBuf,
        /// The extensions that have an interpreter.
        known: String,
    },
    /// The interpreter is not installed, or not usable in the sandbox.
    #[error("no usable `{interpreter}` for `{}`: {}; install one that every user can read, e.g. in /usr/bin", script.display(), tried.join("; "))]
    NoInterpreter {
        interpreter: String,
        /// The script, relative to its bundle.
        script: PathBuf,
        /// Each candidate and what is wrong with it.
        tried: Vec<String>,
    },
    /// A variable that would change how the interpreter itself loads code.
    #[error("the variable `{name}` is not allowed: {why}; pass the value as an argument or on stdin")]
    Variable {
        /// The variable's name.
        name: String,
        /// Why it is rejected.
        why: &'static str,
    },
    /// Invalid arguments, limits or file names.
    #[error("{what}: {why}")]
    BadSpec {
        /// The part of the request.
        what: String,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// The bundle differs from the one that may run.
    #[error("the script was not started: {why}")]
    Changed {
        /// What differs.
        why: String,
    },
    /// This machine cannot isolate the script.
    #[error("this machine cannot sandbox a script: {why}; use --unsandboxed to run it without a sandbox")]
    NoIsolation {
        /// The guarantees that cannot be given, and why.
        why: String,
    },
    /// A limit could not be set, a filter could not be installed, or the program could not be started.
    #[error("the script was not started: {why}")]
    NotStarted {
        /// The step that failed.
        why: String,
    },
    /// The helper ended or hung without reporting how the script ended.
    #[error("the sandbox helper did not respond: {why}; whether the script ran is unknown")]
    Lost {
        /// What was observed.
        why: String,
    },
    /// The script ended, but the files that it wrote could not be taken over.
    #[error("the script ended, but its files are lost: {why}")]
    FilesLost {
        /// What failed.
        why: String,
    },
    /// The script ended, but not everything that it started.
    #[error("the script ended, but {processes} that it started cannot be killed; end them yourself")]
    ProcessesLeft {
        /// Which ones.
        processes: String,
    },
    /// A file or folder could not be accessed.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// The operation, such as "reading" or "creating".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl SandboxError {
    /// Returns the error code that the adapters report.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAScript { .. } | Self::Variable { .. } | Self::BadSpec { .. } => "invalid_request",
            Self::Escapes { .. } => "path_escape",
            Self::Missing { .. } => "not_found",
            Self::NoInterpreterKnown { .. } | Self::NoInterpreter { .. } => "invalid_configuration",
            Self::Changed { .. } => "skill_changed",
            Self::NoIsolation { .. } => "safety_denied",
            Self::NotStarted { .. }
            | Self::Lost { .. }
            | Self::FilesLost { .. }
            | Self::ProcessesLeft { .. }
            | Self::Io { .. } => "runtime_error",
        }
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }

    pub(super) fn bad(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::BadSpec { what: what.into(), why: why.into() }
    }
}
