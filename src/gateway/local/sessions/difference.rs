//! What differs between two calls, line by line: exact also where a catalogue of thousands shrinks to a few entries.

use std::collections::HashMap;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::gateway::DiffLine;

/// Lines of an unchanged stretch that a difference keeps on either side of a change.
const CONTEXT: usize = 3;
/// Up to so many lines in both texts are compared as they are; larger ones entry by entry.
const PLAIN: usize = 2_000;
/// Stretches between two entries that have little in common are not compared for longer than this: what is not
/// matched by then counts as gone and new.
const PATIENCE: Duration = Duration::from_millis(100);

/// The stretch of two texts in which they differ, with the lines that are shown around it: a catalogue of thousands
/// is the same in most calls, and needs no more than a comparison of bytes.
fn changed<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    if before == after {
        return ("", "");
    }
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let start = lines_back(&before.as_bytes()[..same], CONTEXT);
    let (b, a) = (&before.as_bytes()[same..], &after.as_bytes()[same..]);
    let same_end = b.iter().rev().zip(a.iter().rev()).take_while(|(b, a)| b == a).count();
    let tail = &before.as_bytes()[before.len() - same_end..];
    // Whole lines of the common end that are not shown. The line in which it begins may be a changed one.
    let shown =
        tail.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).nth(CONTEXT);
    let left = shown.map_or(0, |shown| tail.len() - shown);
    (&before[start..before.len() - left], &after[start..after.len() - left])
}

/// Where the line `count` lines before the end of this text begins.
fn lines_back(text: &[u8], count: usize) -> usize {
    text.iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .nth(count)
        .unwrap_or(0)
}

/// Line by line, with a few unchanged lines around each change; empty where nothing differs.
pub(super) fn difference(before: &str, after: &str) -> Vec<DiffLine> {
    let (before, after) = changed(before, after);
    let mut lines = Vec::new();
    if before.lines().count() + after.lines().count() <= PLAIN {
        compare(before, after, &mut lines);
    } else {
        compare_entries(&pieces(before), &pieces(after), &mut lines);
    }
    with_context(lines)
}

/// A stretch of a composed text: an entry of the catalogue with its name, or a line.
#[derive(Clone, Copy)]
struct Piece<'a> {
    name: Option<&'a str>,
    text: &'a str,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    const END: &str = "</skill>\n";
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let entry = rest.strip_prefix("<skill>\n<name>").and_then(|inside| {
            let (name, _) = inside.split_once("</name>\n")?;
            let end = rest.find(END)? + END.len();
            Some(Piece { name: Some(name), text: &rest[..end] })
        });
        let piece = entry.unwrap_or_else(|| {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            Piece { name: None, text: &rest[..end] }
        });
        rest = &rest[piece.text.len()..];
        out.push(piece);
    }
    out
}

/// Entries of one name belong together; what stands between two such pairs is compared by itself.
fn compare_entries(before: &[Piece<'_>], after: &[Piece<'_>], out: &mut Vec<DiffLine>) {
    let places: HashMap<&str, usize> =
        before.iter().enumerate().filter_map(|(at, piece)| Some((piece.name?, at))).collect();
    let pairs: Vec<(usize, usize)> =
        after.iter().enumerate().filter_map(|(at, piece)| Some((*places.get(piece.name?)?, at))).collect();
    let joined = |pieces: &[Piece<'_>]| pieces.iter().map(|piece| piece.text).collect::<String>();
    let (mut from, mut to) = (0, 0);
    for (left, right) in in_order(&pairs) {
        compare(&joined(&before[from..left]), &joined(&after[to..right]), out);
        compare(before[left].text, after[right].text, out);
        (from, to) = (left + 1, right + 1);
    }
    compare(&joined(&before[from..]), &joined(&after[to..]), out);
}

/// The most pairs that stand in the same order on both sides (the longest increasing subsequence of the first places).
fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]` is the pair with which the best chain of n + 1 pairs ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (left, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *left);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(here) = at {
        chain.push(pairs[here]);
        at = before[here];
    }
    chain.reverse();
    chain
}

fn compare(before: &str, after: &str, out: &mut Vec<DiffLine>) {
    if before == after {
        let lines = before.split_inclusive('\n').map(|line| line.trim_end_matches('\n'));
        out.extend(lines.map(|line| DiffLine::Same(line.to_owned())));
        return;
    }
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    for change in diff.iter_all_changes() {
        let text = change.value().trim_end_matches('\n').to_owned();
        out.push(match change.tag() {
            ChangeTag::Equal => DiffLine::Same(text),
            ChangeTag::Insert => DiffLine::Added(text),
            ChangeTag::Delete => DiffLine::Removed(text),
        });
    }
}

/// Without the unchanged lines that are far from any change.
fn with_context(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let mut near = vec![false; lines.len()];
    for at in 0..lines.len() {
        if !matches!(lines[at], DiffLine::Same(_)) {
            let end = (at + CONTEXT + 1).min(lines.len());
            near[at.saturating_sub(CONTEXT)..end].fill(true);
        }
    }
    lines.into_iter().zip(near).filter(|(_, near)| *near).map(|(line, _)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The difference over the whole texts.
    fn plainly(before: &str, after: &str) -> Vec<DiffLine> {
        let diff = TextDiff::from_lines(before, after);
        let mut lines = Vec::new();
        for group in diff.grouped_ops(CONTEXT) {
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let text = change.value().trim_end_matches('\n').to_owned();
                lines.push(match change.tag() {
                    ChangeTag::Equal => DiffLine::Same(text),
                    ChangeTag::Insert => DiffLine::Added(text),
                    ChangeTag::Delete => DiffLine::Removed(text),
                });
            }
        }
        lines
    }

    #[test]
    fn a_difference_is_the_same_whether_or_not_what_is_equal_was_looked_at() {
        let numbered = |n: usize| (0..n).map(|at| format!("line {at}\n")).collect::<String>();
        let whole = numbered(40);
        let without = whole.replace("line 20\n", "");
        let other = whole.replace("line 20\n", "line zwei – 2\n");
        let twice = whole.replace("line 5\n", "new\n").replace("line 35\n", "new too\n");
        let begins = format!("first\n{whole}");
        let ends = format!("{whole}last");
        for (before, after) in [
            (&whole, &whole),
            (&whole, &without),
            (&without, &whole),
            (&whole, &other),
            (&whole, &twice),
            (&whole, &begins),
            (&begins, &whole),
            (&whole, &ends),
            (&ends, &whole),
            (&String::new(), &whole),
            (&whole, &String::new()),
        ] {
            assert_eq!(difference(before, after), plainly(before, after), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_catalogue_that_shrinks_is_told_entry_by_entry() {
        let entry = |at: usize, description: &str| {
            format!("<skill>\n<name>skill-{at}</name>\n<description>{description}</description>\n</skill>\n")
        };
        let list = |entries: String| format!("rules\n<available_skills>\n{entries}</available_skills>\n");
        let before = list((0..3_000).map(|at| entry(at, &format!("Does {at}."))).collect());
        let after = list((0..3_000).filter(|at| at % 20 == 7).map(|at| entry(at, "")).collect());
        let diff = difference(&before, &after);
        let gone = |line: &DiffLine| match line {
            DiffLine::Removed(text) => Some(text.clone()),
            _ => None,
        };
        let removed: Vec<String> = diff.iter().filter_map(gone).collect();
        assert_eq!(removed.iter().filter(|line| line.starts_with("<name>")).count(), 2_850);
        let new = |line: &DiffLine| matches!(line, DiffLine::Added(_));
        let came = |line: &DiffLine| match line {
            DiffLine::Added(text) if text.starts_with("<name>") => Some(()),
            _ => None,
        };
        assert_eq!((diff.iter().filter_map(came).count(), diff.iter().filter(|l| new(l)).count()), (0, 150));
        // Applied, it gives the new text: what is left out is the same in both.
        let added: Vec<&DiffLine> = diff.iter().filter(|line| new(line)).collect();
        assert!(added.iter().all(|line| **line == DiffLine::Added("<description></description>".to_owned())));
    }
}
