//! The warm-start cache of the index: the term counts of the router, stored between two starts. Skills whose digest is
//! unchanged need not be read again.

use std::path::Path;
use std::sync::RwLock;
use std::time::{Duration, Instant};

use super::cache_file::CacheFile;
use skills_base::sync::RwLockExt as _;
use skills_discovery::Router;
use skills_registry::RootSpec;
use skills_skill::Digest;

/// Minimum number of skills; smaller indexes are built faster than they are read.
const WORTH_KEEPING: usize = 100;
/// Minimum interval between writes while changes arrive one by one.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// The file of the index, and whether it is outdated.
#[derive(Debug)]
pub struct IndexCache {
    file: Option<CacheFile>,
    unsaved: bool,
    saved_at: Option<Instant>,
}

impl IndexCache {
    /// Creates the cache for a set of roots and a build of this program.
    pub fn new(folder: &Path, roots: &[RootSpec], build: &str) -> Self {
        let mut key = String::new();
        for root in roots {
            key += &root.path.to_string_lossy();
            key.push('\0');
        }
        let name = format!("index-{}.bin", &Digest::of(key.as_bytes()).to_string()[..16]);
        let file = Some(CacheFile::new(folder.join(name), "index", build));
        Self { file, unsaved: false, saved_at: None }
    }

    /// Creates a disabled cache.
    pub fn off() -> Self {
        Self { file: None, unsaved: false, saved_at: None }
    }

    /// Fills an empty router; returns the outcome: `used`, `off`, `rebuilt: …`.
    pub fn restore(&self, router: &mut Router) -> String {
        match self.file.as_ref().map(CacheFile::open) {
            None => "off".to_owned(),
            Some(Ok(None)) => "rebuilt: no cache yet".to_owned(),
            Some(Err(why)) => format!("rebuilt: {why}"),
            Some(Ok(Some(opened))) => match router.restore(Box::new(opened)) {
                Ok(()) => "used".to_owned(),
                Err(error) => format!("rebuilt: {error}"),
            },
        }
    }

    /// Marks the file as outdated.
    pub fn changed(&mut self) {
        self.unsaved = true;
    }

    /// Returns whether the file should be written now.
    pub fn due(&self, now: Instant, at_once: bool) -> bool {
        let rested = self.saved_at.is_none_or(|at| now.duration_since(at) >= SAVE_INTERVAL);
        self.unsaved && self.file.is_some() && (at_once || rested)
    }

    /// Writes the index if it is large enough, and from then on reads its tables from the file. The index must not
    /// change in the meantime.
    pub fn write(&mut self, router: &RwLock<Router>, now: Instant) {
        self.unsaved = false;
        self.saved_at = Some(now);
        let Some(file) = &self.file else { return };
        let written = {
            let router = router.read_locked();
            if router.len() < WORTH_KEEPING {
                return;
            }
            file.write_with(|out| router.write_snapshot(out))
        };
        let result = match written {
            Ok(None) => return,
            Ok(Some(written)) => file.open().and_then(|opened| {
                let opened = opened.ok_or("it is gone")?;
                let mut router = router.write_locked();
                router.store_in(written, Box::new(opened)).map_err(|error| error.to_string())
            }),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = result {
            tracing::warn!(error, path = %file.path().display(), "cannot save the index cache; the next start rebuilds the index");
        }
    }

    /// Removes the file because it is corrupt.
    pub fn remove(&self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_discovery::{Document, Weights};

    fn router(skills: usize) -> Router {
        let mut router = Router::new(Weights::shipped().unwrap());
        let document = |i| Document::new(format!("skill-{i}"), format!("skill-{i}"), format!("Does job {i}"));
        router.update((0..skills).map(document).collect(), &[]);
        router
    }

    #[test]
    fn index_is_restored_by_the_same_build_only() {
        let dir = tempfile::tempdir().unwrap();
        let cache = |build: &str| IndexCache::new(dir.path(), &[], build);
        let mut empty = router(0);
        assert_eq!(cache("a").restore(&mut empty), "rebuilt: no cache yet");
        let full = RwLock::new(router(WORTH_KEEPING));
        cache("a").write(&full, Instant::now());
        assert_eq!((cache("a").restore(&mut empty).as_str(), empty.len()), ("used", WORTH_KEEPING));
        let mut other = router(0);
        assert!(cache("b").restore(&mut other).starts_with("rebuilt: it was written by another build"));
        assert!(other.is_empty());
        cache("a").remove();
        assert_eq!(cache("a").restore(&mut other), "rebuilt: no cache yet");
    }

    #[test]
    fn small_index_is_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = IndexCache::new(dir.path(), &[], "a");
        cache.write(&RwLock::new(router(3)), Instant::now());
        assert_eq!(cache.restore(&mut router(0)), "rebuilt: no cache yet");
    }

    #[test]
    fn single_changes_are_not_written_immediately() {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = IndexCache::new(dir.path(), &[], "a");
        let now = Instant::now();
        assert!(!cache.due(now, true), "nothing has changed");
        cache.changed();
        assert!(cache.due(now, false));
        cache.write(&RwLock::new(router(0)), now);
        cache.changed();
        assert!(!cache.due(now, false) && cache.due(now, true) && cache.due(now + SAVE_INTERVAL, false));
    }
}
