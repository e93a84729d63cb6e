//! The state of a run during execution: the namespaces of its contracts, completed steps, and steps in progress. It is
//! restored from a checkpoint and saved as one; nothing here waits or writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::completed::{CompletedPaths, SubCall};
use super::expand::StepCalls;
use super::failure::Failure;
use super::frames::Frames;
use super::plan::Plan;
use super::scheduled_call::{Role, ScheduledCall};
use super::scheduler::{Expansion, Running, StepContext};
use super::scope::Namespaces;
use skills_base::canonical::digest_of;
use skills_base::memory::value_bytes;
use skills_store::{AuditMode, Checkpoint, RunId, RunRecord, StepIntent, StepRecord, StepStatus};

/// A step of several calls that is in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenStep {
    /// What it repeats.
    pub kind: CompositeKind,
    /// Whether its gates have passed and its calls are known; after a failure the gates are called again.
    pub open: bool,
    /// Digest of this run and of all its calls, as approved by its gates.
    #[serde(default)]
    pub passed: Option<String>,
    /// When it started, in milliseconds since 1970-01-01 UTC.
    pub started_ms: i64,
    /// Whether the inputs of the run were corrected after it started, so that its condition is evaluated again.
    #[serde(skip)]
    pub corrected: bool,
}

/// What a step of several calls repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CompositeKind {
    /// Each item of a list, with the inputs of each call.
    Foreach {
        capability: String,
        /// Recomputed when a run continues, and compared with the digest.
        #[serde(skip)]
        calls: Arc<Vec<Map<String, Value>>>,
    },
    /// Repeated while a condition holds.
    While { capability: String },
    /// Several capabilities in parallel, with the inputs of each.
    Scatter {
        #[serde(skip)]
        calls: Arc<Vec<(String, Map<String, Value>)>>,
    },
    /// Another contract.
    Skill,
}

/// What a checkpoint contains in its field `engine`, in addition to the namespaces.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Inner {
    /// Digest of the run's inputs, to detect corrected ones.
    inputs: String,
    active: BTreeMap<String, OpenStep>,
    frames: BTreeMap<String, Namespaces>,
}

/// Returns the digest of calls for which the gates and approvals of a step passed in a run, with the bindings that could
/// be called. Another run that continues from its checkpoint does not use it.
pub(super) fn passed_in(run: &RunId, calls: &str, bindings: Option<&str>) -> String {
    let mut covered = json!({"run": run, "calls": calls});
    if let Some(bindings) = bindings {
        covered["bindings"] = bindings.into();
    }
    digest_of(&covered)
}

/// The state of a run that is executed.
#[derive(Debug)]
pub(super) struct Progress {
    pub plan: Arc<Plan>,
    pub run: Arc<RunRecord>,
    pub frames: Frames,
    pub active: BTreeMap<String, OpenStep>,
    pub completed: CompletedPaths,
    /// Steps that had started when the last worker was lost.
    pub unfinished: BTreeMap<String, StepIntent>,
    /// Estimated memory of its results in bytes, counted exactly only when it reaches the maximum.
    pub held_bytes: usize,
}

/// Returns the step that a recorded path belongs to: the path itself, unless it is a part.
pub(super) fn owner_of(path: &str) -> &str {
    let path = path.split_once('~').map_or(path, |(owner, _)| owner);
    if path.ends_with(']') { path.rsplit_once('[').map_or(path, |(owner, _)| owner) } else { path }
}

/// Splits a step's path into nesting path and step id.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Joins a nesting path and a step id.
pub(super) fn join(frame: &str, id: &str) -> String {
    if frame.is_empty() { id.to_owned() } else { format!("{frame}/{id}") }
}

impl Progress {
    /// Restores the state from the head checkpoint of a run, and the records of parts if they are needed.
    ///
    /// # Errors
    /// Returns a message if the checkpoint cannot be read.
    pub fn restore(
        plan: Arc<Plan>,
        run: Arc<RunRecord>,
        checkpoint: &Checkpoint,
        unfinished: Vec<StepIntent>,
        steps: Vec<StepRecord>,
    ) -> Result<Self, String> {
        let unreadable = |error| format!("cannot read checkpoint {}: {error}", checkpoint.number);
        let mut space = Namespaces::deserialize(&checkpoint.state).map_err(unreadable)?;
        space.inputs = run.inputs.as_object().cloned().unwrap_or_default();
        let inner = match checkpoint.state.get("engine") {
            Some(inner) => Inner::deserialize(inner).map_err(unreadable)?,
            None => Inner::default(),
        };
        let mut spaces = inner.frames;
        spaces.insert(String::new(), space);
        let mut active = inner.active;
        let corrected = inner.inputs != digest_of(&run.inputs);
        for active in active.values_mut() {
            active.corrected = corrected;
            // With corrected inputs, nested skills validate theirs again.
            active.open &= match active.kind {
                CompositeKind::Foreach { .. } | CompositeKind::Scatter { .. } => false,
                CompositeKind::Skill => !corrected,
                CompositeKind::While { .. } => true,
            };
        }
        let mut progress = Self {
            frames: Frames { spaces, target: run.target.clone(), version: 0 },
            completed: CompletedPaths::restore(checkpoint.done.clone(), steps),
            unfinished: unfinished.into_iter().map(|intent| (intent.step.clone(), intent)).collect(),
            plan,
            run,
            active,
            held_bytes: 0,
        };
        progress.held_bytes = progress.count_held_bytes();
        Ok(progress)
    }

    /// Returns the estimated memory of the results of the run, in bytes.
    pub fn count_held_bytes(&self) -> usize {
        let spaces: usize = self.frames.spaces.values().map(Namespaces::produced_bytes).sum();
        let parts: usize = self.completed.parts.values().map(|part| value_bytes(&part.result)).sum();
        spaces + parts
    }

    pub fn checkpoint(&self, number: u64, at_ms: i64) -> Checkpoint {
        let mut root = self.frames.spaces.get("").cloned().unwrap_or_default();
        root.inputs.clear();
        let mut state = serde_json::to_value(root).unwrap_or_default();
        if !self.active.is_empty() {
            let inner = Inner {
                inputs: digest_of(&self.run.inputs),
                active: self.active.clone(),
                frames: self
                    .frames
                    .spaces
                    .iter()
                    .filter(|(frame, _)| !frame.is_empty())
                    .map(|(frame, space)| (frame.clone(), space.clone()))
                    .collect(),
            };
            state["engine"] = json!(inner);
        }
        Checkpoint { number, done: self.completed.paths().to_vec(), state, at_ms }
    }

    /// Forgets which gates and approvals of open steps have passed, for a run that continues from an earlier checkpoint.
    pub fn forget_passed(&mut self) {
        for active in self.active.values_mut() {
            active.passed = None;
        }
    }

    /// Returns whether gates or approvals of an open step have passed.
    pub fn has_passed(&self) -> bool {
        self.active.values().any(|active| active.passed.is_some())
    }

    /// Returns whether a step has started, so that its condition has been evaluated. After a correction of the inputs it
    /// is evaluated again. Answers of gates and calls that may be repeated do not start a step; a call whose outcome is
    /// unknown does, because a person has to decide about it.
    pub fn has_begun(&self, context: StepContext<'_>) -> bool {
        let is_part = |path: &String| lineage(path).iter().any(|owner| owner == context.path);
        let is_lost = |intent: &StepIntent| !intent.repeatable && is_part(&intent.step);
        self.active.get(context.path).is_some_and(|active| !active.corrected)
            || context.running.iter().any(is_part)
            || self.unfinished.values().any(is_lost)
    }

    /// Reopens a step whose gates had passed before its worker was lost, if what it will run is unchanged.
    pub fn reopen(
        &mut self,
        path: &str,
        work: &StepCalls,
        digest: Option<&str>,
        bindings: Option<&str>,
    ) -> bool {
        let (Some(active), Some(calls)) = (self.active.get_mut(path), digest) else { return false };
        // Earlier versions recorded no bindings.
        let passed = [bindings, None].map(|bindings| passed_in(&self.run.id, calls, bindings));
        if active.passed.as_ref().is_none_or(|digest| !passed.contains(digest)) {
            return false;
        }
        active.kind = match work {
            StepCalls::Foreach { capability, calls } => {
                CompositeKind::Foreach { capability: capability.id.clone(), calls: Arc::clone(calls) }
            }
            StepCalls::Scatter(branches) => CompositeKind::Scatter {
                calls: Arc::new(branches.iter().map(|(c, inputs)| (c.id.clone(), inputs.clone())).collect()),
            },
            StepCalls::Single { .. } | StepCalls::While { .. } => return false,
        };
        active.open = true;
        true
    }

    /// Records a step as skipped.
    pub fn skip(&mut self, context: StepContext<'_>, result: Value, out: &mut Expansion) {
        out.records.push(self.instant(
            context.path,
            StepStatus::Skipped,
            result,
            context.now_ms,
            context.now_ms,
        ));
        self.close(context.path);
    }

    /// Finishes a step of several calls with its outputs.
    pub fn finish(
        &mut self,
        context: StepContext<'_>,
        produced: &Map<String, Value>,
        write: bool,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        if write {
            self.frames.write(context, context.step.merge_strategy, produced)?;
        }
        let started = self.active.get(context.path).map_or(context.now_ms, |active| active.started_ms);
        let result = Value::Object(produced.clone());
        out.records.push(self.instant(context.path, StepStatus::Completed, result, started, context.now_ms));
        self.close(context.path);
        Ok(true)
    }

    /// Ends a step.
    pub fn close(&mut self, path: &str) {
        self.active.remove(path);
        self.frames.close(path);
        self.unfinished.remove(path);
        self.completed.close(path);
    }

    /// Ends a call: of a step, or a part of one.
    pub fn close_call(&mut self, call: &ScheduledCall, status: StepStatus, result: Value) {
        self.unfinished.remove(&call.path);
        if call.role == Role::Call {
            self.close(&call.path);
        } else {
            self.completed.pass_part(&call.path, SubCall { status, result });
        }
    }

    /// Resets a failed step, so that its gates and failed branches run again when it continues. Returns whether that
    /// changed anything.
    pub fn reset(&mut self, path: &str) -> bool {
        let removed = self.completed.reset(path);
        let open = self.active.get_mut(path).is_some_and(|active| {
            active.passed = None;
            std::mem::take(&mut active.open)
        });
        open || removed
    }

    /// Returns whether all steps of the run's contract are complete.
    pub fn is_complete(&self) -> bool {
        self.plan.contract.steps.iter().all(|step| self.completed.contains(&step.id))
    }

    /// Returns the branches in progress whose results are no longer needed, because another one succeeded first.
    pub fn superseded_branches(&self, running: &Running) -> Vec<String> {
        let lost = |path: &&String| {
            let owner = owner_of(path);
            let scatter = self.plan.step_at(owner).and_then(|step| step.scatter.as_ref());
            path.ends_with(']')
                && scatter.is_some_and(|scatter| self.completed.winner(owner, scatter).is_some())
        };
        running.iter().filter(lost).cloned().collect()
    }

    /// Builds a record of something that made no call.
    pub fn instant(
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
            omitted_bytes: None,
        }
    }
}

/// Returns the step that a path belongs to, followed by the steps it is nested in, innermost first.
pub(super) fn lineage(path: &str) -> Vec<String> {
    let mut lineage = Vec::new();
    let mut owner = owner_of(path);
    loop {
        lineage.push(owner.to_owned());
        match split(owner) {
            ("", _) => return lineage,
            (frame, _) => owner = frame,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_belongs_to_its_step() {
        for (path, owner) in [
            ("send", "send"),
            ("each[2]", "each"),
            ("report/render", "report/render"),
            ("report/each[11]", "report/each"),
            ("send~gate:pii.detect", "send"),
            ("report/send~gate:a.b", "report/send"),
        ] {
            assert_eq!(owner_of(path), owner, "{path}");
        }
    }
}
