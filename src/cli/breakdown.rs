//! The breakdown of a score: words by signals, with sums of rows and columns.

use std::fmt::Write as _;

use super::output::{TerminalCaps, TextStyle, fit};
use skills_discovery::{Hit, WordRow};
use skills_skill::safe_text;

/// Maximum number of rows; the smaller ones are summed up in one.
const ROWS: usize = 16;

/// Renders the score breakdown of one result.
pub fn render(place: usize, hit: &Hit, look: TerminalCaps) -> String {
    let mut out = String::new();
    let id = safe_text::name(hit.skill_id.as_str());
    let _ = writeln!(out, "\n{}", TextStyle::Strong.paint(&format!("Why {id} is #{place}"), look.color));
    let heads = ["name", "description", "body", "semantic", "rule"];
    let width = (look.width.clamp(74, 110) - 2 - 5 * 9 - 9).min(40);
    let mut head = format!("  {}", fit("", width, look.unicode));
    for (i, name) in heads.iter().enumerate() {
        let name = if *name == "description" { "descr." } else { name };
        head += &TextStyle::SIGNALS[i].paint(&format!("{name:>9}"), look.color);
    }
    let _ = writeln!(out, "{head}{:>9}", "sum");
    for row in rows(&hit.breakdown.rows) {
        let label = look.name(&safe_text::line(&row.label), width);
        let _ = writeln!(out, "  {label}{}{}", cells(&row.by_signal, look), number(row.sum, look));
    }
    let sum = TextStyle::Strong.paint(&number(hit.score, look), look.color);
    let _ =
        writeln!(out, "  {}{}{sum}", fit("sum", width, look.unicode), cells(&hit.breakdown.signals, look));
    out
}

/// Returns the rows to show: all, or the first ones and the sum of the others, so that the columns still add up.
fn rows(words: &[WordRow]) -> Vec<WordRow> {
    if words.len() <= ROWS {
        return words.to_vec();
    }
    let mut by_size: Vec<usize> = (0..words.len()).collect();
    by_size.sort_by(|&a, &b| words[b].sum.abs().total_cmp(&words[a].sum.abs()));
    let shown = &by_size[..ROWS - 1];
    let mut out: Vec<WordRow> =
        words.iter().enumerate().filter(|(i, _)| shown.contains(i)).map(|(_, row)| row.clone()).collect();
    let mut rest = WordRow {
        label: format!("{} smaller", words.len() - out.len()),
        query_word: None,
        by_signal: [0.0; 5],
        sum: 0.0,
    };
    for (_, row) in words.iter().enumerate().filter(|(i, _)| !shown.contains(i)) {
        rest.sum += row.sum;
        for (all, one) in rest.by_signal.iter_mut().zip(row.by_signal) {
            *all += one;
        }
    }
    out.push(rest);
    out
}

fn cells(values: &[f64; 5], look: TerminalCaps) -> String {
    values.iter().map(|value| number(*value, look)).collect()
}

/// Formats a number with two decimals in nine cells; zero is a dot.
fn number(value: f64, look: TerminalCaps) -> String {
    if value.abs() < 0.005 {
        return format!("{:>9}", if look.unicode { "·" } else { "." });
    }
    let text = format!("{value:>9.2}");
    if look.unicode { text.replace('-', "−") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_rows_keep_the_column_sum() {
        let words: Vec<WordRow> = (0..30)
            .map(|i| {
                let value = f64::from(i) / 10.0;
                WordRow {
                    label: i.to_string(),
                    query_word: None,
                    by_signal: [value, 0.0, 0.0, 0.0, -0.1],
                    sum: value - 0.1,
                }
            })
            .collect();
        let shown = rows(&words);
        assert_eq!((shown.len(), shown.last().unwrap().label.as_str()), (ROWS, "15 smaller"));
        let sum = |rows: &[WordRow]| rows.iter().map(|row| row.sum).sum::<f64>();
        assert!((sum(&words) - sum(&shown)).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_aligned() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: false };
        assert_eq!((number(0.0, look).chars().count(), number(-1.234, look)), (9, "    −1.23".to_owned()));
    }
}
