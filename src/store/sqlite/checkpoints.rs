//! Checkpoints in the database: small ones whole, larger ones as what changed since the one before, so that a run of
//! thousands of iterations does not keep all of them thousands of times.
//!
//! A row with a `base` holds differences, and the chain of rows from the base to it gives the checkpoint. The newest
//! checkpoint of each run at work stands whole in a temporary table of the writing connection, which is in no file
//! and takes part in its transactions.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::failed;
use super::integrity::digest;
use super::rows::{column, execute, json as encode};
use crate::delta::{applied, difference};
use crate::{Checkpoint, RunId, StoreError};

/// Bytes up to which a checkpoint is kept whole: a chain costs more than it saves.
const SMALL: usize = 1024;
/// Rows of a chain: bounds what reading its end costs.
const CHAIN: i64 = 1000;

/// The temporary table of a writing connection.
pub(super) const NEWEST: &str = "
    PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE newest (
        run TEXT PRIMARY KEY, number INTEGER NOT NULL, base INTEGER NOT NULL, spent INTEGER NOT NULL,
        done TEXT NOT NULL, state TEXT NOT NULL
    ) WITHOUT ROWID;
";

/// Where a chain ends so far.
struct End {
    base: i64,
    /// Bytes of differences in it.
    spent: i64,
    done: Value,
    state: Value,
}

/// Keeps a checkpoint behind the last one of its run; answers its number.
pub(super) fn keep(
    connection: &Connection,
    run: &RunId,
    checkpoint: &Checkpoint,
    now_ms: i64,
) -> Result<i64, StoreError> {
    // After a resume from an earlier checkpoint the later ones stay as they are, and numbers go on behind them.
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(number), -1) FROM checkpoints WHERE run = ?1")
        .and_then(|mut s| s.query_row([&run.0], |row| row.get(0)))
        .map_err(|e| failed("numbering a checkpoint".into(), &e))?;
    let number = checkpoint.number.cast_signed().max(last + 1);
    let (done, state) = (encode(&checkpoint.done)?, encode(&checkpoint.state)?);
    let whole = done.len() + state.len();
    if whole <= SMALL {
        insert(connection, run, number, (&done, &state), None, now_ms)?;
        return Ok(number);
    }
    if let Some(end) = end(connection, run, last)? {
        let part = |before: &Value, after: &Value| match difference(before, after) {
            Some(difference) => encode(&difference),
            None => Ok("null".to_owned()),
        };
        let list = checkpoint.done.iter().cloned().map(Value::String).collect();
        let parts = (part(&end.done, &list)?, part(&end.state, &checkpoint.state)?);
        let spent = end.spent + length(parts.0.len() + parts.1.len());
        // Once the differences are longer than what they stand for, the whole is kept again.
        if spent <= length(whole) && number - end.base < CHAIN {
            insert(connection, run, number, (&parts.0, &parts.1), Some(end.base), now_ms)?;
            remember(connection, run, (number, end.base, spent), &done, &state)?;
            return Ok(number);
        }
    }
    insert(connection, run, number, (&done, &state), None, now_ms)?;
    remember(connection, run, (number, number, 0), &done, &state)?;
    Ok(number)
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn insert(
    connection: &Connection,
    run: &RunId,
    number: i64,
    (done, state): (&str, &str),
    base: Option<i64>,
    now_ms: i64,
) -> Result<(), StoreError> {
    execute(
        connection,
        "recording a checkpoint",
        "INSERT INTO checkpoints (run, number, done, state, at_ms, base, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![run.0, number, done, state, now_ms, base, digest(&[done, state])],
    )?;
    Ok(())
}

fn remember(
    connection: &Connection,
    run: &RunId,
    (number, base, spent): (i64, i64, i64),
    done: &str,
    state: &str,
) -> Result<(), StoreError> {
    execute(
        connection,
        "remembering the newest checkpoint",
        "INSERT OR REPLACE INTO newest (run, number, base, spent, done, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![run.0, number, base, spent, done, state],
    )?;
    Ok(())
}

/// Lets go of what is remembered of a run that nobody works for now.
pub(super) fn forget(connection: &Connection, run: &RunId) -> Result<(), StoreError> {
    execute(connection, "forgetting the newest checkpoint", "DELETE FROM newest WHERE run = ?1", [&run.0])?;
    Ok(())
}

/// The last checkpoint as the end of its chain: remembered, or read where another process wrote it.
fn end(connection: &Connection, run: &RunId, last: i64) -> Result<Option<End>, StoreError> {
    let remembered = connection
        .prepare_cached("SELECT base, spent, done, state FROM newest WHERE run = ?1 AND number = ?2")
        .and_then(|mut s| {
            s.query_row(params![run.0, last], |row| {
                Ok(End {
                    base: row.get(0)?,
                    spent: row.get(1)?,
                    done: column(row, 2)?,
                    state: column(row, 3)?,
                })
            })
            .optional()
        })
        .map_err(|e| failed("looking up the newest checkpoint".into(), &e))?;
    if remembered.is_some() {
        return Ok(remembered);
    }
    let rows = rows(connection, run, Some(last))?;
    let spent = rows.iter().filter(|row| row.base.is_some()).map(|row| row.bytes).sum();
    let Some(base) = rows.last().map(|row| row.base.unwrap_or(row.number)) else { return Ok(None) };
    let mut chain = Chain::default();
    for row in rows {
        chain.take(run, row)?;
    }
    let Chain { number, done, state } = chain;
    Ok((number == last).then_some(End { base, spent, done, state }))
}

/// A row as it is kept.
struct Kept {
    number: i64,
    base: Option<i64>,
    done: Value,
    state: Value,
    at_ms: i64,
    bytes: i64,
}

/// All rows of a run, or those that lead to one checkpoint.
fn rows(connection: &Connection, run: &RunId, to: Option<i64>) -> Result<Vec<Kept>, StoreError> {
    let read = |row: &Row<'_>| {
        Ok(Kept {
            number: row.get(0)?,
            done: column(row, 1)?,
            state: column(row, 2)?,
            at_ms: row.get(3)?,
            base: row.get(4)?,
            bytes: row.get(5)?,
        })
    };
    let columns = "SELECT number, done, state, at_ms, base, octet_length(done) + octet_length(state)
                   FROM checkpoints WHERE run = ?1";
    let read = match to {
        None => connection
            .prepare_cached(&format!("{columns} ORDER BY number"))
            .and_then(|mut s| s.query_map([&run.0], read)?.collect()),
        Some(number) => connection
            .prepare_cached(&format!(
                "{columns} AND number BETWEEN
                    coalesce((SELECT base FROM checkpoints WHERE run = ?1 AND number = ?2), ?2) AND ?2
                 ORDER BY number"
            ))
            .and_then(|mut s| s.query_map(params![run.0, number], read)?.collect()),
    };
    read.map_err(|e| failed("reading checkpoints".into(), &e))
}

/// A chain as far as it was read.
struct Chain {
    number: i64,
    done: Value,
    state: Value,
}

impl Default for Chain {
    fn default() -> Self {
        Self { number: -1, done: Value::Null, state: Value::Null }
    }
}

impl Chain {
    fn take(&mut self, run: &RunId, row: Kept) -> Result<(), StoreError> {
        let Kept { number, base, done, state, .. } = row;
        let damaged = || {
            failed(
                format!("reading checkpoint {number} of run {run}"),
                &"its base is missing or damaged; see `skills db check`",
            )
        };
        if base.is_none() {
            *self = Self { number, done, state };
            return Ok(());
        }
        let onto = |before: &mut Value, change: Value| -> Result<(), StoreError> {
            if change.is_null() {
                return Ok(());
            }
            *before = applied(std::mem::take(before), change).ok_or_else(damaged)?;
            Ok(())
        };
        if self.number < 0 {
            return Err(damaged());
        }
        onto(&mut self.done, done)?;
        onto(&mut self.state, state)?;
        self.number = number;
        Ok(())
    }

    fn checkpoint(&self, at_ms: i64) -> Checkpoint {
        let done = self.done.as_array().into_iter().flatten();
        Checkpoint {
            number: self.number.unsigned_abs(),
            done: done.filter_map(|step| step.as_str().map(str::to_owned)).collect(),
            state: self.state.clone(),
            at_ms,
        }
    }
}

/// One checkpoint of a run.
pub(super) fn one(connection: &Connection, run: &RunId, number: u64) -> Result<Checkpoint, StoreError> {
    let mut chain = Chain::default();
    let mut at_ms = 0;
    for row in rows(connection, run, Some(number.cast_signed()))? {
        at_ms = row.at_ms;
        chain.take(run, row)?;
    }
    if chain.number != number.cast_signed() {
        return Err(StoreError::NoCheckpoint { run: run.clone(), checkpoint: number });
    }
    Ok(chain.checkpoint(at_ms))
}

/// All checkpoints of a run, oldest first.
pub(super) fn all(connection: &Connection, run: &RunId) -> Result<Vec<Checkpoint>, StoreError> {
    let mut chain = Chain::default();
    rows(connection, run, None)?
        .into_iter()
        .map(|row| {
            let at_ms = row.at_ms;
            chain.take(run, row)?;
            Ok(chain.checkpoint(at_ms))
        })
        .collect()
}
