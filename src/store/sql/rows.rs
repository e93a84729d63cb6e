//! Conversions between rows and records.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::integrity::digest;
use super::{Row, Tx, Value, dialect, failed, values};
use crate::{
    BootTime, EventKind, LeaseHolder, NewEvent, RunId, RunLease, RunOptions, RunRecord, StoreError, WorkerId,
    expiry,
};
use skills_base::nesting::{self, MAX_STORED_LEVELS};
use skills_model::{Command, Decision, Gate, Lease, RunSnapshot, RunState, Transition, allowed, transition};

/// The columns that [`record`] reads, in order.
pub(super) const RUN_COLUMNS: &str = "r.id, r.skill_id, r.state, r.held, r.gate, r.decided, r.contract_digest, \
    r.inputs, r.target, r.options, r.outputs, r.error, r.trace_id, r.started_by, r.source_run, r.source_checkpoint, \
    r.step, r.steps_done, r.steps_total, r.head, r.fence, r.created_ms, r.since_ms, r.expires_ms, r.replays, r.seq, \
    r.worker, r.lease_until_ms, r.lease_boot, r.lease_until_boot_ms";

/// Columns after [`RUN_COLUMNS`] that are read before a change of the run.
const COUNTED_COLUMNS: &str = "r.events, r.lost_leases, r.inputs_digest, r.appended";

/// Latest deadline with a date, in milliseconds since 1970-01-01 UTC: the end of the year 9999. Earlier versions accepted
/// any, and a run with a later one never expires.
const MAX_DEADLINE_MS: i64 = 253_402_207_200_000;

/// Maximum number of events that one statement records.
const EVENTS_PER_STATEMENT: usize = 2;

/// Maximum size of one value in a row of a list, in bytes of JSON.
const LISTED_BYTES: usize = 4096;

/// Returns the expression for a column whose value is replaced if it is too long for a list.
fn short(column: &str, instead: &str) -> String {
    format!("CASE WHEN octet_length(r.{column}) > {LISTED_BYTES} THEN {instead} ELSE r.{column} END")
}

/// Returns the expression for a column of JSON text without a member.
fn without(postgres: bool, column: &str, member: &str) -> String {
    if postgres {
        let json = dialect::json(true, &format!("r.{column}"));
        format!("CAST(CAST({json} AS jsonb) - '{member}' AS TEXT)")
    } else {
        format!("json_remove(r.{column}, '$.{member}')")
    }
}

/// Returns [`RUN_COLUMNS`] without inputs, contents of targets and outputs that are too long for a list.
fn short_columns(postgres: bool) -> String {
    // The content is the last member of a target and is not read; rows of earlier versions have others after it.
    let head = format!("substr(r.target, 1, {LISTED_BYTES})");
    let find = if postgres { "strpos" } else { "instr" };
    let (mode, content) =
        (format!("{find}({head}, '\"effect_mode\":')"), format!("{find}({head}, ',\"content\":')"));
    let without_content = format!(
        "CASE WHEN {mode} > 0 AND {mode} < {content} THEN substr({head}, 1, {content} - 1) || '}}' ELSE {} END",
        without(postgres, "target", "content")
    );
    RUN_COLUMNS
        .replace("r.inputs", &short("inputs", "'null'"))
        .replace("r.target", &short("target", &without_content))
        .replace("r.outputs", &short("outputs", "NULL"))
}

/// Returns [`RUN_COLUMNS`] without values that are too long for a list.
pub(super) fn listed_columns(postgres: bool) -> String {
    let decided = short("decided", &without(postgres, "decided", "result"));
    let columns = short_columns(postgres).replace("r.decided", &decided);
    format!("{columns}, r.inputs_digest")
}

/// Index in [`RUN_COLUMNS`] of the flag that marks a replay.
pub(super) const REPLAYS: usize = 24;
/// Index in [`RUN_COLUMNS`] of the position in launch order.
pub(super) const SEQ: usize = 25;

/// Index in [`listed_columns`] of the digest of the inputs.
const LISTED_DIGEST: usize = 30;

/// Index in [`RUN_COLUMNS`] of the inputs.
const INPUTS: usize = 7;

/// Index of the first of [`COUNTED_COLUMNS`].
const FIRST_COUNTED_COLUMN: usize = 30;

/// Encodes a value that can be read again.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    let text = serde_json::to_string(value).map_err(|e| failed("encode a record", &e))?;
    if nesting::text_exceeds(&text, MAX_STORED_LEVELS) {
        let message = format!("a value is nested more than {MAX_STORED_LEVELS} levels deep");
        return Err(StoreError::InvalidRequest(message));
    }
    Ok(text)
}

pub(super) fn state(row: &Row, index: usize) -> Result<RunState, StoreError> {
    let name = row.text(index).unwrap_or_default();
    name.parse().map_err(|_| failed("read a row", &format!("the state {name:?} is unknown")))
}

/// Reads a worker's lease from a run's columns.
fn lease(row: &mut Row) -> Result<Option<RunLease>, StoreError> {
    let worker: Option<String> = row.take(26)?;
    let Some(until_ms) = row.take::<Option<i64>>(27)? else { return Ok(None) };
    let boot = row.take::<Option<String>>(28)?.zip(row.take(29)?);
    let holder = match (&worker, until_ms) {
        (None, _) => LeaseHolder::Left,
        (Some(_), 0) => LeaseHolder::Dead,
        (Some(_), _) => LeaseHolder::Elsewhere,
    };
    let until_boot = boot.map(|(boot, ms)| BootTime { boot: boot.into(), ms });
    Ok(Some(RunLease { worker: worker.map(WorkerId), until_ms, until_boot, holder }))
}

/// Reads a run from a row of [`RUN_COLUMNS`], and whether it is a replay. Values that cannot be read are omitted: one run
/// must not hide all others.
pub(super) fn record(row: Row) -> Result<(RunRecord, bool), StoreError> {
    record_or_damage(row).map(|(run, replays, _)| (run, replays))
}

/// Reads a value that may be null; if it cannot be read, its name is kept unless there is one already.
fn lenient<T: DeserializeOwned>(
    row: &Row,
    (index, name): (usize, &'static str),
    unreadable: &mut Option<&'static str>,
) -> Option<T> {
    row.optional_json(index).unwrap_or_else(|_| {
        unreadable.get_or_insert(name);
        None
    })
}

/// Like [`record`], and with the first value that cannot be read.
fn record_or_damage(mut row: Row) -> Result<(RunRecord, bool, Option<&'static str>), StoreError> {
    let mut unreadable = None;
    let source_run: Option<String> = row.take(14)?;
    let source_checkpoint: Option<u64> = row.take(15)?;
    let replays = row.take(REPLAYS)?;
    let mut run = RunRecord {
        id: row.take(0)?,
        skill_id: row.take(1)?,
        state: state(&row, 2)?,
        paused: row.take(3)?,
        gate: lenient(&row, (4, "gate"), &mut unreadable),
        decided: lenient(&row, (5, "decision"), &mut unreadable),
        contract_digest: row.take(6)?,
        inputs: lenient(&row, (INPUTS, "inputs"), &mut unreadable).unwrap_or_default(),
        target: lenient(&row, (8, "target"), &mut unreadable),
        options: lenient(&row, (9, "options"), &mut unreadable).unwrap_or_default(),
        outputs: lenient(&row, (10, "outputs"), &mut unreadable),
        error: lenient(&row, (11, "error"), &mut unreadable),
        trace_id: row.take(12)?,
        started_by: row.take(13)?,
        source: source_run.zip(source_checkpoint).map(|(run, number)| (RunId(run), number)),
        step: row.take(16)?,
        progress: (row.take(17)?, row.take(18)?),
        head: row.take(19)?,
        fence: row.take(20)?,
        lease: lease(&mut row)?,
        created_ms: row.take(21)?,
        since_ms: row.take(22)?,
        expires_ms: row.take::<Option<i64>>(23)?.filter(|at| *at <= MAX_DEADLINE_MS),
        allowed: Vec::new(),
    };
    run.allowed = allowed(&run_snapshot(&run, replays));
    Ok((run, replays, unreadable))
}

/// Reads a run from a row of [`listed_columns`], with its position in launch order; modified inputs are omitted, and a
/// row that cannot be read is a failed run.
pub(super) fn listed(row: Row, now_ms: i64) -> Result<(RunRecord, i64), StoreError> {
    let sound = match (row.text(7), row.text(LISTED_DIGEST)) {
        (Some(inputs), Some(stored)) => inputs == "null" || stored == digest(&[inputs]),
        _ => true,
    };
    let mut row = row;
    let seq = row.take(SEQ)?;
    let substitute = Substitute::of(&mut row);
    let (mut run, replays) = match record(row) {
        Ok(record) => record,
        Err(error) => return Ok((substitute.run(&error), seq)),
    };
    for value in [&mut run.target, &mut run.outputs, &mut run.error] {
        value.take_if(|value| nesting::exceeds(value, MAX_STORED_LEVELS));
    }
    if !sound || nesting::exceeds(&run.inputs, MAX_STORED_LEVELS) {
        run.inputs = Json::Null;
    }
    Ok((as_of(run, replays, now_ms), seq))
}

/// What identifies a run in a list if its row cannot be read.
struct Substitute {
    id: String,
    skill_id: String,
    created_ms: i64,
    since_ms: i64,
}

impl Substitute {
    fn of(row: &mut Row) -> Self {
        let text = |index| row.text(index).unwrap_or_default().to_owned();
        let (id, skill_id) = (text(0), text(1));
        let mut time = |index| row.take::<i64>(index).unwrap_or_default();
        Self { id, skill_id, created_ms: time(21), since_ms: time(22) }
    }

    /// Returns the run as failed for this reason, and without commands: they have to read all of it.
    fn run(self, error: &StoreError) -> RunRecord {
        RunRecord {
            id: RunId(self.id),
            skill_id: self.skill_id,
            state: RunState::Failed,
            paused: false,
            gate: None,
            decided: None,
            contract_digest: String::new(),
            inputs: Json::Null,
            target: None,
            options: RunOptions::default(),
            outputs: None,
            error: Some(serde_json::json!({"code": "runtime_error", "message": error.to_string()})),
            trace_id: String::new(),
            started_by: String::new(),
            source: None,
            progress: (0, 0),
            step: None,
            head: 0,
            fence: 0,
            lease: None,
            created_ms: self.created_ms,
            since_ms: self.since_ms,
            expires_ms: None,
            allowed: Vec::new(),
        }
    }
}

/// Returns the input of the state machine for a run.
pub(crate) fn run_snapshot(run: &RunRecord, replays: bool) -> RunSnapshot {
    RunSnapshot {
        state: run.state,
        paused: run.paused,
        replays,
        fence: run.fence,
        gate: run.gate.clone(),
        decided: run.decided.clone(),
        expired_ms: run.expired_ms(),
    }
}

/// Returns the state of the run at a moment: an expired wait has ended, even if that is not recorded yet.
pub(super) fn as_of(mut run: RunRecord, replays: bool, now_ms: i64) -> RunRecord {
    let Some(at) = run.expires_ms.filter(|at| *at <= now_ms) else { return run };
    let expiry = run.options.on_expiry;
    let Ok(Transition::Move { state, paused, gate, .. }) =
        transition(&run_snapshot(&run, replays), &Command::Expire(expiry))
    else {
        return run;
    };
    run.error = Some(expiry::ended(&run, expiry, at));
    (run.state, run.paused, run.gate) = (state, paused, gate);
    (run.since_ms, run.expires_ms) = (at, None);
    run.allowed = allowed(&run_snapshot(&run, replays));
    run
}

/// Returns a run and whether it is a replay; in a transaction that writes it is locked.
pub(super) async fn find<T: Tx>(tx: &T, run: &RunId) -> Result<Option<(RunRecord, bool)>, StoreError> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs r WHERE r.id = ?1{}", tx.locking());
    let row = tx.find("read a run", &sql, values![run]).await?;
    row.map(record).transpose()
}

/// A run that a transaction is about to change.
pub(super) struct LockedRun {
    pub run: RunRecord,
    pub replays: bool,
    /// Number of its last event.
    pub events: i64,
    /// Number of the last batch of a worker, as of [`super::claims::batch_number`].
    pub appended: u64,
    /// Leases lost since the last checkpoint.
    pub lost_leases: u32,
    /// The inputs as they are stored, with their digest.
    pub inputs: (String, Option<String>),
    /// The first of its values that cannot be read.
    pub unreadable: Option<&'static str>,
}

impl LockedRun {
    /// Number of its columns.
    pub const COLUMNS: usize = FIRST_COUNTED_COLUMN + 4;

    /// Returns the columns to read it from.
    pub fn columns() -> String {
        format!("{RUN_COLUMNS}, {COUNTED_COLUMNS}")
    }

    /// Returns the query for a run that is locked, with the id as its parameter.
    pub fn query<T: Tx>(tx: &T) -> String {
        format!("SELECT {} FROM runs r WHERE r.id = ?1{}", Self::columns(), tx.locking())
    }

    pub fn read(mut row: Row) -> Result<Self, StoreError> {
        let (events, lost_leases) = (row.take(FIRST_COUNTED_COLUMN)?, row.take(FIRST_COUNTED_COLUMN + 1)?);
        let inputs = (row.text(INPUTS).unwrap_or_default().to_owned(), row.take(FIRST_COUNTED_COLUMN + 2)?);
        let appended = row.take(FIRST_COUNTED_COLUMN + 3)?;
        let (run, replays, unreadable) = record_or_damage(row)?;
        Ok(Self { run, replays, events, appended, lost_leases, inputs, unreadable })
    }

    /// Returns the next state of the run for a command.
    pub fn transition(&self, command: &Command) -> Result<Transition, StoreError> {
        Ok(transition(&run_snapshot(&self.run, self.replays), command)?)
    }

    /// Returns the run as [`apply`] changes it.
    pub fn after(&self, next: &Transition, now_ms: i64) -> RunRecord {
        let mut run = self.run.clone();
        let Transition::Move { state, fence, lease, paused, gate } = next else { return run };
        if gate.is_some() {
            run.decided = None;
        }
        run.expires_ms = deadline(&run, *state, gate.as_ref(), now_ms);
        // A paused run that is resumed, or paused again, may have other inputs.
        if run.state != *state || (*state == RunState::Pending && run.paused != *paused) {
            run.since_ms = now_ms;
        }
        if *lease == Lease::Release {
            run.lease = None;
        }
        (run.state, run.fence, run.paused, run.gate) = (*state, *fence, *paused, gate.clone());
        run.allowed = allowed(&run_snapshot(&run, self.replays));
        run
    }
}

/// Returns how long a run waits; a wait whose milliseconds do not fit the number type never expires.
pub(super) fn expires_in_ms(options: &RunOptions) -> Option<i64> {
    options.expires_in_s.and_then(|seconds| i64::try_from(seconds.saturating_mul(1000)).ok())
}

/// Returns when a run expires that enters a state with this gate now. In the same state, it is still the same wait.
fn deadline(before: &RunRecord, state: RunState, gate: Option<&Gate>, now_ms: i64) -> Option<i64> {
    gate?;
    if before.state == state {
        return before.expires_ms;
    }
    let at = expires_in_ms(&before.options).map(|wait| now_ms.saturating_add(wait));
    at.filter(|at| *at <= MAX_DEADLINE_MS)
}

/// Returns a run that is about to change, locked.
pub(super) async fn lock_run<T: Tx>(tx: &T, run: &RunId) -> Result<LockedRun, StoreError> {
    let row = tx.find("read a run", &LockedRun::query(tx), values![run]).await?;
    row.map(LockedRun::read).transpose()?.ok_or_else(|| StoreError::NoRun(run.clone()))
}

/// Returns a run without values that are too long for a list, with the state at the current moment.
pub(crate) async fn find_listed<T: Tx>(tx: &T, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
    let sql = format!("SELECT {} FROM runs r WHERE r.id = ?1", listed_columns(T::POSTGRES));
    let Some(row) = tx.find("read a run", &sql, values![run]).await? else { return Ok(None) };
    let now_ms = tx.now().await?.wall_ms;
    Ok(Some(listed(row, now_ms)?.0))
}

/// Returns a run with the state at the current moment.
pub(crate) async fn find_as_of<T: Tx>(tx: &T, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
    let Some((run, replays)) = find(tx, run).await? else { return Ok(None) };
    let now_ms = tx.now().await?.wall_ms;
    Ok(Some(as_of(run, replays, now_ms)))
}

/// Returns the input of the state machine for a run at the current moment.
pub(crate) async fn find_snapshot<T: Tx>(tx: &T, run: &RunId) -> Result<Option<RunSnapshot>, StoreError> {
    let Some((run, replays)) = find_short(tx, run).await? else { return Ok(None) };
    let now_ms = tx.now().await?.wall_ms;
    Ok(Some(run_snapshot(&as_of(run, replays, now_ms), replays)))
}

/// Like [`find`], but fails if the run does not exist.
pub(super) async fn get<T: Tx>(tx: &T, run: &RunId) -> Result<(RunRecord, bool), StoreError> {
    find(tx, run).await?.ok_or_else(|| StoreError::NoRun(run.clone()))
}

/// Like [`find`], without inputs, contents of targets and outputs that are too long for a list: they may have megabytes,
/// and other writes wait for the transaction.
pub(super) async fn find_short<T: Tx>(tx: &T, run: &RunId) -> Result<Option<(RunRecord, bool)>, StoreError> {
    let sql = format!("SELECT {} FROM runs r WHERE r.id = ?1{}", short_columns(T::POSTGRES), tx.locking());
    let row = tx.find("read a run", &sql, values![run]).await?;
    row.map(record).transpose()
}

/// Like [`find_short`], but fails if the run does not exist.
pub(super) async fn get_short<T: Tx>(tx: &T, run: &RunId) -> Result<(RunRecord, bool), StoreError> {
    find_short(tx, run).await?.ok_or_else(|| StoreError::NoRun(run.clone()))
}

/// Appends events with the run's own numbering, without gaps. Returns the number of the first one.
pub(super) async fn append<T: Tx>(
    tx: &T,
    run: &RunId,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<Option<u64>, StoreError> {
    if events.is_empty() {
        return Ok(None);
    }
    let sql = "UPDATE runs SET events = events + ?2 WHERE id = ?1 RETURNING events - ?2 + 1";
    let numbered = tx.find("number events", sql, values![run, events.len()]).await?;
    let first: i64 = numbered.ok_or_else(|| StoreError::NoRun(run.clone()))?.take(0)?;
    write_events(tx, run, first, events, now_ms).await?;
    Ok(u64::try_from(first).ok())
}

/// Writes events whose numbers are already reserved, from the first one on.
pub(super) async fn write_events<T: Tx>(
    tx: &T,
    run: &RunId,
    first: i64,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<(), StoreError> {
    if !events.is_empty() {
        tx.reserve_events().await?;
    }
    let at_ms = tx.event_ms(now_ms);
    // Most transactions record the end of one step and the start of another.
    for (first, events) in (first..).step_by(EVENTS_PER_STATEMENT).zip(events.chunks(EVENTS_PER_STATEMENT)) {
        let mut sql = "INSERT INTO events (run, at_ms, number, kind, step, data) VALUES".to_owned();
        let mut values = values![run, at_ms].to_vec();
        for (number, event) in (first..).zip(events) {
            let at = values.len();
            let comma = if at > 2 { "," } else { "" };
            sql += &format!("{comma} (?1, ?2, ?{}, ?{}, ?{}, ?{})", at + 1, at + 2, at + 3, at + 4);
            let event: &[Value<'_>] =
                values![number, event.kind.as_str(), event.step.as_deref(), json(&event.data)?];
            values.extend_from_slice(event);
        }
        tx.post("record events", &sql, &values).await?;
    }
    Ok(())
}

/// Returns how many of a contract's own steps are complete: nested steps (`a/b`), iterations (`a[1]`) and calls of
/// gates (`a~gate:x`) are checkpointed too, and belong to one of them.
pub(super) fn own_steps(done: &[String]) -> i64 {
    let own = done.iter().filter(|step| !step.contains(['/', '[', '~'])).count();
    i64::try_from(own).unwrap_or(i64::MAX)
}

/// Returns an event about a run's state.
pub(super) fn moved(kind: EventKind, data: Json) -> NewEvent {
    NewEvent { kind, step: None, data }
}

/// Adds to the data of an event who ordered it, if known.
pub(super) fn signed(mut data: Json, by: Option<&str>) -> Json {
    if let Some(by) = by {
        data["by"] = by.into();
    }
    data
}

/// Applies a transition of the state machine to a run as it is stored. Returns whether the run changed.
pub(super) async fn apply<T: Tx>(
    tx: &T,
    before: &RunRecord,
    next: &Transition,
    decided: Option<&Decision>,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let Transition::Move { state, fence, lease, paused, gate } = next else { return Ok(false) };
    let expires_ms = deadline(before, *state, gate.as_ref(), now_ms);
    let gate = gate.as_ref().map(json::<Gate>).transpose()?;
    let decided = decided.map(json::<Decision>).transpose()?;
    tx.post(
        "move a run",
        "UPDATE runs SET since_ms = CASE WHEN state = ?2 AND (?2 <> 'pending' OR held = ?4) THEN since_ms ELSE ?8 END,
            state = ?2, fence = ?3, held = ?4,
            gate = ?5, decided = CASE WHEN CAST(?5 AS TEXT) IS NULL THEN coalesce(?6, decided) END,
            worker = CASE WHEN ?7 THEN NULL ELSE worker END,
            lease_until_ms = CASE WHEN ?7 THEN NULL ELSE lease_until_ms END,
            expires_ms = ?9
         WHERE id = ?1",
        values![
            &before.id,
            state.to_string(),
            *fence,
            i64::from(*paused),
            gate,
            decided,
            *lease == Lease::Release,
            now_ms,
            expires_ms
        ],
    )
    .await?;
    Ok(true)
}
