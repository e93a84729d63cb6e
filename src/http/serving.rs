//! The state of a connection while it serves a request.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::listen::{Busy, Peer};

/// Counts a request until its response is sent, and ends it when its connection is replaced. Outside of everything that
/// answers, so that every request of a connection is counted.
pub(super) async fn serve(ConnectInfo(peer): ConnectInfo<Peer>, request: Request, next: Next) -> Response {
    let busy = Busy::with(&peer);
    let evicted = &peer.activity.evicted;
    let mut response = tokio::select! {
        // Its response cannot be sent.
        () = evicted.cancelled() => Response::default(),
        response = next.run(request) => response,
    };
    if peer.activity.has_malformed_head() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    busy.begin_response();
    let evicted = Box::pin(evicted.clone().cancelled_owned());
    response.map(|body| Body::new(CountedBody { body, evicted, _busy: busy }))
}

/// A response body that ends when its connection is replaced.
struct CountedBody {
    body: Body,
    evicted: Pin<Box<WaitForCancellationFutureOwned>>,
    _busy: Busy,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.evicted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(axum::Error::new("replaced by another connection"))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
