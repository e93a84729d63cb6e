//! Caches which bundles have a contract, until the contract file changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use super::trust;
use skills_base::files::FileStamp;
use skills_base::sync::MutexExt as _;

/// Maximum number of cached bundles.
const CACHE_SIZE: usize = 50_000;
/// Cached results by bundle folder.
#[derive(Debug, Default)]
pub struct KnownContracts(Mutex<HashMap<PathBuf, ContractPresence>>);

#[derive(Debug, Clone, Copy)]
struct ContractPresence {
    stamp: FileStamp,
    at: SystemTime,
    has: bool,
}

impl KnownContracts {
    /// Like [`trust::has_contract`]; reads the file only if it is not the one that was read before.
    pub fn has(&self, bundle: &Path) -> bool {
        // Without a file there is no contract.
        let file = bundle.join("skill.yaml");
        let Ok(metadata) = std::fs::metadata(&file) else { return false };
        let stamp = FileStamp::of(&metadata);
        let known = self.all().get(bundle).copied();
        let still = |known: &ContractPresence| known.stamp == stamp && stamp.is_settled(known.at);
        if let Some(known) = known.filter(still) {
            return known.has;
        }
        let at = SystemTime::now();
        let has = trust::has_contract(bundle);
        let mut all = self.all();
        if all.len() >= CACHE_SIZE {
            all.clear();
        }
        all.insert(bundle.to_owned(), ContractPresence { stamp, at, has });
        has
    }

    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, ContractPresence>> {
        self.0.locked()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    const CONTRACT: &str = "id: a\nsteps:\n  - { id: one, uses: x.y }\n";

    #[test]
    fn added_and_removed_contracts_are_detected_immediately() {
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
    fn unchanged_file_is_read_once() {
        let bundle = tempfile::tempdir().unwrap();
        let file = bundle.path().join("skill.yaml");
        fs::write(&file, CONTRACT).unwrap();
        let known = KnownContracts::default();
        assert!(known.has(bundle.path()));
        // Simulates that it was read long after the last change, so that the cached result is returned.
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
