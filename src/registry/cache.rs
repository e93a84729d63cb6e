//! The warm-start cache: the result of reading each bundle, valid as long as size and modification time of its file
//! are unchanged.
//!
//! Layout: eight bytes of magic, then records in checksummed blocks: the build stamp, and a line (postcard) for each
//! bundle. Anything unexpected invalidates the whole file, which the next scan rebuilds.

use std::fs;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::roots::RootSpec;
use super::tree::{Known, Outcome, Stamp, Tree};
use skills_base::blocks::{BlockWriter, Blocks, FileFrom};
use skills_base::files::open_regular;
use skills_base::private_files;

/// Incremented when the layout changes. (A change of the parser changes the build stamp.)
const MAGIC: &[u8; 8] = b"SKILLS\x00\x02";

/// Age from which unused caches of other root sets are deleted.
const CACHE_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

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

/// Returns the cache file of a set of roots.
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

/// Reads a cache, if it was written by the same build.
///
/// # Errors
/// Returns the reason why it is not used, for diagnostics.
pub(super) fn load(file: &Path, build: &str) -> Result<Known, String> {
    let (opened, _) = open_regular(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "not found".to_owned(),
        _ => format!("unreadable: {error}"),
    })?;
    let damaged = || "damaged".to_owned();
    let mut magic = [0; MAGIC.len()];
    (&opened).read_exact(&mut magic).map_err(|_| damaged())?;
    if magic != *MAGIC {
        return Err("it has a different layout".to_owned());
    }
    let source = FileFrom::new(opened, MAGIC.len() as u64);
    let blocks = Blocks::open(Box::new(source), Arc::default()).map_err(|_| damaged())?;
    let mut reader = blocks.reader(0);
    if reader.record().map_err(|_| damaged())? != build.as_bytes() {
        return Err("it was written by another build of this program".to_owned());
    }
    let mut known = Known::new();
    while reader.at() < blocks.length() {
        let line = reader.record().map_err(|_| damaged())?;
        let line: OwnedLine = postcard::from_bytes(line).map_err(|_| damaged())?;
        known.insert(line.location, (line.stamp, line.outcome));
    }
    Ok(known)
}

/// Writes the content of the tree atomically.
pub(super) fn save(file: &Path, build: &str, tree: &Tree, now: SystemTime) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    private_files::create_folder(folder)?;
    let out = tempfile::Builder::new().prefix(".catalogue-").tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(64 * 1024, out);
    out.write_all(MAGIC)?;
    let mut blocks = BlockWriter::new(&mut out);
    blocks.record(build.as_bytes())?;
    let mut bytes = Vec::new();
    for record in tree.records.values() {
        bytes.clear();
        let line = Line { location: &record.location, stamp: record.stamp, outcome: &record.outcome };
        bytes = postcard::to_extend(&line, bytes).map_err(io::Error::other)?;
        blocks.record(&bytes)?;
    }
    blocks.finish()?;
    let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.persist(file).map_err(|error| error.error)?;
    remove_old(folder, file, now);
    Ok(())
}

fn remove_old(folder: &Path, current: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with("catalogue-") && entry.path() != current;
        let used = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let old = used.and_then(|used| now.duration_since(used).ok()).is_some_and(|age| age > CACHE_MAX_AGE);
        if ours
            && old
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!("cannot remove an old cache: {error}");
        }
    }
}
