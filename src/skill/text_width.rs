//! Widths of text in cells of a terminal.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Returns the width of a text in cells, as terminals draw it: cluster by cluster. Ligatures between clusters, which
/// `unicode-width` considers, are not drawn; voiced marks of halfwidth katakana take a cell of their own, and so does a
/// cluster without a width.
pub fn cells(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let cluster_width = |cluster: &str| {
        let marks = cluster.matches(['\u{ff9e}', '\u{ff9f}']).count();
        (cluster.width() + marks).max(1)
    };
    text.graphemes(true).map(cluster_width).sum()
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
            ("👩\u{200d}💻", 2),
            ("ｶﾞ", 2),
            ("\u{644}\u{627}", 2),
            ("\u{301}", 1),
        ] {
            assert_eq!(cells(text), expected, "{text:?}");
        }
    }
}
