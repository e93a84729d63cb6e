//! Anchors: a position and digest of the log. Stored next to the log and in the database, they reveal that lines at
//! the end were removed or changed, which the chain alone cannot detect.
//!
//! An anchor is written after the lines that it covers are on the disk, so that the log is never behind it, even after
//! an interruption; [`super::recorder`] bounds how far the log may be ahead.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::{ANCHOR, Broken, lines};
use super::line::{Line, digest};
use crate::files::read_regular;
use crate::private_files;

/// A line that was on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anchor {
    /// Number of the line.
    pub seq: u64,
    /// Its SHA-256, hexadecimal.
    pub head: String,
}

/// The result of comparing a log with an anchor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnchorCheck {
    /// Where the anchor is stored: `file` or `store`.
    pub place: String,
    /// The furthest anchor; `None` if none is stored there yet.
    pub anchor: Option<Anchor>,
    /// The first contradiction, if any.
    pub broken: Option<Broken>,
}

/// Maximum size of the file of an anchor.
const MAX_ANCHOR_BYTES: u64 = 64 * 1024;

pub(super) fn read(file: &Path) -> io::Result<Option<Anchor>> {
    match read_regular(file, MAX_ANCHOR_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn write(file: &Path, anchor: &Anchor) -> io::Result<()> {
    private_files::replace(file, &serde_json::to_vec(anchor)?)
}

/// Returns the first line of a log that contradicts one of these anchors. Lines after all anchors are not anchored yet
/// and are valid; an anchor before the first line refers to purged lines.
pub(super) fn contradiction(bytes: &[u8], anchors: &[Anchor]) -> Option<Broken> {
    let heads: BTreeMap<u64, &str> =
        anchors.iter().map(|anchor| (anchor.seq, anchor.head.as_str())).collect();
    let (all, _) = lines(bytes);
    let at_line = |at: usize| at as u64 + 1;
    let mut last = 0;
    for (at, raw) in all.iter().enumerate() {
        let Ok(line) = serde_json::from_slice::<Line>(raw) else { continue };
        let before = line.seq.saturating_sub(1);
        let changed = if line.kind == ANCHOR {
            // First line of a purged log: it represents the line before the one whose number it has.
            last = last.max(before);
            None
        } else {
            last = last.max(line.seq);
            let own = heads.get(&line.seq).filter(|head| digest(raw) != **head).map(|_| line.seq);
            own.or_else(|| heads.get(&before).filter(|head| line.prev != **head).map(|_| before))
        };
        if let Some(seq) = changed {
            let why = "was modified: its anchor differs".to_owned();
            return Some(Broken { line: at_line(at), seq: Some(seq), why });
        }
    }
    let (furthest, _) = heads.last_key_value()?;
    (last < *furthest).then(|| Broken {
        line: at_line(all.len()),
        seq: Some(last + 1),
        why: format!("is missing, with all lines up to {furthest}: the log was truncated"),
    })
}
