//! Why the database could not do it, in words that say what to do.

use rusqlite::ErrorCode;

/// Something that can be given as the reason of a failure.
pub trait Reason {
    /// What was wrong and, where that is known, what to do.
    fn in_words(&self) -> String;
}

impl Reason for rusqlite::Error {
    fn in_words(&self) -> String {
        let advice = match self.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                "the disk is full; nothing recorded before is lost. Free some space, then go on"
            }
            Some(ErrorCode::ReadOnly) => {
                "the file or its folder cannot be written; give this user the right to, or name another --store"
            }
            Some(ErrorCode::CannotOpen) => {
                "it cannot be opened; look at the rights of the file and its folder"
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another process has held it for longer than 10 s; try again, or end that process"
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                "it is damaged: `skills db check` says where. Copy the file and those beside it (-wal, -shm) as they are \
                 before anything else, and let a backup take its place"
            }
            Some(ErrorCode::SystemIoFailure) => "the disk failed to read or write; look at the system's log",
            _ => return self.to_string(),
        };
        format!("{advice} ({self})")
    }
}

macro_rules! by_display {
    ($($kind:ty),+) => {$(
        impl Reason for $kind {
            fn in_words(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

by_display!(&str, String, std::io::Error, serde_json::Error, tokio::task::JoinError);
