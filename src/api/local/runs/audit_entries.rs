//! Audit log entries of runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use skills_base::audit::{Entry, PendingOperation, Recorder};
use skills_base::canonical::digest_of;
use skills_model::{Command, Expiry};
use skills_runs::Artifact;
use skills_store::{
    AuditMode, ClockReading, CommandOutcome, Control, ControlOutcome, DecisionRecord, EventKind, NewEvent,
    RunEvent, RunId, RunRecord, Store, StoreError,
};

/// Events read per page.
const PAGE: usize = 500;

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
pub(super) fn inactive_run(run: &RunRecord) -> Entry {
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
    let (number, event) = outcome.event.as_ref()?;
    if let Command::Expire(expiry) = command {
        return Some(expired(&outcome.run, *expiry));
    }
    recorded(&outcome.run, *number, event, by.and_then(|by| by.approver.as_deref()), need(command))
}

/// Returns how many approvals are required, if the command is one of several.
fn need(command: &Command) -> Option<u32> {
    match command {
        Command::Endorse { need, .. } => Some(*need),
        _ => None,
    }
}

/// Returns the entry for the event that records a command.
fn recorded(
    run: &RunRecord,
    number: u64,
    event: &NewEvent,
    by: Option<&str>,
    need: Option<u32>,
) -> Option<Entry> {
    let is_endorsed = event.kind == EventKind::GateEndorsed;
    let kind = match event.kind {
        EventKind::SignalReceived => "run.signaled",
        EventKind::GateEndorsed => "run.endorsed",
        EventKind::GateApproved => "run.approved",
        EventKind::GateDenied => "run.denied",
        EventKind::RunCanceled => "run.canceled",
        EventKind::RunPaused => "run.paused",
        EventKind::RunResumed => "run.resumed",
        _ => return None,
    };
    let details = &event.data;
    let data = json!({
        "run": run.id,
        "skill": run.skill_id,
        "event": number,
        "signal": (event.kind == EventKind::SignalReceived).then(|| details["name"].clone()),
        "step": event.step,
        "inputs_digest": details["inputs_digest"],
        "choice": details["choice"],
        "need": need.filter(|_| is_endorsed),
    });
    let mut entry = Entry::new(kind, by, data).durably();
    if matches!(event.kind, EventKind::GateApproved | EventKind::GateDenied) {
        entry = with(entry, run, json!({ "notes": details["notes"], "result": details["result"] }));
    }
    Some(entry)
}

/// Maximum difference of the clocks of this machine and of the store.
const MAX_SKEW_MS: i64 = 10 * 60 * 1_000;

/// A command of a person that is not in the audit log yet.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PendingCommand {
    store: String,
    run: RunId,
    at_ms: i64,
    by: Option<String>,
    /// The kinds of events that can record it.
    kinds: Vec<EventKind>,
    /// The step that is decided.
    step: Option<String>,
    signal: Option<String>,
    need: Option<u32>,
}

impl PendingCommand {
    fn of(store: String, run: &RunId, command: &Command, by: Option<&DecisionRecord>) -> Option<Self> {
        let kinds = match command {
            Command::Decide(_) | Command::Endorse { .. } => {
                vec![EventKind::GateEndorsed, EventKind::GateApproved, EventKind::GateDenied]
            }
            Command::Signal { .. } => vec![EventKind::SignalReceived],
            Command::Cancel => vec![EventKind::RunCanceled],
            Command::Pause => vec![EventKind::RunPaused],
            Command::Resume => vec![EventKind::RunResumed],
            _ => return None,
        };
        let signal = match command {
            Command::Signal { name } => Some(name.clone()),
            _ => None,
        };
        Some(Self {
            store,
            run: run.clone(),
            at_ms: ClockReading::now().wall_ms,
            by: by.and_then(|by| by.approver.clone()),
            kinds,
            step: command.decision().map(|decision| decision.step.clone()),
            signal,
            need: need(command),
        })
    }

    fn is_recorded_by(&self, event: &RunEvent) -> bool {
        let (kind, data) = (&event.event.kind, &event.event.data);
        let by = match kind {
            EventKind::RunPaused => self.by.as_deref(),
            EventKind::GateEndorsed | EventKind::GateApproved | EventKind::GateDenied => {
                data["approver"].as_str()
            }
            _ => data["by"].as_str(),
        };
        self.kinds.contains(kind)
            && event.at_ms >= self.at_ms - MAX_SKEW_MS
            && by == self.by.as_deref()
            && self.step.as_ref().is_none_or(|step| event.event.step.as_ref() == Some(step))
            && self.signal.as_deref().is_none_or(|name| data["name"] == name)
    }
}

/// Stores a command of a person before it is applied; `None` for other commands.
pub(super) async fn begin(
    audit: &Arc<Recorder>,
    store: String,
    run: &RunId,
    command: &Command,
    by: Option<&DecisionRecord>,
) -> Option<PendingOperation> {
    let pending = serde_json::to_value(PendingCommand::of(store, run, command, by)?).ok()?;
    let audit = Arc::clone(audit);
    crate::work::spawn_blocking(move || audit.begin(pending)).await.ok().flatten()
}

/// Records the commands that a killed process applied and did not record.
///
/// # Errors
/// Returns the errors of the store; the others are completed the next time.
pub(super) async fn complete(audit: &Arc<Recorder>, store: &dyn Store) -> Result<(), StoreError> {
    let mut interrupted: BTreeMap<RunId, Vec<(PendingOperation, PendingCommand)>> = BTreeMap::new();
    for operation in pending(audit).await {
        if !operation.is_interrupted() {
            continue;
        }
        let Ok(command) = PendingCommand::deserialize(&operation.what) else {
            operation.end();
            continue;
        };
        if command.store == store.identity() {
            interrupted.entry(command.run.clone()).or_default().push((operation, command));
        }
    }
    // The commands of a run together: one of them can have caused the event that another one asked for.
    for (run, interrupted) in interrupted {
        let (operations, commands): (Vec<_>, Vec<_>) = interrupted.into_iter().unzip();
        let entries = entries_of(store, &run, &commands).await?;
        // Another process can have applied the same command and not recorded it yet.
        let is_of_another = |other: &PendingOperation| {
            !operations.iter().any(|own| own.is(other)) && other.what["run"] == operations[0].what["run"]
        };
        if pending(audit).await.iter().any(is_of_another) {
            continue;
        }
        let audit = Arc::clone(audit);
        let completed = crate::work::spawn_blocking(move || {
            if entries.into_iter().all(|entry| audit.record_missing(entry, &["run", "event"])) {
                operations.into_iter().for_each(PendingOperation::end);
            }
        });
        if let Err(error) = completed.await {
            tracing::error!("cannot record an interrupted command: {error}");
        }
    }
    Ok(())
}

async fn pending(audit: &Arc<Recorder>) -> Vec<PendingOperation> {
    let audit = Arc::clone(audit);
    crate::work::spawn_blocking(move || audit.pending()).await.unwrap_or_default()
}

/// Returns an entry for each event that records one of the commands of a run.
async fn entries_of(
    store: &dyn Store,
    run: &RunId,
    commands: &[PendingCommand],
) -> Result<Vec<Entry>, StoreError> {
    let Some(run) = store.run(run).await? else { return Ok(Vec::new()) };
    let (mut entries, mut after) = (Vec::new(), 0);
    loop {
        let events = store.events(Some(&run.id), after, PAGE).await?;
        let Some(last) = events.last() else { return Ok(entries) };
        after = last.number;
        entries.extend(events.iter().filter_map(|event| {
            let command = commands.iter().find(|command| command.is_recorded_by(event))?;
            recorded(&run, event.number, &event.event, command.by.as_deref(), command.need)
        }));
    }
}

/// Returns the entry for an assigned or unassigned run, with its event: the run itself does not tell who unassigned it.
pub(super) fn assigned(after: &RunRecord, event: &NewEvent) -> Entry {
    let data = json!({ "run": after.id, "skill": after.skill_id, "to": event.data["to"] });
    let entry = Entry::new("run.assigned", event.data["by"].as_str(), data);
    with(entry, after, json!({ "note": event.data["note"] })).durably()
}

/// Returns the entry for an expired wait.
pub(super) fn expired(after: &RunRecord, expiry: Expiry) -> Entry {
    let data = json!({ "run": after.id, "skill": after.skill_id, "action": expiry });
    Entry::new("run.expired", None, data).durably()
}

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
