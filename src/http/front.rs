//! What happens to every request before and after its route: whose it is, which trace it belongs to, what is counted.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;

use super::app::{App, OPEN};
use super::listen::{Busy, Peer};
use super::problem::Refusal;
use super::trace::{TRACE, trace_of};
use super::{carry, guard};
use crate::gateway::new_trace_id;
use crate::gateway::operations::{Caller, Principal, operations};

/// Answers a request, or refuses it at the front.
pub(super) async fn admit(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let _busy = Busy::with(&peer);
    let began = Instant::now();
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let path = request.uri().path().to_owned();
    let (trace_id, traced) = match trace_of(request.headers()) {
        Ok(id) => (id, Ok(())),
        Err(refusal) => (new_trace_id(), Err(refusal)),
    };
    let admitted = match traced {
        Ok(()) => known(&app, request.headers(), route.as_ref()).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = match admitted {
        Err(refusal) => refusal.answer(&trace_id, &path),
        Ok(principal) => {
            let caller = Caller { principal, trace_id: trace_id.clone(), leave: app.end.child_token() };
            request.extensions_mut().insert(caller);
            // A mistake of ours ends its request alone.
            let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answered.unwrap_or_else(|_| Refusal::from(carry::broken()).answer(&trace_id, &path))
        }
    };
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&trace_id) {
        headers.entry(TRACE).or_insert(id);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    app.metrics.http(method, route, status, began.elapsed());
    response
}

/// Who calls: none where nobody is asked.
async fn known(
    app: &App,
    headers: &HeaderMap,
    route: Option<&MatchedPath>,
) -> Result<Option<Principal>, Refusal> {
    let Some(authenticator) = &app.authenticator else {
        guard::admit(headers, app.loopback)?;
        return Ok(None);
    };
    if route.is_some_and(|route| is_open(route.as_str())) {
        // Nobody in particular: open routes look at no scope, and nothing else takes this caller.
        return Ok(Some(Principal { name: "anyone".to_owned(), scopes: std::collections::BTreeSet::new() }));
    }
    Ok(Some(authenticator.authenticate(headers).await?))
}

fn is_open(route: &str) -> bool {
    OPEN.contains(&route)
        || operations().iter().any(|operation| operation.scope.is_none() && operation.route.path == route)
}

/// A method as a label: whoever asks must not choose how many there are.
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
