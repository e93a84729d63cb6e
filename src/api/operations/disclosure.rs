//! What callers without the scope `admin` are not told of failed calls: where a binding leads, and what came back from
//! there.
//!
//! What is recorded keeps both apart (`detail`, `binding`, `tried` beside a `message` for everybody). Failures that were
//! recorded by earlier versions have all of it in their message, which is replaced by what their code says.

use serde_json::{Map, Value};

use crate::Error;

/// Fields of a failure that are for `admin` alone.
const PRIVATE: [&str; 3] = ["detail", "binding", "tried"];

/// Whether a JSON text may hold something that has to be taken out.
#[must_use]
pub fn may_hold_details(json: &[u8]) -> bool {
    // A field of one of these names comes with a failure; a `tried` never is alone.
    let has = |field: &[u8]| json.windows(field.len()).any(|window| window == field);
    has(b"\"detail\":") || has(b"\"binding\":")
}

/// Takes the details of failures out of an answer.
pub fn remove_details(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_details),
        Value::Object(fields) => {
            if let Some(code) = failure_code(fields) {
                if fields.contains_key("binding") && !fields.contains_key("detail") {
                    let message = format!("the call failed: {}", code.replace('_', " "));
                    fields.insert("message".to_owned(), message.into());
                }
                for field in PRIVATE {
                    fields.remove(field);
                }
            }
            if ended_in_failure(fields) {
                fields.remove("binding");
            }
            fields.values_mut().for_each(remove_details);
        }
        _ => {}
    }
}

/// Whether this is a step that failed.
fn ended_in_failure(fields: &Map<String, Value>) -> bool {
    let is_failed = |name: &str| fields.get(name).and_then(Value::as_str) == Some("failed");
    is_failed("status") || is_failed("state")
}

/// The code of a recorded failure; a step's own record, which names its binding too, has none.
fn failure_code(fields: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    text("message").or_else(|| text("detail"))?;
    text("code").map(str::to_owned)
}

/// The same of an error.
pub(super) fn without_details(error: Error) -> Error {
    let Some(mut reason) = error.reason else { return error };
    remove_details(&mut reason);
    // Of a call that was refused or failed by itself, without a run: the reason is its public form.
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
    fn details_of_failures_go_and_everything_else_stays() {
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
    fn a_failure_of_an_earlier_version_keeps_its_code_alone() {
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
