//! Collects the findings of one file with their positions.

use std::ops::Range;
use std::path::Path;
use std::slice::SliceIndex;

use super::lint::rules::Rule;
use super::{Finding, Span};

/// Findings about one file, in the order in which they were added.
pub(super) struct Notes<'a> {
    file: &'a Path,
    /// The file as read.
    pub source: &'a str,
    findings: Vec<Finding>,
}

impl<'a> Notes<'a> {
    /// Creates an empty collection. `file` is relative to the bundle's folder.
    pub fn new(file: &'a Path, source: &'a str) -> Self {
        Self { file, source, findings: Vec::new() }
    }

    /// Adds a finding at a byte range of the file and returns it for further changes.
    pub fn add(
        &mut self,
        rule: &Rule,
        field: Option<&str>,
        at: impl Into<Option<Range<usize>>>,
        message: impl Into<String>,
    ) -> &mut Finding {
        let index = self.findings.len();
        self.findings.push(Finding {
            code: rule.code.to_owned(),
            severity: rule.severity,
            field: field.map(str::to_owned),
            file: self.file.to_owned(),
            span: at.into().map(|at| span(self.source, at)),
            message: message.into(),
            help: rule.help.to_owned(),
            fixable: rule.fixable,
        });
        &mut self.findings[index]
    }

    /// Returns the findings in the order in which they were added: the last one of a rejected file is the reason.
    pub fn in_order(self) -> Vec<Finding> {
        self.findings
    }

    /// Returns the findings sorted by position; those about the complete file come first.
    pub fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| finding.span.map(|span| span.offset));
        self.findings
    }
}

/// Computes line and column of a byte range. Offsets inside a character or past the end are moved back.
pub(super) fn span(source: &str, at: Range<usize>) -> Span {
    let start = floor(source, at.start);
    let end = floor(source, at.end).max(start);
    let before = slice(source, ..start);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = slice(before, line_start..).chars().filter(|&c| c != '\u{feff}').count() + 1;
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span { line: narrow(line), column: narrow(column), offset: narrow(start), length: narrow(end - start) }
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
    fn a_prefix_ends_between_characters() {
        assert_eq!((prefix("aé", 2), prefix("aé", 3), prefix("", 5)), ("a", "aé", ""));
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        assert_eq!(span("é: x\nyz", 4..5), Span { line: 1, column: 4, offset: 4, length: 1 });
        assert_eq!(span("é: x\nyz", 7..99), Span { line: 2, column: 2, offset: 7, length: 1 });
        assert_eq!(span("é", 1..1).offset, 0);
        assert_eq!(span("\u{feff}a", 3..4).column, 1);
    }
}
