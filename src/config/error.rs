//! Errors in settings: file, line and column, and the allowed values.

use std::fmt;
use std::path::PathBuf;

/// A position in a settings file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationInFile {
    pub file: PathBuf,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for LocationInFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Rewrites a message of the YAML parser in the terms of the user interface.
pub fn reword_parser_error(message: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("invalid u64", "expected an integer"),
        ("invalid floating point", "expected a number"),
        ("invalid boolean (strict mode expects true/false)", "expected true or false"),
        ("expected sequence start", "expected a list"),
        ("expected mapping start", "expected a map"),
        ("expected string scalar", "expected a string"),
        (", set DuplicateKeyPolicy in Options if acceptable", ""),
    ];
    WORDS.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours))
}

/// Why the settings are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An invalid key or value in a file.
    #[error("{place}: {message}; {allowed}")]
    InFile {
        /// The position.
        place: LocationInFile,
        /// What is wrong.
        message: String,
        allowed: String,
    },
    /// An invalid value of an environment variable.
    #[error("invalid value `{value}` for {name}; {allowed}")]
    InEnvironment {
        /// The variable.
        name: String,
        value: String,
        allowed: String,
    },
    /// The file exists but cannot be read.
    #[error("{}: cannot be read ({why}); repair its permissions or remove it", file.display())]
    Unreadable {
        file: PathBuf,
        /// The error of the operating system.
        why: String,
    },
    /// The home folder cannot be determined.
    #[error("cannot determine the home directory; set HOME")]
    NoHome,
}
