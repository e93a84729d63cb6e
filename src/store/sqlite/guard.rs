//! Detects whether the open files are still those at their paths, and which process has a database open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{StoreError, Unavailability};
use skills_base::sync::MutexExt as _;

/// Identifies a file, even if another takes its name: device and inode.
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

/// The open files of a database. They are only inspected by path: closing a descriptor of theirs would release the
/// locks that this process holds on them (`fcntl_locking(2)`).
#[derive(Debug)]
pub(super) struct FileGuard {
    place: String,
    files: Vec<(PathBuf, FileId)>,
}

impl FileGuard {
    /// Records files that were just opened; `None` if the database itself no longer exists.
    pub fn of([path, side_files @ ..]: &[PathBuf; 3], place: &str) -> Option<Self> {
        let found = |path: &PathBuf| Some((path.clone(), id(&std::fs::metadata(path).ok()?)));
        let files = std::iter::once(found(path)?).chain(side_files.iter().filter_map(found)).collect();
        Some(Self { place: place.to_owned(), files })
    }

    /// Checks that the files are still at their paths.
    pub fn check(&self) -> Result<(), StoreError> {
        let lost = |cause, reason: String| StoreError::Unavailable {
            cause,
            action: format!("write to {}", self.place),
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
                // Whether the file can be written is determined by the write itself.
                Err(error) => tracing::debug!("looking at {}: {error}", path.display()),
            }
        }
        Ok(())
    }
}

/// How often this process has each database open. A process does not see its own locks, and they are released when it
/// closes any descriptor of the file (`fcntl_locking(2)`): a database listed here is opened only by `SQLite`.
static OPEN_HERE: Mutex<BTreeMap<FileId, usize>> = Mutex::new(BTreeMap::new());

/// Counts a database as open in this process until it is dropped.
#[derive(Debug)]
pub(super) struct OpenCount(FileId);

impl OpenCount {
    /// Counts a file if it exists. `first` is called before, if this process does not have it open yet.
    pub fn count(
        path: &Path,
        first: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        // If it has disappeared, opening it reports that.
        let Ok(found) = std::fs::metadata(path) else { return Ok(None) };
        let mut open = OPEN_HERE.locked();
        let count = open.get(&id(&found)).copied().unwrap_or(0);
        if count == 0 {
            first()?;
        }
        open.insert(id(&found), count + 1);
        Ok(Some(Self(id(&found))))
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        let mut open = OPEN_HERE.locked();
        match open.get_mut(&self.0) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.0)),
        }
    }
}

/// Returns the process that has a database open, if any.
pub(super) fn process_using(path: &Path) -> Option<i32> {
    let open = OPEN_HERE.locked();
    if std::fs::metadata(path).is_ok_and(|found| open.contains_key(&id(&found))) {
        return i32::try_from(std::process::id()).ok();
    }
    locked_by(path)
}

/// Returns the other process that has a database open, if any: it holds a lock on the bytes that `SQLite` reserves for
/// readers (<https://sqlite.org/lockingv3.html>; in WAL mode for as long as it is open). Must not be called for a
/// database that this process has open.
#[cfg(unix)]
pub(super) fn locked_by(path: &Path) -> Option<i32> {
    use nix::fcntl::{FcntlArg, fcntl};
    const SHARED_FIRST: i64 = 0x4000_0002;
    const SHARED_SIZE: i64 = 510;
    let file = std::fs::File::open(path).ok()?;
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

/// Locks of other systems are not checked: there an open file cannot be renamed.
#[cfg(not(unix))]
pub(super) fn locked_by(_: &Path) -> Option<i32> {
    None
}
