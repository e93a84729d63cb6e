//! A part's title on a rule, and the divider between two parts. The focused part has a heavy rule.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::painter::Painter;
use super::rich::{RichLine, Seg};
use super::wrap::cut_line;
use crate::theme::Role;

/// The content of a rule.
#[derive(Debug, Clone, Default)]
pub struct Title {
    /// Left: the part's name.
    pub name: RichLine,
    /// Right: a note about the part; dropped before the name is truncated.
    pub note: RichLine,
    pub focused: bool,
}

impl Title {
    /// Creates a title of one word or phrase.
    pub fn of(name: impl Into<String>, focused: bool) -> Self {
        Self { name: RichLine::of(name, Role::Text), note: RichLine::default(), focused }
    }

    /// Adds a note on the right.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = RichLine::of(note, Role::Muted);
        self
    }

    /// Draws it over the full width of a row.
    pub fn draw(&self, painter: &mut Painter<'_>, x: u16, y: u16, width: u16) {
        let (sign, role) = if self.focused {
            (painter.glyphs.heavy, Role::Focus)
        } else {
            (painter.glyphs.rule, Role::Rule)
        };
        painter.run(x, y, sign, width, role);
        if width < 8 {
            return;
        }
        let mut name = self.name.clone();
        if self.focused {
            for seg in &mut name.segs {
                seg.role = if seg.role == Role::Text { Role::Strong } else { seg.role };
                seg.plus |= Modifier::BOLD;
            }
        }
        let note_width = self.note.width() as u16;
        let mut available = width - 4;
        let keep_note = note_width > 0 && (name.width() as u16) + note_width + 7 <= width;
        if keep_note {
            let start = pen_note(painter, x + width - 2, y, &self.note);
            available = start.saturating_sub(x + 5);
        }
        if name.width() > 0 {
            let name = cut_line(&name, available, painter.glyphs.ellipsis);
            painter.put(x + 1, y, " ", Role::Text, 1);
            let end = painter.line(x + 2, y, &name, available);
            painter.put(end, y, " ", Role::Text, 1);
        }
    }
}

fn pen_note(painter: &mut Painter<'_>, end: u16, y: u16, note: &RichLine) -> u16 {
    let start = painter.line_right(end, y, note);
    painter.put(start.saturating_sub(1), y, " ", Role::Text, 1);
    painter.put(end, y, " ", Role::Text, 1);
    start
}

/// How a divider meets a rule in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BorderJunction {
    /// A continuous rule; the divider begins below it.
    Top {
        /// Whether that rule is heavy.
        heavy: bool,
    },
    /// Rules on both sides; the divider continues.
    Cross {
        /// Whether the left one is heavy.
        left: bool,
        /// Whether the right one is heavy.
        right: bool,
    },
    /// A rule on the left only.
    Left { heavy: bool },
    /// A rule on the right only.
    Right { heavy: bool },
}

/// Draws the line between two columns of `area`, with a joint at each row of a rule on its left or right.
pub fn column_divider(
    painter: &mut Painter<'_>,
    area: Rect,
    x: u16,
    heavy: bool,
    left: &[u16],
    right: &[u16],
) {
    let mut joints = vec![(area.y, BorderJunction::Top { heavy })];
    for y in area.top() + 1..area.bottom() {
        match (left.contains(&y), right.contains(&y)) {
            (true, true) => joints.push((y, BorderJunction::Cross { left: false, right: false })),
            (true, false) => joints.push((y, BorderJunction::Left { heavy: false })),
            (false, true) => joints.push((y, BorderJunction::Right { heavy: false })),
            (false, false) => {}
        }
    }
    divider(painter, Rect { x, width: 1, ..area }, &joints);
}

/// Draws the divider between two parts, from `area.top()` down, one cell wide, with joints at its rows.
pub fn divider(painter: &mut Painter<'_>, area: Rect, joints: &[(u16, BorderJunction)]) {
    for y in area.top()..area.bottom() {
        let joint = joints.iter().find(|(row, _)| *row == y).map(|(_, joint)| *joint);
        let sign = match joint {
            None => painter.glyphs.bar,
            Some(_) if painter.glyphs.ascii => "+",
            Some(BorderJunction::Top { heavy: false }) => "┬",
            Some(BorderJunction::Top { heavy: true }) => "┯",
            Some(BorderJunction::Cross { left: false, right: false }) => "┼",
            Some(BorderJunction::Cross { left: true, right: false }) => "┽",
            Some(BorderJunction::Cross { left: false, right: true }) => "┾",
            Some(BorderJunction::Cross { left: true, right: true }) => "┿",
            Some(BorderJunction::Left { heavy: false }) => "┤",
            Some(BorderJunction::Left { heavy: true }) => "┥",
            Some(BorderJunction::Right { heavy: false }) => "├",
            Some(BorderJunction::Right { heavy: true }) => "┝",
        };
        // A title or a note that crosses the divider keeps its letters and spaces.
        let is_rule = |x: u16| {
            let sign = painter.buf.cell((x, y)).map(ratatui::buffer::Cell::symbol);
            sign.is_some_and(|s| s == painter.glyphs.rule || s == painter.glyphs.heavy)
        };
        let right = matches!(joint, Some(BorderJunction::Right { .. })) && is_rule(area.x + 1);
        let free = joint.is_none() || right || is_rule(area.x) || is_rule(area.x.saturating_sub(1));
        if free {
            painter.put(area.x, y, sign, Role::Rule, 1);
        }
    }
}

/// Formats `label value   label value`: pairs separated by three spaces, labels muted.
pub fn pairs(items: &[(&str, String)]) -> RichLine {
    let mut segs = Vec::with_capacity(items.len() * 3);
    for (at, (label, value)) in items.iter().enumerate() {
        if at > 0 {
            segs.push(Seg::new("   ", Role::Text));
        }
        segs.push(Seg::new(format!("{label} "), Role::Muted));
        segs.push(Seg::new(value.clone(), Role::Text));
    }
    RichLine::from_segs(segs)
}
