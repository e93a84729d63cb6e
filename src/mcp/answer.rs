//! Results of tool calls: the result as text, if everything is requested also as structured content, or the error body,
//! marked as an error.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

use skills_api::{Error, ErrorBody};

/// Key of the session id in a result's `_meta`.
pub const SESSION: &str = "session_id";

/// Returns the complete result of an operation, as text and as structured content.
pub fn explained(value: Value) -> CallToolResult {
    CallToolResult::structured(value)
}

/// Returns a result as text only, so that a model reads it once.
pub fn text_result(value: &Value) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(value.to_string())])
}

/// Returns the length of the texts of a result.
pub fn text_bytes(result: &CallToolResult) -> usize {
    let texts = result.content.iter().filter_map(|content| content.as_text());
    texts.map(|content| content.text.len()).sum()
}

/// Returns an error as the model reads it.
///
/// The body is only text: a tool's output schema describes its results, and clients validate structured content against
/// it, even that of errors.
pub fn failed(error: &Error, trace_id: &str) -> CallToolResult {
    let body = ErrorBody { trace_id: Some(trace_id.to_owned()), ..ErrorBody::from(error) };
    // If the body cannot be serialized, the message alone is still useful.
    let text = serde_json::to_string(&body).unwrap_or_else(|_| error.to_string());
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Like [`failed`], with a hint for the user outside the connection; the body is the same in every adapter.
pub fn failed_with(error: &Error, trace_id: &str, onward: &str) -> CallToolResult {
    let mut result = failed(error, trace_id);
    result.content.push(ContentBlock::text(onward));
    result
}

/// Adds to a result the session it belongs to.
pub fn of_session(mut result: CallToolResult, session: &str) -> CallToolResult {
    let mut meta = result.meta.take().unwrap_or_default();
    meta.0.insert(SESSION.to_owned(), json!(session));
    result.with_meta(Some(meta))
}

pub fn meta(key: &str, value: Value) -> MetaObject {
    let mut meta = MetaObject::default();
    meta.0.insert(key.to_owned(), value);
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::Code;

    #[test]
    fn error_equals_the_body_of_http() {
        let error =
            Error { suggestions: vec!["csv-profile".into()], ..Error::new(Code::NotFound, "no such skill") };
        let result = failed(&error, "4bf9");
        assert_eq!((result.is_error, &result.structured_content), (Some(true), &None));
        let text = &result.content[0].as_text().unwrap().text;
        let body: ErrorBody = serde_json::from_str(text).unwrap();
        assert_eq!((body.error.code, body.error.kind.as_str()), (Code::NotFound, "not_found"));
        assert_eq!(body.trace_id.as_deref(), Some("4bf9"));
    }
}
