//! Splits a `SKILL.md` into frontmatter and body, and reports defects of the fences.

use super::finding_builder::slice;
use std::ops::Range;

/// A defect of the fences of a file, with the byte offset where it is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceDefect {
    /// A byte order mark at the start (U+FEFF).
    ByteOrderMark,
    /// Blank lines before the opening fence; the offset of the fence.
    LeadingBlankLines(usize),
    /// Neither fence: the file starts with its text; the offset of the text.
    NoFrontmatter(usize),
    /// `key: value` lines with a closing fence but no opening one; their offset.
    NoOpening(usize),
    /// The opening fence is never closed; the offset where the body seems to start.
    NoClosing(usize),
}

/// A split file, as byte ranges of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fenced {
    /// YAML between the fences; empty if there is none.
    pub yaml: Range<usize>,
    /// Everything after the line of the closing fence.
    pub body: Range<usize>,
    pub defects: Vec<FenceDefect>,
}

/// A line with its byte range, including the line ending.
struct Line<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

fn lines(source: &str, from: usize) -> impl Iterator<Item = Line<'_>> {
    let mut at = from;
    slice(source, from..).split_inclusive('\n').map(move |raw| {
        let line = Line { text: raw.trim_end_matches(['\n', '\r']), start: at, end: at + raw.len() };
        at = line.end;
        line
    })
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.bytes().all(|b| b == b' ' || b == b'\t'))
}

/// Returns whether a line looks like `key: value`, with a key as in frontmatter.
fn is_entry(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, rest)| {
        !key.is_empty()
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            && (rest.is_empty() || rest.starts_with([' ', '\t']))
    })
}

/// Splits a source. Never fails: missing fences are reported as defects.
pub(super) fn split(source: &str) -> Fenced {
    let mut defects = Vec::new();
    let text_start = source.len() - source.trim_start_matches('\u{feff}').len();
    if text_start > 0 {
        defects.push(FenceDefect::ByteOrderMark);
    }
    let mut rest = lines(source, text_start).skip_while(|line| line.text.trim().is_empty());
    let Some(first) = rest.next() else {
        defects.push(FenceDefect::NoFrontmatter(text_start));
        return Fenced { yaml: text_start..text_start, body: source.len()..source.len(), defects };
    };
    if first.start > text_start {
        defects.push(FenceDefect::LeadingBlankLines(first.start));
    }
    if is_fence(first.text) {
        return match rest.find(|line| is_fence(line.text)) {
            Some(close) => Fenced { yaml: first.end..close.start, body: close.end..source.len(), defects },
            None => unclosed(source, first.end, defects),
        };
    }
    // `name: …` at the very start and a fence below: only the opening fence is missing.
    if is_entry(first.text) {
        let close = rest.take_while(|line| !line.text.starts_with('#')).find(|line| is_fence(line.text));
        if let Some(close) = close {
            defects.push(FenceDefect::NoOpening(first.start));
            return Fenced { yaml: first.start..close.start, body: close.end..source.len(), defects };
        }
    }
    // Blank lines matter only before a fence.
    defects.retain(|defect| !matches!(defect, FenceDefect::LeadingBlankLines(_)));
    defects.push(FenceDefect::NoFrontmatter(first.start));
    Fenced { yaml: text_start..text_start, body: text_start..source.len(), defects }
}

/// Splits a file without a closing fence: the frontmatter extends as long as lines look like YAML (entries, indented
/// lines, list items, comments directly below an entry). A heading or any other text starts the body.
fn unclosed(source: &str, from: usize, mut defects: Vec<FenceDefect>) -> Fenced {
    let (mut yaml_end, mut after_blank) = (from, false);
    for line in lines(source, from) {
        let text = line.text;
        if text.trim().is_empty() {
            after_blank = true;
            continue;
        }
        let indented = text.starts_with([' ', '\t']) && !after_blank;
        let comment = text.starts_with('#') && !after_blank && yaml_end > from && !is_heading(text);
        if !(is_entry(text) || indented || comment || (text.starts_with("- ") && !after_blank)) {
            break;
        }
        yaml_end = line.end;
        after_blank = false;
    }
    let body = lines(source, yaml_end).find(|l| !l.text.trim().is_empty()).map_or(source.len(), |l| l.start);
    defects.push(FenceDefect::NoClosing(yaml_end));
    Fenced { yaml: from..yaml_end, body: body..source.len(), defects }
}

fn is_heading(line: &str) -> bool {
    line.trim_start_matches('#').starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(source: &str) -> (&str, &str, Vec<FenceDefect>) {
        let fenced = split(source);
        (&source[fenced.yaml], &source[fenced.body], fenced.defects)
    }

    #[test]
    fn a_clean_file_splits_without_defects() {
        assert_eq!(parts("---\nname: a\n---\n# A\n"), ("name: a\n", "# A\n", vec![]));
        assert_eq!(parts("---\r\nname: a\r\n--- \r\n# A\r\n"), ("name: a\r\n", "# A\r\n", vec![]));
        assert_eq!(parts("---\n---"), ("", "", vec![]));
    }

    #[test]
    fn byte_order_mark_and_blank_lines_are_skipped() {
        let (yaml, body, defects) = parts("\u{feff}\n\n---\nname: a\n---\nx");
        assert_eq!((yaml, body), ("name: a\n", "x"));
        assert_eq!(defects, [FenceDefect::ByteOrderMark, FenceDefect::LeadingBlankLines(5)]);
    }

    #[test]
    fn unclosed_frontmatter_ends_before_text_unlike_yaml() {
        let source =
            "---\nname: a\ndescription: >\n  folded\n  text\ntags:\n- x\n\n# Title\n\nkey: in the body\n";
        let (yaml, body, defects) = parts(source);
        assert_eq!(yaml, "name: a\ndescription: >\n  folded\n  text\ntags:\n- x\n");
        assert!(body.starts_with("# Title"));
        assert!(matches!(defects[..], [FenceDefect::NoClosing(_)]));
    }

    #[test]
    fn missing_opening_fence_is_detected_by_the_closing_one() {
        let (yaml, body, defects) = parts("name: a\ndescription: b\n---\nText\n");
        assert_eq!((yaml, body), ("name: a\ndescription: b\n", "Text\n"));
        assert_eq!(defects, [FenceDefect::NoOpening(0)]);
    }

    #[test]
    fn a_file_without_frontmatter_is_all_body() {
        let (yaml, body, defects) = parts("\n# Title\n\nText\n---\nmore\n");
        assert_eq!((yaml, body), ("", "\n# Title\n\nText\n---\nmore\n"));
        assert_eq!(defects, [FenceDefect::NoFrontmatter(1)]);
        assert_eq!(parts("").2, [FenceDefect::NoFrontmatter(0)]);
    }
}
