//! Pane 1: every skill that was found, and its content.

mod budget;
mod collisions;
mod collisions_view;
mod contract_view;
mod detail;
mod detail_view;
mod disclosure_view;
mod empty_view;
mod files_view;
mod items;
mod keys;
mod list;
mod list_view;
mod mouse;
mod rivals_view;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;

use self::detail::{Detail, Tab};
use self::items::{Entry, ExclusionReason};
use self::list::{GroupBy, Row, RowOptions, SortBy};
use crate::field::Field;
use crate::pane::{Effect, Message, PickerKind, Target};
use crate::run_requests::{RunRequest, RunResponse};
use crate::session_requests::SessionResponse;
use crate::widgets::fuzzy::Fuzzy;
use crate::widgets::scroll::Scroll;
use skills_api::{ClientView, ContractView, Error, Event, ForeignBundle, LevelTokens};
use skills_registry::{Catalogue, ScanProgress};
use skills_skill::{RejectedBundle, SkillId};

/// Maximum number of skills in one request for token counts.
const LEVELS_AT_ONCE: usize = 256;
/// Maximum number of cached contracts.
const CONTRACTS_KEPT: usize = 64;

/// The parts that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    Filter,
    Detail,
}

/// Areas of the last frame.
#[derive(Debug, Default)]
struct FrameAreas {
    list: Rect,
    filter: Rect,
    detail: Rect,
    tabs: Vec<(Rect, Tab)>,
    tree: Rect,
    findings: Vec<(Rect, usize)>,
}

/// The state of pane 1.
#[derive(Default)]
pub struct Browse {
    catalogue: Arc<Catalogue>,
    scan: ScanProgress,
    entries: Vec<Entry>,
    order: Vec<usize>,
    rows: Vec<Row>,
    matched: usize,
    group: GroupBy,
    sort: SortBy,
    turned: HashSet<String>,
    filter: Field,
    fuzzy: Fuzzy,
    scroll: Scroll,
    follow: bool,
    /// Whether the user moved the cursor; until then it stays on the first skill.
    moved: bool,
    selected: Option<SkillId>,
    focus: Focus,
    client: Option<Arc<ClientView>>,
    unseen: HashMap<SkillId, String>,
    budget: budget::Budget,
    /// The client to which the budget belongs.
    budget_of: Option<String>,
    levels: HashMap<SkillId, LevelTokens>,
    asked_levels: HashSet<SkillId>,
    edited: HashSet<SkillId>,
    detail: Detail,
    /// The state of the collision map.
    map: collisions::Map,
    visit: Option<SkillId>,
    wanted: Vec<Effect>,
    drawn: FrameAreas,
}

impl Browse {
    /// Creates an empty pane with the focus on the list.
    #[must_use]
    pub fn new() -> Self {
        Self { follow: true, ..Self::default() }
    }

    fn entry(&self) -> Option<&Entry> {
        match self.rows.get(self.scroll.cursor)? {
            Row::Entry(index) => self.entries.get(*index),
            Row::Group { .. } => None,
        }
    }

    /// Returns the entry whose content is shown: the one under the cursor, or the last one that was.
    fn shown_entry(&self) -> Option<&Entry> {
        self.entry().or_else(|| self.entries.iter().find(|e| Some(&e.id) == self.selected.as_ref()))
    }

    fn refusal(&self) -> Option<&RejectedBundle> {
        match self.shown_entry()?.exclusion {
            ExclusionReason::Refused(index) => self.catalogue.refused.get(index),
            _ => None,
        }
    }

    /// Returns the bundle that is shown if only the selected client finds it.
    fn foreign(&self) -> Option<&ForeignBundle> {
        let entry = self.shown_entry().filter(|entry| entry.exclusion == ExclusionReason::Elsewhere)?;
        let all = &self.client.as_ref()?.foreign;
        all.iter().find(|one| one.location.as_os_str() == entry.id.as_str())
    }

    fn take_catalogue(&mut self, catalogue: &Arc<Catalogue>) -> Vec<Effect> {
        self.catalogue = Arc::clone(catalogue);
        self.detail.forget();
        self.take_entries();
        self.build();
        let refresh = self.detail.skill.as_ref().map(|d| (d.summary.skill_id.clone(), d.skill.digest));
        let mut effects = self.selection_changed();
        if effects.is_empty()
            && let Some((id, digest)) = refresh
            && self.catalogue.by_id(id.as_str()).is_none_or(|s| s.digest != digest)
        {
            effects.push(Effect::Describe(id));
        }
        if let Some(id) = self.visit.take() {
            effects.extend(self.go_to(&id));
        }
        effects
    }

    /// Sets the entries: those of the catalog, and those that the selected client lists in addition.
    fn take_entries(&mut self) {
        self.entries = items::entries(&self.catalogue);
        if let Some(client) = &self.client {
            self.entries.extend(items::elsewhere(client));
        }
        self.sort_again();
    }

    fn sort_again(&mut self) {
        let levels = &self.levels;
        self.order = list::sorted(&self.entries, self.sort, |id| levels.get(id).map(|l| l.l2));
    }

    /// Rebuilds the rows; the cursor stays on its skill.
    fn build(&mut self) {
        let name = self.client.as_ref().map(|c| c.name.clone());
        let client = name.as_deref().map(|name| (name, &self.unseen));
        let wishes = RowOptions { group: self.group, turned: &self.turned, client };
        let group = match self.rows.get(self.scroll.cursor) {
            Some(Row::Group { key, .. }) => Some(key.clone()),
            _ => None,
        };
        let (rows, matched) =
            list::rows(&self.entries, &self.order, &self.catalogue, &wishes, &mut self.fuzzy);
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

    /// Requests the data of the skill under the cursor if it is another one than before.
    fn selection_changed(&mut self) -> Vec<Effect> {
        let Some(entry) = self.entry() else { return Vec::new() };
        if self.selected.as_ref() == Some(&entry.id) {
            return Vec::new();
        }
        let (id, refused) = (entry.id.clone(), !entry.is_readable());
        self.selected = Some(id.clone());
        self.detail.leave();
        if let Some(known) = self.detail.known.get(&id) {
            self.detail.skill = Some(Arc::clone(known));
            return self.preview();
        }
        if refused { Vec::new() } else { vec![Effect::Describe(id)] }
    }

    /// Moves the cursor to a skill, resetting a filter or collapsed group that hides it.
    fn go_to(&mut self, id: &SkillId) -> Vec<Effect> {
        if self.entries.iter().all(|e| &e.id != id) {
            self.visit = Some(id.clone());
            return Vec::new();
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
        self.focus = Focus::List;
        self.map.is_open = false;
        self.follow = true;
        if let Some(row) = self.row_of(id) {
            self.scroll.cursor = row;
        }
        self.selection_changed()
    }

    fn news(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Catalogue(catalogue) => self.take_catalogue(catalogue),
            Message::Event(Event::Catalogue(change)) => {
                for id in change.changed.iter().chain(&change.removed) {
                    self.levels.remove(id);
                    self.asked_levels.remove(id);
                }
                if self.scan.done {
                    self.edited.extend(change.changed.iter().chain(&change.added).cloned());
                }
                let mut effects = self.take_catalogue(&change.catalogue);
                self.detail.rivals.clear();
                self.detail.asked_rivals.clear();
                effects.extend(self.map.forget());
                if let Some(client) = &self.client {
                    effects.extend(Self::as_client(&client.client));
                }
                effects.into_iter().chain(self.all_levels()).collect()
            }
            Message::Event(Event::Scan(progress)) => {
                self.scan = *progress;
                Vec::new()
            }
            Message::Detail(id, detail) if Some(id) == self.selected.as_ref() => {
                match detail {
                    Ok(detail) => {
                        self.detail.know(id, detail);
                        self.detail.skill = Some(Arc::clone(detail));
                        self.detail.error = None;
                    }
                    Err(error) => self.detail.error = Some(error.clone()),
                }
                self.preview()
            }
            Message::Detail(id, Ok(detail)) => {
                self.detail.know(id, detail);
                Vec::new()
            }
            Message::File(id, path, content) if Some(id) == self.selected.as_ref() => {
                if self.detail.chosen_file().as_deref() == Some(path) {
                    self.detail.file = Some((path.clone(), content.clone()));
                    self.detail.preview = Scroll::default();
                }
                Vec::new()
            }
            Message::Levels(levels) => {
                self.levels.extend(levels.iter().map(|l| (l.skill_id.clone(), l.clone())));
                if self.sort == SortBy::Tokens {
                    self.sort_again();
                    self.build();
                }
                Vec::new()
            }
            Message::Rendered(key, lines) => {
                self.detail.take_rendered(*key, lines);
                Vec::new()
            }
            Message::ClientView(view) => {
                self.client.clone_from(view);
                self.take_entries();
                self.collect_hidden();
                self.build();
                self.selection_changed()
            }
            Message::Run(RunResponse::Contract(skill, contract)) => {
                if self.detail.contracts.len() > CONTRACTS_KEPT {
                    self.detail.contracts.clear();
                    self.detail.asked_contracts.clear();
                }
                self.detail.contracts.insert(SkillId::new(skill), contract.clone());
                Vec::new()
            }
            Message::Run(RunResponse::Following) => {
                self.detail.asked_contracts.clear();
                Vec::new()
            }
            Message::Visit(Target::Skill(id)) => self.go_to(id),
            Message::Picked(PickerKind::Client, id) => Self::as_client(id),
            Message::Session(SessionResponse::Budget(client, result)) => {
                match result {
                    Ok(view) => self.take_budget(client, view),
                    Err(error) => {
                        return vec![Effect::ErrorNotice(
                            "the client's budget".to_owned(),
                            error.message.clone(),
                        )];
                    }
                }
                Vec::new()
            }
            Message::Rivals(id, rivals) => {
                if self.detail.rivals.len() > CONTRACTS_KEPT {
                    self.detail.rivals.clear();
                    self.detail.asked_rivals.clear();
                }
                self.detail.asked_rivals.insert(id.clone());
                self.detail.rivals.insert(id.clone(), rivals.clone());
                Vec::new()
            }
            Message::Collisions(report) => self.map.take_report(report),
            Message::Pair(a, b, report) => {
                self.map.take_pair(a, b, report);
                Vec::new()
            }
            Message::Picked(PickerKind::CopyAs, what) => self.copy_as(what),
            Message::Picked(PickerKind::SkillToOpen, id) => self.go_to(&SkillId::new(id)),
            _ => Vec::new(),
        }
    }

    /// Prefetches the skills above and below, and their texts, so that the next step shows them at once.
    fn look_ahead(&mut self, width: u16) {
        let at = self.scroll.cursor;
        for row in [at.checked_add(1), at.checked_sub(1)].into_iter().flatten() {
            let Some(Row::Entry(index)) = self.rows.get(row) else { continue };
            let entry = &self.entries[*index];
            if !entry.is_readable() {
                continue;
            }
            if let Some(skill) = self.detail.known.get(&entry.id).cloned() {
                self.detail.rendered(&skill.body, "markdown", width, &mut self.wanted);
            } else if self.detail.asked_ahead.insert(entry.id.clone()) {
                self.wanted.push(Effect::Describe(entry.id.clone()));
            }
        }
    }

    /// Returns the contract of the skill that is shown; requests it if it is not loaded or may be outdated.
    fn contract_of_shown(&mut self) -> Option<Result<Arc<ContractView>, Error>> {
        let id = self.shown_entry()?.id.clone();
        if self.detail.asked_contracts.insert(id.clone()) {
            self.wanted.push(Effect::Run(RunRequest::Contract(id.to_string())));
        }
        self.detail.contracts.get(&id).cloned()
    }

    /// Requests the file under the tree's cursor if it is not loaded.
    fn preview(&mut self) -> Vec<Effect> {
        if self.detail.tab != Tab::Files {
            return Vec::new();
        }
        let (Some(id), Some(path)) = (self.selected.clone(), self.detail.chosen_file()) else {
            return Vec::new();
        };
        let there = self.detail.file.as_ref().is_some_and(|(known, _)| *known == path);
        if there { Vec::new() } else { vec![Effect::ReadFile(id, path)] }
    }

    /// Requests token counts of all skills in batches, for sorting by them.
    fn all_levels(&mut self) -> Vec<Effect> {
        if self.sort != SortBy::Tokens {
            return Vec::new();
        }
        let unknown = self.entries.iter().filter(|e| e.is_readable());
        let unknown: Vec<SkillId> =
            unknown.map(|e| e.id.clone()).filter(|id| !self.asked_levels.contains(id)).collect();
        self.asked_levels.extend(unknown.iter().cloned());
        unknown.chunks(LEVELS_AT_ONCE).map(|ids| Effect::Levels(ids.to_vec())).collect()
    }
}
