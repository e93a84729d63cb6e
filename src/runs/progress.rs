//! The state of a run during execution: the namespaces of its contracts, completed steps, and steps in progress. It is
//! restored from a checkpoint and saved as one; nothing here waits or writes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::canonical::digest_of;
use super::grants::Grants;
use super::plan::Plan;
use super::scheduler::part_path;
use super::scope::{Namespaces, StepScope};
use skills_model::ApprovalReason;
use skills_skill::contract::{Contract, Step};
use skills_store::{Checkpoint, RunRecord, StepIntent, StepRecord, StepStatus};

/// A step of several calls that is in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenStep {
    /// What it repeats.
    pub kind: CompositeKind,
    /// Whether its gates have passed and its calls are known; after a failure the gates are called again.
    pub open: bool,
    /// Digest of all its calls, as approved by its gates.
    #[serde(default)]
    pub passed: Option<String>,
    /// When it started, in milliseconds since 1970-01-01 UTC.
    pub started_ms: i64,
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
        calls: Vec<Map<String, Value>>,
    },
    /// Repeated while a condition holds.
    While { capability: String },
    /// Several capabilities in parallel, with the inputs of each.
    Scatter {
        #[serde(skip)]
        calls: Vec<(String, Map<String, Value>)>,
    },
    /// Another contract.
    Skill,
}

/// One call of a step of several calls: an iteration, a branch of a scatter, or a gate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SubCall {
    pub status: StepStatus,
    /// Its outputs, or the error.
    pub result: Value,
}

impl SubCall {
    pub fn produced(&self) -> Option<&Map<String, Value>> {
        if self.status == StepStatus::Completed { self.result.as_object() } else { None }
    }
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

/// The state of a run that is executed.
#[derive(Debug)]
pub(super) struct Progress {
    pub plan: Arc<Plan>,
    pub run: RunRecord,
    /// Namespaces by nesting path; the run's own under the empty path.
    pub frames: BTreeMap<String, Namespaces>,
    pub active: BTreeMap<String, OpenStep>,
    /// Everything recorded that need not run again, in order.
    pub done: Vec<String>,
    through: HashSet<String>,
    /// Number of contiguous completed parts of a step at the last call of `leading_parts`.
    leading: HashMap<String, usize>,
    /// Results of the parts of steps that are not complete.
    pub parts: HashMap<String, SubCall>,
    /// Steps that had started when the last worker was lost.
    pub unfinished: BTreeMap<String, StepIntent>,
    pub grants: Grants,
    /// Capabilities that something other than at the launch would execute, and what changed; updated before each turn.
    pub changed: BTreeMap<String, ApprovalReason>,
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
    /// Returns whether continuing from a checkpoint needs the records of parts: a step may be partially complete.
    pub fn needs_parts(checkpoint: &Checkpoint, unfinished: &[StepIntent]) -> bool {
        let through: HashSet<&str> = checkpoint.done.iter().map(String::as_str).collect();
        !unfinished.is_empty()
            || checkpoint.state.get("engine").is_some()
            || checkpoint.done.iter().any(|path| !through.contains(owner_of(path)))
    }

    /// Restores the state from the head checkpoint of a run, and the records of parts if they are needed.
    ///
    /// # Errors
    /// Returns a message if the checkpoint cannot be read.
    pub fn restore(
        plan: Arc<Plan>,
        run: RunRecord,
        checkpoint: &Checkpoint,
        unfinished: Vec<StepIntent>,
        steps: Vec<StepRecord>,
        grants: Grants,
    ) -> Result<Self, String> {
        let unreadable = |error| format!("cannot read checkpoint {}: {error}", checkpoint.number);
        let mut space = Namespaces::deserialize(&checkpoint.state).map_err(unreadable)?;
        space.inputs = run.inputs.as_object().cloned().unwrap_or_default();
        let inner = match checkpoint.state.get("engine") {
            Some(inner) => Inner::deserialize(inner).map_err(unreadable)?,
            None => Inner::default(),
        };
        let mut frames = inner.frames;
        frames.insert(String::new(), space);
        let mut active = inner.active;
        let corrected = inner.inputs != digest_of(&run.inputs);
        for active in active.values_mut() {
            // With corrected inputs, nested skills validate theirs again.
            active.open &= match active.kind {
                CompositeKind::Foreach { .. } | CompositeKind::Scatter { .. } => false,
                CompositeKind::Skill => !corrected,
                CompositeKind::While { .. } => true,
            };
        }
        let mut done = checkpoint.done.clone();
        let mut through: HashSet<String> = done.iter().cloned().collect();
        let mut parts = HashMap::new();
        for StepRecord { step, status, result, .. } in steps {
            let owner = owner_of(&step);
            if owner == step || through.contains(owner) {
                continue;
            }
            // Items and branches are also recorded between two checkpoints, so their records count.
            if through.insert(step.clone()) {
                done.push(step.clone());
            }
            parts.insert(step, SubCall { status, result });
        }
        Ok(Self {
            plan,
            run,
            frames,
            active,
            done,
            through,
            leading: HashMap::new(),
            parts,
            unfinished: unfinished.into_iter().map(|intent| (intent.step.clone(), intent)).collect(),
            grants,
            changed: BTreeMap::new(),
        })
    }

    /// Returns the state as a checkpoint.
    pub fn checkpoint(&self, number: u64, at_ms: i64) -> Checkpoint {
        let mut root = self.frames.get("").cloned().unwrap_or_default();
        root.inputs.clear();
        let mut state = serde_json::to_value(root).unwrap_or_default();
        if !self.active.is_empty() {
            let inner = Inner {
                inputs: digest_of(&self.run.inputs),
                active: self.active.clone(),
                frames: self
                    .frames
                    .iter()
                    .filter(|(frame, _)| !frame.is_empty())
                    .map(|(frame, space)| (frame.clone(), space.clone()))
                    .collect(),
            };
            state["engine"] = json!(inner);
        }
        Checkpoint { number, done: self.done.clone(), state, at_ms }
    }

    /// Returns whether a path is recorded and need not run again.
    pub fn is_through(&self, path: &str) -> bool {
        self.through.contains(path)
    }

    /// Returns the number of contiguous completed parts of a step, from the first one. Continues from the last result,
    /// so that a step of many rounds does not recount all of them before each.
    pub fn leading_parts(&mut self, step: &str) -> usize {
        let mut count = self.leading.get(step).copied().unwrap_or(0);
        while self.through.contains(&part_path(step, count)) {
            count += 1;
        }
        self.leading.insert(step.to_owned(), count);
        count
    }

    /// Marks a path as complete.
    pub fn pass(&mut self, path: &str) {
        if self.through.insert(path.to_owned()) {
            self.done.push(path.to_owned());
        }
    }

    /// Marks a part of a step as complete.
    pub fn pass_part(&mut self, path: &str, part: SubCall) {
        self.pass(path);
        self.parts.insert(path.to_owned(), part);
    }

    /// Ends a step of several calls.
    pub fn close(&mut self, path: &str) {
        self.active.remove(path);
        self.leading.remove(path);
        self.frames.remove(path);
        self.unfinished.remove(path);
        self.parts.retain(|part, _| owner_of(part) != path);
        self.pass(path);
    }

    /// Resets a failed step, so that its gates and failed branches run again when it continues. Returns whether that
    /// changed anything.
    pub fn reset(&mut self, path: &str) -> bool {
        let again: HashSet<String> = self
            .parts
            .iter()
            .filter(|(part, _)| owner_of(part) == path)
            .filter(|(part, outcome)| part.contains('~') || outcome.status == StepStatus::Failed)
            .map(|(part, _)| part.clone())
            .collect();
        let before = self.done.len();
        self.parts.retain(|part, _| !again.contains(part));
        self.done.retain(|part| !again.contains(part));
        self.through.retain(|part| !again.contains(part));
        self.leading.remove(path);
        let open = self.active.get_mut(path).is_some_and(|active| {
            active.passed = None;
            std::mem::take(&mut active.open)
        });
        open || self.done.len() != before
    }

    /// Returns the contract at a nesting path.
    pub fn contract(&self, frame: &str) -> Option<Arc<Contract>> {
        self.plan.contract_at(frame).cloned()
    }

    /// Returns the scope in which a step of a nesting path resolves its references.
    pub fn scope<'a>(&'a self, frame: &str, locals: &'a Map<String, Value>) -> Option<StepScope<'a>> {
        Some(StepScope { space: self.frames.get(frame)?, target: self.run.target.as_ref(), locals })
    }

    /// Returns whether all steps of the run's contract are complete.
    pub fn is_complete(&self) -> bool {
        self.plan.contract.steps.iter().all(|step| self.is_through(&step.id))
    }

    /// Returns the step that a path belongs to, followed by the steps it is nested in, innermost first.
    pub fn lineage(&self, path: &str) -> Vec<String> {
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

    /// Returns the definitions of the steps of [`Self::lineage`].
    pub fn steps_above<'p>(&'p self, path: &str) -> Vec<&'p Step> {
        self.lineage(path).iter().filter_map(|step| self.plan.step_at(step)).collect()
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
