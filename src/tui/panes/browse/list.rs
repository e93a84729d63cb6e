//! The rows of the list: grouped, sorted, filtered and collapsed. Computed when one of these changes, not when drawn.

use std::collections::{HashMap, HashSet};

use strum::Display;

use super::items::{Entry, ExclusionReason};
use crate::widgets::fuzzy::Fuzzy;
use crate::widgets::shown;
use skills_registry::Catalog;
use skills_skill::{Role, SkillId};

/// How the skills are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Display)]
#[strum(serialize_all = "lowercase")]
pub enum GroupBy {
    #[default]
    Root,
    Domain,
    Role,
    None,
}

/// The sort order inside a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Display)]
#[strum(serialize_all = "lowercase")]
pub enum SortBy {
    #[default]
    Name,
    /// L2 tokens, descending.
    Tokens,
    /// Errors, then warnings.
    Findings,
    /// Modification time, most recent first.
    Changed,
}

impl GroupBy {
    /// Returns the next grouping, cyclically.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Root => Self::Domain,
            Self::Domain => Self::Role,
            Self::Role => Self::None,
            Self::None => Self::Root,
        }
    }
}

impl SortBy {
    /// Returns the next sort order, cyclically.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Name => Self::Tokens,
            Self::Tokens => Self::Findings,
            Self::Findings => Self::Changed,
            Self::Changed => Self::Name,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A group's heading.
    Group {
        /// The key under which its state is remembered.
        key: String,
        /// The displayed name.
        label: String,
        /// Number of members that match the filter.
        count: usize,
        /// Whether the root is watched for file events.
        live: bool,
        /// Whether its members are hidden.
        folded: bool,
    },
    /// A bundle, by its index among the entries.
    Entry(usize),
}

/// The parameters of the rows.
pub struct RowOptions<'a> {
    pub group: GroupBy,
    /// Groups whose state is not the initial one: expanded ones collapsed, collapsed ones expanded.
    pub turned: &'a HashSet<String>,
    /// The client whose view is shown: its name, and why it does not list some skills.
    pub client: Option<(&'a str, &'a HashMap<SkillId, String>)>,
}

/// Returns the order of all entries under a sort order.
pub fn sorted(entries: &[Entry], sort: SortBy, tokens: impl Fn(&SkillId) -> Option<u32>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let by_name = |a: usize, b: usize| entries[a].key.cmp(&entries[b].key);
    match sort {
        SortBy::Name => order.sort_by(|&a, &b| by_name(a, b)),
        SortBy::Tokens => {
            order
                .sort_by_cached_key(|&i| (std::cmp::Reverse(tokens(&entries[i].id)), entries[i].key.clone()));
        }
        SortBy::Findings => {
            order.sort_by(|&a, &b| entries[b].findings.cmp(&entries[a].findings).then_with(|| by_name(a, b)));
        }
        SortBy::Changed => {
            order.sort_by(|&a, &b| entries[b].modified.cmp(&entries[a].modified).then_with(|| by_name(a, b)));
        }
    }
    order
}

/// Returns the rows of the sorted entries that match the filter (best matches first inside a group), and the number of
/// matches.
pub fn rows(
    entries: &[Entry],
    order: &[usize],
    catalog: &Catalog,
    options: &RowOptions<'_>,
    fuzzy: &mut Fuzzy,
) -> (Vec<Row>, usize) {
    let mut score = |entry: &Entry| {
        let description = || Some(catalog.by_id(entry.id.as_str())?.description.as_str());
        fuzzy.matched(&entry.hay, description)
    };
    let mut matched: Vec<_> =
        order.iter().filter_map(|&i| score(&entries[i]).map(|score| (score, i))).collect();
    if !fuzzy.is_empty() {
        matched.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    }
    let count = matched.len();
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    for (_, index) in matched {
        let key = key_of(&entries[index], options);
        let place = *places.entry(key).or_insert_with(|| {
            groups.push(group_of(key, catalog, options));
            groups.len() - 1
        });
        groups[place].members.push(index);
    }
    groups.sort_by(|a, b| a.order.cmp(&b.order));
    let mut out = Vec::with_capacity(count + groups.len());
    for group in groups {
        let begins_folded = group.begins_folded && fuzzy.is_empty();
        let folded = begins_folded != options.turned.contains(&group.key);
        if !group.label.is_empty() {
            let count = group.members.len();
            out.push(Row::Group { key: group.key, label: group.label, count, live: group.live, folded });
        }
        if !folded {
            out.extend(group.members.into_iter().map(Row::Entry));
        }
    }
    (out, count)
}

struct Group {
    key: String,
    label: String,
    /// Sort key: kind of group, then index or name.
    order: (u8, usize, String),
    live: bool,
    begins_folded: bool,
    members: Vec<usize>,
}

/// The key of a group, without an owned string, because there are thousands of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Root(usize),
    Domain(Option<&'a str>),
    Role(Role),
    All,
    Unseen,
    Shadowed,
    Refused,
    Elsewhere,
}

fn key_of<'a>(entry: &'a Entry, options: &RowOptions<'_>) -> Key<'a> {
    if options.client.is_some_and(|(_, unseen)| unseen.contains_key(&entry.id)) {
        return Key::Unseen;
    }
    match (entry.exclusion, options.group) {
        (ExclusionReason::Shadowed(_), _) if options.client.is_none() => Key::Shadowed,
        (ExclusionReason::Refused(_), _) => Key::Refused,
        (ExclusionReason::Elsewhere, _) => Key::Elsewhere,
        (_, GroupBy::Root) => Key::Root(entry.root),
        (_, GroupBy::Domain) => Key::Domain(entry.domain.as_deref()),
        (_, GroupBy::Role) => Key::Role(entry.role),
        (_, GroupBy::None) => Key::All,
    }
}

fn group_of(key: Key<'_>, catalog: &Catalog, options: &RowOptions<'_>) -> Group {
    let mut live = false;
    let (name, label, kind, place) = match key {
        Key::Root(index) => {
            let root = catalog.roots.get(index);
            live = root.is_some_and(|r| r.live);
            let label = root.map_or_else(|| "elsewhere".to_owned(), |r| shown(&r.title()));
            (format!("root {index}"), label, 0, index)
        }
        Key::Domain(Some(domain)) => (format!("domain {domain}"), domain.to_owned(), 0, 0),
        Key::Domain(None) => ("no domain".to_owned(), "no domain".to_owned(), 0, 1),
        Key::Role(role) => {
            let (label, place) = match role {
                Role::Procedure => ("procedures", 0),
                Role::Utility => ("utilities", 1),
                Role::Sidecar => ("sidecars", 2),
            };
            (label.to_owned(), label.to_owned(), 0, place)
        }
        Key::All => ("all".to_owned(), String::new(), 0, 0),
        Key::Unseen => {
            let client = options.client.map_or("", |(name, _)| name);
            ("unseen".to_owned(), format!("not loaded by {}", shown(client)), 1, 0)
        }
        Key::Elsewhere => {
            let client = options.client.map_or("", |(name, _)| name);
            ("elsewhere".to_owned(), format!("found by {}, outside the roots", shown(client)), 1, 0)
        }
        Key::Shadowed => ("shadowed".to_owned(), "shadowed".to_owned(), 2, 0),
        Key::Refused => ("refused".to_owned(), "rejected".to_owned(), 3, 0),
    };
    let begins_folded = key == Key::Shadowed;
    Group { key: name, order: (kind, place, label.clone()), label, live, begins_folded, members: Vec::new() }
}
