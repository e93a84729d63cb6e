//! JSON-RPC 2.0 over HTTP (<https://www.jsonrpc.org/specification>): one request, one response.

use serde_json::{Value, json};

use super::super::call::CallFailure;
use super::http::{accepted, json as parsed};
use super::{BindingCall, BindingContext, BindingFailure, BindingResponse, Effect, excerpt};

pub async fn execute(
    context: &BindingContext,
    job: &BindingCall<'_>,
) -> Result<BindingResponse, BindingFailure> {
    let binding = &job.offered.binding;
    let (endpoint, url) = context.http_service(job)?;
    let id = &job.call.idempotency_key;
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": binding.operation, "params": job.request() });
    let request =
        context.http.client()?.post(url).header("content-type", "application/json").body(body.to_string());
    let request = context.with_auth(request, &binding.service, endpoint, job.call)?;
    let answered = context.http.exchange(request, job, endpoint).await?;
    // Some servers send error objects with an HTTP error status; the object is more specific.
    let answer = parsed(&answered, &job.target);
    if !answer.as_ref().is_ok_and(|answer| answer.get("error").is_some()) {
        accepted(&answered, &job.target)?;
    }
    result(&answer?, id, &job.target).map(BindingResponse::of)
}

/// Extracts the result from a response.
fn result(answer: &Value, id: &str, target: &str) -> Result<Value, BindingFailure> {
    let no_answer = |why: &str| {
        BindingFailure::answer(format!(
            "{target}: the response is not JSON-RPC 2.0 ({why}): {}",
            excerpt(answer.to_string().as_bytes())
        ))
    };
    if answer.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(no_answer("`jsonrpc` is not \"2.0\""));
    }
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        return Err(failure(error, target));
    }
    if answer.get("id").and_then(Value::as_str) != Some(id) {
        return Err(no_answer("its `id` does not match the request"));
    }
    answer.get("result").cloned().ok_or_else(|| no_answer("it has neither `result` nor `error`"))
}

/// Maps an error object to a failure; codes as in section 5.1 of the specification.
fn failure(error: &Value, target: &str) -> BindingFailure {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
    let data = error.get("data").filter(|data| !data.is_null());
    let data = data.map(|data| format!(" ({})", excerpt(data.to_string().as_bytes()))).unwrap_or_default();
    let description = format!("{target} returned error {code}: {}{data}", excerpt(message.as_bytes()));
    let failed = match code {
        -32602 => BindingFailure::before(CallFailure::InvalidRequest, description),
        -32601 => BindingFailure::before(
            CallFailure::InvalidConfiguration,
            format!("{description}; correct the `operation` of the binding"),
        ),
        -32700 | -32600 => BindingFailure::before(CallFailure::RuntimeError, description),
        -32603 | -32099..=-32000 => BindingFailure::upstream(description, Effect::Possible),
        _ => BindingFailure { counts: false, ..BindingFailure::answer(description) },
    };
    failed.answered(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_must_match_the_request_id() {
        let read = |answer: Value| result(&answer, "k", "method m");
        assert_eq!(read(json!({"jsonrpc": "2.0", "id": "k", "result": {"a": 1}})).unwrap(), json!({"a": 1}));
        for (answer, code, message) in [
            (json!({"id": "k", "result": 1}), CallFailure::RuntimeError, "`jsonrpc`"),
            (json!({"jsonrpc": "2.0", "id": "other", "result": 1}), CallFailure::RuntimeError, "`id`"),
            (json!({"jsonrpc": "2.0", "id": "k"}), CallFailure::RuntimeError, "neither"),
            (json!([1]), CallFailure::RuntimeError, "`jsonrpc`"),
            (
                json!({"jsonrpc": "2.0", "id": "k", "error": {"code": -32602, "message": "no x", "data": {"f": "x"}}}),
                CallFailure::InvalidRequest,
                "no x ({\"f\":\"x\"})",
            ),
            (
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "?"}}),
                CallFailure::InvalidConfiguration,
                "`operation`",
            ),
            (
                json!({"jsonrpc": "2.0", "id": "k", "error": {"code": -32000, "message": "busy"}}),
                CallFailure::UpstreamFailure,
                "busy",
            ),
            (
                json!({"jsonrpc": "2.0", "id": "k", "error": {"code": 7, "message": "\u{1b}[2J"}}),
                CallFailure::RuntimeError,
                "␛[2J",
            ),
        ] {
            let failed = read(answer).unwrap_err();
            assert_eq!(failed.code, code, "{}", failed.message);
            assert!(failed.message.contains(message), "{}", failed.message);
        }
    }
}
