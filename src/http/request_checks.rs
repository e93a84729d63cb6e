//! Checks of a request before its authentication: line endings, a single `Host`, and its origin. The origin check protects
//! a service without authentication from web pages in a browser on its machine: they could send requests to loopback,
//! directly or under a name that resolves to it (DNS rebinding).

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};

use super::listen::Activity;
use super::problem::ErrorResponse;
use skills_api::Origin;

use super::cors;
use skills_api::Code;

/// The relation of the page that sends a request to this origin, as stated by its browser
/// (<https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Accepts a request whose head has CR LF at the end of each line; the connection of any other request is closed.
///
/// # Errors
/// Returns `invalid_request` otherwise.
pub(super) fn ensure_crlf(activity: &Activity) -> Result<(), ErrorResponse> {
    if activity.has_malformed_head() {
        let message = "a line of the request header ends with LF only; use CR LF";
        return Err(ErrorResponse::new(Code::InvalidRequest, message).header(header::CONNECTION, "close"));
    }
    Ok(())
}

/// Headers of which a duplicate would be ignored here, while an intermediary may use it.
const SINGLE_HEADERS: [(HeaderName, &str); 5] = [
    (header::HOST, "Host"),
    (header::ORIGIN, "Origin"),
    (header::CONTENT_TYPE, "Content-Type"),
    (header::AUTHORIZATION, "Authorization"),
    (HeaderName::from_static("x-api-key"), "X-API-Key"),
];

/// Placeholder for a host that is not ASCII.
const INVALID_HOST: &str = "?";

/// Accepts a request that states its host exactly once and consistently
/// (<https://www.rfc-editor.org/rfc/rfc9112#section-3.2>).
///
/// # Errors
/// Returns `invalid_request` for duplicates of a header that must be unique, for a `Host` that is missing in HTTP/1.1
/// or is not one host, and for a target with another host or a scheme other than `http` and `https`.
pub(super) fn ensure_single_host(request: &Request) -> Result<(), ErrorResponse> {
    let wrong = |message: &str| Err(ErrorResponse::new(Code::InvalidRequest, message));
    for (name, shown) in SINGLE_HEADERS {
        if request.headers().get_all(name).iter().nth(1).is_some() {
            return wrong(&format!("the request has several `{shown}` headers; send only one"));
        }
    }
    let host = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or(INVALID_HOST));
    if host.is_none() && request.version() == Version::HTTP_11 {
        return wrong("the request has no `Host` header, which HTTP/1.1 requires");
    }
    if host.is_some_and(|host| !host.is_empty() && authority(host).is_none()) {
        return wrong("the `Host` header must be one host with an optional port, e.g. 127.0.0.1:8080");
    }
    if request.uri().scheme().is_some_and(|scheme| ![Scheme::HTTP, Scheme::HTTPS].contains(scheme)) {
        return wrong("the scheme of the request target must be http or https; send only the path");
    }
    let target = request.uri().authority().map(Authority::as_str);
    match (target, host) {
        (Some(target), Some(host)) if !target.eq_ignore_ascii_case(host) => {
            wrong("the host of the request target differs from the `Host` header; send only the path")
        }
        _ => Ok(()),
    }
}

/// Accepts a request unless it comes from a page of another origin that is not configured.
///
/// # Errors
/// Returns `forbidden` for `Sec-Fetch-Site: cross-site` and `same-site`, which programs do not send.
pub(super) fn ensure_same_origin(headers: &HeaderMap, named: &[Origin]) -> Result<(), ErrorResponse> {
    let foreign = |site: &HeaderValue| {
        ["cross-site", "same-site"].iter().any(|name| site.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
    };
    if headers.get_all(FETCH_SITE).iter().any(foreign) && !cors::is_named(named, headers) {
        let message = "cross-origin request rejected; allow its origin with `skills serve --cors`";
        return Err(ErrorResponse::new(Code::Forbidden, message));
    }
    Ok(())
}

/// Accepts a request of a program, or of a page of this service itself, and of another page only if its origin is
/// configured.
///
/// # Errors
/// Returns `forbidden` for another `Origin`, and on loopback for a `Host` that is a public name.
pub(super) fn ensure_allowed_origin(
    headers: &HeaderMap,
    loopback: bool,
    named: bool,
) -> Result<(), ErrorResponse> {
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if let Some(host) = host.filter(|host| loopback && !is_local(host)) {
        let message = format!(
            "host {host:?} rejected: without authentication, the service accepts only 127.0.0.1 and \
                localhost; use these, or configure a key"
        );
        return Err(ErrorResponse::new(Code::Forbidden, message));
    }
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    if let Some(origin) = origin.filter(|origin| !named && !is_at(origin, host)) {
        let message = format!(
            "origin {origin:?} rejected: the service has authentication disabled; configure a key, or \
                allow the origin with `skills serve --cors`"
        );
        return Err(ErrorResponse::new(Code::Forbidden, message));
    }
    Ok(())
}

/// Removes the `Origin` of a request if it is the service itself under an IP address, which no other page can have:
/// later origin checks only know the configured origins.
pub(super) fn own_page(mut request: Request) -> Request {
    let read = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let (origin, host) = (read(header::ORIGIN), read(header::HOST));
    if host.is_some_and(is_local) && origin.is_some_and(|origin| is_at(origin, host)) {
        request.headers_mut().remove(header::ORIGIN);
    }
    request
}

/// Returns whether an origin is this host, port included.
fn is_at(origin: &str, host: Option<&str>) -> bool {
    origin.split_once("://").is_some_and(|(_, from)| Some(from) == host)
}

/// Parses a host with an optional port, without a user.
fn authority(host: &str) -> Option<Authority> {
    let authority: Authority = host.parse().ok()?;
    let rest = host.strip_prefix(authority.host())?;
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(authority)
}

/// Returns whether a host is an address, or a name that never leaves the machine (RFC 6761).
fn is_local(host: &str) -> bool {
    let Some(authority) = authority(host) else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        ensure_allowed_origin(&headers, true, false).is_ok()
    }

    #[test]
    fn only_programs_and_own_pages_are_admitted() {
        for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "app.localhost", "LOCALHOST."] {
            assert!(is_allowed(host, None), "{host}");
            assert!(is_allowed(host, Some(&format!("http://{host}"))), "{host}");
        }
        assert!(!is_allowed("[::1].evil.example:80", None) && !is_allowed("[::1]evil.example", None));
        for host in
            ["127.0.0.1, evil", "127.0.0.1:80, evil", "127.0.0.1:80,evil", "evil@127.0.0.1", "localhost:x"]
        {
            assert!(!is_allowed(host, None), "{host}");
        }
        // A name that an attacker resolves to loopback.
        assert!(!is_allowed("rebound.example:8080", None));
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            assert!(!is_allowed("localhost:8080", Some(origin)), "{origin}");
        }
    }
}
