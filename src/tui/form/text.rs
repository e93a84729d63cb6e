//! A text field of one or many lines: readline keys, undo, paste, wide characters, wrapped to its field.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation as _;

use skills_skill::safe_text;

use crate::theme::Role;
use crate::widgets::Painter;
use crate::widgets::text_width::TextWidth as _;

/// Number of undo steps.
const MAX_UNDO_STEPS: usize = 200;

/// The text, its cursor, and the state of undo and yank.
#[derive(Debug, Clone, Default)]
pub struct Text {
    text: String,
    /// Byte offset of the cursor; always on a grapheme boundary.
    cursor: usize,
    past: Vec<(String, usize)>,
    future: Vec<(String, usize)>,
    killed: String,
    /// The target column of vertical movement.
    aim: Option<u16>,
    /// Rows as last drawn, and the first visible one.
    rows: Vec<Range<usize>>,
    top: usize,
    drawn: Rect,
}

impl Text {
    /// Creates a text with the cursor at its end.
    pub fn new(text: &str) -> Self {
        let text = clean(text);
        Self { cursor: text.len(), text, ..Self::default() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces everything; can be undone.
    pub fn set(&mut self, text: &str) {
        self.replace(0..self.text.len(), &clean(text));
    }

    /// Inserts at the cursor; line breaks are kept, other control characters removed. Returns whether the text changed.
    pub fn insert(&mut self, text: &str) -> bool {
        let text = clean(text);
        self.replace(self.cursor..self.cursor, &text)
    }

    /// Deletes from the line's start to the cursor, as `unix-line-discard` does. Returns whether the text changed.
    pub fn kill_to_start(&mut self) -> bool {
        let start = self.line_start();
        // At the start of a line, delete its break, so that repeating the key clears everything.
        let start = if start == self.cursor { self.back() } else { start };
        self.kill(start..self.cursor)
    }

    /// Handles a key as readline does (GNU Readline, "Commands For Moving", "Killing and Yanking").
    /// Returns whether the text changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        self.aim = None;
        match (key.code, control, alt) {
            (KeyCode::Char('h'), true, _) | (KeyCode::Backspace, false, false) => {
                let start = self.back();
                self.replace(start..self.cursor, "")
            }
            (KeyCode::Char('d'), true, _) | (KeyCode::Delete, _, _) => {
                let end = self.forward();
                self.replace(self.cursor..end, "")
            }
            (KeyCode::Char('u'), true, _) => self.kill_to_start(),
            (KeyCode::Char('k'), true, _) => {
                let end = self.line_end();
                let end = if end == self.cursor { self.forward() } else { end };
                self.kill(self.cursor..end)
            }
            (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, ..) => {
                let start = self.word_back();
                self.kill(start..self.cursor)
            }
            (KeyCode::Char('d'), _, true) => {
                let end = self.word_forward();
                self.kill(self.cursor..end)
            }
            (KeyCode::Char('y'), true, _) => {
                let killed = self.killed.clone();
                self.replace(self.cursor..self.cursor, &killed)
            }
            // A terminal without key reports sends 0x1F for Ctrl-_, which crossterm reads as Ctrl-7.
            (KeyCode::Char('_' | '7' | '/'), true, false) => self.undo(),
            (KeyCode::Char('_' | '/'), _, true) => self.redo(),
            (KeyCode::Char(typed), false, false) if !typed.is_control() => {
                self.replace(self.cursor..self.cursor, typed.encode_utf8(&mut [0; 4]))
            }
            (code, ..) => {
                self.cursor = match (code, control, alt) {
                    (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, _) => self.back(),
                    (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, _) => self.forward(),
                    (KeyCode::Left, ..) | (KeyCode::Char('b'), _, true) => self.word_back(),
                    (KeyCode::Right, ..) | (KeyCode::Char('f'), _, true) => self.word_forward(),
                    (KeyCode::Home, ..) | (KeyCode::Char('a'), true, _) => self.line_start(),
                    (KeyCode::End, ..) | (KeyCode::Char('e'), true, _) => self.line_end(),
                    _ => self.cursor,
                };
                false
            }
        }
    }

    /// Moves by one drawn row; returns `false` at the first or last one.
    pub fn by_row(&mut self, down: bool) -> bool {
        let at = row_of(&self.rows, self.cursor);
        let next = if down { at + 1 } else { at.wrapping_sub(1) };
        let (Some(row), Some(here)) = (self.rows.get(next).cloned(), self.rows.get(at)) else { return false };
        let before = self.text.get(here.start..self.cursor).map_or(0, width);
        let aim = self.aim.unwrap_or(before);
        self.cursor = self.at_column(&row, aim, next + 1 < self.rows.len());
        self.aim = Some(aim);
        true
    }

    /// Moves the cursor to a click, using the last drawn frame.
    pub fn click(&mut self, at: Position) {
        let row = self.top + usize::from(at.y.saturating_sub(self.drawn.y));
        let row = row.min(self.rows.len().saturating_sub(1));
        if let Some(range) = self.rows.get(row).cloned() {
            let more = row + 1 < self.rows.len();
            self.cursor = self.at_column(&range, at.x.saturating_sub(self.drawn.x), more);
            self.aim = None;
        }
    }

    /// Returns the number of rows at a width; at least one.
    pub fn height(&self, width: u16) -> usize {
        rows(&self.text, width).len()
    }

    /// Draws the part that contains the cursor, or the beginning if the field does not have the focus. Returns the
    /// position of the terminal's cursor for a focused field.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, style: Style, focused: bool) -> Option<Position> {
        let area = area.intersection(buf.area);
        self.drawn = area;
        if area.is_empty() {
            return None;
        }
        self.rows = rows(&self.text, area.width);
        let (at, height) = (row_of(&self.rows, self.cursor), usize::from(area.height));
        self.top = if focused {
            let top = self.top.min(self.rows.len().saturating_sub(height));
            top.clamp((at + 1).saturating_sub(height), at)
        } else {
            0
        };
        buf.set_style(area, style);
        for (y, row) in self.rows.iter().skip(self.top).take(height).enumerate() {
            let mut x = area.x;
            for grapheme in self.text[row.clone()].graphemes(true) {
                let wide = cells(grapheme);
                if x + wide > area.right() {
                    break;
                }
                let safe = safe_text::line(grapheme);
                let sign = if cells(&safe) == wide { &*safe } else { "?" };
                buf.set_string(x, area.y + y as u16, sign, style);
                x += wide;
            }
        }
        let before = self.rows.get(at).and_then(|row| self.text.get(row.start..self.cursor)).map_or(0, width);
        let x = (area.x + before).min(area.right() - 1);
        focused.then(|| Position::new(x, area.y + (at - self.top) as u16))
    }

    /// Marks in a column that rows above or below the drawn ones are hidden.
    pub fn mark_hidden_rows(&self, x: u16, painter: &mut Painter<'_>) {
        if self.drawn.is_empty() {
            return;
        }
        if self.top > 0 {
            painter.put(x, self.drawn.y, painter.glyphs.up, Role::Waiting, 1);
        }
        if self.top + usize::from(self.drawn.height) < self.rows.len() {
            painter.put(x, self.drawn.bottom() - 1, painter.glyphs.down, Role::Waiting, 1);
        }
    }

    fn replace(&mut self, range: Range<usize>, with: &str) -> bool {
        if self.text.get(range.clone()).is_none_or(|old| old == with) {
            return false;
        }
        if self.past.len() == MAX_UNDO_STEPS {
            self.past.remove(0);
        }
        self.past.push((self.text.clone(), self.cursor));
        self.future.clear();
        self.cursor = range.start + with.len();
        self.text.replace_range(range, with);
        self.aim = None;
        true
    }

    fn kill(&mut self, range: Range<usize>) -> bool {
        let killed = self.text.get(range.clone()).unwrap_or_default().to_owned();
        let changed = self.replace(range, "");
        if changed {
            self.killed = killed;
        }
        changed
    }

    fn undo(&mut self) -> bool {
        let Some((text, cursor)) = self.past.pop() else { return false };
        self.future.push((std::mem::replace(&mut self.text, text), self.cursor));
        self.cursor = cursor;
        true
    }

    fn redo(&mut self) -> bool {
        let Some((text, cursor)) = self.future.pop() else { return false };
        self.past.push((std::mem::replace(&mut self.text, text), self.cursor));
        self.cursor = cursor;
        true
    }

    fn back(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn forward(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_back(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(|c: char| !c.is_alphanumeric());
        before.trim_end_matches(char::is_alphanumeric).len()
    }

    fn word_forward(&self) -> usize {
        let after = self.text[self.cursor..].trim_start_matches(|c: char| !c.is_alphanumeric());
        self.text.len() - after.trim_start_matches(char::is_alphanumeric).len()
    }

    /// Returns the byte at a column of a row; if the row wraps, its end belongs to the next one.
    fn at_column(&self, row: &Range<usize>, column: u16, continues: bool) -> usize {
        let mut used = 0;
        for (at, grapheme) in self.text[row.clone()].grapheme_indices(true) {
            used += cells(grapheme);
            if used > column {
                return row.start + at;
            }
        }
        let soft = continues && !self.text[row.end..].starts_with('\n') && !row.is_empty();
        if soft {
            let last = self.text[row.clone()].grapheme_indices(true).next_back();
            return last.map_or(row.end, |(at, _)| row.start + at);
        }
        row.end
    }
}

/// Breaks the text into rows of a width: after a space if possible, else anywhere. One cell stays free for a cursor
/// after the last character.
fn rows(text: &str, width: u16) -> Vec<Range<usize>> {
    let available = width.saturating_sub(1).max(1);
    let mut out = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let end = start + line.len();
        let (mut from, mut used, mut space) = (start, 0, None);
        for (at, grapheme) in line.grapheme_indices(true) {
            let wide = cells(grapheme);
            let here = start + at;
            // A space at the end of a row may exceed it.
            if used + wide > available && here > from && grapheme != " " {
                let to = space.filter(|space| *space > from).unwrap_or(here);
                out.push(from..to);
                used = self::width(&text[to..here]);
                (from, space) = (to, None);
            }
            used += wide;
            if grapheme == " " {
                space = Some(here + 1);
            }
        }
        out.push(from..end);
        start = end + 1;
    }
    out
}

fn row_of(rows: &[Range<usize>], cursor: usize) -> usize {
    rows.iter().rposition(|row| row.start <= cursor).unwrap_or(0)
}

/// Returns the width of a grapheme in cells; a control character takes one, as its placeholder does.
fn cells(grapheme: &str) -> u16 {
    if grapheme.contains(char::is_control) {
        return 1;
    }
    u16::try_from(grapheme.width()).unwrap_or(1).max(1)
}

fn width(text: &str) -> u16 {
    text.graphemes(true).map(cells).fold(0, u16::saturating_add)
}

fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CTRL: KeyModifiers = KeyModifiers::CONTROL;

    fn press(text: &mut Text, keys: &[(KeyCode, KeyModifiers)]) {
        for (code, modifiers) in keys {
            text.key(KeyEvent::new(*code, *modifiers));
        }
    }

    fn draw_rows(text: &mut Text, width: u16, height: u16) -> (Vec<String>, Option<Position>) {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        let at = text.draw(buf.area, &mut buf, Style::new(), true);
        let row = |y| (0..width).map(|x| buf[(x, y)].symbol().to_owned()).collect::<String>();
        ((0..height).map(|y| row(y).trim_end().to_owned()).collect(), at)
    }

    #[test]
    fn long_texts_wrap_at_spaces_and_the_cursor_stays_visible() {
        let mut text = Text::new("rows of the table in the pdf");
        let (rows, at) = draw_rows(&mut text, 12, 2);
        assert_eq!(rows, ["table in", "the pdf"]);
        assert_eq!(at, Some(Position::new(7, 1)));
        assert_eq!(text.height(12), 3);
        assert!(text.by_row(false) && text.by_row(false) && !text.by_row(false));
        assert_eq!(draw_rows(&mut text, 12, 2).0, ["rows of the", "table in"]);
    }

    #[test]
    fn pasted_lines_are_kept_without_control_characters() {
        let mut text = Text::default();
        assert!(text.insert("one\r\ntwo\x1b[31m\tthree"));
        assert_eq!(text.text(), "one\ntwo[31m    three");
        press(&mut text, &[(KeyCode::Home, KeyModifiers::NONE), (KeyCode::Char('k'), CTRL)]);
        assert_eq!(text.text(), "one\n");
        press(&mut text, &[(KeyCode::Char('y'), CTRL), (KeyCode::Char('7'), CTRL)]);
        assert_eq!(text.text(), "one\n");
        press(&mut text, &[(KeyCode::Char('u'), CTRL), (KeyCode::Char('u'), CTRL)]);
        assert_eq!(text.text(), "");
    }

    #[test]
    fn readline_keys_move_by_words_and_graphemes() {
        let mut text = Text::new("turn a👩‍💻é table");
        press(&mut text, &[(KeyCode::Char('w'), CTRL), (KeyCode::Backspace, KeyModifiers::NONE)]);
        assert_eq!(text.text(), "turn a👩‍💻é");
        let left = (KeyCode::Left, KeyModifiers::NONE);
        press(&mut text, &[left, left, (KeyCode::Delete, KeyModifiers::NONE)]);
        assert_eq!(text.text(), "turn aé");
        press(&mut text, &[(KeyCode::Char('a'), CTRL), (KeyCode::Char('d'), KeyModifiers::ALT)]);
        assert_eq!(text.text(), " aé");
    }

    #[test]
    fn a_click_finds_the_character_under_it_on_every_row() {
        let mut text = Text::new("日本語 table of\nrows");
        draw_rows(&mut text, 10, 3);
        text.click(Position::new(2, 0));
        assert_eq!(text.cursor, "日".len());
        text.click(Position::new(9, 2));
        assert_eq!(text.cursor, text.text().len());
        text.click(Position::new(9, 0));
        assert!(text.cursor < text.rows[1].start, "the end of a wrapped row stays on that row");
    }
}
