//! Audit log entries of runs.

use serde_json::{Value, json};

use skills_base::audit::Entry;
use skills_model::{Command, Expiry, Verdict};
use skills_runs::{Artifact, digest_of};
use skills_store::{
    AuditMode, CommandEffect, CommandOutcome, Control, ControlOutcome, DecisionRecord, RunId, RunRecord,
};

/// Adds details, unless the run's audit mode is off.
fn with(entry: Entry, run: &RunRecord, detail: serde_json::Value) -> Entry {
    if run.options.audit_mode == AuditMode::Off { entry } else { entry.with_detail(detail) }
}

/// Returns the entry for a created run.
pub(super) fn launched(run: &RunRecord) -> Entry {
    let data = json!({
        "run": run.id,
        "skill": run.skill_id,
        "contract": run.contract_digest,
        "inputs_digest": digest_of(&run.inputs),
        "trace_id": run.trace_id,
        "target": run.target.as_ref().and_then(|target| target.get("ref")),
        "unsandboxed": run.options.unsandboxed.then_some(true),
    });
    let entry = Entry::new("run.launched", Some(&run.started_by), data);
    with(entry, run, json!({ "inputs": run.inputs, "files": run.options.files }))
}

/// Returns the entry for a run that no worker has any longer.
pub(super) fn rested(run: &RunRecord) -> Entry {
    let data = json!({
        "run": run.id,
        "skill": run.skill_id,
        "step": run.step,
        "code": run.error.as_ref().and_then(|error| error.get("code")),
    });
    let entry = Entry::new(format!("run.{}", run.state), None, data);
    with(entry, run, json!({ "outputs": run.outputs, "error": run.error }))
}

/// Returns the entry for a command that changed a run or was stored for it; `None` if it changed nothing.
pub(super) fn commanded(
    command: &Command,
    by: Option<&DecisionRecord>,
    outcome: &CommandOutcome,
) -> Option<Entry> {
    if matches!(outcome.effect, CommandEffect::Repeated(_)) {
        return None;
    }
    let after = &outcome.run;
    let who = by.and_then(|by| by.approver.as_deref());
    let about = json!({ "run": after.id, "skill": after.skill_id });
    let entry = match command {
        Command::Signal { name } => {
            let mut entry = Entry::new("run.signaled", who, about);
            entry.data.insert("signal".to_owned(), json!(name));
            entry
        }
        Command::Endorse { decision, need, .. } if after.approval_progress().is_some() => {
            let mut entry = Entry::new("run.endorsed", who, about);
            entry.data.insert("step".to_owned(), json!(decision.step));
            entry.data.insert("inputs_digest".to_owned(), json!(decision.inputs_digest));
            entry.data.insert("need".to_owned(), json!(need));
            entry
        }
        Command::Decide(decision) | Command::Endorse { decision, .. } => {
            // As recorded: a denial that named only its step applied to the pending question.
            let decision = after.decided.as_ref().unwrap_or(decision);
            let kind = if decision.verdict == Verdict::Approve { "run.approved" } else { "run.denied" };
            let mut entry = Entry::new(kind, who, about);
            entry.data.insert("step".to_owned(), json!(decision.step));
            entry.data.insert("inputs_digest".to_owned(), json!(decision.inputs_digest));
            if let Some(choice) = decision.choice {
                entry.data.insert("choice".to_owned(), json!(choice));
            }
            let notes = by.and_then(|by| by.notes.clone());
            with(entry, after, json!({ "notes": notes, "result": decision.result }))
        }
        Command::Cancel => Entry::new("run.canceled", who, about),
        Command::Pause => Entry::new("run.paused", who, about),
        Command::Resume => Entry::new("run.resumed", who, about),
        Command::Expire(expiry) => return Some(expired(after, *expiry)),
        Command::RepeatDecision(_)
        | Command::Claim { .. }
        | Command::Work { .. }
        | Command::Ask(_)
        | Command::Replay
        | Command::Fork => return None,
    };
    Some(entry.durably())
}

/// Returns the entry for an assigned or unassigned run, with the data of its event: the record does not contain who
/// unassigned it.
pub(super) fn assigned(after: &RunRecord, event: &Value) -> Entry {
    let data = json!({ "run": after.id, "skill": after.skill_id, "to": event["to"] });
    let entry = Entry::new("run.assigned", event["by"].as_str(), data);
    with(entry, after, json!({ "note": event["note"] })).durably()
}

/// Returns the entry for an expired wait.
pub(super) fn expired(after: &RunRecord, expiry: Expiry) -> Entry {
    let data = json!({ "run": after.id, "skill": after.skill_id, "action": expiry });
    Entry::new("run.expired", None, data).durably()
}

/// Returns the entry for stored content.
pub(super) fn artifact_stored(artifact: &Artifact, by: &str) -> Entry {
    let data = json!({ "digest": artifact.digest, "name": artifact.name, "bytes": artifact.bytes });
    Entry::new("artifact.stored", Some(by), data)
}

/// Returns the entry for a replayed or forked run.
pub(super) fn branched(made: &RunRecord, paused: bool) -> Entry {
    let source = made.source.as_ref();
    let data = json!({
        "run": made.id,
        "skill": made.skill_id,
        "source": source.map(|(run, _)| run),
        "checkpoint": source.map(|(_, checkpoint)| checkpoint),
    });
    Entry::new(if paused { "run.forked" } else { "run.replayed" }, Some(&made.started_by), data)
}

/// Returns the entry for a sidecar's control request to the run it watches.
pub(super) fn controlled(
    sidecar: &RunId,
    watched: &RunId,
    control: &Control,
    outcome: &ControlOutcome,
) -> Entry {
    let refused = match outcome {
        ControlOutcome::Applied(_) => None,
        ControlOutcome::Refused(why) => Some(why),
    };
    let data =
        json!({ "run": watched, "sidecar": sidecar, "asked": control.description, "refused": refused });
    Entry::new("run.controlled", None, data).durably()
}
