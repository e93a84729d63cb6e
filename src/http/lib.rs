//! The HTTP adapter: the table of operations as routes, with keys, errors, events and pages around them. It knows no
//! operation by name.

mod app;
mod cached_response;
mod codes;
mod cors;
mod dispatch;
mod feed;
mod framing;
mod keys;
mod listen;
mod middleware;
mod not_found;
mod openapi;
mod origin_check;
mod page;
mod problem;
mod stream;
mod trace;

use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::app::App;
use self::cached_response::Answers;
use self::feed::Feed;
use self::listen::{Entrance, Peer};
use skills_api::operations::Service;
use skills_api::{Code, Error, Limiter, Origin};
use skills_base::telemetry::Metrics;

pub use keys::{Authenticator, ServiceKeys};
pub use listen::Timeouts;
pub use openapi::{document, document_text};
pub use problem::Problem;

/// How a server behaves.
#[derive(Default)]
pub struct Settings {
    /// Authenticates callers; without it, authentication is disabled.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// How many requests a principal, or an address without one, may send.
    pub limiter: Option<Limiter>,
    /// Where requests are counted.
    pub metrics: Metrics,
    /// How long peers are waited for.
    pub patience: Timeouts,
    /// Further routes, behind the same front: each of their requests has its
    /// [`Caller`](skills_api::operations::Caller) among its extensions.
    pub more: Router,
    /// Web pages of other origins that may call; without any, none may.
    pub cors: Vec<Origin>,
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    patience: Timeouts,
    end: CancellationToken,
}

/// How long an address that is in use is tried again: of a process that was killed, a child between its fork and its
/// exec may hold it a moment longer.
const BIND_TIMEOUT: Duration = Duration::from_secs(2);
const BIND_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Listens at an address as soon as it is free.
async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let deadline = Instant::now() + BIND_TIMEOUT;
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                tokio::time::sleep(BIND_RETRY_INTERVAL).await;
            }
            bound => return bound,
        }
    }
}

/// How long answers in progress may take when the service ends.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

impl Server {
    /// Listens at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// `invalid_configuration` for an address that cannot be listened at.
    pub async fn bind(address: SocketAddr, service: Service, settings: Settings) -> Result<Self, Error> {
        let wrong = |error: std::io::Error| {
            let message =
                format!("cannot listen on {address}: {error}; use another --port, 0 for a free one");
            Error::new(Code::InvalidConfiguration, message)
        };
        let listener = listen(address).await.map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let Settings { authenticator, limiter, metrics, patience, more, cors } = settings;
        let end = CancellationToken::new();
        let feed = Feed::new(Arc::clone(&service.core), end.clone());
        let loopback = address.ip().is_loopback();
        let app = App {
            service,
            authenticator,
            limiter,
            metrics,
            patience,
            feed,
            answers: Answers::default(),
            loopback,
            cors: cors.into(),
            end: end.clone(),
        };
        let router = app::routes(&Arc::new(app), more);
        Ok(Self { listener, address, router, patience, end })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `end` fires: then no connection is accepted any longer, streams end, who waits for a run
    /// is answered with the run as it is, and answers in progress are given ten seconds.
    pub async fn run(self, end: CancellationToken) {
        let Self { listener, router, patience, end: ending, .. } = self;
        let service = router.into_make_service_with_connect_info::<Peer>();
        let ended = ending.clone();
        let serving = axum::serve(Entrance::new(listener, patience), service)
            .with_graceful_shutdown(async move { ended.cancelled().await })
            .into_future();
        let mut serving = tokio::spawn(serving);
        tokio::select! {
            _ = &mut serving => return,
            () = end.cancelled() => ending.cancel(),
        }
        if tokio::time::timeout(SHUTDOWN_GRACE, &mut serving).await.is_err() {
            tracing::warn!("closed connections that did not end within {} s", SHUTDOWN_GRACE.as_secs());
            serving.abort();
        }
    }
}
