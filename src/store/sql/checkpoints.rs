//! Checkpoints in the database: small ones in full, larger ones as differences from the previous one, so that a run of
//! thousands of iterations does not store all of them thousands of times.
//!
//! A row with a `base` contains differences, and the chain of rows from the base to it yields the checkpoint. The
//! newest checkpoint of each active run is stored in full in the table `newest`, which is transactional and need not
//! survive a crash: temporary in `SQLite`, unlogged in `PostgreSQL`.

use serde_json::Value;
use skills_base::memory::value_bytes;

use super::integrity::{self, digest};
use super::rows::json as encode;
use super::{Row, Tx, failed, values};
use crate::delta::{added_bytes, applied, difference};
use crate::{Checkpoint, RunId, StoreError};

/// Size in bytes up to which a checkpoint is stored in full, because a chain would cost more than it saves.
const MAX_FULL_BYTES: usize = 1024;
/// Maximum number of rows in a chain: bounds the cost of reading its end.
const MAX_CHAIN_ROWS: i64 = 1000;

/// Memory in bytes of the checkpoints of a page.
const PAGE_BYTES: usize = 16 << 20;

/// The current end of a chain.
struct End {
    base: i64,
    /// Bytes of its differences.
    spent: i64,
    done: Value,
    state: Value,
}

/// Selects the number of the last checkpoint of a run, null if it has none. After a resume from an earlier one the later ones stay
/// unchanged, and numbers continue after them.
pub(super) const LAST: &str = "SELECT max(number) FROM checkpoints WHERE run = ?1";

/// Stores a checkpoint after the last one of its run; returns its number.
pub(super) async fn append<T: Tx>(
    tx: &T,
    run: &RunId,
    last: Option<i64>,
    checkpoint: &Checkpoint,
    now_ms: i64,
) -> Result<i64, StoreError> {
    let number = i64::try_from(checkpoint.number).unwrap_or(0).max(last.map_or(0, |last| last + 1));
    let (done, state) = (encode(&checkpoint.done)?, encode(&checkpoint.state)?);
    let size = done.len() + state.len();
    if size <= MAX_FULL_BYTES {
        insert(tx, run, number, (&done, &state), None, now_ms).await?;
        return Ok(number);
    }
    if let Some(last) = last
        && let Some(end) = end(tx, run, last).await?
    {
        let part = |before: &Value, after: &Value| match difference(before, after) {
            Some(difference) => encode(&difference),
            None => Ok("null".to_owned()),
        };
        let list = checkpoint.done.iter().cloned().map(Value::String).collect();
        let parts = (part(&end.done, &list)?, part(&end.state, &checkpoint.state)?);
        let spent = end.spent + length(parts.0.len() + parts.1.len());
        // Once the differences are larger than the full checkpoint, that is stored again.
        if spent <= length(size) && number - end.base < MAX_CHAIN_ROWS {
            insert(tx, run, number, (&parts.0, &parts.1), Some(end.base), now_ms).await?;
            cache_newest(tx, run, (number, end.base, spent), &done, &state).await?;
            return Ok(number);
        }
    }
    insert(tx, run, number, (&done, &state), None, now_ms).await?;
    cache_newest(tx, run, (number, number, 0), &done, &state).await?;
    Ok(number)
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

async fn insert<T: Tx>(
    tx: &T,
    run: &RunId,
    number: i64,
    (done, state): (&str, &str),
    base: Option<i64>,
    now_ms: i64,
) -> Result<(), StoreError> {
    tx.post(
        "record a checkpoint",
        "INSERT INTO checkpoints (run, number, done, state, at_ms, base, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        values![run, number, done, state, now_ms, base, digest(&[done, state])],
    )
    .await
}

async fn cache_newest<T: Tx>(
    tx: &T,
    run: &RunId,
    (number, base, spent): (i64, i64, i64),
    done: &str,
    state: &str,
) -> Result<(), StoreError> {
    tx.post(
        "remember the newest checkpoint",
        "INSERT INTO newest (run, number, base, spent, done, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (run) DO UPDATE SET number = excluded.number, base = excluded.base, spent = excluded.spent,
            done = excluded.done, state = excluded.state",
        values![run, number, base, spent, done, state],
    )
    .await
}

/// Deletes the cached checkpoint of a run that no worker executes now.
pub(super) async fn evict_newest<T: Tx>(tx: &T, run: &RunId) -> Result<(), StoreError> {
    tx.post("forget the newest checkpoint", "DELETE FROM newest WHERE run = ?1", values![run]).await
}

/// Returns the last checkpoint as the end of its chain: cached, or read if another process wrote it.
async fn end<T: Tx>(tx: &T, run: &RunId, last: i64) -> Result<Option<End>, StoreError> {
    let sql = "SELECT base, spent, done, state FROM newest WHERE run = ?1 AND number = ?2";
    let remembered = tx.find("look up the newest checkpoint", sql, values![run, last]).await?;
    if let Some(mut row) = remembered {
        let (base, spent) = (row.take(0)?, row.take(1)?);
        return Ok(Some(End { base, spent, done: row.json(2)?, state: row.json(3)? }));
    }
    let rows = rows(tx, run, (last, last)).await?;
    let spent = rows.iter().filter(|row| row.base.is_some()).map(|row| row.bytes).sum();
    let Some(base) = rows.last().map(|row| row.base.unwrap_or(row.number)) else { return Ok(None) };
    let mut chain = Chain::default();
    for row in rows {
        chain.apply(run, row)?;
    }
    let Chain { number, done, state } = chain;
    Ok((number == last).then_some(End { base, spent, done, state }))
}

struct StoredCheckpoint {
    number: i64,
    base: Option<i64>,
    done: Value,
    state: Value,
    at_ms: i64,
    bytes: i64,
}

/// Returns the rows that lead to the checkpoints of a range.
async fn rows<T: Tx>(
    tx: &T,
    run: &RunId,
    (first, last): (i64, i64),
) -> Result<Vec<StoredCheckpoint>, StoreError> {
    let rows = tx.query("read checkpoints", &chain_query(), values![run, first, last]).await?;
    rows.into_iter().map(StoredCheckpoint::read).collect()
}

const COLUMNS: &str =
    "SELECT number, done, state, at_ms, base, octet_length(done) + octet_length(state), digest
    FROM checkpoints WHERE run = ?1";

/// Returns the query for the rows that lead to the checkpoints from `?2` to `?3` of run `?1`.
pub(super) fn chain_query() -> String {
    format!(
        "{COLUMNS} AND number BETWEEN
            coalesce((SELECT base FROM checkpoints WHERE run = ?1 AND number = ?2), ?2) AND ?3
         ORDER BY number"
    )
}

/// Returns whether no row of [`chain_query`] was modified; an earlier version stored no digest.
pub(super) fn is_sound(rows: &[Row]) -> bool {
    let mut stored = rows.iter().filter(|row| row.text(6).is_some());
    stored.all(|row| integrity::is_sound(row.text(1), row.text(2), row.text(6)))
}

impl StoredCheckpoint {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            number: row.take(0)?,
            done: row.json(1)?,
            state: row.json(2)?,
            at_ms: row.take(3)?,
            base: row.take(4)?,
            bytes: row.take(5)?,
        })
    }
}

/// The state of a chain while it is read.
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
    fn apply(&mut self, run: &RunId, row: StoredCheckpoint) -> Result<(), StoreError> {
        let StoredCheckpoint { number, base, done, state, .. } = row;
        let damaged = || {
            failed(
                &format!("read checkpoint {number} of run {run}"),
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

pub(crate) async fn read_checkpoint<T: Tx>(
    tx: &T,
    run: &RunId,
    number: u64,
) -> Result<Checkpoint, StoreError> {
    let rows = tx.query("read checkpoints", &chain_query(), values![run, number, number]).await?;
    end_of(run, number, rows)
}

/// Returns a checkpoint of a run from the rows of [`chain_query`].
pub(super) fn end_of(run: &RunId, number: u64, rows: Vec<Row>) -> Result<Checkpoint, StoreError> {
    let mut chain = Chain::default();
    let mut at_ms = 0;
    for row in rows {
        let row = StoredCheckpoint::read(row)?;
        at_ms = row.at_ms;
        chain.apply(run, row)?;
    }
    // An empty chain has the number -1, which no checkpoint has.
    if u64::try_from(chain.number) != Ok(number) {
        return Err(StoreError::NoCheckpoint { run: run.clone(), checkpoint: number });
    }
    Ok(chain.checkpoint(at_ms))
}

/// Returns a page of checkpoints; see [`Store::checkpoints`](crate::Store::checkpoints).
pub(crate) async fn page<T: Tx>(
    tx: &T,
    run: &RunId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Checkpoint>, StoreError> {
    let before = before.and_then(|number| i64::try_from(number).ok()).unwrap_or(i64::MAX);
    let sql = "SELECT number, octet_length(done) + octet_length(state) FROM checkpoints
        WHERE run = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3";
    let (mut bytes, mut ends) = (0, None);
    for mut row in tx.query("list checkpoints", sql, values![run, before, limit]).await? {
        let number: i64 = row.take(0)?;
        // Stored sizes are lower bounds: most checkpoints are stored as differences.
        bytes += row.take::<i64>(1)?;
        let (_, last) = ends.unwrap_or((number, number));
        if ends.is_some() && bytes > length(PAGE_BYTES) {
            break;
        }
        ends = Some((number, last));
    }
    let Some((first, last)) = ends else { return Ok(Vec::new()) };
    let rows = rows(tx, run, (first, last)).await?;
    // Estimated from what is stored, so that the work is proportional to that.
    let mut sizes: Vec<usize> = Vec::with_capacity(rows.len());
    for row in &rows {
        let before = row.base.and(sizes.last().copied());
        let full = || value_bytes(&row.done) + value_bytes(&row.state);
        let added = |before| before + added_bytes(&row.done) + added_bytes(&row.state);
        sizes.push(before.map_or_else(full, added));
    }
    let mut left = PAGE_BYTES;
    let fitting = sizes.iter().rev().take_while(|size| {
        let fits = **size <= left;
        left = left.saturating_sub(**size);
        fits
    });
    let omitted = rows.len() - fitting.count().max(1);
    let mut chain = Chain::default();
    let mut checkpoints = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        let at_ms = row.at_ms;
        chain.apply(run, row)?;
        if index >= omitted && chain.number >= first {
            checkpoints.push(chain.checkpoint(at_ms));
        }
    }
    Ok(checkpoints)
}
