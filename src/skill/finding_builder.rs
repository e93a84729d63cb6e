//! Collects the findings of one file with their positions.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::slice::SliceIndex;

use super::lint::rules::Rule;
use super::{Digest, Finding, Span};

/// Maximum number of findings of one rule about a file: it may contain hundreds of thousands of defects. The further
/// ones have one finding in common.
const MAX_FINDINGS_OF_RULE: usize = 100;

/// The findings of one rule about a file.
struct OfRule {
    help: &'static str,
    count: usize,
    /// Index of the finding about those over the maximum.
    common: Option<usize>,
    /// Identifies the messages of those over the maximum.
    digest: Digest,
}

/// Findings about one file, in the order in which they were added.
pub(super) struct Notes<'a> {
    file: &'a Path,
    /// The file as read.
    pub source: &'a str,
    /// Positions at regular distances in the source; computed for the first finding.
    positions: OnceCell<Vec<Position>>,
    findings: Vec<Finding>,
    rules: HashMap<&'static str, OfRule>,
    /// The finding that was added last, if it is over the maximum of its rule.
    over: Option<Finding>,
}

impl<'a> Notes<'a> {
    /// Creates an empty collection. `file` is relative to the bundle's folder.
    pub fn new(file: &'a Path, source: &'a str) -> Self {
        let (positions, findings, rules) = (OnceCell::new(), Vec::new(), HashMap::new());
        Self { file, source, positions, findings, rules, over: None }
    }

    /// Returns the finding that was added last.
    pub fn last(&mut self) -> Option<&mut Finding> {
        self.over.as_mut().or_else(|| self.findings.last_mut())
    }

    /// Adds a finding at a byte range of the file and returns it for further changes. Those over the maximum of the rule
    /// are only counted.
    pub fn add(
        &mut self,
        rule: &Rule,
        field: Option<&str>,
        at: impl Into<Option<Range<usize>>>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.count_over();
        let of_rule = self.rules.entry(rule.code).or_insert_with(|| OfRule {
            help: rule.help,
            count: 0,
            common: None,
            digest: Digest::of(b""),
        });
        of_rule.count += 1;
        let (is_over, has_place) = (of_rule.count > MAX_FINDINGS_OF_RULE, of_rule.common.is_none());
        let span = at.into().filter(|_| has_place).map(|at| self.span(at));
        let finding = Finding {
            code: rule.code.to_owned(),
            severity: rule.severity,
            field: field.map(str::to_owned),
            file: self.file.to_owned(),
            span,
            message: message.into(),
            help: rule.help.to_owned(),
            fixable: rule.fixable,
        };
        if is_over {
            return self.over.insert(finding);
        }
        let index = self.findings.len();
        self.findings.push(finding);
        &mut self.findings[index]
    }

    /// Adds findings of the same file that are already limited.
    pub fn extend(&mut self, findings: Vec<Finding>) {
        self.count_over();
        self.findings.extend(findings);
    }

    /// Adds a finding over the maximum of its rule to their common one.
    fn count_over(&mut self) {
        let Some(finding) = self.over.take() else { return };
        let Some(of_rule) = self.rules.get_mut(finding.code.as_str()) else { return };
        of_rule.digest = Digest::of(format!("{} {}", of_rule.digest, finding.message).as_bytes());
        if let Some(common) = of_rule.common.and_then(|index| self.findings.get_mut(index)) {
            common.severity = common.severity.max(finding.severity);
        } else {
            of_rule.common = Some(self.findings.len());
            let help = of_rule.help.to_owned();
            self.findings.push(Finding { field: None, help, ..finding });
        }
    }

    /// Computes line and column of a byte range. Offsets inside a character or past the end are moved back.
    pub fn span(&self, at: Range<usize>) -> Span {
        let start = floor(self.source, at.start);
        let end = floor(self.source, at.end).max(start);
        let positions = self.positions.get_or_init(|| positions(self.source));
        let nearest = positions.partition_point(|position| position.offset <= start).saturating_sub(1);
        let nearest = positions.get(nearest).copied().unwrap_or(Position::START);
        let Position { line, column, .. } = nearest.advanced(self.source, start);
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            line: narrow(line),
            column: narrow(column),
            offset: narrow(start),
            length: narrow(end - start),
        }
    }

    /// Returns the findings in the order in which they were added: the last one of a rejected file is the reason.
    pub fn in_order(mut self) -> Vec<Finding> {
        self.count_over();
        for of_rule in self.rules.values() {
            if let Some(common) = of_rule.common.and_then(|index| self.findings.get_mut(index)) {
                let (count, digest) = (of_rule.count - MAX_FINDINGS_OF_RULE, of_rule.digest.to_string());
                let digest = slice(&digest, ..16);
                common.message = format!(
                    "the number of further findings of `{}` is {count} (sha256 {digest})",
                    common.code
                );
            }
        }
        self.findings
    }

    /// Returns the findings sorted by position; those about the complete file come first.
    pub fn finish(self) -> Vec<Finding> {
        let mut findings = self.in_order();
        findings.sort_by_key(|finding| finding.span.map(|span| span.offset));
        findings
    }
}

/// A place in a text; line and column count from one.
#[derive(Debug, Clone, Copy)]
struct Position {
    offset: usize,
    line: usize,
    column: usize,
}

impl Position {
    const START: Self = Self { offset: 0, line: 1, column: 1 };

    /// Returns the position of a later offset.
    fn advanced(self, source: &str, offset: usize) -> Self {
        let passed = slice(source, self.offset..offset);
        let lines = passed.bytes().filter(|&b| b == b'\n').count();
        let (column, rest) =
            passed.rfind('\n').map_or((self.column, passed), |newline| (1, slice(passed, newline + 1..)));
        let column = column + rest.chars().filter(|&c| c != '\u{feff}').count();
        Self { offset, line: self.line + lines, column }
    }
}

/// Distance of the positions that are computed in advance, in bytes: a file can have a finding every few bytes, also in
/// one line, and each of them must not read all that is before it.
const POSITION_DISTANCE: usize = 1024;

fn positions(source: &str) -> Vec<Position> {
    let mut out = vec![Position::START];
    let mut last = Position::START;
    while source.len() - last.offset > POSITION_DISTANCE {
        last = last.advanced(source, floor(source, last.offset + POSITION_DISTANCE));
        out.push(last);
    }
    out
}

/// Returns a part of a text, or an empty string if the range is out of bounds or not on character boundaries. Ranges
/// of untrusted text are computed in many places, and none of them may cause a panic.
pub fn slice<R: SliceIndex<str, Output = str>>(text: &str, range: R) -> &str {
    text.get(range).unwrap_or_default()
}

/// Returns the closest character boundary at or before a byte offset, within the source.
pub(super) fn floor(source: &str, at: usize) -> usize {
    (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0)
}

/// Returns the longest beginning of a text with at most this number of bytes.
pub fn prefix(text: &str, max_bytes: usize) -> &str {
    slice(text, ..floor(text, max_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_a_rule_are_limited_and_the_further_ones_are_identified() {
        use crate::lint::rules::{BROKEN_LINK, CRLF};
        let found = |last: &str| {
            let mut notes = Notes::new(Path::new("SKILL.md"), "text");
            for number in 0..MAX_FINDINGS_OF_RULE + 5_000 {
                notes.add(&BROKEN_LINK, None, 1..2, number.to_string());
            }
            notes.add(&BROKEN_LINK, None, 1..2, last).severity = crate::Severity::Error;
            "other".clone_into(&mut notes.last().unwrap().help);
            notes.add(&CRLF, None, 0..1, "another rule");
            notes.in_order()
        };
        let all = found("a");
        assert_eq!(all.len(), MAX_FINDINGS_OF_RULE + 2);
        let common = &all[MAX_FINDINGS_OF_RULE];
        assert!(common.message.contains("`broken-link` is 5001 (sha256 "), "{}", common.message);
        assert_eq!((common.severity, common.help.as_str()), (crate::Severity::Error, BROKEN_LINK.help));
        assert!(common.span.is_some());
        assert_ne!(common.message, found("b")[MAX_FINDINGS_OF_RULE].message);
    }

    #[test]
    fn a_prefix_ends_between_characters() {
        assert_eq!((prefix("aé", 2), prefix("aé", 3), prefix("", 5)), ("a", "aé", ""));
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let span = |source: &str, at: Range<usize>| Notes::new(Path::new("SKILL.md"), source).span(at);
        assert_eq!(span("é: x\nyz", 4..5), Span { line: 1, column: 4, offset: 4, length: 1 });
        assert_eq!(span("é: x\nyz", 7..99), Span { line: 2, column: 2, offset: 7, length: 1 });
        assert_eq!(span("é", 1..1).offset, 0);
        assert_eq!(span("\u{feff}a", 3..4).column, 1);
    }

    #[test]
    fn positions_in_long_texts_are_those_of_reading_from_the_start() {
        let line = "é, 漢, 😀\n";
        let source = format!("{}{}", line.repeat(500), "é".repeat(3000));
        let notes = Notes::new(Path::new("SKILL.md"), &source);
        for offset in (0..=source.len()).step_by(7) {
            let start = floor(&source, offset);
            let before = slice(&source, ..start);
            let span = notes.span(offset..offset);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let found = (span.line as usize, span.column as usize, span.offset as usize);
            assert_eq!(found, (before.matches('\n').count() + 1, column, start));
        }
    }
}
