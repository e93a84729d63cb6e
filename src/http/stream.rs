//! Server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>): the events of one run or of
//! all, from a number on; streams of all runs also contain changes of the catalog.
//!
//! A stream begins with `ready`, which names the log to which the numbers belong (that of the service's store). A
//! client that reconnects with a number that does not exist receives `reset` before it and starts over.
//!
//! A stream buffers one event, or a page of events from the store: for a slow reader events are read from the store
//! again, and a client that stops reading loses the connection. Each principal has a limited number of pages in memory.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::app::App;
use super::feed::{Broadcast, SerializedEvent};
use super::problem::ErrorResponse;
use skills_api::operations::{
    Caller, MAX_AUTHENTICATION_AGE, Operation, Permit, Scope, call_permit, event_page_permit, stream_permit,
};
use skills_api::{Code, ConnectionState, Error, Event, SharedClient};
use skills_store::RunId;

/// Keep-alive interval, so that a lost connection is noticed.
const ALIVE: Duration = Duration::from_secs(15);
const RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// Events read from the store per page.
const PAGE: usize = 100;
/// Maximum number of streams that parse events from the store at the same time: a large event makes all of them read it.
const PARALLEL_READS: usize = 8;
static READS: Semaphore = Semaphore::const_new(PARALLEL_READS);
/// Maximum time between two checks of the caller's key.
pub(super) const KEY_CHECK_INTERVAL: Duration = MAX_AUTHENTICATION_AGE;
/// Pause after a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the last event that a client has seen, if it sends `Last-Event-ID`.
///
/// # Errors
/// Returns `invalid_request` if it is not a number.
pub(super) fn resumed(headers: &HeaderMap) -> Result<Option<u64>, ErrorResponse> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let number = id.to_str().ok().and_then(|id| id.trim().parse().ok());
    let message = "last-event-id is not a number; send the id of an event";
    number.map(Some).ok_or_else(|| ErrorResponse::new(Code::InvalidRequest, message))
}

/// Starts a stream.
pub(super) async fn follow(
    app: &App,
    operation: &'static Operation,
    caller: &Caller,
    mut arguments: Map<String, Value>,
    resumed: Option<u64>,
) -> Result<Response, ErrorResponse> {
    // A reconnecting client names its last event, which is later than its first request.
    let requested_after = resumed.or_else(|| arguments.get("after").and_then(Value::as_u64));
    // Requested as a page of one event, which checks the scope, the arguments and the run with the same errors.
    arguments.insert("limit".to_owned(), json!(1));
    arguments.insert("wait_ms".to_owned(), json!(0));
    let requested = arguments.get("run_id").and_then(Value::as_str).map(str::to_owned);
    operation
        .call(&app.service, caller, Value::Object(arguments))
        .await
        .map_err(ErrorResponse::of_operation)?;
    let stream_permit = stream_permit(caller).await?;
    let core = &app.service.core;
    let (run, newest) = match requested {
        Some(requested) => {
            // As many at the same time as other requests of the caller.
            let _permit = call_permit(caller).await?;
            let (run, newest) = core.newest_run_event(&requested).await?;
            (Some(run), newest)
        }
        None => (None, core.newest_event().await?),
    };
    let runs = app.feed.subscribe().await?;
    let news = run.is_none().then(|| core.events());
    let log = core.event_log().await?;
    let mut ready = VecDeque::from([NextItem::Frame(Frame::default().retry(RECONNECT_DELAY))]);
    let after = match (requested_after, &run) {
        // A number past the last event comes from another store: there is nothing to resume.
        (Some(requested_after), _) if requested_after > newest => {
            let after = if run.is_some() { 0 } else { newest };
            ready.push_back(named("reset", &json!({ "log": log, "asked": requested_after, "after": after })));
            after
        }
        (Some(after), _) => after,
        // A run is sent from its beginning, everything else from now on.
        (None, Some(_)) => 0,
        (None, None) => newest,
    };
    ready.push_back(named("ready", &json!({ "log": log, "after": after, "newest": newest })));
    if run.is_none() {
        let found = core.load_state().await?;
        ready.push_back(named("scan", &json!(found.scan)));
        ready.push_back(named("index", &json!(found.index)));
    }
    let following = StreamState {
        core: Arc::clone(core),
        run,
        after,
        runs,
        news,
        ready,
        behind: true,
        permit: None,
        _stream_permit: stream_permit,
        admin: caller.may(Scope::Admin),
        caller: caller.clone(),
        operation,
        checked: Instant::now(),
        end: app.end.clone(),
    };
    let frames = futures::stream::unfold(following, |mut following| async move {
        let frame = following.next().await?;
        Some((Ok::<Frame, Infallible>(frame), following))
    });
    let mut response = Sse::new(frames).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // Proxies must not buffer the stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The state of one stream.
struct StreamState {
    core: SharedClient,
    /// The run, or all runs if `None`.
    run: Option<RunId>,
    /// The number of the last event sent.
    after: u64,
    runs: Receiver<Arc<Broadcast>>,
    news: Option<Receiver<Event>>,
    ready: VecDeque<NextItem>,
    /// Whether the store may contain events after the last one.
    behind: bool,
    /// Held until the page of events that was read last is sent.
    permit: Option<Permit>,
    _stream_permit: Option<Permit>,
    caller: Caller,
    /// Whether the caller may see details of failed calls.
    admin: bool,
    operation: &'static Operation,
    /// When the caller was authenticated last.
    checked: Instant,
    end: CancellationToken,
}

/// What is sent next.
enum NextItem {
    Frame(Frame),
    /// An event, serialized with the rights that the caller has when it is sent.
    Event(u64, Arc<Broadcast>),
}

impl StreamState {
    /// Returns the next frame; `None` when the service shuts down, or the caller may not follow any longer.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if !self.is_admitted(KEY_CHECK_INTERVAL).await {
                return None;
            }
            match self.ready.pop_front() {
                Some(NextItem::Frame(frame)) => return Some(frame),
                Some(NextItem::Event(number, event)) => {
                    let Broadcast::Event(event) = &*event else { continue };
                    let frame = Frame::default().id(number.to_string()).event("run");
                    return Some(frame.data(event.json_for(self.admin)));
                }
                None => {}
            }
            self.permit = None;
            if self.end.is_cancelled() {
                return None;
            }
            if self.behind {
                if !self.is_admitted(Duration::ZERO).await {
                    return None;
                }
                self.catch_up().await;
                continue;
            }
            let (check_at, has_keys) = (self.checked + KEY_CHECK_INTERVAL, self.caller.credentials.is_some());
            tokio::select! {
                () = self.end.cancelled() => return None,
                () = tokio::time::sleep_until(check_at), if has_keys => {}
                event = self.runs.recv() => match event {
                    Ok(event) if matches!(*event, Broadcast::Event(_)) => self.append(event),
                    Ok(_) | Err(RecvError::Lagged(_)) => self.behind = true,
                    Err(RecvError::Closed) => return None,
                },
                news = next_event(&mut self.news) => match news {
                    Ok(news) => self.ready.push_back(frame(&news)),
                    Err(RecvError::Lagged(_)) => self.read_again().await,
                    Err(RecvError::Closed) => self.news = None,
                },
            }
        }
    }

    /// Returns whether the caller may still follow, with the rights of their key at most this long ago: a stream has no
    /// end, so a key that is removed from the file would be valid forever.
    async fn is_admitted(&mut self, max_age: Duration) -> bool {
        if self.caller.credentials.is_none() || self.checked.elapsed() < max_age {
            return true;
        }
        let Ok(caller) = self.caller.current().await else { return false };
        self.checked = Instant::now();
        self.caller = caller;
        self.admin = self.caller.may(Scope::Admin);
        self.operation.may(&self.caller).is_ok()
    }

    fn append(&mut self, queued: Arc<Broadcast>) {
        let Broadcast::Event(event) = &*queued else { return };
        let number = if self.run.is_some() { event.number } else { event.global };
        let other = self.run.as_ref().is_some_and(|run| *run != event.run);
        if !other && number > self.after {
            self.after = number;
            self.ready.push_back(NextItem::Event(number, queued));
        }
    }

    async fn catch_up(&mut self) {
        let run = self.run.as_ref().map(|run| run.0.as_str());
        let read = async {
            let permit = event_page_permit(&self.caller).await?;
            let _reading = READS.acquire().await;
            let events = self.core.run_events(run, self.after, PAGE, 0).await?;
            let events =
                events.into_iter().map(|event| Arc::new(Broadcast::Event(SerializedEvent::of(event))));
            Ok::<_, Error>((permit, events.collect::<Vec<_>>()))
        };
        let read = tokio::select! {
            () = self.end.cancelled() => return,
            read = read => read,
        };
        match read {
            Ok((permit, events)) => {
                (self.permit, self.behind) = (permit, !events.is_empty());
                for event in events {
                    self.append(event);
                }
            }
            Err(error) => {
                tracing::warn!("cannot follow runs for a caller: {error}");
                tokio::select! {
                    () = self.end.cancelled() => {}
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }

    /// Notifications were missed, so the current state is sent instead. Without the ids of changed skills the client
    /// has to reload the catalog.
    async fn read_again(&mut self) {
        if let Ok(catalog) = self.core.catalog().await {
            self.ready.push_back(named("catalogue", &json!({ "generation": catalog.generation })));
        }
        if let Ok(found) = self.core.load_state().await {
            self.ready.push_back(named("scan", &json!(found.scan)));
            self.ready.push_back(named("index", &json!(found.index)));
        }
    }
}

/// Receives the next notification; never completes without a receiver.
async fn next_event(news: &mut Option<Receiver<Event>>) -> Result<Event, RecvError> {
    match news {
        Some(news) => news.recv().await,
        None => std::future::pending().await,
    }
}

/// Events without a number: a client that reconnects reads the current state.
fn frame(news: &Event) -> NextItem {
    match news {
        Event::Catalog(change) => named(
            "catalogue",
            &json!({
                "generation": change.catalog.generation,
                "added": change.added,
                "changed": change.changed,
                "removed": change.removed,
            }),
        ),
        Event::Scan(progress) => named("scan", &json!(progress)),
        Event::Index(progress) => named("index", &json!(progress)),
        // For a remote core: whether the state shown here is current.
        Event::Connection(state) => {
            named("connection", &json!({ "connected": *state == ConnectionState::Connected }))
        }
        Event::Replaced => named("replaced", &json!({})),
        Event::Notice(message) => named("notice", &json!({ "message": message })),
        Event::Waiting(reminder) => named("waiting", &json!(reminder)),
    }
}

fn named(kind: &str, data: &Value) -> NextItem {
    NextItem::Frame(Frame::default().event(kind).data(data.to_string()))
}
