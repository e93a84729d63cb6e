//! Determines what a run does next: opens steps that are due, skips those whose condition is false, and continues those
//! that consist of several calls. Reads and updates only [`Progress`]; nothing here waits.
//!
//! The control flow is the public registry's (its `docs/STEP_CONTROL_FLOW.md`): condition, then router, then gates,
//! then foreach, while or scatter, with retry around each call.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::CallFailure;
use super::expand::StepCalls;
use super::failure::Failure;
use super::gates::{ApprovalRequest, Gates};
use super::loops::no_items;
use super::mapping::{inputs_of, taken, write_outputs};
use super::progress::{CompositeKind, OpenStep, Progress, join, owner_of};
use super::schedule;
use super::scheduled_call::{Role, ScheduledCall, gate_digest};
use super::scope::StepScope;
use skills_skill::contract::expression::{Expr, ExpressionError};
use skills_skill::contract::{Capability, MergeStrategy, Step, StepAction};
use skills_store::{AuditMode, EventKind, NewEvent, StepRecord, StepStatus};

/// Paths of calls that are in progress.
pub(super) type Running = HashSet<String>;

/// What a run does next.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// Calls that may start.
    pub leaves: Vec<ScheduledCall>,
    /// Questions that need a decision.
    pub asks: Vec<ApprovalRequest>,
    /// Steps that wait for a signal: path and name.
    pub signals: Vec<(String, String)>,
    /// Steps of several calls that start: path and digest of what they will run.
    pub opened: Vec<(String, String)>,
    /// Steps that ended without a call.
    pub records: Vec<StepRecord>,
    /// Other events.
    pub events: Vec<NewEvent>,
}

/// The step to be advanced, with its position and the current time.
#[derive(Clone, Copy)]
pub(super) struct Turn<'t> {
    pub frame: &'t str,
    pub path: &'t str,
    pub step: &'t Step,
    pub running: &'t Running,
    pub now_ms: i64,
}

impl Turn<'_> {
    pub fn failure(&self, code: CallFailure, message: impl Into<String>) -> Failure {
        Failure::before(self.path, code, message)
    }
}

impl Progress {
    /// Advances everything that needs no call, and returns the calls, questions and signals that are next.
    ///
    /// # Errors
    /// Returns the failure of the first step that cannot continue. What ended before it is in `out`.
    pub fn expand(&mut self, running: &Running, now_ms: i64, out: &mut Expansion) -> Result<(), Failure> {
        loop {
            out.leaves.clear();
            out.asks.clear();
            out.signals.clear();
            let mut changed = false;
            let frames: Vec<String> = self.frames.keys().cloned().collect();
            for frame in frames {
                let Some(contract) = self.contract(&frame).filter(|_| self.frames.contains_key(&frame))
                else {
                    continue;
                };
                for step in schedule::open(&contract.steps, |id| self.is_through(&join(&frame, id))) {
                    let path = join(&frame, &step.id);
                    let turn = Turn { frame: &frame, path: &path, step, running, now_ms };
                    changed |= self.advance(turn, out)?;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Advances one step that is due; returns whether the progress changed.
    fn advance(&mut self, turn: Turn<'_>, out: &mut Expansion) -> Result<bool, Failure> {
        if turn.running.contains(turn.path) {
            return Ok(false);
        }
        if !self.has_begun(turn) && !self.condition_holds(turn)? {
            self.skip(turn, json!({"reason": "its condition is false"}), out);
            return Ok(true);
        }
        let open = self.active.get(turn.path).filter(|active| active.open).map(|active| active.kind.clone());
        match (&turn.step.action, open) {
            (StepAction::WaitForSignal(name), _) => {
                out.signals.push((turn.path.to_owned(), name.clone()));
                Ok(false)
            }
            (StepAction::Skill(id), None) => self.open_skill(turn, id, out),
            (StepAction::Skill(id), Some(_)) => self.close_skill(turn, id, out),
            (StepAction::Capability(_), None) => self.open_calls(turn, out),
            (StepAction::Capability(_), Some(CompositeKind::Foreach { capability, calls })) => {
                self.next_item(turn, &capability, &calls, out)
            }
            (StepAction::Capability(_), Some(CompositeKind::While { capability })) => {
                self.next_round(turn, &capability, out)
            }
            (StepAction::Capability(_), Some(CompositeKind::Scatter { calls })) => {
                self.next_branches(turn, &calls, out)
            }
            (StepAction::Capability(_), Some(CompositeKind::Skill)) => Err(turn.failure(
                CallFailure::InvalidConfiguration,
                "internal error: it is executed as a \
                        skill, but is not one",
            )),
        }
    }

    /// Returns whether any part of a step was executed, so that its condition has been evaluated.
    fn has_begun(&self, turn: Turn<'_>) -> bool {
        self.active.contains_key(turn.path)
            || self.unfinished.contains_key(turn.path)
            || self.parts.keys().chain(turn.running).any(|part| owner_of(part) == turn.path)
    }

    /// Parses and evaluates an expression in a nesting path.
    fn ask<T>(
        &self,
        turn: Turn<'_>,
        (what, text): (&str, &str),
        ask: impl Fn(&Expr, &StepScope<'_>) -> Result<T, ExpressionError>,
    ) -> Result<T, Failure> {
        let failed = |reason: String| {
            turn.failure(CallFailure::InvalidRequest, format!("{what} {text:?} has no value: {reason}"))
        };
        let locals = Map::new();
        let scope = self
            .scope(turn.frame, &locals)
            .ok_or_else(|| failed("its contract is not being executed".into()))?;
        Expr::parse(text).and_then(|expr| ask(&expr, &scope)).map_err(|error| failed(error.to_string()))
    }

    /// Evaluates an expression to its value.
    pub(super) fn evaluate(&self, turn: Turn<'_>, what: &str, text: &str) -> Result<Value, Failure> {
        self.ask(turn, (what, text), |expr, scope| expr.value(scope))
    }

    pub(super) fn is_true(&self, turn: Turn<'_>, what: &str, text: &str) -> Result<bool, Failure> {
        self.ask(turn, (what, text), |expr, scope| expr.is_truthy(scope))
    }

    fn condition_holds(&self, turn: Turn<'_>) -> Result<bool, Failure> {
        turn.step.condition.as_deref().map_or(Ok(true), |text| self.is_true(turn, "condition", text))
    }

    /// Records a step as skipped.
    fn skip(&mut self, turn: Turn<'_>, result: Value, out: &mut Expansion) {
        out.records.push(self.instant(turn.path, StepStatus::Skipped, result, turn.now_ms, turn.now_ms));
        self.close(turn.path);
    }

    /// Builds a record of something that made no call.
    pub(super) fn instant(
        &self,
        path: &str,
        status: StepStatus,
        result: Value,
        started_ms: i64,
        ended_ms: i64,
    ) -> StepRecord {
        let keep = self.run.options.audit_mode != AuditMode::Off || status != StepStatus::Completed;
        StepRecord {
            step: path.to_owned(),
            status,
            inputs: Value::Null,
            result: if keep { result } else { Value::Null },
            binding: None,
            isolation: None,
            attempts: 1,
            started_ms,
            ended_ms,
        }
    }

    /// Finishes a step of several calls with its outputs.
    pub(super) fn finish(
        &mut self,
        turn: Turn<'_>,
        produced: &Map<String, Value>,
        write: bool,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        if write {
            self.write(turn, turn.step.merge_strategy, produced)?;
        }
        let started = self.active.get(turn.path).map_or(turn.now_ms, |active| active.started_ms);
        let result = Value::Object(produced.clone());
        out.records.push(self.instant(turn.path, StepStatus::Completed, result, started, turn.now_ms));
        self.close(turn.path);
        Ok(true)
    }

    /// Writes a step's outputs to their targets, all or none.
    pub(super) fn write(
        &mut self,
        turn: Turn<'_>,
        strategy: MergeStrategy,
        produced: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let Some(space) = self.frames.get_mut(turn.frame) else { return Ok(()) };
        let mut written = space.clone();
        let step = turn.step;
        let result = if step.output.is_empty() && step.scatter.is_some() {
            // A scatter without targets writes everything under its own name.
            let all =
                std::collections::BTreeMap::from([(step.id.clone(), vec!["vars".into(), step.id.clone()])]);
            let produced = Map::from_iter([(step.id.clone(), Value::Object(produced.clone()))]);
            write_outputs(&all, strategy, &produced, &mut written)
        } else {
            write_outputs(&step.output, strategy, produced, &mut written)
        };
        result.map_err(|reason| turn.failure(CallFailure::InvalidConfiguration, reason))?;
        *space = written;
        Ok(())
    }

    /// Records that a step of several calls starts, or continues after a failure.
    pub(super) fn open(
        &mut self,
        turn: Turn<'_>,
        kind: CompositeKind,
        digest: String,
        passed: Option<String>,
        out: &mut Expansion,
    ) {
        let started_ms = self.active.get(turn.path).map_or(turn.now_ms, |active| active.started_ms);
        self.active.insert(turn.path.to_owned(), OpenStep { kind, open: true, passed, started_ms });
        self.unfinished.remove(turn.path);
        self.grants.use_up(turn.path);
        out.opened.push((turn.path.to_owned(), digest));
    }

    pub(super) fn inputs(
        &self,
        turn: Turn<'_>,
        locals: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        let Some(scope) = self.scope(turn.frame, locals) else { return Ok(Map::new()) };
        inputs_of(&turn.step.input, &scope)
            .map_err(|reason| turn.failure(CallFailure::InvalidRequest, reason))
    }

    pub(super) fn targets_are_free(&self, turn: Turn<'_>) -> Result<(), Failure> {
        match self.frames.get(turn.frame).and_then(|space| taken(turn.step, space)) {
            Some(reason) => Err(turn.failure(CallFailure::InvalidConfiguration, reason)),
            None => Ok(()),
        }
    }

    /// Opens a step that calls capabilities: selects the capability, checks gates and approvals, then starts.
    fn open_calls(&mut self, turn: Turn<'_>, out: &mut Expansion) -> Result<bool, Failure> {
        if !self.active.contains_key(turn.path) {
            self.targets_are_free(turn)?;
        }
        let work = self.step_calls(turn)?;
        if let StepCalls::Foreach { calls, capability } = &work
            && calls.is_empty()
        {
            return self.finish(turn, &no_items(turn, capability), true, out);
        }
        let work_digest = work.digest(turn.path);
        if self.reopen(turn, &work, work_digest.as_deref()) {
            return Ok(true);
        }
        let mut warnings = Vec::new();
        for (capability, inputs) in work.gated(|index| self.is_through(&part_path(turn.path, index))) {
            match self.gates(turn.path, &capability, &inputs, turn.running)? {
                Gates::Call(call) => {
                    return self.prompt(*call, None, turn, out);
                }
                Gates::Running => return Ok(false),
                Gates::Degraded(event) => {
                    out.events.push(event);
                    self.skip(turn, json!({"reason": "rejected by a gate"}), out);
                    return Ok(true);
                }
                Gates::Passed(more) => warnings.extend(more),
            }
        }
        match work {
            StepCalls::Single { capability, inputs } => {
                let mut call = self.call(turn.path.to_owned(), Role::Call, &capability, inputs)?;
                call.notes = warnings;
                let human = self.approval_reason(turn.path, &capability);
                self.prompt(call, human, turn, out)
            }
            StepCalls::Foreach { capability, calls } => {
                let left: Vec<Value> = calls
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| !self.is_through(&part_path(turn.path, *index)))
                    .map(|(_, inputs)| Value::Object(inputs.clone()))
                    .collect();
                let inputs = Value::Array(left);
                let digest = gate_digest(turn.path, &capability.id, &inputs);
                let human = self.approval_reason(turn.path, &capability);
                if let Some(ask) = self.question(turn.path, &capability, &inputs, &digest, human) {
                    out.asks.push(ask);
                    return Ok(false);
                }
                out.events.extend(warnings);
                self.open(
                    turn,
                    CompositeKind::Foreach { capability: capability.id.clone(), calls },
                    digest,
                    work_digest,
                    out,
                );
                Ok(true)
            }
            StepCalls::While { capability, inputs } => {
                let digest = gate_digest(turn.path, &capability.id, &Value::Object(inputs));
                out.events.extend(warnings);
                self.open(
                    turn,
                    CompositeKind::While { capability: capability.id.clone() },
                    digest,
                    None,
                    out,
                );
                Ok(true)
            }
            StepCalls::Scatter(branches) => {
                let digest = work_digest.clone().unwrap_or_default();
                let begun =
                    self.unfinished.get(turn.path).is_some_and(|intent| intent.inputs_digest == digest);
                for (index, (capability, inputs)) in branches.iter().enumerate() {
                    let path = part_path(turn.path, index);
                    let is_done = begun || self.is_through(&path);
                    if is_done {
                        continue;
                    }
                    let human = self.approval_reason(turn.path, capability);
                    let inputs = Value::Object(inputs.clone());
                    let digest = gate_digest(&path, &capability.id, &inputs);
                    if let Some(ask) = self.question(&path, capability, &inputs, &digest, human) {
                        out.asks.push(ask);
                        return Ok(false);
                    }
                }
                let calls: Vec<_> = branches.into_iter().map(|(c, inputs)| (c.id.clone(), inputs)).collect();
                out.events.extend(warnings);
                self.open(turn, CompositeKind::Scatter { calls }, digest, work_digest, out);
                Ok(true)
            }
        }
    }

    pub(super) fn pinned(&self, turn: Turn<'_>, capability: &str) -> Result<Arc<Capability>, Failure> {
        self.plan.capability(capability).cloned().ok_or_else(|| {
            let message = format!("the capability {capability} is not in the plan of this run");
            turn.failure(CallFailure::InvalidConfiguration, message)
        })
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
