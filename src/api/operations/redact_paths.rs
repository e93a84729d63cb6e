//! Redacts errors for remote callers: removes paths of this machine, except those that the caller named.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value};

use super::Service;
use crate::{Connection, Error};
use skills_skill::prefix;

/// Characters after which a path may begin.
const BEFORE: &str = " \n\t`'\"([{<=:,;";
/// Characters at which a path ends.
const PATH_TERMINATORS: &str = " \n\t`'\")]}<>,;|";

/// Field of a reason with the preview of a decision.
pub(super) const DECISION_FIELD: &str = "decision";

/// Maximum size of a caller's text that may be a path, and of all of them, in bytes.
const MAX_PATH_BYTES: usize = 4 << 10;
const MAX_INPUT_BYTES: usize = 64 << 10;
/// Maximum number of paths of an error that are compared with the caller's; further ones are removed.
const MAX_LOOKUPS: usize = 500;
/// Maximum size of a message in bytes: some repeat an argument of the caller.
const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// Texts in the caller's arguments that may be paths.
pub(super) struct CallerInput {
    texts: Vec<String>,
    lookups_left: AtomicUsize,
}

impl CallerInput {
    pub fn of(arguments: &Value) -> Self {
        let mut texts = Vec::new();
        let mut left = MAX_INPUT_BYTES;
        collect(arguments, &mut |text| {
            if text.len() <= left.min(MAX_PATH_BYTES) {
                left -= text.len();
                texts.push(text.to_owned());
            }
        });
        Self { texts, lookups_left: AtomicUsize::new(MAX_LOOKUPS) }
    }

    fn contains(&self, path: &str) -> bool {
        self.texts.iter().any(|text| text.contains(path))
    }

    /// Returns whether a path has to be removed: the caller did not name it, and it may be one of this machine.
    fn hides(&self, path: &str, is_place: impl Fn() -> bool) -> bool {
        let spend = |left: usize| left.checked_sub(1);
        let is_left = self.lookups_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok();
        !is_left || (!self.contains(path) && is_place())
    }
}

/// Calls a function for each text that contains a slash.
fn collect(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if text.contains('/') => each(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, each)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, each)),
        _ => {}
    }
}

/// Shortens a long message.
pub(super) fn shorten(message: &mut String) {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(prefix(message, MAX_MESSAGE_BYTES).len());
        message.push('…');
    }
}

/// Replaces roots in an error by their names, and other files of this machine by their file names.
pub(super) async fn redact_error(service: &Service, error: Error, caller_input: &CallerInput) -> Error {
    if !contains_path(&error) || service.core.connection() != Connection::Local {
        return error;
    }
    let mut roots = match service.core.catalog().await {
        Ok(catalog) => {
            let roots = catalog.roots.iter();
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
            // The decision preview is not redacted: every caller who may decide can read it on the run.
            let preview = reason.get(DECISION_FIELD).cloned();
            let mut reason = inside(reason, &hide);
            if let (Some(preview), Some(fields)) = (preview, reason.as_object_mut()) {
                fields.insert(DECISION_FIELD.to_owned(), preview);
            }
            reason
        }),
    }
}

fn contains_path(error: &Error) -> bool {
    error.message.contains('/')
        || error.suggestions.iter().any(|text| text.contains('/'))
        || error.reason.as_ref().is_some_and(|reason| {
            let mut speaks = false;
            collect(reason, &mut |_| speaks = true);
            speaks
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
        if deep && !first.is_empty() && caller_input.hides(path, || is_place(&format!("/{first}"))) {
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
    let end = text.find(|sign| PATH_TERMINATORS.contains(sign)).unwrap_or(text.len());
    let path = text[..end].trim_end_matches(['.', ':', '!', '?']);
    if path.is_empty() { "/" } else { path }
}

/// Replaces every complete occurrence of a path by a name.
fn replaced(text: &str, path: &str, name: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let behind = rest[at + path.len()..].chars().next();
        let is_whole_path = behind
            .is_none_or(|sign| sign == '/' || sign == '.' || sign == ':' || PATH_TERMINATORS.contains(sign));
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
    fn paths_are_replaced_by_root_or_file_names() {
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
    fn paths_of_the_caller_are_not_redacted() {
        let arguments = json!({ "path": ["../../home/kim/secret.txt"], "n": 1 });
        assert_eq!(shown("no /home/kim/secret.txt", &arguments), "no /home/kim/secret.txt");
        assert_eq!(shown("no /home/kim/other.txt", &arguments), "no …/other.txt");
    }

    #[test]
    fn redaction_work_is_bounded() {
        let many = |count: usize| (0..count).map(|n| format!("/srv/{n}/x ")).collect::<String>();
        let input = CallerInput::of(&json!({ "intent": many(1_000_000), "path": "/srv/1/x" }));
        assert_eq!(input.texts, ["/srv/1/x"], "no path is that long");
        let input = CallerInput::of(&json!({ "paths": vec!["/0".repeat(2000); 1000] }));
        assert!(input.texts.iter().map(String::len).sum::<usize>() <= MAX_INPUT_BYTES);
        // Paths past the limit are removed without being looked up.
        let lookups = std::cell::Cell::new(0);
        let is_place = |_: &str| {
            lookups.set(lookups.get() + 1);
            false
        };
        let text = hidden(&many(2000), &[], &input, is_place);
        assert_eq!(lookups.get(), MAX_LOOKUPS);
        assert_eq!(text.matches("/srv/").count(), MAX_LOOKUPS);
        let mut message = "é".repeat(MAX_MESSAGE_BYTES);
        shorten(&mut message);
        assert!(message.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8() && message.ends_with("é…"));
    }

    #[test]
    fn reasons_are_redacted_the_same_way() {
        let hide = |text: &str| shown(text, &Value::Null);
        let reason = json!({ "given": ["/home/kim/a"], "n": 1 });
        assert_eq!(inside(reason, &hide), json!({ "given": ["…/a"], "n": 1 }));
    }
}
