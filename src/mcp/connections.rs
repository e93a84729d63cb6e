//! MCP sessions over HTTP, of revisions with a handshake: their owners, limits and timeouts.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::jsonrpc;
use skills_api::operations::{Caller, MAX_AUTHENTICATION_AGE, Permit, stream_permit};

/// The header with the session id.
pub(super) const SESSION: &str = "mcp-session-id";
/// JSON-RPC code of a server that accepts no more sessions.
const UNAVAILABLE: i32 = -32_000;
/// JSON-RPC code of an internal error.
pub(super) const INTERNAL_ERROR: i32 = -32_603;
/// Idle time after which a session with a handshake may be evicted for a new one.
const MIN_IDLE: Duration = Duration::from_secs(60);
/// Retry delay for rejected callers, in seconds.
const RETRY_AFTER: &str = "60";
/// Maximum interval between checks for sessions that have timed out.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// Limits and timeouts of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of sessions.
    pub total: usize,
    /// Maximum number of sessions per principal; unauthenticated callers count as one.
    pub per_principal: usize,
    /// How long a session without a completed handshake is kept.
    pub handshake: Duration,
    /// Idle timeout of a session; long, because users and runs can be slow.
    pub idle: Duration,
    /// How long a question to the user stays open after its connection was lost, unless the client has another stream.
    pub resume: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            total: 1024,
            per_principal: 256,
            handshake: Duration::from_secs(60),
            idle: Duration::from_secs(60 * 60),
            resume: Duration::from_secs(60),
        }
    }
}

/// A session, or one that is being created.
#[derive(Debug)]
struct OpenSession {
    owner: Option<String>,
    /// The caller of the last request, if it is authenticated.
    caller: Option<Caller>,
    /// Whether the protocol has created it.
    made: bool,
    started_at: Instant,
    handshaken: bool,
    used: Instant,
    /// Requests and streams in progress.
    in_use: usize,
    /// Ids of the requests in progress.
    requests: HashSet<String>,
}

impl OpenSession {
    fn begin(owner: Option<String>) -> Self {
        let now = Instant::now();
        Self {
            owner,
            caller: None,
            made: false,
            started_at: now,
            handshaken: false,
            used: now,
            in_use: 0,
            requests: HashSet::new(),
        }
    }

    fn is_over(&self, limits: &SessionLimits, now: Instant) -> bool {
        let over = if self.handshaken {
            self.in_use == 0 && now - self.used >= limits.idle
        } else {
            now - self.started_at >= limits.handshake
        };
        self.made && over
    }

    /// Returns whether the caller now lacks a scope that requests of the session were accepted with.
    fn has_lost_scopes(&self, now: Option<&Caller>) -> bool {
        let scopes = |caller: &Caller| caller.principal.clone().map(|principal| principal.scopes);
        let accepted = self.caller.as_ref().and_then(scopes).unwrap_or_default();
        !accepted.is_subset(&now.and_then(scopes).unwrap_or_default())
    }

    /// Returns the order of eviction: sessions without a handshake first, then by idle time.
    fn idleness(&self, now: Instant) -> Option<(bool, Duration)> {
        let idle = now - self.used;
        let gives_way = self.made && self.in_use == 0 && (!self.handshaken || idle >= MIN_IDLE);
        gives_way.then_some((!self.handshaken, idle))
    }
}

/// Why no session can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Principal,
    Total,
}

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RejectReason {
    /// This owner has no such session.
    Unknown,
    /// The caller's key has lost scopes since the session's last request.
    LostScopes,
    /// A request with the same id is in progress: the protocol library would answer one and never end the other's
    /// stream.
    DuplicateId,
}

/// The open sessions.
pub struct Connections {
    sessions: Arc<LocalSessionManager>,
    limits: SessionLimits,
    connections: Mutex<HashMap<String, OpenSession>>,
}

impl Connections {
    /// Creates an empty set. Timed-out sessions are ended until `stop` fires.
    pub fn new(
        sessions: Arc<LocalSessionManager>,
        limits: SessionLimits,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let connections = Arc::new(Self { sessions, limits, connections: Mutex::default() });
        tokio::spawn(sweep(Arc::downgrade(&connections), stop.clone(), limits.handshake / 4));
        tokio::spawn(check_keys(Arc::downgrade(&connections), stop));
        connections
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, OpenSession>) -> T) -> T {
        change(&mut self.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reserves a slot for a new session, and returns the session that is evicted for it.
    fn reserve(self: &Arc<Self>, caller: Option<&Caller>) -> Result<(PendingSession, Option<String>), Full> {
        let (key, now) = (uuid::Uuid::now_v7().to_string(), Instant::now());
        let owner = owner_of(caller);
        let evicted = self.with(|sessions| {
            let own = |session: &&OpenSession| session.owner == owner;
            let full = if sessions.values().filter(own).count() >= self.limits.per_principal {
                Some(Full::Principal)
            } else if sessions.len() >= self.limits.total {
                Some(Full::Total)
            } else {
                None
            };
            let evicted = match full {
                None => None,
                Some(full) => {
                    let all = sessions.iter().filter(|(_, session)| full == Full::Total || own(session));
                    let idle = all.filter_map(|(id, session)| Some((session.idleness(now)?, id)));
                    Some(idle.max_by_key(|(idleness, _)| *idleness).map(|(_, id)| id.clone()).ok_or(full)?)
                }
            };
            if let Some(id) = &evicted {
                sessions.remove(id);
            }
            let started = OpenSession::begin(owner.clone());
            sessions.insert(key.clone(), OpenSession { caller: caller.cloned(), ..started });
            Ok(evicted)
        })?;
        Ok((PendingSession { connections: Arc::clone(self), key }, evicted))
    }

    /// Enters a session for the request with this id. A session of another owner is unknown, like one that never
    /// existed.
    fn enter(
        self: &Arc<Self>,
        id: &str,
        caller: Option<&Caller>,
        request: Option<String>,
    ) -> Result<InUse, RejectReason> {
        let owner = owner_of(caller);
        self.with(|sessions| {
            let session = sessions.get_mut(id).filter(|session| session.owner == owner);
            let session = session.ok_or(RejectReason::Unknown)?;
            if session.has_lost_scopes(caller) {
                return Err(RejectReason::LostScopes);
            }
            session.caller = caller.cloned();
            if request.as_ref().is_some_and(|request| !session.requests.insert(request.clone())) {
                return Err(RejectReason::DuplicateId);
            }
            session.in_use += 1;
            session.used = Instant::now();
            Ok(InUse { connections: Arc::clone(self), id: id.to_owned(), request })
        })
    }

    /// Ends a session whose caller has lost scopes, with its pending calls.
    async fn revoke(&self, id: &str) {
        self.with(|sessions| sessions.remove(id));
        tracing::info!("closing MCP session {id}: its API key was removed or lost a scope");
        self.close(id).await;
    }

    /// Ends the sessions whose keys have ended or have fewer scopes than before.
    async fn end_revoked(&self) {
        let callers = self.with(|sessions| {
            let caller = |(id, session): (&String, &OpenSession)| Some((id.clone(), session.caller.clone()?));
            sessions.iter().filter(|(_, session)| session.made).filter_map(caller).collect::<Vec<_>>()
        });
        for (id, caller) in callers.into_iter().filter(|(_, caller)| caller.credentials.is_some()) {
            let now = caller.current().await.ok();
            let lost = |session: &OpenSession| session.has_lost_scopes(now.as_ref());
            if self.with(|sessions| sessions.get(&id).is_some_and(lost)) {
                self.revoke(&id).await;
            }
        }
    }

    async fn close(&self, id: &str) {
        if let Err(error) = self.sessions.close_session(&id.into()).await {
            tracing::debug!("MCP session {id} ended: {error}");
        }
    }

    /// Ends the sessions that have timed out, and removes those that ended by themselves.
    async fn end_overdue(&self) {
        let now = Instant::now();
        let (over, active): (Vec<String>, Vec<String>) = self.with(|sessions| {
            let over = |(_, session): &(&String, &OpenSession)| session.is_over(&self.limits, now);
            let (over, active): (Vec<_>, Vec<_>) = sessions.iter().partition(over);
            let ids = |all: Vec<(&String, &OpenSession)>| {
                all.into_iter().map(|(id, _)| id.clone()).collect::<Vec<_>>()
            };
            (ids(over), ids(active))
        });
        for id in over {
            self.with(|sessions| sessions.remove(&id));
            self.close(&id).await;
        }
        for id in active {
            let ended = !self.sessions.has_session(&id.as_str().into()).await.unwrap_or(true);
            self.with(|sessions| {
                if ended && sessions.get(&id).is_some_and(|session| session.made) {
                    sessions.remove(&id);
                }
            });
        }
    }
}

async fn sweep(connections: Weak<Connections>, stop: CancellationToken, interval: Duration) {
    let interval = interval.min(MAX_SWEEP_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
        match connections.upgrade() {
            Some(connections) => connections.end_overdue().await,
            None => return,
        }
    }
}

async fn check_keys(connections: Weak<Connections>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(MAX_AUTHENTICATION_AGE) => {}
        }
        match connections.upgrade() {
            Some(connections) => connections.end_revoked().await,
            None => return,
        }
    }
}

/// A session that is being created; without an id its slot is released on drop.
struct PendingSession {
    connections: Arc<Connections>,
    key: String,
}

impl PendingSession {
    fn keep(self, id: &str) {
        self.connections.with(|sessions| {
            if let Some(session) = sessions.remove(&self.key) {
                sessions.insert(id.to_owned(), OpenSession { made: true, ..session });
            }
        });
    }
}

impl Drop for PendingSession {
    fn drop(&mut self) {
        self.connections.with(|sessions| sessions.remove(&self.key));
    }
}

/// A request or a stream of a session; until it is dropped, the session does not time out. A request keeps its id until
/// its call and its response have ended: of two calls with the same id, the protocol library would never free one.
struct InUse {
    connections: Arc<Connections>,
    id: String,
    request: Option<String>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.connections.with(|sessions| {
            if let Some(session) = sessions.get_mut(&self.id) {
                session.in_use -= 1;
                if let Some(request) = &self.request {
                    session.requests.remove(request);
                }
                session.used = Instant::now();
            }
        });
    }
}

impl InUse {
    /// Returns whether the client has a stream of the session besides those of its requests.
    fn has_listener(&self) -> bool {
        self.connections.with(|sessions| {
            sessions.get(&self.id).is_some_and(|session| session.in_use > session.requests.len())
        })
    }
}

/// Completes when the client has closed the connection of a call and does not resume it in time.
pub async fn abandoned(request: Option<&Parts>) {
    let extensions = request.map(|parts| &parts.extensions);
    let closed = extensions.and_then(|all| all.get::<jsonrpc::Closed>().zip(all.get::<Arc<InUse>>()));
    let Some((closed, in_use)) = closed else { return std::future::pending().await };
    closed.0.cancelled().await;
    loop {
        tokio::time::sleep(in_use.connections.limits.resume).await;
        if !in_use.has_listener() {
            return;
        }
    }
}

/// Accepts a request if its session belongs to the caller, or if it creates one within the limits.
pub async fn admit(
    State(connections): State<Arc<Connections>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let method = request.extensions().get::<jsonrpc::Method>().cloned();
    let (method, request_id) = method.map(|method| (method.name, method.id)).unzip();
    match request.headers().get(SESSION).map(|id| id.to_str().unwrap_or_default().to_owned()) {
        Some(id) => match connections.enter(&id, caller.as_ref(), request_id.flatten()) {
            Ok(in_use) if request.method() == Method::DELETE => end(in_use, request, next).await,
            Ok(in_use) => {
                let in_use = Arc::new(in_use);
                // The library drops the extensions when the call ends, but those of `initialize` only with the session.
                if method.as_deref().is_some_and(|method| method != "initialize") {
                    request.extensions_mut().insert(Arc::clone(&in_use));
                }
                // A client that only listens would hold its connection without counting elsewhere.
                let permit = match caller.filter(|_| request.method() == Method::GET) {
                    Some(caller) => stream_permit(&caller).await,
                    None => Ok(None),
                };
                match permit {
                    Ok(permit) => handle_message(in_use, permit, method.as_deref(), request, next).await,
                    Err(error) => jsonrpc::busy(&error),
                }
            }
            Err(RejectReason::Unknown) => unknown(),
            Err(RejectReason::LostScopes) => {
                connections.revoke(&id).await;
                unknown()
            }
            Err(RejectReason::DuplicateId) => duplicate_id(),
        },
        None if method.as_deref() == Some("initialize") => {
            begin(&connections, caller.as_ref(), request, next).await
        }
        None => next.run(request).await,
    }
}

fn owner_of(caller: Option<&Caller>) -> Option<String> {
    caller?.principal.as_ref().map(|principal| principal.name.clone())
}

async fn begin(
    connections: &Arc<Connections>,
    caller: Option<&Caller>,
    request: Request,
    next: Next,
) -> Response {
    let (place, evicted) = match connections.reserve(caller) {
        Ok(reserved) => reserved,
        Err(full) => return refused(full, &connections.limits),
    };
    if let Some(id) = evicted {
        connections.close(&id).await;
    }
    // In a separate task: a caller who disconnects before the response must not leave an uncounted session.
    let made = tokio::spawn(async move {
        let response = next.run(request).await;
        if let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
            place.keep(id);
        }
        response
    });
    made.await.unwrap_or_else(|error| {
        tracing::error!("cannot create an MCP session: {error}");
        let message = "cannot create the session; see the log of the service";
        jsonrpc::refused(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, &Value::Null, message)
    })
}

async fn handle_message(
    in_use: Arc<InUse>,
    permit: Option<Permit>,
    method: Option<&str>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    // A further request shows that the response to `initialize` was received; only a ping may be sent before.
    if response.status().is_success() && method.is_some_and(|method| method != "ping") {
        in_use.connections.with(|sessions| {
            if let Some(session) = sessions.get_mut(&in_use.id) {
                session.handshaken = true;
            }
        });
    }
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let stream = body.into_data_stream().map(move |part| {
        let _until_it_ends = (&in_use, &permit);
        part
    });
    Response::from_parts(parts, Body::from_stream(stream))
}

/// Responds to the end of a session with success, so that clients do not report a failure.
async fn end(in_use: InUse, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if response.status().is_success() {
        in_use.connections.with(|sessions| sessions.remove(&in_use.id));
    }
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Without the id, which belongs to the request in progress.
fn duplicate_id() -> Response {
    let message = "a request with this id is in progress in this session; use another id for each request";
    jsonrpc::refused(StatusCode::CONFLICT, jsonrpc::INVALID_REQUEST, &Value::Null, message)
}

fn unknown() -> Response {
    let mut response =
        Response::new(Body::from("session not found: the id is unknown, or the session has ended"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn refused(full: Full, limits: &SessionLimits) -> Response {
    let (status, message) = match full {
        Full::Principal => {
            let most = limits.per_principal;
            let message = format!(
                "this caller already uses {most} MCP sessions; end one with DELETE \
                    (--max-mcp-sessions-per-key)"
            );
            (StatusCode::TOO_MANY_REQUESTS, message)
        }
        Full::Total => {
            let most = limits.total;
            let message = format!("all {most} MCP sessions are in use; try again later (--max-mcp-sessions)");
            (StatusCode::SERVICE_UNAVAILABLE, message)
        }
    };
    let mut response = jsonrpc::refused(status, UNAVAILABLE, &Value::Null, &message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_session_ends_and_one_in_use_does_not() {
        let limits = SessionLimits::default();
        let mut session = OpenSession { made: true, handshaken: true, ..OpenSession::begin(None) };
        let (soon, later) = (session.used + MIN_IDLE, session.used + limits.idle);
        assert!(session.is_over(&limits, later) && !session.is_over(&limits, soon));
        assert!(session.idleness(later).is_some() && session.idleness(session.used).is_none());
        session.in_use = 1;
        assert!(!session.is_over(&limits, later) && session.idleness(later).is_none());
    }

    #[test]
    fn without_a_handshake_use_does_not_extend_it() {
        let limits = SessionLimits::default();
        let session = OpenSession { made: true, in_use: 1, ..OpenSession::begin(None) };
        let later = session.started_at + limits.handshake;
        assert!(session.is_over(&limits, later));
        assert!(!OpenSession { made: false, ..session }.is_over(&limits, later), "it is still being made");
    }
}
