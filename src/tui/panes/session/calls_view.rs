//! Draws the last calls of the runtime tools, and the sandbox of scripts.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::context_view::turn;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Title, cells, cut_line};
use skills_api::SessionView;

pub(super) fn draw(session: &SessionView, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    Title::of("Transcript", false).note("append-only").draw(
        &mut Painter::new(buf, cx),
        area.x,
        area.y,
        area.width,
    );
    let mut painter = Painter::new(buf, cx);
    let rows = usize::from(area.height.saturating_sub(3));
    let first = session.transcript.len().saturating_sub(rows);
    let end = area.right().saturating_sub(1);
    let mut y = area.y + 1;
    if session.transcript.is_empty() {
        painter.put(area.x + 2, y, "none yet", Role::Muted, area.width.saturating_sub(3));
    }
    for entry in &session.transcript[first..] {
        let (_, segs, note, _) = turn(entry);
        painter.right(end, y, &note, Role::Muted);
        let available = area.width.saturating_sub(4 + cells(&note));
        let line = cut_line(&RichLine::from_segs(segs), available, painter.glyphs.ellipsis);
        painter.line(area.x + 1, y, &line, available);
        y += 1;
    }
    let foot = area.bottom().saturating_sub(1);
    let at = painter.put(area.x + 2, foot, "isolation  ", Role::Muted, area.width.saturating_sub(3));
    let available = end.saturating_sub(at);
    painter.put_cut(at, foot, &session.isolation, Role::Text, available);
}
