//! Extracts text from a body: the body itself, its first paragraph, and the text for a search index.

use std::io;

use super::finding_builder::slice;
use super::{Skill, fence, yaml};

/// Maximum number of indexed headings of one skill.
const MAX_HEADINGS: usize = 40;
/// Maximum number of indexed characters of a body.
const MAX_BODY_CHARS: usize = 6_000;

/// The text of a body for a search index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexText {
    /// Headings `#` to `####`, without the marks, at most 40.
    pub headings: Vec<String>,
    /// The body without fenced code, at most 6,000 characters.
    pub body: String,
}

/// Returns the body of a `SKILL.md`: everything below the frontmatter.
pub fn body(source: &str) -> &str {
    slice(source, fence::split(source).body)
}

/// Returns the byte range of the YAML between the fences of a `SKILL.md`; empty if there is no frontmatter.
pub fn frontmatter_range(source: &str) -> std::ops::Range<usize> {
    fence::split(source).yaml
}

/// Returns the frontmatter of a `SKILL.md` as its author wrote it, with every key, as JSON; `None` if it is missing,
/// or invalid YAML that needs a repair.
pub fn frontmatter_json(source: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let fenced = fence::split(source);
    let tree = yaml::parse(slice(source, fenced.yaml)).ok()?;
    Some(tree.to_json_map()).filter(|map| !map.is_empty())
}

/// Returns the text of a `SKILL.md` for a search index.
pub fn index_text(source: &str) -> IndexText {
    let mut out = IndexText::default();
    let mut remaining = MAX_BODY_CHARS;
    for line in prose(body(source)) {
        if let Some(heading) = heading(line).filter(|_| out.headings.len() < MAX_HEADINGS) {
            out.headings.push(heading.to_owned());
        }
        if line.len() < remaining {
            remaining -= line.chars().count() + 1;
            out.body.push_str(line);
            out.body.push('\n');
        } else if remaining > 0 {
            out.body.push_str(cut(line, remaining));
            remaining = 0;
            out.body.push('\n');
        } else if out.headings.len() == MAX_HEADINGS {
            break;
        }
    }
    out
}

/// Returns a body at the length that is indexed, as [`index_text`] cuts it.
pub fn index_body(body: &str) -> &str {
    cut(body, MAX_BODY_CHARS)
}

/// Returns fewer than `limit` characters of a text. Its last word, which may be incomplete, is left out, unless it is
/// longer than any word.
fn cut(text: &str, limit: usize) -> &str {
    const MAX_WORD: usize = 64;
    let Some((end, _)) = text.char_indices().nth(limit - 1) else { return text };
    let text = slice(text, ..end);
    let before = text.trim_end_matches(char::is_alphanumeric);
    if text.len() - before.len() <= MAX_WORD { before } else { text }
}

/// Reads the file of a skill and returns its [`index_text`]; empty for a skill without a body.
///
/// # Errors
/// Returns an error if the file cannot be read, or is no longer UTF-8.
pub fn read_index_text(skill: &Skill) -> io::Result<IndexText> {
    if !skill.has_body {
        return Ok(IndexText::default());
    }
    let text = String::from_utf8(skill.read()?);
    let text = text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))?;
    Ok(index_text(&text))
}

/// Yields the lines outside of fenced code blocks (section 4.5 of the `CommonMark` specification: three or more `` `
/// `` or `~`, closed by at least as many of the same), without line endings.
pub(super) fn prose(body: &str) -> impl Iterator<Item = &str> {
    prose_lines(body).map(|(line, _)| line)
}

/// Yields the lines of [`prose`] with their byte offsets.
pub(super) fn prose_lines(body: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut open: Option<(u8, usize)> = None;
    let mut at = 0;
    body.split_inclusive('\n').filter_map(move |raw| {
        let start = at;
        at += raw.len();
        let line = raw.trim_end_matches(['\n', '\r']);
        let trimmed = line.trim_start();
        let mark = trimmed.bytes().next().filter(|b| *b == b'`' || *b == b'~');
        let length = mark.map_or(0, |mark| trimmed.bytes().take_while(|b| *b == mark).count());
        match (open, mark) {
            (None, Some(mark))
                if length >= 3 && (mark == b'~' || !slice(trimmed, length..).contains('`')) =>
            {
                open = Some((mark, length));
                None
            }
            (None, _) => Some((line, start)),
            (Some((fence, least)), Some(mark))
                if mark == fence && length >= least && slice(trimmed, length..).trim().is_empty() =>
            {
                open = None;
                None
            }
            (Some(_), _) => None,
        }
    })
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim_end();
    ((1..=4).contains(&level) && !text.is_empty()).then_some(text)
}

/// Returns the first paragraph that is not a heading, rule, table, block quote or markup, as one line of at most 1,024
/// characters.
pub(super) fn first_paragraph(body: &str) -> Option<String> {
    let mut paragraph = String::new();
    for line in prose(body) {
        let line = line.trim();
        let text = !line.is_empty()
            && !line.starts_with(['#', '|', '<', '!'])
            && line.contains(char::is_alphanumeric);
        if text {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        } else if !paragraph.is_empty() {
            break;
        }
    }
    let cut = paragraph.char_indices().nth(1024).map_or(paragraph.len(), |(at, _)| at);
    paragraph.truncate(cut);
    (!paragraph.is_empty()).then_some(paragraph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_text_are_extracted_without_code() {
        let source = "---\nname: a\n---\n# One #\n\nText\n```sh\n# no heading\n```\n##### Five\n~~~~\n~~~\n~~~~\n## Two\n";
        let index = index_text(source);
        assert_eq!(index.headings, ["One", "Two"]);
        assert_eq!(index.body, "# One #\n\nText\n##### Five\n## Two\n");
    }

    #[test]
    fn long_body_is_truncated_between_characters() {
        let index = index_text(&format!("---\nname: a\n---\n{}\n# Later\n", "é".repeat(7000)));
        assert_eq!(index.body.trim_end().chars().count(), 5999);
        assert_eq!(index.headings, ["Later"]);
        let index = index_text(&"# h\n".repeat(50));
        assert_eq!(index.headings.len(), 40);
    }

    #[test]
    fn body_is_truncated_between_words() {
        let index = index_text(&"departure ".repeat(1_000));
        assert!(index.body.len() <= 6_000 && index.body.len() > 5_980, "{}", index.body.len());
        assert!(index.body.split_whitespace().all(|word| word == "departure"));
        let index = index_text(&"表".repeat(9_000));
        assert_eq!(index.body.trim_end().chars().count(), 5_999);
    }

    #[test]
    fn the_first_paragraph_skips_headings_and_joins_lines() {
        assert_eq!(first_paragraph("# T\n\n---\nOne\ntwo.\n\nThree").as_deref(), Some("One two."));
        assert_eq!(first_paragraph("# T\n\n```\ncode\n```\n"), None);
    }
}
