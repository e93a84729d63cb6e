//! Following runs and the catalog as server-sent events.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::test_server::{TestServer, WAIT_TIMEOUT};

#[derive(Debug)]
pub struct StreamEvent {
    pub id: Option<u64>,
    pub kind: String,
    pub data: Value,
}

/// An open stream of events.
pub struct Stream(BufReader<TcpStream>);

impl Stream {
    pub async fn open(test_server: &TestServer, path: &str, last: Option<u64>) -> Self {
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        Self::over(test_server.connect().await, test_server, path, &last).await
    }

    /// The same over a connection that is there, with further headers.
    pub async fn over(mut stream: TcpStream, test_server: &TestServer, path: &str, more: &str) -> Self {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n{more}\r\n",
            test_server.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self(BufReader::new(stream))
    }

    /// The next line; none at the end.
    pub async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read =
            tokio::time::timeout(WAIT_TIMEOUT, self.0.read_line(&mut line)).await.expect("a line in time");
        (read.ok()? > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event; lines between events (sizes of pieces, comments) are passed over.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        let (mut id, mut kind) = (None, String::new());
        loop {
            let line = self.line().await?;
            if let Some(number) = line.strip_prefix("id: ") {
                id = number.parse().ok();
            } else if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some(StreamEvent { id, kind, data: serde_json::from_str(data).unwrap() });
            }
        }
    }

    /// The next event of a run.
    pub async fn run(&mut self) -> StreamEvent {
        loop {
            let update = self.next().await.expect("the stream continues");
            if update.kind == "run" {
                return update;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_of_a_run_starts_and_resumes() {
    let test_server = TestServer::open().await;
    let run = test_server.waiting().await;
    let path = format!("/v1/runs/{run}/events");
    let listed = test_server.get(&path).await.json()["events"].as_array().unwrap().clone();
    let mut stream = Stream::open(&test_server, &path, None).await;
    for (n, event) in listed.iter().enumerate() {
        let update = stream.run().await;
        assert_eq!(update.id, Some(n as u64 + 1));
        assert_eq!(&update.data, event, "the same event as in the list");
    }
    let head = listed.len() as u64;
    let mut resumed = Stream::open(&test_server, &path, Some(head - 1)).await;
    let mut after = Stream::open(&test_server, &format!("{path}?after={head}"), None).await;
    assert_eq!(resumed.run().await.id, Some(head));
    test_server.call("run.deny", json!({ "run_id": run, "step": "book" })).await;
    for stream in [&mut stream, &mut resumed, &mut after] {
        assert_eq!(stream.run().await.id, Some(head + 1), "an event is sent at once, and only once");
    }
    for kind in ["text/event-stream", "application/json"] {
        let wrong = test_server.ask("GET", &path, &[("accept", kind), ("last-event-id", "-1")], "").await;
        assert_eq!(wrong.code(), "invalid_request", "{kind}");
    }
    let missing =
        test_server.ask("GET", "/v1/runs/01a0ffff/events", &[("accept", "text/event-stream")], "").await;
    assert_eq!(missing.code(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_does_not_read_the_complete_run() {
    let test_server = TestServer::open().await;
    let run = test_server.waiting().await;
    let path = format!("/v1/runs/{run}/events");
    let last = test_server.get(&path).await.json()["events"].as_array().unwrap().len();
    let reads = async || {
        test_server.call("skill.diagnostics", json!({})).await.json()["operations"]["run"]["calls"].clone()
    };
    let before = reads().await;
    let mut stream = Stream::open(&test_server, &format!("{path}?after={last}"), None).await;
    let ready = stream.next().await.unwrap();
    assert_eq!((ready.kind.as_str(), &ready.data["newest"]), ("ready", &json!(last)));
    assert_eq!(reads().await, before, "the complete run takes time and memory from other readers");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_starts_now_or_at_a_number() {
    let test_server = TestServer::open().await;
    let run = test_server.waiting().await;
    let newest = test_server.call("event.newest", json!({})).await.json()["newest"].as_u64().unwrap();
    let mut now = Stream::open(&test_server, "/v1/events", None).await;
    let started = now.next().await.unwrap();
    assert_eq!((started.kind.as_str(), &started.data["after"]), ("ready", &json!(newest)));
    let kinds = [now.next().await.unwrap().kind, now.next().await.unwrap().kind];
    assert_eq!(kinds, ["scan", "index"]);
    let mut all = Stream::open(&test_server, "/v1/events?after=0", None).await;
    for number in 1..=newest {
        assert_eq!(all.run().await.id, Some(number));
    }
    test_server.call("run.deny", json!({ "run_id": run, "step": "book" })).await;
    let (one, other) = (now.run().await, all.run().await);
    assert_eq!(one.id, Some(newest + 1));
    assert_eq!((one.id, &one.data["run"], &one.data), (other.id, &json!(run), &other.data));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_event_number_restarts_the_stream() {
    let test_server = TestServer::open().await;
    let run = test_server.waiting().await;
    let newest = test_server.call("event.newest", json!({})).await.json();
    let last = newest["newest"].as_u64().unwrap();
    let mut stale = Stream::open(&test_server, "/v1/events", Some(last + 100)).await;
    let listed = [stale.next().await.unwrap(), stale.next().await.unwrap()];
    assert_eq!(listed.each_ref().map(|update| update.kind.as_str()), ["reset", "ready"]);
    assert_eq!((&listed[0].data["log"], &listed[0].data["after"]), (&newest["log"], &json!(last)));
    // A page past the last event is returned at once, and its log id explains why it is empty.
    let page = test_server.get(&format!("/v1/events?after={}&wait_ms=60000", last + 100)).await.json();
    assert_eq!((&page["events"], &page["log"]), (&json!([]), &newest["log"]));
    let mut of_run = Stream::open(&test_server, &format!("/v1/runs/{run}/events"), Some(9_999)).await;
    assert_eq!(of_run.next().await.unwrap().kind, "reset");
    assert_eq!(of_run.run().await.id, Some(1), "a run is replayed from its first event");
    test_server.call("run.deny", json!({ "run_id": run, "step": "book" })).await;
    assert_eq!(stale.run().await.id, Some(last + 1), "and new events are sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_events_reach_fifty_monitors_in_order() {
    let test_server = TestServer::open().await;
    let mut monitors = Vec::new();
    for _ in 0..50 {
        monitors.push(Stream::open(&test_server, "/v1/events?after=0", None).await);
    }
    let mut newest = 0;
    while newest < 300 {
        test_server.waiting().await;
        newest = test_server.call("event.newest", json!({})).await.json()["newest"].as_u64().unwrap();
    }
    for monitor in &mut monitors {
        for number in 1..=newest {
            assert_eq!(monitor.run().await.id, Some(number));
        }
    }
}
