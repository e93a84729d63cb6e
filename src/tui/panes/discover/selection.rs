//! The selection while answers change: the first result until the user selects another one, and then exactly that
//! bundle, identified by its path if the catalog reports it. While roots are scanned, an id can pass from one bundle to
//! another.

use std::path::PathBuf;
use std::sync::Arc;

use super::listing::Lookup;
use super::rows::{self, Item, OpenedSkill, Outcome};
use super::{Discover, Focus};
use crate::pane::{Effect, PaneId, Target};
use skills_api::Error;
use skills_discovery::{Answer, Hit};
use skills_skill::SkillId;

/// What the user put the cursor on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// A skill, and its path.
    Skill(SkillId, Option<PathBuf>),
    /// An index in the list whose page is being loaded.
    CellRange(usize),
    /// The line that represents all copies.
    Copies,
}

impl Discover {
    /// Returns the item under the cursor.
    pub(super) fn item(&self) -> Option<Item> {
        match self.rows.get(*self.items.get(self.cursor)?)? {
            rows::Row::Item(item) => Some(*item),
            rows::Row::Heading(..) => None,
        }
    }

    /// Returns the skill of an item if its page is loaded.
    pub(super) fn skill_of(&self, item: Item) -> Option<&SkillId> {
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
    pub(super) fn hit(&self) -> Option<&Hit> {
        match self.item()? {
            Item::Hit(place) => self.listing.hit(place),
            _ => None,
        }
    }

    /// Returns its rank among all results, from 1.
    pub(super) fn rank(&self) -> Option<usize> {
        match self.item()? {
            Item::Hit(place) => self.listing.rank(place),
            _ => None,
        }
    }

    /// Returns the skill under the cursor.
    pub(super) fn selected(&self) -> Option<&SkillId> {
        self.skill_of(self.item()?)
    }

    /// Moves the cursor to an item on behalf of the user.
    pub(super) fn choose(&mut self, place: usize) {
        if place == self.cursor {
            return;
        }
        self.cursor = place;
        self.why.offset = 0;
        self.remember_choice();
    }

    fn remember_choice(&mut self) {
        self.selected = self.selected().cloned();
        self.chosen = match (&self.selected, self.item()) {
            (Some(id), _) => Some(Selection::Skill(id.clone(), self.location(id))),
            (None, Some(Item::Copies(_))) => Some(Selection::Copies),
            (None, Some(Item::Hit(place))) => Some(Selection::CellRange(place)),
            _ => None,
        };
    }

    fn location(&self, id: &SkillId) -> Option<PathBuf> {
        self.catalogue.by_id(id.as_str()).map(|skill| skill.location.clone())
    }

    /// Rebuilds the rows of the current list and restores the cursor.
    pub(super) fn set_rows(&mut self) {
        let before = self.selected.take();
        self.rows = rows::rows(&self.listing, self.unfolded, self.opened.is_some());
        self.items = rows::items(&self.rows);
        let place = self.place_of_chosen();
        self.cursor = place.unwrap_or(0);
        self.selected = self.selected().cloned();
        // An answer that keeps the selection must not change the scroll position.
        if self.selected != before {
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
            rows::Row::Item(item) => is_chosen(item),
            rows::Row::Heading(..) => false,
        })
    }

    /// Requests the rank of the selected skill if its page is not loaded.
    pub(super) fn find_chosen(&mut self) -> Vec<Effect> {
        match &self.chosen {
            Some(Selection::Skill(id, _)) if self.place_of_chosen().is_none() => {
                let id = id.clone();
                self.look_up(id)
            }
            _ => Vec::new(),
        }
    }

    /// Requests the rank and the score breakdown of a skill.
    pub(super) fn look_up(&self, id: SkillId) -> Vec<Effect> {
        let Some(shown) = self.asking.shown() else { return Vec::new() };
        let mut request = self.options.request(&shown.intent, shown.typing);
        (request.skill, request.limit) = (Some(id.clone()), 1);
        vec![Effect::Results { request, lookup: Lookup::Skill { list: self.listing.number(), id } }]
    }

    /// Opens a skill by its name: in the ranking of the current request, or in Browse if there is none.
    pub(super) fn open_by_name(&mut self, id: &SkillId) -> Vec<Effect> {
        // A rejected bundle is not ranked.
        let is_rejected = self.catalogue.refused.iter().any(|refusal| refusal.id == *id);
        if self.asking.shown().is_none() || is_rejected && self.catalogue.by_id(id.as_str()).is_none() {
            return vec![Effect::Go(PaneId::Browse, Some(Target::Skill(id.clone())))];
        }
        let writing = self.focus == Focus::Intent;
        self.focus = if self.drawn.folded { Focus::Why } else { Focus::Results };
        self.opening = Some(id.clone());
        let finished = if writing { self.finish() } else { Vec::new() };
        if finished.is_empty() { self.look_up(id.clone()) } else { finished }
    }

    /// Handles the response to a lookup.
    pub(super) fn take_lookup(
        &mut self,
        lookup: &Lookup,
        answer: &Result<Arc<Answer>, Error>,
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
                    self.results.offset = 0;
                    self.set_rows();
                    return self.opening.clone().map(|id| self.look_up(id)).unwrap_or_default();
                }
            }
            (Lookup::Filter { .. }, Err(error)) => {
                return vec![trouble("cannot filter the results", error)];
            }
            (Lookup::Skill { list, id }, Ok(answer)) => {
                if *list == self.listing.number() {
                    self.place_skill(id, answer);
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
    fn place_skill(&mut self, id: &SkillId, answer: &Answer) {
        let opening = self.opening.take_if(|opening| opening == id).is_some();
        if !opening && !matches!(&self.chosen, Some(Selection::Skill(chosen, _)) if chosen == id) {
            return;
        }
        let rank = answer.results.first().and_then(|hit| hit.rank);
        self.opened = None;
        if self.place_of(id).is_none() && !self.filter.is_empty() {
            // The filter hides it.
            self.filter.clear();
            self.listing.set(self.asking.shown().map(|s| Arc::clone(&s.answer)), "");
            self.set_rows();
        }
        if self.place_of(id).is_none() && rank.is_none() && !self.unfolded {
            self.unfolded = true;
            self.set_rows();
            self.unfolded = self.place_of(id).is_some();
        }
        let place = self.place_of(id).or_else(|| self.place_of_item(Item::Hit(rank?.checked_sub(1)?)));
        if place.is_none() {
            self.opened = Some(OpenedSkill { id: id.clone(), outcome: Outcome::of(answer) });
        }
        self.set_rows();
        let place = place.or_else(|| self.place_of_item(Item::Opened));
        self.move_to(place.unwrap_or(0), id);
    }

    fn place_of(&self, id: &SkillId) -> Option<usize> {
        self.items.iter().position(|row| match self.rows[*row] {
            rows::Row::Item(item) => self.skill_of(item) == Some(id),
            rows::Row::Heading(..) => false,
        })
    }

    fn place_of_item(&self, wanted: Item) -> Option<usize> {
        self.items.iter().position(|row| self.rows[*row] == rows::Row::Item(wanted))
    }

    fn move_to(&mut self, place: usize, id: &SkillId) {
        self.cursor = place;
        self.why.offset = 0;
        self.follow = true;
        self.chosen = Some(Selection::Skill(id.clone(), self.location(id)));
        self.selected = self.selected().cloned();
    }

    /// Returns how many skills are loaded, until all are: the verdict may still change.
    pub(super) fn reading(&self) -> Option<(usize, usize)> {
        if !self.scan.done && self.scan.parsed < self.scan.found {
            return Some((self.scan.parsed, self.scan.found));
        }
        let answer = &self.asking.shown()?.answer;
        (answer.bodies_missing > 0)
            .then(|| (answer.skills.saturating_sub(answer.bodies_missing), answer.skills))
    }
}

fn trouble(what: &str, error: &Error) -> Effect {
    Effect::ErrorNotice(what.to_owned(), error.message.clone())
}
