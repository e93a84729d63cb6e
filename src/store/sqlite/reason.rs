//! Database errors as messages that state what to do.

use rusqlite::ErrorCode;

use crate::Unavailability;

/// Errors that can be the reason of a failure.
pub trait Reason {
    /// Returns what was wrong and, if known, what to do.
    fn describe(&self) -> String;

    /// Returns why the store cannot be used, if that is what the error means.
    fn unavailability(&self) -> Option<Unavailability> {
        None
    }
}

impl Reason for rusqlite::Error {
    fn describe(&self) -> String {
        let (problem, advice) = match self.unavailability() {
            Some(Unavailability::Damaged) if self.sqlite_error_code() == Some(ErrorCode::NotADatabase) => (
                "it is not a SQLite database, or its header is damaged",
                "it was not modified. `skills db restore FILE` restores a backup, `skills db reset` creates an empty \
                    store; both rename the old file. Or use another store",
            ),
            Some(Unavailability::DiskFull) => {
                ("the disk is full", "nothing recorded before is lost. Free some space, then try again")
            }
            Some(Unavailability::ReadOnly) => {
                ("the file or its folder is not writable", "change the permissions, or use another store")
            }
            Some(Unavailability::Unopenable) => {
                ("it cannot be opened", "check the permissions of the file and its folder")
            }
            Some(Unavailability::Busy) => {
                ("another process has locked it for more than 10 s", "try again, or stop that process")
            }
            Some(Unavailability::Damaged) => (
                "it is damaged",
                "`skills db check` shows where. `skills db restore FILE` restores a backup, `skills db reset` creates \
                    an empty store; both rename the old files",
            ),
            Some(Unavailability::Io) => ("a disk read or write failed", "see the system log"),
            Some(Unavailability::Missing | Unavailability::Replaced | Unavailability::Newer) | None => {
                return self.to_string();
            }
        };
        format!("{problem} ({self}); {advice}")
    }

    fn unavailability(&self) -> Option<Unavailability> {
        Some(match self.sqlite_error_code()? {
            ErrorCode::DiskFull => Unavailability::DiskFull,
            ErrorCode::ReadOnly => Unavailability::ReadOnly,
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Unavailability::Unopenable,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Unavailability::Busy,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Unavailability::Damaged,
            ErrorCode::SystemIoFailure if is_shared_memory_full(self) => Unavailability::DiskFull,
            ErrorCode::SystemIoFailure => Unavailability::Io,
            _ => return None,
        })
    }
}

/// Returns whether there was no space for the shared-memory file, the first thing that a process writes.
fn is_shared_memory_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

impl Reason for std::io::Error {
    fn describe(&self) -> String {
        skills_base::files::io_reason(self)
    }

    fn unavailability(&self) -> Option<Unavailability> {
        use std::io::ErrorKind;
        Some(match self.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Unavailability::DiskFull,
            ErrorKind::ReadOnlyFilesystem => Unavailability::ReadOnly,
            ErrorKind::NotFound => Unavailability::Missing,
            ErrorKind::PermissionDenied | ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                Unavailability::Unopenable
            }
            _ => return None,
        })
    }
}

macro_rules! by_display {
    ($($kind:ty),+) => {$(
        impl Reason for $kind {
            fn describe(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

by_display!(&str, String, serde_json::Error, tokio::task::JoinError);

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_damaged_header_is_restored_or_reset() {
        let message = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_NOTADB), None).describe();
        for advice in ["another store", "skills db restore FILE", "skills db reset"] {
            assert!(message.contains(advice), "{message}");
        }
        assert!(message.ends_with("another store"), "the command line adds how to select it: {message}");
        // Callers over HTTP and MCP have no options.
        assert!(!message.contains("--"), "{message}");
    }
}
