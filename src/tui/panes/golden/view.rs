//! The layout of the pane at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Focus, Golden, detail_view, head_view, list_view};
use crate::action::{Action, Context};
use crate::golden_requests::GoldenMeasurement;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{BorderJunction, Painter, RichLine, Seg, Title, divider, shown, wrap, wrap_to};
use skills_api::Error;

/// Below this width the parts share one column.
const FOLD: u16 = 96;
/// Width of the details in a wide window, in cells.
const DETAIL_WIDTH: u16 = 44;
/// Maximum number of rows of an error above earlier results.
const MAX_ERROR_HEIGHT: usize = 3;

impl Golden {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.is_folded = area.width < FOLD || cx.full_screen;
        self.list.start_frame();
        self.detail.start_frame();
        let status = self.freshness.is_measuring.then_some(("measuring  ", Role::Info));
        let top = match &self.list.measured {
            Some(measured) if !measured.report.results.is_empty() => {
                head_view::draw(measured, status, area, buf, cx)
            }
            measured => {
                draw_empty(measured.as_deref(), self.error.as_ref(), area, buf, cx);
                self.list.area = area;
                return;
            }
        };
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };
        let used = self.error.as_ref().map_or(0, |error| draw_error(error, body, buf, cx));
        let body = Rect { y: body.y + used, height: body.height.saturating_sub(used), ..body };
        if self.is_folded {
            if self.focus == Focus::Detail {
                self.draw_detail(body, buf, cx);
            } else {
                self.draw_list(body, buf, cx);
            }
            return;
        }
        let share = DETAIL_WIDTH.max((u32::from(area.width) * 37 / 100) as u16);
        let left =
            (area.width - share).saturating_add_signed(cx.split).clamp(46, area.width.saturating_sub(34));
        let list = Rect { width: left, ..body };
        let right = Rect { x: body.x + left + 1, width: body.width - left - 1, ..body };
        self.draw_list(list, buf, cx);
        self.draw_detail(right, buf, cx);
        let (heavy_left, heavy_right) =
            (cx.focused && self.focus != Focus::Detail, cx.focused && self.focus == Focus::Detail);
        let joint = BorderJunction::Cross { left: heavy_left, right: heavy_right };
        let joint = if heavy_left == heavy_right { BorderJunction::Top { heavy: heavy_left } } else { joint };
        divider(&mut Painter::new(buf, cx), Rect { x: body.x + left, width: 1, ..body }, &[(body.y, joint)]);
    }

    fn draw_list(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        list_view::draw(&mut self.list, self.focus, area, buf, cx);
    }

    fn draw_detail(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let is_focused = cx.focused && self.focus == Focus::Detail;
        let (error, painter) = (self.error.as_ref(), &mut Painter::new(buf, cx));
        detail_view::draw(&mut self.detail, &self.list, &self.catalog, error, is_focused, area, painter);
    }
}

/// Draws why the golden set cannot be read, above the earlier results; returns the number of rows.
fn draw_error(error: &Error, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> u16 {
    let mut painter = Painter::new(buf, cx);
    let max_width = area.width.saturating_sub(8);
    painter.put(area.x + 3, area.y, painter.glyphs.bad, Role::Danger, 1);
    let cause = format!("showing earlier results; cannot be read: {}", error.message);
    let text = [Seg::new(shown(&cause), Role::Text)];
    let lines = wrap_to(&text, max_width, MAX_ERROR_HEIGHT, painter.glyphs.ellipsis);
    let mut y = area.y;
    for line in lines {
        painter.line(area.x + 5, y, &line, max_width);
        y += 1;
    }
    y - area.y
}

/// Draws the pane without queries: its purpose, and how to start.
fn draw_empty(
    measured: Option<&GoldenMeasurement>,
    error: Option<&Error>,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let mut painter = Painter::new(buf, cx);
    let note = match (error, measured) {
        (Some(_), _) => "cannot be read",
        (None, Some(_)) => "no queries",
        (None, None) => "measuring",
    };
    Title::of("Golden set", cx.focused).note(note).draw(&mut painter, area.x, area.y, area.width);
    let max_width = area.width.saturating_sub(8);
    if let Some(error) = error {
        painter.put(area.x + 3, area.y + 2, painter.glyphs.bad, Role::Danger, 1);
        let lines = wrap(&[Seg::new(shown(&error.message), Role::Text)], max_width);
        for (segs, y) in lines.into_iter().zip(area.y + 2..area.bottom()) {
            painter.line(area.x + 5, y, &RichLine::from_segs(segs), max_width);
        }
        return;
    }
    let Some(measured) = measured else { return };
    let name = |action, contexts: &[Context]| painter.key_word(action, contexts);
    let key = |action, what: &str| {
        let key = format!("{:>3}  ", name(action, &[Context::Golden]));
        let segs = vec![Seg::new(key, Role::Key), Seg::new(what.to_owned(), Role::Text)];
        RichLine::from_segs(segs)
    };
    let mut lines = vec![
        RichLine::of("no golden queries yet", Role::Strong),
        RichLine::default(),
        RichLine::of("A golden query is a request with the skill that should win, or `none`.", Role::Muted),
        RichLine::of("Golden queries show which requests a changed description wins or loses.", Role::Muted),
        RichLine::default(),
    ];
    match &measured.file {
        Some(file) => {
            let adds = name(Action::AddGolden, &[Context::Discover]);
            lines.extend([
                key(Action::AddQuery, "add a query"),
                key(Action::ImportGolden, "import an evaluation file, JSON Lines, CSV or YAML"),
                key(Action::GoDiscover, &format!("rank a request in Discover; {adds} adds it")),
                RichLine::default(),
                RichLine::from_segs(vec![
                    Seg::new("stored in  ", Role::Muted),
                    Seg::new(shown(&file.display().to_string()), Role::Text),
                ]),
            ]);
        }
        None => lines.push(RichLine::of("The demonstration stores no queries.", Role::Text)),
    }
    let top = area.y + 1 + area.height.saturating_sub(lines.len() as u16 + 1) / 3;
    for (line, y) in lines.iter().zip(top..area.bottom()) {
        painter.line(area.x + 3, y, line, max_width);
    }
}
