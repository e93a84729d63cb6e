//! Locates a script inside its bundle, and copies the bundle for its execution, so that the digests are those of
//! exactly what the script can read.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use skills_base::files::{FileStamp, MAX_DEPTH, canonicalize, open_folder};
use skills_base::sync::MutexExt as _;
use skills_base::{hex, paths};

use super::error::SandboxError;

/// Maximum number of files, and maximum size in bytes, of a bundle whose scripts can run.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 256 << 20;

/// A script that is verified to be inside its bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLocation {
    /// The bundle's folder; its path contains no links.
    pub root: PathBuf,
    /// The script's path, relative to the bundle.
    pub script: PathBuf,
    pub executable: bool,
}

/// Resolves a script's path, including links; links in the bundle's own path are resolved if `follow_links` is set.
pub fn locate(root: &Path, follow_links: bool, script: &Path) -> Result<ScriptLocation, SandboxError> {
    let refused = |why| SandboxError::NotAScript { path: script.to_owned(), why };
    let mut normalized = PathBuf::new();
    for part in script.components() {
        match part {
            Component::Normal(name) => normalized.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(refused("it contains `..`")),
            Component::RootDir | Component::Prefix(_) => return Err(refused("it is absolute")),
        }
    }
    if !normalized.starts_with("scripts") || normalized.components().count() < 2 {
        return Err(refused("it is not below `scripts/`"));
    }
    let real = canonicalize(root).map_err(|source| SandboxError::io("opening the bundle", root, source))?;
    if !follow_links && real != root {
        return Err(SandboxError::Escapes { path: root.to_owned(), target: real });
    }
    let root = real;
    let target = canonicalize(&root.join(&normalized)).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SandboxError::Missing { script: normalized.clone(), bundle: root.clone() },
        // A NUL byte, or a name that is too long.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => refused("it is not a valid path"),
        io::ErrorKind::NotADirectory => refused("a part of it is not a folder"),
        _ => SandboxError::io("opening", &root.join(&normalized), source),
    })?;
    if !target.starts_with(&root) {
        return Err(SandboxError::Escapes { path: script.to_owned(), target });
    }
    let meta = fs::metadata(&target).map_err(|source| SandboxError::io("opening", &target, source))?;
    if !meta.is_file() {
        return Err(refused("it is not a regular file"));
    }
    Ok(ScriptLocation { root, script: normalized, executable: meta.mode() & 0o111 != 0 })
}

/// The content of a bundle as seen by a script: the digest of each entry by its path, with `/` as separator. A file is
/// represented by the SHA-256 of its content (followed by `x` if it is executable), a link by `link:` and the SHA-256
/// of its target.
pub type Contents = BTreeMap<String, String>;

/// Returns whether an entry is hidden from scripts: the history of a version control system, caches that interpreters
/// and tools write by themselves, temporary files of editors.
fn is_transient(name: &str, is_folder: bool) -> bool {
    const FOLDERS: [&str; 7] =
        [".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"];
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    if is_folder {
        return FOLDERS.contains(&name);
    }
    // The `.git` of a submodule or a second worktree is a file.
    matches!(name, ".git" | ".DS_Store" | "Thumbs.db")
        || (name.starts_with('.') && matches!(suffix, "swp" | "swo" | "swx"))
        || name.starts_with(".#")
        || name.ends_with('~')
}

/// Folders of a registry that belong together; the bundles below it are separate.
const REGISTRY_FOLDERS: [&str; 4] = ["bindings", "capabilities", "scripts", "services"];

/// Returns whether a folder is a registry folder and not a bundle itself.
fn is_registry(root: &Path) -> bool {
    let is_bundle = fs::read_dir(root).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            name.eq_ignore_ascii_case("SKILL.md") || name == "skill.yaml"
        })
    });
    !is_bundle && ["bindings", "capabilities", "services"].iter().any(|folder| root.join(folder).is_dir())
}

/// Copies the visible content of a bundle, readable by every user, and returns what was copied: the digests are
/// computed from the copied bytes, so that they match the copy regardless of changes of the original.
///
/// Every entry is opened relative to its folder, and no link is followed. Links are copied as links (those with an
/// absolute path into the bundle are redirected to the copy); pipes, sockets and devices are skipped, and so are
/// folders in which nothing is copied, because the digests do not cover them. A name that is not UTF-8 is an error.
pub fn copy(root: &Path, to: &Path) -> Result<Contents, SandboxError> {
    let mut walk = Walk::new(root, Some(to));
    walk.top(root)?;
    Ok(walk.contents)
}

/// Returns the contents that a copy would have now; reads every file.
pub fn contents(root: &Path) -> Result<Contents, SandboxError> {
    let mut walk = Walk::new(root, None);
    walk.top(root)?;
    Ok(walk.contents)
}

/// Reads the file at `path` in chunks, each passed to `take`; returns the SHA-256 of its bytes.
pub fn hash_chunks(
    file: &mut File,
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), SandboxError>,
) -> Result<String, SandboxError> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok(hex::encode(&hash.finalize())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(SandboxError::io("reading", path, error)),
        };
        hash.update(&buffer[..read]);
        take(&buffer[..read])?;
    }
}

type FileDigests = HashMap<String, (FileStamp, String)>;

/// Maximum number of bundles in the cache; beyond, it starts empty.
const MAX_CACHED: usize = 4096;

/// Caches the digests of bundles on disk. Files are read again only if their metadata has changed, which is sufficient
/// to notice an edit early; the digests of the copy decide what may run.
#[derive(Debug, Default)]
pub struct ContentsCache {
    bundles: Mutex<HashMap<PathBuf, Arc<FileDigests>>>,
}

impl ContentsCache {
    /// Returns the content of a bundle as a script would see it now. Accesses the metadata of every file.
    pub fn contents(&self, root: &Path) -> Result<Contents, SandboxError> {
        let bundles = || self.bundles.locked();
        let digests = bundles().get(root).cloned().unwrap_or_default();
        let mut walk = Walk { known: Some(digests), ..Walk::new(root, None) };
        // The path of the bundle itself may contain links, as chosen by its owner.
        let real =
            canonicalize(root).map_err(|source| SandboxError::io("opening the bundle", root, source))?;
        walk.top(&real)?;
        let mut bundles = bundles();
        // Bundles that no longer exist do not accumulate.
        if bundles.len() >= MAX_CACHED {
            bundles.clear();
        }
        bundles.insert(root.to_owned(), Arc::new(walk.seen));
        Ok(walk.contents)
    }
}

/// One traversal of a bundle.
struct Walk<'a> {
    root: &'a Path,
    /// The destination of a copy.
    to: Option<&'a Path>,
    /// Digests of an earlier traversal; `None` if every byte has to be read.
    known: Option<Arc<FileDigests>>,
    seen: FileDigests,
    contents: Contents,
    files: usize,
    bytes: u64,
    now: SystemTime,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, to: Option<&'a Path>) -> Self {
        Self {
            root,
            to,
            known: None,
            seen: FileDigests::new(),
            contents: Contents::new(),
            files: 0,
            bytes: 0,
            now: SystemTime::now(),
        }
    }

    fn top(&mut self, root: &Path) -> Result<(), SandboxError> {
        let folder =
            open_folder(root).map_err(|source| SandboxError::io("opening the bundle", root, source))?;
        let only = is_registry(root).then_some(&REGISTRY_FOLDERS[..]);
        self.folder(&folder, Path::new(""), only)
    }

    fn failed(&self, doing: &'static str, place: &Path, error: rustix::io::Errno) -> SandboxError {
        SandboxError::io(doing, &self.root.join(place), error.into())
    }

    fn folder(&mut self, folder: &File, place: &Path, only: Option<&[&str]>) -> Result<(), SandboxError> {
        if place.components().count() > MAX_DEPTH {
            return Err(SandboxError::bad(
                format!("bundle {}", self.root.display()),
                format!("has folders nested more than {MAX_DEPTH} levels deep; move their content up"),
            ));
        }
        let to = self.to.map(|to| to.join(place));
        if let Some(to) = &to {
            fs::create_dir(to).map_err(|source| SandboxError::io("creating", to, source))?;
        }
        let before = self.contents.len();
        let entries =
            rustix::fs::Dir::read_from(folder).map_err(|error| self.failed("reading", place, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| self.failed("reading", place, error))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_wanted = only.is_none_or(|only| only.iter().any(|requested| name == *requested));
            if name != "." && name != ".." && is_wanted {
                self.entry(folder, name, &place.join(name))?;
            }
        }
        let Some(to) = to else { return Ok(()) };
        if self.contents.len() == before && !place.as_os_str().is_empty() {
            return fs::remove_dir(&to).map_err(|source| SandboxError::io("deleting", &to, source));
        }
        set_mode(&to, 0o755)
    }

    fn record(&mut self, name: String, digest: String) -> Result<(), SandboxError> {
        let path = self.root.join(&name);
        if self.contents.insert(name, digest).is_none() {
            return Ok(());
        }
        let source = io::Error::other("listed twice; the folder changed while it was read");
        Err(SandboxError::io("reading", &path, source))
    }

    fn entry(&mut self, folder: &File, name: &OsStr, place: &Path) -> Result<(), SandboxError> {
        use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.failed("reading", place, error))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if is_transient(&name.to_string_lossy(), kind == FileType::Directory) {
            return Ok(());
        }
        self.count(1, 0)?;
        name_of(place)?;
        let open = |flags| {
            openat(folder, name, flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
                .map(File::from)
        };
        match kind {
            FileType::Directory => {
                let below = open(OFlags::DIRECTORY).map_err(|error| self.failed("opening", place, error))?;
                self.folder(&below, place, None)
            }
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new())
                    .map_err(|error| self.failed("reading", place, error))?;
                self.link(place, Path::new(OsStr::from_bytes(target.to_bytes())))
            }
            FileType::RegularFile => {
                // Opening a pipe that replaced the file in the meantime would block forever.
                let file = open(OFlags::NONBLOCK).map_err(|error| self.failed("opening", place, error))?;
                self.file(file, place)
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, files: usize, bytes: u64) -> Result<(), SandboxError> {
        self.files += files;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.files <= MAX_FILES && self.bytes <= MAX_BYTES {
            return Ok(());
        }
        Err(SandboxError::bad(
            format!("bundle {}", self.root.display()),
            format!(
                "has more than {MAX_FILES} files or {} MiB, all of which would be copied for each start \
                    of a script; move files that the script does not read out of the folder",
                MAX_BYTES >> 20
            ),
        ))
    }

    fn link(&mut self, place: &Path, target: &Path) -> Result<(), SandboxError> {
        // A link redirected to the copy has another target, but refers to the same file.
        let digest = hex::encode(&Sha256::digest(target.as_os_str().as_encoded_bytes()));
        self.record(name_of(place)?, format!("link:{digest}"))?;
        let Some(to) = self.to else { return Ok(()) };
        let (to, target) = (
            to.join(place),
            match target.strip_prefix(self.root) {
                Ok(inside) => to.join(inside),
                Err(_) => target.to_owned(),
            },
        );
        symlink(target, &to).map_err(|source| SandboxError::io("creating", &to, source))
    }

    fn file(&mut self, mut file: File, place: &Path) -> Result<(), SandboxError> {
        let path = self.root.join(place);
        let reading = |source| SandboxError::io("reading", &path, source);
        let meta = file.metadata().map_err(reading)?;
        if !meta.is_file() {
            return Ok(());
        }
        let (stamp, name) = (FileStamp::of(&meta), name_of(place)?);
        let unchanged =
            self.known.as_ref().and_then(|digests| digests.get(&name)).filter(|(seen, _)| *seen == stamp);
        if let Some((_, digest)) = unchanged.cloned() {
            self.count(0, meta.len())?;
            self.seen.insert(name.clone(), (stamp, digest.clone()));
            return self.record(name, digest);
        }
        let mut copy = match self.to {
            None => None,
            Some(to) => {
                let to = to.join(place);
                let made = File::options().write(true).create_new(true).open(&to);
                Some((made.map_err(|source| SandboxError::io("creating", &to, source))?, to))
            }
        };
        let mut digest = hash_chunks(&mut file, &path, |chunk| {
            self.count(0, chunk.len() as u64)?;
            let Some((copy, to)) = &mut copy else { return Ok(()) };
            copy.write_all(chunk).map_err(|source| SandboxError::io("writing", to, source))
        })?;
        let executable = meta.mode() & 0o111 != 0;
        if let Some((_, to)) = copy {
            set_mode(&to, if executable { 0o555 } else { 0o444 })?;
        }
        if executable {
            digest.push('x');
        }
        if stamp.is_settled(self.now) {
            self.seen.insert(name.clone(), (stamp, digest.clone()));
        }
        self.record(name, digest)
    }
}

/// Returns a path as a key of [`Contents`]. A path that is not UTF-8 is refused: escaped, it would be equal to the path
/// of another file.
pub fn name_of(place: &Path) -> Result<String, SandboxError> {
    place.to_str().map(str::to_owned).ok_or_else(|| {
        SandboxError::bad(format!("file `{}`", paths::escaped(place)), "its name is not UTF-8; rename it")
    })
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
        .map_err(|source| SandboxError::io("setting the mode of", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::create_dir(folder.path().join("scripts")).expect("created");
        fs::write(folder.path().join("scripts/run.py"), "print(1)").expect("written");
        fs::write(folder.path().join("lib.py"), "x = 1").expect("written");
        folder
    }

    #[test]
    fn a_script_is_found_below_scripts_only() {
        let bundle = bundle();
        let found = locate(bundle.path(), true, Path::new("./scripts/run.py")).expect("there");
        assert_eq!(found.script, Path::new("scripts/run.py"));
        assert!(!found.executable);
        for (path, word) in [
            ("lib.py", "below"),
            ("scripts", "below"),
            ("scripts/../lib.py", ".."),
            ("/etc/passwd", "absolute"),
            ("scripts/none.py", "not found"),
            ("scripts/run.py\0", "not a valid path"),
            (&format!("scripts/{}", "n".repeat(300)), "not a valid path"),
            ("scripts/run.py/x", "not a folder"),
        ] {
            let message = locate(bundle.path(), true, Path::new(path)).expect_err(path).to_string();
            assert!(message.contains(word), "{path}: {message}");
        }
    }

    #[test]
    fn link_out_of_the_bundle_is_not_a_script() {
        let bundle = bundle();
        let outside = tempfile::NamedTempFile::new().expect("temporary file");
        symlink(outside.path(), bundle.path().join("scripts/out.py")).expect("linked");
        let error = locate(bundle.path(), true, Path::new("scripts/out.py")).expect_err("leads out");
        assert!(matches!(error, SandboxError::Escapes { .. }), "{error}");
        symlink("../lib.py", bundle.path().join("scripts/in.py")).expect("linked");
        assert!(
            locate(bundle.path(), true, Path::new("scripts/in.py")).is_ok(),
            "a link inside stays inside"
        );
    }

    #[test]
    fn copy_is_readable_by_all_and_keeps_links_inside() {
        let bundle = bundle();
        let script = bundle.path().join("scripts/run.py");
        fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).expect("own file");
        symlink(bundle.path().join("lib.py"), bundle.path().join("link.py")).expect("linked");
        let place = tempfile::tempdir().expect("temporary folder");
        let to = place.path().join("copy");
        let copied = copy(bundle.path(), &to).expect("copied");
        assert_eq!(fs::metadata(to.join("scripts/run.py")).expect("there").mode() & 0o777, 0o555);
        assert_eq!(fs::read_link(to.join("link.py")).expect("a link"), to.join("lib.py"));
        assert_eq!(copied, ContentsCache::default().contents(bundle.path()).expect("read"));
        assert_eq!(copied.keys().collect::<Vec<_>>(), ["lib.py", "link.py", "scripts/run.py"]);
        assert!(copied["scripts/run.py"].ends_with('x') && !copied["lib.py"].ends_with('x'));
    }

    #[test]
    fn a_name_that_is_not_utf8_is_refused() {
        let bundle = bundle();
        fs::write(bundle.path().join(r"scripts/lib\xff.sh"), "literal").expect("written");
        let contents = contents(bundle.path()).expect("read");
        assert!(contents.contains_key(r"scripts/lib\xff.sh"), "{contents:?}");
        let other = bundle.path().join("scripts").join(OsStr::from_bytes(b"lib\xff.sh"));
        if fs::write(&other, "other").is_err() {
            // Some file systems accept only names in UTF-8.
            return;
        }
        let to = tempfile::tempdir().expect("temporary folder");
        for refused in [
            super::contents(bundle.path()),
            copy(bundle.path(), &to.path().join("copy")),
            ContentsCache::default().contents(bundle.path()),
        ] {
            let message = refused.expect_err("not UTF-8").to_string();
            assert!(message.contains(r"`scripts/lib\xff.sh`: its name is not UTF-8"), "{message}");
        }
    }

    #[test]
    fn a_folder_without_content_is_not_copied() {
        let bundle = bundle();
        let before = contents(bundle.path()).expect("read");
        fs::create_dir_all(bundle.path().join("flags/on")).expect("created");
        fs::create_dir_all(bundle.path().join("tools/__pycache__")).expect("created");
        let place = tempfile::tempdir().expect("temporary folder");
        let to = place.path().join("copy");
        assert_eq!(copy(bundle.path(), &to).expect("copied"), before);
        assert!(!to.join("flags").exists() && !to.join("tools").exists(), "not part of the digests");
        assert!(to.join("scripts/run.py").is_file());
    }

    #[test]
    fn contents_cover_every_file_a_script_can_read() {
        let bundle = bundle();
        let write = |name: &str, text: &str| {
            let path = bundle.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, text).expect("written");
        };
        let cache = ContentsCache::default();
        let before = cache.contents(bundle.path()).expect("read");
        for transient in ["scripts/__pycache__/run.pyc", ".git/HEAD", ".run.py.swp", "run.py~", ".DS_Store"] {
            write(transient, "x");
        }
        assert_eq!(cache.contents(bundle.path()).expect("read"), before);
        let to = tempfile::tempdir().expect("temporary folder");
        assert_eq!(
            copy(bundle.path(), &to.path().join("copy")).expect("copied"),
            before,
            "nor are they copied"
        );
        for name in ["references/word.sh", ".settings", "lib.py", "scripts/.hidden"] {
            let before = cache.contents(bundle.path()).expect("read");
            write(name, "y = 2");
            assert_ne!(cache.contents(bundle.path()).expect("read"), before, "{name}");
        }
        write("lib.py", "y = 3");
        let digest = cache.contents(bundle.path()).expect("read")["lib.py"].clone();
        write("lib.py", "y = 4");
        assert_ne!(cache.contents(bundle.path()).expect("read")["lib.py"], digest, "of the same length");
    }

    #[test]
    fn registry_copy_excludes_its_bundles() {
        let registry = bundle();
        for name in ["bindings/b.yaml", "skills/one/SKILL.md"] {
            let path = registry.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, "").expect("written");
        }
        let contents = ContentsCache::default().contents(registry.path()).expect("read");
        assert_eq!(contents.keys().collect::<Vec<_>>(), ["bindings/b.yaml", "scripts/run.py"]);
        fs::write(registry.path().join("SKILL.md"), "").expect("written");
        let contents = ContentsCache::default().contents(registry.path()).expect("read");
        assert!(
            contents.contains_key("skills/one/SKILL.md"),
            "a bundle is one whatever its folders are called"
        );
    }
}
