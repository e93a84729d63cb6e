//! Executes a request as an operation of the table: path, query, body and headers become its arguments, and its result
//! becomes JSON.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{FromRequestParts as _, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::{StreamExt as _, stream};
use serde_json::{Map, Value};

use super::app::App;
use super::cached_response::{SharedResult, TaggedBody};
use super::problem::ErrorResponse;
use super::{stream as event_stream, trace};
use skills_api::operations::{
    Caller, JsonFuture, LARGE_BODY_BYTES, LARGE_RESPONSE_BYTES, Operation, Permit, SerializedResult,
    ensure_few_values, from_query, large_body_permit, large_response_permit, large_wait_permit,
    response_permit,
};
use skills_api::{Code, Error, exceeds_length_limit};
use skills_store::RunId;

/// Timeout of a read operation; it waits at most a minute for changes.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// The header that makes a launch safe to repeat.
const KEY: &str = "x-idempotency-key";
/// Its name in the IETF draft (draft-ietf-httpapi-idempotency-key-header).
const STANDARD_KEY: &str = "idempotency-key";
/// Size in bytes of the pieces of a large response.
const PIECE_BYTES: usize = 64 << 10;

/// Answers a request with the result of its operation.
pub(super) async fn dispatch(app: Arc<App>, operation: &'static Operation, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let Some(mut caller) = parts.extensions.remove::<Caller>() else {
        let refusal = ErrorResponse::new(Code::InternalError, "missing authentication context");
        return refusal.answer(&skills_api::new_trace_id(), &path);
    };
    let execution = async {
        // Health checks are open: their callers share one principal, and must not keep each other waiting.
        let permit = match operation.scope {
            None => None,
            Some(_) => response_permit(&caller, operation.waits || operation.follows).await?,
        };
        let response = execute(&app, operation, &mut caller, parts, body).await?;
        hold_until_sent(response, permit, &caller, operation.hints.read_only).await
    };
    let mut response = match execution.await {
        Ok(response) => response,
        Err(refusal) => refusal.answer(&caller.trace_id, &path),
    };
    if let Ok(id) = HeaderValue::from_str(&caller.trace_id) {
        response.headers_mut().insert(trace::TRACE, id);
    }
    response
}

/// Holds the permit of a response until it is sent, if it is large.
pub(super) async fn hold_until_sent(
    response: Response,
    permit: Option<Permit>,
    caller: &Caller,
    read_only: bool,
) -> Result<Response, ErrorResponse> {
    let length = response.body().size_hint().exact().filter(|length| *length > LARGE_BODY_BYTES);
    let Some((length, permit)) = length.zip(permit) else { return Ok(response) };
    let large = match length {
        ..=LARGE_RESPONSE_BYTES => None,
        _ => match large_response_permit(caller, length).await {
            // The result of a change is not withheld, so that it is not repeated.
            Err(_) if !read_only => None,
            permit => permit?,
        },
    };
    let permit = (permit, large, caller.returned_run.clone());
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.map_err(|_| internal_error())?;
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    // In pieces, because the last one is taken only when those before it are written.
    let pieces = stream::unfold((bytes, permit), |(mut bytes, permit)| async move {
        let chunk = bytes.split_to(bytes.len().min(PIECE_BYTES));
        (!chunk.is_empty()).then(|| (Ok::<_, Infallible>(chunk), (bytes, permit)))
    });
    // Compression polls it once more after its end.
    let pieces = pieces.fuse();
    Ok(Response::from_parts(parts, Body::from_stream(pieces)))
}

async fn execute(
    app: &App,
    operation: &'static Operation,
    caller: &mut Caller,
    mut parts: Parts,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let mut arguments = if operation.route.asks_by_query() {
        query_arguments(operation, &parts)?
    } else {
        if parts.uri.query().is_some_and(|query| !query.is_empty()) {
            let message = format!("{} takes arguments in the body, not in the query", operation.name);
            return Err(ErrorResponse::new(Code::InvalidRequest, message));
        }
        // A caller without permission need not send a body.
        operation.may(caller)?;
        // Before it is read: waiting bodies take memory, too.
        let keeps_body = operation.waits || operation.measures;
        let (permit, wait_permit) = match is_large(&body) {
            true if keeps_body => (Some(large_body_permit(caller).await?), large_wait_permit(caller).await?),
            true => (Some(large_body_permit(caller).await?), None),
            false => (None, None),
        };
        let bytes = read_body(body, &parts.headers, app.patience.body, operation.max_body).await?;
        // A body of unknown length was counted while it was read.
        let is_large = bytes.len() as u64 > LARGE_BODY_BYTES;
        if let Some(permit) = permit.filter(|_| is_large) {
            // Held until it is parsed even if the caller is gone, and until the call ends.
            let parsing = move || {
                let arguments =
                    ensure_few_values(&bytes).map_err(Into::into).and_then(|()| parse_body(&bytes));
                (arguments, permit)
            };
            let (arguments, permit) =
                tokio::task::spawn_blocking(parsing).await.map_err(|_| internal_error())?;
            caller.body = if keeps_body { wait_permit } else { Some(permit) }.map(Arc::new);
            arguments?
        } else {
            parse_body(&bytes)?
        }
    };
    from_path(&mut parts, &mut arguments).await?;
    from_headers(operation, &parts.headers, &mut arguments)?;
    if operation.takes_body() {
        adopt_trace_id(&arguments, caller);
    }
    if operation.follows {
        let resumed = event_stream::resumed(&parts.headers)?;
        if accepts_events(&parts.headers) {
            return event_stream::follow(app, operation, caller, arguments, resumed).await;
        }
    }
    // When a client disconnects, its waits end; a run that is executed for it continues in the background.
    let _left = caller.leave.clone().drop_guard();
    if operation.hints.read_only {
        let reading = execute_read(app, operation, caller, Value::Object(arguments), &parts.headers);
        return tokio::time::timeout(READ_TIMEOUT, reading)
            .await
            .map_err(|_| Error::new(Code::InternalError, "the response timed out"))?;
    }
    let (service, caller) = (app.service.clone(), caller.clone());
    let doing = async move { operation.call_as_text(&service, &caller, Value::Object(arguments)).await };
    let answer =
        tokio::spawn(doing).await.map_err(|_| internal_error())?.map_err(ErrorResponse::of_operation)?;
    Ok(json(operation.status, answer))
}

/// Executes a read operation, once for identical concurrent requests if its result is the same for all callers.
async fn execute_read(
    app: &App,
    operation: &'static Operation,
    caller: &Caller,
    arguments: Value,
    headers: &HeaderMap,
) -> Result<Response, ErrorResponse> {
    if !operation.shared {
        let answer = operation.call_as_text(&app.service, caller, arguments).await;
        return Ok(json(operation.status, answer.map_err(ErrorResponse::of_operation)?));
    }
    let answers = Arc::clone(&app.answers);
    let share = |key: String, call: JsonFuture| async move {
        let look = || async {
            let written = call.await?;
            // Hashing a large text blocks a thread.
            let tagging = move || {
                let restricted = written.may_hold_details().then(|| written.clone());
                Arc::new(SharedResult { all: TaggedBody::new(written.json), restricted })
            };
            tokio::task::spawn_blocking(tagging).await.map_err(|_| internal_error())
        };
        answers.share(&key, look).await
    };
    let (caller, answer) = operation
        .call_shared(&app.service, caller, arguments, share)
        .await
        .map_err(ErrorResponse::of_operation)?;
    let redacted = answer.restricted.as_ref().map(|written| written.redacted_for(&caller)).transpose()?;
    Ok(redacted.flatten().map_or_else(|| answer.all.clone(), TaggedBody::new).answer(headers))
}

fn location_header(run: &RunId) -> String {
    format!("/v1/runs/{run}")
}

/// The error for a bug of this program.
pub(super) fn internal_error() -> Error {
    Error::new(Code::InternalError, "internal error; see the log for this trace id")
}

/// Builds a JSON response; one returned before its run ended states where the run can be followed (RFC 9110, 15.3.3).
fn json(status: u16, answer: SerializedResult) -> Response {
    let mut response = Response::new(Body::from(answer.json));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    if let Some(run) = &answer.continuing_run {
        *response.status_mut() = StatusCode::ACCEPTED;
        if let Ok(place) = HeaderValue::from_str(&location_header(run)) {
            response.headers_mut().insert(header::LOCATION, place);
        }
    }
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn query_arguments(operation: &Operation, parts: &Parts) -> Result<Map<String, Value>, ErrorResponse> {
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(Map::new());
    }
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
        .map_err(|error| ErrorResponse::new(Code::InvalidRequest, format!("invalid query: {error}")))?;
    Ok(from_query(operation, pairs)?)
}

/// Returns whether a body may be large: it is not read yet, and may have no stated length.
fn is_large(body: &Body) -> bool {
    body.size_hint().upper().is_none_or(|bytes| bytes > LARGE_BODY_BYTES)
}

async fn read_body(
    body: Body,
    headers: &HeaderMap,
    patience: Duration,
    max_bytes: usize,
) -> Result<Bytes, ErrorResponse> {
    let too_large = || {
        let message = format!("the body has more than {max_bytes} bytes ({} MiB)", max_bytes >> 20);
        // The rest of the body is not read, so the connection cannot be reused.
        ErrorResponse::new(Code::PayloadTooLarge, message).header(header::CONNECTION, "close")
    };
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if stated.is_some_and(|length: u64| length > max_bytes as u64) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(patience, to_bytes(body, max_bytes)).await.map_err(|_| {
        let message = format!("the body did not arrive within {} s", patience.as_secs());
        ErrorResponse::new(Code::RequestTimeout, message).header(header::CONNECTION, "close")
    })?;
    let bytes = read.map_err(|error| {
        if exceeds_length_limit(&error) {
            return too_large();
        }
        ErrorResponse::new(Code::InvalidRequest, format!("cannot read the body: {error}"))
            .header(header::CONNECTION, "close")
    })?;
    if !is_blank(&bytes) {
        ensure_json(headers)?;
    }
    Ok(bytes)
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Parses a body; one without content counts as an empty object.
fn parse_body(bytes: &[u8]) -> Result<Map<String, Value>, ErrorResponse> {
    if is_blank(bytes) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(other) => {
            let kind = match other {
                Value::Array(_) => "a list",
                Value::String(_) => "a string",
                Value::Number(_) => "a number",
                Value::Bool(_) => "true or false",
                _ => "null",
            };
            let message = format!("the body is {kind}; expected an object with the operation's arguments");
            Err(ErrorResponse::new(Code::InvalidRequest, message))
        }
        Err(error) => {
            Err(ErrorResponse::new(Code::InvalidRequest, format!("the body is not valid JSON: {error}")))
        }
    }
}

/// Requires that a body declares itself as JSON, which a form of another origin's page cannot.
fn ensure_json(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let stated = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let kind = stated.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    let is_encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
    if is_encoded {
        let message = "the body has a content encoding; send it without one";
        return Err(ErrorResponse::new(Code::UnsupportedMediaType, message)
            .header(header::ACCEPT_ENCODING, "identity"));
    }
    // JSON between systems is UTF-8 (RFC 8259, section 8.1).
    let mut parameters =
        stated.unwrap_or_default().split(';').skip(1).map(|one| one.trim().to_ascii_lowercase());
    let is_utf8 = parameters.all(|one| match one.strip_prefix("charset=") {
        Some(charset) => matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii"),
        None => true,
    });
    if is_utf8
        && (kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")))
    {
        return Ok(());
    }
    let is = stated.map_or_else(|| "absent".to_owned(), |kind| format!("{kind:?}"));
    let message = format!("the content type of the body is {is}; expected application/json");
    Err(ErrorResponse::new(Code::UnsupportedMediaType, message).header(header::ACCEPT, "application/json"))
}

/// Adds the path parameters to the arguments.
async fn from_path(parts: &mut Parts, arguments: &mut Map<String, Value>) -> Result<(), ErrorResponse> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|error| ErrorResponse::new(Code::InvalidRequest, error.body_text()))?;
    for (name, text) in &params {
        let value = Value::String(text.to_owned());
        if arguments.insert(name.to_owned(), value.clone()).is_some_and(|other| other != value) {
            let message = format!("`{name}` has different values in the path and in the body");
            return Err(ErrorResponse::new(Code::InvalidRequest, message));
        }
    }
    Ok(())
}

/// Accepts an idempotency key in a header, which proxies and clients can add without knowing the body.
fn from_headers(
    operation: &Operation,
    headers: &HeaderMap,
    arguments: &mut Map<String, Value>,
) -> Result<(), ErrorResponse> {
    const ARGUMENT: &str = "idempotency_key";
    let header_value = [KEY, STANDARD_KEY].into_iter().find_map(|name| Some((name, headers.get(name)?)));
    let Some((name, key)) = header_value.filter(|_| operation.takes(ARGUMENT)) else { return Ok(()) };
    let key = key
        .to_str()
        .map_err(|_| ErrorResponse::new(Code::InvalidRequest, format!("{name} is not a string")))?;
    let value = Value::String(key.to_owned());
    match arguments.get(ARGUMENT) {
        Some(other) if *other != value && !other.is_null() => Err(ErrorResponse::new(
            Code::InvalidRequest,
            format!("the idempotency key has different values in {name} and in the body"),
        )),
        _ => {
            arguments.insert(ARGUMENT.to_owned(), value);
            Ok(())
        }
    }
}

/// Uses the trace id of the body, if it has a valid one, for the call. Bodies allow more than headers.
fn adopt_trace_id(arguments: &Map<String, Value>, caller: &mut Caller) {
    let options = arguments.get("options").and_then(Value::as_object);
    let named = arguments.get("trace_id").or_else(|| options?.get("trace_id"));
    if let Some(id) = named.and_then(Value::as_str).filter(|id| skills_api::is_trace_id(id)) {
        id.clone_into(&mut caller.trace_id);
    }
}

/// Returns whether the caller requests an event stream instead of a page.
fn accepts_events(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/event-stream"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use skills_api::operations::Principal;

    use super::*;

    #[tokio::test]
    async fn large_response_counts_until_its_last_chunk_is_read() {
        let principal = Principal { name: "responses".to_owned(), scopes: BTreeSet::new() };
        let caller = Caller { principal: Some(principal), ..Caller::anyone() };
        let permit = response_permit(&caller, false).await.unwrap();
        let mut others = Vec::new();
        let mut next = loop {
            let mut next = Box::pin(response_permit(&caller, false));
            match futures::poll!(&mut next) {
                std::task::Poll::Ready(other) => others.push(other.unwrap()),
                std::task::Poll::Pending => break next,
            }
        };
        let length = 3 * PIECE_BYTES + 1;
        let response = Response::new(Body::from(vec![b'x'; length]));
        let response = hold_until_sent(response, permit, &caller, true).await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_LENGTH], length.to_string());
        let mut pieces = response.into_body().into_data_stream();
        let mut sent = 0;
        while sent < length {
            assert!(futures::poll!(&mut next).is_pending(), "{sent} of {length} bytes");
            sent += pieces.next().await.unwrap().unwrap().len();
        }
        assert!(pieces.next().await.is_none());
        assert!(next.await.unwrap().is_some());
    }
}
