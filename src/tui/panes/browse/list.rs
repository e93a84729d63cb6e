//! The list's rows: grouped, sorted, filtered and folded. Computed when one of these changes, not when drawn.

use std::collections::{HashMap, HashSet};

use strum::Display;

use super::items::{Entry, Standing};
use crate::registry::Catalogue;
use crate::skill::{Role, SkillId};
use crate::tui::widgets::fuzzy::Fuzzy;
use crate::tui::widgets::measure::shown;

/// What the skills are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Display)]
#[strum(serialize_all = "lowercase")]
pub enum GroupBy {
    /// Where they come from.
    #[default]
    Root,
    /// Subject area.
    Domain,
    /// Place in an answer.
    Role,
    /// Not at all.
    None,
}

/// What they are sorted by inside a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Display)]
#[strum(serialize_all = "lowercase")]
pub enum SortBy {
    /// Name.
    #[default]
    Name,
    /// L2 tokens, most first.
    Tokens,
    /// Errors, then warnings.
    Findings,
    /// Last changed first.
    Changed,
}

impl GroupBy {
    /// The next one round.
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
    /// The next one round.
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

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A group's name, with the number of its members.
    Group {
        /// What it is remembered by.
        key: String,
        /// As shown.
        label: String,
        /// Members after the filter.
        count: usize,
        /// Whether file events reach the root.
        live: bool,
        /// Whether its members are hidden.
        folded: bool,
    },
    /// A bundle, by its place among the entries.
    Entry(usize),
}

/// Everything the rows are made from.
pub struct Wishes<'a> {
    /// Groups.
    pub group: GroupBy,
    /// Groups turned from how they begin: open ones folded, folded ones opened.
    pub turned: &'a HashSet<String>,
    /// The client in whose eyes the list is seen: its name, and why it does not see some.
    pub client: Option<(&'a str, &'a HashMap<SkillId, String>)>,
}

/// The entries' order by a sort, over all of them.
#[must_use]
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

/// Rows of the sorted entries that match the filter (best matches first inside a group), and how many
/// matched.
pub fn rows(
    entries: &[Entry],
    order: &[usize],
    catalogue: &Catalogue,
    wishes: &Wishes<'_>,
    fuzzy: &mut Fuzzy,
) -> (Vec<Row>, usize) {
    let mut matched: Vec<(u32, usize)> =
        order.iter().filter_map(|&i| fuzzy.score(&entries[i].hay).map(|score| (score, i))).collect();
    if !fuzzy.is_empty() {
        matched.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    }
    let count = matched.len();
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (_, index) in matched {
        let spec = group_of(&entries[index], catalogue, wishes);
        let place = *places.entry(spec.key.clone()).or_insert_with(|| {
            groups.push(spec);
            groups.len() - 1
        });
        groups[place].members.push(index);
    }
    groups.sort_by(|a, b| a.order.cmp(&b.order));
    let mut out = Vec::with_capacity(count + groups.len());
    for group in groups {
        let begins_folded = group.begins_folded && fuzzy.is_empty();
        let folded = begins_folded != wishes.turned.contains(&group.key);
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
    /// Where it stands: kind of group, then place or name.
    order: (u8, usize, String),
    live: bool,
    begins_folded: bool,
    members: Vec<usize>,
}

fn group_of(entry: &Entry, catalogue: &Catalogue, wishes: &Wishes<'_>) -> Group {
    let apart = |key: &str, label: String, order: u8, begins_folded: bool| Group {
        key: key.to_owned(),
        label,
        order: (order, 0, String::new()),
        live: false,
        begins_folded,
        members: Vec::new(),
    };
    if let Some((name, unseen)) = wishes.client
        && unseen.contains_key(&entry.id)
    {
        return apart("unseen", format!("not seen by {}", shown(name)), 1, false);
    }
    match entry.standing {
        Standing::Shadowed(_) => return apart("shadowed", "shadowed".to_owned(), 2, true),
        Standing::Refused(_) => return apart("refused", "refused".to_owned(), 3, false),
        Standing::Skill => {}
    }
    let (key, label, place, live) = match wishes.group {
        GroupBy::Root => {
            let root = catalogue.roots.get(entry.root);
            let label = root.map_or_else(|| "elsewhere".to_owned(), |r| shown(&r.label));
            (format!("root {}", entry.root), label, entry.root, root.is_some_and(|r| r.live))
        }
        GroupBy::Domain => match &entry.domain {
            Some(domain) => (format!("domain {domain}"), domain.clone(), 0, false),
            None => ("no domain".to_owned(), "no domain".to_owned(), 1, false),
        },
        GroupBy::Role => {
            let (label, place) = match entry.role {
                Role::Procedure => ("procedures", 0),
                Role::Utility => ("utilities", 1),
                Role::Sidecar => ("sidecars", 2),
            };
            (label.to_owned(), label.to_owned(), place, false)
        }
        GroupBy::None => ("all".to_owned(), String::new(), 0, false),
    };
    Group { order: (0, place, label.clone()), key, label, live, begins_folded: false, members: Vec::new() }
}
