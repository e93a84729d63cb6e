//! The namespaces of the contracts that a run executes: the steps' expressions and inputs are evaluated in them, and
//! outputs are written to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::call::CallFailure;
use super::failure::Failure;
use super::mapping::{inputs_of, taken, write_outputs};
use super::scheduler::StepContext;
use super::scope::{Namespaces, StepScope};
use skills_skill::contract::MergeStrategy;
use skills_skill::contract::expression::{Expr, ExpressionError};

/// The namespaces of a run and of the nested skills in progress.
#[derive(Debug)]
pub(super) struct Frames {
    /// By nesting path; the run's own under the empty path.
    pub spaces: BTreeMap<String, Namespaces>,
    /// What the run is attached to.
    pub target: Option<Value>,
    /// Number of changes, by which inputs that were evaluated earlier are known to be current.
    pub version: u64,
}

impl Frames {
    /// Returns the outputs of the contract at a nesting path.
    pub fn outputs(&self, frame: &str) -> Map<String, Value> {
        self.spaces.get(frame).map(|space| space.outputs.clone()).unwrap_or_default()
    }

    /// Returns the scope in which a step of a nesting path resolves its references.
    fn scope<'a>(&'a self, frame: &str, locals: &'a Map<String, Value>) -> Option<StepScope<'a>> {
        Some(StepScope { space: self.spaces.get(frame)?, target: self.target.as_ref(), locals })
    }

    /// Parses and evaluates an expression in a nesting path.
    fn ask<T>(
        &self,
        context: StepContext<'_>,
        (what, text): (&str, &str),
        ask: impl Fn(&Expr, &StepScope<'_>) -> Result<T, ExpressionError>,
    ) -> Result<T, Failure> {
        let failed = |reason: String| {
            context.failure(CallFailure::InvalidRequest, format!("{what} {text:?} has no value: {reason}"))
        };
        let locals = Map::new();
        let scope = self
            .scope(context.frame, &locals)
            .ok_or_else(|| failed("its contract is not being executed".into()))?;
        Expr::parse(text).and_then(|expr| ask(&expr, &scope)).map_err(|error| failed(error.to_string()))
    }

    /// Evaluates an expression to its value.
    pub fn evaluate(&self, context: StepContext<'_>, what: &str, text: &str) -> Result<Value, Failure> {
        self.ask(context, (what, text), |expr, scope| expr.value(scope))
    }

    pub fn is_true(&self, context: StepContext<'_>, what: &str, text: &str) -> Result<bool, Failure> {
        self.ask(context, (what, text), |expr, scope| expr.is_truthy(scope))
    }

    pub fn condition_holds(&self, context: StepContext<'_>) -> Result<bool, Failure> {
        context.step.condition.as_deref().map_or(Ok(true), |text| self.is_true(context, "condition", text))
    }

    pub fn inputs(
        &self,
        context: StepContext<'_>,
        locals: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        let Some(scope) = self.scope(context.frame, locals) else { return Ok(Map::new()) };
        inputs_of(&context.step.input, &scope)
            .map_err(|reason| context.failure(CallFailure::InvalidRequest, reason))
    }

    pub fn targets_are_free(&self, context: StepContext<'_>) -> Result<(), Failure> {
        match self.spaces.get(context.frame).and_then(|space| taken(context.step, space)) {
            Some(reason) => Err(context.failure(CallFailure::InvalidConfiguration, reason)),
            None => Ok(()),
        }
    }

    /// Writes a step's outputs to their targets, all or none.
    pub fn write(
        &mut self,
        context: StepContext<'_>,
        strategy: MergeStrategy,
        produced: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let Some(space) = self.spaces.get_mut(context.frame) else { return Ok(()) };
        let mut written = space.clone();
        let step = context.step;
        let result = if step.output.is_empty() && step.scatter.is_some() {
            // A scatter without targets writes everything under its own name.
            let all = BTreeMap::from([(step.id.clone(), vec!["vars".into(), step.id.clone()])]);
            let produced = Map::from_iter([(step.id.clone(), Value::Object(produced.clone()))]);
            write_outputs(&all, strategy, &produced, &mut written)
        } else {
            write_outputs(&step.output, strategy, produced, &mut written)
        };
        result.map_err(|reason| context.failure(CallFailure::InvalidConfiguration, reason))?;
        *space = written;
        self.version += 1;
        Ok(())
    }

    /// Sets the inputs of a nested skill.
    pub fn open(&mut self, frame: &str, inputs: Map<String, Value>) {
        self.spaces.entry(frame.to_owned()).or_default().inputs = inputs;
        self.version += 1;
    }

    /// Removes the namespaces of a nested skill, if the step is one.
    pub fn close(&mut self, frame: &str) {
        if self.spaces.remove(frame).is_some() {
            self.version += 1;
        }
    }
}
