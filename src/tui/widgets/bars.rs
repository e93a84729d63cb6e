//! Bars: stacked by signal on a fixed scale, and differences from a center line.
//!
//! Rows separated by blank ones use full blocks and eighths: a cell where one signal ends and the next begins has the
//! left one as its foreground and the right one as its background, so the picture is exact to an eighth of a cell.
//! Adjacent rows use lower blocks of whole cells, so that rows remain distinct.

use ratatui::style::Style;

use super::painter::Painter;
use crate::theme::{BarStyle, Role};
use skills_discovery::SignalSums;

/// The roles of the five signals, in order.
pub const SIGNALS: [Role; 5] =
    [Role::SignalName, Role::SignalDescription, Role::SignalBody, Role::SignalSemantic, Role::SignalRule];

const LETTERS: [&str; 5] = ["n", "d", "b", "s", "r"];
const SHADES: [&str; 5] = ["█", "▓", "▒", "░", "·"];
const EIGHTHS: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Position and scale of a stacked bar.
#[derive(Debug, Clone, Copy)]
pub struct CellRange {
    /// First column.
    pub x: u16,
    pub y: u16,
    /// Width of a full bar, in cells.
    pub width: u16,
    /// The value of a full bar.
    pub scale: f64,
    /// Whether rows are separated (eighths) or adjacent (full cells, lower blocks).
    pub air: bool,
    /// The value of the mark, if there is one.
    pub mark: Option<f64>,
}

impl CellRange {
    pub fn column(&self, value: f64) -> u16 {
        self.x + cell_of(value, self.scale, self.width)
    }
}

/// Returns the cell of a bar of `width` cells that contains a value.
pub fn cell_of(value: f64, scale: f64, width: u16) -> u16 {
    let cell = (value / scale * f64::from(width)).floor().max(0.0) as u16;
    cell.min(width.saturating_sub(1))
}

/// Returns the length of a bar of `cells` cells with a mark in cell `at`: it covers the mark if its value reaches that of
/// the mark, and ends before it otherwise, regardless of rounding.
pub fn up_to_mark(cells: u16, at: u16, reaches: bool) -> u16 {
    if reaches { cells.max(at + 1) } else { cells.min(at) }
}

/// Draws a bar stacked by signal, as long as the sum. Negative values shorten it from its end.
/// The row's band must be drawn before.
pub fn stacked(painter: &mut Painter<'_>, place: CellRange, sums: &SignalSums) {
    let total: f64 = sums.iter().sum();
    // A value displayed as zero has no bar.
    if place.width == 0 || place.scale <= 0.0 || total < 0.005 {
        return;
    }
    let eighths = total / place.scale * f64::from(place.width) * 8.0;
    if painter.theme.bars == BarStyle::Eighths && !painter.glyphs.ascii && !place.air && eighths < 7.5 {
        // Less than a cell: eighths of its largest signal, so that small values still differ.
        let largest = (0..5).max_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap_or(0);
        let sign = EIGHTHS[(eighths.round() as usize).clamp(1, 7)];
        painter.put(place.x, place.y, sign, SIGNALS[largest], 1);
        return;
    }
    match (painter.theme.bars, place.air, painter.glyphs.ascii) {
        (BarStyle::Letters, ..) | (_, _, true) => draw_cells(painter, place, sums, &LETTERS),
        (BarStyle::Shades, ..) => draw_cells(painter, place, sums, &SHADES),
        (BarStyle::Eighths, false, _) => draw_cells(painter, place, sums, &["▆"; 5]),
        (BarStyle::Eighths, true, _) => exact(painter, place, sums),
    }
}

/// Returns the ends of the segments in units of the bar, ascending and limited to the sum.
fn ends(sums: &SignalSums, scale: f64, units: f64) -> [f64; 5] {
    let total = sums.iter().sum::<f64>().clamp(0.0, scale);
    let mut at = 0.0;
    let mut out = [0.0; 5];
    for (end, value) in out.iter_mut().zip(sums) {
        at += value.max(0.0);
        *end = at.min(total) / scale * units;
    }
    out
}

fn exact(painter: &mut Painter<'_>, place: CellRange, sums: &SignalSums) {
    let ends = ends(sums, place.scale, f64::from(place.width) * 8.0).map(|e| e.round() as u32);
    let mark = place.mark.filter(|mark| sums.iter().sum::<f64>() >= *mark);
    let least = mark.map_or(0, |mark| u32::from(cell_of(mark, place.scale, place.width)) * 8 + 1);
    let last = ends[4].max(least);
    let ends = ends.map(|end| if end == ends[4] { last } else { end });
    for cell in 0..u32::from(place.width) {
        let (from, to) = (cell * 8, cell * 8 + 8);
        if from >= last {
            break;
        }
        let segments = cell_segments(&ends, from, to);
        let x = place.x + cell as u16;
        let color = |signal: usize| painter.theme.style(SIGNALS[signal]).fg;
        match segments.as_slice() {
            [] => {}
            [(signal, cover)] => {
                let style = Style { fg: color(*signal), ..Style::default() };
                painter.styled(x, place.y, EIGHTHS[*cover as usize], style, 1);
            }
            [(left, cover), (right, _), ..] => {
                let style = Style { fg: color(*left), bg: color(*right), ..Style::default() };
                painter.styled(x, place.y, EIGHTHS[*cover as usize], style, 1);
            }
        }
    }
}

/// Returns the segments inside one cell with their eighths, at most two: the largest ones, in order.
/// A boundary with the empty background keeps the background, so two signals in the last cell fill it.
fn cell_segments(ends: &[u32; 5], from: u32, to: u32) -> Vec<(usize, u32)> {
    let mut out = Vec::with_capacity(2);
    let mut start = 0;
    for (signal, &end) in ends.iter().enumerate() {
        let cover = end.min(to).saturating_sub(start.max(from));
        if end > start && cover > 0 && end > from && start < to {
            out.push((signal, cover));
        }
        start = start.max(end);
    }
    let covered: u32 = out.iter().map(|(_, cover)| cover).sum();
    while out.len() > 2 {
        if let Some(least) = (0..out.len()).min_by_key(|&i| out[i].1) {
            out.remove(least);
        }
    }
    // The eighths of dropped segments go to the right one: inside a bar no background shows between signals.
    if let [(_, first), (_, second)] = &mut out[..] {
        *second = covered - *first;
    }
    if let [(first, cover), (_, second)] = out[..]
        && cover + second < 8
    {
        // Three parts (two signals and the background) cannot share a cell: the larger signal keeps it.
        let keep = if cover >= second { first } else { out[1].0 };
        return vec![(keep, cover + second)];
    }
    out
}

/// Returns the glyphs of the signals in a bar of whole cells.
pub fn signs(painter: &Painter<'_>) -> [&'static str; 5] {
    match painter.theme.bars {
        _ if uses_letters(painter) => LETTERS,
        BarStyle::Shades => SHADES,
        BarStyle::Eighths | BarStyle::Letters => ["▆"; 5],
    }
}

/// Returns the cells of each segment by largest remainder, so that they add up to the length of the bar, whose mark is at
/// the value `mark`.
pub fn whole_cells(sums: &SignalSums, scale: f64, width: u16, mark: Option<f64>) -> [u16; 5] {
    let ends = ends(sums, scale, f64::from(width));
    let mut parts = [0.0; 5];
    let mut before = 0.0;
    for (part, end) in parts.iter_mut().zip(ends) {
        *part = end - before;
        before = end;
    }
    let rounded = (ends[4].round() as u16).max(u16::from(ends[4] > 0.0));
    let total = mark.map_or(rounded, |mark| {
        up_to_mark(rounded, cell_of(mark, scale, width), sums.iter().sum::<f64>() >= mark)
    });
    let mut out = parts.map(|p: f64| p.floor() as u16);
    let mut order = [0, 1, 2, 3, 4];
    order.sort_by(|&a, &b| (parts[b].fract()).total_cmp(&parts[a].fract()));
    let mut missing = total.saturating_sub(out.iter().sum());
    for signal in order {
        if missing > 0 && parts[signal] > 0.0 {
            out[signal] += 1;
            missing -= 1;
        }
    }
    out
}

fn draw_cells(painter: &mut Painter<'_>, place: CellRange, sums: &SignalSums, signs: &[&str; 5]) {
    let mut x = place.x;
    for (signal, cells) in whole_cells(sums, place.scale, place.width, place.mark).into_iter().enumerate() {
        painter.run(x, place.y, signs[signal], cells, SIGNALS[signal]);
        x += cells;
    }
}

/// Returns whether signals are distinguished by letters: then a legend needs a space between letter and name.
pub fn uses_letters(painter: &Painter<'_>) -> bool {
    painter.theme.bars == BarStyle::Letters || painter.glyphs.ascii
}

/// Draws the glyph of a signal before its name in a legend.
pub fn legend(painter: &mut Painter<'_>, x: u16, y: u16, signal: usize) {
    let sign = match painter.theme.bars {
        _ if uses_letters(painter) => LETTERS[signal],
        BarStyle::Shades => SHADES[signal],
        BarStyle::Eighths | BarStyle::Letters => painter.glyphs.gutter,
    };
    painter.put(x, y, sign, SIGNALS[signal], 1);
}

/// Draws a neutral bar: a fraction of the width, with the rest as a line.
pub fn share(painter: &mut Painter<'_>, x: u16, y: u16, width: u16, share: f64) {
    let cells = (share.clamp(0.0, 1.0) * f64::from(width)).round() as u16;
    painter.run(x + cells, y, painter.glyphs.rule, width - cells, Role::Faint);
    let sign = if painter.glyphs.ascii { "#" } else { "▆" };
    painter.run(x, y, sign, cells, Role::Level1);
}

/// Draws a difference from the center line: to the right in favor of the first, to the left against it. `half` is the
/// number of cells on each side, which corresponds to `scale`.
pub fn difference(painter: &mut Painter<'_>, x: u16, y: u16, half: u16, scale: f64, value: f64) {
    painter.put(x + half, y, painter.glyphs.bar, Role::Rule, 1);
    if value.abs() < 0.005 || scale <= 0.0 {
        return;
    }
    let cells = ((value.abs() / scale * f64::from(half)).round() as u16).clamp(1, half);
    let sign = match (painter.theme.bars, painter.glyphs.ascii) {
        (_, true) => {
            if value > 0.0 {
                "+"
            } else {
                "-"
            }
        }
        (BarStyle::Eighths, _) => "▆",
        _ if value > 0.0 => "█",
        _ => "░",
    };
    let start = if value > 0.0 { x + half + 1 } else { x + half - cells };
    painter.run(start, y, sign, cells, Role::Level1);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: SignalSums = [1.10, 0.91, 0.10, 0.61, 0.16];

    #[test]
    fn whole_cells_add_up_to_the_bar() {
        let cells = whole_cells(&SUMS, 3.5, 20, None);
        assert_eq!(cells.iter().sum::<u16>(), 16, "2.88 of 3.5 in 20 cells: {cells:?}");
        assert_eq!(cells, [6, 5, 1, 3, 1]);
    }

    #[test]
    fn negative_terms_shorten_the_bar_from_its_end() {
        let cells = whole_cells(&[1.0, 0.5, 0.0, -0.25, 0.25], 1.5, 12, None);
        assert_eq!(cells.iter().sum::<u16>(), 12);
        assert_eq!(whole_cells(&[0.0, 0.0, 0.0, -0.3, 0.16], 3.5, 20, None), [0; 5]);
    }

    #[test]
    fn a_bar_covers_the_mark_from_its_value_on() {
        let length = |value: f64| whole_cells(&[value, 0.0, 0.0, 0.0, 0.0], 2.0, 10, Some(1.05))[0];
        assert_eq!([0.9, 1.04, 1.05, 1.06, 1.2].map(length), [5, 5, 6, 6, 6]);
        let length = |value: f64| whole_cells(&[value, 0.0, 0.0, 0.0, 0.0], 2.0, 10, Some(1.15))[0];
        assert_eq!([1.0, 1.14, 1.15, 1.31].map(length), [5, 5, 6, 7]);
    }

    #[test]
    fn three_components_in_one_cell_leave_no_gap() {
        assert_eq!(cell_segments(&[3, 5, 8, 20, 20], 0, 8), [(0, 3), (2, 5)]);
        assert_eq!(cell_segments(&[3, 5, 7, 7, 7], 0, 8), [(2, 7)], "at the end of a bar the ground stays");
    }

    #[test]
    fn boundary_cell_shows_the_left_and_right_component() {
        // Name ends at 11 eighths, description at 24.
        let ends = [11, 24, 24, 24, 24];
        assert_eq!(cell_segments(&ends, 0, 8), [(0, 8)]);
        assert_eq!(cell_segments(&ends, 8, 16), [(0, 3), (1, 5)]);
        assert_eq!(cell_segments(&ends, 16, 24), [(1, 8)]);
        assert_eq!(cell_segments(&[4, 6, 6, 6, 6], 0, 8), [(0, 6)], "the ground keeps its share");
    }
}
