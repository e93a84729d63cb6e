//! Middleware around every request: authentication, trace id, rate limit and metrics.

use std::collections::BTreeSet;
use std::mem;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;

use super::app::{App, OPEN};
use super::keys::RequestCredentials;
use super::listen::{Peer, rate_limit_key};
use super::problem::ErrorResponse;
use super::trace::{TRACE, trace_of};
use super::unread_body::SharedBody;
use super::{cors, dispatch, request_checks};
use skills_api::operations::{Caller, Principal, ReturnedRun, RunObserver, operations};
use skills_api::{Admission, Code, new_trace_id};

/// Passes a request to its route, or rejects it.
pub(super) async fn admit(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let body = (!request.body().is_end_stream()).then(|| SharedBody::new(mem::take(request.body_mut())));
    if let Some(body) = &body {
        *request.body_mut() = Body::new(body.clone());
    }
    // A client that waits for permission to send its body sends none after the response.
    let may_finish = !request.headers().contains_key(header::EXPECT);
    peer.activity.owes.store(false, Ordering::Relaxed);
    let started = Instant::now();
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let path = request.uri().path().to_owned();
    let (trace_id, traced) = match trace_of(request.headers()) {
        Ok(id) => (id, Ok(())),
        Err(refusal) => (new_trace_id(), Err(refusal)),
    };
    let open = route.as_ref().is_some_and(|route| is_open(route.as_str()));
    let checked = traced.and_then(|()| check(&app, &peer, &request, open));
    let admitted = match checked {
        Ok(()) => authenticate(&app, request.headers(), open).await,
        Err(refusal) => Err(refusal),
    };
    peer.activity.is_authenticated.store(!open && admitted.is_ok(), Ordering::Relaxed);
    // Health checks are never rate-limited.
    let limited = match app.limiter.as_ref().filter(|_| !open) {
        Some(limiter) => {
            let who = admitted.as_ref().ok().and_then(Option::as_ref);
            let who =
                who.map_or_else(|| rate_limit_key(peer.address.ip()), |who| format!("key:{}", who.name));
            let admission = limiter.admit(&who).await;
            Some((admission, limiter.limit().policy_header()))
        }
        None => None,
    };
    let admitted = match &limited {
        Some((admission, _)) if !admission.allowed => Err(too_many(admission)),
        _ => admitted,
    };
    let mut response = match admitted {
        Err(refusal) => refusal.answer(&trace_id, &path),
        Ok(principal) => {
            let leave = app.end.child_token();
            let credentials = app.authenticator.as_ref().filter(|_| !open).map(|authenticator| {
                let (authenticator, headers) = (Arc::clone(authenticator), request.headers().clone());
                Arc::new(RequestCredentials { authenticator, headers }) as _
            });
            let trace = trace_id.clone();
            let caller = Caller {
                principal,
                credentials,
                local: false,
                trace_id: trace,
                leave,
                body: None,
                observer: RunObserver::default(),
                returned_run: ReturnedRun::default(),
            };
            request.extensions_mut().insert(caller);
            // A panic ends only its own request.
            let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answered
                .unwrap_or_else(|_| ErrorResponse::from(dispatch::internal_error()).answer(&trace_id, &path))
        }
    };
    let (status, took) = (response.status().as_u16(), started.elapsed());
    let is_read = match body {
        Some(body) => may_finish && body.finish().await,
        None => true,
    };
    peer.activity.owes.store(!is_read, Ordering::Relaxed);
    let headers = response.headers_mut();
    if !is_read {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    add_headers(headers, &trace_id, limited);
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    app.metrics.http(method, route, status, took);
    response
}

/// Checks what a request must satisfy before its caller is authenticated.
fn check(app: &App, peer: &Peer, request: &Request, open: bool) -> Result<(), ErrorResponse> {
    request_checks::ensure_crlf(&peer.activity)?;
    request_checks::ensure_single_host(request)?;
    // Links on other sites may point to open routes, which execute nothing.
    let link = open && request.method() == Method::GET;
    if link { Ok(()) } else { request_checks::ensure_same_origin(request.headers(), &app.cors) }
}

/// Adds the headers of every response, and those of the rate limit with its policy.
fn add_headers(headers: &mut HeaderMap, trace_id: &str, limited: Option<(Admission, String)>) {
    if let Ok(id) = HeaderValue::from_str(trace_id) {
        headers.entry(TRACE).or_insert(id);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some((admission, policy)) = limited {
        for (name, value) in [("ratelimit", admission.header()), ("ratelimit-policy", policy)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }
}

/// Returns the caller; `None` if authentication is disabled.
async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    open: bool,
) -> Result<Option<Principal>, ErrorResponse> {
    let Some(authenticator) = &app.authenticator else {
        request_checks::ensure_allowed_origin(headers, app.loopback, cors::is_named(&app.cors, headers))?;
        return Ok(None);
    };
    if open {
        // Anonymous: open routes check no scope.
        return Ok(Some(Principal { name: "anyone".to_owned(), scopes: BTreeSet::new() }));
    }
    Ok(Some(authenticator.authenticate(headers).await?))
}

fn too_many(admission: &Admission) -> ErrorResponse {
    let message = format!(
        "rate limit of {} requests exceeded; the next window begins in {} s",
        admission.limit, admission.reset_seconds
    );
    ErrorResponse::new(Code::RateLimited, message)
        .header(header::RETRY_AFTER, &admission.reset_seconds.to_string())
}

fn is_open(route: &str) -> bool {
    OPEN.contains(&route)
        || operations().iter().any(|operation| operation.scope.is_none() && operation.route.path == route)
}

/// Returns a method as a metrics label; others are merged, so that callers cannot create new labels.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}
