//! Applies a worker's report in one transaction: what ended, the checkpoint, the state of the run, and what starts.

use serde_json::{Value as Json, json};

use super::claims::{has_begun, insert_intent};
use super::rows::{
    LockedRun, apply, get, json as encode, lock_run, moved, own_steps, run_snapshot, write_events,
};
use super::{Tx, checkpoints, dialect, values};
use crate::{
    Checkpoint, EventKind, NewEvent, RunId, RunRecord, StepIntent, StepRecord, StepStatus, StoreError,
};
use skills_model::{Command, Gate, Lease, RunState, Transition, transition};

/// A worker's report and everything that belongs to it.
#[derive(Debug)]
pub(crate) struct Report {
    pub command: Command,
    pub finished: Vec<StepRecord>,
    pub checkpoint: Option<Checkpoint>,
    pub intents: Vec<StepIntent>,
    pub events: Vec<NewEvent>,
}

pub(crate) async fn report<T: Tx>(tx: &T, run: &RunId, report: &Report) -> Result<RunRecord, StoreError> {
    let (locked, last) = if report.checkpoint.is_some() {
        lock_with_last_checkpoint(tx, run).await?
    } else {
        (lock_run(tx, run).await?, None)
    };
    let before = &locked.run;
    let now_ms = tx.now().await?.wall_ms;
    let next = locked.transition(&report.command)?;
    let mut events = record_finished_steps(tx, run, &report.finished).await?;
    let mut changes = RunChanges::default();
    if let Some(checkpoint) = &report.checkpoint {
        let number = checkpoints::append(tx, run, last, checkpoint, now_ms).await?;
        changes.head = Some((number, own_steps(&checkpoint.done)));
    }
    if !is_unchanged(before, &next) {
        apply(tx, before, &next, None, now_ms).await?;
    }
    events.extend(report.events.iter().cloned());
    if let Transition::Move { state, gate, .. } = &next {
        if !state.is_active() {
            checkpoints::evict_newest(tx, run).await?;
        }
        match state {
            RunState::Completed => {
                let last = match &report.checkpoint {
                    Some(checkpoint) => checkpoint.clone(),
                    None => checkpoints::read_checkpoint(tx, run, before.head).await?,
                };
                changes.outputs = Some(last.state["outputs"].clone());
                changes.step = StepChange::To(None);
                events.push(moved(EventKind::RunCompleted, json!({})));
            }
            RunState::Failed => {
                let error = report
                    .finished
                    .iter()
                    .find(|s| s.status == StepStatus::Failed)
                    .map(|s| s.result.clone())
                    .or_else(|| {
                        events.iter().find(|e| e.kind == EventKind::RunFailed).map(|e| e.data.clone())
                    })
                    .unwrap_or_else(|| json!({"code": "runtime_error"}));
                // Of several concurrent steps, show the one that failed and not the one that started last.
                if let Some(step) = error["step"].as_str() {
                    changes.step = StepChange::To(Some(step.to_owned()));
                }
                events.retain(|event| event.kind != EventKind::RunFailed);
                events.push(moved(EventKind::RunFailed, error.clone()));
                changes.error = Some(error);
            }
            RunState::WaitingForHuman | RunState::WaitingForSignal => {
                changes.step = StepChange::To(gate.as_ref().map(|gate| match gate {
                    Gate::Human { step, .. } | Gate::Signal { step, .. } => step.clone(),
                }));
                events.push(moved(EventKind::GateWaiting, json!({"gate": gate})));
            }
            RunState::Pending => events.push(moved(EventKind::RunHeld, json!({}))),
            _ => {}
        }
    }
    for name in
        events.iter().filter(|e| e.kind == EventKind::SignalConsumed).filter_map(|e| e.data["name"].as_str())
    {
        tx.post(
            "take a signal",
            "DELETE FROM signals WHERE n = (SELECT min(n) FROM signals WHERE run = ?1 AND name = ?2)",
            values![run, name],
        )
        .await?;
    }
    // A paused run starts nothing more; another attempt of a started step is not a new start.
    let paused = matches!(next, Transition::Move { paused: true, state, .. } if state.is_active());
    for intent in &report.intents {
        if paused && !has_begun(tx, run, &intent.step).await? {
            continue;
        }
        events.push(insert_intent(tx, run, intent).await?);
        changes.step = StepChange::To(Some(intent.step.clone()));
    }
    update_run(tx, run, locked.events, &changes, &events, now_ms).await?;
    let after = changes.applied(locked.after(&next, now_ms));
    let Some(Gate::Signal { name, .. }) = &after.gate else { return Ok(after) };
    if buffered_signal(tx, run, name).await?.is_none() {
        return Ok(after);
    }
    // The signal arrived between the worker's check and its report, and would not be sent again.
    let next = transition(&run_snapshot(&after, locked.replays), &Command::Signal { name: name.clone() })?;
    apply(tx, &after, &next, None, now_ms).await?;
    Ok(get(tx, run).await?.0)
}

/// Returns the run, locked, and the number of its last checkpoint, in one round trip.
async fn lock_with_last_checkpoint<T: Tx>(
    tx: &T,
    run: &RunId,
) -> Result<(LockedRun, Option<i64>), StoreError> {
    let id = values![run];
    if !T::POSTGRES {
        let sql =
            format!("SELECT {}, ({}) FROM runs r WHERE r.id = ?1", LockedRun::columns(), checkpoints::LAST);
        let row = tx.find("read a run", &sql, id).await?;
        let mut row = row.ok_or_else(|| StoreError::NoRun(run.clone()))?;
        let last = row.take(LockedRun::COLUMNS)?;
        return Ok((LockedRun::read(row)?, last));
    }
    // The lock comes first, so that no other transaction adds a checkpoint afterwards.
    let locking = LockedRun::query(tx);
    let found = tx.query_all("read a run", &[(&locking, id), (checkpoints::LAST, id)]).await?;
    let mut rows = found.into_iter().map(|rows| rows.into_iter().next());
    let locked = rows.next().flatten().map(LockedRun::read).transpose()?;
    let last = rows.next().flatten().map_or(Ok(None), |mut row| row.take(0))?;
    Ok((locked.ok_or_else(|| StoreError::NoRun(run.clone()))?, last))
}

/// Stores the steps that ended; returns their events.
async fn record_finished_steps<T: Tx>(
    tx: &T,
    run: &RunId,
    finished: &[StepRecord],
) -> Result<Vec<NewEvent>, StoreError> {
    let mut events = Vec::new();
    let close = format!(
        "DELETE FROM intents WHERE run = ?1 AND step = ?2 AND NOT (?3 AND {} = 'false')",
        dialect::flag(T::POSTGRES, "json", "repeatable")
    );
    for step in finished {
        tx.post(
            "record a step",
            // Not INSERT … SELECT: SQLite would make a temporary table for each row.
            "INSERT INTO steps (run, n, step, json)
             VALUES (?1, coalesce((SELECT max(n) FROM steps WHERE run = ?1), 0) + 1, ?2, ?3)",
            values![run, &step.step, encode(step)?],
        )
        .await?;
        // A failure without another attempt leaves the outcome of the previous one unknown: the worker has to ask.
        let unseen = step.status == StepStatus::Failed && step.attempts == 0;
        tx.post("close an intent", &close, values![run, &step.step, unseen]).await?;
        events.push(NewEvent {
            kind: match step.status {
                StepStatus::Completed => EventKind::StepCompleted,
                StepStatus::Skipped => EventKind::StepSkipped,
                StepStatus::Failed => EventKind::StepFailed,
            },
            step: Some(step.step.clone()),
            data: json!({"attempts": step.attempts, "took_ms": step.ended_ms - step.started_ms}),
        });
    }
    Ok(events)
}

/// Returns whether the transition leaves a run unchanged: most reports end one step and start the next.
fn is_unchanged(before: &RunRecord, next: &Transition) -> bool {
    let Transition::Move { state, fence, lease, paused, gate } = next else { return true };
    (*state, *fence, *paused) == (before.state, before.fence, before.paused)
        && *lease != Lease::Release
        && gate.is_none()
        && before.gate.is_none()
        && before.expires_ms.is_none()
}

#[derive(Default)]
enum StepChange {
    #[default]
    Stays,
    To(Option<String>),
}

/// What a report changes of a run in addition to its state.
#[derive(Default)]
struct RunChanges {
    /// Its newest checkpoint, and the number of its own steps that are complete.
    head: Option<(i64, i64)>,
    /// The current step, if it changes: another one or none.
    step: StepChange,
    outputs: Option<Json>,
    error: Option<Json>,
}

impl RunChanges {
    /// Returns the run with the changes that [`update_run`] writes.
    fn applied(self, mut run: RunRecord) -> RunRecord {
        if let Some((number, done)) = self.head {
            run.head = number.unsigned_abs();
            run.progress.0 = u32::try_from(done).unwrap_or(u32::MAX);
        }
        if let StepChange::To(step) = self.step {
            run.step = step;
        }
        run.outputs = self.outputs.or(run.outputs);
        run.error = self.error.or(run.error);
        run
    }
}

/// Updates the run together with the events: every update of a run rewrites its row and its index entries.
async fn update_run<T: Tx>(
    tx: &T,
    run: &RunId,
    last_event: i64,
    changes: &RunChanges,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<(), StoreError> {
    let step = match &changes.step {
        StepChange::Stays => None,
        StepChange::To(step) => Some(step.as_ref()),
    };
    let sql = "UPDATE runs SET events = events + ?2,
            head = coalesce(?3, head), steps_done = coalesce(?4, steps_done),
            lost_leases = CASE WHEN CAST(?3 AS BIGINT) IS NULL THEN lost_leases ELSE 0 END,
            step = CASE WHEN ?5 THEN ?6 ELSE step END,
            outputs = coalesce(?7, outputs), error = coalesce(?8, error)
        WHERE id = ?1";
    let values = values![
        run,
        events.len(),
        changes.head.map(|(number, _)| number),
        changes.head.map(|(_, done)| done),
        step.is_some(),
        step.flatten(),
        changes.outputs.as_ref().map(encode).transpose()?,
        changes.error.as_ref().map(encode).transpose()?
    ];
    tx.post("update the state of a run", sql, values).await?;
    write_events(tx, run, last_event + 1, events, now_ms).await
}

/// Returns the oldest buffered signal of a name.
pub(crate) async fn buffered_signal<T: Tx>(
    tx: &T,
    run: &RunId,
    name: &str,
) -> Result<Option<serde_json::Value>, StoreError> {
    let sql = "SELECT payload FROM signals WHERE run = ?1 AND name = ?2 ORDER BY n LIMIT 1";
    let row = tx.find("look for a signal", sql, values![run, name]).await?;
    row.map(|row| row.json(0)).transpose()
}
