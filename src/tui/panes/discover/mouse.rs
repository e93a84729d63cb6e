//! Clicks and the wheel in Discover, using the areas of the last frame.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Discover, Focus};
use crate::pane::Effect;

impl Discover {
    pub(super) fn pointed(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => return self.clicked(at),
            MouseEventKind::ScrollUp => self.wheel(at, -3),
            MouseEventKind::ScrollDown => self.wheel(at, 3),
            _ => {}
        }
        Vec::new()
    }

    fn clicked(&mut self, at: Position) -> Vec<Effect> {
        if self.drawn.intent.contains(at) {
            self.focus = Focus::Intent;
            self.field.click(at);
        } else if self.drawn.filter.contains(at) {
            let writing = self.focus == Focus::Intent;
            self.focus = Focus::Filter;
            self.filter.click(at);
            return if writing { self.finish() } else { Vec::new() };
        } else if self.drawn.results.contains(at) {
            let writing = self.focus == Focus::Intent;
            self.focus = Focus::Results;
            if let Some((_, item)) = self.drawn.items.iter().find(|(rect, _)| rect.contains(at)) {
                self.choose(*item);
            }
            return if writing { self.finish() } else { Vec::new() };
        } else if self.drawn.why.contains(at) {
            let writing = self.focus == Focus::Intent;
            self.focus = Focus::Why;
            return if writing { self.finish() } else { Vec::new() };
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) {
        if self.drawn.results.contains(at) {
            self.follow = false;
            // Drawing clamps the offset.
            self.results.offset = self.results.offset.saturating_add_signed(rows);
        } else if self.drawn.why.contains(at) {
            self.why.offset = self.why.offset.saturating_add_signed(rows).min(10_000);
        }
    }
}
