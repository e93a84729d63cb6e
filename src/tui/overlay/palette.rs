//! The command palette: every action with its key, found by a few letters; what cannot be done now says why.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use nucleo_matcher::Utf32String;
use ratatui::layout::{Position, Rect};

use super::chooser::underline_letters;
use super::{Hint, Outcome, Overlay, centred, frame, row_at};
use crate::tui::action::Action;
use crate::tui::field::Field;
use crate::tui::theme::Role;
use crate::tui::widgets::fuzzy::Fuzzy;
use crate::tui::widgets::measure::cut_end;
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rich::Seg;
use crate::tui::widgets::scroll::Scroll;
use crate::tui::widgets::wrap::wrap_to;

/// One action as the palette offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it does.
    pub action: Action,
    /// A few words.
    pub name: String,
    /// A sentence.
    pub does: String,
    /// Where it belongs: `Discover`, `lists`, empty for everywhere.
    pub place: String,
    /// Its keys, as shown.
    pub keys: String,
    /// Why it cannot be done now.
    pub blocked: Option<String>,
}

/// The palette.
pub struct Palette {
    entries: Vec<Entry>,
    /// Indices into `entries` that match: first what can be done, then the rest.
    shown: Vec<usize>,
    /// How many of `shown` can be done.
    live: usize,
    field: Field,
    fuzzy: Fuzzy,
    scroll: Scroll,
    rows: Vec<(Rect, usize)>,
    area: Rect,
}

impl Palette {
    /// A palette over these entries, in the order in which they shall stand before anything is typed.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        let mut palette = Self {
            entries,
            shown: Vec::new(),
            live: 0,
            field: Field::new(),
            fuzzy: Fuzzy::default(),
            scroll: Scroll::default(),
            rows: Vec::new(),
            area: Rect::ZERO,
        };
        palette.refilter();
        palette
    }

    fn refilter(&mut self) {
        self.fuzzy.set(self.field.text());
        let mut scored: Vec<(bool, std::cmp::Reverse<u32>, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some(score) = self.fuzzy.score(&Utf32String::from(entry.name.as_str())) {
                scored.push((entry.blocked.is_some(), std::cmp::Reverse(score), at));
            }
        }
        scored.sort_unstable();
        self.live = scored.iter().filter(|(blocked, ..)| !blocked).count();
        self.shown = scored.into_iter().map(|(.., at)| at).collect();
        self.scroll = Scroll::default();
    }

    fn selected(&self) -> Option<&Entry> {
        self.shown.get(self.scroll.cursor).map(|at| &self.entries[*at])
    }

    fn choose(&self) -> Outcome {
        match self.selected() {
            Some(entry) if entry.blocked.is_none() => Outcome::Do(entry.action),
            _ => Outcome::Stay,
        }
    }

    fn draw_row(&mut self, pen: &mut Pen<'_>, row: Rect, at: usize) {
        let entry = &self.entries[self.shown[at]];
        let selected = at == self.scroll.cursor;
        if selected {
            pen.band(row, Role::Selection);
            pen.put(row.x, row.y, pen.glyphs.gutter, Role::Gutter, 1);
        }
        let (x, end) = (row.x + 2, row.right() - 2);
        let role = match (&entry.blocked, selected) {
            (Some(_), _) => Role::Muted,
            (None, true) => Role::Strong,
            (None, false) => Role::Text,
        };
        let note_at = x + (end - x) * 11 / 20;
        let keys_at =
            if entry.blocked.is_none() { pen.right(end, row.y, &entry.keys, Role::Key) } else { end };
        let room = note_at.saturating_sub(x + 2);
        let name = cut_end(&entry.name, room, pen.glyphs.ellipsis).into_owned();
        pen.put(x, row.y, &name, role, room);
        let style = pen.theme.style(role);
        underline_letters(pen, x, row.y, &name, &self.fuzzy.letters(&name), style);
        let note = entry.blocked.as_deref().unwrap_or(&entry.place);
        let room = keys_at.saturating_sub(note_at + 1);
        pen.put(note_at, row.y, &cut_end(note, room, pen.glyphs.ellipsis), Role::Muted, room);
    }
}

impl Overlay for Palette {
    fn in_text(&self) -> bool {
        true
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let len = self.shown.len();
        match action {
            Some(Action::Up) => self.scroll.by(-1, len),
            Some(Action::Down) => self.scroll.by(1, len),
            Some(Action::PageUp) => self.scroll.by(-self.scroll.page(), len),
            Some(Action::PageDown) => self.scroll.by(self.scroll.page(), len),
            Some(Action::Open) => return self.choose(),
            Some(Action::Complete) => {
                if let Some(name) = self.selected().map(|entry| entry.name.clone()) {
                    self.field.set(&name);
                    self.refilter();
                }
            }
            Some(Action::Back | Action::Palette) => return Outcome::Close,
            _ => {
                if self.field.key(key) {
                    self.refilter();
                }
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.field.paste(text) {
            self.refilter();
        }
        Outcome::Stay
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll.by(-1, self.shown.len()),
            MouseEventKind::ScrollDown => self.scroll.by(1, self.shown.len()),
            MouseEventKind::Down(MouseButton::Left) if !self.area.contains(at) => return Outcome::Close,
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(row) = row_at(&self.rows, at) {
                    self.scroll.cursor = row;
                    return self.choose();
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        vec![
            Hint { action: Action::Up, label: "move" },
            Hint { action: Action::Open, label: "do it" },
            Hint { action: Action::Complete, label: "complete" },
            Hint { action: Action::Back, label: "close" },
        ]
    }

    fn draw(&mut self, area: Rect, pen: &mut Pen<'_>, _now: Instant) -> Option<Position> {
        let height = area.height.saturating_sub(4).clamp(10, 20);
        self.area = centred(area, 70.min(area.width.saturating_sub(2)), height);
        let inside = frame(self.area, pen, "", "", false);
        let count = format!("{} of {}", self.shown.len(), self.entries.len());
        let count_at = pen.right(inside.right(), inside.y, &count, Role::Muted);
        pen.put(inside.x, inside.y, ":", Role::Muted, 1);
        let text = Rect::new(inside.x + 2, inside.y, count_at.saturating_sub(inside.x + 3), 1);
        let style = pen.theme.style(Role::Strong);
        let cursor = self.field.draw(text, pen.buf, style, &[]);
        pen.run(self.area.x + 1, inside.y + 1, pen.glyphs.rule, self.area.width - 2, Role::Rule);

        // Below: rows, with a heading before those that cannot be done; at the bottom what the row does.
        let top = inside.y + 2 + u16::from(inside.height > 12);
        let bottom = inside.bottom().saturating_sub(3);
        let lines = usize::from(bottom.saturating_sub(top));
        let heading = usize::from(self.live < self.shown.len()) * if self.live > 0 { 2 } else { 1 };
        let crosses = self.shown.len() + heading > lines || self.live < self.shown.len();
        self.scroll.follow(self.shown.len(), lines.saturating_sub(if crosses { heading } else { 0 }).max(1));
        self.rows.clear();
        let mut y = top;
        let mut at = self.scroll.offset;
        while y < bottom && at < self.shown.len() {
            if at == self.live {
                y += u16::from(at > self.scroll.offset);
                if y + 1 >= bottom {
                    break;
                }
                pen.put(inside.x, y, "not here now", Role::Muted, inside.width);
                y += 1;
            }
            let row = Rect::new(self.area.x + 1, y, self.area.width - 2, 1);
            self.rows.push((row, at));
            self.draw_row(pen, Rect { x: row.x, width: row.width, ..row }, at);
            y += 1;
            at += 1;
        }
        if self.shown.is_empty() {
            pen.put(inside.x, top, "no command has these letters in its name", Role::Muted, inside.width);
        }
        if let Some(entry) = self.selected() {
            let name = Seg::new(capital(&entry.name), Role::Text);
            let does = Seg::new(format!(" {} {}", pen.glyphs.dot, entry.does), Role::Muted);
            let lines = wrap_to(&[name, does], inside.width, 2, pen.glyphs.ellipsis);
            for (line, y) in lines.iter().zip(inside.bottom() - 2..) {
                pen.line(inside.x, y, line, inside.width);
            }
        }
        cursor
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn entry(action: Action, name: &str, blocked: Option<&str>) -> Entry {
        Entry {
            action,
            name: name.to_owned(),
            does: format!("Does {name}."),
            place: String::new(),
            keys: String::new(),
            blocked: blocked.map(str::to_owned),
        }
    }

    fn type_text(palette: &mut Palette, text: &str) {
        for letter in text.chars() {
            palette.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE), None);
        }
    }

    #[test]
    fn what_cannot_be_done_stands_last_and_is_not_done() {
        let mut palette = Palette::new(vec![
            entry(Action::Sort, "sort", Some("in Browse")),
            entry(Action::PickTheme, "pick a theme", None),
        ]);
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(palette.key(enter, Some(Action::Open)), Outcome::Do(Action::PickTheme));
        palette.key(enter, Some(Action::Down));
        assert_eq!(palette.key(enter, Some(Action::Open)), Outcome::Stay);
    }

    #[test]
    fn letters_find_and_tab_completes() {
        let mut palette = Palette::new(vec![
            entry(Action::Sort, "sort", None),
            entry(Action::PickTheme, "pick a theme", None),
        ]);
        type_text(&mut palette, "thm");
        assert_eq!(palette.selected().map(|entry| entry.action), Some(Action::PickTheme));
        palette.key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE), Some(Action::Complete));
        assert_eq!(palette.field.text(), "pick a theme");
    }
}
