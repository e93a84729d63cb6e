//! The steps of a run for monitors: in contract order, with nested steps and iterations below their parent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::summary;
use crate::{StepState, StepView};
use skills_model::{Gate, RunState};
use skills_runs::{Artifact, Plan, is_repeatable};
use skills_skill::contract::{Contract, Step, StepAction};
use skills_store::{EventKind, RunEvent, RunRecord, StepRecord, StepStatus};

/// Maximum depth of steps, which is that of plans.
const MAX_STEP_DEPTH: u32 = 32;
/// Maximum number of capabilities that are named at each iteration of a step.
const MAX_NAMED_CAPABILITIES: usize = 16;

#[derive(Default)]
struct StepHistory<'a> {
    record: Option<&'a StepRecord>,
    started_ms: Option<i64>,
    attempts: u32,
    /// Number of starts, including those that a lost worker left without a result.
    begun: u32,
    /// Whether it ended successfully, so that a further start is not another attempt.
    ended: bool,
    /// Whether it started and has no recorded result.
    open: bool,
    artifacts: Vec<Artifact>,
    /// The capability that its last start called, if the step names several.
    capability: Option<&'a str>,
}

/// The data from which views are built.
struct ViewBuilder<'a> {
    run: &'a RunRecord,
    plan: &'a Plan,
    histories: BTreeMap<&'a str, StepHistory<'a>>,
    views: Vec<StepView>,
}

/// Returns the views of all steps of a run.
pub(super) fn views(
    run: &RunRecord,
    plan: &Plan,
    records: &[StepRecord],
    events: &[RunEvent],
) -> Vec<StepView> {
    let mut histories: BTreeMap<&str, StepHistory<'_>> = BTreeMap::new();
    for record in records {
        histories.entry(&record.step).or_default().record = Some(record);
    }
    for event in events {
        let Some(step) = event.event.step.as_deref() else { continue };
        let entry = histories.entry(step).or_default();
        match &event.event.kind {
            EventKind::StepStarted => {
                let attempt = event.event.data["attempt"].as_u64().unwrap_or(1);
                entry.begun = if std::mem::take(&mut entry.ended) { 1 } else { entry.begun + 1 };
                entry.attempts = u32::try_from(attempt).unwrap_or(u32::MAX);
                entry.open = true;
                entry.capability = event.event.data["capability"].as_str();
                if attempt <= 1 || entry.started_ms.is_none() {
                    entry.started_ms = Some(event.at_ms);
                }
            }
            EventKind::StepCompleted | EventKind::StepSkipped => (entry.ended, entry.open) = (true, false),
            // A failure without an attempt contains no information about an earlier attempt whose outcome is unknown.
            EventKind::StepFailed => entry.open &= event.event.data["attempts"] == 0,
            EventKind::ArtifactKept => {
                let data = &event.event.data;
                let stored_artifact = serde_json::from_value::<Artifact>(data.clone());
                let artifact = stored_artifact.or_else(|_| serde_json::from_value(data["artifact"].clone()));
                entry.artifacts.extend(artifact.ok().filter(|a| !entry.artifacts.contains(a)));
            }
            _ => {}
        }
    }
    let mut maker = ViewBuilder { run, plan, histories, views: Vec::new() };
    maker.contract(&plan.contract, "", 0);
    maker.views
}

impl ViewBuilder<'_> {
    fn contract(&mut self, contract: &Contract, frame: &str, depth: u32) {
        for step in &contract.steps {
            let path = if frame.is_empty() { step.id.clone() } else { format!("{frame}/{}", step.id) };
            self.step(step, &path, depth);
        }
    }

    /// Adds a step and everything below it. Without a record, its state is derived from theirs.
    fn step(&mut self, step: &Step, path: &str, depth: u32) {
        let at = self.views.len();
        self.views.push(self.view((step, path), depth, self.uses(step, path)));
        if depth >= MAX_STEP_DEPTH {
            return;
        }
        for (part, what) in self.parts(step, path) {
            let view = self.view((step, &part), depth + 1, what);
            self.views.push(view);
        }
        if let StepAction::Skill(_) = step.action {
            let plan = self.plan;
            if let Some(nested) = plan.contract_at(path) {
                self.contract(nested, path, depth + 1);
            }
        }
        let below: Vec<StepState> = self.views[at + 1..].iter().map(|view| view.state).collect();
        let started = self.views[at + 1..].iter().filter_map(|view| view.started_ms).min();
        let view = &mut self.views[at];
        if view.status.is_none() && view.state == StepState::Pending {
            view.state = from_below(&below, self.run.state);
        }
        view.started_ms = view.started_ms.or(started);
    }

    /// Returns the iterations, branches and gates of a step that were started.
    fn parts(&self, step: &Step, path: &str) -> Vec<(String, String)> {
        let mut gates = Vec::new();
        let mut turns: BTreeSet<(u64, String)> = BTreeSet::new();
        let has_record = self.histories.get(path).is_some_and(|history| history.record.is_some());
        for (other, history) in &self.histories {
            let Some(rest) = other.strip_prefix(path) else { continue };
            if let Some(gate) = rest.strip_prefix("~gate:") {
                // It checked inputs that were corrected since.
                if has_record && history.record.is_none() && !history.open {
                    continue;
                }
                // Without the digest of what it checked.
                let gate = gate.split_once('#').map_or(gate, |(gate, _)| gate);
                gates.push(((*other).to_owned(), format!("gate {gate}")));
            } else if let Some(inside) = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']'))
                && !inside.contains(['[', '/', '~'])
            {
                let place = inside.parse().unwrap_or(u64::MAX);
                turns.insert((place, (*other).to_owned()));
            }
        }
        let what = |part: &str| {
            let inside = part.rsplit_once('[').map_or("", |(_, end)| end.trim_end_matches(']'));
            match (&step.scatter, inside.parse::<usize>()) {
                (Some(_), Err(_)) => inside.to_owned(),
                (Some(scatter), Ok(branch)) => scatter.capabilities.get(branch).cloned().unwrap_or_default(),
                (None, _) => self.uses(step, part),
            }
        };
        gates.into_iter().chain(turns.into_iter().map(|(_, part)| (part.clone(), what(&part)))).collect()
    }

    /// Returns what a step, or a part of it, uses: `skill ID`, `signal NAME`, or the id of the capability that it called;
    /// if that is not recorded, all that it may call.
    fn uses(&self, step: &Step, path: &str) -> String {
        match &step.action {
            StepAction::Capability(_) => {
                let called = step.called_capabilities();
                match self.histories.get(path).and_then(|history| history.capability) {
                    Some(capability) => capability.to_owned(),
                    // A step can have thousands of iterations; its own row has all.
                    None if path.ends_with(']') && called.len() > MAX_NAMED_CAPABILITIES => {
                        format!("one of {} capabilities", called.len())
                    }
                    None => called.join(", "),
                }
            }
            StepAction::Skill(id) => format!("skill {id}"),
            StepAction::WaitForSignal(name) => format!("signal {name}"),
        }
    }

    /// Returns the view of a step, or of a part of it.
    fn view(&self, (step, path): (&Step, &str), depth: u32, uses: String) -> StepView {
        let empty = StepHistory::default();
        let history = self.histories.get(path).unwrap_or(&empty);
        let record = history.record;
        let state = self.state(path, history, is_one_call(step) || path.ends_with(']') || path.contains('~'));
        let begun = history.started_ms.filter(|_| state != StepState::Pending);
        let result = record.map(|r| r.result.clone()).filter(|result| !result.is_null());
        let summary = match (record.map(|r| r.status), &result) {
            (Some(StepStatus::Failed), Some(error)) => Some(summary::of_failure(error)),
            (Some(_), Some(result)) => summary::of_result(result),
            (Some(_), None) => {
                let size = |bytes| format!("{} omitted", skills_base::number::byte_size(bytes));
                record.and_then(|record| record.omitted_bytes).map(size)
            }
            (None, _) if state == StepState::Interrupted => Some(self.unseen(step).to_owned()),
            _ => None,
        };
        // It failed without an attempt, after one whose outcome is unknown.
        let unseen = record.is_some_and(|record| record.attempts == 0) && history.open;
        let (seen, started_at) = if unseen { (None, history.started_ms) } else { (record, begun) };
        StepView {
            step: path.to_owned(),
            depth,
            uses,
            state,
            started_ms: seen.map(|r| r.started_ms).or(started_at),
            ended_ms: record.map(|r| r.ended_ms),
            attempts: seen
                .map(|record| record.attempts)
                .or(started_at.map(|_| history.attempts))
                .map_or(0, |attempts| if attempts > 0 { attempts.max(history.begun) } else { 0 }),
            inputs: record.map(|r| r.inputs.clone()).filter(|inputs| !inputs.is_null()),
            result,
            summary,
            binding: record.and_then(|r| r.binding.clone()),
            isolation: record.and_then(|r| r.isolation.as_ref()).map(isolation),
            artifacts: history.artifacts.clone(),
            status: record.map(|r| r.status),
            p95_ms: None,
            omitted_bytes: record.and_then(|record| record.omitted_bytes),
        }
    }

    /// Describes a step that started and has no result.
    fn unseen(&self, step: &Step) -> &'static str {
        let called = step.called_capabilities();
        let is_safe =
            |id: &&str| self.plan.capability(id).is_some_and(|capability| is_repeatable(capability));
        let safe = !called.is_empty() && called.iter().all(is_safe);
        if safe { "interrupted" } else { "outcome unknown" }
    }

    fn state(&self, path: &str, history: &StepHistory<'_>, one_call: bool) -> StepState {
        if let Some(record) = history.record {
            return match record.status {
                StepStatus::Completed => StepState::Completed,
                StepStatus::Skipped => StepState::Skipped,
                StepStatus::Failed => StepState::Failed,
            };
        }
        match &self.run.gate {
            Some(Gate::Human { step, .. }) if step == path => return StepState::WaitingForHuman,
            Some(Gate::Signal { step, .. }) if step == path => return StepState::WaitingForSignal,
            _ => {}
        }
        // Started without a result: in progress while a worker has the run. Before a run waits, calls in progress
        // complete; a step of several calls may wait with it.
        let over = self.run.state.is_terminal() || self.run.state == RunState::Failed;
        if history.started_ms.is_some() && self.run.state.is_active() {
            StepState::Running
        } else if history.open && (one_call || over) {
            StepState::Interrupted
        } else {
            StepState::Pending
        }
    }
}

/// Returns whether a step is a single call.
fn is_one_call(step: &Step) -> bool {
    matches!(step.action, StepAction::Capability(_))
        && step.foreach.is_none()
        && step.repeat.is_none()
        && step.scatter.is_none()
}

fn from_below(below: &[StepState], run: RunState) -> StepState {
    let any = |state: StepState| below.contains(&state);
    if any(StepState::WaitingForHuman) {
        StepState::WaitingForHuman
    } else if any(StepState::WaitingForSignal) {
        StepState::WaitingForSignal
    } else if any(StepState::Running) || (run.is_active() && any(StepState::Completed)) {
        StepState::Running
    } else if any(StepState::Interrupted) {
        StepState::Interrupted
    } else {
        StepState::Pending
    }
}

/// Describes a recorded isolation briefly: the level and the mechanism.
pub(super) fn isolation(recorded: &Value) -> String {
    let text = |key: &str| recorded[key].as_str().filter(|text| !text.is_empty());
    match recorded {
        Value::String(words) => words.clone(),
        _ => text("summary").or_else(|| text("level")).unwrap_or("recorded in an unknown format").to_owned(),
    }
}
