//! Questions before a call: whether it may start, and what to do about a step whose outcome is unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{CallFailure, Reply};
use super::canonical::digest_of;
use super::failure::Failure;
use super::fields::check_outputs;
use super::gates::{Admission, ApprovalRequest};
use super::progress::{Progress, SubCall};
use super::scheduled_call::{Role, ScheduledCall, sentence};
use super::scheduler::{Expansion, Turn};
use skills_model::{ApprovalReason, Choice};
use skills_skill::contract::Capability;
use skills_store::StepStatus;

/// Builds the question whether a call may be executed by something other than at the launch. It is bound to what would
/// execute it now: another edit requires another approval. Approving it also approves the call itself if that requires
/// approval, so that one change is one question.
pub(super) fn about_change(
    step: &str,
    capability: &Arc<Capability>,
    inputs: &Value,
    call: &str,
    why: &ApprovalReason,
    human: Option<&ApprovalReason>,
) -> ApprovalRequest {
    let why = match why {
        ApprovalReason::Changed { what, now, .. } => ApprovalReason::Changed {
            what: what.clone(),
            now: now.clone(),
            call: Some(call.to_owned()),
            besides: human.map(ApprovalReason::describe),
        },
        other => other.clone(),
    };
    let digest =
        digest_of(&json!({"step": step, "capability": capability.id, "inputs": inputs, "changed": why}));
    let (capability, inputs) = (Some(Arc::clone(capability)), inputs.clone());
    ApprovalRequest { step: step.to_owned(), capability, inputs, digest, why }
}

impl Progress {
    /// Returns the question to ask before a step starts: whether what executes it may differ from the launch, and
    /// everything else that requires approval, in one question. `None` if no approval is required, or if an earlier
    /// outcome is unknown, which is asked first.
    pub(super) fn question(
        &self,
        path: &str,
        capability: &Arc<Capability>,
        inputs: &Value,
        digest: &str,
        human: Option<ApprovalReason>,
    ) -> Option<ApprovalRequest> {
        let unknown = self.unfinished.get(path).is_some_and(|intent| !intent.repeatable);
        if unknown && self.grants.choice(path, &self.asked_digest(path, digest)) != Some(Choice::Rerun) {
            return None;
        }
        let open = human.filter(|_| !unknown && !self.is_allowed(path, digest));
        let changes = self.changes(&capability.id);
        let edited = match &changes {
            Some(ApprovalReason::Changed { now, .. }) => now.clone(),
            _ => BTreeMap::new(),
        };
        let question = self.question_digest(path, digest, &edited);
        if let Some(why) = changes {
            return Some(about_change(path, capability, inputs, &question, &why, open.as_ref()));
        }
        match self.admit(path, digest, open) {
            Admission::Ask(why) => Some(ApprovalRequest {
                step: path.to_owned(),
                capability: Some(Arc::clone(capability)),
                inputs: inputs.clone(),
                digest: question,
                why,
            }),
            _ => None,
        }
    }

    /// Returns what changed about executing a capability, together with all other changes of the run, so that one edit
    /// of a script that several steps share is one question.
    fn changes(&self, capability: &str) -> Option<ApprovalReason> {
        let own = self.changed.get(capability)?;
        let others = self.changed.iter().filter(|(id, _)| *id != capability).map(|(_, why)| why);
        let (mut all, mut pins) = (Vec::new(), BTreeMap::new());
        for why in std::iter::once(own).chain(others) {
            if let ApprovalReason::Changed { what, now, .. } = why {
                for part in what.split("; ") {
                    if !all.contains(&part) {
                        all.push(part);
                    }
                }
                pins.extend(now.clone());
            }
        }
        Some(ApprovalReason::Changed { what: all.join("; "), now: pins, call: None, besides: None })
    }

    /// Schedules a call or the question that precedes it; returns whether the progress changed.
    pub(super) fn prompt(
        &mut self,
        mut call: ScheduledCall,
        human: Option<ApprovalReason>,
        turn: Turn<'_>,
        out: &mut Expansion,
    ) -> Result<bool, Failure> {
        if turn.running.contains(&call.path) {
            return Ok(false);
        }
        let inputs = Value::Object(call.inputs.clone());
        if let Some(ask) = self.question(&call.path, &call.capability, &inputs, &call.digest, human.clone()) {
            out.asks.push(ask);
            return Ok(false);
        }
        match self.admit(&call.path, &call.digest, human) {
            Admission::Go(attempt) => {
                call.attempt = attempt;
                out.leaves.push(call);
                Ok(false)
            }
            Admission::Ask(why) => {
                let ScheduledCall { path, capability, inputs, digest, .. } = call;
                let digest = self.asked_digest(&path, &digest);
                let (capability, inputs) = (Some(capability), Value::Object(inputs));
                out.asks.push(ApprovalRequest { step: path, capability, inputs, digest, why });
                Ok(false)
            }
            Admission::Happened(outputs) => {
                if let Err(problems) = check_outputs(&call.capability.outputs, &outputs) {
                    let message =
                        format!("the stated result does not match the outputs: {}", sentence(&problems));
                    return Err(Failure::before(&call.path, CallFailure::InvalidRequest, message));
                }
                let reply = Reply { outputs, ..Reply::default() };
                let applied = self.apply_reply(&call, Ok(reply), turn.now_ms, turn.now_ms)?;
                out.records.push(applied.record);
                out.events.extend(applied.events);
                Ok(true)
            }
            Admission::Skip => {
                let result = json!({"reason": "outcome unknown; skipped by a decision"});
                let now = turn.now_ms;
                out.records.push(self.instant(&call.path, StepStatus::Skipped, result.clone(), now, now));
                self.unfinished.remove(&call.path);
                if call.role == Role::Call {
                    self.close(&call.path);
                } else {
                    self.pass_part(&call.path, SubCall { status: StepStatus::Skipped, result });
                }
                Ok(true)
            }
            Admission::Fail => {
                let message = "outcome unknown; failed by a decision";
                let mut failure = Failure::before(&call.path, CallFailure::RuntimeError, message);
                failure.inputs = call.inputs;
                Err(failure)
            }
        }
    }
}
