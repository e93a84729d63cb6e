//! One line: what happened, who did it, and the digest of the line before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::redact::redacted;

/// How much is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing.
    Off,
    /// What happened to what, and by whom; digests instead of contents.
    #[default]
    Standard,
    /// Contents too, without secrets.
    Full,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// What: `run.launched`, `run.decided`, `trust.pinned`, ….
    pub kind: String,
    /// Who, where that is known.
    pub by: Option<String>,
    /// What it is about.
    pub data: Map<String, Value>,
    /// Contents; written in full mode only.
    pub detail: Map<String, Value>,
    /// Whether it has to be on the disk before it is answered: what cannot be found anywhere else.
    pub durable: bool,
}

impl Entry {
    /// An entry about these fields; those that are null are left out.
    #[must_use]
    pub fn new(kind: impl Into<String>, by: Option<&str>, data: Value) -> Self {
        let mut data = match data {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        data.retain(|_, value| !value.is_null());
        Self { kind: kind.into(), by: by.map(str::to_owned), data, ..Self::default() }
    }

    /// With contents.
    #[must_use]
    pub fn with_detail(mut self, detail: Value) -> Self {
        if let Value::Object(map) = detail {
            self.detail.extend(map.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self
    }

    /// On the disk before it is answered.
    #[must_use]
    pub fn durably(mut self) -> Self {
        self.durable = true;
        self
    }
}

/// A line as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Counts up from 1, without gaps.
    pub seq: u64,
    /// When: RFC 3339, UTC.
    pub at: String,
    /// What.
    pub kind: String,
    /// Who, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Contents, in full mode.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
    /// SHA-256 of the line before, hexadecimal.
    pub prev: String,
}

impl Line {
    /// An entry as the line after another one.
    #[must_use]
    pub fn of(entry: Entry, mode: Mode, seq: u64, at_ms: i64, prev: &str) -> Self {
        let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let clean = |map: Map<String, Value>| match redacted(Value::Object(map)) {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Self {
            seq,
            at: format!("{at:.3}"),
            kind: entry.kind,
            by: entry.by,
            data: clean(entry.data),
            detail: if mode == Mode::Full { clean(entry.detail) } else { Map::new() },
            prev: prev.to_owned(),
        }
    }

    /// When it was written, milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn at_ms(&self) -> Option<i64> {
        self.at.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    }

    /// Its bytes, without the line end.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // Only text keys and JSON values are in it: it always has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// SHA-256 of a line's bytes, hexadecimal.
pub(super) fn digest(line: &[u8]) -> String {
    crate::hex::encode(&Sha256::digest(line))
}
