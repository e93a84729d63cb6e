//! Writes into the buffer by role. Nothing is written outside the buffer, whatever the caller computes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::rich::RichLine;
use super::text_width::{TextWidth as _, cut_end, drawable};
use crate::action::{Action, Context};
use crate::command_lines::CommandLines;
use crate::glyphs::Glyphs;
use crate::keymap::{Keymap, key_name};
use crate::pane::Draw;
use crate::theme::{Role, Theme};

/// A buffer with the active theme and glyphs.
pub struct Painter<'a> {
    /// The target buffer.
    pub buf: &'a mut Buffer,
    /// Styles.
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    /// The keys in effect.
    pub keymap: &'a Keymap,
    /// For command lines in texts.
    pub commands: &'a CommandLines,
}

/// Dims content that may be outdated; everything else about it stays.
pub fn fade(area: Rect, buf: &mut Buffer) {
    for position in area.positions() {
        if let Some(cell) = buf.cell_mut(position) {
            cell.modifier.insert(Modifier::DIM);
        }
    }
}

impl<'a> Painter<'a> {
    /// Creates a painter for one frame.
    pub fn new(buf: &'a mut Buffer, cx: &Draw<'a>) -> Self {
        Self { buf, theme: cx.theme, glyphs: cx.glyphs, keymap: cx.keymap, commands: cx.commands }
    }

    /// Returns the short name of the key of an action, as the footer shows it; `None` without a key.
    pub fn key(&self, action: Action, contexts: &[Context]) -> Option<String> {
        self.keymap.key_for(action, contexts, false).map(|key| key_name(key, self.glyphs))
    }

    /// Returns the name of the key of an action for a sentence (`Ctrl-S`); `no key` without one.
    pub fn key_word(&self, action: Action, contexts: &[Context]) -> String {
        self.keymap.key_word(action, contexts, self.glyphs)
    }

    /// Replaces each mention of a key in a message by its name in these contexts.
    pub fn with_keys(&self, message: &str, contexts: &[Context]) -> String {
        self.keymap.with_keys(message, contexts, self.glyphs)
    }

    /// Writes text from `x`, at most `max` cells; returns the column after it.
    pub fn put(&mut self, x: u16, y: u16, text: &str, role: Role, max: u16) -> u16 {
        self.styled(x, y, text, self.theme.style(role), max)
    }

    /// Writes text like [`Self::put`]; an ellipsis replaces the end of a text that is too long.
    pub fn put_cut(&mut self, x: u16, y: u16, text: &str, role: Role, max: u16) -> u16 {
        self.put(x, y, &cut_end(text, max, self.glyphs.ellipsis), role, max)
    }

    /// Writes text like [`Self::put`], with additional modifiers.
    pub fn put_plus(&mut self, x: u16, y: u16, text: &str, role: Role, plus: Modifier, max: u16) -> u16 {
        self.styled(x, y, text, self.theme.style(role).add_modifier(plus), max)
    }

    /// Writes text in a style.
    pub fn styled(&mut self, x: u16, y: u16, text: &str, style: Style, max: u16) -> u16 {
        let area = self.buf.area;
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
            return x;
        }
        self.buf.set_stringn(x, y, drawable(text), usize::from(max), style).0
    }

    /// Writes text so that it ends before `end`; returns its first column.
    pub fn right(&mut self, end: u16, y: u16, text: &str, role: Role) -> u16 {
        let width = text.width() as u16;
        let x = end.saturating_sub(width);
        self.put(x, y, text, role, width);
        x
    }

    /// Writes a line; returns the column after it.
    pub fn line(&mut self, x: u16, y: u16, line: &RichLine, max: u16) -> u16 {
        let end = x.saturating_add(max);
        if let Some(band) = line.band {
            self.band(Rect::new(x, y, max, 1), band);
        }
        line.segs
            .iter()
            .fold(x, |at, seg| self.put_plus(at, y, &seg.text, seg.role, seg.plus, end.saturating_sub(at)))
    }

    /// Writes a line that ends before `end`; returns its first column.
    pub fn line_right(&mut self, end: u16, y: u16, line: &RichLine) -> u16 {
        let width = line.width() as u16;
        let x = end.saturating_sub(width);
        self.line(x, y, line, width);
        x
    }

    /// Applies a role's style to an area, preserving its content.
    pub fn band(&mut self, area: Rect, role: Role) {
        let area = area.intersection(self.buf.area);
        self.buf.set_style(area, self.theme.style(role));
    }

    /// Marks a row as the one with the cursor, with the gutter in its first cell.
    pub fn select(&mut self, row: Rect, focused: bool) {
        self.select_at(row.x, row, focused);
    }

    /// Marks a row like [`Self::select`], with the gutter in another cell.
    pub fn select_at(&mut self, x: u16, row: Rect, focused: bool) {
        let (band, gutter) =
            if focused { (Role::Selection, Role::Gutter) } else { (Role::SelectionWeak, Role::Muted) };
        self.band(row, band);
        self.put(x, row.y, self.glyphs.gutter, gutter, 1);
    }

    /// Repeats a glyph along a row.
    pub fn run(&mut self, x: u16, y: u16, sign: &str, count: u16, role: Role) {
        for at in x..x.saturating_add(count) {
            self.put(at, y, sign, role, 1);
        }
    }

    /// Draws the rail to the left of content at a disclosure level.
    pub fn rail(&mut self, x: u16, y: u16, height: u16, level: usize) {
        let (sign, role) = match level {
            1 => (self.glyphs.levels[1], Role::Level1),
            2 => (self.glyphs.levels[2], Role::Level2),
            3 => (self.glyphs.levels[3], Role::Level3),
            _ => (self.glyphs.levels[0], Role::Level0),
        };
        for row in y..y.saturating_add(height) {
            self.put(x, row, sign, role, 1);
        }
    }
}
