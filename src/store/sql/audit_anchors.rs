//! Anchors of audit logs.

use super::{Row, Tx, values};
use crate::{AuditAnchor, StoreError};

const DAY_MS: i64 = 86_400_000;

pub(crate) async fn insert<T: Tx>(tx: &T, log: &str, anchor: &AuditAnchor) -> Result<(), StoreError> {
    let day = tx.now().await?.wall_ms / DAY_MS;
    tx.post(
        "store the anchor of the audit log",
        "INSERT INTO audit_anchors (log, day, seq, head) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (log, day) DO UPDATE SET seq = excluded.seq, head = excluded.head
         WHERE excluded.seq > audit_anchors.seq",
        values![log, day, anchor.seq, &anchor.head],
    )
    .await
}

/// Removes the anchors of all logs.
pub(crate) async fn remove<T: Tx>(tx: &T) -> Result<(), StoreError> {
    tx.post("remove the anchors of audit logs", "DELETE FROM audit_anchors", &[]).await
}

pub(crate) async fn all<T: Tx>(tx: &T, log: &str) -> Result<Vec<AuditAnchor>, StoreError> {
    let sql = "SELECT seq, head FROM audit_anchors WHERE log = ?1 ORDER BY day";
    let rows = tx.query("read the anchors of the audit log", sql, values![log]).await?;
    let anchor = |mut row: Row| Ok(AuditAnchor { seq: row.take(0)?, head: row.take(1)? });
    rows.into_iter().map(anchor).collect()
}
