//! The public interface of the registry: a snapshot, a stream of changes, and requests to rescan.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot, watch};

use super::roots::{RootSpec, ShippedUse, resolve};
use super::tree::Tree;
use super::watch::Watch;
use super::worker::{MessageQueue, Shared, Worker, WorkerMessage};
use super::{Catalog, Change, ScanProgress, cache};
use skills_base::sync::RwLockExt as _;
use skills_config::Config;
use skills_skill::client::profiles;

/// Settings of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Roots in order of precedence.
    pub roots: Vec<RootSpec>,
    /// When the embedded skills are listed.
    pub shipped: ShippedUse,
    /// The folder of the warm-start cache and the unpacked skills.
    pub cache_dir: PathBuf,
    /// Whether the warm-start cache is used.
    pub cache: bool,
    /// Identifies the build that wrote a cache: a cache of another build is not used, because its parser may differ.
    pub build: String,
    /// Whether changes on disk are watched.
    pub watch: bool,
    /// Whether file events are used for watching; otherwise, all roots are polled.
    pub events: bool,
    /// Interval at which roots without file events are rescanned.
    pub poll: Duration,
}

impl Settings {
    /// Creates the settings from the configuration. The build is identified by version, size and modification time of
    /// the program's file.
    pub fn new(config: &Config) -> Self {
        let (roots, shipped) = resolve(config, profiles());
        let program = std::env::current_exe().and_then(|path| path.metadata());
        let stamp = program.map(|m| (m.len(), m.modified().ok())).ok();
        Self {
            roots,
            shipped,
            cache_dir: config.dirs.cache.clone(),
            cache: true,
            build: format!("{} {stamp:?}", env!("CARGO_PKG_VERSION")),
            watch: config.watch,
            events: true,
            poll: Duration::from_secs(5),
        }
    }
}

/// A change reported by a registry.
#[derive(Debug, Clone)]
pub enum RegistryEvent {
    /// A new snapshot.
    Change(Arc<Change>),
    /// Progress of the first scan; at most about 20 times per second.
    Progress(ScanProgress),
}

/// Reads the roots in the background and keeps the catalog up to date. Dropping it ends its threads.
pub struct Registry {
    shared: Arc<Shared>,
    messages: MessageQueue,
    thread: Option<JoinHandle<Tree>>,
    cache_file: PathBuf,
}

impl Registry {
    /// Starts reading; returns immediately, with an empty snapshot that is filled over time.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn open(settings: Settings) -> io::Result<Self> {
        let (send, messages) = MessageQueue::channel();
        let shared = Arc::new(Shared {
            catalog: RwLock::new(Arc::new(Catalog::default())),
            events: broadcast::channel(256).0,
            progress: watch::channel(ScanProgress::default()).0,
            cache: RwLock::new("off".to_owned()),
            stop: AtomicBool::new(false),
            parsed: AtomicUsize::new(0),
        });
        let cache_file = cache::file(&settings.cache_dir, &settings.roots);
        let events = settings.watch && settings.events;
        let watch = Watch::new(events.then(|| send.clone()));
        let worker = Worker {
            settings,
            shared: Arc::clone(&shared),
            messages,
            events_lost: send.events_lost(),
            tree: Tree::default(),
            watch,
            unsaved: false,
        };
        let thread = std::thread::Builder::new().name("registry".to_owned()).spawn(|| worker.run())?;
        Ok(Self { shared, messages: send, thread: Some(thread), cache_file })
    }

    pub fn snapshot(&self) -> Arc<Catalog> {
        self.shared.snapshot()
    }

    /// Subscribes to events from now on. A receiver that lags should read the current snapshot instead.
    pub fn events(&self) -> broadcast::Receiver<RegistryEvent> {
        self.shared.events.subscribe()
    }

    /// Returns the progress of the first scan.
    pub fn progress(&self) -> ScanProgress {
        *self.shared.progress.borrow()
    }

    /// Requests a rescan of all roots; the result arrives as a change.
    pub fn rescan(&self) {
        // The thread ends only with the registry.
        self.messages.try_send(WorkerMessage::Rescan);
    }

    /// Rescans all roots, and returns the snapshot afterwards.
    pub async fn reread(&self) -> Arc<Catalog> {
        let (done, read) = oneshot::channel();
        self.messages.send(WorkerMessage::Reread(done)).await;
        // Fails only if the registry is dropped.
        let _ = read.await;
        self.snapshot()
    }

    /// Waits until the first scan is complete, and returns its snapshot.
    pub async fn wait_scanned(&self) -> Arc<Catalog> {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives as long as `self`.
        let _ = progress.wait_for(|progress| progress.done).await;
        self.snapshot()
    }

    /// Blocks until the first scan is complete, for callers outside of a runtime; see [`Self::wait_scanned`].
    #[allow(clippy::must_use_candidate, reason = "waiting is a separate effect")]
    pub fn wait_scanned_blocking(&self) -> Arc<Catalog> {
        futures::executor::block_on(self.wait_scanned())
    }

    /// Returns the path of the warm-start cache, and its status at the start: `used`, `rebuilt: …`, `off`.
    pub fn cache(&self) -> (PathBuf, String) {
        let status = self.shared.cache.read_locked().clone();
        (self.cache_file.clone(), status)
    }

    /// Returns the number of files parsed since the start; those taken from the cache do not count.
    pub fn parsed(&self) -> usize {
        self.shared.parsed.load(Ordering::Relaxed)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.messages.try_send(WorkerMessage::Stop);
        match self.thread.take().map(JoinHandle::join) {
            // Freed in the meantime: a process that ends need not wait for it.
            Some(Ok(tree)) => drop(std::thread::spawn(move || drop(tree))),
            Some(Err(_)) => tracing::error!("the registry thread panicked"),
            None => {}
        }
    }
}
