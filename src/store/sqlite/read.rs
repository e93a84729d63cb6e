//! What is read without writing: runs by page, steps, events.

use std::collections::BTreeMap;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::failed;
use super::filter;
use super::rows::{REPLAYS, RUN_COLUMNS, SEQ, as_of, column, listed, listed_columns, record, state};
use crate::{
    Decided, DecisionRecord, Due, Moment, NewEvent, RunEvent, RunFilter, RunId, RunPage, RunQuery, RunRecord,
    StepIntent, StepRecord, StoreError, WorkerId,
};
use skills_model::RunState;

/// Rows of a page when the filter names none.
const PAGE: usize = 100;

pub(super) fn steps(connection: &Connection, run: &RunId) -> Result<Vec<StepRecord>, StoreError> {
    connection
        .prepare_cached("SELECT json FROM steps WHERE run = ?1 AND superseded = 0 ORDER BY n")
        .and_then(|mut s| s.query_map([&run.0], |row| column(row, 0))?.collect())
        .map_err(|e| failed("reading steps".into(), &e))
}

pub(super) fn events(
    connection: &Connection,
    run: Option<&RunId>,
    after: u64,
    limit: usize,
) -> Result<Vec<RunEvent>, StoreError> {
    let sql = if run.is_some() {
        "SELECT run, number, global, at_ms, kind, step, data FROM events
         WHERE run = ?3 AND number > ?1 ORDER BY number LIMIT ?2"
    } else {
        "SELECT run, number, global, at_ms, kind, step, data FROM events
         WHERE global > ?1 AND ?3 IS NULL ORDER BY global LIMIT ?2"
    };
    connection
        .prepare_cached(sql)
        .and_then(|mut s| {
            s.query_map(
                params![after.cast_signed(), i64::try_from(limit).unwrap_or(i64::MAX), run.map(|r| &r.0)],
                |row| {
                    Ok(RunEvent {
                        run: RunId(row.get(0)?),
                        number: row.get::<_, i64>(1)?.unsigned_abs(),
                        global: row.get::<_, i64>(2)?.unsigned_abs(),
                        at_ms: row.get(3)?,
                        event: NewEvent {
                            kind: row.get_ref(4)?.as_str()?.into(),
                            step: row.get(5)?,
                            data: column(row, 6)?,
                        },
                    })
                },
            )?
            .collect()
        })
        .map_err(|e| failed("reading events".into(), &e))
}

pub(super) fn contract(
    connection: &Connection,
    digest: &str,
) -> Result<Option<serde_json::Value>, StoreError> {
    connection
        .prepare_cached("SELECT json FROM contracts WHERE digest = ?1")
        .and_then(|mut s| s.query_row([digest], |row| column(row, 0)).optional())
        .map_err(|e| failed("reading a contract".into(), &e))
}

pub(super) fn intents(connection: &Connection, run: &RunId) -> Result<Vec<StepIntent>, StoreError> {
    connection
        .prepare_cached("SELECT json FROM intents WHERE run = ?1 ORDER BY step")
        .and_then(|mut s| s.query_map([&run.0], |row| column(row, 0))?.collect())
        .map_err(|e| failed("reading intents".into(), &e))
}

pub(super) fn decisions(connection: &Connection, run: &RunId) -> Result<Vec<Decided>, StoreError> {
    connection
        .prepare_cached(
            "SELECT decision, approver, notes, at_ms FROM decisions WHERE run = ?1 ORDER BY rowid",
        )
        .and_then(|mut s| {
            s.query_map([&run.0], |row| {
                Ok(Decided {
                    decision: column(row, 0)?,
                    by: DecisionRecord { approver: row.get(1)?, notes: row.get(2)? },
                    at_ms: row.get(3)?,
                })
            })?
            .collect()
        })
        .map_err(|e| failed("reading decisions".into(), &e))
}

pub(super) fn descendants(connection: &Connection, run: &RunId) -> Result<Vec<RunId>, StoreError> {
    connection
        .prepare_cached("SELECT id FROM runs WHERE source_run = ?1 ORDER BY seq")
        .and_then(|mut s| s.query_map([&run.0], |row| Ok(RunId(row.get(0)?)))?.collect())
        .map_err(|e| failed("reading descendants".into(), &e))
}

/// Waiting runs whose time is over.
pub(super) fn expired(connection: &Connection, now_ms: i64) -> Result<Vec<RunRecord>, StoreError> {
    connection
        .prepare_cached(&format!(
            "SELECT {RUN_COLUMNS} FROM runs r WHERE r.expires_ms <= ?1 ORDER BY r.expires_ms"
        ))
        .and_then(|mut s| s.query_map([now_ms], record)?.collect())
        .map_err(|e| failed("looking for expired runs".into(), &e))
}

/// Whether there is something to do.
pub(super) fn due(connection: &Connection, now: &Moment, places: Option<&str>) -> Result<Due, StoreError> {
    use super::work::{HERE, LAPSED, lapsed_params};
    connection
        .prepare_cached(&format!(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE state = 'pending' AND held = 0 AND {HERE})
                 OR EXISTS (SELECT 1 FROM runs INDEXED BY runs_leased WHERE {LAPSED} AND {HERE}),
                EXISTS (SELECT 1 FROM runs WHERE expires_ms <= :now)",
        ))
        .and_then(|mut s| {
            s.query_row(lapsed_params!(now, {":places": places}), |row| {
                Ok(Due { claimable: row.get(0)?, expired: row.get(1)? })
            })
        })
        .map_err(|e| failed("looking for something to do".into(), &e))
}

/// Workers that have a run now.
pub(super) fn leaseholders(connection: &Connection) -> Result<Vec<WorkerId>, StoreError> {
    connection
        .prepare_cached(
            "SELECT DISTINCT worker FROM runs WHERE lease_until_ms IS NOT NULL AND worker IS NOT NULL ORDER BY 1",
        )
        .and_then(|mut s| s.query_map([], |row| Ok(WorkerId(row.get(0)?)))?.collect())
        .map_err(|e| failed("looking for workers".into(), &e))
}

/// Workers that were seen at most this long ago: by the boot clock where it is the same, else by the wall clock.
pub(super) fn workers(
    connection: &Connection,
    now: &Moment,
    max_age_ms: u64,
) -> Result<Vec<WorkerId>, StoreError> {
    let since_ms = now.wall_ms.saturating_sub_unsigned(max_age_ms);
    let since_boot_ms = now.boot.as_ref().map(|boot| boot.ms.saturating_sub_unsigned(max_age_ms));
    let boot = now.boot.as_ref().map(|boot| boot.boot.as_ref());
    connection
        .prepare_cached(
            "SELECT worker FROM workers
             WHERE CASE WHEN boot = ?2 THEN seen_boot_ms >= ?3 ELSE seen_ms >= ?1 END ORDER BY worker",
        )
        .and_then(|mut s| {
            s.query_map(params![since_ms, boot, since_boot_ms], |row| Ok(WorkerId(row.get(0)?)))?.collect()
        })
        .map_err(|e| failed("looking for workers".into(), &e))
}

/// Number of the newest event of all runs.
pub(super) fn newest(connection: &Connection) -> Result<u64, StoreError> {
    connection
        // What was counted, not what is left: events that were purged have been.
        .prepare_cached("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)")
        .and_then(|mut s| s.query_row([], |row| row.get::<_, i64>(0)))
        .map(i64::unsigned_abs)
        .map_err(|e| failed("looking for new events".into(), &e))
}

/// Where a page begins: those that wait for a person come first, oldest first; then all others, newest first.
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

/// Runs whose wait is over at a moment, recorded or not, for SQL. Most of the time there are none.
struct DueWaits {
    /// Selects their `seq`.
    of: String,
    /// Runs of a recorded state that have this one by now.
    moved: Vec<(RunState, RunState, u64)>,
}

impl DueWaits {
    fn at(connection: &Connection, now_ms: i64) -> Result<Option<Self>, StoreError> {
        let sql = format!(
            "SELECT r.state, {ENDED_STATE}, count(*) FROM runs r WHERE r.expires_ms <= ?1 GROUP BY 1, 2"
        );
        let moved = connection
            .prepare_cached(&sql)
            .and_then(|mut s| {
                s.query_map([now_ms], |row| Ok((state(row, 0)?, state(row, 1)?, row.get::<_, i64>(2)?)))?
                    .map(|row| row.map(|(from, to, count)| (from, to, count.unsigned_abs())))
                    .collect::<rusqlite::Result<Vec<_>>>()
            })
            .map_err(|e| failed("looking for expired runs".into(), &e))?;
        let of = format!("(SELECT seq FROM runs WHERE expires_ms <= {now_ms})");
        Ok((!moved.is_empty()).then_some(Self { of, moved }))
    }
}

/// What the state machine makes of a wait whose time is over.
const ENDED_STATE: &str = "CASE r.options ->> '$.on_expiry' WHEN 'fail' THEN 'failed' ELSE 'canceled' END";

/// The state of a run at the moment `?1`.
pub(super) fn state_as_of() -> String {
    format!("CASE WHEN r.expires_ms <= ?1 THEN {ENDED_STATE} ELSE r.state END")
}

pub(super) fn runs(connection: &Connection, filter: &RunFilter, now_ms: i64) -> Result<RunPage, StoreError> {
    let doing = || "listing runs".to_owned();
    let limit = if filter.limit == 0 { PAGE } else { filter.limit };
    let cursor = match filter.cursor.as_deref() {
        None => Cursor::Waiting { since: i64::MIN, seq: i64::MIN },
        Some(text) => Cursor::parse(text)
            .ok_or_else(|| StoreError::Unasked(format!("invalid cursor {text:?}; omit it to start over")))?,
    };
    let due = DueWaits::at(connection, now_ms)?;
    let (mut waiting, mut others) =
        ("r.state = 'waiting_for_human'".to_owned(), "r.state <> 'waiting_for_human'".to_owned());
    let mut present = "r.state".to_owned();
    if let Some(DueWaits { of, .. }) = &due {
        waiting += &format!(" AND r.seq NOT IN {of}");
        others = format!("({others} OR r.seq IN {of})");
        present = format!("CASE WHEN r.seq IN {of} THEN {ENDED_STATE} ELSE r.state END");
    }
    let text = filter.r#where.as_deref().unwrap_or_default();
    let query = RunQuery::parse(text).map_err(|error| StoreError::Unasked(error.to_string()))?;
    let select = Select { filter, query: &query, state: &present, now_ms };
    let mut rows = Vec::new();
    if let Cursor::Waiting { since, seq } = cursor {
        let here = format!("{waiting} AND (r.since_ms, r.seq) > (?, ?)");
        let place = (here.as_str(), "runs_asking", "r.since_ms, r.seq");
        rows = page(connection, &select, place, vec![since.into(), seq.into()], limit + 1)?;
    }
    if rows.len() <= limit {
        let seq = if let Cursor::Others { seq } = cursor { seq } else { i64::MAX };
        let here = format!("{others} AND r.seq < ?");
        let place = (here.as_str(), "runs_listed", "r.seq DESC");
        rows.extend(page(connection, &select, place, vec![seq.into()], limit + 1 - rows.len())?);
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
    let mut counts: BTreeMap<RunState, u64> = connection
        .prepare_cached("SELECT state, count(*) FROM runs GROUP BY state")
        .and_then(|mut s| {
            s.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
                .collect::<rusqlite::Result<Vec<_>>>()
        })
        .map_err(|e| failed(doing(), &e))?
        .into_iter()
        .filter_map(|(state, count)| Some((state.parse().ok()?, count.unsigned_abs())))
        .collect();
    for (from, to, runs) in due.iter().flat_map(|due| &due.moved) {
        let recorded = counts.entry(*from).or_default();
        *recorded = recorded.saturating_sub(*runs);
        *counts.entry(*to).or_default() += runs;
    }
    counts.retain(|_, runs| *runs > 0);
    Ok(RunPage { runs: rows.into_iter().map(|(run, _)| run).collect(), next, counts })
}

/// What a page is read by.
struct Select<'a> {
    filter: &'a RunFilter,
    query: &'a RunQuery,
    /// The state of a run, in SQL.
    state: &'a str,
    now_ms: i64,
}

/// One part of a page. What is filtered by lies in an index, so that no run is read whole but those of the page.
fn page(
    connection: &Connection,
    &Select { filter, query, state, now_ms }: &Select<'_>,
    (place, index, order): (&str, &str, &str),
    mut values: Vec<Sql>,
    limit: usize,
) -> Result<Vec<(RunRecord, i64)>, StoreError> {
    let mut chosen = format!("SELECT r.seq FROM runs r INDEXED BY {index} WHERE {place}");
    if !filter.states.is_empty() {
        chosen += &format!(" AND {state} IN (");
        chosen.push_str(&vec!["?"; filter.states.len()].join(", "));
        chosen.push(')');
        values.extend(filter.states.iter().map(|s| Sql::from(s.to_string())));
    }
    if let Some(skill) = &filter.skill_id {
        chosen += " AND r.skill_id = ?";
        values.push(skill.clone().into());
    }
    if let Some(text) = &filter.text {
        chosen += " AND (r.id LIKE ? ESCAPE '\\' OR r.skill_id LIKE ? ESCAPE '\\' OR r.step LIKE ? ESCAPE '\\' \
                   OR r.seq IN (SELECT seq FROM runs WHERE trace_id BETWEEN ? AND ?))";
        values.extend(std::iter::repeat_n(Sql::from(filter::containing(text)), 3));
        let end =
            if text.len() < RunFilter::TRACE_PREFIX { text.clone() } else { format!("{text}{}", char::MAX) };
        values.extend([Sql::from(text.clone()), Sql::from(end)]);
    }
    if let Some(trace) = &filter.trace_id {
        chosen += " AND r.seq IN (SELECT seq FROM runs WHERE trace_id = ?)";
        values.push(trace.clone().into());
    }
    let (conditions, parameters) = filter::conditions(query, state, now_ms);
    chosen += &conditions;
    values.extend(parameters);
    let sql = format!(
        "SELECT {} FROM runs r WHERE r.seq IN ({chosen} ORDER BY {order} LIMIT {limit}) ORDER BY {order}",
        listed_columns()
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut s| {
            s.query_map(params_from_iter(values), |row| {
                Ok((as_of(listed(row)?, row.get(REPLAYS)?, now_ms), row.get(SEQ)?))
            })?
            .collect()
        })
        .map_err(|e| failed("listing runs".into(), &e))
}
