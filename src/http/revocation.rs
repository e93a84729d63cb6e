//! Ends event streams of other adapters when the caller's key is removed or its scopes change: a stream has no end, so
//! the key would be valid for ever.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;

use super::stream::KEY_CHECK_INTERVAL;
use skills_api::operations::Caller;

/// Ends the response when the caller's key is revoked, if it is an event stream.
pub(super) async fn end_streams(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().filter(|caller| caller.credentials.is_some()).cloned();
    let Some(caller) = caller else { return next.run(request).await };
    let response = next.run(request).await;
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if content_type.is_none_or(|value| !value.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let revoked = Box::pin(wait_revoked(caller));
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(revoked)))
}

/// Returns when the caller's key has ended or has other scopes.
async fn wait_revoked(caller: Caller) {
    loop {
        tokio::time::sleep(KEY_CHECK_INTERVAL).await;
        if !caller.current().await.is_ok_and(|now| now.principal == caller.principal) {
            return;
        }
    }
}
