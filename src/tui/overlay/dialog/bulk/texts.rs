//! The text fields of a command for many runs.

use ratatui::layout::{Position, Rect};

use super::super::parts;
use super::super::run_command::payload;
use crate::field::Field;
use crate::widgets::Painter;
use skills_model::{CommandName, Gate};
use skills_store::RunRecord;

pub(super) struct Text {
    pub label: &'static str,
    hint: &'static str,
    pub field: Field,
}

/// The notes of a decision, or name and payload of a signal.
pub(super) struct Texts {
    pub all: Vec<Text>,
    /// Areas of the last frame.
    areas: Vec<Rect>,
}

impl Texts {
    pub fn of(command: CommandName, runs: &[RunRecord]) -> Self {
        Self { all: texts(command, runs), areas: Vec::new() }
    }

    /// Returns an entered text without blanks at its ends, if it is not empty.
    pub fn typed(&self, at: usize) -> Option<String> {
        let text = self.all.get(at)?.field.text().trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns why a signal cannot be sent with the texts as they are, and which one is invalid.
    pub fn invalid_signal(&self) -> Option<(usize, String)> {
        if self.typed(0).is_none() {
            return Some((0, "Enter the name of the signal.".to_owned()));
        }
        let why = payload(&self.typed(1).unwrap_or_default()).err()?;
        Some((1, format!("Payload: {why}.")))
    }

    /// Moves the cursor to a click; returns the index of the text.
    pub fn click(&mut self, at: Position) -> Option<usize> {
        let text = self.areas.iter().position(|rect| rect.contains(at))?;
        self.all[text].field.click(at);
        Some(text)
    }

    /// Draws the first texts in rows; returns the position of the terminal's cursor.
    pub fn draw(
        &mut self,
        area: Rect,
        (count, focused): (usize, Option<usize>),
        painter: &mut Painter<'_>,
    ) -> Option<Position> {
        let mut cursor = None;
        self.areas.clear();
        for ((at, text), y) in self.all.iter_mut().enumerate().take(count).zip(area.y..) {
            let area = Rect { y, height: 1, ..area };
            let (label, hint) = (text.label, text.hint);
            let row = parts::Row { label, hint, note: "", wrong: false, focused: focused == Some(at) };
            cursor = cursor.or(parts::field(area, painter, &mut text.field, &row));
            self.areas.push(area);
        }
        cursor
    }
}

/// Returns the text fields of a command.
fn texts(command: CommandName, runs: &[RunRecord]) -> Vec<Text> {
    let text = |label, hint, value: &str| {
        let mut field = Field::new();
        field.set(value);
        Text { label, hint, field }
    };
    match command {
        CommandName::Approve | CommandName::Deny => {
            vec![text("notes", "optional, stored with each decision", "")]
        }
        CommandName::Signal => {
            let mut names = runs.iter().filter_map(|run| match &run.gate {
                Some(Gate::Signal { name, .. }) => Some(name.as_str()),
                _ => None,
            });
            let first = names.next().unwrap_or_default();
            let name = if names.all(|name| name == first) { first } else { "" };
            vec![text("signal", "name that the runs wait for", name), text("payload", "JSON, or empty", "{}")]
        }
        _ => Vec::new(),
    }
}
