//! Bundles that clients find in their folders and that the catalog does not contain.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::{AssumedFolder, ClientView, ClientViewEntry, ForeignBundle};
use skills_registry::Catalog;
use skills_session::{ListedEntry, Truncation};
use skills_skill::{RefusalReason, RejectedBundle, SkillId};

/// Returns the bundles of these views that are not in the catalog, each file once, as a client that finds it reads it,
/// with ids of their own: the name, or the path if a name is taken.
pub(super) fn uncataloged_bundles<'v>(
    views: impl IntoIterator<Item = &'v ClientView>,
    catalog: &Catalog,
) -> Vec<(SkillId, &'v ForeignBundle)> {
    let (mut files, mut names) = (HashSet::new(), HashSet::new());
    let refused: HashSet<&str> = catalog.refused.iter().map(|refusal| refusal.id.as_str()).collect();
    let all = views.into_iter().flat_map(|view| &view.foreign);
    let (missed, found): (Vec<_>, Vec<_>) = all.partition(|one| one.missed);
    let bundles = found.into_iter().chain(missed).filter(|one| files.insert(one.location.as_path()));
    let with_id = |one: &'v ForeignBundle| {
        let name = one.name.as_str();
        let is_free = !name.is_empty()
            && catalog.by_id(name).is_none()
            && !refused.contains(name)
            && names.insert(name);
        let id = if is_free { SkillId::new(name) } else { SkillId::new(one.location.display().to_string()) };
        (id, one)
    };
    bundles.map(with_id).collect()
}

/// Returns what clients read behind a link that the catalog does not follow: the file, under the path of the link, and
/// its description; `None` if none of these clients lists it. Some clients truncate the description: the longest one is
/// returned.
pub(super) fn linked_bundle<'v>(
    views: &[ListedEntries<'v>],
    refusal: &'v RejectedBundle,
) -> Option<(&'v Path, &'v str)> {
    let is_link = refusal.reason == RefusalReason::LeavesRoot;
    let views = views.iter().filter(|_| is_link);
    let read = views.filter_map(|listed| listed.get(&refusal.id, &refusal.location));
    let (listed, _) = read.max_by_key(|(listed, _)| listed.description.len())?;
    Some((listed.location.as_deref()?, &listed.description))
}

/// Returns whether a user means the bundle at `location` by an id, a path, the name of its folder, or the name of a
/// link.
pub(super) fn is_named(id: &SkillId, location: &Path, requested: &str) -> bool {
    let path = Path::new(requested);
    let folder = location.parent();
    id.as_str() == requested
        || location.file_name().is_some_and(|name| name == requested)
        || location == path
        || folder
            .is_some_and(|folder| folder == path || folder.file_name().is_some_and(|name| name == requested))
}

/// The entries of a client's list by id, and those that the catalog does not contain by file and folder.
pub(super) struct ListedEntries<'v> {
    by_id: HashMap<&'v str, &'v (ListedEntry, Truncation)>,
    by_path: HashMap<&'v Path, &'v (ListedEntry, Truncation)>,
}

impl<'v> ListedEntries<'v> {
    pub fn of(view: &'v ClientView) -> Self {
        let (mut by_id, mut by_path) = (HashMap::new(), HashMap::new());
        for listed in &view.list.entries {
            let (entry, _) = listed;
            match (&entry.skill_id, &entry.location) {
                (Some(id), _) => {
                    by_id.entry(id.as_str()).or_insert(listed);
                }
                (None, Some(file)) if !entry.bundled => {
                    for path in file.ancestors().take(2) {
                        by_path.entry(path).or_insert(listed);
                    }
                }
                _ => {}
            }
        }
        Self { by_id, by_path }
    }

    /// Returns a bundle's entry, whether the catalog can read it or not. The location of a link that the catalog does
    /// not follow is the link; the client lists the file behind it.
    pub fn get(&self, id: &SkillId, location: &Path) -> Option<&'v (ListedEntry, Truncation)> {
        self.by_id.get(id.as_str()).or_else(|| self.by_path.get(location)).copied()
    }
}

impl ForeignBundle {
    /// Returns what the client does with it, under its path as id.
    pub(super) fn entry(&self) -> ClientViewEntry {
        ClientViewEntry {
            skill_id: SkillId::new(self.location.display().to_string()),
            state: self.state.clone(),
            help: None,
            setting: self.setting.clone(),
            assumed: self.assumed,
        }
    }
}

impl ClientView {
    /// Returns what the client does with a bundle, whether the catalog contains it or not.
    pub fn entry_of(&self, id: &SkillId, location: &Path) -> Option<ClientViewEntry> {
        let own = self.entries.iter().find(|entry| entry.skill_id == *id).cloned();
        let foreign = || self.foreign.iter().find(|one| one.location == location);
        own.or_else(|| foreign().map(ForeignBundle::entry))
    }

    /// Returns the notes about what is not known of the client, and about folders that it does not search and is shown as
    /// if it did.
    pub fn notes(&self) -> Vec<String> {
        let unknown = self.list.fill.unknown.iter().map(|unknown| format!("unknown: {unknown}"));
        unknown.chain(AssumedFolder::notes(&[(&self.name, &self.assumed_folders)])).collect()
    }

    /// Returns a bundle's entry in the client's list, whether the catalog can read it or not.
    pub fn listed(&self, id: &SkillId, location: &Path) -> Option<&(ListedEntry, Truncation)> {
        ListedEntries::of(self).get(id, location)
    }
}
