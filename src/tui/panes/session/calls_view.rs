//! Draws the last calls of the runtime tools, and the sandbox of scripts.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::context_view::turn;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, Title, cells, cut_line, shown, wrap_to};
use skills_api::SessionView;

/// Maximum number of rows of the sandbox.
const MAX_ISOLATION_ROWS: usize = 2;

pub(super) fn draw(session: &SessionView, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    Title::of("Transcript", false).note("append-only").draw(
        &mut Painter::new(buf, cx),
        area.x,
        area.y,
        area.width,
    );
    let mut painter = Painter::new(buf, cx);
    let (label, end) = ("isolation  ", area.right().saturating_sub(1));
    let at = area.x + 2 + cells(label);
    let isolation = [Seg::new(shown(&session.isolation), Role::Text)];
    let isolation = wrap_to(&isolation, end.saturating_sub(at), MAX_ISOLATION_ROWS, painter.glyphs.ellipsis);
    let foot = u16::try_from(isolation.len()).unwrap_or(1).max(1);
    let rows = usize::from(area.height.saturating_sub(2 + foot));
    let first = session.transcript.len().saturating_sub(rows);
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
    let foot = area.bottom().saturating_sub(foot);
    painter.put(area.x + 2, foot, label, Role::Muted, area.width.saturating_sub(3));
    for (line, y) in isolation.iter().zip(foot..) {
        painter.line(at, y, line, end.saturating_sub(at));
    }
}
