//! Steps of several calls in progress: the next item, round or branches, and their completion.

use serde_json::{Map, Value};

use super::failure::Failure;
use super::gates::{Gates, approval_reason, gates};
use super::scheduled_call::{Role, ScheduledCall, checked_at};
use super::scheduler::{Expansion, Scheduler, StepContext, engine_log, part_path};
use skills_skill::contract::Capability;

/// Returns the result of a `foreach` over an empty list: an empty list for each field.
pub(super) fn no_items(context: StepContext<'_>, capability: &Capability) -> Map<String, Value> {
    let fields = context.step.output.keys().chain(capability.outputs.keys());
    fields.map(|field| (field.clone(), Value::Array(Vec::new()))).collect()
}

impl Scheduler {
    /// Schedules the next item of a `foreach`, or finishes it.
    pub(super) fn next_item(
        &mut self,
        context: StepContext<'_>,
        capability: &str,
        calls: &[Map<String, Value>],
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let index = self.progress.completed.leading_parts(context.path);
        if index >= calls.len() {
            let produced = self.progress.completed.items(context.path, calls.len());
            return self.progress.finish(context, &produced, true, out);
        }
        let path = part_path(context.path, index);
        if context.running.contains(&path) {
            return Ok(false);
        }
        let capability = context.capability(&self.progress.plan, capability)?;
        let inputs = calls[index].clone();
        let call = ScheduledCall::new(&self.progress.plan, path, Role::Item, &capability, inputs);
        self.prompt(call, None, context, out)
    }

    /// Schedules the next round of a `while`, or finishes it.
    pub(super) fn next_round(
        &mut self,
        context: StepContext<'_>,
        capability: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(repeat) = &context.step.repeat else { return Ok(false) };
        let rounds = self.progress.completed.leading_parts(context.path);
        let path = part_path(context.path, rounds);
        if context.running.contains(&path) {
            return Ok(false);
        }
        if rounds > 0 {
            let continues = self.progress.frames.is_true(context, "while.condition", &repeat.condition)?;
            let used_up = rounds >= repeat.max_iterations as usize;
            if !continues || used_up {
                if continues {
                    let text = format!(
                        "stopped after {rounds} iterations, although its condition is \
                        still true"
                    );
                    out.events.push(engine_log(context.path, text));
                }
                let last = self.progress.completed.produced(context.path, rounds - 1).cloned();
                return self.progress.finish(context, &last.unwrap_or_default(), false, out);
            }
        }
        let capability = context.capability(&self.progress.plan, capability)?;
        let inputs = checked_at(&path, &capability, &self.progress.frames.inputs(context, &Map::new())?)?;
        let (warnings, refused) = match gates(context, &self.progress, &self.approvals, &capability, &inputs)?
        {
            Gates::Call(call) => return self.prompt(*call, None, context, out),
            Gates::Running => return Ok(false),
            Gates::Degraded(event) => {
                out.events.push(event);
                let last = rounds.checked_sub(1);
                let last = last.and_then(|last| self.progress.completed.produced(context.path, last));
                let last = last.cloned().unwrap_or_default();
                return self.progress.finish(context, &last, false, out);
            }
            Gates::Passed(warnings, refused) => (warnings, refused),
        };
        let human = approval_reason(refused, &capability);
        let mut call = ScheduledCall::new(&self.progress.plan, path, Role::Round, &capability, inputs);
        // Those of the first round were recorded when the step started.
        if rounds > 0 {
            call.notes = warnings;
        }
        self.prompt(call, human, context, out)
    }

    /// Schedules the branches of a `scatter` that are not in progress, or finishes it.
    pub(super) fn next_branches(
        &mut self,
        context: StepContext<'_>,
        calls: &[(String, Map<String, Value>)],
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let completed = &self.progress.completed;
        if let Some(produced) = completed.branches(context, calls)? {
            return self.progress.finish(context, &produced, true, out);
        }
        if context
            .step
            .scatter
            .as_ref()
            .is_some_and(|scatter| completed.winner(context.path, scatter).is_some())
        {
            return Ok(false);
        }
        let mut changed = false;
        for (index, (capability, inputs)) in calls.iter().enumerate() {
            let path = part_path(context.path, index);
            if !self.progress.completed.contains(&path) && !context.running.contains(&path) {
                let capability = context.capability(&self.progress.plan, capability)?;
                let inputs = inputs.clone();
                let call = ScheduledCall::new(&self.progress.plan, path, Role::Branch, &capability, inputs);
                changed |= self.prompt(call, None, context, out)?;
            }
        }
        Ok(changed)
    }
}
