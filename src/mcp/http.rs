//! The server over streamable HTTP, mounted into the HTTP adapter.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::caller::Transport;
use super::connections::{self, Connections, SessionLimits};
use super::jsonrpc::{self, MAX_BODY_BYTES};
use super::server::{Server, Settings};
use skills_api::operations::Service;

/// Settings of the service.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Whether to accept any `Host`: if the service is reachable from other machines or requires a key, which no web
    /// page has. Otherwise only loopback names are accepted, against DNS rebinding.
    pub any_host: bool,
    /// Origins of web pages that may call it (`https://app.example.com:443`); if empty, none may.
    pub origins: Vec<String>,
    /// Limits of sessions of revisions with a handshake.
    pub limits: SessionLimits,
    /// Closes all connections.
    pub stop: CancellationToken,
}

/// Path of the server.
const PATH: &str = "/mcp";

/// Returns the MCP server over streamable HTTP as a route, to be mounted behind middleware that puts the
/// [`Caller`](skills_api::operations::Caller) of a request into its extensions. Timed-out sessions are ended by a task
/// on the current runtime.
pub fn routes(service: Service, settings: HttpSettings) -> Router {
    let HttpSettings { any_host, origins, limits, stop } = settings;
    let (leave, ending) = (stop.clone(), stop.clone());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(stop);
    let config = if any_host { config.disable_allowed_hosts() } else { config };
    let connection =
        Settings { transport: Transport::Http, session: None, called: None, compat: false, leave };
    let server = move || Ok(Server::new(service.clone(), connection.clone()));
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(limits.idle);
    // Only canceled calls are completed without a response, and their messages are not read.
    sessions.session_config.completed_cache_ttl = Duration::ZERO;
    let sessions = Arc::new(sessions);
    let service = StreamableHttpService::new(server, Arc::clone(&sessions), config);
    let connections = Connections::new(sessions, limits, ending);
    let admitted = from_fn_with_state(connections, connections::admit);
    Router::new().route_service(PATH, service).layer(admitted).layer(from_fn(jsonrpc::read))
}
