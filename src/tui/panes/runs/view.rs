//! The layout of Runs at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Focus, FrameAreas, Runs};
use crate::app::SPIN;
use crate::pane::Draw;
use crate::widgets::painter::Painter;
use crate::widgets::rule::{BorderJunction, divider};

/// Below this width the parts share one column.
const FOLD: u16 = 80;

/// Width of the list in a narrow window.
const MIN_LIST: u16 = 46;

/// Returns the spinner's current glyph, by the wall clock, so that all spinners on the screen are in phase.
pub fn spinner(cx: &Draw<'_>) -> &'static str {
    let turns = cx.clock_ms.rem_euclid(3_600_000) / i64::try_from(SPIN.as_millis()).unwrap_or(100).max(1);
    let signs = cx.glyphs.running;
    signs[usize::try_from(turns).unwrap_or(0) % signs.len()]
}

impl Runs {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.drawn = FrameAreas { clock_ms: cx.clock_ms, ..FrameAreas::default() };
        if self.board.is_some() {
            self.draw_board(area, buf, cx);
            return;
        }
        if self.rows.is_empty() && self.filter.field.is_empty() {
            self.draw_empty(area, buf, cx);
            return;
        }
        if area.width < FOLD || cx.full_screen {
            if self.focus == Focus::Detail {
                self.draw_detail(area, buf, cx);
            } else {
                self.draw_list(area, buf, cx);
            }
            return;
        }
        if self.is_table() {
            // Columns need the width, so the selected run is shown below.
            let height = (area.height * 3 / 5).max(9).min(area.height.saturating_sub(6));
            self.draw_list(Rect { height, ..area }, buf, cx);
            let below = Rect { y: area.y + height, height: area.height - height, ..area };
            self.draw_detail(below, buf, cx);
            return;
        }
        let share = (u32::from(area.width) * 62 / 120) as u16;
        // Titles need this width, whatever is left for the details.
        let left =
            share.max(MIN_LIST).saturating_add_signed(cx.split).clamp(30, area.width.saturating_sub(34));
        let list = Rect { width: left, ..area };
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        self.draw_list(list, buf, cx);
        let rules = self.draw_detail(right, buf, cx);
        let mut joints = vec![(area.y, BorderJunction::Top { heavy: cx.focused })];
        joints.extend(rules.into_iter().map(|y| (y, BorderJunction::Right { heavy: false })));
        divider(&mut Painter::new(buf, cx), Rect { x: area.x + left, width: 1, ..area }, &joints);
    }
}
