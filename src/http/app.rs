//! All routes: those of the operation table, and the few that concern the service as a process.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state, map_request};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, NotForContentType, Predicate as _, SizeAbove};

use super::cached_response::Answers;
use super::feed::EventBroadcast;
use super::listen::Timeouts;
use super::problem::ErrorResponse;
use skills_api::Origin;

use super::{
    Authenticator, cors, dispatch, middleware, not_found, openapi, page, request_checks, revocation, serving,
};
use skills_api::operations::{
    Caller, Method, Operation, Scope, Service, limited_call, operations, response_permit,
};
use skills_api::{Code, Error, Limiter, METRICS_CONTENT_TYPE};
use skills_base::telemetry::Metrics;

/// State shared by all requests.
pub(super) struct App {
    pub service: Service,
    pub authenticator: Option<Arc<dyn Authenticator>>,
    pub limiter: Option<Limiter>,
    pub metrics: Metrics,
    pub patience: Timeouts,
    pub feed: EventBroadcast,
    /// Large responses in progress, shared by concurrent identical requests.
    pub answers: Arc<Answers>,
    /// Whether the service listens on loopback only.
    pub loopback: bool,
    /// Origins whose pages may call.
    pub cors: Arc<[Origin]>,
    /// Fires when the service shuts down.
    pub end: CancellationToken,
}

/// Routes other than operations: about the process, for monitoring, and web pages.
pub(super) const LIVEZ: &str = "/livez";
pub(super) const READYZ: &str = "/readyz";
pub(super) const DOCUMENT: &str = "/openapi.json";
pub(super) const PAGE: &str = "/docs";
pub(super) const HOME: &str = "/";
pub(super) const PROMETHEUS: &str = "/v1/metrics/prometheus";

/// Routes without authentication, in addition to the operations that require no scope.
pub(super) const OPEN: [&str; 5] = [LIVEZ, READYZ, DOCUMENT, PAGE, HOME];

/// Builds the routes, together with `more`, behind one middleware stack.
pub(super) fn routes(app: &Arc<App>, more: Router) -> Router {
    let mut by_path: BTreeMap<&str, Vec<(Method, &'static Operation)>> = BTreeMap::new();
    for operation in operations() {
        for route in std::iter::once(&operation.route).chain(&operation.aliases) {
            by_path.entry(route.path).or_default().push((route.method, operation));
        }
    }
    let mut router = Router::new();
    for (path, methods) in by_path {
        let allowed: Vec<Method> = methods.iter().map(|(method, _)| *method).collect();
        let mut route = MethodRouter::new();
        for (method, operation) in methods {
            let app = Arc::clone(app);
            let carried = move |request: Request| dispatch::dispatch(Arc::clone(&app), operation, request);
            route = route.on(filter(method), carried);
        }
        router = router.route(path, closed(route, &allowed));
    }
    let readiness = Arc::clone(app);
    let counts = Arc::clone(app);
    let page = |request: Request| async move { page::answer(request.headers()) };
    let own: [(&str, MethodRouter); 6] = [
        (LIVEZ, on(MethodFilter::GET, || async { text("text/plain; charset=utf-8", "ok\n") })),
        (READYZ, on(MethodFilter::GET, move || ready(readiness))),
        (
            DOCUMENT,
            on(MethodFilter::GET, |request: Request| async move { openapi::answer(request.headers()) }),
        ),
        (PAGE, on(MethodFilter::GET, page)),
        (HOME, on(MethodFilter::GET, page)),
        (PROMETHEUS, on(MethodFilter::GET, move |request: Request| prometheus(counts, request))),
    ];
    for (path, route) in own {
        router = router.route(path, closed(route, &[Method::Get]));
    }
    let more = more
        .layer(from_fn(revocation::end_streams))
        .layer(map_request(|request: Request| async { request_checks::own_page(request) }))
        .layer(from_fn(not_found::shaped));
    let router = router.merge(more).fallback(not_found::unknown);
    let router = router.layer(from_fn_with_state(Arc::clone(app), middleware::admit)).layer(compression());
    let router = if app.cors.is_empty() {
        router
    } else {
        router.layer(from_fn_with_state(Arc::clone(&app.cors), cors::share))
    };
    router.layer(from_fn(serving::serve))
}

/// Compresses large responses for clients that accept it; event streams are not compressed.
fn compression() -> CompressionLayer<And<SizeAbove, NotForContentType>> {
    let worthwhile = SizeAbove::new(COMPRESSED_FROM_BYTES).and(NotForContentType::SSE);
    // Fastest, because a list of 15,000 skills is compressed while a client waits for it.
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worthwhile)
}

/// Smaller responses fit into a few packets uncompressed.
const COMPRESSED_FROM_BYTES: u16 = 8 * 1024;

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
    }
}

/// Adds a handler that answers other methods with the allowed ones.
fn closed(route: MethodRouter, allowed: &[Method]) -> MethodRouter {
    let mut names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    if allowed.contains(&Method::Get) {
        names.push("HEAD".to_owned());
    }
    let names = names.join(", ");
    route.fallback(move |request: Request| not_found::wrong_method(names.clone(), request))
}

/// Builds a response with this text.
pub(super) fn text(kind: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Returns whether requests should be routed here: not while skills are still read, and not after the service was
/// requested to shut down.
async fn ready(app: Arc<App>) -> Response {
    let found = app.service.core.load_state().await;
    let (scan, index) = found.as_ref().map(|found| (found.scan.done, found.index.done)).unwrap_or_default();
    let store = app.service.core.ensure_store().await;
    let status = match (app.end.is_cancelled(), scan && index, &found) {
        (true, ..) => "ending",
        (_, _, Err(_)) => "failing",
        _ if store.is_err() => "store_unavailable",
        (_, true, _) => "ready",
        _ => "starting",
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = text("application/json", ready_body(status, (scan, index), store.err()).to_string());
    *response.status_mut() = code;
    if let Some(seconds) =
        Code::StoreUnavailable.retry_after_seconds().filter(|_| status == "store_unavailable")
    {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Contains no paths, because the route requires no authentication.
fn ready_body(status: &str, (scan, index): (bool, bool), store: Option<Error>) -> serde_json::Value {
    let mut body = json!({ "status": status, "scan": scan, "index": index });
    if let Some(reason) = store.and_then(|error| error.reason) {
        body["store"] = reason;
    }
    body
}

/// Under the same limits of the caller as an operation, although it is none.
async fn prometheus(app: Arc<App>, request: Request) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let counted = async {
        let caller = caller
            .as_ref()
            .ok_or_else(|| Error::new(Code::InternalError, "missing authentication context"))?;
        if !caller.may(Scope::Read) {
            return Err(Error::needs_scope(Scope::Read, "the metrics need the scope `read`").into());
        }
        let permit = response_permit(caller, false).await?;
        let core = Arc::clone(&app.service.core);
        let counts = limited_call(caller, async move { core.metrics_text().await }).await?;
        dispatch::hold_until_sent(text(METRICS_CONTENT_TYPE, counts), permit, caller, true).await
    };
    counted.await.unwrap_or_else(|refusal: ErrorResponse| {
        let trace = caller.as_ref().map(|caller| caller.trace_id.as_str()).unwrap_or_default();
        refusal.answer(trace, PROMETHEUS)
    })
}
