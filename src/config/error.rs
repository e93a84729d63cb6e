//! What can be wrong in a setting: the file, line and column, and what is allowed there.

use std::fmt;
use std::path::PathBuf;

/// A place in a settings file. Lines and columns count from 1; a column counts characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationInFile {
    /// The file.
    pub file: PathBuf,
    /// Line in it.
    pub line: u32,
    /// Column in that line.
    pub column: u32,
}

impl fmt::Display for LocationInFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A key or value in a file.
    #[error("{place}: {message}; {allowed}")]
    InFile {
        /// Where.
        place: LocationInFile,
        /// What is wrong.
        message: String,
        /// What may be there.
        allowed: String,
    },
    /// The value of an environment variable.
    #[error("{name}={value}: {allowed}")]
    InEnvironment {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// What may be there.
        allowed: String,
    },
    /// The file is there but cannot be read.
    #[error("{}: cannot be read ({why}); repair its permissions or remove it", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's words.
        why: String,
    },
    /// The system does not say where home is.
    #[error("cannot determine the home directory; set HOME")]
    NoHome,
}
