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

/// Files of one folder that are named one by one when they change.
const NAMED_FILES: usize = 64;
/// Hexadecimal digits that tell one content of a named file from another; the digest of the whole is what guards.
const SHORT: usize = 12;

/// Tells whether a file is as it was without reading it: length, change of content, change of anything.
type Stamp = (u64, Option<SystemTime>, i64);

/// What a binding's own words are kept under, before its id.
const DEFINITION: &str = "binding ";

/// A binding with everything its script may load, and what it consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Digest of all of it: another one is a change.
    pub whole: String,
    /// Digests of its parts, to name the one that changed: the binding's own words, and the files of the script's
    /// folder below the bundle's name (`slow-pay/scripts/pay.py`).
    pub parts: BTreeMap<String, String>,
    /// Before the names of all its files.
    folder: String,
}

/// What became of a part since the launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// In words.
    pub what: String,
    /// What it is kept under.
    pub part: String,
    /// What it is now; empty where it is gone.
    pub now: String,
}

impl Pin {
    /// The parts that are others than at the launch; none where nothing is known about them.
    pub fn edits(&self, launched: &BTreeMap<String, String>) -> Vec<Edit> {
        let known = |part: &str| launched.get(part).filter(|digest| !digest.is_empty());
        let own = |part: &str| part.starts_with(DEFINITION);
        if !self.parts.keys().any(|part| own(part) && known(part).is_some()) {
            // Launched by a version that kept the whole alone.
            return Vec::new();
        }
        let name = |part: &str| part.split_once('/').map_or(part, |(_, place)| place).to_owned();
        let edit =
            |part: &String, now: &str, what: String| Edit { what, part: part.clone(), now: now.to_owned() };
        let present = self.parts.iter().filter_map(|(part, now)| match known(part) {
            Some(before) if before == now => None,
            Some(_) if own(part) => Some(edit(part, now, format!("the {part} changed since the launch"))),
            Some(_) => Some(edit(part, now, format!("{} changed since the launch", name(part)))),
            None => Some(edit(part, now, format!("{} was not there at the launch", name(part)))),
        });
        let gone = launched.iter().filter(|(part, before)| {
            let files = !self.folder.is_empty() && self.parts.len() > 1;
            files && part.starts_with(&self.folder) && !before.is_empty() && !self.parts.contains_key(*part)
        });
        let gone = gone.map(|(part, _)| edit(part, "", format!("{} is gone since the launch", name(part))));
        present.chain(gone).collect()
    }
}

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
    ) -> Pin {
        let binding = &offered.binding;
        let mut folder = String::new();
        let scripts = (binding.protocol == Protocol::Script).then(|| {
            let reach = services.get(&binding.service).map(|endpoint| &endpoint.reach);
            located(offered, reach, catalogue).ok().map(|found| {
                let script = found.bundle.join(&found.script);
                let bundle = found.bundle.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let within = found.script.parent().map(|at| at.to_string_lossy().into_owned());
                folder = format!("{bundle}/{}/", within.unwrap_or_default());
                script.parent().map(|folder| self.folder(folder)).unwrap_or_default()
            })
        });
        let own = json!({
            "capability": binding.capability, "service": binding.service, "protocol": binding.protocol,
            "operation": binding.operation, "request": binding.request, "response": binding.response,
            "metadata": binding.metadata,
        });
        let mut all = own.clone();
        all["scripts"] = json!(scripts);
        let short = |digest: &str| digest.get(..SHORT).unwrap_or(digest).to_owned();
        let files = scripts.flatten().filter(|files| files.len() <= NAMED_FILES).unwrap_or_default();
        let mut parts: BTreeMap<String, String> =
            files.iter().map(|(place, digest)| (format!("{folder}{place}"), short(digest))).collect();
        parts.insert(format!("{DEFINITION}{}", binding.id), short(&digest_of(&own)));
        Pin { whole: digest_of(&all), parts, folder }
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
