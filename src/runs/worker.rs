//! A worker's lease on one run: it is renewed while the run is executed, and execution is stopped as soon as the run no
//! longer belongs to this worker (canceled, or taken over after a suspend).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::process_identity::ProcessIdentity;
use skills_base::sync::MutexExt as _;
use skills_model::RunState;
use skills_store::{Claimed, RunId, RunRecord, Store, StoreError};

/// Executes a claimed run.
#[async_trait]
pub trait Execute: Send + Sync + 'static {
    /// Executes the run until it ends, waits, or no longer belongs to the caller. When `cancel` fires, children are
    /// killed before this returns.
    ///
    /// # Errors
    /// Returns an error if the store is not accepting writes (for example on a full disk); a lost lease is not an
    /// error.
    async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Result<(), StoreError>;

    /// Returns whether this process can execute runs now. While it cannot, it claims none.
    fn may_claim(&self) -> bool {
        true
    }
}

/// Lease times of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSettings {
    /// How long a claim is valid without renewal; it is renewed after a third of this time.
    pub lease: Duration,
    /// How soon a cancellation from elsewhere is noticed, unless the store is busy.
    pub cancel_poll_interval: Duration,
}

/// Maximum interval between checks for a cancellation while other runs record events.
const MAX_CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(500);

impl Default for LeaseSettings {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), cancel_poll_interval: Duration::from_millis(50) }
    }
}

impl LeaseSettings {
    /// Returns the lease duration in milliseconds, as stores expect it.
    pub fn lease_ms(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)
    }
}

/// How a worker's execution of a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerExit {
    /// It ended, waits, or is owned by another worker.
    Settled,
    /// The worker was stopped; the lease is released.
    Stopped,
    /// The store is not accepting writes.
    StoreFailed,
}

/// Executes a claimed run under its lease. Every log line meanwhile carries the run and its trace id.
pub(super) async fn execute_run(
    store: &Arc<dyn Store>,
    execute: &Arc<dyn Execute>,
    claimed: Claimed,
    leases: LeaseSettings,
    stop: &CancellationToken,
) -> WorkerExit {
    let span = tracing::info_span!("run", run = %claimed.run.id, trace_id = claimed.run.trace_id);
    execute_claimed(store, execute, claimed, leases, stop).instrument(span).await
}

async fn execute_claimed(
    store: &Arc<dyn Store>,
    execute: &Arc<dyn Execute>,
    claimed: Claimed,
    leases: LeaseSettings,
    stop: &CancellationToken,
) -> WorkerExit {
    let (run, fence) = (claimed.run.id.clone(), claimed.fence);
    let cancel = stop.child_token();
    let keeper = renew_lease(store.clone(), run.clone(), fence, leases, cancel.clone());
    let keeper = tokio::spawn(keeper.in_current_span());
    // In a separate task, so that a panic ends this run's execution but never the worker.
    let execution = tokio::spawn({
        let execute = execute.clone();
        let cancel = cancel.clone();
        async move { execute.execute(claimed, cancel).await }.in_current_span()
    });
    let mut is_fault_of_run = false;
    let left = match execution.await {
        Ok(Ok(())) if stop.is_cancelled() => WorkerExit::Stopped,
        Ok(Ok(()) | Err(StoreError::Refused(_))) => WorkerExit::Settled,
        Ok(Err(error)) => {
            tracing::error!("the execution of run {run} stopped: {error}");
            is_fault_of_run = error.unavailability().is_none();
            WorkerExit::StoreFailed
        }
        Err(panic) => {
            // The lease is left to expire: the next claim counts a loss, so that this cannot repeat forever.
            tracing::error!("the execution of run {run} panicked: {panic}");
            cancel.cancel();
            keeper.abort();
            return WorkerExit::Settled;
        }
    };
    keeper.abort();
    // What the store cannot write although it is available fails each time: as after a panic, the next claim counts a loss.
    if left != WorkerExit::Settled && !is_fault_of_run {
        // Refused if the run ended or waits after all; on other errors, the lease expires by itself.
        match store.release_lease(&run, fence).await {
            Ok(()) | Err(StoreError::Refused(_)) => {}
            Err(error) => tracing::warn!("cannot release run {run}: {error}"),
        }
    }
    left
}

/// Renews a lease after a third of its duration, and cancels when the run is no longer leased under this fencing token.
async fn renew_lease(
    store: Arc<dyn Store>,
    run: RunId,
    fence: u64,
    leases: LeaseSettings,
    cancel: CancellationToken,
) {
    let (mut renewed, mut pause) = (Instant::now(), leases.cancel_poll_interval);
    let longest = MAX_CANCEL_POLL_INTERVAL.min(leases.lease / 6).max(leases.cancel_poll_interval);
    loop {
        // Most runs end before the first check.
        tokio::time::sleep(pause).await;
        let due = renewed + leases.lease / 3;
        if Instant::now() >= due {
            let started = Instant::now();
            match store.renew(&run, fence, leases.lease_ms()).await {
                Ok(()) => renewed = started,
                Err(StoreError::Refused(refusal)) => {
                    tracing::info!("the lease of run {run} was lost: {refusal}");
                    return cancel.cancel();
                }
                Err(error) if renewed.elapsed() >= leases.lease => {
                    tracing::error!("the lease of run {run} expired, renewal failed: {error}");
                    return cancel.cancel();
                }
                Err(error) => tracing::warn!("cannot renew the lease of run {run}: {error}"),
            }
            continue;
        }
        // Before the run is read: a command between the two must end the wait below.
        let newest = store.newest_event().await.unwrap_or(0);
        match store.run_snapshot(&run).await {
            Ok(Some(now)) if now.fence == fence => {}
            Ok(_) => return cancel.cancel(),
            Err(error) => tracing::warn!("cannot monitor run {run}: {error}"),
        }
        let left = due.saturating_duration_since(Instant::now());
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let waiting = Instant::now();
        if let Err(error) = store.wait(newest, left).await {
            tracing::warn!("cannot wait for events of run {run}: {error}");
        }
        // In a busy store nearly all events are those of other runs.
        let is_busy = waiting.elapsed() < MAX_CANCEL_POLL_INTERVAL;
        pause = if is_busy { (2 * pause).min(longest) } else { leases.cancel_poll_interval };
    }
}

/// How often a caller that waits for a permit looks whether a worker has executed its run.
const QUEUE_POLL: Duration = Duration::from_millis(250);

/// Permits of callers that execute the run they wait for. The runs of one principal have at most half of them.
#[derive(Debug)]
pub struct CallerPermits {
    count: usize,
    all: Arc<Semaphore>,
    by_principal: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// One of [`CallerPermits`].
type CallerPermit = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl CallerPermits {
    pub fn new(count: usize) -> Self {
        Self { count, all: Arc::new(Semaphore::new(count)), by_principal: Mutex::default() }
    }

    fn own(&self, principal: &str) -> Arc<Semaphore> {
        let mut all = self.by_principal.locked();
        // Others than the map refer to it while it is in use.
        all.retain(|name, own| name == principal || Arc::strong_count(own) > 1);
        let own = all
            .entry(principal.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(self.count.div_ceil(2))));
        Arc::clone(own)
    }

    async fn acquire(&self, principal: &str) -> Option<CallerPermit> {
        let own = self.own(principal).acquire_owned().await.ok()?;
        Some((own, Arc::clone(&self.all).acquire_owned().await.ok()?))
    }

    fn try_acquire(&self, principal: &str) -> Option<CallerPermit> {
        let own = self.own(principal).try_acquire_owned().ok()?;
        Some((own, Arc::clone(&self.all).try_acquire_owned().ok()?))
    }

    /// Waits until no run is executed with one of the permits.
    pub async fn unused(&self) {
        drop(self.all.acquire_many(u32::try_from(self.count).unwrap_or(u32::MAX)).await);
    }
}

/// Claims one run and executes it in the calling task until it ends or waits; if another worker has it, waits until
/// that one is done. Returns the run in its final state as in a list, or `None` if there is no such run.
///
/// When `leave` fires, the caller no longer waits and the run is returned in its current state, except while it is
/// executed here: a caller that disconnects interrupts no step. When `stop` fires, execution stops and the lease is
/// released. The run is claimed here only with one of the permits, for which callers queue; the workers of this process
/// claim it as well.
pub async fn execute_next(
    store: &Arc<dyn Store>,
    execute: &Arc<dyn Execute>,
    run: &RunId,
    leases: LeaseSettings,
    permits: &CallerPermits,
    (leave, stop): (&CancellationToken, &CancellationToken),
) -> Result<Option<RunRecord>, StoreError> {
    let here = ProcessIdentity::here();
    let worker = here.next_worker();
    let left = async || tokio::select! { () = leave.cancelled() => {}, () = stop.cancelled() => {} };
    // Keeps its place in the queue between two looks at the run.
    let mut queued = None;
    loop {
        let seen = store.newest_event().await?;
        // As in a list: what is large would be held while it waits.
        let Some(record) = store.listed_run(run).await? else { return Ok(None) };
        let done = !record.state.is_active() && (record.state != RunState::Pending || record.paused);
        if done || leave.is_cancelled() || stop.is_cancelled() {
            return Ok(Some(record));
        }
        let principal = record.started_by.clone();
        let permit = if record.state == RunState::Pending && execute.may_claim() {
            let queued =
                queued.get_or_insert_with(|| Box::pin(async move { permits.acquire(&principal).await }));
            tokio::select! {
                biased;
                permit = queued.as_mut() => permit,
                // Events of all runs would wake the whole queue each time.
                () = tokio::time::sleep(QUEUE_POLL) => continue,
                () = left() => continue,
            }
        } else {
            permits.try_acquire(&principal).filter(|_| execute.may_claim())
        };
        // Its place, or a permit that it was given meanwhile, is for others.
        queued = None;
        let claimed = match &permit {
            Some(_) => store.claim(&worker, leases.lease_ms(), Some(run)).await?,
            None => None,
        };
        let Some(claimed) = claimed else {
            drop(permit);
            let holder = record.lease.and_then(|lease| lease.worker);
            if let Some(dead) = holder.filter(|holder| here.is_process_dead(holder))
                && store.expire_leases(&dead).await? > 0
            {
                tracing::warn!("worker {dead} has exited; claiming run {run}");
                continue;
            }
            // An expiring lease makes no event, so this polls as well.
            let patience = leases.lease_ms().min(1000);
            tokio::select! {
                waited = store.wait(seen, patience) => waited?,
                () = left() => {}
            }
            continue;
        };
        if execute_run(store, execute, claimed, leases, stop).await == WorkerExit::StoreFailed {
            return Err(not_accepting_writes(&**store, run));
        }
    }
}

/// Returns the error for a run that stopped because the store cannot be written, with the cause of the last failure.
fn not_accepting_writes(store: &dyn Store, run: &RunId) -> StoreError {
    let action = format!("execute run {run}");
    let reason = "the store is not accepting writes (see the log); the run continues when it does".to_owned();
    match store.write_failure().and_then(|failure| failure.error.unavailability()) {
        Some(cause) => StoreError::Unavailable { cause, action, reason },
        None => StoreError::Failed { action, reason },
    }
}

#[cfg(test)]
mod tests {
    use skills_store::{Clocks, Sqlite, Unavailability};

    use super::*;

    #[tokio::test]
    async fn a_run_that_stops_because_of_the_store_names_the_cause() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs.db");
        let store = Sqlite::open(&file, Clocks::system()).unwrap().store;
        let error = not_accepting_writes(&store, &RunId("run".into()));
        assert_eq!(error.unavailability(), None, "the last write succeeded");
        std::fs::rename(&file, folder.path().join("away.db")).unwrap();
        store.probe().await.unwrap_err();
        let error = not_accepting_writes(&store, &RunId("run".into()));
        assert_eq!(error.unavailability(), Some(Unavailability::Missing), "{error}");
    }
}
