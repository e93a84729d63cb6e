//! The layout of Browse at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::DrawnAreas;
use super::{Browse, Focus, collisions_view, detail_view, empty_view, list_view};
use crate::pane::Draw;
use crate::widgets::{Painter, column_divider};

/// Below this width the parts share one column.
const FOLD: u16 = 80;

impl Browse {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        (self.list.area, self.list.filter_area) = (Rect::ZERO, Rect::ZERO);
        self.detail.drawn = DrawnAreas::default();
        if self.list.entries.is_empty() {
            self.list.area = area;
            empty_view::draw(&self.list, &self.scan, area, buf, cx);
            return;
        }
        if self.map.is_open {
            collisions_view::draw(&mut self.map, area, buf, cx);
            return;
        }
        let detail = self.focus == Focus::Detail;
        let focused = cx.focused && detail;
        if area.width < FOLD || cx.full_screen {
            if detail {
                detail_view::draw(&mut self.detail, &self.list, focused, area, buf, cx);
            } else {
                list_view::draw(&mut self.list, self.focus, area, buf, cx);
            }
            return;
        }
        let share = (u32::from(area.width) * 47 / 120) as u16;
        let left = share.max(36).saturating_add_signed(cx.split).clamp(26, area.width.saturating_sub(34));
        let list = Rect { width: left, ..area };
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        let foot_left = list_view::draw(&mut self.list, self.focus, list, buf, cx);
        let foot_right = detail_view::draw(&mut self.detail, &self.list, focused, right, buf, cx);
        let (x, heavy) = (area.x + left, cx.focused);
        column_divider(
            &mut Painter::new(buf, cx),
            area,
            x,
            heavy,
            foot_left.as_slice(),
            foot_right.as_slice(),
        );
    }
}
