//! The workers of this process: they claim runs as soon as these are claimable, and end waits that expired.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process_identity::ProcessIdentity;
use super::worker::{Execute, LeaseSettings, WorkerExit, execute_run};
use serde_json::{Value, json};
use skills_model::Command;
use skills_store::{ClockReading, Store, StoreError, WorkerId};

/// How long a worker counts as alive after its last heartbeat.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of the workers of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorSettings {
    /// Maximum number of runs executed concurrently.
    pub workers: usize,
    /// Lease times.
    pub leases: LeaseSettings,
    /// Polling interval while the store reports no changes: leases and waits expire without an event.
    pub poll: Duration,
    /// How long runs may continue after a shutdown request before they are stopped.
    pub grace: Duration,
}

impl Default for SupervisorSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            workers: cores.clamp(2, 8),
            leases: LeaseSettings::default(),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(2),
        }
    }
}

/// Name prefix of the document in which a worker process describes itself.
pub const WORKER_PREFIX: &str = "worker:";

/// Name prefix of the document that requests a worker process to drain.
pub const DRAIN_PREFIX: &str = "drain:";

/// How long the description of a lost worker is kept.
const KEEP_LOST_WORKERS_MS: i64 = 86_400_000;

/// Minimum time between two polls that found nothing: bounds the cost of following a busy store.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Interval of the check whether lease holders are still alive: the death of a process causes no event.
const LIVENESS_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of runs that are executed in addition to those of the workers, one of each principal.
const MAX_EXTRA_RUNS: usize = 8;

/// How long workers wait after the store rejected a write.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Interval of the write probe of an idle store.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Interval of the write probe while the store cannot be written.
const PROBE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The workers of this process. Dropping it stops them as [`Supervisor::shutdown`] does, without waiting.
#[derive(Debug)]
pub struct Supervisor {
    tasks: JoinSet<()>,
    shared: Arc<SupervisorState>,
    grace: Duration,
}

struct SupervisorState {
    store: Arc<dyn Store>,
    execute: Arc<dyn Execute>,
    settings: SupervisorSettings,
    /// Fires when no new run may be claimed.
    closing: CancellationToken,
    /// Fires when runs in progress must stop.
    stop: CancellationToken,
    /// Wakes one idle worker.
    claimable: Notify,
    /// Signals that a worker has become idle.
    idle: Notify,
    busy: AtomicUsize,
    /// Whether the process drains: runs in progress are finished and no others are claimed.
    draining: AtomicBool,
    /// Wakes workers when they may claim again.
    resumed: Notify,
}

impl std::fmt::Debug for SupervisorState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Starts the workers on the current runtime. Runs of dead processes of this machine are taken over immediately,
    /// others when their leases expire.
    pub fn start(store: Arc<dyn Store>, execute: Arc<dyn Execute>, settings: SupervisorSettings) -> Self {
        let grace = settings.grace;
        let workers = settings.workers.max(1);
        let shared = Arc::new(SupervisorState {
            store,
            execute,
            settings,
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            claimable: Notify::new(),
            idle: Notify::new(),
            busy: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            resumed: Notify::new(),
        });
        let here = ProcessIdentity::here();
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeat(shared.clone(), here.next_worker(), here.process()));
        tasks.spawn(probe(shared.clone()));
        for _ in 0..workers {
            tasks.spawn(run_worker(shared.clone(), here.next_worker()));
        }
        tasks.spawn(follow(shared.clone(), here));
        Self { tasks, shared, grace }
    }

    /// Returns the number of runs being executed here.
    pub fn busy(&self) -> usize {
        self.shared.busy.load(Ordering::Relaxed)
    }

    /// Stops claiming, lets runs continue for the grace period, then stops them and releases their leases, so that
    /// other workers can continue immediately. Returns when all that is done.
    pub async fn shutdown(self) {
        let grace = self.grace;
        self.shutdown_within(grace).await;
    }

    /// Shuts down with a different grace period.
    pub async fn shutdown_within(mut self, grace: Duration) {
        self.shared.closing.cancel();
        let finished = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, finished).await.is_err() {
            self.shared.stop.cancel();
            while self.tasks.join_next().await.is_some() {}
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shared.closing.cancel();
        self.shared.stop.cancel();
        self.tasks.detach_all();
    }
}

async fn run_worker(shared: Arc<SupervisorState>, name: WorkerId) {
    let leases = shared.settings.leases;
    while !shared.closing.is_cancelled() {
        if shared.draining.load(Ordering::SeqCst) || !shared.execute.may_claim() {
            shared.idle.notify_one();
            tokio::select! {
                () = shared.resumed.notified() => {}
                // A wake-up between the check and the wait would be lost.
                () = tokio::time::sleep(LIVENESS_CHECK_INTERVAL) => {}
                () = shared.closing.cancelled() => {}
            }
            continue;
        }
        let left = match shared.store.claim(&name, leases.lease_ms(), None).await {
            Ok(Some(claimed)) => {
                // There may be more than one: the next idle worker looks while this one executes its run.
                shared.claimable.notify_one();
                shared.busy.fetch_add(1, Ordering::Relaxed);
                let left = execute_run(&shared.store, &shared.execute, claimed, leases, &shared.stop).await;
                shared.busy.fetch_sub(1, Ordering::Relaxed);
                left
            }
            Ok(None) => {
                shared.idle.notify_one();
                tokio::select! {
                    () = shared.claimable.notified() => {}
                    () = shared.closing.cancelled() => {}
                }
                continue;
            }
            Err(error) => {
                tracing::error!("claiming a run: {error}");
                WorkerExit::StoreFailed
            }
        };
        if left == WorkerExit::StoreFailed {
            tokio::select! {
                () = tokio::time::sleep(RETRY_DELAY) => {}
                () = shared.closing.cancelled() => {}
            }
        }
    }
}

/// Looks for work whenever the store changes, and wakes a worker for it.
async fn follow(shared: Arc<SupervisorState>, here: ProcessIdentity) {
    take_over(&shared, &here).await;
    follow_drain(&shared, &here.process()).await;
    let mut looked_after = Instant::now();
    let mut extra = JoinSet::new();
    let poll = u64::try_from(shared.settings.poll.as_millis()).unwrap_or(u64::MAX);
    loop {
        if looked_after.elapsed() >= LIVENESS_CHECK_INTERVAL {
            take_over(&shared, &here).await;
            follow_drain(&shared, &here.process()).await;
            looked_after = Instant::now();
        }
        while extra.try_join_next().is_some() {}
        let looked = poll_store(&shared, poll, &here, &mut extra);
        tokio::select! {
            () = shared.closing.cancelled() => break,
            looked = looked => if let Err(error) = looked {
                tracing::error!("cannot poll for work: {error}");
                tokio::time::sleep(RETRY_DELAY).await;
            },
        }
    }
    while extra.join_next().await.is_some() {}
}

/// Executes a run of a principal none of whose runs is being executed: long runs of others do not delay it.
async fn execute_extra(shared: Arc<SupervisorState>, name: WorkerId) {
    let leases = shared.settings.leases;
    match shared.store.claim_of_idle_principal(&name, leases.lease_ms()).await {
        Ok(Some(claimed)) => {
            let exit = execute_run(&shared.store, &shared.execute, claimed, leases, &shared.stop).await;
            if exit == WorkerExit::StoreFailed {
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
        Ok(None) => {}
        Err(error) => tracing::error!("claiming a run: {error}"),
    }
}

/// Applies a drain request, or its withdrawal.
async fn follow_drain(shared: &SupervisorState, process: &str) {
    let name = format!("{DRAIN_PREFIX}{process}");
    let is_requested = match shared.store.documents(&name).await {
        Ok(found) => found.iter().any(|document| document.name == name),
        Err(error) => return tracing::warn!("cannot check for a drain request: {error}"),
    };
    if shared.draining.swap(is_requested, Ordering::SeqCst) != is_requested {
        tracing::info!(
            "{}",
            if is_requested { "draining: no more runs are claimed" } else { "claiming runs again" }
        );
        if !is_requested {
            shared.resumed.notify_waiters();
        }
    }
}

async fn poll_store(
    shared: &Arc<SupervisorState>,
    poll: u64,
    here: &ProcessIdentity,
    extra: &mut JoinSet<()>,
) -> Result<(), StoreError> {
    let seen = shared.store.newest_event().await?;
    let due = shared.store.due().await?;
    if due.expired {
        record_expired_waits(&*shared.store).await?;
    }
    if due.claimable {
        shared.claimable.notify_one();
        if shared.busy.load(Ordering::Relaxed) >= shared.settings.workers.max(1) {
            // No worker is free to claim it; meanwhile waits may still expire.
            let freed = tokio::time::timeout(Duration::from_millis(poll), shared.idle.notified()).await;
            let may_claim = !shared.draining.load(Ordering::SeqCst) && shared.execute.may_claim();
            if freed.is_err() && may_claim && extra.len() < MAX_EXTRA_RUNS {
                extra.spawn(execute_extra(Arc::clone(shared), here.next_worker()));
            }
            return Ok(());
        }
    }
    tokio::time::sleep(MIN_POLL_INTERVAL).await;
    shared.store.wait(seen, poll).await
}

/// Ends expired waits, each according to its run's `on_expiry`.
pub async fn record_expired_waits(store: &dyn Store) -> Result<(), StoreError> {
    for run in store.expired().await? {
        match store.command(&run.id, Command::Expire(run.options.on_expiry), None, None, None).await {
            // Refused if a decision was recorded concurrently.
            Ok(_) | Err(StoreError::Refused(_)) => {}
            // It concerns this run only, which must not keep the others waiting.
            Err(error @ StoreError::Failed { .. }) => tracing::error!("cannot end run {}: {error}", run.id),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Expires the leases of dead processes of this machine.
async fn take_over(shared: &SupervisorState, here: &ProcessIdentity) {
    let holders = match shared.store.leaseholders().await {
        Ok(holders) => holders,
        Err(error) => return tracing::error!("cannot look for runs of dead workers: {error}"),
    };
    for worker in holders.iter().filter(|worker| here.is_process_dead(worker)) {
        match shared.store.expire_leases(worker).await {
            Ok(runs) => tracing::warn!("worker {worker} has exited; claiming {runs} of its runs"),
            Err(error) => tracing::error!("cannot take over the runs of {worker}: {error}"),
        }
    }
}

/// Probes repeatedly whether the store can be written; the store's health follows from the result.
async fn probe(shared: Arc<SupervisorState>) {
    let mut failing = false;
    loop {
        match shared.store.probe().await {
            Ok(()) => failing = false,
            Err(error) if failing => tracing::debug!("the store still cannot be written: {error}"),
            Err(error) => {
                failing = true;
                tracing::error!("the store cannot be written: {error}");
            }
        }
        let pause = if failing { PROBE_RETRY_INTERVAL } else { PROBE_INTERVAL };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.closing.cancelled() => return,
        }
    }
}

/// Writes heartbeats and a description of this process's workers at intervals.
async fn heartbeat(shared: Arc<SupervisorState>, name: WorkerId, process: String) {
    let started_ms = ClockReading::now().wall_ms;
    let about = format!("{WORKER_PREFIX}{process}");
    delete_lost_workers(&*shared.store, &ProcessIdentity::here(), started_ms).await;
    loop {
        let about_worker = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "slots": shared.settings.workers.max(1),
            "started_ms": started_ms,
            "seen_ms": ClockReading::now().wall_ms,
        });
        if let Err(error) = shared.store.heartbeat(&name).await {
            tracing::warn!("sending heartbeats: {error}");
        }
        if let Err(error) = shared.store.put_document(&about, Some(about_worker), None).await {
            tracing::warn!("cannot store the description of the worker: {error}");
        }
        tokio::select! {
            () = tokio::time::sleep(HEARTBEAT_TIMEOUT / 3) => {}
            () = shared.closing.cancelled() => break,
        }
    }
    for document in [about, format!("{DRAIN_PREFIX}{process}")] {
        if let Err(error) = shared.store.put_document(&document, None, None).await {
            tracing::warn!("deregistering workers: {error}");
        }
    }
    if let Err(error) = shared.store.deregister_worker(&name).await {
        tracing::warn!("deregistering workers: {error}");
    }
}

/// Deletes what is known of workers that were lost long ago, or whose processes on this machine are known to be dead.
async fn delete_lost_workers(store: &dyn Store, here: &ProcessIdentity, now_ms: i64) {
    match store.live_workers(KEEP_LOST_WORKERS_MS.unsigned_abs()).await {
        Ok(workers) => {
            for worker in workers.iter().filter(|worker| here.is_process_dead(worker)) {
                if let Err(error) = store.deregister_worker(worker).await {
                    tracing::warn!("cannot remove a lost worker: {error}");
                }
            }
        }
        Err(error) => tracing::warn!("cannot check for lost workers: {error}"),
    }
    let documents = match store.documents(WORKER_PREFIX).await {
        Ok(documents) => documents,
        Err(error) => return tracing::warn!("cannot check for lost workers: {error}"),
    };
    for document in documents {
        let seen_ms = document.value.get("seen_ms").and_then(Value::as_i64).unwrap_or(0);
        let process = document.name.trim_start_matches(WORKER_PREFIX);
        let is_dead = here.is_process_dead(&WorkerId(format!("{process}/0")));
        if !is_dead && seen_ms >= now_ms - KEEP_LOST_WORKERS_MS {
            continue;
        }
        for name in [format!("{DRAIN_PREFIX}{process}"), document.name.clone()] {
            if let Err(error) = store.put_document(&name, None, None).await {
                tracing::warn!("cannot remove a lost worker: {error}");
            }
        }
    }
}
