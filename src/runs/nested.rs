//! Steps that run another contract: its inputs, its namespaces, and its declared outputs.

use serde_json::{Map, Value};

use super::call::CallFailure;
use super::failure::Failure;
use super::fields::{check_inputs, check_outputs};
use super::progress::{CompositeKind, join};
use super::scheduled_call::{gate_digest, sentence};
use super::scheduler::{Expansion, Scheduler, StepContext};

impl Scheduler {
    /// Starts a nested skill, or continues it after a failure; its inputs are validated in both cases.
    pub(super) fn open_skill(
        &mut self,
        context: StepContext<'_>,
        id: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(nested) = self.progress.plan.contract_at(context.path) else {
            let message = format!("the skill {id} is not in the plan of this run");
            return Err(context.failure(CallFailure::InvalidConfiguration, message));
        };
        let frames = &mut self.progress.frames;
        if !frames.spaces.contains_key(context.path) {
            frames.targets_are_free(context)?;
        }
        let inputs = frames.inputs(context, &Map::new())?;
        let inputs = check_inputs(&nested.inputs, &inputs).map_err(|problems| {
            context.failure(
                CallFailure::InvalidRequest,
                format!("inputs of skill {id}: {}", sentence(&problems)),
            )
        })?;
        let digest = gate_digest(context.path, id, &Value::Object(inputs.clone()));
        frames.open(context.path, inputs);
        self.open(context, CompositeKind::Skill, digest, None, None, out);
        Ok(true)
    }

    /// Finishes a nested skill whose steps are all complete.
    pub(super) fn close_skill(
        &mut self,
        context: StepContext<'_>,
        id: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(nested) = self.progress.plan.contract_at(context.path) else { return Ok(false) };
        if !nested.steps.iter().all(|step| self.progress.completed.contains(&join(context.path, &step.id))) {
            return Ok(false);
        }
        let produced = self.progress.frames.outputs(context.path);
        check_outputs(&nested.outputs, &produced).map_err(|problems| {
            context
                .failure(CallFailure::RuntimeError, format!("outputs of skill {id}: {}", sentence(&problems)))
        })?;
        self.progress.finish(context, &produced, true, out)
    }
}
