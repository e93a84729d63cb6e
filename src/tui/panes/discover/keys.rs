//! Keys, clicks and the wheel in Discover.

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Discover, Focus, commands};
use crate::action::{Action, Context, PaneCommand};
use crate::field::Field;
use crate::pane::{Draw, Effect, Message, Pane, PaneId, skills_to_open};

impl Pane for Discover {
    fn id(&self) -> PaneId {
        PaneId::Discover
    }

    fn contexts(&self) -> Vec<Context> {
        match self.focus {
            Focus::Intent => vec![Context::DiscoverIntent, Context::Field],
            Focus::Results => vec![Context::Discover, Context::List],
            Focus::Filter => vec![Context::Field],
            Focus::Why => vec![Context::Discover, Context::Text],
        }
    }

    fn in_text(&self) -> bool {
        matches!(self.focus, Focus::Intent | Focus::Filter)
    }

    fn commands(&self) -> Vec<PaneCommand> {
        match self.focus {
            Focus::Intent => commands::of_request(&self.form.history),
            Focus::Filter => PaneCommand::in_filter("results"),
            Focus::Results | Focus::Why => {
                commands::of_results(&self.list, self.focus, self.asking.shown().is_some())
            }
        }
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.asking.options.act(action) {
            return Some(self.ask());
        }
        Some(match action {
            Action::FocusIntent => self.set_focus(Focus::Intent),
            Action::PickDomain => {
                vec![Effect::Pick(commands::domains(&self.list.catalog, &self.asking.options))]
            }
            Action::CopyAs => commands::copy_choices(&self.list, self.command_line())?,
            Action::OpenByName => {
                vec![Effect::Pick(skills_to_open(&self.list.catalog, self.list.selected())?)]
            }
            Action::Filter => {
                self.asking.shown()?;
                self.set_focus(Focus::Filter)
            }
            Action::NextPart => self.turn(1),
            Action::PreviousPart => self.turn(2),
            other => return self.act_in_part(other),
        })
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let changed = self.focused_field().key(key);
        self.edited(changed)
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        let changed = self.focused_field().paste(text);
        self.edited(changed)
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        let writing = self.focus == Focus::Intent;
        if self.form.area.contains(at) {
            self.focus = Focus::Intent;
            self.form.field.click(at);
            return Vec::new();
        }
        if self.list.filter_area.contains(at) {
            self.focus = Focus::Filter;
            self.list.filter.click(at);
        } else if self.list.area.contains(at) {
            self.focus = Focus::Results;
            self.list.click(at);
        } else if self.why_area.contains(at) {
            self.focus = Focus::Why;
        } else {
            return Vec::new();
        }
        if writing { self.finish() } else { Vec::new() }
    }

    fn wheel(&mut self, at: Position, rows: isize) -> Vec<Effect> {
        if self.list.area.contains(at) {
            self.list.roll(rows);
        } else if self.why_area.contains(at) {
            self.list.roll_why(rows);
        }
        Vec::new()
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.handle_message(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.list.wanted);
        effects.append(&mut self.measured.wanted);
        effects
    }

    fn request(&self) -> Option<String> {
        self.form.entered().map(str::to_owned)
    }

    fn persistent_texts(&self) -> Vec<String> {
        self.form.history.entries().to_vec()
    }
}

impl Discover {
    fn set_focus(&mut self, focus: Focus) -> Vec<Effect> {
        self.focus = focus;
        Vec::new()
    }

    fn focused_field(&mut self) -> &mut Field {
        if self.focus == Focus::Filter { &mut self.list.filter } else { &mut self.form.field }
    }

    fn edited(&mut self, changed: bool) -> Vec<Effect> {
        match self.focus {
            Focus::Filter if changed => self.list.filter_typed(&self.asking),
            Focus::Filter => Vec::new(),
            _ if self.form.edited(changed) => self.ask(),
            _ => Vec::new(),
        }
    }

    fn act_in_part(&mut self, action: Action) -> Option<Vec<Effect>> {
        match self.focus {
            Focus::Intent => self.act_in_intent(action),
            Focus::Results => self.act_in_results(action),
            Focus::Filter => self.act_in_filter(action),
            Focus::Why => self.act_in_why(action),
        }
    }

    fn act_in_intent(&mut self, action: Action) -> Option<Vec<Effect>> {
        match (self.form.act(action), action) {
            (Some(true), _) => Some(self.ask()),
            (Some(false), _) => Some(Vec::new()),
            (None, Action::LeaveField | Action::Submit | Action::Back | Action::Down) => {
                self.focus = Focus::Results;
                Some(self.finish())
            }
            (None, _) => None,
        }
    }

    /// Completes the request: its last word is no longer treated as incomplete.
    pub(super) fn finish(&mut self) -> Vec<Effect> {
        self.form.history.keep(self.form.field.text());
        if self.asking.is_typing() { self.ask() } else { Vec::new() }
    }

    fn act_in_results(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Open | Action::Fold if self.list.on_copies() => {
                self.list.toggle_copies();
                Some(Vec::new())
            }
            // With one column first the explanation, otherwise the skill in Browse.
            Action::Open if self.list.folded && self.list.selected().is_some() => {
                Some(self.set_focus(Focus::Why))
            }
            Action::Open => Some(self.list.open_in_browse()),
            Action::Back if !self.list.filter.is_empty() => {
                self.list.filter.clear();
                Some(self.list.apply_filter(&self.asking))
            }
            other if self.list.move_cursor(other) => Some(Vec::new()),
            other => self.act_on_skill(other),
        }
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back => Some(self.set_focus(Focus::Results)),
            Action::Clear => {
                let changed = self.list.filter.kill_to_start();
                Some(self.edited(changed))
            }
            other => self.list.move_cursor(other).then(Vec::new),
        }
    }

    fn act_in_why(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Back => Some(self.set_focus(Focus::Results)),
            Action::Open => Some(self.list.open_in_browse()),
            other => match other.rows(self.list.why.page()) {
                Some(rows) => {
                    self.list.roll_why(rows);
                    Some(Vec::new())
                }
                None => self.act_on_skill(other),
            },
        }
    }

    fn act_on_skill(&self, action: Action) -> Option<Vec<Effect>> {
        commands::act_on_skill(action, &self.list, self.form.field.text(), &self.asking)
    }

    fn turn(&mut self, steps: usize) -> Vec<Effect> {
        let parts = [Focus::Intent, Focus::Results, Focus::Why];
        let focus = if self.focus == Focus::Filter { Focus::Results } else { self.focus };
        let at = parts.iter().position(|p| *p == focus).unwrap_or(0);
        self.focus = parts[(at + steps) % parts.len()];
        if at == 0 { self.finish() } else { Vec::new() }
    }
}
