//! How far audit logs are known to reach, kept apart from the logs themselves.

use async_trait::async_trait;

use super::StoreError;

/// A line of an audit log that was on the disk: its number and its SHA-256, hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAnchor {
    /// Number of the line.
    pub seq: u64,
    /// Digest of the line.
    pub head: String,
}

/// Anchors of audit logs, by the paths of the logs.
#[async_trait]
pub trait AuditAnchors: Send + Sync + 'static {
    /// Keeps an anchor, without waiting for it to be on the disk. The furthest one of each day stays, so that a log
    /// which was remade contradicts those of earlier days.
    fn keep_audit_anchor(&self, log: &str, anchor: AuditAnchor);

    /// The anchors of a log, oldest first.
    async fn audit_anchors(&self, log: &str) -> Result<Vec<AuditAnchor>, StoreError>;
}
