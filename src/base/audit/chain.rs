//! Verifies the hash chain of a log; pure, over the bytes of a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::{Line, digest};

/// Digest that precedes the first line.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// First line of a file whose older lines were purged: its `prev` is the digest of the last of them.
pub(super) const ANCHOR: &str = "audit.anchor";
/// Kind of a line that records a purge of older lines.
pub(super) const PURGED: &str = "audit.purged";
/// Kind of a line that records that the previous line was truncated by a crash.
pub(super) const TORN: &str = "audit.torn";

/// Kind of a line that records that earlier lines were removed or changed, when writing continued after them.
pub(super) const GAP: &str = "audit.gap";

/// The first line that breaks the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Broken {
    /// Its line number in the file, from 1.
    pub line: u64,
    /// Its sequence number, if it can be read.
    pub seq: Option<u64>,
    /// What is wrong.
    pub why: String,
}

/// The result of a check of the complete log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Number of complete lines.
    pub lines: u64,
    /// Sequence number of the first entry.
    pub first: Option<u64>,
    /// Sequence number of the last valid entry.
    pub last: Option<u64>,
    /// Digest of the last valid line: stored elsewhere, it proves later that nothing after it was removed.
    pub head: Option<String>,
    /// Number of lines truncated by a crash and recorded by a later line.
    pub torn: u64,
    /// Number of bytes of a truncated last line, if there is one; the next entry will record it.
    pub torn_end: u64,
    /// The first line that breaks the chain.
    pub broken: Option<Broken>,
}

impl Verification {
    /// Returns whether the chain is valid.
    pub fn is_intact(&self) -> bool {
        self.broken.is_none()
    }
}

/// Splits a file into its lines, without line feeds; the second value is the incomplete last line.
pub(super) fn lines(bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let end = lines.pop().unwrap_or_default();
    (lines, end)
}

/// Verifies a complete file.
pub fn verify(bytes: &[u8]) -> Verification {
    check(bytes, false)
}

/// Verifies the chain of a file, in which gaps may be recorded: what is missing was reported, and what was written since
/// is complete.
pub(super) fn verify_since_gaps(bytes: &[u8]) -> Verification {
    check(bytes, true)
}

fn check(bytes: &[u8], accepts_gaps: bool) -> Verification {
    let (all, end) = lines(bytes);
    let mut found =
        Verification { lines: all.len() as u64, torn_end: end.len() as u64, ..Verification::default() };
    let (mut prev, mut next) = (GENESIS.to_owned(), 1);
    let mut anchor: Option<String> = None;
    let mut reported = false;
    for (at, raw) in all.iter().enumerate() {
        let broken = |seq: Option<u64>, why: String| Broken { line: at as u64 + 1, seq, why };
        let line = match serde_json::from_slice::<Line>(raw) {
            Ok(line) => line,
            Err(_) if records_truncation(all.get(at + 1), raw) => {
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
        if line.kind == GAP && !accepts_gaps {
            let expected =
                line.data.get("expected_seq").and_then(serde_json::Value::as_u64).unwrap_or_default();
            let why = format!(
                "was written when previous lines did not match the anchor (at line {expected}): some \
                    were truncated or modified"
            );
            found.broken = Some(broken(Some(line.seq), why));
            return found;
        }
        reported |=
            line.kind == PURGED && line.data.get("through").and_then(|t| t.as_str()) == anchor.as_deref();
        found.first.get_or_insert(line.seq);
        found.last = Some(line.seq);
        prev = digest(raw);
        found.head = Some(prev.clone());
        next = line.seq + 1;
    }
    if anchor.is_some() && !reported {
        let why = "the beginning is missing without a recorded purge".to_owned();
        found.broken = Some(Broken { line: 1, seq: None, why });
    }
    found
}

/// Returns whether this line records that `torn` was truncated.
fn records_truncation(line: Option<&&[u8]>, torn: &[u8]) -> bool {
    let line = line.and_then(|raw| serde_json::from_slice::<Line>(raw).ok());
    let record = line.filter(|line| line.kind == TORN);
    record.is_some_and(|line| line.data.get("sha256").and_then(|d| d.as_str()) == Some(&digest(torn)))
}
