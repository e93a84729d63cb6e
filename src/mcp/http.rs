//! The server over streamable HTTP: a service that is mounted into the HTTP adapter.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::caller::Door;
use super::envelope::{self, MOST_BYTES};
use super::server::{Server, Settings};
use crate::gateway::operations::Service;

/// How long a client of a revision with a handshake may be silent before its connection is forgotten: a person thinks,
/// and a run takes its time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// How the service is to behave.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// It answers to any name: where it can be reached from beyond this machine, or asks for keys, which no web page
    /// has. Otherwise it answers to those of loopback alone, against pages that turn their own name to this address.
    pub any_host: bool,
    /// Web pages that may call it (`https://app.example.com:443`); without any, none may.
    pub origins: Vec<String>,
    /// Ends all connections.
    pub stop: CancellationToken,
}

/// The header that names a session of a revision with a handshake.
const SESSION: &str = "mcp-session-id";
/// Where the server answers over HTTP.
const PATH: &str = "/mcp";

/// The MCP server over streamable HTTP as a route, to stand behind a front that puts the
/// [`Caller`](crate::gateway::operations::Caller) of a request into its extensions.
pub fn routes(service: Service, settings: HttpSettings) -> Router {
    let HttpSettings { any_host, origins, stop } = settings;
    let leave = stop.clone();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MOST_BYTES)
        .with_cancellation_token(stop);
    let config = if any_host { config.disable_allowed_hosts() } else { config };
    let connection = Settings { door: Door::Http, session: None, called: None, leave };
    let server = move || Ok(Server::new(service.clone(), connection.clone()));
    let mut connections = LocalSessionManager::default();
    connections.session_config.keep_alive = Some(LONGEST_PAUSE);
    let connections = Arc::new(connections);
    let service = StreamableHttpService::new(server, Arc::clone(&connections), config);
    let ending = from_fn_with_state(connections, ended);
    Router::new().route_service(PATH, service).layer(ending).layer(from_fn(envelope::read))
}

/// Answers the end of a session as what it is: done, so that clients take it for no failure, or about one that is not
/// kept here.
async fn ended(
    State(connections): State<Arc<LocalSessionManager>>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::DELETE {
        return next.run(request).await;
    }
    let named = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if let Some(named) = named
        && !connections.has_session(&named.as_str().into()).await.unwrap_or(true)
    {
        let mut response =
            Response::new(Body::from("there is no such session; it has ended, or never began"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let mut response = next.run(request).await;
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
