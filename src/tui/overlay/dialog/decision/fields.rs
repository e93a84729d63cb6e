//! The fields of a decision: the approver, and notes.

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::super::parts;
use crate::field::Field;
use crate::form::Text;
use crate::widgets::{Painter, shown};
use skills_api::DecisionPreview;

/// Names of the fields in the draft.
const NOTES: &str = "notes";
const APPROVER: &str = "approver";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Approver,
    Notes,
}

pub(super) struct Fields {
    approver: Field,
    pub notes: Text,
    /// The suggested approver.
    offered: String,
    /// Areas of the last frame.
    areas: [(Part, Rect); 2],
}

impl Fields {
    pub fn new(preview: &DecisionPreview) -> Self {
        let offered = preview.approver.as_ref().map(|(name, _)| shown(name)).unwrap_or_default();
        let mut approver = Field::new();
        approver.set(&offered);
        let areas = [Part::Approver, Part::Notes].map(|part| (part, Rect::ZERO));
        Self { approver, notes: Text::default(), offered, areas }
    }

    /// Restores a draft.
    pub fn retype(&mut self, typed: &Map<String, Value>) {
        let text = |name: &str| typed.get(name).and_then(Value::as_str);
        if let Some(name) = text(APPROVER) {
            self.approver.set(name);
        }
        if let Some(notes) = text(NOTES) {
            self.notes.set(notes);
        }
    }

    /// Returns the entered fields.
    pub fn typed(&self) -> Map<String, Value> {
        let mut typed = Map::new();
        if !self.notes.text().trim().is_empty() {
            typed.insert(NOTES.to_owned(), Value::from(self.notes.text()));
        }
        if self.approver.text() != self.offered {
            typed.insert(APPROVER.to_owned(), Value::from(self.approver.text()));
        }
        typed
    }

    /// Returns approver and notes as they are sent.
    pub fn words(&self) -> (Option<String>, Option<String>) {
        let words = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        (words(self.approver.text()), words(self.notes.text()))
    }

    /// Returns whether a person other than the suggested approver is named.
    pub fn names_another(&self) -> bool {
        self.words().0.is_some_and(|name| name != self.offered.trim())
    }

    pub fn key(&mut self, part: Part, key: KeyEvent) {
        match part {
            Part::Approver => self.approver.key(key),
            Part::Notes => self.notes.key(key),
        };
    }

    pub fn paste(&mut self, part: Part, text: &str) {
        match part {
            Part::Approver => self.approver.paste(text),
            Part::Notes => self.notes.insert(text.trim_end_matches(['\r', '\n'])),
        };
    }

    /// Moves the cursor to a click; returns the field.
    pub fn click(&mut self, at: Position) -> Option<Part> {
        let (part, _) = *self.areas.iter().find(|(_, area)| area.contains(at))?;
        match part {
            Part::Approver => drop(self.approver.click(at)),
            Part::Notes => self.notes.click(at),
        }
        Some(part)
    }

    /// Draws the approver in a row and the notes in the rows below.
    pub fn draw(
        &mut self,
        (row, below): (Rect, Rect),
        (preview, focused): (&DecisionPreview, Option<Part>),
        painter: &mut Painter<'_>,
    ) -> Option<Position> {
        let from = preview.approver.as_ref().map(|(_, from)| shown(from)).unwrap_or_default();
        let show = |part, label, hint, note| parts::Row {
            label,
            hint,
            note,
            wrong: false,
            focused: focused == Some(part),
        };
        let approver = show(Part::Approver, "approver", "your name", &*from);
        let notes = show(Part::Notes, "notes", "optional, stored with the decision", "");
        self.areas = [(Part::Approver, row), (Part::Notes, below)];
        let first = parts::field(row, painter, &mut self.approver, &approver);
        first.or(parts::text(below, painter, &mut self.notes, &notes))
    }
}
