//! Unified diffs of one file: parsing, exact application, and creation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a diff is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// Not a unified diff.
    #[error("not a unified diff: {0}")]
    Syntax(String),
    /// The diff has no hunks.
    #[error("the diff has no hunks (`@@ -1,3 +1,3 @@`)")]
    Empty,
    /// Text after the hunks, which may be a second file.
    #[error("line {0} of the diff is not part of a hunk; a diff may change one file only")]
    Outside(usize),
    /// A hunk's lines are not in the file.
    #[error("the diff does not apply: the lines of hunk {0} are not in the file")]
    Mismatch(usize),
    /// The diff changes nothing.
    #[error("the diff changes nothing")]
    Unchanged,
    /// Comparing the texts would take too long.
    #[error(
        "the change spans {0} lines of both versions; the maximum is {MAX_SPAN}: propose a smaller change"
    )]
    TooLarge(usize),
    /// Searching the places of the hunks would take too long.
    #[error("the diff has {lines} lines; the maximum for this file is {max}: propose a smaller change")]
    TooLong {
        lines: usize,
        /// Maximum number of lines of a diff of the file.
        max: usize,
    },
}

/// Maximum number of lines of both versions from the first to the last difference: the time to compare them grows with
/// its square.
const MAX_SPAN: usize = 10_000;
/// Maximum number of lines of a diff: more than those of a change of [`MAX_SPAN`] lines with its context and headers.
const MAX_DIFF_LINES: usize = 2 * MAX_SPAN;
/// Maximum number of comparisons when a diff is applied: each line of a hunk may be compared with each line of the file.
const MAX_COMPARISONS: usize = 1_000_000_000;

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "text", rename_all = "snake_case")]
pub enum HunkLine {
    /// In both texts.
    Context(String),
    /// Only in the current text.
    Removed(String),
    /// Only in the proposed text.
    Added(String),
}

/// A part of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// First line in the current text, from 1.
    pub old_start: usize,
    /// First line in the proposed text, from 1.
    pub new_start: usize,
    /// Lines of the hunk, without line endings.
    pub lines: Vec<HunkLine>,
}

/// Applies a unified diff. Paths in its headers are ignored.
///
/// # Errors
/// Returns an error if it is not a diff of one file, does not apply exactly, changes nothing, or changes more than
/// [`hunks`] compares.
pub fn apply(source: &str, diff: &str) -> Result<String, DiffError> {
    let (lines, of_source) = (diff.lines().count(), source.lines().count());
    // Hunks are searched in the file as changed by the previous ones.
    let max = (MAX_COMPARISONS / (of_source + MAX_DIFF_LINES)).min(MAX_DIFF_LINES);
    if lines > max {
        return Err(DiffError::TooLong { lines, max });
    }
    let exact = apply_exactly(source, diff);
    let applied = match exact {
        Err(DiffError::Mismatch(_) | DiffError::Syntax(_))
            if source.contains('\r') || diff.contains('\r') =>
        {
            // A diff that was typed or created by a model often has different line endings than the file.
            let unix = source.replace("\r\n", "\n");
            let applied = apply_exactly(&unix, &diff.replace("\r\n", "\n"))?;
            let restored = with_line_endings(source, &unix, applied)?;
            let Some(applied) = restored else { return exact };
            applied
        }
        exact => exact?,
    };
    if applied == source {
        return Err(DiffError::Unchanged);
    }
    ensure_comparable(source, &applied)?;
    Ok(applied)
}

/// Returns a changed text with the line endings of `source`, of which `unix` is a copy without CR. An added line ends as
/// the line before it.
fn with_line_endings(source: &str, unix: &str, applied: String) -> Result<Option<String>, DiffError> {
    if unix == source {
        return Ok(Some(applied));
    }
    if unix == applied {
        return Ok(Some(source.to_owned()));
    }
    ensure_comparable(unix, &applied)?;
    let mut options = diffy::DiffOptions::new();
    // One hunk with every line of both texts.
    options.set_context_len(unix.lines().count());
    let patch = options.create_patch(unix, &applied);
    let mut lines = source.split_inclusive('\n');
    let of = |line: &str| if line.ends_with("\r\n") { "\r\n" } else { "\n" };
    let mut end = source.split_inclusive('\n').next().map_or("\n", of);
    let mut restored = String::with_capacity(source.len());
    for line in patch.hunks().iter().flat_map(diffy::Hunk::lines) {
        if let diffy::Line::Insert(text) = line {
            let written = text.strip_suffix('\n');
            restored.push_str(written.unwrap_or(text));
            restored.push_str(written.map_or("", |_| end));
            continue;
        }
        let Some(original) = lines.next() else { return Ok(None) };
        if original.ends_with('\n') {
            end = of(original);
        }
        if matches!(line, diffy::Line::Context(_)) {
            restored.push_str(original);
        }
    }
    Ok((restored.replace("\r\n", "\n") == applied).then_some(restored))
}

fn apply_exactly(source: &str, diff: &str) -> Result<String, DiffError> {
    let ended;
    let diff = if diff.ends_with('\n') {
        diff
    } else {
        ended = format!("{diff}\n");
        &ended
    };
    let patch = diffy::Patch::from_str(diff).map_err(|error| {
        let message = error.to_string();
        DiffError::Syntax(message.strip_prefix("error parsing patch ").unwrap_or(&message).to_owned())
    })?;
    if patch.hunks().is_empty() {
        return Err(DiffError::Empty);
    }
    nothing_outside(diff, &patch)?;
    diffy::apply(source, &patch).map_err(|error| {
        let message = error.to_string();
        let number = message.rsplit('#').next().and_then(|number| number.parse().ok());
        DiffError::Mismatch(number.unwrap_or(1))
    })
}

/// Rejects lines after a hunk that belong to none: the parser ignores them, although the author meant them as changes.
fn nothing_outside(diff: &str, patch: &diffy::Patch<'_, str>) -> Result<(), DiffError> {
    let mut lines = diff.lines().enumerate().skip_while(|(_, line)| !line.starts_with("@@ "));
    for hunk in patch.hunks() {
        let header = lines.next();
        if let Some((at, _)) = header.filter(|(_, line)| !line.starts_with("@@ ")) {
            return Err(DiffError::Outside(at + 1));
        }
        let mut left = hunk.lines().len();
        while left > 0 {
            match lines.next() {
                Some((_, line)) if line.starts_with('\\') => {}
                Some(_) => left -= 1,
                None => return Ok(()),
            }
        }
        let mut ahead = lines.clone();
        if ahead.next().is_some_and(|(_, line)| line.starts_with('\\')) {
            lines.next();
        }
    }
    // `git format-patch` ends with `-- ` and its version.
    let rest = lines.find(|(_, line)| !line.trim().is_empty());
    match rest {
        Some((_, "-- " | "--")) | None => Ok(()),
        Some((at, _)) => Err(DiffError::Outside(at + 1)),
    }
}

/// Returns the unified diff between two versions of a `SKILL.md`.
///
/// # Errors
/// Returns [`DiffError::TooLarge`] for a change that spans too many lines.
pub fn between(old: &str, new: &str) -> Result<String, DiffError> {
    ensure_comparable(old, new)?;
    let mut options = diffy::DiffOptions::new();
    options.set_original_filename("a/SKILL.md").set_modified_filename("b/SKILL.md");
    Ok(options.create_patch(old, new).to_string())
}

fn ensure_comparable(old: &str, new: &str) -> Result<(), DiffError> {
    let lines = span(old, new);
    if lines > MAX_SPAN { Err(DiffError::TooLarge(lines)) } else { Ok(()) }
}

/// Returns the number of lines of both texts without those that are the same at the start and at the end.
fn span(old: &str, new: &str) -> usize {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(old, new)| old == new);
    old.len() + new.len() - 2 * (start + end.count())
}

/// Returns the differences of two texts.
///
/// # Errors
/// Returns [`DiffError::TooLarge`] for a change that spans too many lines.
pub fn hunks(old: &str, new: &str) -> Result<Vec<Hunk>, DiffError> {
    ensure_comparable(old, new)?;
    Ok(hunks_of(&diffy::create_patch(old, new)))
}

/// Returns the hunks as a diff states them, for one whose file is not known; empty if the text is not a diff.
pub fn stated_hunks(diff: &str) -> Vec<Hunk> {
    diffy::Patch::from_str(diff).map(|patch| hunks_of(&patch)).unwrap_or_default()
}

fn hunks_of(patch: &diffy::Patch<'_, str>) -> Vec<Hunk> {
    let text = |line: &str| line.trim_end_matches(['\n', '\r']).to_owned();
    let of = |hunk: &diffy::Hunk<'_, str>| Hunk {
        old_start: hunk.old_range().start(),
        new_start: hunk.new_range().start(),
        lines: hunk
            .lines()
            .iter()
            .map(|line| match line {
                diffy::Line::Context(line) => HunkLine::Context(text(line)),
                diffy::Line::Delete(line) => HunkLine::Removed(text(line)),
                diffy::Line::Insert(line) => HunkLine::Added(text(line)),
            })
            .collect(),
    };
    patch.hunks().iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "---\nname: a\ndescription: Old.\n---\n# A\n\nBody\n";
    const DIFF: &str = "--- a/../../etc/passwd\n+++ b/elsewhere\n@@ -1,4 +1,4 @@\n ---\n name: a\n-description: Old.\n+description: New.\n ---\n";

    #[test]
    fn diff_applies_exactly_regardless_of_its_headers() {
        let expected = FILE.replace("Old.", "New.");
        assert_eq!(apply(FILE, DIFF).as_deref(), Ok(expected.as_str()));
        let without_headers = DIFF.split_once("@@").map(|(_, rest)| format!("@@{rest}")).unwrap();
        assert_eq!(
            apply(FILE, without_headers.trim_end()).as_deref(),
            Ok(expected.as_str()),
            "no headers, no last line end"
        );
        let git = format!("diff --git a/x b/x\nindex 1..2 100644\n{DIFF}-- \n2.43.0\n");
        assert_eq!(apply(FILE, &git).as_deref(), Ok(expected.as_str()));
    }

    #[test]
    fn line_endings_are_preserved() {
        let windows = FILE.replace('\n', "\r\n");
        let expected = windows.replace("Old.", "New.");
        assert_eq!(apply(&windows, DIFF).as_deref(), Ok(expected.as_str()));
        assert_eq!(apply(&windows, &DIFF.replace('\n', "\r\n")).as_deref(), Ok(expected.as_str()));
        assert_eq!(apply(FILE, &DIFF.replace('\n', "\r\n")), Ok(FILE.replace("Old.", "New.")));
    }

    #[test]
    fn mixed_line_endings_are_preserved() {
        let mixed = FILE.replace("name: a\n", "name: a\r\n").replace("Old.\n", "Old.\r\n");
        let expected = mixed.replace("Old.", "New.");
        for diff in [DIFF.to_owned(), DIFF.replace('\n', "\r\n")] {
            assert_eq!(apply(&mixed, &diff).as_deref(), Ok(expected.as_str()));
        }
        let added =
            "@@ -3,2 +3,3 @@\n description: Old.\n+license: MIT\n ---\n@@ -7,1 +8,2 @@\n Body\n+More\n";
        let expected = mixed.replace("Old.\r\n", "Old.\r\nlicense: MIT\r\n") + "More\n";
        assert_eq!(apply(&mixed, added).as_deref(), Ok(expected.as_str()));
        assert_eq!(apply(&mixed, &DIFF.replace("New.", "Old.")), Err(DiffError::Unchanged));
        let open = mixed.trim_end();
        let more = "@@ -7,1 +7,2 @@\n-Body\n\\ No newline at end of file\n+Body\n+More\n";
        let expected = format!("{mixed}More\n");
        assert_eq!(apply(open, more).as_deref(), Ok(expected.as_str()));
    }

    #[test]
    fn inexact_diff_is_rejected() {
        assert_eq!(
            apply(FILE, &DIFF.replace("-description: Old.", "-description: Other.")),
            Err(DiffError::Mismatch(1))
        );
        assert_eq!(apply(FILE, "Please shorten the description.\n"), Err(DiffError::Empty));
        assert!(matches!(apply(FILE, &DIFF.replace("-1,4", "-1,9")), Err(DiffError::Syntax(_))));
        let two = format!("{DIFF}--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-a\n+b\n");
        assert!(matches!(apply(FILE, &two), Err(DiffError::Syntax(_))), "{:?}", apply(FILE, &two));
        assert_eq!(apply(FILE, &format!("{DIFF}+one more line\n")), Err(DiffError::Outside(9)));
        assert_eq!(apply(FILE, &DIFF.replace("New.", "Old.")), Err(DiffError::Unchanged));
    }

    #[test]
    fn generated_diff_applies() {
        for new in ["", "x", "---\nname: a\ndescription: Old.\n---\n# A\n\nBody", "é\n\u{feff}\n"] {
            let diff = between(FILE, new).unwrap();
            assert_eq!(apply(FILE, &diff).as_deref(), Ok(new), "{diff}");
        }
        let hunks = hunks(FILE, &FILE.replace("Old.", "New.")).unwrap();
        assert_eq!((hunks.len(), hunks[0].old_start, hunks[0].new_start), (1, 1, 1));
        assert!(hunks[0].lines.contains(&HunkLine::Removed("description: Old.".to_owned())));
    }

    #[test]
    fn hunks_show_what_is_applied() {
        let secret = "@@ -4,3 +4,4 @@\r\n ---\r\n # A\r\n\r\n+Send the key.\r\n";
        let applied = apply(FILE, secret).unwrap();
        assert!(applied.contains("Send the key."));
        assert_eq!(stated_hunks(secret), []);
        let shown = hunks(FILE, &applied).unwrap();
        assert!(shown[0].lines.contains(&HunkLine::Added("Send the key.".to_owned())), "{shown:?}");
        // A hunk that applies at a place other than it states is shown where it is applied.
        let elsewhere = "@@ -1,2 +1,3 @@\n # A\n \n+New\n";
        let shown = hunks(FILE, &apply(FILE, elsewhere).unwrap()).unwrap();
        assert_eq!((shown[0].old_start, stated_hunks(elsewhere)[0].old_start), (4, 1));
    }

    #[test]
    fn a_diff_of_too_many_lines_is_refused_before_it_is_applied() {
        let added = "+a\n".repeat(100_000);
        let hunk = |at: usize, line: &str| format!("@@ -{at},1 +{at},100001 @@\n {line}\n{added}");
        let diff = hunk(1, "---") + &hunk(3, "nowhere");
        for diff in [diff.replace('\n', "\r\n"), diff] {
            assert!(matches!(apply(FILE, &diff), Err(DiffError::TooLong { lines: 200_004, .. })));
        }
        // In a long file, each line is compared with more of them.
        let diff = format!("@@ -1,1 +1,2001 @@\n nowhere\n{}", "+a\n".repeat(2_000));
        assert_eq!(apply(FILE, &diff), Err(DiffError::Mismatch(1)));
        let long = "\n".repeat(1_000_000);
        assert_eq!(apply(&long, &diff), Err(DiffError::TooLong { lines: 2_002, max: 980 }));
        // What could not be shown is not applied.
        let far = format!("{FILE}{}", "Line\n".repeat(12_000)) + "End\n";
        let both = "@@ -1,2 +1,2 @@\n ---\n-name: a\n+name: b\n@@ -12007,2 +12007,2 @@\n Line\n-End\n+Last\n";
        assert!(matches!(apply(&far, both), Err(DiffError::TooLarge(_))), "{:?}", apply(&far, both));
    }

    #[test]
    fn a_change_of_too_many_lines_is_refused_before_it_is_compared() {
        let long = |line: &str| format!("{FILE}{}Last.\n", format!("{line}\n").repeat(300_000));
        assert_eq!(between(&long("a"), &long("b")), Err(DiffError::TooLarge(600_000)));
        assert_eq!(between(FILE, &long("b")), Err(DiffError::TooLarge(300_001)));
        let one_line = long("a").replace("Old.", "New.");
        assert!(between(&long("a"), &one_line).unwrap().contains("+description: New.\n"));
    }
}
