//! Framing of a message over HTTP: a body that is read in full within its limits and is JSON-RPC 2.0
//! (<https://www.jsonrpc.org/specification>), or is rejected with a JSON-RPC error before the protocol's own parser.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{self, HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::{Stream, StreamExt as _, stream};
use rmcp::model::{ClientJsonRpcMessage, GetMeta as _, ProgressToken, RequestId};
use serde_json::{Value, json};
use skills_api::operations::{
    Caller, LARGE_BODY_BYTES, Permit, ensure_few_values, large_body_permit, large_wait_permit, operation,
    response_permit, stream_permit,
};
use skills_api::{Error, exceeds_length_limit, in_place};
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::connections::{INTERNAL_ERROR, SESSION};

/// Maximum size of a request in bytes.
pub const MAX_BODY_BYTES: usize = 2 << 20;
/// Maximum size of the first message of a session, which the session keeps.
const MAX_INITIALIZE_BYTES: usize = 16 << 10;
/// Maximum length of ids and progress tokens in bytes: the session keeps them until the call ends.
const MAX_ID_BYTES: usize = 256;
/// JSON-RPC code of a server that is busy.
const BUSY: i32 = -32_000;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The method that keeps its connection to receive notifications.
const LISTEN: &str = "subscriptions/listen";
/// The body is not JSON.
const PARSE_ERROR: i32 = -32_700;
/// The body is JSON but not a valid message.
pub(super) const INVALID_REQUEST: i32 = -32_600;

/// Passes valid messages on. Bodies with another content type are left to the protocol, which rejects them.
pub async fn read(request: Request, next: Next) -> Response {
    let is_message = request.method() == http::Method::POST && is_json(request.headers());
    let (parts, body) = request.into_parts();
    // Before it is read: waiting bodies take memory, too. Held until the protocol has parsed it.
    let permit = match body.size_hint().upper() {
        Some(bytes) if bytes <= LARGE_BODY_BYTES => None,
        _ => {
            let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::anyone);
            match large_body_permit(&caller).await {
                Ok(permit) => Some(permit),
                Err(error) => return busy(&error),
            }
        }
    };
    let bytes = match read_body(body).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    if !is_message {
        return next.run(Request::from_parts(parts, Body::from(bytes))).await;
    }
    // A body of unknown length was counted while it was read.
    let permit = permit.filter(|_| bytes.len() as u64 > LARGE_BODY_BYTES);
    let is_large = permit.is_some();
    let reading = {
        let bytes = bytes.clone();
        // The permit is held until the body is parsed even if the caller is gone.
        move || (read_method(&bytes), permit)
    };
    let (method, body_permit) = if is_large {
        match tokio::task::spawn_blocking(reading).await {
            Ok(read) => read,
            Err(error) => return broken(&error),
        }
    } else {
        reading()
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    match method {
        Err((code, id, message)) => refused(StatusCode::BAD_REQUEST, code, &id, &message),
        Ok(None) => next.run(request).await,
        Ok(Some(method)) => pass_on(request, method, body_permit, next).await,
    }
}

/// Reads a body in full.
///
/// # Errors
/// Returns the response to a body that is too large, does not arrive in time, or cannot be read.
async fn read_body(body: Body) -> Result<Bytes, Response> {
    // An unread body would close the connection, even that of a DELETE.
    let (status, code, message) = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES))
        .await
    {
        Ok(Ok(bytes)) => return Ok(bytes),
        Ok(Err(error)) if exceeds_length_limit(&error) => {
            let message = format!("the body has more than {MAX_BODY_BYTES} bytes (2 MiB)");
            (StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, message)
        }
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, PARSE_ERROR, format!("cannot read the body: {error}")),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            (StatusCode::REQUEST_TIMEOUT, PARSE_ERROR, message)
        }
    };
    Err(closing(refused(status, code, &Value::Null, &message)))
}

/// Passes a message on, a request with the permits that it holds until its response is sent. `body_permit` is that of a
/// large body.
async fn pass_on(mut request: Request, method: Method, body_permit: Option<Permit>, next: Next) -> Response {
    // A tool call may take as long as a run.
    let (is_answered, waits) = (method.id.is_some(), method.name == "tools/call");
    let is_stream = method.name == LISTEN;
    // A call of a session continues when its caller disconnects.
    let continues = !is_stream && request.headers().contains_key(SESSION);
    let (is_call, keeps_body) = (method.name != "initialize", body_permit.is_some() && method.keeps_body);
    let (large, closed) = (LargeResult::default(), Closed::default());
    let extensions = request.extensions_mut();
    extensions.insert(method);
    extensions.insert(large.clone());
    extensions.insert(closed.clone());
    if !is_answered {
        return next.run(request).await;
    }
    let caller = request.extensions().get::<Caller>().cloned().unwrap_or_else(Caller::anyone);
    let permits = async {
        let wait_permit = if keeps_body { large_wait_permit(&caller).await? } else { None };
        let permit =
            if is_stream { stream_permit(&caller).await? } else { response_permit(&caller, waits).await? };
        Ok::<_, Error>((wait_permit, permit))
    };
    let (wait_permit, permit) = match permits.await {
        Ok(permits) => permits,
        Err(error) => return busy(&error),
    };
    let permit = permit.map(Arc::new);
    let body = if keeps_body { wait_permit } else { body_permit }.map(Arc::new);
    if is_call {
        request.extensions_mut().insert(CallPermits { _response: permit.clone(), _body: body });
    }
    let closed = continues.then_some(closed);
    let answering = async move { hold_until_sent(next.run(request).await, permit, large, closed) };
    if !continues {
        return answering.await;
    }
    // In a separate task: the protocol would keep a call that is only partly passed on.
    tokio::spawn(answering.in_current_span()).await.unwrap_or_else(|error| broken(&error))
}

/// The permits of a call, in the extensions of its request, which the protocol keeps until the call ends: a call of a
/// session continues when its caller disconnects.
#[derive(Debug, Clone)]
struct CallPermits {
    _response: Option<Arc<Permit>>,
    _body: Option<Arc<Permit>>,
}

/// Fires when the connection of a request of a session closes before its response has ended; in the extensions of the
/// request.
#[derive(Debug, Clone, Default)]
pub struct Closed(pub CancellationToken);

/// The permit of a response that is large, in the extensions of the request: the call that computes it stores it there.
#[derive(Debug, Clone, Default)]
pub struct LargeResult(Arc<OnceLock<Option<Permit>>>);

impl LargeResult {
    /// Holds the permit until the response is sent, and has the response serialized off the async threads.
    pub fn hold(&self, permit: Option<Permit>) {
        // A call that is repeated after an elicitation has one already.
        let _ = self.0.set(permit);
    }

    /// Returns whether a call has stored its permit.
    pub fn is_held(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Holds the permits of a response until it is sent. With `closed`, a response whose client is gone is read to its end,
/// so that the request is in progress until the protocol has ended it.
fn hold_until_sent(
    response: Response,
    permit: Option<Arc<Permit>>,
    large: LargeResult,
    closed: Option<Closed>,
) -> Response {
    // A short response needs no permit, and keeps its length.
    if response.body().size_hint().exact().is_some_and(|bytes| bytes <= LARGE_BODY_BYTES) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let state = (body.into_data_stream(), permit, large);
    let pieces = stream::unfold(state, |(mut pieces, permit, large)| async move {
        // The protocol serializes the result when its body is polled, and frees it.
        let next = poll_fn(|cx| {
            if large.is_held() { in_place(|| pieces.poll_next_unpin(cx)) } else { pieces.poll_next_unpin(cx) }
        });
        let chunk = next.await?;
        Some((chunk, (pieces, permit, large)))
    });
    // Compression polls it once more after its end.
    let pieces = pieces.fuse();
    let body = match closed {
        Some(closed) => Body::from_stream(ReadToEnd { chunks: Some(Box::pin(pieces)), closed }),
        None => Body::from_stream(pieces),
    };
    Response::from_parts(parts, body)
}

/// A stream that is read to its end even if it is dropped before.
struct ReadToEnd<S: Stream + Send + 'static> {
    chunks: Option<Pin<Box<S>>>,
    closed: Closed,
}

impl<S: Stream + Send + 'static> Stream for ReadToEnd<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let Some(chunks) = &mut self.chunks else { return Poll::Ready(None) };
        let chunk = ready!(chunks.as_mut().poll_next(cx));
        if chunk.is_none() {
            self.chunks = None;
        }
        Poll::Ready(chunk)
    }
}

impl<S: Stream + Send + 'static> Drop for ReadToEnd<S> {
    fn drop(&mut self) {
        if let (Some(chunks), Ok(runtime)) = (self.chunks.take(), Handle::try_current()) {
            self.closed.0.cancel();
            runtime.spawn(chunks.for_each(|_| async {}));
        }
    }
}

fn broken(error: &JoinError) -> Response {
    tracing::error!("a message: {error}");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    refused(status, INTERNAL_ERROR, &Value::Null, "internal error; see the log")
}

pub(super) fn busy(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    closing(refused(status, BUSY, &Value::Null, &error.message))
}

/// The method of a message, stored in the extensions of its HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    pub name: String,
    /// Id of the request, as JSON; `None` for a notification.
    pub id: Option<String>,
    /// Whether the call may wait, and holds its body meanwhile.
    keeps_body: bool,
}

/// Returns the method of a message, unless it is a response.
///
/// # Errors
/// Returns the code, the id of the request if there is one, and the reason, for a body that is not a message.
fn read_method(bytes: &Bytes) -> Result<Option<Method>, (i32, Value, String)> {
    ensure_few_values(bytes).map_err(|error| (INVALID_REQUEST, Value::Null, error.message))?;
    let message: Value = serde_json::from_slice(bytes)
        .map_err(|error| (PARSE_ERROR, Value::Null, format!("the body is not valid JSON: {error}")))?;
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default();
    let why = match &message {
        Value::Array(_) => {
            "the body is a list: batches are not supported, send each message separately".to_owned()
        }
        Value::Object(_) => match serde_json::from_slice::<ClientJsonRpcMessage>(bytes) {
            Ok(parsed) => {
                let name = message.get("method").and_then(Value::as_str);
                if name == Some("initialize") && bytes.len() > MAX_INITIALIZE_BYTES {
                    let message = format!("`initialize` has more than {MAX_INITIALIZE_BYTES} bytes (16 KiB)");
                    return Err((INVALID_REQUEST, id, message));
                }
                // A request that listens is kept as long as its connection.
                if name == Some(LISTEN) && bytes.len() as u64 > LARGE_BODY_BYTES {
                    let message = format!("`{LISTEN}` has more than {LARGE_BODY_BYTES} bytes (64 KiB)");
                    return Err((INVALID_REQUEST, id, message));
                }
                let is_long = |text: &str| text.len() > MAX_ID_BYTES;
                if let ClientJsonRpcMessage::Request(request) = &parsed {
                    if matches!(&request.id, RequestId::String(id) if is_long(id)) {
                        let message = format!("`id` has more than {MAX_ID_BYTES} bytes");
                        return Err((INVALID_REQUEST, Value::Null, message));
                    }
                    let token = request.request.get_meta().get_progress_token();
                    if matches!(token, Some(ProgressToken(RequestId::String(token))) if is_long(&token)) {
                        let message = format!("`progressToken` has more than {MAX_ID_BYTES} bytes");
                        return Err((INVALID_REQUEST, id, message));
                    }
                }
                // As the protocol reads it: `1e2` is the id 100.
                let id = match parsed {
                    ClientJsonRpcMessage::Request(request) => Some(json!(request.id).to_string()),
                    _ => None,
                };
                let tool = || message.pointer("/params/name").and_then(Value::as_str).and_then(operation);
                return Ok(name.map(|name| Method {
                    name: name.to_owned(),
                    id,
                    keeps_body: name == "tools/call" && tool().is_none_or(|tool| tool.waits || tool.measures),
                }));
            }
            Err(error) => error.to_string(),
        },
        _ => "the body is not an object".to_owned(),
    };
    let requested = "expected {\"jsonrpc\": \"2.0\", \"id\": …, \"method\": …, \"params\": {…}}";
    Err((INVALID_REQUEST, id, format!("the body is not a JSON-RPC 2.0 message ({why}); {requested}")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns a JSON-RPC error as a response.
pub(super) fn refused(status: StatusCode, code: i32, id: &Value, message: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The rest of the body is not read, so the connection cannot be reused.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use skills_api::operations::{Principal, complete_result_permit};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_result_is_serialized_concurrently_and_counts_until_sent() {
        let principal = Principal { name: "results".to_owned(), scopes: BTreeSet::new() };
        let caller = Caller { principal: Some(principal), ..Caller::anyone() };
        let mut others = Vec::new();
        let large = LargeResult::default();
        large.hold(complete_result_permit(&caller).await.unwrap());
        let permit = || {
            let caller = caller.clone();
            Box::pin(async move { complete_result_permit(&caller).await })
        };
        let mut next = loop {
            let mut next = permit();
            match futures::poll!(&mut next) {
                std::task::Poll::Ready(other) => others.push(other.unwrap()),
                std::task::Poll::Pending => break next,
            }
        };
        // By the only thread of the runtime: it ends only if other tasks run while the body is polled.
        let other = tokio::spawn(async {});
        let body = stream::once(async move {
            while !other.is_finished() {
                std::thread::yield_now();
            }
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        let response = hold_until_sent(Response::new(Body::from_stream(body)), None, large, None);
        let mut pieces = response.into_body().into_data_stream();
        tokio::spawn(async move {
            assert!(pieces.next().await.is_some());
            assert!(futures::poll!(&mut next).is_pending());
            assert!(pieces.next().await.is_none());
            assert!(next.await.unwrap().is_some());
        })
        .await
        .unwrap();
    }

    fn code(body: &str) -> Option<(i32, Value)> {
        read_method(&Bytes::copy_from_slice(body.as_bytes())).err().map(|(code, id, _)| (code, id))
    }

    #[test]
    fn invalid_json_and_invalid_messages_are_distinguished() {
        for text in ["", "{", "{\"jsonrpc\": \"2.0\",}", "\u{0}"] {
            assert_eq!(code(text), Some((PARSE_ERROR, Value::Null)), "{text}");
        }
        for text in ["[]", "7", "null", "{}", r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#] {
            assert_eq!(code(text).map(|(code, _)| code), Some(INVALID_REQUEST), "{text}");
        }
        assert_eq!(code(r#"{"id":7,"method":"ping"}"#), Some((INVALID_REQUEST, json!(7))));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#), None);
        let initialize = |name: &str| {
            json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "1" },
            } })
            .to_string()
        };
        assert_eq!(code(&initialize("client")), None);
        assert_eq!(code(&initialize(&"n".repeat(MAX_INITIALIZE_BYTES))), Some((INVALID_REQUEST, json!(7))));
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
    }

    #[test]
    fn ids_and_progress_tokens_are_short() {
        let ping = |id: Value, token: Value| {
            let meta = json!({ "progressToken": token });
            json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": { "_meta": meta } }).to_string()
        };
        let (short, long) = ("x".repeat(MAX_ID_BYTES), "x".repeat(MAX_ID_BYTES + 1));
        assert_eq!(code(&ping(json!(short), json!(short))), None);
        assert_eq!(code(&ping(json!(long), json!(1))), Some((INVALID_REQUEST, Value::Null)));
        assert_eq!(code(&ping(json!(7), json!(long))), Some((INVALID_REQUEST, json!(7))));
        let listen = |padding: usize| {
            let params = json!({ "notifications": {}, "_meta": { "padding": "x".repeat(padding) } });
            json!({ "jsonrpc": "2.0", "id": 7, "method": LISTEN, "params": params }).to_string()
        };
        assert_eq!(code(&listen(1000)), None);
        assert_eq!(code(&listen(LARGE_BODY_BYTES as usize)), Some((INVALID_REQUEST, json!(7))));
    }
}
