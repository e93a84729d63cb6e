//! The thread that keeps the router up to date with the catalog: names and descriptions immediately, then headings and
//! bodies in small batches, so that requests are answered in between.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use fail::fail_point;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use rayon::prelude::*;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use super::index_cache::IndexCache;
use crate::{Event, IndexProgress};
use skills_base::sync::{MutexExt as _, RwLockExt as _};
use skills_discovery::{Document, Router};
use skills_registry::{Catalog, RegistryEvent};
use skills_skill::{Skill, SkillId};

/// Number of skills indexed per batch while requests wait: about 20 ms of work.
const BATCH: usize = 64;
/// Batch size for names and descriptions alone, which are faster.
const NAMES_BATCH: usize = 256;
/// Batch size while no request waits.
const LARGE_BATCH: usize = 1024;
/// Number of new skills after which merging the index segments is worthwhile: about half a second of work for the
/// largest collections, for a good tenth of every request's time.
const WORTH_JOINING: usize = 500;
/// Minimum interval between progress events.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// State shared by the thread and the callers.
pub struct Shared {
    /// The router; locked for writing during one batch at a time.
    pub router: RwLock<Router>,
    pub events: broadcast::Sender<Event>,
    pub progress: watch::Sender<IndexProgress>,
    /// Whether the index contains the names and descriptions of everything that the first scan found.
    pub ready: watch::Sender<bool>,
    /// The outcome of the index's warm-start cache.
    pub cache: Mutex<String>,
}

fn is_reading(progress: &IndexProgress) -> bool {
    progress.total > 0 && !progress.done
}

impl Shared {
    /// Creates an empty index.
    pub fn new(router: Router) -> Self {
        Self {
            router: RwLock::new(router),
            events: broadcast::channel(256).0,
            progress: watch::channel(IndexProgress::default()).0,
            ready: watch::channel(false).0,
            cache: Mutex::new("not looked at".to_owned()),
        }
    }

    /// Returns the progress of the index. It is not complete before the index contains what the first scan found.
    pub fn index_progress(&self) -> IndexProgress {
        let progress = *self.progress.borrow();
        IndexProgress { done: progress.done && *self.ready.borrow(), ..progress }
    }

    /// Returns whether bodies of skills are still being read.
    pub fn is_reading_bodies(&self) -> bool {
        is_reading(&self.progress.borrow())
    }

    /// Waits until all bodies are read, or the timeout expires.
    pub async fn bodies_read(&self, timeout: Duration) {
        let mut progress = self.progress.subscribe();
        let read = progress.wait_for(|progress| !is_reading(progress));
        let _ = tokio::time::timeout(timeout, read).await;
    }

    pub fn emit(&self, event: Event) {
        // Sending fails if there are no receivers.
        drop(self.events.send(event));
    }

    fn update(&self, upserts: Vec<Document>, removed: &[SkillId]) {
        // Counting words takes most of the time and needs only a read lock, so requests are answered meanwhile.
        let counted = self.router.read_locked().count(upserts);
        self.router.write_locked().put(counted, removed);
    }
}

/// A skill as it should be indexed.
#[derive(Clone)]
struct IndexTarget {
    skill: Arc<Skill>,
    /// For a shadowed skill, the winner's location for display.
    winner: Option<String>,
}

impl IndexTarget {
    fn same(&self, other: &Self) -> bool {
        self.winner == other.winner && (Arc::ptr_eq(&self.skill, &other.skill) || self.skill == other.skill)
    }

    fn document(&self, with_body: bool) -> Document {
        let text = if with_body {
            Some(skills_skill::read_index_text(&self.skill).unwrap_or_default())
        } else {
            None
        };
        let document = Document::from_skill(&self.skill, text);
        match &self.winner {
            Some(winner) => document.shadowed(winner.clone()),
            None => document,
        }
    }
}

/// Keeps the index up to date with the catalog.
pub struct Indexer {
    shared: Arc<Shared>,
    have: HashMap<SkillId, IndexTarget>,
    /// Skills whose headings and bodies are still to be read, in catalog order.
    behind: VecDeque<SkillId>,
    pending: HashSet<SkillId>,
    reported_at: Option<Instant>,
    home: PathBuf,
    cache: IndexCache,
    /// Ids restored from the cache that no scan has confirmed yet.
    restored: HashSet<SkillId>,
    /// Number of skills indexed since the last merge.
    scattered: usize,
    /// Generation of the last snapshot.
    generation: u64,
}

impl Indexer {
    /// Creates an indexer with an empty index.
    pub fn new(shared: Arc<Shared>, home: PathBuf, cache: IndexCache) -> Self {
        Self {
            shared,
            have: HashMap::new(),
            behind: VecDeque::new(),
            pending: HashSet::new(),
            reported_at: None,
            home,
            cache,
            restored: HashSet::new(),
            scattered: 0,
            generation: 0,
        }
    }

    /// Fills the empty index from the cache; the outcome is kept for `doctor`.
    pub fn restore(&mut self) {
        let mut router = self.shared.router.write_locked();
        let cache_status = self.cache.restore(&mut router);
        self.restored = router.ids().cloned().collect();
        drop(router);
        *self.shared.cache.locked() = cache_status;
    }

    /// Removes what the cache contained and the completed scan did not find.
    fn prune(&mut self) {
        let gone: Vec<SkillId> = self.restored.drain().filter(|id| !self.have.contains_key(id)).collect();
        if !gone.is_empty() {
            self.shared.update(Vec::new(), &gone);
            self.cache.changed();
        }
        self.shared.ready.send_replace(true);
    }

    fn save(&mut self, at_once: bool) {
        if self.behind.is_empty() && self.restored.is_empty() && self.cache.due(Instant::now(), at_once) {
            self.cache.write(&self.shared.router, Instant::now());
        }
    }

    /// Merges the index segments once much of it is new. Only this thread changes the index.
    fn join(&mut self) {
        if !self.behind.is_empty() || self.scattered < WORTH_JOINING {
            return;
        }
        self.scattered = 0;
        let joined = self.shared.router.read_locked().joined();
        if let Some(joined) = joined {
            self.shared.router.write_locked().adopt(joined);
        }
    }

    /// Follows the registry's events until it is dropped. `latest` returns the current snapshot and whether the first
    /// scan is complete.
    pub fn follow(
        mut self,
        mut news: broadcast::Receiver<RegistryEvent>,
        latest: impl Fn() -> Option<(Arc<Catalog>, bool)>,
    ) {
        fail_point!("first-index");
        self.restore();
        // A scan may have finished before this subscribed.
        self.catch_up(latest());
        loop {
            self.join();
            self.save(false);
            let next = if self.behind.is_empty() {
                match news.blocking_recv() {
                    Ok(event) => Some(event),
                    Err(RecvError::Lagged(_)) => None,
                    Err(RecvError::Closed) => return self.save(true),
                }
            } else {
                match news.try_recv() {
                    Ok(event) => Some(event),
                    Err(TryRecvError::Empty) => {
                        self.read_some(BATCH);
                        continue;
                    }
                    Err(TryRecvError::Lagged(_)) => None,
                    Err(TryRecvError::Closed) => return,
                }
            };
            match next {
                Some(RegistryEvent::Progress(progress)) => {
                    if progress.done {
                        self.catch_up(latest());
                    }
                    self.shared.emit(Event::Scan(progress));
                }
                Some(RegistryEvent::Change(change)) => {
                    self.shared.emit(Event::Catalog(Arc::clone(&change)));
                    // Restoring takes time: a snapshot published in the meantime may be older than the current one.
                    if self.takes_partial_scans() && change.catalog.generation > self.generation {
                        self.apply_catalog(&change.catalog);
                    }
                }
                // Some events were missed: continue from the current state.
                None => self.catch_up(latest()),
            }
        }
    }

    /// Returns whether the index follows partial snapshots of the first scan. It does not after it was restored from
    /// the cache: with only some of the bundles found, other ones win an id, and skills would be indexed again that the
    /// cache contains correctly.
    fn takes_partial_scans(&self) -> bool {
        self.restored.is_empty()
    }

    fn catch_up(&mut self, latest: Option<(Arc<Catalog>, bool)>) {
        if let Some((catalog, scanned)) = latest {
            if scanned || self.takes_partial_scans() {
                self.apply_catalog(&catalog);
            }
            if scanned {
                self.prune();
            }
        }
    }

    /// Indexes the snapshot of a complete scan before it returns. [`Self::restore`] must be called first.
    pub fn level(&mut self, catalog: &Catalog) {
        self.apply_catalog(catalog);
        self.prune();
        while !self.behind.is_empty() {
            self.read_some(LARGE_BATCH);
        }
        self.save(true);
    }

    /// Rebuilds the index from a snapshot, after a part of it was found corrupt.
    pub fn rebuild(mut self, catalog: &Catalog) {
        self.cache.remove();
        self.shared.router.write_locked().clear();
        self.cache.changed();
        self.apply_catalog(catalog);
        while !self.behind.is_empty() {
            self.read_some(LARGE_BATCH);
        }
        self.save(true);
    }

    /// Adds names and descriptions of new skills to the index, removes those that are gone, and queues the bodies to be
    /// read. A changed skill is ranked with its old body until then.
    fn apply_catalog(&mut self, catalog: &Catalog) {
        self.generation = catalog.generation;
        let winners =
            catalog.entries.iter().map(|e| IndexTarget { skill: Arc::clone(&e.skill), winner: None });
        let losers = catalog.shadowed.iter().map(|loser| IndexTarget {
            skill: Arc::clone(&loser.skill),
            winner: Some(place(catalog, &loser.winner, &self.home)),
        });
        let requested: Vec<IndexTarget> = winners.chain(losers).collect();
        let ids: HashSet<&SkillId> = requested.iter().map(|w| &w.skill.id).collect();
        let removed: Vec<SkillId> = self.have.keys().filter(|id| !ids.contains(id)).cloned().collect();
        if !removed.is_empty() {
            self.behind.retain(|id| ids.contains(id));
            self.pending.retain(|id| ids.contains(id));
            self.shared.update(Vec::new(), &removed);
            self.cache.changed();
        }
        for id in &removed {
            self.have.remove(id);
        }
        let mut new = Vec::new();
        for one in requested {
            let present = self.have.get(&one.skill.id);
            if present.is_some_and(|present| present.same(&one)) {
                continue;
            }
            match present {
                None => new.push(one.clone()),
                Some(_) => self.owe(&one.skill.id),
            }
            self.have.insert(one.skill.id.clone(), one);
        }
        let unread = self.unread(&new);
        for document in &unread {
            self.owe(&document.id);
        }
        // A few new skills are indexed completely a moment later; indexing their names first would only cost twice. The
        // first requests wait for the names.
        if unread.len() > BATCH || !*self.shared.ready.borrow() {
            for names in unread.chunks(NAMES_BATCH) {
                self.shared.update(names.to_vec(), &[]);
            }
        }
        self.report_progress(true);
    }

    /// Queues a skill whose body is to be read.
    fn owe(&mut self, id: &SkillId) {
        if self.pending.insert(id.clone()) {
            self.behind.push_back(id.clone());
        }
    }

    /// Returns the skills whose headings and body are not already in the index (from the cache).
    fn unread(&self, new: &[IndexTarget]) -> Vec<Document> {
        let router = self.shared.router.read_locked();
        let unread = new.iter().filter(|one| !router.is_current(&one.skill, one.winner.as_deref()));
        unread.map(|one| one.document(false)).collect()
    }

    /// Reads and indexes one batch.
    fn read_some(&mut self, batch: usize) {
        fail::fail_point!("bodies");
        let ids: Vec<SkillId> = self.behind.drain(..self.behind.len().min(batch)).collect();
        for id in &ids {
            self.pending.remove(id);
        }
        let requested: Vec<&IndexTarget> = ids.iter().filter_map(|id| self.have.get(id)).collect();
        // Files are read and tokenized before the lock is taken.
        let documents: Vec<Document> = requested.par_iter().map(|one| one.document(true)).collect();
        self.scattered += documents.len();
        self.shared.update(documents, &[]);
        self.cache.changed();
        self.report_progress(self.behind.is_empty());
    }

    fn report_progress(&mut self, at_once: bool) {
        let now = Instant::now();
        let total = self.have.len();
        let progress =
            IndexProgress { indexed: total - self.behind.len(), total, done: self.behind.is_empty() };
        self.shared.progress.send_replace(progress);
        if at_once
            || self.reported_at.is_none_or(|reported_at| now.duration_since(reported_at) >= PROGRESS_INTERVAL)
        {
            self.reported_at = Some(now);
            self.shared.emit(Event::Index(progress));
        }
    }
}

/// Returns a bundle's location for display: relative to the only root, prefixed with its root's label if there are
/// several, else the complete path. The folder is more informative than its SKILL.md.
fn place(catalog: &Catalog, location: &Path, home: &Path) -> String {
    let folder = location.parent().unwrap_or(location);
    let inside = catalog.roots.iter().find_map(|root| Some((root, folder.strip_prefix(&root.path).ok()?)));
    match inside {
        Some((root, below)) if below.as_os_str().is_empty() => root.label.clone(),
        Some((_, below)) if catalog.roots.len() == 1 => below.display().to_string(),
        Some((root, below)) => format!("{}/{}", root.label, below.display()),
        None => skills_config::shown(folder, Path::new("/"), home),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing;
    use skills_discovery::Weights;
    use skills_registry::{Change, ScanProgress};

    /// More than the minimum size of a cached index.
    const SKILLS: usize = 120;

    fn catalog(generation: u64, description: &str) -> Arc<Catalog> {
        let ids: Vec<String> = (0..SKILLS).map(|n| format!("skill-{n}")).collect();
        let named: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), id.as_str())).collect();
        let mut catalog = testing::catalog(&named);
        Arc::make_mut(&mut catalog.entries[5].skill).description = description.to_owned();
        Arc::new(Catalog { generation, ..catalog })
    }

    fn indexer(folder: &Path) -> (Arc<Shared>, Indexer) {
        let shared = Arc::new(Shared::new(Router::new(Weights::shipped().unwrap())));
        let cache = IndexCache::new(folder, &[], "a");
        (Arc::clone(&shared), Indexer::new(shared, PathBuf::from("/home"), cache))
    }

    /// Simulates a warm start: the scan has published a partial snapshot and its end before the indexer receives
    /// either, and has ended, or not, when the index is restored.
    fn start_warm(ended_before: bool) {
        let folder = tempfile::tempdir().unwrap();
        let complete = catalog(2, "Converts tables");
        let (_, mut first) = indexer(folder.path());
        first.restore();
        first.level(&complete);
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();

        let (shared, indexer) = indexer(folder.path());
        let (events, event) = broadcast::channel(4);
        // Of the copies of a skill the scan found another one first.
        let partial = Change { catalog: catalog(1, "Another copy"), ..Change::default() };
        events.send(RegistryEvent::Change(Arc::new(partial))).unwrap();
        let done = ScanProgress { done: true, ..ScanProgress::default() };
        events.send(RegistryEvent::Progress(done)).unwrap();
        drop(events);
        let restored = Cell::new(false);
        indexer.follow(event, || {
            if !restored.replace(true) {
                // If the file exists at the end, it was written after this.
                std::fs::remove_file(&file).unwrap();
                if !ended_before {
                    return Some((Arc::default(), false));
                }
            }
            Some((Arc::clone(&complete), true))
        });

        assert_eq!(*shared.cache.lock().unwrap(), "used");
        assert!(*shared.ready.borrow());
        assert_eq!(shared.router.read().unwrap().len(), SKILLS);
        assert!(!file.exists(), "the index was changed and written again");
    }

    #[test]
    fn partial_scan_does_not_change_a_restored_index() {
        start_warm(false);
    }

    #[test]
    fn snapshot_older_than_the_index_is_ignored() {
        start_warm(true);
    }
}
