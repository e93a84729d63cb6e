//! Executes a claimed run: makes the calls that are next, records each result together with the intents that follow in
//! one transaction, and leaves the run completed, failed, waiting, or to the worker that now has it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fail::fail_point;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::approvals::{ApprovalRequest, Approvals, about_change};
use super::call::{CallConditions, CallError, Caller, Explanation, PresentBindings};
use super::completed::CompletedPaths;
use super::executor::RunExecution;
use super::grants::Grants;
use super::plan::Plan;
use super::progress::Progress;
use super::scheduled_call::{ScheduledCall, gate_digest};
use super::scheduler::{Expansion, Running, Scheduler};
use super::worker::Execute;
use skills_base::sync::MutexExt as _;
use skills_model::{ApprovalReason, BEFORE_FIRST_STEP, Gate, RunState, TransitionError};
use skills_skill::contract::{Capability, Conformance};
use skills_store::{Checkpoint, Claimed, Clock, RunId, RunRecord, StepIntent, Store, StoreError};

/// Events read per page.
const PAGE: usize = 1000;

/// How the execution of a claimed run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutionEnd {
    Completed(RunRecord),
    /// A step failed permanently.
    Failed(RunRecord),
    /// It waits for approval or a signal, or is paused; the lease is released.
    Waiting(RunRecord),
    /// It was requested to stop: calls were stopped, nothing was recorded, and the lease is still held.
    Stopped,
    /// Another worker has the run, or it was canceled: calls were stopped and nothing was recorded.
    LeaseLost(TransitionError),
    /// The store is not accepting writes: calls were stopped. The run is claimed again when the lease expires.
    StoreFailed(StoreError),
}

/// Executes runs.
#[derive(Clone)]
pub struct Engine {
    pub(super) store: Arc<dyn Store>,
    pub(super) caller: Arc<dyn Caller>,
    pub(super) now: Clock,
    pub(super) conformance: Conformance,
    /// The key of questions of a store that has none yet, and that of the store, once it was read.
    new_question_key: Arc<str>,
    question_key: Arc<OnceCell<Arc<str>>>,
    plans: Arc<Plans>,
}

/// Plans that were restored last, with the contract and the digest of each.
type Plans = Mutex<VecDeque<(Arc<Value>, String, Arc<Plan>)>>;

/// Name of the document with the key of questions.
const QUESTION_KEY: &str = "key:questions";

/// Maximum number of [`Plans`].
const MAX_PLANS: usize = 8;

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

/// What a run that waits for approval would do next, given the current state: its digest differs from that of the
/// pending question if what would execute the step was edited since.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingGate {
    /// The step, or the part of it (`each[2]`).
    pub step: String,
    /// The capability to be called; `None` for an approval before the first step.
    pub capability: Option<Arc<Capability>>,
    /// Its inputs; for a `foreach` the list of the inputs of all calls.
    pub inputs: Value,
    /// Digest to which a decision is bound.
    pub inputs_digest: String,
    /// Why approval is required.
    pub why: ApprovalReason,
}

impl Engine {
    /// Creates an engine that executes claimed runs of `store` through `caller`.
    pub fn new(store: Arc<dyn Store>, caller: Arc<dyn Caller>) -> Self {
        let now = || jiff::Timestamp::now().as_millisecond();
        Self {
            store,
            caller,
            now: Arc::new(now),
            conformance: Conformance::default(),
            new_question_key: Arc::from(""),
            question_key: Arc::default(),
            plans: Arc::default(),
        }
    }

    /// Replaces the clock for the times of steps.
    #[must_use]
    pub fn with_clock(mut self, now: Clock) -> Self {
        self.now = now;
        self
    }

    /// Replaces the conformance level for runs that state none.
    #[must_use]
    pub fn with_conformance(mut self, conformance: Conformance) -> Self {
        self.conformance = conformance;
        self
    }

    /// Sets a random key for a store that has none: the digests of questions cover addresses, which a reader of the
    /// digest must not be able to guess. All processes use the key of the first.
    #[must_use]
    pub fn with_question_key(mut self, key: String) -> Self {
        self.new_question_key = key.into();
        self
    }

    /// Returns the key of questions of the store; empty if none is stored and none can be.
    async fn question_key(&self) -> Arc<str> {
        let new = &self.new_question_key;
        let read = || async {
            loop {
                let found = self.store.documents(QUESTION_KEY).await?;
                let found = found.into_iter().find(|document| document.name == QUESTION_KEY);
                if let Some(key) = found.as_ref().and_then(|document| document.value.as_str()) {
                    return Ok(Arc::from(key));
                }
                if new.is_empty() {
                    return Ok(Arc::from(""));
                }
                match self.store.put_document(QUESTION_KEY, Some(Value::from(&**new)), Some(0)).await {
                    Ok(_) => return Ok(Arc::clone(new)),
                    // Another process was first.
                    Err(StoreError::DocumentConflict { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        };
        self.question_key.get_or_try_init(read).await.map_or_else(|_| Arc::from(""), Arc::clone)
    }

    /// Executes a claimed run until it completes, fails, waits, is requested to stop, or belongs to another worker.
    /// When this returns, none of its calls is in progress. Dropping the future stops everything and records nothing.
    pub async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> ExecutionEnd {
        let (fence, head) = (claimed.fence, claimed.checkpoint.number);
        let run = claimed.run.id.clone();
        match self.restore(claimed).await {
            Ok(Ok(scheduler)) => RunExecution::new(self, scheduler, fence, head, cancel).drive().await,
            Ok(Err(message)) => RunExecution::refuse(self, &run, fence, ("runtime_error", message)).await,
            Err(error) => ExecutionEnd::StoreFailed(error),
        }
    }

    /// Fails a claimed run that may not be executed.
    pub async fn refuse(&self, claimed: &Claimed, code: &str, message: String) -> Result<(), StoreError> {
        ended(RunExecution::refuse(self, &claimed.run.id, claimed.fence, (code, message)).await)
    }

    /// Restores the state of a claimed run from its records.
    async fn restore(&self, claimed: Claimed) -> Result<Result<Scheduler, String>, StoreError> {
        let Claimed { run, contract, checkpoint, unfinished, .. } = claimed;
        match self.plan(&contract, &run.contract_digest) {
            Ok(plan) => self.scheduler(run, plan, &checkpoint, unfinished).await,
            Err(message) => Ok(Err(message)),
        }
    }

    /// Restores the plan of a claimed run. The store returns the same contract for runs that share one.
    pub fn plan(&self, contract: &Arc<Value>, digest: &str) -> Result<Arc<Plan>, String> {
        let lock = || self.plans.locked();
        let is_same =
            |(known, of, _): &&(Arc<Value>, String, _)| Arc::ptr_eq(known, contract) && of == digest;
        if let Some((_, _, plan)) = lock().iter().find(is_same) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(Plan::from_value(contract, digest)?);
        let mut plans = lock();
        plans.truncate(MAX_PLANS - 1);
        plans.push_front((Arc::clone(contract), digest.to_owned(), Arc::clone(&plan)));
        Ok(plan)
    }

    async fn scheduler(
        &self,
        run: RunRecord,
        plan: Arc<Plan>,
        checkpoint: &Checkpoint,
        unfinished: Vec<StepIntent>,
    ) -> Result<Result<Scheduler, String>, StoreError> {
        let steps = if CompletedPaths::needs_parts(checkpoint, &unfinished) {
            self.store.steps(&run.id, u64::MAX).await?
        } else {
            Vec::new()
        };
        let mut grants = Grants::default();
        // While it waits again, the record no longer contains the previous decision, nor after a signal. An approval
        // before the first step applies to the rest of the run.
        if run.decided.is_some() || run.gate.is_some() || plan.approval.is_some() {
            let mut after = 0;
            loop {
                let events = self.store.events(Some(&run.id), after, PAGE).await?;
                grants.follow(&events);
                let Some(last) = events.last() else { break };
                after = last.number;
            }
        }
        let run = Arc::new(run);
        let mut progress = match Progress::restore(plan, Arc::clone(&run), checkpoint, unfinished, steps) {
            Ok(progress) => progress,
            Err(message) => return Ok(Err(message)),
        };
        // What was approved is executed once: calls after an earlier checkpoint require approval again.
        if progress.has_passed() {
            match self.store.checkpoint(&run.id, checkpoint.number + 1).await {
                Ok(_) => progress.forget_passed(),
                Err(StoreError::NoCheckpoint { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let present = self.present_bindings(&progress).await;
        let approvals = Approvals::new(run, grants, present, self.question_key().await);
        Ok(Ok(Scheduler::new(progress, approvals)))
    }

    /// Returns what would execute each capability of a run now.
    pub(super) async fn present_bindings(&self, progress: &Progress) -> BTreeMap<String, PresentBindings> {
        let Some(pins) = progress.run.options.pins.clone() else { return BTreeMap::new() };
        let conditions = self.conditions(&progress.run);
        let (caller, plan) = (Arc::clone(&self.caller), Arc::clone(&progress.plan));
        // Reads every file of the bundles that the run can call.
        let looked = tokio::task::spawn_blocking(move || {
            let present = |capability| caller.present_bindings(capability, &conditions, &pins);
            plan.capabilities.iter().map(|(id, capability)| (id.clone(), present(capability))).collect()
        });
        match looked.await {
            Ok(present) => present,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime is shutting down: no new work starts.
            Err(_) => BTreeMap::new(),
        }
    }

    /// Returns whether everything that a claimed run may call can be called here, unchanged since its launch. If not,
    /// the worker's view of the skills may be outdated.
    pub async fn is_as_launched(&self, claimed: &Claimed) -> bool {
        // An unreadable plan is reported when the run is executed.
        let Ok(plan) = self.plan(&claimed.contract, &claimed.run.contract_digest) else { return true };
        let (engine, run) = (self.clone(), claimed.run.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let (conditions, pins) = (engine.conditions(&run), run.options.pins.as_ref());
            plan.capabilities.values().all(|capability| {
                let is_unchanged =
                    |pins| engine.caller.present_bindings(capability, &conditions, pins).changed.is_none();
                engine.obstacle(&run, capability).is_none() && pins.is_none_or(is_unchanged)
            })
        });
        looked.await.unwrap_or(false)
    }

    /// Returns what a run that waits for approval would do next at the step where it waits; `None` for any other run,
    /// and if the step would not require approval now.
    pub async fn at_gate(&self, run: &RunId) -> Result<Option<PendingGate>, StoreError> {
        let Some(record) = self.store.run(run).await? else { return Err(StoreError::NoRun(run.clone())) };
        fail_point!("gate-after-run");
        let Some(Gate::Human { step, inputs_digest, why, .. }) = record.gate.clone() else { return Ok(None) };
        if record.state != RunState::WaitingForHuman {
            return Ok(None);
        }
        let Some(contract) = self.store.contract(&record.contract_digest).await? else { return Ok(None) };
        let head = record.head;
        let checkpoint = match self.store.checkpoint(run, head).await {
            Err(StoreError::NoCheckpoint { .. }) => return Ok(None),
            checkpoint => checkpoint?,
        };
        let lost: Vec<StepIntent> = if why == ApprovalReason::UnknownOutcome {
            let started = self.store.intents(run).await?;
            started.into_iter().filter(|intent| intent.step == step && !intent.repeatable).collect()
        } else {
            Vec::new()
        };
        let Ok(plan) = Plan::from_value(&contract, &record.contract_digest) else { return Ok(None) };
        let plan = Arc::new(plan);
        let mut found = None;
        // If nothing requires approval here, an approval may have been given for the bindings of this process, while the
        // run waits for one of others.
        for ignores_approvals in [false, true] {
            let restored =
                self.scheduler(record.clone(), Arc::clone(&plan), &checkpoint, lost.clone()).await?;
            let Ok(mut scheduler) = restored else { return Ok(None) };
            if ignores_approvals {
                scheduler.approvals.grants.remove(&step);
            }
            found = self.question_at(&mut scheduler, &step, &inputs_digest, &why).await;
            if found.is_some() {
                break;
            }
        }
        Ok(found.map(|ask| PendingGate {
            step: ask.step,
            capability: ask.capability,
            inputs: ask.inputs,
            inputs_digest: ask.digest,
            why: ask.why,
        }))
    }

    /// Returns what would be asked at a step: the question with the given digest, if it is one of them.
    async fn question_at(
        &self,
        scheduler: &mut Scheduler,
        step: &str,
        inputs_digest: &str,
        why: &ApprovalReason,
    ) -> Option<ApprovalRequest> {
        let mut asks: Vec<ApprovalRequest> = before_first_step(scheduler).into_iter().collect();
        let mut next = Expansion::default();
        // An error of `expand` is ignored here; it fails the run when it continues.
        let _ = scheduler.expand(&Running::new(), (self.now)(), &mut next);
        asks.append(&mut next.asks);
        let mut found = None;
        for ask in asks.into_iter().filter(|ask| ask.step == step) {
            if ask.digest == inputs_digest || found.is_none() {
                found = Some(ask);
            }
        }
        match (found, next.calls.iter().find(|call| call.path == step)) {
            (None, Some(call)) => self.restored_to(&scheduler.approvals, why, call).await,
            (found, _) => found,
        }
    }

    /// Returns the question for a call that required approval because of a change that has been reverted since.
    async fn restored_to(
        &self,
        approvals: &Approvals,
        why: &ApprovalReason,
        scheduled: &ScheduledCall,
    ) -> Option<ApprovalRequest> {
        let ApprovalReason::Changed { now: edited, .. } = why else { return None };
        let (caller, capability) = (Arc::clone(&self.caller), Arc::clone(&scheduled.capability));
        let pins = tokio::task::spawn_blocking(move || caller.pins(&capability.id)).await.ok()?;
        let now: BTreeMap<String, String> =
            pins.into_iter().filter(|(binding, _)| edited.contains_key(binding)).collect();
        let launched = approvals.run.options.pins.as_ref()?;
        if now.is_empty() || now.iter().any(|(binding, pin)| launched.get(binding) != Some(pin)) {
            return None;
        }
        let what = "the change since the launch was reverted".to_owned();
        let why = ApprovalReason::Changed { what, now, call: None, besides: None };
        let inputs = Value::Object(scheduled.inputs.clone());
        let question = approvals.question_digest(
            &scheduled.path,
            Some(&scheduled.capability.id),
            &scheduled.digest,
            launched,
        );
        Some(about_change(&scheduled.path, &scheduled.capability, &inputs, &question, &why, None))
    }

    /// Returns why nothing can execute a capability of a run now; `None` if something can.
    pub fn obstacle(&self, run: &RunRecord, capability: &Capability) -> Option<CallError> {
        self.caller.obstacle(capability, &self.conditions(run))
    }

    /// Explains which bindings would execute a capability of a run now, and why; nothing is called.
    pub fn explain(&self, run: &RunRecord, capability: &Capability) -> Explanation {
        self.caller.explain(capability, &self.conditions(run))
    }

    /// Returns what decides which bindings may execute the calls of a run.
    pub(super) fn conditions(&self, run: &RunRecord) -> CallConditions {
        let ordered_by = run.options.resumed_by.as_ref().unwrap_or(&run.started_by);
        CallConditions {
            ordered_by: Some(ordered_by.clone()),
            ..CallConditions::of_run(&run.options, self.conformance)
        }
    }
}

/// Returns the approval that the policy requires before the first step, unless it was given for the bindings that the
/// steps may call now.
pub(super) fn before_first_step(scheduler: &Scheduler) -> Option<ApprovalRequest> {
    let Scheduler { progress, approvals, .. } = scheduler;
    let rule = progress.plan.approval.clone()?;
    let inputs = progress.run.inputs.clone();
    let call = gate_digest(BEFORE_FIRST_STEP, "", &inputs);
    let why = ApprovalReason::Policy { rule };
    (!approvals.is_allowed(BEFORE_FIRST_STEP, None, &call, &why)).then(|| ApprovalRequest {
        step: BEFORE_FIRST_STEP.to_owned(),
        capability: None,
        inputs,
        digest: approvals.question_digest(BEFORE_FIRST_STEP, None, &call, &BTreeMap::new()),
        why,
    })
}

#[async_trait]
impl Execute for Engine {
    async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Result<(), StoreError> {
        ended(Self::execute(self, claimed, cancel).await)
    }
}

fn ended(end: ExecutionEnd) -> Result<(), StoreError> {
    match end {
        ExecutionEnd::StoreFailed(error) => Err(error),
        ExecutionEnd::LeaseLost(refusal) => Err(refusal.into()),
        ExecutionEnd::Completed(_)
        | ExecutionEnd::Failed(_)
        | ExecutionEnd::Waiting(_)
        | ExecutionEnd::Stopped => Ok(()),
    }
}
