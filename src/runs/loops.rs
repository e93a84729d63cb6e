//! Steps of several calls in progress: the next item, round or branches, and their completion.

use serde_json::{Map, Value};

use super::expand::StepCalls;
use super::failure::Failure;
use super::progress::{CompositeKind, Progress, SubCall};
use super::scheduled_call::Role;
use super::scheduler::{Expansion, Turn, engine_log, part_path};
use skills_skill::contract::Capability;

/// Returns the result of a `foreach` over an empty list: an empty list for each field.
pub(super) fn no_items(turn: Turn<'_>, capability: &Capability) -> Map<String, Value> {
    let fields = turn.step.output.keys().chain(capability.outputs.keys());
    fields.map(|field| (field.clone(), Value::Array(Vec::new()))).collect()
}

impl Progress {
    /// Reopens a step whose gates had passed before its worker was lost, if what it will run is unchanged.
    pub(super) fn reopen(&mut self, turn: Turn<'_>, work: &StepCalls, digest: Option<&str>) -> bool {
        let Some(active) = self.active.get_mut(turn.path) else { return false };
        if digest.is_none() || active.passed.as_deref() != digest {
            return false;
        }
        active.kind = match work {
            StepCalls::Foreach { capability, calls } => {
                CompositeKind::Foreach { capability: capability.id.clone(), calls: calls.clone() }
            }
            StepCalls::Scatter(branches) => CompositeKind::Scatter {
                calls: branches.iter().map(|(c, inputs)| (c.id.clone(), inputs.clone())).collect(),
            },
            StepCalls::Single { .. } | StepCalls::While { .. } => return false,
        };
        active.open = true;
        true
    }

    /// Schedules the next item of a `foreach`, or finishes it: each field becomes the list of its values, null for
    /// skipped items.
    pub(super) fn next_item(
        &mut self,
        turn: Turn<'_>,
        capability: &str,
        calls: &[Map<String, Value>],
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let index = self.leading_parts(turn.path);
        if index >= calls.len() {
            let results: Vec<Option<&Map<String, Value>>> = (0..calls.len())
                .map(|index| self.parts.get(&part_path(turn.path, index)).and_then(SubCall::produced))
                .collect();
            let mut produced = Map::new();
            for field in results.iter().flatten().flat_map(|result| result.keys()) {
                if !produced.contains_key(field) {
                    let value = |result: &Option<&Map<String, Value>>| {
                        result.and_then(|result| result.get(field)).cloned().unwrap_or_default()
                    };
                    produced.insert(field.clone(), results.iter().map(value).collect());
                }
            }
            return self.finish(turn, &produced, true, out);
        }
        let path = part_path(turn.path, index);
        if turn.running.contains(&path) {
            return Ok(false);
        }
        let capability = self.pinned(turn, capability)?;
        let call = self.call(path, Role::Item, &capability, calls[index].clone())?;
        self.prompt(call, None, turn, out)
    }

    /// Schedules the next round of a `while`, or finishes it.
    pub(super) fn next_round(
        &mut self,
        turn: Turn<'_>,
        capability: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(repeat) = &turn.step.repeat else { return Ok(false) };
        let rounds = self.leading_parts(turn.path);
        let path = part_path(turn.path, rounds);
        if turn.running.contains(&path) {
            return Ok(false);
        }
        if rounds > 0 {
            let goes_on = self.is_true(turn, "while.condition", &repeat.condition)?;
            let used_up = rounds >= repeat.max_iterations as usize;
            if !goes_on || used_up {
                if goes_on {
                    let text = format!(
                        "stopped after {rounds} iterations, although its condition is \
                        still true"
                    );
                    out.events.push(engine_log(turn.path, text));
                }
                let last =
                    self.parts.get(&part_path(turn.path, rounds - 1)).and_then(SubCall::produced).cloned();
                return self.finish(turn, &last.unwrap_or_default(), false, out);
            }
        }
        let capability = self.pinned(turn, capability)?;
        let inputs = self.inputs(turn, &Map::new())?;
        let human = self.approval_reason(turn.path, &capability);
        let call = self.call(path, Role::Round, &capability, inputs)?;
        self.prompt(call, human, turn, out)
    }

    /// Schedules the branches of a `scatter` that are not in progress, or finishes it.
    pub(super) fn next_branches(
        &mut self,
        turn: Turn<'_>,
        calls: &[(String, Map<String, Value>)],
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        if let Some(produced) = self.collected_results(turn, calls)? {
            return self.finish(turn, &produced, true, out);
        }
        let mut changed = false;
        if turn.step.scatter.as_ref().is_some_and(|scatter| self.winner(turn.path, scatter).is_some()) {
            return Ok(false);
        }
        for (index, (capability, inputs)) in calls.iter().enumerate() {
            let path = part_path(turn.path, index);
            if !self.is_through(&path) && !turn.running.contains(&path) {
                let capability = self.pinned(turn, capability)?;
                let call = self.call(path, Role::Branch, &capability, inputs.clone())?;
                changed |= self.prompt(call, None, turn, out)?;
            }
        }
        Ok(changed)
    }
}
