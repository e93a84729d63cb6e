//! A form for a contract's declared fields: validated while typing, with the problem shown at the field. A pane that
//! contains one puts [`Context::Form`](super::action::Context::Form) and `Field` in front of its contexts and reports
//! that a text field has the focus; then it receives every key for the form.

mod entry;
mod read;
mod text;
mod view;

use std::collections::BTreeMap;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use self::entry::{Control, Entry, Meaning};
pub use self::text::Text;
pub use self::view::FormState;
use super::action::Action;
use skills_skill::contract::Field;

/// The effect of an action on a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormOutcome {
    /// A form does not handle the action.
    Unknown,
    /// The focus moved inside the form.
    Stayed,
    Changed,
    /// The focus left before the first field.
    Before,
    /// The focus left after the last field.
    After,
}

/// An invalid or missing value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub field: String,
    /// The problem, to be read after the name (`needs a number`).
    pub why: String,
}

/// The fields, the focused one, and the scroll position.
#[derive(Debug, Clone, Default)]
pub struct Form {
    entries: Vec<Entry>,
    focus: usize,
    /// First visible row.
    offset: usize,
    /// Whether every missing value is reported: the form was submitted once.
    checked: bool,
    drawn: Rect,
}

impl Form {
    /// Creates a form: required fields first, then by name. `values` are initial values (of a run to be corrected, of
    /// an earlier form); names without a field are ignored.
    pub fn new(fields: &BTreeMap<String, Field>, values: &Map<String, Value>) -> Self {
        let mut entries: Vec<Entry> =
            fields.iter().map(|(name, field)| Entry::new(name, field, read::known(values, name))).collect();
        entries.sort_by_key(|entry| !entry.field.required || entry.field.default.is_some());
        Self { entries, ..Self::default() }
    }

    /// Sorts the fields by their position in `names`.
    #[must_use]
    pub fn in_order(mut self, names: &[&str]) -> Self {
        self.entries.sort_by_key(|entry| names.iter().position(|name| *name == entry.name));
        self
    }

    /// Sets values of fields as if they were typed.
    pub fn fill(&mut self, values: &Map<String, Value>) {
        for entry in &mut self.entries {
            if let Some(value) = read::known(values, &entry.name) {
                entry.set(&value);
            }
        }
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns all values, without absent ones.
    ///
    /// # Errors
    /// Returns every problem, in the order of the fields.
    pub fn values(&self) -> Result<Map<String, Value>, Vec<Problem>> {
        let problems = self.problems();
        if problems.is_empty() { Ok(self.so_far()) } else { Err(problems) }
    }

    /// Returns the valid values, regardless of problems of others.
    pub fn so_far(&self) -> Map<String, Value> {
        let value = |entry: &Entry| match entry.meaning() {
            Meaning::Value(value) => Some((entry.name.clone(), value)),
            _ => None,
        };
        self.entries.iter().filter_map(value).collect()
    }

    /// Returns the values that differ from the initial ones; a removed value is null.
    pub fn changes(&self) -> Map<String, Value> {
        let changed = self.entries.iter().filter(|entry| entry.changed());
        let value = |entry: &Entry| match entry.meaning() {
            Meaning::Value(value) => Some((entry.name.clone(), value)),
            Meaning::Absent | Meaning::Missing => Some((entry.name.clone(), Value::Null)),
            Meaning::Wrong(_) => None,
        };
        changed.filter_map(value).collect()
    }

    /// Returns whether the user changed a value, which could be lost.
    pub fn changed(&self) -> bool {
        self.entries.iter().any(Entry::changed)
    }

    /// Returns the user's input verbatim, to be restored later by [`Self::retype`].
    pub fn typed(&self) -> Map<String, Value> {
        self.entries.iter().filter_map(|entry| Some((entry.name.clone(), entry.typed()?))).collect()
    }

    /// Restores what [`Self::typed`] returned for a form with these fields.
    pub fn retype(&mut self, typed: &Map<String, Value>) {
        for entry in &mut self.entries {
            if let Some(value) = typed.get(&entry.name) {
                entry.retype(value);
            }
        }
    }

    /// Returns the text of a text field; `None` for a choice or an unknown name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.entries.iter().find(|entry| entry.name == name)?.control {
            Control::Text(text) => Some(text.text()),
            Control::Choice { .. } => None,
        }
    }

    /// Returns the current problems, in the order of the fields.
    pub fn problems(&self) -> Vec<Problem> {
        let problem = |entry: &Entry| {
            let why = match entry.meaning() {
                Meaning::Wrong(why) => why,
                Meaning::Missing => "is required".to_owned(),
                Meaning::Absent | Meaning::Value(_) => return None,
            };
            Some(Problem { field: entry.name.clone(), why })
        };
        self.entries.iter().filter_map(problem).collect()
    }

    /// Shows every problem and focuses the first; returns whether there is none. To be called on submission.
    pub fn check(&mut self) -> bool {
        self.checked = true;
        let wrong = |entry: &Entry| matches!(entry.meaning(), Meaning::Missing | Meaning::Wrong(_));
        if let Some(at) = self.entries.iter().position(wrong) {
            self.focus = at;
            return false;
        }
        true
    }

    /// Attaches the core's findings to fields (name and message); returns those about no field of this form.
    pub fn remark(&mut self, remarks: &[(String, String)]) -> Vec<(String, String)> {
        for entry in &mut self.entries {
            entry.remark = remarks.iter().find(|(name, _)| *name == entry.name).map(|(_, why)| why.clone());
        }
        let foreign = |name: &str| self.entries.iter().all(|entry| entry.name != name);
        remarks.iter().filter(|(name, _)| foreign(name)).cloned().collect()
    }

    /// Returns the name of the focused field.
    pub fn focused(&self) -> Option<&str> {
        self.entries.get(self.focus).map(|entry| entry.name.as_str())
    }

    /// Focuses the first field.
    pub fn first(&mut self) {
        self.focus = 0;
    }

    /// Focuses the last field.
    pub fn last(&mut self) {
        self.focus = self.entries.len().saturating_sub(1);
    }

    pub fn focus_on(&mut self, name: &str) -> bool {
        let found = self.entries.iter().position(|entry| entry.name == name);
        self.focus = found.unwrap_or(self.focus);
        found.is_some()
    }

    /// Marks the focused field as visited when the focus moves on: if it is required and empty, it is reported from now
    /// on.
    pub fn leave(&mut self) {
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.left = true;
        }
    }

    /// Handles an action of the contexts `form` and `field`.
    pub fn act(&mut self, action: Action) -> FormOutcome {
        match action {
            Action::NextPart | Action::Submit => self.go(true),
            Action::PreviousPart => self.go(false),
            Action::Down if !self.by_row(true) => self.go(true),
            Action::Up if !self.by_row(false) => self.go(false),
            Action::Down | Action::Up => FormOutcome::Stayed,
            Action::PageUp if self.focus > 0 => {
                self.leave();
                self.first();
                FormOutcome::Stayed
            }
            Action::PageDown if self.focus + 1 < self.entries.len() => {
                self.leave();
                self.last();
                FormOutcome::Stayed
            }
            Action::Clear => self.edit(Entry::clear),
            Action::NewLine => self.edit(|entry| match &mut entry.control {
                Control::Text(text) => text.insert("\n"),
                Control::Choice { .. } => false,
            }),
            _ => FormOutcome::Unknown,
        }
    }

    /// Handles a key for the focused field; returns whether a value may have changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        self.edit(|entry| entry.key(key)) == FormOutcome::Changed
    }

    /// Handles pasted text for the focused field; returns whether a value may have changed.
    pub fn paste(&mut self, text: &str) -> bool {
        self.edit(|entry| entry.paste(text)) == FormOutcome::Changed
    }

    /// Handles a click, using the last drawn frame: `None` outside of the form, else whether a value may have changed.
    pub fn click(&mut self, at: Position) -> Option<bool> {
        if !self.drawn.contains(at) {
            return None;
        }
        // A click on the label or the note below focuses the field as well.
        let near = self.entries.iter().rposition(|entry| !entry.drawn.is_empty() && entry.drawn.y <= at.y);
        let Some(hit) = near else { return Some(false) };
        if hit != self.focus {
            self.leave();
            self.focus = hit;
        }
        let inside = self.entries[hit].drawn.contains(at);
        Some(inside && self.edit(|entry| entry.click(at)) == FormOutcome::Changed)
    }

    /// Handles the wheel over the form: focuses the field above or below.
    pub fn wheel(&mut self, down: bool) {
        let next = if down { self.focus + 1 } else { self.focus.saturating_sub(1) };
        if next < self.entries.len() && next != self.focus {
            self.leave();
            self.focus = next;
        }
    }

    fn go(&mut self, forward: bool) -> FormOutcome {
        self.leave();
        match self.focus.checked_add_signed(if forward { 1 } else { -1 }) {
            Some(next) if next < self.entries.len() => {
                self.focus = next;
                FormOutcome::Stayed
            }
            Some(_) => FormOutcome::After,
            None => FormOutcome::Before,
        }
    }

    fn by_row(&mut self, down: bool) -> bool {
        match self.entries.get_mut(self.focus).map(|entry| &mut entry.control) {
            Some(Control::Text(text)) => text.by_row(down),
            _ => false,
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut Entry) -> bool) -> FormOutcome {
        let changed = self.entries.get_mut(self.focus).is_some_and(change);
        if changed { FormOutcome::Changed } else { FormOutcome::Stayed }
    }
}

#[cfg(test)]
mod tests;
