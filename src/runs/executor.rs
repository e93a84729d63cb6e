//! The execution of one run by one worker: the calls in progress, results that are not yet recorded, and the fencing
//! token under which everything is written.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::apply_result::check_size;
use super::attempt::{AttemptResult, CancelTokens};
use super::call::{Call, CallConditions, CallError, CallFailure, idempotency_key};
use super::execute::{Engine, ExecutionEnd, before_first_step};
use super::failure::Failure;
use super::run_writer::{ExecutionStop, RunWriter};
use super::running_calls::{RunningCall, RunningCalls};
use super::schedule::PARALLEL;
use super::scheduled_call::ScheduledCall;
use super::scheduler::{Expansion, OpenedStep, Scheduler};
use super::termination::{approval_gate, end_for_error, stuck};
use skills_model::{Command, Gate, RunState, TransitionError, WorkerReport};
use skills_store::{EventKind, NewEvent, RunRecord, StepIntent, StepRecord, StepStatus, StoreError};

pub(super) struct RunExecution<'e> {
    engine: &'e Engine,
    pub(super) scheduler: Scheduler,
    writer: RunWriter,
    head: u64,
    state: RunState,
    /// Whether the run was paused, so that nothing new starts.
    paused: bool,
    conditions: CallConditions,
    files: BTreeMap<String, PathBuf>,
    calls: RunningCalls,
    /// Steps of several calls to be opened.
    pub(super) opened: Vec<OpenedStep>,
    /// Whether state other than the records changed that a checkpoint must contain.
    pub(super) needs_checkpoint: bool,
    /// Results that are not yet recorded.
    records: Vec<StepRecord>,
    pub(super) events: Vec<NewEvent>,
    /// The failure that ends the run once nothing is in progress.
    failure: Option<Failure>,
    /// Steps that were stopped because of that failure.
    pub(super) stopped: Vec<Failure>,
}

impl<'e> RunExecution<'e> {
    pub fn new(
        engine: &'e Engine,
        scheduler: Scheduler,
        fence: u64,
        head: u64,
        cancel: CancellationToken,
    ) -> Self {
        let run = &scheduler.progress.run;
        let conditions = engine.conditions(run);
        let files = &run.options.files;
        let files = files.iter().map(|(name, path)| (name.clone(), PathBuf::from(path))).collect();
        let writer = RunWriter::new(engine, run.id.clone(), fence, cancel);
        Self {
            engine,
            state: run.state,
            paused: run.paused,
            scheduler,
            writer,
            head,
            conditions,
            files,
            calls: RunningCalls::default(),
            opened: Vec::new(),
            needs_checkpoint: false,
            records: Vec::new(),
            events: Vec::new(),
            failure: None,
            stopped: Vec::new(),
        }
    }

    pub async fn drive(mut self) -> ExecutionEnd {
        match self.run().await {
            Ok(executed) => executed,
            Err(leave) => {
                self.calls.stop(&self.scheduler.progress.run.id).await;
                match leave {
                    ExecutionStop::Canceled => ExecutionEnd::Stopped,
                    ExecutionStop::Store(error) => end_for_error(error),
                }
            }
        }
    }

    async fn run(&mut self) -> Result<ExecutionEnd, ExecutionStop> {
        if let Some(ask) = before_first_step(&self.scheduler) {
            return self.wait(approval_gate(ask)).await;
        }
        loop {
            let mut next = self.expand().await;
            if self.failure.is_none() && self.take_signals(&next).await? {
                continue;
            }
            if let Some(failure) = self.failure.take() {
                self.wind_down(&failure.place());
                if self.calls.is_empty() {
                    return self.fail(failure).await;
                }
                self.failure = Some(failure);
                next = Expansion::default();
            } else if self.paused
                && !next.calls.is_empty()
                && self.calls.is_empty()
                && self.calls.again.is_empty()
            {
                return self.pause().await;
            } else if self.calls.is_empty() && next.calls.is_empty() && self.calls.again.is_empty() {
                if self.scheduler.progress.is_complete() {
                    return self.complete().await;
                }
                let approval = next.asks.into_iter().next().map(approval_gate);
                let signal = next.signals.into_iter().next().map(|(step, name)| Gate::Signal { step, name });
                let Some(gate) = approval.or(signal) else {
                    return self.fail(stuck(&self.scheduler.progress)).await;
                };
                return self.wait(gate).await;
            }
            self.begin(next).await?;
            if !self.calls.is_empty() {
                self.listen().await?;
            }
        }
    }

    pub(super) fn now(&self) -> i64 {
        (self.engine.now)()
    }

    /// Returns whether ending the execution would lose a call in progress.
    fn is_busy(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Advances everything that needs no call.
    async fn expand(&mut self) -> Expansion {
        let mut next = Expansion::default();
        if self.failure.is_some() {
            return next;
        }
        let running = self.calls.paths();
        for path in self.scheduler.progress.superseded_branches(&running) {
            self.calls.supersede(&path);
        }
        self.scheduler.approvals.present = self.engine.present_bindings(&self.scheduler.progress).await;
        let now = self.now();
        if let Err(failure) = self.scheduler.expand(&running, now, &mut next) {
            self.failure = Some(failure);
        }
        self.needs_checkpoint |= !next.records.is_empty() || !next.opened.is_empty();
        self.records.append(&mut next.records);
        self.events.append(&mut next.events);
        self.opened.append(&mut next.opened);
        next
    }

    /// Delivers buffered signals to the steps that wait for them; returns whether there was one.
    async fn take_signals(&mut self, next: &Expansion) -> Result<bool, ExecutionStop> {
        let mut taken: Vec<&str> = Vec::new();
        for (path, name) in &next.signals {
            // A second step that waits for the same name gets the next signal, once this one is recorded.
            if taken.contains(&name.as_str())
                || self.events.iter().any(|event| {
                    event.kind == EventKind::SignalConsumed && event.data["name"] == name.as_str()
                })
            {
                continue;
            }
            let (store, run) = (&self.engine.store, &self.scheduler.progress.run.id);
            let found = self.writer.persist(self.is_busy(), || store.buffered_signal(run, name)).await?;
            let Some(payload) = found else { continue };
            let now = self.now();
            match self.scheduler.progress.settle_signal(path, payload, now) {
                Ok(record) => {
                    self.needs_checkpoint = true;
                    self.records.push(record);
                    self.events.push(NewEvent {
                        kind: EventKind::SignalConsumed,
                        step: Some(path.clone()),
                        data: json!({"name": name}),
                    });
                }
                Err(failure) => self.failure = Some(failure),
            }
            taken.push(name);
        }
        Ok(!taken.is_empty())
    }

    /// Records what ended together with what starts, then starts it.
    async fn begin(&mut self, next: Expansion) -> Result<(), ExecutionStop> {
        let free = PARALLEL.saturating_sub(self.calls.len());
        let again = std::mem::take(&mut self.calls.again);
        let first = next.calls.into_iter().take(free).map(|call| (call, Duration::ZERO));
        let starting: Vec<(ScheduledCall, Duration)> = again.into_iter().chain(first).collect();
        let mut intents = self.opened_intents();
        for (call, _) in &starting {
            let intent = self.intent(&call.path, call.attempt, call.digest.clone(), call.is_repeatable());
            let (capability, bindings) = (self.chosen_capability(call), call.bindings.clone());
            intents.push(StepIntent { capability, bindings, ..intent });
            self.events.extend(call.notes.iter().cloned());
        }
        let started = self.commit(intents).await?;
        for (call, backoff) in starting {
            // Calls that a pause holds back are scheduled again later. A retry belongs to a step in progress.
            if started.contains(&call.path) || self.calls.contains(&call.path) {
                self.start(call, backoff);
            }
        }
        Ok(())
    }

    pub(super) fn opened_intents(&mut self) -> Vec<StepIntent> {
        let opened = std::mem::take(&mut self.opened);
        let intent = |step: OpenedStep| StepIntent {
            bindings: step.bindings,
            ..self.intent(&step.path, 1, step.digest, true)
        };
        opened.into_iter().map(intent).collect()
    }

    fn intent(&self, step: &str, attempt: u32, inputs_digest: String, repeatable: bool) -> StepIntent {
        let idempotency_key = idempotency_key(&self.scheduler.progress.run.id.0, step);
        let step = step.to_owned();
        StepIntent {
            step,
            attempt,
            inputs_digest,
            idempotency_key,
            repeatable,
            capability: None,
            bindings: None,
        }
    }

    /// Returns the capability of a call if its step names several, so that its start records which one was called.
    fn chosen_capability(&self, call: &ScheduledCall) -> Option<String> {
        let step = self.scheduler.progress.plan.step_at(&call.path)?;
        (step.called_capabilities().len() > 1).then(|| call.capability.id.clone())
    }

    /// Records everything that is due in one transaction, if anything is. Returns the steps that may start.
    async fn commit(&mut self, intents: Vec<StepIntent>) -> Result<HashSet<String>, ExecutionStop> {
        if self.records.is_empty() && (intents.len() < 2 || self.state == RunState::Replaying) {
            // Nothing ended: the state of the run and its head stay unchanged.
            let events: Vec<NewEvent> = std::mem::take(&mut self.events);
            self.writer.append(self.is_busy(), events).await?;
            let mut started = HashSet::new();
            for intent in intents {
                match self.writer.record_intent(self.is_busy(), &intent).await {
                    Ok(()) => {
                        started.insert(intent.step);
                    }
                    Err(ExecutionStop::Store(StoreError::Refused(TransitionError::Paused))) => {
                        self.paused = true;
                    }
                    Err(stop) => return Err(stop),
                }
            }
            return Ok(started);
        }
        let started = intents.iter().map(|intent| intent.step.clone()).collect();
        self.report(WorkerReport::Checkpoint, Vec::new(), intents).await?;
        Ok(if self.paused { HashSet::new() } else { started })
    }

    /// Writes one report: what ended, a checkpoint if anything did, and the intents of what starts.
    pub(super) async fn report(
        &mut self,
        report: WorkerReport,
        failed: Vec<StepRecord>,
        intents: Vec<StepIntent>,
    ) -> Result<RunRecord, ExecutionStop> {
        // An opened step of several calls is part of the next checkpoint; opening alone makes none, but waiting saves
        // everything.
        let due = !self.records.is_empty() || report != WorkerReport::Checkpoint;
        // In the order in which they ended, except that of the failed ones the run's error comes first.
        let (mut finished, broken): (Vec<_>, Vec<_>) = std::mem::take(&mut self.records)
            .into_iter()
            .partition(|record| failed.is_empty() || record.status != StepStatus::Failed);
        finished.extend(failed);
        finished.extend(broken);
        let needs_checkpoint = due && std::mem::take(&mut self.needs_checkpoint);
        let checkpoint =
            needs_checkpoint.then(|| self.scheduler.progress.checkpoint(self.head + 1, self.now()));
        let mut events = self.writer.lines(due || self.is_busy()).await?;
        events.append(&mut self.events);
        if !due {
            // Without a checkpoint nothing shows whether a report without an answer was recorded.
            let events = std::mem::take(&mut events);
            self.writer.append(self.is_busy(), events).await?;
        }
        let command = Command::Work { fence: self.writer.fence, report };
        let (store, id, head) = (&self.engine.store, &self.scheduler.progress.run.id, self.head);
        let tries = AtomicU32::new(0);
        let write = || async {
            // A connection that was lost during the commit may have recorded it.
            if checkpoint.is_some()
                && tries.fetch_add(1, Ordering::Relaxed) > 0
                && let Some(run) = store.run(id).await?
                && run.fence == self.writer.fence
                && run.head > head
            {
                return Ok(run);
            }
            let (command, finished, checkpoint) = (command.clone(), finished.clone(), checkpoint.clone());
            store.report(id, command, finished, checkpoint, intents.clone(), events.clone()).await
        };
        let run = self.writer.persist(!finished.is_empty() || self.is_busy(), write).await?;
        self.head = run.head;
        (self.state, self.paused) = (run.state, run.paused);
        Ok(run)
    }

    fn start(&mut self, scheduled: ScheduledCall, backoff: Duration) {
        let run = &self.scheduler.progress.run;
        let call = Call {
            step: scheduled.path.clone(),
            capability: scheduled.capability.clone(),
            inputs: scheduled.inputs.clone(),
            target: run.target.clone(),
            idempotency_key: idempotency_key(&run.id.0, &scheduled.path),
            trace_id: run.trace_id.clone(),
            timeout: scheduled.timeout,
            conditions: self.conditions.clone(),
            files: self.files.clone(),
            file_digests: run.options.file_digests.clone(),
            pins: run.options.pins.clone(),
            log: self.writer.logs.sink(&scheduled.path),
        };
        let stops = CancelTokens { call: self.writer.cancel.child_token(), pause: CancellationToken::new() };
        let now = self.now();
        self.scheduler.start(&scheduled.path);
        self.calls.start(self.engine.caller.clone(), call, scheduled, backoff, stops, now);
    }

    /// Waits for the next call to end, writing output lines meanwhile.
    async fn listen(&mut self) -> Result<(), ExecutionStop> {
        loop {
            let lines = self.writer.lines_due();
            tokio::select! {
                biased;
                () = self.writer.cancel.cancelled() => return Err(ExecutionStop::Canceled),
                ended = self.calls.tasks.join_next(), if !self.calls.is_empty() => {
                    let mut ended = ended;
                    while let Some(carried) = ended {
                        // Panics are caught where the call is made; nothing else ends a task early.
                        match carried {
                            Ok(carried) => self.ended(carried),
                            Err(error) => tracing::error!("a call was lost: {error}"),
                        }
                        ended = self.calls.tasks.try_join_next();
                    }
                    return Ok(());
                }
                () = lines, if !self.calls.is_empty() => self.writer.flush().await?,
                else => return Ok(()),
            }
        }
    }

    /// Handles the end of a call: schedules a retry or applies the result.
    fn ended(&mut self, AttemptResult { path, result }: AttemptResult) {
        let Some(running) = self.calls.remove(&path) else { return };
        let result = result.and_then(check_size);
        if let Err(error) = &result
            && self.failure.is_none()
            && running.tries_again(error)
        {
            self.events.push(self.calls.retry(running, error));
            return;
        }
        let RunningCall { call, started_ms, .. } = running;
        let now = self.now();
        match self.scheduler.progress.apply_reply(&call, result, started_ms, now) {
            Ok(applied) => {
                self.needs_checkpoint = true;
                self.records.push(applied.record);
                self.events.extend(applied.events);
            }
            Err(failure) => match &self.failure {
                Some(first) => self.stopped.push(failure.after(first)),
                None => self.failure = Some(failure),
            },
        }
    }

    /// Winds down after a failed step: nothing new starts, repeatable calls are stopped, and others are waited for.
    fn wind_down(&mut self, failed: &str) {
        for RunningCall { call, started_ms, .. } in self.calls.drop_retries() {
            let why = format!("not retried because {failed} failed");
            let error = CallError::new(CallFailure::Canceled, why);
            self.stopped.push(call.failure(error, started_ms));
        }
        for OpenedStep { path: step, .. } in std::mem::take(&mut self.opened) {
            self.needs_checkpoint |= self.scheduler.progress.reset(&step);
        }
        self.calls.wind_down();
    }
}
