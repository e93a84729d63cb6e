//! The catalog of capabilities of the current skills: of roots that are registries, and of bundles with their own. It
//! is read again when the skills or one of its files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use skills_base::files::FileStamp;
use skills_base::sync::MutexExt as _;
use skills_registry::trust::is_bundle;
use skills_registry::{Catalog, PinsStamp, Root, RootOrigin, RootState, Trust, TrustSummary};
use skills_runs::{Capabilities, CapabilityFolder};

/// Subfolders that make a folder a capability folder.
const FOLDERS: [&str; 3] = ["capabilities", "bindings", "services"];
/// Maximum depth of files below those folders.
const MAX_DEPTH: usize = 4;

/// Interval at which changes of trusted bundles are looked for.
const TRUST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Cache of the catalog and its sources.
#[derive(Default)]
pub(super) struct CatalogCache(Mutex<State>);

#[derive(Default)]
struct State {
    /// Generation of the skills, counted from 1, so that an empty cache matches no generation.
    generation: Option<u64>,
    places: Vec<CapabilityFolder>,
    trust: TrustCheck,
    files: Vec<(PathBuf, FileStamp)>,
    /// When the files were read last.
    read_at: Option<SystemTime>,
    capabilities: Arc<Capabilities>,
    looked: Option<Instant>,
}

/// The trust in each place, and when it was determined: their order depends on it.
#[derive(Default)]
struct TrustCheck {
    states: Vec<TrustSummary>,
    pins: Option<PinsStamp>,
    at: Option<Instant>,
}

impl TrustCheck {
    /// Returns whether trust in a place has changed; looked for when pins change, and otherwise after an interval.
    fn is_outdated(&mut self, places: &[CapabilityFolder], trust: &Trust) -> bool {
        let pins = trust.pins_stamp();
        let is_recent = self.at.is_some_and(|at| at.elapsed() < TRUST_CHECK_INTERVAL);
        if is_recent && pins == self.pins {
            return false;
        }
        let states = states(places, trust);
        let is_outdated = states != self.states;
        *self = Self { states, pins, at: Some(Instant::now()) };
        is_outdated
    }
}

impl CatalogCache {
    /// Returns whether the last check of the files is younger than this, and was made for these skills: an earlier
    /// check is meaningless for them, however young it is.
    pub(super) fn is_younger_than(&self, age: Duration, skills: &Catalog) -> bool {
        let state = self.0.locked();
        state.generation == Some(skills.generation)
            && state.looked.is_some_and(|looked| looked.elapsed() < age)
    }

    /// Forces the next access to read everything again, with the current trust.
    pub(super) fn doubt(&self) {
        let mut state = self.0.locked();
        state.generation = None;
    }

    /// Returns the current capabilities, and whether they were read again. Reads from disk.
    pub(super) fn present(&self, skills: &Catalog, trust: &Trust) -> (Arc<Capabilities>, bool) {
        let mut state = self.0.locked();
        let is_same_catalog = state.generation == Some(skills.generation);
        let State { places, trust: check, .. } = &mut *state;
        let is_current = is_same_catalog && !check.is_outdated(places, trust);
        if !is_current {
            let (pins, at) = (trust.pins_stamp(), Some(Instant::now()));
            let (places, states) = ordered_places(skills, trust);
            state.places = places;
            state.trust = TrustCheck { states, pins, at };
        }
        let now = SystemTime::now();
        let files = stamp(&state.places);
        state.looked = Some(Instant::now());
        let is_settled = |at: SystemTime| files.iter().all(|(_, stamp)| stamp.is_settled(at));
        let fresh = !is_current || files != state.files || !state.read_at.is_some_and(is_settled);
        if fresh {
            state.capabilities = Arc::new(Capabilities::load(&state.places));
            state.files = files;
            state.read_at = Some(now);
            state.generation = Some(skills.generation);
        }
        (Arc::clone(&state.capabilities), fresh)
    }
}

/// Returns every capability folder with its trust: trusted ones first, then those that changed since, so that an
/// untrusted folder never overrides their definitions; then the user's own before those of the project, which may be a
/// repository of anyone; then in the order of the roots.
fn ordered_places(skills: &Catalog, trust: &Trust) -> (Vec<CapabilityFolder>, Vec<TrustSummary>) {
    let shipped = |root: &Root| root.origin == RootOrigin::Shipped;
    let mut places: Vec<CapabilityFolder> = Vec::new();
    for (i, root) in skills.roots.iter().enumerate().filter(|(_, root)| root.state == RootState::Present) {
        let in_root = skills.skills_with_roots().filter(|(_, of)| *of == i);
        let bundles = in_root.map(|(skill, _)| CapabilityFolder {
            dir: skill.root_dir.clone(),
            bundle: Some(skill.root_dir.clone()),
            shipped: shipped(root),
            of_project: root.of_project,
        });
        // A root that is a bundle itself is listed as one.
        let own = (!is_bundle(&root.path)).then(|| CapabilityFolder {
            dir: root.path.clone(),
            bundle: None,
            shipped: shipped(root),
            of_project: root.of_project,
        });
        places.extend(own.into_iter().chain(bundles).filter(|place| has_any(&place.dir)));
    }
    let snapshot = trust.trust_snapshot();
    // The sort is stable: equal elements keep the order of the roots.
    places.sort_by_cached_key(|place| (precedence(snapshot.state(place.root()).summary()), place.of_project));
    let states = states(&places, trust);
    (places, states)
}

/// Returns the position of a place among others by its trust; the lowest is first.
fn precedence(state: TrustSummary) -> u8 {
    match state {
        TrustSummary::Shipped | TrustSummary::Yes => 0,
        TrustSummary::Changed => 1,
        TrustSummary::No => 2,
    }
}

/// Returns the trust in each place.
fn states(places: &[CapabilityFolder], trust: &Trust) -> Vec<TrustSummary> {
    let snapshot = trust.trust_snapshot();
    places.iter().map(|place| snapshot.state(place.root()).summary()).collect()
}

fn has_any(dir: &Path) -> bool {
    FOLDERS.iter().any(|folder| dir.join(folder).is_dir())
}

/// Returns the stamp of every relevant file; the catalog is valid while they are unchanged.
fn stamp(places: &[CapabilityFolder]) -> Vec<(PathBuf, FileStamp)> {
    let mut files = Vec::new();
    for place in places {
        for folder in FOLDERS {
            gather(&place.dir.join(folder), MAX_DEPTH, &mut files);
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    files
}

fn gather(dir: &Path, depth: usize, files: &mut Vec<(PathBuf, FileStamp)>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            if depth > 0 {
                gather(&entry.path(), depth - 1, files);
            }
        } else {
            files.push((entry.path(), FileStamp::of(&metadata)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that can write a file can also set its modification time.
    #[cfg(unix)]
    #[test]
    fn a_definition_of_the_same_size_and_time_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("capabilities/a.b.yaml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let write = |word: &str| {
            std::fs::write(&file, format!("id: a.b\nversion: 1.0.0\ndescription: {word}\n")).unwrap();
            let opened = std::fs::File::options().append(true).open(&file).unwrap();
            opened.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        let root = Root {
            path: home.path().to_owned(),
            label: "root".to_owned(),
            project_label: None,
            of_project: false,
            origin: RootOrigin::Argument,
            state: RootState::Present,
            live: false,
        };
        let skills = Catalog { generation: 1, roots: vec![root], ..Catalog::default() };
        let trust = Trust::new(None, home.path().join("shipped"), Vec::new());
        let cache = CatalogCache::default();
        for word in ["one", "two"] {
            write(word);
            let (found, _) = cache.present(&skills, &trust);
            assert_eq!(found.capability("a.b").unwrap().description, word);
        }
    }

    #[test]
    fn revoked_trust_changes_the_order_at_once() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let root = |name: &str| {
            let folder = home.join(name);
            std::fs::create_dir_all(folder.join("capabilities")).unwrap();
            let text = format!("id: a.b\nversion: 1.0.0\ndescription: {name}\n");
            std::fs::write(folder.join("capabilities/a.b.yaml"), text).unwrap();
            Root {
                path: folder,
                label: name.to_owned(),
                project_label: None,
                of_project: false,
                origin: RootOrigin::Argument,
                state: RootState::Present,
                live: false,
            }
        };
        let project = Root { of_project: true, ..root("project") };
        let (pinned, own) = (root("pinned"), root("own"));
        let place = pinned.path.clone();
        let trust = Trust::new(Some(home.join("trust.json")), home.join("shipped"), Vec::new());
        let skills = Catalog { generation: 1, roots: vec![project, own, pinned], ..Catalog::default() };
        let cache = CatalogCache::default();
        let source = || cache.present(&skills, &trust).0.capability("a.b").unwrap().description.clone();
        assert_eq!(source(), "own", "before that of an untrusted project");
        trust.pin(&[(place.clone(), trust.compute_digest(&place).unwrap())], "today").unwrap();
        assert_eq!(source(), "pinned");
        trust.revoke(&place).unwrap();
        assert_eq!(source(), "own");
    }

    #[test]
    fn root_that_is_a_bundle_is_not_a_registry_folder() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("downloaded");
        std::fs::create_dir_all(folder.join("capabilities")).unwrap();
        std::fs::write(folder.join("capabilities/a.b.yaml"), "id: a.b\nversion: 1.0.0\n").unwrap();
        let mut skills = crate::testing::catalog(&[]);
        skills.roots[0].path.clone_from(&folder);
        let trust = Trust::new(None, home.path().join("shipped"), Vec::new());
        assert_eq!(ordered_places(&skills, &trust).0.len(), 1);
        std::fs::write(folder.join("SKILL.md"), "---\nname: a\ndescription: x\n---\n").unwrap();
        assert!(ordered_places(&skills, &trust).0.is_empty());
    }

    #[test]
    fn a_changed_folder_precedes_untrusted_ones() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let folder = |name: &str, bundle: bool| {
            let dir = home.join(name);
            std::fs::create_dir_all(&dir).unwrap();
            CapabilityFolder {
                bundle: bundle.then(|| dir.clone()),
                dir,
                shipped: false,
                of_project: name == "project",
            }
        };
        let (registry, pinned) = (folder("registry", false), folder("pinned", true));
        let mut places = [folder("project", false), folder("other", true), registry, pinned];
        let trust = Trust::new(Some(home.join("trust.json")), home.join("shipped"), Vec::new());
        let place = home.join("pinned");
        std::fs::write(place.join("SKILL.md"), "one").unwrap();
        trust.pin(&[(place.clone(), trust.compute_digest(&place).unwrap())], "today").unwrap();
        std::fs::write(place.join("SKILL.md"), "other").unwrap();
        places.sort_by_key(|place| (precedence(trust.state(place.root()).summary()), place.of_project));
        let order = places.map(|place| place.dir.file_name().unwrap().to_owned());
        assert_eq!(order, ["pinned", "other", "registry", "project"]);
    }

    #[test]
    fn snapshot_from_before_the_first_scan_is_outdated() {
        let home = tempfile::tempdir().unwrap();
        let trust = Trust::new(None, home.path().join("shipped"), Vec::new());
        let (before, after) = (Catalog::default(), Catalog { generation: 7, ..Catalog::default() });
        let cache = CatalogCache::default();
        cache.present(&before, &trust);
        let long = Duration::from_secs(3_600);
        assert!(cache.is_younger_than(long, &before));
        assert!(!cache.is_younger_than(long, &after));
        cache.present(&after, &trust);
        assert!(cache.is_younger_than(long, &after));
        assert!(!cache.is_younger_than(Duration::ZERO, &after));
    }
}
