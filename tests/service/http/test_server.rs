//! A service over a folder with executable bundles, and a caller that controls every byte it sends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use skills_api::operations::{Operation, Scope, Service, operation, to_query};
use skills_api::{CoreParts, KeyRing, Local, new_key};
use skills_http::{Server, Settings};
use skills_mcp::{HttpSettings, SessionLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::runs_place::TestHome;

/// No test waits longer for something that has to happen.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub struct TestServer {
    pub place: TestHome,
    pub core: Arc<Local>,
    pub address: SocketAddr,
    pub end: CancellationToken,
    pub serving: JoinHandle<()>,
}

impl TestServer {
    pub async fn open() -> Self {
        Self::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Self {
        let place = TestHome::new();
        let core = place.open_with(CoreParts::Index).await;
        Self::over(place, core, settings).await
    }

    pub async fn over(place: TestHome, core: Arc<Local>, settings: Settings) -> Self {
        Self::limited(place, core, settings, SessionLimits::default()).await
    }

    pub async fn limited(
        place: TestHome,
        core: Arc<Local>,
        settings: Settings,
        limits: SessionLimits,
    ) -> Self {
        let service = Service { core: Arc::clone(&core) as _, sessions: Arc::clone(&core) as _ };
        let (end, loopback) = (CancellationToken::new(), settings.authenticator.is_none());
        let origins = settings.cors.iter().map(|origin| origin.as_str().to_owned()).collect();
        let (any_host, stop) = (!loopback, end.child_token());
        let mcp = HttpSettings { any_host, origins, stop, limits };
        let more = skills_mcp::routes(service.clone(), mcp);
        let settings = Settings { metrics: core.recorder(), more, ..settings };
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), service, settings).await.unwrap();
        let address = server.address();
        let serving = tokio::spawn(server.run(end.clone()));
        Self { place, core, address, end, serving }
    }

    /// Opens a service with authentication, and returns a key for each name and scopes.
    pub async fn with_keys<const N: usize>(
        place: TestHome,
        limits: SessionLimits,
        names: [(&str, &[Scope]); N],
    ) -> (Self, [String; N]) {
        Self::with_keys_and(place, Settings::default(), limits, names).await
    }

    /// The same with other settings.
    pub async fn with_keys_and<const N: usize>(
        place: TestHome,
        settings: Settings,
        limits: SessionLimits,
        names: [(&str, &[Scope]); N],
    ) -> (Self, [String; N]) {
        let made = names.map(|(name, scopes)| new_key(name, scopes.iter().copied().collect()).unwrap());
        let lines: Vec<String> = made.iter().map(|(_, stored)| format!("  {}\n", stored.line())).collect();
        place.write("keys.yaml", &format!("keys:\n{}", lines.concat()));
        let mut ring = KeyRing::default();
        ring.read(&place.path("keys.yaml")).unwrap();
        let core = place.open_with(CoreParts::Index).await;
        let settings = Settings { authenticator: Some(Arc::new(ring)), ..settings };
        (Self::limited(place, core, settings, limits).await, made.map(|(key, _)| key))
    }

    /// Sends a request and reads its response.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.address);
        }
        if !body.is_empty() {
            head += &format!("content-length: {}\r\n", body.len());
            if !headers.iter().any(|(name, _)| *name == "content-type") {
                head += "content-type: application/json\r\n";
            }
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.send(format!("{head}\r\n{body}").as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string()).await
    }

    /// Calls an operation by its name.
    pub async fn call(&self, name: &str, arguments: Value) -> Answer {
        let (operation, path, rest) = filled(name, arguments);
        if operation.route.asks_by_query() {
            let query = to_query(&rest);
            return self.get(&if query.is_empty() { path } else { format!("{path}?{query}") }).await;
        }
        let body = if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() };
        self.ask(&operation.route.method.to_string(), &path, &[], &body).await
    }

    /// Sends bytes as they are and reads until the connection ends.
    pub async fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        // A service may close the connection while more is sent.
        let _ = stream.write_all(bytes).await;
        let mut received = Vec::new();
        let read = tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut received))
            .await
            .expect("an answer in time");
        assert!(read.is_ok() || !received.is_empty(), "{read:?}");
        Answer::of(&received)
    }

    /// Follows a stream until it has sent an event of this kind.
    pub async fn stream_until(&self, kind: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut stream = self.connect().await;
        let mut head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        let mut chunk = [0; 4096];
        while !text.contains(kind) || !text.ends_with("\r\n") {
            let read =
                tokio::time::timeout(WAIT_TIMEOUT, stream.read(&mut chunk)).await.expect("the event in time");
            text += &String::from_utf8_lossy(&chunk[..read.unwrap()]);
        }
        text
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The arguments that approve what a run waits for.
    pub async fn decision(&self, run: &str) -> Value {
        let shown = self.call("run.show", json!({ "run_id": run })).await.json();
        let sheet = &shown["sheet"];
        json!({ "run_id": run, "step": sheet["step"], "inputs_digest": sheet["inputs_digest"], "notes": "sum is right" })
    }

    /// A run of `ledger` that waits for approval.
    pub async fn waiting(&self) -> String {
        let launched = self
            .call("skill.execute_async", json!({ "skill_id": "ledger", "inputs": { "amounts": [1, 2] } }));
        let run = launched.await.json()["run"]["id"].as_str().unwrap().to_owned();
        let waited = self.call("run.settle", json!({ "run_id": run })).await.json();
        assert_eq!(waited["state"], "waiting_for_human", "{waited}");
        run
    }
}

/// An operation with its path, and the arguments that are not in it.
pub fn filled(name: &str, arguments: Value) -> (&'static Operation, String, Map<String, Value>) {
    let operation = operation(name).expect(name);
    let Value::Object(arguments) = arguments else { panic!("{name}: arguments are an object") };
    let (path, rest) = operation.route.fill(arguments).expect(name);
    (operation, path, rest)
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.head, self.body))
    }

    /// The code of an error.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no error: {}", self.body)).to_owned()
    }

    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }
}
