//! Requests that no route has: what is near, and which methods there are.

use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;

use super::app::{DOCUMENT, PAGE, PROMETHEUS};
use super::problem::Refusal;
use crate::gateway::operations::{Caller, operations};
use crate::gateway::{Code, Error, near};

/// Longest path that is looked at for near ones, and repeated.
const LONGEST: usize = 200;

/// Answers a path that is not there.
pub(super) async fn unknown(request: Request) -> Response {
    if let Some(refusal) = foreign(request.method()) {
        return refusal.answer(&trace_of(&request), request.uri().path());
    }
    let path = request.uri().path();
    let shown: String = path.chars().take(LONGEST).collect();
    let suggestions = near_routes(request.method().as_str(), &shown);
    let message =
        format!("there is no route {} {shown}; {DOCUMENT} and {PAGE} list those there are", request.method());
    let error = Error { suggestions, ..Error::new(Code::NotFound, message) };
    Refusal::from(error).answer(&trace_of(&request), path)
}

/// Answers a path that is there for other methods.
pub(super) async fn wrong_method(allowed: String, request: Request) -> Response {
    let path = request.uri().path();
    if let Some(refusal) = foreign(request.method()) {
        return refusal.answer(&trace_of(&request), path);
    }
    let message = format!("{path} does not take {}; it takes {allowed}", request.method());
    Refusal::new(Code::InvalidRequest, message)
        .status(StatusCode::METHOD_NOT_ALLOWED)
        .header(header::ALLOW, &allowed)
        .answer(&trace_of(&request), path)
}

/// A method that is none of the standard ones, which no path here will ever take (RFC 9110, 15.6.2).
fn foreign(method: &Method) -> Option<Refusal> {
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
        let name: String = method.as_str().chars().take(LONGEST).collect();
        Refusal::new(Code::NotImplemented, format!("the method {name} is not one that this service knows"))
    })
}

fn trace_of(request: &Request) -> String {
    let caller = request.extensions().get::<Caller>();
    caller.map_or_else(crate::gateway::new_trace_id, |caller| caller.trace_id.clone())
}

/// Routes like a path, `GET /v1/runs/{run_id}`: parameters count as what stands in their place.
fn near_routes(method: &str, path: &str) -> Vec<String> {
    let asked: Vec<&str> = path.split('/').collect();
    let all =
        operations().iter().flat_map(|operation| std::iter::once(&operation.route).chain(&operation.aliases));
    let routes = all.map(|route| (route.method.to_string(), route.path));
    let routes: Vec<(String, &str)> = routes.chain([("GET".to_owned(), PROMETHEUS)]).collect();
    let filled = |pattern: &str| {
        let parts = pattern.split('/').enumerate();
        let parts = parts.map(|(at, part)| match asked.get(at) {
            Some(given) if part.starts_with('{') => (*given).to_owned(),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<String>>().join("/")
    };
    // Methods are left out, and the first slash: what all have in common makes everything alike.
    let bare = |path: &str| path.trim_start_matches('/').to_owned();
    let candidates: Vec<String> = routes.iter().map(|(_, pattern)| bare(&filled(pattern))).collect();
    let found = near(&bare(path), candidates.iter().map(String::as_str));
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
    fn a_slip_in_a_path_finds_its_route_whatever_the_parameters_are() {
        assert_eq!(near_routes("POST", "/v1/runs/0198-ab/aprove")[0], "POST /v1/runs/{run_id}/approve");
        assert_eq!(near_routes("GET", "/v1/skill/list")[0], "GET /v1/skills/list");
        assert!(near_routes("GET", "/favicon.ico").is_empty());
    }
}
