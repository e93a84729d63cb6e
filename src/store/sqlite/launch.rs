//! Creating runs: launches with their idempotency keys, replays and forks.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::checkpoints;
use super::failed;
use super::integrity::digest;
use super::rows::{
    append, as_of, execute, get, json as encode, moved, own_steps, signed, standing, write_events,
};
use crate::{Begun, EventKind, Idempotency, IdempotencyOutcome, Launch, RunId, RunRecord, StoreError};
use skills_model::{Command, Next, RunState, allowed, transition};

/// Idempotency look-up and creation in one transaction.
pub(super) fn launch(connection: &Connection, launch: &Launch, now_ms: i64) -> Result<Begun, StoreError> {
    let mut outcome = IdempotencyOutcome::None;
    if let Some(key) = &launch.idempotency {
        match found(connection, key, &launch.skill_id)? {
            Some((digest, run, expires_ms)) if expires_ms > now_ms => {
                if digest != key.payload_digest {
                    return Err(StoreError::IdempotencyConflict { key: key.key.clone(), run });
                }
                let (run, replays) = get(connection, &run)?;
                let run = as_of(run, replays, now_ms);
                return Ok(Begun { run, idempotency: IdempotencyOutcome::Reused });
            }
            Some(_) => outcome = IdempotencyOutcome::Expired,
            None => outcome = IdempotencyOutcome::Created,
        }
        execute(
            connection,
            "keeping an idempotency key",
            "INSERT OR REPLACE INTO idempotency (principal, skill_id, key, payload_digest, run, expires_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                key.principal,
                launch.skill_id,
                key.key,
                key.payload_digest,
                launch.id.0,
                now_ms.saturating_add_unsigned(key.ttl_seconds.saturating_mul(1000))
            ],
        )?;
    }
    keep_contract(connection, launch)?;
    let expires_in = launch.options.expires_in_s.map(|s| s.saturating_mul(1000)).map(i64::try_from);
    let inputs = encode(&launch.inputs)?;
    execute(
        connection,
        "creating a run",
        "INSERT INTO runs (id, skill_id, state, contract_digest, inputs, target, trace_id, started_by, steps_total,
                           created_ms, since_ms, options, expires_in_ms, events, inputs_digest)
         VALUES (?1, ?2, 'pending', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, 1, ?12)",
        params![
            launch.id.0,
            launch.skill_id,
            launch.contract_digest,
            inputs,
            launch.target.as_ref().map(encode).transpose()?,
            launch.trace_id,
            launch.started_by,
            launch.steps,
            now_ms,
            encode(&launch.options)?,
            // A wait of more milliseconds than there are numbers for is a wait for ever.
            expires_in.and_then(Result::ok),
            digest(&[&inputs])
        ],
    )?;
    execute(
        connection,
        "keeping the first checkpoint",
        "INSERT INTO checkpoints (run, number, done, state, at_ms, digest) VALUES (?1, 0, '[]', '{}', ?2, ?3)",
        params![launch.id.0, now_ms, digest(&["[]", "{}"])],
    )?;
    let created =
        moved(EventKind::RunCreated, json!({"skill_id": launch.skill_id, "started_by": launch.started_by}));
    write_events(connection, &launch.id, 1, &[created], now_ms)?;
    Ok(Begun { run: created_run(launch, now_ms), idempotency: outcome })
}

/// Many runs share a contract: its text is made for the first of them alone.
fn keep_contract(connection: &Connection, launch: &Launch) -> Result<(), StoreError> {
    let kept = connection
        .prepare_cached("SELECT 1 FROM contracts WHERE digest = ?1")
        .and_then(|mut s| s.exists([&launch.contract_digest]))
        .map_err(|e| failed("looking a contract up".into(), &e))?;
    if !kept {
        execute(
            connection,
            "keeping a contract",
            "INSERT INTO contracts (digest, json) VALUES (?1, ?2)",
            params![launch.contract_digest, encode(&launch.contract)?],
        )?;
    }
    Ok(())
}

/// A run that was just created, as reading it would give it.
fn created_run(launch: &Launch, now_ms: i64) -> RunRecord {
    let mut run = RunRecord {
        id: launch.id.clone(),
        skill_id: launch.skill_id.clone(),
        state: RunState::Pending,
        held: false,
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
        hold: None,
        created_ms: now_ms,
        since_ms: now_ms,
        expires_ms: None,
        allowed: Vec::new(),
    };
    run.allowed = allowed(&standing(&run, false));
    run
}

fn found(
    connection: &Connection,
    key: &Idempotency,
    skill: &str,
) -> Result<Option<(String, RunId, i64)>, StoreError> {
    connection
        .prepare_cached(
            "SELECT payload_digest, run, expires_ms FROM idempotency
             WHERE principal = ?1 AND skill_id = ?2 AND key = ?3",
        )
        .and_then(|mut s| {
            s.query_row(params![key.principal, skill, key.key], |row| {
                Ok((row.get(0)?, RunId(row.get(1)?), row.get(2)?))
            })
            .optional()
        })
        .map_err(|e| failed("looking an idempotency key up".into(), &e))
}

/// A run to be made out of another one.
#[derive(Debug)]
pub(super) struct Branch {
    pub new: RunId,
    pub checkpoint: Option<u64>,
    pub held: bool,
    pub by: Option<String>,
}

/// Makes a replay (starts at once) or a fork (held) of a run at one of its checkpoints.
pub(super) fn branch(
    connection: &Connection,
    source: &RunId,
    Branch { new, checkpoint, held, by }: &Branch,
    now_ms: i64,
) -> Result<RunRecord, StoreError> {
    let held = *held;
    let (from, replays) = get(connection, source)?;
    let command = if held { Command::Fork } else { Command::Replay };
    match transition(&standing(&from, replays), &command)? {
        Next::NewRun { .. } => {}
        other => {
            return Err(failed("branching a run".into(), &format!("the state machine answered {other:?}")));
        }
    }
    let number = checkpoint.unwrap_or(from.head);
    let copied = execute(
        connection,
        "copying checkpoints",
        "INSERT INTO checkpoints (run, number, done, state, at_ms, base, digest)
         SELECT ?2, number, done, state, at_ms, base, digest FROM checkpoints WHERE run = ?1 AND number <= ?3",
        params![source.0, new.0, number.cast_signed()],
    )?;
    if copied == 0 {
        return Err(StoreError::NoCheckpoint { run: source.clone(), checkpoint: number });
    }
    let done = checkpoints::one(connection, source, number)?.done;
    execute(
        connection,
        "creating a run",
        "INSERT INTO runs (id, skill_id, state, held, replays, contract_digest, inputs, target, trace_id, started_by,
                           source_run, source_checkpoint, steps_total, steps_done, head, created_ms, since_ms,
                           options, expires_in_ms, inputs_digest)
         SELECT ?2, skill_id, 'pending', ?4, 1, contract_digest, inputs, target, trace_id, coalesce(?7, started_by), id, ?3,
                steps_total, ?5, ?3, ?6, ?6, options, expires_in_ms, inputs_digest
         FROM runs WHERE id = ?1",
        params![source.0, new.0, number.cast_signed(), held, own_steps(&done), now_ms, by],
    )?;
    execute(
        connection,
        "copying steps",
        "INSERT INTO steps (run, n, step, superseded, json)
         SELECT ?2, n, step, 0, json FROM steps
         WHERE run = ?1 AND superseded = 0 AND step IN (SELECT value FROM json_each(?3))",
        params![source.0, new.0, encode(&done)?],
    )?;
    let (made, led_to) = if held {
        (EventKind::RunForkedFrom, EventKind::RunForkedTo)
    } else {
        (EventKind::RunReplayedFrom, EventKind::RunReplayedTo)
    };
    let lineage = signed(json!({"source": source.0, "checkpoint": number}), by.as_deref());
    let led = signed(json!({"run": new.0, "checkpoint": number}), by.as_deref());
    append(connection, new, &[moved(made, lineage)], now_ms)?;
    append(connection, source, &[moved(led_to, led)], now_ms)?;
    Ok(get(connection, new)?.0)
}
