//! Draws the score breakdown: words in rows, signals in columns; both add up to the score, and the head is the legend.

use ratatui::layout::Rect;

use super::bars::{CellRange, legend, stacked, uses_letters};
use super::format::{plain_score, score};
use super::painter::Painter;
use super::text_width::{cells, cut_end, shown};
use crate::theme::Role;
use skills_discovery::{Breakdown, QueryWord, ScoreComponent, SignalSums, WordRow};

/// Widths of the columns name, description, body, semantic, sum.
const COLUMNS: [u16; 5] = [7, 7, 7, 10, 6];
/// The widths if a letter and a space precede each name.
const LETTERED: [u16; 5] = [8, 9, 8, 7, 6];
/// The widths if labels need the space: the name of the semantic signal is short.
const NARROW: [u16; 5] = [7, 7, 7, 7, 6];
/// Minimum width of the bars, with the spaces around them.
const MIN_BARS: u16 = 6;
const HEADS: [&str; 4] = ["name", "descr", "body", "semantic"];
/// Below this width the breakdown is drawn without its columns.
pub const FULL_WIDTH: u16 = 52;

/// A row, ready to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The word, pair, `rules`, or `3 more`.
    pub label: String,
    /// Shown instead of columns: the rules that applied, with their values.
    pub rules: Option<String>,
    pub by_signal: SignalSums,
    pub sum: f64,
}

/// Returns whether a row belongs to a stop word of the request.
pub fn is_stop_word(row: &WordRow, words: &[QueryWord]) -> bool {
    row.query_word.and_then(|i| words.get(i)).is_some_and(|word| word.stop)
}

/// Returns the breakdown with its stop words merged into one row, if there are several: columns still add up. Terms
/// keep their row index, as only rule rows show theirs.
pub fn stop_words_as_one(breakdown: &Breakdown, words: &[QueryWord]) -> Breakdown {
    let count = breakdown.rows.iter().filter(|row| is_stop_word(row, words)).count();
    let mut out = breakdown.clone();
    if count < 2 {
        return out;
    }
    let mut one =
        WordRow { label: format!("{count} stop words"), query_word: None, by_signal: [0.0; 5], sum: 0.0 };
    let mut last = None;
    for (place, row) in out.rows.iter_mut().enumerate() {
        if is_stop_word(row, words) {
            for (sum, value) in one.by_signal.iter_mut().zip(&mut row.by_signal) {
                *sum += std::mem::take(value);
            }
            one.sum += std::mem::take(&mut row.sum);
            last = Some(place);
        }
    }
    // Emptied rows are not shown; indices must stay as the terms refer to them.
    if let Some(place) = last {
        out.rows[place] = one;
    }
    out
}

/// Returns the rows of a breakdown, at most `max`: the smallest are merged into one, so that it still adds up.
pub fn rows(breakdown: &Breakdown, max: usize, painter: &Painter<'_>) -> Vec<Row> {
    let all: Vec<Row> = breakdown
        .rows
        .iter()
        .enumerate()
        // Skip rows that would contain only dots.
        .filter(|(_, row)| row.by_signal.iter().chain([&row.sum]).any(|v| v.abs() >= 0.005))
        .map(|(index, row)| {
            let ruled = row.by_signal[..4].iter().all(|v| v.abs() < 0.0005);
            let applied = ruled.then(|| rule_text(breakdown, index, painter));
            Row { label: shown(&row.label), rules: applied, by_signal: row.by_signal, sum: row.sum }
        })
        .collect();
    if all.len() <= max || max < 2 {
        return all.into_iter().take(max).collect();
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[b].sum.abs().total_cmp(&all[a].sum.abs()));
    let mut indices: Vec<usize> = order[..max - 1].to_vec();
    indices.sort_unstable();
    let mut rest = Row {
        label: format!("{} more", all.len() - indices.len()),
        rules: None,
        by_signal: [0.0; 5],
        sum: 0.0,
    };
    for &index in &order[max - 1..] {
        for (sum, value) in rest.by_signal.iter_mut().zip(all[index].by_signal) {
            *sum += value;
        }
        rest.sum += all[index].sum;
    }
    let mut out: Vec<Row> = indices.into_iter().map(|index| all[index].clone()).collect();
    out.push(rest);
    out
}

fn rule_text(breakdown: &Breakdown, row: usize, painter: &Painter<'_>) -> String {
    let parts = breakdown.terms.iter().filter(|p| p.row == row && p.signal == ScoreComponent::Rule);
    let texts: Vec<String> =
        parts.map(|p| format!("{} {}", shown(&p.label), score(p.value, painter.glyphs))).collect();
    texts.join(&format!(" {} ", painter.glyphs.dot))
}

/// Breaks the rules of a row between two of them, into at most `max` lines.
fn rule_lines(rules: &str, width: u16, max: usize, painter: &Painter<'_>) -> Vec<String> {
    let dot = format!(" {} ", painter.glyphs.dot);
    let mut lines: Vec<String> = Vec::new();
    for rule in rules.split(&dot) {
        let is_last = lines.len() >= max;
        let fits = |line: &String| is_last || cells(line) + cells(&dot) + cells(rule) <= width;
        if lines.last().is_some_and(fits) {
            let line = lines.pop().unwrap_or_default();
            lines.push(format!("{line}{dot}{rule}"));
        } else {
            lines.push(rule.to_owned());
        }
    }
    lines.iter().map(|line| cut_end(line, width, painter.glyphs.ellipsis).into_owned()).collect()
}

/// Returns the largest row sum, with a minimum so that noise does not fill a bar.
pub fn row_scale(rows: &[Row]) -> f64 {
    rows.iter().map(|r| r.sum).fold(0.6, f64::max)
}

/// Draws the breakdown with all columns; returns the number of rows.
pub fn full(painter: &mut Painter<'_>, area: Rect, breakdown: &Breakdown, total: f64) -> u16 {
    let rows = rows(breakdown, usize::from(area.height.saturating_sub(3)), painter);
    let longest = rows.iter().map(|r| cells(&r.label)).max().unwrap_or(0).clamp(9, 18);
    let columns = if uses_letters(painter) {
        LETTERED
    } else if longest + COLUMNS.iter().sum::<u16>() + MIN_BARS > area.width {
        NARROW
    } else {
        COLUMNS
    };
    let fixed: u16 = columns.iter().sum();
    let word = longest.min(area.width.saturating_sub(fixed + MIN_BARS)).max(5);
    let ends: Vec<u16> = columns
        .iter()
        .scan(area.x + word, |x, w| {
            *x += w;
            Some(*x)
        })
        .collect();
    let mut y = area.y;
    let gap = if uses_letters(painter) { 2 } else { 1 };
    for (signal, head) in HEADS.iter().enumerate() {
        let head = if signal == 3 && columns != COLUMNS { "sem" } else { head };
        let start = painter.right(ends[signal], y, head, Role::Muted);
        legend(painter, start.saturating_sub(gap), y, signal);
    }
    painter.right(ends[4], y, "sum", Role::Muted);
    let bar_x = ends[4] + 1;
    let place = |y| CellRange {
        x: bar_x,
        y,
        width: area.right().saturating_sub(bar_x),
        scale: row_scale(&rows),
        air: false,
        mark: None,
    };
    y += 1;
    let mut spare = usize::from(area.height.saturating_sub(3)).saturating_sub(rows.len());
    for row in &rows {
        painter.put(area.x, y, &cut_end(&row.label, word, painter.glyphs.ellipsis), Role::Text, word);
        let mut further = 0;
        if let Some(rules) = &row.rules {
            let x = area.x + cells(&row.label) + 2;
            let available = ends[3].saturating_sub(x);
            let lines = rule_lines(rules, available, spare + 1, painter);
            for (line, y) in lines.iter().zip(y..) {
                painter.put(x, y, line, Role::Muted, available);
            }
            further = lines.len().saturating_sub(1);
            spare -= further;
        } else {
            for (signal, value) in row.by_signal[..4].iter().enumerate() {
                number(painter, ends[signal], y, *value, Role::Text);
            }
        }
        number(painter, ends[4], y, row.sum, Role::Strong);
        stacked(painter, place(y), &row.by_signal);
        y += 1 + further as u16;
    }
    painter.run(area.x, y, painter.glyphs.rule, area.width, Role::Rule);
    y += 1;
    painter.put(area.x, y, "sum", Role::Muted, 3);
    for (signal, value) in breakdown.signals[..4].iter().enumerate() {
        number(painter, ends[signal], y, *value, Role::Strong);
    }
    painter.right(ends[4], y, &plain_score(total, painter.glyphs), Role::Strong);
    y + 1 - area.y
}

/// Draws words, sums and bars alone, with an optional legend below; returns the number of rows.
pub fn compact(painter: &mut Painter<'_>, area: Rect, breakdown: &Breakdown, with_legend: bool) -> u16 {
    let available = area.height.saturating_sub(u16::from(with_legend));
    let rows = rows(breakdown, usize::from(available), painter);
    let longest = rows.iter().map(|r| cells(&r.label)).max().unwrap_or(0);
    let word = longest.clamp(9, 18).min(area.width.saturating_sub(12)).max(4);
    // A sum with a sign needs one more cell.
    let sum = rows.iter().map(|row| cells(&score(row.sum, painter.glyphs))).max().unwrap_or(0).max(4);
    let end = area.x + word + 1 + sum;
    let scale = row_scale(&rows);
    let mut y = area.y;
    for row in &rows {
        painter.put(area.x, y, &cut_end(&row.label, word, painter.glyphs.ellipsis), Role::Text, word);
        number(painter, end, y, row.sum, Role::Strong);
        let place = CellRange {
            x: end + 1,
            y,
            width: area.right().saturating_sub(end + 1),
            scale,
            air: false,
            mark: None,
        };
        stacked(painter, place, &row.by_signal);
        y += 1;
    }
    if with_legend && y < area.bottom() {
        let mut x = area.x;
        let gap = if uses_letters(painter) { 2 } else { 1 };
        let names = ["name", "descr", "body", "sem", "rule"];
        let wide = names.iter().map(|name| cells(name) + gap + 2).sum::<u16>() - 2 <= area.width;
        for (signal, name) in names.iter().enumerate() {
            if x + gap + cells(name) > area.right() {
                break;
            }
            legend(painter, x, y, signal);
            x = painter.put(x + gap, y, name, Role::Muted, cells(name)) + if wide { 2 } else { 1 };
        }
        y += 1;
    }
    y - area.y
}

fn number(painter: &mut Painter<'_>, end: u16, y: u16, value: f64, role: Role) {
    let role = if value.abs() < 0.005 { Role::Faint } else { role };
    let text = score(value, painter.glyphs);
    painter.right(end, y, &text, role);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture;

    #[test]
    fn labels_are_complete_in_the_standard_size() {
        let by_signal = [0.2, 0.3, 0.0, 0.1, 0.0];
        let row = WordRow { label: "general wording".to_owned(), query_word: None, by_signal, sum: 0.6 };
        let breakdown = Breakdown { rows: vec![row], ..Breakdown::default() };
        let draw = |painter: &mut Painter<'_>| {
            full(painter, Rect::new(0, 0, 55, 8), &breakdown, 0.6);
        };
        let text = picture::text(&picture::painted(55, 8, draw));
        assert!(text.contains("general wording"), "{text}");
    }
}
