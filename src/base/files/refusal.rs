//! Errors of opening files.

use std::io;

/// Why a path inside a folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path is absolute, contains `..`, names a hidden file, or is empty.
    #[error("{path:?} {why}; use a path inside the folder, e.g. references/rules.md")]
    NotInside {
        path: String,
        /// What is wrong with the path.
        why: &'static str,
    },
    /// A link in the path is not followed.
    #[error("{path}: {why}")]
    Link {
        path: String,
        /// Which link, and where it leads.
        why: String,
    },
    /// The file does not exist.
    #[error("{path} does not exist")]
    NotFound { path: String },
    /// The path names a folder, a pipe, a socket or a device.
    #[error("{path} is {what}, not a file")]
    NotRegular {
        path: String,
        /// The kind of file.
        what: &'static str,
    },
    /// The file is in a pseudo file system of the kernel, such as `/proc`.
    #[error("{path} is in a kernel pseudo file system; only files on disk can be read")]
    PseudoFileSystem { path: String },
    /// The file exceeds the size limit.
    #[error("{path} has more than {limit} bytes")]
    TooLarge {
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Any other error of the system.
    #[error("{path}: {source}")]
    Io {
        path: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::NotFound { path: path.to_owned() }
            }
            io::ErrorKind::InvalidFilename => Self::NotInside { path: path.to_owned(), why: "is too long" },
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// Returns whether the path would have pointed outside the folder.
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
