//! Identifies the content of a file by its metadata.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A change this soon before reading could leave the times unchanged: file systems have coarse timestamps, in practice
/// up to two seconds.
const RACY: Duration = Duration::from_secs(2);

/// Detects, without reading it, that a file has changed: other content implies another inode, size or time. Includes the
/// change time of the inode, because a user who writes the file cannot set that back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    inode: (u64, u64),
    mode: u32,
    bytes: u64,
    modified: Option<SystemTime>,
    changed: Option<SystemTime>,
}

impl FileStamp {
    pub fn of(metadata: &Metadata) -> Self {
        let (inode, mode, changed) = inode(metadata);
        Self { inode, mode, bytes: metadata.len(), modified: metadata.modified().ok(), changed }
    }

    /// Returns whether a change after this time would change the stamp. Never, where the system has no change time.
    pub fn is_settled(&self, read_at: SystemTime) -> bool {
        self.changed.and_then(|changed| changed.checked_add(RACY)).is_some_and(|stable| stable < read_at)
    }
}

/// Identifies a file that may be renamed and changed in place: its inode, and when that was created, because the inode of
/// a deleted file is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    inode: u64,
    created_ns: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at a path; `None` if the file system does not record when files are created.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let metadata = path.symlink_metadata()?;
        let created = metadata.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let created_ns = created.and_then(|created| u64::try_from(created.as_nanos()).ok());
        Ok(created_ns.map(|created_ns| Self { inode: inode(&metadata).0.1, created_ns }))
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> ((u64, u64), u32, Option<SystemTime>) {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = u64::try_from(metadata.ctime()).ok();
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok();
    let changed = seconds.zip(nanoseconds).map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds));
    let changed = changed.and_then(|changed| UNIX_EPOCH.checked_add(changed));
    ((metadata.dev(), metadata.ino()), metadata.mode(), changed)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> ((u64, u64), u32, Option<SystemTime>) {
    ((0, 0), 0, None)
}
