//! Pending operations: those whose entry is not recorded yet, as files next to the log, so that the entry of one that was interrupted
//! is not lost. A process holds a lock on the files of its own operations: those of a dead process can be locked.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::private_files;

/// The folder, next to the log.
const FOLDER: &str = "pending";
/// How a complete file ends.
const SUFFIX: &str = ".json";

/// An operation whose entry is not recorded yet. It remains pending until [`Self::end`].
#[derive(Debug)]
pub struct PendingOperation {
    pub what: Value,
    file: PathBuf,
    lock: Option<File>,
}

impl PendingOperation {
    pub(super) fn begin(log_folder: &Path, what: Value) -> io::Result<Self> {
        let folder = log_folder.join(FOLDER);
        private_files::create_folder(&folder)?;
        let mut draft = tempfile::Builder::new().prefix(".").tempfile_in(&folder)?;
        draft.as_file().lock()?;
        draft.write_all(&serde_json::to_vec(&what)?)?;
        let name = draft.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = folder.join(format!("{}{SUFFIX}", name.trim_start_matches('.')));
        let lock = draft.persist(&file).map_err(|error| error.error)?;
        Ok(Self { what, file, lock: Some(lock) })
    }

    pub(super) fn all(log_folder: &Path) -> io::Result<Vec<Self>> {
        let entries = match std::fs::read_dir(log_folder.join(FOLDER)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_complete = |file: &PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(SUFFIX) && !name.starts_with('.')
        };
        Ok(files.filter(is_complete).filter_map(Self::read).collect())
    }

    /// Reads an operation; `None` if it has ended.
    fn read(file: PathBuf) -> Option<Self> {
        let mut open = File::open(&file).ok()?;
        let is_locked = open.try_lock().is_ok();
        let mut text = Vec::new();
        open.read_to_end(&mut text).ok()?;
        let what = serde_json::from_slice(&text).unwrap_or_default();
        // The process that held the lock may have ended it in between.
        file.exists().then(|| Self { what, file, lock: is_locked.then_some(open) })
    }

    /// Returns whether the process that began it has ended.
    pub fn is_interrupted(&self) -> bool {
        self.lock.is_some()
    }

    /// Returns whether both are the same operation.
    pub fn is(&self, other: &Self) -> bool {
        self.file == other.file
    }

    /// Ends the operation: its entry is recorded, or it did not take place.
    pub fn end(self) {
        if let Err(error) = std::fs::remove_file(&self.file)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", self.file.display());
        }
    }
}
