//! Whether a file's lines follow each other: pure over its bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::{Line, digest};

/// What stands for the line before the first.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// First line of a file whose older lines were purged: its `prev` is the digest of the last of them.
pub(super) const ANCHOR: &str = "audit.anchor";
/// Says that older lines were purged.
pub(super) const PURGED: &str = "audit.purged";
/// Says that the line before it was torn by a crash.
pub(super) const TORN: &str = "audit.torn";

/// Says that lines before it were cut off or changed, when writing continued behind them.
pub(super) const GAP: &str = "audit.gap";

/// The first line that does not follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Broken {
    /// Its place in the file, from 1.
    pub line: u64,
    /// Its number, where it can be read.
    pub seq: Option<u64>,
    /// What does not fit.
    pub why: String,
}

/// The result of a check of the complete log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Whole lines.
    pub lines: u64,
    /// Number of the first entry.
    pub first: Option<u64>,
    /// Number of the last entry that follows.
    pub last: Option<u64>,
    /// Digest of the last line that follows: kept elsewhere, it shows later that nothing was cut off behind it.
    pub head: Option<String>,
    /// Lines truncated by a crash and noted by a later line.
    pub torn: u64,
    /// Bytes of a last line that a crash tore, if there is one: the next entry will tell of it.
    pub torn_end: u64,
    /// The first line that does not follow.
    pub broken: Option<Broken>,
}

impl Verification {
    /// Whether every line follows.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.broken.is_none()
    }
}

/// The lines of a file, without their ends; what is after the last end comes apart.
pub(super) fn lines(bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let end = lines.pop().unwrap_or_default();
    (lines, end)
}

/// Looks over a whole file.
#[must_use]
pub fn verify(bytes: &[u8]) -> Verification {
    let (all, end) = lines(bytes);
    let mut found =
        Verification { lines: all.len() as u64, torn_end: end.len() as u64, ..Verification::default() };
    let (mut prev, mut next) = (GENESIS.to_owned(), 1);
    let mut anchor: Option<String> = None;
    let mut told = false;
    for (at, raw) in all.iter().enumerate() {
        let broken = |seq: Option<u64>, why: String| Broken { line: at as u64 + 1, seq, why };
        let line = match serde_json::from_slice::<Line>(raw) {
            Ok(line) => line,
            Err(_) if tells_of(all.get(at + 1), raw) => {
                found.torn += 1;
                prev = digest(raw);
                continue;
            }
            Err(error) => {
                found.broken = Some(broken(None, format!("is not a line of this log: {error}")));
                return found;
            }
        };
        if at == 0 && line.kind == ANCHOR {
            anchor = Some(line.prev.clone());
            (prev, next) = (line.prev, line.seq);
            continue;
        }
        if line.seq != next {
            found.broken = Some(broken(Some(line.seq), format!("has number {}, expected {next}", line.seq)));
            return found;
        }
        if line.prev != prev {
            let why = "the previous line was modified".to_owned();
            found.broken = Some(broken(Some(line.seq), why));
            return found;
        }
        if line.kind == GAP {
            let expected =
                line.data.get("expected_seq").and_then(serde_json::Value::as_u64).unwrap_or_default();
            let why = format!(
                "was written when previous lines did not match the anchor (at line {expected}): some \
                    were truncated or modified"
            );
            found.broken = Some(broken(Some(line.seq), why));
            return found;
        }
        told |= line.kind == PURGED && line.data.get("through").and_then(|t| t.as_str()) == anchor.as_deref();
        found.first.get_or_insert(line.seq);
        found.last = Some(line.seq);
        prev = digest(raw);
        found.head = Some(prev.clone());
        next = line.seq + 1;
    }
    if anchor.is_some() && !told {
        let why = "the beginning is missing without a recorded purge".to_owned();
        found.broken = Some(Broken { line: 1, seq: None, why });
    }
    found
}

/// Whether this line notes that `torn` was truncated.
fn tells_of(line: Option<&&[u8]>, torn: &[u8]) -> bool {
    let line = line.and_then(|raw| serde_json::from_slice::<Line>(raw).ok());
    let said = line.filter(|line| line.kind == TORN);
    said.is_some_and(|line| line.data.get("sha256").and_then(|d| d.as_str()) == Some(&digest(torn)))
}
