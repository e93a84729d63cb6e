//! The server over streamable HTTP: a service that is mounted into the HTTP adapter.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::caller::Door;
use super::server::{Server, Settings};
use crate::gateway::operations::Service;

/// Bytes of a request, at most.
const MOST_BYTES: usize = 2 << 20;

/// How the service is to behave.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Keys are asked for: a request whose extensions hold no principal is refused.
    pub keys: bool,
    /// Names (`host` or `host:port`) under which the service may be called, against web pages that turn their own name
    /// to this address. Without any: those of loopback, or, where keys are asked for, which no page has, all.
    pub hosts: Vec<String>,
    /// Web pages that may call it (`https://app.example.com:443`); without any, none may.
    pub origins: Vec<String>,
    /// Ends all connections.
    pub stop: CancellationToken,
}

/// The service, for axum's `nest_service` or `route_service`.
pub type HttpService = StreamableHttpService<Server, LocalSessionManager>;

/// The MCP server over streamable HTTP. The layer before it puts the
/// [`Principal`](crate::gateway::operations::Principal) of a request into its extensions.
#[must_use]
pub fn service(service: Service, settings: HttpSettings) -> HttpService {
    let HttpSettings { keys, hosts, origins, stop } = settings;
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MOST_BYTES)
        .with_cancellation_token(stop);
    let config = match (hosts.is_empty(), keys) {
        (false, _) => config.with_allowed_hosts(hosts),
        (true, true) => config.disable_allowed_hosts(),
        (true, false) => config,
    };
    let connection = Settings { door: Door::Http { keys }, session: None };
    let server = move || Ok(Server::new(service.clone(), connection.clone()));
    StreamableHttpService::new(server, Arc::new(LocalSessionManager::default()), config)
}
