//! Calls tools of MCP servers (<https://modelcontextprotocol.io/specification/2025-11-25>), over stdio and streamable
//! HTTP.
//!
//! A connection serves one call at a time and is then reused, so that stopping a call can terminate its server without
//! affecting another call.

use std::collections::{BTreeMap, HashMap};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock, ErrorCode,
    Implementation, ListToolsResult, MetaObject, ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::call::{CallFailure, FailureKind};
use super::super::value_count::has_few_values;
use super::http::root_cause;
use super::request::kind;
use super::{BindingCall, BindingContext, BindingFailure, BindingResponse, Effect, excerpt, stopped_by};
use skills_base::sync::MutexExt as _;
use skills_skill::contract::{Endpoint, ServiceTarget};

/// Maximum number of idle connections per service.
const MAX_IDLE: usize = 4;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of messages of a server per call, the idle time after it included. Each request among them is
/// answered, so that a server that sends them without end would use up the memory.
const MAX_MESSAGES: usize = 10_000;
/// Bytes from the end of a server's stderr that an error message shows.
const STDERR_TAIL_BYTES: usize = 2 << 10;
/// Maximum size of one message over HTTP, in bytes; for stdio the library has its own limit.
const MAX_EVENT: usize = 8 << 20;
/// Environment variables of this program that a server inherits.
const INHERITED: [&str; 7] = ["PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "USER"];

/// Idle connections by service, with the time since when they are idle.
type Idle = Mutex<HashMap<String, Vec<(Instant, Session)>>>;

/// The idle connections.
#[derive(Default)]
pub struct Sessions {
    idle: Arc<Idle>,
}

struct Session {
    running: RunningService<RoleClient, ClientConfig>,
    server: Option<Server>,
    messages_left: Arc<AtomicUsize>,
}

/// A transport that ends after a number of messages of the server.
struct LimitedTransport<T> {
    inner: T,
    messages_left: Arc<AtomicUsize>,
}

impl<T> LimitedTransport<T> {
    fn new(inner: T) -> Self {
        Self { inner, messages_left: Arc::new(AtomicUsize::new(MAX_MESSAGES)) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LimitedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        let spend = |left: usize| left.checked_sub(1);
        if self.messages_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_err() {
            tracing::warn!(
                "closed the connection to an MCP server that sent more than {MAX_MESSAGES} messages"
            );
            return None;
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// A server process started by this program; dropping this value kills its process group.
struct Server {
    child: Child,
    group: Option<Pid>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // After it is reaped its PID may be reused.
        if let (Some(group), Ok(None)) = (self.group, self.child.try_wait()) {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Sessions {
    fn take_idle(&self, service: &str) -> Option<Session> {
        let mut idle = self.idle.locked();
        let sessions = idle.get_mut(service)?;
        while let Some((_, mut session)) = sessions.pop() {
            let gone =
                session.server.as_mut().is_some_and(|server| !matches!(server.child.try_wait(), Ok(None)));
            if !gone && !session.running.is_closed() && !session.running.peer().is_transport_closed() {
                session.messages_left.store(MAX_MESSAGES, Ordering::Relaxed);
                return Some(session);
            }
        }
        None
    }

    fn return_session(&self, service: &str, session: Session) {
        let mut idle = self.idle.locked();
        let sessions = idle.entry(service.to_owned()).or_default();
        if sessions.len() < MAX_IDLE {
            sessions.push((Instant::now(), session));
            tokio::spawn(close_idle(Arc::downgrade(&self.idle), service.to_owned()));
        }
    }
}

/// Closes the connections of a service that were idle for the timeout, which has to pass first.
async fn close_idle(idle: Weak<Idle>, service: String) {
    tokio::time::sleep(IDLE_TIMEOUT).await;
    let Some(idle) = idle.upgrade() else { return };
    let mut idle = idle.locked();
    if let Some(sessions) = idle.get_mut(&service) {
        sessions.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
    }
}

pub async fn execute(
    context: &BindingContext,
    job: &BindingCall<'_>,
    cancel: &CancellationToken,
) -> Result<BindingResponse, BindingFailure> {
    let service = &job.offered.binding.service;
    let endpoint = context.services.get(service).ok_or_else(|| {
        BindingFailure::before(
            CallFailure::InvalidConfiguration,
            format!("service {service} is not configured"),
        )
    })?;
    let patience = job.timeout(Some(endpoint));
    // Dropping this future (on timeout or cancellation) drops the session, and its server with it.
    let work = async {
        let arguments = match job.request() {
            Value::Object(map) => map,
            other => {
                let message = format!("{} expects an object of arguments, not {}", job.target, kind(&other));
                return Err(BindingFailure::before(CallFailure::InvalidRequest, message));
            }
        };
        let session = match context.sessions.take_idle(service) {
            Some(session) => session,
            None => connect(context, job, endpoint).await?,
        };
        match session.running.call_tool(params(job, arguments)).await {
            Ok(result) => {
                context.sessions.return_session(service, session);
                read(result, &job.target).map(BindingResponse::of)
            }
            Err(error) => {
                let failed = refused(&error, &session, job).await;
                if matches!(error, ServiceError::McpError(_)) {
                    context.sessions.return_session(service, session);
                }
                Err(failed)
            }
        }
    };
    // Boxed because the library's futures are large.
    let timed = async {
        tokio::time::timeout(patience.wait, Box::pin(work))
            .await
            .unwrap_or_else(|_| Err(job.too_late(patience)))
    };
    stopped_by(cancel, timed).await
}

fn params(job: &BindingCall<'_>, arguments: Map<String, Value>) -> CallToolRequestParams {
    let mut meta = Map::new();
    meta.insert("skill-workbench/idempotency-key".to_owned(), json!(job.call.idempotency_key));
    meta.insert("skill-workbench/trace-id".to_owned(), json!(job.call.trace_id));
    let mut params =
        CallToolRequestParams::new(job.offered.binding.operation.clone()).with_arguments(arguments);
    params.meta = Some(RequestMetaObject(MetaObject(meta)));
    params
}

fn client_info() -> ClientConfig {
    let name = Implementation::new("skill-workbench", env!("CARGO_PKG_VERSION"));
    // The newest version with a handshake; a server responds with a version it supports.
    ClientConfig::new(ClientCapabilities::default(), name)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

async fn connect(
    context: &BindingContext,
    job: &BindingCall<'_>,
    endpoint: &Endpoint,
) -> Result<Session, BindingFailure> {
    match &endpoint.reach {
        ServiceTarget::Command { program, args, env, directory } => {
            let mut command = Command::new(program);
            command.args(args).current_dir(directory);
            start(context, job, command, env).await
        }
        ServiceTarget::Http { url, headers } => reach(context, job, url, headers).await,
        ServiceTarget::Script { .. } => Err(BindingFailure::before(
            CallFailure::InvalidConfiguration,
            format!("service {} has neither `url` nor `command`", job.offered.binding.service),
        )),
    }
}

async fn start(
    context: &BindingContext,
    job: &BindingCall<'_>,
    mut command: Command,
    env: &BTreeMap<String, String>,
) -> Result<Session, BindingFailure> {
    let service = &job.offered.binding.service;
    let env = context
        .expanded(service, "env", env)
        .map_err(|obstacle| BindingFailure::before(obstacle.code, obstacle.message))?;
    let own = INHERITED.iter().filter_map(|name| Some((*name, (context.environment)(name)?)));
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.env_clear().envs(own).envs(env).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let message = format!(
            "cannot start {program} of service {service}: {error}; correct `services.{service}.command`"
        );
        BindingFailure { counts: true, ..BindingFailure::before(CallFailure::InvalidConfiguration, message) }
    })?;
    let stderr = Arc::new(Mutex::new(Vec::new()));
    if let Some(pipe) = child.stderr.take() {
        tokio::spawn(read_stderr(pipe, Arc::clone(&stderr)));
    }
    let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.take()) else {
        return Err(BindingFailure::upstream(format!("{program} has no stdin and stdout"), Effect::None));
    };
    let group = child.id().map(|id| Pid::from_raw(id.cast_signed()));
    let server = Server { child, group, stderr };
    match initialize(AsyncRwTransport::new_client(stdout, stdin)).await {
        Ok((running, messages_left)) => Ok(Session { running, server: Some(server), messages_left }),
        Err(error) => Err(initialization_failure(&error, job, Some(&server))),
    }
}

/// Initializes a connection.
async fn initialize<T: Transport<RoleClient> + 'static>(
    transport: T,
) -> Result<(RunningService<RoleClient, ClientConfig>, Arc<AtomicUsize>), ClientInitializeError> {
    let transport = LimitedTransport::new(transport);
    let messages_left = Arc::clone(&transport.messages_left);
    Ok((rmcp::serve_client(client_info(), transport).await?, messages_left))
}

async fn reach(
    context: &BindingContext,
    job: &BindingCall<'_>,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<Session, BindingFailure> {
    let service = &job.offered.binding.service;
    let headers = context
        .expanded(service, "headers", headers)
        .map_err(|obstacle| BindingFailure::before(obstacle.code, obstacle.message))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let (Ok(header), Ok(value)) = (
            reqwest::header::HeaderName::try_from(name.as_str()),
            reqwest::header::HeaderValue::try_from(value.as_str()),
        ) else {
            let message = format!("`services.{service}.headers.{name}` is not a valid header");
            return Err(BindingFailure::before(CallFailure::InvalidConfiguration, message));
        };
        custom.insert(header, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url.to_owned())
        .custom_headers(custom)
        .max_sse_event_size(MAX_EVENT);
    let transport = StreamableHttpClientTransport::with_client(context.http.client()?.clone(), config);
    match initialize(transport).await {
        Ok((running, messages_left)) => Ok(Session { running, server: None, messages_left }),
        Err(error) => Err(initialization_failure(&error, job, None)),
    }
}

fn initialization_failure(
    error: &ClientInitializeError,
    job: &BindingCall<'_>,
    server: Option<&Server>,
) -> BindingFailure {
    let message =
        format!("{}: MCP initialization failed ({}){}", job.target, root_cause(error), stderr_tail(server));
    BindingFailure::upstream(message, Effect::None)
}

/// Keeps the end of what a server prints to stderr, to be shown if it fails.
async fn read_stderr(mut pipe: ChildStderr, stderr: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let mut stderr = stderr.locked();
        stderr.extend_from_slice(&buffer[..read]);
        let drop = stderr.len().saturating_sub(STDERR_TAIL_BYTES);
        stderr.drain(..drop);
    }
}

fn stderr_tail(server: Option<&Server>) -> String {
    let Some(server) = server else { return String::new() };
    let stderr = server.stderr.locked();
    let text = String::from_utf8_lossy(&stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map(|line| format!("; it said: {}", excerpt(line.as_bytes()))).unwrap_or_default()
}

/// Maps a failed call to a failure.
async fn refused(error: &ServiceError, session: &Session, job: &BindingCall<'_>) -> BindingFailure {
    let failure_text =
        || format!("{} failed: {}{}", job.target, root_cause(error), stderr_tail(session.server.as_ref()));
    match error {
        ServiceError::McpError(error) => {
            let message = format!(
                "{} returned error {}: {}",
                job.target,
                error.code.0,
                excerpt(error.message.as_bytes())
            );
            if [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND].contains(&error.code) {
                // Servers use both codes for a tool that does not exist.
                return match missing(session, &job.offered.binding.operation).await {
                    Some(tools) => BindingFailure::before(
                        CallFailure::InvalidConfiguration,
                        format!("{message}; the server has no such tool, available: {tools}"),
                    ),
                    None => BindingFailure::before(CallFailure::InvalidRequest, message),
                }
                .answered(error.code.0);
            }
            BindingFailure::upstream(message, Effect::Possible).answered(error.code.0)
        }
        _ => BindingFailure::upstream(failure_text(), Effect::Possible),
    }
}

/// Returns the server's tools if the requested one is not among them, unless there are several pages.
async fn missing(session: &Session, tool: &str) -> Option<String> {
    let ListToolsResult { tools, next_cursor: None, .. } =
        session.running.peer().list_tools(None).await.ok()?
    else {
        return None;
    };
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).take(20).collect();
    (!tools.iter().any(|known| known.name == tool)).then(|| excerpt(names.join(", ").as_bytes()))
}

/// Returns a tool's result: its structured content, else its text parsed as JSON, else `{"text": …}`.
fn read(result: CallToolResult, target: &str) -> Result<Value, BindingFailure> {
    let texts: Vec<&str> =
        result.content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.as_str()).collect();
    let text = texts.join("\n");
    if result.is_error == Some(true) {
        let failed = BindingFailure::answer(format!("{target} failed: {}", excerpt(text.as_bytes())));
        return Err(BindingFailure { kind: Some(FailureKind::ErrorAnswer), ..failed });
    }
    if let Some(structured) = result.structured_content.filter(|value| !value.is_null()) {
        return Ok(structured);
    }
    if has_few_values(text.as_bytes())
        && let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(&text)
    {
        return Ok(value);
    }
    let content = serde_json::to_value(&result.content)
        .map_err(|error| BindingFailure::answer(format!("{target}: its content is not JSON: {error}")))?;
    Ok(json!({ "text": text, "content": content }))
}
