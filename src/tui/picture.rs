//! Formats a screen as text without styles and as text with ANSI colors: for tests, and for inspecting a frame.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell, CellWidth as _};
use ratatui::style::{Color, Modifier};

/// Returns the drawn cells of a row: those covered by a wide character are skipped.
pub(super) fn drawn_cells(buffer: &Buffer, y: u16) -> impl Iterator<Item = (u16, &Cell)> {
    let area = buffer.area;
    let mut covered = area.x;
    (area.left()..area.right()).filter_map(move |x| {
        let cell = buffer.cell((x, y))?;
        if x < covered {
            return None;
        }
        covered = x + cell.symbol().cell_width().max(1);
        Some((x, cell))
    })
}

/// Returns the text alone, rows without trailing spaces.
pub fn text(buffer: &Buffer) -> String {
    let row = |y| {
        let row: String = drawn_cells(buffer, y).map(|(_, cell)| cell.symbol()).collect();
        row.trim_end().to_owned()
    };
    (buffer.area.top()..buffer.area.bottom()).map(row).collect::<Vec<_>>().join("\n")
}

/// Draws on a screen of this size in the dark theme, and returns it.
#[cfg(test)]
pub(crate) fn painted(
    width: u16,
    height: u16,
    draw: impl FnOnce(&mut crate::widgets::Painter<'_>),
) -> Buffer {
    let theme = crate::theme::Theme::shipped("dark", crate::theme::Depth::True).unwrap();
    let keymap = crate::keymap::Keymap::shipped().unwrap();
    let mut buf = Buffer::empty(ratatui::layout::Rect::new(0, 0, width, height));
    draw(&mut crate::widgets::Painter {
        buf: &mut buf,
        theme: &theme,
        glyphs: &crate::glyphs::UNICODE,
        keymap: &keymap,
        commands: &crate::command_lines::CommandLines::default(),
    });
    buf
}

/// Returns the text with ANSI colors (ECMA-48 SGR), with a reset at the end of each row.
pub fn ansi(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut last = String::new();
        for (_, cell) in drawn_cells(buffer, y) {
            let sgr = sgr(cell);
            if sgr != last {
                // Writing to a string cannot fail.
                let _ = write!(out, "\x1b[0{sgr}m");
                last = sgr;
            }
            out.push_str(cell.symbol());
        }
        out.push_str("\x1b[0m\n");
    }
    out
}

fn sgr(cell: &Cell) -> String {
    let mut out = String::new();
    for (flag, code) in [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::ITALIC, ";3"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
    ] {
        if cell.modifier.contains(flag) {
            out.push_str(code);
        }
    }
    for (color, base) in [(cell.fg, 30), (cell.bg, 40)] {
        let _ = match color {
            Color::Rgb(red, green, blue) => write!(out, ";{};2;{red};{green};{blue}", base + 8),
            Color::Indexed(index) => write!(out, ";{};5;{index}", base + 8),
            other => match palette_index(other) {
                Some(index @ 0..8) => write!(out, ";{}", base + u16::from(index)),
                Some(index) => write!(out, ";{}", base + 52 + u16::from(index)),
                None => Ok(()),
            },
        };
    }
    out
}

/// Returns the index of a named color among the sixteen; `None` for the terminal's default.
pub(super) fn palette_index(color: Color) -> Option<u8> {
    let order = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    order.iter().position(|named| *named == color).map(|at| at as u8)
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn wide_characters_appear_once_and_columns_are_kept() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 2));
        buffer.set_string(0, 0, "日本|x", Style::new());
        buffer.set_string(0, 1, "abcd|x", Style::new());
        assert_eq!(text(&buffer), "日本|x\nabcd|x");
    }

    #[test]
    fn colors_are_written_when_they_change() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
        buffer.set_string(0, 0, "ab", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        buffer.set_string(2, 0, "c", Style::new().bg(Color::Rgb(1, 2, 3)).fg(Color::LightBlue));
        assert_eq!(ansi(&buffer), "\x1b[0;1;31mab\x1b[0;94;48;2;1;2;3mc\x1b[0m\n");
    }
}
