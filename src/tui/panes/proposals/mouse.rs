//! Clicks and the wheel in Proposals.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Focus, Proposals};
use crate::pane::Effect;

/// Rows per step of the wheel.
const WHEEL_ROWS: isize = 3;

impl Proposals {
    pub(super) fn click(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        let in_detail = self.drawn.detail.contains(at);
        match event.kind {
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
                let down = event.kind == MouseEventKind::ScrollDown;
                if in_detail {
                    self.detail.roll(if down { WHEEL_ROWS } else { -WHEEL_ROWS }, self.detail_rows);
                    return Vec::new();
                }
                self.move_by(if down { 1 } else { -1 })
            }
            MouseEventKind::Down(MouseButton::Left) => {
                if self.drawn.filter.contains(at) {
                    self.focus = Focus::Filter;
                    self.filter.click(at);
                    return Vec::new();
                }
                let row = self.drawn.rows.iter().find(|(row, _)| row.contains(at)).map(|(_, row)| *row);
                if let Some(row) = row {
                    self.focus = Focus::List;
                    self.select(row);
                    return self.request_selected();
                }
                if in_detail {
                    self.focus = Focus::Detail;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}
