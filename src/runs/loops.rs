//! Steps of several calls in progress: the next item, round or branches, and their completion.

use serde_json::{Map, Value};

use super::failure::Failure;
use super::gates::{Gates, approval_reason, gates};
use super::scheduled_call::{Role, ScheduledCall};
use super::scheduler::{Expansion, Scheduler, Turn, engine_log, part_path};
use skills_skill::contract::Capability;

/// Returns the result of a `foreach` over an empty list: an empty list for each field.
pub(super) fn no_items(turn: Turn<'_>, capability: &Capability) -> Map<String, Value> {
    let fields = turn.step.output.keys().chain(capability.outputs.keys());
    fields.map(|field| (field.clone(), Value::Array(Vec::new()))).collect()
}

impl Scheduler {
    /// Schedules the next item of a `foreach`, or finishes it.
    pub(super) fn next_item(
        &mut self,
        turn: Turn<'_>,
        capability: &str,
        calls: &[Map<String, Value>],
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let index = self.progress.completed.leading_parts(turn.path);
        if index >= calls.len() {
            let produced = self.progress.completed.items(turn.path, calls.len());
            return self.progress.finish(turn, &produced, true, out);
        }
        let path = part_path(turn.path, index);
        if turn.running.contains(&path) {
            return Ok(false);
        }
        let capability = turn.capability(&self.progress.plan, capability)?;
        let call =
            ScheduledCall::checked(&self.progress.plan, path, Role::Item, &capability, calls[index].clone())?;
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
        let rounds = self.progress.completed.leading_parts(turn.path);
        let path = part_path(turn.path, rounds);
        if turn.running.contains(&path) {
            return Ok(false);
        }
        if rounds > 0 {
            let continues = self.progress.frames.is_true(turn, "while.condition", &repeat.condition)?;
            let used_up = rounds >= repeat.max_iterations as usize;
            if !continues || used_up {
                if continues {
                    let text = format!(
                        "stopped after {rounds} iterations, although its condition is \
                        still true"
                    );
                    out.events.push(engine_log(turn.path, text));
                }
                let last = self.progress.completed.produced(turn.path, rounds - 1).cloned();
                return self.progress.finish(turn, &last.unwrap_or_default(), false, out);
            }
        }
        let capability = turn.capability(&self.progress.plan, capability)?;
        let inputs = self.progress.frames.inputs(turn, &Map::new())?;
        let (warnings, refused) =
            match gates(turn, &self.progress.plan, &self.progress.completed, &capability, &inputs)? {
                Gates::Call(call) => return self.prompt(*call, None, turn, out),
                Gates::Running => return Ok(false),
                Gates::Degraded(event) => {
                    out.events.push(event);
                    let last = rounds.checked_sub(1);
                    let last = last.and_then(|last| self.progress.completed.produced(turn.path, last));
                    let last = last.cloned().unwrap_or_default();
                    return self.progress.finish(turn, &last, false, out);
                }
                Gates::Passed(warnings, refused) => (warnings, refused),
            };
        let human = approval_reason(refused, &capability);
        let mut call = ScheduledCall::checked(&self.progress.plan, path, Role::Round, &capability, inputs)?;
        // Those of the first round were recorded when the step started.
        if rounds > 0 {
            call.notes = warnings;
        }
        self.prompt(call, human, turn, out)
    }

    /// Schedules the branches of a `scatter` that are not in progress, or finishes it.
    pub(super) fn next_branches(
        &mut self,
        turn: Turn<'_>,
        calls: &[(String, Map<String, Value>)],
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let completed = &self.progress.completed;
        if let Some(produced) = completed.branches(turn, calls)? {
            return self.progress.finish(turn, &produced, true, out);
        }
        if turn.step.scatter.as_ref().is_some_and(|scatter| completed.winner(turn.path, scatter).is_some()) {
            return Ok(false);
        }
        let mut changed = false;
        for (index, (capability, inputs)) in calls.iter().enumerate() {
            let path = part_path(turn.path, index);
            if !self.progress.completed.contains(&path) && !turn.running.contains(&path) {
                let capability = turn.capability(&self.progress.plan, capability)?;
                let call = ScheduledCall::checked(
                    &self.progress.plan,
                    path,
                    Role::Branch,
                    &capability,
                    inputs.clone(),
                )?;
                changed |= self.prompt(call, None, turn, out)?;
            }
        }
        Ok(changed)
    }
}
