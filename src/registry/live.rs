//! The registry as its users see it: a snapshot, a stream of changes, a wish to read again.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot, watch};

use super::roots::{RootSpec, ShippedUse, resolve};
use super::tree::Tree;
use super::watch::Watch;
use super::worker::{Command, Commands, Shared, Worker};
use super::{Catalogue, Change, ScanProgress, cache};
use skills_config::Config;
use skills_skill::client::profiles;

/// What a registry reads and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Roots in order of precedence.
    pub roots: Vec<RootSpec>,
    /// When the embedded skills are read.
    pub shipped: ShippedUse,
    /// Where the warm-start cache and the unpacked skills lie.
    pub cache_dir: PathBuf,
    /// Whether the warm-start cache is used.
    pub cache: bool,
    /// Which build wrote a cache: one of another build is not used, its parser may differ.
    pub build: String,
    /// Whether changes on disk are followed.
    pub watch: bool,
    /// Whether file events are used to follow them; without, all roots are polled.
    pub events: bool,
    /// How often roots without file events are read again.
    pub poll: Duration,
}

impl Settings {
    /// What the configuration says. The build is reported by version, size and time of the program's file.
    #[must_use]
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
    /// The first scan continues; at most about 20 a second.
    Progress(ScanProgress),
}

/// Reads the roots in the background and keeps up with them. Dropping it ends its threads.
pub struct Registry {
    shared: Arc<Shared>,
    commands: Commands,
    thread: Option<JoinHandle<()>>,
    cache_file: PathBuf,
}

impl Registry {
    /// Starts reading; returns at once, with an empty snapshot that fills.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn open(settings: Settings) -> io::Result<Self> {
        let (send, commands) = Commands::channel();
        let shared = Arc::new(Shared {
            catalogue: RwLock::new(Arc::new(Catalogue::default())),
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
            commands,
            missed: send.missed(),
            tree: Tree::default(),
            watch,
            unsaved: false,
        };
        let thread = std::thread::Builder::new().name("registry".to_owned()).spawn(|| worker.run())?;
        Ok(Self { shared, commands: send, thread: Some(thread), cache_file })
    }

    /// The present snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Catalogue> {
        self.shared.snapshot()
    }

    /// Scan reports from now on. A receiver that lags reads the current snapshot instead.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<RegistryEvent> {
        self.shared.events.subscribe()
    }

    /// How far the first scan is.
    #[must_use]
    pub fn progress(&self) -> ScanProgress {
        *self.shared.progress.borrow()
    }

    /// Asks for all roots to be read again; the outcome comes as a change.
    pub fn rescan(&self) {
        // The thread only goes away with the registry.
        self.commands.tell(Command::Rescan);
    }

    /// Reads all roots again, and answers the snapshot after it.
    pub async fn reread(&self) -> Arc<Catalogue> {
        let (done, read) = oneshot::channel();
        self.commands.ask(Command::Reread(done)).await;
        // Unanswered where the registry goes away.
        let _ = read.await;
        self.snapshot()
    }

    /// Waits until the first scan is complete, and answers its snapshot.
    pub async fn wait_scanned(&self) -> Arc<Catalogue> {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives as long as `self`.
        let _ = progress.wait_for(|progress| progress.done).await;
        self.snapshot()
    }

    /// As [`Self::wait_scanned`], for callers outside of a runtime.
    #[allow(clippy::must_use_candidate, reason = "waiting is an effect of its own")]
    pub fn wait_scanned_blocking(&self) -> Arc<Catalogue> {
        futures::executor::block_on(self.wait_scanned())
    }

    /// Where the warm-start cache lies, and its outcome at start: `used`, `rebuilt: …`, `off`.
    #[must_use]
    pub fn cache(&self) -> (PathBuf, String) {
        let said = self.shared.cache.read().unwrap_or_else(PoisonError::into_inner).clone();
        (self.cache_file.clone(), said)
    }

    /// How many files were parsed since the start; those taken from the cache do not count.
    #[must_use]
    pub fn parsed(&self) -> usize {
        self.shared.parsed.load(Ordering::Relaxed)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.commands.tell(Command::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the registry's thread ended in a panic");
        }
    }
}
