//! Clicks and the wheel in Session, using the areas of the last frame.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Focus, SessionPane, Tab};
use crate::pane::Effect;

/// Rows per step of the wheel.
const WHEEL: isize = 3;

impl SessionPane {
    pub(super) fn pointed(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
                let by = if event.kind == MouseEventKind::ScrollUp { -WHEEL } else { WHEEL };
                if self.drawn.composed_area.contains(at) {
                    self.composed_scroll.offset =
                        self.composed_scroll.offset.saturating_add_signed(by).min(1_000_000);
                }
                Vec::new()
            }
            MouseEventKind::Down(MouseButton::Left) => self.clicked(at),
            _ => Vec::new(),
        }
    }

    fn clicked(&mut self, at: Position) -> Vec<Effect> {
        if let Some((_, tab)) = self.drawn.tabs.iter().find(|(place, _)| place.contains(at)) {
            let tab = *tab;
            self.focus = Focus::Composed;
            return self.turn(tab);
        }
        if let Some((_, row)) = self.drawn.rows.iter().find(|(place, _)| place.contains(at)) {
            self.cursor = *row;
            self.focus = Focus::Active;
            return if self.tab == Tab::PerLevel { self.request_levels() } else { Vec::new() };
        }
        if let Some((_, fold)) = self.drawn.folds.iter().find(|(place, _)| place.contains(at)).cloned() {
            self.focus = Focus::Composed;
            self.toggle(fold);
        } else if self.drawn.composed_area.contains(at) {
            self.focus = Focus::Composed;
        } else if self.drawn.active.contains(at) {
            self.focus = Focus::Active;
        }
        Vec::new()
    }
}
