//! Widths in cells, and truncation to a width: names at the end, paths in the middle.

use std::borrow::Cow;

use ratatui::buffer::CellWidth as _;
use unicode_segmentation::UnicodeSegmentation as _;

use skills_skill::safe_text;
pub use skills_skill::safe_text::exact;

/// Returns untrusted text as one line that is safe to draw: white space is collapsed to single spaces, and characters
/// that could control the terminal or are invisible are made visible.
pub fn shown(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for word in raw.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&safe_text::line(word));
    }
    out
}

/// The width of a text in cells, as it is drawn: cluster by cluster, each with the width that the buffer gives it. A cluster
/// without a width takes one cell; see [`drawable`].
pub trait TextWidth {
    fn width(&self) -> usize;
}

impl TextWidth for str {
    fn width(&self) -> usize {
        skills_skill::text_width::cells(self)
    }
}

/// Returns a text that the buffer draws in as many cells as it is measured: a combining character without a base, as
/// where a style begins between both, is drawn on a space, and a cluster that some terminals draw wider is followed by
/// spaces. Control characters, which the buffer does not draw, are left out.
pub fn drawable(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for cluster in text.graphemes(true).filter(|cluster| !cluster.contains(char::is_control)) {
        let mut drawn = usize::from(cluster.cell_width());
        if drawn == 0 {
            out.push(' ');
            drawn = 1;
        }
        out.push_str(cluster);
        out.extend(std::iter::repeat_n(' ', cluster.width().saturating_sub(drawn)));
    }
    if out == text { Cow::Borrowed(text) } else { out.into() }
}

/// Returns the width in cells.
pub fn cells(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// Returns the longest prefix that is at most `max` cells wide.
pub fn head(text: &str, max: u16) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > usize::from(max) {
            return &text[..at];
        }
    }
    text
}

fn tail(text: &str, max: u16) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme.width();
        if used > usize::from(max) {
            return &text[at + grapheme.len()..];
        }
    }
    text
}

/// Truncates at the end, followed by the ellipsis.
pub fn cut_end<'a>(text: &'a str, max: u16, ellipsis: &str) -> Cow<'a, str> {
    if cells(text) <= max {
        return Cow::Borrowed(text);
    }
    let available = max.saturating_sub(cells(ellipsis));
    Cow::Owned(format!("{}{}", head(text, available), head(ellipsis, max)))
}

/// Truncates in the middle: both the beginning of a path and its file name are informative.
pub fn cut_middle<'a>(text: &'a str, max: u16, ellipsis: &str) -> Cow<'a, str> {
    if cells(text) <= max {
        return Cow::Borrowed(text);
    }
    let available = max.saturating_sub(cells(ellipsis));
    let front = available / 3;
    Cow::Owned(format!("{}{}{}", head(text, front), head(ellipsis, max), tail(text, available - front)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_truncated_at_the_end_by_cells() {
        assert_eq!(cut_end("report-builder", 13, "…"), "report-build…");
        assert_eq!(cut_end("表格提取工具", 7, "…"), "表格提…");
        assert_eq!(cells(&cut_end("表格提取工具", 6, "…")), 5, "half a wide character is none");
        assert_eq!(cut_end("short", 5, "…"), "short");
    }

    #[test]
    fn joined_emoji_are_kept_and_have_the_cells_of_their_parts() {
        let coder = "👩\u{200d}💻";
        assert_eq!(shown(coder), coder);
        assert_eq!(cells(coder), 4);
        assert_eq!(cut_end(&coder.repeat(3), 9, "…"), format!("{coder}{coder}…"));
        let mut buf = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 6, 1));
        let text = format!("{coder}x");
        let (x, _) = buf.set_stringn(0, 0, drawable(&text), 6, ratatui::style::Style::new());
        assert_eq!((x, buf[(0, 0)].symbol(), buf[(4, 0)].symbol()), (5, coder, "x"));
        assert_eq!(shown("a\u{200d}b"), "a⟨U+200D⟩b");
    }

    #[test]
    fn control_characters_are_not_drawn() {
        assert_eq!(drawable("é\n表\r\n\u{1b}x"), "é表x");
        let mut buf = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 6, 1));
        let (x, _) = buf.set_stringn(0, 0, drawable("é\nx"), 6, ratatui::style::Style::new());
        assert_eq!(x, 2);
    }

    #[test]
    fn widths_are_those_of_the_buffer() {
        for text in [
            "pay",
            "表格",
            "e\u{301}",
            "👩\u{200d}💻",
            "👍🏽",
            "⌚\u{fe0e}",
            "ｶﾞｶﾞ",
            "\u{644}\u{627}",
            "ᬓ᭄ᬓ",
            "1\u{fe0f}\u{20e3}",
            "ষ্ম",
            "কা",
            "\u{9be}",
        ] {
            let drawn = drawable(text);
            let drawn: u16 = drawn.graphemes(true).map(ratatui::buffer::CellWidth::cell_width).sum();
            assert_eq!(text.width(), usize::from(drawn), "{text}");
        }
    }

    #[test]
    fn paths_are_truncated_in_the_middle() {
        let path = "/home/ana/projects/skills/pdf/SKILL.md";
        assert_eq!(cut_middle(path, 20, "…"), "/home/…/pdf/SKILL.md");
    }

    #[test]
    fn white_space_of_a_description_becomes_single_spaces() {
        assert_eq!(shown("  Reads\n  and\twrites "), "Reads and writes");
    }
}
