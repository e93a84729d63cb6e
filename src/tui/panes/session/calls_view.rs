//! The last calls of the runtime tools, and what scripts would run in.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::SessionPane;
use super::given::turn;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::measure::{cells, cut_end};
use crate::widgets::pen::Pen;
use crate::widgets::rich::RichLine;
use crate::widgets::rule::Title;
use crate::widgets::wrap::cut_line;

impl SessionPane {
    pub(super) fn draw_calls(&self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
        let Some(session) = &self.session else { return };
        Title::of("Calls", false).note("append-only").draw(
            &mut Pen::new(buf, cx),
            area.x,
            area.y,
            area.width,
        );
        let mut pen = Pen::new(buf, cx);
        let rows = usize::from(area.height.saturating_sub(3));
        let first = session.transcript.len().saturating_sub(rows);
        let end = area.right().saturating_sub(1);
        let mut y = area.y + 1;
        if session.transcript.is_empty() {
            pen.put(area.x + 2, y, "none yet", Role::Muted, area.width.saturating_sub(3));
        }
        for entry in &session.transcript[first..] {
            let (_, segs, note, _) = turn(entry);
            pen.right(end, y, &note, Role::Muted);
            let room = area.width.saturating_sub(4 + cells(&note));
            let line = cut_line(&RichLine::from_segs(segs), room, pen.glyphs.ellipsis);
            pen.line(area.x + 1, y, &line, room);
            y += 1;
        }
        let foot = area.bottom().saturating_sub(1);
        let at = pen.put(area.x + 2, foot, "scripts run in ", Role::Muted, area.width.saturating_sub(3));
        let room = end.saturating_sub(at);
        pen.put(at, foot, &cut_end(&session.isolation, room, pen.glyphs.ellipsis), Role::Text, room);
    }
}
