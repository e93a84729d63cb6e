//! Wraps lines with roles at words, and truncates them to a width. A word may contain several roles.

use ratatui::style::Modifier;
use unicode_segmentation::UnicodeSegmentation as _;

use super::rich::{RichLine, Seg};
use super::text_width::{TextWidth as _, head};
use crate::theme::Role;

/// Wraps at spaces to `width` cells; longer words are broken, those of wide characters where the line is full: Chinese and
/// Japanese have no spaces. Spaces at line ends are dropped.
pub fn wrap(segs: &[Seg], width: u16) -> Vec<Vec<Seg>> {
    let width = usize::from(width.max(1));
    let mut lines: Vec<Vec<Seg>> = Vec::new();
    let mut line: Vec<Seg> = Vec::new();
    let mut used = 0;
    let mut gap: Option<Seg> = None;
    for (word, space) in words(segs) {
        let word_width: usize = word.iter().map(|s| s.text.width()).sum();
        let gap_width = usize::from(gap.is_some());
        let characters = || word.iter().flat_map(|seg| seg.text.graphemes(true));
        let breaks_anywhere = word_width > width && word_width > characters().count();
        let unbroken = match characters().next() {
            Some(first) if breaks_anywhere => first.width(),
            _ => word_width,
        };
        if used > 0 && used + gap_width + unbroken > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
            gap = None;
        }
        if let Some(gap) = gap.take().filter(|_| used > 0) {
            used += 1;
            join(&mut line, gap);
        }
        for seg in word {
            for segment in pieces(&seg, width, &mut used) {
                match segment {
                    Piece::Text(seg) => join(&mut line, seg),
                    Piece::Break => lines.push(std::mem::take(&mut line)),
                }
            }
        }
        gap = space;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

enum Piece {
    Text(Seg),
    Break,
}

/// Returns the grapheme clusters of a text; one that is wider than a line, which would not be drawn, as its characters.
fn clusters(text: &str, width: usize) -> impl Iterator<Item = &str> {
    text.graphemes(true).flat_map(move |cluster| {
        let is_wide = cluster.width() > width;
        let characters = cluster.char_indices().map(|(at, c)| &cluster[at..at + c.len_utf8()]);
        characters.filter(move |_| is_wide).chain(std::iter::once(cluster).filter(move |_| !is_wide))
    })
}

/// Breaks a segment where the line is full.
fn pieces(seg: &Seg, width: usize, used: &mut usize) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut part = String::new();
    for grapheme in clusters(&seg.text, width) {
        let cells = grapheme.width();
        if *used + cells > width && *used > 0 {
            if !part.is_empty() {
                out.push(Piece::Text(seg.with_text(std::mem::take(&mut part))));
            }
            out.push(Piece::Break);
            *used = 0;
        }
        part.push_str(grapheme);
        *used += cells;
    }
    if !part.is_empty() {
        out.push(Piece::Text(seg.with_text(part)));
    }
    out
}

fn join(line: &mut Vec<Seg>, seg: Seg) {
    match line.last_mut() {
        Some(last) if last.role == seg.role && last.plus == seg.plus => last.text.push_str(&seg.text),
        _ => line.push(seg),
    }
}

/// Splits segments into words with the space after each; a word may consist of several segments.
fn words(segs: &[Seg]) -> Vec<(Vec<Seg>, Option<Seg>)> {
    let mut out: Vec<(Vec<Seg>, Option<Seg>)> = Vec::new();
    let mut word: Vec<Seg> = Vec::new();
    for seg in segs {
        let mut rest = seg.text.as_str();
        while let Some(at) = rest.find(' ') {
            if at > 0 {
                word.push(seg.with_text(&rest[..at]));
            }
            let space = seg.with_text(" ");
            if !word.is_empty() {
                out.push((std::mem::take(&mut word), Some(space)));
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            word.push(seg.with_text(rest));
        }
    }
    if !word.is_empty() {
        out.push((word, None));
    }
    out
}

/// Breaks after a space if possible, else at the width; preserves every space: for code, and for text to be approved or
/// compared. Of several spaces at a break, the second and further ones begin the next line, where they are visible.
pub fn break_code(segs: &[Seg], width: u16) -> Vec<Vec<Seg>> {
    let width = usize::from(width.max(1));
    let mut lines = Vec::new();
    let mut line: Vec<(&str, &Seg)> = Vec::new();
    let graphemes =
        segs.iter().flat_map(|seg| clusters(&seg.text, width).map(move |grapheme| (grapheme, seg)));
    let mut used = 0;
    for grapheme in graphemes {
        // What moves to the next line and a wide cluster may not fit together.
        while used + grapheme.0.width() > width && !line.is_empty() {
            let indent = line.iter().take_while(|(grapheme, _)| *grapheme == " ").count();
            let space = line.iter().rposition(|(grapheme, _)| *grapheme == " ").filter(|at| *at > indent);
            let word_end =
                space.and_then(|at| line.iter().take(at).rposition(|(grapheme, _)| *grapheme != " "));
            let at = word_end.map_or(line.len(), |last| last + 2);
            let rest = line.split_off(at);
            lines.push(joined(&std::mem::replace(&mut line, rest)));
            used = line.iter().map(|(grapheme, _)| grapheme.width()).sum();
        }
        used += grapheme.0.width();
        line.push(grapheme);
    }
    lines.push(joined(&line));
    lines
}

fn joined(graphemes: &[(&str, &Seg)]) -> Vec<Seg> {
    let mut line = Vec::new();
    for (grapheme, seg) in graphemes {
        join(&mut line, seg.with_text(*grapheme));
    }
    line
}

/// Truncates a line at the end, with the ellipsis.
pub fn cut_line(line: &RichLine, max: u16, ellipsis: &str) -> RichLine {
    if line.width() <= usize::from(max) {
        return line.clone();
    }
    let mut available = max.saturating_sub(ellipsis.width() as u16);
    let mut segs: Vec<Seg> = Vec::new();
    for seg in &line.segs {
        let head_text = head(&seg.text, available);
        if !head_text.is_empty() {
            segs.push(seg.with_text(head_text));
        }
        available -= head_text.width() as u16;
        if head_text.len() < seg.text.len() {
            break;
        }
    }
    let role = segs.last().map_or(Role::Muted, |s| s.role);
    let role = if is_mark(role) { Role::Muted } else { role };
    segs.push(Seg { text: head(ellipsis, max).to_owned(), role, plus: Modifier::empty() });
    RichLine { segs, ..line.clone() }
}

fn is_mark(role: Role) -> bool {
    matches!(role, Role::MarkName | Role::MarkDescription | Role::MarkBody | Role::MarkSemantic)
}

/// Wraps to at most `max_lines`; if there are more, the last one ends with the ellipsis.
pub fn wrap_to(segs: &[Seg], width: u16, max_lines: usize, ellipsis: &str) -> Vec<RichLine> {
    first_lines(wrap(segs, width), width, max_lines, ellipsis)
}

/// Breaks like [`break_code`] to at most `max_lines`; if there are more, the last one ends with the ellipsis.
pub fn break_code_to(segs: &[Seg], width: u16, max_lines: usize, ellipsis: &str) -> Vec<RichLine> {
    first_lines(break_code(segs, width), width, max_lines, ellipsis)
}

fn first_lines(lines: Vec<Vec<Seg>>, width: u16, max_lines: usize, ellipsis: &str) -> Vec<RichLine> {
    let more = lines.len() > max_lines;
    let mut out: Vec<RichLine> = lines.into_iter().take(max_lines).map(RichLine::from_segs).collect();
    if let Some(last) = out.last_mut().filter(|_| more) {
        *last = cut_last(last, width, ellipsis);
    }
    out
}

/// Ends a line with the ellipsis, as the last one that is shown of a text with more lines.
pub fn cut_last(line: &RichLine, width: u16, ellipsis: &str) -> RichLine {
    let mut longer = line.clone();
    longer.segs.push(Seg::new(" ".repeat(usize::from(width)), Role::Muted));
    let available = (line.width() as u16 + ellipsis.width() as u16).min(width);
    cut_line(&longer, available, ellipsis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::buffer::{Buffer, Cell};
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;
    use crate::widgets::text_width::drawable;

    fn texts(lines: &[Vec<Seg>]) -> Vec<String> {
        lines.iter().map(|l| l.iter().map(|s| s.text.as_str()).collect()).collect()
    }

    #[test]
    fn words_are_not_split_where_their_style_changes() {
        let segs = [
            Seg::new("turns ", Role::Text),
            Seg::new("pdf", Role::MarkName),
            Seg::new("-tables into rows", Role::Text),
        ];
        assert_eq!(texts(&wrap(&segs, 12)), ["turns", "pdf-tables", "into rows"]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_broken_by_cells() {
        let segs = [Seg::new("a 表格提取工具 b", Role::Text)];
        assert_eq!(texts(&wrap(&segs, 5)), ["a 表", "格提", "取工", "具 b"].map(String::from));
    }

    #[test]
    fn code_keeps_its_spaces() {
        let segs = [Seg::new("    x = 1", Role::Text)];
        assert_eq!(texts(&break_code(&segs, 6)), ["    x ", "= 1"]);
    }

    #[test]
    fn code_breaks_at_spaces_before_it_breaks_words() {
        let segs = [Seg::new("key: ", Role::CodeKey), Seg::new("some words here", Role::Text)];
        assert_eq!(texts(&break_code(&segs, 12)), ["key: some ", "words here"]);
        assert_eq!(texts(&break_code(&[Seg::new("  abcdefgh", Role::Text)], 6)), ["  abcd", "efgh"]);
    }

    #[test]
    fn spaces_at_a_break_of_code_stay_visible() {
        let broken = |text: &str, width: u16| texts(&break_code(&[Seg::new(text, Role::Text)], width));
        assert_eq!(broken("one two   three", 8), ["one two ", "  three"]);
        assert_eq!(broken("one two    three", 9), ["one two ", "   three"]);
        assert_eq!(broken("abcdef gh", 6), ["abcdef", " gh"]);
        for width in 1..20 {
            let text = "   a    b  c de     fgh  ij";
            assert_eq!(broken(text, width).concat(), text);
            assert!(broken(text, width).iter().all(|line| line.width() <= usize::from(width)));
        }
    }

    #[test]
    fn line_of_code_that_is_exactly_full_moves_its_last_word() {
        let broken = |text: &str| texts(&break_code(&[Seg::new(text, Role::Text)], 7));
        assert_eq!(broken("one two three"), ["one ", "two ", "three"]);
        assert_eq!(broken("one two"), ["one two"]);
    }

    proptest! {
        /// Every character is in a cell of the buffer, whatever it joins or combines with.
        #[test]
        fn every_character_is_drawn(
            raw in "([a-e ]|[ｶﾞﾟ]|[لا\u{644}\u{627}]|[क\u{94d}\u{93e}]|[กำ]|[👩👍🏽\u{200d}\u{fe0f}]|[\u{301}\u{363}]|[表각\u{1100}\u{1161}]){0,60}",
            width in 4_u16..20,
        ) {
            let text = skills_skill::safe_text::line(&raw);
            let segs = [Seg::new(text.clone(), Role::Text)];
            for lines in [wrap(&segs, width), break_code(&segs, width)] {
                let mut drawn = String::new();
                for line in &lines {
                    let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
                    let (mut x, mut cells) = (0, 0);
                    for seg in line {
                        let text = drawable(&seg.text);
                        x = buffer.set_stringn(x, 0, text, usize::from(width - x), Style::new()).0;
                        cells += seg.text.width();
                    }
                    prop_assert_eq!(usize::from(x), cells, "{:?}", line);
                    drawn.extend(buffer.content.iter().map(Cell::symbol));
                }
                let visible = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
                prop_assert_eq!(visible(&drawn), visible(&text));
            }
        }
    }

    #[test]
    fn text_without_spaces_continues_a_line_if_its_characters_are_wide() {
        let lines = |text: &str| {
            let segs = [Seg::new("… ", Role::Muted), Seg::new(text, Role::Text)];
            wrap_to(&segs, 8, 2, "…").iter().map(RichLine::plain_text).collect::<Vec<_>>()
        };
        assert_eq!(lines("表格提取工具使用"), ["… 表格提", "取工具…"]);
        assert_eq!(lines("表格"), ["… 表格"]);
        assert_eq!(lines("extraction"), ["…", "extract…"], "a long word begins a line");
    }

    #[test]
    fn last_line_indicates_truncation() {
        let segs = [Seg::new("one two three four", Role::Text)];
        let lines = wrap_to(&segs, 8, 2, "…");
        assert_eq!(lines.iter().map(RichLine::plain_text).collect::<Vec<_>>(), ["one two", "three…"]);
    }
}
