//! Writes a new description and a new `when_to_use` into the frontmatter of a file; every other byte is preserved.

use std::ops::Range;
use std::path::Path;

use skills_base::files::{self, OpenError};
use skills_skill::{frontmatter_range, parse};

/// Why a description cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The file has no frontmatter to which the field can be added, or a value that is not understood.
    #[error("the frontmatter is missing or cannot be read; add frontmatter with a `description`")]
    NoField,
    /// The result would not parse to the intended text: the file with the line of the field, if it is found, and its key.
    #[error(
        "{0}: `{1}` is written in a form that cannot be replaced without changing other content; \
        edit the file manually so that a line of the frontmatter is `{1}: TEXT`"
    )]
    NotExact(String, &'static str),
    /// The file differs from what was read.
    #[error("{0} has changed since it was read; read it again before writing")]
    Changed(String),
    /// The file system returned an error: the path and its cause.
    #[error("not written: {0}")]
    Io(String),
}

/// The fields that a draft writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Description,
    WhenToUse,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::WhenToUse => "when_to_use",
        }
    }
}

/// Returns `source` with another description.
///
/// # Errors
/// Returns an error if there is no description to replace, or the result would not parse to exactly that description.
pub fn with_description(location: &Path, source: &str, description: &str) -> Result<String, WriteError> {
    with_field(location, source, Key::Description, description)
}

/// Returns `source` with another description and another `when_to_use`, if they are given; an empty `when_to_use` is
/// removed. A text that the file has already is not written again.
pub fn with_texts(
    location: &Path,
    source: &str,
    description: Option<&str>,
    when_to_use: Option<&str>,
) -> Result<String, WriteError> {
    let mut out = source.to_owned();
    for (key, text) in [(Key::Description, description), (Key::WhenToUse, when_to_use)] {
        let Some(text) = text else { continue };
        if read(location, &out, key).is_none_or(|present| present.0 != text) {
            out = with_field(location, &out, key, text)?;
        }
    }
    Ok(out)
}

/// Returns whether two versions of a file differ in the texts only that [`with_texts`] writes, and `earlier` has these.
pub fn has_texts(
    location: &Path,
    source: &str,
    earlier: &str,
    description: Option<&str>,
    when_to_use: Option<&str>,
) -> bool {
    let texts = [(Key::Description, description), (Key::WhenToUse, when_to_use)];
    let rest = |source: &str| {
        let mut fields = skills_skill::frontmatter_json(source)?;
        texts.iter().for_each(|(key, _)| drop(fields.remove(key.name())));
        Some((fields, skills_skill::body(source).to_owned()))
    };
    let is_stated = |(key, text): (Key, Option<&str>)| {
        let present = |source: &str| read(location, source, key).map(|present| present.0);
        present(earlier).is_some_and(|there| match text {
            Some(text) => there == text,
            None => present(source) == Some(there),
        })
    };
    rest(source).is_some_and(|now| rest(earlier) == Some(now)) && texts.into_iter().all(is_stated)
}

fn with_field(location: &Path, source: &str, key: Key, text: &str) -> Result<String, WriteError> {
    let line_end = if source.contains("\r\n") { "\r\n" } else { "\n" };
    let replaced = |at: Range<usize>, text: &str| {
        let mut out = source.to_owned();
        out.replace_range(at, text);
        out
    };
    let before = read(location, source, key);
    let fits = |out: &String| {
        let after = read(location, out, key);
        after.as_ref().is_some_and(|after| after.0 == text)
            && before.as_ref().is_none_or(|before| {
                after.as_ref().is_some_and(|after| (&before.1, &before.2) == (&after.1, &after.2))
            })
    };
    let lines = lines_of(source, key.name());
    let key_indent = indent_of_keys(source);
    let candidates: Vec<String> = match (lines, key) {
        (Some(lines), Key::WhenToUse) if text.is_empty() => vec![replaced(lines, "")],
        (Some(_), _) => {
            let (value, style) = value_of(source, key).ok_or(WriteError::NoField)?;
            // Without a value, the text follows the colon.
            let blank = if value.is_empty() { " " } else { "" };
            // The current style is tried first; double quotes can represent every text.
            let styles = [styled(text, &style, line_end), styled(text, &Style::Double, line_end)];
            let written = styles.into_iter().flatten();
            written.map(|text| replaced(value.clone(), &format!("{blank}{text}"))).collect()
        }
        (None, _) if before.is_none() => return Err(WriteError::NoField),
        (None, _) => {
            // A new field is below the name, or below the description.
            let above = match key {
                Key::Description => "name",
                Key::WhenToUse => Key::Description.name(),
            };
            let yaml = frontmatter_range(source);
            let end = lines_of(source, above)
                .or_else(|| lines_of(source, "name"))
                .map_or(yaml.start, |lines| lines.end);
            let styles = [styled(text, &Style::Plain, line_end), styled(text, &Style::Double, line_end)];
            let written = styles.into_iter().flatten();
            let name = key.name();
            written.map(|text| replaced(end..end, &format!("{key_indent}{name}: {text}{line_end}"))).collect()
        }
    };
    let not_exact = || {
        let file = location.file_name().unwrap_or_default().display();
        let line = line_of(source, key.name()).map(|line| format!(":{line}")).unwrap_or_default();
        WriteError::NotExact(format!("{file}{line}"), key.name())
    };
    candidates.into_iter().find(fits).ok_or_else(not_exact)
}

/// Returns the line of a frontmatter field in any form, from 1: also of one in quotes or within braces.
fn line_of(source: &str, key: &str) -> Option<usize> {
    let yaml = frontmatter_range(source);
    let at = source.get(yaml.clone())?.find(key)?;
    let before = source.get(..yaml.start + at)?;
    Some(before.matches('\n').count() + 1)
}

/// Returns the indentation of the top-level keys: that of the first one.
fn indent_of_keys(source: &str) -> &str {
    let yaml = source.get(frontmatter_range(source)).unwrap_or_default();
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let first = yaml.lines().find(is_content).unwrap_or_default();
    first.get(..first.len() - first.trim_start_matches(' ').len()).unwrap_or_default()
}

/// Returns the field, the other fields, and the body. A missing field is empty.
fn read(location: &Path, source: &str, key: Key) -> Option<(String, serde_json::Value, String)> {
    let skill = parse(location, source.as_bytes(), 0).ok()?;
    let mut fields = skills_skill::frontmatter_json(source)?;
    fields.remove(key.name());
    let text = match key {
        Key::Description => skill.description,
        Key::WhenToUse => skill.clients.when_to_use.unwrap_or_default(),
    };
    Some((text, serde_json::Value::Object(fields), skills_skill::body(source).to_owned()))
}

/// Style of a YAML scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Style {
    Plain,
    /// Plain over several lines, with their indentation.
    PlainLines(String),
    Single,
    Double,
    /// With the header (`>-`) and the indentation of the text.
    Block(String, String),
}

/// Returns the byte range of the lines of a field, from its key to the last line of its value.
fn lines_of(source: &str, key: &str) -> Option<Range<usize>> {
    let yaml = frontmatter_range(source);
    let text = source.get(yaml.clone())?;
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    let indent = indent_of_keys(source);
    let is_key = |line: &str| {
        let name = line.strip_prefix(indent).and_then(|line| line.strip_prefix(key));
        name.is_some_and(|rest| rest.starts_with(':'))
    };
    let (start, first) = lines.by_ref().find(|(_, line)| is_key(line))?;
    let mut end = start + first.len();
    for (start, line) in lines {
        let blank = line.trim().is_empty();
        let is_deeper = line.strip_prefix(indent).is_some_and(|rest| rest.starts_with([' ', '\t']));
        if !blank && !is_deeper {
            break;
        }
        if !blank {
            end = start + line.len();
        }
    }
    Some(yaml.start + start..yaml.start + end)
}

/// Returns the byte range of a field's value, and its style. A trailing comment is not part of it.
fn value_of(source: &str, key: Key) -> Option<(Range<usize>, Style)> {
    let lines = lines_of(source, key.name())?;
    let key_indent = indent_of_keys(source);
    let after_key = lines.start + key_indent.len() + key.name().len() + ":".len();
    let written = source.get(after_key..lines.end)?;
    // A value can begin on the next line.
    let value_start = lines.end - written.trim_start().len();
    let value = written.trim();
    if value.is_empty() || value.starts_with('#') {
        return Some((after_key..after_key, Style::Plain));
    }
    // The indentation of the first line that has one.
    let indent_of = |text: &str| {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
        if indent.len() > key_indent.len() { indent.to_owned() } else { format!("{key_indent}  ") }
    };
    let (length, style) = match value.chars().next() {
        Some('"') => (closing(value, '"')?, Style::Double),
        Some('\'') => (closing(value, '\'')?, Style::Single),
        Some('>' | '|') => {
            let (header, rest) = value.split_once('\n').unwrap_or((value, ""));
            (value.len(), Style::Block(header.trim_end().to_owned(), indent_of(rest)))
        }
        _ => {
            let length = value
                .find(" #")
                .map_or(value.len(), |at| value.get(..at).map_or(at, |text| text.trim_end().len()));
            let lines = value.get(..length).and_then(|text| text.split_once('\n'));
            (length, lines.map_or(Style::Plain, |(_, rest)| Style::PlainLines(indent_of(rest))))
        }
    };
    Some((value_start..value_start + length, style))
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
            let lines = if header.starts_with('|') {
                text.lines().map(str::to_owned).collect()
            } else {
                folded(text)
            };
            Some(indented(std::iter::once(header.clone()).chain(lines), indent, line_end))
        }
        Style::PlainLines(indent) => Some(indented(folded(text), indent, line_end)),
    }
}

/// Returns the lines of a folded text: a blank line for each line break.
fn folded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (at, paragraph) in text.split('\n').enumerate() {
        if at > 0 && !paragraph.is_empty() {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split(' ') {
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
    lines
}

/// Joins lines; all but the first are indented, unless they are empty.
fn indented(lines: impl IntoIterator<Item = String>, indent: &str, line_end: &str) -> String {
    let mut out = String::new();
    for (at, line) in lines.into_iter().enumerate() {
        if at > 0 {
            out.push_str(line_end);
            if !line.is_empty() {
                out.push_str(indent);
            }
        }
        out.push_str(&line);
    }
    out
}

/// Atomically replaces a file whose current content is `read`; permissions are preserved. A link remains a link: its
/// target is replaced.
///
/// # Errors
/// Returns an error if the file has changed, or cannot be written.
pub fn replace_file(location: &Path, read: &[u8], write: &[u8]) -> Result<(), WriteError> {
    let real = files::canonicalize(location)
        .map_err(|error| WriteError::Io(format!("{}: {error}", location.display())))?;
    replace_real_file(&real, read, write)
}

/// Replaces a file like [`replace_file`], by its real path when it was read: no link is followed.
pub fn replace_real_file(real: &Path, read: &[u8], write: &[u8]) -> Result<(), WriteError> {
    replaced(real, files::replace_file(real, read, write))
}

/// Converts the result of replacing a file.
pub(crate) fn replaced(real: &Path, result: Result<bool, OpenError>) -> Result<(), WriteError> {
    let shown = real.display().to_string();
    match result {
        Ok(true) => Ok(()),
        Ok(false) | Err(OpenError::Link { .. }) => Err(WriteError::Changed(shown)),
        // The error names the path.
        Err(error) => Err(WriteError::Io(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(source: &str, description: &str) -> Result<String, WriteError> {
        with_description(Path::new("/s/a/SKILL.md"), source, description)
    }

    #[test]
    fn styles_comments_and_line_endings_are_preserved() {
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
    fn a_missing_description_is_added_below_the_name() {
        for (source, expected) in [
            (
                "---\nname: a\ntags: [x]\n---\nBody\n",
                "---\nname: a\ndescription: New.\ntags: [x]\n---\nBody\n",
            ),
            (
                "---\r\ntags: [x]\r\n---\r\nBody\r\n",
                "---\r\ndescription: New.\r\ntags: [x]\r\n---\r\nBody\r\n",
            ),
        ] {
            assert_eq!(write(source, "New.").as_deref(), Ok(expected), "{source:?}");
        }
        assert_eq!(write("Body\n\nText.\n", "New."), Err(WriteError::NoField));
        // The key is there in another form.
        let refused = write("---\nname: a\n\"description\": Old.\n---\nBody\n", "New.");
        assert_eq!(refused, Err(WriteError::NotExact("SKILL.md:3".to_owned(), "description")));
    }

    #[test]
    fn keys_that_are_all_indented_are_replaced_and_added() {
        for (source, expected) in [
            (
                "---\n  name: a\n  description: Old.\n  tags: [x]\n---\nBody\n",
                "---\n  name: a\n  description: New.\n  tags: [x]\n---\nBody\n",
            ),
            (
                "---\n# note\n  name: a\n  description: >-\n    Old\n    text.\n  tags: [x]\n---\nBody\n",
                "---\n# note\n  name: a\n  description: >-\n    New.\n  tags: [x]\n---\nBody\n",
            ),
            (
                "---\n  name: a\n  metadata:\n    description: x\n---\nBody\n",
                "---\n  name: a\n  description: New.\n  metadata:\n    description: x\n---\nBody\n",
            ),
        ] {
            assert_eq!(write(source, "New.").as_deref(), Ok(expected), "{source:?}");
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
    fn when_to_use_is_replaced_added_and_removed() {
        let texts = |source: &str, description: &str, when: Option<&str>| {
            with_texts(Path::new("/s/a/SKILL.md"), source, Some(description), when)
        };
        for (source, when, expected) in [
            (
                "---\nname: a\ndescription: Old.\nwhen_to_use: 'On PDFs.' # note\ntags: [x]\n---\nBody\n",
                Some("On forms."),
                "---\nname: a\ndescription: New.\nwhen_to_use: 'On forms.' # note\ntags: [x]\n---\nBody\n",
            ),
            (
                "---\nname: a\ndescription: Old.\nwhen_to_use: >-\n  On\n  PDFs.\ntags: [x]\n---\nBody\n",
                None,
                "---\nname: a\ndescription: New.\nwhen_to_use: >-\n  On\n  PDFs.\ntags: [x]\n---\nBody\n",
            ),
            (
                "---\r\nname: a\r\ndescription: >-\r\n  Old\r\n  text.\r\n\r\ntags: [x]\r\n---\r\nBody\r\n",
                Some("On: forms"),
                "---\r\nname: a\r\ndescription: >-\r\n  New.\r\nwhen_to_use: \"On: forms\"\r\n\r\ntags: [x]\r\n---\r\nBody\r\n",
            ),
            (
                "---\nwhen_to_use: |\n  On\n  PDFs.\n# note\ndescription: Old.\n---\nBody\n",
                Some(""),
                "---\n# note\ndescription: New.\n---\nBody\n",
            ),
        ] {
            assert_eq!(texts(source, "New.", when).as_deref(), Ok(expected), "{source:?}");
        }
        // A description that the file does not state is not written.
        let source = "---\nname: a\nwhen_to_use: On PDFs.\n---\nReads text.\n";
        let present = parse(Path::new("/s/a/SKILL.md"), source.as_bytes(), 0).unwrap().description;
        let expected = source.replace("PDFs", "forms");
        assert_eq!(texts(source, &present, Some("On forms.")), Ok(expected));
        let expected = source.replace("name: a\n", "name: a\ndescription: Other.\n");
        assert_eq!(texts(source, "Other.", None), Ok(expected));
    }

    #[test]
    fn text_invalid_in_plain_style_is_quoted() {
        let source = "---\nname: a\ndescription: Old.\n---\nBody\n";
        let new = "Reads: PDFs # and \"more\"";
        let out = write(source, new).unwrap();
        assert!(out.contains("description: \"Reads: PDFs # and \\\"more\\\"\"\n"), "{out}");
    }

    #[test]
    fn a_folded_and_a_multi_line_scalar_keep_their_style() {
        for (source, expected) in [
            (
                "---\nname: a\ndescription: >-\n    Old\n    text.\n\n    More.\ntags: [x]\n---\nBody\n",
                "---\nname: a\ndescription: >-\n    Reads: all.\n\n    And\n\n\n    more.\ntags: [x]\n---\nBody\n",
            ),
            (
                "---\nname: a\ndescription: Old\n   text.\n\n   More.\n---\nBody\n",
                "---\nname: a\ndescription: Reads all.\n\n   And\n\n\n   more.\n---\nBody\n",
            ),
            (
                "---\nname: a\ndescription: |-\n  Old.\n\n  More.\n---\nBody\n",
                "---\nname: a\ndescription: |-\n  Reads: all.\n  And\n\n  more.\n---\nBody\n",
            ),
        ] {
            let colon = if expected.contains("Reads: all") { ":" } else { "" };
            let new = format!("Reads{colon} all.\nAnd\n\nmore.");
            assert_eq!(write(source, &new).as_deref(), Ok(expected), "{source:?}");
        }
    }

    #[test]
    fn an_earlier_version_with_other_changes_is_not_the_same() {
        let earlier = "---\nname: a\ndescription: Old.\n---\nBody\n";
        let place = Path::new("/s/a/SKILL.md");
        let has = |source: &str, text: &str| has_texts(place, source, earlier, Some(text), Some(""));
        assert!(has("---\nname: a\ndescription: \"New: it.\"\n---\nBody\n", "Old."));
        assert!(!has("---\nname: a\ndescription: \"New: it.\"\n---\nBody\n", "Other."));
        assert!(!has("---\nname: a\ndescription: New.\n---\nOther\n", "Old."));
        assert!(!has("---\nname: b\ndescription: New.\n---\nBody\n", "Old."));
        assert!(!has("---\nname: a\ndescription: New.\nwhen_to_use: On it.\n---\nBody\n", "New."));
    }

    #[test]
    fn a_missing_field_and_a_changed_file_are_refused() {
        assert_eq!(write("Body\n", "x"), Err(WriteError::NoField));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("SKILL.md");
        std::fs::write(&file, "new").unwrap();
        assert!(matches!(replace_file(&file, b"old", b"mine"), Err(WriteError::Changed(_))));
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        replace_file(&file, b"new", b"mine").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }
}
