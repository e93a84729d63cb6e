//! The subjects of the dialog for a session: a message, a script's arguments, an export; the fields of each, and the
//! resulting request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::form::Form;
use crate::golden_requests::{GoldenForm, GoldenPaneRequest, parse_expectation};
use crate::pane::Effect;
use crate::session_export::{Exported, Format};
use crate::session_requests::{ScriptCall, SessionRequest};
use crate::terminal::MAX_COPY_BYTES;
use crate::widgets::byte_size;
use skills_authoring::golden_file::GoldenEdit;
use skills_base::text::collapse_whitespace;
use skills_discovery::Case;
use skills_session::MessageRole;
use skills_skill::SkillId;
use skills_skill::contract::{Field, FieldType};

/// The subject of the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptKind {
    /// A message to add to a session.
    Message { session: String },
    /// The arguments and files of a script.
    Script {
        session: String,
        skill: String,
        path: String,
        /// Description of its isolation.
        isolation: String,
    },
    /// An export of a session, and its destination.
    Export {
        session: String,
        /// The session in every format.
        exports: Arc<[Exported]>,
        /// The format selected initially.
        first: Format,
        /// Whether there is a desktop clipboard: it accepts a text of any length.
        desktop: bool,
    },
    /// A golden query, new or to be changed.
    Golden(GoldenForm),
    /// The file that golden queries are imported from.
    Import,
}

fn field(description: &str) -> Field {
    Field { description: Some(description.to_owned()), ..Field::of(FieldType::String) }
}

impl PromptKind {
    pub(super) fn form(&self) -> Form {
        let fields = match self {
            Self::Message { .. } => BTreeMap::from([
                ("text".to_owned(), Field { required: true, ..field("Text of the message.") }),
                (
                    "as".to_owned(),
                    Field {
                        default: Some(json!("user")),
                        allowed: vec![json!("user"), json!("assistant")],
                        ..field("Role of the author.")
                    },
                ),
            ]),
            Self::Script { .. } => BTreeMap::from([
                ("args".to_owned(), field("Arguments separated by spaces; quote values with spaces.")),
                ("files".to_owned(), field("Files for its work directory: NAME=PATH, or PATH.")),
                ("env".to_owned(), field("Variables: NAME=VALUE.")),
            ]),
            Self::Export { exports, first, desktop, .. } => {
                let forms = exports.iter().map(|made| json!(made.format.to_string())).collect();
                let complete =
                    exports.iter().find(|made| made.format == *first).map_or(0, |made| made.text.len());
                let into = if complete > MAX_COPY_BYTES && !desktop { FILE } else { CLIPBOARD };
                let choice = |about: &str, default: &str, allowed: Vec<Value>| Field {
                    default: Some(json!(default)),
                    allowed,
                    ..field(about)
                };
                let path = "File to write. Empty: session-ID-FORMAT in the working directory.";
                BTreeMap::from([
                    ("format".to_owned(), choice("What to export.", &first.to_string(), forms)),
                    ("to".to_owned(), choice("Destination.", into, vec![json!(CLIPBOARD), json!(FILE)])),
                    ("path".to_owned(), field(path)),
                    (
                        "overwrite".to_owned(),
                        choice("Overwrite an existing file.", "no", vec![json!("no"), json!("yes")]),
                    ),
                ])
            }
            Self::Golden(_) => {
                let expected = "Ids of skills that may rank first; `none`; or `not ID`.";
                BTreeMap::from([
                    ("query".to_owned(), Field { required: true, ..field("The request of a user.") }),
                    ("skills".to_owned(), Field { required: true, ..field(expected) }),
                ])
            }
            Self::Import => BTreeMap::from([
                (
                    "file".to_owned(),
                    Field { required: true, ..field("Path of a .json, .jsonl, .csv or .yaml file.") },
                ),
                (
                    "skill".to_owned(),
                    field(
                        "Id of the skill that an evaluation file belongs to, if the path does not identify it.",
                    ),
                ),
            ]),
        };
        let values = match self {
            Self::Golden(form) => {
                let query = form.query.as_ref().map(|query| ("query".to_owned(), json!(query)));
                let skills = (!form.skills.is_empty()).then(|| ("skills".to_owned(), json!(form.skills)));
                query.into_iter().chain(skills).collect()
            }
            _ => Map::new(),
        };
        let form = Form::new(&fields, &values);
        if matches!(self, Self::Export { .. }) {
            return form.in_order(&["format", "to", "path", "overwrite"]);
        }
        form
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Message { .. } => "say".to_owned(),
            Self::Script { skill, path, .. } => name_of_script(skill, path),
            Self::Export { .. } => EXPORT_DRAFT_KEY.to_owned(),
            Self::Golden(_) => "golden".to_owned(),
            Self::Import => "import".to_owned(),
        }
    }

    /// Converts the fields to an effect.
    ///
    /// # Errors
    /// Returns a message about what cannot be parsed.
    pub(super) fn ask(&self, values: &Map<String, Value>) -> Result<Effect, String> {
        let text = |name: &str| values.get(name).and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Golden(form) => {
                let expect = parse_expectation(text("skills"))?;
                let case = Case { query: collapse_whitespace(text("query")), expect };
                Ok(Effect::Golden(match &form.replaces {
                    None => GoldenPaneRequest::Add(case),
                    Some((file, place, expected)) => GoldenPaneRequest::Edit {
                        file: file.clone(),
                        edit: GoldenEdit::Replace(*place, case),
                        expected: expected.clone(),
                    },
                }))
            }
            Self::Import => {
                let skill = Some(text("skill").trim()).filter(|skill| !skill.is_empty()).map(SkillId::new);
                Ok(Effect::Golden(GoldenPaneRequest::Import { path: text("file").to_owned(), skill }))
            }
            Self::Message { session } => {
                let speaker =
                    if text("as") == "assistant" { MessageRole::Assistant } else { MessageRole::User };
                Ok(Effect::Session(SessionRequest::Say(session.clone(), speaker, text("text").to_owned())))
            }
            Self::Script { session, skill, path, .. } => {
                let args = words(text("args"))?;
                let env: BTreeMap<String, String> = words(text("env"))?
                    .into_iter()
                    .map(|word| match word.split_once('=') {
                        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                        _ => Err(format!("env: {word} is not NAME=VALUE")),
                    })
                    .collect::<Result<_, _>>()?;
                let files =
                    words(text("files"))?.into_iter().map(parse_file_arg).collect::<Result<_, _>>()?;
                let call = ScriptCall {
                    session: session.clone(),
                    arguments: json!({"path": path, "skill": skill, "args": args, "env": env}),
                    files,
                };
                Ok(Effect::Session(SessionRequest::Script { call, confirmed: None }))
            }
            Self::Export { session, exports, first, desktop } => {
                let format = text("format").parse().unwrap_or(*first);
                let Some(made) = exports.iter().find(|made| made.format == format) else {
                    return Err(format!("unknown format {format}"));
                };
                let size = made.text.len();
                let usual = if size > MAX_COPY_BYTES && !desktop { FILE } else { CLIPBOARD };
                let into = Some(text("to")).filter(|into| !into.is_empty()).unwrap_or(usual);
                if into == FILE || !text("path").trim().is_empty() && text("to").is_empty() {
                    let path = Some(text("path").trim()).filter(|path| !path.is_empty());
                    let path = path.map_or_else(|| format.file_name(session), str::to_owned);
                    let (text, replace) = (Arc::clone(&made.text), text("overwrite") == "yes");
                    return Ok(Effect::Session(SessionRequest::Write { path, text, replace }));
                }
                if size > MAX_COPY_BYTES && !desktop {
                    let most = byte_size(MAX_COPY_BYTES as u64);
                    let size = byte_size(size as u64);
                    return Err(format!(
                        "{size} exceed the limit of the terminal clipboard, {most}: choose file"
                    ));
                }
                Ok(Effect::Copy(made.text.to_string(), format!("the session as {format}")))
            }
        }
    }
}

/// The two destinations.
const CLIPBOARD: &str = "clipboard";
const FILE: &str = "file";
/// Name of the draft of an export.
pub const EXPORT_DRAFT_KEY: &str = "export";

/// Returns the name of the draft of a script's arguments.
pub fn name_of_script(skill: &str, path: &str) -> String {
    format!("script {skill} {path}")
}

/// Parses `NAME=PATH`, or a path whose last component is the name.
fn parse_file_arg(word: String) -> Result<(String, String), String> {
    let (name, path) = if let Some((name, path)) = word.split_once('=') {
        (name.to_owned(), path.to_owned())
    } else {
        let name = std::path::Path::new(&word).file_name().map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), word.clone())
    };
    if name.is_empty() || path.is_empty() {
        return Err(format!("files: {word} is not a file"));
    }
    Ok((name, path))
}

/// Splits a text into words as a shell does.
fn words(text: &str) -> Result<Vec<String>, String> {
    crate::editor::words(text).map_err(|quote| format!("the quote {quote} in {text:?} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_in_a_shell() {
        let of = |text: &str| words(text).unwrap();
        assert_eq!(
            of("  --top 3 'two words' \"a \\\" b\" c\\ d '' "),
            ["--top", "3", "two words", "a \" b", "c d", ""]
        );
        assert!(words("'open").unwrap_err().contains("not closed"));
    }

    #[test]
    fn script_prompt_has_arguments_and_files() {
        let asking = PromptKind::Script {
            session: "s".into(),
            skill: "csv".into(),
            path: "scripts/a.py".into(),
            isolation: "sandboxed".into(),
        };
        let values = json!({"args": "--top 3", "files": "in.csv=./orders.csv notes.txt", "env": "A=b=c"});
        let Effect::Session(SessionRequest::Script {
            call: ScriptCall { arguments, files, .. },
            confirmed: None,
        }) = asking.ask(values.as_object().unwrap()).unwrap()
        else {
            unreachable!("a script that is reviewed first")
        };
        assert_eq!(arguments["args"], json!(["--top", "3"]));
        assert_eq!(arguments["env"], json!({"A": "b=c"}));
        let files: Vec<(&str, &str)> = files.iter().map(|(n, p)| (n.as_str(), p.as_str())).collect();
        assert_eq!(files, [("in.csv", "./orders.csv"), ("notes.txt", "notes.txt")]);
        let wrong = json!({"env": "A"});
        assert!(asking.ask(wrong.as_object().unwrap()).unwrap_err().contains("NAME=VALUE"));
    }

    fn export(length: usize, desktop: bool, values: &Value) -> Result<Effect, String> {
        let text: Arc<str> = "x".repeat(length).into();
        let exports = [Format::Text, Format::OpenaiChat].map(|format| Exported {
            format,
            text: text.clone(),
            notes: Vec::new(),
        });
        let asking = PromptKind::Export {
            session: "019a0f00-ddddee123456".into(),
            exports: exports.into(),
            first: Format::OpenaiChat,
            desktop,
        };
        asking.ask(values.as_object().unwrap())
    }

    #[test]
    fn export_uses_the_clipboard_or_a_file_by_size() {
        let copied = export(10, false, &json!({}));
        assert!(matches!(copied, Ok(Effect::Copy(text, _)) if text.len() == 10));
        let file = |effect| match effect {
            Ok(Effect::Session(SessionRequest::Write { path, replace, .. })) => (path, replace),
            other => unreachable!("{other:?}"),
        };
        let written = file(export(60_000, false, &json!({})));
        assert_eq!(written, ("session-123456-openai-chat.json".to_owned(), false), "too long to copy");
        let named = json!({"format": "text", "path": " out.txt ", "overwrite": "yes"});
        assert_eq!(file(export(10, false, &named)), ("out.txt".to_owned(), true), "a path means a file");
        let over = export(60_000, false, &json!({"to": "clipboard"})).unwrap_err();
        assert!(over.contains("clipboard") && over.contains("choose file"), "{over}");
        assert!(
            matches!(export(60_000, true, &json!({})), Ok(Effect::Copy(..))),
            "a desktop takes any length"
        );
    }
}
