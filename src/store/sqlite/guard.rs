//! Whether the files that are open are still those at their paths.

use std::path::{Path, PathBuf};

use crate::{StoreError, Unavailability};

/// Tells one file from another that took its name: device and inode.
type FileId = (u64, u64);

#[cfg(unix)]
fn id(metadata: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn id(_: &std::fs::Metadata) -> FileId {
    (0, 0)
}

/// The open files of a database. Looked at by their names alone: closing a descriptor of theirs would end the locks that
/// this process holds on them (`fcntl_locking(2)`).
#[derive(Debug)]
pub(super) struct FileGuard {
    place: String,
    files: Vec<(PathBuf, FileId)>,
}

impl FileGuard {
    /// Of files that were opened a moment ago; none where the database itself is gone already.
    pub fn of(path: &Path, log: &Path, place: &str) -> Option<Self> {
        let found = |path: &Path| Some((path.to_owned(), id(&std::fs::metadata(path).ok()?)));
        let files = std::iter::once(found(path)?).chain(found(log)).collect();
        Some(Self { place: place.to_owned(), files })
    }

    /// Whether they are where they were.
    pub fn check(&self) -> Result<(), StoreError> {
        let lost = |cause, reason: String| StoreError::Unavailable {
            cause,
            doing: format!("writing to {}", self.place),
            reason: format!("{reason}; restore the original file, or restart this process"),
        };
        for (at, (path, known)) in self.files.iter().enumerate() {
            match std::fs::metadata(path) {
                Ok(found) if id(&found) != *known => {
                    return Err(lost(
                        Unavailability::Replaced,
                        format!("{} is not the file that was opened", path.display()),
                    ));
                }
                Ok(found) if at == 0 && found.len() == 0 => {
                    return Err(lost(Unavailability::Damaged, format!("{} was emptied", path.display())));
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(lost(
                        Unavailability::Missing,
                        format!("{} no longer exists", path.display()),
                    ));
                }
                // Whether it may be written is for the write itself to find out.
                Err(error) => tracing::debug!("looking at {}: {error}", path.display()),
            }
        }
        Ok(())
    }
}

/// The process that has a database open, if any: it holds a lock on the bytes that `SQLite` keeps for readers
/// (<https://sqlite.org/lockingv3.html>; in WAL mode for as long as it is open).
#[cfg(unix)]
pub(super) fn process_using(path: &Path) -> Option<i32> {
    use nix::fcntl::{FcntlArg, fcntl};
    const SHARED_FIRST: i64 = 0x4000_0002;
    const SHARED_SIZE: i64 = 510;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
    let mut lock = nix::libc::flock {
        l_type: i16::try_from(nix::libc::F_WRLCK).ok()?,
        l_whence: i16::try_from(nix::libc::SEEK_SET).ok()?,
        l_start: SHARED_FIRST,
        l_len: SHARED_SIZE,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut lock)).ok()?;
    (i32::from(lock.l_type) != nix::libc::F_UNLCK).then_some(lock.l_pid)
}

/// Locks of other systems are not looked at: there a file that is open cannot be renamed.
#[cfg(not(unix))]
pub(super) fn process_using(_: &Path) -> Option<i32> {
    None
}
