//! What the cursor stands on while answers come and go: the first of the ranking until a person chooses
//! another, and then that very bundle, known by its place on disk where the catalogue tells it. While roots
//! are read an id can pass from one bundle to another.

use std::path::PathBuf;

use super::Discover;
use super::rows::{self, Item};
use crate::skill::SkillId;

/// What the person put the cursor on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// A skill, and where it stands.
    Skill(SkillId, Option<PathBuf>),
    /// The line that stands for all copies.
    Copies,
}

impl Discover {
    /// Puts the cursor on an item because a person wants it there.
    pub(super) fn choose(&mut self, place: usize) {
        if place == self.cursor {
            return;
        }
        self.cursor = place;
        self.why.offset = 0;
        self.held = self.selected().cloned();
        self.chosen = match &self.held {
            Some(id) => Some(Chosen::Skill(id.clone(), self.location(id))),
            None => self.on_copies().then_some(Chosen::Copies),
        };
    }

    fn location(&self, id: &SkillId) -> Option<PathBuf> {
        self.catalogue.by_id(id.as_str()).map(|skill| skill.location.clone())
    }

    /// Rows of the present answer, and the cursor where it belongs in them.
    pub(super) fn set_rows(&mut self) {
        let before = self.held.take();
        self.rows = self.asking.shown().map(|s| rows::rows(&s.answer, self.unfolded)).unwrap_or_default();
        self.items = rows::items(&self.rows);
        self.cursor = self.place_of_chosen().unwrap_or(0);
        self.held = self.selected().cloned();
        // Reading on is not disturbed by an answer that leaves the selection where it was.
        if self.held != before {
            self.follow = true;
            self.why.offset = 0;
        }
    }

    fn place_of_chosen(&self) -> Option<usize> {
        let answer = &self.asking.shown()?.answer;
        let is_chosen = |item: &Item| match (self.chosen.as_ref(), item) {
            (Some(Chosen::Copies), Item::Copies(_)) => true,
            (Some(Chosen::Skill(chosen, wanted)), item) => {
                item.skill(answer).is_some_and(|id| match (wanted, self.location(id)) {
                    (Some(wanted), Some(location)) => *wanted == location,
                    _ => id == chosen,
                })
            }
            _ => false,
        };
        self.items.iter().position(|(item, _)| is_chosen(item))
    }

    /// How much of the skills is read, while not all of it is: the verdict may still change.
    pub(super) fn reading(&self) -> Option<(usize, usize)> {
        if !self.scan.done && self.scan.parsed < self.scan.found {
            return Some((self.scan.parsed, self.scan.found));
        }
        let answer = &self.asking.shown()?.answer;
        (answer.bodies_missing > 0)
            .then(|| (answer.skills.saturating_sub(answer.bodies_missing), answer.skills))
    }
}
