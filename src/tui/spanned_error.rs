//! Settings files as flat maps whose entries know their line, and errors with file and line.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_saphyr::Spanned;

use skills_base::suggest::nearest_name;

/// An error in a theme, keymap or other settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct LocatedError {
    /// The file, as shown to the user.
    pub file: String,
    /// Line in the file, from 1.
    pub line: u64,
    /// What is wrong and what to do.
    pub message: String,
}

impl LocatedError {
    pub fn new(file: &str, line: u64, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

/// One `key: value` of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// The value, unparsed.
    pub value: String,
    /// The value's line, from 1.
    pub line: u64,
}

/// Parses YAML into a type, with the parser's message and location on failure. Duplicate keys are errors.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, LocatedError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |at| at.line());
        let message = error.without_snippet().to_string();
        LocatedError::new(file, line, message.lines().next().unwrap_or("invalid YAML").to_owned())
    })
}

/// Parses a flat map of strings, in file order.
pub fn entries(file: &str, text: &str) -> Result<Vec<Entry>, LocatedError> {
    let map: BTreeMap<String, Spanned<String>> = read(file, text)?;
    let mut entries: Vec<Entry> = map
        .into_iter()
        .map(|(key, value)| Entry { key, line: value.referenced.line(), value: value.value })
        .collect();
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

/// Maximum number of known names that an error lists.
const MAX_LISTED: usize = 30;

/// Describes a name that is none of the known ones: with the nearest of them, or all if they are not too many.
pub fn unknown_name(what: &str, wrong: &str, expected: &[&str]) -> String {
    let hint = match nearest_name(wrong, expected.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if expected.len() <= MAX_LISTED => format!("; expected one of: {}", expected.join(", ")),
        None => String::new(),
    };
    format!("unknown {what} `{wrong}`{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_file_order_with_their_lines() {
        let read = entries("f.yaml", "# head\nb: one\na: two # why\n").unwrap();
        assert_eq!(
            read.iter().map(|e| (e.key.as_str(), e.value.as_str(), e.line)).collect::<Vec<_>>(),
            [("b", "one", 2), ("a", "two", 3)]
        );
    }

    #[test]
    fn duplicate_key_is_an_error_at_its_line() {
        let error = entries("f.yaml", "a: one\nb: two\na: three\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.to_string().starts_with("f.yaml:3: "), "{error}");
    }
}
