//! Commands of people and other programs on a run: decide, signal, cancel, resume.

use serde_json::{Map, Value, json};

use super::integrity::{damage, digest};
use super::rows::{
    append, apply, as_of, get_short, json as encode, moved, own_steps, run_snapshot, signed, write_events,
};
use super::{Tx, checkpoints, dialect, failed, read, values};
use crate::{
    CommandEffect, CommandOutcome, DecisionRecord, EventKind, NewEvent, Precondition, RecordedDecision,
    RunId, RunOptions, RunRecord, StoreError, expiry,
};
use skills_model::{
    ApprovalReason, Command, Decision, Expiry, Gate, RunState, Transition, TransitionError, Verdict,
    transition,
};

/// A command with what is stored with it.
#[derive(Debug)]
pub(crate) struct CommandRequest {
    /// Start of the state in which the command applies; in any state if omitted.
    pub since_ms: Option<i64>,
    pub command: Command,
    pub record: Option<DecisionRecord>,
    pub head: Option<u64>,
    pub payload: Option<Value>,
}

pub(crate) async fn command<T: Tx>(
    tx: &T,
    run: &RunId,
    request: &CommandRequest,
) -> Result<CommandOutcome, StoreError> {
    let (recorded, replays) = get_short(tx, run).await?;
    let now_ms = tx.now().await?.wall_ms;
    let due = recorded.expires_ms.is_some_and(|at| at <= now_ms);
    let before = match request.command {
        Command::Expire(_) => recorded,
        _ => as_of(recorded, replays, now_ms),
    };
    ensure_in_state_since(&before, request.since_ms)?;
    let state = before.state;
    let repeated = |run: RunRecord, first: Option<RecordedDecision>| CommandOutcome {
        run,
        before: state,
        effect: CommandEffect::Repeated(first.map(Box::new)),
        expired: None,
        event: None,
    };
    let mut earlier: Vec<RecordedDecision> = Vec::new();
    let mut command = request.command.clone();
    if let Some(decision) = command.decision_mut() {
        earlier = read::decisions(tx, run).await?;
        let decisions = earlier.iter().map(|decided| &decided.decision);
        *decision = decision.clone().bound_to(before.gate.as_ref(), decisions);
        if !decision.answers(before.gate.as_ref())
            && let Some(first) = repeats(tx, run, decision, request.record.as_ref(), &earlier).await?
        {
            return Ok(repeated(before, Some(first)));
        }
    }
    let next = transition(&run_snapshot(&before, replays), &command)
        .map_err(|refusal| already_decided(&command, before.gate.as_ref(), &earlier, refusal))?;
    let decided = command.decision();
    if next == Transition::Unchanged {
        let first =
            decided.and_then(|decision| earlier.into_iter().rfind(|stored| stored.decision == *decision));
        return Ok(repeated(before, first));
    }
    let mut expired = None;
    match (&command, due) {
        // It was decided and waits again, or waits without a limit: the sweep saw an older state.
        (Command::Expire(_), false) => return Err(TransitionError::NotExpired.into()),
        (Command::Expire(_), true) | (_, false) => {}
        (_, true) => expired = Some(Box::new(expire(tx, run).await?)),
    }
    apply(tx, &before, &next, decided, now_ms).await?;
    let is_endorsed = matches!(&next, Transition::Move { gate: Some(Gate::Human { .. }), .. });
    let mut events = record(tx, run, request, &command, before, is_endorsed, now_ms).await?;
    let after = get_short(tx, run).await?.0;
    if after.paused && after.state == RunState::Pending {
        events.push(moved(EventKind::RunHeld, json!({})));
    }
    let number = append(tx, run, &events, now_ms).await?;
    if !after.state.is_active() {
        checkpoints::evict_newest(tx, run).await?;
    }
    let effect =
        if next == Transition::SignalBuffered { CommandEffect::Stored } else { CommandEffect::Applied };
    let event = number.zip(events.into_iter().next());
    Ok(CommandOutcome { run: after, before: state, effect, expired, event })
}

/// Checks that the run is still in the state that it entered at this moment.
pub(crate) fn ensure_in_state_since(run: &RunRecord, since_ms: Option<i64>) -> Result<(), StoreError> {
    // Before its expiry was recorded, a wait was shown as ended at its deadline.
    match since_ms {
        Some(since_ms) if run.since_ms != since_ms && run.expired_ms() != Some(since_ms) => {
            Err(StoreError::PreconditionFailed { run: run.id.clone() })
        }
        _ => Ok(()),
    }
}

/// Stores what belongs to a command other than the new state, and returns its events.
async fn record<T: Tx>(
    tx: &T,
    run: &RunId,
    request: &CommandRequest,
    command: &Command,
    before: RunRecord,
    is_endorsed: bool,
    now_ms: i64,
) -> Result<Vec<NewEvent>, StoreError> {
    let by = request.record.as_ref().and_then(|record| record.approver.as_deref());
    let event = match command {
        Command::Decide(decision) | Command::Endorse { decision, .. } => {
            let record = request.record.clone().unwrap_or(DecisionRecord { approver: None, notes: None });
            return record_decision(tx, &before, decision, &record, is_endorsed, now_ms).await;
        }
        Command::Signal { name } => {
            let payload = request.payload.clone().unwrap_or(Value::Null);
            let encoded = encode(&payload)?;
            // The signal that the run waits for is not kept: others must not keep it waiting.
            let is_awaited =
                matches!(&before.gate, Some(Gate::Signal { name: awaited, .. }) if awaited == name);
            ensure_signal_fits(tx, run, encoded.len(), is_awaited).await?;
            let sql = "INSERT INTO signals (run, name, payload) VALUES (?1, ?2, ?3)";
            tx.post("store a signal", sql, values![run, name, encoded]).await?;
            let data = signed(json!({"name": name, "payload": payload}), by);
            moved(EventKind::SignalReceived, data)
        }
        Command::Cancel => moved(EventKind::RunCanceled, signed(json!({}), by)),
        Command::Pause => moved(EventKind::RunPaused, json!({"state": before.state})),
        Command::Ask(gate) => {
            let step = match gate {
                Gate::Human { step, .. } | Gate::Signal { step, .. } => step.clone(),
            };
            let data = json!({"gate": gate, "before": before.gate});
            NewEvent { kind: EventKind::GateChanged, step: Some(step), data }
        }
        Command::Resume => {
            let head = resume(tx, run, before.head, request.head).await?;
            let mut data = json!({"checkpoint": head, "mode": "checkpoint_resume"});
            if head < before.head {
                data["head_before"] = json!(before.head);
            }
            if let Some(corrected) = &request.payload {
                let before = RunRecord { inputs: read_inputs(tx, run).await?, ..before };
                data["corrected_inputs"] = corrected.clone();
                // Only the corrected fields: their previous values are stored nowhere else.
                data["inputs_before"] = corrected
                    .as_object()
                    .map(|fields| {
                        fields.keys().map(|name| (name.clone(), before.inputs[name].clone())).collect()
                    })
                    .unwrap_or_default();
                ensure_correction_fits(tx, run, encode(&data)?.len()).await?;
                correct(tx, before, corrected, by).await?;
            }
            record_resumer(tx, run, by).await?;
            moved(EventKind::RunResumed, signed(data, by))
        }
        Command::Expire(expiry) => return record_expiry(tx, &before, *expiry, now_ms).await,
        Command::RepeatDecision(_)
        | Command::Claim { .. }
        | Command::Work { .. }
        | Command::Replay
        | Command::Fork => return Ok(Vec::new()),
    };
    Ok(vec![event])
}

async fn record_decision<T: Tx>(
    tx: &T,
    before: &RunRecord,
    decision: &Decision,
    record: &DecisionRecord,
    is_endorsed: bool,
    now_ms: i64,
) -> Result<Vec<NewEvent>, StoreError> {
    let run = &before.id;
    tx.post(
        "record a decision",
        "INSERT INTO decisions (run, at_ms, decision, approver, notes) VALUES (?1, ?2, ?3, ?4, ?5)",
        values![run, now_ms, encode(decision)?, record.approver.as_deref(), record.notes.as_deref()],
    )
    .await?;
    let mut call = None;
    if let (
        Verdict::Approve,
        false,
        Some(Gate::Human { why: ApprovalReason::Changed { now, call: of, .. }, .. }),
    ) = (decision.verdict, is_endorsed, &before.gate)
    {
        call.clone_from(of);
        // What was approved is what runs: further edits require approval again.
        let mut options = before.options.clone();
        options.pins.get_or_insert_default().extend(now.clone());
        let sql = "UPDATE runs SET options = ?2 WHERE id = ?1";
        tx.post("store the bindings of a run", sql, values![run, encode(&options)?]).await?;
    }
    let mut events = vec![NewEvent {
        kind: match (decision.verdict, is_endorsed) {
            (Verdict::Approve, true) => EventKind::GateEndorsed,
            (Verdict::Approve, false) => EventKind::GateApproved,
            (Verdict::Deny, _) => EventKind::GateDenied,
        },
        step: Some(decision.step.clone()),
        data: json!({"approver": record.approver, "notes": record.notes, "choice": decision.choice,
                     "result": decision.result, "inputs_digest": decision.inputs_digest, "call": call}),
    }];
    if decision.verdict == Verdict::Deny {
        let data = signed(json!({"reason": "denied"}), record.approver.as_deref());
        events.push(moved(EventKind::RunCanceled, data));
    }
    Ok(events)
}

async fn record_expiry<T: Tx>(
    tx: &T,
    before: &RunRecord,
    expiry: Expiry,
    now_ms: i64,
) -> Result<Vec<NewEvent>, StoreError> {
    let gate = json!({"gate": before.gate, "on_expiry": expiry, "expired_ms": before.expires_ms});
    let mut error = expiry::ended(before, expiry, before.expires_ms.unwrap_or(now_ms));
    let sql = "UPDATE runs SET error = ?2 WHERE id = ?1";
    tx.post("store an error", sql, values![&before.id, encode(&error)?]).await?;
    let end = if expiry == Expiry::Fail {
        moved(EventKind::RunFailed, error)
    } else {
        error["reason"] = json!("expired");
        moved(EventKind::RunCanceled, error)
    };
    Ok(vec![moved(EventKind::RunExpired, gate), end])
}

/// Merges fields into the options of a run, and records an event.
pub(crate) async fn annotate<T: Tx>(
    tx: &T,
    run: &RunId,
    fields: &Map<String, Value>,
    events: &[NewEvent],
    requires: Option<&Precondition>,
) -> Result<RunRecord, StoreError> {
    let (before, _) = get_short(tx, run).await?;
    let is_met = match requires {
        None => true,
        Some(Precondition::AssignedTo(expected)) => {
            let assigned = before.options.assigned.as_ref();
            if assigned.map_or("", |assigned| &assigned.to) != expected {
                return Err(StoreError::AssignmentConflict { run: run.clone(), assigned: assigned.cloned() });
            }
            true
        }
        Some(Precondition::NotEscalated(since_ms)) => {
            before.since_ms == *since_ms && before.options.escalated_ms != Some(*since_ms)
        }
        Some(Precondition::Notifications(notified, notifying)) => {
            before.options.notified == *notified && before.options.notifying == *notifying
        }
    };
    if !is_met {
        return Err(StoreError::PreconditionFailed { run: run.clone() });
    }
    if let Some(event) = events.iter().find(|event| event.kind == EventKind::RunAssigned) {
        ensure_may_be_assigned(tx, run, event.data["by"].as_str().unwrap_or_default()).await?;
    }
    let action = "store the options of a run";
    let mut options = serde_json::to_value(&before.options).map_err(|e| failed(action, &e))?;
    for (name, value) in fields {
        match value {
            Value::Null => drop(options.as_object_mut().and_then(|options| options.remove(name))),
            value => options[name.as_str()] = value.clone(),
        }
    }
    let options: RunOptions = serde_json::from_value(options)
        .map_err(|e| StoreError::InvalidRequest(format!("invalid options of run {run}: {e}")))?;
    // One statement for both, because each writes the row again, with all its values.
    let sql = "UPDATE runs SET options = ?3, events = events + ?2 WHERE id = ?1 RETURNING events - ?2 + 1";
    let numbered = tx.find(action, sql, values![run, events.len(), encode(&options)?]).await?;
    let first: i64 = numbered.ok_or_else(|| StoreError::NoRun(run.clone()))?.take(0)?;
    let now_ms = tx.now().await?.wall_ms;
    write_events(tx, run, first, events, now_ms).await?;
    let (after, replays) = get_short(tx, run).await?;
    Ok(as_of(after, replays, now_ms))
}

/// Records that a wait has expired.
async fn expire<T: Tx>(tx: &T, run: &RunId) -> Result<RunRecord, StoreError> {
    let expiry = get_short(tx, run).await?.0.options.on_expiry;
    let request = CommandRequest {
        since_ms: None,
        command: Command::Expire(expiry),
        record: None,
        head: None,
        payload: None,
    };
    Ok(Box::pin(command(tx, run, &request)).await?.run)
}

/// Returns a refusal, with the decision that was recorded first if the question is no longer open.
fn already_decided(
    command: &Command,
    gate: Option<&Gate>,
    earlier: &[RecordedDecision],
    refusal: TransitionError,
) -> StoreError {
    let unanswered = command.decision().filter(|decision| !decision.answers(gate));
    // A denial may name the step only.
    let same = |decision: &Decision, other: &Decision| {
        decision.same_gate(other) || (decision.inputs_digest.is_empty() && decision.step == other.step)
    };
    let first = unanswered
        .and_then(|decision| earlier.iter().rev().find(|decided| same(decision, &decided.decision)));
    match first {
        Some(first) => StoreError::AlreadyDecided { first: Box::new(first.clone()), refusal },
        None => refusal.into(),
    }
}

/// Returns the earlier decision that this one repeats. A later decision on the same gate supersedes it, and one of
/// several approvals that were not enough is repeated only by the person who made it.
async fn repeats<T: Tx>(
    tx: &T,
    run: &RunId,
    decision: &Decision,
    by: Option<&DecisionRecord>,
    earlier: &[RecordedDecision],
) -> Result<Option<RecordedDecision>, StoreError> {
    let newest = earlier.iter().rev().find(|decided| decided.decision.same_gate(decision));
    let Some(newest) = newest.filter(|newest| newest.decision == *decision) else { return Ok(None) };
    if decision.verdict == Verdict::Deny || read::opened(tx, run, decision).await? {
        return Ok(Some(newest.clone()));
    }
    let approver = by.and_then(|record| record.approver.as_deref());
    let own = |decided: &&RecordedDecision| {
        decided.decision == *decision && decided.by.approver.as_deref() == approver
    };
    Ok(earlier.iter().rev().find(own).cloned())
}

/// Moves the head, and lets the steps that come after it run again: their records are kept and marked as superseded.
async fn resume<T: Tx>(tx: &T, run: &RunId, head: u64, to: Option<u64>) -> Result<u64, StoreError> {
    let number = to.unwrap_or(head);
    let checkpoint = checkpoints::read_checkpoint(tx, run, number).await?;
    let sql = format!(
        "UPDATE steps SET superseded = 1 WHERE run = ?1 AND superseded = 0 AND step NOT IN {}",
        dialect::texts(T::POSTGRES, "?2")
    );
    tx.post("supersede steps", &sql, values![run, encode(&checkpoint.done)?]).await?;
    // An intent without a result may have had an external effect, and the worker has to ask about it. One that may be
    // repeated includes an approval, which does not hold for what comes after an earlier checkpoint.
    if number < head {
        let repeatable = dialect::flag(T::POSTGRES, "json", "repeatable");
        let sql = format!("DELETE FROM intents WHERE run = ?1 AND {repeatable} = 'true'");
        tx.post("delete intents", &sql, values![run]).await?;
    }
    tx.post(
        "move the head",
        "UPDATE runs SET head = ?2, steps_done = ?3, error = NULL, lost_leases = 0, step = NULL
         WHERE id = ?1",
        values![run, number, own_steps(&checkpoint.done)],
    )
    .await?;
    Ok(number)
}

/// Records who resumed a run in its options as they are stored: those that cannot be read are not replaced.
async fn record_resumer<T: Tx>(tx: &T, run: &RunId, by: Option<&str>) -> Result<(), StoreError> {
    let action = "store who resumed a run";
    let row = tx.find(action, "SELECT options FROM runs WHERE id = ?1", values![run]).await?;
    let options = row.and_then(|row| row.json::<Map<String, Value>>(0).ok());
    let Some(mut options) = options.filter(|options| options.get("resumed_by").and_then(Value::as_str) != by)
    else {
        return Ok(());
    };
    match by {
        Some(by) => options.insert("resumed_by".to_owned(), by.into()),
        None => options.remove("resumed_by"),
    };
    tx.post(action, "UPDATE runs SET options = ?2 WHERE id = ?1", values![run, encode(&options)?]).await
}

/// Returns the inputs of a run, null if they cannot be read.
async fn read_inputs<T: Tx>(tx: &T, run: &RunId) -> Result<Value, StoreError> {
    let row = tx.find("read inputs", "SELECT inputs FROM runs WHERE id = ?1", values![run]).await?;
    Ok(row.and_then(|row| row.json(0).ok()).unwrap_or_default())
}

/// Merges corrected inputs into the run's own: a named field is replaced, the others are kept.
async fn correct<T: Tx>(
    tx: &T,
    run: RunRecord,
    corrected: &Value,
    by: Option<&str>,
) -> Result<(), StoreError> {
    let action = "correct the inputs of a run";
    let RunRecord { id, inputs, mut options, .. } = run;
    let Some(corrected) = corrected.as_object() else {
        return Err(failed(action, &"they are not an object"));
    };
    let mut joined = match inputs {
        Value::Object(inputs) => inputs,
        _ => serde_json::Map::new(),
    };
    if damage(tx, &id).await?.is_some() {
        // The unchanged fields would count as sound from here on.
        return Err(failed(action, &"its stored data was modified; see `skills db check`"));
    }
    if let Some(by) =
        by.filter(|by| !corrected.is_empty() && !options.inputs_by.iter().any(|known| known == by))
    {
        options.inputs_by.push(by.to_owned());
    }
    joined.extend(corrected.clone());
    let joined = encode(&joined)?;
    tx.post(
        action,
        "UPDATE runs SET inputs = ?2, inputs_digest = ?3, options = ?4 WHERE id = ?1",
        values![&id, &joined, digest(&[&joined]), encode(&options)?],
    )
    .await
}

/// Maximum number of signals that a run keeps until a step waits for them, and of their bytes.
const MAX_SIGNALS: i64 = 100;
const MAX_SIGNAL_BYTES: i64 = 4 << 20;

/// Rejects a signal that a run cannot keep: each reader of the run reads all of them. One that is awaited is not kept.
async fn ensure_signal_fits<T: Tx>(
    tx: &T,
    run: &RunId,
    bytes: usize,
    is_awaited: bool,
) -> Result<(), StoreError> {
    let (mut count, mut size) = (0, 0);
    if !is_awaited {
        let sql = "SELECT count(*), coalesce(sum(octet_length(payload)), 0) FROM signals WHERE run = ?1";
        let Some(mut row) = tx.find("count signals", sql, values![run]).await? else { return Ok(()) };
        (count, size) = (row.take::<i64>(0)?, row.take::<i64>(1)?);
    }
    let total = size.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    if count < MAX_SIGNALS && total <= MAX_SIGNAL_BYTES {
        return Ok(());
    }
    Err(StoreError::InvalidRequest(format!(
        "the run {run} keeps {count} signals with {size} bytes that no step waits for; the maximum is {MAX_SIGNALS} \
         signals and {MAX_SIGNAL_BYTES} bytes"
    )))
}

/// Maximum number of bytes of the events of resumed runs that record corrected inputs and their previous values: four
/// corrections of the largest inputs.
const MAX_CORRECTION_BYTES: i64 = 16 << 20;

/// Rejects a correction of inputs that were corrected often: each reader of the run's events reads all of them.
async fn ensure_correction_fits<T: Tx>(tx: &T, run: &RunId, bytes: usize) -> Result<(), StoreError> {
    let sql = "SELECT coalesce(sum(octet_length(data)), 0) FROM events WHERE run = ?1 AND kind = ?2";
    let kind = EventKind::RunResumed.to_string();
    let action = "measure the corrections of inputs";
    let Some(mut row) = tx.find(action, sql, values![run, &kind]).await? else { return Ok(()) };
    let total = row.take::<i64>(0)?.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    if total <= MAX_CORRECTION_BYTES {
        return Ok(());
    }
    Err(StoreError::InvalidRequest(format!(
        "the history of the corrected inputs of run {run} has {total} bytes; the maximum is {MAX_CORRECTION_BYTES}. \
         Resume it without corrections, or launch a new run"
    )))
}

/// Maximum number of assignments of a run by one person.
const MAX_ASSIGNMENTS: i64 = 200;

/// Rejects an assignment of a run that the same person assigned often: each reader of the run reads all of them.
async fn ensure_may_be_assigned<T: Tx>(tx: &T, run: &RunId, by: &str) -> Result<(), StoreError> {
    let field = dialect::field(T::POSTGRES, "data", "by");
    let sql =
        format!("SELECT count(*) FROM events WHERE run = ?1 AND kind = ?2 AND coalesce({field}, '') = ?3");
    let kind = EventKind::RunAssigned.to_string();
    let found = tx.find("count assignments", &sql, values![run, &kind, by]).await?;
    let Some(mut row) = found else { return Ok(()) };
    let count: i64 = row.take(0)?;
    if count < MAX_ASSIGNMENTS {
        return Ok(());
    }
    Err(StoreError::InvalidRequest(format!(
        "{by} assigned or unassigned run {run} {count} times; the maximum is {MAX_ASSIGNMENTS}"
    )))
}
