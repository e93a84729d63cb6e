//! Which bundles have a contract, cached until the contract file changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::trusting;

/// Bundles that are remembered.
const CACHE_SIZE: usize = 50_000;
/// A change this close to the moment of reading could have left the times as they are: file systems count time in
/// steps, the coarsest in use in steps of two seconds.
const RACY: Duration = Duration::from_secs(2);

/// What was read of bundles, by folder.
#[derive(Debug, Default)]
pub struct KnownContracts(Mutex<HashMap<PathBuf, Known>>);

#[derive(Debug, Clone, Copy)]
struct Known {
    stamp: Stamp,
    at: SystemTime,
    has: bool,
}

/// What another content cannot have without being another file or younger. The time of the inode's last change is
/// part of it, because that one cannot be set back by who writes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    bytes: u64,
    modified: SystemTime,
    changed: SystemTime,
}

impl KnownContracts {
    /// As [`trusting::has_contract`]; the file is read when it is not the one that was read before.
    pub fn has(&self, bundle: &Path) -> bool {
        // Without a file there is no contract; what cannot be distinguished is read each time.
        let file = bundle.join("skill.yaml");
        let Ok(metadata) = std::fs::metadata(&file) else { return false };
        let Some(stamp) = stamp(&metadata) else { return trusting::has_contract(bundle) };
        let known = self.all().get(bundle).copied();
        let still =
            |known: &Known| known.stamp == stamp && stamp.modified.max(stamp.changed) + RACY < known.at;
        if let Some(known) = known.filter(still) {
            return known.has;
        }
        let at = SystemTime::now();
        let has = trusting::has_contract(bundle);
        let mut all = self.all();
        if all.len() >= CACHE_SIZE {
            all.clear();
        }
        all.insert(bundle.to_owned(), Known { stamp, at, has });
        has
    }

    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
fn stamp(metadata: &std::fs::Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok()?;
    let changed = Duration::new(u64::try_from(metadata.ctime()).ok()?, nanoseconds);
    Some(Stamp {
        inode: (metadata.dev(), metadata.ino()),
        bytes: metadata.len(),
        modified: metadata.modified().ok()?,
        changed: UNIX_EPOCH.checked_add(changed)?,
    })
}

#[cfg(not(unix))]
fn stamp(_: &std::fs::Metadata) -> Option<Stamp> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CONTRACT: &str = "id: a\nsteps:\n  - { id: one, uses: x.y }\n";

    #[test]
    fn a_contract_that_comes_or_goes_is_seen_at_once() {
        let bundle = tempfile::tempdir().unwrap();
        let file = bundle.path().join("skill.yaml");
        let known = KnownContracts::default();
        assert!(!known.has(bundle.path()));
        fs::write(&file, CONTRACT).unwrap();
        assert!(known.has(bundle.path()));
        fs::write(&file, "x".repeat(CONTRACT.len())).unwrap();
        assert!(!known.has(bundle.path()), "the same size within one step of the clock");
        fs::remove_file(&file).unwrap();
        assert!(!known.has(bundle.path()));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_at_rest_is_read_once() {
        let bundle = tempfile::tempdir().unwrap();
        let file = bundle.path().join("skill.yaml");
        fs::write(&file, CONTRACT).unwrap();
        let known = KnownContracts::default();
        assert!(known.has(bundle.path()));
        // As if it had been read long after the last change; what was read then is what is answered.
        let mut one = known.all()[bundle.path()];
        one.at += Duration::from_secs(60);
        one.has = false;
        known.all().insert(bundle.path().to_owned(), one);
        assert!(!known.has(bundle.path()));
        let touched = fs::File::options().append(true).open(&file).unwrap();
        touched.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
        assert!(known.has(bundle.path()));
    }
}
