//! Line-based difference between two calls: exact even if a catalog of thousands shrinks to a few entries.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::DiffLine;
use skills_session::{Composed, ComposedPart, PartKind};

/// Number of unchanged context lines on either side of a change.
const CONTEXT: usize = 3;
/// Up to this total number of lines, texts are compared line by line; larger ones entry by entry.
const PLAIN: usize = 2_000;
/// Time limit for comparing the text between two entries that have little in common: what is not matched by then counts
/// as removed and added.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);

/// Returns the range in which two texts differ, with its context lines: a catalog of thousands is the same in most
/// calls, and needs only a comparison of bytes.
fn changed<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    if before == after {
        return ("", "");
    }
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let start = lines_back(&before.as_bytes()[..same], CONTEXT);
    let (b, a) = (&before.as_bytes()[same..], &after.as_bytes()[same..]);
    let same_end = b.iter().rev().zip(a.iter().rev()).take_while(|(b, a)| b == a).count();
    let tail = &before.as_bytes()[before.len() - same_end..];
    // Complete lines of the common suffix outside the context. The line in which the suffix begins may be a changed
    // one.
    let shown =
        tail.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).nth(CONTEXT);
    let left = shown.map_or(0, |shown| tail.len() - shown);
    (&before[start..before.len() - left], &after[start..after.len() - left])
}

/// Returns where the line `count` lines before the end of this text begins.
fn lines_back(text: &[u8], count: usize) -> usize {
    text.iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .nth(count)
        .unwrap_or(0)
}

/// The difference between two calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Difference {
    /// Changed lines with some unchanged context; empty if nothing differs.
    pub lines: Vec<DiffLine>,
    /// Parts that are only reordered: `catalogue`, `bodies`.
    pub reordered: Vec<String>,
}

/// Compares two texts line by line.
pub(super) fn difference(before: &str, after: &str) -> Difference {
    let mut lines = Vec::new();
    let moved = stretch(before, after, Text::Mixed, &mut lines);
    Difference { lines: with_context(lines), reordered: differing_parts(moved, false) }
}

fn differing_parts(catalog: bool, bodies: bool) -> Vec<String> {
    let all = [(catalog, "catalogue"), (bodies, "bodies")];
    all.into_iter().filter(|(moved, _)| *moved).map(|(_, what)| what.to_owned()).collect()
}

/// The kind of a text, for its comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Catalog,
    /// A text without a catalog.
    Plain,
    /// A complete call whose parts are not known.
    Mixed,
}

/// Compares the changed range of two texts; returns whether entries of a catalog are reordered.
fn stretch(before: &str, after: &str, what: Text, lines: &mut Vec<DiffLine>) -> bool {
    let (before, after) = changed(before, after);
    let few = || before.lines().count() + after.lines().count() <= PLAIN;
    if what == Text::Plain || what == Text::Mixed && few() {
        compare(before, after, lines);
        return false;
    }
    let in_lines = what == Text::Catalog;
    compare_entries(&pieces(before, in_lines), &pieces(after, in_lines), lines)
}

/// Returns the parts of a call for comparison, with the catalog as one part.
pub(super) fn coarse(composed: &Composed) -> Vec<ComposedPart> {
    let mut parts: Vec<ComposedPart> = Vec::new();
    for part in &composed.parts {
        let listed = part.kind == PartKind::Available;
        match parts.last_mut() {
            Some(last) if listed && last.kind == PartKind::Available => last.end = part.end,
            _ => parts.push(ComposedPart { skill: part.skill.clone().filter(|_| !listed), ..part.clone() }),
        }
    }
    parts
}

/// Identifies a part in both calls. A body is the same whether it is always part of an agent or was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PartIdentity<'a> {
    Body(&'a str),
    /// Text around the bodies.
    Around(&'a str),
    Other(String),
}

fn known<'a>(part: &'a ComposedPart, text: &'a str) -> PartIdentity<'a> {
    match (part.kind, &part.skill) {
        (PartKind::AgentSkill | PartKind::ActiveSkill, Some(name)) => PartIdentity::Body(name),
        (PartKind::AgentSkill | PartKind::ActiveSkill, None) => PartIdentity::Around(text),
        (kind, _) => PartIdentity::Other(kind.to_string()),
    }
}

/// Compares two calls part by part, so that identical parts never show, wherever they are.
pub(super) fn by_parts(before: (&str, &[ComposedPart]), after: (&str, &[ComposedPart])) -> Difference {
    let split = |(text, parts): (&'_ str, &'_ [ComposedPart])| -> Vec<(ComposedPart, String)> {
        let of = |part: &ComposedPart| text.get(part.start..part.end).unwrap_or_default().to_owned();
        parts.iter().map(|part| (part.clone(), of(part))).collect()
    };
    let (before, after) = (split(before), split(after));
    let places: HashMap<PartIdentity<'_>, usize> =
        before.iter().enumerate().map(|(at, (part, text))| (known(part, text), at)).collect();
    let stays: Vec<Option<usize>> =
        after.iter().map(|(part, text)| places.get(&known(part, text)).copied()).collect();
    let mut gone: Vec<bool> = vec![true; before.len()];
    for at in stays.iter().flatten() {
        gone[*at] = false;
    }
    let mut lines = Vec::new();
    let (mut from, mut catalog, mut bodies, mut furthest) = (0, false, false, 0);
    for ((part, text), stays) in after.iter().zip(&stays) {
        let Some(at) = *stays else {
            lines.extend(text.lines().map(|line| DiffLine::Added(line.to_owned())));
            continue;
        };
        // What was removed before this part is reported before it.
        for (_, text) in
            before.iter().zip(&gone).take(at).skip(from).filter(|(_, gone)| **gone).map(|(p, _)| p)
        {
            lines.extend(text.lines().map(|line| DiffLine::Removed(line.to_owned())));
        }
        from = from.max(at);
        if part.skill.is_some() {
            bodies |= at < furthest;
            furthest = furthest.max(at);
        }
        let was = &before[at].1;
        if was == text {
            lines.extend(edges(text));
        } else {
            let what = if part.kind == PartKind::Available { Text::Catalog } else { Text::Plain };
            catalog |= stretch(was, text, what, &mut lines);
        }
    }
    for (_, text) in before.iter().zip(&gone).skip(from).filter(|(_, gone)| **gone).map(|(p, _)| p) {
        lines.extend(text.lines().map(|line| DiffLine::Removed(line.to_owned())));
    }
    Difference { lines: with_context(lines), reordered: differing_parts(catalog, bodies) }
}

/// Returns the lines of an unchanged part that may be context of a change.
fn edges(text: &str) -> Vec<DiffLine> {
    let count = text.lines().count();
    let near = |(at, _): &(usize, &str)| *at < CONTEXT || *at + CONTEXT >= count;
    text.lines().enumerate().filter(near).map(|(_, line)| DiffLine::Same(line.to_owned())).collect()
}

/// A piece of a composed text: an entry of the catalog with its name, or a line.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub name: Option<&'a str>,
    /// Its complete text.
    pub text: &'a str,
}

/// Beginning of a catalog entry.
const OPEN: &str = "<skill>\n<name>";

/// Splits a text into pieces; with `in_lines`, an entry may be a single line.
pub(super) fn pieces(text: &str, in_lines: bool) -> Vec<Piece<'_>> {
    const END: &str = "</skill>\n";
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let entry = rest.strip_prefix(OPEN).and_then(|inside| {
            let (name, _) = inside.split_once("</name>\n")?;
            let end = rest.find(END)? + END.len();
            Some(Piece { name: Some(name), text: &rest[..end] })
        });
        let part = entry.unwrap_or_else(|| {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let line = &rest[..end];
            let entry = line.strip_prefix("- ").filter(|_| in_lines);
            let name = entry.and_then(|entry| Some(entry.split_once(": ")?.0));
            Piece { name, text: line }
        });
        rest = &rest[part.text.len()..];
        out.push(part);
    }
    out
}

/// Matches entries of the same name, and compares what is between two such pairs separately. A moved entry shows no
/// change; returns whether there is one.
fn compare_entries(before: &[Piece<'_>], after: &[Piece<'_>], out: &mut Vec<DiffLine>) -> bool {
    let places: HashMap<&str, usize> =
        before.iter().enumerate().filter_map(|(at, part)| Some((part.name?, at))).collect();
    let mut seen = HashSet::new();
    let pairs: Vec<(usize, usize)> = after
        .iter()
        .enumerate()
        .filter_map(|(at, part)| Some((*places.get(part.name?)?, at)))
        .filter(|(left, _)| seen.insert(*left))
        .collect();
    let in_place = in_order(&pairs);
    let (mut paired, mut moved_to) = (vec![false; before.len()], HashMap::new());
    for (left, right) in &pairs {
        paired[*left] = true;
        moved_to.insert(*right, *left);
    }
    for (_, right) in &in_place {
        moved_to.remove(right);
    }
    let between = |gone: std::ops::Range<usize>, new: std::ops::Range<usize>, out: &mut Vec<DiffLine>| {
        let old: String = gone.filter(|at| !paired[*at]).map(|at| before[at].text).collect();
        let fresh: String =
            new.clone().filter(|at| !moved_to.contains_key(at)).map(|at| after[at].text).collect();
        compare(&old, &fresh, out);
        for (left, right) in new.filter_map(|at| Some((*moved_to.get(&at)?, at))) {
            if before[left].text != after[right].text {
                compare(before[left].text, after[right].text, out);
            }
        }
    };
    let (mut from, mut to) = (0, 0);
    for (left, right) in in_place {
        between(from..left, to..right, out);
        compare(before[left].text, after[right].text, out);
        (from, to) = (left + 1, right + 1);
    }
    between(from..before.len(), to..after.len(), out);
    !moved_to.is_empty()
}

/// Returns the largest set of pairs in the same order on both sides (the longest increasing subsequence).
fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]` is the last pair of the best chain of n + 1 pairs.
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
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    for change in diff.iter_all_changes() {
        let text = change.value().trim_end_matches('\n').to_owned();
        out.push(match change.tag() {
            ChangeTag::Equal => DiffLine::Same(text),
            ChangeTag::Insert => DiffLine::Added(text),
            ChangeTag::Delete => DiffLine::Removed(text),
        });
    }
}

/// Removes the unchanged lines that are far from any change.
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

    /// Compares the complete texts.
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
    fn skipping_equal_parts_does_not_change_the_difference() {
        let numbered = |n: usize| (0..n).map(|at| format!("line {at}\n")).collect::<String>();
        let full = numbered(40);
        let without = full.replace("line 20\n", "");
        let other = full.replace("line 20\n", "line zwei – 2\n");
        let twice = full.replace("line 5\n", "new\n").replace("line 35\n", "new too\n");
        let begins = format!("first\n{full}");
        let ends = format!("{full}last");
        for (before, after) in [
            (&full, &full),
            (&full, &without),
            (&without, &full),
            (&full, &other),
            (&full, &twice),
            (&full, &begins),
            (&begins, &full),
            (&full, &ends),
            (&ends, &full),
            (&String::new(), &full),
            (&full, &String::new()),
        ] {
            assert_eq!(difference(before, after).lines, plainly(before, after), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_smaller_catalog_is_reported_entry_by_entry() {
        let entry = |at: usize, description: &str| {
            format!("<skill>\n<name>skill-{at}</name>\n<description>{description}</description>\n</skill>\n")
        };
        let list = |entries: String| format!("rules\n<available_skills>\n{entries}</available_skills>\n");
        let before = list((0..3_000).map(|at| entry(at, &format!("Does {at}."))).collect());
        let after = list((0..3_000).filter(|at| at % 20 == 7).map(|at| entry(at, "")).collect());
        let diff = difference(&before, &after).lines;
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
        // Applying it yields the new text: omitted lines are the same in both.
        let added: Vec<&DiffLine> = diff.iter().filter(|line| new(line)).collect();
        assert!(added.iter().all(|line| **line == DiffLine::Added("<description></description>".to_owned())));
    }

    fn call(parts: &[(PartKind, Option<&str>, String)]) -> Composed {
        let mut call = Composed::default();
        for (kind, skill, text) in parts {
            let start = call.text.len();
            call.text.push_str(text);
            let skill = skill.map(str::to_owned);
            call.parts.push(ComposedPart { kind: *kind, skill, start, end: call.text.len() });
        }
        call
    }

    fn made(catalog: &[usize], bodies: &[&str]) -> Composed {
        let mut parts = vec![(PartKind::Rules, None, "# Skills\nrules\n".to_owned())];
        parts.push((PartKind::Available, None, "<available_skills>\n".to_owned()));
        for at in catalog {
            let text = format!(
                "<skill>\n<name>skill-{at}</name>\n<description>Does {at}.</description>\n</skill>\n"
            );
            parts.push((PartKind::Available, Some("skill"), text));
        }
        parts.push((PartKind::Available, None, "</available_skills>\n".to_owned()));
        parts.push((PartKind::ActiveSkill, None, "<active_skills>\n".to_owned()));
        for name in bodies {
            let lines: String =
                (0..400).map(|line| format!("{name} says the same line {}\n", line % 7)).collect();
            let text = format!("<skill name=\"{name}\">\n{lines}</skill>\n");
            parts.push((PartKind::ActiveSkill, Some(name), text));
        }
        parts.push((PartKind::ActiveSkill, None, "</active_skills>\n".to_owned()));
        call(&parts)
    }

    fn differ(before: &Composed, after: &Composed) -> (Vec<String>, Vec<String>) {
        let diff = by_parts((&before.text, &coarse(before)), (&after.text, &coarse(after)));
        let sign = |line: &DiffLine| match line {
            DiffLine::Added(text) => Some(format!("+{text}")),
            DiffLine::Removed(text) => Some(format!("-{text}")),
            DiffLine::Same(_) => None,
        };
        (diff.lines.iter().filter_map(sign).collect(), diff.reordered)
    }

    #[test]
    fn unchanged_bodies_are_not_in_the_difference() {
        let all: Vec<usize> = (0..3_000).collect();
        // The other client has its own order and keeps a few.
        let few: Vec<usize> = (0..3_000).rev().filter(|at| at % 50 == 3).collect();
        let (changes, reordered) = differ(&made(&all, &["pdf", "csv"]), &made(&few, &["pdf", "csv", "xlsx"]));
        let of = |sign: &str| changes.iter().filter(|line| line.starts_with(sign)).count();
        let about = |name: &str| changes.iter().filter(|line| line.contains(&format!("{name} says"))).count();
        assert_eq!((about("pdf"), about("csv"), about("xlsx")), (0, 0, 400));
        assert_eq!(of("+"), 402, "the new body alone");
        assert_eq!(of("-"), (3_000 - 60) * 4, "entries that went, and none that only moved");
        assert_eq!(reordered, ["catalogue"]);
    }

    #[test]
    fn reordered_bodies_are_reported() {
        let (changes, reordered) = differ(&made(&[1, 2], &["pdf", "csv"]), &made(&[1, 2], &["csv", "pdf"]));
        assert!(changes.is_empty(), "{changes:?}");
        assert_eq!(reordered, ["bodies"]);
        let (changes, reordered) = differ(&made(&[1, 2], &["pdf", "csv"]), &made(&[1, 2], &["csv"]));
        assert_eq!((changes.len(), reordered.len()), (402, 0), "one went");
        let (changes, reordered) = differ(&made(&[1, 2], &[]), &made(&[2, 1], &[]));
        assert_eq!((changes.len(), reordered), (0, vec!["catalogue".to_owned()]));
    }
}
