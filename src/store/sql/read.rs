//! Read-only queries: pages of runs, steps, events.

use std::collections::BTreeMap;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::claims::{LEASE_EXPIRED, here};
use super::filter::Conditions;
use super::rows::{RUN_COLUMNS, listed, listed_columns, record, state};
use super::{Row, Tx, Value, dialect, values};
use crate::query::MAX_TEXT_LEN;
use crate::{
    ClockReading, DecisionRecord, Due, EventKind, NewEvent, RecordedDecision, RunEvent, RunFilter, RunId,
    RunPage, RunQuery, RunRecord, StepIntent, StepRecord, StepStatus, StoreError, Unavailability, WorkerId,
};
use skills_model::{Decision, RunState};

/// Size in bytes of data from which a page of events or steps ends: payloads, logs and results may have megabytes each.
const PAGE_BYTES: usize = 256 << 10;

/// Maximum number of steps that are read at once.
const STEP_ROWS: usize = 2000;

/// Number of rows in a page if the filter states none.
const PAGE: usize = 100;

async fn of_run<T: Tx, R: DeserializeOwned>(
    tx: &T,
    action: &'static str,
    sql: &str,
    run: &RunId,
) -> Result<Vec<R>, StoreError> {
    tx.query(action, sql, values![run]).await?.iter().map(|row| row.json(0)).collect()
}

/// Returns the steps of a run; see [`Store::steps`](crate::Store::steps).
pub(crate) async fn steps<T: Tx>(
    tx: &T,
    run: &RunId,
    max_content: u64,
) -> Result<Vec<StepRecord>, StoreError> {
    let sql = page_query(
        "json, octet_length(json), n",
        ("steps", "n"),
        "json",
        "run = ?1 AND superseded = 0 AND n > ?2",
    );
    let (mut steps, mut left, mut after) = (Vec::new(), max_content, -1_i64);
    loop {
        let rows = tx.query("read steps", &sql, values![run, after, STEP_ROWS]).await?;
        if rows.is_empty() {
            return Ok(steps);
        }
        for mut row in rows {
            let mut step: StepRecord = row.json(0)?;
            let size: u64 = row.take(1)?;
            after = row.take(2)?;
            if size <= left {
                left -= size;
            } else if size > StepRecord::SHORT_BYTES && step.status != StepStatus::Failed {
                (step.inputs, step.result) = (Json::Null, Json::Null);
                step.omitted_bytes = Some(size);
            }
            steps.push(step);
        }
    }
}

pub(crate) async fn step<T: Tx>(tx: &T, run: &RunId, step: &str) -> Result<Option<StepRecord>, StoreError> {
    let sql = "SELECT json FROM steps WHERE run = ?1 AND step = ?2 AND superseded = 0";
    tx.find("read a step", sql, values![run, step]).await?.map(|row| row.json(0)).transpose()
}

/// Returns events of one run, or of all runs up to the global number that readers may see.
pub(crate) async fn events<T: Tx>(
    tx: &T,
    run: Option<&RunId>,
    after: u64,
    limit: usize,
) -> Result<Vec<RunEvent>, StoreError> {
    let rows = if let Some(run) = run {
        let sql = event_page("number", "run = ?1 AND number > ?2");
        tx.query("read events", &sql, values![run, after, limit]).await?
    } else {
        let last = if T::POSTGRES { newest(tx).await? } else { i64::MAX.unsigned_abs() };
        let sql = event_page("global", "global > ?1 AND global <= ?2");
        tx.query("read events", &sql, values![after, last, limit]).await?
    };
    rows.into_iter().map(event).collect()
}

/// Returns the query for at most `?3` rows of a table that meet a condition, in the order of a column. The page ends with
/// the row that reaches [`PAGE_BYTES`] of data; the data of those after it is not read.
fn page_query(columns: &str, (table, order): (&str, &str), data: &str, condition: &str) -> String {
    let sizes = format!(
        "SELECT {order} AS place, octet_length({data}) AS bytes FROM {table} WHERE {condition} \
         ORDER BY {order} LIMIT ?3"
    );
    let sums =
        format!("SELECT place, SUM(bytes) OVER (ORDER BY place) - bytes AS before FROM ({sizes}) AS sizes");
    let last = format!("SELECT MAX(place) FROM ({sums}) AS sums WHERE before < {PAGE_BYTES}");
    format!("SELECT {columns} FROM {table} WHERE {condition} AND {order} <= ({last}) ORDER BY {order}")
}

fn event_page(order: &str, condition: &str) -> String {
    page_query("run, number, global, at_ms, kind, step, data", ("events", order), "data", condition)
}

fn event(mut row: Row) -> Result<RunEvent, StoreError> {
    Ok(RunEvent {
        run: row.take(0)?,
        number: row.take(1)?,
        global: row.take(2)?,
        at_ms: row.take(3)?,
        event: NewEvent {
            kind: row.text(4).unwrap_or_default().into(),
            step: row.take(5)?,
            // One event must not hide those after it.
            data: row.json(6).unwrap_or_else(|error| serde_json::json!({"unreadable": error.to_string()})),
        },
    })
}

pub(super) const CONTRACT: &str = "SELECT json FROM contracts WHERE digest = ?1";
pub(super) const INTENTS: &str = "SELECT json FROM intents WHERE run = ?1 ORDER BY step";

pub(crate) async fn contract<T: Tx>(tx: &T, digest: &str) -> Result<Option<Json>, StoreError> {
    let row = tx.find("read a contract", CONTRACT, values![digest]).await?;
    row.map(|row| row.json(0)).transpose()
}

pub(crate) async fn intents<T: Tx>(tx: &T, run: &RunId) -> Result<Vec<StepIntent>, StoreError> {
    of_run(tx, "read intents", INTENTS, run).await
}

pub(crate) async fn decisions<T: Tx>(tx: &T, run: &RunId) -> Result<Vec<RecordedDecision>, StoreError> {
    let sql = "SELECT decision, approver, notes, at_ms FROM decisions WHERE run = ?1 ORDER BY rowid";
    let rows = tx.query("read decisions", sql, values![run]).await?;
    let decided = |mut row: Row| {
        Ok(RecordedDecision {
            decision: row.json(0)?,
            by: DecisionRecord { approver: row.take(1)?, notes: row.take(2)? },
            at_ms: row.take(3)?,
        })
    };
    rows.into_iter().map(decided).collect()
}

/// Returns whether an approval has opened the gate of this decision.
pub(crate) async fn opened<T: Tx>(tx: &T, run: &RunId, decision: &Decision) -> Result<bool, StoreError> {
    let sql = "SELECT data FROM events WHERE run = ?1 AND kind = ?2 AND step = ?3";
    let kind = EventKind::GateApproved.to_string();
    let rows = tx.query("read approvals", sql, values![run, kind, decision.step.as_str()]).await?;
    for row in rows {
        let data: Json = row.json(0)?;
        if data["inputs_digest"] == decision.inputs_digest.as_str() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) async fn descendants<T: Tx>(tx: &T, run: &RunId) -> Result<Vec<RunId>, StoreError> {
    let sql = "SELECT id FROM runs WHERE source_run = ?1 ORDER BY seq";
    let rows = tx.query("read descendants", sql, values![run]).await?;
    rows.into_iter().map(|mut row| row.take(0)).collect()
}

/// Returns the waiting runs that have expired, without those that cannot be read.
pub(crate) async fn expired<T: Tx>(tx: &T) -> Result<Vec<RunRecord>, StoreError> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs r WHERE r.expires_ms <= ?1 ORDER BY r.expires_ms");
    let now = tx.now().await?;
    let rows = tx.query("look for expired runs", &sql, values![now.wall_ms]).await?;
    Ok(rows.into_iter().filter_map(|row| Some(record(row).ok()?.0)).collect())
}

/// Returns runs that wait for approval since a moment or longer and were not escalated, with their places.
pub(crate) async fn unescalated<T: Tx>(
    tx: &T,
    since_ms: i64,
    after: Option<(i64, i64)>,
    limit: usize,
) -> Result<Vec<(RunRecord, (i64, i64))>, StoreError> {
    let now_ms = tx.now().await?.wall_ms;
    let (after_ms, after_seq) = after.unwrap_or((i64::MIN, i64::MIN));
    let escalated = dialect::field(T::POSTGRES, "r.options", "escalated_ms");
    let sql = format!(
        "SELECT {} FROM runs r {} WHERE r.state = 'waiting_for_human' AND r.since_ms <= ?1
            AND (r.since_ms, r.seq) > (?2, ?3) AND coalesce(CAST({escalated} AS BIGINT), -1) <> r.since_ms
            AND (r.expires_ms IS NULL OR r.expires_ms > ?4) ORDER BY r.since_ms, r.seq LIMIT {limit}",
        listed_columns(T::POSTGRES),
        dialect::indexed_by(T::POSTGRES, "runs_asking"),
    );
    let values = values![since_ms, after_ms, after_seq, now_ms];
    let rows = tx.query_once("look for late approvals", &sql, values).await?;
    let placed = |row| {
        let (run, seq) = listed(row, now_ms)?;
        let place = (run.since_ms, seq);
        Ok((run, place))
    };
    rows.into_iter().map(placed).collect()
}

/// Returns the events about waits that continue whose webhook message was not sent or not delivered.
pub(crate) async fn unnotified<T: Tx>(
    tx: &T,
    since_ms: i64,
    after: u64,
    limit: usize,
) -> Result<Vec<RunEvent>, StoreError> {
    let field = |name| dialect::field(T::POSTGRES, "r.options", name);
    let (notified, notifying) = (field("notified"), field("notifying"));
    let sql = format!(
        "SELECT e.run, e.number, e.global, e.at_ms, e.kind, e.step, e.data FROM runs r JOIN events e ON e.run = r.id
         WHERE r.state IN ('waiting_for_human', 'waiting_for_signal') AND r.since_ms >= ?1 AND e.global > ?2
            AND e.kind IN ('gate.waiting', 'run.escalated') AND e.at_ms >= r.since_ms
            AND (coalesce(CAST({notified} AS BIGINT), 0) < e.number OR {notifying} IS NOT NULL)
         ORDER BY e.global LIMIT {limit}"
    );
    let rows = tx.query_once("look for notifications", &sql, values![since_ms, after]).await?;
    rows.into_iter().map(event).collect()
}

/// Returns the parameters of [`LEASE_EXPIRED`], which are the first three.
pub(super) fn lease_expired_values(now: &ClockReading) -> Vec<Value<'static>> {
    let boot = now.boot.as_ref().map(|boot| boot.boot.to_string());
    vec![now.wall_ms.into(), boot.into(), now.boot.as_ref().map(|boot| boot.ms).into()]
}

/// Returns whether there is pending work.
pub(crate) async fn due<T: Tx>(tx: &T, places: Option<&str>) -> Result<Due, StoreError> {
    let here = here(T::POSTGRES, "?4");
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM runs WHERE state = 'pending' AND held = 0 AND {here})
             OR EXISTS (SELECT 1 FROM runs {} WHERE {LEASE_EXPIRED} AND {here}),
            EXISTS (SELECT 1 FROM runs WHERE expires_ms <= ?1)",
        dialect::indexed_by(T::POSTGRES, "runs_leased")
    );
    let mut values = lease_expired_values(&tx.now().await?);
    values.push(places.into());
    let row = tx.find("poll for work", &sql, &values).await?;
    let mut row = row.unwrap_or(Row(Vec::new()));
    Ok(Due { claimable: row.take(0)?, expired: row.take(1)? })
}

/// Returns the expression for the root that a run was launched from.
pub(super) fn place(postgres: bool) -> String {
    if postgres { "place".to_owned() } else { dialect::field(false, "options", "place") }
}

async fn workers_by<T: Tx>(tx: &T, sql: &str, values: &[Value<'_>]) -> Result<Vec<WorkerId>, StoreError> {
    let rows = tx.query("look for workers", sql, values).await?;
    rows.into_iter().map(|mut row| Ok(WorkerId(row.take(0)?))).collect()
}

/// Returns the workers that have a lease now.
pub(crate) async fn leaseholders<T: Tx>(tx: &T) -> Result<Vec<WorkerId>, StoreError> {
    let sql = "SELECT DISTINCT worker FROM runs
         WHERE lease_until_ms IS NOT NULL AND lease_until_ms <> 0 AND worker IS NOT NULL ORDER BY 1";
    workers_by(tx, sql, &[]).await
}

/// Returns the workers with a heartbeat of at most this age: by the boot clock if the boot is the same, else by the
/// wall clock.
pub(crate) async fn workers<T: Tx>(tx: &T, max_age_ms: u64) -> Result<Vec<WorkerId>, StoreError> {
    let now = tx.now().await?;
    let since_ms = now.wall_ms.saturating_sub_unsigned(max_age_ms);
    let since_boot_ms = now.boot.as_ref().map(|boot| boot.ms.saturating_sub_unsigned(max_age_ms));
    let boot = now.boot.as_ref().map(|boot| boot.boot.as_ref());
    let sql = "SELECT worker FROM workers
        WHERE CASE WHEN boot = ?2 THEN seen_boot_ms >= ?3 ELSE seen_ms >= ?1 END ORDER BY worker";
    workers_by(tx, sql, values![since_ms, boot, since_boot_ms]).await
}

/// Returns the number of the newest event that readers may see, counting events that have been purged since.
///
/// In `PostgreSQL` transactions may commit in a different order than they take their numbers. Each locks the newest
/// existing number before it takes its own, so what an open transaction will write is beyond the lowest locked number.
/// The newest number is read before the locks: a transaction that locks afterwards takes later numbers.
pub(crate) async fn newest<T: Tx>(tx: &T) -> Result<u64, StoreError> {
    let action = "look for new events";
    if !T::POSTGRES {
        let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)";
        let row = tx.find(action, sql, &[]).await?;
        return row.map_or(Ok(0), |mut row| row.take(0));
    }
    let last = tx.find(action, "SELECT last_value FROM events_global", &[]).await?;
    let last: i64 = last.map_or(Ok(0), |mut row| row.take(0))?;
    let locks = "SELECT CAST(objid AS bigint) FROM pg_locks, identity
        WHERE locktype = 'advisory' AND objsubid = 2 AND CAST(classid AS bigint) = CAST(events_lock AS bigint)
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let mut newest = last;
    for mut row in tx.query(action, locks, &[]).await? {
        let low: i64 = row.take(0)?;
        // The lock has the lower 32 bits; the locked number is at most slightly above the newest one.
        let behind = last.wrapping_sub(low).rem_euclid(1 << 32);
        if behind < 1 << 31 {
            newest = newest.min(last - behind);
        }
    }
    Ok(newest.unsigned_abs())
}

/// Returns the number of the newest event of a run; 0 if there is none.
pub(crate) async fn newest_of_run<T: Tx>(tx: &T, run: &RunId) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(max(number), 0) FROM events WHERE run = ?1";
    let row = tx.find("look for new events", sql, values![run]).await?;
    row.map_or(Ok(0), |mut row| row.take(0))
}

/// Where a page begins: runs that wait for approval come first, oldest first; then all others, newest first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cursor {
    Waiting { since: i64, seq: i64 },
    Others { seq: i64 },
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let cursor = match (parts.next()?, parts.next()?.parse().ok()?, parts.next()) {
            ("w", since, Some(seq)) => Self::Waiting { since, seq: seq.parse().ok()? },
            ("o", seq, None) => Self::Others { seq },
            _ => return None,
        };
        Some(cursor)
    }
}

/// Runs whose wait has expired at a moment, recorded or not, for SQL. Usually there are none.
struct DueWaits {
    /// SQL that selects their `seq`.
    of: String,
    /// Number of runs by recorded and current state.
    moved: Vec<(RunState, RunState, u64)>,
}

impl DueWaits {
    async fn at<T: Tx>(tx: &T, now_ms: i64) -> Result<Option<Self>, StoreError> {
        let sql = format!(
            "SELECT r.state, {}, count(*) FROM runs r WHERE r.expires_ms <= ?1 GROUP BY 1, 2",
            ended_state(T::POSTGRES)
        );
        let rows = tx.query("look for expired runs", &sql, values![now_ms]).await?;
        // A run whose state is unknown is listed by its row.
        let known = rows.into_iter().filter_map(|row| Some((state(&row, 0).ok()?, row)));
        let moved = known.map(|(from, mut row)| Ok((from, state(&row, 1)?, row.take(2)?)));
        let moved = moved.collect::<Result<Vec<_>, StoreError>>()?;
        let of = "(SELECT seq FROM runs WHERE expires_ms <= ?1)".to_owned();
        Ok((!moved.is_empty()).then_some(Self { of, moved }))
    }
}

/// Returns the expression for the state that the state machine assigns after an expired wait.
pub(super) fn ended_state(postgres: bool) -> String {
    let on_expiry = dialect::field(postgres, "r.options", "on_expiry");
    format!("CASE {on_expiry} WHEN 'fail' THEN 'failed' ELSE 'canceled' END")
}

/// Rejects a text that not every store can search for.
fn check_text(text: &str) -> Result<(), StoreError> {
    if text.contains('\0') {
        return Err(StoreError::InvalidRequest("`text`: a NUL character is not allowed".to_owned()));
    }
    if text.chars().count() > MAX_TEXT_LEN {
        return Err(StoreError::InvalidRequest(format!("`text` has at most {MAX_TEXT_LEN} characters")));
    }
    Ok(())
}

/// Limits concurrent searches.
#[derive(Debug)]
pub(crate) struct Searches([Arc<Semaphore>; 2]);

impl Default for Searches {
    fn default() -> Self {
        Self(RunFilter::MAX_SEARCHES.map(|permits| Arc::new(Semaphore::new(permits))))
    }
}

impl Searches {
    /// Waits for a permit: searches in long texts, which take longest, do not delay others.
    pub async fn permit(&self, filter: &RunFilter) -> Result<OwnedSemaphorePermit, StoreError> {
        let [long, other] = &self.0;
        let permits = Arc::clone(if filter.searches_long_texts() { long } else { other });
        let permit = tokio::time::timeout(RunFilter::MAX_SEARCH_WAIT, permits.acquire_owned()).await;
        // The semaphores are never closed.
        permit.ok().and_then(Result::ok).ok_or_else(|| StoreError::Unavailable {
            cause: Unavailability::Busy,
            action: "search runs".to_owned(),
            reason: "too many searches are running; try again later".to_owned(),
        })
    }
}

/// The error for a search that took longer than [`RunFilter::TIMEOUT`].
pub(crate) fn too_slow() -> StoreError {
    let seconds = RunFilter::TIMEOUT.as_secs();
    StoreError::InvalidRequest(format!(
        "the filter took longer than {seconds} s; narrow it, for example with `state:`, `skill:` or `age:`"
    ))
}

pub(crate) async fn runs<T: Tx>(tx: &T, filter: &RunFilter) -> Result<RunPage, StoreError> {
    let now_ms = tx.now().await?.wall_ms;
    let limit = if filter.limit == 0 { PAGE } else { filter.limit };
    let cursor = match filter.cursor.as_deref() {
        None => Cursor::Waiting { since: i64::MIN, seq: i64::MIN },
        Some(text) => Cursor::parse(text).ok_or_else(|| {
            StoreError::InvalidRequest(format!(
                "invalid cursor `{text}`; omit it to start from the first page"
            ))
        })?,
    };
    let due = DueWaits::at(tx, now_ms).await?;
    let (mut waiting, mut others) =
        ("r.state = 'waiting_for_human'".to_owned(), "r.state <> 'waiting_for_human'".to_owned());
    let mut present = "r.state".to_owned();
    if let Some(DueWaits { of, .. }) = &due {
        waiting += &format!(" AND r.seq NOT IN {of}");
        others = format!("({others} OR r.seq IN {of})");
        present = format!("CASE WHEN r.seq IN {of} THEN {} ELSE r.state END", ended_state(T::POSTGRES));
    }
    if let Some(text) = &filter.text {
        check_text(text)?;
    }
    let text = filter.r#where.as_deref().unwrap_or_default();
    let query = RunQuery::parse(text).map_err(|error| StoreError::InvalidRequest(error.to_string()))?;
    let select = Select { filter, query: &query, state: &present, now_ms };
    let mut rows = Vec::new();
    if let Cursor::Waiting { since, seq } = cursor {
        // The first parameter is the current time, whether or not a condition needs it.
        let here = format!("{waiting} AND (r.since_ms, r.seq) > (?2, ?3) AND CAST(?1 AS BIGINT) IS NOT NULL");
        let place = (here.as_str(), "runs_asking", "r.since_ms, r.seq");
        rows = page(tx, &select, place, vec![now_ms.into(), since.into(), seq.into()], limit + 1).await?;
    }
    if rows.len() <= limit {
        let seq = if let Cursor::Others { seq } = cursor { seq } else { i64::MAX };
        let here = format!("{others} AND r.seq < ?2 AND CAST(?1 AS BIGINT) IS NOT NULL");
        let place = (here.as_str(), "runs_listed", "r.seq DESC");
        let rest = limit + 1 - rows.len();
        rows.extend(page(tx, &select, place, vec![now_ms.into(), seq.into()], rest).await?);
    }
    let next = (rows.len() > limit).then(|| {
        let (run, seq) = &rows[limit - 1];
        if run.state == RunState::WaitingForHuman {
            format!("w:{}:{seq}", run.since_ms)
        } else {
            format!("o:{seq}")
        }
    });
    rows.truncate(limit);
    let mut counts: BTreeMap<RunState, u64> = BTreeMap::new();
    let sql = "SELECT state, count(*) FROM runs GROUP BY state";
    for mut row in tx.query("count runs", sql, &[]).await? {
        // A state of a later version cannot be counted.
        if let Ok(state) = state(&row, 0) {
            counts.insert(state, row.take(1)?);
        }
    }
    for (from, to, runs) in due.iter().flat_map(|due| &due.moved) {
        let recorded = counts.entry(*from).or_default();
        *recorded = recorded.saturating_sub(*runs);
        *counts.entry(*to).or_default() += runs;
    }
    counts.retain(|_, runs| *runs > 0);
    Ok(RunPage { runs: rows.into_iter().map(|(run, _)| run).collect(), next, counts })
}

/// The parameters of a page query.
struct Select<'a> {
    filter: &'a RunFilter,
    query: &'a RunQuery,
    /// SQL expression for the state of a run.
    state: &'a str,
    now_ms: i64,
}

/// Reads one part of a page. In `SQLite` an index covers the filters, so that only the runs of the page are read in
/// full.
async fn page<T: Tx>(
    tx: &T,
    &Select { filter, query, state, now_ms }: &Select<'_>,
    (place, index, order): (&str, &str, &str),
    values: Vec<Value<'static>>,
    limit: usize,
) -> Result<Vec<(RunRecord, i64)>, StoreError> {
    let mut conditions = Conditions { postgres: T::POSTGRES, state, now_ms, sql: String::new(), values };
    conditions.add_fields(filter);
    conditions.add_terms(query);
    let sql = format!(
        "SELECT {} FROM runs r WHERE r.seq IN
            (SELECT r.seq FROM runs r {} WHERE {place}{} ORDER BY {order} LIMIT {limit}) ORDER BY {order}",
        listed_columns(T::POSTGRES),
        dialect::indexed_by(T::POSTGRES, index),
        conditions.sql
    );
    let rows = tx.query_once("list runs", &sql, &conditions.values).await?;
    rows.into_iter().map(|row| listed(row, now_ms)).collect()
}
