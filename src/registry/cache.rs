//! The warm-start cache: the result of reading each bundle, valid as long as its file is unchanged.
//!
//! Layout: eight bytes of magic, then records in checksummed blocks: the build stamp, the number of folders, and a line
//! (postcard) for each folder and each bundle. Anything unexpected invalidates the whole file, which the next scan
//! rebuilds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use foldhash::{HashMap, HashMapExt as _};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::folder_state::{FolderState, KnownFolder, KnownFolders};
use super::roots::RootSpec;
use super::tree::{KnownOutcomes, Outcome, Record, Stamp, Tree};
use super::walk::Siblings;
use skills_base::blocks::{BlockWriter, Blocks, FileFrom};
use skills_base::files::open_regular;
use skills_base::private_files;

/// Incremented when the layout changes. (A change of the parser changes the build stamp.)
const MAGIC: &[u8; 8] = b"SKILLS\x00\x05";

/// Age from which unused caches of other root sets are deleted.
const CACHE_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The borrowed form of [`KnownOutcome`], for writing.
#[derive(Serialize)]
struct Line<'a> {
    stamp: Stamp,
    outcome: &'a Outcome,
}

/// Returns the cache file of a set of roots.
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
pub(super) fn load(file: &Path, build: &str) -> Result<(KnownOutcomes, KnownFolders), String> {
    let (opened, _) = open_regular(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "no cache yet".to_owned(),
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
    let mut folders = KnownFolders::default();
    let count: u64 = postcard::from_bytes(reader.record().map_err(|_| damaged())?).map_err(|_| damaged())?;
    for _ in 0..count {
        let line = reader.record().map_err(|_| damaged())?;
        let (path, state, main): FolderLine = postcard::from_bytes(line).map_err(|_| damaged())?;
        // Above it in the file: folders are in path order.
        let above = path.parent().and_then(|above| folders.get_mut(above.as_os_str()));
        if let (Some(above), Some(name)) = (above, path.file_name()) {
            above.folders.push(name.to_owned());
        }
        let main = main.map(|(name, siblings)| (name.into(), siblings));
        folders.insert(path.into_os_string(), KnownFolder { state, folders: Vec::new(), main });
    }
    let mut outcomes = KnownOutcomes::default();
    while reader.at() < blocks.length() {
        let line = reader.record().map_err(|_| damaged())?;
        outcomes.insert(postcard::from_bytes(line).map_err(|_| damaged())?);
    }
    Ok((outcomes, folders))
}

/// A folder, its state, and its main file with what is next to it.
type FolderLine = (PathBuf, Option<FolderState>, Option<(String, Siblings)>);

/// Returns the folders of a tree that were read, each once, those above others first.
fn folder_lines(tree: &Tree) -> Vec<FolderLine> {
    let mut mains: HashMap<&Path, Vec<&Record>> = HashMap::new();
    for record in tree.records.values() {
        if let Some(folder) = record.location.parent() {
            mains.entry(folder).or_default().push(record);
        }
    }
    let mut lines = BTreeMap::new();
    for ((_, path), read) in &tree.folders {
        // Serialization fails for other paths.
        if path.to_str().is_none() {
            continue;
        }
        let main = mains.get(&**path).and_then(|records| records.first());
        let main = main.and_then(|record| Some((main_name(record)?, record.stamp.siblings())));
        // A main file that could not be read is looked up again.
        let state = read.filter(|read| read.has_main == main.is_some()).map(|read| read.state);
        lines.entry(path.clone()).or_insert((state, main));
    }
    lines.into_iter().map(|(path, (state, main))| (path.to_path_buf(), state, main)).collect()
}

fn main_name(record: &Record) -> Option<String> {
    Some(record.location.file_name()?.to_str()?.to_owned())
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
    let folders = folder_lines(tree);
    blocks.record(&postcard::to_stdvec(&(folders.len() as u64)).map_err(io::Error::other)?)?;
    for line in &folders {
        bytes.clear();
        bytes = postcard::to_extend(line, bytes).map_err(io::Error::other)?;
        blocks.record(&bytes)?;
    }
    // A file that changed right before it was read could have changed again without another stamp.
    for record in tree.records.values().filter(|record| record.stamp.is_final) {
        bytes.clear();
        let line = Line { stamp: record.stamp, outcome: &record.outcome };
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::folder_state::{ReadFolder, reliable_device};
    use super::*;

    #[test]
    fn folders_with_an_unread_main_file_are_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        let device = reliable_device(dir.path());
        let Some(state) = FolderState::of(&at("a"), device) else {
            return println!("skipped: the file system is not known");
        };
        let mut tree = Tree::default();
        for (path, has_main) in [("a", false), ("a/b", true), ("a/c", false)] {
            let read = (path != "a/c").then_some(ReadFolder { state, has_main });
            tree.folders.insert((0, at(path).into()), read);
        }
        let file = at("cache.bin");
        save(&file, "build", &tree, SystemTime::now()).unwrap();
        let (outcomes, folders) = load(&file, "build").unwrap();
        assert!(outcomes.is_empty());
        let states = ["a", "a/b", "a/c"].map(|path| folders[at(path).as_os_str()].state);
        assert_eq!(states, [Some(state), None, None]);
        assert_eq!(folders[at("a").as_os_str()].folders, ["b", "c"]);
    }
}
