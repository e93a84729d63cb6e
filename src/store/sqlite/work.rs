//! What workers do before they report: claim, renew, intend, give back. Every write is fenced.

use rusqlite::{Connection, OptionalExtension as _, named_params, params};
use serde_json::{Value, json};

use super::rows::{append, apply, execute, get, json as encode, moved, standing};
use super::{checkpoints, failed, integrity, read};
use crate::{
    Claimed, EventKind, Moment, NewEvent, RunId, RunRecord, StepIntent, StoreError, WorkerId, damaged,
};
use skills_model::{Command, Next, Refusal, WorkerMove, transition};

/// Claims after a lost lease before a run is given up: a run that kills its worker must not kill them all.
const LOST_LEASES: u32 = 5;

pub(super) fn claim(
    connection: &Connection,
    worker: &WorkerId,
    lease_ms: u64,
    among: (Option<&RunId>, Option<&str>),
    now: &Moment,
) -> Result<Option<Claimed>, StoreError> {
    let now_ms = now.wall_ms;
    loop {
        let Some(Candidate { id, lease_expired, lost, before }) = candidate(connection, among, now)? else {
            return Ok(None);
        };
        let (run, replays) = get(connection, &id)?;
        let used_up = lost >= LOST_LEASES && before.is_some();
        let command = Command::Claim { lease_expired, attempts_used_up: used_up };
        let next = transition(&standing(&run, replays), &command)?;
        apply(connection, &id, &next, None, now_ms)?;
        if let (Some(part), Next::Move { fence, .. }) = (integrity::damage(connection, &id)?, &next) {
            let report = Command::Work { fence: *fence, report: WorkerMove::Fail };
            let (run, replays) = get(connection, &id)?;
            apply(connection, &id, &transition(&standing(&run, replays), &report)?, None, now_ms)?;
            let message = damaged(&id, part);
            give_up(connection, &id, json!({"code": "runtime_error", "message": message}), now_ms)?;
            continue;
        }
        if used_up && lease_expired {
            // The present holder is lost, too.
            let lost = lost + 1;
            let message =
                format!("its workers died {lost} times during execution; see the log, then resume it");
            let why = json!({"code": "runtime_error", "message": message, "lost_workers": lost});
            give_up(connection, &id, why, now_ms)?;
            continue;
        }
        let taken_over_from = before.filter(|_| lease_expired);
        let takeover = taken_over_from.is_some();
        let lost = lost + u32::from(taken_over_from.is_some());
        execute(
            connection,
            "leasing a run",
            "UPDATE runs SET worker = ?2, lost_leases = ?3 WHERE id = ?1",
            params![id.0, worker.0, lost],
        )?;
        lease(connection, &id, lease_ms, now)?;
        let (run, _) = get(connection, &id)?;
        let mut data = json!({"worker": worker.0, "fence": run.fence, "takeover": taken_over_from.is_some()});
        if let Some(WorkerId(before)) = taken_over_from {
            data["taken_over_from"] = before.into();
            // Since the last checkpoint: one more loss than there may be, and the run is given up.
            data["attempt"] = (lost + 1).into();
            data["attempts"] = (LOST_LEASES + 1).into();
        }
        append(connection, &id, &[moved(EventKind::RunClaimed, data)], now_ms)?;
        let checkpoint = checkpoints::one(connection, &id, run.head)?;
        let unfinished = read::intents(connection, &id)?;
        let contract = read::contract(connection, &run.contract_digest)?.ok_or_else(|| {
            failed(format!("claiming run {id}"), &"its contract is missing; see `skills db check`")
        })?;
        return Ok(Some(Claimed { fence: run.fence, run, contract, checkpoint, takeover, unfinished }));
    }
}

/// Writes down why a run failed that nobody works.
fn give_up(connection: &Connection, run: &RunId, why: Value, now_ms: i64) -> Result<(), StoreError> {
    execute(
        connection,
        "abandoning a run",
        "UPDATE runs SET error = ?2 WHERE id = ?1",
        params![run.0, why.to_string()],
    )?;
    append(connection, run, &[moved(EventKind::RunFailed, why)], now_ms)
}

/// Holds for a lease that is over. On the boot that granted it, its boot clock decides alone. On another one (the
/// machine was started again since, or an earlier version wrote it) the wall clock does, and an end that lies too far
/// ahead to have been granted was set by a clock that has been put back since.
pub(super) const LAPSED: &str = "(lease_until_ms IS NOT NULL AND (lease_until_ms = 0 OR
    CASE WHEN lease_boot = :boot THEN lease_until_boot_ms < :boot_ms
         ELSE lease_until_ms NOT BETWEEN :now AND :now + 600000 END))";

/// Binds the parameters of [`LAPSED`], and others.
macro_rules! lapsed_params {
    ($now:expr, {$($name:literal: $value:expr),*}) => {
        rusqlite::named_params! {
            ":now": $now.wall_ms,
            ":boot": $now.boot.as_ref().map(|boot| boot.boot.as_ref()),
            ":boot_ms": $now.boot.as_ref().map(|boot| boot.ms),
            $($name: $value),*
        }
    };
}
pub(super) use lapsed_params;

/// Holds for runs of the places in the JSON array `:places`, for those of no place, and for all where it is null.
pub(super) const HERE: &str =
    "(:places IS NULL OR coalesce(options ->> '$.place' IN (SELECT value FROM json_each(:places)), 1))";

/// A run that may be claimed.
struct Candidate {
    id: RunId,
    lease_expired: bool,
    lost: u32,
    /// The worker that lost it; none where it left in good order, which is no loss.
    before: Option<WorkerId>,
}

/// The oldest run that may be claimed: a free one, or one whose lease is over; this one only, and of these places only.
fn candidate(
    connection: &Connection,
    (only, places): (Option<&RunId>, Option<&str>),
    now: &Moment,
) -> Result<Option<Candidate>, StoreError> {
    let doing = || "looking for a run to claim".to_owned();
    let columns = "SELECT id, lease_until_ms IS NOT NULL, lost_leases, worker, seq FROM runs";
    let read = |row: &rusqlite::Row<'_>| {
        let run = Candidate {
            id: RunId(row.get(0)?),
            lease_expired: row.get(1)?,
            lost: row.get(2)?,
            before: row.get::<_, Option<String>>(3)?.map(WorkerId),
        };
        Ok((row.get::<_, i64>(4)?, run))
    };
    if let Some(run) = only {
        let sql = format!(
            "{columns} WHERE id = :run AND ((state = 'pending' AND held = 0) OR {LAPSED}) AND {HERE}"
        );
        return connection
            .prepare_cached(&sql)
            .and_then(|mut s| {
                s.query_row(lapsed_params!(now, {":run": run.0, ":places": places}), read).optional()
            })
            .map(|found| found.map(|(_, run)| run))
            .map_err(|e| failed(doing(), &e));
    }
    // In the order of that index the first one is the answer; left to itself SQLite takes the index of states, and
    // reads and sorts everything that is pending for each claim.
    let free = connection
        .prepare_cached(&format!(
            "{columns} INDEXED BY runs_free WHERE state = 'pending' AND held = 0 AND {HERE} ORDER BY seq LIMIT 1"
        ))
        .and_then(|mut s| s.query_row(named_params! {":places": places}, read).optional())
        .map_err(|e| failed(doing(), &e))?;
    let lapsed = connection
        .prepare_cached(&format!(
            "{columns} INDEXED BY runs_leased WHERE {LAPSED} AND {HERE} ORDER BY seq LIMIT 1"
        ))
        .and_then(|mut s| s.query_row(lapsed_params!(now, {":places": places}), read).optional())
        .map_err(|e| failed(doing(), &e))?;
    Ok(free.into_iter().chain(lapsed).min_by_key(|(seq, _)| *seq).map(|(_, run)| run))
}

/// Ends a lease without a report; the next claim counts no loss.
pub(super) fn give_back(
    connection: &Connection,
    run: &RunId,
    fence: u64,
    now_ms: i64,
) -> Result<(), StoreError> {
    fenced(connection, run, fence)?;
    execute(
        connection,
        "releasing a lease",
        "UPDATE runs SET lease_until_ms = 0, worker = NULL WHERE id = ?1",
        [&run.0],
    )?;
    append(connection, run, &[moved(EventKind::RunGivenBack, json!({}))], now_ms)
}

/// Ends the leases of a worker that is known to be dead; the next claim of each counts a loss.
pub(super) fn abandon(connection: &Connection, worker: &WorkerId, now_ms: i64) -> Result<u64, StoreError> {
    let runs: Vec<RunId> = connection
        .prepare_cached(
            "UPDATE runs SET lease_until_ms = 0 WHERE worker = ?1 AND lease_until_ms IS NOT NULL RETURNING id",
        )
        .and_then(|mut s| s.query_map([&worker.0], |row| Ok(RunId(row.get(0)?)))?.collect())
        .map_err(|e| failed("expiring the leases of a dead worker".into(), &e))?;
    for run in &runs {
        append(connection, run, &[moved(EventKind::RunAbandoned, json!({"worker": worker.0}))], now_ms)?;
    }
    execute(connection, "deregistering a worker", "DELETE FROM workers WHERE worker = ?1", [&worker.0])?;
    Ok(runs.len() as u64)
}

/// Events of a worker between its reports.
pub(super) fn note(
    connection: &Connection,
    run: &RunId,
    fence: u64,
    events: &[NewEvent],
    now_ms: i64,
) -> Result<(), StoreError> {
    fenced(connection, run, fence)?;
    append(connection, run, events, now_ms)
}

/// The run, if this fence may still write to it.
fn fenced(connection: &Connection, run: &RunId, fence: u64) -> Result<RunRecord, StoreError> {
    let (record, _) = get(connection, run)?;
    if record.fence == fence && record.state.is_active() {
        Ok(record)
    } else {
        Err(Refusal::StaleFence { given: fence, present: record.fence }.into())
    }
}

pub(super) fn renew(
    connection: &Connection,
    run: &RunId,
    fence: u64,
    lease_ms: u64,
    now: &Moment,
) -> Result<(), StoreError> {
    fenced(connection, run, fence)?;
    lease(connection, run, lease_ms, now)
}

/// Lets the lease of a run end this much after now, on both clocks.
fn lease(connection: &Connection, run: &RunId, lease_ms: u64, now: &Moment) -> Result<(), StoreError> {
    let until = now.boot.as_ref().map(|boot| boot.plus(lease_ms));
    execute(
        connection,
        "leasing a run",
        "UPDATE runs SET lease_until_ms = ?2, lease_boot = ?3, lease_until_boot_ms = ?4 WHERE id = ?1",
        params![
            run.0,
            now.wall_ms.saturating_add_unsigned(lease_ms),
            until.as_ref().map(|until| until.boot.as_ref()),
            until.as_ref().map(|until| until.ms)
        ],
    )
    .map(drop)
}

pub(super) fn intend(
    connection: &Connection,
    run: &RunId,
    fence: u64,
    intent: &StepIntent,
    now_ms: i64,
) -> Result<(), StoreError> {
    let record = fenced(connection, run, fence)?;
    if record.held && !has_begun(connection, run, &intent.step)? {
        return Err(Refusal::Held.into());
    }
    let begun = keep_intent(connection, run, intent)?;
    show_step(connection, run, &intent.step)?;
    append(connection, run, &[begun], now_ms)
}

/// Whether a step has an intent already.
pub(super) fn has_begun(connection: &Connection, run: &RunId, step: &str) -> Result<bool, StoreError> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM intents WHERE run = ?1 AND step = ?2)")
        .and_then(|mut s| s.query_row(params![run.0, step], |row| row.get(0)))
        .map_err(|e| failed("looking for an intent".into(), &e))
}

/// Keeps an intent; answers the event that tells of it.
pub(super) fn keep_intent(
    connection: &Connection,
    run: &RunId,
    intent: &StepIntent,
) -> Result<NewEvent, StoreError> {
    execute(
        connection,
        "recording an intent",
        "INSERT OR REPLACE INTO intents (run, step, json) VALUES (?1, ?2, ?3)",
        params![run.0, intent.step, encode(intent)?],
    )?;
    let data = json!({"attempt": intent.attempt, "inputs_digest": intent.inputs_digest});
    Ok(NewEvent { kind: EventKind::StepStarted, step: Some(intent.step.clone()), data })
}

fn show_step(connection: &Connection, run: &RunId, step: &str) -> Result<(), StoreError> {
    execute(
        connection,
        "updating the current step",
        "UPDATE runs SET step = ?2 WHERE id = ?1",
        params![run.0, step],
    )
    .map(drop)
}
