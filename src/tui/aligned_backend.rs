//! A backend that draws every cell in its column, whatever width the terminal gives to the characters before it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::{Cell, CellWidth as _};
use ratatui::layout::{Position, Size};

/// Terminals and libraries disagree about the width of clusters. One that is drawn narrower than assumed would move the
/// rest of the row to the left and leave a part of the former frame, and one that is drawn wider would stay in the next
/// cell, which did not change. Rows with such clusters are drawn completely, and
/// [`drawable`](crate::widgets::text_width::drawable) puts spaces after clusters that are known to be drawn wider.
pub struct AlignedBackend<W: Write> {
    inner: CrosstermBackend<W>,
    /// What the terminal shows, by row.
    rows: BTreeMap<u16, Vec<Cell>>,
}

impl<W: Write> AlignedBackend<W> {
    pub const fn new(writer: W) -> Self {
        Self { inner: CrosstermBackend::new(writer), rows: BTreeMap::new() }
    }

    /// Records changed cells of a row; returns whether it contains cells of uncertain width, or contained one before.
    fn record(&mut self, y: u16, changed: &[(u16, &Cell)]) -> bool {
        let row = self.rows.entry(y).or_default();
        let is_uncertain = |row: &[Cell]| row.iter().any(|cell| !has_certain_width(cell.symbol()));
        let was_uncertain = is_uncertain(row);
        for (x, cell) in changed {
            let (x, end) = (usize::from(*x), usize::from(x.saturating_add(columns(cell))));
            row.resize(row.len().max(end), Cell::EMPTY);
            row[x..end].fill(Cell::EMPTY);
            row[x] = (*cell).clone();
        }
        was_uncertain || is_uncertain(row)
    }

    /// Draws a row: spaces also in place of the cells of uncertain width, then these, then all others.
    fn draw_row(&mut self, y: u16) -> io::Result<()> {
        let Some(row) = self.rows.get(&y) else { return Ok(()) };
        let (mut spaces, mut uncertain, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        for (x, cell) in (0_u16..).zip(row) {
            if x < next {
                continue;
            }
            next = x.saturating_add(columns(cell));
            if !has_certain_width(cell.symbol()) {
                let mut space = cell.clone();
                space.set_symbol(" ");
                spaces.extend((x..next).map(|x| (x, Cow::Owned(space.clone()))));
                uncertain.push((x, y, cell));
            } else if matches!(cell.symbol(), "" | " ") {
                spaces.push((x, Cow::Borrowed(cell)));
            } else {
                others.push((x, y, cell));
            }
        }
        self.inner.draw(spaces.iter().map(|(x, cell)| (*x, y, cell.as_ref())))?;
        // One by one, so that the cursor is moved before each.
        for cell in uncertain {
            self.inner.draw(std::iter::once(cell))?;
        }
        self.inner.draw(others.into_iter())
    }
}

/// Returns the number of columns of a cell in the buffer.
fn columns(cell: &Cell) -> u16 {
    cell.symbol().cell_width().max(1)
}

/// Returns whether all terminals draw a cell in the same columns: ASCII, letters of Latin, Greek and Cyrillic,
/// punctuation, arrows, lines and shapes in one; kana, ideographs and Hangul syllables in two.
fn has_certain_width(symbol: &str) -> bool {
    let mut characters = symbol.chars();
    let (Some(c), None) = (characters.next(), characters.next()) else { return symbol.is_empty() };
    let is_narrow = matches!(c, ' '..='~' | '\u{a1}'..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}'
        | '\u{1e00}'..='\u{1eff}' | '\u{2010}'..='\u{27bf}' | '\u{2800}'..='\u{28ff}');
    let is_wide = matches!(c, '\u{3001}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{309b}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{ff01}'..='\u{ff60}');
    match symbol.cell_width() {
        1 => is_narrow,
        2 => is_wide,
        _ => false,
    }
}

impl<W: Write> Write for AlignedBackend<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.inner)
    }
}

impl<W: Write> Backend for AlignedBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut changed: BTreeMap<u16, Vec<(u16, &Cell)>> = BTreeMap::new();
        for (x, y, cell) in content {
            changed.entry(y).or_default().push((x, cell));
        }
        let (uncertain, certain): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|(y, cells)| self.record(*y, cells));
        let cells = certain.iter().flat_map(|(y, cells)| cells.iter().map(|(x, cell)| (*x, *y, *cell)));
        self.inner.draw(cells)?;
        uncertain.into_iter().try_for_each(|(y, _)| self.draw_row(y))
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        self.rows.clear();
        self.inner.append_lines(count)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.rows.clear();
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.rows.clear();
        self.inner.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        self.inner.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::layout::Rect;
    use ratatui::{TerminalOptions, Viewport};

    use super::*;

    /// A terminal of one row that draws every character outside of ASCII in `width` columns.
    fn drawn(frames: &[&str], width: usize) -> String {
        let mut bytes = Vec::new();
        let viewport = Viewport::Fixed(Rect::new(0, 0, 20, 1));
        let mut terminal =
            Terminal::with_options(AlignedBackend::new(&mut bytes), TerminalOptions { viewport }).unwrap();
        for text in frames {
            terminal.draw(|frame| frame.render_widget(*text, frame.area())).unwrap();
        }
        drop(terminal);
        let (mut row, mut at) = (vec![' '; 40], 0);
        let text = String::from_utf8(bytes).unwrap();
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            if c == '\u{1b}' {
                // A control sequence ends with a letter.
                let mut sequence = String::new();
                for c in characters.by_ref() {
                    sequence.push(c);
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
                if let Some((_, column)) = sequence.strip_suffix('H').and_then(|place| place.split_once(';'))
                {
                    at = column.parse::<usize>().unwrap() - 1;
                }
            } else {
                let columns = if c.is_ascii() { 1 } else { width };
                for column in 0..columns {
                    row[at + column] = if column == 0 { c } else { ' ' };
                }
                at += columns;
            }
        }
        row.into_iter().collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn cells_keep_their_columns_where_a_terminal_draws_a_character_in_another_width() {
        for (character, columns) in [('\u{1f600}', 2), ('\u{e000}', 1)] {
            let text = format!("a{character}b{character}{character}c");
            let mut expected = Vec::new();
            for c in text.chars() {
                expected.push(c);
                if c == character && columns == 2 {
                    expected.push(' ');
                }
            }
            let expected: String = expected.into_iter().collect();
            for width in 0..=columns {
                let drawn = drawn(&["the former frame", &text], width);
                let shown = if width == 0 { expected.replace(character, " ") } else { expected.clone() };
                assert_eq!(drawn, shown, "{character:?} in {width} columns");
            }
        }
        assert_eq!(drawn(&["the former frame", "a\u{e000} b"], 2), "a\u{e000} b", "over a space");
    }

    #[test]
    fn nothing_of_a_former_frame_remains_in_unchanged_cells() {
        // A prepended letter, which the buffer draws in the cell of the digit.
        let (former, prepended) = ("a1b2", "\u{d4e}71b2");
        assert_eq!(drawn(&[former, prepended, former], 1), former);
        assert_eq!(drawn(&[former, prepended], 1), "\u{d4e}1b2", "unchanged cells are drawn over it");
        assert_eq!(drawn(&[former, "\u{d4e}7  b2"], 1), "\u{d4e}7 b2", "it is complete over a space");
    }

    #[test]
    fn characters_of_the_workbench_and_of_most_texts_are_drawn_once() {
        for symbol in ["a", "é", "ж", "─", "█", "●", "✓", "…", "→", "⣿", "語", "か", "각", "、"]
        {
            assert!(has_certain_width(symbol), "{symbol}");
        }
        for symbol in ["\u{1f600}", "❤\u{fe0f}", "e\u{301}", "\u{ff76}\u{ff9e}"] {
            assert!(!has_certain_width(symbol), "{symbol:?}");
        }
    }
}
