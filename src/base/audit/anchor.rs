//! How far the log is known to reach. Kept beside the log and in the store, it shows that lines at the end were cut off
//! or changed, which the chain alone cannot.
//!
//! An anchor is written after the lines it stands for are on the disk, so that the log is never behind it, whatever is
//! interrupted; how far it may be ahead is bounded by [`super::recorder`].

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::{ANCHOR, Broken, lines};
use super::line::{Line, digest};
use crate::private_files;

/// A line that was on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anchor {
    /// Its number.
    pub seq: u64,
    /// Its SHA-256, hexadecimal.
    pub head: String,
}

/// What an anchor says about a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnchorCheck {
    /// Where it is kept: `file` or `store`.
    pub place: String,
    /// The furthest anchor; none where that place has none yet.
    pub anchor: Option<Anchor>,
    /// What contradicts it, if anything.
    pub broken: Option<Broken>,
}

pub(super) fn read(file: &Path) -> io::Result<Option<Anchor>> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn write(file: &Path, anchor: &Anchor) -> io::Result<()> {
    private_files::replace(file, &serde_json::to_vec(anchor)?)
}

/// What in a log contradicts one of these anchors. Lines behind all of them were not anchored yet and are
/// fine; an anchor that is before the first line is of lines that were purged.
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
            // Of the first line of a purged log: it stands for the line before the one whose number it has.
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
