//! A diff as rows: one column, or the text before the change left and the proposed one right. Changed words have a
//! separate color on the tint of their line.

use ratatui::style::Modifier;
use similar::{ChangeTag, TextDiff};

use crate::theme::Role;
use crate::widgets::{RichLine, Seg, break_code, exact};
use skills_api::{Hunk, HunkLine};

/// Width of line number and sign, in cells.
const MARGIN: u16 = 6;
/// Maximum size of a changed part whose words are compared, in bytes.
const MAX_COMPARED_BYTES: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffRow {
    /// A row over the full width.
    One(RichLine),
    /// The text before the change and the proposed one; `None` if the other side is longer.
    Two(Option<RichLine>, Option<RichLine>),
}

/// Returns the width of each column of a diff in two columns.
pub fn column_width(width: u16) -> u16 {
    width.saturating_sub(1) / 2
}

/// A part of a hunk: a common line, or lines that differ.
enum HunkPart<'h> {
    Same(&'h str),
    Changed(Vec<&'h str>, Vec<&'h str>),
}

fn parts(hunk: &Hunk) -> Vec<HunkPart<'_>> {
    let mut parts = Vec::new();
    for line in &hunk.lines {
        match line {
            HunkLine::Context(text) => parts.push(HunkPart::Same(text)),
            HunkLine::Removed(text) => match parts.last_mut() {
                Some(HunkPart::Changed(old, new)) if new.is_empty() => old.push(text),
                _ => parts.push(HunkPart::Changed(vec![text], Vec::new())),
            },
            HunkLine::Added(text) => match parts.last_mut() {
                Some(HunkPart::Changed(_, new)) => new.push(text),
                _ => parts.push(HunkPart::Changed(Vec::new(), vec![text])),
            },
        }
    }
    parts
}

pub fn rows(hunks: &[Hunk], width: u16, two_columns: bool) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    for (at, hunk) in hunks.iter().enumerate() {
        if at > 0 {
            rows.push(DiffRow::One(RichLine::default()));
        }
        let (mut old_at, mut new_at) = (hunk.old_start.max(1), hunk.new_start.max(1));
        for part in parts(hunk) {
            match part {
                HunkPart::Same(text) => {
                    let safe = exact(text);
                    let segs = || vec![Seg::new(safe.clone(), Role::Muted)];
                    if two_columns {
                        let column = column_width(width);
                        let left = lines(segs(), column, old_at, ' ', None);
                        let right = lines(segs(), column, new_at, ' ', None);
                        push_pairs(&mut rows, left, right);
                    } else {
                        rows.extend(lines(segs(), width, old_at, ' ', None).into_iter().map(DiffRow::One));
                    }
                    (old_at, new_at) = (old_at + 1, new_at + 1);
                }
                HunkPart::Changed(old, new) => {
                    let (left, right) = compared(&old, &new);
                    let column = if two_columns { column_width(width) } else { width };
                    let side = |texts: Vec<Vec<Seg>>, from: usize, sign: char, band: Role| -> Vec<RichLine> {
                        let numbered = texts.into_iter().zip(from..);
                        numbered
                            .flat_map(|(segs, number)| lines(segs, column, number, sign, Some(band)))
                            .collect()
                    };
                    let left = side(left, old_at, '-', Role::DiffDel);
                    let right = side(right, new_at, '+', Role::DiffAdd);
                    (old_at, new_at) = (old_at + old.len(), new_at + new.len());
                    if two_columns {
                        push_pairs(&mut rows, left, right);
                    } else {
                        rows.extend(left.into_iter().chain(right).map(DiffRow::One));
                    }
                }
            }
        }
    }
    rows
}

fn push_pairs(rows: &mut Vec<DiffRow>, left: Vec<RichLine>, right: Vec<RichLine>) {
    let height = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    rows.extend((0..height).map(|_| DiffRow::Two(left.next(), right.next())));
}

/// Breaks a line of a text, with its number and sign; its spaces are preserved.
fn lines(segs: Vec<Seg>, width: u16, number: usize, sign: char, band: Option<Role>) -> Vec<RichLine> {
    let sign_role = band.unwrap_or(Role::Muted);
    let broken = break_code(&segs, width.saturating_sub(MARGIN).max(8));
    let line = |(at, segs): (usize, Vec<Seg>)| {
        let number = if at == 0 { format!("{number:>3} ") } else { "    ".to_owned() };
        let mut all = vec![Seg::new(number, Role::Muted), Seg::new(format!("{sign} "), sign_role)];
        all.extend(segs);
        RichLine { band, ..RichLine::from_segs(all) }
    };
    broken.into_iter().enumerate().map(line).collect()
}

/// Returns both sides line by line, with the words that differ marked.
fn compared(old: &[&str], new: &[&str]) -> (Vec<Vec<Seg>>, Vec<Vec<Seg>>) {
    let safe = |lines: &[&str]| lines.iter().map(|line| exact(line)).collect::<Vec<_>>().join("\n");
    let (old_text, new_text) = (safe(old), safe(new));
    if old.is_empty() || new.is_empty() || old_text.len() + new_text.len() > MAX_COMPARED_BYTES {
        let unmarked =
            |lines: &[&str], role: Role| lines.iter().map(|line| vec![Seg::new(exact(line), role)]).collect();
        return (unmarked(old, Role::DiffDel), unmarked(new, Role::DiffAdd));
    }
    let diff = TextDiff::from_words(&old_text, &new_text);
    let side = |tag: ChangeTag, role: Role| {
        let mut lines: Vec<Vec<Seg>> = vec![Vec::new()];
        for change in diff.iter_all_changes().filter(|change| [tag, ChangeTag::Equal].contains(&change.tag()))
        {
            let changed = change.tag() == tag;
            for (at, text) in change.value().split('\n').enumerate() {
                if at > 0 {
                    lines.push(Vec::new());
                }
                if text.is_empty() {
                    continue;
                }
                let seg = if changed {
                    Seg::new(text, role).with(Modifier::BOLD)
                } else {
                    Seg::new(text, Role::Text)
                };
                if let Some(line) = lines.last_mut() {
                    line.push(seg);
                }
            }
        }
        lines
    };
    (side(ChangeTag::Delete, Role::DiffDel), side(ChangeTag::Insert, Role::DiffAdd))
}

/// Returns the changes of a diff in one column, or those of reverting it.
pub fn changed_lines(hunks: &[Hunk], width: u16, reversed: bool) -> Vec<RichLine> {
    let mut changes = Vec::new();
    for hunk in hunks {
        let (mut old_start, mut new_start) = (hunk.old_start, hunk.new_start);
        for part in parts(hunk) {
            let (old, new) = match part {
                HunkPart::Same(_) => {
                    (old_start, new_start) = (old_start + 1, new_start + 1);
                    continue;
                }
                HunkPart::Changed(old, new) => (old, new),
            };
            let (removed, added) = if reversed { (&new, &old) } else { (&old, &new) };
            let removed = removed.iter().map(|text| HunkLine::Removed((*text).to_owned()));
            let lines = removed.chain(added.iter().map(|text| HunkLine::Added((*text).to_owned()))).collect();
            let (from, to) = if reversed { (new_start, old_start) } else { (old_start, new_start) };
            changes.push(Hunk { old_start: from, new_start: to, lines });
            (old_start, new_start) = (old_start + old.len(), new_start + new.len());
        }
    }
    let one = |row| match row {
        DiffRow::One(line) => line,
        DiffRow::Two(left, right) => left.or(right).unwrap_or_default(),
    };
    rows(&changes, width, false).into_iter().map(one).collect()
}

/// Counts the words that a diff adds and removes.
pub fn changed_words(hunks: &[Hunk]) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    for part in hunks.iter().flat_map(parts) {
        if let HunkPart::Changed(old, new) = part {
            let (old, new) = (old.join("\n"), new.join("\n"));
            let words = |text: &str| usize::from(text.chars().any(char::is_alphanumeric));
            for change in TextDiff::from_words(&old, &new).iter_all_changes() {
                match change.tag() {
                    ChangeTag::Insert => added += words(change.value()),
                    ChangeTag::Delete => removed += words(change.value()),
                    ChangeTag::Equal => {}
                }
            }
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk() -> Hunk {
        Hunk {
            old_start: 2,
            new_start: 2,
            lines: vec![
                HunkLine::Context("name: a".to_owned()),
                HunkLine::Removed("description: Reads old files.".to_owned()),
                HunkLine::Added("description: Reads new files.".to_owned()),
                HunkLine::Added("tags: [x]".to_owned()),
            ],
        }
    }

    #[test]
    fn two_columns_align_and_mark_the_changed_words() {
        let rows = rows(&[hunk()], 80, true);
        assert_eq!(rows.len(), 3);
        let DiffRow::Two(Some(old), Some(new)) = &rows[1] else { panic!("{rows:?}") };
        assert_eq!(
            (old.plain_text().as_str(), new.plain_text().as_str()),
            ("  3 - description: Reads old files.", "  3 + description: Reads new files.")
        );
        let marked = |line: &RichLine, role: Role| {
            let segs = line.segs.iter().filter(|seg| seg.role == role && seg.plus.contains(Modifier::BOLD));
            segs.map(|seg| seg.text.clone()).collect::<String>()
        };
        assert_eq!(
            (marked(old, Role::DiffDel), marked(new, Role::DiffAdd)),
            ("old".to_owned(), "new".to_owned())
        );
        assert!(matches!(&rows[2], DiffRow::Two(None, Some(line)) if line.plain_text() == "  4 + tags: [x]"));
    }

    #[test]
    fn white_space_of_both_sides_is_exact() {
        let hunk = Hunk {
            old_start: 1,
            new_start: 1,
            lines: vec![
                HunkLine::Context("  role: procedure".to_owned()),
                HunkLine::Removed("3. Report  the counts".to_owned()),
                HunkLine::Added("   3. Report the\tcounts  ".to_owned()),
            ],
        };
        let expected = [
            "  1     role: procedure",
            "  2 - 3. Report  the counts",
            "  2 +    3. Report the␉counts⟨U+0020⟩⟨U+0020⟩",
        ];
        let split = rows(std::slice::from_ref(&hunk), 120, true);
        let split: Vec<(String, String)> = split
            .iter()
            .map(|row| match row {
                DiffRow::Two(Some(left), Some(right)) => (left.plain_text(), right.plain_text()),
                other => panic!("{other:?}"),
            })
            .collect();
        let sides = [(expected[0], expected[0]), (expected[1], expected[2])];
        let sides = sides.map(|(left, right)| (left.to_owned(), right.to_owned()));
        assert_eq!(split, sides);
        let changed: Vec<String> =
            changed_lines(&[hunk], 80, false).iter().map(RichLine::plain_text).collect();
        assert_eq!(changed, [expected[1], expected[2]]);
    }

    #[test]
    fn spaces_at_the_break_of_a_line_are_visible() {
        let line = HunkLine::Added("one two   three".to_owned());
        let hunk = Hunk { old_start: 1, new_start: 1, lines: vec![line] };
        let lines = changed_lines(&[hunk], 8 + MARGIN, false);
        let text: Vec<String> = lines.iter().map(RichLine::plain_text).collect();
        assert_eq!(text, ["  1 + one two ", "    +   three"]);
    }

    #[test]
    fn one_column_has_the_old_lines_first() {
        let rows = rows(&[hunk()], 40, false);
        let text: Vec<String> = rows
            .iter()
            .map(|row| match row {
                DiffRow::One(line) => line.plain_text(),
                two @ DiffRow::Two(..) => panic!("{two:?}"),
            })
            .collect();
        assert_eq!(
            text,
            [
                "  2   name: a",
                "  3 - description: Reads old files.",
                "  3 + description: Reads new files.",
                "  4 + tags: [x]"
            ]
        );
        assert_eq!(changed_words(&[hunk()]), (3, 1));
    }
}
