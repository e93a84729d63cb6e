//! Anchors of audit logs in `SQLite`.

use async_trait::async_trait;
use rusqlite::params;

use super::rows::execute;
use super::{Sqlite, failed};
use crate::{AuditAnchor, AuditAnchors, StoreError};

const DAY_MS: i64 = 86_400_000;

#[async_trait]
impl AuditAnchors for Sqlite {
    fn keep_audit_anchor(&self, log: &str, anchor: AuditAnchor) {
        let (log, now) = (log.to_owned(), std::sync::Arc::clone(&self.clocks.wall));
        let kept = self.writer().and_then(|writer| {
            writer.post(move |connection| {
                execute(
                    connection,
                    "keeping the anchor of the audit log",
                    "INSERT INTO audit_anchors (log, day, seq, head) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (log, day) DO UPDATE SET seq = excluded.seq, head = excluded.head
                     WHERE excluded.seq > seq",
                    params![log, now() / DAY_MS, i64::try_from(anchor.seq).unwrap_or(i64::MAX), anchor.head],
                )
                .map(drop)
            })
        });
        if let Err(error) = kept {
            tracing::debug!("keeping the anchor of the audit log: {error}");
        }
    }

    async fn audit_anchors(&self, log: &str) -> Result<Vec<AuditAnchor>, StoreError> {
        let log = log.to_owned();
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT seq, head FROM audit_anchors WHERE log = ?1 ORDER BY day")
                .and_then(|mut statement| {
                    let anchor = |row: &rusqlite::Row<'_>| {
                        Ok(AuditAnchor { seq: row.get::<_, i64>(0)?.unsigned_abs(), head: row.get(1)? })
                    };
                    statement.query_map([log], anchor)?.collect()
                })
                .map_err(|e| failed("reading the anchors of the audit log".into(), &e))
        })
        .await
    }
}
