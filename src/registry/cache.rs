//! The warm-start cache: what reading each bundle gave, good as long as size and time of its file are.
//!
//! Layout: eight bytes of magic, a length-prefixed build stamp, SHA-256 of the payload, the payload
//! (postcard). Anything unexpected drops the whole file: it is made again by the next scan.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::roots::RootSpec;
use super::tree::{Known, Outcome, Stamp, Tree};
use crate::private_files;

/// Counts up when the layout changes. (A change of the parser shows in the build stamp.)
const MAGIC: &[u8; 8] = b"SKILLS\x00\x01";

/// Caches of other root sets that nobody used for this long are removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Serialize)]
struct Line<'a> {
    location: &'a Path,
    stamp: Stamp,
    outcome: &'a Outcome,
}

#[derive(Deserialize)]
struct OwnedLine {
    location: PathBuf,
    stamp: Stamp,
    outcome: Outcome,
}

/// The cache file of a set of roots.
#[must_use]
pub(super) fn file(folder: &Path, roots: &[RootSpec]) -> PathBuf {
    let mut hash = Sha256::new();
    for root in roots {
        hash.update(root.path.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    let key = hash.finalize().iter().take(8).fold(0_u64, |key, byte| key << 8 | u64::from(*byte));
    folder.join(format!("catalogue-{key:016x}.bin"))
}

/// Reads a cache that this very build wrote.
///
/// # Errors
/// Why it is not used, in words for diagnostics.
pub(super) fn load(file: &Path, build: &str) -> Result<Known, String> {
    let bytes = fs::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there was none".to_owned(),
        _ => format!("it could not be read: {error}"),
    })?;
    let damaged = || "it was damaged".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("it has another layout")?;
    let (length, rest) = rest.split_first().ok_or_else(damaged)?;
    let (stamp, rest) = rest.split_at_checked(usize::from(*length)).ok_or_else(damaged)?;
    if stamp != short(build) {
        return Err("another build of this program wrote it".to_owned());
    }
    let (sum, payload) = rest.split_at_checked(32).ok_or_else(damaged)?;
    if Sha256::digest(payload)[..] != *sum {
        return Err(damaged());
    }
    let lines: Vec<OwnedLine> = postcard::from_bytes(payload).map_err(|_| damaged())?;
    Ok(lines.into_iter().map(|line| (line.location, (line.stamp, line.outcome))).collect())
}

/// Writes what is in the tree, atomically.
pub(super) fn save(file: &Path, build: &str, tree: &Tree, now: SystemTime) -> io::Result<()> {
    let lines: Vec<Line<'_>> = tree
        .records
        .values()
        .map(|record| Line { location: &record.location, stamp: record.stamp, outcome: &record.outcome })
        .collect();
    let payload = postcard::to_extend(&lines, Vec::new()).map_err(io::Error::other)?;
    let folder = file.parent().unwrap_or(file);
    private_files::create_folder(folder)?;
    let mut out = tempfile::Builder::new().prefix(".catalogue-").tempfile_in(folder)?;
    let stamp = short(build);
    out.write_all(MAGIC)?;
    out.write_all(&[u8::try_from(stamp.len()).unwrap_or(u8::MAX)])?;
    out.write_all(stamp)?;
    out.write_all(&Sha256::digest(&payload))?;
    out.write_all(&payload)?;
    out.persist(file).map_err(|error| error.error)?;
    remove_old(folder, file, now);
    Ok(())
}

fn short(build: &str) -> &[u8] {
    let bytes = build.as_bytes();
    &bytes[..bytes.len().min(usize::from(u8::MAX))]
}

fn remove_old(folder: &Path, current: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with("catalogue-") && entry.path() != current;
        let used = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let old = used.and_then(|used| now.duration_since(used).ok()).is_some_and(|age| age > KEPT);
        if ours
            && old
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!("an old cache stays: {error}");
        }
    }
}
