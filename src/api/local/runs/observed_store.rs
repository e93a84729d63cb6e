//! A store wrapper that records metrics and audit log entries; all callers in this process use it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::audit_entries;
use serde_json::{Map, Value};
use skills_base::audit::Recorder;
use skills_base::telemetry::{KeyOutcome, Metrics};
use skills_model::{Command, RunSnapshot, RunState};
use skills_store::{
    Checkpoint, Claimed, CommandOutcome, Control, ControlOutcome, DecisionRecord, Document, Due, EventKind,
    Health, IdempotencyOutcome, Launch, LaunchOutcome, NewEvent, Precondition, QuickCheck, RecordedDecision,
    RunEvent, RunFilter, RunId, RunPage, RunRecord, StepIntent, StepRecord, StepStatus, Store, StoreError,
    TableRows, Unavailability, WorkerId, WriteFailure,
};
use strum::IntoEnumIterator as _;

/// A store that records every call in the metrics and every command in the audit log.
pub(super) struct ObservedStore {
    inner: Arc<dyn Store>,
    metrics: Metrics,
    audit: Arc<Recorder>,
    /// Labels by which runs are counted.
    metric_labels: Vec<String>,
}

impl ObservedStore {
    pub(super) fn new(
        inner: Arc<dyn Store>,
        metrics: Metrics,
        audit: Arc<Recorder>,
        metric_labels: Vec<String>,
    ) -> Self {
        let causes = Unavailability::iter().map(|cause| cause.to_string());
        metrics.expect_store_errors(causes.chain(["failed".to_owned()]));
        Self { inner, metrics, audit, metric_labels }
    }

    /// Counts failures of the store itself.
    fn counted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Err(StoreError::Unavailable { cause, .. }) => self.metrics.store_error(&cause.to_string()),
            Err(StoreError::Failed { .. }) => self.metrics.store_error("failed"),
            _ => {}
        }
        result
    }

    /// Counts a run by those of its labels that are configured.
    fn labeled(&self, run: &RunRecord) {
        for name in &self.metric_labels {
            if let Some(value) = run.options.labels.get(name) {
                self.metrics.labeled_run(&run.state.to_string(), name, value);
            }
        }
    }

    fn claimed(&self, claimed: &Result<Option<Claimed>, StoreError>) {
        if let Ok(Some(claimed)) = claimed {
            if claimed.takeover {
                self.metrics.takeover();
            }
            self.metrics.run_moved(&claimed.run.state.to_string());
        }
    }

    async fn launched(&self, started: &Result<LaunchOutcome, StoreError>) {
        let became = match started {
            Ok(started) => match started.idempotency {
                IdempotencyOutcome::None => None,
                IdempotencyOutcome::Created => Some(KeyOutcome::Created),
                IdempotencyOutcome::Reused => Some(KeyOutcome::Reused),
                IdempotencyOutcome::Expired => Some(KeyOutcome::Expired),
            },
            Err(StoreError::IdempotencyConflict { .. }) => Some(KeyOutcome::Conflict),
            Err(_) => None,
        };
        if let Some(became) = became {
            self.metrics.key(became);
        }
        if let Ok(started) = started
            && started.idempotency != IdempotencyOutcome::Reused
        {
            self.metrics.run_moved(&started.run.state.to_string());
            self.labeled(&started.run);
            log(&started.run, "run launched");
            self.audit.record(audit_entries::launched(&started.run)).await;
        }
    }
}

/// Logs an event of a run, with its trace id.
fn log(run: &RunRecord, what: &str) {
    tracing::info!(run = %run.id, skill = run.skill_id, state = %run.state, trace_id = run.trace_id, "{what}");
}

/// Returns the duration of a step in milliseconds.
fn took_ms(step: &StepRecord) -> u64 {
    u64::try_from(step.ended_ms.saturating_sub(step.started_ms)).unwrap_or(0)
}

#[async_trait]
impl Store for ObservedStore {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn identity(&self) -> String {
        self.inner.identity()
    }

    async fn launch(&self, launch: Launch) -> Result<LaunchOutcome, StoreError> {
        let started = self.counted(self.inner.launch(launch).await);
        self.launched(&started).await;
        started
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        lease_ms: u64,
        only: Option<&RunId>,
    ) -> Result<Option<Claimed>, StoreError> {
        let claimed = self.counted(self.inner.claim(worker, lease_ms, only).await);
        self.claimed(&claimed);
        claimed
    }

    async fn claim_of_idle_principal(
        &self,
        worker: &WorkerId,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, StoreError> {
        let claimed = self.counted(self.inner.claim_of_idle_principal(worker, lease_ms).await);
        self.claimed(&claimed);
        claimed
    }

    async fn release_lease(&self, run: &RunId, fence: u64) -> Result<(), StoreError> {
        self.inner.release_lease(run, fence).await
    }

    async fn renew(&self, run: &RunId, fence: u64, lease_ms: u64) -> Result<(), StoreError> {
        self.counted(self.inner.renew(run, fence, lease_ms).await)
    }

    async fn record_intent(
        &self,
        run: &RunId,
        fence: u64,
        batch: u32,
        intent: StepIntent,
    ) -> Result<(), StoreError> {
        self.counted(self.inner.record_intent(run, fence, batch, intent).await)
    }

    async fn report(
        &self,
        run: &RunId,
        command: Command,
        finished: Vec<StepRecord>,
        checkpoint: Option<Checkpoint>,
        intents: Vec<StepIntent>,
        events: Vec<NewEvent>,
    ) -> Result<RunRecord, StoreError> {
        let ended: Vec<(StepStatus, u64)> =
            finished.iter().map(|step| (step.status, took_ms(step))).collect();
        let reported =
            self.counted(self.inner.report(run, command, finished, checkpoint, intents, events).await);
        if let Ok(run) = &reported {
            for (status, took) in ended {
                self.metrics.step(&status.to_string(), Duration::from_millis(took));
            }
            if !run.state.is_active() {
                self.metrics.run_moved(&run.state.to_string());
                self.labeled(run);
                log(run, "run reported");
                self.audit.record(audit_entries::inactive_run(run)).await;
            }
        }
        reported
    }

    async fn append(
        &self,
        run: &RunId,
        fence: u64,
        batch: u32,
        events: Vec<NewEvent>,
    ) -> Result<(), StoreError> {
        self.inner.append(run, fence, batch, events).await
    }

    async fn command_if(
        &self,
        run: &RunId,
        since_ms: Option<i64>,
        command: Command,
        record: Option<DecisionRecord>,
        head: Option<u64>,
        payload: Option<serde_json::Value>,
    ) -> Result<CommandOutcome, StoreError> {
        let pending =
            audit_entries::begin(&self.audit, self.inner.identity(), run, &command, record.as_ref()).await;
        fail::fail_point!("run-command-begun");
        let sent = self.inner.command_if(run, since_ms, command.clone(), record.clone(), head, payload);
        let outcome = self.counted(sent.await);
        fail::fail_point!("run-command-applied");
        // Without an answer of the store it can have been applied.
        let mut is_recorded = outcome.as_ref().err().is_none_or(|error| error.unavailability().is_none());
        if let Ok(outcome) = &outcome {
            if let Some(ended) = &outcome.expired {
                self.metrics.run_moved(&ended.state.to_string());
                log(ended, "run.expired");
                self.audit.record(audit_entries::expired(ended, ended.options.on_expiry)).await;
            }
            if outcome.before != outcome.run.state {
                self.metrics.run_moved(&outcome.run.state.to_string());
            }
            if let Some(entry) = audit_entries::commanded(&command, record.as_ref(), outcome) {
                log(&outcome.run, &entry.kind);
                is_recorded = self.audit.record(entry).await;
            }
        }
        fail::fail_point!("run-command-audited");
        if let Some(pending) = pending.filter(|_| is_recorded) {
            pending.end();
        }
        outcome
    }

    async fn control(
        &self,
        sidecar: &RunId,
        watched: &RunId,
        control: Control,
    ) -> Result<ControlOutcome, StoreError> {
        let outcome = self.inner.control(sidecar, watched, control.clone()).await;
        if let Ok(outcome) = &outcome {
            self.audit.record(audit_entries::controlled(sidecar, watched, &control, outcome)).await;
        }
        outcome
    }

    async fn fork_if(
        &self,
        source: &RunId,
        since_ms: Option<i64>,
        checkpoint: Option<u64>,
        new: RunId,
        paused: bool,
        by: Option<String>,
    ) -> Result<RunRecord, StoreError> {
        let made = self.inner.fork_if(source, since_ms, checkpoint, new, paused, by).await;
        if let Ok(made) = &made {
            self.metrics.run_moved(&made.state.to_string());
            log(made, "run branched");
            self.audit.record(audit_entries::branched(made, paused)).await;
        }
        made
    }

    async fn buffered_signal(
        &self,
        run: &RunId,
        name: &str,
    ) -> Result<Option<serde_json::Value>, StoreError> {
        self.inner.buffered_signal(run, name).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.run(run).await
    }

    async fn listed_run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.listed_run(run).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<RunPage, StoreError> {
        self.inner.runs(filter).await
    }

    async fn steps(&self, run: &RunId, max_content: u64) -> Result<Vec<StepRecord>, StoreError> {
        self.inner.steps(run, max_content).await
    }

    async fn step(&self, run: &RunId, step: &str) -> Result<Option<StepRecord>, StoreError> {
        self.inner.step(run, step).await
    }

    async fn intents(&self, run: &RunId) -> Result<Vec<StepIntent>, StoreError> {
        self.inner.intents(run).await
    }

    async fn checkpoint(&self, run: &RunId, number: u64) -> Result<Checkpoint, StoreError> {
        self.inner.checkpoint(run, number).await
    }

    async fn checkpoints(
        &self,
        run: &RunId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.inner.checkpoints(run, before, limit).await
    }

    async fn events(
        &self,
        run: Option<&RunId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RunEvent>, StoreError> {
        self.inner.events(run, after, limit).await
    }

    async fn wait(&self, after: u64, timeout_ms: u64) -> Result<(), StoreError> {
        self.inner.wait(after, timeout_ms).await
    }

    async fn contract(&self, digest: &str) -> Result<Option<serde_json::Value>, StoreError> {
        self.inner.contract(digest).await
    }

    async fn decisions(&self, run: &RunId) -> Result<Vec<RecordedDecision>, StoreError> {
        self.inner.decisions(run).await
    }

    async fn descendants(&self, run: &RunId) -> Result<Vec<RunId>, StoreError> {
        self.inner.descendants(run).await
    }

    async fn expired(&self) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.expired().await
    }

    async fn unescalated(
        &self,
        since_ms: i64,
        after: Option<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<(RunRecord, (i64, i64))>, StoreError> {
        self.inner.unescalated(since_ms, after, limit).await
    }

    async fn unnotified(&self, since_ms: i64, after: u64, limit: usize) -> Result<Vec<RunEvent>, StoreError> {
        self.inner.unnotified(since_ms, after, limit).await
    }

    async fn newest_event(&self) -> Result<u64, StoreError> {
        self.inner.newest_event().await
    }

    async fn newest_run_event(&self, run: &RunId) -> Result<u64, StoreError> {
        self.inner.newest_run_event(run).await
    }

    async fn purge_states(&self, states: &[RunState], before_ms: i64) -> Result<u64, StoreError> {
        self.inner.purge_states(states, before_ms).await
    }

    async fn annotate(
        &self,
        run: &RunId,
        options: Map<String, Value>,
        events: Vec<NewEvent>,
        requires: Option<Precondition>,
    ) -> Result<RunRecord, StoreError> {
        let assignment = events.iter().find(|event| event.kind == EventKind::RunAssigned).cloned();
        let annotated = self.counted(self.inner.annotate(run, options, events, requires).await);
        if let (Ok(after), Some(assignment)) = (&annotated, assignment) {
            log(after, "run assigned");
            self.audit.record(audit_entries::assigned(after, &assignment)).await;
        }
        annotated
    }

    async fn documents(&self, prefix: &str) -> Result<Vec<Document>, StoreError> {
        self.inner.documents(prefix).await
    }

    async fn put_document(
        &self,
        name: &str,
        value: Option<Value>,
        expected: Option<u64>,
    ) -> Result<u64, StoreError> {
        self.counted(self.inner.put_document(name, value, expected).await)
    }

    async fn prune(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.inner.prune(before_ms).await
    }

    async fn check(&self) -> Result<Health, StoreError> {
        self.inner.check().await
    }

    async fn quick_check(&self, patience: Duration) -> Result<QuickCheck, StoreError> {
        self.inner.quick_check(patience).await
    }

    async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        self.inner.backup(to).await
    }

    async fn import(&self, from: &Path) -> Result<Vec<TableRows>, StoreError> {
        self.inner.import(from).await
    }

    async fn compact(&self) -> Result<(), StoreError> {
        self.inner.compact().await
    }

    async fn heartbeat(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.inner.heartbeat(worker).await
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.inner.deregister_worker(worker).await
    }

    async fn leaseholders(&self) -> Result<Vec<WorkerId>, StoreError> {
        self.inner.leaseholders().await
    }

    async fn expire_leases(&self, worker: &WorkerId) -> Result<u64, StoreError> {
        self.inner.expire_leases(worker).await
    }

    async fn damage(&self, run: &RunId) -> Result<Option<&'static str>, StoreError> {
        self.inner.damage(run).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.counted(self.inner.probe().await)
    }

    fn write_failure(&self) -> Option<WriteFailure> {
        self.inner.write_failure()
    }

    async fn due(&self) -> Result<Due, StoreError> {
        self.inner.due().await
    }

    async fn live_workers(&self, max_age_ms: u64) -> Result<Vec<WorkerId>, StoreError> {
        self.inner.live_workers(max_age_ms).await
    }

    async fn run_snapshot(&self, run: &RunId) -> Result<Option<RunSnapshot>, StoreError> {
        self.inner.run_snapshot(run).await
    }
}
