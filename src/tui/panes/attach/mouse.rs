//! Clicks and the wheel in Attach, using the areas of the last frame.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Attach, Focus};
use crate::action::Action;
use crate::pane::{Effect, Pane as _};

impl Attach {
    pub(super) fn pointed(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.clicked(at),
            MouseEventKind::ScrollUp => self.rolled(at, false),
            MouseEventKind::ScrollDown => self.rolled(at, true),
            _ => Vec::new(),
        }
    }

    fn clicked(&mut self, at: Position) -> Vec<Effect> {
        if self.drawn.skill.contains(at) {
            let mut effects = self.focus_on(Focus::Skill);
            effects.extend(self.skill_list());
            return effects;
        }
        if let Some((_, target)) = self.drawn.targets.iter().find(|(area, _)| area.contains(at)) {
            let target = *target;
            let mut effects = self.focus_on(Focus::Target);
            match self.refuses(target) {
                Some(why) => effects.push(Effect::Toast(format!("{target}: {why}"))),
                None => effects.extend(self.choose_target(target)),
            }
            return effects;
        }
        if let Some((_, row)) = self.drawn.choices.iter().find(|(area, _)| area.contains(at)) {
            self.choices.scroll.cursor = *row;
            return if self.complete() { self.referred() } else { Vec::new() };
        }
        if self.drawn.reference.contains(at) {
            let effects = self.focus_on(Focus::Reference);
            self.reference.click(at);
            return effects;
        }
        if self.drawn.button.contains(at) {
            let mut effects = self.focus_on(Focus::Button);
            effects.extend(self.submit());
            return effects;
        }
        if self.drawn.run.contains(at) {
            return self.act(Action::ShowRun).unwrap_or_default();
        }
        if let Some((_, same)) = self.drawn.same.iter().find(|(area, _)| area.contains(at)) {
            self.same = *same;
            return self.focus_on(Focus::Preview);
        }
        if self.drawn.preview.contains(at) {
            return self.focus_on(Focus::Preview);
        }
        if let Some(changed) = self.form_mut().and_then(|form| form.click(at)) {
            self.focus = Focus::Inputs;
            return if changed { self.request_preview() } else { Vec::new() };
        }
        Vec::new()
    }

    fn rolled(&mut self, at: Position, down: bool) -> Vec<Effect> {
        let rows = if down { 1 } else { -1 };
        if self.drawn.preview.contains(at) {
            let offset = self.preview.scroll.offset.saturating_add_signed(rows * 3);
            self.preview.scroll.offset = offset;
        } else if self.drawn.choices.iter().any(|(area, _)| area.contains(at)) {
            let len = self.choices.len();
            self.choices.scroll.by(rows, len);
        } else if self.drawn.compose.contains(at)
            && self.focus == Focus::Inputs
            && let Some(form) = self.form_mut()
        {
            form.wheel(down);
        }
        Vec::new()
    }
}
