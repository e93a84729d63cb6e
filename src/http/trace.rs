//! The trace id of a request: the caller's, or a new one.

use axum::http::{HeaderMap, HeaderName};

use super::problem::ErrorResponse;
use skills_api::{Code, new_trace_id};

/// The header with the trace id, in requests and responses.
pub(super) const TRACE: HeaderName = HeaderName::from_static("x-trace-id");
/// Maximum length of a trace id from a header.
const MAX_TRACE_ID_LEN: usize = 128;

/// Returns the trace id of a request: `x-trace-id`, else that of `traceparent`
/// (<https://www.w3.org/TR/trace-context/#traceparent-header>), else a new one.
///
/// # Errors
/// Returns `invalid_request` for an `x-trace-id` that is not a single word for a log.
pub(super) fn trace_of(headers: &HeaderMap) -> Result<String, ErrorResponse> {
    let Some(presented) = headers.get(TRACE) else {
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        return Ok(parent.and_then(of_parent).unwrap_or_else(new_trace_id));
    };
    match presented.to_str() {
        Ok(id) if fits(id) => Ok(id.to_owned()),
        _ => Err(ErrorResponse::new(
            Code::InvalidRequest,
            format!("x-trace-id must be 1 to {MAX_TRACE_ID_LEN} letters, digits and `-_.:/+=`"),
        )),
    }
}

/// Returns whether a text is valid as a trace id of a header.
fn fits(id: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
    !id.is_empty() && id.len() <= MAX_TRACE_ID_LEN && id.bytes().all(sign)
}

/// Returns the second part of `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. An invalid header starts a new
/// trace, as the recommendation requires.
fn of_parent(parent: &str) -> Option<String> {
    let mut parts = parent.trim().split('-');
    let version = parts.next()?;
    let id = parts.next()?;
    let hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parent_id = parts.next()?;
    let is_valid = hex(version, 2) && version != "ff" && hex(id, 32) && hex(parent_id, 16);
    (is_valid && id.bytes().any(|b| b != b'0')).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn trace_of_the_caller_is_continued() {
        assert_eq!(trace_of(&headers("x-trace-id", "nightly/42")).unwrap(), "nightly/42");
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_of(&headers("traceparent", parent)).unwrap(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let other = trace_of(&headers("traceparent", "00-0-0-0")).unwrap();
        assert_eq!(other.len(), 32, "a parent that means nothing begins a new trace");
    }

    #[test]
    fn invalid_trace_id_is_rejected() {
        for wrong in ["", "a b", "a\"b", &"x".repeat(129)] {
            assert!(trace_of(&headers("x-trace-id", wrong)).is_err(), "{wrong:?}");
        }
    }
}
