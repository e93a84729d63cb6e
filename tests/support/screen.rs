//! A pane drawn on a screen of a given size, as text or with what a style check needs.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use skills_tui::glyphs::{ASCII, Glyphs, UNICODE};
use skills_tui::pane::{Draw, Effect, Pane};
use skills_tui::theme::{Depth, Role, Theme};

/// A size, a theme, a set of glyphs.
pub struct Screen {
    pub width: u16,
    pub height: u16,
    pub theme: Theme,
    pub glyphs: &'static Glyphs,
    pub full_screen: bool,
    pub split: i16,
    pub cursor: Option<Position>,
    /// The wall clock, milliseconds since 1970-01-01 UTC.
    pub clock_ms: i64,
}

impl Screen {
    pub fn new(width: u16, height: u16) -> Self {
        Self::themed(width, height, "dark", Depth::True)
    }

    pub fn themed(width: u16, height: u16, theme: &str, depth: Depth) -> Self {
        skills_tui::widgets::relative_time::set_time_zone(jiff::tz::TimeZone::UTC);
        let theme = Theme::shipped(theme, depth).unwrap();
        Self {
            width,
            height,
            theme,
            glyphs: &UNICODE,
            full_screen: false,
            split: 0,
            cursor: None,
            clock_ms: 0,
        }
    }

    pub fn ascii(width: u16, height: u16) -> Self {
        Self { glyphs: &ASCII, ..Self::themed(width, height, "mono", Depth::None) }
    }

    /// Draws once and returns the buffer and the effects that load missing data. The size is that of the whole
    /// terminal: header and footer take a row each.
    pub fn draw(&mut self, pane: &mut dyn Pane) -> (Buffer, Vec<Effect>) {
        let area = Rect::new(0, 0, self.width, self.height - 2);
        let mut buffer = Buffer::empty(area);
        buffer.set_style(area, self.theme.style(Role::Base));
        let mut cx = Draw {
            theme: &self.theme,
            glyphs: self.glyphs,
            keymap: &skills_tui::keymap::Keymap::shipped().unwrap(),
            commands: &skills_tui::command_lines::CommandLines::default(),
            now: Instant::now(),
            clock_ms: self.clock_ms,
            focused: true,
            full_screen: self.full_screen,
            split: self.split,
            cursor: None,
        };
        pane.draw(area, &mut buffer, &mut cx);
        self.cursor = cx.cursor;
        let expected = pane.take_pending_effects();
        (buffer, expected)
    }

    /// The drawn rows as text.
    pub fn text(&mut self, pane: &mut dyn Pane) -> String {
        text(&self.draw(pane).0)
    }
}

/// Rows without spaces at their ends.
pub fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut row = String::new();
        let mut skip = 0;
        for x in area.left()..area.right() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

/// The first position of a text.
pub fn find(buffer: &Buffer, expected: &str) -> Option<Position> {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let mut row = String::new();
            for at in x..area.right().min(x + 2 * expected.len() as u16 + 2) {
                row.push_str(buffer[(at, y)].symbol());
            }
            if row.starts_with(expected) {
                return Some(Position::new(x, y));
            }
        }
    }
    None
}
