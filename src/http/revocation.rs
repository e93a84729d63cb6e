//! Ends event streams of other adapters when the caller's key is removed or its scopes change: a stream has no end, so
//! the key would be valid for ever.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;

use super::Authenticator;
use super::app::App;
use super::stream::KEY_CHECK_INTERVAL;
use skills_api::operations::{Caller, Principal};

/// Ends the response when the caller's key is revoked, if it is an event stream.
pub(super) async fn end_streams(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let principal = request.extensions().get::<Caller>().and_then(|caller| caller.principal.clone());
    let (Some(authenticator), Some(principal)) = (app.authenticator.clone(), principal) else {
        return next.run(request).await;
    };
    let headers = request.headers().clone();
    let response = next.run(request).await;
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if content_type.is_none_or(|value| !value.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let revoked = Box::pin(wait_revoked(authenticator, headers, principal));
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(revoked)))
}

/// Returns when the headers no longer authenticate the same principal with the same scopes.
async fn wait_revoked(authenticator: Arc<dyn Authenticator>, headers: HeaderMap, principal: Principal) {
    loop {
        tokio::time::sleep(KEY_CHECK_INTERVAL).await;
        if !authenticator.authenticate(&headers).await.is_ok_and(|now| now == principal) {
            return;
        }
    }
}
