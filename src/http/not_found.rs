//! Requests without a matching route: suggests similar routes and names the allowed methods.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::app::{DOCUMENT, PAGE, PROMETHEUS};
use super::problem::ErrorResponse;
use skills_api::operations::{Caller, operations};
use skills_api::{Code, Error, near};

/// Maximum size of an error text that is included in the response, in bytes.
const MAX_REPEATED_BYTES: usize = 4096;
/// Maximum length of a path that is included in the response and compared with routes.
const MAX_PATH_LEN: usize = 200;

/// Responds to an unknown path.
pub(super) async fn unknown(request: Request) -> Response {
    if let Some(refusal) = foreign(request.method()) {
        return refusal.answer(&trace_of(&request), request.uri().path());
    }
    let path = request.uri().path();
    ErrorResponse::from(not_found(request.method(), path)).answer(&trace_of(&request), path)
}

fn not_found(method: &Method, path: &str) -> Error {
    let path: String = path.chars().take(MAX_PATH_LEN).collect();
    if path.starts_with("/v1/v1/") {
        let message = format!(
            "route {method} {path} not found: all routes begin with /v1, so the address of the service must not \
             end with it"
        );
        return Error::new(Code::NotFound, message);
    }
    let message = format!("route {method} {path} not found; {DOCUMENT} and {PAGE} list all routes");
    let suggestions = near_routes(method.as_str(), &path);
    Error { suggestions, ..Error::new(Code::NotFound, message) }
}

/// Responds to a path that exists for other methods only.
pub(super) async fn wrong_method(allowed: String, request: Request) -> Response {
    let path = request.uri().path();
    if let Some(refusal) = foreign(request.method()) {
        return refusal.answer(&trace_of(&request), path);
    }
    let message = format!("{path} does not support {}; allowed: {allowed}", request.method());
    ErrorResponse::new(Code::MethodNotAllowed, message)
        .header(header::ALLOW, &allowed)
        .answer(&trace_of(&request), path)
}

/// Converts plain error responses of routes outside the table to the common error format; JSON responses are left
/// unchanged.
pub(super) async fn shaped(request: Request, next: Next) -> Response {
    let (trace, path) = (trace_of(&request), request.uri().path().to_owned());
    let response = next.run(request).await;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let refused = status.is_client_error() || status.is_server_error();
    if !refused || kind.is_some_and(|kind| kind.contains("json")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_REPEATED_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text = match text.trim() {
        "" => status.canonical_reason().unwrap_or("it was refused"),
        text => text,
    };
    let code = match status {
        StatusCode::UNAUTHORIZED => Code::Unauthorized,
        StatusCode::FORBIDDEN => Code::Forbidden,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        StatusCode::REQUEST_TIMEOUT => Code::RequestTimeout,
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::UnsupportedMediaType,
        StatusCode::NOT_IMPLEMENTED => Code::NotImplemented,
        status if status.is_client_error() => Code::InvalidRequest,
        _ => Code::InternalError,
    };
    let mut refusal = ErrorResponse::new(code, text).status(status);
    let headers = [header::ALLOW, header::CONNECTION, header::WWW_AUTHENTICATE];
    for name in headers {
        if let Some(value) = parts.headers.get(&name).and_then(|value| value.to_str().ok()) {
            refusal = refusal.header(name, value);
        }
    }
    refusal.answer(&trace, &path)
}

/// Rejects a method that is not a standard one and that no path supports (RFC 9110, 15.6.2).
fn foreign(method: &Method) -> Option<ErrorResponse> {
    // Registered, though not with the type: https://www.iana.org/assignments/http-methods
    let query = method.as_str() == "QUERY";
    let standard = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    (!query && !standard.contains(method)).then(|| {
        let name: String = method.as_str().chars().take(MAX_PATH_LEN).collect();
        ErrorResponse::new(Code::NotImplemented, format!("unknown method {name}"))
    })
}

fn trace_of(request: &Request) -> String {
    let caller = request.extensions().get::<Caller>();
    caller.map_or_else(skills_api::new_trace_id, |caller| caller.trace_id.clone())
}

/// Returns routes similar to a path (`GET /v1/runs/{run_id}`); parameters match any segment.
fn near_routes(method: &str, path: &str) -> Vec<String> {
    let segments: Vec<&str> = path.split('/').collect();
    let all =
        operations().iter().flat_map(|operation| std::iter::once(&operation.route).chain(&operation.aliases));
    let routes = all.map(|route| (route.method.to_string(), route.path));
    let routes: Vec<(String, &str)> = routes.chain([("GET".to_owned(), PROMETHEUS)]).collect();
    let filled = |pattern: &str| {
        let parts = pattern.split('/').enumerate();
        let parts = parts.map(|(at, part)| match segments.get(at) {
            Some(segment) if part.starts_with('{') => (*segment).to_owned(),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<String>>().join("/")
    };
    // Methods and the leading slash are omitted: what all routes have in common would make everything similar.
    let trimmed = |path: &str| path.trim_start_matches('/').to_owned();
    let candidates: Vec<String> = routes.iter().map(|(_, pattern)| trimmed(&filled(pattern))).collect();
    let found = near(&trimmed(path), candidates.iter().map(String::as_str));
    let back = |name: &String| {
        let fits = || routes.iter().zip(&candidates).filter(|(_, candidate)| *candidate == name);
        let same = fits().find(|((own, _), _)| own == method).or_else(|| fits().next());
        same.map(|((method, pattern), _)| format!("{method} {pattern}"))
    };
    let mut near: Vec<String> = found.iter().filter_map(back).collect();
    near.dedup();
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_path_suggests_its_route() {
        assert_eq!(near_routes("POST", "/v1/runs/0198-ab/aprove")[0], "POST /v1/runs/{run_id}/approve");
        assert_eq!(near_routes("GET", "/v1/skill/governance")[0], "GET /v1/skills/governance");
        assert!(near_routes("GET", "/favicon.ico").is_empty());
    }

    #[test]
    fn repeated_prefix_is_explained() {
        let error = not_found(&Method::GET, "/v1/v1/health");
        assert!(error.message.contains("must not end with it"), "{}", error.message);
        assert!(error.suggestions.is_empty());
        assert!(not_found(&Method::GET, "/v1/healt").message.contains("list all routes"));
    }
}
