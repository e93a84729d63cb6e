//! Between rows and records.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failed;
use super::integrity::digest;
use crate::{BootTime, EventKind, Hold, Holder, NewEvent, RunId, RunRecord, StoreError, WorkerId, expiry};
use skills_model::{Command, Decision, Gate, Lease, Next, RunState, Standing, allowed, transition};

/// The columns that [`record`] reads, in its order.
pub(super) const RUN_COLUMNS: &str = "r.id, r.skill_id, r.state, r.held, r.gate, r.decided, r.contract_digest, \
    r.inputs, r.target, r.options, r.outputs, r.error, r.trace_id, r.started_by, r.source_run, r.source_checkpoint, \
    r.step, r.steps_done, r.steps_total, r.head, r.fence, r.created_ms, r.since_ms, r.expires_ms, r.replays, r.seq, \
    r.worker, r.lease_until_ms, r.lease_boot, r.lease_until_boot_ms";

/// Bytes of JSON of one value that a row of a list carries.
const LISTED_BYTES: usize = 4096;

/// [`RUN_COLUMNS`] without values that are too long for a list.
pub(super) fn listed_columns() -> String {
    let short = |column: &str, instead: &str| {
        format!("CASE WHEN octet_length(r.{column}) > {LISTED_BYTES} THEN {instead} ELSE r.{column} END")
    };
    let columns = RUN_COLUMNS
        .replace("r.inputs", &short("inputs", "'null'"))
        .replace("r.target", &short("target", "json_remove(r.target, '$.content')"))
        .replace("r.outputs", &short("outputs", "NULL"));
    format!("{columns}, r.inputs_digest")
}

/// Where [`RUN_COLUMNS`] has whether the run replays, and its place in the order of launches.
pub(super) const REPLAYS: usize = 24;
/// See [`REPLAYS`].
pub(super) const SEQ: usize = 25;

pub(super) fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| failed("encoding a record".into(), &e))
}

/// Reads a JSON column; a value that cannot be read is an error of the row, not of the caller.
pub(super) fn column<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    decode(index, &row.get::<_, String>(index)?)
}

fn optional<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    row.get::<_, Option<String>>(index)?.map(|text| decode(index, &text)).transpose()
}

fn decode<T: DeserializeOwned>(index: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, Box::new(e))
    })
}

pub(super) fn state(row: &Row<'_>, index: usize) -> rusqlite::Result<RunState> {
    let word: String = row.get(index)?;
    word.parse().map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, Box::new(e))
    })
}

/// A worker's hold, from a run's columns.
fn hold(row: &Row<'_>) -> rusqlite::Result<Option<Hold>> {
    let worker: Option<String> = row.get(26)?;
    let Some(until_ms) = row.get::<_, Option<i64>>(27)? else { return Ok(None) };
    let boot = row.get::<_, Option<Arc<str>>>(28)?.zip(row.get(29)?);
    let holder = match (&worker, until_ms) {
        (None, _) => Holder::Left,
        (Some(_), 0) => Holder::Dead,
        (Some(_), _) => Holder::Elsewhere,
    };
    let until_boot = boot.map(|(boot, ms)| BootTime { boot, ms });
    Ok(Some(Hold { worker: worker.map(WorkerId), until_ms, until_boot, holder }))
}

/// A run from a row of [`RUN_COLUMNS`].
pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let source_run: Option<String> = row.get(14)?;
    let source_checkpoint: Option<i64> = row.get(15)?;
    let mut run = RunRecord {
        id: RunId(row.get(0)?),
        skill_id: row.get(1)?,
        state: state(row, 2)?,
        held: row.get(3)?,
        gate: optional(row, 4)?,
        decided: optional(row, 5)?,
        contract_digest: row.get(6)?,
        inputs: column(row, 7)?,
        target: optional(row, 8)?,
        options: column(row, 9)?,
        outputs: optional(row, 10)?,
        error: optional(row, 11)?,
        trace_id: row.get(12)?,
        started_by: row.get(13)?,
        source: source_run.zip(source_checkpoint).map(|(run, n)| (RunId(run), n.unsigned_abs())),
        step: row.get(16)?,
        progress: (row.get(17)?, row.get(18)?),
        head: row.get::<_, i64>(19)?.unsigned_abs(),
        fence: row.get::<_, i64>(20)?.unsigned_abs(),
        hold: hold(row)?,
        created_ms: row.get(21)?,
        since_ms: row.get(22)?,
        expires_ms: row.get(23)?,
        allowed: Vec::new(),
    };
    run.allowed = allowed(&standing(&run, row.get(REPLAYS)?));
    Ok(run)
}

/// A run from a row of [`listed_columns`]; inputs that are not what was written are left out.
pub(super) fn listed(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let mut run = record(row)?;
    let kept: Option<String> = row.get("inputs_digest")?;
    if let Some(kept) = kept.filter(|_| !run.inputs.is_null()) {
        let text: String = row.get(7)?;
        if kept != digest(&[&text]) {
            run.inputs = Value::Null;
        }
    }
    Ok(run)
}

/// What the state machine reads of a run.
pub(super) fn standing(run: &RunRecord, replays: bool) -> Standing {
    Standing {
        state: run.state,
        held: run.held,
        replays,
        fence: run.fence,
        gate: run.gate.clone(),
        decided: run.decided.clone(),
        expired_ms: run.expired_ms(),
    }
}

/// The run as it stands at a moment: where the time of its wait is over, the wait has ended, also where nobody has
/// recorded that.
pub(super) fn as_of(mut run: RunRecord, replays: bool, now_ms: i64) -> RunRecord {
    let Some(at) = run.expires_ms.filter(|at| *at <= now_ms) else { return run };
    let expiry = run.options.on_expiry;
    let Ok(Next::Move { state, held, gate, .. }) =
        transition(&standing(&run, replays), &Command::Expire(expiry))
    else {
        return run;
    };
    run.error = Some(expiry::ended(&run, expiry, at));
    (run.state, run.held, run.gate) = (state, held, gate);
    (run.since_ms, run.expires_ms) = (at, None);
    run.allowed = allowed(&standing(&run, replays));
    run
}

/// One run and whether it replays.
pub(super) fn find(connection: &Connection, run: &RunId) -> Result<Option<(RunRecord, bool)>, StoreError> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs r WHERE r.id = ?1");
    connection
        .prepare_cached(&sql)
        .and_then(|mut s| s.query_row([&run.0], |row| Ok((record(row)?, row.get(REPLAYS)?))).optional())
        .map_err(|e| failed(format!("reading run {run}"), &e))
}

/// As [`find`], as it stands at a moment.
pub(super) fn find_as_of(
    connection: &Connection,
    run: &RunId,
    now_ms: i64,
) -> Result<Option<(RunRecord, bool)>, StoreError> {
    Ok(find(connection, run)?.map(|(run, replays)| (as_of(run, replays, now_ms), replays)))
}

/// As [`find`], where the run has to be there.
pub(super) fn get(connection: &Connection, run: &RunId) -> Result<(RunRecord, bool), StoreError> {
    find(connection, run)?.ok_or_else(|| StoreError::NoRun(run.clone()))
}

/// Runs one cached statement.
pub(super) fn execute(
    connection: &Connection,
    doing: &str,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<usize, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(|e| failed(doing.to_owned(), &e))
}

/// Appends events under the run's own numbering, without gaps.
pub(super) fn append(
    connection: &Connection,
    run: &RunId,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let first: i64 = connection
        .prepare_cached("UPDATE runs SET events = events + ?2 WHERE id = ?1 RETURNING events - ?2 + 1")
        .and_then(|mut s| s.query_row(params![run.0, count], |row| row.get(0)))
        .map_err(|e| failed("numbering events".into(), &e))?;
    write_events(connection, run, first, events, now_ms)
}

/// Writes events whose numbers are taken already, from the first one on.
pub(super) fn write_events(
    connection: &Connection,
    run: &RunId,
    first: i64,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<(), StoreError> {
    for (number, event) in (first..).zip(events) {
        execute(
            connection,
            "recording events",
            "INSERT INTO events (run, number, at_ms, kind, step, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![run.0, number, now_ms, event.kind.as_str(), event.step, json(&event.data)?],
        )?;
    }
    Ok(())
}

/// How many of a contract's own steps are through: nested steps (`a/b`), iterations (`a[1]`) and calls of gates
/// (`a~gate:x`) are checkpointed too, and belong to one of its own.
pub(super) fn own_steps(done: &[String]) -> i64 {
    let own = done.iter().filter(|step| !step.contains(['/', '[', '~'])).count();
    i64::try_from(own).unwrap_or(i64::MAX)
}

/// An event about a run's state.
pub(super) fn moved(kind: EventKind, data: Value) -> NewEvent {
    NewEvent { kind, step: None, data }
}

/// What an event says, with who ordered it where that is known.
pub(super) fn signed(mut data: Value, by: Option<&str>) -> Value {
    if let Some(by) = by {
        data["by"] = by.into();
    }
    data
}

/// Writes what the state machine answered. Answers whether the run moved.
pub(super) fn apply(
    connection: &Connection,
    run: &RunId,
    next: &Next,
    decided: Option<&Decision>,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let Next::Move { state, fence, lease, held, gate } = next else { return Ok(false) };
    let gate = gate.as_ref().map(json::<Gate>).transpose()?;
    let decided = decided.map(json::<Decision>).transpose()?;
    execute(
        connection,
        "moving a run",
        "UPDATE runs SET since_ms = CASE WHEN state = ?2 THEN since_ms ELSE ?8 END, state = ?2, fence = ?3, held = ?4,
            gate = ?5, decided = CASE WHEN ?5 IS NULL THEN coalesce(?6, decided) END,
            worker = CASE WHEN ?7 THEN NULL ELSE worker END,
            lease_until_ms = CASE WHEN ?7 THEN NULL ELSE lease_until_ms END,
            expires_ms = CASE WHEN ?5 IS NULL THEN NULL
                              WHEN state = ?2 THEN expires_ms ELSE ?8 + expires_in_ms END
         WHERE id = ?1",
        params![
            run.0,
            state.to_string(),
            fence.cast_signed(),
            held,
            gate,
            decided,
            *lease == Lease::Release,
            now_ms
        ],
    )?;
    Ok(true)
}
