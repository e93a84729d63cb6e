//! What keeps a store in order: who is alive, and what may be forgotten.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, params};

use super::rows::execute;
use super::schema::is_damage;
use super::{failed, integrity};
use crate::{Glance, Health, Moment, StoreError, WorkerId};
use skills_base::private_files;
use skills_model::RunState;

/// How long a worker that said nothing is remembered.
const FORGET_WORKERS_MS: i64 = 86_400_000;

/// Tables that hold what belongs to a run, by their column `run`.
const OF_RUN: [&str; 7] =
    ["steps", "checkpoints", "intents", "events", "signals", "decisions", "idempotency"];

pub(super) fn beat(connection: &Connection, worker: &WorkerId, now: &Moment) -> Result<(), StoreError> {
    let now_ms = now.wall_ms;
    let doing = "sending a heartbeat";
    execute(connection, doing, "DELETE FROM workers WHERE seen_ms < ?1", [now_ms - FORGET_WORKERS_MS])?;
    execute(
        connection,
        doing,
        "INSERT OR REPLACE INTO workers (worker, seen_ms, boot, seen_boot_ms) VALUES (?1, ?2, ?3, ?4)",
        params![
            worker.0,
            now_ms,
            now.boot.as_ref().map(|boot| boot.boot.as_ref()),
            now.boot.as_ref().map(|boot| boot.ms)
        ],
    )?;
    Ok(())
}

pub(super) fn retire(connection: &Connection, worker: &WorkerId) -> Result<(), StoreError> {
    execute(connection, "deregistering a worker", "DELETE FROM workers WHERE worker = ?1", [&worker.0])?;
    Ok(())
}

/// Deletes runs that ended in one of these states before a moment, with everything of theirs, and contracts that no
/// run has any more.
pub(super) fn purge(connection: &Connection, states: &[RunState], before_ms: i64) -> Result<u64, StoreError> {
    let ends = |state: &&RunState| state.is_terminal() || **state == RunState::Failed;
    let states: Vec<String> = states.iter().filter(ends).map(|state| format!("'{state}'")).collect();
    let ended = format!("state IN ({}) AND since_ms < ?1", states.join(", "));
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

/// Rules that hold in every sound store, each with a query that counts what breaks it.
const RULES: [(&str, &str); 7] = [
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
    ("events of missing runs", "SELECT count(*) FROM events WHERE run NOT IN (SELECT id FROM runs)"),
];

/// Damage that is listed by a short look.
const LISTED: u32 = 3;

/// A look over the pages that ends when its time is over. Indices are not held against their tables: that is what
/// [`check`] does.
pub(super) fn glance(connection: &Connection, patience: Duration) -> Result<Glance, StoreError> {
    let (done, waiting) = mpsc::channel::<()>();
    let handle = connection.get_interrupt_handle();
    let timer = std::thread::spawn(move || {
        if waiting.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
            handle.interrupt();
        }
    });
    let (mut damage, broken_off) = damage(connection, &format!("PRAGMA quick_check({LISTED})"));
    drop(done);
    // It ends at once: nobody can tell it anything any more.
    drop(timer.join());
    match broken_off {
        None => Ok(Glance { damage, whole: true }),
        Some(error) => match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Ok(Glance { damage, whole: false }),
            _ if is_damage(&error) => {
                if damage.is_empty() {
                    damage.push(error.to_string());
                }
                Ok(Glance { damage, whole: false })
            }
            _ => Err(failed("checking the store".to_owned(), &error)),
        },
    }
}

/// The lines in which a look over the pages tells damage, and why it broke off: what it found before stays told.
fn damage(connection: &Connection, pragma: &str) -> (Vec<String>, Option<rusqlite::Error>) {
    let mut found: Vec<String> = Vec::new();
    let mut look = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare(pragma)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let told: String = row.get(0)?;
            // One row may hold several lines below a heading with the name of the database.
            let lines = told.lines().filter(|line| *line != "ok" && !line.starts_with("*** in database"));
            found.extend(lines.map(str::to_owned));
        }
        Ok(())
    };
    let broken_off = look().err();
    (found, broken_off)
}

pub(super) fn check(connection: &Connection) -> Result<Health, StoreError> {
    let doing = || "checking the store".to_owned();
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(|e| failed(doing(), &e))
    };
    let (mut damage, broken_off) = damage(connection, "PRAGMA integrity_check");
    match broken_off {
        None => {}
        // The damage is in the way of holding indices against their tables; where it is, the pages alone tell.
        Some(error) if is_damage(&error) => {
            let (pages, _) = self::damage(connection, "PRAGMA quick_check");
            damage.extend(pages.into_iter().filter(|line| !damage.contains(line)).collect::<Vec<_>>());
            damage.push(if damage.is_empty() {
                error.to_string()
            } else {
                format!("cannot check indices: {error}")
            });
        }
        Some(error) => return Err(failed(doing(), &error)),
    }
    // What a damaged page holds cannot be counted; the rest is told nevertheless.
    let mut counted = |sql: &str| match number(sql) {
        Err(error) if damage.is_empty() => Err(error),
        Err(error) => {
            tracing::warn!("{error}");
            let told = "incomplete count because of a damaged page".to_owned();
            if !damage.contains(&told) {
                damage.push(told);
            }
            Ok(0)
        }
        number => number,
    };
    let mut contradictions = Vec::new();
    for (what, sql) in RULES {
        match counted(sql)? {
            0 => {}
            count => contradictions.push(format!("{count} {what}")),
        }
    }
    // A page that cannot be read has been told already.
    if let Ok((inputs, checkpoints)) = integrity::count(connection) {
        let damaged =
            [(inputs, "runs with other inputs than"), (checkpoints, "checkpoints with another state than")];
        for (count, what) in damaged.into_iter().filter(|(count, _)| *count > 0) {
            contradictions.push(format!("{count} {what} were written"));
        }
    }
    let (runs, events) = (counted("SELECT count(*) FROM runs")?, counted("SELECT count(*) FROM events")?);
    let page = number("PRAGMA page_size")?;
    Ok(Health {
        damage,
        contradictions,
        runs,
        events,
        bytes: number("PRAGMA page_count")?.saturating_mul(page),
        free_bytes: number("PRAGMA freelist_count")?.saturating_mul(page),
    })
}

/// Takes away what ended runs wrote down beyond what a replay of them needs: inputs of steps and output lines.
pub(super) fn forget(connection: &Connection, before_ms: i64) -> Result<u64, StoreError> {
    let doing = "purging data of ended runs";
    let ended = "SELECT id FROM runs WHERE state IN ('completed', 'canceled', 'failed') AND since_ms < ?1";
    let runs: Vec<String> = connection
        .prepare_cached(&format!(
            "{ended} AND (EXISTS (SELECT 1 FROM steps s WHERE s.run = id AND json_extract(s.json, '$.inputs') IS NOT NULL)
                 OR EXISTS (SELECT 1 FROM events e WHERE e.run = id AND e.kind = 'step.log' AND e.data <> '{{}}'))"
        ))
        .and_then(|mut s| s.query_map([before_ms], |row| row.get(0))?.collect())
        .map_err(|e| failed(doing.into(), &e))?;
    for run in &runs {
        execute(
            connection,
            doing,
            "UPDATE steps SET json = json_set(json, '$.inputs', json('null')) WHERE run = ?1",
            [run],
        )?;
        // The event stays, so that numbers have no gaps; what was printed goes.
        execute(
            connection,
            doing,
            "UPDATE events SET data = '{}' WHERE run = ?1 AND kind = 'step.log'",
            [run],
        )?;
    }
    Ok(runs.len() as u64)
}

/// Writes a whole copy; first under another name, so that one that broke off is never taken for a store.
pub(super) fn backup(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let doing = || format!("backing up to {}", to.display());
    if to.exists() {
        return Err(failed(doing(), &"the file already exists; choose another"));
    }
    let mut draft = to.as_os_str().to_owned();
    draft.push(".part");
    let draft = PathBuf::from(draft);
    // An empty file is filled and keeps its permissions.
    let copied = private_files::create_file(&draft, private_files::FILE_MODE)
        .map_err(|e| failed(doing(), &e))
        .and_then(|_| {
            connection.execute("VACUUM INTO ?1", [draft.to_string_lossy()]).map_err(|e| failed(doing(), &e))
        })
        .and_then(|_| std::fs::rename(&draft, to).map_err(|e| failed(doing(), &e)));
    if copied.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    copied
}

/// Gives the space of deleted rows back to the system.
pub(super) fn compact(connection: &Connection) -> Result<(), StoreError> {
    connection
        .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        .map_err(|e| failed("reclaiming free space".into(), &e))
}
