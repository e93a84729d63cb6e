//! The background thread of a registry: scans, watches changes, publishes snapshots.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant, SystemTime};

use fail::fail_point;
use tokio::sync::{broadcast, oneshot, watch};

use super::assemble::{all_incomplete, assemble, difference, has_own};
use super::folder_state::KnownFolders;
use super::handle::{RegistryEvent, Settings};
use super::roots::{RootSpec, ShippedUse};
use super::tree::{KnownOutcomes, Scan, ScanReport, Tree, probe_root};
use super::watch::Watch;
use super::{Catalog, RootState, ScanProgress, cache, changes, shipped};
use skills_base::sync::RwLockExt as _;

/// Minimum interval between partial snapshots during the first scan.
const PARTIAL_INTERVAL: Duration = Duration::from_millis(150);
/// Minimum ratio of scanning time to publishing time during the first scan.
const PARTIAL_SHARE: u32 = 20;
/// Interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
/// Quiet period after which a burst of changes is over.
const QUIET_PERIOD: Duration = Duration::from_millis(80);
/// Maximum time to wait for the end of a burst.
const MAX_BURST: Duration = Duration::from_millis(400);

/// A message to the thread.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    /// Rescan everything.
    Rescan,
    /// Rescan everything, and report the completion.
    Reread(oneshot::Sender<()>),
    /// Something changed at these paths.
    Changed(Vec<PathBuf>),
    /// The registry is dropped.
    Stop,
}

/// Maximum number of queued messages.
const MAX_QUEUED_MESSAGES: usize = 1024;

/// The queue of messages to the thread. If it is full, everything is rescanned instead.
#[derive(Clone)]
pub(super) struct MessageQueue {
    queue: SyncSender<WorkerMessage>,
    events_lost: Arc<AtomicBool>,
}

impl MessageQueue {
    pub fn channel() -> (Self, Receiver<WorkerMessage>) {
        let (queue, messages) = sync_channel(MAX_QUEUED_MESSAGES);
        (Self { queue, events_lost: Arc::default() }, messages)
    }

    /// Returns the flag that is set when a message was dropped because the queue was full.
    pub fn events_lost(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.events_lost)
    }

    /// Sends a message without waiting. The thread ends only with the registry.
    pub fn try_send(&self, message: WorkerMessage) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(message) {
            self.events_lost.store(true, Ordering::Relaxed);
        }
    }

    /// Sends a message, waiting for space in the queue.
    pub async fn send(&self, message: WorkerMessage) {
        if let Err(TrySendError::Full(message)) = self.queue.try_send(message) {
            let queue = self.queue.clone();
            // Fails only if the registry is dropped.
            let _ = tokio::task::spawn_blocking(move || queue.send(message)).await;
        }
    }
}

/// State shared by the thread and its registry.
pub(super) struct Shared {
    pub catalog: RwLock<Arc<Catalog>>,
    pub events: broadcast::Sender<RegistryEvent>,
    pub progress: watch::Sender<ScanProgress>,
    pub cache: RwLock<String>,
    pub stop: AtomicBool,
    pub parsed: AtomicUsize,
}

impl Shared {
    pub fn snapshot(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read_locked())
    }
}

pub(super) struct Worker {
    pub settings: Settings,
    pub shared: Arc<Shared>,
    pub messages: Receiver<WorkerMessage>,
    /// Set when a message was dropped because the queue was full.
    pub events_lost: Arc<AtomicBool>,
    pub tree: Tree,
    pub watch: Watch,
    pub unsaved: bool,
}

impl Worker {
    /// Runs until it receives [`WorkerMessage::Stop`]. Returns the tree, because freeing a large one takes long.
    pub fn run(mut self) -> Tree {
        fail_point!("first-scan");
        self.first_scan();
        self.save();
        if self.settings.watch {
            self.watch_folders();
            self.publish();
        }
        let mut polled = Instant::now();
        // An interrupted scan leaves a partial tree, which must not be published or cached.
        while !self.stopped() {
            if self.events_lost.swap(false, Ordering::Relaxed) {
                self.rescan();
            }
            match self.next(polled) {
                Ok(WorkerMessage::Changed(paths)) => self.changed(paths),
                Ok(WorkerMessage::Rescan) => self.rescan(),
                Ok(WorkerMessage::Reread(done)) => {
                    self.rescan();
                    // The caller may have been canceled.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.rescan();
                    polled = Instant::now();
                }
                Ok(WorkerMessage::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.save();
                    break;
                }
            }
        }
        self.tree
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn next(&self, polled: Instant) -> Result<WorkerMessage, RecvTimeoutError> {
        if self.settings.watch && self.watch.needs_polling() {
            let left = self.settings.poll.saturating_sub(polled.elapsed());
            return self.messages.recv_timeout(left);
        }
        self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }

    fn first_scan(&mut self) {
        let cache = self.load();
        let mut specs = self.settings.roots.clone();
        let shipped = shipped::root(&self.settings.cache_dir);
        if self.settings.shipped != ShippedUse::Never {
            specs.push(shipped.clone());
        }
        let mut tree = Tree::new(specs);
        if self.settings.shipped == ShippedUse::Only {
            unpack(&mut tree, shipped.clone());
        }
        self.scan_all(&mut tree, &cache, true);
        if self.settings.shipped == ShippedUse::WhenEmpty && !has_own(&tree, &all_incomplete(&tree)) {
            let last = unpack(&mut tree, shipped);
            self.scan_root(&mut tree, last, &cache, true);
        }
        if !self.stopped() {
            self.unsaved = self.shared.parsed.load(Ordering::Relaxed) > 0
                || cache.0.len() != tree.records.len()
                || folders_changed(&tree, &cache.1);
        }
        self.tree = tree;
        if !self.settings.watch {
            self.watch.live = vec![false; self.tree.roots.len()];
        }
        self.publish();
        self.shared.progress.send_modify(|progress| progress.done = true);
        let _ = self.shared.events.send(RegistryEvent::Progress(*self.shared.progress.borrow()));
    }

    fn load(&self) -> (KnownOutcomes, KnownFolders) {
        let loaded = if self.settings.cache {
            cache::load(&cache::file(&self.settings.cache_dir, &self.settings.roots), &self.settings.build)
        } else {
            Err(String::new())
        };
        let (cache, message) = match loaded {
            Ok(cache) => (cache, "used".to_owned()),
            Err(why) if why.is_empty() => (Default::default(), "off".to_owned()),
            Err(why) => (Default::default(), format!("rebuilt: {why}")),
        };
        tracing::info!("index cache {message}");
        *self.shared.cache.write_locked() = message;
        cache
    }

    fn save(&mut self) {
        if !(self.settings.cache && self.unsaved) {
            return;
        }
        let file = cache::file(&self.settings.cache_dir, &self.settings.roots);
        match cache::save(&file, &self.settings.build, &self.tree, SystemTime::now()) {
            Ok(()) => self.unsaved = false,
            Err(error) => {
                tracing::warn!("cannot write the index cache to {}: {error}", file.display());
            }
        }
    }

    fn scan_all(&self, tree: &mut Tree, cache: &(KnownOutcomes, KnownFolders), partly: bool) {
        for root in 0..tree.roots.len() {
            self.scan_root(tree, root, cache, partly);
        }
    }

    fn scan_root(
        &self,
        tree: &mut Tree,
        root: usize,
        (outcomes, folders): &(KnownOutcomes, KnownFolders),
        partly: bool,
    ) {
        if tree.roots[root].real.is_none() {
            return;
        }
        let shared = &self.shared;
        let start = tree.roots[root].spec.path.clone();
        let mut progress = *shared.progress.borrow();
        let (mut reported_at, mut publish_at) = (Instant::now(), Instant::now() + PARTIAL_INTERVAL);
        let scan =
            Scan { known: outcomes, folders, stop: &shared.stop, threads: threads(), parsed: &shared.parsed };
        tree.scan(root, &start, &scan, &mut |tree, event| {
            match event {
                ScanReport::Found(more) => progress.found += more,
                ScanReport::Read(..) => progress.parsed += 1,
                ScanReport::Seen(..) => {}
            }
            if partly && reported_at.elapsed() >= PROGRESS_INTERVAL {
                reported_at = Instant::now();
                shared.progress.send_replace(progress);
                let _ = shared.events.send(RegistryEvent::Progress(progress));
            }
            // A command that reads only once waits for the complete scan: it never reads a partial snapshot.
            if partly && self.settings.watch && Instant::now() >= publish_at {
                let started = Instant::now();
                publish(shared, tree, &[]);
                // A large tree takes long to publish, and subscribers take as long to process it.
                publish_at = Instant::now() + PARTIAL_INTERVAL.max(started.elapsed() * PARTIAL_SHARE);
            }
        });
        if partly {
            shared.progress.send_replace(progress);
        }
    }

    fn changed(&mut self, paths: Vec<PathBuf>) {
        let mut paths: BTreeSet<PathBuf> = paths.into_iter().collect();
        let since = Instant::now();
        let (mut all, mut requests) = (false, Vec::new());
        // Saving in an editor causes a burst of events, which is one change.
        while since.elapsed() < MAX_BURST {
            match self.messages.recv_timeout(QUIET_PERIOD) {
                Ok(WorkerMessage::Changed(more)) => paths.extend(more),
                Ok(WorkerMessage::Rescan) => all = true,
                Ok(WorkerMessage::Reread(done)) => {
                    requests.push(done);
                    break;
                }
                Ok(WorkerMessage::Stop) => {
                    self.shared.stop.store(true, Ordering::Relaxed);
                    return;
                }
                Err(_) => break,
            }
        }
        if all || !requests.is_empty() {
            self.rescan();
            for done in requests {
                let _ = done.send(());
            }
            return;
        }
        let (outcomes, folders) = (KnownOutcomes::default(), KnownFolders::default());
        let shared = Arc::clone(&self.shared);
        let (stop, parsed) = (&shared.stop, &shared.parsed);
        let scan = Scan { known: &outcomes, folders: &folders, stop, threads: 1, parsed };
        self.watch.drop_watches(&paths);
        changes::apply(&mut self.tree, &paths, &scan);
        self.watch_folders();
        self.unsaved = true;
        self.publish();
    }

    /// Watches new folders and reads them once more, until there are no new ones: changes between reading a folder and
    /// watching it must not be missed.
    fn watch_folders(&mut self) {
        if !self.settings.watch {
            return;
        }
        // The path of a mount may be in any encoding.
        let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounts = String::from_utf8_lossy(&mounts);
        let (outcomes, folders) = (KnownOutcomes::default(), KnownFolders::default());
        let shared = Arc::clone(&self.shared);
        let (stop, parsed) = (&shared.stop, &shared.parsed);
        let scan = Scan { known: &outcomes, folders: &folders, stop, threads: threads(), parsed };
        for _ in 0..4 {
            let fresh = self.watch.update(&self.tree, &mounts);
            let new: BTreeSet<_> = fresh.iter().collect();
            let tops = fresh.iter().filter(|(root, path)| {
                let above = path.parent().map(|parent| (*root, parent.into()));
                !above.is_some_and(|above| new.contains(&above))
                    && self.tree.folders.contains_key(&(*root, path.clone()))
            });
            let tops: Vec<_> = tops.cloned().collect();
            if tops.is_empty() || self.stopped() {
                return;
            }
            for (root, path) in tops {
                changes::rescan(&mut self.tree, root, &path, &scan);
            }
        }
    }

    fn rescan(&mut self) {
        let records = self.tree.records.values();
        let outcomes: KnownOutcomes = records.map(|record| record.known()).collect();
        let specs = self.tree.roots.iter().map(|root| root.spec.clone()).collect();
        let mut tree = Tree::new(specs);
        self.scan_all(&mut tree, &(outcomes, KnownFolders::default()), false);
        if self.stopped() {
            return;
        }
        self.tree = tree;
        self.unsaved = true;
        self.watch_folders();
        self.publish();
    }

    fn publish(&self) {
        if self.stopped() {
            return;
        }
        publish(&self.shared, &self.tree, &self.watch.live);
    }
}

/// Unpacks the shipped skills, whose root is the last one of the tree; returns its index.
fn unpack(tree: &mut Tree, shipped: RootSpec) -> usize {
    let last = tree.roots.len() - 1;
    let unpacked = shipped::unpack(&shipped.path);
    tree.roots[last] = probe_root(shipped);
    if let Err(error) = unpacked {
        tracing::error!("cannot unpack the shipped skills: {error}");
        tree.roots[last].state = RootState::Unreadable(format!("the skills cannot be unpacked: {error}"));
    }
    last
}

/// Publishes the tree as the current snapshot, and the changes if there are any.
fn publish(shared: &Shared, tree: &Tree, live: &[bool]) {
    let old = shared.snapshot();
    let mut new = assemble(tree, live, old.generation);
    if new == *old {
        return;
    }
    new.generation += 1;
    let new = Arc::new(new);
    let change = difference(&old, &new);
    *shared.catalog.write_locked() = new;
    // The receiver may be closed.
    let _ = shared.events.send(RegistryEvent::Change(Arc::new(change)));
}

/// Returns whether the state of a folder is known now that was not known before.
fn folders_changed(tree: &Tree, before: &KnownFolders) -> bool {
    let mut read = tree.folders.iter().filter_map(|((_, path), read)| Some((path, read.as_ref()?)));
    read.any(|(path, read)| {
        before.get(path.as_os_str()).is_none_or(|before| before.state != Some(read.state))
    })
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8))
}
