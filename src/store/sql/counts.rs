//! Counters: tallies, allowances of the rate limiter, runs by skill.

use super::read::ended_state;
use super::rows::state;
use super::{Row, Tx, values};
use crate::{Allowance, SkillRuns, StoreError, Tallies, Tally, TallyKind};

pub(crate) async fn add<T: Tx>(tx: &T, tallies: &[Tally]) -> Result<(), StoreError> {
    let now_ms = tx.now().await?.wall_ms;
    tx.post(
        "initialize the counts",
        "INSERT INTO tally_times (only_one, since_ms) VALUES (1, ?1) ON CONFLICT DO NOTHING",
        values![now_ms],
    )
    .await?;
    // In a fixed order, so that two processes that add concurrently do not deadlock.
    let mut sorted: Vec<&Tally> = tallies.iter().collect();
    sorted.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    for tally in sorted {
        tx.post(
            "update a count",
            "INSERT INTO tallies (kind, name, calls, errors, total_us, max_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (kind, name) DO UPDATE SET calls = tallies.calls + excluded.calls,
                errors = tallies.errors + excluded.errors, total_us = tallies.total_us + excluded.total_us,
                max_us = CASE WHEN excluded.max_us > tallies.max_us THEN excluded.max_us ELSE tallies.max_us END",
            values![
                tally.kind.to_string(),
                &tally.name,
                tally.calls,
                tally.errors,
                tally.total_us,
                tally.max_us
            ],
        )
        .await?;
    }
    Ok(())
}

pub(crate) async fn reset<T: Tx>(tx: &T) -> Result<Tallies, StoreError> {
    let action = "reset the counts";
    let now_ms = tx.now().await?.wall_ms;
    tx.post(action, "DELETE FROM tallies", &[]).await?;
    tx.post(
        action,
        "INSERT INTO tally_times (only_one, since_ms, reset_ms) VALUES (1, ?1, ?1)
         ON CONFLICT (only_one) DO UPDATE SET since_ms = excluded.since_ms, reset_ms = excluded.reset_ms",
        values![now_ms],
    )
    .await?;
    tallies(tx).await
}

pub(crate) async fn tallies<T: Tx>(tx: &T) -> Result<Tallies, StoreError> {
    let action = "read the counts";
    let (mut since_ms, mut reset_ms) = (None, None);
    if let Some(mut row) = tx.find(action, "SELECT since_ms, reset_ms FROM tally_times", &[]).await? {
        (since_ms, reset_ms) = (row.take(0)?, row.take(1)?);
    }
    let sql = "SELECT kind, name, calls, errors, total_us, max_us FROM tallies ORDER BY kind, name";
    let rows = tx.query(action, sql, &[]).await?;
    let tally = |mut row: Row| {
        // A kind of a later version cannot be shown.
        let kind: TallyKind = row.text(0)?.parse().ok()?;
        let mut read = || {
            Ok(Tally {
                kind,
                name: row.take(1)?,
                calls: row.take(2)?,
                errors: row.take(3)?,
                total_us: row.take(4)?,
                max_us: row.take(5)?,
            })
        };
        Some(read())
    };
    let tallies = rows.into_iter().filter_map(tally).collect::<Result<_, StoreError>>()?;
    Ok(Tallies { since_ms, reset_ms, tallies })
}

pub(crate) async fn allowance<T: Tx>(
    tx: &T,
    principal: &str,
    began_ms: i64,
    requested: u64,
    limit: u64,
) -> Result<Allowance, StoreError> {
    let action = "grant an allowance";
    let window = values![principal, began_ms];
    if T::POSTGRES {
        // The row must exist to be locked.
        let sql =
            "INSERT INTO allowances (principal, began_ms, taken) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING";
        tx.post(action, sql, window).await?;
    }
    let lock = if T::POSTGRES { "FOR UPDATE" } else { "" };
    let sql = format!("SELECT taken FROM allowances WHERE principal = ?1 AND began_ms = ?2 {lock}");
    let taken: u64 = tx.find(action, &sql, window).await?.map_or(Ok(0), |mut row| row.take(0))?;
    let granted = requested.min(limit.saturating_sub(taken));
    if granted > 0 {
        let sql = "DELETE FROM allowances WHERE principal = ?1 AND began_ms < ?2";
        tx.post(action, sql, window).await?;
        tx.post(
            action,
            "INSERT INTO allowances (principal, began_ms, taken) VALUES (?1, ?2, ?3)
             ON CONFLICT (principal, began_ms) DO UPDATE SET taken = excluded.taken",
            values![principal, began_ms, taken + granted],
        )
        .await?;
    }
    Ok(Allowance { granted, taken: taken + granted })
}

pub(crate) async fn runs_by_skill<T: Tx>(tx: &T) -> Result<Vec<SkillRuns>, StoreError> {
    // The state is computed for the few runs whose wait has expired; all others are counted in an index.
    let sql = format!(
        "SELECT skill_id, contract_digest, present, CAST(sum(n) AS BIGINT), max(last) FROM (
            SELECT skill_id, contract_digest, state AS present, count(*) AS n, max(since_ms) AS last FROM runs
            WHERE expires_ms IS NULL OR expires_ms > ?1 GROUP BY skill_id, contract_digest, state
            UNION ALL
            SELECT r.skill_id, r.contract_digest, {}, 1, r.since_ms FROM runs r WHERE r.expires_ms <= ?1) counted
         GROUP BY skill_id, contract_digest, present ORDER BY skill_id, contract_digest, present",
        ended_state(T::POSTGRES)
    );
    let now_ms = tx.now().await?.wall_ms;
    let runs = |mut row: Row| {
        // A state of a later version cannot be counted.
        let state = state(&row, 2).ok()?;
        let mut read = || {
            Ok(SkillRuns {
                skill_id: row.take(0)?,
                contract_digest: row.take(1)?,
                state,
                runs: row.take(3)?,
                // One run must not hide all others.
                last_ms: row.take(4).unwrap_or_default(),
            })
        };
        Some(read())
    };
    tx.query("count runs by skill", &sql, values![now_ms]).await?.into_iter().filter_map(runs).collect()
}
