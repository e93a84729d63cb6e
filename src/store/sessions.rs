//! What is kept of sessions: a small document that changes under an optimistic version, and lines that are appended
//! and never changed. What they mean is not the store's business.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StoreError;

/// A session as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Its id: a UUID version 7 (RFC 9562).
    pub id: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Time of the last change, milliseconds since 1970-01-01 UTC.
    pub changed_ms: i64,
    /// Incremented with every change.
    pub version: u64,
    /// The principal who made it; none for the local account, and for sessions of earlier versions.
    pub owner: Option<String>,
    /// Everything but the lines.
    pub document: Value,
    /// Lines, oldest first, without those that the reader knew.
    pub lines: Vec<Value>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Its id.
    pub id: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Time of the last change, milliseconds since 1970-01-01 UTC.
    pub changed_ms: i64,
    /// The principal who made it; none for the local account, and for sessions of earlier versions.
    pub owner: Option<String>,
    /// Everything but the lines.
    pub document: Value,
    /// How many lines it has.
    pub lines: u64,
}

/// A durable store of sessions. As with runs, every method is one transaction.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// Keeps a new session. Its owner never changes.
    async fn create_session(
        &self,
        id: &str,
        owner: Option<&str>,
        document: Value,
    ) -> Result<SessionRow, StoreError>;

    /// One session, without its first `known` lines: lines never change, so a reader that has them needs no more.
    async fn session(&self, id: &str, known: u64) -> Result<Option<SessionRow>, StoreError>;

    /// Sessions of this owner, or of all owners, most recently changed first, at most `limit`.
    async fn sessions(&self, owner: Option<&str>, limit: usize) -> Result<Vec<SessionHead>, StoreError>;

    /// Replaces the document and appends lines, if the session is unchanged since `version` was read; returns the
    /// new version.
    ///
    /// # Errors
    /// [`StoreError::SessionConflict`]: read again, and try again.
    async fn change_session(
        &self,
        id: &str,
        version: u64,
        document: Value,
        lines: Vec<Value>,
    ) -> Result<u64, StoreError>;

    /// Keeps the text of a session's last call, in place of the one before. It is large and rarely read, so it is not
    /// part of the document.
    async fn keep_call(&self, id: &str, text: String) -> Result<(), StoreError>;

    /// The text of a session's last call, where one was kept.
    async fn kept_call(&self, id: &str) -> Result<Option<String>, StoreError>;

    /// Deletes sessions that were not changed since a moment; returns how many.
    async fn purge_sessions(&self, before_ms: i64) -> Result<u64, StoreError>;
}
