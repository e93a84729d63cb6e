//! Detects whether the data that a run continues from was modified: digests are stored with its inputs and checkpoints.
//! The database has no checksums of its pages, so a byte that changed on disk would not be noticed otherwise.

use sha2::{Digest as _, Sha256};

use super::{Row, Tx, checkpoints, values};
use crate::{RunId, StoreError};

/// Returns the digest of texts as they are stored.
pub(crate) fn digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    skills_base::hex::encode(&hash.finalize())
}

/// Returns which part of what a run continues from differs from what was written, if any; `None` also if an earlier
/// version stored no digest.
pub(crate) async fn damage<T: Tx>(tx: &T, run: &RunId) -> Result<Option<&'static str>, StoreError> {
    let action = "verify a run";
    let sql = "SELECT inputs, inputs_digest, head FROM runs WHERE id = ?1";
    let Some(mut row) = tx.find(action, sql, values![run]).await? else { return Ok(None) };
    let head: i64 = row.take(2)?;
    let rows = tx.query(action, &checkpoints::chain_query(), values![run, head, head]).await?;
    Ok(part_damaged(row.text(0), row.text(1), &rows))
}

/// The same for inputs with their digest, and for the rows of [`checkpoints::chain_query`].
pub(super) fn part_damaged(inputs: Option<&str>, stored: Option<&str>, rows: &[Row]) -> Option<&'static str> {
    if stored.is_some_and(|stored| stored != digest(&[inputs.unwrap_or_default()])) {
        return Some("inputs");
    }
    (!checkpoints::is_sound(rows)).then_some("checkpoint")
}

/// Returns whether texts match their stored digest; the second text may be missing.
pub(crate) fn is_sound(first: Option<&str>, second: Option<&str>, stored: Option<&str>) -> bool {
    let texts: Vec<&str> = first.into_iter().chain(second).collect();
    stored == Some(digest(&texts).as_str())
}
