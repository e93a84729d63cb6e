//! Why a file is not opened.

use std::io;

/// Why a path inside a folder is not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is absolute, has `..` in it, names a hidden file, or is empty.
    #[error("{path:?} {why}; use a path inside the folder, e.g. references/rules.md")]
    NotInside {
        /// As given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A link on the way is not followed.
    #[error("{path}: {why}")]
    Link {
        /// As given.
        path: String,
        /// Which link, and where it leads.
        why: String,
    },
    /// There is no such file.
    #[error("there is no file {path}")]
    NotFound {
        /// As given.
        path: String,
    },
    /// It is a folder, a pipe, a socket or a device.
    #[error("{path} is {what}, not a file")]
    NotRegular {
        /// As given.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// It is in a file system that the kernel makes up, such as `/proc`.
    #[error("{path} is in a kernel pseudo file system; only files on disk can be read")]
    PseudoFileSystem {
        /// As given.
        path: String,
    },
    /// The file has more bytes than are read.
    #[error("{path} has more than {limit} bytes")]
    TooLarge {
        /// As given.
        path: String,
        /// How many are read at most.
        limit: u64,
    },
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// As given.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::NotFound { path: path.to_owned() }
            }
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// Whether the path would have led out of the folder.
    #[must_use]
    pub fn is_escape(&self) -> bool {
        matches!(self, Self::NotInside { .. } | Self::Link { .. })
    }
}

impl From<OpenError> for io::Error {
    fn from(refusal: OpenError) -> Self {
        let kind = match &refusal {
            OpenError::NotInside { .. }
            | OpenError::NotRegular { .. }
            | OpenError::PseudoFileSystem { .. } => io::ErrorKind::InvalidInput,
            OpenError::Link { .. } => io::ErrorKind::PermissionDenied,
            OpenError::NotFound { .. } => io::ErrorKind::NotFound,
            OpenError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            OpenError::Io { source, .. } => source.kind(),
        };
        Self::new(kind, refusal)
    }
}
