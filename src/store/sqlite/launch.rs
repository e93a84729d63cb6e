//! Creating runs: launches with their idempotency keys, replays and forks.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::failed;
use super::rows::{append, execute, get, json as encode, moved};
use crate::runs::{Command, Next, transition};
use crate::store::{Begun, Idempotency, IdempotencyOutcome, Launch, RunId, RunRecord, StoreError};

/// Idempotency look-up and creation in one transaction.
pub(super) fn launch(connection: &Connection, launch: &Launch, now_ms: i64) -> Result<Begun, StoreError> {
    let mut outcome = IdempotencyOutcome::None;
    if let Some(key) = &launch.idempotency {
        match found(connection, key, &launch.skill_id)? {
            Some((digest, run, expires_ms)) if expires_ms > now_ms => {
                if digest != key.payload_digest {
                    return Err(StoreError::IdempotencyConflict { key: key.key.clone(), run });
                }
                let (run, _) = get(connection, &run)?;
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
    execute(
        connection,
        "keeping a contract",
        "INSERT OR IGNORE INTO contracts (digest, json) VALUES (?1, ?2)",
        params![launch.contract_digest, encode(&launch.contract)?],
    )?;
    let total =
        launch.contract["steps"].as_array().map_or(0, |steps| i64::try_from(steps.len()).unwrap_or(i64::MAX));
    execute(
        connection,
        "creating a run",
        "INSERT INTO runs (id, skill_id, state, contract_digest, inputs, target, trace_id, started_by, steps_total,
                           created_ms, since_ms)
         VALUES (?1, ?2, 'pending', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)",
        params![
            launch.id.0,
            launch.skill_id,
            launch.contract_digest,
            encode(&launch.inputs)?,
            launch.target.as_ref().map(encode).transpose()?,
            launch.trace_id,
            launch.started_by,
            total,
            now_ms
        ],
    )?;
    execute(
        connection,
        "keeping the first checkpoint",
        "INSERT INTO checkpoints (run, number, done, state, at_ms) VALUES (?1, 0, '[]', '{}', ?2)",
        params![launch.id.0, now_ms],
    )?;
    let created = moved("run.created", json!({"skill_id": launch.skill_id, "started_by": launch.started_by}));
    append(connection, &launch.id, &[created], now_ms)?;
    let (run, _) = get(connection, &launch.id)?;
    Ok(Begun { run, idempotency: outcome })
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

/// A replay (starts at once) or a fork (held) of a run at one of its checkpoints.
pub(super) fn branch(
    connection: &Connection,
    source: &RunId,
    checkpoint: Option<u64>,
    new: &RunId,
    held: bool,
    now_ms: i64,
) -> Result<RunRecord, StoreError> {
    let (from, replays) = get(connection, source)?;
    let command = if held { Command::Fork } else { Command::Replay };
    match transition(&super::rows::standing(&from, replays), &command)? {
        Next::NewRun { .. } => {}
        other => {
            return Err(failed("branching a run".into(), &format!("the state machine answered {other:?}")));
        }
    }
    let number = checkpoint.unwrap_or(from.head);
    let copied = execute(
        connection,
        "copying checkpoints",
        "INSERT INTO checkpoints (run, number, done, state, at_ms)
         SELECT ?2, number, done, state, at_ms FROM checkpoints WHERE run = ?1 AND number <= ?3",
        params![source.0, new.0, number.cast_signed()],
    )?;
    let done: Option<String> = connection
        .prepare_cached("SELECT done FROM checkpoints WHERE run = ?1 AND number = ?2")
        .and_then(|mut s| s.query_row(params![source.0, number.cast_signed()], |row| row.get(0)).optional())
        .map_err(|e| failed("reading a checkpoint".into(), &e))?;
    let (Some(done), true) = (done, copied > 0) else {
        return Err(StoreError::NoCheckpoint { run: source.clone(), checkpoint: number });
    };
    execute(
        connection,
        "creating a run",
        "INSERT INTO runs (id, skill_id, state, held, replays, contract_digest, inputs, target, trace_id, started_by,
                           source_run, source_checkpoint, steps_total, steps_done, head, created_ms, since_ms)
         SELECT ?2, skill_id, 'pending', ?4, 1, contract_digest, inputs, target, trace_id, started_by, id, ?3,
                steps_total, json_array_length(?5), ?3, ?6, ?6
         FROM runs WHERE id = ?1",
        params![source.0, new.0, number.cast_signed(), held, done, now_ms],
    )?;
    execute(
        connection,
        "copying steps",
        "INSERT INTO steps (run, n, step, superseded, json)
         SELECT ?2, n, step, 0, json FROM steps
         WHERE run = ?1 AND superseded = 0 AND step IN (SELECT value FROM json_each(?3))",
        params![source.0, new.0, done],
    )?;
    let word = if held { "forked" } else { "replayed" };
    let lineage = json!({"source": source.0, "checkpoint": number});
    append(connection, new, &[moved(&format!("run.{word}_from"), lineage)], now_ms)?;
    append(
        connection,
        source,
        &[moved(&format!("run.{word}_to"), json!({"run": new.0, "checkpoint": number}))],
        now_ms,
    )?;
    Ok(get(connection, new)?.0)
}
