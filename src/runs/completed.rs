//! What a run has recorded and need not run again: steps, their parts, and the results of the parts of steps that are
//! not complete.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::call::CallFailure;
use super::failure::Failure;
use super::progress::owner_of;
use super::scheduler::{StepContext, part_path};
use skills_skill::contract::{Merge, Scatter};
use skills_store::{Checkpoint, StepIntent, StepRecord, StepStatus};

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

/// Paths of everything recorded that need not run again.
#[derive(Debug, Default)]
pub(super) struct CompletedPaths {
    /// In recording order.
    done: Vec<String>,
    through: HashSet<String>,
    /// Number of contiguous completed parts of a step at the last call of `leading_parts`.
    leading: HashMap<String, usize>,
    /// Results of the parts of steps that are not complete.
    pub parts: HashMap<String, SubCall>,
}

impl CompletedPaths {
    /// Returns whether continuing from a checkpoint needs the records of parts: a step may be partially complete.
    pub fn needs_parts(checkpoint: &Checkpoint, unfinished: &[StepIntent]) -> bool {
        let through: HashSet<&str> = checkpoint.done.iter().map(String::as_str).collect();
        !unfinished.is_empty()
            || checkpoint.state.get("engine").is_some()
            || checkpoint.done.iter().any(|path| !through.contains(owner_of(path)))
    }

    /// Restores the paths of a checkpoint, with the records of parts.
    pub fn restore(mut done: Vec<String>, steps: Vec<StepRecord>) -> Self {
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
        Self { done, through, leading: HashMap::new(), parts }
    }

    /// Returns the paths in recording order.
    pub fn paths(&self) -> &[String] {
        &self.done
    }

    /// Returns whether a path is recorded and need not run again.
    pub fn contains(&self, path: &str) -> bool {
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
    fn pass(&mut self, path: &str) {
        if self.through.insert(path.to_owned()) {
            self.done.push(path.to_owned());
        }
    }

    /// Marks a part of a step as complete.
    pub fn pass_part(&mut self, path: &str, part: SubCall) {
        self.pass(path);
        self.parts.insert(path.to_owned(), part);
    }

    /// Marks a step as complete; the results of its parts are no longer needed.
    pub fn close(&mut self, path: &str) {
        self.leading.remove(path);
        self.parts.retain(|part, _| owner_of(part) != path);
        self.pass(path);
    }

    /// Removes the gates and failed branches of a step, so that they run again. Returns whether there were any.
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
        self.done.len() != before
    }

    /// Returns the outputs of one iteration or branch if it completed.
    pub fn produced(&self, step: &str, index: usize) -> Option<&Map<String, Value>> {
        self.parts.get(&part_path(step, index)).and_then(SubCall::produced)
    }

    /// Returns the outputs of a `foreach`: each field becomes the list of its values, null for skipped items.
    pub fn items(&self, step: &str, count: usize) -> Map<String, Value> {
        let results: Vec<_> = (0..count).map(|index| self.produced(step, index)).collect();
        let mut produced = Map::new();
        for field in results.iter().flatten().flat_map(|result| result.keys()) {
            if !produced.contains_key(field) {
                let value = |result: Option<&Map<String, Value>>| {
                    result.and_then(|result| result.get(field)).cloned().unwrap_or_default()
                };
                produced.insert(field.clone(), results.iter().copied().map(value).collect());
            }
        }
        produced
    }

    /// Returns the outputs of the first successful branch if the merge mode is `first_success`: the first in recording
    /// order, so that it is the same one after a crash.
    pub fn winner(&self, step: &str, scatter: &Scatter) -> Option<&Map<String, Value>> {
        if scatter.merge != Merge::FirstSuccess {
            return None;
        }
        self.done
            .iter()
            .filter(|path| owner_of(path) == step && path.ends_with(']'))
            .find_map(|path| self.parts.get(path)?.produced())
    }

    /// Returns the merged result of a scatter once it is available.
    ///
    /// # Errors
    /// Returns a failure if every branch failed.
    pub fn branches(
        &self,
        context: StepContext<'_>,
        calls: &[(String, Map<String, Value>)],
    ) -> Result<Option<Map<String, Value>>, Failure> {
        let Some(scatter) = &context.step.scatter else { return Ok(None) };
        let part = |index: usize| self.parts.get(&part_path(context.path, index));
        if let Some(produced) = self.winner(context.path, scatter) {
            let busy =
                (0..calls.len()).any(|index| context.running.contains(&part_path(context.path, index)));
            // The others are stopped first, so that each has its record.
            return Ok((!busy).then(|| produced.clone()));
        }
        if (0..calls.len()).any(|index| part(index).is_none()) {
            return Ok(None);
        }
        let succeeded: Vec<(&String, &Map<String, Value>)> = calls
            .iter()
            .enumerate()
            .filter_map(|(index, (capability, _))| Some((capability, part(index)?.produced()?)))
            .collect();
        if succeeded.is_empty() {
            let reasons: Vec<String> = (0..calls.len())
                .filter_map(part)
                .filter(|part| part.status == StepStatus::Failed)
                .filter_map(|part| part.result.get("message")?.as_str().map(str::to_owned))
                .collect();
            let message = format!("every branch failed: {}", reasons.join("; "));
            return Err(context.failure(CallFailure::RuntimeError, message));
        }
        let mut produced = Map::new();
        for (capability, result) in succeeded {
            if scatter.merge == Merge::ConcatLists {
                for (field, value) in result {
                    let list = produced.entry(field.clone()).or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(list) = list {
                        list.push(value.clone());
                    }
                }
            } else {
                produced.insert(capability.clone(), Value::Object(result.clone()));
            }
        }
        Ok(Some(produced))
    }
}
