//! `trust.json`: the pins of the user. Written to a temporary file and renamed, under a lock, so that concurrent
//! changes by two processes are both kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::TrustError;
use super::digest::SeenFile;
use skills_base::private_files;
use skills_skill::{Digest, read_regular};

/// Version of the file's layout. A file with a newer one is rejected, never overwritten.
const VERSION: u32 = 1;
/// Maximum size in bytes; a larger file was not written by this program.
const MAX_BYTES: u64 = 64 << 20;

/// A bundle (or the executable parts of a registry folder) as it was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Its folder, absolute and without links.
    pub path: PathBuf,
    /// SHA-256 over all its files.
    pub digest: Digest,
    /// When it was trusted: RFC 3339, UTC.
    pub at: String,
    /// Every file as it was hashed.
    pub files: BTreeMap<String, SeenFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    version: u32,
    pins: Vec<Pin>,
}

/// Only the version, which is checked before the rest is parsed.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

pub(super) type Pins = BTreeMap<PathBuf, Pin>;

/// Reads the pins; empty if there is no file.
pub(super) fn read(file: &Path) -> Result<Pins, TrustError> {
    let bytes = match read_regular(file, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pins::new()),
        Err(source) => return Err(TrustError::Io { file: file.to_owned(), source }),
    };
    let damaged =
        |error: serde_json::Error| TrustError::Damaged { file: file.to_owned(), why: error.to_string() };
    let Version { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if version > VERSION {
        return Err(TrustError::Newer { file: file.to_owned(), version });
    }
    let written: TrustFile = serde_json::from_slice(&bytes).map_err(damaged)?;
    Ok(written.pins.into_iter().map(|pin| (pin.path.clone(), pin)).collect())
}

/// Changes the pins under the lock, after reading changes by other processes.
pub(super) fn change<T>(
    file: &Path,
    change: impl FnOnce(&mut Pins) -> Result<T, TrustError>,
) -> Result<T, TrustError> {
    let io = |source| TrustError::Io { file: file.to_owned(), source };
    let folder = file.parent().unwrap_or(file);
    private_files::create_folder(folder).map_err(io)?;
    let lock = lock(&file.with_extension("lock")).map_err(io)?;
    let mut pins = read(file)?;
    let before = pins.clone();
    let answer = change(&mut pins)?;
    if pins != before {
        write(file, folder, pins).map_err(io)?;
    }
    drop(lock);
    Ok(answer)
}

/// Locks the file until it is closed (`flock(2)`, `LockFileEx`).
fn lock(file: &Path) -> io::Result<File> {
    let lock = private_files::open_append(file)?;
    lock.lock()?;
    Ok(lock)
}

fn write(file: &Path, folder: &Path, pins: Pins) -> io::Result<()> {
    let written = TrustFile { version: VERSION, pins: pins.into_values().collect() };
    // Temporary files of the `tempfile` crate are readable only by their owner, also after the rename.
    let mut out = tempfile::Builder::new().prefix(".trust-").tempfile_in(folder)?;
    serde_json::to_writer_pretty(&mut out, &written)?;
    out.write_all(b"\n")?;
    out.as_file().sync_all()?;
    out.persist(file)?;
    // Syncing the folder makes the rename durable.
    File::open(folder)?.sync_all()
}
