//! A call that is ready to be executed: of a step itself, an iteration, a branch or a gate.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::call::{CallError, CallFailure};
use super::failure::Failure;
use super::fields::{FieldProblem, check_inputs};
use super::plan::Plan;
use super::progress::{lineage, owner_of};
use skills_base::canonical::digest_of;
use skills_skill::contract::{Capability, Retry, Step};
use skills_store::NewEvent;

/// Timeout of a call whose step states none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// Which call of its step it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The only one.
    Call,
    /// An item of a `foreach`.
    Item,
    /// A round of a `while`.
    Round,
    /// A branch of a `scatter`.
    Branch,
    /// A gate before the step.
    Gate,
}

/// A call to be made.
#[derive(Debug, Clone)]
pub(super) struct ScheduledCall {
    pub path: String,
    pub role: Role,
    pub capability: Arc<Capability>,
    pub inputs: Map<String, Value>,
    /// Digest of path, capability and inputs.
    pub digest: String,
    /// Digest of the bindings that may be called.
    pub bindings: Option<String>,
    /// Attempt number, from 1.
    pub attempt: u32,
    pub retry: Option<Retry>,
    pub timeout: Duration,
    /// Events to record when it starts.
    pub notes: Vec<NewEvent>,
    /// Why it cannot be called, if that is already known.
    pub obstacle: Option<CallError>,
}

impl ScheduledCall {
    /// Builds a call with inputs that were checked; retry and timeout are those of the step and the steps it is nested
    /// in.
    pub fn new(
        plan: &Plan,
        path: String,
        role: Role,
        capability: &Arc<Capability>,
        inputs: Map<String, Value>,
    ) -> Self {
        let above: Vec<&Step> = lineage(&path).iter().filter_map(|step| plan.step_at(step)).collect();
        let retry = retry_of(&above);
        let timeout = above.iter().find_map(|step| step.timeout).unwrap_or(DEFAULT_TIMEOUT);
        let digest = gate_digest(&path, &capability.id, &Value::Object(inputs.clone()));
        Self {
            path,
            role,
            capability: capability.clone(),
            inputs,
            digest,
            bindings: None,
            attempt: 1,
            retry,
            timeout,
            notes: Vec::new(),
            obstacle: None,
        }
    }

    pub fn failure(&self, error: CallError, started_ms: i64) -> Failure {
        Failure {
            step: Some(self.path.clone()),
            code: None,
            error,
            inputs: self.inputs.clone(),
            attempts: self.attempt,
            started_ms: Some(started_ms),
        }
    }

    /// Returns the step it belongs to.
    pub fn owner(&self) -> &str {
        owner_of(&self.path)
    }

    /// Returns whether its capability allows running it again.
    pub fn is_repeatable(&self) -> bool {
        is_repeatable(&self.capability)
    }

    /// Returns whether a failed attempt is retried. A call that may have had an effect without a response is not
    /// retried unless its capability is idempotent.
    pub fn tries_again(&self, error: &CallError) -> bool {
        let attempts = self.retry.map_or(1, |retry| retry.max_attempts);
        let is_safe = error.code == CallFailure::RuntimeError || self.is_repeatable();
        self.attempt < attempts && error.retryable() && is_safe
    }

    /// Returns the backoff before the next attempt.
    pub fn backoff(&self) -> Duration {
        let Some(retry) = self.retry else { return Duration::ZERO };
        let exponent = i32::try_from(self.attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = retry.backoff_seconds * retry.backoff_multiplier.powi(exponent);
        Duration::try_from_secs_f64(seconds.clamp(0.0, 86_400.0)).unwrap_or_default()
    }
}

/// Returns the retry of a call of the step, given with those it is nested in, innermost first.
fn retry_of(steps: &[&Step]) -> Option<Retry> {
    steps.iter().filter_map(|step| step.retry).reduce(|inner, outer| Retry {
        max_attempts: inner.max_attempts.saturating_mul(outer.max_attempts),
        ..inner
    })
}

/// Returns how often a call at a path is attempted at most.
pub fn max_attempts(plan: &Plan, path: &str) -> u32 {
    let steps: Vec<&Step> = lineage(path).iter().filter_map(|step| plan.step_at(step)).collect();
    retry_of(&steps).map_or(1, |retry| retry.max_attempts)
}

/// Returns whether running a capability twice is safe: it has no side effects, or is idempotent.
pub fn is_repeatable(capability: &Capability) -> bool {
    !capability.properties.side_effects || capability.properties.idempotent
}

/// Returns the digest to which a decision is bound: SHA-256 of the canonical JSON of step path, capability and inputs.
pub fn gate_digest(step: &str, capability: &str, inputs: &Value) -> String {
    digest_of(&json!({"step": step, "capability": capability, "inputs": inputs}))
}

/// Returns inputs as a capability declares them, with its defaults; one that declares none accepts everything.
pub(super) fn checked(
    capability: &Capability,
    inputs: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    if capability.inputs.is_empty() {
        return Ok(inputs.clone());
    }
    check_inputs(&capability.inputs, inputs)
        .map_err(|problems| format!("inputs of {}: {}", capability.id, sentence(&problems)))
}

/// Like [`checked`], for the call at a path.
///
/// # Errors
/// Returns the failure of the call.
pub(super) fn checked_at(
    path: &str,
    capability: &Capability,
    inputs: &Map<String, Value>,
) -> Result<Map<String, Value>, Failure> {
    checked(capability, inputs).map_err(|message| Failure::before(path, CallFailure::InvalidRequest, message))
}

/// Joins the problems of fields into one sentence.
pub(super) fn sentence(problems: &[FieldProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use skills_skill::contract::{Contract, parse, parse_capability};

    #[test]
    fn attempts_of_nested_steps_are_multiplied() {
        let contract = |id: &str, steps: &str| -> Arc<Contract> {
            let text = format!("id: {id}\nversion: 1.0.0\nsteps:\n{steps}");
            Arc::new(parse(Path::new("skill.yaml"), &text).0.unwrap())
        };
        let step = |id: &str, uses: &str, attempts: u32| {
            format!(
                "  - {{ id: {id}, uses: '{uses}', config: {{ retry: {{ max_attempts: {attempts} }} }} }}\n"
            )
        };
        let inner = contract("inner", &step("pay", "pay.send", 2));
        let outer = step("sum", "skill:inner", 3) + "  - { id: one, uses: pay.send }\n";
        let nested = |_: &str| Some(inner.clone());
        let capability = |_: &str| {
            let text = "id: pay.send\nversion: 1.0.0\n";
            Some(Arc::new(parse_capability(Path::new("c.yaml"), text).0.unwrap()))
        };
        let plan = Plan::pin(&contract("outer", &outer), &nested, &capability, None).unwrap();
        let attempts = ["sum/pay", "sum/pay~gate:pii.detect", "one"].map(|path| max_attempts(&plan, path));
        assert_eq!(attempts, [6, 6, 1]);
    }
}
