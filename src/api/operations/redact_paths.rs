//! Redacts errors for remote callers: removes paths of this machine, except those that the caller named.

use std::path::Path;

use serde_json::{Map, Value};

use super::Service;
use crate::{Connection, Error};

/// Characters after which a path may begin.
const BEFORE: &str = " \n\t`'\"([{<=:,;";
/// Characters at which a path ends.
const BEHIND: &str = " \n\t`'\")]}<>,;|";

/// Field of a reason with the sheet of a decision.
pub(super) const SHEET: &str = "decision";

/// Texts in the caller's arguments that may be paths.
pub(super) struct CallerInput(Vec<String>);

impl CallerInput {
    pub fn of(arguments: &Value) -> Self {
        let mut paths = Vec::new();
        collect(arguments, &mut paths);
        Self(paths)
    }

    fn contains(&self, path: &str) -> bool {
        self.0.iter().any(|caller_input| caller_input.contains(path))
    }
}

fn collect(value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains('/') => paths.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, paths)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, paths)),
        _ => {}
    }
}

/// Replaces roots in an error by their names, and other files of this machine by their file names.
pub(super) async fn redact_error(service: &Service, error: Error, caller_input: &CallerInput) -> Error {
    if !speaks_of_paths(&error) || service.core.connection() != Connection::Local {
        return error;
    }
    let mut roots = match service.core.catalogue().await {
        Ok(catalogue) => {
            let roots = catalogue.roots.iter();
            roots.map(|root| (root.path.display().to_string(), name(&root.label))).collect()
        }
        Err(_) => Vec::new(),
    };
    roots.retain(|(path, _)| path.len() > 1 && !caller_input.contains(path));
    // Of nested roots the inner one is named.
    roots.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    let is_place = |first: &str| Path::new(first).exists();
    let hide = |text: &str| hidden(text, &roots, caller_input, is_place);
    Error {
        code: error.code,
        message: hide(&error.message),
        suggestions: error.suggestions.iter().map(|text| hide(text)).collect(),
        reason: error.reason.map(|reason| {
            // The decision sheet is not redacted: every caller who may decide can read it on the run.
            let sheet = reason.get(SHEET).cloned();
            let mut reason = inside(reason, &hide);
            if let (Some(sheet), Some(fields)) = (sheet, reason.as_object_mut()) {
                fields.insert(SHEET.to_owned(), sheet);
            }
            reason
        }),
    }
}

fn speaks_of_paths(error: &Error) -> bool {
    error.message.contains('/')
        || error.suggestions.iter().any(|text| text.contains('/'))
        || error.reason.as_ref().is_some_and(|reason| {
            let mut texts = Vec::new();
            collect(reason, &mut texts);
            !texts.is_empty()
        })
}

/// Returns the name of a root: its label, unless that is an absolute path.
fn name(label: &str) -> String {
    match label.strip_prefix('/') {
        Some(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
        None => label.to_owned(),
    }
}

fn inside(value: Value, hide: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(hide(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| inside(item, hide)).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(key, field)| (key, inside(field, hide))).collect::<Map<_, _>>(),
        ),
        other => other,
    }
}

fn hidden(
    text: &str,
    roots: &[(String, String)],
    caller_input: &CallerInput,
    is_place: impl Fn(&str) -> bool,
) -> String {
    let mut text = text.to_owned();
    for (path, name) in roots {
        text = replaced(&text, path, name);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('/') {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back());
        let begins = before.is_none_or(|sign| BEFORE.contains(sign));
        let path = if begins { path_at(&rest[at..]) } else { "/" };
        out.push_str(&rest[..at]);
        let first = path.get(1..).and_then(|path| path.split('/').next()).unwrap_or_default();
        let deep = path.len() > first.len() + 2;
        if deep && !first.is_empty() && !caller_input.contains(path) && is_place(&format!("/{first}")) {
            out.push_str("…/");
            out.push_str(path.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        } else {
            out.push_str(path);
        }
        rest = &rest[at + path.len()..];
    }
    out.push_str(rest);
    out
}

/// Returns the path that a text begins with, without trailing punctuation.
fn path_at(text: &str) -> &str {
    let end = text.find(|sign| BEHIND.contains(sign)).unwrap_or(text.len());
    let path = text[..end].trim_end_matches(['.', ':', '!', '?']);
    if path.is_empty() { "/" } else { path }
}

/// Replaces every complete occurrence of a path by a name.
fn replaced(text: &str, path: &str, name: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let behind = rest[at + path.len()..].chars().next();
        let is_whole_path =
            behind.is_none_or(|sign| sign == '/' || sign == '.' || sign == ':' || BEHIND.contains(sign));
        out.push_str(&rest[..at]);
        out.push_str(if is_whole_path { name } else { path });
        rest = &rest[at + path.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(text: &str, arguments: &Value) -> String {
        let roots = [
            ("/srv/skills/team".to_owned(), "team".to_owned()),
            ("/srv/skills".to_owned(), "~/skills".to_owned()),
        ];
        hidden(text, &roots, &CallerInput::of(arguments), |first| ["/srv", "/home", "/tmp"].contains(&first))
    }

    #[test]
    fn roots_go_by_their_names_and_other_files_by_their_own() {
        for (text, expected) in [
            ("/srv/skills/team/pdf cannot be read", "team/pdf cannot be read"),
            ("run `skills trust /srv/skills/pdf`", "run `skills trust ~/skills/pdf`"),
            ("the policy /home/kim/.config/policy.yaml:3: no", "the policy …/policy.yaml:3: no"),
            ("opening sqlite:/home/kim/runs.db failed.", "opening sqlite:…/runs.db failed."),
            ("(/tmp/a/b), /tmp/c/d/.", "(…/b), …/d."),
            ("a word, and/or another", "a word, and/or another"),
            ("`/amounts/0` is not a number; GET /v1/runs/7", "`/amounts/0` is not a number; GET /v1/runs/7"),
            ("https://ledger.internal/tmp/x refused", "https://ledger.internal/tmp/x refused"),
            ("/srv/skills2/a", "…/a"),
        ] {
            assert_eq!(shown(text, &Value::Null), expected);
        }
    }

    #[test]
    fn what_the_caller_named_comes_back_as_it_was_named() {
        let arguments = json!({ "path": ["../../home/kim/secret.txt"], "n": 1 });
        assert_eq!(shown("no /home/kim/secret.txt", &arguments), "no /home/kim/secret.txt");
        assert_eq!(shown("no /home/kim/other.txt", &arguments), "no …/other.txt");
    }

    #[test]
    fn reasons_are_told_the_same_way() {
        let hide = |text: &str| shown(text, &Value::Null);
        let reason = json!({ "given": ["/home/kim/a"], "n": 1 });
        assert_eq!(inside(reason, &hide), json!({ "given": ["…/a"], "n": 1 }));
    }
}
