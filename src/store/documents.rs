//! Small JSON documents that all processes on a store share: saved views, what workers say of themselves, requests to
//! drain them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its name: a kind and an id, `view:Failed deploys`.
    pub name: String,
    /// Incremented by every write; a deleted document starts over at 1.
    pub version: u64,
    /// Its content.
    pub value: Value,
}

/// Bytes of a document as JSON.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 10;
