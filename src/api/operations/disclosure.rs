//! Details of failed calls that only callers with the scope `admin` see: the target of a binding, and its response.
//!
//! Records keep them separate (`detail`, `binding`, `tried` next to a `message` for everyone). Failures recorded by
//! earlier versions contain everything in their message, which is replaced by the meaning of their code.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Map, Value};

use crate::Error;
use skills_runs::BindingChoice;

/// Fields of a failure that only `admin` may see.
const PRIVATE: [&str; 3] = ["detail", "binding", "tried"];

/// Members that hold values of callers, scripts, services and skills. A value in them that looks like a failure is none,
/// and an approver has to see all of it.
const VALUES: [&str; 15] = [
    "inputs",
    "inputs_before",
    "corrected_inputs",
    "input_fields",
    "default",
    "contract",
    "frontmatter",
    "outputs",
    "content",
    "payload",
    "arguments",
    "env",
    "labels",
    "metadata",
    "changed",
];

/// What replaces a text that only callers with the scope `decide` see.
const FOR_DECISIONS: &str = "shown to callers with the scope `decide`";

/// Returns whether a JSON text may contain details to remove.
pub fn may_hold_details(json: &[u8]) -> bool {
    // A field with one of the first two names occurs in every failure; `tried` never occurs alone.
    let has = |field: &[u8]| json.windows(field.len()).any(|window| window == field);
    has(b"\"detail\":") || has(b"\"binding\":") || has(b"\"files\":{\"")
}

/// Removes the details of failures from a result: itself, or recorded in it.
pub fn remove_details(value: &mut Value) {
    for_each_record(value, true, &mut |fields, is_failure| {
        if let Some(code) = failure_code(fields).filter(|_| is_failure) {
            if fields.contains_key("binding") && !fields.contains_key("detail") {
                let message = format!("the call failed: {}", code.replace('_', " "));
                fields.insert("message".to_owned(), message.into());
            }
            for field in PRIVATE {
                fields.remove(field);
            }
        }
        if is_decision(fields)
            && let Some(public) = fields.remove("blocked_public")
        {
            fields.insert("blocked".to_owned(), public);
        }
        if fields.contains_key("step") && has_status(fields, "failed") {
            fields.remove("binding");
        }
    });
}

/// Removes the addresses from the bindings and the isolation in decision previews, for callers who may not decide.
pub(super) fn hide_bindings(value: &mut Value) {
    for_each_record(value, false, &mut |fields, _| {
        if is_decision(fields) {
            fields.insert("binding".to_owned(), FOR_DECISIONS.into());
            fields.remove("fallbacks");
            if let Some(Value::String(isolation)) = fields.get_mut("isolation") {
                *isolation = BindingChoice::public_isolation(isolation).to_owned();
            }
        }
    });
}

/// Replaces the paths of files that runs pass to scripts by their file names, and hides their digests, from which short
/// contents could be guessed, for callers who may not decide.
pub(super) fn hide_files(value: &mut Value) {
    for_each_record(value, false, &mut |fields, _| {
        if is_decision(fields) {
            let files = fields.get_mut("files").and_then(Value::as_array_mut);
            for file in files.into_iter().flatten().filter_map(Value::as_object_mut) {
                if let Some(path) = file.get_mut("path") {
                    keep_file_name(path);
                }
                if let Some(digest) = file.get_mut("sha256") {
                    *digest = FOR_DECISIONS.into();
                }
            }
        }
        let Some(options) = fields.get_mut("options").and_then(Value::as_object_mut) else { return };
        if let Some(Value::Object(files)) = options.get_mut("files") {
            files.values_mut().for_each(keep_file_name);
        }
        if let Some(Value::Object(digests)) = options.get_mut("file_digests") {
            digests.values_mut().for_each(|digest| *digest = FOR_DECISIONS.into());
        }
    });
}

fn keep_file_name(path: &mut Value) {
    let name = path.as_str().and_then(|path| Path::new(path).file_name()).and_then(OsStr::to_str);
    if let Some(name) = name.map(Value::from) {
        *path = name;
    }
}

/// Calls `change` with every object that this program wrote, not with those in [`VALUES`], and with whether it is the
/// record of a failure.
fn for_each_record(
    value: &mut Value,
    is_failure: bool,
    change: &mut impl FnMut(&mut Map<String, Value>, bool),
) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_record(item, is_failure, change)),
        Value::Object(fields) => {
            change(fields, is_failure);
            let has_failed = fields.contains_key("step") && has_status(fields, "failed");
            let is_checkpoint = fields.contains_key("done");
            let is_event = fields.contains_key("kind");
            for (name, field) in fields.iter_mut() {
                let name = name.as_str();
                let is_value = VALUES.contains(&name)
                    || (name == "result" && !has_failed)
                    || (name == "data" && !is_event)
                    || (name == "state" && is_checkpoint);
                if !is_value {
                    // The data of an event may be a failure.
                    let is_failure = ["error", "data", "result"].contains(&name);
                    for_each_record(field, is_failure, change);
                }
            }
        }
        _ => {}
    }
}

/// Returns whether this is what an approver sees of a waiting step.
fn is_decision(fields: &Map<String, Value>) -> bool {
    fields.contains_key("headline") && fields.contains_key("inputs_digest")
}

/// Returns whether this is a step, or a run, with a status.
fn has_status(fields: &Map<String, Value>, status: &str) -> bool {
    ["status", "state"].iter().any(|name| fields.get(*name).and_then(Value::as_str) == Some(status))
}

/// Returns the code of a recorded failure; a step's own record, which names its binding too, has none.
fn failure_code(fields: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    text("message").or_else(|| text("detail"))?;
    text("code").map(str::to_owned)
}

/// Removes the details from an error.
pub(super) fn without_details(error: Error) -> Error {
    let Some(mut reason) = error.reason else { return error };
    remove_details(&mut reason);
    // A call that was rejected or failed without a run: the reason is its public form.
    let public = reason.get("capability").is_some() && reason.get("kind").is_some();
    let message = match reason.get("message").and_then(Value::as_str).filter(|_| public) {
        Some(message) => message.to_owned(),
        None => error.message,
    };
    Error { message, reason: Some(reason), ..error }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_details_of_failures_are_removed() {
        let mut answer = json!({
            "run": { "error": {
                "code": "upstream_failure", "message": "`net.get`: its service returned an error (500)",
                "reason": { "kind": "error_answer", "capability": "net.get", "status": 500 },
                "detail": "POST http://10.0.0.1/x answered 500: secret", "binding": "net-get",
                "tried": [{ "binding": "other", "reason": "http://10.0.0.2" }], "step": "get",
            } },
            "steps": [
                { "step": "get", "binding": "net-get", "status": "failed" },
                { "step": "put", "binding": "net-put", "status": "completed" },
            ],
            "events": [{ "kind": "step.log", "data": {
                "stream": "engine", "text": "x", "code": "upstream_failure", "detail": "http://10.0.0.1" } }],
        });
        assert!(may_hold_details(&serde_json::to_vec(&answer).unwrap()));
        remove_details(&mut answer);
        let text = answer.to_string();
        assert!(!text.contains("10.0.0") && !text.contains("secret"), "{text}");
        assert_eq!(answer["run"]["error"]["reason"]["status"], 500);
        assert_eq!(answer["run"]["error"]["step"], "get");
        assert_eq!(
            (&answer["steps"][0]["binding"], &answer["steps"][1]["binding"]),
            (&Value::Null, &json!("net-put"))
        );
    }

    #[test]
    fn values_that_look_like_failures_are_unchanged() {
        let value = json!({ "code": "paid", "message": "5 EUR", "detail": { "amount": 99_999 }, "binding": "b",
                            "headline": "x", "inputs_digest": "y", "status": "failed", "tried": [] });
        let answer = json!({
            "run": { "inputs": { "order": value }, "outputs": value, "state": "completed",
                     "options": { "corrected_inputs": value } },
            "sheet": { "headline": "send", "inputs_digest": "d", "binding": "b", "inputs": [value],
                       "fallbacks": ["c"], "target": { "content": value } },
            "script": { "env": value, "metadata": value }, "earlier": [{ "changed": [value] }],
            "steps": [{ "step": "get", "status": "completed", "inputs": value, "result": value }],
            "checkpoints": [{ "number": 1, "done": [], "state": { "vars": { "v": value } } }],
            "events": [
                { "kind": "signal.received", "data": { "payload": value } },
                { "kind": "gate.approved", "data": { "result": { "error": value } } },
            ],
            "input_fields": { "order": { "default": { "data": value, "error": value } } },
            "decisions": [{ "decision": { "result": { "data": value } } }],
            "contract": { "steps": [{ "input": { "error": value } }] },
            "frontmatter": { "data": value, "error": value },
        });
        let mut shown = answer.clone();
        remove_details(&mut shown);
        assert_eq!(shown, answer);
        hide_bindings(&mut shown);
        assert_ne!(shown["sheet"]["binding"], "b");
        assert_eq!(shown["sheet"]["fallbacks"], Value::Null);
        shown["sheet"]["binding"] = "b".into();
        shown["sheet"]["fallbacks"] = json!(["c"]);
        assert_eq!(shown, answer);
    }

    #[test]
    fn isolation_of_an_approval_names_no_host_and_no_program() {
        for (isolation, public) in [
            ("another machine: ledger.internal, unencrypted", "another machine"),
            (
                "your program, not sandboxed: /opt/pay, with only its configured variables",
                "your program, not sandboxed",
            ),
            ("sandbox, full: Landlock", "sandbox, full: Landlock"),
        ] {
            let sheet =
                json!({ "headline": "send", "inputs_digest": "d", "binding": "b", "isolation": isolation });
            let mut answer = json!({ "sheet": sheet });
            hide_bindings(&mut answer);
            assert_eq!(answer["sheet"]["isolation"], public);
        }
    }

    #[test]
    fn files_of_a_run_are_only_named() {
        let options =
            json!({ "files": { "data": "/home/ann/salaries.json" }, "file_digests": { "data": "e346" } });
        let file = json!({ "name": "data", "path": "/home/ann/salaries.json", "sha256": "e346" });
        let sheet = json!({ "headline": "send", "inputs_digest": "d", "binding": "b", "files": [file] });
        let page = json!({ "runs": [{ "options": options, "inputs": { "options": options } }] });
        assert!(may_hold_details(&serde_json::to_vec(&page).unwrap()));
        let mut answer = json!({ "run": { "options": options }, "sheet": sheet, "page": page });
        hide_files(&mut answer);
        let hidden =
            json!({ "files": { "data": "salaries.json" }, "file_digests": { "data": FOR_DECISIONS } });
        assert_eq!(answer["run"]["options"], hidden);
        let run = &answer["page"]["runs"][0];
        assert_eq!((&run["options"], &run["inputs"]["options"]), (&hidden, &options));
        let file = json!({ "name": "data", "path": "salaries.json", "sha256": FOR_DECISIONS });
        assert_eq!(answer["sheet"]["files"], json!([file]));
    }

    #[test]
    fn obstacle_of_an_approval_is_replaced_by_its_public_form() {
        let sheet = json!({
            "headline": "send", "inputs_digest": "d", "binding": "b", "blocked": "`net.pay`: add http://10.0.0.1",
            "blocked_public": "`net.pay`: no binding is configured correctly",
        });
        let mut answer = json!({ "sheet": sheet });
        assert!(may_hold_details(&serde_json::to_vec(&answer).unwrap()));
        remove_details(&mut answer);
        let public = json!({
            "headline": "send", "inputs_digest": "d", "binding": "b",
            "blocked": "`net.pay`: no binding is configured correctly",
        });
        assert_eq!(answer["sheet"], public);
    }

    #[test]
    fn failure_of_an_earlier_version_keeps_only_its_code() {
        let mut error = json!({
            "code": "upstream_failure", "message": "`net.get` through `b`: POST http://10.0.0.1 answered 500",
            "binding": "b",
        });
        remove_details(&mut error);
        assert_eq!(
            error,
            json!({ "code": "upstream_failure", "message": "the call failed: upstream failure" })
        );
    }
}
