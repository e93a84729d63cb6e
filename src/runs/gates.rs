//! Checks before a step runs: the mandatory gates of its capability.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::approvals::Approvals;
use super::call::{CallError, CallFailure};
use super::completed::SubCall;
use super::failure::{Failure, shortened};
use super::progress::Progress;
use super::scheduled_call::{Role, ScheduledCall, checked};
use super::scheduler::{StepContext, part_path};
use skills_base::canonical::digest_of;
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
    /// All gates were called; warnings to record when the step starts, and why one of them requires approval.
    Passed(Vec<NewEvent>, Option<ApprovalReason>),
    /// The step is to be skipped.
    Degraded(NewEvent),
}

/// Number of digits of the digest in the path of a gate.
const DIGEST_DIGITS: usize = 32;

/// Returns the path of the call of a gate, which contains a digest of what it checks: an answer holds for other inputs
/// neither in this run nor in one that continues from its checkpoint.
fn gate_path(step: &str, gate: &str, guarded: &str, inputs: &Map<String, Value>) -> String {
    let digest = digest_of(&json!({"capability": guarded, "inputs": inputs}));
    format!("{step}{GATE_MARK}{gate}#{}", skills_skill::prefix(&digest, DIGEST_DIGITS))
}

/// Separates the path of a step from the name of its gate.
const GATE_MARK: &str = "~gate:";

/// Returns whether a path is that of the call of a gate.
pub(super) fn is_gate(path: &str) -> bool {
    path.contains(GATE_MARK)
}

/// Returns whether a gate allows the step, or why not. A missing answer counts as a refusal.
fn answer(part: &SubCall) -> Result<(), String> {
    let words = |field: &str| part.result.get(field).and_then(Value::as_str);
    let Some(produced) = part.produced() else {
        let why = shortened(words("message").unwrap_or("no response"));
        return Err(format!("it could not be called: {why}"));
    };
    match produced.get("allowed") {
        Some(Value::Bool(true)) => Ok(()),
        None => Err("its response has no field `allowed`, which counts as a rejection".to_owned()),
        Some(_) => Err(shortened(words("reason").or_else(|| words("message")).unwrap_or("rejected"))),
    }
}

/// Name of an input of a gate that receives all inputs of the call as one object.
const ALL_INPUTS: &str = "inputs";

/// Name of an input of a gate that receives the name of the capability to be called.
const GUARDED_CAPABILITY: &str = "capability";

/// Returns why the two capabilities do not fit: the guarded one has an input of its own with the name of a reserved one,
/// and the gate may mean either. A gate that declares both reserved inputs means these.
pub(super) fn ambiguity(gate: &Capability, guarded: &Capability) -> Option<String> {
    let reserved = [ALL_INPUTS, GUARDED_CAPABILITY];
    if reserved.iter().all(|name| gate.inputs.contains_key(*name)) {
        return None;
    }
    let is_own = |name: &&str| gate.inputs.contains_key(*name) && guarded.inputs.contains_key(*name);
    let name = reserved.into_iter().find(is_own)?;
    Some(format!(
        "`{}` and its gate `{}` both declare the input `{name}`, of which it is not clear what the gate checks: declare \
         both `{ALL_INPUTS}` (the inputs of the call) and `{GUARDED_CAPABILITY}` (the name of the guarded capability) \
         in the gate, or rename the input",
        guarded.id, gate.id
    ))
}

/// Returns the inputs of a gate: the fields it declares, from the inputs of the call. If it declares them, `inputs` is
/// all of them as one object and `capability` the name of the capability to be called, also for a call that has inputs
/// with these names.
fn gate_inputs(gate: &Capability, guarded: &str, inputs: &Map<String, Value>) -> Map<String, Value> {
    if gate.inputs.is_empty() {
        return inputs.clone();
    }
    let input_value = |name: &String| match name.as_str() {
        ALL_INPUTS => Some(Value::Object(inputs.clone())),
        GUARDED_CAPABILITY => Some(guarded.into()),
        name => inputs.get(name).cloned(),
    };
    gate.inputs.keys().filter_map(|name| Some((name.clone(), input_value(name)?))).collect()
}

/// Returns why a gate rejected a call that requires approval, alone or besides a change.
pub(super) fn rejection(why: &ApprovalReason, gate: &str) -> Option<String> {
    match why {
        ApprovalReason::Gate { capability, reason } if capability == gate => Some(reason.clone()),
        ApprovalReason::Changed { besides: Some(besides), .. } => {
            let rejected = ApprovalReason::Gate { capability: gate.to_owned(), reason: String::new() };
            besides.strip_prefix(&rejected.describe()).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the state of the gates of one call of a step, with the inputs of the call; each is called before the step
/// starts, sequentially, and again for other inputs.
///
/// # Errors
/// Returns a failure of the step if a gate blocks it.
pub(super) fn gates(
    context: StepContext<'_>,
    progress: &Progress,
    approvals: &Approvals,
    capability: &Capability,
    inputs: &Map<String, Value>,
) -> Result<Gates, Failure> {
    let (plan, completed) = (&progress.plan, &progress.completed);
    let (mut warnings, mut refused) = (Vec::new(), None);
    for gate in &capability.safety.mandatory_pre_gates {
        let Some(gate_capability) = plan.capability(&gate.capability) else {
            let message = format!("the gate {} is not in the plan of this run", gate.capability);
            return Err(context.failure(CallFailure::InvalidConfiguration, message));
        };
        if let Some(message) = ambiguity(gate_capability, capability) {
            return Err(context.failure(CallFailure::InvalidConfiguration, message));
        }
        let gate_inputs = gate_inputs(gate_capability, &capability.id, inputs);
        let path = gate_path(context.path, &gate.capability, &capability.id, &gate_inputs);
        if context.running.contains(&path) {
            return Ok(Gates::Running);
        }
        let part = completed.parts.get(&path);
        let verdict = match (part, approvals.reason_at(context.path)) {
            (Some(part), _) => answer(part),
            // An earlier version called the gates with other inputs. They are called again when the run continues.
            (None, Some(why)) => rejection(why, &gate.capability).map_or(Ok(()), Err),
            (None, None) => {
                let (gate_inputs, obstacle) = match checked(gate_capability, &gate_inputs) {
                    Ok(gate_inputs) => (gate_inputs, None),
                    Err(message) => (gate_inputs, Some(CallError::new(CallFailure::InvalidRequest, message))),
                };
                let mut call = ScheduledCall::new(plan, path, Role::Gate, gate_capability, gate_inputs);
                call.obstacle = obstacle;
                return Ok(Gates::Call(Box::new(call)));
            }
        };
        let Err(reason) = verdict else { continue };
        let data = json!({"gate": gate.capability, "capability": capability.id, "reason": reason});
        let event = |kind: EventKind| NewEvent { kind, step: Some(context.path.to_owned()), data };
        match gate.on_fail {
            GateFailure::RequireHuman => {
                let capability = gate.capability.clone();
                refused.get_or_insert(ApprovalReason::Gate { capability, reason });
            }
            GateFailure::Warn => warnings.push(event(EventKind::GateWarned)),
            GateFailure::Degrade => return Ok(Gates::Degraded(event(EventKind::GateDegraded))),
            GateFailure::Block => {
                let message = format!("gate {} rejected {}: {reason}", gate.capability, capability.id);
                let mut failure = context.failure(CallFailure::SafetyDenied, message);
                failure.inputs.clone_from(inputs);
                let has_failed = part.is_some_and(|part| part.produced().is_none());
                failure.code = has_failed.then_some("gate_execution_failure");
                return Err(failure);
            }
        }
    }
    Ok(Gates::Passed(warnings, refused))
}

/// Number of reasons, and of items with the same reason, which the reason of an approval names.
const SHOWN_REASONS: usize = 3;
const SHOWN_ITEMS: usize = 5;

/// Returns one reason for the rejections of several items of a step, which names the items: `too long (send[1],
/// send[3])`. `recorded` is the reason for which the run waits at the step, and stays as it is.
pub(super) fn rejection_of_items(
    step: &str,
    rejections: &BTreeMap<usize, ApprovalReason>,
    recorded: Option<&ApprovalReason>,
) -> Option<ApprovalReason> {
    if let Some(ApprovalReason::Gate { capability, reason }) = rejections.values().next()
        && recorded.and_then(|why| rejection(why, capability)).as_ref() == Some(reason)
    {
        return rejections.values().next().cloned();
    }
    let (mut groups, mut known) = (Vec::new(), HashMap::new());
    for (index, why) in rejections {
        let ApprovalReason::Gate { capability, reason } = why else { continue };
        let group = *known.entry((capability, reason)).or_insert_with(|| {
            groups.push((capability, reason, Vec::new()));
            groups.len() - 1
        });
        groups[group].2.push(*index);
    }
    let (gate, ..) = *groups.first()?;
    let mut shown = Vec::new();
    for (capability, reason, items) in groups.iter().take(SHOWN_REASONS) {
        let mut paths: Vec<_> = items.iter().take(SHOWN_ITEMS).map(|index| part_path(step, *index)).collect();
        if items.len() > SHOWN_ITEMS {
            paths.push(format!("{} more", items.len() - SHOWN_ITEMS));
        }
        let by = if capability == &gate { String::new() } else { format!("{capability}: ") };
        shown.push(format!("{by}{reason} ({})", paths.join(", ")));
    }
    let others: usize = groups.iter().skip(SHOWN_REASONS).map(|(.., items)| items.len()).sum();
    if others > 0 {
        shown.push(format!("other reasons for {others} more"));
    }
    Some(ApprovalReason::Gate { capability: gate.clone(), reason: shown.join("; ") })
}

/// Returns why a capability requires approval: a gate rejected it, or it always does.
pub(super) fn approval_reason(
    refused: Option<ApprovalReason>,
    capability: &Capability,
) -> Option<ApprovalReason> {
    refused.or_else(|| capability.safety.requires_confirmation.then_some(ApprovalReason::Confirmation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(capability: &str, reason: &str) -> ApprovalReason {
        ApprovalReason::Gate { capability: capability.into(), reason: reason.into() }
    }

    fn reason_of(rejections: &[ApprovalReason]) -> Option<ApprovalReason> {
        rejection_of_items("send", &rejections.iter().cloned().enumerate().collect(), None)
    }

    #[test]
    fn rejections_of_several_items_name_each_reason_and_its_items() {
        assert_eq!(reason_of(&[]), None);
        let harmless = rejected("a.check", "in QA");
        assert_eq!(reason_of(std::slice::from_ref(&harmless)), Some(rejected("a.check", "in QA (send[0])")));
        let other = rejected("b.check", "to production");
        assert_eq!(
            reason_of(&[harmless.clone(), other, harmless]),
            Some(rejected("a.check", "in QA (send[0], send[2]); b.check: to production (send[1])"))
        );
    }

    #[test]
    fn the_reason_of_many_rejections_is_bounded() {
        let same: Vec<_> = (0..10_000).map(|_| rejected("a.check", "no")).collect();
        let listed = "no (send[0], send[1], send[2], send[3], send[4], 9995 more)";
        assert_eq!(reason_of(&same), Some(rejected("a.check", listed)));
        let distinct: Vec<_> = (0..10_000).map(|n| rejected("a.check", &n.to_string())).collect();
        let listed = "0 (send[0]); 1 (send[1]); 2 (send[2]); other reasons for 9997 more";
        assert_eq!(reason_of(&distinct), Some(rejected("a.check", listed)));
    }
}
