//! Counts in `SQLite`: tallies, allowances of the rate limiter, runs by skill.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::read::state_as_of;
use super::rows::execute;
use super::{Sqlite, failed};
use crate::{Allowance, Counts, SkillRuns, StoreError, Tallies, Tally};

#[async_trait]
impl Counts for Sqlite {
    async fn add_tallies(&self, tallies: Vec<Tally>) -> Result<(), StoreError> {
        self.write(move |connection, now| {
            begin(connection, now)?;
            for tally in &tallies {
                add(connection, tally)?;
            }
            Ok(())
        })
        .await
    }

    async fn tallies(&self) -> Result<Tallies, StoreError> {
        self.read(tallies).await
    }

    async fn reset_tallies(&self) -> Result<Tallies, StoreError> {
        self.write(|connection, now| {
            let doing = "resetting the counts";
            execute(connection, doing, "DELETE FROM tallies", [])?;
            execute(
                connection,
                doing,
                "INSERT OR REPLACE INTO tally_times (only_one, since_ms, reset_ms) VALUES (1, ?1, ?1)",
                [now],
            )?;
            tallies(connection)
        })
        .await
    }

    async fn allowance(
        &self,
        principal: &str,
        began_ms: i64,
        wanted: u64,
        limit: u64,
    ) -> Result<Allowance, StoreError> {
        let principal = principal.to_owned();
        self.write(move |connection, _| allowance(connection, &principal, began_ms, wanted, limit)).await
    }

    async fn runs_by_skill(&self) -> Result<Vec<SkillRuns>, StoreError> {
        let now = self.clocks.now().wall_ms;
        self.read_apart(move |connection| runs_by_skill(connection, now)).await
    }
}

fn begin(connection: &Connection, now_ms: i64) -> Result<(), StoreError> {
    execute(
        connection,
        "initializing the counts",
        "INSERT OR IGNORE INTO tally_times (only_one, since_ms) VALUES (1, ?1)",
        [now_ms],
    )
    .map(drop)
}

/// A count as the database holds it.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn add(connection: &Connection, tally: &Tally) -> Result<(), StoreError> {
    execute(
        connection,
        "updating a count",
        "INSERT INTO tallies (kind, name, calls, errors, total_us, max_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (kind, name) DO UPDATE SET calls = calls + excluded.calls,
            errors = errors + excluded.errors, total_us = total_us + excluded.total_us,
            max_us = max(max_us, excluded.max_us)",
        params![
            tally.kind.to_string(),
            tally.name,
            signed(tally.calls),
            signed(tally.errors),
            signed(tally.total_us),
            signed(tally.max_us)
        ],
    )
    .map(drop)
}

fn tallies(connection: &Connection) -> Result<Tallies, StoreError> {
    let doing = || "reading the counts".to_owned();
    let times: Option<(i64, Option<i64>)> = connection
        .query_row("SELECT since_ms, reset_ms FROM tally_times", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(|e| failed(doing(), &e))?;
    let rows: Vec<(String, Tally)> = connection
        .prepare_cached("SELECT kind, name, calls, errors, total_us, max_us FROM tallies ORDER BY kind, name")
        .and_then(|mut s| {
            s.query_map([], |row| {
                let count = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
                let tally = Tally {
                    kind: crate::TallyKind::Operation,
                    name: row.get(1)?,
                    calls: count(2)?,
                    errors: count(3)?,
                    total_us: count(4)?,
                    max_us: count(5)?,
                };
                Ok((row.get(0)?, tally))
            })?
            .collect()
        })
        .map_err(|e| failed(doing(), &e))?;
    // A kind of a later version is none of ours to show.
    let known = |(kind, tally): (String, Tally)| Some(Tally { kind: kind.parse().ok()?, ..tally });
    Ok(Tallies {
        since_ms: times.map(|(since, _)| since),
        reset_ms: times.and_then(|(_, reset)| reset),
        tallies: rows.into_iter().filter_map(known).collect(),
    })
}

fn allowance(
    connection: &Connection,
    principal: &str,
    began_ms: i64,
    wanted: u64,
    limit: u64,
) -> Result<Allowance, StoreError> {
    let doing = "granting an allowance";
    let taken: Option<i64> = connection
        .prepare_cached("SELECT taken FROM allowances WHERE principal = ?1 AND began_ms = ?2")
        .and_then(|mut s| s.query_row(params![principal, began_ms], |row| row.get(0)).optional())
        .map_err(|e| failed(doing.into(), &e))?;
    let taken = taken.map_or(0, i64::unsigned_abs);
    let granted = wanted.min(limit.saturating_sub(taken));
    if granted > 0 {
        execute(
            connection,
            doing,
            "DELETE FROM allowances WHERE principal = ?1 AND began_ms < ?2",
            params![principal, began_ms],
        )?;
        execute(
            connection,
            doing,
            "INSERT OR REPLACE INTO allowances (principal, began_ms, taken) VALUES (?1, ?2, ?3)",
            params![principal, began_ms, signed(taken + granted)],
        )?;
    }
    Ok(Allowance { granted, taken: taken + granted })
}

fn runs_by_skill(connection: &Connection, now_ms: i64) -> Result<Vec<SkillRuns>, StoreError> {
    connection
        .prepare(&format!(
            "SELECT r.skill_id, r.contract_digest, {} AS present, count(*), max(r.since_ms) FROM runs r
             GROUP BY r.skill_id, r.contract_digest, present ORDER BY r.skill_id, r.contract_digest, present",
            state_as_of()
        ))
        .and_then(|mut s| {
            s.query_map([now_ms], |row| {
                let state: String = row.get(2)?;
                Ok((row.get(0)?, row.get(1)?, state, row.get::<_, i64>(3)?, row.get(4)?))
            })?
            .collect::<rusqlite::Result<Vec<(String, String, String, i64, i64)>>>()
        })
        .map_err(|e| failed("counting runs by skill".into(), &e))?
        .into_iter()
        .map(|(skill_id, contract_digest, state, runs, last_ms)| {
            let state = state.parse().map_err(|_| {
                failed("counting runs by skill".into(), &format!("the state {state:?} is unknown"))
            })?;
            Ok(SkillRuns { skill_id, contract_digest, state, runs: runs.unsigned_abs(), last_ms })
        })
        .collect()
}
