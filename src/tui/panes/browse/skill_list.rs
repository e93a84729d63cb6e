//! The list of skills: its entries, how they are grouped, sorted and filtered, and the cursor.

use std::collections::HashSet;
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::budget::SelectedClient;
use super::items::{self, Entry, ExclusionReason};
use super::list::{self, GroupBy, Row, RowOptions, SortBy};
use super::token_counts::TokenCounts;
use crate::action::Action;
use crate::field::Field;
use crate::pane::Effect;
use crate::widgets::Scroll;
use crate::widgets::fuzzy::Fuzzy;
use skills_api::{BudgetView, ClientView, ForeignBundle, LevelTokens};
use skills_registry::{Catalog, Change};
use skills_skill::{RejectedBundle, Skill, SkillId};

#[derive(Default)]
pub(super) struct SkillList {
    pub catalog: Arc<Catalog>,
    pub entries: Vec<Entry>,
    order: Vec<usize>,
    pub rows: Vec<Row>,
    pub matched: usize,
    pub group: GroupBy,
    pub sort: SortBy,
    turned: HashSet<String>,
    pub filter: Field,
    pub fuzzy: Fuzzy,
    pub scroll: Scroll,
    pub follow: bool,
    /// Whether the user moved the cursor; until then it stays on the first skill.
    pub moved: bool,
    pub selected: Option<SkillId>,
    pub client: SelectedClient,
    pub tokens: TokenCounts,
    pub edited: HashSet<SkillId>,
    /// Areas of the last frame.
    pub area: Rect,
    pub filter_area: Rect,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
}

/// The bundle whose content is shown.
#[derive(Clone, Copy)]
pub(super) struct ShownBundle<'a> {
    pub entry: &'a Entry,
    pub skill: Option<&'a Arc<Skill>>,
    /// Why it is rejected.
    pub refusal: Option<&'a RejectedBundle>,
    /// The bundle, if only the selected client finds it.
    pub foreign: Option<&'a ForeignBundle>,
}

impl SkillList {
    pub fn new() -> Self {
        Self { follow: true, ..Self::default() }
    }

    fn entry(&self) -> Option<&Entry> {
        match self.rows.get(self.scroll.cursor)? {
            Row::Entry(index) => self.entries.get(*index),
            Row::Group { .. } => None,
        }
    }

    /// Returns the bundle whose content is shown: the one under the cursor, or the last one that was.
    pub fn shown(&self) -> Option<ShownBundle<'_>> {
        let last = || self.entries.iter().find(|e| Some(&e.id) == self.selected.as_ref());
        let entry = self.entry().or_else(last)?;
        let refusal = match entry.exclusion {
            ExclusionReason::Refused(index) => self.catalog.refused.get(index),
            _ => None,
        };
        let foreign = match (entry.exclusion, &self.client.view) {
            (ExclusionReason::Elsewhere, Some(client)) => {
                client.foreign.iter().find(|one| one.location.as_os_str() == entry.id.as_str())
            }
            _ => None,
        };
        Some(ShownBundle { entry, skill: self.catalog.by_id(entry.id.as_str()), refusal, foreign })
    }

    /// Returns the readable entries next to the cursor.
    pub fn neighbors(&self) -> impl Iterator<Item = &Entry> {
        let at = self.scroll.cursor;
        let rows = [at.checked_add(1), at.checked_sub(1)].into_iter().flatten();
        let entry = |row: usize| match self.rows.get(row)? {
            Row::Entry(index) => self.entries.get(*index),
            Row::Group { .. } => None,
        };
        rows.filter_map(entry).filter(|entry| entry.is_readable())
    }

    pub fn set_catalog(&mut self, catalog: &Arc<Catalog>) {
        self.catalog = Arc::clone(catalog);
        self.take_entries();
        self.build();
    }

    /// Returns whether the list already shows this catalog.
    pub fn shows(&self, catalog: &Arc<Catalog>) -> bool {
        let generation = self.catalog.generation;
        Arc::ptr_eq(&self.catalog, catalog) || (generation > 0 && generation == catalog.generation)
    }

    /// Notes which skills a change of the catalog concerns.
    pub fn note_change(&mut self, change: &Change, is_scanned: bool) {
        for id in change.changed.iter().chain(&change.removed) {
            self.tokens.forget(id);
        }
        if is_scanned {
            self.edited.extend(change.changed.iter().chain(&change.added).cloned());
        }
    }

    /// Sets the entries: those of the catalog, and those that the selected client lists in addition.
    fn take_entries(&mut self) {
        self.entries = items::entries(&self.catalog);
        if let Some(client) = &self.client.view {
            self.entries.extend(items::elsewhere(client));
        }
        self.sort_again();
    }

    fn sort_again(&mut self) {
        self.order = list::sorted(&self.entries, self.sort, |id| self.tokens.of(id).map(|levels| levels.l2));
    }

    /// Rebuilds the rows; the cursor stays on its skill.
    fn build(&mut self) {
        let name = self.client.view.as_ref().map(|c| c.name.clone());
        let client = name.as_deref().map(|name| (name, &self.client.unseen));
        let options = RowOptions { group: self.group, turned: &self.turned, client };
        let group = match self.rows.get(self.scroll.cursor) {
            Some(Row::Group { key, .. }) => Some(key.clone()),
            _ => None,
        };
        let (rows, matched) =
            list::rows(&self.entries, &self.order, &self.catalog, &options, &mut self.fuzzy);
        (self.rows, self.matched) = (rows, matched);
        let found = match (&group, &self.selected) {
            _ if !self.moved => None,
            (Some(group), _) => {
                self.rows.iter().position(|row| matches!(row, Row::Group { key, .. } if key == group))
            }
            (None, Some(id)) => self.row_of(id),
            (None, None) => None,
        };
        let first = || self.rows.iter().position(|row| matches!(row, Row::Entry(_)));
        let last = self.rows.len().saturating_sub(1);
        self.scroll.cursor = match found {
            Some(row) => row,
            None if self.moved && self.selected.is_some() && self.fuzzy.is_empty() => {
                self.scroll.cursor.min(last)
            }
            None => first().unwrap_or(0),
        };
        self.follow = true;
    }

    fn row_of(&self, id: &SkillId) -> Option<usize> {
        self.rows.iter().position(|row| matches!(row, Row::Entry(i) if &self.entries[*i].id == id))
    }

    /// Selects the entry under the cursor if it is not the same as before, and returns its id and whether it can be
    /// read.
    pub fn take_selection(&mut self) -> Option<(SkillId, bool)> {
        let entry = self.entry()?;
        if self.selected.as_ref() == Some(&entry.id) {
            return None;
        }
        let (id, is_readable) = (entry.id.clone(), entry.is_readable());
        self.selected = Some(id.clone());
        Some((id, is_readable))
    }

    /// Moves the cursor to a skill, resetting a filter or collapsed group that hides it; returns whether it is known.
    pub fn go_to(&mut self, id: &SkillId) -> bool {
        if self.entries.iter().all(|e| &e.id != id) {
            return false;
        }
        self.moved = true;
        if self.row_of(id).is_none() {
            self.filter.clear();
            self.fuzzy.set("");
            self.turned.clear();
            self.build();
        }
        if self.row_of(id).is_none() {
            self.turned.insert("shadowed".to_owned());
            self.build();
        }
        self.follow = true;
        if let Some(row) = self.row_of(id) {
            self.scroll.cursor = row;
        }
        true
    }

    /// Moves the cursor; returns `None` if the action moves none.
    pub fn move_cursor(&mut self, action: Action) -> Option<()> {
        let rows = action.rows(self.scroll.page())?;
        self.scroll.by(rows, self.rows.len());
        (self.follow, self.moved) = (true, true);
        Some(())
    }

    pub fn sort_by_next(&mut self) -> Vec<Effect> {
        self.sort = self.sort.next();
        self.sort_again();
        self.build();
        self.all_tokens()
    }

    pub fn group_by_next(&mut self) {
        self.group = self.group.next();
        self.build();
    }

    /// Returns whether the cursor is on the heading of a group; `None` without rows.
    pub fn is_on_group(&self) -> Option<bool> {
        Some(matches!(self.rows.get(self.scroll.cursor)?, Row::Group { .. }))
    }

    /// Collapses or expands the group that contains the cursor, and moves to its heading.
    pub fn fold(&mut self) {
        let before = &self.rows[..(self.scroll.cursor + 1).min(self.rows.len())];
        let Some(at) = before.iter().rposition(|row| matches!(row, Row::Group { .. })) else { return };
        let Row::Group { key, .. } = self.rows[at].clone() else { return };
        (self.scroll.cursor, self.moved) = (at, true);
        if !self.turned.remove(&key) {
            self.turned.insert(key);
        }
        self.build();
    }

    pub fn apply_filter(&mut self) {
        self.fuzzy.set(self.filter.text());
        self.moved = true;
        // While a filter is typed, the cursor is on the best match.
        if !self.fuzzy.is_empty() {
            self.selected = None;
            self.rows.clear();
            self.scroll = Scroll::default();
        }
        self.build();
    }

    pub fn set_client(&mut self, view: Option<&Arc<ClientView>>) {
        self.client.view = view.cloned();
        self.take_entries();
        self.client.collect_hidden();
        self.build();
    }

    pub fn set_budget(&mut self, client: &str, view: &Arc<BudgetView>) {
        self.client.set_budget(client, view);
        self.build();
    }

    pub fn take_levels(&mut self, levels: &[LevelTokens]) {
        self.tokens.extend(levels);
        if self.sort == SortBy::Tokens {
            self.sort_again();
            self.build();
        }
    }

    /// Requests token counts of all skills, for sorting by them.
    pub fn all_tokens(&mut self) -> Vec<Effect> {
        if self.sort != SortBy::Tokens {
            return Vec::new();
        }
        let readable = self.entries.iter().filter(|e| e.is_readable());
        self.tokens.request(readable.map(|e| &e.id))
    }

    /// Moves the cursor to the row at a position; returns whether there is one.
    pub fn click(&mut self, at: Position) -> bool {
        let row = self.scroll.offset + usize::from(at.y - self.area.y);
        if row >= self.rows.len() {
            return false;
        }
        (self.scroll.cursor, self.moved) = (row, true);
        true
    }

    pub fn roll(&mut self, rows: isize) {
        self.follow = false;
        self.scroll.roll(rows, self.rows.len());
    }
}
