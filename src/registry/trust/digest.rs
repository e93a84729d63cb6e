//! The digest of a bundle on disk: every file by path, execute bit and content. Links are hashed as links and never
//! followed; what cannot be pinned (a link that points outside, a pipe) is an error.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use skills_base::files::{self, FileStamp, MAX_DEPTH};
use skills_skill::{Digest, is_main_file};

/// Maximum number of pinned files: the digest is checked before every step.
pub const MAX_FILES: usize = 20_000;
/// Maximum size of pinned files in bytes.
pub const MAX_BYTES: u64 = 256 << 20;

/// Folders with executable content in a registry folder that is not a bundle itself.
const REGISTRY_FOLDERS: [&str; 4] = ["bindings", "capabilities", "scripts", "services"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    Executable,
    /// A symbolic link; its digest is that of its target path.
    Link,
}

/// A file as it was hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    pub kind: FileKind,
    /// SHA-256 of its content.
    pub sha256: Digest,
}

/// The digests of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleDigest {
    /// SHA-256 over all files: path, kind, content.
    pub digest: Digest,
    /// Every file by its path relative to the place, with `/` as separator.
    pub files: BTreeMap<String, SeenFile>,
    /// Total size of all files in bytes.
    pub bytes: u64,
}

/// Why a place cannot be pinned.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// A link points outside: its target could change unnoticed.
    #[error("`{0}` is a symbolic link that points outside the folder; replace it with the file")]
    LeadsOut(String),
    /// Neither a regular file, a folder nor a link.
    #[error("`{0}` is a pipe, socket or device; remove it from the folder")]
    Special(String),
    /// A name is not UTF-8.
    #[error("`{0}` has a name that is not UTF-8; rename it")]
    Name(String),
    /// Too many files.
    #[error(
        "there are more than {MAX_FILES} files; trust individual bundles, or list the folder under \
            `trust:` in your config.yaml"
    )]
    TooMany,
    /// The files are too large.
    #[error("there are more than {} MiB; trust individual bundles, or list the folder under `trust:` in \
        your config.yaml", MAX_BYTES >> 20)]
    TooLarge,
    /// The folders are nested too deeply.
    #[error("`{0}` is nested more than {MAX_DEPTH} levels deep; move it up")]
    TooDeep(String),
    /// The file system returned an error.
    #[error("`{path}` cannot be read: {source}")]
    Unreadable {
        path: String,
        /// The error of the system.
        source: io::Error,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: String,
    kind: FileKind,
    stamp: FileStamp,
}

/// A file found by the walk.
struct WalkedFile {
    stamp: Stamp,
    place: PathBuf,
}

/// A cached digest, which is valid as long as no stamp changes.
#[derive(Debug, Clone)]
pub(super) struct CachedDigest {
    stamps: Vec<Stamp>,
    at: SystemTime,
    measured: BundleDigest,
}

impl CachedDigest {
    /// Returns the digest if nothing can have changed since: same files, same stamps, and none of them so recent that
    /// a change could be hidden by coarse timestamps.
    fn if_unchanged(&self, found: &[WalkedFile]) -> Option<&BundleDigest> {
        let same = self.stamps.len() == found.len()
            && self.stamps.iter().zip(found).all(|(known, found)| *known == found.stamp);
        let is_settled = |file: &Stamp| file.stamp.is_settled(self.at);
        (same && self.stamps.iter().all(is_settled)).then_some(&self.measured)
    }
}

/// Computes the digests of a place (an absolute path without links), reusing an earlier result if it is still valid.
pub(super) fn measure(
    place: &Path,
    cached: Option<&CachedDigest>,
    now: SystemTime,
) -> Result<CachedDigest, DigestError> {
    let found = walk(place)?;
    if let Some(measured) = cached.and_then(|cached| cached.if_unchanged(&found)) {
        let measured = measured.clone();
        let at = cached.map_or(now, |cached| cached.at);
        return Ok(CachedDigest {
            stamps: found.into_iter().map(|found| found.stamp).collect(),
            at,
            measured,
        });
    }
    let mut files = BTreeMap::new();
    let mut bytes = 0;
    for file in &found {
        let sha256 = content(file, &mut bytes)?;
        files.insert(file.stamp.path.clone(), SeenFile { kind: file.stamp.kind, sha256 });
    }
    let measured = BundleDigest { digest: combined_digest(&files), files, bytes };
    Ok(CachedDigest { stamps: found.into_iter().map(|found| found.stamp).collect(), at: now, measured })
}

impl CachedDigest {
    pub fn into_measured(self) -> BundleDigest {
        self.measured
    }

    pub fn measured(&self) -> &BundleDigest {
        &self.measured
    }
}

/// Computes the combined digest over all files. Texts are prefixed by their lengths, so that no two sets of files have
/// the same encoding.
pub fn combined_digest(files: &BTreeMap<String, SeenFile>) -> Digest {
    let mut hash = Vec::with_capacity(files.len() * 96);
    for (path, file) in files {
        hash.extend((path.len() as u64).to_le_bytes());
        hash.extend(path.as_bytes());
        hash.push(match file.kind {
            FileKind::File => b'f',
            FileKind::Executable => b'x',
            FileKind::Link => b'l',
        });
        hash.extend(file.sha256.to_string().as_bytes());
    }
    Digest::of(&hash)
}

fn content(file: &WalkedFile, bytes: &mut u64) -> Result<Digest, DigestError> {
    let unreadable = |source| DigestError::Unreadable { path: file.stamp.path.clone(), source };
    if file.stamp.kind == FileKind::Link {
        let target = fs::read_link(&file.place).map_err(unreadable)?;
        return Ok(Digest::of(target.as_os_str().as_encoded_bytes()));
    }
    let (mut opened, _) = files::open_file(&file.place).map_err(|refusal| unreadable(refusal.into()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        let n = opened.read(&mut buffer).map_err(unreadable)?;
        if n == 0 {
            break;
        }
        *bytes += n as u64;
        if *bytes > MAX_BYTES {
            return Err(DigestError::TooLarge);
        }
        hash.update(&buffer[..n]);
    }
    Ok(Digest::from(<[u8; 32]>::from(hash.finalize())))
}

pub(super) fn is_bundle(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_main_file))
}

fn walk(place: &Path) -> Result<Vec<WalkedFile>, DigestError> {
    let mut walk = Walk { top: place, found: Vec::new(), bytes: 0 };
    if is_bundle(place) {
        walk.folder(place, "")?;
    } else {
        for name in REGISTRY_FOLDERS {
            walk.entry(&place.join(name), name.to_owned())?;
        }
    }
    walk.found.sort_by(|a, b| a.stamp.path.cmp(&b.stamp.path));
    Ok(walk.found)
}

struct Walk<'a> {
    top: &'a Path,
    found: Vec<WalkedFile>,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str) -> Result<(), DigestError> {
        let unreadable = |source| DigestError::Unreadable { path: prefix.to_owned(), source };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                return Err(DigestError::Name(format!("{prefix}{}", name.to_string_lossy())));
            };
            // The history of a bundle that is a repository of its own changes with every fetch, and cannot contain
            // scripts, which are below `scripts/`.
            if prefix.is_empty() && name == ".git" {
                continue;
            }
            self.entry(&entry.path(), format!("{prefix}{name}"))?;
        }
        Ok(())
    }

    fn entry(&mut self, place: &Path, path: String) -> Result<(), DigestError> {
        let metadata = match fs::symlink_metadata(place) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(DigestError::Unreadable { path, source }),
        };
        if metadata.is_dir() {
            if path.matches('/').count() >= MAX_DEPTH {
                return Err(DigestError::TooDeep(short(&path)));
            }
            return self.folder(place, &format!("{path}/"));
        }
        let kind = if metadata.is_symlink() {
            if !stays_inside(self.top, place) {
                return Err(DigestError::LeadsOut(path));
            }
            FileKind::Link
        } else if metadata.is_file() {
            if skills_base::files::is_executable(&metadata) { FileKind::Executable } else { FileKind::File }
        } else {
            return Err(DigestError::Special(path));
        };
        self.bytes += metadata.len();
        if self.found.len() >= MAX_FILES {
            return Err(DigestError::TooMany);
        }
        if self.bytes > MAX_BYTES {
            return Err(DigestError::TooLarge);
        }
        let stamp = Stamp { path, kind, stamp: FileStamp::of(&metadata) };
        self.found.push(WalkedFile { stamp, place: place.to_owned() });
        Ok(())
    }
}

/// Truncates a path that is too long for a message.
fn short(path: &str) -> String {
    const MAX_DISPLAYED: usize = 60;
    let shown: String = path.chars().take(MAX_DISPLAYED).collect();
    if shown.len() < path.len() { format!("{shown}…") } else { shown }
}

/// Returns whether a link points to something below `top` (or would, if its target existed).
fn stays_inside(top: &Path, link: &Path) -> bool {
    if let Ok(real) = files::canonicalize(link) {
        return real.starts_with(top);
    }
    // The target does not exist yet. Resolved lexically, so that it is also inside if it appears later.
    let Ok(target) = fs::read_link(link) else { return false };
    let mut at = link.parent().unwrap_or(top).to_owned();
    for part in target.components() {
        match part {
            Component::Normal(name) => at.push(name),
            Component::ParentDir => {
                at.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
        if !at.starts_with(top) {
            return false;
        }
    }
    true
}

/// Describes the differences between the pinned and the current files: `scripts/run.py`, `scripts/new.sh (new)`,
/// `old.md (gone)`, `run.py (execute bit)`.
pub(super) fn differences(
    pinned: &BTreeMap<String, SeenFile>,
    now: &BTreeMap<String, SeenFile>,
) -> Vec<String> {
    let mut out = Vec::new();
    for (path, file) in now {
        match pinned.get(path) {
            None => out.push(format!("{path} (new)")),
            Some(was) if was.sha256 != file.sha256 => out.push(path.clone()),
            Some(was) if was.kind != file.kind => out.push(match (was.kind, file.kind) {
                (FileKind::Link, _) | (_, FileKind::Link) => format!("{path} (changed from or to a link)"),
                _ => format!("{path} (execute bit)"),
            }),
            Some(_) => {}
        }
    }
    out.extend(pinned.keys().filter(|path| !now.contains_key(*path)).map(|path| format!("{path} (gone)")));
    out.sort();
    out
}
