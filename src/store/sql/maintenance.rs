//! Maintenance of a store: heartbeats of workers, and deletion of old data.

use super::integrity::is_sound;
use super::{Row, Tx, dialect, values};
use crate::{StoreError, WorkerId};
use skills_base::canonical::digest_of;
use skills_model::RunState;

/// How long a worker is kept after its last heartbeat.
const FORGET_WORKERS_MS: i64 = 86_400_000;

/// Tables with rows that belong to a run, by their column `run`.
pub(crate) const RUN_TABLES: [&str; 7] =
    ["steps", "checkpoints", "intents", "events", "signals", "decisions", "idempotency"];

/// Selects runs that ended before the moment `?1`.
const ENDED: &str = "state IN ('completed', 'canceled', 'failed') AND since_ms < ?1";

pub(crate) async fn heartbeat<T: Tx>(tx: &T, worker: &WorkerId) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let action = "send a heartbeat";
    tx.post(
        action,
        "INSERT INTO workers (worker, seen_ms, boot, seen_boot_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (worker) DO UPDATE SET seen_ms = excluded.seen_ms, boot = excluded.boot,
            seen_boot_ms = excluded.seen_boot_ms",
        values![
            &worker.0,
            now.wall_ms,
            now.boot.as_ref().map(|boot| boot.boot.as_ref()),
            now.boot.as_ref().map(|boot| boot.ms)
        ],
    )
    .await?;
    let sql = "DELETE FROM workers WHERE seen_ms < ?1";
    tx.post(action, sql, values![now.wall_ms - FORGET_WORKERS_MS]).await
}

pub(crate) async fn deregister_worker<T: Tx>(tx: &T, worker: &WorkerId) -> Result<(), StoreError> {
    tx.post("deregister a worker", "DELETE FROM workers WHERE worker = ?1", values![&worker.0]).await
}

/// Writes to the store, to find out whether that is possible.
pub(crate) async fn probe<T: Tx>(tx: &T) -> Result<(), StoreError> {
    let now_ms = tx.now().await?.wall_ms;
    let sql = "INSERT INTO write_probe (only_one, at_ms) VALUES (1, ?1)
        ON CONFLICT (only_one) DO UPDATE SET at_ms = excluded.at_ms";
    tx.post("probe the store", sql, values![now_ms]).await
}

/// Deletes at most `limit` of the runs that ended in one of these states before a moment, with everything that belongs
/// to them.
pub(crate) async fn purge<T: Tx>(
    tx: &T,
    states: &[RunState],
    before_ms: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let action = "purge ended runs";
    let ends = [RunState::Completed, RunState::Canceled, RunState::Failed];
    let states: Vec<String> =
        ends.iter().filter(|state| states.contains(state)).map(|state| format!("'{state}'")).collect();
    if states.is_empty() {
        return Ok(0);
    }
    // Runs that another transaction has locked are in use and skipped.
    let lock = if T::POSTGRES { "FOR UPDATE SKIP LOCKED" } else { "" };
    let sql = format!(
        "SELECT id FROM runs WHERE state IN ({}) AND since_ms < ?1 LIMIT ?2 {lock}",
        states.join(", ")
    );
    let rows = tx.query(action, &sql, values![before_ms, limit]).await?;
    let runs = rows.into_iter().map(|mut row| row.take(0)).collect::<Result<Vec<String>, _>>()?;
    if runs.is_empty() {
        return Ok(0);
    }
    let ids = super::rows::json(&runs)?;
    let of_runs = dialect::texts(T::POSTGRES, "?1");
    for table in RUN_TABLES {
        tx.post(action, &format!("DELETE FROM {table} WHERE run IN {of_runs}"), values![&ids]).await?;
    }
    tx.post(action, &format!("DELETE FROM runs WHERE id IN {of_runs}"), values![&ids]).await?;
    Ok(runs.len() as u64)
}

/// Deletes contracts that no run refers to.
pub(crate) async fn purge_contracts<T: Tx>(tx: &T) -> Result<(), StoreError> {
    let sql = "DELETE FROM contracts
        WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.contract_digest = contracts.digest)";
    tx.post("purge contracts", sql, &[]).await
}

/// Deletes audit data of ended runs: inputs of steps and output lines, which a replay does not need.
pub(crate) async fn prune<T: Tx>(tx: &T, before_ms: i64) -> Result<u64, StoreError> {
    let action = "purge data of ended runs";
    let has_inputs = format!("{} IS NOT NULL", dialect::field(T::POSTGRES, "s.json", "inputs"));
    let sql = format!(
        "SELECT id FROM runs WHERE {ENDED}
            AND (EXISTS (SELECT 1 FROM steps s WHERE s.run = id AND ({has_inputs}))
              OR EXISTS (SELECT 1 FROM events e WHERE e.run = id AND e.kind = 'step.log' AND e.data <> '{{}}')){}",
        tx.locking()
    );
    let mut count = 0;
    for mut row in tx.query(action, &sql, values![before_ms]).await? {
        let run: String = row.take(0)?;
        let steps = tx.query(action, "SELECT n, json FROM steps WHERE run = ?1", values![&run]).await?;
        let mut changed = false;
        for mut step in steps {
            let mut record: serde_json::Value = step.json(1)?;
            if record["inputs"].is_null() {
                continue;
            }
            record["inputs"] = serde_json::Value::Null;
            let n: i64 = step.take(0)?;
            let sql = "UPDATE steps SET json = ?3 WHERE run = ?1 AND n = ?2";
            tx.post(action, sql, values![&run, n, record.to_string()]).await?;
            changed = true;
        }
        // The event is kept, so that numbers have no gaps; only its output is deleted.
        let sql = "UPDATE events SET data = '{}' WHERE run = ?1 AND kind = 'step.log' AND data <> '{}'";
        changed |= tx.execute(action, sql, values![&run]).await? > 0;
        count += u64::from(changed);
    }
    Ok(count)
}

/// Invariants of every valid store, each with a query that counts the violations.
pub(crate) const RULES: [(&str, &str); 7] = [
    (
        "runs without the contract they were launched with",
        "SELECT count(*) FROM runs WHERE contract_digest NOT IN (SELECT digest FROM contracts)",
    ),
    (
        "runs without their head checkpoint",
        "SELECT count(*) FROM runs r WHERE NOT EXISTS
            (SELECT 1 FROM checkpoints c WHERE c.run = r.id AND c.number = r.head)",
    ),
    (
        "checkpoints without their base",
        "SELECT count(*) FROM checkpoints c WHERE base IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM checkpoints b WHERE b.run = c.run AND b.number = c.base AND b.base IS NULL)",
    ),
    (
        "runs whose events have gaps",
        "SELECT count(*) FROM runs r WHERE r.events <> (SELECT count(*) FROM events e WHERE e.run = r.id)",
    ),
    ("waiting runs without a gate", "SELECT count(*) FROM runs WHERE state LIKE 'waiting%' AND gate IS NULL"),
    (
        "leases of ended runs",
        "SELECT count(*) FROM runs WHERE lease_until_ms IS NOT NULL AND state NOT IN ('running', 'replaying')",
    ),
    (
        "events of missing runs",
        "SELECT count(*) FROM events e WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = e.run)",
    ),
];

/// Number of rows that are verified at a time.
const VERIFY_BATCH_ROWS: usize = 1000;

/// Returns how many runs, checkpoints and contracts were modified after they were written.
async fn modified<T: Tx>(tx: &T) -> Result<(u64, u64, u64), StoreError> {
    let action = "verify inputs, checkpoints and contracts";
    let count = |rows: &[Row]| {
        rows.iter().filter(|row| !is_sound(row.text(0), row.text(1), row.text(2))).count() as u64
    };
    let (mut runs, mut checkpoints) = (0, 0);
    let mut last = i64::MIN;
    loop {
        let sql = "SELECT inputs, NULL, inputs_digest, seq FROM runs
            WHERE inputs_digest IS NOT NULL AND seq > ?1 ORDER BY seq LIMIT ?2";
        let mut rows = tx.query(action, sql, values![last, VERIFY_BATCH_ROWS]).await?;
        runs += count(&rows);
        let Some(row) = rows.last_mut() else { break };
        last = row.take(3)?;
    }
    let (mut run, mut number) = (String::new(), i64::MIN);
    loop {
        let sql = "SELECT done, state, digest, run, number FROM checkpoints
            WHERE digest IS NOT NULL AND (run, number) > (?1, ?2) ORDER BY run, number LIMIT ?3";
        let mut rows = tx.query(action, sql, values![&run, number, VERIFY_BATCH_ROWS]).await?;
        checkpoints += count(&rows);
        let Some(row) = rows.last_mut() else { break };
        (run, number) = (row.take(3)?, row.take(4)?);
    }
    let (mut contracts, mut last) = (0, String::new());
    loop {
        let sql = "SELECT digest, json FROM contracts WHERE digest > ?1 ORDER BY digest LIMIT ?2";
        let mut rows = tx.query(action, sql, values![&last, VERIFY_BATCH_ROWS]).await?;
        let is_as_written =
            |row: &Row| row.text(0) == row.json(1).map(|json| digest_of(&json)).ok().as_deref();
        contracts += rows.iter().filter(|row| !is_as_written(row)).count() as u64;
        let Some(row) = rows.last_mut() else { break };
        last = row.take(0)?;
    }
    Ok((runs, checkpoints, contracts))
}

/// Like [`modified`], as text.
pub(crate) async fn describe_modified<T: Tx>(tx: &T) -> Result<Vec<String>, StoreError> {
    let (runs, checkpoints, contracts) = modified(tx).await?;
    let found = [
        (runs, "run", "inputs differ"),
        (checkpoints, "checkpoint", "state differs"),
        (contracts, "contract", "content differs"),
    ];
    let found = found.into_iter().filter(|(count, ..)| *count > 0);
    let details = found.map(|(count, what, differs)| {
        let what = skills_base::number::counted(count, what);
        format!("{what} whose {differs} from what was written")
    });
    Ok(details.collect())
}
