//! A list to choose from: themes, skills, files, clients, copy formats. Lists of names and long lists are filtered by
//! typing, short lists of options after `/`.

use std::time::Instant;

use crossterm::event::KeyEvent;
use nucleo_matcher::Utf32String;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::{Hint, Outcome, Overlay, Purpose, centered, frame, row_at};
use crate::action::Action;
use crate::field::Field;
use crate::theme::Role;
use crate::widgets::fuzzy::Fuzzy;
use crate::widgets::text_width::shown as safe;
use crate::widgets::{Painter, Scroll, cells, count, cut_end};

/// Lists with more entries start with the filter, whatever their subject.
const LONG: usize = 12;

/// Maximum width of names, in cells.
const LABEL: u16 = 64;
/// Maximum width of the notes next to the names, in cells.
const NOTE: u16 = 72;

pub struct Chooser {
    purpose: Purpose,
    title: String,
    /// `(value, label, note)`.
    choices: Vec<(String, String, String)>,
    current: Option<usize>,
    /// Width of the longest label and of the longest note, within their limits.
    widths: (u16, u16),
    /// Indices into `choices` that match the filter.
    shown: Vec<usize>,
    scroll: Scroll,
    filter: Option<Field>,
    fuzzy: Fuzzy,
    rows: Vec<(Rect, usize)>,
    area: Rect,
}

impl Chooser {
    /// Creates a chooser with the cursor on the current value.
    pub fn new(
        purpose: Purpose,
        title: impl Into<String>,
        choices: Vec<(String, String, String)>,
        current: Option<usize>,
    ) -> Self {
        // Names and descriptions come from bundles and services.
        let choices: Vec<_> =
            choices.into_iter().map(|(id, label, note)| (id, safe(&label), safe(&note))).collect();
        let shown = (0..choices.len()).collect();
        let filter = typed(purpose, choices.len()).then(Field::new);
        let scroll = Scroll { cursor: current.unwrap_or(0), ..Scroll::default() };
        let title = safe(&title.into());
        let widest = |texts: &mut dyn Iterator<Item = &String>, most| {
            texts.map(|t| cells(t)).max().unwrap_or(0).min(most)
        };
        let label = widest(&mut choices.iter().map(|(_, label, _)| label), LABEL);
        let widths = (label, widest(&mut choices.iter().map(|(.., note)| note), NOTE));
        let (rows, area) = (Vec::new(), Rect::ZERO);
        Self {
            purpose,
            title,
            choices,
            current,
            widths,
            shown,
            scroll,
            filter,
            fuzzy: Fuzzy::default(),
            rows,
            area,
        }
    }

    fn value(&self) -> Option<String> {
        self.shown.get(self.scroll.cursor).map(|at| self.choices[*at].0.clone())
    }

    fn moved(&self) -> Outcome {
        self.value().map_or(Outcome::Stay, |value| Outcome::Hovered(self.purpose, value))
    }

    fn refilter(&mut self) -> Outcome {
        let text = self.filter.as_ref().map_or("", Field::text).to_owned();
        self.fuzzy.set(&text);
        let scored: Vec<(u32, usize)> = (0..self.choices.len())
            .filter_map(|at| {
                self.fuzzy.score(&Utf32String::from(self.choices[at].1.as_str())).map(|score| (score, at))
            })
            .collect();
        // An exact name ranks first, however well a longer one matches; scattered letters count only if no name
        // contains the text.
        let requested = text.trim().to_lowercase();
        let mut ranked: Vec<(u8, u32, usize)> = scored
            .into_iter()
            .map(|(score, at)| {
                let (value, label, _) = &self.choices[at];
                (named(&[value, label], &requested), score, at)
            })
            .collect();
        ranked.sort_by_key(|(name, score, at)| (*name, std::cmp::Reverse(*score), *at));
        if ranked.first().is_some_and(|best| best.0 < SCATTERED_RANK) {
            ranked.retain(|one| one.0 < SCATTERED_RANK);
        }
        self.shown = ranked.into_iter().map(|(.., at)| at).collect();
        // Without a filter all entries are shown, with the cursor on the current value.
        self.scroll.cursor = if text.is_empty() { self.current.unwrap_or(0) } else { 0 };
        self.moved()
    }
}

/// The rank of [`named`] for a name that contains the letters of a text scattered.
const SCATTERED_RANK: u8 = 3;

/// Ranks how an entry matches the input: by its full name, by a prefix, by a part, or by scattered letters.
pub(super) fn named(names: &[&str], requested: &str) -> u8 {
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    match requested {
        "" => SCATTERED_RANK,
        _ if names.iter().any(|name| name == requested) => 0,
        _ if names.iter().any(|name| name.starts_with(requested)) => 1,
        _ if names.iter().any(|name| name.contains(requested)) => 2,
        _ => SCATTERED_RANK,
    }
}

/// Returns whether letters filter from the start.
fn typed(purpose: Purpose, choices: usize) -> bool {
    choices > LONG || matches!(purpose, Purpose::Pane(_, kind) if kind.names_things())
}

impl Overlay for Chooser {
    fn in_text(&self) -> bool {
        self.filter.is_some()
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let len = self.shown.len();
        let page = self.scroll.page();
        match action {
            Some(Action::Up) => self.scroll.by(-1, len),
            Some(Action::Down) => self.scroll.by(1, len),
            Some(Action::PageUp) => self.scroll.by(-page, len),
            Some(Action::PageDown) => self.scroll.by(page, len),
            Some(Action::Top) => self.scroll.cursor = 0,
            Some(Action::Bottom) => self.scroll.cursor = len.saturating_sub(1),
            Some(Action::Open) => {
                return self.value().map_or(Outcome::Stay, |value| Outcome::Chosen(self.purpose, value));
            }
            Some(Action::Filter) => {
                self.filter.get_or_insert_default();
                return Outcome::Stay;
            }
            Some(Action::Back) => {
                // The first Esc removes a filter, the next one closes.
                let filtered = self.filter.as_ref().is_some_and(|field| !field.is_empty());
                if !filtered {
                    return Outcome::Close;
                }
                self.filter = typed(self.purpose, self.choices.len()).then(Field::new);
                return self.refilter();
            }
            _ => {
                let changed = self.filter.as_mut().is_some_and(|field| field.key(key));
                return if changed { self.refilter() } else { Outcome::Stay };
            }
        }
        self.moved()
    }

    fn paste(&mut self, text: &str) -> Outcome {
        let changed = self.filter.as_mut().is_some_and(|field| field.paste(text));
        if changed { self.refilter() } else { Outcome::Stay }
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.by(rows.signum(), self.shown.len());
        self.moved()
    }

    fn click(&mut self, at: Position) -> Outcome {
        if !self.area.contains(at) {
            return Outcome::Close;
        }
        let Some(row) = row_at(&self.rows, at) else { return Outcome::Stay };
        self.scroll.cursor = row;
        self.value().map_or(Outcome::Stay, |value| Outcome::Chosen(self.purpose, value))
    }

    fn hints(&self) -> Vec<Hint> {
        let mut hints = vec![
            Hint::new(Action::Up, "move"),
            Hint::new(Action::Open, "choose"),
            Hint::new(Action::Filter, "filter"),
            Hint::new(Action::Back, "close"),
        ];
        hints.retain(|hint| hint.action != Action::Filter || self.filter.is_none());
        hints
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let (label, note) = self.widths;
        let head = u16::from(self.filter.is_some()) * 2;
        let width = (label + note + 12).max(cells(&self.title) + 8).max(30).min(area.width.saturating_sub(2));
        let height = (self.choices.len() as u16).saturating_add(4 + head).min(area.height.saturating_sub(4));
        self.area = if self.shades() {
            centered(area, width, height)
        } else {
            // Keep the screen behind visible, because it previews the theme.
            Rect::new(area.right() - width, area.bottom() - height, width, height)
        };
        let left = if self.filter.is_some() {
            format!("{} of {}", count(self.shown.len()), count(self.choices.len()))
        } else {
            String::new()
        };
        let inside = frame(self.area, painter, &self.title, &left, false);
        // If both do not fit, a note keeps half of the width: it distinguishes similar names.
        let label = label.min(inside.width.saturating_sub(4 + note.min(inside.width / 2)));
        let mut cursor = None;
        if let Some(field) = &mut self.filter {
            let row = Rect::new(inside.x, inside.y, inside.width, 1);
            painter.put(row.x, row.y, "/ ", Role::Muted, 2);
            let style = painter.theme.style(Role::Strong);
            let text = Rect { x: row.x + 2, width: row.width.saturating_sub(2), ..row };
            cursor = field.draw(text, painter.buf, style, &[]);
        }
        let top = inside.y + 1 + head.saturating_sub(1);
        let visible = inside.bottom().saturating_sub(top + u16::from(head == 0));
        self.scroll.follow(self.shown.len(), usize::from(visible));
        self.rows.clear();
        for (line, at) in (self.scroll.offset..self.shown.len()).take(usize::from(visible)).enumerate() {
            let choice = self.shown[at];
            let (_, name, note) = &self.choices[choice];
            let y = top + line as u16;
            let row = Rect::new(self.area.x + 1, y, self.area.width - 2, 1);
            self.rows.push((row, at));
            let selected = at == self.scroll.cursor;
            if selected {
                painter.band(row, Role::Selection);
                painter.put(row.x, y, painter.glyphs.gutter, Role::Gutter, 1);
            }
            if self.current == Some(choice) {
                painter.put(inside.x, y, painter.glyphs.set, Role::Accent, 1);
            }
            let cut = cut_end(name, label, painter.glyphs.ellipsis).into_owned();
            let role = if selected { Role::Strong } else { Role::Text };
            painter.put(inside.x + 2, y, &cut, role, label);
            let base = painter.theme.style(role);
            underline_letters(painter, inside.x + 2, y, &cut, &self.fuzzy.letters(&cut), base);
            let available = inside.right().saturating_sub(inside.x + 4 + label);
            painter.put(
                inside.x + 4 + label,
                y,
                &cut_end(note, available, painter.glyphs.ellipsis),
                Role::Muted,
                available,
            );
        }
        if self.shown.is_empty() {
            painter.put(inside.x + 2, top, "no matches", Role::Muted, inside.width);
        }
        cursor
    }

    fn shades(&self) -> bool {
        self.purpose != Purpose::Theme
    }
}

/// Underlines matched letters (character indices) of a drawn text.
pub(super) fn underline_letters(
    painter: &mut Painter<'_>,
    x: u16,
    y: u16,
    text: &str,
    letters: &[u32],
    style: ratatui::style::Style,
) {
    let mut column = x;
    for (at, character) in text.chars().enumerate() {
        let mut buffer = [0; 4];
        let one = character.encode_utf8(&mut buffer);
        let wide = cells(one);
        if letters.binary_search(&(at as u32)).is_ok() && wide > 0 {
            painter.styled(column, y, one, style.add_modifier(Modifier::UNDERLINED | Modifier::BOLD), wide);
        }
        column += wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pane::{PaneId, PickerKind};

    #[test]
    fn exact_name_sorts_before_longer_matches() {
        let ids = ["accessibility", "web-access", "data-accessor", "access"];
        let choices = ids.map(|id| (id.to_owned(), id.to_owned(), String::new()));
        let purpose = Purpose::Pane(PaneId::Session, PickerKind::SkillToLoad);
        let mut chooser = Chooser::new(purpose, "Load a skill", choices.into(), None);
        let first = |chooser: &mut Chooser, text: &str| {
            chooser.filter = Some(Field::new());
            chooser.paste(text);
            chooser.value()
        };
        assert_eq!(first(&mut chooser, "access").as_deref(), Some("access"));
        assert_eq!(first(&mut chooser, "accessi").as_deref(), Some("accessibility"));
        assert_eq!(first(&mut chooser, "web").as_deref(), Some("web-access"));
    }

    #[test]
    fn scattered_letters_match_only_without_a_literal_match() {
        let ids = ["meeting-minutes", "implementing-rules-in-mitre", "monitoring-site"];
        let choices = ids.map(|id| (id.to_owned(), id.to_owned(), String::new()));
        let purpose = Purpose::Pane(PaneId::Session, PickerKind::SkillToLoad);
        let mut chooser = Chooser::new(purpose, "Load a skill", choices.into(), None);
        chooser.filter = Some(Field::new());
        chooser.paste("minu");
        assert_eq!(chooser.shown, [0]);
        chooser.filter = Some(Field::new());
        chooser.paste("mns");
        assert!(chooser.shown.len() > 1, "{:?}", chooser.shown);
    }
}
