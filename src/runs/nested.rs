//! Steps that run another contract: its inputs, its namespaces, and its declared outputs.

use serde_json::{Map, Value};

use super::call::CallFailure;
use super::failure::Failure;
use super::fields::{check_inputs, check_outputs};
use super::progress::{CompositeKind, join};
use super::scheduled_call::{gate_digest, sentence};
use super::scheduler::{Expansion, Scheduler, Turn};

impl Scheduler {
    /// Starts a nested skill, or continues it after a failure; its inputs are validated in both cases.
    pub(super) fn open_skill(
        &mut self,
        turn: Turn<'_>,
        id: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(nested) = self.progress.plan.contract_at(turn.path) else {
            let message = format!("the skill {id} is not in the plan of this run");
            return Err(turn.failure(CallFailure::InvalidConfiguration, message));
        };
        let frames = &mut self.progress.frames;
        if !frames.spaces.contains_key(turn.path) {
            frames.targets_are_free(turn)?;
        }
        let inputs = frames.inputs(turn, &Map::new())?;
        let inputs = check_inputs(&nested.inputs, &inputs).map_err(|problems| {
            turn.failure(
                CallFailure::InvalidRequest,
                format!("inputs of skill {id}: {}", sentence(&problems)),
            )
        })?;
        let digest = gate_digest(turn.path, id, &Value::Object(inputs.clone()));
        frames.spaces.entry(turn.path.to_owned()).or_default().inputs = inputs;
        self.open(turn, CompositeKind::Skill, digest, None, out);
        Ok(true)
    }

    /// Finishes a nested skill whose steps are all complete.
    pub(super) fn close_skill(
        &mut self,
        turn: Turn<'_>,
        id: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(nested) = self.progress.plan.contract_at(turn.path) else { return Ok(false) };
        if !nested.steps.iter().all(|step| self.progress.completed.contains(&join(turn.path, &step.id))) {
            return Ok(false);
        }
        let produced = self.progress.frames.outputs(turn.path);
        check_outputs(&nested.outputs, &produced).map_err(|problems| {
            turn.failure(CallFailure::RuntimeError, format!("outputs of skill {id}: {}", sentence(&problems)))
        })?;
        self.progress.finish(turn, &produced, true, out)
    }
}
