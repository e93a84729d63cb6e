//! Creating runs: launches with their idempotency keys, replays and forks.

use serde_json::json;

use super::checkpoints;
use super::command::ensure_in_state_since;
use super::integrity::digest;
use super::rows::{
    append, as_of, expires_in_ms, find_listed, get, get_short, json as encode, moved, own_steps,
    run_snapshot, signed, write_events,
};
use super::{Tx, dialect, failed, values};
use crate::{
    EventKind, Idempotency, IdempotencyOutcome, Launch, LaunchOutcome, RunId, RunOptions, RunRecord,
    StoreError,
};
use skills_model::{Command, RunState, Transition, allowed, transition};

/// Looks up the idempotency key and creates the run in one transaction.
pub(crate) async fn launch<T: Tx>(tx: &T, launch: &Launch) -> Result<LaunchOutcome, StoreError> {
    let mut outcome = IdempotencyOutcome::None;
    let mut now_ms = None;
    if let Some(key) = &launch.idempotency {
        let found = found(tx, key, &launch.skill_id).await?;
        let now = tx.now().await?.wall_ms;
        match found {
            Some((digest, run, expires_ms)) if expires_ms > now => {
                if digest != key.payload_digest {
                    return Err(StoreError::IdempotencyConflict { key: key.key.clone(), run });
                }
                // As in a list: it may be large, and other writes wait for this transaction.
                let run = find_listed(tx, &run).await?.ok_or(StoreError::NoRun(run))?;
                return Ok(LaunchOutcome { run, idempotency: IdempotencyOutcome::Reused });
            }
            Some(_) => outcome = IdempotencyOutcome::Expired,
            None => outcome = IdempotencyOutcome::Created,
        }
        tx.post(
            "store an idempotency key",
            "INSERT INTO idempotency (principal, skill_id, key, payload_digest, run, expires_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (principal, skill_id, key) DO UPDATE SET payload_digest = excluded.payload_digest,
                run = excluded.run, expires_ms = excluded.expires_ms",
            values![
                &key.principal,
                &launch.skill_id,
                &key.key,
                &key.payload_digest,
                &launch.id,
                now.saturating_add_unsigned(key.ttl_seconds.saturating_mul(1000))
            ],
        )
        .await?;
        now_ms = Some(now);
    }
    insert_contract(tx, launch).await?;
    let now_ms = match now_ms {
        Some(now_ms) => now_ms,
        None => tx.now().await?.wall_ms,
    };
    let inputs = encode(&launch.inputs)?;
    tx.post(
        "create a run",
        "INSERT INTO runs (id, skill_id, state, contract_digest, inputs, target, trace_id, started_by, steps_total,
                           created_ms, since_ms, options, expires_in_ms, events, inputs_digest)
         VALUES (?1, ?2, 'pending', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, 1, ?12)",
        values![
            &launch.id,
            &launch.skill_id,
            &launch.contract_digest,
            &inputs,
            launch.target.as_ref().map(encode).transpose()?,
            &launch.trace_id,
            &launch.started_by,
            launch.steps,
            now_ms,
            encode(&launch.options)?,
            expires_in_ms(&launch.options),
            digest(&[&inputs])
        ],
    )
    .await?;
    tx.post(
        "keep the first checkpoint",
        "INSERT INTO checkpoints (run, number, done, state, at_ms, digest) VALUES (?1, 0, '[]', '{}', ?2, ?3)",
        values![&launch.id, now_ms, digest(&["[]", "{}"])],
    )
    .await?;
    let created =
        moved(EventKind::RunCreated, json!({"skill_id": launch.skill_id, "started_by": launch.started_by}));
    write_events(tx, &launch.id, 1, &[created], now_ms).await?;
    Ok(LaunchOutcome { run: created_run(launch, now_ms), idempotency: outcome })
}

/// Stores the contract unless it exists. Many runs share a contract, so it is serialized only for the first of them.
async fn insert_contract<T: Tx>(tx: &T, launch: &Launch) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM contracts WHERE digest = ?1";
    if tx.find("look up a contract", sql, values![&launch.contract_digest]).await?.is_none() {
        tx.post(
            "store a contract",
            "INSERT INTO contracts (digest, json) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING",
            values![&launch.contract_digest, encode(&launch.contract)?],
        )
        .await?;
    }
    Ok(())
}

/// Returns a run that was just created, as reading it would return it.
fn created_run(launch: &Launch, now_ms: i64) -> RunRecord {
    let mut run = RunRecord {
        id: launch.id.clone(),
        skill_id: launch.skill_id.clone(),
        state: RunState::Pending,
        paused: false,
        gate: None,
        decided: None,
        contract_digest: launch.contract_digest.clone(),
        inputs: launch.inputs.clone(),
        target: launch.target.clone(),
        options: launch.options.clone(),
        outputs: None,
        error: None,
        trace_id: launch.trace_id.clone(),
        started_by: launch.started_by.clone(),
        source: None,
        progress: (0, launch.steps),
        step: None,
        head: 0,
        fence: 0,
        lease: None,
        created_ms: now_ms,
        since_ms: now_ms,
        expires_ms: None,
        allowed: Vec::new(),
    };
    run.allowed = allowed(&run_snapshot(&run, false));
    run
}

async fn found<T: Tx>(
    tx: &T,
    key: &Idempotency,
    skill: &str,
) -> Result<Option<(String, RunId, i64)>, StoreError> {
    let action = "look up an idempotency key";
    let named = values![&key.principal, skill, &key.key];
    if T::POSTGRES {
        // Launches with the same key are serialized: the second finds the run of the first.
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended(
            CAST(json_build_array('launch', (SELECT id FROM identity), CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT)) AS TEXT), 0))";
        tx.post(action, lock, named).await?;
    }
    let sql = "SELECT payload_digest, run, expires_ms FROM idempotency
        WHERE principal = ?1 AND skill_id = ?2 AND key = ?3";
    let row = tx.find(action, sql, named).await?;
    row.map(|mut row| Ok((row.take(0)?, row.take(1)?, row.take(2)?))).transpose()
}

/// A run to be created from another one.
#[derive(Debug)]
pub(crate) struct Fork {
    /// Start of the state in which the source has to be; in any state if omitted.
    pub since_ms: Option<i64>,
    pub new: RunId,
    pub checkpoint: Option<u64>,
    pub paused: bool,
    pub by: Option<String>,
}

/// Creates a replay (starts immediately) or a fork (paused) of a run at one of its checkpoints.
pub(crate) async fn fork<T: Tx>(
    tx: &T,
    source: &RunId,
    Fork { since_ms, new, checkpoint, paused, by }: &Fork,
) -> Result<RunRecord, StoreError> {
    let paused = *paused;
    let (from, replays) = get_short(tx, source).await?;
    let now_ms = tx.now().await?.wall_ms;
    ensure_in_state_since(&as_of(from.clone(), replays, now_ms), *since_ms)?;
    let command = if paused { Command::Fork } else { Command::Replay };
    match transition(&run_snapshot(&from, replays), &command)? {
        Transition::NewRun { .. } => {}
        other => {
            return Err(failed("branch a run", &format!("the state machine answered {other:?}")));
        }
    }
    let number = checkpoint.unwrap_or(from.head);
    let copied = tx
        .execute(
            "copy checkpoints",
            "INSERT INTO checkpoints (run, number, done, state, at_ms, base, digest)
             SELECT CAST(?2 AS TEXT), number, done, state, at_ms, base, digest
             FROM checkpoints WHERE run = ?1 AND number <= ?3",
            values![source, new, number],
        )
        .await?;
    if copied == 0 {
        return Err(StoreError::NoCheckpoint { run: source.clone(), checkpoint: number });
    }
    let done = checkpoints::read_checkpoint(tx, source, number).await?.done;
    // The numbers of its events begin at 1.
    let mut options =
        RunOptions { notified: None, notifying: Vec::new(), resumed_by: None, ..from.options.clone() };
    // The inputs are still those of who started the source.
    let is_known = by.as_ref().is_none_or(|by| *by == from.started_by);
    if !is_known && !options.inputs_by.contains(&from.started_by) {
        options.inputs_by.push(from.started_by.clone());
    }
    tx.post(
        "create a run",
        "INSERT INTO runs (id, skill_id, state, held, replays, contract_digest, inputs, target, trace_id, started_by,
                           source_run, source_checkpoint, steps_total, steps_done, head, created_ms, since_ms,
                           options, expires_in_ms, inputs_digest)
         SELECT CAST(?2 AS TEXT), skill_id, 'pending', CAST(?4 AS BIGINT), 1, contract_digest, inputs, target, trace_id,
                coalesce(?7, started_by), id, CAST(?3 AS BIGINT), steps_total, CAST(?5 AS BIGINT), CAST(?3 AS BIGINT),
                CAST(?6 AS BIGINT), CAST(?6 AS BIGINT), CAST(?8 AS TEXT), expires_in_ms, inputs_digest
         FROM runs WHERE id = ?1",
        values![
            source,
            new,
            number,
            i64::from(paused),
            own_steps(&done),
            now_ms,
            by.as_deref(),
            encode(&options)?
        ],
    )
    .await?;
    let sql = format!(
        "INSERT INTO steps (run, n, step, superseded, json)
         SELECT CAST(?2 AS TEXT), n, step, 0, json FROM steps
         WHERE run = ?1 AND superseded = 0 AND step IN {}",
        dialect::texts(T::POSTGRES, "?3")
    );
    tx.post("copy steps", &sql, values![source, new, encode(&done)?]).await?;
    let (made, led_to) = if paused {
        (EventKind::RunForkedFrom, EventKind::RunForkedTo)
    } else {
        (EventKind::RunReplayedFrom, EventKind::RunReplayedTo)
    };
    let lineage = signed(json!({"source": source.0, "checkpoint": number}), by.as_deref());
    let led = signed(json!({"run": new.0, "checkpoint": number}), by.as_deref());
    append(tx, new, &[moved(made, lineage)], now_ms).await?;
    append(tx, source, &[moved(led_to, led)], now_ms).await?;
    Ok(get(tx, new).await?.0)
}
