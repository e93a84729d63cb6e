//! A service that asks nobody for a key, kept from the pages that a browser on its machine has open: they could send
//! requests to loopback, directly or under a name that was made to point there.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};

use super::problem::Refusal;
use crate::gateway::Code;

/// Lets a request of a program, or of a page of this service itself, through; of another page only where its origin
/// was named.
///
/// # Errors
/// `forbidden` for a foreign `Origin`, and on loopback for a `Host` that is a name of the open network.
pub(super) fn admit(headers: &HeaderMap, loopback: bool, named: bool) -> Result<(), Refusal> {
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if let Some(host) = host.filter(|host| loopback && !is_local(host)) {
        let message = format!(
            "this service answers on loopback without keys and does not go by the name {host:?}; call it as 127.0.0.1 \
             or localhost, or give it a key"
        );
        return Err(Refusal::new(Code::Forbidden, message));
    }
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    if let Some(origin) = origin.filter(|origin| !named && !is_at(origin, host)) {
        let message = format!(
            "a page of {origin:?} may not call this service, which asks nobody for a key; give it one, or let the page in \
             by `skills serve --cors`"
        );
        return Err(Refusal::new(Code::Forbidden, message));
    }
    Ok(())
}

/// A request without its `Origin` where that is the service itself under an address, which no other page can take on:
/// whoever looks at origins behind this knows of foreign ones only.
pub(super) fn own_page(mut request: Request) -> Request {
    let read = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let (origin, host) = (read(header::ORIGIN), read(header::HOST));
    if host.is_some_and(is_local) && origin.is_some_and(|origin| is_at(origin, host)) {
        request.headers_mut().remove(header::ORIGIN);
    }
    request
}

/// Whether an origin is this host, port included.
fn is_at(origin: &str, host: Option<&str>) -> bool {
    origin.split_once("://").is_some_and(|(_, from)| Some(from) == host)
}

/// An address, or a name that never leaves the machine (RFC 6761).
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        admit(&headers, true, false).is_ok()
    }

    #[test]
    fn programs_and_our_own_pages_come_through_and_others_do_not() {
        for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "app.localhost", "LOCALHOST."] {
            assert!(asked(host, None), "{host}");
            assert!(asked(host, Some(&format!("http://{host}"))), "{host}");
        }
        // A name that an attacker has pointed at loopback.
        assert!(!asked("rebound.example:8080", None));
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            assert!(!asked("localhost:8080", Some(origin)), "{origin}");
        }
    }
}
