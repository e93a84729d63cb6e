//! The server over streamable HTTP: a service that is mounted into the HTTP adapter.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::caller::Door;
use super::connections::{self, Connections, SessionLimits};
use super::jsonrpc::{self, MAX_BODY_BYTES};
use super::server::{Server, Settings};
use skills_api::operations::Service;

/// How the service is to behave.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Accepts any `Host`: if the service is reachable from other machines or requires a key, which no web page has.
    /// Otherwise it accepts loopback names only, against DNS rebinding.
    pub any_host: bool,
    /// Web pages that may call it (`https://app.example.com:443`); without any, none may.
    pub origins: Vec<String>,
    /// How many sessions of revisions with a handshake there may be.
    pub limits: SessionLimits,
    /// Ends all connections.
    pub stop: CancellationToken,
}

/// Where the server answers over HTTP.
const PATH: &str = "/mcp";

/// The MCP server over streamable HTTP as a route, to be behind a front that puts the
/// [`Caller`](skills_api::operations::Caller) of a request into its extensions. Sessions that have to end are
/// looked for by a task of the runtime that this is called in.
pub fn routes(service: Service, settings: HttpSettings) -> Router {
    let HttpSettings { any_host, origins, limits, stop } = settings;
    let (leave, ending) = (stop.clone(), stop.clone());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(stop);
    let config = if any_host { config.disable_allowed_hosts() } else { config };
    let connection = Settings { door: Door::Http, session: None, called: None, compat: false, leave };
    let server = move || Ok(Server::new(service.clone(), connection.clone()));
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(limits.idle);
    let sessions = Arc::new(sessions);
    let service = StreamableHttpService::new(server, Arc::clone(&sessions), config);
    let connections = Connections::new(sessions, limits, ending);
    let admitted = from_fn_with_state(connections, connections::admit);
    Router::new().route_service(PATH, service).layer(admitted).layer(from_fn(jsonrpc::read))
}
