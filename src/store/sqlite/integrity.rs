//! Whether what a run would run on is what was written: digests beside its inputs and checkpoints. The database has no
//! sums over its pages, so a byte that changed on the disk shows nowhere else.

use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

use super::failed;
use crate::{RunId, StoreError};

/// Digest of texts as they are stored.
pub(super) fn digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    skills_base::hex::encode(&hash.finalize())
}

/// Which part of what a run goes on from is not what was written; none where all of it is, or an earlier version kept
/// no digest.
pub(super) fn damage(connection: &Connection, run: &RunId) -> Result<Option<&'static str>, StoreError> {
    let doing = || format!("verifying run {run}");
    let found: Option<(String, Option<String>, i64)> = connection
        .prepare_cached("SELECT inputs, inputs_digest, head FROM runs WHERE id = ?1")
        .and_then(|mut s| s.query_row([&run.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional())
        .map_err(|e| failed(doing(), &e))?;
    let Some((inputs, kept, head)) = found else { return Ok(None) };
    if kept.is_some_and(|kept| kept != digest(&[&inputs])) {
        return Ok(Some("inputs"));
    }
    let sound = connection
        .prepare_cached(
            "SELECT done, state, digest FROM checkpoints WHERE run = ?1 AND digest IS NOT NULL AND number BETWEEN
                coalesce((SELECT base FROM checkpoints WHERE run = ?1 AND number = ?2), ?2) AND ?2",
        )
        .and_then(|mut s| {
            s.query_map(params![run.0, head], |row| {
                let (done, state, kept): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(kept == digest(&[&done, &state]))
            })?
            .try_fold(true, |sound, row| Ok(sound && row?))
        })
        .map_err(|e| failed(doing(), &e))?;
    Ok((!sound).then_some("checkpoint"))
}

/// How many runs and checkpoints are not what was written.
pub(super) fn count(connection: &Connection) -> Result<(u64, u64), StoreError> {
    let count = |sql: &str| {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut damaged = 0_u64;
        while let Some(row) = rows.next()? {
            let (first, second, kept): (String, Option<String>, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let texts: Vec<&str> = std::iter::once(first.as_str()).chain(second.as_deref()).collect();
            damaged += u64::from(kept != digest(&texts));
        }
        Ok(damaged)
    };
    let runs = "SELECT inputs, NULL, inputs_digest FROM runs WHERE inputs_digest IS NOT NULL";
    let checkpoints = "SELECT done, state, digest FROM checkpoints WHERE digest IS NOT NULL";
    count(runs)
        .and_then(|runs| Ok((runs, count(checkpoints)?)))
        .map_err(|e: rusqlite::Error| failed("verifying inputs and checkpoints".into(), &e))
}
