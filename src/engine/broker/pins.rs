//! What carries a capability out, as digests: a binding with everything its script may load. Taken when a run is
//! launched and held against what is there when a step begins, so that what was launched is what runs.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::super::binding::script::located;
use super::super::canonical::{digest_of, digest_of_bytes};
use super::super::capabilities::{Capabilities, Offered};
use crate::skill::contract::{Endpoint, Protocol};

/// Files and bytes of one folder of scripts that are looked at.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 64 << 20;

/// How long a file has to be left alone before its digest is kept.
const SETTLED: Duration = Duration::from_secs(2);

/// Tells whether a file is as it was without reading it: length, change of content, change of anything.
type Stamp = (u64, Option<SystemTime>, i64);

/// Digests of files, kept as long as nothing about the file changes.
#[derive(Default)]
pub struct Pins {
    known: Mutex<HashMap<PathBuf, (Stamp, String)>>,
}

impl Pins {
    /// A binding as it is now; what cannot be read counts as a content of its own.
    pub fn of(
        &self,
        offered: &Offered,
        services: &BTreeMap<String, Endpoint>,
        catalogue: &Capabilities,
    ) -> String {
        let binding = &offered.binding;
        let scripts = (binding.protocol == Protocol::Script).then(|| {
            let reach = services.get(&binding.service).map(|endpoint| &endpoint.reach);
            located(offered, reach, catalogue).ok().map(|found| {
                let script = found.bundle.join(&found.script);
                script.parent().map(|folder| self.folder(folder)).unwrap_or_default()
            })
        });
        digest_of(&json!({
            "capability": binding.capability, "service": binding.service, "protocol": binding.protocol,
            "operation": binding.operation, "request": binding.request, "response": binding.response,
            "metadata": binding.metadata, "scripts": scripts,
        }))
    }

    /// Every file of a folder by its place in it; a script may load any of them.
    fn folder(&self, folder: &Path) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut left = (MOST_FILES, MOST_BYTES);
        self.walk(folder, folder, &mut left, &mut files);
        files
    }

    fn walk(&self, top: &Path, folder: &Path, left: &mut (usize, u64), files: &mut BTreeMap<String, String>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.filter_map(Result::ok) {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            // Caches of interpreters come and go; hidden files belong to editors and repositories.
            if name == "__pycache__" || name.to_string_lossy().starts_with('.') {
                continue;
            }
            let path = entry.path();
            if kind.is_dir() {
                self.walk(top, &path, left, files);
            } else if left.0 > 0
                && let Ok(meta) = path.metadata()
                && meta.is_file()
                && meta.len() <= left.1
            {
                (left.0, left.1) = (left.0 - 1, left.1 - meta.len());
                let place = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(place, self.file(&path, &meta));
            }
        }
    }

    fn file(&self, path: &Path, meta: &Metadata) -> String {
        let stamp = stamp(meta);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, digest)) = known.get(path)
            && *before == stamp
        {
            return digest.clone();
        }
        let digest = match std::fs::read(path) {
            Ok(content) => digest_of_bytes(&content),
            Err(error) => format!("unreadable: {}", error.kind()),
        };
        // Written again within one tick of the file system's clock, it would look as it did.
        if stamp.1.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > SETTLED) {
            known.insert(path.to_owned(), (stamp, digest.clone()));
        }
        digest
    }
}

#[cfg(unix)]
fn stamp(meta: &Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let changed = meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec());
    (meta.len(), meta.modified().ok(), changed)
}

#[cfg(not(unix))]
fn stamp(meta: &Metadata) -> Stamp {
    (meta.len(), meta.modified().ok(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_file_that_a_script_may_load_counts_and_a_cache_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("main.py", "import lib.rows");
        write("lib/rows.py", "A = 1");
        let pins = Pins::default();
        let before = pins.folder(folder.path());
        assert_eq!(before.keys().collect::<Vec<_>>(), ["lib/rows.py", "main.py"]);
        write("__pycache__/main.pyc", "x");
        write(".main.py.swp", "x");
        assert_eq!(pins.folder(folder.path()), before);
        write("lib/rows.py", "A = 2");
        assert_ne!(pins.folder(folder.path()), before, "a file of the same length that was written again");
    }
}
