//! The current content of the roots: a record for each bundle found, the links, the folders. Updated incrementally;
//! the catalog is rebuilt from it each time.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foldhash::HashSet;
use serde::{Deserialize, Serialize};

use super::RootState;
use super::folder_state::{KnownFolders, RACY, ReadFolder};
use super::ordered_path::OrderedPath;
use super::roots::RootSpec;
use super::walk::{self, Siblings, WalkEntry, has_skipped_name, main_file, passes_skipped};
use skills_base::files::{MAX_DEPTH, canonicalize};
use skills_base::paths::escaped;
use skills_skill::lint::rules;
use skills_skill::{
    Finding, RealPaths, RefusalReason, RejectedBundle, Skill, SkillId, is_main_file, read_bundle_at,
};

/// Maximum number of queued batches of a walk.
const REPORT_QUEUE_SIZE: usize = 64;

/// Detects whether a bundle changed since it was read: the state of its main file, and the neighboring files that
/// determine its kind. Like [`FileStamp`](skills_base::files::FileStamp), it has the inode and its change time, because
/// archives and copies set the modification time; without the device, whose number can be another one after a restart.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct Stamp {
    bytes: u64,
    modified_ns: u64,
    inode: u64,
    changed_ns: u64,
    scripts: bool,
    contract: bool,
    /// Whether a change after the file was read changes the stamp.
    pub is_final: bool,
}

impl Stamp {
    fn of(location: &Path, siblings: Siblings) -> Option<Self> {
        let metadata = fs::metadata(location).ok()?;
        let Siblings { scripts, contract } = siblings;
        let (modified_ns, (inode, changed_ns)) = (nanoseconds(&metadata), inode(&metadata));
        let is_final = UNIX_EPOCH + Duration::from_nanos(changed_ns) + RACY < SystemTime::now();
        Some(Self { bytes: metadata.len(), modified_ns, inode, changed_ns, scripts, contract, is_final })
    }

    /// Returns whether nothing changed between the two.
    fn is_same(&self, other: &Self) -> bool {
        let state = |stamp: &Self| (stamp.bytes, stamp.modified_ns, stamp.inode, stamp.changed_ns);
        state(self) == state(other) && self.siblings() == other.siblings()
    }

    pub fn siblings(&self) -> Siblings {
        Siblings { scripts: self.scripts, contract: self.contract }
    }
}

fn nanoseconds(metadata: &Metadata) -> u64 {
    let age = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    age.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns the inode of a file, and the change time of the inode.
#[cfg(unix)]
fn inode(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanoseconds = u64::try_from(metadata.ctime_nsec()).unwrap_or(0);
    (metadata.ino(), seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

#[cfg(not(unix))]
fn inode(metadata: &Metadata) -> (u64, u64) {
    (0, nanoseconds(metadata))
}

/// The result of reading a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) enum Outcome {
    Skill(Arc<Skill>),
    Refused(Arc<RejectedBundle>),
}

/// A bundle that was found and read.
#[derive(Debug)]
pub(super) struct Record {
    pub location: PathBuf,
    /// The file without links: each real file counts once.
    pub real: PathBuf,
    /// The bundle's folder without links, if the main file itself is a link to a file that is not directly in it: that
    /// file may belong to another bundle.
    pub linked_from: Option<PathBuf>,
    pub stamp: Stamp,
    pub outcome: Outcome,
    /// The record under the id of a shadowed skill, cached so that snapshots share it.
    pub loser: OnceLock<Arc<Skill>>,
}

/// An outcome that is valid if the stamp is unchanged, identified by its location.
#[derive(Debug, Deserialize)]
pub(super) struct KnownOutcome {
    pub stamp: Stamp,
    pub outcome: Outcome,
}

/// Known outcomes, found by location as text.
pub(super) type KnownOutcomes = HashSet<KnownOutcome>;

impl Borrow<OsStr> for KnownOutcome {
    fn borrow(&self) -> &OsStr {
        let location = match &self.outcome {
            Outcome::Skill(skill) => &skill.location,
            Outcome::Refused(refusal) => &refusal.location,
        };
        location.as_os_str()
    }
}

impl Hash for KnownOutcome {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<OsStr>::borrow(self).hash(state);
    }
}

impl PartialEq for KnownOutcome {
    fn eq(&self, other: &Self) -> bool {
        Borrow::<OsStr>::borrow(self) == Borrow::<OsStr>::borrow(other)
    }
}

impl Eq for KnownOutcome {}

impl Record {
    /// Returns whether the main file is a link to a file outside of the bundle's folder.
    pub fn is_link_elsewhere(&self) -> bool {
        self.linked_from.as_ref().is_some_and(|folder| !self.real.starts_with(folder))
    }

    /// Returns its outcome for the next scan.
    pub fn known(&self) -> KnownOutcome {
        KnownOutcome { stamp: self.stamp, outcome: self.outcome.clone() }
    }
}

/// A root with its state on disk.
#[derive(Debug)]
pub(super) struct ScannedRoot {
    pub spec: RootSpec,
    pub state: RootState,
    /// The folder without links, if it exists.
    pub real: Option<PathBuf>,
}

/// Key of everything found: root, then path.
pub(super) type Key = (usize, OrderedPath);

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub roots: Vec<ScannedRoot>,
    pub records: BTreeMap<Key, Arc<Record>>,
    /// Links to folders inside of roots, with their targets.
    pub links: BTreeMap<Key, PathBuf>,
    /// Links that point outside the roots.
    pub refused_links: BTreeMap<Key, Arc<RejectedBundle>>,
    pub folders: BTreeMap<Key, Option<ReadFolder>>,
}

/// Reports of scanning threads.
pub(super) enum ScanReport {
    /// Number of further bundles that are not read yet.
    Found(usize),
    Read(usize, Record),
    Seen(usize, WalkEntry),
}

/// The context of a scan.
pub(super) struct Scan<'a> {
    pub known: &'a KnownOutcomes,
    pub folders: &'a KnownFolders,
    pub stop: &'a AtomicBool,
    pub threads: usize,
    /// Number of files that were parsed because no known outcome was valid.
    pub parsed: &'a AtomicUsize,
}

impl Tree {
    /// Creates a tree with the state of the roots, without scanning them.
    pub fn new(specs: Vec<RootSpec>) -> Self {
        Self { roots: specs.into_iter().map(probe_root).collect(), ..Self::default() }
    }

    /// Returns the real paths of the roots that exist.
    pub fn real_roots(&self) -> Vec<PathBuf> {
        self.roots.iter().filter_map(|root| root.real.clone()).collect()
    }

    /// Processes one report.
    pub fn apply(&mut self, event: ScanReport) {
        match event {
            ScanReport::Found(_) | ScanReport::Seen(_, WalkEntry::Bundle(..)) => {}
            ScanReport::Read(root, record) => match self
                .path_outside_roots(&record)
                .or_else(|| self.renamed_file_outside_project(root, &record))
            {
                Some(to) => self.apply(ScanReport::Seen(root, WalkEntry::Leaves(record.location, to))),
                None => {
                    self.records.insert((root, record.location.clone().into()), Arc::new(record));
                }
            },
            ScanReport::Seen(root, WalkEntry::Folder(path, read)) => {
                self.folders.insert((root, path.into()), read);
            }
            ScanReport::Seen(root, WalkEntry::Link(path, to)) => {
                self.links.insert((root, path.into()), to);
            }
            ScanReport::Seen(root, WalkEntry::Leaves(path, to)) => {
                let refusal = leaves_root(&path, &to, &self.roots[root].spec);
                self.refused_links.insert((root, path.into()), Arc::new(refusal));
            }
        }
    }

    /// Returns whether a real path is in one of the roots.
    fn contains(&self, real: &Path) -> bool {
        let mut fences = self.roots.iter().filter_map(|root| root.real.as_ref());
        fences.any(|fence| is_below(real, fence))
    }

    /// Returns the real path of a bundle's file or folder that is in no root: a parent folder was replaced by a link
    /// between two accesses.
    fn path_outside_roots(&self, record: &Record) -> Option<PathBuf> {
        let folder = match &record.outcome {
            Outcome::Skill(skill) => skill.real_folder(),
            Outcome::Refused(_) => &record.real,
        };
        [&record.real, folder].into_iter().find(|real| !self.contains(real)).map(Path::to_owned)
    }

    /// Returns the real path of a file of another name outside the project of the root: a link in a repository must not
    /// turn any file of the user into a skill.
    fn renamed_file_outside_project(&self, root: usize, record: &Record) -> Option<PathBuf> {
        let project = self.roots[root].spec.project.as_ref()?;
        let is_main = record.real.file_name().and_then(OsStr::to_str).is_some_and(is_main_file);
        (!is_main && !is_below(&record.real, project)).then(|| record.real.clone())
    }

    /// Walks a root from `first` and reads the bundles found, then the targets of links into folders that are not searched,
    /// each once.
    /// Blocks until all reports are processed; `meanwhile` is called after each.
    pub fn scan(
        &mut self,
        root: usize,
        first: &Path,
        scan: &Scan<'_>,
        meanwhile: &mut dyn FnMut(&Self, &ScanReport),
    ) {
        let fences = self.real_roots();
        let mut starts = vec![first.to_owned()];
        let followed = self.links.iter().filter(|(key, _)| key.0 == root && self.folders.contains_key(key));
        let followed: BTreeSet<PathBuf> = followed.map(|(_, to)| to.clone()).collect();
        let mut walked: BTreeSet<PathBuf> = BTreeSet::new();
        while let Some(start) = starts.pop() {
            let Ok(real) = canonicalize(&start) else { continue };
            if !self.contains(&real) {
                self.apply(ScanReport::Seen(root, WalkEntry::Leaves(start, real)));
                continue;
            }
            if !walked.insert(real.clone()) || start != first && followed.contains(&real) {
                continue;
            }
            let top = &self.roots[root].spec.path;
            let depth = start.strip_prefix(top).map_or(0, |below| below.components().count());
            let is_shallow = self.is_shallow(root, &start);
            let (send, receive) = mpsc::sync_channel(REPORT_QUEUE_SIZE);
            std::thread::scope(|scope| {
                let (fences, real, start) = (&fences, &real, &start);
                scope.spawn(move || {
                    walk::walk(start, real, fences, depth, is_shallow, scan, &|seen| {
                        report(root, seen, scan, &send);
                    });
                    // Dropping the last sender closes the channel.
                    drop(send);
                });
                for event in receive.into_iter().flatten() {
                    let into_skipped = match &event {
                        ScanReport::Seen(_, WalkEntry::Link(path, to)) => {
                            self.is_skipped(to).then(|| path.clone())
                        }
                        _ => None,
                    };
                    meanwhile(self, &event);
                    self.apply(event);
                    starts.extend(into_skipped);
                }
            });
        }
    }

    /// Returns the links into folders that are not searched, with their targets, and whether they were followed.
    pub fn links_into_skipped(&self) -> impl Iterator<Item = (&Key, &Path, bool)> {
        let links = self.links.iter().filter(|(_, to)| self.is_skipped(to));
        links.map(|(key, to)| (key, to.as_path(), self.folders.contains_key(key)))
    }

    /// Returns whether a real path of a folder inside of the roots is in a folder that walks skip, or too deep for them.
    pub fn is_skipped(&self, real: &Path) -> bool {
        let is_unsearched = |rest: &Path| passes_skipped(rest) || rest.iter().count() >= MAX_DEPTH;
        // Most paths pass no such folder at all.
        if !is_unsearched(real) {
            return false;
        }
        let rests = self.roots.iter().filter_map(|root| real.strip_prefix(root.real.as_ref()?).ok());
        let mut rests = rests.peekable();
        rests.peek().is_some() && rests.all(is_unsearched)
    }

    /// Returns whether a walk of a root looks only for a bundle directly in a folder, because of its name.
    pub fn is_shallow(&self, root: usize, folder: &Path) -> bool {
        has_skipped_name(folder)
            && folder != self.roots[root].spec.path
            && !self.links.contains_key(&(root, folder.into()))
    }

    /// Removes everything at and below a path.
    pub fn remove(&mut self, root: usize, path: &Path) {
        remove_below(&mut self.records, root, path);
        remove_below(&mut self.links, root, path);
        remove_below(&mut self.refused_links, root, path);
        remove_below(&mut self.folders, root, path);
    }

    /// Reads the bundle in a folder again, regardless of known outcomes.
    pub fn reread(&mut self, root: usize, folder: &Path, scan: &Scan<'_>) {
        let here = self.records.range((root, folder.into())..);
        let here = here.take_while(|((r, path), _)| *r == root && path.starts_with(folder));
        let stale: Vec<Key> =
            here.filter(|((_, p), _)| p.parent() == Some(folder)).map(|(k, _)| k.clone()).collect();
        for key in stale {
            self.records.remove(&key);
            self.refused_links.remove(&key);
        }
        let Some(main) = main_file(folder) else { return };
        let Ok(real) = canonicalize(&main) else { return };
        if !self.contains(&real) {
            self.apply(ScanReport::Seen(root, WalkEntry::Leaves(main, real)));
        } else if let Some(record) = read(main, real, None) {
            scan.parsed.fetch_add(1, Ordering::Relaxed);
            self.apply(ScanReport::Read(root, record));
        }
    }

    /// Returns the names of the direct children of a root that are a bundle or a link, or have one below them.
    pub fn children_with_bundles(&self, root: usize) -> HashSet<&OsStr> {
        let top = self.roots[root].spec.path.as_path();
        let records = self.records.keys().chain(self.links.keys()).chain(self.refused_links.keys());
        let paths = records.filter(|(at, _)| *at == root);
        paths.filter_map(|(_, path)| path.strip_prefix(top).ok()?.iter().next()).collect()
    }

    /// Returns the nearest folder at or above `path` that is a bundle.
    pub fn enclosing_bundle(&self, root: usize, path: &Path) -> Option<PathBuf> {
        let top = &self.roots[root].spec.path;
        let mut folders = path.ancestors().take_while(|folder| folder.starts_with(top));
        folders.find(|folder| self.has_bundle(root, folder)).map(Path::to_owned)
    }

    fn has_bundle(&self, root: usize, folder: &Path) -> bool {
        // Main files are named `SKILL.md` anyway or `skill.yaml`; none is outside of this range.
        let from = (root, folder.join("SKILL.MD").into());
        let until = (root, folder.join("skill.yaml").into());
        let mut near = self.records.range(from..=until);
        near.any(|((_, path), _)| {
            path.parent() == Some(folder)
                && path.file_name().and_then(|n| n.to_str()).is_some_and(is_main_file)
        })
    }
}

/// Returns whether a real path is another one or below it. Real paths have one form, so bytes are compared.
fn is_below(real: &Path, top: &Path) -> bool {
    let [real, top] = [real, top].map(|path| path.as_os_str().as_encoded_bytes());
    real.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || top == b"/")
}

/// Determines the state of a root on disk.
pub(super) fn probe_root(spec: RootSpec) -> ScannedRoot {
    let real = canonicalize(&spec.path);
    let (state, real) = match real {
        Ok(real) if !real.is_dir() => (RootState::Unreadable("it is a file, not a folder".to_owned()), None),
        Ok(real) => match fs::read_dir(&real) {
            Ok(_) => (RootState::Present, Some(real)),
            Err(error) => (RootState::Unreadable(error.to_string()), None),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let is_link = fs::symlink_metadata(&spec.path).is_ok();
            let broken = || RootState::Unreadable("it is a broken symbolic link".to_owned());
            (if is_link { broken() } else { RootState::Missing }, None)
        }
        Err(error) => (RootState::Unreadable(error.to_string()), None),
    };
    ScannedRoot { spec, state, real }
}

/// Reads the bundles of a batch, and sends all reports in one message.
fn report(root: usize, batch: Vec<WalkEntry>, scan: &Scan<'_>, send: &mpsc::SyncSender<Vec<ScanReport>>) {
    let found = batch.iter().filter(|seen| matches!(seen, WalkEntry::Bundle(..))).count();
    // The receiver may be closed.
    let _ = send.send(vec![ScanReport::Found(found)]);
    // A stopped scan is not used.
    let batch = batch.into_iter().take_while(|_| !scan.stop.load(Ordering::Relaxed));
    let event = batch.filter_map(|seen| match seen {
        WalkEntry::Bundle(location, real, siblings) => {
            known_or_read(location, real, siblings, scan).map(|record| ScanReport::Read(root, record))
        }
        other => Some(ScanReport::Seen(root, other)),
    });
    let _ = send.send(event.collect());
}

fn known_or_read(location: PathBuf, real: PathBuf, siblings: Siblings, scan: &Scan<'_>) -> Option<Record> {
    let stamp = Stamp::of(&location, siblings)?;
    let unchanged = scan.known.get(location.as_os_str()).filter(|known| known.stamp.is_same(&stamp));
    if let Some(&KnownOutcome { stamp, ref outcome }) = unchanged {
        let places = RealPaths::of(&location, real.clone()).ok()?;
        let linked_from = linked_from(&places);
        let outcome = with_real_location(outcome.clone(), places);
        return Some(Record { location, real, linked_from, stamp, outcome, loser: OnceLock::new() });
    }
    scan.parsed.fetch_add(1, Ordering::Relaxed);
    read(location, real, Some(stamp))
}

/// Reads a bundle. Returns `None` if the file no longer exists.
fn read(location: PathBuf, real: PathBuf, stamp: Option<Stamp>) -> Option<Record> {
    // The stamp is determined first: a change during the read then makes it stale, never the other way round.
    let stamp = stamp.or_else(|| Stamp::of(&location, Siblings::of(location.parent()?)))?;
    let places = RealPaths::of(&location, real.clone()).ok()?;
    let linked_from = linked_from(&places);
    let outcome = match read_bundle_at(&location, places) {
        Ok(skill) => Outcome::Skill(Arc::new(skill)),
        Err(_) if !location.exists() => return None,
        Err(refusal) => Outcome::Refused(Arc::new(refusal)),
    };
    Some(Record { location, real, linked_from, stamp, outcome, loser: OnceLock::new() })
}

/// Returns the bundle's folder if its main file is a link to a file that is not directly in it. Real paths have one form,
/// so bytes are compared.
fn linked_from(places: &RealPaths) -> Option<PathBuf> {
    let is_inside = places.location.parent().map(Path::as_os_str) == Some(places.folder.as_os_str());
    (!is_inside).then(|| places.folder.clone())
}

/// Sets the real location of the outcome's bundle, which is not cached with it.
fn with_real_location(outcome: Outcome, real: RealPaths) -> Outcome {
    match outcome {
        Outcome::Skill(skill) => {
            let linked = real.location != skill.location || real.folder != skill.root_dir;
            if linked {
                Outcome::Skill(Arc::new(Arc::unwrap_or_clone(skill).with_location(real)))
            } else {
                Outcome::Skill(skill)
            }
        }
        refused @ Outcome::Refused(_) => refused,
    }
}

fn leaves_root(path: &Path, to: &Path, root: &RootSpec) -> RejectedBundle {
    let name = PathBuf::from(path.file_name().unwrap_or_default());
    let main = name.to_str().is_some_and(is_main_file);
    let folder = if main { path.parent().unwrap_or(path) } else { path };
    let id = escaped(Path::new(folder.file_name().unwrap_or_default()));
    RejectedBundle {
        id: SkillId::new(id),
        location: path.to_owned(),
        reason: RefusalReason::LeavesRoot,
        findings: vec![Finding {
            code: rules::LINK_LEAVES_ROOT.code.to_owned(),
            severity: rules::LINK_LEAVES_ROOT.severity,
            field: None,
            file: name,
            span: None,
            message: format!("the symbolic link points to {}, outside the root {}", to.display(), root.label),
            help: rules::LINK_LEAVES_ROOT.help.to_owned(),
            fixable: false,
        }],
    }
}

fn remove_below<T>(map: &mut BTreeMap<Key, T>, root: usize, path: &Path) {
    let gone = keys_below(map.range((root, path.into())..).map(|(key, _)| key), root, path);
    for key in gone {
        map.remove(&key);
    }
}

fn keys_below<'a>(keys: impl Iterator<Item = &'a Key>, root: usize, path: &Path) -> Vec<Key> {
    keys.take_while(|(r, p)| *r == root && p.starts_with(path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RootOrigin;

    const SKILL: &str = "---\nname: x\ndescription: Does x.\n---\nbody\n";

    fn tree(root: &Path) -> Tree {
        let spec = RootSpec {
            path: root.to_owned(),
            label: "root".to_owned(),
            project_label: None,
            project: None,
            origin: RootOrigin::Argument,
        };
        Tree::new(vec![spec])
    }

    #[cfg(unix)]
    #[test]
    fn nothing_outside_of_the_roots_is_read() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [inside.path().join("own"), outside.path().join("deep/private")] {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("SKILL.md"), SKILL).unwrap();
        }
        let swapped = inside.path().join("swapped");
        std::os::unix::fs::symlink(outside.path(), &swapped).unwrap();
        let mut tree = tree(inside.path());
        let (known, folders) = (KnownOutcomes::default(), KnownFolders::default());
        let (stop, parsed) = (AtomicBool::new(false), AtomicUsize::new(0));
        let scan = Scan { known: &known, folders: &folders, stop: &stop, threads: 2, parsed: &parsed };
        // The case of a folder that was replaced by a link after the event that triggers the rescan.
        tree.scan(0, &swapped, &scan, &mut |_, _| {});
        assert!(tree.records.is_empty(), "{:?}", tree.records.keys());
        assert_eq!(tree.refused_links.keys().collect::<Vec<_>>(), [&(0, swapped.as_path().into())]);
        // The case of a replacement between the walk and the read.
        let location = swapped.join("deep/private/SKILL.md");
        let record = read(location.clone(), location.canonicalize().unwrap(), None).unwrap();
        tree.apply(ScanReport::Read(0, record));
        assert!(tree.records.is_empty(), "{:?}", tree.records.keys());
        let location = inside.path().join("own/SKILL.md");
        let record = read(location.clone(), location.canonicalize().unwrap(), None).unwrap();
        tree.apply(ScanReport::Read(0, record));
        assert_eq!(tree.records.len(), 1);
    }
}
