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
    positions: Positions<'a>,
    findings: Vec<Finding>,
}

impl<'a> Notes<'a> {
    /// Creates an empty collection. `file` is relative to the bundle's folder.
    pub fn new(file: &'a Path, source: &'a str) -> Self {
        Self { file, source, positions: Positions::new(source), findings: Vec::new() }
    }

    /// Returns line and column of a byte range of the file.
    pub fn span(&mut self, at: Range<usize>) -> Span {
        self.positions.span(at)
    }

    /// Returns the finding that was added last.
    pub fn last(&mut self) -> Option<&mut Finding> {
        self.findings.last_mut()
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
        let span = at.into().map(|at| self.positions.span(at));
        self.findings.push(Finding {
            code: rule.code.to_owned(),
            severity: rule.severity,
            field: field.map(str::to_owned),
            file: self.file.to_owned(),
            span,
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

/// Lines and columns of a text. What was counted for one position is not counted again for the next one: a file can have
/// thousands of findings, in one line or in many.
struct Positions<'a> {
    source: &'a str,
    /// End of the part that was counted.
    end: usize,
    /// Start of each line but the first.
    lines: Vec<usize>,
    /// Number of characters.
    characters: usize,
    /// Offset of the start of each block, and the number of characters before it.
    blocks: Vec<(usize, usize)>,
}

impl<'a> Positions<'a> {
    /// Minimum size of a block in bytes.
    const BLOCK: usize = 256;

    fn new(source: &'a str) -> Self {
        Self { source, end: 0, lines: Vec::new(), characters: 0, blocks: Vec::new() }
    }

    /// Computes line and column of a byte range. Offsets inside a character or past the end are moved back.
    fn span(&mut self, at: Range<usize>) -> Span {
        let start = floor(self.source, at.start);
        let end = floor(self.source, at.end).max(start);
        self.count_to(start);
        let earlier = self.lines.partition_point(|line| *line <= start);
        let line_start = earlier.checked_sub(1).and_then(|line| self.lines.get(line)).copied().unwrap_or(0);
        let column = self.characters_before(start) - self.characters_before(line_start) + 1;
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (line, length) = (earlier + 1, end - start);
        Span { line: narrow(line), column: narrow(column), offset: narrow(start), length: narrow(length) }
    }

    fn count_to(&mut self, end: usize) {
        for (at, character) in slice(self.source, self.end..end).char_indices() {
            let at = self.end + at;
            if self.blocks.last().is_none_or(|(start, _)| at - start >= Self::BLOCK) {
                self.blocks.push((at, self.characters));
            }
            self.characters += usize::from(is_counted(character));
            if character == '\n' {
                self.lines.push(at + 1);
            }
        }
        self.end = self.end.max(end);
    }

    /// Returns the number of characters before an offset in the part that was counted.
    fn characters_before(&self, at: usize) -> usize {
        let blocks = self.blocks.partition_point(|(start, _)| *start <= at);
        let block = blocks.checked_sub(1).and_then(|block| self.blocks.get(block));
        let (start, before) = block.copied().unwrap_or((0, 0));
        before + slice(self.source, start..at).chars().filter(|&character| is_counted(character)).count()
    }
}

/// Returns whether a character takes a column: a byte order mark does not.
fn is_counted(character: char) -> bool {
    character != '\u{feff}'
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

    fn span(source: &str, at: Range<usize>) -> Span {
        Positions::new(source).span(at)
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        assert_eq!(span("é: x\nyz", 4..5), Span { line: 1, column: 4, offset: 4, length: 1 });
        assert_eq!(span("é: x\nyz", 7..99), Span { line: 2, column: 2, offset: 7, length: 1 });
        assert_eq!(span("é", 1..1).offset, 0);
        assert_eq!(span("\u{feff}a", 3..4).column, 1);
    }

    #[test]
    fn positions_do_not_depend_on_their_order() {
        let lines: String = (0..40).map(|n| format!("é{n}\n\u{feff}{}", "ü".repeat(n * 40))).collect();
        let mut positions = Positions::new(&lines);
        let offsets = (0..lines.len()).rev().step_by(7).chain((0..lines.len()).step_by(11));
        for at in offsets {
            assert_eq!(positions.span(at..at), span(&lines, at..at), "{at}");
        }
        let last = span(&lines, lines.len()..lines.len());
        assert_eq!((last.line, last.column), (41, 39 * 40 + 1));
    }

    #[test]
    fn thousands_of_positions_in_a_large_file_are_found_at_once() {
        let text = "é: {a: b}, ".repeat(100_000);
        let mut positions = Positions::new(&text);
        let start = std::time::Instant::now();
        for at in (0..text.len()).step_by(40) {
            positions.span(at..at);
        }
        // Counted from the beginning for each of them, these would be 30,000 times 600 kB.
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
