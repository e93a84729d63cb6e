//! Exports of a session: the formats, the size of each, and writing one to a file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strum::IntoEnumIterator as _;

use skills_api::{Error, SessionClient};
use skills_session::Api;

/// A format of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// The instructions of the next call, byte for byte.
    Text,
    /// The complete request, for Anthropic Messages.
    Anthropic,
    /// The complete request, for `OpenAI` Responses.
    OpenaiResponses,
    /// The complete request, for `OpenAI` Chat Completions.
    OpenaiChat,
    Transcript,
}

impl Format {
    /// Returns the API of a request format.
    pub fn api(self) -> Option<Api> {
        match self {
            Self::Anthropic => Some(Api::Anthropic),
            Self::OpenaiResponses => Some(Api::OpenaiResponses),
            Self::OpenaiChat => Some(Api::OpenaiChat),
            Self::Text | Self::Transcript => None,
        }
    }

    /// Returns the format of an API's request.
    pub fn of(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic,
            Api::OpenaiResponses => Self::OpenaiResponses,
            Api::OpenaiChat => Self::OpenaiChat,
        }
    }

    /// Returns the default file name of an export.
    pub fn file_name(self, session: &str) -> String {
        let end = if self == Self::Text { "txt" } else { "json" };
        format!("session-{}-{self}.{end}", short_id(session))
    }
}

/// Returns the end of a session's id, which identifies it in lists and commands: ids of the same hour share their
/// beginning.
pub fn short_id(id: &str) -> &str {
    let from = id.char_indices().rev().nth(5).map_or(0, |(at, _)| at);
    &id[from..]
}

/// A session in one format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub format: Format,
    /// The complete text.
    pub text: Arc<str>,
    /// Errors that the service is expected to report, and what to do.
    pub notes: Vec<String>,
}

/// Exports a session in every format.
///
/// # Errors
/// Returns an error if composing or exporting the session fails.
pub async fn every_form(core: &dyn SessionClient, session: &str) -> Result<Arc<[Exported]>, Error> {
    let mut all = Vec::new();
    for format in Format::iter() {
        let mut notes = Vec::new();
        let text = match (format, format.api()) {
            (_, Some(api)) => {
                let payload = core.export_session(session, api, "MODEL").await?;
                notes = payload.notes;
                pretty(&payload.body)
            }
            (Format::Transcript, _) => {
                let transcript = core.session(session).await?.transcript;
                pretty(&serde_json::to_value(transcript).unwrap_or_default())
            }
            _ => core.compose(session, false).await?.composed.text,
        };
        all.push(Exported { format, text: text.into(), notes });
    }
    Ok(all.into())
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Writes a text to a file atomically; an existing file is overwritten only with `replace`. Blocks.
///
/// # Errors
/// Returns a message with the file's name.
pub fn write(path: &str, text: &str, replace: bool, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(path),
    };
    let describe = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{} already exists: choose another file, or enable overwrite", path.display())
        }
        _ => format!("cannot write {}: {error}", path.display()),
    };
    if path.is_dir() {
        return Err(format!("{} is a directory; specify a file", path.display()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(describe)?;
    file.write_all(text.as_bytes()).map_err(describe)?;
    let persisted = if replace { file.persist(&path) } else { file.persist_noclobber(&path) };
    persisted.map_err(|error| describe(error.error))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_file_is_replaced_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json").to_string_lossy().into_owned();
        let read = || std::fs::read_to_string(&path).unwrap();
        write(&path, "one", false, None).unwrap();
        let refused = write(&path, "two", false, None).unwrap_err();
        assert!(refused.contains("already exists") && refused.contains(&path), "{refused}");
        assert_eq!(read(), "one");
        write(&path, "two", true, None).unwrap();
        assert_eq!(read(), "two");
        write("~/home.txt", "at home", false, Some(dir.path())).unwrap();
        assert!(dir.path().join("home.txt").exists());
        let folder = write(&dir.path().to_string_lossy(), "x", true, None).unwrap_err();
        assert!(folder.contains("directory"), "{folder}");
        let nowhere = dir.path().join("no/such/out.json").to_string_lossy().into_owned();
        assert!(write(&nowhere, "x", false, None).unwrap_err().contains("cannot write"));
    }

    #[test]
    fn file_names_contain_session_and_format() {
        let id = "019a0f00-aaaa-7bbb-8ccc-ddddee123456";
        assert_eq!(short_id(id), "123456");
        assert_eq!(Format::Text.file_name(id), "session-123456-text.txt");
        assert_eq!(Format::OpenaiChat.file_name(id), "session-123456-openai-chat.json");
        assert_eq!((short_id("ab"), short_id("")), ("ab", ""));
    }
}
