//! Pages of other origins that may call this service (<https://fetch.spec.whatwg.org/#http-cors-protocol>): none but
//! those that were named, each by itself, and never with the cookies of a browser.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::gateway::{Code, Error};

/// What a page may send.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Headers of requests that mean something here. A star would not cover `Authorization`.
const SENT: &str = "authorization, content-type, x-api-key, x-trace-id, traceparent, x-idempotency-key, \
                    idempotency-key, if-none-match, last-event-id, mcp-session-id, mcp-protocol-version";
/// Headers of answers that a page may read.
const READ: &str = "x-trace-id, etag, location, retry-after, ratelimit, ratelimit-policy, mcp-session-id";
/// Seconds for which a browser need not ask again.
const KEPT: &str = "600";

/// An origin: a scheme, a host and a port, as a browser writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl Origin {
    /// Reads `https://docs.example` or `http://localhost:3000`.
    ///
    /// # Errors
    /// `invalid_request` for `*`, for `null`, and for what is more or less than an origin.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            let message = format!(
                "{text:?} is no origin that can be let in: {why}; write scheme, host and port as a browser does, e.g. \
                 https://docs.example or http://localhost:3000"
            );
            Error::new(Code::InvalidRequest, message)
        };
        if text == "*" || text == "null" {
            return Err(wrong("it stands for every page there is"));
        }
        let (scheme, host) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("its scheme is neither http nor https"));
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        let usual = if scheme == "http" { "80" } else { "443" };
        match port {
            Some(port) if port == usual => return Err(wrong("browsers leave the usual port out")),
            Some(port) if port.parse::<u16>().is_err() || port.starts_with('0') => {
                return Err(wrong("its port is no number of a port"));
            }
            _ => {}
        }
        let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-._[]:".contains(sign);
        if name.is_empty() || !name.chars().all(fits) {
            return Err(wrong("its host is no name in small letters, or something stands behind it"));
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| wrong("it is no header's value"))
    }

    /// As a browser writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Whether a request comes from a page that was named.
pub(super) fn is_named(origins: &[Origin], headers: &HeaderMap) -> bool {
    named(origins, headers).is_some()
}

fn named<'a>(origins: &'a [Origin], headers: &HeaderMap) -> Option<&'a Origin> {
    let mut given = headers.get_all(header::ORIGIN).iter();
    let origin = given.next().filter(|_| given.next().is_none())?;
    origins.iter().find(|named| named.0 == origin)
}

/// Answers what a browser asks before a page's request, and lets the page read the answer to it.
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
            put(&mut response, header::ACCESS_CONTROL_MAX_AGE, KEPT);
            response
        }
        _ => next.run(request).await,
    };
    // What is kept of an answer must not be taken for that to another origin, or to none.
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(Origin(origin)) = origin {
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
    fn an_origin_is_what_a_browser_sends_and_nothing_wider() {
        for fits in
            ["https://docs.example", "http://localhost:3000", "http://127.0.0.1:8081", "http://[::1]:3000"]
        {
            assert_eq!(Origin::parse(fits).unwrap().as_str(), fits);
        }
        for wrong in [
            "*",
            "null",
            "docs.example",
            "https://*.example",
            "https://docs.example/",
            "https://docs.example:443",
            "https://Docs.example",
            "https://a@docs.example",
            "ftp://docs.example",
            "http://localhost:port",
            "https://",
            "https://a b",
        ] {
            assert!(Origin::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_one_whole_origin_counts() {
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
