//! A service on loopback made of the table of operations, which loses responses, delays callers, crashes and returns
//! as a test requires.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value, json};
use skills_api::operations::{Caller, Operation, Service as Core, from_query, operations};
use skills_api::{Code, Error, ErrorBody, Event, Local};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// How long a port that is in use is waited for.
const WAIT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// What is to go wrong with the next call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// The connection breaks before anything is done.
    BreaksBefore,
    /// It is executed, and the connection breaks before the response.
    BreaksAfter,
    /// Never responds.
    Hangs,
}

#[derive(Default)]
struct Script {
    mishaps: HashMap<&'static str, Mishap>,
    calls: Vec<&'static str>,
    /// The event after which each stream was to resume.
    resumed: Vec<Option<u64>>,
    key: Option<String>,
}

pub struct Service {
    core: Arc<Local>,
    script: Arc<Mutex<Script>>,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Service {
    pub fn start(core: &Arc<Local>) -> Self {
        Self::with_key(core, None)
    }

    pub fn with_key(core: &Arc<Local>, key: Option<&str>) -> Self {
        let script = Script { key: key.map(str::to_owned), ..Script::default() };
        let mut service = Self {
            core: Arc::clone(core),
            script: Arc::new(Mutex::new(script)),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            runtime: None,
        };
        service.begin();
        service
    }

    /// Listens, at the same place as before.
    pub fn begin(&mut self) {
        let runtime = Runtime::new().unwrap();
        let listener = self.listening();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let (core, script) = (Arc::clone(&self.core), Arc::clone(&self.script));
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let answer = move |request: Request| answered(Arc::clone(&core), Arc::clone(&script), request);
            axum::serve(listener, axum::Router::new().fallback(answer)).await.unwrap();
        });
        self.runtime = Some(runtime);
    }

    /// A port with broken connections can be reused immediately: the standard library sets `SO_REUSEADDR`. Meanwhile
    /// the system may have lent it to a call of another test, which ends.
    fn listening(&self) -> std::net::TcpListener {
        let since = std::time::Instant::now();
        loop {
            match std::net::TcpListener::bind(self.address) {
                Ok(listener) => return listener,
                Err(e) if e.kind() == std::io::ErrorKind::AddrInUse && since.elapsed() < WAIT_TIMEOUT => {
                    std::thread::yield_now();
                }
                Err(e) => panic!("{}: {e}", self.address),
            }
        }
    }

    /// Ends immediately, as by SIGKILL: every connection breaks.
    pub fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// From the next start on, another core responds here.
    pub fn use_core(&mut self, core: &Arc<Local>) {
        self.core = Arc::clone(core);
    }

    /// The event after which each stream was to resume.
    pub fn resumed(&self) -> Vec<Option<u64>> {
        self.script.lock().unwrap().resumed.clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn mishap(&self, operation: &'static str, mishap: Mishap) {
        self.script.lock().unwrap().mishaps.insert(operation, mishap);
    }

    /// Number of calls of an operation.
    pub fn calls(&self, operation: &str) -> usize {
        self.script.lock().unwrap().calls.iter().filter(|name| **name == operation).count()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn answered(core: Arc<Local>, script: Arc<Mutex<Script>>, request: Request) -> Response {
    let known = operations().iter().find_map(|operation| {
        Some((operation, matched(operation, request.method().as_str(), request.uri().path())?))
    });
    let Some((operation, arguments)) = known else {
        return refused(&Error::new(Code::NotFound, "there is no such route"));
    };
    let mishap = {
        let mut script = script.lock().unwrap();
        let actual = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let open = operation.scope.is_none();
        if let Some(key) = script.key.as_ref().filter(|_| !open)
            && actual != Some(&format!("Bearer {key}"))
        {
            return refused(&Error::new(Code::Unauthorized, "this service knows no such key"));
        }
        script.calls.push(operation.name);
        script.mishaps.remove(operation.name)
    };
    match mishap {
        Some(Mishap::Hangs) => std::future::pending().await,
        // A panic ends the task of the connection, and the connection with it.
        Some(Mishap::BreaksBefore) => panic!("the test breaks this connection"),
        Some(Mishap::BreaksAfter) | None => {}
    }
    let accepts = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if operation.name == "event.list" && accepts == Some("text/event-stream") {
        let resumed = request.headers().get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
        script.lock().unwrap().resumed.push(resumed);
        return stream(core, resumed).await;
    }
    let carried = execute_operation(core, operation, arguments, request).await;
    assert!(mishap.is_none(), "the test breaks this connection");
    match carried {
        Ok(value) => json_of(operation.status, &value),
        Err(error) => refused(&error),
    }
}

async fn execute_operation(
    core: Arc<Local>,
    operation: &'static Operation,
    mut arguments: Map<String, Value>,
    request: Request,
) -> Result<Value, Error> {
    if operation.route.asks_by_query() {
        let pairs = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs: Vec<(String, String)> = pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decoded(name), decoded(value))
            })
            .collect();
        arguments.extend(from_query(operation, pairs)?);
    } else {
        let body = to_bytes(request.into_body(), 4 << 20).await.unwrap();
        let Value::Object(fields) = serde_json::from_slice(&body).unwrap() else { panic!("no object") };
        arguments.extend(fields);
    }
    let service = Core { core: core.clone(), sessions: core };
    operation.call(&service, &Caller::anyone(), Value::Object(arguments)).await
}

/// The arguments in a path, where it is an operation's.
fn matched(operation: &Operation, method: &str, path: &str) -> Option<Map<String, Value>> {
    let (expected, actual) = (operation.route.path.split('/'), path.split('/'));
    if operation.route.method.to_string() != method || expected.clone().count() != actual.clone().count() {
        return None;
    }
    let mut arguments = Map::new();
    for (expected, actual) in expected.zip(actual) {
        match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => drop(arguments.insert(name.to_owned(), Value::String(decoded(actual)))),
            None if expected == actual => {}
            None => return None,
        }
    }
    Some(arguments)
}

fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits: Vec<u8> = bytes.by_ref().take(2).collect();
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).unwrap()
}

/// Events of runs after a number, and catalog changes, as server-sent events, until the core ends.
async fn stream(core: Arc<Local>, resumed: Option<u64>) -> Response {
    use skills_api::{Client as _, RunClient as _};
    let (newest, log) = (core.newest_event().await.unwrap(), core.event_log().await.unwrap());
    let after = resumed.unwrap_or(newest).min(newest);
    let kind = if resumed.is_some_and(|last_event| last_event > newest) { "reset" } else { "ready" };
    let first = framed(kind, None, &json!({ "log": log, "after": after }));
    let ready = framed("ready", None, &json!({ "log": log, "after": after }));
    let events = core.events();
    let frames = futures::stream::unfold((core, events, after), |(core, mut events, mut after)| async move {
        let text = tokio::select! {
            event = events.recv() => match event.ok()? {
                Event::Catalog(change) => {
                    framed("catalogue", None, &json!({ "generation": change.catalog.generation }))
                }
                Event::Scan(progress) => framed("scan", None, &json!(progress)),
                Event::Index(progress) => framed("index", None, &json!(progress)),
                Event::Notice(message) => framed("notice", None, &json!({ "message": message })),
                _ => ": other\n\n".to_owned(),
            },
            events = core.run_events(None, after, 100, 60_000) => {
                let events = events.ok()?;
                after = events.last().map_or(after, |event| event.global);
                events.iter().map(|event| framed("run", Some(event.global), &json!(event))).collect()
            }
        };
        Some((Ok::<String, Infallible>(text), (core, events, after)))
    });
    let first = futures::stream::once(async move { Ok::<String, Infallible>(first + &ready) });
    let body = Body::from_stream(futures::StreamExt::chain(first, frames));
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body).unwrap()
}

fn framed(kind: &str, id: Option<u64>, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {kind}\ndata: {data}\n\n")
}

fn json_of(status: u16, value: &impl serde::Serialize) -> Response {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(serde_json::to_vec(value).unwrap()))
        .unwrap()
}

fn refused(error: &Error) -> Response {
    json_of(error.code.status(), &ErrorBody::from(error))
}
