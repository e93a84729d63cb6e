//! The catalog snapshot: all skills of all roots at one point in time, with winners and shadowed skills.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use skills_skill::{RejectedBundle, Skill, SkillId};

/// Where a root comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootOrigin {
    /// `--root` on the command line.
    Argument,
    /// The user's or the project's configuration file.
    Config,
    /// A known client's folder between the working directory and the repository root.
    Project {
        /// The client's id, e.g. `claude-code`.
        client: String,
    },
    /// A known client's folder in the home directory.
    User {
        /// The client's id.
        client: String,
    },
    /// The skills embedded in this program.
    Shipped,
}

/// The state of a root on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootState {
    /// It was read.
    Present,
    /// The folder does not exist.
    Missing,
    /// Not readable; the error of the operating system.
    Unreadable(String),
}

/// A folder in which skills are searched. The order of roots is the order of precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Root {
    /// Absolute path.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub path: PathBuf,
    /// For display, and the name in the rules of a policy: `~/.claude/skills`, `./.agents/skills`, `shipped`.
    pub label: String,
    /// The label that a project's settings file gives it. Only for display, after `label`: no rule is compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_label: Option<String>,
    /// Whether only the project in which the program was started names it: its content may be anyone's.
    #[serde(skip)]
    pub of_project: bool,
    /// Where it comes from.
    pub origin: RootOrigin,
    /// State of the root on disk.
    pub state: RootState,
    /// Whether file events are available there (else it is polled).
    pub live: bool,
}

impl Root {
    /// Returns its label, with the label of a project's settings file in parentheses.
    pub fn title(&self) -> Cow<'_, str> {
        match &self.project_label {
            Some(label) => format!("{} ({label})", self.label).into(),
            None => Cow::Borrowed(&self.label),
        }
    }
}

/// A bundle whose id was taken by one of higher precedence. It is listed and addressable, but not ranked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shadowed {
    /// The record; its id is `id@` + eight hex digits of its digest. If several shadowed skills have the same digest
    /// (copies), all but the first also have `.` + six hex digits of their location's SHA-256.
    pub skill: Arc<Skill>,
    /// Index into `roots` of the catalog.
    pub root: usize,
    /// The id for which another bundle has precedence.
    pub lost: SkillId,
    /// Location of the winner.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub winner: PathBuf,
    /// Whether its SKILL.md is byte for byte equal to the winner's.
    pub identical: bool,
}

/// An entry of the catalog: a skill and the root it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// The record.
    pub skill: Arc<Skill>,
    /// Index into `roots` of the catalog.
    pub root: usize,
}

/// Another path of a file that is already in the catalog: through a link, or because two roots overlap. A
/// file counts once, at the path of highest precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Alias {
    /// Absolute path, as found.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Index into `roots` of the catalog.
    pub root: usize,
    /// Location of the entry, shadowed skill or rejected bundle that is the same file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub same_as: PathBuf,
}

/// Maximum number of paths through links to folders that [`Catalog::aliases`] has for each file: a few thousand links
/// to a folder with a few thousand skills are millions of paths.
pub(super) const MAX_LINKED_PATHS: usize = 32;

/// A link to a folder in the roots with a bundle: each bundle in the folder has another path through the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderLink {
    /// Absolute path, as found.
    pub location: PathBuf,
    /// Index into [`Catalog::roots`].
    pub root: usize,
    /// The folder, without links.
    pub target: PathBuf,
}

/// Returns the links to each folder above a real path, the innermost folder first, and of each root separately, sorted
/// by path. `links` are those of [`Catalog::links`].
pub(super) fn links_above<'l>(
    links: &'l [FolderLink],
    real: &Path,
) -> impl Iterator<Item = &'l [FolderLink]> {
    let folders = real.ancestors().skip(1).filter(move |_| !links.is_empty());
    folders.flat_map(move |folder| links_to(links, folder).chunk_by(|a, b| a.root == b.root))
}

/// Returns the links to a folder.
fn links_to<'l>(links: &'l [FolderLink], folder: &Path) -> &'l [FolderLink] {
    let folder = folder.as_os_str();
    let first = links.partition_point(|link| link.target.as_os_str() < folder);
    let count = links[first..].partition_point(|link| link.target.as_os_str() == folder);
    &links[first..first + count]
}

/// Returns positions sorted by a path of the items at them; those with the same path keep their order.
fn sorted_by<'p>(count: usize, path_of: impl Fn(usize) -> Option<&'p OsStr>) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    all.sort_by_key(|at| path_of(*at));
    all
}

/// Returns those of the sorted positions that have this path.
fn with_path<'s, 'p>(
    sorted: &'s [usize],
    path: &Path,
    path_of: impl Fn(usize) -> Option<&'p OsStr>,
) -> &'s [usize] {
    let path = Some(path.as_os_str());
    let first = sorted.partition_point(|at| path_of(*at) < path);
    let count = sorted[first..].partition_point(|at| path_of(*at) == path);
    &sorted[first..first + count]
}

/// An immutable snapshot of everything found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Catalogue")]
pub struct Catalog {
    /// Incremented with every change.
    pub generation: u64,
    /// Roots in order of precedence, missing ones included.
    pub roots: Vec<Root>,
    /// Winners, by root, and within a root by path.
    pub entries: Vec<Entry>,
    /// Shadowed skills, in the same order.
    pub shadowed: Vec<Shadowed>,
    /// Rejected bundles.
    pub refused: Vec<RejectedBundle>,
    /// Further paths to the files above; for each file at most 32 through links to folders.
    #[serde(default)]
    pub aliases: Vec<Alias>,
    /// Links to folders with bundles, by target, root and path: with them, all paths of a skill are known. A catalog of
    /// another machine has none.
    #[serde(skip)]
    pub links: Vec<FolderLink>,
    /// Positions of ids; built on first use.
    #[serde(skip)]
    pub lookup: Lookup,
}

/// Positions by id and by path, each built once per snapshot. Two snapshots are equal whether or not they are built.
#[derive(Debug, Clone, Default)]
pub struct Lookup {
    ids: OnceLock<HashMap<SkillId, Slot>>,
    /// Sorted by folder.
    folders: OnceLock<Vec<Slot>>,
    /// Positions of aliases, sorted by the location that is the same file.
    aliases: OnceLock<Vec<usize>>,
    /// Positions of aliases, sorted by their folder.
    alias_folders: OnceLock<Vec<usize>>,
    /// Positions of links, sorted by path.
    links: OnceLock<Vec<usize>>,
}

impl PartialEq for Lookup {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Entry(usize),
    Shadowed(usize),
}

/// The changes of a snapshot against the previous one. Contains only ids of winners.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The new snapshot.
    pub catalog: Arc<Catalog>,
    pub added: Vec<SkillId>,
    /// Ids whose record changed.
    pub changed: Vec<SkillId>,
    pub removed: Vec<SkillId>,
}

impl Change {
    /// Computes the changes of one snapshot against another.
    pub fn between(old: &Catalog, new: &Arc<Catalog>) -> Self {
        super::assemble::difference(old, new)
    }
}

/// Progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScanProgress {
    /// Files found so far.
    pub found: usize,
    /// Files parsed so far (or taken from the cache).
    pub parsed: usize,
    /// Whether the scan is complete.
    pub done: bool,
}

impl Catalog {
    fn slot(&self, id: &str) -> Option<Slot> {
        let map = self.lookup.ids.get_or_init(|| {
            let entries = self.entries.iter().enumerate().map(|(i, e)| (e.skill.id.clone(), Slot::Entry(i)));
            let losers = self.shadowed.iter().enumerate();
            let mut map: HashMap<_, _> =
                losers.map(|(i, s)| (s.skill.id.clone(), Slot::Shadowed(i))).collect();
            map.extend(entries);
            map
        });
        map.get(id).copied()
    }

    /// Returns the winners, then the shadowed skills, each with the index of its root.
    pub fn skills_with_roots(&self) -> impl Iterator<Item = (&Arc<Skill>, usize)> {
        let shadowed = self.shadowed.iter().map(|shadowed| (&shadowed.skill, shadowed.root));
        self.entries.iter().map(|entry| (&entry.skill, entry.root)).chain(shadowed)
    }

    /// Returns the winners, then the shadowed skills.
    pub fn all_skills(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills_with_roots().map(|(skill, _)| skill)
    }

    /// Returns the winner or the shadowed skill with exactly that id.
    pub fn by_id(&self, id: &str) -> Option<&Arc<Skill>> {
        match self.slot(id)? {
            Slot::Entry(i) => self.entries.get(i).map(|e| &e.skill),
            Slot::Shadowed(i) => self.shadowed.get(i).map(|s| &s.skill),
        }
    }

    /// Returns whether a root is one of the user's, not only of a project.
    pub fn is_own_root(&self, root: usize) -> bool {
        self.roots.get(root).is_some_and(|root| !root.of_project)
    }

    /// Returns whether a skill is in a root of the user.
    pub fn is_own(&self, skill: &Skill) -> bool {
        self.in_folder(&skill.root_dir).is_some_and(|(_, root)| self.is_own_root(root))
    }

    /// Returns whether a skill ships with this program.
    pub fn is_shipped(&self, skill: &Skill) -> bool {
        let mut shipped = self.roots.iter().filter(|root| root.origin == RootOrigin::Shipped);
        shipped.any(|root| skill.location.starts_with(&root.path))
    }

    /// Returns every skill with its root and with the id that its folder has, in order of precedence.
    pub fn candidates(&self) -> impl Iterator<Item = (&Arc<Skill>, usize, &SkillId)> {
        let winners = self.entries.iter().map(|entry| (&entry.skill, entry.root, &entry.skill.id));
        winners.chain(self.shadowed.iter().map(|loser| (&loser.skill, loser.root, &loser.lost)))
    }

    /// Returns the skills of the user with this name, as if there were no project: of those with one id the first.
    pub fn own_skills_named(&self, name: &str) -> Vec<&Arc<Skill>> {
        let mut seen: HashSet<&SkillId> = HashSet::default();
        let own = self.candidates().filter(|(_, root, id)| self.is_own_root(*root) && seen.insert(*id));
        own.map(|(skill, ..)| skill).filter(|skill| skill.name == name).collect()
    }

    /// Returns the skill of the user with this id, even if one of a project hides it.
    pub fn own_skill(&self, id: &str) -> Option<&Arc<Skill>> {
        let winner = self.entry(id).filter(|entry| self.is_own_root(entry.root)).map(|entry| &entry.skill);
        let is_named = |loser: &&Shadowed| loser.lost.as_str() == id || loser.skill.id.as_str() == id;
        let mut losers = self.shadowed.iter().filter(|loser| self.is_own_root(loser.root));
        winner.or_else(|| losers.find(is_named).map(|loser| &loser.skill))
    }

    /// Returns the winner with exactly that id, with its root.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        match self.slot(id)? {
            Slot::Entry(i) => self.entries.get(i),
            Slot::Shadowed(_) => None,
        }
    }

    /// Returns the shadowed skill with exactly that id (`id@3f9a01c2`).
    pub fn shadowed_by_id(&self, id: &str) -> Option<&Shadowed> {
        match self.slot(id)? {
            Slot::Entry(_) => None,
            Slot::Shadowed(i) => self.shadowed.get(i),
        }
    }

    fn at_slot(&self, slot: Slot) -> Option<(&Arc<Skill>, usize)> {
        match slot {
            Slot::Entry(i) => self.entries.get(i).map(|entry| (&entry.skill, entry.root)),
            Slot::Shadowed(i) => self.shadowed.get(i).map(|loser| (&loser.skill, loser.root)),
        }
    }

    /// Returns the skill in this folder, with the index of its root.
    pub fn in_folder(&self, folder: &Path) -> Option<(&Arc<Skill>, usize)> {
        let folder_of = |slot: &Slot| self.at_slot(*slot).map(|(skill, _)| skill.root_dir.as_os_str());
        let sorted = self.lookup.folders.get_or_init(|| {
            let entries = (0..self.entries.len()).map(Slot::Entry);
            let mut all: Vec<_> = entries.chain((0..self.shadowed.len()).map(Slot::Shadowed)).collect();
            all.sort_by(|a, b| folder_of(a).cmp(&folder_of(b)));
            all
        });
        let at = sorted.partition_point(|slot| folder_of(slot) < Some(folder.as_os_str()));
        let found = self.at_slot(*sorted.get(at)?)?;
        (found.0.root_dir == folder).then_some(found)
    }

    /// Returns the skill whose bundle contains this file, the innermost of several, with the index of its root.
    pub fn containing(&self, file: &Path) -> Option<(&Arc<Skill>, usize)> {
        file.ancestors().skip(1).find_map(|folder| self.in_folder(folder))
    }

    /// Returns the other paths of the file at a location that are listed.
    pub fn aliases_of<'c>(&'c self, location: &'c Path) -> impl Iterator<Item = &'c Alias> {
        let path_of = |at: usize| self.aliases.get(at).map(|alias| alias.same_as.as_os_str());
        let sorted = self.lookup.aliases.get_or_init(|| sorted_by(self.aliases.len(), path_of));
        with_path(sorted, location, path_of).iter().filter_map(move |at| self.aliases.get(*at))
    }

    /// Returns the links through which a skill has other paths: for each folder that they point to and each root those
    /// links, sorted by path, with the path of the skill's file below that folder.
    pub fn links_of<'c>(&'c self, skill: &'c Skill) -> impl Iterator<Item = (&'c [FolderLink], &'c Path)> {
        let real = skill.real_location();
        links_above(&self.links, real)
            .filter_map(move |links| Some((links, real.strip_prefix(&links.first()?.target).ok()?)))
    }

    /// Returns the alias of the file or folder at a path.
    fn alias_at(&self, path: &Path) -> Option<&Alias> {
        let folder_of =
            |at: usize| Some(self.aliases.get(at)?.location.parent().unwrap_or(Path::new("")).as_os_str());
        let sorted = self.lookup.alias_folders.get_or_init(|| sorted_by(self.aliases.len(), folder_of));
        let in_folder = |folder: &Path| with_path(sorted, folder, folder_of);
        let get = |at: &usize| self.aliases.get(*at);
        let file = || in_folder(path.parent()?).iter().filter_map(get).find(|alias| alias.location == path);
        in_folder(path).first().and_then(get).or_else(file)
    }

    /// Returns the real path of the file or folder at a path through a link to a folder.
    fn behind_link(&self, path: &Path) -> Option<PathBuf> {
        let path_of = |at: usize| self.links.get(at).map(|link| link.location.as_os_str());
        let sorted = self.lookup.links.get_or_init(|| sorted_by(self.links.len(), path_of));
        path.ancestors().find_map(|above| {
            let link = self.links.get(*with_path(sorted, above, path_of).first()?)?;
            let rest = path.strip_prefix(above).ok()?;
            Some(link.target.components().chain(rest.components()).collect())
        })
    }

    /// Returns the skill whose folder a link with this name reaches.
    pub fn behind_link_named(&self, name: &str) -> Option<&Arc<Skill>> {
        let is_named = |folder: &Path| folder.file_name().is_some_and(|own| own == name);
        let alias = self.aliases.iter().find(|alias| alias.location.parent().is_some_and(is_named));
        if let Some(skill) = alias.and_then(|alias| self.by_location(&alias.same_as)) {
            return Some(skill);
        }
        let links = self.links.iter().filter(|link| is_named(&link.location));
        let targets: HashSet<&OsStr> = links.map(|link| link.target.as_os_str()).collect();
        self.all_skills().find(|skill| targets.contains(skill.real_folder().as_os_str()))
    }

    /// Returns the skill whose file or folder is at this path, also through an alias or a link.
    pub fn by_location(&self, path: &Path) -> Option<&Arc<Skill>> {
        // Comparing the components of paths takes time in proportion to their length, comparing bytes does not.
        let path: PathBuf = path.components().collect();
        let is = |location: &Path, path: &Path| location.as_os_str() == path.as_os_str();
        let listed = self.alias_at(&path).map_or(&*path, |alias| &alias.same_as);
        let found = self.all_skills().find(|s| is(&s.location, listed) || is(&s.root_dir, listed));
        found.or_else(|| {
            let real = self.behind_link(&path)?;
            let at = |file: &Path| is(file, &real) || file.parent().is_some_and(|folder| is(folder, &real));
            self.all_skills().find(|skill| at(skill.real_location()))
        })
    }
}
