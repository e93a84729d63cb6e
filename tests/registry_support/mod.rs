//! A folder to put skills into, and registries over it.
#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use skills_registry::{Catalog, Change, Registry, RegistryEvent, RootOrigin, RootSpec, Settings, ShippedUse};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

/// Longest wait for something that has to happen.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

pub struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A valid bundle in a folder.
    pub fn skill(&self, folder: &str, description: &str) {
        self.write(&format!("{folder}/SKILL.md"), &text(folder, description));
    }

    /// Roots by the names of folders, the first the strongest.
    pub fn settings(&self, roots: &[&str]) -> Settings {
        let spec = |root: &&str| RootSpec {
            path: self.path(root),
            label: (*root).to_owned(),
            project_label: None,
            project: None,
            origin: RootOrigin::Argument,
        };
        Settings {
            roots: roots.iter().map(spec).collect(),
            shipped: ShippedUse::Never,
            cache_dir: self.path("cache"),
            cache: false,
            build: "test".to_owned(),
            watch: false,
            events: true,
            poll: Duration::from_millis(100),
        }
    }

    pub fn scan(&self, roots: &[&str]) -> Arc<Catalog> {
        scan(self.settings(roots))
    }
}

pub fn scan(settings: Settings) -> Arc<Catalog> {
    Registry::open(settings).unwrap().wait_scanned_blocking()
}

pub fn text(folder: &str, description: &str) -> String {
    let name = Path::new(folder).file_name().unwrap().to_str().unwrap();
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\nDo it.\n")
}

/// Ids of the winners, in order.
pub fn ids(catalog: &Catalog) -> Vec<&str> {
    catalog.entries.iter().map(|entry| entry.skill.id.as_str()).collect()
}

pub fn description(catalog: &Catalog, id: &str) -> String {
    catalog.by_id(id).map_or_else(|| format!("no {id}"), |skill| skill.description.clone())
}

/// Waits for a snapshot with a property.
pub fn until(registry: &Registry, what: &str, condition: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
    let mut events = registry.events();
    let since = Instant::now();
    loop {
        let now = registry.snapshot();
        if condition(&now) {
            return now;
        }
        assert!(since.elapsed() < WAIT_TIMEOUT, "never: {what}\n{:#?}", ids(&now));
        next(&mut events);
    }
}

/// The next change, if one arrives in time.
pub fn next(events: &mut Receiver<RegistryEvent>) -> Option<Arc<Change>> {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        match events.try_recv() {
            Ok(RegistryEvent::Change(change)) => return Some(change),
            Ok(RegistryEvent::Progress(_)) | Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Err(TryRecvError::Closed) => return None,
        }
    }
    None
}
