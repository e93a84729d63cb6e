//! Determines what a run does next: opens steps that are due, skips those whose condition is false, and continues those
//! that consist of several calls. Nothing here waits.
//!
//! The control flow is the public registry's (its `docs/STEP_CONTROL_FLOW.md`): condition, then router, then gates,
//! then foreach, while or scatter, with retry around each call.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::approvals::{Admission, ApprovalRequest, Approvals};
use super::call::{CallFailure, Reply};
use super::expand::StepCalls;
use super::failure::Failure;
use super::fields::check_outputs;
use super::gates::{Gates, approval_reason, gates, rejection_of_items};
use super::loops::no_items;
use super::plan::Plan;
use super::progress::{CompositeKind, OpenStep, Progress, join, passed_in};
use super::schedule::{self, PARALLEL};
use super::scheduled_call::{Role, ScheduledCall, gate_digest, sentence};
use skills_base::memory::value_bytes;
use skills_model::ApprovalReason;
use skills_skill::contract::{Capability, Step, StepAction};
use skills_store::{EventKind, NewEvent, StepRecord, StepStatus};

/// Paths of calls that are in progress.
pub(super) type Running = HashSet<String>;

/// A step of several calls that starts.
#[derive(Debug)]
pub(super) struct OpenedStep {
    pub path: String,
    /// Digest of what it will run.
    pub digest: String,
    /// Digest of the bindings that may be called.
    pub bindings: Option<String>,
}

/// What a run does next.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// Calls that may start.
    pub calls: Vec<ScheduledCall>,
    /// Questions that need a decision.
    pub asks: Vec<ApprovalRequest>,
    /// Steps that wait for a signal: path and name.
    pub signals: Vec<(String, String)>,
    /// Steps of several calls that start.
    pub opened: Vec<OpenedStep>,
    /// Steps that ended without a call.
    pub records: Vec<StepRecord>,
    /// Other events.
    pub events: Vec<NewEvent>,
}

/// Maximum memory in bytes of the inputs of a call that requires approval: everything that is executed is shown.
const MAX_REVIEW_BYTES: usize = 4 << 20;

impl Expansion {
    /// Adds a question.
    ///
    /// # Errors
    /// Returns the failure of the step if its inputs are too large to be reviewed.
    fn ask(&mut self, ask: ApprovalRequest) -> Result<(), Failure> {
        if value_bytes(&ask.inputs) <= MAX_REVIEW_BYTES {
            self.asks.push(ask);
            return Ok(());
        }
        let message = format!(
            "it requires approval, and its inputs take more than {} MiB of memory, too much for a review; pass only \
             what it needs, or split the list",
            MAX_REVIEW_BYTES >> 20
        );
        Err(Failure::before(&ask.step, CallFailure::InvalidRequest, message))
    }
}

/// The step to be advanced, with its position and the current time.
#[derive(Clone, Copy)]
pub(super) struct StepContext<'t> {
    pub frame: &'t str,
    pub path: &'t str,
    pub step: &'t Step,
    pub running: &'t Running,
    pub now_ms: i64,
}

impl StepContext<'_> {
    pub fn failure(&self, code: CallFailure, message: impl Into<String>) -> Failure {
        Failure::before(self.path, code, message)
    }

    pub fn capability(&self, plan: &Plan, id: &str) -> Result<Arc<Capability>, Failure> {
        plan.capability(id).cloned().ok_or_else(|| {
            let message = format!("the capability {id} is not in the plan of this run");
            self.failure(CallFailure::InvalidConfiguration, message)
        })
    }
}

/// A step whose gates are being called.
#[derive(Debug)]
struct PreparedStep {
    /// The version of the namespaces from which the inputs are.
    version: u64,
    calls: StepCalls,
    /// Digest of the calls, if there are several.
    digest: Option<String>,
    /// Number of calls, from the first one, for which all gates were called.
    gated: usize,
}

/// What the gates of a step's calls have answered.
#[derive(Debug, Default)]
struct GateAnswers {
    /// Gates to be called.
    calls: Vec<ScheduledCall>,
    /// Number of calls of the step whose gates are in progress.
    running: usize,
    /// Why the step is skipped, if it is.
    degraded: Option<NewEvent>,
    warnings: Vec<NewEvent>,
    /// Why calls require approval, by index.
    rejections: BTreeMap<usize, ApprovalReason>,
    /// Number of calls, from the first one, for which all gates were called.
    gated: usize,
}

/// Schedules the calls of a run.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub progress: Progress,
    pub approvals: Approvals,
    /// Steps whose gates are being called, so that their inputs are not evaluated again after each of them.
    prepared: BTreeMap<String, PreparedStep>,
}

impl Scheduler {
    pub fn new(progress: Progress, approvals: Approvals) -> Self {
        Self { progress, approvals, prepared: BTreeMap::new() }
    }

    /// Advances everything that needs no call, and returns the calls, questions and signals that are next.
    ///
    /// # Errors
    /// Returns the failure of the first step that cannot continue. What ended before it is in `out`.
    pub fn expand(&mut self, running: &Running, now_ms: i64, out: &mut Expansion) -> Result<(), Failure> {
        loop {
            out.calls.clear();
            out.asks.clear();
            out.signals.clear();
            let mut changed = false;
            let frames: Vec<String> = self.progress.frames.spaces.keys().cloned().collect();
            for frame in frames {
                let progress = &self.progress;
                if !progress.frames.spaces.contains_key(&frame) {
                    continue;
                }
                let Some(contract) = progress.plan.contract_at(&frame).cloned() else { continue };
                let is_complete = |id: &str| progress.completed.contains(&join(&frame, id));
                for step in schedule::open(&contract.steps, is_complete) {
                    let path = join(&frame, &step.id);
                    let context = StepContext { frame: &frame, path: &path, step, running, now_ms };
                    changed |= self.advance(context, out)?;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Advances one step that is due; returns whether the progress changed.
    fn advance(&mut self, context: StepContext<'_>, out: &mut Expansion) -> Result<bool, Failure> {
        if context.running.contains(context.path) {
            return Ok(false);
        }
        if !self.progress.has_begun(context) {
            if !self.progress.frames.condition_holds(context)? {
                self.progress.skip(context, json!({"reason": "its condition is false"}), out);
                return Ok(true);
            }
            if let Some(active) = self.progress.active.get_mut(context.path) {
                active.corrected = false;
            }
        }
        let active = self.progress.active.get(context.path).filter(|active| active.open);
        let open = active.map(|active| active.kind.clone());
        match (&context.step.action, open) {
            (StepAction::WaitForSignal(name), _) => {
                out.signals.push((context.path.to_owned(), name.clone()));
                Ok(false)
            }
            (StepAction::Skill(id), None) => self.open_skill(context, id, out),
            (StepAction::Skill(id), Some(_)) => self.close_skill(context, id, out),
            (StepAction::Capability(_), None) => self.open_calls(context, out),
            (StepAction::Capability(_), Some(CompositeKind::Foreach { capability, calls })) => {
                self.next_item(context, &capability, &calls, out)
            }
            (StepAction::Capability(_), Some(CompositeKind::While { capability })) => {
                self.next_round(context, &capability, out)
            }
            (StepAction::Capability(_), Some(CompositeKind::Scatter { calls })) => {
                self.next_branches(context, &calls, out)
            }
            (StepAction::Capability(_), Some(CompositeKind::Skill)) => Err(context.failure(
                CallFailure::InvalidConfiguration,
                "internal error: it is executed as a \
                        skill, but is not one",
            )),
        }
    }

    /// Records that a step of several calls starts, or continues after a failure.
    pub(super) fn open(
        &mut self,
        context: StepContext<'_>,
        kind: CompositeKind,
        digest: String,
        passed: Option<String>,
        bindings: Option<String>,
        out: &mut Expansion,
    ) {
        let active = &mut self.progress.active;
        let started_ms = active.get(context.path).map_or(context.now_ms, |active| active.started_ms);
        let passed = passed.map(|calls| passed_in(&self.progress.run.id, &calls, bindings.as_deref()));
        active.insert(
            context.path.to_owned(),
            OpenStep { kind, open: true, passed, started_ms, corrected: false },
        );
        self.start(context.path);
        out.opened.push(OpenedStep { path: context.path.to_owned(), digest, bindings });
    }

    /// Opens a step that calls capabilities: selects the capability, checks gates and approvals, then starts.
    fn open_calls(&mut self, context: StepContext<'_>, out: &mut Expansion) -> Result<bool, Failure> {
        let progress = &mut self.progress;
        if !progress.active.contains_key(context.path) {
            progress.frames.targets_are_free(context)?;
        }
        let gate_paths = format!("{}~gate:", context.path);
        let calling = context.running.iter().filter(|path| path.starts_with(&gate_paths)).count();
        if calling > PARALLEL / 2 {
            // Each look at the gates is at all of them.
            return Ok(false);
        }
        let PreparedStep { version, calls: work, digest: work_digest, gated } = self.prepare(context)?;
        let progress = &mut self.progress;
        if let StepCalls::Foreach { calls, capability } = &work
            && calls.is_empty()
        {
            return progress.finish(context, &no_items(context, capability), true, out);
        }
        let bindings = self.approvals.bindings_of(work.capabilities());
        if progress.reopen(context.path, &work, work_digest.as_deref(), bindings.as_deref()) {
            return Ok(true);
        }
        let mut answers = self.gate_answers(context, &work, gated)?;
        let is_pending = |answers: &GateAnswers| !answers.calls.is_empty() || answers.running > 0;
        if gated > 0 && !is_pending(&answers) && answers.degraded.is_none() {
            answers = self.gate_answers(context, &work, 0)?;
        }
        if is_pending(&answers) {
            let prepared = PreparedStep { version, calls: work, digest: work_digest, gated: answers.gated };
            self.prepared.insert(context.path.to_owned(), prepared);
            for call in answers.calls {
                self.prompt(call, None, context, out)?;
            }
            return Ok(false);
        }
        if let Some(event) = answers.degraded {
            if calling > 0 {
                return Ok(false);
            }
            out.events.push(event);
            self.progress.skip(context, json!({"reason": "rejected by a gate"}), out);
            return Ok(true);
        }
        let GateAnswers { warnings, rejections, .. } = answers;
        let is_complete = |index| self.progress.completed.contains(&part_path(context.path, index));
        let human = |index: usize, capability: &Capability| {
            approval_reason(rejections.get(&index).cloned(), capability)
        };
        let (kind, digest) = match work {
            StepCalls::Single { capability, inputs } => {
                let (plan, path) = (&self.progress.plan, context.path.to_owned());
                let mut call = ScheduledCall::new(plan, path, Role::Call, &capability, inputs);
                call.notes = warnings;
                let human = human(0, &capability);
                return self.prompt(call, human, context, out);
            }
            StepCalls::Foreach { capability, calls } => {
                let left: Vec<Value> = calls
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| !is_complete(*index))
                    .map(|(_, inputs)| Value::Object(inputs.clone()))
                    .collect();
                let inputs = Value::Array(left);
                let digest = gate_digest(context.path, &capability.id, &inputs);
                let recorded = self.approvals.reason_at(context.path);
                let rejected = rejection_of_items(context.path, &rejections, recorded);
                let human = approval_reason(rejected, &capability);
                let lost = self.progress.unfinished.get(context.path);
                if let Some(ask) =
                    self.approvals.question(lost, context.path, &capability, &inputs, &digest, human)
                {
                    out.ask(ask)?;
                    return Ok(false);
                }
                (CompositeKind::Foreach { capability: capability.id.clone(), calls }, digest)
            }
            StepCalls::While { capability, inputs } => {
                let digest = gate_digest(context.path, &capability.id, &Value::Object(inputs));
                (CompositeKind::While { capability: capability.id.clone() }, digest)
            }
            StepCalls::Scatter(branches) => {
                let digest = work_digest.clone().unwrap_or_default();
                let unfinished = &self.progress.unfinished;
                let begun = unfinished.get(context.path).is_some_and(|intent| {
                    let capabilities = branches.iter().map(|(capability, _)| capability.id.as_str());
                    intent.inputs_digest == digest && self.approvals.has_same_bindings(intent, capabilities)
                });
                for (index, (capability, inputs)) in branches.iter().enumerate() {
                    if begun || is_complete(index) {
                        continue;
                    }
                    let path = part_path(context.path, index);
                    let human = human(index, capability);
                    let inputs = Value::Object(inputs.clone());
                    let digest = gate_digest(&path, &capability.id, &inputs);
                    let lost = unfinished.get(&path);
                    if let Some(ask) =
                        self.approvals.question(lost, &path, capability, &inputs, &digest, human)
                    {
                        out.ask(ask)?;
                        return Ok(false);
                    }
                }
                let calls = branches.into_iter().map(|(c, inputs)| (c.id.clone(), inputs)).collect();
                (CompositeKind::Scatter { calls: Arc::new(calls) }, digest)
            }
        };
        out.events.extend(warnings);
        self.open(context, kind, digest, work_digest, bindings, out);
        Ok(true)
    }

    /// Returns the calls of a step with what is known about them.
    fn prepare(&mut self, context: StepContext<'_>) -> Result<PreparedStep, Failure> {
        let Progress { plan, frames, completed, .. } = &self.progress;
        let version = frames.version;
        if let Some(prepared) = self.prepared.remove(context.path).filter(|step| step.version == version) {
            return Ok(prepared);
        }
        let calls = StepCalls::of(context, plan, frames, completed)?;
        Ok(PreparedStep { version, digest: calls.digest(context.path), calls, gated: 0 })
    }

    /// Returns what the gates of a step have answered, without those of the first calls, whose gates were called.
    ///
    /// # Errors
    /// Returns a failure of the step if a gate blocks it.
    fn gate_answers(
        &self,
        context: StepContext<'_>,
        work: &StepCalls,
        skipped: usize,
    ) -> Result<GateAnswers, Failure> {
        let mut answers = GateAnswers { gated: skipped, ..GateAnswers::default() };
        let mut known_warnings = HashSet::new();
        let is_complete = |index| self.progress.completed.contains(&part_path(context.path, index));
        for (index, capability, inputs) in work.left(is_complete).into_iter().skip(skipped) {
            let is_pending = !answers.calls.is_empty() || answers.running > 0;
            match gates(context, &self.progress, &self.approvals, capability, inputs) {
                Ok(Gates::Call(call)) => {
                    if answers.calls.iter().all(|known| known.path != call.path) {
                        answers.calls.push(*call);
                    }
                }
                Ok(Gates::Running) => answers.running += 1,
                // An earlier call decides first.
                Err(_) | Ok(Gates::Degraded(_)) if is_pending => break,
                Err(failure) => return Err(failure),
                Ok(Gates::Degraded(event)) => {
                    answers.degraded = Some(event);
                    break;
                }
                Ok(Gates::Passed(more, refused)) => {
                    // One for all items about which the gate says the same.
                    let is_new = |event: &NewEvent| known_warnings.insert(event.data.to_string());
                    answers.warnings.extend(more.into_iter().filter(is_new));
                    answers.rejections.extend(refused.map(|why| (index, why)));
                    answers.gated += usize::from(!is_pending);
                }
            }
            if answers.calls.len() + answers.running >= PARALLEL {
                break;
            }
        }
        Ok(answers)
    }

    /// Schedules a call or the question that precedes it; returns whether the progress changed.
    pub(super) fn prompt(
        &mut self,
        mut call: ScheduledCall,
        human: Option<ApprovalReason>,
        context: StepContext<'_>,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        if context.running.contains(&call.path) {
            return Ok(false);
        }
        let inputs = Value::Object(call.inputs.clone());
        call.bindings = self.approvals.bindings_of([call.capability.id.as_str()]);
        let (lost, approvals) = (self.progress.unfinished.get(&call.path), &self.approvals);
        let question =
            approvals.question(lost, &call.path, &call.capability, &inputs, &call.digest, human.clone());
        if let Some(ask) = question {
            out.ask(ask)?;
            return Ok(false);
        }
        match approvals.admit(lost, &call.path, &call.capability.id, &call.digest, human) {
            Admission::Go(attempt) => {
                call.attempt = attempt;
                out.calls.push(call);
                Ok(false)
            }
            Admission::Ask(why) => {
                let digest = match lost.filter(|intent| !intent.repeatable) {
                    Some(intent) => approvals.lost_question_digest(
                        &call.path,
                        &call.capability.id,
                        &call.digest,
                        intent.attempt,
                    ),
                    None => call.digest,
                };
                let ScheduledCall { path, capability, inputs, .. } = call;
                let (capability, inputs) = (Some(capability), Value::Object(inputs));
                out.ask(ApprovalRequest { step: path, capability, inputs, digest, why })?;
                Ok(false)
            }
            Admission::Happened(outputs) => {
                if let Err(problems) = check_outputs(&call.capability.outputs, &outputs) {
                    let message =
                        format!("the stated result does not match the outputs: {}", sentence(&problems));
                    return Err(Failure::before(&call.path, CallFailure::InvalidRequest, message));
                }
                let reply = Reply { outputs, ..Reply::default() };
                let applied = self.progress.apply_reply(&call, Ok(reply), context.now_ms, context.now_ms)?;
                out.records.push(applied.record);
                out.events.extend(applied.events);
                Ok(true)
            }
            Admission::Skip => {
                let result = json!({"reason": "outcome unknown; skipped by a decision"});
                let (now, skipped) = (context.now_ms, StepStatus::Skipped);
                out.records.push(self.progress.instant(&call.path, skipped, result.clone(), now, now));
                self.progress.close_call(&call, skipped, result);
                Ok(true)
            }
            Admission::Fail => {
                let message = "outcome unknown; failed by a decision";
                let mut failure = Failure::before(&call.path, CallFailure::RuntimeError, message);
                failure.inputs = call.inputs;
                Err(failure)
            }
        }
    }

    /// Marks a call as started: its approval and its earlier attempt are consumed.
    pub fn start(&mut self, path: &str) {
        self.progress.unfinished.remove(path);
        self.approvals.grants.start(path);
    }
}

/// Returns the path of one iteration or branch.
pub(super) fn part_path(step: &str, index: usize) -> String {
    format!("{step}[{index}]")
}

/// Builds a log line of the engine among a step's output.
pub(super) fn engine_log(step: &str, text: impl Into<String>) -> NewEvent {
    NewEvent {
        kind: EventKind::StepLog,
        step: Some(step.to_owned()),
        data: json!({"stream": "engine", "text": text.into()}),
    }
}
