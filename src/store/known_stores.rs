//! The record of the stores that were opened on this machine: which store belongs at which path. An earlier store is
//! then never mistaken for a new one.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{StoreError, Unavailability};
use skills_base::private_files;

/// Maximum size of the file.
const MAX_BYTES: u64 = 16 << 20;

/// Version of the file format.
const VERSION: u32 = 1;

/// A store that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    path: String,
    id: String,
    first_opened_ms: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    stores: Vec<Entry>,
}

/// The file with the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownStores {
    file: PathBuf,
}

impl KnownStores {
    /// Uses the record in this file, which need not exist.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the id of the store that was previously opened at a path.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] if the record is damaged: it must not be ignored silently.
    pub fn id_at(&self, store: &Path) -> Result<Option<String>, StoreError> {
        Ok(find(&self.read()?, &keys(store)).map(str::to_owned))
    }

    /// Like [`Self::id_at`] for a store on a server, by its address without the password.
    pub fn id_of(&self, place: &str) -> Result<Option<String>, StoreError> {
        Ok(find(&self.read()?, &[place.to_owned()]).map(str::to_owned))
    }

    /// Records the store at a path unless one is already recorded; returns the recorded id, which differs if another
    /// process was faster.
    ///
    /// # Errors
    /// Same as [`Self::id_at`], and if the record cannot be written.
    pub fn adopt(&self, store: &Path, id: &str, now_ms: i64) -> Result<String, StoreError> {
        self.record_at(&keys(store), id, now_ms)
    }

    /// Like [`Self::adopt`] for a store on a server.
    pub fn record(&self, place: &str, id: &str, now_ms: i64) -> Result<String, StoreError> {
        self.record_at(&[place.to_owned()], id, now_ms)
    }

    fn record_at(&self, keys: &[String], id: &str, now_ms: i64) -> Result<String, StoreError> {
        self.change(|content| {
            let id = find(content, keys).unwrap_or(id).to_owned();
            for key in keys {
                if !content.stores.iter().any(|entry| entry.path == *key) {
                    content.stores.push(Entry { path: key.clone(), id: id.clone(), first_opened_ms: now_ms });
                }
            }
            id
        })
    }

    /// Removes the record of the store at a path.
    pub fn remove(&self, store: &Path) -> Result<(), StoreError> {
        let forgotten = keys(store);
        // Also the paths through links that lead to it.
        let leads_to_it =
            |entry: &Entry| keys(Path::new(&entry.path)).iter().any(|key| forgotten.contains(key));
        self.change(|content| content.stores.retain(|entry| !leads_to_it(entry)))
    }

    /// Like [`Self::remove`] for a store on a server.
    pub fn remove_place(&self, place: &str) -> Result<(), StoreError> {
        self.change(|content| content.stores.retain(|entry| entry.path != place))
    }

    fn read(&self) -> Result<Content, StoreError> {
        match skills_base::files::read_regular_text(&self.file, MAX_BYTES) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| self.failed("read", &error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Content::default()),
            Err(error) => Err(self.failed("read", &error)),
        }
    }

    /// Changes the record under a lock, so that concurrent changes of other processes are not lost.
    fn change<T>(&self, change: impl FnOnce(&mut Content) -> T) -> Result<T, StoreError> {
        let _lock = self.lock().map_err(|error| self.failed("lock", &error))?;
        let mut content = self.read()?;
        let before = content.stores.clone();
        let answer = change(&mut content);
        if content.stores != before {
            content.version = VERSION;
            let text =
                serde_json::to_string_pretty(&content).map_err(|error| self.failed("write", &error))?;
            private_files::replace(&self.file, format!("{text}\n").as_bytes())
                .map_err(|error| self.failed("write", &error))?;
        }
        Ok(answer)
    }

    fn lock(&self) -> std::io::Result<File> {
        private_files::create_folder(self.file.parent().unwrap_or(Path::new(".")))?;
        let lock = private_files::open_append(&self.file.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn failed(&self, action: &str, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Unavailable {
            cause: Unavailability::Unopenable,
            action: format!("{action} the record of known stores, {}", self.file.display()),
            reason: format!("{error}; correct the file, or delete it to record the current stores"),
        }
    }
}

/// Returns the id that is recorded under any of these keys.
fn find<'a>(content: &'a Content, keys: &[String]) -> Option<&'a str> {
    let mut entries = keys.iter().filter_map(|key| content.stores.iter().find(|entry| entry.path == *key));
    entries.next().map(|entry| entry.id.as_str())
}

/// Returns the keys under which a store is recorded: its path as given, because the links to an unmounted volume cannot
/// be resolved, and its path without links.
fn keys(store: &Path) -> Vec<String> {
    let absolute = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
    let mut keys = vec![key(&absolute)];
    if let Some(resolved) = resolve(&absolute).map(|path| key(&path)).filter(|path| !keys.contains(path)) {
        keys.push(resolved);
    }
    keys
}

/// Resolves the links of a path; of a missing file, those of its folder.
fn resolve(path: &Path) -> Option<PathBuf> {
    let in_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_folder)
}

/// Returns a path as it is recorded.
fn key(path: &Path) -> String {
    // Bytes that are not UTF-8 are escaped, so that two paths never have the same key.
    let escaped = || path.as_os_str().as_encoded_bytes().escape_ascii().to_string();
    path.to_str().map_or_else(escaped, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_id_of_a_path_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let stores = KnownStores::new(dir.path().join("state/stores.json"));
        let (a, b) = (dir.path().join("a.db"), dir.path().join("b.db"));
        assert_eq!(stores.id_at(&a).unwrap(), None);
        assert_eq!(stores.adopt(&a, "1", 5).unwrap(), "1");
        assert_eq!(stores.adopt(&a, "2", 6).unwrap(), "1");
        assert_eq!(stores.adopt(&b, "2", 7).unwrap(), "2");
        assert_eq!(stores.id_at(&a).unwrap().as_deref(), Some("1"));
        stores.remove(&a).unwrap();
        assert_eq!(stores.id_at(&a).unwrap(), None);
        assert_eq!(stores.id_at(&b).unwrap().as_deref(), Some("2"));
    }

    #[cfg(unix)]
    #[test]
    fn a_store_is_known_by_each_path_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let stores = KnownStores::new(dir.path().join("stores.json"));
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        stores.adopt(&link.join("a.db"), "1", 5).unwrap();
        assert_eq!(stores.id_at(&real.join("a.db")).unwrap().as_deref(), Some("1"));
        assert_eq!(stores.adopt(&real.join("a.db"), "2", 6).unwrap(), "1");
        std::fs::remove_file(&link).unwrap();
        assert_eq!(stores.id_at(&link.join("a.db")).unwrap().as_deref(), Some("1"), "the link is gone");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        stores.remove(&real.join("a.db")).unwrap();
        assert_eq!(stores.id_at(&link.join("a.db")).unwrap(), None);
        assert_eq!(stores.id_at(&real.join("a.db")).unwrap(), None);
    }

    #[test]
    fn concurrent_records_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let stores = KnownStores::new(dir.path().join("stores.json"));
        std::thread::scope(|scope| {
            for n in 0..16 {
                let (stores, store) = (stores.clone(), dir.path().join(format!("{n}.db")));
                scope.spawn(move || stores.adopt(&store, &n.to_string(), 0).unwrap());
            }
        });
        for n in 0..16 {
            assert_eq!(stores.id_at(&dir.path().join(format!("{n}.db"))).unwrap(), Some(n.to_string()));
        }
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let stores = KnownStores::new(dir.path().join("stores.json"));
        std::fs::write(stores.file(), "{").unwrap();
        let error = stores.id_at(&dir.path().join("a.db")).unwrap_err();
        assert_eq!(error.unavailability(), Some(Unavailability::Unopenable));
    }
}
