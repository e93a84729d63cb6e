//! The result list with its cursor, and the selection while answers change: the first result until the user selects
//! another one, and then exactly that bundle, identified by its path if the catalog reports it. While roots are
//! scanned, an id can pass from one bundle to another.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::ask::PendingRequests;
use super::listing::{Listing, Lookup, PAGE_SIZE};
use super::rows::{self, Item, OpenedSkill, Outcome, Row};
use crate::action::Action;
use crate::field::Field;
use crate::pane::{Effect, PaneId, Target};
use crate::widgets::Scroll;
use skills_api::Error;
use skills_discovery::{Answer, Hit};
use skills_registry::Catalog;
use skills_skill::SkillId;

/// What the user moved the cursor to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    Skill(SkillId, Option<PathBuf>),
    /// An index in the list whose page is being loaded.
    CellRange(usize),
    /// The line that represents all copies.
    Copies,
}

/// The list of results, and the cursor in it.
#[derive(Default)]
pub(super) struct ResultList {
    pub catalog: Arc<Catalog>,
    pub listing: Listing,
    pub filter: Field,
    pub rows: Vec<Row>,
    /// Rows that the cursor can be on.
    pub items: Vec<usize>,
    /// Index into `items`.
    pub cursor: usize,
    /// What the user moved the cursor to; `None` while it stays on the first result by itself.
    pub chosen: Option<Selection>,
    /// The skill under the cursor after the last answer.
    last: Option<SkillId>,
    /// A skill being opened by its name, until its rank is known.
    pub opening: Option<SkillId>,
    /// A skill that was opened and is not a row of the list.
    pub opened: Option<OpenedSkill>,
    /// Whether shadowed copies are listed one by one.
    pub unfolded: bool,
    /// Scroll position in screen lines, not items.
    pub scroll: Scroll,
    /// Whether the window follows the cursor (the wheel detaches it).
    pub follow: bool,
    /// Scroll position of the explanation of the selected item.
    pub why: Scroll,
    /// Whether list and explanation share one column.
    pub folded: bool,
    /// Areas of the last frame.
    pub area: Rect,
    pub filter_area: Rect,
    /// Visible rows with the index of their item.
    pub visible: Vec<(Rect, usize)>,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
}

impl ResultList {
    pub fn new() -> Self {
        Self { follow: true, ..Self::default() }
    }

    /// Forgets the areas of the last frame.
    pub fn start_frame(&mut self, folded: bool) {
        self.folded = folded;
        (self.area, self.filter_area) = (Rect::ZERO, Rect::ZERO);
        self.visible.clear();
    }

    /// Rebuilds the list from the answer that is shown.
    pub fn take_answer(&mut self, asking: &PendingRequests) -> Vec<Effect> {
        self.opened = None;
        let answer = asking.shown().map(|s| Arc::clone(&s.answer));
        if answer.is_some() && !self.filter.text().trim().is_empty() {
            return self.apply_filter(asking);
        }
        self.listing.set(answer, "");
        self.set_rows();
        match self.opening.clone() {
            Some(id) => self.look_up(id, asking),
            None => self.find_chosen(asking),
        }
    }

    /// Requests the results that match the filter. The current list stays until they arrive.
    pub fn apply_filter(&mut self, asking: &PendingRequests) -> Vec<Effect> {
        let Some((shown, mut request)) = asking.shown().zip(asking.request()) else { return Vec::new() };
        let text = self.filter.text().to_owned();
        if text.trim().is_empty() {
            self.listing.set(Some(Arc::clone(&shown.answer)), "");
            self.set_rows();
            return self.find_chosen(asking);
        }
        request.filter.clone_from(&text);
        let list = self.listing.next();
        vec![Effect::Results { request, lookup: Lookup::Filter { list, text } }]
    }

    /// Handles a change of the filter: the cursor moves to the first match.
    pub fn filter_typed(&mut self, asking: &PendingRequests) -> Vec<Effect> {
        self.chosen = None;
        self.apply_filter(asking)
    }

    /// Returns whether an id is only that of a rejected bundle, which is not ranked.
    pub fn is_rejected(&self, id: &SkillId) -> bool {
        let refused = &self.catalog.refused;
        refused.iter().any(|refusal| refusal.id == *id) && self.catalog.by_id(id.as_str()).is_none()
    }

    /// Clears filter and selection.
    pub fn clear(&mut self) {
        self.filter.clear();
        (self.chosen, self.opening) = (None, None);
    }

    /// Requests the page of a result if it is not loaded.
    pub fn want_place(&mut self, place: usize, asking: &PendingRequests) {
        let Some(mut request) = asking.request() else { return };
        if let Some(page) = self.listing.missing(place) {
            request.offset = page * PAGE_SIZE;
            self.listing.filter().clone_into(&mut request.filter);
            let lookup = Lookup::Page { list: self.listing.number(), page };
            self.wanted.push(Effect::Results { request, lookup });
        }
    }

    /// Lists copies one by one, or in one line.
    pub fn toggle_copies(&mut self) {
        self.unfolded = !self.unfolded;
        let cursor = self.cursor;
        self.set_rows();
        self.cursor = cursor;
    }

    /// Returns whether the cursor is on the line that represents all copies.
    pub fn on_copies(&self) -> bool {
        matches!(self.item(), Some(Item::Copies(_)))
    }

    /// Moves the cursor by a row, a page or to an end; returns `false` for every other action.
    pub fn move_cursor(&mut self, action: Action) -> bool {
        // One item of a page stays visible.
        let mut seen: Vec<usize> = self.visible.iter().map(|(_, item)| *item).collect();
        seen.dedup();
        let page = seen.len().saturating_sub(1).max(1) as isize;
        let Some(rows) = action.rows(page) else { return false };
        let last = self.items.len().saturating_sub(1);
        self.choose(self.cursor.saturating_add_signed(rows).min(last));
        self.follow = true;
        true
    }

    pub fn click(&mut self, at: Position) {
        if let Some((_, item)) = self.visible.iter().find(|(rect, _)| rect.contains(at)) {
            self.choose(*item);
        }
    }

    /// Scrolls the list.
    pub fn roll(&mut self, rows: isize) {
        self.follow = false;
        // Drawing clamps the offset.
        self.scroll.offset = self.scroll.offset.saturating_add_signed(rows);
    }

    /// Scrolls the explanation.
    pub fn roll_why(&mut self, rows: isize) {
        // Drawing knows the length and clamps the offset.
        self.why.offset = self.why.offset.saturating_add_signed(rows).min(10_000);
    }

    /// Returns the item under the cursor.
    pub fn item(&self) -> Option<Item> {
        match self.rows.get(*self.items.get(self.cursor)?)? {
            Row::Item(item) => Some(*item),
            Row::Heading(..) => None,
        }
    }

    /// Returns the skill of an item if its page is loaded.
    pub fn skill_of(&self, item: Item) -> Option<&SkillId> {
        let answer = || self.listing.first();
        match item {
            Item::Hit(place) => self.listing.hit(place).map(|h| &h.skill_id),
            Item::Attachable(i) => answer()?.attachable.get(i).map(|a| &a.skill_id),
            Item::Excluded(i) => answer()?.excluded.get(i).map(|e| &e.skill_id),
            Item::Opened => self.opened.as_ref().map(|opened| &opened.id),
            Item::Copies(_) => None,
        }
    }

    /// Returns the result under the cursor.
    pub fn hit(&self) -> Option<&Hit> {
        match self.item()? {
            Item::Hit(place) => self.listing.hit(place),
            _ => None,
        }
    }

    /// Returns its rank among all results, from 1.
    pub fn rank(&self) -> Option<usize> {
        match self.item()? {
            Item::Hit(place) => self.listing.rank(place),
            _ => None,
        }
    }

    /// Returns the skill under the cursor.
    pub fn selected(&self) -> Option<&SkillId> {
        self.skill_of(self.item()?)
    }

    /// Opens the skill under the cursor in Browse.
    pub fn open_in_browse(&self) -> Vec<Effect> {
        let open = |id: &SkillId| Effect::Go(PaneId::Browse, Some(Target::Skill(id.clone())));
        self.selected().map(open).into_iter().collect()
    }

    /// Moves the cursor to an item on behalf of the user.
    fn choose(&mut self, place: usize) {
        if place == self.cursor {
            return;
        }
        self.cursor = place;
        self.why.offset = 0;
        self.remember_choice();
    }

    fn remember_choice(&mut self) {
        self.last = self.selected().cloned();
        self.chosen = match (&self.last, self.item()) {
            (Some(id), _) => Some(Selection::Skill(id.clone(), self.location(id))),
            (None, Some(Item::Copies(_))) => Some(Selection::Copies),
            (None, Some(Item::Hit(place))) => Some(Selection::CellRange(place)),
            _ => None,
        };
    }

    fn location(&self, id: &SkillId) -> Option<PathBuf> {
        self.catalog.by_id(id.as_str()).map(|skill| skill.location.clone())
    }

    /// Rebuilds the rows of the current list and restores the cursor.
    fn set_rows(&mut self) {
        let before = self.last.take();
        self.rows = rows::rows(&self.listing, self.unfolded, self.opened.is_some());
        self.items = rows::items(&self.rows);
        let place = self.place_of_chosen();
        self.cursor = place.unwrap_or(0);
        self.last = self.selected().cloned();
        // An answer that keeps the selection must not change the scroll position.
        if self.last != before {
            self.follow = true;
            self.why.offset = 0;
        }
    }

    fn place_of_chosen(&self) -> Option<usize> {
        let is_chosen = |item: Item| match (self.chosen.as_ref(), item) {
            (Some(Selection::Copies), Item::Copies(_)) => true,
            (Some(Selection::CellRange(wanted)), Item::Hit(place)) => *wanted == place,
            (Some(Selection::Skill(chosen, wanted)), item) => {
                self.skill_of(item).is_some_and(|id| match (wanted, self.location(id)) {
                    (Some(wanted), Some(location)) => *wanted == location,
                    _ => id == chosen,
                })
            }
            _ => false,
        };
        self.items.iter().position(|row| match self.rows[*row] {
            Row::Item(item) => is_chosen(item),
            Row::Heading(..) => false,
        })
    }

    /// Requests the rank of the selected skill if its page is not loaded.
    fn find_chosen(&self, asking: &PendingRequests) -> Vec<Effect> {
        match &self.chosen {
            Some(Selection::Skill(id, _)) if self.place_of_chosen().is_none() => {
                self.look_up(id.clone(), asking)
            }
            _ => Vec::new(),
        }
    }

    /// Requests the rank and the score breakdown of a skill.
    pub fn look_up(&self, id: SkillId, asking: &PendingRequests) -> Vec<Effect> {
        let Some(mut request) = asking.request() else { return Vec::new() };
        (request.skill, request.limit) = (Some(id.clone()), 1);
        vec![Effect::Results { request, lookup: Lookup::Skill { list: self.listing.number(), id } }]
    }

    /// Handles the response to a lookup.
    pub fn take_lookup(
        &mut self,
        lookup: &Lookup,
        answer: &Result<Arc<Answer>, Error>,
        asking: &PendingRequests,
    ) -> Vec<Effect> {
        match (lookup, answer) {
            (Lookup::Page { list, page }, Ok(answer)) => {
                if self.listing.take_page(*list, *page, answer) {
                    self.page_came();
                }
            }
            // It is not requested again before the next answer: otherwise the same error would appear in every frame.
            (Lookup::Page { .. }, Err(error)) => {
                return vec![trouble("cannot load results", error)];
            }
            (Lookup::Filter { list, text }, Ok(answer)) => {
                if self.listing.take_filtered(*list, text, answer) {
                    self.scroll.offset = 0;
                    self.set_rows();
                    return self.opening.clone().map(|id| self.look_up(id, asking)).unwrap_or_default();
                }
            }
            (Lookup::Filter { .. }, Err(error)) => {
                return vec![trouble("cannot filter the results", error)];
            }
            (Lookup::Skill { list, id }, Ok(answer)) => {
                if *list == self.listing.number() {
                    self.place_skill(id, answer, asking);
                }
            }
            (Lookup::Skill { .. }, Err(error)) => {
                return vec![trouble("cannot rank the skill", error)];
            }
        }
        Vec::new()
    }

    /// Moves the cursor to the selected skill after its page was loaded; the rank may have changed since it was
    /// reported.
    fn page_came(&mut self) {
        if let Some(place) = self.place_of_chosen() {
            self.follow |= place != self.cursor;
            self.cursor = place;
        }
        if self.chosen.is_some() && self.selected().is_some() {
            self.remember_choice();
        }
    }

    /// Moves the cursor to a skill that was opened or selected, using the answer about it alone.
    fn place_skill(&mut self, id: &SkillId, answer: &Answer, asking: &PendingRequests) {
        let opening = self.opening.take_if(|opening| opening == id).is_some();
        if !opening && !matches!(&self.chosen, Some(Selection::Skill(chosen, _)) if chosen == id) {
            return;
        }
        let rank = answer.results.first().and_then(|hit| hit.rank);
        self.opened = None;
        if self.index_of(id).is_none() && !self.filter.is_empty() {
            // The filter hides it.
            self.filter.clear();
            self.listing.set(asking.shown().map(|s| Arc::clone(&s.answer)), "");
            self.set_rows();
        }
        if self.index_of(id).is_none() && rank.is_none() && !self.unfolded {
            self.unfolded = true;
            self.set_rows();
            self.unfolded = self.index_of(id).is_some();
        }
        let place = self.index_of(id).or_else(|| self.index_of_item(Item::Hit(rank?.checked_sub(1)?)));
        if place.is_none() {
            self.opened = Some(OpenedSkill { id: id.clone(), outcome: Outcome::of(answer) });
        }
        self.set_rows();
        let place = place.or_else(|| self.index_of_item(Item::Opened));
        self.move_to(place.unwrap_or(0), id);
    }

    fn index_of(&self, id: &SkillId) -> Option<usize> {
        self.items.iter().position(|row| match self.rows[*row] {
            Row::Item(item) => self.skill_of(item) == Some(id),
            Row::Heading(..) => false,
        })
    }

    fn index_of_item(&self, wanted: Item) -> Option<usize> {
        self.items.iter().position(|row| self.rows[*row] == Row::Item(wanted))
    }

    fn move_to(&mut self, place: usize, id: &SkillId) {
        self.cursor = place;
        self.why.offset = 0;
        self.follow = true;
        self.chosen = Some(Selection::Skill(id.clone(), self.location(id)));
        self.last = self.selected().cloned();
    }
}

fn trouble(what: &str, error: &Error) -> Effect {
    Effect::ErrorNotice(what.to_owned(), error.message.clone())
}
