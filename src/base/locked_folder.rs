//! Temporary folders bound to their process: deleted with the value, or, if the process was killed, by the next
//! process that cleans up. A lock file in the folder distinguishes the two cases.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// The file in a folder that its owner keeps locked (`flock(2)`); the system releases the lock when the process ends.
const LOCK: &str = "lock";
/// Age from which a folder without a lock file is deleted: an earlier version created none, and may still be running.
const UNLOCKED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// The same age for an empty folder: its process was killed right after creating it, or right before deleting it.
const EMPTY_FOR: Duration = Duration::from_secs(60);
/// Maximum number of attempts to create a folder, since another process may delete it at the same time.
const MAX_TRIES: u32 = 10;
/// Maximum depth of folders whose permissions are restored for deletion: the recursion uses stack.
const MAX_NESTED: usize = 256;

/// A temporary folder of this process.
#[derive(Debug)]
pub struct LockedFolder {
    folder: TempDir,
    /// Held as long as the folder exists; dropped after it.
    _lock: File,
}

impl LockedFolder {
    /// Creates a folder whose name begins with `prefix`. With `traversable`, other users may traverse it.
    pub fn create_in(base: &Path, prefix: &str, traversable: bool) -> io::Result<Self> {
        for _ in 0..MAX_TRIES {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(base)?;
            set_mode(folder.path(), if traversable { 0o711 } else { 0o700 })?;
            let path = folder.path().join(LOCK);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let lock = options.open(&path)?;
            // Another process may have treated it as abandoned in between.
            if lock.try_lock().is_ok() && path.exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(io::Error::other("each new folder was deleted as stale"))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // Failures are left to the removal of the folder itself, and to the next start.
        let _ = clear_contents(self.folder.path());
    }
}

/// A folder whose process has ended; locked, so that no other process deletes it concurrently.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    _lock: File,
}

impl Leftover {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes the folder.
    pub fn clear(self) -> io::Result<()> {
        clear_contents(&self.path)?;
        fs::remove_dir_all(&self.path)
    }
}

/// Returns the folders of this user in `base` whose names begin with `prefix` and whose processes have ended.
pub fn leftovers(base: &Path, prefix: &str) -> impl Iterator<Item = Leftover> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let named =
        entries.filter(move |entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    named.filter_map(|entry| {
        let path = entry.path();
        abandoned(&path).map(|lock| Leftover { path, _lock: lock })
    })
}

/// Locks a folder whose owner has ended, or the folder itself if it has no lock file: it was created by an earlier
/// version, or its process was killed in between. Folders of other users are skipped.
fn abandoned(folder: &Path) -> Option<File> {
    let metadata = fs::symlink_metadata(folder).ok()?;
    if !metadata.is_dir() || !is_own(&metadata) {
        return None;
    }
    match open_lock(&folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().ok().map(|()| lock),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = SystemTime::now().duration_since(metadata.modified().ok()?).ok()?;
            let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            let limit = if is_empty { EMPTY_FOR } else { UNLOCKED_FOR };
            (age > limit).then(|| File::open(folder).ok())?
        }
        Err(_) => None,
    }
}

/// Opens a lock file, without following links or blocking on a pipe.
fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

#[cfg(unix)]
fn is_own(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &Metadata) -> bool {
    true
}

/// Deletes everything in a folder but its lock file, so that a process killed in the meantime leaves a recognizable
/// folder.
fn clear_contents(folder: &Path) -> io::Result<()> {
    // A script may have removed the permissions of its own folders.
    open_folders(folder, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes folders readable and writable for their owner, before they are deleted.
fn open_folders(folder: &Path, depth: usize) {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
    if !is_folder || depth > MAX_NESTED {
        return;
    }
    let _ = set_mode(folder, 0o700);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        open_folders(&entry.path(), depth + 1);
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "skills-test-";

    fn found(base: &Path) -> Vec<PathBuf> {
        leftovers(base, PREFIX).map(|leftover| leftover.path().to_owned()).collect()
    }

    #[test]
    fn folders_of_ended_processes_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let stale = base.path().join(format!("{PREFIX}stale"));
        fs::create_dir_all(stale.join("artifacts")).unwrap();
        assert!(found(base.path()).is_empty(), "an earlier version may have it");
        fs::write(stale.join(LOCK), "").unwrap();
        fs::create_dir(base.path().join("other")).unwrap();
        let used = LockedFolder::create_in(base.path(), PREFIX, false).unwrap();
        assert_eq!(found(base.path()), std::slice::from_ref(&stale), "what is in use stays");
        for leftover in leftovers(base.path(), PREFIX) {
            leftover.clear().unwrap();
        }
        assert!(!stale.exists() && used.path().exists() && base.path().join("other").exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn interrupted_removal_is_completed_at_the_next_start() {
        let base = tempfile::tempdir().unwrap();
        let folder = LockedFolder::create_in(base.path(), PREFIX, false).unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        clear_contents(folder.path()).unwrap();
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [LOCK], "the lock is removed last");
        drop(folder);
        let empty = base.path().join(format!("{PREFIX}empty"));
        fs::create_dir(&empty).unwrap();
        assert!(found(base.path()).is_empty(), "it may be about to get its lock");
        let times = fs::FileTimes::new().set_modified(SystemTime::now() - 2 * EMPTY_FOR);
        File::open(&empty).and_then(|folder| folder.set_times(times)).unwrap();
        assert_eq!(found(base.path()), [empty]);
    }

    #[cfg(unix)]
    #[test]
    fn pipe_or_link_as_lock_file_does_not_block() {
        let base = tempfile::tempdir().unwrap();
        let pipe = base.path().join(format!("{PREFIX}pipe"));
        fs::create_dir(&pipe).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, pipe.join(LOCK), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let link = base.path().join(format!("{PREFIX}link"));
        fs::create_dir(&link).unwrap();
        fs::write(base.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(base.path().join("file"), link.join(LOCK)).unwrap();
        assert!(!found(base.path()).contains(&link));
    }
}
