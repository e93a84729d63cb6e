//! Draws the files of a bundle: the tree above, the selected file below.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{Detail, syntax_of};
use super::detail_view::scrolled;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::hex::hex;
use crate::widgets::{Painter, RichLine, Seg, byte_size, counted, shown};
use skills_api::FileText;

pub(super) fn draw(
    detail: &mut Detail,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let Some(skill) = detail.skill.clone() else { return String::new() };
    let mut painter = Painter::new(buf, cx);
    if skill.files.is_empty() {
        let text = "no resource files";
        painter.put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(3));
        return String::new();
    }
    let rows = detail.tree_rows();
    let height = (rows.len() as u16).min(area.height / 3).max(3).min(area.height);
    let tree = Rect { height, ..area };
    detail.drawn.tree = tree;
    detail.tree.follow(rows.len(), usize::from(height));
    let offset = detail.tree.offset;
    for (place, row) in rows.iter().skip(offset).take(usize::from(height)).enumerate() {
        let line = Rect { y: tree.y + place as u16, height: 1, ..tree };
        let selected = offset + place == detail.tree.cursor;
        if selected {
            painter.select(line, focused);
        }
        let indent = 6 + 2 * row.depth as u16;
        let end = line.right().saturating_sub(1);
        let mut executable_at = None;
        let (size, role) = if let Some(file) = row.file.and_then(|i| skill.files.get(i)) {
            if file.executable {
                executable_at = Some(painter.right(end.saturating_sub(9), line.y, "executable", Role::Muted));
            }
            (byte_size(file.bytes), if selected { Role::Strong } else { Role::Text })
        } else {
            let sign = if row.folded { painter.glyphs.closed } else { painter.glyphs.open };
            painter.put(line.x + indent - 2, line.y, sign, Role::Muted, 1);
            (counted(row.files, "file"), Role::Strong)
        };
        let start = painter.right(end, line.y, &size, Role::Muted);
        let x = line.x + indent;
        let available =
            executable_at.map_or(start.saturating_sub(x + 6), |start| start.saturating_sub(x + 1));
        let name = shown(&row.name);
        painter.put_cut(x, line.y, &name, role, available);
    }
    painter.rail(area.x + 2, area.y, height.min(rows.len() as u16), 3);
    let below = Rect { y: area.y + height + 1, height: area.height.saturating_sub(height + 1), ..area };
    draw_preview(detail, below, buf, cx)
}

fn draw_preview(detail: &mut Detail, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    let Some((path, content)) = detail.file.clone() else { return String::new() };
    let name = shown(&path);
    let mut painter = Painter::new(buf, cx);
    let content = match content {
        Ok(content) => content,
        Err(error) => {
            painter.put(area.x + 2, area.y, painter.glyphs.bad, Role::Danger, 1);
            let width = area.width.saturating_sub(5);
            painter.put(area.x + 4, area.y, &shown(&error.message), Role::Text, width);
            return name;
        }
    };
    let kind = format!("{} · {}", shown(&content.media_type), byte_size(content.bytes));
    painter.right(area.right().saturating_sub(1), area.y, &kind, Role::Muted);
    painter.put(area.x + 2, area.y, &name, Role::Strong, area.width.saturating_sub(kind.len() as u16 + 4));
    let window = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(3),
        height: area.height.saturating_sub(1),
    };
    let lines = match &content.content {
        FileText::Binary(head) => hex(head, window.width),
        FileText::Text(text) => {
            let width = window.width.saturating_sub(6);
            let syntax = syntax_of(&path);
            let Some(lines) = detail.rendered(text, syntax, width) else {
                return String::new();
            };
            numbered(&lines, &mut detail.preview, window)
        }
    };
    let total = lines.len();
    scrolled(&mut detail.preview, &lines, window, &mut Painter::new(buf, cx));
    let scroll = &detail.preview;
    let last = (scroll.offset + scroll.height).min(total);
    format!("{}–{last} of {}", scroll.offset + 1, counted(total, "line"))
}

/// Numbers lines; only visible ones are built, the others stay empty.
fn numbered(lines: &[RichLine], scroll: &mut crate::widgets::scroll::Scroll, window: Rect) -> Vec<RichLine> {
    let height = usize::from(window.height);
    scroll.offset = scroll.offset.min(lines.len().saturating_sub(height));
    let seen = scroll.offset..scroll.offset + height;
    let line = |(index, line): (usize, &RichLine)| {
        if !seen.contains(&index) {
            return RichLine::default();
        }
        let number = if line.source > 0 { format!("{:>4}  ", line.source) } else { "      ".to_owned() };
        let mut segs = vec![Seg::new(number, Role::Muted)];
        segs.extend(line.segs.iter().cloned());
        RichLine { segs, band: line.band, source: line.source }
    };
    lines.iter().enumerate().map(line).collect()
}
