//! Finds bundles below a folder: every `SKILL.md` or lone `skill.yaml`; links are classified, and loops cannot occur.
//!
//! Links to folders are not followed. One that leads into a root is another path to content that is read there anyway;
//! one that leads elsewhere is rejected. So a walk terminates, and each file is read once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::folder_state::{self, FolderState, KnownFolders, ReadFolder};
use super::tree::Scan;
use skills_base::files::{MAX_COMPONENTS, MAX_DEPTH, canonicalize};
use skills_base::sync::MutexExt as _;
use skills_skill::is_main_file;

/// The folder of the versions of a repository, which is never read: it changes with every command of git, which puts no
/// file of a commit into it.
const VERSIONS: &str = ".git";

/// Folders that are not searched: they contain versions, dependencies and build products. A bundle that is such a folder
/// itself is found, because clients list it.
const SKIPPED: [&str; 3] = [VERSIONS, "node_modules", "target"];

/// Folders in which the system describes processes and devices: they contain no skills, and take longer to read than a
/// disk.
const SYSTEM_FOLDERS: [&str; 2] = ["/proc", "/sys"];

/// Something found by a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WalkEntry {
    /// A folder that was read, with what can be reused of that.
    Folder(PathBuf, Option<ReadFolder>),
    /// A bundle's main file, its real path, and what is next to it.
    Bundle(PathBuf, PathBuf, Siblings),
    /// A link to a folder in one of the roots, with its target.
    Link(PathBuf, PathBuf),
    /// A link to a folder or main file that points outside all roots, with its target.
    Leaves(PathBuf, PathBuf),
}

/// What is next to a main file and determines the kind of its bundle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Siblings {
    pub scripts: bool,
    pub contract: bool,
}

impl Siblings {
    /// Looks for them in a folder.
    pub fn of(folder: &Path) -> Self {
        Self { scripts: folder.join("scripts").is_dir(), contract: folder.join("skill.yaml").is_file() }
    }

    /// The same if the names in the folder are known: most folders have none of them.
    fn among(names: &[(OsString, FileType)], folder: &Path) -> Self {
        // Some file systems ignore case.
        let is_one =
            |name: &OsStr| name.eq_ignore_ascii_case("scripts") || name.eq_ignore_ascii_case("skill.yaml");
        if names.iter().any(|(name, _)| is_one(name)) { Self::of(folder) } else { Self::default() }
    }
}

/// Number of entries that a thread collects before it reports them: waking the receiver for each file takes longer
/// than reading the file.
const BATCH: usize = 64;

/// Walks `start` in parallel and reports what it finds, in batches from several threads. `real` is `start` without
/// links; `fences` are the real paths of all roots. `depth` is the depth of `start` below its root: nothing more than
/// [`MAX_DEPTH`] levels below a root is scanned. If `start` is shallow, only a bundle directly in it is found. Setting
/// `stop` ends the walk early.
pub(super) fn walk(
    start: &Path,
    real: &Path,
    fences: &[PathBuf],
    depth: usize,
    is_shallow: bool,
    scan: &Scan<'_>,
    see: &(dyn Fn(Vec<WalkEntry>) + Sync),
) {
    let Some(levels) = MAX_DEPTH.checked_sub(depth) else { return };
    let top = Folder { path: start.to_owned(), levels };
    let queue =
        Queue { state: Mutex::new(State { folders: vec![top], ..State::default() }), grown: Condvar::new() };
    let base = Base {
        start,
        is_shallow,
        real,
        fences,
        device: folder_state::reliable_device(start),
        known: scan.folders,
        system: SYSTEM_FOLDERS
            .iter()
            .filter_map(|folder| Some(start.join(Path::new(folder).strip_prefix(real).ok()?)))
            .collect(),
    };
    let work = || {
        let mut batch = Batch { seen: Vec::new(), see };
        while let Some(mut reading) = queue.next(scan.stop) {
            let Folder { path, levels } = reading.folder.clone();
            if let Err(error) = read_folder(&path, levels, &base, &mut batch, &mut reading.found) {
                tracing::warn!("skipping folder {}: {error}", path.display());
                batch.add(WalkEntry::Folder(path, None));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..scan.threads {
            scope.spawn(work);
        }
        work();
    });
}

/// The start of a walk, and what is known about the folders below it.
struct Base<'a> {
    start: &'a Path,
    is_shallow: bool,
    real: &'a Path,
    fences: &'a [PathBuf],
    /// The device on which the state of a folder identifies its content.
    device: Option<u64>,
    known: &'a KnownFolders,
    /// Those of [`SYSTEM_FOLDERS`] that are at or below the start, as paths of the walk.
    system: Vec<PathBuf>,
}

/// A folder to be read, with the number of levels below it that are scanned.
#[derive(Clone)]
struct Folder {
    path: PathBuf,
    levels: usize,
}

/// The folders of a walk that are not yet read.
struct Queue {
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Default)]
struct State {
    folders: Vec<Folder>,
    /// Number of folders being read.
    reading: usize,
    /// Number of threads that wait for a folder.
    waiting: usize,
}

/// A folder being read; the folders found in it are queued when it is dropped.
struct FolderReader<'q> {
    queue: &'q Queue,
    folder: Folder,
    found: Vec<Folder>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Returns the next folder; `None` at the end of the walk.
    fn next(&self, stop: &AtomicBool) -> Option<FolderReader<'_>> {
        let mut state = self.state();
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(folder) = state.folders.pop() {
                state.reading += 1;
                return Some(FolderReader { queue: self, folder, found: Vec::new() });
            }
            if state.reading == 0 {
                return None;
            }
            state.waiting += 1;
            state = self.grown.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl Drop for FolderReader<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.reading -= 1;
        state.folders.append(&mut self.found);
        if state.waiting > 0 {
            self.queue.grown.notify_all();
        }
    }
}

/// Reports what is in a folder, and collects the folders in it.
fn read_folder(
    folder: &Path,
    levels: usize,
    base: &Base<'_>,
    batch: &mut Batch<'_>,
    found: &mut Vec<Folder>,
) -> io::Result<()> {
    if base.system.iter().any(|system| system == folder) {
        tracing::warn!("skipping folder {}: it is a file system of the kernel", folder.display());
        return Ok(());
    }
    let Some(levels) = levels.checked_sub(1) else {
        batch.add(WalkEntry::Folder(folder.to_owned(), None));
        return Ok(());
    };
    let is_searched = !has_skipped_name(folder) || folder == base.start && !base.is_shallow;
    // Before it is read: a change meanwhile makes the state outdated.
    let (state, now) = (FolderState::of(folder, base.device), SystemTime::now());
    let unchanged = base.known.get(folder.as_os_str());
    if let Some(unchanged) = unchanged.filter(|known| state.is_some() && known.state == state) {
        let read = state.map(|state| ReadFolder { state, has_main: unchanged.main.is_some() });
        batch.add(WalkEntry::Folder(folder.to_owned(), read));
        if let Some((name, siblings)) = &unchanged.main {
            batch.add(bundle(&folder.join(name), base, *siblings));
        }
        // Those in a folder that is not searched are of another root.
        let folders = unchanged.folders.iter().filter(|_| is_searched);
        found.extend(folders.map(|name| Folder { path: folder.join(name), levels }));
        return Ok(());
    }
    let mut is_complete = true;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) {
            Ok(entry) => names.push(entry),
            Err(_) => is_complete = false,
        }
    }
    // The target of a link changes without the folder.
    let is_fixed =
        is_complete && names.iter().all(|(name, kind)| !kind.is_symlink() && name.to_str().is_some());
    let siblings = Siblings::among(&names, folder);
    let main = main_name(names.iter().filter_map(|(name, _)| name.to_str())).map(str::to_owned);
    let state = state.filter(|state| is_fixed && state.is_settled(now));
    let read = state.map(|state| ReadFolder { state, has_main: main.is_some() });
    batch.add(WalkEntry::Folder(folder.to_owned(), read));
    for (name, kind) in names {
        let is_main = main.as_deref().is_some_and(|main| name == main);
        if !is_main && (!is_searched || kind.is_dir() && name == VERSIONS) {
            continue;
        }
        let path = folder.join(&name);
        if kind.is_symlink() {
            if let Some(seen) = link(&path, base.fences) {
                batch.add(seen);
            }
            continue;
        }
        // A folder with the name of a main file is not a bundle, which has to be reported.
        if is_main {
            batch.add(bundle(&path, base, siblings));
        }
        if kind.is_dir() && is_searched {
            found.push(Folder { path, levels });
        }
    }
    Ok(())
}

/// Returns the entry of a main file below the start of a walk.
fn bundle(path: &Path, base: &Base<'_>, siblings: Siblings) -> WalkEntry {
    let real = path.strip_prefix(base.start).map_or_else(|_| path.to_owned(), |rest| base.real.join(rest));
    WalkEntry::Bundle(path.to_owned(), real, siblings)
}

/// Entries of one thread that are not reported yet; the rest is reported when the thread ends.
struct Batch<'a> {
    seen: Vec<WalkEntry>,
    see: &'a (dyn Fn(Vec<WalkEntry>) + Sync),
}

impl Batch<'_> {
    fn add(&mut self, seen: WalkEntry) {
        self.seen.push(seen);
        if self.seen.len() >= BATCH {
            (self.see)(std::mem::take(&mut self.seen));
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        (self.see)(std::mem::take(&mut self.seen));
    }
}

/// Classifies a link; returns `None` if it is broken, has too many components, or leads to any other file.
pub(super) fn link(path: &Path, fences: &[PathBuf]) -> Option<WalkEntry> {
    let target = fs::read_link(path).ok()?;
    if path.components().count() + target.components().count() > MAX_COMPONENTS {
        return None;
    }
    // Further links may lead deeper.
    let real = canonicalize(path).ok().filter(|real| real.components().count() <= MAX_COMPONENTS)?;
    let inside = fences.iter().any(|fence| real.starts_with(fence));
    let (at, folder) = (path.to_owned(), real.is_dir());
    let main = path.file_name().and_then(|name| name.to_str()).is_some_and(is_main_file);
    match (folder, inside) {
        (true, true) => Some(WalkEntry::Link(at, real)),
        (false, true) if main && is_the_main_file(path) => {
            let siblings = path.parent().map(Siblings::of).unwrap_or_default();
            Some(WalkEntry::Bundle(at, real, siblings))
        }
        (true, false) => Some(WalkEntry::Leaves(at, real)),
        (false, false) if main => Some(WalkEntry::Leaves(at, real)),
        (false, _) => None,
    }
}

/// Returns whether a path below a root leads through a skipped folder.
pub(super) fn passes_skipped(rest: &Path) -> bool {
    rest.components().any(|part| is_skipped(part.as_os_str().to_str()))
}

/// Returns whether a walk reads the folder of a path below a root: only the direct entries of a skipped folder, and nothing
/// that is too deep.
pub(super) fn is_reached(rest: &Path) -> bool {
    let mut parts = rest.iter();
    let skipped = parts.find(|part| is_skipped(part.to_str()));
    let is_read = skipped.is_none_or(|skipped| skipped != VERSIONS && parts.nth(1).is_none());
    is_read && rest.iter().count() <= MAX_DEPTH
}

/// Returns whether the name of a folder is that of a skipped one.
pub(super) fn has_skipped_name(folder: &Path) -> bool {
    is_skipped(folder.file_name().and_then(OsStr::to_str))
}

fn is_skipped(name: Option<&str>) -> bool {
    name.is_some_and(|name| SKIPPED.contains(&name))
}

pub(super) fn main_file(folder: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    main_name(names.iter().map(String::as_str)).map(|name| folder.join(name))
}

/// Returns which of the names in a folder is its main file: `SKILL.md`, otherwise the same name in a different case,
/// otherwise `skill.yaml`.
fn main_name<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    names
        .filter(|name| is_main_file(name))
        .min_by_key(|name| (*name != "SKILL.md", *name == "skill.yaml", *name))
}

fn is_the_main_file(path: &Path) -> bool {
    let exact = path.file_name().is_some_and(|name| name == "SKILL.md");
    exact || path.parent().and_then(main_file).is_some_and(|main| main == path)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use super::super::folder_state::KnownFolder;
    use super::super::tree::KnownOutcomes;
    use super::*;

    fn write(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    fn seen(root: &Path) -> Vec<String> {
        seen_knowing(root, &KnownFolders::default())
    }

    fn seen_knowing(root: &Path, folders: &KnownFolders) -> Vec<String> {
        let out = Mutex::new(Vec::new());
        let real = root.canonicalize().unwrap();
        let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
        let (known, stop, parsed) = (KnownOutcomes::default(), AtomicBool::new(false), AtomicUsize::new(0));
        let scan = Scan { known: &known, folders, stop: &stop, threads: 2, parsed: &parsed };
        walk(root, &real, std::slice::from_ref(&real), 0, false, &scan, &|seen| {
            let lines = seen.into_iter().filter_map(|seen| match seen {
                WalkEntry::Folder(..) => None,
                WalkEntry::Bundle(path, ..) => Some(format!("bundle {}", name(&path))),
                WalkEntry::Link(path, to) => Some(format!("link {} {}", name(&path), name(&to))),
                WalkEntry::Leaves(path, _) => Some(format!("leaves {}", name(&path))),
            });
            out.lock().unwrap().extend(lines);
        });
        let mut out = out.into_inner().unwrap();
        out.sort();
        out
    }

    #[test]
    fn walk_finds_hidden_and_nested_bundles_and_skips_builds() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "a/SKILL.md",
            "a/skill.yaml",
            "a/inner/deep/SKILL.md",
            ".claude/skills/b/SKILL.md",
            "c/skill.md",
            "d/skill.yaml",
            "e/README.md",
            ".git/SKILL.md",
            ".git/x/SKILL.md",
            "node_modules/SKILL.md",
            "node_modules/y/SKILL.md",
            "node_modules/target/SKILL.md",
            "target/z/SKILL.md",
            "f/target/SKILL.md",
            "f/target/scripts/SKILL.md",
        ] {
            write(dir.path(), path);
        }
        fs::write(dir.path().join(".gitignore"), "a/\n").unwrap();
        let expected = [
            ".claude/skills/b/SKILL.md",
            "a/SKILL.md",
            "a/inner/deep/SKILL.md",
            "c/skill.md",
            "d/skill.yaml",
            "f/target/SKILL.md",
            "node_modules/SKILL.md",
        ];
        assert_eq!(seen(dir.path()), expected.map(|path| format!("bundle {path}")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_systems_of_the_kernel_are_not_read() {
        let (known, folders) = (KnownOutcomes::default(), KnownFolders::default());
        let (stop, parsed, found) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let scan = Scan { known: &known, folders: &folders, stop: &stop, threads: 1, parsed: &parsed };
        let proc = Path::new("/proc");
        walk(proc, proc, &[], 0, false, &scan, &|seen| {
            found.fetch_add(seen.len(), Ordering::Relaxed);
            stop.store(!seen.is_empty(), Ordering::Relaxed);
        });
        assert_eq!(found.into_inner(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_is_read_again_when_it_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (root, folder) = (dir.path(), dir.path().join("a"));
        for path in ["a/SKILL.md", "a/inner/SKILL.md"] {
            write(root, path);
        }
        let state = || FolderState::of(&folder, folder_state::reliable_device(root));
        let Some(before) = state() else { return println!("skipped: the file system is not known") };
        // Another content, to see whether it is used.
        let main = Some(("skill.yaml".into(), Siblings::default()));
        let known = |state| {
            let entry = KnownFolder { state: Some(state), folders: vec!["inner".into()], main: main.clone() };
            KnownFolders::from_iter([(folder.clone().into_os_string(), entry)])
        };
        let known = known(before);
        assert_eq!(seen_knowing(root, &known), ["bundle a/inner/SKILL.md", "bundle a/skill.yaml"]);
        while state() == Some(before) {
            write(root, "a/new/SKILL.md");
            fs::remove_dir_all(folder.join("new")).unwrap();
        }
        assert_eq!(seen_knowing(root, &known), ["bundle a/SKILL.md", "bundle a/inner/SKILL.md"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_distinguished_and_a_loop_ends() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "a/SKILL.md");
        write(elsewhere.path(), "out/SKILL.md");
        fs::create_dir_all(root.join("b")).unwrap();
        symlink(root, root.join("a/loop")).unwrap();
        symlink(root.join("a"), root.join("alias")).unwrap();
        symlink(elsewhere.path().join("out"), root.join("out")).unwrap();
        symlink(elsewhere.path().join("out/SKILL.md"), root.join("b/SKILL.md")).unwrap();
        symlink(elsewhere.path().join("out/SKILL.md"), root.join("b/notes.md")).unwrap();
        symlink(root.join("nowhere"), root.join("broken")).unwrap();
        let expected =
            ["bundle a/SKILL.md", "leaves b/SKILL.md", "leaves out", "link a/loop ", "link alias a"];
        assert_eq!(seen(root), expected);
    }

    #[cfg(unix)]
    #[test]
    fn links_to_deep_folders_are_ignored() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let deep = ["d"; MAX_COMPONENTS].join("/");
        for folder in [deep.as_str(), "l"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(&deep, root.join("m")).unwrap();
        symlink("../m", root.join("l/k")).unwrap();
        symlink("../l", root.join("l/near")).unwrap();
        assert_eq!(seen(root), ["link l/near l"]);
    }
}
