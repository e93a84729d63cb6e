//! The confirmation before entered text is lost. Quitting is never the default: Enter and Esc cancel, a capital
//! letter quits.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};

use super::{Hint, Outcome, Overlay, centered, frame};
use crate::action::Action;
use crate::theme::Role;
use crate::widgets::{Painter, Seg, wrap_to};

/// Maximum number of lines of what would be lost.
const LINES: usize = 10;

/// The confirmation to quit.
pub struct Question {
    /// What would be lost, as a sentence.
    lost: String,
    leave_focused: bool,
    stay: Rect,
    leave: Rect,
}

impl Question {
    /// Creates the confirmation for what would be lost.
    pub fn new(lost: impl Into<String>) -> Self {
        Self { lost: lost.into(), leave_focused: false, stay: Rect::ZERO, leave: Rect::ZERO }
    }
}

impl Overlay for Question {
    fn in_text(&self) -> bool {
        false
    }

    fn asks_to_leave(&self) -> bool {
        true
    }

    fn set_unsaved(&mut self, lost: Option<String>) {
        self.lost = lost.unwrap_or_else(|| "Nothing would be lost.".to_owned());
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        match (action, key.code) {
            (_, KeyCode::Char('Q')) => return Outcome::Quit,
            (Some(Action::Open), _) if self.leave_focused => return Outcome::Quit,
            (Some(Action::Open | Action::Back), _) => return Outcome::Close,
            (_, KeyCode::Tab | KeyCode::BackTab | KeyCode::Left | KeyCode::Right) => {
                self.leave_focused = !self.leave_focused;
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if self.leave.contains(at) {
            Outcome::Quit
        } else if self.stay.contains(at) {
            Outcome::Close
        } else {
            Outcome::Stay
        }
    }

    fn hints(&self) -> Vec<Hint> {
        vec![Hint::new(Action::Open, "select"), Hint::new(Action::Back, "cancel")]
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let lost = [Seg::new(self.lost.as_str(), Role::Text)];
        let lines = wrap_to(&lost, 52.min(area.width.saturating_sub(4)), LINES, painter.glyphs.ellipsis);
        let outer = centered(area, 56, 6 + (lines.len() as u16).max(3));
        let title = format!("{} Quit the workbench?", painter.glyphs.waiting);
        let inside = frame(outer, painter, &title, "", true);
        for (line, y) in lines.iter().zip(inside.y + 1..) {
            painter.line(inside.x, y, line, inside.width);
        }
        let y = inside.bottom().saturating_sub(2);
        let (stay, leave) = ("  Cancel  Esc  ", "  Quit  Q  ");
        let (first, second) = if self.leave_focused {
            (Role::Button, Role::ButtonFocus)
        } else {
            (Role::ButtonFocus, Role::ButtonDanger)
        };
        let end = painter.put(inside.x, y, stay, first, inside.width);
        self.stay = Rect::new(inside.x, y, end - inside.x, 1);
        let start = painter.right(inside.right(), y, leave, second);
        self.leave = Rect::new(start, y, inside.right() - start, 1);
        None
    }
}
