//! Builds the catalog from the content of the roots: which skill wins an id, which is shadowed, and which paths lead
//! to the same file.
//!
//! Records are ordered by root, inside a root by depth (a copy for a client or a language is deeper than its
//! original), then by path. The first record with an id wins it. A real file counts once, at its first path; its other
//! paths are aliases. A main file that is a link to a main file outside of its folder is always an alias: it never changes
//! the path under which its target is listed, in whatever roots the two are. A link to a main file below its own folder is
//! an equal path of that file. Links to any other file are separate bundles, since their folders differ. A link in a
//! repository to the folder of one of the user's own skills changes neither its id nor its root.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use super::catalog::{MAX_LINKED_PATHS, links_above};
use super::incomplete::{incomplete, misnamed, unusable};
use super::ordered_path::compare;
use super::tree::{Outcome, Record, ScannedRoot, Tree};
use super::{Alias, Catalog, Change, Entry, FolderLink, Root, RootOrigin, RootState, Shadowed};
use skills_skill::{Digest, RejectedBundle, Skill, SkillId, slice};

/// Builds a snapshot of the tree. `live` tells for each root whether file events are available.
pub(super) fn assemble(tree: &Tree, live: &[bool], generation: u64) -> Catalog {
    let is_shipped = |root: usize| tree.roots[root].spec.origin == RootOrigin::Shipped;
    let incomplete = all_incomplete(tree);
    // The shipped skills are only listed if there are no others.
    let own = has_own(tree, &incomplete);
    let counts = |root: usize| !(own && is_shipped(root));
    let roots = tree.roots.iter().enumerate();
    let roots = roots.map(|(i, root)| listed_root(root, counts(i), live.get(i).copied().unwrap_or(false)));
    let mut out = Catalog { generation, roots: roots.collect(), ..Catalog::default() };
    let mut winners: HashMap<&SkillId, &Arc<Skill>> = HashMap::new();
    let mut entries: Vec<(usize, Entry)> = Vec::new();
    let mut losers: Vec<Loser<'_>> = Vec::new();
    let records = tree.records.iter().filter(|((root, _), _)| counts(*root)).enumerate();
    let mut records: Vec<_> = records.collect();
    records.sort_by_cached_key(|(_, ((root, location), _))| (*root, depth(location)));
    // Compared by bytes: a real path has one form, and comparing components would dominate the time of this function.
    let mut places: ListedPaths<'_> = HashMap::new();
    let ordered = || records.iter().enumerate();
    let in_folder = ordered().filter(|(_, (_, (_, record)))| record.linked_from.is_none());
    let linked = ordered().filter(|(_, (_, (_, record)))| record.linked_from.is_some());
    // The links last: whether their targets are main files themselves must be known.
    for (order, &(place, (key, record))) in in_folder.chain(linked) {
        let (root, location) = key;
        let rank = (record.is_link_elsewhere(), tree.roots[*root].spec.project.is_some(), order);
        let this = ListedPath { location, place, rank };
        let file = file_of(record, &places);
        let listed = places.entry(file).or_insert(this);
        if rank < listed.rank {
            *listed = this;
        }
    }
    for (place, ((root, location), record)) in records {
        let listed = places.get(&file_of(record, &places));
        if let Some(listed) = listed.filter(|listed| listed.place != place) {
            let same_as = listed.location.to_owned();
            out.aliases.push(Alias { location: location.to_path_buf(), root: *root, same_as });
            continue;
        }
        match &record.outcome {
            Outcome::Refused(refusal) => out.refused.push((**refusal).clone()),
            Outcome::Skill(skill) => match winners.get(&skill.id) {
                None => {
                    winners.insert(&skill.id, skill);
                    entries.push((place, Entry { skill: Arc::clone(skill), root: *root }));
                }
                Some(winner) => losers.push(Loser { place, root: *root, record, skill, winner }),
            },
        }
    }
    // The winners are determined; lists are sorted by root and path, like the records.
    entries.sort_unstable_by_key(|(place, _)| *place);
    out.entries = entries.into_iter().map(|(_, entry)| entry).collect();
    out.refused.sort_by(|a, b| a.location.cmp(&b.location));
    losers.sort_unstable_by_key(|loser| loser.place);
    let mut taken: HashSet<SkillId> = winners.keys().map(|id| (*id).clone()).collect();
    out.shadowed = losers.iter().map(|loser| loser.shadowed(&mut taken)).collect();
    out.links = folder_links(tree, &places, counts);
    out.aliases.extend(linked_paths(&out.links, &places, tree));
    let leaving = tree.refused_links.iter().filter(|((root, _), _)| counts(*root));
    out.refused.extend(leaving.map(|(_, refusal)| (**refusal).clone()));
    out.refused.extend(incomplete);
    make_ids_unique(&mut out.refused, &mut taken);
    out
}

/// Returns a root as it is listed; the shipped skills are missing while they do not count.
fn listed_root(root: &ScannedRoot, counts: bool, live: bool) -> Root {
    Root {
        path: root.spec.path.clone(),
        label: root.spec.label.clone(),
        project_label: root.spec.project_label.clone(),
        of_project: root.spec.project.is_some(),
        origin: root.spec.origin.clone(),
        state: if counts { root.state.clone() } else { RootState::Missing },
        live,
    }
}

/// The path at which a real file is listed.
#[derive(Clone, Copy)]
struct ListedPath<'a> {
    location: &'a Path,
    /// Position among the records.
    place: usize,
    /// Whether it is a link to the file outside of its folder, whether it is in a root of a project, and its position in
    /// the order of precedence: the path with the lowest rank counts.
    rank: (bool, bool, usize),
}

/// A main file without links. If only links lead to it, also the folder of the link.
type MainFile<'a> = (&'a OsStr, Option<&'a OsStr>);

/// Where each main file is listed.
type ListedPaths<'a> = HashMap<MainFile<'a>, ListedPath<'a>>;

/// Returns the main file of a record. `places` contains those that are not links.
fn file_of<'a>(record: &'a Record, places: &ListedPaths<'a>) -> MainFile<'a> {
    let real = record.real.as_os_str();
    let folder = record.linked_from.as_deref().filter(|_| !places.contains_key(&(real, None)));
    (real, folder.map(Path::as_os_str))
}

/// A skill whose id an earlier one has.
struct Loser<'a> {
    /// Position among the records.
    place: usize,
    root: usize,
    record: &'a Record,
    skill: &'a Arc<Skill>,
    winner: &'a Arc<Skill>,
}

impl Loser<'_> {
    /// Returns the skill under an id of its own, which is added to the taken ones.
    fn shadowed(&self, taken: &mut HashSet<SkillId>) -> Shadowed {
        Shadowed {
            skill: under_own_id(self.record, self.skill, taken),
            root: self.root,
            lost: self.skill.id.clone(),
            winner: self.winner.location.clone(),
            identical: self.skill.digest == self.winner.digest,
        }
    }
}

/// Returns the links to folders with files, by target, root and path. `places` has the location of each real file.
fn folder_links(tree: &Tree, places: &ListedPaths<'_>, counts: impl Fn(usize) -> bool) -> Vec<FolderLink> {
    let links: Vec<_> = tree.links.iter().filter(|((root, _), _)| counts(*root)).collect();
    if links.is_empty() {
        return Vec::new();
    }
    let mut folders: HashSet<&OsStr> = HashSet::new();
    for &(real, linked_from) in places.keys() {
        for folder in Path::new(real).parent().into_iter().chain(linked_from.map(Path::new)) {
            for above in folder.ancestors() {
                // The folders above a known one are known, too.
                if !folders.insert(above.as_os_str()) {
                    break;
                }
            }
        }
    }
    let links = links.into_iter().filter(|(_, target)| folders.contains(target.as_os_str()));
    let links = links.map(|((root, link), target)| FolderLink {
        location: link.to_path_buf(),
        root: *root,
        target: target.clone(),
    });
    let mut links: Vec<FolderLink> = links.collect();
    // Those with the same target keep their order, by root and path.
    links.sort_by(|a, b| a.target.as_os_str().cmp(b.target.as_os_str()));
    links
}

/// Returns the paths through links to the files, a limited number for each: those through the nearest folders.
fn linked_paths(links: &[FolderLink], places: &ListedPaths<'_>, tree: &Tree) -> Vec<Alias> {
    let mut aliases = Vec::new();
    if links.is_empty() {
        return aliases;
    }
    for (&(real, linked_from), &ListedPath { location, .. }) in places {
        // A file to which only links lead has a path in the folder of each link.
        let file = linked_from.map(|folder| Path::new(folder).join(location.file_name().unwrap_or_default()));
        let file = file.as_deref().unwrap_or(Path::new(real));
        let paths = links_above(links, file).flatten().filter_map(|link| {
            let path: PathBuf = link.location.join(file.strip_prefix(&link.target).ok()?);
            let is_known =
                path == *location || tree.records.contains_key(&(link.root, path.as_path().into()));
            let root = link.root;
            (!is_known).then(|| Alias { location: path, root, same_as: location.to_owned() })
        });
        aliases.extend(paths.take(MAX_LINKED_PATHS));
    }
    aliases.sort_by(|a, b| a.root.cmp(&b.root).then_with(|| compare(&a.location, &b.location)));
    aliases
}

/// Changes the ids of rejected bundles that are taken: what clients do is looked up by id, so it must not be that of
/// another bundle.
fn make_ids_unique(refused: &mut [RejectedBundle], taken: &mut HashSet<SkillId>) {
    for refusal in refused {
        if !taken.insert(refusal.id.clone()) {
            let place = Digest::of(refusal.location.as_os_str().as_encoded_bytes());
            refusal.id = refusal.id.shadowed(place);
            taken.insert(refusal.id.clone());
        }
    }
}

/// Returns what could have been meant as a skill in all roots, and as a root next to them.
pub(super) fn all_incomplete(tree: &Tree) -> Vec<RejectedBundle> {
    let present = (0..tree.roots.len()).filter(|root| tree.roots[*root].state == RootState::Present);
    let mut found: Vec<RejectedBundle> = present.flat_map(|root| incomplete(tree, root)).collect();
    found.extend((0..tree.roots.len()).filter_map(|root| unusable(tree, root)));
    for folder in (0..tree.roots.len()).flat_map(|root| misnamed(tree, root)) {
        // Several roots can be in one folder.
        if found.iter().all(|known| known.location != folder.location) {
            found.push(folder);
        }
    }
    found
}

/// Returns whether the user has skills, or something that was meant as one. Then the shipped skills are not shown, so that
/// the user sees why an incomplete skill is not offered.
pub(super) fn has_own(tree: &Tree, incomplete: &[RejectedBundle]) -> bool {
    let mut keys = tree.records.keys().chain(tree.refused_links.keys());
    !incomplete.is_empty() || keys.any(|(root, _)| tree.roots[*root].spec.origin != RootOrigin::Shipped)
}

/// Returns the depth of a path; roots of one kind have the same form, so counting separators is sufficient.
fn depth(path: &Path) -> usize {
    path.as_os_str().as_encoded_bytes().split(|byte| *byte == b'/').count()
}

/// Returns the shadowed skill's record under a unique id: `id@` + 8 digits of its digest, and if that is taken (copies
/// of one file) `.` + 6 or more digits of its location's digest.
fn under_own_id(record: &Record, skill: &Arc<Skill>, taken: &mut HashSet<SkillId>) -> Arc<Skill> {
    let short = skill.id.shadowed(skill.digest);
    let mut id = short.clone();
    if taken.contains(&id) {
        let place = Digest::of(skill.location.as_os_str().as_encoded_bytes()).to_string();
        let longer =
            (6..=place.len()).map(|digits| SkillId::new(format!("{short}.{}", slice(&place, ..digits))));
        id = longer.into_iter().find(|id| !taken.contains(id)).unwrap_or(id);
    }
    taken.insert(id.clone());
    let named = record.loser.get_or_init(|| Arc::new(Skill { id: id.clone(), ..(**skill).clone() }));
    if named.id == id { Arc::clone(named) } else { Arc::new(Skill { id, ..(**skill).clone() }) }
}

/// Computes the changes of a new snapshot.
pub(super) fn difference(old: &Catalog, new: &Arc<Catalog>) -> Change {
    let before: HashMap<&SkillId, &Arc<Skill>> =
        old.entries.iter().map(|e| (&e.skill.id, &e.skill)).collect();
    let mut change = Change { catalog: Arc::clone(new), ..Change::default() };
    for entry in &new.entries {
        match before.get(&entry.skill.id) {
            None => change.added.push(entry.skill.id.clone()),
            Some(skill) if Arc::ptr_eq(skill, &entry.skill) || **skill == entry.skill => {}
            Some(_) => change.changed.push(entry.skill.id.clone()),
        }
    }
    if !old.entries.is_empty() {
        let after: HashSet<&SkillId> = new.entries.iter().map(|entry| &entry.skill.id).collect();
        let gone = old.entries.iter().filter(|entry| !after.contains(&entry.skill.id));
        change.removed = gone.map(|entry| entry.skill.id.clone()).collect();
    }
    change
}
