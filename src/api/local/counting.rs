//! Persistent counters: written to the store periodically, and at a clean shutdown.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::Local;
use super::operations::Operations;
use super::runs::StorePlace;
use crate::{Counting, Diagnostics, Error, Limiter, RateLimit};
use skills_store::{Counts, StoreError, Tallies, TallyKind};

/// Interval at which counts are written to the store. A process that crashes loses what it counted since.
const EVERY: Duration = Duration::from_secs(30);

/// When this process started, and the task that writes its counts to the store.
pub(super) struct Counter {
    began: Instant,
    began_ms: i64,
    /// Held while counts are moved to the store: a reader would see them in neither place.
    moving: Arc<tokio::sync::Mutex<()>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    reset_ms: Mutex<Option<i64>>,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            began_ms: now_ms(),
            moving: Arc::default(),
            keeper: Mutex::default(),
            reset_ms: Mutex::default(),
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Counter {
    fn stop(&self) {
        if let Some(keeper) = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            keeper.abort();
        }
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Writes the counts to the store; if that fails, nothing is lost.
async fn put(
    moving: &tokio::sync::Mutex<()>,
    operations: &Operations,
    counts: &dyn Counts,
) -> Result<(), StoreError> {
    let _moving = moving.lock().await;
    let taken = operations.take();
    if taken.is_empty() {
        return Ok(());
    }
    let result = counts.add_tallies(taken.clone()).await;
    if result.is_err() {
        operations.put_back(taken);
    }
    result
}

impl Local {
    /// Returns the metrics of this process, for adapters that record more.
    #[must_use]
    pub fn recorder(&self) -> skills_base::telemetry::Metrics {
        self.metrics.clone()
    }

    /// Creates a rate limiter over the store, shared by every instance on it. Opens the store.
    ///
    /// # Errors
    /// Returns an error if the store cannot be opened.
    pub async fn limiter(&self, limit: RateLimit) -> Result<Limiter, Error> {
        let counts = self.runs.store.opened_counts().await?;
        Ok(Limiter::new(counts, limit, Arc::new(now_ms), self.metrics.clone()))
    }

    /// Starts writing counts to the store periodically.
    pub(super) async fn keep_counting(&self) -> Result<(), Error> {
        let Some(counts) = self.runs.store.counts().await? else { return Ok(()) };
        let (moving, operations) = (Arc::clone(&self.counter.moving), Arc::clone(&self.operations));
        let keep = async move {
            loop {
                tokio::time::sleep(EVERY).await;
                if let Err(error) = put(&moving, &operations, &*counts).await {
                    tracing::warn!("keeping the counts of operations: {error}");
                }
            }
        };
        let mut keeper = self.counter.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.is_none() {
            *keeper = Some(tokio::spawn(keep));
        }
        Ok(())
    }

    /// Writes the counts to the store once more, and stops doing so.
    pub(super) async fn stop_counting(&self) {
        self.counter.stop();
        let result = async {
            match self.runs.store.counts().await? {
                Some(counts) => {
                    put(&self.counter.moving, &self.operations, &*counts).await.map_err(Error::from)
                }
                None => Ok(()),
            }
        };
        if let Err(error) = result.await {
            tracing::warn!("keeping the counts of operations: {error}");
        }
    }

    /// Resets counts and metrics.
    pub(super) async fn reset_counting(&self) -> Result<(), Error> {
        let _moving = self.counter.moving.lock().await;
        if let Some(counts) = self.runs.store.counts().await? {
            counts.reset_tallies().await?;
        }
        self.operations.take();
        self.metrics.reset();
        *self.counter.reset_ms.lock().unwrap_or_else(PoisonError::into_inner) = Some(now_ms());
        Ok(())
    }

    /// Returns the diagnostics of the core.
    pub(super) async fn diagnose(&self) -> Result<Diagnostics, Error> {
        let catalogue = self.registry.snapshot();
        let _moving = self.counter.moving.lock().await;
        let (counting, tallies) = self.counting().await;
        let operations = self.operations.with(&tallies.tallies, TallyKind::Operation);
        let links = self.operations.with(&tallies.tallies, TallyKind::Link);
        Ok(Diagnostics {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roots: catalogue.roots.clone(),
            skills: catalogue.entries.len(),
            shadowed: catalogue.shadowed.len(),
            refused: catalogue.refused.len(),
            scan: self.registry.progress(),
            index: self.shared.index_progress(),
            counting,
            started_ms: self.counter.began_ms,
            uptime_seconds: self.counter.began.elapsed().as_secs(),
            operations,
            link_failures: links.into_iter().map(|(link, count)| (link, count.errors)).collect(),
            cache: self.registry.cache(),
            resident_bytes: resident_bytes(),
        })
    }

    /// Returns where counts are stored, and the stored counts; an unreadable store is reported there and hides nothing
    /// else.
    async fn counting(&self) -> (Counting, Tallies) {
        let reset_ms = *self.counter.reset_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let here = |place: String| Counting {
            since_ms: reset_ms.unwrap_or(self.counter.began_ms),
            last_reset_ms: reset_ms,
            persisted: false,
            place,
            file: None,
        };
        let read = async {
            let place = StorePlace::in_use(&self.config)?;
            match self.runs.store.counts().await? {
                Some(counts) => Ok::<_, Error>(Some((place, counts.tallies().await?))),
                None => Ok(None),
            }
        };
        match read.await {
            Ok(Some((place, stored))) if !matches!(place, StorePlace::Memory) => {
                let counting = Counting {
                    since_ms: stored.since_ms.unwrap_or(self.counter.began_ms),
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
}

/// Returns the resident memory of this process (`/proc/self/status`, `proc_pid_status(5)`); `None` on other systems.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
