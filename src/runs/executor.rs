//! The execution of one run by one worker: the calls in progress, results that are not yet recorded, and the fencing
//! token under which everything is written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::apply_result::check_size;
use super::attempt::{AttemptResult, CancelTokens, run_attempt};
use super::call::{Call, CallError, CallFailure};
use super::canonical::idempotency_key;
use super::execute::{Engine, ExecutionEnd, before_first_step, settings};
use super::failure::Failure;
use super::log::{LogQueue, PAUSE};
use super::schedule::PARALLEL;
use super::scheduled_call::ScheduledCall;
use super::scheduler::{Expansion, Running, Scheduler};
use super::termination::{approval_gate, end_for_error, stuck};
use skills_model::{Command, Gate, RunState, TransitionError, WorkerReport};
use skills_skill::contract::Conformance;
use skills_store::{
    EventKind, NewEvent, RunRecord, StepIntent, StepRecord, StepStatus, StoreError, Unavailability,
};

/// How long stopped calls may take to end before they are dropped.
const GRACE: Duration = Duration::from_secs(10);

/// A call in progress.
struct RunningCall {
    call: ScheduledCall,
    stops: CancelTokens,
    started_ms: i64,
}

/// Time between attempts to write to a store that does not accept writes.
const STORE_RETRY: Duration = Duration::from_millis(500);

/// State of one execution.
pub(super) struct RunExecution<'e> {
    engine: &'e Engine,
    pub(super) scheduler: Scheduler,
    fence: u64,
    head: u64,
    state: RunState,
    /// Whether the run was paused, so that nothing new starts.
    paused: bool,
    cancel: CancellationToken,
    conformance: Conformance,
    files: BTreeMap<String, PathBuf>,
    calls: JoinSet<AttemptResult>,
    underway: HashMap<String, RunningCall>,
    logs: LogQueue,
    /// Output lines that the store did not accept yet: those of the current batch. Later ones wait in `logs`, because
    /// the store may have recorded this batch without an answer.
    unwritten: Vec<NewEvent>,
    /// Number of the current batch of events.
    batch: u32,
    flushed: Instant,
    /// Retries to be started, with their backoff.
    again: Vec<(ScheduledCall, Duration)>,
    /// Steps of several calls to be opened: path and digest.
    pub(super) opened: Vec<(String, String)>,
    /// Whether state other than the records changed that a checkpoint must contain.
    pub(super) moved: bool,
    /// Results that are not yet recorded.
    records: Vec<StepRecord>,
    pub(super) events: Vec<NewEvent>,
    /// The failure that ends the run once nothing is in progress.
    failure: Option<Failure>,
    /// Steps that were stopped because of that failure.
    pub(super) stopped: Vec<Failure>,
}

/// Returns whether the same write can succeed once the store accepts writes again.
fn is_temporary(error: &StoreError) -> bool {
    matches!(
        error.unavailability(),
        Some(
            Unavailability::Io
                | Unavailability::Busy
                | Unavailability::DiskFull
                | Unavailability::ReadOnly
                | Unavailability::Missing
        )
    )
}

/// Why an execution stops before its run has ended.
pub(super) enum ExecutionStop {
    Canceled,
    Store(StoreError),
}

impl From<StoreError> for ExecutionStop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<'e> RunExecution<'e> {
    pub fn new(
        engine: &'e Engine,
        scheduler: Scheduler,
        fence: u64,
        head: u64,
        cancel: CancellationToken,
    ) -> Self {
        let (conformance, files) = settings(&scheduler.progress, engine.conformance);
        Self {
            engine,
            state: scheduler.progress.run.state,
            paused: scheduler.progress.run.paused,
            scheduler,
            fence,
            head,
            cancel,
            conformance,
            files,
            calls: JoinSet::new(),
            underway: HashMap::new(),
            logs: LogQueue::default(),
            unwritten: Vec::new(),
            batch: 0,
            flushed: Instant::now(),
            again: Vec::new(),
            opened: Vec::new(),
            moved: false,
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
                self.stop_calls().await;
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
                if self.underway.is_empty() {
                    return self.fail(failure).await;
                }
                self.failure = Some(failure);
                next = Expansion::default();
            } else if self.paused
                && !next.leaves.is_empty()
                && self.underway.is_empty()
                && self.again.is_empty()
            {
                return self.pause().await;
            } else if self.underway.is_empty() && next.leaves.is_empty() && self.again.is_empty() {
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
            if !self.underway.is_empty() {
                self.listen().await?;
            }
        }
    }

    pub(super) fn now(&self) -> i64 {
        (self.engine.now)()
    }

    fn running(&self) -> Running {
        self.underway.keys().cloned().collect()
    }

    /// Advances everything that needs no call.
    async fn expand(&mut self) -> Expansion {
        let mut next = Expansion::default();
        if self.failure.is_some() {
            return next;
        }
        let running = self.running();
        for path in self.scheduler.progress.superseded_branches(&running) {
            if let Some(beaten) = self.underway.get(&path).filter(|call| call.call.is_repeatable()) {
                beaten.stops.call.cancel();
            }
        }
        self.scheduler.approvals.changed = self.engine.changed(&self.scheduler.progress).await;
        let now = self.now();
        if let Err(failure) = self.scheduler.expand(&running, now, &mut next) {
            self.failure = Some(failure);
        }
        self.moved |= !next.records.is_empty() || !next.opened.is_empty();
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
            let found = self.persist(false, || store.buffered_signal(run, name)).await?;
            let Some(payload) = found else { continue };
            let now = self.now();
            match self.scheduler.progress.settle_signal(path, payload, now) {
                Ok(record) => {
                    self.moved = true;
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
        let free = PARALLEL.saturating_sub(self.underway.len());
        let again = std::mem::take(&mut self.again);
        let first = next.leaves.into_iter().take(free).map(|call| (call, Duration::ZERO));
        let starting: Vec<(ScheduledCall, Duration)> = again.into_iter().chain(first).collect();
        let mut intents = self.opened_intents();
        for (call, _) in &starting {
            intents.push(self.intent(&call.path, call.attempt, call.digest.clone(), call.is_repeatable()));
            self.events.extend(call.notes.iter().cloned());
        }
        let begun = self.commit(intents).await?;
        for (call, backoff) in starting {
            // Calls that a pause holds back are scheduled again later. A retry belongs to a step in progress.
            if begun.contains(&call.path) || self.underway.contains_key(&call.path) {
                self.start(call, backoff);
            }
        }
        Ok(())
    }

    pub(super) fn opened_intents(&mut self) -> Vec<StepIntent> {
        let opened = std::mem::take(&mut self.opened);
        opened.into_iter().map(|(step, digest)| self.intent(&step, 1, digest, true)).collect()
    }

    fn intent(&self, step: &str, attempt: u32, inputs_digest: String, repeatable: bool) -> StepIntent {
        let idempotency_key = idempotency_key(&self.scheduler.progress.run.id.0, step);
        StepIntent { step: step.to_owned(), attempt, inputs_digest, idempotency_key, repeatable }
    }

    /// Records everything that is due in one transaction, if anything is. Returns the steps that may start.
    async fn commit(&mut self, intents: Vec<StepIntent>) -> Result<HashSet<String>, ExecutionStop> {
        if self.records.is_empty() && (intents.len() < 2 || self.state == RunState::Replaying) {
            // Nothing ended: the state of the run and its head stay unchanged.
            let events: Vec<NewEvent> = std::mem::take(&mut self.events);
            self.append(false, events).await?;
            let (store, run) = (&self.engine.store, &self.scheduler.progress.run.id);
            let mut begun = HashSet::new();
            for intent in intents {
                let step = intent.step.clone();
                match self.persist(false, || store.record_intent(run, self.fence, intent.clone())).await {
                    Ok(()) => {
                        begun.insert(step);
                    }
                    Err(ExecutionStop::Store(StoreError::Refused(TransitionError::Paused))) => {
                        self.paused = true;
                    }
                    Err(stop) => return Err(stop),
                }
            }
            return Ok(begun);
        }
        let begun = intents.iter().map(|intent| intent.step.clone()).collect();
        self.report(WorkerReport::Checkpoint, Vec::new(), intents).await?;
        Ok(if self.paused { HashSet::new() } else { begun })
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
        let moved = due && std::mem::take(&mut self.moved);
        let checkpoint = moved.then(|| self.scheduler.progress.checkpoint(self.head + 1, self.now()));
        let unwritten = std::mem::take(&mut self.unwritten);
        if !unwritten.is_empty() {
            self.append_batch(due, unwritten).await?;
        }
        let mut events = self.logs.drain();
        self.flushed = Instant::now();
        events.append(&mut self.events);
        if !due {
            // Without a checkpoint nothing shows whether a report without an answer was recorded.
            let events = std::mem::take(&mut events);
            self.append(false, events).await?;
        }
        let command = Command::Work { fence: self.fence, report };
        let (store, id, head) = (&self.engine.store, &self.scheduler.progress.run.id, self.head);
        let tries = AtomicU32::new(0);
        let write = || async {
            // A connection that was lost during the commit may have recorded it.
            if checkpoint.is_some()
                && tries.fetch_add(1, Ordering::Relaxed) > 0
                && let Some(run) = store.run(id).await?
                && run.fence == self.fence
                && run.head > head
            {
                return Ok(run);
            }
            let (command, finished, checkpoint) = (command.clone(), finished.clone(), checkpoint.clone());
            store.report(id, command, finished, checkpoint, intents.clone(), events.clone()).await
        };
        let run = self.persist(!finished.is_empty(), write).await?;
        self.head = run.head;
        (self.state, self.paused) = (run.state, run.paused);
        Ok(run)
    }

    /// Writes, and tries again for as long as the lease lasts if the store does not accept writes and ending the
    /// execution would lose a call in progress or, with `results`, what one returned. The execution is canceled when
    /// the lease expires.
    async fn persist<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        results: bool,
        write: impl Fn() -> F,
    ) -> Result<T, ExecutionStop> {
        let mut failing = false;
        loop {
            let error = match write().await {
                Ok(written) => return Ok(written),
                Err(error) if is_temporary(&error) && (results || !self.underway.is_empty()) => error,
                Err(error) => return Err(error.into()),
            };
            if !std::mem::replace(&mut failing, true) {
                tracing::warn!("writing run {}, trying again: {error}", self.scheduler.progress.run.id);
            }
            tokio::select! {
                () = tokio::time::sleep(STORE_RETRY) => {}
                () = self.cancel.cancelled() => return Err(error.into()),
            }
        }
    }

    /// Appends events in a new batch, after the current one.
    async fn append(&mut self, results: bool, events: Vec<NewEvent>) -> Result<(), ExecutionStop> {
        if events.is_empty() {
            return Ok(());
        }
        let unwritten = std::mem::take(&mut self.unwritten);
        if !unwritten.is_empty() {
            self.append_batch(results, unwritten).await?;
        }
        self.batch += 1;
        self.append_batch(results, events).await
    }

    /// Appends the events of the current batch, which the store records once.
    async fn append_batch(&self, results: bool, events: Vec<NewEvent>) -> Result<(), ExecutionStop> {
        let (store, run) = (&self.engine.store, &self.scheduler.progress.run.id);
        self.persist(results, || store.append(run, self.fence, self.batch, events.clone())).await
    }

    /// Writes the output lines so far. Only a stale fencing token ends the execution: its steps continue without a
    /// store.
    async fn flush(&mut self) -> Result<(), ExecutionStop> {
        if self.unwritten.is_empty() {
            self.unwritten = self.logs.drain();
            self.batch += 1;
        }
        let (store, run) = (&self.engine.store, &self.scheduler.progress.run.id);
        let written = store.append(run, self.fence, self.batch, self.unwritten.clone()).await;
        self.flushed = Instant::now();
        match written {
            Err(error @ StoreError::Refused(_)) => return Err(error.into()),
            Err(error) if is_temporary(&error) => {
                tracing::warn!(
                    "writing output of run {}, trying again: {error}",
                    self.scheduler.progress.run.id
                );
                self.flushed += STORE_RETRY;
                return Ok(());
            }
            Err(error) => {
                tracing::error!("output of run {} was not written: {error}", self.scheduler.progress.run.id)
            }
            Ok(()) => {}
        }
        self.unwritten.clear();
        Ok(())
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
            started_by: run.started_by.clone(),
            timeout: scheduled.timeout,
            conformance: self.conformance,
            unsandboxed: run.options.unsandboxed,
            files: self.files.clone(),
            pins: run.options.pins.clone(),
            log: self.logs.sink(&scheduled.path),
        };
        let stops = CancelTokens { call: self.cancel.child_token(), pause: CancellationToken::new() };
        let now = self.now();
        let started_ms = self.underway.get(&scheduled.path).map_or(now, |before| before.started_ms);
        self.scheduler.start(&scheduled.path);
        let caller = self.engine.caller.clone();
        let carried = run_attempt(
            caller,
            call,
            scheduled.path.clone(),
            scheduled.obstacle.clone(),
            backoff,
            stops.clone(),
        );
        self.calls.spawn(carried);
        self.underway.insert(scheduled.path.clone(), RunningCall { call: scheduled, stops, started_ms });
    }

    /// Waits for the next call to end, writing output lines meanwhile.
    async fn listen(&mut self) -> Result<(), ExecutionStop> {
        loop {
            let due = self.flushed + PAUSE;
            let (logs, unwritten) = (self.logs.clone(), !self.unwritten.is_empty());
            let lines = async {
                if !unwritten {
                    logs.arrive().await;
                }
                sleep_until(due).await;
            };
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(ExecutionStop::Canceled),
                ended = self.calls.join_next(), if !self.underway.is_empty() => {
                    let mut ended = ended;
                    while let Some(carried) = ended {
                        // Panics are caught where the call is made; nothing else ends a task early.
                        match carried {
                            Ok(carried) => self.ended(carried),
                            Err(error) => tracing::error!("a call was lost: {error}"),
                        }
                        ended = self.calls.try_join_next();
                    }
                    return Ok(());
                }
                () = lines, if !self.underway.is_empty() => self.flush().await?,
                else => return Ok(()),
            }
        }
    }

    /// Handles the end of a call: schedules a retry or applies the result.
    fn ended(&mut self, AttemptResult { path, result }: AttemptResult) {
        let Some(RunningCall { call, stops, started_ms }) = self.underway.remove(&path) else { return };
        let result = result.and_then(check_size);
        if let Err(error) = &result
            && self.failure.is_none()
            && !stops.call.is_cancelled()
            && call.tries_again(error)
        {
            let backoff = call.backoff();
            self.events.push(NewEvent {
                kind: EventKind::StepRetrying,
                step: Some(path.clone()),
                data: json!({"attempt": call.attempt, "of": call.retry.map(|retry| retry.max_attempts),
                             "code": error.code, "message": error.public_message(),
                             "detail": error.public.as_ref().map(|_| error.message.as_str()),
                             "backoff_ms": u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX)}),
            });
            let next = ScheduledCall { attempt: call.attempt + 1, notes: Vec::new(), ..call.clone() };
            self.again.push((next, backoff));
            // It stays among the calls in progress.
            self.underway.insert(path, RunningCall { call, stops, started_ms });
            return;
        }
        let now = self.now();
        match self.scheduler.progress.apply_reply(&call, result, started_ms, now) {
            Ok(applied) => {
                self.moved = true;
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
        for (scheduled, _) in std::mem::take(&mut self.again) {
            if let Some(RunningCall { call: tried, started_ms, .. }) = self.underway.remove(&scheduled.path) {
                let why = format!("not retried, because {failed} failed");
                let error = CallError::new(CallFailure::Canceled, why);
                self.stopped.push(tried.failure(error, started_ms));
            }
        }
        for (step, _) in std::mem::take(&mut self.opened) {
            self.moved |= self.scheduler.progress.reset(&step);
        }
        for call in self.underway.values() {
            call.stops.pause.cancel();
            if call.call.is_repeatable() {
                call.stops.call.cancel();
            }
        }
    }

    /// Stops every call; used when recording is no longer allowed.
    async fn stop_calls(&mut self) {
        for call in self.underway.values() {
            call.stops.call.cancel();
        }
        let ended = async { while self.calls.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::warn!(
                "calls of run {} did not end after cancellation; dropped",
                self.scheduler.progress.run.id
            );
        }
        self.calls.shutdown().await;
        self.underway.clear();
    }
}
