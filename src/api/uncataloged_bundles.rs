//! Bundles that clients find in their folders and that the catalog does not contain.

use std::collections::HashSet;
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
    views: impl IntoIterator<Item = &'v ClientView>,
    refusal: &'v RejectedBundle,
) -> Option<(&'v Path, &'v str)> {
    let is_link = refusal.reason == RefusalReason::LeavesRoot;
    let views = views.into_iter().filter(|_| is_link);
    let read = views.filter_map(|view| view.listed(&refusal.id, &refusal.location));
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

    /// Returns a bundle's entry in the client's list, whether the catalog can read it or not. The location of a link
    /// that the catalog does not follow is the link; the client lists the file behind it.
    pub fn listed(&self, id: &SkillId, location: &Path) -> Option<&(ListedEntry, Truncation)> {
        let is_at = |entry: &ListedEntry| {
            let file = entry.location.as_deref();
            file.is_some_and(|file| file == location || file.parent() == Some(location))
        };
        self.list.entries.iter().find(|(entry, _)| match &entry.skill_id {
            Some(skill) => skill == id,
            None => !entry.bundled && is_at(entry),
        })
    }
}
