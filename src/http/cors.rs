//! CORS (<https://fetch.spec.whatwg.org/#http-cors-protocol>): pages of other origins may call this service only if
//! their origin is configured, and never with the browser's cookies.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use skills_api::Origin;

/// Methods that a page may use.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Request headers that have a meaning here. A wildcard would not cover `Authorization`.
const SENT: &str = "authorization, content-type, x-api-key, x-trace-id, traceparent, x-idempotency-key, \
                    idempotency-key, if-none-match, last-event-id, mcp-session-id, mcp-protocol-version";
/// Response headers that a page may read.
const READ: &str = "x-trace-id, etag, location, retry-after, ratelimit, ratelimit-policy, mcp-session-id";
/// How long a browser may cache a preflight response, in seconds.
const PREFLIGHT_MAX_AGE: &str = "600";

/// Returns whether a request comes from a page of a configured origin.
pub(super) fn is_named(origins: &[Origin], headers: &HeaderMap) -> bool {
    named(origins, headers).is_some()
}

fn named<'a>(origins: &'a [Origin], headers: &HeaderMap) -> Option<&'a Origin> {
    let mut origins_sent = headers.get_all(header::ORIGIN).iter();
    let origin = origins_sent.next().filter(|_| origins_sent.next().is_none())?;
    origins.iter().find(|named| named.as_str().as_bytes() == origin.as_bytes())
}

/// Answers preflight requests, and lets pages read the responses to their requests.
pub(super) async fn share(State(origins): State<Arc<[Origin]>>, request: Request, next: Next) -> Response {
    let origin = named(&origins, request.headers()).cloned();
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&origin, asks) {
        (Some(_), true) => {
            let mut response = Response::new(axum::body::Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            put(&mut response, header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            put(&mut response, header::ACCESS_CONTROL_ALLOW_HEADERS, SENT);
            put(&mut response, header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
            response
        }
        _ => next.run(request).await,
    };
    // A cached response must not be reused for another origin, or for none.
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(origin.as_str()).ok()) {
        if !asks {
            put(&mut response, header::ACCESS_CONTROL_EXPOSE_HEADERS, READ);
        }
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

fn put(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_complete_origin_matches() {
        let origins = [Origin::parse("https://docs.example").unwrap()];
        let with = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ORIGIN, value.parse().unwrap());
            }
            is_named(&origins, &headers)
        };
        assert!(with(&["https://docs.example"]));
        for other in [&[][..], &["https://docs.example.evil.example"], &["http://docs.example"], &["null"]] {
            assert!(!with(other), "{other:?}");
        }
        assert!(!with(&["https://docs.example", "https://evil.example"]));
    }
}
