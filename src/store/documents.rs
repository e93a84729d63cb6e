//! Small JSON documents shared by all processes on a store: saved views, descriptions of workers, drain requests.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its name: a kind and an id, `view:Failed deploys`.
    pub name: String,
    /// Incremented by every write; a deleted document starts over at 1.
    pub version: u64,
    pub value: Value,
}

/// Maximum size of a document in bytes of JSON.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 10;
