//! The state of a run while it is executed: the namespaces of its contracts, what is complete, what is in
//! progress. Made from a checkpoint and turned into one; nothing here waits or writes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::canonical::digest_of;
use super::grants::Grants;
use super::plan::Plan;
use super::scheduler::part_path;
use super::scope::{Space, StepScope};
use skills_model::ApprovalReason;
use skills_skill::contract::{Contract, Step};
use skills_store::{Checkpoint, RunRecord, StepIntent, StepRecord, StepStatus};

/// A step of several calls that is in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Active {
    /// What it repeats.
    pub kind: Kind,
    /// Whether its gates were passed and its calls are known; after a failure the gates are asked again.
    pub open: bool,
    /// Digest of all its calls, as its gates let them pass.
    #[serde(default)]
    pub passed: Option<String>,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub started_ms: i64,
}

/// What a step of several calls repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Each item of a list: the inputs of each call.
    Foreach {
        capability: String,
        /// Worked out again when a run continues, and compared with the digest.
        #[serde(skip)]
        calls: Vec<Map<String, Value>>,
    },
    /// While a condition holds.
    While { capability: String },
    /// Several capabilities side by side, with the inputs of each.
    Scatter {
        #[serde(skip)]
        calls: Vec<(String, Map<String, Value>)>,
    },
    /// Another contract.
    Skill,
}

/// One call of a step of several: an iteration, a branch of a scatter, a gate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub status: StepStatus,
    /// What it produced, or the error.
    pub result: Value,
}

impl Part {
    pub fn produced(&self) -> Option<&Map<String, Value>> {
        if self.status == StepStatus::Completed { self.result.as_object() } else { None }
    }
}

/// What a checkpoint keeps beside the namespaces, in its field `engine`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Inner {
    /// Digest of the run's inputs, to notice corrected ones.
    inputs: String,
    active: BTreeMap<String, Active>,
    frames: BTreeMap<String, Space>,
}

/// A run that is executed.
#[derive(Debug)]
pub(super) struct Progress {
    pub plan: Arc<Plan>,
    pub run: RunRecord,
    /// Namespaces by nesting path; the run's own under the empty one.
    pub frames: BTreeMap<String, Space>,
    pub active: BTreeMap<String, Active>,
    /// Everything recorded that need not run again, in order.
    pub done: Vec<String>,
    through: HashSet<String>,
    /// How many of a step's parts were through without a gap when that was asked last.
    leading: HashMap<String, usize>,
    /// Results of the parts of steps that are not through.
    pub parts: HashMap<String, Part>,
    /// Steps that had begun when the last worker was lost.
    pub unfinished: BTreeMap<String, StepIntent>,
    pub grants: Grants,
    /// Capabilities that something else would execute than at the launch, and what changed; looked up again
    /// before each turn.
    pub changed: BTreeMap<String, ApprovalReason>,
}

/// The step that a recorded path belongs to: itself, unless it is a part.
pub(super) fn owner_of(path: &str) -> &str {
    let path = path.split_once('~').map_or(path, |(owner, _)| owner);
    if path.ends_with(']') { path.rsplit_once('[').map_or(path, |(owner, _)| owner) } else { path }
}

/// The nesting path of a step's path, and the step's id in its contract.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A step's path.
pub(super) fn join(frame: &str, id: &str) -> String {
    if frame.is_empty() { id.to_owned() } else { format!("{frame}/{id}") }
}

impl Progress {
    /// Whether continuing from a checkpoint needs the records of parts: some step may be in progress in the
    /// middle.
    pub fn needs_parts(checkpoint: &Checkpoint, unfinished: &[StepIntent]) -> bool {
        let through: HashSet<&str> = checkpoint.done.iter().map(String::as_str).collect();
        !unfinished.is_empty()
            || checkpoint.state.get("engine").is_some()
            || checkpoint.done.iter().any(|path| !through.contains(owner_of(path)))
    }

    /// From the head checkpoint of a run, and the records of parts where they are needed.
    ///
    /// # Errors
    /// A sentence, when the checkpoint cannot be read.
    pub fn restore(
        plan: Arc<Plan>,
        run: RunRecord,
        checkpoint: &Checkpoint,
        unfinished: Vec<StepIntent>,
        steps: Vec<StepRecord>,
        grants: Grants,
    ) -> Result<Self, String> {
        let unreadable = |error| format!("cannot read checkpoint {}: {error}", checkpoint.number);
        let mut space = Space::deserialize(&checkpoint.state).map_err(unreadable)?;
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
            // With corrected inputs, nested skills look at them again.
            active.open &= match active.kind {
                Kind::Foreach { .. } | Kind::Scatter { .. } => false,
                Kind::Skill => !corrected,
                Kind::While { .. } => true,
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
            // Items and branches are recorded between two checkpoints too: their record is what counts.
            if through.insert(step.clone()) {
                done.push(step.clone());
            }
            parts.insert(step, Part { status, result });
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

    /// As a checkpoint.
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

    /// Whether a path is recorded and need not run again.
    pub fn is_through(&self, path: &str) -> bool {
        self.through.contains(path)
    }

    /// How many parts of a step are complete, from the first one on. Counts on from where it was asked last,
    /// so that a step of many rounds does not count them all before each.
    pub fn leading_parts(&mut self, step: &str) -> usize {
        let mut count = self.leading.get(step).copied().unwrap_or(0);
        while self.through.contains(&part_path(step, count)) {
            count += 1;
        }
        self.leading.insert(step.to_owned(), count);
        count
    }

    /// Notes that a path is complete.
    pub fn pass(&mut self, path: &str) {
        if self.through.insert(path.to_owned()) {
            self.done.push(path.to_owned());
        }
    }

    /// Notes a part of a step.
    pub fn pass_part(&mut self, path: &str, part: Part) {
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

    /// Shuts the gates of a failed step: when it continues, they are asked again, and so are its failed
    /// branches. Answers whether that changed anything.
    pub fn shut(&mut self, path: &str) -> bool {
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

    /// The contract that runs at a nesting path.
    pub fn contract(&self, frame: &str) -> Option<Arc<Contract>> {
        self.plan.contract_at(frame).cloned()
    }

    /// Where a step of a nesting path looks its references up.
    pub fn scope<'a>(&'a self, frame: &str, locals: &'a Map<String, Value>) -> Option<StepScope<'a>> {
        Some(StepScope { space: self.frames.get(frame)?, target: self.run.target.as_ref(), locals })
    }

    /// Whether all steps of the run's contract are complete.
    pub fn is_complete(&self) -> bool {
        self.plan.contract.steps.iter().all(|step| self.is_through(&step.id))
    }

    /// Steps above a path that it is nested in, innermost first, with the step it belongs to at the start.
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

    /// The steps that a path is nested in with their settings, from the step itself outwards.
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
