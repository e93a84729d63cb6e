//! Large responses that are the same for all callers: computed once for concurrent requests, and not sent to clients
//! that already have them.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use skills_api::operations::SerializedResult;
use skills_api::{Error, SingleFlight};

/// A response body and its entity tag (RFC 9110, section 8.8.3).
#[derive(Debug, Clone)]
pub(super) struct TaggedBody {
    text: Bytes,
    tag: HeaderValue,
}

/// A result that several callers share, and its response for those who may see all of it.
#[derive(Debug)]
pub(super) struct SharedResult {
    pub all: TaggedBody,
    /// Set if other callers may not see all of it.
    pub restricted: Option<SerializedResult>,
}

/// Responses in progress, by request.
pub(super) type Answers = SingleFlight<Result<Arc<SharedResult>, Error>>;

impl TaggedBody {
    pub fn new(text: Vec<u8>) -> Self {
        // A weak tag, because the same response may be sent with and without compression.
        let tag = format!("W/\"{}\"", skills_base::hex::encode(&Sha256::digest(&text)));
        // Hexadecimal digits are valid in any header.
        let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("W/\"\""));
        Self { text: text.into(), tag }
    }

    /// Returns the response, or 304 if the client's copy is current.
    pub fn answer(self, request_headers: &HeaderMap) -> Response {
        let is_current = self.is_named_in(request_headers);
        let mut response = Response::new(if is_current { Body::empty() } else { Body::from(self.text) });
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.tag);
        // Private to the client, and revalidated before each use.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if is_current {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        response
    }

    /// Returns whether `If-None-Match` matches the tag (section 13.1.2): by the tag, weak or not, or by `*`.
    fn is_named_in(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).map(str::trim).any(|tag| {
            let opaque = tag.strip_prefix("W/").unwrap_or(tag);
            tag == "*" || self.tag.as_bytes().strip_prefix(b"W/") == Some(opaque.as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str, known: Option<&str>) -> StatusCode {
        let mut headers = HeaderMap::new();
        if let Some(known) = known {
            headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
        }
        TaggedBody::new(text.into()).answer(&headers).status()
    }

    #[test]
    fn unchanged_response_is_not_sent_again() {
        let tag = TaggedBody::new("{}".into()).tag.to_str().unwrap().to_owned();
        let strong = tag.trim_start_matches("W/").to_owned();
        for known in [tag.clone(), strong.clone(), format!("\"x\" , {tag}"), "*".to_owned()] {
            assert_eq!(status("{}", Some(&known)), StatusCode::NOT_MODIFIED, "{known}");
        }
        assert_eq!(status("{}", None), StatusCode::OK);
        assert_eq!(status("[]", Some(&tag)), StatusCode::OK);
        assert_eq!(status("{}", Some(strong.trim_matches('"'))), StatusCode::OK);
    }
}
