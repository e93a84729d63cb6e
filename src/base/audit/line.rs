//! One line of the log: event, principal, and digest of the previous line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::redact::{redacted, redacted_text};

/// The level of detail of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing is recorded.
    Off,
    /// Events, subjects and principals; digests instead of contents.
    #[default]
    Standard,
    /// Also contents, without secrets.
    Full,
}

/// An event to be recorded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// The event: `run.launched`, `run.decided`, `trust.pinned`, ….
    pub kind: String,
    /// The principal, if known.
    pub by: Option<String>,
    /// The subject of the event.
    pub data: Map<String, Value>,
    /// Contents; written only in full mode.
    pub detail: Map<String, Value>,
    /// Whether the entry must be on the disk before the call returns; for events that are recorded nowhere else.
    pub durable: bool,
}

impl Entry {
    /// Creates an entry with these fields; null fields are omitted.
    pub fn new(kind: impl Into<String>, by: Option<&str>, data: Value) -> Self {
        let mut data = match data {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        data.retain(|_, value| !value.is_null());
        Self { kind: kind.into(), by: by.map(str::to_owned), data, ..Self::default() }
    }

    /// Adds contents.
    #[must_use]
    pub fn with_detail(mut self, detail: Value) -> Self {
        if let Value::Object(map) = detail {
            self.detail.extend(map.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self
    }

    /// Requires that the entry is on the disk before the call returns.
    #[must_use]
    pub fn durably(mut self) -> Self {
        self.durable = true;
        self
    }
}

/// A line as written to the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Sequence number, from 1 without gaps.
    pub seq: u64,
    /// Time, as RFC 3339 in UTC.
    pub at: String,
    /// The event.
    pub kind: String,
    /// The principal, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The subject of the event.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Contents, in full mode.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
    /// SHA-256 of the previous line, hexadecimal.
    pub prev: String,
}

impl Line {
    /// Creates the line of an entry after a previous line.
    pub fn of(entry: Entry, mode: Mode, seq: u64, at_ms: i64, prev: &str) -> Self {
        let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let clean = |map: Map<String, Value>| match redacted(Value::Object(map)) {
            Value::Object(map) => map.into_iter().map(|(name, value)| (name, bounded(value))).collect(),
            _ => Map::new(),
        };
        Self {
            seq,
            at: format!("{at:.3}"),
            kind: entry.kind,
            by: entry.by.map(|by| redacted_text(&by)),
            data: clean(entry.data),
            detail: if mode == Mode::Full { clean(entry.detail) } else { Map::new() },
            prev: prev.to_owned(),
        }
    }

    /// Returns the time of the line, in milliseconds since 1970-01-01 UTC.
    pub fn at_ms(&self) -> Option<i64> {
        self.at.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    }

    /// Returns the bytes of the line, without the line feed.
    pub fn bytes(&self) -> Vec<u8> {
        // The line contains only text keys and JSON values, so serialization does not fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Maximum size of a field of a line in bytes: the end of the log is found by reading its last line.
const MAX_FIELD_BYTES: usize = 64 << 10;

/// Replaces a large value by its size and digest.
fn bounded(value: Value) -> Value {
    match serde_json::to_vec(&value) {
        Ok(bytes) if bytes.len() > MAX_FIELD_BYTES => {
            json!({ "bytes": bytes.len(), "sha256": digest(&bytes) })
        }
        _ => value,
    }
}

/// Returns the SHA-256 of a line's bytes, hexadecimal.
pub(super) fn digest(line: &[u8]) -> String {
    crate::hex::encode(&Sha256::digest(line))
}
