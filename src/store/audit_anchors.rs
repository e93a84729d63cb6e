//! Anchors of audit logs: how far each log is known to reach, stored separately from the logs.

use async_trait::async_trait;

use super::StoreError;

/// A line of an audit log that was written to disk: its number and its SHA-256 in hexadecimal.
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
    /// Stores an anchor without waiting for it to reach the disk. The last anchor of each day is kept, so that a
    /// rewritten log contradicts those of earlier days.
    fn store_audit_anchor(&self, log: &str, anchor: AuditAnchor);

    /// Returns the anchors of a log, oldest first.
    async fn audit_anchors(&self, log: &str) -> Result<Vec<AuditAnchor>, StoreError>;
}
