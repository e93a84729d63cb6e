//! Writes a new description into the frontmatter of a file; every other byte is preserved.

use std::ops::Range;
use std::path::Path;

use skills_base::files::{self, OpenError};
use skills_skill::{frontmatter_range, parse};

/// Why a description cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The file has no description field that can be replaced.
    #[error("the frontmatter has no `description` at the start of a line; add one manually")]
    NoField,
    /// The result would not parse to the intended description.
    #[error("the description cannot be changed without affecting other content; edit the file manually")]
    NotExact,
    /// The file differs from what was read.
    #[error("{0} has changed since it was read; read it again before writing")]
    Changed(String),
    /// The file system returned an error.
    #[error("{0}: {1}")]
    Io(String, String),
}

/// Returns `source` with another description.
///
/// # Errors
/// Returns an error if there is no description to replace, or the result would not parse to exactly that description.
pub fn with_description(location: &Path, source: &str, description: &str) -> Result<String, WriteError> {
    let yaml = frontmatter_range(source);
    let (value, style) = value_of(source, yaml).ok_or(WriteError::NoField)?;
    let line_end = if source.contains("\r\n") { "\r\n" } else { "\n" };
    let before = read(location, source);
    let written = |text: String| {
        let mut out = source.to_owned();
        // Without a value, the text follows the colon.
        let blank = if value.is_empty() { " " } else { "" };
        out.replace_range(value.clone(), &format!("{blank}{text}"));
        out
    };
    let fits = |out: &String| {
        let after = read(location, out);
        after.as_ref().is_some_and(|after| after.0 == description)
            && before.as_ref().is_none_or(|before| {
                after.as_ref().is_some_and(|after| (&before.1, &before.2) == (&after.1, &after.2))
            })
    };
    // The current style is tried first; double quotes can represent every text.
    let candidates = [styled(description, &style, line_end), styled(description, &Style::Double, line_end)];
    candidates.into_iter().flatten().map(written).find(fits).ok_or(WriteError::NotExact)
}

/// Returns the description, the other fields, and the body.
fn read(location: &Path, source: &str) -> Option<(String, serde_json::Value, String)> {
    let skill = parse(location, source.as_bytes(), 0).ok()?;
    let mut fields = skills_skill::frontmatter_json(source)?;
    fields.remove("description");
    Some((skill.description, serde_json::Value::Object(fields), skills_skill::body(source).to_owned()))
}

/// Style of a YAML scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    /// With the header (`>-`) and the indentation of the text.
    Block(String, String),
}

/// Returns the byte range of the description's value, and its style. A trailing comment is not part of it.
fn value_of(source: &str, yaml: Range<usize>) -> Option<(Range<usize>, Style)> {
    let text = source.get(yaml.clone())?;
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    let (start, first) = lines.by_ref().find(|(_, line)| line.starts_with("description:"))?;
    let mut end = start + first.len();
    for (start, line) in lines {
        let blank = line.trim().is_empty();
        if !blank && !line.starts_with([' ', '\t']) {
            break;
        }
        if !blank {
            end = start + line.len();
        }
    }
    let after_key = start + "description:".len();
    let written = text.get(after_key..end)?;
    // A value can begin on the next line.
    let value_start = end - written.trim_start().len();
    let value = written.trim();
    if value.is_empty() || value.starts_with('#') {
        let place = yaml.start + after_key;
        return Some((place..place, Style::Plain));
    }
    let (length, style) = match value.chars().next() {
        Some('"') => (closing(value, '"')?, Style::Double),
        Some('\'') => (closing(value, '\'')?, Style::Single),
        Some('>' | '|') => {
            let (header, rest) = value.split_once('\n').unwrap_or((value, ""));
            let line = rest.lines().find(|line| !line.trim().is_empty()).unwrap_or("  ");
            let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or("  ");
            let indent = if indent.is_empty() { "  " } else { indent };
            (value.len(), Style::Block(header.trim_end().to_owned(), indent.to_owned()))
        }
        _ => (
            value
                .find(" #")
                .map_or(value.len(), |at| value.get(..at).map_or(at, |text| text.trim_end().len())),
            Style::Plain,
        ),
    };
    let base = yaml.start + value_start;
    Some((base..base + length, style))
}

/// Returns the length of a quoted scalar at the start of `text`.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => {
                letters.next();
            }
            _ if letter == quote => {
                if quote == '\'' && letters.peek().is_some_and(|(_, next)| *next == '\'') {
                    letters.next();
                } else {
                    return Some(at + quote.len_utf8());
                }
            }
            _ => {}
        }
    }
    None
}

/// Maximum number of columns of text in a folded block.
const FOLD_WIDTH: usize = 100;

fn styled(text: &str, style: &Style, line_end: &str) -> Option<String> {
    match style {
        Style::Plain => (!text.contains('\n')).then(|| text.to_owned()),
        Style::Single => (!text.contains('\n')).then(|| format!("'{}'", text.replace('\'', "''"))),
        Style::Double => serde_json::to_string(text).ok(),
        Style::Block(header, indent) => {
            let mut lines: Vec<String> = Vec::new();
            if header.starts_with('|') {
                lines.extend(text.lines().map(str::to_owned));
            } else {
                if text.contains('\n') {
                    return None;
                }
                let mut line = String::new();
                for word in text.split(' ') {
                    if !line.is_empty() && line.chars().count() + word.chars().count() >= FOLD_WIDTH {
                        lines.push(std::mem::take(&mut line));
                    }
                    if !line.is_empty() {
                        line.push(' ');
                    }
                    line.push_str(word);
                }
                lines.push(line);
            }
            let mut out = header.clone();
            for line in lines {
                out.push_str(line_end);
                out.push_str(indent);
                out.push_str(&line);
            }
            Some(out)
        }
    }
}

/// Atomically replaces a file whose current content is `read`; permissions are preserved. A link remains a link: its
/// target is replaced.
///
/// # Errors
/// Returns an error if the file has changed, or cannot be written.
pub fn replace_file(location: &Path, read: &[u8], write: &[u8]) -> Result<(), WriteError> {
    let real = location
        .canonicalize()
        .map_err(|error| WriteError::Io(location.display().to_string(), error.to_string()))?;
    replace_real_file(&real, read, write)
}

/// Replaces a file like [`replace_file`], by its real path when it was read: no link is followed.
///
/// # Errors
/// Returns an error under the conditions of [`replace_file`], and if a link has replaced the file or one of its
/// folders.
pub fn replace_real_file(real: &Path, read: &[u8], write: &[u8]) -> Result<(), WriteError> {
    let shown = real.display().to_string();
    match files::replace_file(real, read, write) {
        Ok(true) => Ok(()),
        Ok(false) | Err(OpenError::Link { .. }) => Err(WriteError::Changed(shown)),
        Err(error) => Err(WriteError::Io(shown, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(source: &str, description: &str) -> Result<String, WriteError> {
        with_description(Path::new("/s/a/SKILL.md"), source, description)
    }

    #[test]
    fn styles_comments_and_line_ends_stay() {
        let new = "Reads PDFs, and says why.";
        for (source, expected) in [
            (
                "---\nname: a\ndescription: Old text. # note\ntags: [x]\n---\nBody\n",
                "---\nname: a\ndescription: Reads PDFs, and says why. # note\ntags: [x]\n---\nBody\n",
            ),
            (
                "---\nname: a\ndescription: \"Old \\\"text\\\".\"   # note\n---\nBody\n",
                "---\nname: a\ndescription: \"Reads PDFs, and says why.\"   # note\n---\nBody\n",
            ),
            (
                "---\nname: a\ndescription: 'It''s old.'\n---\nBody\n",
                "---\nname: a\ndescription: 'Reads PDFs, and says why.'\n---\nBody\n",
            ),
            (
                "---\r\nname: a\r\ndescription: >-\r\n  Old\r\n  text.\r\n\r\nlicense: MIT\r\n---\r\nBody\r\n",
                "---\r\nname: a\r\ndescription: >-\r\n  Reads PDFs, and says why.\r\n\r\nlicense: MIT\r\n---\r\nBody\r\n",
            ),
            (
                "\u{feff}---\nname: a\ndescription: Old\n  text over lines.\n---\nBody\n",
                "\u{feff}---\nname: a\ndescription: Reads PDFs, and says why.\n---\nBody\n",
            ),
        ] {
            assert_eq!(write(source, new).as_deref(), Ok(expected), "{source:?}");
        }
    }

    #[test]
    fn an_empty_value_and_one_on_the_next_line_are_replaced() {
        for (source, expected) in [
            ("---\nname: a\ndescription:\n---\nBody\n", "---\nname: a\ndescription: New.\n---\nBody\n"),
            (
                "---\ndescription:   # note\nname: a\n---\nBody\n",
                "---\ndescription: New.   # note\nname: a\n---\nBody\n",
            ),
            (
                "---\r\nname: a\r\ndescription:\r\n  Old text\r\n  of two lines.\r\n---\r\nBody\r\n",
                "---\r\nname: a\r\ndescription:\r\n  New.\r\n---\r\nBody\r\n",
            ),
        ] {
            assert_eq!(write(source, "New.").as_deref(), Ok(expected), "{source:?}");
        }
    }

    #[test]
    fn a_text_that_plain_style_cannot_hold_is_quoted() {
        let source = "---\nname: a\ndescription: Old.\n---\nBody\n";
        let new = "Reads: PDFs # and \"more\"";
        let out = write(source, new).unwrap();
        assert!(out.contains("description: \"Reads: PDFs # and \\\"more\\\"\"\n"), "{out}");
    }

    #[test]
    fn a_missing_field_and_a_changed_file_are_refused() {
        assert_eq!(write("---\nname: a\n---\nBody\n", "x"), Err(WriteError::NoField));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("SKILL.md");
        std::fs::write(&file, "new").unwrap();
        assert!(matches!(replace_file(&file, b"old", b"mine"), Err(WriteError::Changed(_))));
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        replace_file(&file, b"new", b"mine").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }
}
