//! Persistent counters: written to the store periodically, and at a clean shutdown.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::RwLock;
use tokio::task::JoinHandle;

use super::indexer::Shared;
use super::operations::Operations;
use super::ranking::Ranking;
use super::runs::{RunOverview, RunStore, Runs, StorePlace};
use crate::{Code, Counting, Diagnostics, Error, Limiter, LoadState, MetricsReport, RateLimit};
use skills_base::sync::MutexExt as _;
use skills_base::telemetry::Metrics;
use skills_config::Config;
use skills_registry::Registry;
use skills_store::{Counts, StoreError, Tallies, TallyKind};

/// Interval at which counts are written to the store. A process that crashes loses what it counted since.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// The counts of operations, and the task that writes them to the store.
pub(super) struct Counter {
    config: Arc<Config>,
    registry: Arc<Registry>,
    shared: Arc<Shared>,
    operations: Arc<Operations>,
    metrics: Metrics,
    store: Arc<RunStore>,
    overview: RunOverview,
    /// When this process started.
    started: Instant,
    process_started_ms: i64,
    /// Written while counts are moved to the store: a reader would see them in neither place.
    moving: Arc<RwLock<()>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    reset_ms: Mutex<Option<i64>>,
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Counter {
    pub(super) fn new(ranking: &Ranking, runs: &Runs) -> Self {
        Self {
            config: Arc::clone(&ranking.skills.config),
            registry: Arc::clone(&ranking.skills.registry),
            shared: Arc::clone(&ranking.shared),
            operations: Arc::clone(&ranking.operations),
            metrics: ranking.metrics.clone(),
            store: Arc::clone(&runs.store),
            overview: runs.overview.clone(),
            started: Instant::now(),
            process_started_ms: now_ms(),
            moving: Arc::default(),
            keeper: Mutex::default(),
            reset_ms: Mutex::default(),
        }
    }

    /// Creates a rate limiter over the store, shared by every instance on it. Opens the store.
    pub(super) async fn limiter(&self, limit: RateLimit) -> Result<Limiter, Error> {
        let counts = self.store.opened_counts().await?;
        Ok(Limiter::new(counts, limit, Arc::new(now_ms), self.metrics.clone()))
    }

    /// Starts writing counts to the store periodically.
    pub(super) async fn start(&self) -> Result<(), Error> {
        let Some(counts) = self.store.counts().await? else { return Ok(()) };
        let (moving, operations) = (Arc::clone(&self.moving), Arc::clone(&self.operations));
        let keep = async move {
            loop {
                tokio::time::sleep(SAVE_INTERVAL).await;
                if let Err(error) = put(&moving, &operations, &*counts).await {
                    tracing::warn!("cannot store the counts of operations: {error}");
                }
            }
        };
        let mut keeper = self.keeper.locked();
        if keeper.is_none() {
            *keeper = Some(tokio::spawn(keep));
        }
        Ok(())
    }

    /// Writes the counts to the store once more, and stops doing so.
    pub(super) async fn finish(&self) {
        self.stop();
        let result = async {
            match self.store.counts().await? {
                Some(counts) => put(&self.moving, &self.operations, &*counts).await.map_err(Error::from),
                None => Ok(()),
            }
        };
        if let Err(error) = result.await {
            tracing::warn!("cannot store the counts of operations: {error}");
        }
    }

    /// Resets counts and metrics.
    pub(super) async fn reset(&self) -> Result<(), Error> {
        let _moving = self.moving.write().await;
        if let Some(counts) = self.store.counts().await? {
            counts.reset_tallies().await?;
        }
        self.operations.drain();
        self.metrics.reset();
        *self.reset_ms.locked() = Some(now_ms());
        Ok(())
    }

    /// Updates the gauges of runs and workers. Metrics are returned without them if the store cannot be read.
    async fn refresh_gauges(&self) {
        match self.overview.gauges().await {
            Ok(Some(gauges)) => self.metrics.set_run_gauges(&gauges),
            Ok(None) => {}
            Err(error) => {
                self.metrics.forget_run_gauges();
                tracing::warn!("cannot read the runs for metrics: {error}");
            }
        }
    }

    pub(super) async fn report(&self) -> Result<MetricsReport, Error> {
        self.refresh_gauges().await;
        self.metrics
            .report()
            .map_err(|e| Error::new(Code::InternalError, format!("cannot encode the metrics: {e}")))
    }

    /// Returns the metrics as text.
    pub(super) async fn text(&self) -> Result<String, Error> {
        self.refresh_gauges().await;
        self.metrics
            .text()
            .map_err(|e| Error::new(Code::InternalError, format!("cannot encode the metrics: {e}")))
    }

    /// Returns what is loaded.
    pub(super) fn load_state(&self) -> LoadState {
        LoadState {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            skills: self.registry.snapshot().entries.len(),
            scan: self.registry.progress(),
            index: self.shared.index_progress(),
        }
    }

    /// Returns the diagnostics of the core.
    pub(super) async fn diagnose(&self) -> Result<Diagnostics, Error> {
        let catalog = self.registry.snapshot();
        let _reading = self.moving.read().await;
        let (counting, tallies) = self.counting().await;
        let operations = self.operations.with(&tallies.tallies, TallyKind::Operation);
        let links = self.operations.with(&tallies.tallies, TallyKind::Link);
        Ok(Diagnostics {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roots: catalog.roots.clone(),
            skills: catalog.entries.len(),
            shadowed: catalog.shadowed.len(),
            refused: catalog.refused.len(),
            scan: self.registry.progress(),
            index: self.shared.index_progress(),
            counting,
            started_ms: self.process_started_ms,
            uptime_seconds: self.started.elapsed().as_secs(),
            operations,
            link_failures: links.into_iter().map(|(link, count)| (link, count.errors)).collect(),
            cache: self.registry.cache(),
            resident_bytes: resident_bytes(),
        })
    }

    /// Returns where counts are stored, and the stored counts; an unreadable store is reported there and hides nothing
    /// else.
    async fn counting(&self) -> (Counting, Tallies) {
        let reset_ms = *self.reset_ms.locked();
        let here = |place: String| Counting {
            since_ms: reset_ms.unwrap_or(self.process_started_ms),
            last_reset_ms: reset_ms,
            persisted: false,
            place,
            file: None,
        };
        let read = async {
            let place = StorePlace::in_use(&self.config)?;
            match self.store.counts().await? {
                Some(counts) => Ok::<_, Error>(Some((place, counts.tallies().await?))),
                None => Ok(None),
            }
        };
        match read.await {
            Ok(Some((place, stored))) if !matches!(place, StorePlace::Memory) => {
                let counting = Counting {
                    since_ms: stored.since_ms.unwrap_or(self.process_started_ms),
                    last_reset_ms: stored.reset_ms,
                    persisted: true,
                    place: place.describe(),
                    file: place.file().map(Path::to_owned),
                };
                (counting, stored)
            }
            Ok(Some((_, tallies))) => (here("in memory: lost when this process ends".to_owned()), tallies),
            Ok(None) => {
                (here("in memory: no store yet, the first run creates it".to_owned()), Tallies::default())
            }
            Err(error) => (here(format!("in memory: {error}")), Tallies::default()),
        }
    }

    fn stop(&self) {
        if let Some(keeper) = self.keeper.locked().take() {
            keeper.abort();
        }
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Writes the counts to the store; if that fails, nothing is lost.
async fn put(moving: &RwLock<()>, operations: &Operations, counts: &dyn Counts) -> Result<(), StoreError> {
    let _moving = moving.write().await;
    let taken = operations.drain();
    if taken.is_empty() {
        return Ok(());
    }
    let result = counts.add_tallies(taken.clone()).await;
    if result.is_err() {
        operations.put_back(taken);
    }
    result
}

/// Returns the resident memory of this process (`/proc/self/status`, `proc_pid_status(5)`); `None` on other systems.
fn resident_bytes() -> Option<u64> {
    // The name of the process may be in any encoding.
    let status = std::fs::read("/proc/self/status").ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
