//! Errors as responses: the error format shared by all adapters, which is also a problem document (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use skills_api::{Code, Error, ErrorBody};

/// Media type of an error.
pub(super) const PROBLEM: &str = "application/problem+json";

/// Codes that callers without a key can cause at any rate. They are not logged at the default level: the log is rotated
/// by size.
const ANONYMOUS: [Code; 2] = [Code::Unauthorized, Code::RateLimited];

/// Maximum length of a path or a message in the log, in bytes.
const MAX_LOGGED_BYTES: usize = 1024;

/// Returns the beginning of a text for the log: paths and headers of a caller have up to 64 KiB.
fn logged(text: &str) -> &str {
    (0..=MAX_LOGGED_BYTES).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// An error response: `error` and `trace_id`, and the members of a problem document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Where the page of this service explains the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code as text.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was wrong, where, and what to do; the same as `error.message`.
    pub detail: String,
    /// The requested path.
    pub instance: String,
    /// The failure, as every adapter reports it.
    #[serde(flatten)]
    pub body: ErrorBody,
}

/// An error response: the error, and what HTTP adds to it.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    pub error: Error,
    /// Set if an HTTP status is more specific than that of the code.
    pub status: Option<StatusCode>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether the operation logged the failure.
    is_logged: bool,
}

impl From<Error> for ErrorResponse {
    fn from(error: Error) -> Self {
        Self { error, status: None, headers: Vec::new(), is_logged: false }
    }
}

impl ErrorResponse {
    /// Creates the response for an error that an operation returned and logged.
    pub fn of_operation(error: Error) -> Self {
        Self { is_logged: true, ..error.into() }
    }

    /// Creates the response for an error of the request itself.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }

    /// Sets a specific status.
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Converts it to a response.
    pub fn answer(self, trace_id: &str, instance: &str) -> Response {
        let code = self.error.code;
        let status = self
            .status
            .or_else(|| StatusCode::from_u16(code.status()).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let path = logged(instance);
        let message = logged(&self.error.message);
        if status.is_server_error() {
            tracing::error!(%code, trace_id, instance = path, "{message}");
        } else if self.is_logged || ANONYMOUS.contains(&code) {
            tracing::debug!(%code, trace_id, instance = path, "{message}");
        } else {
            tracing::info!(%code, trace_id, instance = path, "{message}");
        }
        let mut body = ErrorBody::from(&self.error);
        body.trace_id = Some(trace_id.to_owned());
        let problem = Problem {
            kind: format!("/docs#{code}"),
            title: code.to_string().replace('_', " "),
            status: status.as_u16(),
            detail: self.error.message,
            instance: instance.to_owned(),
            body,
        };
        let text = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = code.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        headers.extend(self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_in_the_log() {
        assert_eq!(logged("/v1/runs"), "/v1/runs");
        assert_eq!(logged(&"x".repeat(60_000)).len(), MAX_LOGGED_BYTES);
        let wide = "表".repeat(1000);
        assert_eq!(logged(&wide), "表".repeat(MAX_LOGGED_BYTES / 3));
    }

    #[tokio::test]
    async fn error_is_also_a_problem_document() {
        let error =
            Error { suggestions: vec!["pdf-tables".into()], ..Error::new(Code::NotFound, "no such skill") };
        let response = ErrorResponse::from(error).answer("abc", "/v1/skills/pdf/describe");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        insta::assert_snapshot!(String::from_utf8_lossy(&body), @r#"{"type":"/docs#not_found","title":"not found","status":404,"detail":"no such skill","instance":"/v1/skills/pdf/describe","error":{"code":"not_found","message":"no such skill","type":"not_found","suggestions":["pdf-tables"]},"trace_id":"abc"}"#);
    }
}
