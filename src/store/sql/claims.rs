//! What workers do before they report: claim and renew leases, record intents, release leases. Every write is checked
//! against the fencing token.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use super::read::{lease_expired_values, place};
use super::rows::{
    LockedRun, append, apply, get, json as encode, lock_run, moved, run_snapshot, write_events,
};
use super::{Row, Tx, Value, checkpoints, dialect, failed, integrity, read, values};
use crate::{
    Checkpoint, Claimed, ClockReading, EventKind, LeaseHolder, NewEvent, RunId, RunLease, RunRecord,
    StepIntent, StoreError, WorkerId, damaged,
};
use skills_base::sync::MutexExt as _;
use skills_model::{Command, TransitionError, WorkerReport, transition};

/// Number of lost leases before a run is given up: a run that kills its worker must not kill them all.
const MAX_LOST_LEASES: u32 = 5;

/// The runs that a claim may select.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Candidates<'r> {
    Any,
    /// Runs of principals none of whose runs is being executed.
    OfIdlePrincipal,
    One(&'r RunId),
}

pub(crate) async fn claim<T: Tx>(
    tx: &T,
    worker: &WorkerId,
    lease_ms: u64,
    which: Candidates<'_>,
    places: Option<&str>,
) -> Result<Option<Claimed>, StoreError> {
    loop {
        let Some(locked) = candidate(tx, which, places).await? else { return Ok(None) };
        let now = tx.now().await?;
        let now_ms = now.wall_ms;
        let id = locked.run.id.clone();
        // A lease without a worker was released.
        let before = locked.run.lease.as_ref().and_then(|lease| lease.worker.clone());
        let (had_lease, lost) = (locked.run.lease.is_some(), locked.lost_leases);
        let used_up = lost >= MAX_LOST_LEASES && before.is_some();
        let next =
            locked.transition(&Command::Claim { lease_expired: had_lease, attempts_used_up: used_up })?;
        let [chain, intents, contract] = query_requirements(tx, &locked.run).await?;
        apply(tx, &locked.run, &next, None, now_ms).await?;
        let (inputs, stored) = &locked.inputs;
        let damage = integrity::part_damaged(Some(inputs), stored.as_deref(), &chain);
        let damage = damage.map(|part| damaged(&id, part)).or_else(|| {
            let part = locked.unreadable?;
            Some(format!("the stored {part} of run {id} cannot be read; see `skills db check`"))
        });
        // A run that cannot be read would be claimed again and again, before all others.
        let requirements = match damage {
            None => ClaimRequirements::read(&locked.run, chain, &intents, &contract)
                .map_err(|error| error.to_string()),
            Some(message) => Err(message),
        };
        let requirements = match requirements {
            Ok(requirements) => requirements,
            Err(message) => {
                let (run, replays) = get(tx, &id).await?;
                let report = Command::Work { fence: run.fence, report: WorkerReport::Fail };
                let next = transition(&run_snapshot(&run, replays), &report)?;
                apply(tx, &run, &next, None, now_ms).await?;
                give_up(tx, &id, json!({"code": "runtime_error", "message": message}), now_ms).await?;
                continue;
            }
        };
        if used_up && had_lease {
            // The current holder is lost, too.
            let lost = lost + 1;
            // A worker whose writes fail leaves the lease to expire, as one that dies does; only its log has the reason.
            let message = format!(
                "its execution ended {lost} times without a result: its workers died, or could not write its state to the \
                 store; see their log, then resume it"
            );
            let why = json!({"code": "runtime_error", "message": message, "lost_workers": lost});
            give_up(tx, &id, why, now_ms).await?;
            continue;
        }
        let taken_over_from = before.filter(|_| had_lease);
        let takeover = taken_over_from.is_some();
        let lost = lost + u32::from(takeover);
        let lease = granted(Some(worker.clone()), lease_ms, &now);
        tx.post(
            "lease a run",
            "UPDATE runs SET worker = ?2, lost_leases = ?3, lease_until_ms = ?4, lease_boot = ?5,
                lease_until_boot_ms = ?6, events = events + 1 WHERE id = ?1",
            values![
                &id,
                &worker.0,
                lost,
                lease.until_ms,
                lease.until_boot.as_ref().map(|until| until.boot.as_ref()),
                lease.until_boot.as_ref().map(|until| until.ms)
            ],
        )
        .await?;
        let run = RunRecord { lease: Some(lease), ..locked.after(&next, now_ms) };
        let mut data = json!({"worker": worker.0, "fence": run.fence, "takeover": takeover});
        if let Some(WorkerId(before)) = taken_over_from {
            data["taken_over_from"] = before.into();
            // Counted since the last checkpoint; after one more loss the run is given up.
            data["attempt"] = (lost + 1).into();
            data["attempts"] = (MAX_LOST_LEASES + 1).into();
        }
        write_events(tx, &id, locked.events + 1, &[moved(EventKind::RunClaimed, data)], now_ms).await?;
        let ClaimRequirements { checkpoint, unfinished, contract } = requirements;
        return Ok(Some(Claimed { fence: run.fence, run, contract, checkpoint, takeover, unfinished }));
    }
}

/// What is needed to execute a run.
struct ClaimRequirements {
    checkpoint: Checkpoint,
    unfinished: Vec<StepIntent>,
    contract: Arc<Json>,
}

impl ClaimRequirements {
    /// Reads the rows of [`query_requirements`].
    fn read(run: &RunRecord, chain: Vec<Row>, intents: &[Row], contract: &[Row]) -> Result<Self, StoreError> {
        let contract = contract.first().map(parsed_contract).transpose()?.ok_or_else(|| {
            let missing = format!("the contract of run {} is missing; see `skills db check`", run.id);
            failed("claim a run", &missing)
        })?;
        Ok(Self {
            checkpoint: checkpoints::end_of(&run.id, run.head, chain)?,
            unfinished: intents.iter().map(|row| row.json(0)).collect::<Result<_, _>>()?,
            contract,
        })
    }
}

/// Contracts that were read last, with their texts: most runs share theirs with others.
static CONTRACTS: Mutex<VecDeque<(String, Arc<Json>)>> = Mutex::new(VecDeque::new());

/// Maximum number of [`CONTRACTS`].
const MAX_CONTRACTS: usize = 8;

/// Maximum size of the text of one of [`CONTRACTS`], in bytes.
const MAX_CONTRACT_BYTES: usize = 256 * 1024;

/// Returns the contract in a row of [`read::CONTRACT`]; equal texts share one.
fn parsed_contract(row: &Row) -> Result<Arc<Json>, StoreError> {
    let text = row.text(0).unwrap_or_default();
    let lock = || CONTRACTS.locked();
    if let Some((_, contract)) = lock().iter().find(|(known, _)| known == text) {
        return Ok(Arc::clone(contract));
    }
    let contract: Arc<Json> = Arc::new(row.json(0)?);
    if text.len() <= MAX_CONTRACT_BYTES {
        let mut contracts = lock();
        contracts.truncate(MAX_CONTRACTS - 1);
        contracts.push_front((text.to_owned(), Arc::clone(&contract)));
    }
    Ok(contract)
}

/// Returns the rows of what is needed to execute a run: those of its head checkpoint, intents and contract.
async fn query_requirements<T: Tx>(tx: &T, run: &RunRecord) -> Result<[Vec<Row>; 3], StoreError> {
    let queries: [(&str, &[Value<'_>]); 3] = [
        (&checkpoints::chain_query(), values![&run.id, run.head, run.head]),
        (read::INTENTS, values![&run.id]),
        (read::CONTRACT, values![&run.contract_digest]),
    ];
    let found = tx.query_all("claim a run", &queries).await?;
    <[Vec<Row>; 3]>::try_from(found).map_err(|_| failed("claim a run", &"a result is missing"))
}

/// Records why a run failed that no worker executes.
async fn give_up<T: Tx>(tx: &T, run: &RunId, why: Json, now_ms: i64) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET error = ?2 WHERE id = ?1";
    tx.post("abandon a run", sql, values![run, why.to_string()]).await?;
    append(tx, run, &[moved(EventKind::RunFailed, why)], now_ms).await.map(drop)
}

/// Condition for an expired lease. On the boot that granted it, only its boot clock counts. On another boot (the
/// machine was restarted, or an earlier version wrote it) the wall clock counts, and an expiry too far ahead to have
/// been granted was set by a clock that has been set back since. `?1` is the wall clock, `?2` the boot, `?3` its clock.
/// On `PostgreSQL` no lease has a boot, and the wall clock is the database's.
pub(super) const LEASE_EXPIRED: &str = "(lease_until_ms IS NOT NULL AND (lease_until_ms = 0 OR
    CASE WHEN lease_boot = ?2 THEN lease_until_boot_ms < ?3
         ELSE lease_until_ms NOT BETWEEN ?1 AND ?1 + 600000 END))";

/// Returns [`LEASE_EXPIRED`] for a statement that may be sent before the clock is read.
fn lease_expired(postgres: bool) -> String {
    let now = "coalesce(?1, CAST(extract(epoch FROM statement_timestamp()) * 1000 AS BIGINT))";
    if postgres { LEASE_EXPIRED.replace("?1", now) } else { LEASE_EXPIRED.to_owned() }
}

/// Condition for runs of the roots in the JSON array `?PLACES`; true for all if it is null. A run whose root is not
/// recorded is not claimed then: its scripts and services could be those of any root.
const IN_PLACES: &str = "(CAST(?PLACES AS TEXT) IS NULL OR ?PLACE IN ?IN)";

/// Returns [`IN_PLACES`] with the number of its parameter.
pub(super) fn here(postgres: bool, parameter: &str) -> String {
    IN_PLACES
        .replace("?PLACES", parameter)
        .replace("?PLACE", &place(postgres))
        .replace("?IN", &dialect::texts(postgres, parameter))
}

/// The pending runs that can be claimed, as in the condition of the index `runs_free`.
const CLAIMABLE: &str = "state = 'pending' AND held = 0";

/// Returns the common table of the principals that have pending runs, read with one seek for each: `WITH RECURSIVE`
/// must precede it.
fn waiting_principals(postgres: bool) -> String {
    let next = format!(
        "SELECT min(started_by) FROM runs {} WHERE {CLAIMABLE}",
        dialect::indexed_by(postgres, "runs_free")
    );
    format!(
        "waiting(who) AS ({next} UNION ALL SELECT ({next} AND started_by > who) FROM waiting WHERE who IS NOT NULL)"
    )
}

/// Selects the next run to execute: the oldest run whose lease has expired, which was started already, else the oldest
/// pending run of one of the principals that have the fewest runs being executed, drawn at random. No principal waits
/// for all earlier runs of another. `PostgreSQL` skips rows that another transaction is claiming. With `idle`, only
/// runs of principals none of whose runs is being executed.
fn next_run(postgres: bool, columns: &str, here: &str, idle: bool) -> String {
    let leased = dialect::indexed_by(postgres, "runs_leased");
    let expired = lease_expired(postgres);
    let active = |who: &str| {
        format!(
            "(SELECT count(*) FROM runs a {leased}
               WHERE lease_until_ms IS NOT NULL AND a.started_by = {who} AND NOT {expired})"
        )
    };
    let only_idle = |who: &str| if idle { format!("AND {} = 0", active(who)) } else { String::new() };
    let (of_starter, of_waiting, active) = (only_idle("r.started_by"), only_idle("who"), active("who"));
    let oldest = format!("WHERE {CLAIMABLE} AND started_by = who AND {here} ORDER BY seq LIMIT 1");
    let lapsed = format!("{leased} WHERE {expired} AND {here} {of_starter} ORDER BY seq LIMIT 1");
    if postgres {
        let skip = "FOR NO KEY UPDATE SKIP LOCKED";
        return format!(
            "SELECT * FROM (
                SELECT * FROM (SELECT o.*, 1 AS turn FROM
                    (SELECT who FROM waiting WHERE who IS NOT NULL {of_waiting} ORDER BY {active}, random()) w
                    CROSS JOIN LATERAL ({columns} {oldest} {skip}) o LIMIT 1) f
                UNION ALL SELECT l.*, 0 AS turn FROM ({columns} {lapsed} {skip}) l) c
             ORDER BY turn LIMIT 1"
        );
    }
    // Without naming the index, SQLite uses the index of states, and reads and sorts everything pending for each claim.
    format!(
        "{columns} WHERE seq = coalesce(
            (SELECT seq FROM runs r {lapsed}),
            (SELECT next FROM
                (SELECT who, (SELECT seq FROM runs INDEXED BY runs_free {oldest}) AS next
                 FROM waiting WHERE who IS NOT NULL {of_waiting})
             WHERE next IS NOT NULL ORDER BY {active}, random() LIMIT 1))"
    )
}

/// Returns a claimable run, a pending one or one whose lease has expired (see [`next_run`]); only of these roots if
/// given.
async fn candidate<T: Tx>(
    tx: &T,
    which: Candidates<'_>,
    places: Option<&str>,
) -> Result<Option<LockedRun>, StoreError> {
    let action = "look for a run to claim";
    let columns = format!("SELECT {} FROM runs r", LockedRun::columns());
    let here = here(T::POSTGRES, "?4");
    let mut values = tx.known_now().map_or_else(|| vec![Value::Null; 3], |now| lease_expired_values(&now));
    values.push(places.into());
    if let Candidates::One(run) = which {
        let sql = format!(
            "{columns} WHERE id = ?5 AND ((state = 'pending' AND held = 0) OR {}) AND {here}{}",
            lease_expired(T::POSTGRES),
            tx.locking()
        );
        values.push(run.into());
        return tx.find(action, &sql, &values).await?.map(LockedRun::read).transpose();
    }
    let sql = format!(
        "WITH RECURSIVE {} {}",
        waiting_principals(T::POSTGRES),
        next_run(T::POSTGRES, &columns, &here, matches!(which, Candidates::OfIdlePrincipal))
    );
    tx.find(action, &sql, &values).await?.map(LockedRun::read).transpose()
}

/// Releases a lease without a report; the next claim counts no loss.
pub(crate) async fn release_lease<T: Tx>(tx: &T, run: &RunId, fence: u64) -> Result<(), StoreError> {
    let locked = fenced(tx, run, fence).await?;
    let now_ms = tx.now().await?.wall_ms;
    let sql = "UPDATE runs SET lease_until_ms = 0, worker = NULL, events = events + 1 WHERE id = ?1";
    tx.post("release a lease", sql, values![run]).await?;
    write_events(tx, run, locked.events + 1, &[moved(EventKind::RunGivenBack, json!({}))], now_ms).await
}

/// Expires the leases of a worker that is known to be dead; the next claim of each counts a loss.
pub(crate) async fn expire_leases<T: Tx>(tx: &T, worker: &WorkerId) -> Result<u64, StoreError> {
    let sql =
        "UPDATE runs SET lease_until_ms = 0 WHERE worker = ?1 AND lease_until_ms IS NOT NULL AND lease_until_ms <> 0
         RETURNING id";
    let runs = tx.query("expire the leases of a dead worker", sql, values![&worker.0]).await?;
    let now_ms = tx.now().await?.wall_ms;
    let count = runs.len() as u64;
    for mut row in runs {
        let abandoned = moved(EventKind::RunAbandoned, json!({"worker": worker.0}));
        append(tx, &row.take(0)?, &[abandoned], now_ms).await?;
    }
    super::maintenance::deregister_worker(tx, worker).await?;
    Ok(count)
}

/// Appends a batch of events of a worker between its reports, unless it is recorded.
pub(crate) async fn note<T: Tx>(
    tx: &T,
    run: &RunId,
    fence: u64,
    batch: u32,
    events: &[NewEvent],
) -> Result<(), StoreError> {
    fenced(tx, run, fence).await?;
    if events.is_empty() {
        return Ok(());
    }
    let now_ms = tx.now().await?.wall_ms;
    let number = batch_number(fence, batch);
    let sql = "UPDATE runs SET events = events + ?2, appended = ?3 WHERE id = ?1 AND appended < ?3
        RETURNING events - ?2 + 1";
    match tx.find("number events", sql, values![run, events.len(), number]).await? {
        Some(mut numbered) => write_events(tx, run, numbered.take(0)?, events, now_ms).await,
        None => Ok(()),
    }
}

/// Returns a number that increases from batch to batch, and from worker to worker.
fn batch_number(fence: u64, batch: u32) -> u64 {
    (fence << 32) | u64::from(batch)
}

/// Returns the run if this fencing token may still write to it.
async fn fenced<T: Tx>(tx: &T, run: &RunId, fence: u64) -> Result<LockedRun, StoreError> {
    let locked = lock_run(tx, run).await?;
    if locked.run.fence == fence && locked.run.state.is_active() {
        Ok(locked)
    } else {
        Err(TransitionError::StaleFence { presented: fence, present: locked.run.fence }.into())
    }
}

pub(crate) async fn renew<T: Tx>(tx: &T, run: &RunId, fence: u64, lease_ms: u64) -> Result<(), StoreError> {
    fenced(tx, run, fence).await?;
    let now = tx.now().await?;
    let lease = granted(None, lease_ms, &now);
    tx.post(
        "lease a run",
        "UPDATE runs SET lease_until_ms = ?2, lease_boot = ?3, lease_until_boot_ms = ?4 WHERE id = ?1",
        values![
            run,
            lease.until_ms,
            lease.until_boot.as_ref().map(|until| until.boot.as_ref()),
            lease.until_boot.as_ref().map(|until| until.ms)
        ],
    )
    .await
}

/// Returns a lease that expires this much after now, on both clocks.
fn granted(worker: Option<WorkerId>, lease_ms: u64, now: &ClockReading) -> RunLease {
    RunLease {
        worker,
        until_ms: now.wall_ms.saturating_add_unsigned(lease_ms),
        until_boot: now.boot.as_ref().map(|boot| boot.plus(lease_ms)),
        holder: LeaseHolder::Elsewhere,
    }
}

pub(crate) async fn record_intent<T: Tx>(
    tx: &T,
    run: &RunId,
    fence: u64,
    batch: u32,
    intent: &StepIntent,
) -> Result<(), StoreError> {
    let locked = fenced(tx, run, fence).await?;
    let number = batch_number(fence, batch);
    if locked.appended >= number {
        return Ok(());
    }
    if locked.run.paused && !has_begun(tx, run, &intent.step).await? {
        return Err(TransitionError::Paused.into());
    }
    let now_ms = tx.now().await?.wall_ms;
    let begun = insert_intent(tx, run, intent).await?;
    let sql = "UPDATE runs SET step = ?2, events = events + 1, appended = ?3 WHERE id = ?1";
    tx.post("update the current step", sql, values![run, &intent.step, number]).await?;
    write_events(tx, run, locked.events + 1, &[begun], now_ms).await
}

/// Returns whether a step already has an intent.
pub(super) async fn has_begun<T: Tx>(tx: &T, run: &RunId, step: &str) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM intents WHERE run = ?1 AND step = ?2";
    Ok(tx.find("look for an intent", sql, values![run, step]).await?.is_some())
}

pub(super) async fn insert_intent<T: Tx>(
    tx: &T,
    run: &RunId,
    intent: &StepIntent,
) -> Result<NewEvent, StoreError> {
    tx.post(
        "record an intent",
        "INSERT INTO intents (run, step, json) VALUES (?1, ?2, ?3)
         ON CONFLICT (run, step) DO UPDATE SET json = excluded.json",
        values![run, &intent.step, encode(intent)?],
    )
    .await?;
    let mut data = json!({"attempt": intent.attempt, "inputs_digest": intent.inputs_digest});
    if let Some(capability) = &intent.capability {
        data["capability"] = json!(capability);
    }
    Ok(NewEvent { kind: EventKind::StepStarted, step: Some(intent.step.clone()), data })
}
