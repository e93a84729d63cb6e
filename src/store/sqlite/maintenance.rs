//! What keeps a store in order: who is alive, and what may be forgotten.

use rusqlite::{Connection, params};

use super::rows::execute;
use crate::store::{StoreError, WorkerId};

/// How long a worker that said nothing is remembered.
const FORGET_WORKERS_MS: i64 = 86_400_000;

/// Tables that hold what belongs to a run, by their column `run`.
const OF_RUN: [&str; 7] =
    ["steps", "checkpoints", "intents", "events", "signals", "decisions", "idempotency"];

pub(super) fn beat(connection: &Connection, worker: &WorkerId, now_ms: i64) -> Result<(), StoreError> {
    let doing = "writing down that a worker is alive";
    execute(connection, doing, "DELETE FROM workers WHERE seen_ms < ?1", [now_ms - FORGET_WORKERS_MS])?;
    execute(
        connection,
        doing,
        "INSERT OR REPLACE INTO workers (worker, seen_ms) VALUES (?1, ?2)",
        params![worker.0, now_ms],
    )?;
    Ok(())
}

pub(super) fn retire(connection: &Connection, worker: &WorkerId) -> Result<(), StoreError> {
    execute(
        connection,
        "taking a worker off the list",
        "DELETE FROM workers WHERE worker = ?1",
        [&worker.0],
    )?;
    Ok(())
}

/// Deletes runs that ended before a moment, with everything of theirs, and contracts that no run has any more.
pub(super) fn purge(connection: &Connection, before_ms: i64) -> Result<u64, StoreError> {
    let ended = "state IN ('completed', 'canceled', 'failed') AND since_ms < ?1";
    for table in OF_RUN {
        execute(
            connection,
            "purging ended runs",
            &format!("DELETE FROM {table} WHERE run IN (SELECT id FROM runs WHERE {ended})"),
            [before_ms],
        )?;
    }
    let purged =
        execute(connection, "purging ended runs", &format!("DELETE FROM runs WHERE {ended}"), [before_ms])?;
    execute(
        connection,
        "purging contracts",
        "DELETE FROM contracts WHERE digest NOT IN (SELECT contract_digest FROM runs)",
        [],
    )?;
    Ok(u64::try_from(purged).unwrap_or(u64::MAX))
}
