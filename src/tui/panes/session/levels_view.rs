//! One skill at all three levels of disclosure, side by side where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::SessionPane;
use crate::gateway::{LevelSize, LevelsView};
use crate::skill::safe_text;
use crate::tui::pane::Draw;
use crate::tui::theme::Role;
use crate::tui::widgets::figures::{bytes, counted, tokens};
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
        let files: LevelSize = levels.files.iter().fold(LevelSize::default(), |sum, (_, size)| LevelSize {
            bytes: sum.bytes + size.bytes,
            tokens: sum.tokens.saturating_add(size.tokens),
        });
        let beside = area.width >= BESIDE;
        let places = if beside { side_by_side(area) } else { stacked(area, levels.files.len()) };
        let mut pen = Pen::new(buf, cx);
        let heads = [("L1 in every call", levels.l1), ("L2 once loaded", levels.l2), ("L3 when read", files)];
        let mut below = places;
        for (at, (name, size)) in heads.into_iter().enumerate() {
            below[at] = head(&mut pen, places[at], at + 1, name, size, beside);
        }
        let gap = if beside { "\n\n" } else { "  " };
        text(&mut pen, below[0], &format!("{}{gap}{}", levels.entry.name, levels.entry.description), 0);
        text(&mut pen, below[1], &levels.body, self.given.offset);
        file_list(&mut pen, below[2], &levels);
        self.given.height = usize::from(below[1].height);
        let all = levels.body.lines().count();
        self.given.offset = self.given.offset.min(all.saturating_sub(1));
        shown(levels.skill_id.as_str())
    }
}

fn side_by_side(area: Rect) -> [Rect; 3] {
    let each = (area.width - 2) / 3;
    [0, 1, 2].map(|at| Rect { x: area.x + 2 + at * each, width: each.saturating_sub(2), ..area })
}

/// One below the other: what there is little of takes no more than it needs, and the body takes the rest.
fn stacked(area: Rect, files: usize) -> [Rect; 3] {
    let most = (area.height / 4).max(2);
    let first = most.min(4);
    let last = (files.max(1) as u16 + 1).min(most);
    let body = area.height.saturating_sub(first + last + 2).max(2);
    let place = |y: u16, height: u16| Rect {
        x: area.x + 2,
        y,
        width: area.width.saturating_sub(3),
        height: height.min(area.bottom().saturating_sub(y)),
    };
    let second = area.y + first + 1;
    [place(area.y, first), place(second, body), place((second + body + 1).min(area.bottom()), last)]
}

/// Name and size of a level, over two rows or in one; answers the place below.
fn head(pen: &mut Pen<'_>, place: Rect, level: usize, name: &str, size: LevelSize, beside: bool) -> Rect {
    pen.rail(place.x, place.y, place.height, level);
    let (x, room) = (place.x + 2, place.width.saturating_sub(2));
    let cost = format!("{} tok  {}", tokens(size.tokens), bytes(size.bytes));
    let rows = if place.height == 0 {
        0
    } else if beside {
        pen.put(x, place.y, name, Role::Strong, room);
        pen.put(x, place.y + 1, &cost, Role::Muted, room);
        3
    } else {
        let end = pen.put(x, place.y, name, Role::Strong, room);
        pen.put(end + 2, place.y, &cost, Role::Muted, (x + room).saturating_sub(end + 2));
        1
    };
    Rect { x, y: place.y + rows, width: room, height: place.height.saturating_sub(rows) }
}

fn text(pen: &mut Pen<'_>, place: Rect, text: &str, offset: usize) {
    let mut y = place.y;
    for line in text.lines().skip(offset) {
        for part in wrap(&[Seg::new(safe_text::line(line), Role::Text)], place.width.max(1)) {
            if y >= place.bottom() {
                return;
            }
            let mut x = place.x;
            for seg in part {
                x = pen.put(x, y, &seg.text, seg.role, place.right().saturating_sub(x));
            }
            y += 1;
        }
        if line.is_empty() {
            y += 1;
        }
    }
}

fn file_list(pen: &mut Pen<'_>, place: Rect, levels: &LevelsView) {
    let room = place.width;
    if levels.files.is_empty() && place.height > 0 {
        pen.put(place.x, place.y, "no files", Role::Muted, room);
    }
    let shown_rows = usize::from(place.height);
    let hidden = levels.files.len().saturating_sub(shown_rows);
    for (at, ((path, size), y)) in levels.files.iter().zip(place.y..place.bottom()).enumerate() {
        if hidden > 0 && at + 1 == shown_rows {
            pen.put(place.x, y, &format!("and {} more", counted(hidden + 1, "file")), Role::Muted, room);
            return;
        }
        let cost = if room >= 34 {
            format!("{} tok  {:>7}", tokens(size.tokens), bytes(size.bytes))
        } else {
            tokens(size.tokens)
        };
        let at = pen.right(place.right(), y, &cost, Role::Muted);
        let space = at.saturating_sub(place.x + 1);
        let path = shown(path);
        let path = cut_middle(&path, space, pen.glyphs.ellipsis);
        pen.put(place.x, y, &cut_end(&path, space, pen.glyphs.ellipsis), Role::Text, space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_below_the_other_the_body_has_the_most_room_and_nothing_overlaps() {
        for (height, files) in [(16, 0), (16, 9), (12, 2), (9, 1), (40, 30)] {
            let [first, body, last] = stacked(Rect::new(0, 0, 50, height), files);
            assert!(body.height >= first.height && body.height >= last.height, "{first} {body} {last}");
            assert!(first.bottom() < body.y && body.bottom() < last.y, "{first} {body} {last}");
            assert!(
                first.height >= 2 && last.height >= 2 && last.bottom() <= height,
                "{first} {body} {last}"
            );
        }
    }
}
