//! Suppression of findings: `skills-lint: ignore RULE: reason` in a comment applies to the line of the comment and the
//! next one, `skills-lint: ignore-file RULE: reason` to the complete file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::rules;
use crate::Finding;
use crate::finding_builder::{Notes, slice};

/// Start of a comment for the linter.
const MARK: &str = "skills-lint:";

/// A finding that a comment suppresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    pub finding: Finding,
    /// The reason in the comment.
    pub reason: String,
}

/// A comment for the linter.
struct Comment<'a> {
    line: u32,
    at: std::ops::Range<usize>,
    rule: &'a str,
    reason: &'a str,
    of_file: bool,
    used: bool,
}

impl Comment<'_> {
    /// Returns the lines to which the comment applies; `None` is the complete file.
    fn lines(&self) -> [Option<u32>; 2] {
        if self.of_file { [None, None] } else { [Some(self.line), Some(self.line.saturating_add(1))] }
    }
}

/// Returns a function that returns whether a comment of a file ignores a rule at an offset.
pub(super) fn is_ignored(source: &str) -> impl Fn(&rules::Rule, usize) -> bool {
    let mut comments = comments(source);
    comments.retain(|comment| !comment.reason.is_empty());
    let covered: HashSet<(&str, Option<u32>)> =
        comments.iter().flat_map(|comment| comment.lines().map(|line| (comment.rule, line))).collect();
    let is_used = !covered.is_empty();
    let line_ends: Vec<usize> =
        source.match_indices('\n').map(|(at, _)| at).take_while(|_| is_used).collect();
    move |rule, offset| {
        let line = line_ends.partition_point(|end| *end < offset) + 1;
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        rule.can_be_ignored()
            && [None, Some(line)].into_iter().any(|line| covered.contains(&(rule.code, line)))
    }
}

/// Splits `findings` into the remaining and the ignored ones by the comments of one file, and adds findings about the
/// comments themselves. Findings of other files remain.
pub fn ignore(findings: Vec<Finding>, file: &Path, source: &str) -> (Vec<Finding>, Vec<Ignored>) {
    let mut comments = comments(source);
    if comments.is_empty() {
        return (findings, Vec::new());
    }
    let mut notes = Notes::new(file, source);
    comments.retain(|comment| {
        let at = comment.at.clone();
        match rules::by_code(comment.rule) {
            None => {
                let message = format!("unknown rule `{}`", comment.rule);
                notes.add(&rules::IGNORE_INVALID, None, at, message);
            }
            Some(rule) if !rule.can_be_ignored() => {
                let message = format!("`{}` cannot be ignored here", comment.rule);
                notes.add(&rules::IGNORE_INVALID, None, at, message);
            }
            Some(_) if comment.reason.is_empty() => {
                let message = format!("`{}` is ignored without a reason", comment.rule);
                notes.add(&rules::IGNORE_WITHOUT_REASON, None, at, message);
            }
            Some(_) => return true,
        }
        false
    });
    let mut covering: HashMap<(&str, Option<u32>), usize> = HashMap::new();
    for (index, comment) in comments.iter().enumerate() {
        for line in comment.lines() {
            covering.entry((comment.rule, line)).or_insert(index);
        }
    }
    let (mut remaining, mut ignored) = (Vec::new(), Vec::new());
    for finding in findings {
        let line = finding.span.map(|span| span.line);
        let first = [None, line]
            .into_iter()
            .filter_map(|line| covering.get(&(finding.code.as_str(), line)))
            .min()
            .copied();
        let comment = first.filter(|_| finding.file == file).and_then(|index| comments.get_mut(index));
        match comment {
            Some(comment) => {
                comment.used = true;
                ignored.push(Ignored { finding, reason: comment.reason.to_owned() });
            }
            None => remaining.push(finding),
        }
    }
    for comment in comments.iter().filter(|comment| !comment.used) {
        let message = format!("no finding of `{}` is ignored by this comment", comment.rule);
        notes.add(&rules::IGNORE_UNUSED, None, comment.at.clone(), message);
    }
    remaining.extend(notes.finish());
    remaining.sort_by_key(|finding| (finding.file != file, finding.span.map(|span| span.offset)));
    (remaining, ignored)
}

/// Returns the linter comments of a file: HTML comments in a body, `#` in YAML. A comment in a code span is plain
/// text.
fn comments(source: &str) -> Vec<Comment<'_>> {
    let mut out = Vec::new();
    let mut from = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let start = from;
        from += line.len();
        let Some(mark) = line.find(MARK) else { continue };
        let before = slice(line, ..mark).trim_end();
        let is_html = before.ends_with("<!--");
        if !is_html && !before.ends_with('#') {
            continue;
        }
        let body = slice(line, mark + MARK.len()..);
        let body = if is_html { body.split("-->").next().unwrap_or_default() } else { body };
        let text = body.trim();
        let (of_file, text) = match (text.strip_prefix("ignore-file"), text.strip_prefix("ignore")) {
            (Some(rest), _) => (true, rest.trim()),
            (None, Some(rest)) => (false, rest.trim()),
            (None, None) => (false, text),
        };
        let (rule, reason) = text.split_once(':').unwrap_or((text, ""));
        out.push(Comment {
            line: u32::try_from(number + 1).unwrap_or(u32::MAX),
            at: start + mark..start + mark + MARK.len() + body.trim_end().len(),
            rule: rule.trim(),
            reason: reason.trim(),
            of_file,
            used: false,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(source: &str) -> (Vec<String>, Vec<(String, String)>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes/SKILL.md");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(path.with_file_name("other.md"), "").unwrap();
        std::fs::write(&path, source).unwrap();
        let skill = crate::read_bundle(&path).unwrap();
        let (remaining, ignored) =
            ignore(super::super::bundle(&skill, source), Path::new("SKILL.md"), source);
        (
            remaining.into_iter().map(|finding| finding.code).collect(),
            ignored.into_iter().map(|ignored| (ignored.finding.code, ignored.reason)).collect(),
        )
    }

    const HEAD: &str = "---\nname: notes\ndescription: Writes meeting notes. Use when notes are requested.\n";

    #[test]
    fn a_comment_ignores_its_line_and_the_next() {
        let source = format!(
            "{HEAD}---\n<!-- skills-lint: ignore broken-link: made at install time -->\n[a](a.md)\n\n[b](b.md)\n"
        );
        let (remaining, ignored) = findings(&source);
        assert_eq!(remaining, ["broken-link"]);
        assert_eq!(ignored, [("broken-link".to_owned(), "made at install time".to_owned())]);
    }

    #[test]
    fn comments_apply_to_each_link_of_a_lone_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes/SKILL.md");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let comment = "<!-- skills-lint: ignore broken-link: made at install time -->";
        let source =
            format!("{HEAD}---\n{comment}\n[a](a.md)\n\n{comment}\n[b](b.md)\n\n[c](c.md)\n\n[d](d.md)\n");
        std::fs::write(&path, &source).unwrap();
        let skill = crate::read_bundle(&path).unwrap();
        let all = super::super::bundle(&skill, &source);
        let (remaining, ignored) = ignore(all, Path::new("SKILL.md"), &source);
        let codes: Vec<_> = remaining.into_iter().map(|finding| finding.code).collect();
        assert_eq!((codes, ignored.len()), (vec!["resources-missing".to_owned()], 2));
    }

    #[test]
    fn comment_can_apply_to_the_file_and_be_in_yaml() {
        let source = format!(
            "{HEAD}# skills-lint: ignore-file broken-link: the files come with the plugin\n---\n[a](a.md)\n\n\n[b](b.md)\n"
        );
        let (remaining, ignored) = findings(&source);
        assert_eq!((remaining.len(), ignored.len()), (0, 2), "{remaining:?}");
    }

    #[test]
    fn a_comment_needs_a_reason_a_rule_and_something_to_ignore() {
        for (comment, code) in [
            ("ignore broken-link", "ignore-without-reason"),
            ("ignore brokn-link: x", "ignore-invalid"),
            ("ignore smuggled-text: x", "ignore-invalid"),
            ("ignore crlf: x", "ignore-unused"),
        ] {
            let source = format!("{HEAD}---\n<!-- skills-lint: {comment} -->\n[a](a.md)\n");
            let (remaining, ignored) = findings(&source);
            assert_eq!(ignored, [], "{comment}");
            assert!(
                remaining.contains(&code.to_owned()) && remaining.contains(&"broken-link".to_owned()),
                "{comment}: {remaining:?}"
            );
        }
    }
}
