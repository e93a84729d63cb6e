//! Checks before a step runs: the mandatory gates of its capability, and approval by a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::{CallError, CallFailure};
use super::canonical::digest_of;
use super::failure::Failure;
use super::progress::{Progress, SubCall};
use super::scheduled_call::{Role, ScheduledCall, checked};
use super::scheduler::Running;
use skills_model::{ApprovalReason, Choice, Gate};
use skills_skill::contract::{Capability, GateFailure};
use skills_store::{EventKind, NewEvent};

/// A request for approval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApprovalRequest {
    /// The step, or the part of it.
    pub step: String,
    pub capability: Option<Arc<Capability>>,
    pub inputs: Value,
    pub digest: String,
    pub why: ApprovalReason,
}

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

/// Whether a call may start now.
#[derive(Debug, PartialEq)]
pub(super) enum Admission {
    /// It may start, with this attempt number.
    Go(u32),
    /// Approval is required first.
    Ask(ApprovalReason),
    /// A person marked the step as completed, with these outputs.
    Happened(Map<String, Value>),
    /// A person chose to skip the step.
    Skip,
    /// A person chose to let it fail.
    Fail,
}

fn gate_path(step: &str, gate: &str) -> String {
    format!("{step}~gate:{gate}")
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

/// Returns the digest for a decision about an interrupted call whose outcome is unknown; it covers the attempt, so that
/// a resent decision about an earlier attempt does not apply to this one.
fn lost_digest(call: &str, attempt: u32) -> String {
    digest_of(&json!({"call": call, "lost_attempt": attempt}))
}

impl Progress {
    /// Returns the digest of the question whether a step may run a call. It covers the contract and the code of this run,
    /// so that an approval does not apply to another version. `edited` is code that is approved together with the call.
    pub fn question_digest(&self, step: &str, call: &str, edited: &BTreeMap<String, String>) -> String {
        let question = self.grants.question(step, call);
        if self.waits_for(step, &question) {
            return question;
        }
        let mut code = self.run.options.pins.clone().unwrap_or_default();
        code.extend(edited.clone());
        digest_of(&json!({"call": question, "contract": self.run.contract_digest, "code": code}))
    }

    /// Returns whether a step was approved to run this call.
    pub fn is_allowed(&self, step: &str, call: &str) -> bool {
        // Only gates recorded by an earlier version have the digest of the call alone.
        self.grants.allow(step, &self.question_digest(step, call, &BTreeMap::new()))
            || self.grants.allow(step, &self.grants.question(step, call))
    }

    /// Whether the run waits at this step with this digest: a gate keeps the one that it was recorded with.
    fn waits_for(&self, at: &str, digest: &str) -> bool {
        matches!(&self.run.gate, Some(Gate::Human { step, inputs_digest, .. })
            if step == at && inputs_digest == digest)
    }

    /// What a person decides about a call: the call itself, or, where one that may not be repeated had begun, that
    /// attempt of it.
    pub fn asked_digest(&self, path: &str, digest: &str) -> String {
        let lost = self.unfinished.get(path).filter(|intent| !intent.repeatable);
        lost.map_or_else(|| digest.to_owned(), |intent| lost_digest(digest, intent.attempt))
    }

    /// Returns the state of the gates of a step's capability; each is called once before the step starts, sequentially.
    ///
    /// # Errors
    /// Returns a failure of the step if a gate blocks it.
    pub fn gates(
        &self,
        step: &str,
        capability: &Capability,
        inputs: &Map<String, Value>,
        running: &Running,
    ) -> Result<Gates, Failure> {
        let mut warnings = Vec::new();
        for gate in &capability.safety.mandatory_pre_gates {
            let path = gate_path(step, &gate.capability);
            let Some(part) = self.parts.get(&path) else {
                if running.contains(&path) {
                    return Ok(Gates::Running);
                }
                let Some(gate_capability) = self.plan.capability(&gate.capability) else {
                    let message = format!("the gate {} is not in the plan of this run", gate.capability);
                    return Err(Failure::before(step, CallFailure::InvalidConfiguration, message));
                };
                let gate_inputs = gate_inputs(gate_capability, &capability.id, inputs);
                let (gate_inputs, obstacle) = match checked(gate_capability, gate_inputs.clone()) {
                    Ok(gate_inputs) => (gate_inputs, None),
                    Err(message) => (gate_inputs, Some(CallError::new(CallFailure::InvalidRequest, message))),
                };
                let mut call = self.unchecked_call(path, Role::Gate, gate_capability, gate_inputs);
                call.obstacle = obstacle;
                return Ok(Gates::Call(Box::new(call)));
            };
            let Err(reason) = answer(part) else { continue };
            let data = json!({"gate": gate.capability, "capability": capability.id, "reason": reason});
            let event = |kind: EventKind| NewEvent { kind, step: Some(step.to_owned()), data };
            match gate.on_fail {
                GateFailure::RequireHuman => {}
                GateFailure::Warn => warnings.push(event(EventKind::GateWarned)),
                GateFailure::Degrade => return Ok(Gates::Degraded(event(EventKind::GateDegraded))),
                GateFailure::Block => {
                    let message = format!("gate {} rejected {}: {reason}", gate.capability, capability.id);
                    let mut failure = Failure::before(step, CallFailure::SafetyDenied, message);
                    failure.inputs.clone_from(inputs);
                    failure.code = part.produced().is_none().then_some("gate_execution_failure");
                    return Err(failure);
                }
            }
        }
        Ok(Gates::Passed(warnings))
    }

    /// Returns why a capability requires approval for a step whose gates were called.
    pub fn approval_reason(&self, step: &str, capability: &Capability) -> Option<ApprovalReason> {
        let refused = capability
            .safety
            .mandatory_pre_gates
            .iter()
            .filter(|gate| gate.on_fail == GateFailure::RequireHuman)
            .find_map(|gate| {
                let reason = answer(self.parts.get(&gate_path(step, &gate.capability))?).err()?;
                Some(ApprovalReason::Gate { capability: gate.capability.clone(), reason })
            });
        refused.or_else(|| capability.safety.requires_confirmation.then_some(ApprovalReason::Confirmation))
    }

    /// Decides whether a call, or a step of several, may start. One that had started when its worker was lost continues
    /// if it is repeatable, and requires a decision otherwise.
    pub fn admit(&self, path: &str, digest: &str, human: Option<ApprovalReason>) -> Admission {
        if let Some(intent) = self.unfinished.get(path) {
            if !intent.repeatable {
                let lost = lost_digest(digest, intent.attempt);
                return match self.grants.choice(path, &lost) {
                    None => Admission::Ask(ApprovalReason::UnknownOutcome),
                    Some(Choice::Rerun) => Admission::Go(intent.attempt.saturating_add(1)),
                    Some(Choice::Happened) => Admission::Happened(self.grants.result(path, &lost)),
                    Some(Choice::Skip) => Admission::Skip,
                    Some(Choice::Fail) => Admission::Fail,
                };
            }
            if intent.inputs_digest == digest {
                // Its approval was given before it started.
                return Admission::Go(intent.attempt);
            }
        }
        match human {
            Some(why) if !self.is_allowed(path, digest) => Admission::Ask(why),
            _ => Admission::Go(1),
        }
    }
}
