//! Stored sessions: a small document with optimistic versioning, and append-only lines. Their meaning is defined
//! elsewhere.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StoreError;

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
    /// The principal who created it; `None` for the local account, and for sessions of earlier versions.
    pub owner: Option<String>,
    /// Everything but the lines.
    pub document: Value,
    /// Lines, oldest first, except those that the reader already has.
    pub lines: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionHead {
    pub id: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Time of the last change, milliseconds since 1970-01-01 UTC.
    pub changed_ms: i64,
    /// The principal who created it; `None` for the local account, and for sessions of earlier versions.
    pub owner: Option<String>,
    pub outline: SessionOutline,
    /// Number of its lines.
    pub lines: u64,
}

/// The part of a session's document that lists show. It is stored separately, because a document has the bodies of
/// loaded skills.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionOutline {
    /// The agent; `None` for the orchestrator.
    pub agent: Option<String>,
    /// Names of the loaded skills.
    pub active: Vec<String>,
}

impl SessionOutline {
    pub(crate) fn of(document: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let active = document["active"].as_array().into_iter().flatten();
        Self {
            agent: text(&document["settings"]["agent"]),
            active: active.filter_map(|skill| text(&skill["name"])).collect(),
        }
    }
}

/// What the sessions of an owner use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionUsage {
    /// Number of sessions.
    pub sessions: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// A durable store of sessions. As with runs, every method is one transaction.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// Stores a new session. Its owner never changes.
    async fn create_session(
        &self,
        id: &str,
        owner: Option<&str>,
        document: Value,
    ) -> Result<SessionRow, StoreError>;

    /// Returns a session without its first `skip` lines: lines never change, so a reader that has them does not need
    /// them again.
    async fn session(&self, id: &str, skip: u64) -> Result<Option<SessionRow>, StoreError>;

    /// Returns at most `limit` sessions of this owner, or of all owners, most recently changed first.
    async fn sessions(&self, owner: Option<&str>, limit: usize) -> Result<Vec<SessionHead>, StoreError>;

    /// Returns the ids of at most `limit` sessions of this owner, or of all owners, that begin or end with a text, most
    /// recently changed first. Documents are not read.
    async fn session_ids(
        &self,
        owner: Option<&str>,
        part: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Replaces the document and appends lines if the session is unchanged since `version` was read; returns the new
    /// version.
    ///
    /// # Errors
    /// Returns [`StoreError::SessionConflict`] if it changed; read it again and retry.
    async fn change_session(
        &self,
        id: &str,
        version: u64,
        document: Value,
        lines: Vec<Value>,
    ) -> Result<u64, StoreError>;

    /// Stores the text of a session's last call, replacing the previous one. It is large and rarely read, so it is not
    /// part of the document.
    async fn store_last_call(&self, id: &str, text: String) -> Result<(), StoreError>;

    /// Returns the text of a session's last call, if one is stored.
    async fn load_last_call(&self, id: &str) -> Result<Option<String>, StoreError>;

    /// Returns the number of an owner's sessions, and their size in bytes.
    async fn session_usage(&self, owner: &str) -> Result<SessionUsage, StoreError>;

    /// Deletes sessions that were not changed since a moment; returns how many.
    async fn purge_sessions(&self, before_ms: i64) -> Result<u64, StoreError>;
}
