//! Folders that end with the process: of demonstrations, and for artifacts of runs that are not kept.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// How the names of such folders begin.
const PREFIX: &str = "skills-demo-";
/// The file in a folder that its process keeps locked; the lock ends with the process.
const LOCK: &str = "lock";
/// Folders that another process may clear while they are made, before this one gives up.
const MAX_TRIES: u32 = 10;

/// A folder that is deleted with this value; where its process is killed, by the next one that makes such a folder.
pub(super) struct PassingFolder {
    folder: TempDir,
    /// Held as long as the folder is there; dropped after it.
    _lock: File,
}

impl PassingFolder {
    /// In the temporary folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(base: &Path) -> io::Result<Self> {
        clear(base);
        for _ in 0..MAX_TRIES {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
            let path = folder.path().join(LOCK);
            let lock = File::options().write(true).create_new(true).open(&path)?;
            // Another process may have taken it for a leftover in between.
            if lock.try_lock().is_ok() && path.exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(io::Error::other("each new folder was taken for a leftover"))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Deletes the folders of processes that are gone.
fn clear(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let folder = entry.path();
        let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
        if lock.try_lock().is_ok()
            && let Err(error) = fs::remove_dir_all(&folder)
        {
            tracing::warn!("clearing {}: {error}", folder.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_processes_that_are_gone_are_cleared() {
        let base = tempfile::tempdir().unwrap();
        let stale = base.path().join(format!("{PREFIX}stale"));
        fs::create_dir_all(stale.join("artifacts")).unwrap();
        fs::write(stale.join(LOCK), "").unwrap();
        let other = base.path().join("other");
        fs::create_dir(&other).unwrap();
        let first = PassingFolder::create_in(base.path()).unwrap();
        let second = PassingFolder::create_in(base.path()).unwrap();
        assert!(!stale.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists(), "what is in use stays");
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
