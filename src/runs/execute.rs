//! Executes a claimed run: calls what is next, records each end together with the beginnings that follow in
//! one transaction, and leaves the run completed, failed, waiting, or to the worker that has it now.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use fail::fail_point;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call::{CallError, Caller};
use super::executor::Session;
use super::gates::Ask;
use super::grants::{BEFORE_FIRST_STEP, Grants};
use super::plan::Plan;
use super::progress::Progress;
use super::prompts::about_change;
use super::scheduled_call::{ScheduledCall, gate_digest};
use super::scheduler::Expansion;
use super::worker::Execute;
use skills_model::{ApprovalReason, Gate, RunState, TransitionError};
use skills_skill::contract::{Capability, Conformance};
use skills_store::{Checkpoint, Claimed, Clock, RunId, RunOptions, RunRecord, StepIntent, Store, StoreError};

/// Events read at once.
const PAGE: usize = 1000;

/// How the execution of a claimed run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// All steps are complete.
    Completed(RunRecord),
    /// A step failed permanently.
    Failed(RunRecord),
    /// It waits for a person or a signal, or is paused; the lease is released.
    Waiting(RunRecord),
    /// It was requested to stop: calls were stopped, nothing was recorded, the lease still stands.
    Stopped,
    /// Another worker has the run, or it was canceled: calls were stopped, nothing was recorded.
    LeaseLost(TransitionError),
    /// The store does not take reports: calls were stopped. The run is claimed again when the lease runs out.
    StoreFailed(StoreError),
}

/// Executes runs.
#[derive(Clone)]
pub struct Engine {
    pub(super) store: Arc<dyn Store>,
    pub(super) caller: Arc<dyn Caller>,
    pub(super) now: Clock,
    pub(super) conformance: Conformance,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

/// What a run that waits for a person would do next, as everything is now: its digest is another one than
/// that of the question that waits where what would execute the step was edited since.
#[derive(Debug, Clone, PartialEq)]
pub struct AtGate {
    /// The step, or the part of it (`each[2]`).
    pub step: String,
    /// What would be called; none for an approval before the first step.
    pub capability: Option<Arc<Capability>>,
    /// What it would be given; for a `foreach` the list of all its calls.
    pub inputs: Value,
    /// Binds a decision to this.
    pub inputs_digest: String,
    /// Why a person is asked.
    pub why: ApprovalReason,
}

impl Engine {
    /// Executes what is claimed from this store through this caller.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, caller: Arc<dyn Caller>) -> Self {
        let now = || jiff::Timestamp::now().as_millisecond();
        Self { store, caller, now: Arc::new(now), conformance: Conformance::default() }
    }

    /// With another clock for the times of steps.
    #[must_use]
    pub fn with_clock(mut self, now: Clock) -> Self {
        self.now = now;
        self
    }

    /// With another conformance for runs that state none.
    #[must_use]
    pub fn with_conformance(mut self, conformance: Conformance) -> Self {
        self.conformance = conformance;
        self
    }

    /// Drives a claimed run until it completes, fails, waits, is notified to stop or belongs to another
    /// worker. When this returns, no call of it is in progress. Dropping the future stops everything and
    /// records nothing.
    pub async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Executed {
        let (fence, head) = (claimed.fence, claimed.checkpoint.number);
        let run = claimed.run.id.clone();
        match self.restore(claimed).await {
            Ok(Ok(progress)) => Session::new(self, progress, fence, head, cancel).drive().await,
            Ok(Err(message)) => Session::refuse(self, &run, fence, message).await,
            Err(error) => Executed::StoreFailed(error),
        }
    }

    /// The state of a run, from what is kept of it.
    async fn restore(&self, claimed: Claimed) -> Result<Result<Progress, String>, StoreError> {
        let Claimed { run, contract, checkpoint, unfinished, .. } = claimed;
        self.progress(run, &contract, &checkpoint, unfinished).await
    }

    async fn progress(
        &self,
        run: RunRecord,
        contract: &Value,
        checkpoint: &Checkpoint,
        unfinished: Vec<StepIntent>,
    ) -> Result<Result<Progress, String>, StoreError> {
        let plan = match Plan::from_value(contract, &run.contract_digest) {
            Ok(plan) => Arc::new(plan),
            Err(message) => return Ok(Err(message)),
        };
        let steps = if Progress::needs_parts(checkpoint, &unfinished) {
            self.store.steps(&run.id).await?
        } else {
            Vec::new()
        };
        let mut grants = Grants::default();
        // While it waits again, the decision before is not on the record any longer.
        if run.decided.is_some() || run.gate.is_some() {
            let mut after = 0;
            loop {
                let events = self.store.events(Some(&run.id), after, PAGE).await?;
                grants.follow(&events);
                let Some(last) = events.last() else { break };
                after = last.number;
            }
        }
        let mut restored = Progress::restore(plan, run, checkpoint, unfinished, steps, grants);
        if let Ok(progress) = &mut restored {
            progress.changed = self.changed(progress).await;
        }
        Ok(restored)
    }

    /// Capabilities of a run that something else would execute now than when it was launched.
    pub(super) async fn changed(&self, progress: &Progress) -> BTreeMap<String, ApprovalReason> {
        let options = &progress.run.options;
        if options.pins.is_empty() {
            return BTreeMap::new();
        }
        let (conformance, _) = settings(progress, self.conformance);
        let (caller, plan) = (Arc::clone(&self.caller), Arc::clone(&progress.plan));
        let (unsandboxed, pins) = (options.unsandboxed, options.pins.clone());
        // Looks at every file of the bundles that the run can call.
        let looked = tokio::task::spawn_blocking(move || {
            let all = plan.capabilities.iter();
            let changed = |capability| caller.changed(capability, conformance, unsandboxed, &pins);
            all.filter_map(|(id, capability)| Some((id.clone(), changed(capability)?))).collect()
        });
        match looked.await {
            Ok(changed) => changed,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The program ends: nothing begins any longer.
            Err(_) => BTreeMap::new(),
        }
    }

    /// Whether everything that a claimed run may call can be called here, through what was there at its launch. What
    /// looks otherwise may be an old look at the skills.
    pub async fn is_as_launched(&self, claimed: &Claimed) -> bool {
        // A plan that cannot be read is refused in its own words.
        let Ok(plan) = Plan::from_value(&claimed.contract, &claimed.run.contract_digest) else { return true };
        let (engine, run) = (self.clone(), claimed.run.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let options = &run.options;
            let conformance = stated(options, engine.conformance);
            plan.capabilities.values().all(|capability| {
                let changed = || {
                    let caller = &engine.caller;
                    caller.changed(capability, conformance, options.unsandboxed, &options.pins).is_some()
                };
                engine.obstacle(&run, capability).is_none() && (options.pins.is_empty() || !changed())
            })
        });
        looked.await.unwrap_or(false)
    }

    /// What a run that waits for a person would do next at the step where it waits; `None` for any other run, and where
    /// it would ask about nothing there.
    ///
    /// # Errors
    /// The store's.
    pub async fn at_gate(&self, run: &RunId) -> Result<Option<AtGate>, StoreError> {
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
            let begun = self.store.intents(run).await?;
            begun.into_iter().filter(|intent| intent.step == step && !intent.repeatable).collect()
        } else {
            Vec::new()
        };
        let restored = self.progress(record, &contract, &checkpoint, lost).await?;
        let Ok(mut progress) = restored else { return Ok(None) };
        let mut asks: Vec<Ask> = before_first_step(&progress).into_iter().collect();
        let mut next = Expansion::default();
        // A step that cannot continue is behind the question as it does when the run continues.
        let _ = progress.expand(&super::scheduler::Running::new(), (self.now)(), &mut next);
        asks.append(&mut next.asks);
        let mut found = None;
        for ask in asks.into_iter().filter(|ask| ask.step == step) {
            if ask.digest == inputs_digest || found.is_none() {
                found = Some(ask);
            }
        }
        let found = match (found, next.leaves.iter().find(|leaf| leaf.path == step)) {
            (None, Some(leaf)) => self.restored_to(&progress, &why, leaf).await,
            (found, _) => found,
        };
        Ok(found.map(|ask| AtGate {
            step: ask.step,
            capability: ask.capability,
            inputs: ask.inputs,
            inputs_digest: ask.digest,
            why: ask.why,
        }))
    }

    /// The question about a call that was asked about because of a change, when that was taken back meanwhile.
    async fn restored_to(
        &self,
        progress: &Progress,
        why: &ApprovalReason,
        leaf: &ScheduledCall,
    ) -> Option<Ask> {
        let ApprovalReason::Changed { now: edited, .. } = why else { return None };
        let (caller, capability) = (Arc::clone(&self.caller), Arc::clone(&leaf.capability));
        let pins = tokio::task::spawn_blocking(move || caller.pins(&capability.id)).await.ok()?;
        let now: BTreeMap<String, String> =
            pins.into_iter().filter(|(binding, _)| edited.contains_key(binding)).collect();
        let launched = &progress.run.options.pins;
        if now.is_empty() || now.iter().any(|(binding, pin)| launched.get(binding) != Some(pin)) {
            return None;
        }
        let what = "the change since the launch was reverted".to_owned();
        let why = ApprovalReason::Changed { what, now, call: None, besides: None };
        let inputs = Value::Object(leaf.inputs.clone());
        let question = progress.grants.question(&leaf.path, &leaf.digest);
        Some(about_change(&leaf.path, &leaf.capability, &inputs, &question, &why, None))
    }

    /// Why nothing can carry a capability of a run out now; none where something can.
    #[must_use]
    pub fn obstacle(&self, run: &RunRecord, capability: &Capability) -> Option<CallError> {
        let options = &run.options;
        self.caller.obstacle(capability, stated(options, self.conformance), options.unsandboxed)
    }
}

/// The question that a policy puts before the first step, until it is answered.
pub(super) fn before_first_step(progress: &Progress) -> Option<Ask> {
    let rule = progress.plan.approval.clone()?;
    let inputs = progress.run.inputs.clone();
    let digest = gate_digest(BEFORE_FIRST_STEP, "", &inputs);
    (!progress.grants.allow(BEFORE_FIRST_STEP, &digest)).then(|| Ask {
        step: BEFORE_FIRST_STEP.to_owned(),
        capability: None,
        inputs,
        digest,
        why: ApprovalReason::Policy { rule },
    })
}

/// The conformance that a run demands.
fn stated(options: &RunOptions, default: Conformance) -> Conformance {
    options.conformance.as_deref().and_then(|word| word.parse().ok()).unwrap_or(default)
}

/// The conformance and files of a run's calls.
pub(super) fn settings(
    progress: &Progress,
    default: Conformance,
) -> (Conformance, std::collections::BTreeMap<String, PathBuf>) {
    let options = &progress.run.options;
    let conformance = stated(options, default);
    let files = options.files.iter().map(|(name, path)| (name.clone(), PathBuf::from(path))).collect();
    (conformance, files)
}

#[async_trait]
impl Execute for Engine {
    async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Result<(), StoreError> {
        match Self::execute(self, claimed, cancel).await {
            Executed::StoreFailed(error) => Err(error),
            Executed::LeaseLost(refusal) => Err(refusal.into()),
            Executed::Completed(_) | Executed::Failed(_) | Executed::Waiting(_) | Executed::Stopped => Ok(()),
        }
    }
}
