//! The difference of two versions of a text in words: only what changed, with the words around it.

use ratatui::style::Modifier;
use similar::{ChangeTag, DiffOp, TextDiff};

use crate::theme::Role;
use crate::widgets::{RichLine, Seg, wrap};
use skills_skill::safe_text;

/// Words around a change that are shown. The blanks between words count too.
const CONTEXT: usize = 2 * 8;

/// Returns the changed parts, each as removed and added rows; a part without removed or without added words has only the
/// other rows. White space is shown as characters where it is all that differs, and everywhere if it is not one space.
/// `label` precedes each side.
pub fn word_diff(old: &str, new: &str, label: &str, width: u16, ellipsis: &str) -> Vec<RichLine> {
    let diff = TextDiff::from_words(old, new);
    let is_ascii = ellipsis.is_ascii();
    let groups = diff.grouped_ops(CONTEXT);
    let (last_old, last_new) = (diff.old_slices().len(), diff.new_slices().len());
    let mut out = Vec::new();
    for group in &groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let is_start = first.old_range().start == 0 && first.new_range().start == 0;
        let is_end = last.old_range().end == last_old && last.new_range().end == last_new;
        let sides = [(ChangeTag::Delete, "- ", Role::DiffDel), (ChangeTag::Insert, "+ ", Role::DiffAdd)];
        let changes = || group.iter().flat_map(|op| diff.iter_changes(op));
        // Next to a changed word, white space is not a separate change.
        let is_blank = |op: &DiffOp| {
            let mut changed = diff.iter_changes(op).filter(|change| change.tag() != ChangeTag::Equal);
            changed.all(|change| change.value().trim().is_empty())
        };
        let has_words =
            |tag: ChangeTag| changes().any(|change| change.tag() == tag && !change.value().trim().is_empty());
        let is_only_blank = !has_words(ChangeTag::Delete) && !has_words(ChangeTag::Insert);
        for (tag, sign, role) in sides {
            if !has_words(tag) && !is_only_blank {
                continue;
            }
            let mut segs = Vec::new();
            if !label.is_empty() {
                segs.push(Seg::new(label, Role::Muted));
            }
            if !is_start {
                segs.push(Seg::new(format!("{ellipsis} "), Role::Muted));
            }
            for op in group {
                let marks = is_blank(op);
                let side = diff.iter_changes(op);
                for change in side.filter(|change| [tag, ChangeTag::Equal].contains(&change.tag())) {
                    let value = change.value();
                    segs.push(if change.tag() != tag {
                        Seg::new(word(value, is_ascii), Role::Text)
                    } else if marks {
                        Seg::new(visible(value, is_ascii), role).with(Modifier::BOLD)
                    } else {
                        Seg::new(word(value, is_ascii), role).with(Modifier::BOLD)
                    });
                }
            }
            if !is_end {
                segs.push(Seg::new(format!(" {ellipsis}"), Role::Muted));
            }
            for (at, segs) in wrap(&segs, width.saturating_sub(2)).into_iter().enumerate() {
                let sign = Seg::new(if at == 0 { sign } else { "  " }, role);
                let line = RichLine::from_segs(std::iter::once(sign).chain(segs).collect());
                out.push(RichLine { band: Some(role), ..line });
            }
        }
    }
    out
}

/// Returns a word or one space as it is, and other white space as characters.
fn word(text: &str, is_ascii: bool) -> String {
    if text == " " || !text.trim().is_empty() {
        return safe_text::line(text).into_owned();
    }
    visible(text, is_ascii)
}

/// Returns white space as characters.
fn visible(text: &str, is_ascii: bool) -> String {
    let sign = |letter: char| match (letter, is_ascii) {
        ('\n', false) => "↵".to_owned(),
        ('\n', true) => "\\n".to_owned(),
        ('\t', false) => "→".to_owned(),
        ('\t', true) => "\\t".to_owned(),
        (' ', false) => "·".to_owned(),
        (' ', true) => "_".to_owned(),
        (other, _) => safe_text::name(other.encode_utf8(&mut [0; 4])).into_owned(),
    };
    text.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(old: &str, new: &str, label: &str) -> Vec<String> {
        word_diff(old, new, label, 200, "…").iter().map(RichLine::plain_text).collect()
    }

    #[test]
    fn only_what_changed_is_shown_with_context() {
        let long = "one two three four five six seven eight nine ten eleven twelve";
        let old = format!("{long} Reads old files. {long}");
        let new = format!("{long} Reads new files. {long}");
        assert_eq!(
            text(&old, &new, ""),
            [
                "- … six seven eight nine ten eleven twelve Reads old files. one two three four five six seven …",
                "+ … six seven eight nine ten eleven twelve Reads new files. one two three four five six seven …",
            ]
        );
        assert_eq!(text("Reads files.", "Reads files. Or mails.", ""), ["+ Reads files. Or mails."]);
        assert_eq!(text("", "On bills.", "when_to_use: "), ["+ when_to_use: On bills."]);
        assert_eq!(text("Reads files. Or mails.", "Reads files.", ""), ["- Reads files. Or mails."]);
    }

    #[test]
    fn changed_white_space_is_visible() {
        let diff = |old: &str, new: &str| text(old, new, "");
        assert_eq!(diff("When the", "When  the"), ["- When·the", "+ When··the"]);
        assert_eq!(diff("When\nthe", "When the"), ["- When↵the", "+ When·the"]);
        assert_eq!(diff("When  the file", "When  the mail"), ["- When··the file", "+ When··the mail"]);
        assert_eq!(diff("a b", "a\u{a0}b"), ["- a·b", "+ a⟨U+00A0⟩b"]);
        let ascii = word_diff("a b", "a\tb", "", 80, "...");
        assert_eq!(ascii[1].plain_text(), "+ a\\tb");
    }

    #[test]
    fn changed_words_are_marked() {
        let lines = word_diff("Reads old files.", "Reads new files.", "", 80, "…");
        let marked = |line: &RichLine| {
            let segs = line.segs.iter().filter(|seg| seg.plus.contains(Modifier::BOLD));
            segs.map(|seg| seg.text.clone()).collect::<String>()
        };
        assert_eq!(lines.iter().map(marked).collect::<Vec<_>>(), ["old", "new"]);
        assert_eq!(lines[0].band, Some(Role::DiffDel));
    }

    #[test]
    fn changes_that_are_far_apart_are_separate() {
        let long = "word ".repeat(60);
        let lines = text(&format!("a {long}z"), &format!("b {long}y"), "");
        assert_eq!(lines.len(), 4, "{lines:?}");
    }
}
