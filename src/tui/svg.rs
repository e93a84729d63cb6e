//! Renders a screen as an SVG image, cell by cell, so that the README shows what the workbench draws.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell, CellWidth as _};
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};

use super::picture::{drawn_cells, palette_index};
use super::theme::{Role, Theme};

/// Size of a cell, in pixels.
const CELL: (f64, f64) = (9.0, 18.0);
/// Font size, and its baseline below the top of the cell.
const TYPE: f64 = 15.0;
const BASE_LINE: f64 = 13.5;
/// Margin around the screen.
const MARGIN: f64 = 10.0;
/// The sixteen colors, for themes that leave them to the terminal.
const SIXTEEN: [[u8; 3]; 16] = [
    [0x17, 0x18, 0x1c],
    [0xd1, 0x4d, 0x41],
    [0x87, 0x9a, 0x39],
    [0xd0, 0xa2, 0x15],
    [0x43, 0x85, 0xbe],
    [0xce, 0x5d, 0x97],
    [0x3a, 0xa9, 0x9f],
    [0xce, 0xcd, 0xc3],
    [0x75, 0x76, 0x7c],
    [0xe2, 0x6c, 0x60],
    [0xa0, 0xb4, 0x50],
    [0xe3, 0xb8, 0x35],
    [0x5c, 0x9c, 0xd5],
    [0xe0, 0x78, 0xae],
    [0x5a, 0xbf, 0xb5],
    [0xf2, 0xf0, 0xe5],
];

/// Renders a buffer. `title` is the text for screen readers; the cursor is drawn as a block.
pub fn svg(buffer: &Buffer, theme: &Theme, cursor: Option<Position>, title: &str) -> String {
    let area = buffer.area;
    let size =
        (f64::from(area.width) * CELL.0 + 2.0 * MARGIN, f64::from(area.height) * CELL.1 + 2.0 * MARGIN);
    let base = theme.style(Role::Base);
    let page = Page {
        text: rgb(base.fg.unwrap_or(Color::Reset), [0xd3, 0xd7, 0xde]),
        ground: rgb(base.bg.unwrap_or(Color::Reset), [0x13, 0x15, 0x1a]),
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n\
         <g font-family=\"'JetBrains Mono','DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"{TYPE}\" \
         xml:space=\"preserve\">",
        number(size.0),
        number(size.1),
        number(size.0),
        number(size.1),
        escaped(title),
        hex(page.ground),
    );
    for y in area.top()..area.bottom() {
        page.row(buffer, y, cursor, &mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

struct Page {
    text: [u8; 3],
    ground: [u8; 3],
}

/// The style of a range of cells.
#[derive(Clone, Copy, PartialEq)]
struct CellStyle {
    fg: [u8; 3],
    bg: [u8; 3],
    bold: bool,
    italic: bool,
    underline: bool,
    struck: bool,
}

impl Page {
    fn look(&self, cell: &Cell, cursor: bool) -> CellStyle {
        let (mut fg, mut bg) = (rgb(cell.fg, self.text), rgb(cell.bg, self.ground));
        if cell.modifier.contains(Modifier::REVERSED) != cursor {
            std::mem::swap(&mut fg, &mut bg);
        }
        if cell.modifier.contains(Modifier::DIM) {
            fg = blend(fg, bg, 0.45);
        }
        CellStyle {
            fg,
            bg,
            bold: cell.modifier.contains(Modifier::BOLD),
            italic: cell.modifier.contains(Modifier::ITALIC),
            underline: cell.modifier.contains(Modifier::UNDERLINED),
            struck: cell.modifier.contains(Modifier::CROSSED_OUT),
        }
    }

    fn row(&self, buffer: &Buffer, y: u16, cursor: Option<Position>, out: &mut String) {
        let cells: Vec<(u16, u16, &str, CellStyle)> = drawn_cells(buffer, y)
            .map(|(x, cell)| {
                let look = self.look(cell, cursor == Some(Position::new(x, y)));
                (x, cell.symbol().cell_width().max(1), cell.symbol(), look)
            })
            .collect();
        let top = MARGIN + f64::from(y - buffer.area.y) * CELL.1;
        let left = |x: u16| MARGIN + f64::from(x - buffer.area.x) * CELL.0;
        for run in cells.chunk_by(|one, next| one.3.bg == next.3.bg) {
            if run[0].3.bg != self.ground {
                let wide: u16 = run.iter().map(|cell| cell.1).sum();
                rect(out, left(run[0].0), top, f64::from(wide) * CELL.0, CELL.1, run[0].3.bg);
            }
        }
        // Glyphs that must connect to their neighbors are drawn as shapes: fonts leave gaps.
        let shaped = |cell: &(u16, u16, &str, CellStyle)| shape(cell.2).is_some();
        for run in cells.chunk_by(|one, next| one.2 == next.2 && one.3 == next.3 && shaped(one)) {
            let Some([x, y, width, height]) = shape(run[0].2) else { continue };
            let spans = x == 0.0 && (width - 1.0).abs() < f64::EPSILON;
            let count = if spans { run.len() } else { 1 };
            for cell in run.iter().step_by(count) {
                let wide = width * CELL.0 * count as f64;
                rect(out, left(cell.0) + x * CELL.0, top + y * CELL.1, wide, height * CELL.1, cell.3.fg);
            }
        }
        for run in cells.chunk_by(|one, next| {
            one.3 == next.3 && !shaped(one) && !shaped(next) && one.1 == 1 && next.1 == 1
        }) {
            let text: String = run.iter().map(|cell| cell.2).collect();
            if shaped(&run[0]) || (text.trim().is_empty() && !run[0].3.underline && !run[0].3.struck) {
                continue;
            }
            let (skipped, visible) = trimmed(&text);
            let wide: u16 = run.iter().map(|cell| cell.1).sum();
            let cells = if run.len() == 1 { wide } else { visible.chars().count() as u16 };
            self.text(out, visible, left(run[0].0 + skipped), top + BASE_LINE, cells, run[0].3);
        }
    }

    fn text(&self, out: &mut String, text: &str, x: f64, y: f64, cells: u16, look: CellStyle) {
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\"",
            number(x),
            number(y),
            number(f64::from(cells) * CELL.0)
        );
        if look.fg == self.text {
            let _ = write!(out, " fill=\"{}\"", hex(self.text));
        } else {
            let _ = write!(out, " fill=\"{}\"", hex(look.fg));
        }
        for (on, attribute) in [
            (look.bold, " font-weight=\"700\""),
            (look.italic, " font-style=\"italic\""),
            (look.underline && !look.struck, " text-decoration=\"underline\""),
            (look.struck && !look.underline, " text-decoration=\"line-through\""),
            (look.struck && look.underline, " text-decoration=\"underline line-through\""),
        ] {
            if on {
                out.push_str(attribute);
            }
        }
        let _ = writeln!(out, ">{}</text>", escaped(text));
    }
}

/// Trims spaces at both ends: returns how many were in front, and the rest.
fn trimmed(text: &str) -> (u16, &str) {
    let rest = text.trim_start_matches(' ');
    ((text.len() - rest.len()) as u16, rest.trim_end_matches(' '))
}

/// Returns block elements and lines as a rectangle in fractions of the cell: left, top, width, height.
fn shape(sign: &str) -> Option<[f64; 4]> {
    let mut characters = sign.chars();
    let (Some(sign), None) = (characters.next(), characters.next()) else { return None };
    let eighths = |from: char| f64::from(u32::from(sign) - u32::from(from)) / 8.0;
    Some(match sign {
        '▁'..='█' => {
            let height = eighths('▁') + 0.125;
            [0.0, 1.0 - height, 1.0, height]
        }
        '▉'..='▏' => [0.0, 0.0, 1.0 - eighths('▉') - 0.125, 1.0],
        '─' => [0.0, 0.475, 1.0, 0.05],
        '━' => [0.0, 0.44, 1.0, 0.12],
        '│' => [0.45, 0.0, 0.1, 1.0],
        '┃' => [0.4, 0.0, 0.2, 1.0],
        _ => return None,
    })
}

fn rect(out: &mut String, x: f64, y: f64, width: f64, height: f64, fill: [u8; 3]) {
    let _ = writeln!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
        number(x),
        number(y),
        number(width),
        number(height),
        hex(fill)
    );
}

/// Converts a color to red, green, blue; the terminal's default becomes `default`.
fn rgb(color: Color, default: [u8; 3]) -> [u8; 3] {
    match color {
        Color::Rgb(red, green, blue) => [red, green, blue],
        Color::Indexed(index @ 0..16) => SIXTEEN[usize::from(index)],
        Color::Indexed(index @ 16..232) => {
            let step = |value: u8| if value == 0 { 0 } else { 55 + 40 * value };
            let index = index - 16;
            [step(index / 36), step(index / 6 % 6), step(index % 6)]
        }
        Color::Indexed(index) => [8 + 10 * (index - 232); 3],
        named => palette_index(named).map_or(default, |index| SIXTEEN[usize::from(index)]),
    }
}

fn blend(one: [u8; 3], other: [u8; 3], share: f64) -> [u8; 3] {
    let mix = |at: usize| (f64::from(one[at]) * (1.0 - share) + f64::from(other[at]) * share).round() as u8;
    [mix(0), mix(1), mix(2)]
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Formats a number with at most two decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;
    use crate::theme::Depth;

    fn to_svg(text: &str, style: Style) -> String {
        let theme = Theme::shipped("dark", Depth::True).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_style(buffer.area, theme.style(Role::Base));
        buffer.set_string(0, 0, text, style);
        svg(&buffer, &theme, None, "a <screen>")
    }

    #[test]
    fn words_keep_their_columns_and_markup_is_escaped() {
        let picture = to_svg("  a<b", Style::new().add_modifier(Modifier::BOLD));
        assert!(picture.contains("<title>a &lt;screen&gt;</title>"));
        assert!(picture.contains("<text x=\"28\" y=\"23.5\" textLength=\"27\" fill=\"#d3d7de\" font-weight=\"700\">a&lt;b</text>"), "{picture}");
    }

    #[test]
    fn truncated_text_is_struck_out() {
        let picture = to_svg("ab", Style::new().add_modifier(Modifier::CROSSED_OUT));
        assert!(picture.contains("text-decoration=\"line-through\">ab<"), "{picture}");
    }

    #[test]
    fn a_wide_character_takes_two_cells() {
        let picture = to_svg("日x", Style::new());
        assert!(picture.contains("textLength=\"18\" fill=\"#d3d7de\">日<"), "{picture}");
        assert!(picture.contains("<text x=\"28\""), "{picture}");
    }

    #[test]
    fn bars_are_exact_to_an_eighth() {
        let picture = to_svg("██▍", Style::new().fg(Color::Rgb(1, 2, 3)));
        assert!(
            picture.contains("<rect x=\"10\" y=\"10\" width=\"18\" height=\"18\" fill=\"#010203\"/>"),
            "{picture}"
        );
        assert!(
            picture.contains("<rect x=\"28\" y=\"10\" width=\"3.38\" height=\"18\" fill=\"#010203\"/>"),
            "{picture}"
        );
    }
}
