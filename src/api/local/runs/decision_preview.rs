//! The decision preview of a gate: what would be executed, by which binding, with which inputs, and whether it can be
//! undone.

use serde_json::Value;

use super::summary;
use crate::trust::called_by_steps;
use crate::{DecisionPreview, DecisionTarget, SuppliedFile, content};
use skills_base::canonical::digest_of;
use skills_base::text::collapse_whitespace;
use skills_model::{ApprovalReason, Gate};
use skills_runs::{BindingChoice, Engine, Explanation, PendingGate, Plan, is_repeatable, max_attempts};
use skills_skill::contract::{Capability, GateFailure, Protocol};
use skills_store::{RunOptions, RunRecord};

/// Returns the preview of the gate that a run waits at; `None` if it waits for no person. `at` is what it would do
/// next, if known.
pub(super) fn preview(
    run: &RunRecord,
    plan: &Plan,
    at: Option<&PendingGate>,
    engine: &Engine,
    approver: (String, String),
) -> Option<DecisionPreview> {
    let Some(Gate::Human { step, inputs_digest, why, .. }) = &run.gate else { return None };
    let own = || plan.capability_of(plan.step_at(step)?).cloned();
    let capability = at.map_or_else(own, |at| at.capability.clone());
    let capability = capability.as_deref();
    // If it would now do something other than the pending question, neither the run's inputs nor current ones are what
    // was reviewed.
    let inputs = at.map_or(Value::Null, |at| at.inputs.clone());
    let explained = capability.map(|capability| engine.explain(run, capability));
    let own = plan.contract.steps.len();
    let first = step.split(['/', '[', '~']).next().unwrap_or_default();
    let place = plan.contract.steps.iter().position(|s| s.id == first).map_or(1, |at| at + 1);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let unknown = *why == ApprovalReason::UnknownOutcome;
    Some(DecisionPreview {
        run: run.id.clone(),
        skill_id: run.skill_id.clone(),
        headline: headline(run, plan, capability, &inputs, unknown),
        step: step.clone(),
        place: (count(place), count(own)),
        labels: run.options.labels.clone(),
        outcome_unknown: unknown,
        capability: capability.map(|c| c.id.clone()).unwrap_or_default(),
        capability_note: capability.map(|c| note_at_gate(c, max_attempts(plan, step))).unwrap_or_default(),
        binding: explained.as_ref().map_or_else(|| bindings_of_steps(plan), binding_at_gate),
        fallbacks: explained.as_ref().map(fallbacks).unwrap_or_default(),
        isolation: explained.as_ref().map(isolation).unwrap_or_default(),
        why: reason(why, at.is_none()),
        irreversible: capability.and_then(|c| irreversible(c, unknown)),
        inputs,
        outputs: capability.map(|c| c.outputs.clone()).unwrap_or_default(),
        files: supplied_files(run, explained.as_ref()),
        target: run.target.as_ref().map(target),
        inputs_digest: inputs_digest.clone(),
        approver: Some(approver),
        since_ms: run.since_ms,
        expires_ms: run.expires_ms,
        on_expiry: run.options.on_expiry,
        changed: match why {
            ApprovalReason::Changed { what, .. } => Some(what.clone()),
            _ => None,
        },
        blocked: None,
        blocked_public: None,
        not_approver: None,
        required: None,
        missing_scope: None,
        pause: None,
    })
}

/// Describes what is executed after an approval before the first step.
fn bindings_of_steps(plan: &Plan) -> String {
    format!("each step has its own; the steps call {}", called_by_steps(&plan.contract).join(", "))
}

/// Returns the files of a run, unless the step calls no script, which would receive them.
fn supplied_files(run: &RunRecord, explained: Option<&Explanation>) -> Vec<SuppliedFile> {
    let script = Protocol::Script.to_string();
    let calls_no_script = |explained: &Explanation| {
        explained.chosen.is_some() && explained.bindings.iter().all(|choice| choice.protocol != script)
    };
    if explained.is_some_and(calls_no_script) {
        return Vec::new();
    }
    let RunOptions { files, file_digests, .. } = &run.options;
    let file = |(name, path): (&String, &String)| SuppliedFile {
        name: name.clone(),
        path: path.clone(),
        sha256: file_digests.get(name).cloned(),
    };
    files.iter().map(file).collect()
}

/// Maximum number of characters of the label of a target.
const MAX_LABEL: usize = 200;

/// Returns what a run is attached to, with its content as in the preview of an attachment.
fn target(target: &Value) -> DecisionTarget {
    let text = |name: &str| target.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content = target.get("content").unwrap_or(&Value::Null);
    let label = ["name", "title"].iter().find_map(|name| content.get(name)?.as_str());
    let shown = content::cut(content);
    DecisionTarget {
        kind: text("type"),
        reference: text("ref"),
        label: label.map(|label| label.chars().take(MAX_LABEL).collect()),
        content_bytes: content.to_string().len() as u64,
        sha256: digest_of(content),
        truncated: shown != *content,
        content: shown,
    }
}

fn headline(
    run: &RunRecord,
    plan: &Plan,
    capability: Option<&Capability>,
    inputs: &Value,
    unknown: bool,
) -> String {
    let Some(capability) = capability else {
        let steps = plan.contract.steps.len();
        let steps = skills_base::number::counted(steps, "step");
        return format!("Run {} {} ({steps})", run.skill_id, plan.contract.version);
    };
    // One line, so that a description cannot be taken for the rest of a question.
    let does = collapse_whitespace(&capability.description);
    let does = does.split_once(". ").map_or(&*does, |(first, _)| first).trim_end_matches('.');
    let does = if does.is_empty() { &capability.id } else { does };
    let with = inputs.as_object().map(summary::of_inputs).filter(|text| !text.is_empty());
    let what = match with {
        Some(with) => format!("{does}: {with}"),
        None => does.to_owned(),
    };
    if unknown { format!("Outcome unknown: {what}") } else { what }
}

/// Describes the declared properties of a capability: `elevated, not idempotent`.
pub(super) fn note(capability: &Capability) -> String {
    let properties = capability.properties;
    let repeat = match (properties.side_effects, properties.idempotent) {
        (false, _) => "no side effects",
        (true, true) => "idempotent",
        (true, false) => "not idempotent",
    };
    format!("{}, {repeat}", capability.safety.trust_level)
}

/// Like [`note`], with the number of attempts that one approval allows, unless repeating the call is safe.
fn note_at_gate(capability: &Capability, attempts: u32) -> String {
    let note = note(capability);
    if attempts > 1 && !is_repeatable(capability) {
        format!("{note}, up to {attempts} attempts if it fails")
    } else {
        note
    }
}

fn reason(why: &ApprovalReason, changed: bool) -> String {
    let because = because(why);
    if changed {
        format!(
            "{because}; what it would execute has changed since, so approving leads to another approval \
                request"
        )
    } else {
        because
    }
}

fn because(why: &ApprovalReason) -> String {
    match why {
        ApprovalReason::Confirmation => ApprovalReason::Confirmation.describe(),
        ApprovalReason::UnknownOutcome => {
            "its execution was interrupted, and it is not declared idempotent".to_owned()
        }
        other => other.describe(),
    }
}

fn irreversible(capability: &Capability, unknown: bool) -> Option<String> {
    if unknown {
        return Some("If it was executed, running it again repeats its side effects.".to_owned());
    }
    match (capability.properties.side_effects, capability.safety.reversible) {
        (true, Some(false)) => Some("This step cannot be undone.".to_owned()),
        (true, None) if !capability.properties.idempotent => {
            Some("It has external side effects; whether they can be undone is not declared.".to_owned())
        }
        _ => None,
    }
}

/// Returns the binding that would be called, for display, or why none is available.
pub(super) fn binding(explained: &Explanation) -> String {
    explained.first_called().map_or_else(|| explained.summary.clone(), called)
}

/// Returns what a binding calls, for display.
fn called(choice: &BindingChoice) -> String {
    let what = if choice.target.is_empty() { &choice.binding } else { &choice.target };
    format!("{} {what}", choice.protocol)
}

/// Returns the other bindings of a chain, which a call tries before or after the first one that is available; none if
/// all of them have obstacles, which `blocked` states.
fn fallbacks(explained: &Explanation) -> Vec<String> {
    if explained.chain().all(|choice| choice.obstacle.is_some()) {
        return Vec::new();
    }
    let mut is_passed = false;
    let mut out = Vec::new();
    for choice in explained.chain() {
        if explained.chosen.as_ref() == Some(&choice.binding) {
            is_passed = true;
        } else if is_passed && choice.obstacle.is_none() {
            out.push(called(choice));
        } else if choice.obstacle.is_none() {
            out.push(format!("{} (called first when its circuit breaker closes)", called(choice)));
        } else {
            out.push(format!("{} (not available now)", called(choice)));
        }
    }
    out
}

/// Like [`binding`], without the obstacles of bindings: `blocked` states them, with a form for callers who may not see
/// addresses.
fn binding_at_gate(explained: &Explanation) -> String {
    let has_obstacle = explained.bindings.iter().any(|choice| choice.obstacle.is_some());
    if explained.chosen.is_none() && has_obstacle {
        return "no binding is available".to_owned();
    }
    binding(explained)
}

fn isolation(explained: &Explanation) -> String {
    explained.first_called().map(|choice| choice.isolation.clone()).unwrap_or_default()
}

/// Describes the gates and confirmation of a capability.
pub(super) fn gates(capability: &Capability) -> Vec<String> {
    let mut words: Vec<String> = capability
        .safety
        .mandatory_pre_gates
        .iter()
        .map(|gate| {
            let then = match gate.on_fail {
                GateFailure::Block => "blocks it",
                GateFailure::RequireHuman => "requires approval",
                GateFailure::Degrade => "skips the step",
                GateFailure::Warn => "only warns",
            };
            format!("gate {}: a rejection {then}", gate.capability)
        })
        .collect();
    if capability.safety.requires_confirmation {
        words.push("always requires approval".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use skills_skill::contract::parse_capability;

    #[test]
    fn attempts_are_named_unless_repeating_is_safe() {
        let capability = |idempotent: bool| {
            let text = format!(
                "id: pay.send\nversion: 1.0.0\nproperties: {{ side_effects: true, idempotent: {idempotent} }}\n"
            );
            parse_capability(Path::new("c.yaml"), &text).0.unwrap()
        };
        let note = |idempotent, attempts| note_at_gate(&capability(idempotent), attempts);
        assert!(
            note(false, 3).ends_with("not idempotent, up to 3 attempts if it fails"),
            "{}",
            note(false, 3)
        );
        assert!(note(false, 1).ends_with("not idempotent"), "{}", note(false, 1));
        assert!(note(true, 3).ends_with("idempotent"), "{}", note(true, 3));
    }
}
