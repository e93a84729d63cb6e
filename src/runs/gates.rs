//! Checks before a step runs: the mandatory gates of its capability.

use serde_json::{Map, Value, json};

use super::call::{CallError, CallFailure};
use super::completed::{CompletedPaths, SubCall};
use super::failure::Failure;
use super::plan::Plan;
use super::scheduled_call::{Role, ScheduledCall, checked};
use super::scheduler::Turn;
use skills_model::ApprovalReason;
use skills_skill::contract::{Capability, GateFailure};
use skills_store::{EventKind, NewEvent};

/// State of a step's gates.
#[derive(Debug)]
pub(super) enum Gates {
    /// The next gate to call.
    Call(Box<ScheduledCall>),
    /// A gate call is in progress.
    Running,
    /// All gates were called; warnings to record when the step starts.
    Passed(Vec<NewEvent>),
    /// The step is to be skipped.
    Degraded(NewEvent),
}

/// Returns the path of the call of a gate. It names the guarded capability if the step can call several.
fn gate_path(turn: Turn<'_>, gate: &str, guarded: &str) -> String {
    let path = turn.path;
    if turn.step.scatter.is_some() || turn.step.router.is_some() {
        return format!("{path}~gate:{gate}({guarded})");
    }
    format!("{path}~gate:{gate}")
}

/// Returns whether a gate allows the step, or why not. A missing answer counts as a refusal.
fn answer(part: &SubCall) -> Result<(), String> {
    let words = |field: &str| part.result.get(field).and_then(Value::as_str);
    let Some(produced) = part.produced() else {
        return Err(format!("it could not be called: {}", words("message").unwrap_or("no response")));
    };
    match produced.get("allowed") {
        Some(Value::Bool(true)) => Ok(()),
        None => Err("its response has no field `allowed`, which counts as a rejection".to_owned()),
        Some(_) => Err(words("reason").or_else(|| words("message")).unwrap_or("rejected").to_owned()),
    }
}

/// Returns the inputs of a gate: the fields it declares, from the step's inputs. If it declares them, `inputs` is all
/// of them as one object and `capability` the name of the capability to be called.
fn gate_inputs(gate: &Capability, guarded: &str, inputs: &Map<String, Value>) -> Map<String, Value> {
    if gate.inputs.is_empty() {
        return inputs.clone();
    }
    let input_value = |name: &String| match inputs.get(name) {
        Some(value) => Some(value.clone()),
        None if name == "inputs" => Some(Value::Object(inputs.clone())),
        None if name == "capability" => Some(guarded.into()),
        None => None,
    };
    gate.inputs.keys().filter_map(|name| Some((name.clone(), input_value(name)?))).collect()
}

/// Returns the state of the gates of a step's capability; each is called before the step starts, sequentially, and again
/// for other inputs.
///
/// # Errors
/// Returns a failure of the step if a gate blocks it.
pub(super) fn gates(
    turn: Turn<'_>,
    plan: &Plan,
    completed: &CompletedPaths,
    capability: &Capability,
    inputs: &Map<String, Value>,
) -> Result<Gates, Failure> {
    let mut warnings = Vec::new();
    for gate in &capability.safety.mandatory_pre_gates {
        let path = gate_path(turn, &gate.capability, &capability.id);
        if turn.running.contains(&path) {
            return Ok(Gates::Running);
        }
        let Some(gate_capability) = plan.capability(&gate.capability) else {
            let message = format!("the gate {} is not in the plan of this run", gate.capability);
            return Err(turn.failure(CallFailure::InvalidConfiguration, message));
        };
        let gate_inputs = gate_inputs(gate_capability, &capability.id, inputs);
        let (gate_inputs, obstacle) = match checked(gate_capability, gate_inputs.clone()) {
            Ok(gate_inputs) => (gate_inputs, None),
            Err(message) => (gate_inputs, Some(CallError::new(CallFailure::InvalidRequest, message))),
        };
        let mut call = ScheduledCall::unchecked(plan, path, Role::Gate, gate_capability, gate_inputs);
        call.obstacle = obstacle;
        // An answer holds for the inputs that were checked, and until the run is continued, possibly with others.
        let Some(part) = completed.parts.get(&call.path).filter(|part| part.digest == call.digest) else {
            return Ok(Gates::Call(Box::new(call)));
        };
        let Err(reason) = answer(part) else { continue };
        let data = json!({"gate": gate.capability, "capability": capability.id, "reason": reason});
        let event = |kind: EventKind| NewEvent { kind, step: Some(turn.path.to_owned()), data };
        match gate.on_fail {
            GateFailure::RequireHuman => {}
            GateFailure::Warn => warnings.push(event(EventKind::GateWarned)),
            GateFailure::Degrade => return Ok(Gates::Degraded(event(EventKind::GateDegraded))),
            GateFailure::Block => {
                let message = format!("gate {} rejected {}: {reason}", gate.capability, capability.id);
                let mut failure = turn.failure(CallFailure::SafetyDenied, message);
                failure.inputs.clone_from(inputs);
                failure.code = part.produced().is_none().then_some("gate_execution_failure");
                return Err(failure);
            }
        }
    }
    Ok(Gates::Passed(warnings))
}

/// Returns why a capability requires approval for a step whose gates were called.
pub(super) fn approval_reason(
    completed: &CompletedPaths,
    turn: Turn<'_>,
    capability: &Capability,
) -> Option<ApprovalReason> {
    let refused = capability
        .safety
        .mandatory_pre_gates
        .iter()
        .filter(|gate| gate.on_fail == GateFailure::RequireHuman)
        .find_map(|gate| {
            let path = gate_path(turn, &gate.capability, &capability.id);
            let reason = answer(completed.parts.get(&path)?).err()?;
            Some(ApprovalReason::Gate { capability: gate.capability.clone(), reason })
        });
    refused.or_else(|| capability.safety.requires_confirmation.then_some(ApprovalReason::Confirmation))
}
