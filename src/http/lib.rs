//! The HTTP adapter: exposes the operation table as routes, with authentication, errors, event streams and web pages.
//! It names no operation.

mod app;
mod cached_response;
mod codes;
mod constant;
mod cors;
mod dispatch;
mod feed;
mod framing;
mod keys;
mod listen;
mod middleware;
mod not_found;
mod openapi;
mod page;
mod problem;
mod request_checks;
mod revocation;
mod serving;
mod stream;
mod trace;
mod unread_body;

use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::app::App;
use self::feed::EventBroadcast;
use self::listen::{Acceptor, Peer};
use skills_api::operations::Service;
use skills_api::{Code, Error, Limiter, Origin};
use skills_base::telemetry::Metrics;

pub use keys::{Authenticator, ServiceKeys};
pub use listen::Timeouts;
pub use openapi::{document, document_text};
pub use problem::Problem;

/// Settings of a server.
#[derive(Default)]
pub struct Settings {
    /// Authenticates callers; without it, authentication is disabled.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// Rate limiter for requests per principal, or per address if unauthenticated.
    pub limiter: Option<Limiter>,
    pub metrics: Metrics,
    /// Timeouts and limits of connections.
    pub patience: Timeouts,
    /// Further routes behind the same middleware; each of their requests has its
    /// [`Caller`](skills_api::operations::Caller) in its extensions.
    pub more: Router,
    /// Origins whose web pages may call; if empty, none may.
    pub cors: Vec<Origin>,
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    patience: Timeouts,
    end: CancellationToken,
}

/// How long binding to an address in use is retried: after a process was killed, a child between fork and exec may hold
/// the address a moment longer.
const BIND_TIMEOUT: Duration = Duration::from_secs(2);
const BIND_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Binds to an address as soon as it is free.
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

/// Grace period for responses in progress at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

impl Server {
    /// Binds to an address; port 0 selects a free one.
    ///
    /// # Errors
    /// Returns `not_ready` if the address is in use, and `invalid_configuration` if it cannot be bound for another reason.
    pub async fn bind(address: SocketAddr, service: Service, settings: Settings) -> Result<Self, Error> {
        let wrong = |error: std::io::Error| {
            let message =
                format!("cannot listen on {address}: {error}; use another --port, 0 for a free one");
            // A process manager restarts a service after the former; the address may be free then.
            let is_in_use = error.kind() == std::io::ErrorKind::AddrInUse;
            Error::new(if is_in_use { Code::NotReady } else { Code::InvalidConfiguration }, message)
        };
        let listener = listen(address).await.map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let Settings { authenticator, limiter, metrics, patience, more, cors } = settings;
        let end = CancellationToken::new();
        let feed = EventBroadcast::new(Arc::clone(&service.core), end.clone());
        let loopback = address.ip().is_loopback();
        let app = App {
            service,
            authenticator,
            limiter,
            metrics,
            patience,
            feed,
            answers: Arc::default(),
            loopback,
            cors: cors.into(),
            end: end.clone(),
        };
        let router = app::routes(&Arc::new(app), more);
        Ok(Self { listener, address, router, patience, end })
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until `end` fires: then no connection is accepted, streams end, pending waits return the current
    /// run state, and responses in progress have ten seconds to complete.
    pub async fn run(self, end: CancellationToken) {
        let Self { listener, router, patience, end: ending, .. } = self;
        let service = router.into_make_service_with_connect_info::<Peer>();
        let ended = ending.clone();
        let serving = axum::serve(Acceptor::new(listener, patience), service)
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
