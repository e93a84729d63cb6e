//! Steps that run another contract: its inputs, its namespaces, and its declared outputs.

use serde_json::{Map, Value};

use super::call::CallFailure;
use super::failure::Failure;
use super::fields::{check_inputs, check_outputs};
use super::progress::{CompositeKind, Progress, join};
use super::scheduled_call::{gate_digest, sentence};
use super::scheduler::{Expansion, Turn};
use super::scope::Namespaces;

impl Progress {
    /// Starts a nested skill, or continues it after a failure; its inputs are validated in both cases.
    pub(super) fn open_skill(
        &mut self,
        turn: Turn<'_>,
        id: &str,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        let Some(nested) = self.contract(turn.path) else {
            let message = format!("the skill {id} is not in the plan of this run");
            return Err(turn.failure(CallFailure::InvalidConfiguration, message));
        };
        if !self.frames.contains_key(turn.path) {
            self.targets_are_free(turn)?;
        }
        let inputs = self.inputs(turn, &Map::new())?;
        let inputs = check_inputs(&nested.inputs, &inputs).map_err(|problems| {
            turn.failure(
                CallFailure::InvalidRequest,
                format!("inputs of skill {id}: {}", sentence(&problems)),
            )
        })?;
        let digest = gate_digest(turn.path, id, &Value::Object(inputs.clone()));
        match self.frames.get_mut(turn.path) {
            Some(space) => space.inputs = inputs,
            None => {
                self.frames.insert(turn.path.to_owned(), Namespaces { inputs, ..Namespaces::default() });
            }
        }
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
        let Some(nested) = self.contract(turn.path) else { return Ok(false) };
        if !nested.steps.iter().all(|step| self.is_through(&join(turn.path, &step.id))) {
            return Ok(false);
        }
        let produced = self.frames.get(turn.path).map(|space| space.outputs.clone()).unwrap_or_default();
        check_outputs(&nested.outputs, &produced).map_err(|problems| {
            turn.failure(CallFailure::RuntimeError, format!("outputs of skill {id}: {}", sentence(&problems)))
        })?;
        self.finish(turn, &produced, true, out)
    }
}
