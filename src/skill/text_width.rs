//! Widths of text in cells of a terminal.

use icu_properties::props::GeneralCategory;
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub(crate) const CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> = CodePointMapData::new();

/// Returns the maximum width of a text in cells: cluster by cluster, because ligatures between clusters, which
/// `unicode-width` considers, are not drawn. Terminals that do not join the characters of a cluster draw one after the
/// other: spacing vowel signs, consonants of a conjunct, parts of an emoji. A cluster without a base is drawn on a space.
/// Voiced marks of halfwidth katakana count twice, as in the buffer of `ratatui`.
pub fn cells(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(cluster_cells).sum()
}

fn cluster_cells(cluster: &str) -> usize {
    let joined = cluster.width();
    let base = usize::from(joined == 0);
    let marks = cluster.chars().filter(|c| is_voiced_mark(*c)).count();
    let separate: usize = cluster.chars().map(character_cells).sum();
    (joined + marks).max(base + separate)
}

/// Returns the width of a character alone: that of all but nonspacing ones is at least one cell, as of prepended letters.
fn character_cells(c: char) -> usize {
    let least = match c {
        // Tone and reading marks of ideographs, and numbers in circles on black squares.
        '\u{302a}'..='\u{302f}' | '\u{16ff0}' | '\u{16ff1}' | '\u{3248}'..='\u{324f}' => 2,
        // Medial and final jamo.
        '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}' => 0,
        // Format characters that enclose the digits after them.
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' => 1,
        '\u{110bd}' | '\u{110cd}' => 1,
        c if is_voiced_mark(c) => 1,
        c => match CATEGORY.get(c) {
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark | GeneralCategory::Format => 0,
            _ => 1,
        },
    };
    c.width().unwrap_or(0).max(least)
}

/// Breaks a line into lines of at most `width` cells, after a space if possible; every space is preserved. Of several
/// spaces at a break, the first one ends its line, and the others begin the next one.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = Vec::new();
    let mut line: Vec<&str> = Vec::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = cells(grapheme);
        if used + wide > width && !line.is_empty() {
            let indent = line.iter().take_while(|one| **one == " ").count();
            let space = line.iter().rposition(|one| *one == " ").filter(|at| *at > indent);
            let word_end = space.and_then(|at| line.iter().take(at).rposition(|one| *one != " "));
            let rest = line.split_off(word_end.map_or(line.len(), |last| last + 2));
            if word_end.is_some() {
                line.pop();
            }
            lines.push(std::mem::replace(&mut line, rest).concat());
            used = line.iter().map(|one| cells(one)).sum();
        }
        used += wide;
        line.push(grapheme);
    }
    if !line.is_empty() {
        lines.push(line.concat());
    }
    lines
}

const fn is_voiced_mark(c: char) -> bool {
    matches!(c, '\u{ff9e}' | '\u{ff9f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_measured_one_by_one() {
        for (text, expected) in [
            ("", 0),
            ("pay", 3),
            ("表格", 4),
            ("e\u{301}", 1),
            ("👩\u{200d}💻", 4),
            ("👍🏽", 4),
            ("❤\u{fe0f}", 2),
            ("⌚\u{fe0e}", 2),
            ("🇩🇪", 2),
            ("ｶﾞ", 3),
            ("কা", 2),
            ("காலா", 4),
            ("ক্ষ", 2),
            ("\u{9be}", 2),
            ("\u{d4e}7", 2),
            ("㉉", 2),
            ("水\u{302e}", 4),
            ("\u{70f}ܐ", 2),
            ("\u{1112}\u{1161}\u{11ab}", 2),
            ("\u{644}\u{627}", 2),
            ("\u{301}", 1),
        ] {
            assert_eq!(cells(text), expected, "{text:?}");
        }
    }
}
