//! Clicks and the wheel in Browse, using the areas of the last frame.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::detail::Tab;
use super::list::Row;
use super::{Browse, Focus};
use crate::pane::Effect;

impl Browse {
    pub(super) fn pointed(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.clicked(at),
            MouseEventKind::ScrollUp => {
                self.wheel(at, -3);
                Vec::new()
            }
            MouseEventKind::ScrollDown => {
                self.wheel(at, 3);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn clicked(&mut self, at: Position) -> Vec<Effect> {
        if self.map.is_open {
            return self.map.click(at);
        }
        if self.drawn.filter.contains(at) {
            self.focus = Focus::Filter;
            self.filter.click(at);
            return Vec::new();
        }
        if self.drawn.list.contains(at) {
            self.focus = Focus::List;
            let row = self.scroll.offset + usize::from(at.y - self.drawn.list.y);
            if row >= self.rows.len() {
                return Vec::new();
            }
            (self.scroll.cursor, self.moved) = (row, true);
            return match self.rows[row] {
                Row::Group { .. } => self.fold(),
                Row::Entry(_) => self.selection_changed(),
            };
        }
        if !self.drawn.detail.contains(at) {
            return Vec::new();
        }
        (self.focus, self.moved) = (Focus::Detail, true);
        if let Some((_, tab)) = self.drawn.tabs.iter().find(|(rect, _)| rect.contains(at)) {
            self.detail.show(*tab);
            return self.preview();
        }
        if let Some((_, finding)) = self.drawn.findings.iter().find(|(rect, _)| rect.contains(at)) {
            self.detail.finding = *finding;
        }
        if self.detail.tab == Tab::Files && self.drawn.tree.contains(at) {
            let row = self.detail.tree.offset + usize::from(at.y - self.drawn.tree.y);
            if row < self.detail.tree_rows().len() {
                self.detail.tree.cursor = row;
                return self.preview();
            }
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) {
        if self.map.is_open {
            if self.map.pair_area.contains(at) {
                self.map.text.offset = self.map.text.offset.saturating_add_signed(rows);
            }
            return;
        }
        if self.drawn.list.contains(at) {
            self.follow = false;
            self.scroll.roll(rows, self.rows.len());
        } else if self.drawn.detail.contains(at) {
            let scroll = match self.detail.tab {
                Tab::Files if self.drawn.tree.contains(at) => {
                    let count = self.detail.tree_rows().len();
                    self.detail.tree.by(rows.signum(), count);
                    return;
                }
                Tab::Files => &mut self.detail.preview,
                _ => &mut self.detail.text,
            };
            // Drawing clamps the offset.
            scroll.offset = scroll.offset.saturating_add_signed(rows);
        }
    }
}
