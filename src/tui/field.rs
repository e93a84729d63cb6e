//! A single-line text field: readline keys, undo, paste, wide characters, and horizontal scrolling.

use std::borrow::Cow;
use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use tui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation;

use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::Painter;
use crate::widgets::text_width::TextWidth as _;
use skills_skill::safe_text;

/// The sign in the first cell when text is hidden before it.
const HIDDEN: &str = "<";

/// The text being edited, its cursor, edit history and visible part.
#[derive(Debug, Clone)]
pub struct Field {
    edit: TextArea<'static>,
    /// First visible cell of the text.
    left: u16,
    /// Where it was last drawn.
    drawn: Rect,
}

impl Default for Field {
    fn default() -> Self {
        Self::new()
    }
}

impl Field {
    /// Creates an empty field.
    pub fn new() -> Self {
        Self { edit: TextArea::new(vec![String::new()]), left: 0, drawn: Rect::ZERO }
    }

    pub fn text(&self) -> &str {
        self.edit.lines().first().map_or("", String::as_str)
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// Replaces the text and moves the cursor to its end; can be undone.
    pub fn set(&mut self, text: &str) {
        self.edit.move_cursor(CursorMove::Head);
        self.edit.delete_line_by_end();
        self.edit.insert_str(one_line(text));
    }

    /// Inserts pasted text at the cursor; line breaks become spaces, control characters are removed.
    /// Returns whether the text changed.
    pub fn paste(&mut self, text: &str) -> bool {
        self.edit.insert_str(one_line(text))
    }

    /// Handles a key as readline does (GNU Readline, "Commands For Moving", "Killing and Yanking").
    /// Returns whether the text changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let edit = &mut self.edit;
        match (key.code, control, alt) {
            (KeyCode::Char('h'), true, _) | (KeyCode::Backspace, false, false) => {
                return self.delete_before();
            }
            (KeyCode::Char('d'), true, _) | (KeyCode::Delete, _, _) => return self.delete_after(),
            (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, _) => self.step(CursorMove::Back),
            (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, _) => self.step(CursorMove::Forward),
            (KeyCode::Left, ..) | (KeyCode::Char('b'), _, true) => edit.move_cursor(CursorMove::WordBack),
            (KeyCode::Right, ..) | (KeyCode::Char('f'), _, true) => edit.move_cursor(CursorMove::WordForward),
            (KeyCode::Home, ..) | (KeyCode::Char('a'), true, _) => edit.move_cursor(CursorMove::Head),
            (KeyCode::End, ..) | (KeyCode::Char('e'), true, _) => edit.move_cursor(CursorMove::End),
            (KeyCode::Char('u'), true, _) => return self.kill_to_start(),
            (KeyCode::Char('k'), true, _) => return edit.delete_line_by_end(),
            (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, ..) => return edit.delete_word(),
            (KeyCode::Char('d'), _, true) => return edit.delete_next_word(),
            (KeyCode::Char('y'), true, _) => return edit.paste(),
            // A terminal without key reports sends 0x1F for Ctrl-_, which crossterm reads as Ctrl-7.
            (KeyCode::Char('_' | '7' | '/'), true, false) => return edit.undo(),
            (KeyCode::Char('_' | '/'), _, true) => return edit.redo(),
            (KeyCode::Char(typed), false, false) if !typed.is_control() => {
                edit.insert_char(typed);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Deletes from the start to the cursor. Returns whether the text changed.
    pub fn kill_to_start(&mut self) -> bool {
        self.edit.delete_line_by_head()
    }

    /// Deletes everything; can be undone. Returns whether the text changed.
    pub fn clear(&mut self) -> bool {
        self.edit.move_cursor(CursorMove::Head);
        self.edit.delete_line_by_end()
    }

    /// Returns the cursor as a byte offset into the text.
    pub fn cursor(&self) -> usize {
        let text = self.text();
        text.char_indices().nth(self.edit.cursor().1).map_or(text.len(), |(byte, _)| byte)
    }

    /// Moves the cursor to a click, using the last drawn frame. Returns whether the click was in the field.
    pub fn click(&mut self, at: Position) -> bool {
        if !self.drawn.contains(at) {
            return false;
        }
        let requested = at.x - self.drawn.x + self.left;
        let mut column = 0;
        let mut characters = 0;
        for grapheme in self.text().graphemes(true) {
            column += cells(grapheme);
            if column > requested {
                break;
            }
            characters += grapheme.chars().count();
        }
        self.edit.move_cursor(CursorMove::Jump(0, u16::try_from(characters).unwrap_or(u16::MAX)));
        true
    }

    /// Returns the screen column of a byte of the text in the last drawn frame, if it is visible.
    pub fn column(&self, byte: usize) -> Option<u16> {
        let before = self.text().get(..byte)?;
        let column = width(before).checked_sub(self.left)?;
        (column < self.drawn.width).then(|| self.drawn.x + column)
    }

    /// Draws the text in one row: `style` for all of it, then `spans` (byte ranges of the text) on top.
    /// Returns the position of the terminal's cursor for a focused field.
    pub fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        style: Style,
        spans: &[(Range<usize>, Style)],
    ) -> Option<Position> {
        let area = Rect { height: area.height.min(1), ..area }.intersection(buf.area);
        self.drawn = area;
        if area.is_empty() {
            return None;
        }
        let cursor = width(&self.text()[..self.cursor()]);
        // One cell stays free for a cursor after the last character.
        let available = area.width - 1;
        let longest = width(self.text()).saturating_sub(available);
        let first = cursor.saturating_sub(available);
        // The sign for hidden text does not cover the character at the cursor.
        let last = cursor.saturating_sub(1).max(first);
        self.left = self.left.min(longest).clamp(first, last);
        buf.set_style(area, style);
        let is_cut = self.left > 0;
        if is_cut {
            buf.set_string(area.x, area.y, HIDDEN, style);
        }
        let visible = self.left + u16::from(is_cut);
        let mut column = 0;
        for (byte, grapheme) in self.text().grapheme_indices(true) {
            let wide = cells(grapheme);
            let (start, end) = (column, column + wide);
            column = end;
            if wide == 0 || start < visible || end > self.left + area.width {
                continue;
            }
            let over = spans.iter().filter(|(range, _)| range.contains(&byte));
            let style = over.fold(style, |style, (_, over)| style.patch(*over));
            buf.set_string(area.x + start - self.left, area.y, drawn(grapheme), style);
        }
        Some(Position::new(area.x + cursor - self.left, area.y))
    }

    /// Draws the field as the filter of a list: the sign `/`, the text, and a note at the end. The margins are the cells
    /// before the sign and after the note.
    pub fn draw_filter(
        &mut self,
        row: Rect,
        (before, after): (u16, u16),
        note: &str,
        focused: bool,
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) {
        let mut painter = Painter::new(buf, cx);
        painter.band(row, Role::Field);
        painter.put(row.x + before, row.y, "/", Role::Strong, 1);
        let start = painter.right(row.right().saturating_sub(after), row.y, note, Role::Muted);
        let x = row.x + before + 2;
        let style = cx.theme.style(Role::Field).patch(cx.theme.style(Role::Strong));
        let cursor = self.draw(Rect { x, width: start.saturating_sub(x + 1), ..row }, buf, style, &[]);
        if cx.focused && focused {
            cx.cursor = cursor;
        }
    }

    fn step(&mut self, direction: CursorMove) {
        loop {
            let before = self.edit.cursor();
            self.edit.move_cursor(direction);
            let here = self.cursor();
            let is_boundary = self.text().grapheme_indices(true).any(|(byte, _)| byte == here);
            if is_boundary || here == self.text().len() || self.edit.cursor() == before {
                return;
            }
        }
    }

    fn delete_before(&mut self) -> bool {
        let here = self.cursor();
        let Some((start, _)) = self.text()[..here].grapheme_indices(true).next_back() else { return false };
        let count = self.text()[start..here].chars().count();
        (0..count).fold(false, |changed, _| self.edit.delete_char() || changed)
    }

    fn delete_after(&mut self) -> bool {
        let here = self.cursor();
        let Some(next) = self.text()[here..].graphemes(true).next() else { return false };
        self.edit.delete_str(next.chars().count())
    }
}

/// Returns a grapheme as it is drawn: an invisible character by its code.
fn drawn(grapheme: &str) -> Cow<'_, str> {
    if grapheme.is_ascii() { Cow::Borrowed(grapheme) } else { safe_text::line(grapheme) }
}

/// Returns the cells a grapheme occupies; control characters are not drawn and occupy none.
fn cells(grapheme: &str) -> u16 {
    if grapheme.contains(char::is_control) { 0 } else { u16::try_from(drawn(grapheme).width()).unwrap_or(0) }
}

fn width(text: &str) -> u16 {
    text.graphemes(true).map(cells).fold(0, u16::saturating_add)
}

fn one_line(text: &str) -> String {
    let text = text.trim_end_matches(['\r', '\n']);
    text.replace("\r\n", " ").replace(['\r', '\n', '\t'], " ").chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Field {
        let mut field = Field::new();
        text.chars().for_each(|c| {
            field.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        });
        field
    }

    fn press(field: &mut Field, keys: &[(KeyCode, KeyModifiers)]) {
        for (code, modifiers) in keys {
            field.key(KeyEvent::new(*code, *modifiers));
        }
    }

    fn row(field: &mut Field, width: u16) -> (String, Option<Position>) {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
        let at = field.draw(buf.area, &mut buf, Style::new(), &[]);
        (buf.content().iter().map(ratatui::buffer::Cell::symbol).collect(), at)
    }

    const CTRL: KeyModifiers = KeyModifiers::CONTROL;

    #[test]
    fn readline_keys_edit() {
        let mut field = typed("turn the table");
        press(&mut field, &[(KeyCode::Char('w'), CTRL)]);
        assert_eq!(field.text(), "turn the ");
        press(&mut field, &[(KeyCode::Char('a'), CTRL), (KeyCode::Char('d'), CTRL)]);
        assert_eq!(field.text(), "urn the ");
        press(&mut field, &[(KeyCode::Char('f'), KeyModifiers::ALT), (KeyCode::Char('k'), CTRL)]);
        assert_eq!(field.text(), "urn ");
        press(&mut field, &[(KeyCode::Char('y'), CTRL)]);
        assert_eq!(field.text(), "urn the ");
        press(&mut field, &[(KeyCode::Char('u'), CTRL)]);
        assert_eq!(field.text(), "");
    }

    #[test]
    fn undo_restores_text_and_reports_changes() {
        let mut field = typed("ab");
        assert!(!field.key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE)));
        field.set("other");
        for _ in 0..2 {
            assert!(field.key(KeyEvent::new(KeyCode::Char('7'), CTRL)));
        }
        assert_eq!(field.text(), "ab");
    }

    #[test]
    fn a_paste_of_many_lines_becomes_one_without_control_characters() {
        let mut field = typed("> ");
        assert!(field.paste("two\r\nlines\tand \x1b[31mred\n"));
        assert_eq!(field.text(), "> two lines and [31mred");
    }

    #[test]
    fn invisible_characters_are_drawn_by_their_codes() {
        let mut field = Field::new();
        field.set("a\u{202e}b\u{e0041}");
        let (text, cursor) = row(&mut field, 40);
        assert_eq!(text.trim_end(), "a⟨U+202E⟩b⟨U+E0041⟩");
        assert_eq!(cursor, Some(Position::new(19, 0)));
        assert_eq!(field.text(), "a\u{202e}b\u{e0041}");
    }

    #[test]
    fn cursor_and_deletion_use_grapheme_clusters() {
        let mut field = typed("");
        field.set("a👩‍💻é");
        press(&mut field, &[(KeyCode::Left, KeyModifiers::NONE), (KeyCode::Left, KeyModifiers::NONE)]);
        assert_eq!(field.cursor(), 1);
        press(&mut field, &[(KeyCode::Delete, KeyModifiers::NONE)]);
        assert_eq!(field.text(), "aé");
        press(&mut field, &[(KeyCode::End, KeyModifiers::NONE), (KeyCode::Backspace, KeyModifiers::NONE)]);
        assert_eq!(field.text(), "a");
    }

    #[test]
    fn long_text_scrolls_to_the_cursor() {
        let mut field = typed("0123456789");
        assert_eq!(row(&mut field, 6), ("<6789 ".into(), Some(Position::new(5, 0))));
        press(&mut field, &[(KeyCode::Left, KeyModifiers::NONE); 5]);
        assert_eq!(row(&mut field, 6), ("<56789".into(), Some(Position::new(1, 0))));
        press(&mut field, &[(KeyCode::Home, KeyModifiers::NONE)]);
        assert_eq!(row(&mut field, 6), ("012345".into(), Some(Position::new(0, 0))));
    }

    #[test]
    fn wide_characters_are_never_split_and_can_be_clicked() {
        let mut field = typed("日本語で");
        let (text, at) = row(&mut field, 6);
        assert_eq!(at, Some(Position::new(5, 0)));
        assert!(!text.contains('日') && text.contains('で'), "{text:?}");
        row(&mut field, 20);
        assert!(field.click(Position::new(3, 0)));
        assert_eq!(field.cursor(), "日".len());
        assert_eq!(field.column("日本".len()), Some(4));
    }
}
