//! A score as a bar: five signals stacked on a fixed scale, with a mark at the threshold.

use super::output::{TerminalCaps, TextStyle};
use skills_discovery::SignalSums;

/// End of the scale; larger only if the best score is higher, so that bars of two requests can be compared.
pub const SCALE: f64 = 3.5;

const SHADES: [&str; 5] = ["█", "▓", "▒", "░", "·"];
const LETTERS: [&str; 5] = ["n", "d", "b", "s", "r"];

/// Returns the cells per signal of a bar of `total` cells: shares by largest remainder; negative signals have none.
fn shares(signals: &SignalSums, total: usize) -> [usize; 5] {
    let positive: f64 = signals.iter().filter(|v| **v > 0.0).sum();
    let mut cells = [0; 5];
    if positive <= 0.0 || total == 0 {
        return cells;
    }
    let exact = signals.map(|v| v.max(0.0) / positive * total as f64);
    for (cell, share) in cells.iter_mut().zip(exact) {
        *cell = share.floor() as usize;
    }
    let mut order = [0, 1, 2, 3, 4];
    order.sort_by(|&a: &usize, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    let missing = total - cells.iter().sum::<usize>();
    for &signal in order.iter().take(missing) {
        cells[signal] += 1;
    }
    cells
}

/// Renders the bar in `width` cells: in color if available, else with shades, else with letters. It covers the mark if
/// the score reaches the threshold, and ends before it otherwise, regardless of rounding.
pub fn stacked(
    signals: &SignalSums,
    score: f64,
    scale: f64,
    fit_threshold: Option<f64>,
    width: usize,
    look: TerminalCaps,
) -> String {
    let cell = |value: f64| ((value / scale).max(0.0) * width as f64).round() as usize;
    let tick = fit_threshold.map(cell).filter(|&at| at < width);
    let rounded = cell(score).min(width);
    let total = tick.map_or(rounded, |at| {
        if fit_threshold.is_some_and(|from| score >= from) { rounded.max(at + 1) } else { rounded.min(at) }
    });
    let mut out = String::new();
    let mut used = 0;
    for (signal, cells) in shares(signals, total).into_iter().enumerate() {
        let sign = match (look.unicode, look.color) {
            (false, _) => LETTERS[signal],
            (true, false) => SHADES[signal],
            (true, true) => "▆",
        };
        out += &TextStyle::SIGNALS[signal].paint(&sign.repeat(cells), look.color);
        used += cells;
    }
    for cell in used..width {
        if Some(cell) == tick {
            out += &TextStyle::Muted.paint(if look.unicode { "┊" } else { ":" }, look.color);
        } else {
            out.push(' ');
        }
    }
    out
}

/// Returns a one-line legend of the bars.
pub fn legend(look: TerminalCaps) -> String {
    let names = ["name", "description", "body", "semantic", "rule"];
    let sign = |i: usize| match (look.unicode, look.color) {
        (false, _) => LETTERS[i],
        (true, false) => SHADES[i],
        (true, true) => "▆",
    };
    let parts: Vec<String> = (0..5)
        .map(|i| format!("{} {}", TextStyle::SIGNALS[i].paint(sign(i), look.color), names[i]))
        .collect();
    let tick = if look.unicode { "┊" } else { ":" };
    format!("{}  {tick} threshold", parts.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: TerminalCaps = TerminalCaps { color: false, unicode: true, width: 80, terminal: false };

    #[test]
    fn bar_length_is_proportional_to_the_score() {
        assert_eq!(
            stacked(&[0.5, 0.5, 0.25, 0.25, 0.25], 1.75, 3.5, Some(2.8), 20, PLAIN),
            "███▓▓▓▒▒░·      ┊   "
        );
    }

    #[test]
    fn a_bar_covers_the_mark_from_the_threshold_on() {
        let look = TerminalCaps { unicode: false, ..PLAIN };
        let bar = |score: f64| stacked(&[score, 0.0, 0.0, 0.0, 0.0], score, 3.5, Some(1.4), 10, look);
        assert_eq!([1.39, 1.4, 1.41].map(bar), ["nnnn:     ", "nnnnn     ", "nnnnn     "]);
    }

    #[test]
    fn negative_components_have_no_cell() {
        let look = TerminalCaps { unicode: false, ..PLAIN };
        assert_eq!(stacked(&[-1.0, 0.35, 0.0, 0.0, 0.0], 0.35, 3.5, Some(1.4), 10, look), "d   :     ");
    }

    #[test]
    fn color_replaces_the_shades() {
        let look = TerminalCaps { color: true, ..PLAIN };
        assert_eq!(stacked(&[3.5, 0.0, 0.0, 0.0, 0.0], 3.5, 3.5, None, 2, look), "\u{1b}[34m▆▆\u{1b}[0m");
    }
}
