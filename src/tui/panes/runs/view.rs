//! The layout of Runs at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::browser::RunBrowser;
use super::detail::DetailAreas;
use super::run_list::ListAreas;
use super::{Focus, board_view, detail_view, empty_view, list_view};
use crate::app::SPINNER_INTERVAL;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::{Painter, fade};
use crate::widgets::rule::{BorderJunction, divider};
use crate::widgets::text_width::{cells, cut_end, cut_middle};
use skills_base::duration::to_millis;

/// Below this width the parts share one column.
const FOLD: u16 = 80;

/// Width of the list in a narrow window.
const MIN_LIST: u16 = 46;

/// Returns the spinner's current glyph, by the wall clock, so that all spinners on the screen are in phase.
pub fn spinner(cx: &Draw<'_>) -> &'static str {
    let turns = cx.clock_ms.rem_euclid(3_600_000) / to_millis(SPINNER_INTERVAL).max(1);
    let signs = cx.glyphs.running;
    signs[usize::try_from(turns).unwrap_or(0) % signs.len()]
}

/// Returns the title of a run with what distinguishes it from others of this title, of which the end remains if it is cut.
pub(super) fn run_name(title: &str, distinction: &str, width: u16, ellipsis: &str) -> String {
    if distinction.is_empty() {
        return cut_end(title, width, ellipsis).into_owned();
    }
    cut_middle(&format!("{title}  {distinction}"), width, ellipsis).into_owned()
}

/// Draws a line above a state that is outdated: the first of these texts that fits.
pub(super) fn outdated_line(texts: &[String], row: Rect, painter: &mut Painter<'_>) {
    painter.band(row, Role::DangerBand);
    painter.put(row.x + 1, row.y, painter.glyphs.gutter, Role::Danger, 1);
    painter.put(row.x + 3, row.y, painter.glyphs.bad, Role::Danger, 1);
    let available = row.width.saturating_sub(6);
    let Some(text) = texts.iter().find(|text| cells(text) <= available).or(texts.last()) else { return };
    let text = cut_end(text, available, painter.glyphs.ellipsis);
    painter.put(row.x + 5, row.y, &text, Role::Danger, available);
}

/// Draws the parts, laid out for the size of the area; a run that cannot be read now is dimmed.
pub(super) fn draw(
    browser: &mut RunBrowser,
    isolation: Option<&str>,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    draw_parts(browser, isolation, area, buf, cx);
    if browser.list.runs.are_stale() {
        fade(browser.detail.drawn.area, buf);
    }
}

fn draw_parts(
    browser: &mut RunBrowser,
    isolation: Option<&str>,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let (list, detail, focus) = (&mut browser.list, &mut browser.detail, browser.focus);
    list.drawn = ListAreas { clock_ms: cx.clock_ms, ..ListAreas::default() };
    detail.drawn = DetailAreas::default();
    if let Some(board) = &mut browser.board {
        board_view::draw(board, list, focus, area, buf, cx);
        return;
    }
    if list.rows.is_empty() && list.filter.field.is_empty() {
        empty_view::draw(list, isolation, area, buf, cx);
        return;
    }
    let on_detail = focus == Focus::Detail;
    let focused = cx.focused && on_detail;
    if area.width < FOLD || cx.full_screen {
        if on_detail {
            detail_view::draw(detail, list, focused, area, buf, cx);
        } else {
            list_view::draw(list, focus, area, buf, cx);
        }
        return;
    }
    if list.is_table() {
        // Columns need the width, so the selected run is shown below.
        let height = (area.height * 3 / 5).max(9).min(area.height.saturating_sub(6));
        list_view::draw(list, focus, Rect { height, ..area }, buf, cx);
        // Nothing moves while a filter is typed.
        let height = if focus == Focus::Filter { height } else { list.leave_rows(area.y, height) };
        let below = Rect { y: area.y + height, height: area.height - height, ..area };
        detail_view::draw(detail, list, focused, below, buf, cx);
        return;
    }
    let share = (u32::from(area.width) * 62 / 120) as u16;
    // Titles need this width, whatever is left for the details.
    let left = share.max(MIN_LIST).saturating_add_signed(cx.split).clamp(30, area.width.saturating_sub(34));
    let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
    list_view::draw(list, focus, Rect { width: left, ..area }, buf, cx);
    let rules = detail_view::draw(detail, list, focused, right, buf, cx);
    let mut joints = vec![(area.y, BorderJunction::Top { heavy: cx.focused })];
    joints.extend(rules.into_iter().map(|y| (y, BorderJunction::Right { heavy: false })));
    divider(&mut Painter::new(buf, cx), Rect { x: area.x + left, width: 1, ..area }, &joints);
}
