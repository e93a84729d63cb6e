//! Help for the focused context, derived from the keymap: sections of keys in two columns, and the glyphs.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::{Hint, Outcome, Overlay, centered, frame};
use crate::action::Action;
use crate::field::Field;
use crate::glyphs::Glyphs;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, Seg, cells, cut_end, wrap};

/// Width of the right-aligned keys, in cells.
const KEYS: usize = 12;

/// The keys of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The context, as a heading.
    pub title: String,
    /// `(keys, description, reason why unavailable)`.
    pub rows: Vec<(String, String, Option<String>)>,
}

/// The state of the help overlay.
pub struct Help {
    title: String,
    /// Sections of the left column.
    left: Vec<Section>,
    right: Vec<Section>,
    remap: String,
    find: Option<Field>,
    scroll: Scroll,
    lines: usize,
    area: Rect,
}

impl Help {
    /// Creates the help for a context: its own sections on the left, global ones on the right.
    pub fn new(place: &str, left: Vec<Section>, right: Vec<Section>, config_file: &str) -> Self {
        Self {
            title: format!("Keys in {place}"),
            left,
            right,
            remap: format!("customize keys in {config_file}"),
            find: None,
            scroll: Scroll::default(),
            lines: 0,
            area: Rect::ZERO,
        }
    }

    fn found(&self, sections: &[Section], dash: &str, width: u16) -> Vec<RichLine> {
        let requested = self.find.as_ref().map_or("", Field::text).trim().to_lowercase();
        let mut lines = Vec::new();
        for section in sections {
            let hit = |text: &str| requested.is_empty() || text.to_lowercase().contains(&requested);
            let rows: Vec<_> = section.rows.iter().filter(|(keys, what, _)| hit(keys) || hit(what)).collect();
            if rows.is_empty() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(RichLine::default());
            }
            lines.push(RichLine::of(section.title.as_str(), Role::Muted));
            for (keys, what, blocked) in rows {
                let pad = " ".repeat(KEYS.saturating_sub(usize::from(cells(keys))));
                let (key_role, role) =
                    if blocked.is_some() { (Role::Muted, Role::Muted) } else { (Role::Key, Role::Text) };
                let mut segs =
                    vec![Seg::new(format!("{pad}{keys}"), key_role), Seg::new(format!("  {what}"), role)];
                if let Some(why) = blocked {
                    segs.push(Seg::new(format!("  {dash}  {why}"), Role::Muted));
                }
                let line = RichLine::from_segs(segs);
                let Some(why) = blocked.as_ref().filter(|_| line.width() > usize::from(width)) else {
                    lines.push(line);
                    continue;
                };
                // The reason is on separate lines below the description.
                lines.push(RichLine::from_segs(line.segs[..2].to_vec()));
                let indent = KEYS + 2;
                let available = width.saturating_sub(indent as u16);
                for segs in wrap(&[Seg::new(why.as_str(), Role::Muted)], available) {
                    let mut line = vec![Seg::new(" ".repeat(indent), Role::Muted)];
                    line.extend(segs);
                    lines.push(RichLine::from_segs(line));
                }
            }
        }
        lines
    }

    /// Formats two glyphs and their meaning.
    fn pair(cells: [(&str, Role, &str); 2]) -> RichLine {
        let mut segs = Vec::new();
        for (sign, role, means) in cells {
            segs.push(Seg::new(format!("  {sign} "), role));
            segs.push(Seg::new(format!("{means:<20}"), Role::Text));
        }
        RichLine::from_segs(segs)
    }

    fn run_signs(glyphs: &Glyphs) -> Vec<RichLine> {
        vec![
            RichLine::of("symbols", Role::Muted),
            Self::pair([
                (glyphs.waiting, Role::Waiting, "waiting for approval"),
                (glyphs.signal, Role::Text, "waiting for a signal"),
            ]),
            Self::pair([
                (glyphs.running[0], Role::Info, "running"),
                (glyphs.pending, Role::Muted, "pending, paused"),
            ]),
            Self::pair([(glyphs.ok, Role::Success, "completed"), (glyphs.bad, Role::Danger, "failed")]),
            Self::pair([
                (glyphs.replaying, Role::Info, "replaying"),
                (glyphs.canceled, Role::Muted, "canceled"),
            ]),
            // Beside runs that wait, where there is no space for words.
            Self::pair([("!", Role::Waiting, "escalated"), ("?", Role::Waiting, "outcome unknown")]),
            Self::pair([("1/2", Role::Waiting, "1 of 2 approvals"), ("5 m", Role::Waiting, "time left")]),
        ]
    }

    fn signs(glyphs: &Glyphs) -> Vec<RichLine> {
        let row = Self::pair;
        vec![
            RichLine::of("symbols", Role::Muted),
            row([
                (glyphs.set, Role::Success, "fits, selected"),
                (glyphs.pending, Role::Waiting, "no match, unselected"),
            ]),
            row([(glyphs.warn, Role::Warning, "warning"), (glyphs.bad, Role::Danger, "error")]),
            row([(glyphs.edited, Role::Info, "changed"), (glyphs.tick, Role::Faint, "threshold")]),
            RichLine::default(),
            RichLine::of("disclosure level", Role::Muted),
            RichLine::from_segs(vec![
                Seg::new(format!("  {}L1 ", glyphs.levels[1]), Role::Level1),
                Seg::new("catalog  ", Role::Text),
                Seg::new(format!("{}L2 ", glyphs.levels[2]), Role::Level2),
                Seg::new("body  ", Role::Text),
                Seg::new(format!("{}L3 ", glyphs.levels[3]), Role::Level3),
                Seg::new("files", Role::Text),
            ]),
        ]
    }
}

impl Overlay for Help {
    fn in_text(&self) -> bool {
        self.find.is_some()
    }

    fn is_help(&self) -> bool {
        true
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let page = self.scroll.page();
        let all = isize::try_from(self.lines).unwrap_or(isize::MAX);
        match action {
            Some(Action::Up) => self.scroll.roll(-1, self.lines),
            Some(Action::Down) => self.scroll.roll(1, self.lines),
            Some(Action::PageUp) => self.scroll.roll(-page, self.lines),
            Some(Action::PageDown) => self.scroll.roll(page, self.lines),
            Some(Action::Top) => self.scroll.offset = 0,
            Some(Action::Bottom) => self.scroll.roll(all, self.lines),
            Some(Action::Filter) => self.find = Some(Field::new()),
            Some(Action::Back) if self.find.is_some() => self.find = None,
            Some(Action::Back | Action::Help) => return Outcome::Close,
            _ => {
                if self.find.as_mut().is_some_and(|field| field.key(key)) {
                    self.scroll.offset = 0;
                }
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if let Some(field) = &mut self.find {
            field.paste(text);
        }
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.roll(rows, self.lines);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if self.area.contains(at) { Outcome::Stay } else { Outcome::Close }
    }

    fn hints(&self) -> Vec<Hint> {
        let mut hints = vec![Hint::new(Action::Up, "scroll")];
        if self.find.is_none() {
            hints.push(Hint::new(Action::Filter, "find a key"));
        }
        hints.push(Hint::new(Action::Back, "close"));
        hints
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let dash = if painter.glyphs.ascii { "-" } else { "–" };
        let two = area.width >= 100;
        let width = if two { 100 } else { area.width.saturating_sub(2).min(64) };
        let inner = width.saturating_sub(4);
        let column = if two { (inner / 2).saturating_sub(1) } else { inner };
        let mut left = self.found(&self.left, dash, column);
        let mut right = self.found(&self.right, dash, column);
        if self.find.as_ref().is_none_or(Field::is_empty) {
            let signs = match self.title.rsplit(' ').next() {
                Some("Runs") => Self::run_signs(painter.glyphs),
                // The symbols of panes are not in dialogs.
                Some("dialog") => Vec::new(),
                _ => Self::signs(painter.glyphs),
            };
            if !signs.is_empty() {
                right.push(RichLine::default());
                right.extend(signs);
            }
        }
        if !two {
            left.push(RichLine::default());
            left.append(&mut right);
        }
        self.lines = left.len().max(right.len());
        let height = (self.lines as u16).saturating_add(6).min(area.height.saturating_sub(2)).max(10);
        self.area = centered(area, width, height);
        let inside = frame(self.area, painter, &self.title, "", false);
        let mut cursor = None;
        let mut top = inside.y + 1;
        if let Some(field) = &mut self.find {
            painter.put(inside.x, inside.y, "/ ", Role::Muted, 2);
            let text = Rect::new(inside.x + 2, inside.y, inside.width.saturating_sub(2), 1);
            let style = painter.theme.style(Role::Strong);
            cursor = field.draw(text, painter.buf, style, &[]);
            top += 1;
        }
        let bottom = inside.bottom().saturating_sub(2);
        let rows = bottom.saturating_sub(top);
        self.scroll.height = usize::from(rows);
        self.scroll.offset = self.scroll.offset.min(self.lines.saturating_sub(usize::from(rows)));
        let half = if two { inside.width / 2 } else { inside.width };
        for (column, lines) in [(inside.x, &left), (inside.x + half, &right)] {
            for (line, y) in lines.iter().skip(self.scroll.offset).take(usize::from(rows)).zip(top..) {
                painter.line(column, y, line, half.min(inside.right().saturating_sub(column)));
            }
        }
        if left.is_empty() && right.is_empty() {
            painter.put(inside.x, top, "no matching keys", Role::Muted, inside.width);
        }
        let below = self.lines.saturating_sub(self.scroll.offset + usize::from(rows));
        let note = if below > 0 { format!("{below} more below") } else { self.remap.clone() };
        let note = cut_end(&note, inside.width, painter.glyphs.ellipsis).into_owned();
        painter.put(inside.x, inside.bottom().saturating_sub(1), &note, Role::Muted, inside.width);
        cursor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_of_runs_are_explained() {
        let lines = Help::run_signs(&crate::glyphs::UNICODE);
        let text = lines.iter().map(RichLine::plain_text).collect::<Vec<_>>().join("\n");
        for mark in ["! escalated", "? outcome unknown", "1/2 1 of 2 approvals"] {
            assert!(text.contains(mark), "{text}");
        }
    }

    #[test]
    fn reason_that_does_not_fit_is_below_its_key() {
        let why = "it is invoked directly; only sidecars are attached to a target";
        let row = ("a".to_owned(), "attach".to_owned(), Some(why.to_owned()));
        let section = Section { title: "skills".to_owned(), rows: vec![row] };
        let help = Help::new("Browse", vec![section.clone()], Vec::new(), "config.yaml");
        let rendered = |width| {
            let lines = help.found(std::slice::from_ref(&section), "-", width);
            lines.iter().map(RichLine::plain_text).collect::<Vec<_>>()
        };
        let pad = " ".repeat(KEYS - 1);
        assert_eq!(rendered(120), ["skills".to_owned(), format!("{pad}a  attach  -  {why}")]);
        let narrow = rendered(60);
        assert_eq!(narrow[1], format!("{pad}a  attach"));
        assert_eq!(narrow[2..].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "), why);
        assert!(narrow.iter().all(|line| cells(line) <= 60), "{narrow:?}");
    }
}
