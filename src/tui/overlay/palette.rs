//! The command palette: every action with its key and every skill, found by fuzzy search; unavailable actions show the
//! reason.

use std::time::Instant;

use crossterm::event::KeyEvent;
use nucleo_matcher::Utf32String;
use ratatui::layout::{Position, Rect};

use super::chooser::{named, underline_letters};
use super::{Hint, Outcome, Overlay, centered, frame, row_at};
use crate::action::Action;
use crate::field::Field;
use crate::theme::Role;
use crate::widgets::fuzzy::Fuzzy;
use crate::widgets::{Painter, Scroll, Seg, cells, count, cut_end, wrap_to};
use skills_skill::SkillId;

/// An action in the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub action: Action,
    /// A short name.
    pub name: String,
    /// A description in one sentence.
    pub does: String,
    /// Its context: `Discover`, `lists`, empty for global.
    pub place: String,
    pub keys: String,
    /// The reason why it is unavailable, if any.
    pub blocked: Option<String>,
}

/// A skill in the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillEntry {
    pub id: SkillId,
    /// Its id, safe to draw.
    pub name: String,
    /// Its description, safe to draw.
    pub description: String,
}

/// The entry of a palette row: an index into its commands or its skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaletteMatch {
    Command(usize),
    Skill(usize),
}

pub struct Palette {
    entries: Vec<Entry>,
    /// Offered once a search text is entered.
    skills: Vec<SkillEntry>,
    /// Matches: available commands, skills, unavailable commands.
    shown: Vec<PaletteMatch>,
    /// Index of the first skill in `shown`.
    skills_at: usize,
    /// Index of the first unavailable command in `shown`.
    blocked_at: usize,
    field: Field,
    fuzzy: Fuzzy,
    scroll: Scroll,
    rows: Vec<(Rect, usize)>,
    area: Rect,
}

impl Palette {
    /// Creates a palette; without a search text the entries keep this order.
    pub fn new(entries: Vec<Entry>, skills: Vec<SkillEntry>) -> Self {
        let mut palette = Self {
            entries,
            skills,
            shown: Vec::new(),
            skills_at: 0,
            blocked_at: 0,
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
        self.skills_at = scored.iter().filter(|(blocked, ..)| !blocked).count();
        let mut commands = scored.into_iter().map(|(.., at)| PaletteMatch::Command(at));
        self.shown = commands.by_ref().take(self.skills_at).collect();
        let skills = self.matching_skills();
        self.shown.extend(skills);
        self.blocked_at = self.shown.len();
        self.shown.extend(commands);
        self.scroll = Scroll::default();
    }

    /// Returns skills that match the input, best first: by full name, then by prefix, then by letters.
    fn matching_skills(&mut self) -> Vec<PaletteMatch> {
        if self.fuzzy.is_empty() {
            return Vec::new();
        }
        let requested = self.field.text().trim().to_lowercase();
        let mut scored: Vec<(u8, std::cmp::Reverse<u32>, usize)> = Vec::new();
        for (at, skill) in self.skills.iter().enumerate() {
            if let Some(score) = self.fuzzy.score(&Utf32String::from(skill.name.as_str())) {
                scored.push((named(&[&skill.name], &requested), std::cmp::Reverse(score), at));
            }
        }
        scored.sort_unstable();
        scored.into_iter().map(|(.., at)| PaletteMatch::Skill(at)).collect()
    }

    fn selected(&self) -> Option<PaletteMatch> {
        self.shown.get(self.scroll.cursor).copied()
    }

    fn choose(&self) -> Outcome {
        match self.selected() {
            Some(PaletteMatch::Command(at)) if self.entries[at].blocked.is_none() => {
                Outcome::Do(self.entries[at].action)
            }
            Some(PaletteMatch::Skill(at)) => Outcome::OpenSkill(self.skills[at].id.clone()),
            _ => Outcome::Stay,
        }
    }

    /// Returns the heading above a row, if a section begins with it.
    fn heading(&self, at: usize) -> Option<&'static str> {
        if at == self.skills_at && at < self.blocked_at {
            Some("skills")
        } else if at == self.blocked_at && at < self.shown.len() {
            Some("unavailable")
        } else {
            None
        }
    }

    fn draw_skill(&mut self, painter: &mut Painter<'_>, row: Rect, skill: usize, selected: bool) {
        let skill = &self.skills[skill];
        let (x, end) = (row.x + 2, row.right() - 2);
        let role = if selected { Role::Strong } else { Role::Text };
        let available = cells(&skill.name).max((end - x) * 9 / 20).min(end - x);
        let name = cut_end(&skill.name, available, painter.glyphs.ellipsis).into_owned();
        painter.put(x, row.y, &name, role, available);
        let style = painter.theme.style(role);
        underline_letters(painter, x, row.y, &name, &self.fuzzy.letters(&name), style);
        let at = x + available + 2;
        let available = end.saturating_sub(at);
        if available > 3 {
            painter.put(
                at,
                row.y,
                &cut_end(&skill.description, available, painter.glyphs.ellipsis),
                Role::Muted,
                available,
            );
        }
    }

    fn draw_row(&mut self, painter: &mut Painter<'_>, row: Rect, at: usize) {
        let entry = match self.shown[at] {
            PaletteMatch::Command(entry) => &self.entries[entry],
            PaletteMatch::Skill(skill) => {
                let selected = at == self.scroll.cursor;
                if selected {
                    painter.band(row, Role::Selection);
                    painter.put(row.x, row.y, painter.glyphs.gutter, Role::Gutter, 1);
                }
                return self.draw_skill(painter, row, skill, selected);
            }
        };
        let selected = at == self.scroll.cursor;
        if selected {
            painter.band(row, Role::Selection);
            painter.put(row.x, row.y, painter.glyphs.gutter, Role::Gutter, 1);
        }
        let (x, end) = (row.x + 2, row.right() - 2);
        let role = match (&entry.blocked, selected) {
            (Some(_), _) => Role::Muted,
            (None, true) => Role::Strong,
            (None, false) => Role::Text,
        };
        let note_at = x + (end - x) * 11 / 20;
        let keys_at =
            if entry.blocked.is_none() { painter.right(end, row.y, &entry.keys, Role::Key) } else { end };
        let available = note_at.saturating_sub(x + 2);
        let name = cut_end(&entry.name, available, painter.glyphs.ellipsis).into_owned();
        painter.put(x, row.y, &name, role, available);
        let style = painter.theme.style(role);
        underline_letters(painter, x, row.y, &name, &self.fuzzy.letters(&name), style);
        let note = entry.blocked.as_deref().unwrap_or(&entry.place);
        let available = keys_at.saturating_sub(note_at + 1);
        painter.put(
            note_at,
            row.y,
            &cut_end(note, available, painter.glyphs.ellipsis),
            Role::Muted,
            available,
        );
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
                let name = self.selected().map(|found| match found {
                    PaletteMatch::Command(at) => self.entries[at].name.clone(),
                    PaletteMatch::Skill(at) => self.skills[at].name.clone(),
                });
                if let Some(name) = name {
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

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.by(rows.signum(), self.shown.len());
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if !self.area.contains(at) {
            return Outcome::Close;
        }
        let Some(row) = row_at(&self.rows, at) else { return Outcome::Stay };
        self.scroll.cursor = row;
        self.choose()
    }

    fn hints(&self) -> Vec<Hint> {
        vec![
            Hint::new(Action::Up, "move"),
            Hint::new(Action::Open, "run"),
            Hint::new(Action::Complete, "complete"),
            Hint::new(Action::Back, "close"),
        ]
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let height = area.height.saturating_sub(4).clamp(10, 20);
        self.area = centered(area, 70.min(area.width.saturating_sub(2)), height);
        let inside = frame(self.area, painter, "", "", false);
        let skills = if self.fuzzy.is_empty() { 0 } else { self.skills.len() };
        let found = format!("{} of {}", count(self.shown.len()), count(self.entries.len() + skills));
        let count_at = painter.right(inside.right(), inside.y, &found, Role::Muted);
        painter.put(inside.x, inside.y, ":", Role::Muted, 1);
        let text = Rect::new(inside.x + 2, inside.y, count_at.saturating_sub(inside.x + 3), 1);
        let style = painter.theme.style(Role::Strong);
        let cursor = self.field.draw(text, painter.buf, style, &[]);
        painter.run(self.area.x + 1, inside.y + 1, painter.glyphs.rule, self.area.width - 2, Role::Rule);

        // Below: rows, with headings before sections; at the bottom the description of the selected row.
        let top = inside.y + 2 + u16::from(inside.height > 12);
        let bottom = inside.bottom().saturating_sub(3);
        let lines = usize::from(bottom.saturating_sub(top));
        // A heading takes a row, and a blank one above it unless it is the first.
        let headings = [self.skills_at, self.blocked_at];
        let headings = headings.into_iter().filter(|at| self.heading(*at).is_some());
        let headings: usize = headings.map(|at| 1 + usize::from(at > 0)).sum();
        self.scroll.follow(self.shown.len(), lines.saturating_sub(headings).max(1));
        self.rows.clear();
        let mut y = top;
        let mut at = self.scroll.offset;
        while y < bottom && at < self.shown.len() {
            if let Some(heading) = self.heading(at) {
                y += u16::from(at > self.scroll.offset);
                if y + 1 >= bottom {
                    break;
                }
                painter.put(inside.x, y, heading, Role::Muted, inside.width);
                y += 1;
            }
            let row = Rect::new(self.area.x + 1, y, self.area.width - 2, 1);
            self.rows.push((row, at));
            self.draw_row(painter, Rect { x: row.x, width: row.width, ..row }, at);
            y += 1;
            at += 1;
        }
        if self.shown.is_empty() {
            painter.put(inside.x, top, "no matching command or skill", Role::Muted, inside.width);
        }
        let note = self.selected().map(|found| match found {
            PaletteMatch::Command(at) => (capital(&self.entries[at].name), self.entries[at].does.as_str()),
            PaletteMatch::Skill(at) => (self.skills[at].name.clone(), self.skills[at].description.as_str()),
        });
        if let Some((name, does)) = note {
            let name = Seg::new(name, Role::Text);
            let does = Seg::new(format!(" {} {does}", painter.glyphs.dot), Role::Muted);
            let lines = wrap_to(&[name, does], inside.width, 2, painter.glyphs.ellipsis);
            for (line, y) in lines.iter().zip(inside.bottom() - 2..) {
                painter.line(inside.x, y, line, inside.width);
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
    fn blocked_commands_are_last_and_not_executed() {
        let mut palette = Palette::new(
            vec![
                entry(Action::Sort, "sort", Some("in Browse")),
                entry(Action::PickTheme, "choose a theme", None),
            ],
            Vec::new(),
        );
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(palette.key(enter, Some(Action::Open)), Outcome::Do(Action::PickTheme));
        palette.key(enter, Some(Action::Down));
        assert_eq!(palette.key(enter, Some(Action::Open)), Outcome::Stay);
    }

    #[test]
    fn skills_are_found_by_name_before_blocked_commands() {
        let skill =
            |id: &str| SkillEntry { id: SkillId::new(id), name: id.into(), description: String::new() };
        let mut palette = Palette::new(
            vec![
                entry(Action::Sort, "sort", Some("in Browse")),
                entry(Action::PickTheme, "choose a theme", None),
            ],
            vec![skill("support-reply"), skill("sort")],
        );
        assert_eq!(palette.shown.len(), 2, "nothing is typed");
        type_text(&mut palette, "sor");
        assert_eq!(palette.shown, [PaletteMatch::Skill(1), PaletteMatch::Skill(0), PaletteMatch::Command(0)]);
        assert_eq!(palette.choose(), Outcome::OpenSkill(SkillId::new("sort")));
    }

    #[test]
    fn letters_find_and_tab_completes() {
        let mut palette = Palette::new(
            vec![entry(Action::Sort, "sort", None), entry(Action::PickTheme, "choose a theme", None)],
            Vec::new(),
        );
        type_text(&mut palette, "thm");
        assert_eq!(palette.choose(), Outcome::Do(Action::PickTheme));
        palette.key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE), Some(Action::Complete));
        assert_eq!(palette.field.text(), "choose a theme");
    }
}
