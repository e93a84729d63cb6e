//! A form above a row of buttons: what dialogs that send one form have in common.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::parts::{self, Button};
use crate::action::{Action, Context};
use crate::form::{Form, FormOutcome, FormState};
use crate::overlay::{Hint, centered, frame};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine};

/// Width of the dialog if there is enough space.
const WIDTH: u16 = 78;

/// A form, its buttons, and which of both has the focus.
pub(super) struct FormBox {
    pub form: Form,
    /// The focused button; `None` while the form has the focus.
    pub button: Option<usize>,
    pressed: Vec<Rect>,
    /// Rows of the form at a width, as last drawn.
    rows: (u16, u16),
}

/// What is drawn around a form.
pub(super) struct Surroundings<'a> {
    pub title: &'a str,
    pub head: Vec<RichLine>,
    /// A message, and whether it is a problem.
    pub message: Option<(String, bool)>,
    pub buttons: &'a [Button],
    /// The text in place of a form without fields.
    pub no_fields: &'a str,
    /// Whether the form keeps its rows when it needs fewer.
    pub keeps_rows: bool,
}

impl FormBox {
    pub fn new(form: Form, button: Option<usize>) -> Self {
        Self { form, button, pressed: Vec::new(), rows: (0, 0) }
    }

    /// Returns the width of the text in a dialog as wide as its area allows.
    pub fn inner_width(area: Rect) -> u16 {
        WIDTH.min(area.width).saturating_sub(6)
    }

    pub fn contexts(&self) -> Vec<Context> {
        parts::contexts(self.button.is_none())
    }

    /// Handles a key; returns the action of the dialog that it triggers.
    pub fn key(&mut self, key: KeyEvent, action: Option<Action>, buttons: &[Button]) -> Option<Action> {
        match (action, self.button) {
            (Some(Action::Execute), _) => return action,
            (Some(Action::LeaveField | Action::Back), None) => {
                self.form.leave();
                self.button = Some(0);
            }
            (Some(action), None) => match self.form.act(action) {
                FormOutcome::After => self.button = Some(buttons.len() - 1),
                FormOutcome::Before => self.button = Some(0),
                _ => {}
            },
            (None, None) => {
                self.form.key(key);
            }
            (Some(Action::NextPart | Action::Down), Some(_)) => self.turn(true, buttons.len() - 1),
            (Some(Action::PreviousPart | Action::Up), Some(_)) => self.turn(false, buttons.len() - 1),
            (Some(Action::Open), Some(at)) => return buttons.get(at).map(|button| button.action),
            (action, Some(_)) => return action,
        }
        None
    }

    fn turn(&mut self, forward: bool, last: usize) {
        match (self.button, forward) {
            (Some(at), true) if at < last => self.button = Some(at + 1),
            (Some(at), false) if at > 0 => self.button = Some(at - 1),
            (Some(_), _) if self.form.is_empty() => self.button = Some(if forward { 0 } else { last }),
            (Some(_), true) => {
                self.button = None;
                self.form.first();
            }
            (Some(_), false) => {
                self.button = None;
                self.form.last();
            }
            (None, _) => {}
        }
    }

    pub fn paste(&mut self, text: &str) {
        if self.button.is_none() {
            self.form.paste(text);
        }
    }

    /// Handles a click; returns the action of a pressed button.
    pub fn click(&mut self, at: Position, buttons: &[Button]) -> Option<Action> {
        if let Some(index) = parts::button_at(&self.pressed, at) {
            return buttons.get(index).map(|button| button.action);
        }
        if self.form.click(at).is_some() {
            self.button = None;
        }
        None
    }

    /// Returns the keys of the footer; without a label, the form cannot be sent.
    pub fn hints(&self, execute: Option<&'static str>) -> Vec<Hint> {
        let mut out = vec![Hint::new(Action::NextPart, "next")];
        if self.button.is_some() {
            out.push(Hint::new(Action::Open, "select"));
        }
        out.extend(execute.map(|label| Hint { action: Action::Execute, label }));
        out.push(match self.button {
            Some(_) => Hint::new(Action::Back, "cancel"),
            None => Hint::new(Action::LeaveField, "leave field"),
        });
        out
    }

    pub fn draw(
        &mut self,
        area: Rect,
        painter: &mut Painter<'_>,
        now: Instant,
        around: &Surroundings<'_>,
    ) -> Option<Position> {
        let inner = Self::inner_width(area);
        let roomy = area.height >= 26;
        let air = u16::from(roomy);
        let focused = self.button.is_none();
        let look = FormState { indent: 0, label: self.form.label_width(0, inner / 3), roomy, focused };
        let message = around.message.as_ref().map(|(text, bad)| (parts::message_lines(text, inner), *bad));
        let message_rows = message.as_ref().map_or(0, |(lines, _)| lines.len() as u16 + 1);
        let fixed = around.head.len() as u16 + message_rows + 5 + 2 * air;
        let least = if around.keeps_rows && self.rows.0 == inner { self.rows.1 } else { 1 };
        self.rows = (inner, self.form.required_height(inner, look).max(least));
        let rows = self.rows.1.min(area.height.saturating_sub(fixed)).max(1);
        let outer = centered(area, WIDTH.min(area.width), fixed + rows);
        let inside = frame(outer, painter, around.title, "", false);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &around.head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        y += 1;
        match message {
            Some((lines, true)) => y += parts::warning(Rect { y, ..inside }, painter, &lines) + 1,
            Some((lines, false)) => {
                for line in &lines {
                    painter.put(inside.x, y, line, Role::Muted, inside.width);
                    y += 1;
                }
                y += 1;
            }
            None => {}
        }
        let mut cursor = None;
        if self.form.is_empty() {
            painter.put(inside.x, y, around.no_fields, Role::Muted, inside.width);
        } else {
            let area = Rect { y, height: rows, ..inside };
            cursor = parts::form(&mut self.form, area, look, painter, now);
        }
        let row = Rect { y: inside.bottom().saturating_sub(1 + air), height: 1, ..inside };
        self.pressed = parts::buttons(row, painter, (around.buttons, &[Context::Dialog]), self.button);
        cursor.filter(|_| focused)
    }
}
