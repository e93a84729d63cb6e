//! Execution of runs: the workers of this process, a caller that executes a single run, and what follows when a sidecar
//! ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::control_request::ControlRequest;
use super::runtime::{CapabilityServices, LaunchPlaces, RunRuntime, RunStore};
use super::{Approvals, Maintenance, Notices, find, notifications};
use crate::operations::{await_returned_run, release_returned_run};
use crate::operator_types::worker_process;
use crate::{Code, Error};
use skills_base::audit::Recorder;
use skills_base::memory::value_bytes;
use skills_base::sync::MutexExt as _;
use skills_config::Config;
use skills_model::{Command, RunState};
use skills_runs::{
    CallerPermits, DRAIN_PREFIX, HEARTBEAT_TIMEOUT, LeaseSettings, ProcessIdentity, Supervisor,
    SupervisorSettings, execute_next,
};
use skills_skill::EffectMode;
use skills_store::{Control, ControlOutcome, EventKind, RunFilter, RunId, RunRecord, Store, StoreError};

/// Maximum time that a follower waits before it checks again.
const FOLLOW_MS: u64 = 60_000;
/// Events read per page.
const PAGE: usize = 500;

/// The workers of this process, and the task that follows their completed runs.
pub(super) struct WorkerSet {
    supervisor: Supervisor,
    /// Other tasks that run while runs are executed here.
    followers: JoinSet<()>,
    /// Reminds of waiting runs until it is dropped.
    _reminding: Option<DropGuard>,
}

/// Whether the workers of this process are running.
#[derive(Default)]
pub(super) struct OwnWorkers(AtomicBool);

impl OwnWorkers {
    /// Returns whether the workers of this process are running.
    pub(super) fn works(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, works: bool) {
        self.0.store(works, Ordering::SeqCst);
    }

    /// Returns whether an active worker can claim a run: of this process, or of another one seen recently. A draining
    /// one claims none.
    pub(super) async fn or_others(&self, runtime: &RunRuntime) -> bool {
        let drained = match runtime.store.documents(DRAIN_PREFIX).await {
            Ok(drained) => drained,
            Err(error) => {
                tracing::warn!("cannot list draining workers: {error}");
                Vec::new()
            }
        };
        let drains = |process: &str| {
            drained.iter().any(|document| document.name.strip_prefix(DRAIN_PREFIX) == Some(process))
        };
        let here = ProcessIdentity::here();
        if self.works() && !drains(&here.process()) {
            return true;
        }
        let lately = u64::try_from(HEARTBEAT_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        match runtime.store.live_workers(lately).await {
            Ok(workers) => {
                workers.iter().any(|worker| !here.is_process_dead(worker) && !drains(worker_process(worker)))
            }
            Err(error) => {
                tracing::warn!("listing workers: {error}");
                false
            }
        }
    }
}

/// Maximum number of runs that are executed by the requests that wait for them.
pub(super) const MAX_DIRECT: usize = 16;

/// Memory of the values of a run from which it counts as a returned run until its response is sent, in bytes.
const LARGE_RUN_BYTES: usize = 1 << 20;

/// How long the runs that requests execute may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The execution of runs in this process.
pub(in crate::local) struct Workers {
    pub(super) config: Arc<Config>,
    pub(super) audit: Arc<Recorder>,
    pub(super) notices: Arc<Notices>,
    pub(super) store: Arc<RunStore>,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) places: LaunchPlaces,
    pub(super) approvals: Arc<Approvals>,
    pub(super) maintenance: Maintenance,
    pub(super) own: Arc<OwnWorkers>,
    pub(super) working: tokio::sync::Mutex<Option<WorkerSet>>,
    /// Whether work directories of dead processes have been cleaned up.
    pub(super) cleared: AtomicBool,
    /// Permits of requests that execute the run they wait for, in addition to the workers.
    pub(super) direct: CallerPermits,
    /// Fires when runs that requests execute have to stop, because the process ends.
    pub(super) stopping: Mutex<CancellationToken>,
}

impl Workers {
    /// Starts the workers of this process, once. A failure is also reported as a notice.
    pub(super) async fn start_workers(&self) -> Result<(), Error> {
        let started = self.start().await;
        if let Err(error) = &started {
            self.notices.publish(format!("cannot start a worker: {error}"));
        }
        started
    }

    async fn start(&self) -> Result<(), Error> {
        let runtime = self.store.runtime().await?;
        self.store.ensure_store()?;
        let audit = Arc::clone(&self.audit);
        crate::work::run_blocking(move || {
            audit.catch_up();
            Ok(())
        })
        .await?;
        let mut working = self.working.lock().await;
        if working.is_none() {
            *self.stopping.locked() = CancellationToken::new();
            let own = SupervisorSettings::default();
            let settings = SupervisorSettings { workers: self.config.workers.unwrap_or(own.workers), ..own };
            self.clear_leftovers();
            let reminding = notifications::start(&self.config.notify, &self.notices, &runtime);
            let supervisor =
                Supervisor::start(Arc::clone(&runtime.store), Arc::clone(&runtime.execute), settings);
            let mut followers = JoinSet::new();
            followers.spawn(follow_sidecars(Arc::clone(&self.store), Arc::clone(&runtime)));
            followers.spawn(self.maintenance.clone().maintain_runs(Arc::clone(&runtime)));
            followers.spawn(Arc::clone(&self.approvals).follow_questions(runtime));
            *working = Some(WorkerSet { supervisor, followers, _reminding: reminding });
            self.own.set(true);
        }
        Ok(())
    }

    /// Deletes the work directories of scripts of dead processes, once per process and in the background.
    fn clear_leftovers(&self) {
        if self.cleared.swap(true, Ordering::SeqCst) {
            return;
        }
        let services = Arc::clone(&self.services);
        crate::work::spawn_blocking(move || {
            let cleared = services.isolating().clear_leftovers();
            if cleared.folders > 0 {
                tracing::info!(
                    "deleted stale work directories: {}, {} bytes",
                    cleared.folders,
                    cleared.bytes
                );
            }
        });
    }

    /// Stops the runs that requests execute, and releases them so that others continue them.
    pub(super) fn stop_requests(&self) {
        self.stopping.locked().cancel();
    }

    /// Stops the workers of this process; their runs are released so that others continue them, after a grace period or
    /// immediately.
    pub(super) async fn stop_workers(&self, at_once: bool) {
        self.stop_requests();
        // Their leases are released before the process ends.
        if tokio::time::timeout(STOP_TIMEOUT, self.direct.unused()).await.is_err() {
            tracing::warn!("runs that requests execute did not stop within {} s", STOP_TIMEOUT.as_secs());
        }
        let stopped = self.working.lock().await.take();
        self.own.set(false);
        if let Some(WorkerSet { supervisor, mut followers, .. }) = stopped {
            if at_once {
                supervisor.shutdown_within(Duration::ZERO).await;
            } else {
                supervisor.shutdown().await;
            }
            followers.shutdown().await;
        }
    }

    /// Executes a run in the calling task, or waits for the worker that has it, until it ends or waits.
    pub(super) async fn wait_for_completion(
        &self,
        sought: &str,
        leave: &CancellationToken,
    ) -> Result<RunRecord, Error> {
        let runtime = self.store.runtime().await?;
        self.services.refresh().await?;
        let run = find::listed(&*runtime.store, sought).await?;
        self.of_here(&run)?;
        self.clear_leftovers();
        // A process without workers executes it only for its caller.
        let stop = if self.own.works() { self.stopping.locked().clone() } else { leave.clone() };
        // The run may be read before, by a launch with the key of an earlier one.
        release_returned_run();
        execute_next(
            &runtime.store,
            &runtime.execute,
            &run.id,
            LeaseSettings::default(),
            &self.direct,
            (leave, &stop),
        )
        .await?;
        let completed = returned(&*runtime.store, &run.id).await?;
        steer(&self.store, &runtime, &completed).await?;
        Ok(completed)
    }

    /// Checks that an unclaimed run can be executed here.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for a run of skills that are not read here.
    fn of_here(&self, run: &RunRecord) -> Result<(), Error> {
        let free = run.state == RunState::Pending && !run.paused;
        match self.places.elsewhere(run).filter(|_| free) {
            Some(why) => Err(Error::new(Code::InvalidConfiguration, format!("run {}: {why}", run.id))),
            None => Ok(()),
        }
    }
}

/// Reads a complete run that the call returns to its caller, when the limits of its principal permit it.
pub(super) async fn returned(store: &dyn Store, id: &RunId) -> Result<RunRecord, Error> {
    await_returned_run().await?;
    let run = store.run(id).await?.ok_or_else(|| StoreError::NoRun(id.clone()))?;
    let values = [Some(&run.inputs), run.target.as_ref(), run.outputs.as_ref(), run.error.as_ref()];
    let bytes: usize = values.into_iter().flatten().map(value_bytes).sum();
    if bytes < LARGE_RUN_BYTES {
        release_returned_run();
    }
    Ok(run)
}

/// Applies what a completed sidecar requests for the run it watches; returns the outcome as text.
pub(super) async fn steer(
    store: &RunStore,
    runtime: &RunRuntime,
    sidecar: &RunRecord,
) -> Result<Option<String>, Error> {
    let watched = watched_run(sidecar).filter(|_| sidecar.state == RunState::Completed);
    let requested = sidecar.outputs.as_ref().and_then(|outputs| outputs.get("control"));
    let (Some(watched), Some(requested)) = (watched, requested) else { return Ok(None) };
    let wish = ControlRequest::read(requested);
    let (words, command) = match wish {
        Ok(wish) => match wish.command() {
            None => return Ok(Some(format!("resumes run {watched}"))),
            Some(command) => (wish.describe(), permitted(store, runtime, (sidecar, watched), command).await?),
        },
        Err(why) => (requested.to_string(), Err(why)),
    };
    let why = sidecar.outputs.as_ref().and_then(|outputs| outputs.get("reason")?.as_str());
    let control = Control { description: words.clone(), command, why: why.map(str::to_owned) };
    let outcome = runtime.store.control(&sidecar.id, &RunId(watched.to_owned()), control).await?;
    Ok(Some(match outcome {
        ControlOutcome::Applied(did) => format!("{words}: applied to run {watched}: {did}"),
        ControlOutcome::Refused(why) => format!("{words}: not applied to run {watched}: {why}"),
    }))
}

/// Returns the run to which a sidecar may send commands. What a skill may do was fixed when it was attached.
pub(super) fn watched_run(sidecar: &RunRecord) -> Option<&str> {
    let target = sidecar.target.as_ref()?;
    let steers = target["effect_mode"].as_str() == Some(&EffectMode::ControlSignal.to_string());
    target["run"].as_str().filter(|_| steers)
}

/// Returns why a run may not continue after a signal of a sidecar; `None` if it may.
pub(super) async fn signal_refusal(
    store: &RunStore,
    runtime: &RunRuntime,
    watched: &RunRecord,
) -> Result<Option<String>, Error> {
    match store.permissions.ensure_may_continue(runtime, watched).await {
        Err(error) if matches!(error.code, Code::Forbidden | Code::Untrusted) => Ok(Some(error.message)),
        other => other.map(|()| None),
    }
}

/// Returns the command of a sidecar, or why the watched run may not continue after it. Processes with other policies
/// may share the store, so the one that attached the sidecar has decided, too.
async fn permitted(
    store: &RunStore,
    runtime: &RunRuntime,
    (sidecar, watched): (&RunRecord, &str),
    command: (Command, Option<Value>),
) -> Result<Result<(Command, Option<Value>), String>, Error> {
    if !matches!(command.0, Command::Signal { .. }) {
        return Ok(Ok(command));
    }
    if let Some(why) = sidecar.target.as_ref().and_then(|target| target["signal_refused"].as_str()) {
        return Ok(Err(why.to_owned()));
    }
    let Some(run) = runtime.store.listed_run(&RunId(watched.to_owned())).await? else {
        return Ok(Ok(command));
    };
    Ok(signal_refusal(store, runtime, &run).await?.map_or(Ok(command), Err))
}

/// Applies the result of every sidecar that ends, whichever worker executed it, starting with those that ended
/// before this task followed them.
async fn follow_sidecars(store: Arc<RunStore>, runtime: Arc<RunRuntime>) {
    let mut seen = runtime.store.newest_event().await.unwrap_or(0);
    let ended = RunFilter { states: vec![RunState::Completed], limit: PAGE, ..RunFilter::default() };
    match runtime.store.runs(ended).await {
        Ok(page) => {
            for run in page.runs.iter().filter(|run| run.target.is_some()) {
                steered(&store, &runtime, run).await;
            }
        }
        Err(error) => tracing::warn!("cannot check for ended sidecars: {error}"),
    }
    loop {
        let events = match runtime.store.events(None, seen, PAGE).await {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!("following sidecars: {error}");
                tokio::time::sleep(HEARTBEAT_TIMEOUT).await;
                continue;
            }
        };
        for event in &events {
            seen = event.global;
            if event.event.kind == EventKind::RunCompleted
                && let Ok(Some(run)) = runtime.store.run(&event.run).await
            {
                steered(&store, &runtime, &run).await;
            }
        }
        if events.len() < PAGE
            && let Err(error) = runtime.store.wait(seen, FOLLOW_MS).await
        {
            tracing::warn!("following sidecars: {error}");
            tokio::time::sleep(HEARTBEAT_TIMEOUT).await;
        }
    }
}

async fn steered(store: &RunStore, runtime: &RunRuntime, run: &RunRecord) {
    match steer(store, runtime, run).await {
        Ok(Some(what)) => tracing::info!("sidecar {}: {what}", run.id),
        Ok(None) => {}
        Err(error) => tracing::error!("sidecar {}: {error}", run.id),
    }
}
