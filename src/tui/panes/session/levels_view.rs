//! One skill at all three levels of disclosure, side by side where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::SessionPane;
use crate::gateway::{LevelSize, LevelsView};
use crate::skill::safe_text;
use crate::tui::pane::Draw;
use crate::tui::theme::Role;
use crate::tui::widgets::figures::{bytes, tokens};
use crate::tui::widgets::measure::{cut_end, cut_middle, shown};
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rich::Seg;
use crate::tui::widgets::wrap::wrap;

/// From this width on the levels stand side by side.
const BESIDE: u16 = 72;

impl SessionPane {
    pub(super) fn draw_levels(&mut self, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
        let Some(levels) = self.levels.clone() else {
            let text =
                if self.selected().is_none() { "load a skill to see its three levels" } else { "counting" };
            Pen::new(buf, cx).put(area.x + 2, area.y, text, Role::Muted, area.width.saturating_sub(2));
            return String::new();
        };
        let places: [Rect; 3] = if area.width >= BESIDE {
            let each = (area.width - 2) / 3;
            [0, 1, 2].map(|at| Rect { x: area.x + 2 + at * each, width: each.saturating_sub(2), ..area })
        } else {
            let each = (area.height / 3).max(3);
            [0, 1, 2].map(|at| Rect {
                x: area.x + 2,
                y: area.y + at * each,
                width: area.width.saturating_sub(3),
                height: each.saturating_sub(1),
            })
        };
        let mut pen = Pen::new(buf, cx);
        let files: LevelSize = levels.files.iter().fold(LevelSize::default(), |sum, (_, size)| LevelSize {
            bytes: sum.bytes + size.bytes,
            tokens: sum.tokens.saturating_add(size.tokens),
        });
        head(&mut pen, places[0], 1, "L1 in every call", levels.l1);
        text(&mut pen, places[0], &format!("{}\n\n{}", levels.entry.name, levels.entry.description), 0);
        head(&mut pen, places[1], 2, "L2 once loaded", levels.l2);
        text(&mut pen, places[1], &levels.body, self.given.offset);
        head(&mut pen, places[2], 3, "L3 when read", files);
        file_list(&mut pen, places[2], &levels);
        self.given.height = usize::from(places[1].height.saturating_sub(2));
        let all = levels.body.lines().count();
        self.given.offset = self.given.offset.min(all.saturating_sub(1));
        shown(levels.skill_id.as_str())
    }
}

fn head(pen: &mut Pen<'_>, place: Rect, level: usize, name: &str, size: LevelSize) {
    pen.rail(place.x, place.y, place.height, level);
    let room = place.width.saturating_sub(2);
    pen.put(place.x + 2, place.y, name, Role::Strong, room);
    let cost = format!("{} tok  {}", tokens(size.tokens), bytes(size.bytes));
    pen.put(place.x + 2, place.y + 1, &cost, Role::Muted, room);
}

fn text(pen: &mut Pen<'_>, place: Rect, text: &str, offset: usize) {
    let room = place.width.saturating_sub(2);
    let mut y = place.y + 3;
    for line in text.lines().skip(offset) {
        for part in wrap(&[Seg::new(safe_text::line(line), Role::Text)], room.max(1)) {
            if y >= place.bottom() {
                return;
            }
            let mut x = place.x + 2;
            for seg in part {
                x = pen.put(x, y, &seg.text, seg.role, (place.x + 2 + room).saturating_sub(x));
            }
            y += 1;
        }
        if line.is_empty() {
            y += 1;
        }
    }
}

fn file_list(pen: &mut Pen<'_>, place: Rect, levels: &LevelsView) {
    let room = place.width.saturating_sub(2);
    if levels.files.is_empty() {
        pen.put(place.x + 2, place.y + 3, "no files", Role::Muted, room);
    }
    for ((path, size), y) in levels.files.iter().zip(place.y + 3..place.bottom()) {
        let cost = if room >= 34 {
            format!("{} tok  {:>7}", tokens(size.tokens), bytes(size.bytes))
        } else {
            tokens(size.tokens)
        };
        let end = place.x + 2 + room;
        let at = pen.right(end, y, &cost, Role::Muted);
        let space = at.saturating_sub(place.x + 3);
        let path = shown(path);
        let path = cut_middle(&path, space, pen.glyphs.ellipsis);
        pen.put(place.x + 2, y, &cut_end(&path, space, pen.glyphs.ellipsis), Role::Text, space);
    }
}
