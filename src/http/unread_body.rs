//! The remainder of a request body that its handler did not read. A small one is read afterwards, so that the connection
//! can serve further requests; with a larger one the response has to announce that the connection closes, because a
//! client that reused it would get no response (<https://www.rfc-editor.org/rfc/rfc9112#section-9.6>).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures::future::poll_fn;
use http_body::{Frame, SizeHint};
use skills_base::sync::MutexExt as _;

/// Maximum size in bytes of a remainder that is read.
const MAX_BYTES: u64 = 64 << 10;
/// Timeout for reading it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// A body that is read by a handler first, and then by the middleware around it.
#[derive(Clone)]
pub(super) struct SharedBody(Arc<Mutex<Body>>);

impl SharedBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    fn lock(&self) -> MutexGuard<'_, Body> {
        self.0.locked()
    }

    /// Reads what is left, and returns whether that was all of it.
    pub(super) async fn finish(self) -> bool {
        if self.lock().size_hint().lower() > MAX_BYTES {
            return false;
        }
        let read = async {
            let mut left = MAX_BYTES;
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut *self.lock()).poll_frame(cx)).await {
                let Ok(frame) = frame else { return false };
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                let Some(less) = left.checked_sub(bytes) else { return false };
                left = less;
            }
            true
        };
        tokio::time::timeout(MAX_WAIT, read).await.unwrap_or(false)
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut *self.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}
