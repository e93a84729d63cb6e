//! The difference of two versions of a text in words: only what changed, with the words around it.

use ratatui::style::Modifier;
use similar::{ChangeTag, TextDiff};

use crate::theme::Role;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::shown;
use crate::widgets::wrap::wrap;

/// Words around a change that are shown. The blanks between words count too.
const CONTEXT: usize = 2 * 8;

/// Returns the changed parts, each as removed and added rows; a part without removed or without added words has only the
/// other rows. `label` precedes each side.
#[must_use]
pub fn word_diff(old: &str, new: &str, label: &str, width: u16, ellipsis: &str) -> Vec<RichLine> {
    let (old, new) = (shown(old), shown(new));
    let diff = TextDiff::from_words(old.as_str(), new.as_str());
    let groups = diff.grouped_ops(CONTEXT);
    let (last_old, last_new) = (diff.old_slices().len(), diff.new_slices().len());
    let mut out = Vec::new();
    for group in &groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let is_start = first.old_range().start == 0 && first.new_range().start == 0;
        let is_end = last.old_range().end == last_old && last.new_range().end == last_new;
        let sides = [(ChangeTag::Delete, "- ", Role::DiffDel), (ChangeTag::Insert, "+ ", Role::DiffAdd)];
        let changes = || group.iter().flat_map(|op| diff.iter_changes(op));
        let has =
            |tag: ChangeTag| changes().any(|change| change.tag() == tag && !change.value().trim().is_empty());
        let is_blank = !has(ChangeTag::Delete) && !has(ChangeTag::Insert);
        for (tag, sign, role) in sides {
            if !has(tag) && !is_blank {
                continue;
            }
            let mut segs = Vec::new();
            if !label.is_empty() {
                segs.push(Seg::new(label, Role::Muted));
            }
            if !is_start {
                segs.push(Seg::new(format!("{ellipsis} "), Role::Muted));
            }
            for change in changes().filter(|change| [tag, ChangeTag::Equal].contains(&change.tag())) {
                segs.push(if change.tag() == tag {
                    Seg::new(change.value(), role).with(Modifier::BOLD)
                } else {
                    Seg::new(change.value(), Role::Text)
                });
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
