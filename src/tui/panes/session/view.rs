//! The layout of Session at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::context::ModelContext;
use super::{Focus, SessionPane, TABS, Tab, calls_view, levels_view, payload_view, summary_view};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{BorderJunction, Painter, RichLine, Seg, Title, cells, divider, shown, wrap};

/// Below this width the parts share one column.
const FOLD: u16 = 80;
/// Rows of the list of calls, including its title.
const CALLS: u16 = 7;

impl SessionPane {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.context.start_frame();
        self.rows.clear();
        self.active_area = Rect::ZERO;
        if self.state.session.is_none() {
            draw_nothing(self.state.trouble.as_deref(), area, buf, cx);
            return;
        }
        if area.width < FOLD || cx.full_screen {
            if self.focus == Focus::Active {
                self.draw_left(area, buf, cx);
            } else {
                self.draw_right(area, buf, cx);
            }
            return;
        }
        let share = (area.width * 31 / 100).max(28);
        let left = share.saturating_add_signed(cx.split).clamp(24, area.width.saturating_sub(40));
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        self.draw_left(Rect { width: left, ..area }, buf, cx);
        let calls = self.draw_right(right, buf, cx);
        let heavy = |part| cx.focused && self.focus == part;
        let mut joints = vec![(
            area.y,
            BorderJunction::Cross { left: heavy(Focus::Active), right: heavy(Focus::Composed) },
        )];
        if let Some(row) = calls {
            joints.push((row, BorderJunction::Right { heavy: false }));
        }
        let line = Rect { x: area.x + left, width: 1, ..area };
        divider(&mut Painter::new(buf, cx), line, &joints);
    }

    fn draw_left(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        self.active_area = area;
        let focused = cx.focused && self.focus == Focus::Active;
        summary_view::draw(&self.state, &mut self.rows, focused, area, buf, cx);
    }

    /// Draws the right part; returns the row of the calls' rule, if there is one.
    fn draw_right(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> Option<u16> {
        let (context, state) = (&mut self.context, &self.state);
        context.area = area;
        let focused = cx.focused && self.focus == Focus::Composed;
        let calls = (area.height >= 24 && context.tab != Tab::Transcript).then_some(CALLS);
        let body = Rect { y: area.y + 3, height: area.height.saturating_sub(3 + calls.unwrap_or(0)), ..area };
        draw_tabs(context, Rect { y: area.y + 1, height: 1, ..area }, buf, cx);
        // It shows whether bodies that are not in the text are delivered at all.
        if let (Tab::Composed, Some(session)) = (context.tab, &state.session) {
            let available = area.width.saturating_sub(3);
            let label = session.settings.instructions.label();
            Painter::new(buf, cx).put(area.x + 2, area.y + 2, label, Role::Muted, available);
        }
        let note = match context.tab {
            Tab::Composed => payload_view::draw_composed(context, state, body, buf, cx),
            Tab::PerLevel => levels_view::draw(context, state, body, buf, cx),
            Tab::Payload => payload_view::draw_payload(context, state, body, buf, cx),
            Tab::Transcript => payload_view::draw_transcript(context, state, body, buf, cx),
        };
        let title = Title::of("Model context", focused).note(note);
        title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        let rows = calls?;
        let strip = Rect { y: area.bottom() - rows, height: rows, ..area };
        if let Some(session) = &state.session {
            calls_view::draw(session, strip, buf, cx);
        }
        Some(strip.y)
    }
}

fn draw_nothing(trouble: Option<&str>, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    Title::of("Session", cx.focused).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let mut painter = Painter::new(buf, cx);
    let text = trouble.unwrap_or("opening the last session");
    let lines = wrap(&[Seg::new(shown(text), Role::Muted)], area.width.saturating_sub(4));
    for (segs, y) in lines.into_iter().zip(area.y + 2..area.bottom()) {
        painter.line(area.x + 2, y, &RichLine::from_segs(segs), area.width.saturating_sub(3));
    }
}

fn draw_tabs(context: &mut ModelContext, row: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let mut painter = Painter::new(buf, cx);
    let mut x = row.x + 2;
    let names =
        TABS.map(|(tab, name)| (tab, if tab == Tab::Composed && context.diff { "Difference" } else { name }));
    let wide = 2 + names.iter().map(|(_, name)| cells(name) + 3).sum::<u16>() - 3;
    let gap = if wide <= row.width { 3 } else { 2 };
    for (tab, name) in names {
        let available = row.right().saturating_sub(x);
        let end = if tab == context.tab {
            painter.put_plus(x, row.y, name, Role::Strong, Modifier::UNDERLINED, available)
        } else {
            painter.put(x, row.y, name, Role::Muted, available)
        };
        context.tabs.push((Rect { x, width: end.saturating_sub(x), ..row }, tab));
        x = end + gap;
    }
}
