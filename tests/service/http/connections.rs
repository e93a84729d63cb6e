//! Connections that go wrong, and the end of the service.

use std::time::Duration;

use serde_json::json;
use skills_api::operations::Scope;
use skills_api::{CoreParts, Origin, RunClient as _};
use skills_http::{Settings, Timeouts};
use skills_mcp::SessionLimits;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use super::callers::keyed;
use super::events::Stream;
use super::test_server::{Answer, TestServer, WAIT_TIMEOUT};
use crate::runs_place::TestHome;

pub fn hasty() -> Settings {
    let soon = Duration::from_millis(300);
    let patience = Timeouts { head: soon, body: soon, write: soon, connections: 64, per_address: 64 };
    Settings { patience, ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_request_times_out() {
    let test_server = TestServer::with(hasty()).await;
    for head in ["", "GET /v1/hea", "GET /v1/health HTTP/1.1\r\nhost: localhost\r\nx-slow: "] {
        let mut stream = test_server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "{head:?} holds its connection");
    }
    let head = "POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 50\r\n\r\n{";
    let late = test_server.send(head.as_bytes()).await;
    assert_eq!((late.status, late.code().as_str()), (408, "request_timeout"));
    assert_eq!(test_server.get("/livez").await.status, 200);
}

/// Clients like Python's send head and body separately, so that a response may come before the body.
#[tokio::test(flavor = "multi_thread")]
async fn connection_is_reusable_after_an_unread_body() {
    let test_server = TestServer::open().await;
    for (request, status) in [
        ("POST /v1/health", 405),
        ("POST /v1/nothing", 404),
        ("GET /v1/health", 200),
        ("POST /v1/skills/discover?limit=1", 400),
        ("POST /v1/skills/discover", 415),
    ] {
        let mut stream = BufReader::new(test_server.connect().await);
        let head = format!("{request} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // Its response would have been sent by now.
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.write_all(b"0123456789").await.unwrap();
        assert_eq!(read_response(&mut stream).await.status, status, "{request}");
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        assert_eq!(read_response(&mut stream).await.status, 200, "after {request}");
    }
    for body in ["content-length: 1000000", "content-length: 10\r\nexpect: 100-continue"] {
        let mut stream = BufReader::new(test_server.connect().await);
        let head = format!("POST /v1/health HTTP/1.1\r\nhost: localhost\r\n{body}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let rejected = read_response(&mut stream).await;
        assert_eq!((rejected.status, rejected.header("connection")), (405, Some("close")), "{body}");
    }
}

/// Reads one response of a connection that stays open.
async fn read_response(stream: &mut BufReader<TcpStream>) -> Answer {
    let read = async {
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\n") {
            assert_ne!(
                stream.read_until(b'\n', &mut received).await.unwrap(),
                0,
                "the connection was closed"
            );
        }
        let length =
            Answer::of(&received).header("content-length").map_or(0, |length| length.parse().unwrap());
        let head = received.len();
        received.resize(head + length, 0);
        stream.read_exact(&mut received[head..]).await.unwrap();
        Answer::of(&received)
    };
    tokio::time::timeout(WAIT_TIMEOUT, read).await.expect("a response in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_limit_wait() {
    let test_server = TestServer::with(hasty()).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(test_server.connect().await);
    }
    // The idle ones are closed for others.
    assert_eq!(test_server.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_reader_is_disconnected() {
    let test_server = TestServer::with(hasty()).await;
    // Responses accumulate until every buffer is full: they are long, and the reader's own buffer is small.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 * 1024).unwrap();
    let mut stream = socket.connect(test_server.address).await.unwrap();
    let request = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let cut = async {
        loop {
            if stream.write_all(request.as_bytes()).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, cut).await.expect("the connection is cut");
    assert_eq!(test_server.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_is_reported_to_all_waiters() {
    let test_server = TestServer::open().await;
    let mut events = Stream::open(&test_server, "/v1/events", None).await;
    events.next().await.unwrap();
    // A run that waits for a signal, and a caller who waits for its outputs.
    let launched = test_server.call("skill.execute_async", json!({ "skill_id": "close" })).await.json();
    let run = launched["run"]["id"].as_str().unwrap().to_owned();
    test_server.call("run.settle", json!({ "run_id": run })).await;
    let mut idle = test_server.connect().await;
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    test_server.end.cancel();
    while events.next().await.is_some() {}
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(WAIT_TIMEOUT, idle.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "an idle connection is closed");
    tokio::time::timeout(WAIT_TIMEOUT, test_server.serving).await.expect("the service ends").unwrap();
    assert!(tokio::net::TcpStream::connect(test_server.address).await.is_err(), "no connection is accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_learn_where_a_run_continues() {
    let place = TestHome::new();
    place.write("skills/upload/scripts/send.sh", "#!/usr/bin/env bash\nexec sleep 600\n");
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    // One that waits for a signal has not ended either.
    let close = test_server.call("skill.execute", json!({ "skill_id": "close" })).await;
    assert_eq!((close.status, &close.json()["run"]["state"]), (202, &json!("waiting_for_signal")));
    let run = close.json()["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(close.header("location"), Some(format!("/v1/runs/{run}").as_str()));

    let mut events = Stream::open(&test_server, "/v1/events", None).await;
    while events.next().await.unwrap().kind != "ready" {}
    let upload = json!({ "skill_id": "upload", "inputs": { "name": "right.csv" } });
    let asking = test_server.call("skill.execute", upload);
    let ending = async {
        loop {
            let event = events.run().await;
            if event.data["kind"] == "step.started" && event.data["step"] == "send" {
                test_server.end.cancel();
                return;
            }
        }
    };
    let (answer, ()) = tokio::join!(asking, ending);
    let parsed = answer.json();
    let run = parsed["run"]["id"].as_str().unwrap();
    assert_eq!((answer.status, answer.header("location")), (202, Some(format!("/v1/runs/{run}").as_str())));
    // Its lease is released, and another worker may claim it.
    let left = test_server.core.run(run).await.unwrap().run;
    assert_eq!(left.lease.and_then(|lease| lease.worker), None, "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_for_new_ones() {
    // Long waits: only closing the oldest frees a slot.
    let long = Duration::from_secs(600);
    let patience = Timeouts { head: long, body: long, write: long, connections: 16, per_address: 16 };
    let test_server = TestServer::with(Settings { patience, ..Settings::default() }).await;
    let mut idle = Vec::new();
    for begun in ["", "GET /v1/hea"].repeat(8) {
        let mut stream = test_server.connect().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    for _ in 0..4 {
        assert_eq!(test_server.get("/livez").await.status, 200);
    }
    // The closed ones were the oldest.
    let mut rest = Vec::new();
    tokio::time::timeout(WAIT_TIMEOUT, idle[0].read_to_end(&mut rest)).await.unwrap().ok();
}

/// Connects from an address of this machine.
#[cfg(target_os = "linux")]
async fn connect_from(test_server: &TestServer, source: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(test_server.address).await.unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_use_all_connections() {
    let long = Duration::from_secs(600);
    let patience = Timeouts { head: long, body: long, write: long, connections: 16, per_address: 4 };
    let test_server = TestServer::with(Settings { patience, ..Settings::default() }).await;
    let launched = test_server.call("skill.execute_async", json!({ "skill_id": "close" })).await.json();
    let run = launched["run"]["id"].as_str().unwrap();
    test_server.call("run.settle", json!({ "run_id": run })).await;
    // Waits for a change that does not come.
    let wait =
        format!("GET /v1/runs/{run}/events?after=1000&wait_ms=60000 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut waits = Vec::new();
    for _ in 0..4 {
        let mut stream = test_server.connect().await;
        stream.write_all(wait.as_bytes()).await.unwrap();
        waits.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer_to = async |source: &str| {
        let mut stream = connect_from(&test_server, source).await;
        // A connection that is closed at once may refuse to be written to.
        stream.write_all(request).await.ok();
        let mut answer = Vec::new();
        tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap().ok();
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(answer_to("127.0.0.1").await, "", "all of its connections are busy");
    assert!(answer_to("127.0.0.2").await.starts_with("HTTP/1.1 200"));
    waits.pop();
    while !answer_to("127.0.0.1").await.starts_with("HTTP/1.1 200") {}
}

/// A caller with a key is served while others hold all connections, from its address or from others.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn no_caller_keeps_others_out() {
    let scopes: [(&str, &[Scope]); 2] = [("reader", &[Scope::Read]), ("other", &[Scope::Read])];
    let long = Duration::from_secs(600);
    let patience = Timeouts { head: long, body: long, write: long, connections: 16, per_address: 8 };
    let settings = Settings { patience, ..Settings::default() };
    let (test_server, [key, other]) =
        TestServer::with_keys_and(TestHome::new(), settings, SessionLimits::default(), scopes).await;
    let key = format!("x-api-key: {key}\r\n");
    let post = "POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 1000000\r\n";
    let attacks = [
        String::new(),
        "GET /v1/hea".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        format!("GET /v1/caller HTTP/1.1\r\nhost: localhost\r\nx-api-key: {other}\r\n\r\n"),
        format!("{post}\r\n{{"),
        format!("{post}x-api-key: {other}\r\n\r\n{{"),
        format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\nx-api-key: {other}\r\n\r\n"),
        // The end of the stream is not looked for while another request waits.
        format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\nx-api-key: {other}\r\n\r\nGET /"),
    ];
    for attack in &attacks {
        for places in [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.3"]] {
            let mut attackers = Vec::new();
            for place in places.repeat(8) {
                let mut stream = connect_from(&test_server, place).await;
                stream.write_all(attack.as_bytes()).await.unwrap();
                attackers.push(stream);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            for _ in 0..3 {
                let response = async || {
                    let mut stream = connect_from(&test_server, "127.0.0.1").await;
                    let request = format!(
                        "GET /v1/caller HTTP/1.1\r\nhost: localhost\r\n{key}connection: close\r\n\r\n"
                    );
                    // Closed at once while the service has not read the requests of the other connections yet.
                    stream.write_all(request.as_bytes()).await.ok();
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer).await.ok();
                    Answer::of(&answer).status
                };
                // A client tries again when its connection is closed.
                let served = async { while response().await != 200 {} };
                let is_served = tokio::time::timeout(Duration::from_secs(5), served).await.is_ok();
                assert!(is_served, "{attack:?} from {places:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_request_is_drained_for_a_few_seconds_only() {
    let (test_server, _) = keyed().await;
    let mut stream = test_server.connect().await;
    let head = "POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let closed = async {
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;
    assert!(closed.is_ok(), "one byte at a time holds the connection");
}

/// The parts of the service agree on where each request begins: none hides in another.
#[tokio::test(flavor = "multi_thread")]
async fn requests_begin_where_both_parsers_see_them() {
    let cors = vec![Origin::parse("https://docs.example").unwrap()];
    let test_server = TestServer::with(Settings { cors, ..Settings::default() }).await;
    let post = "POST /livez HTTP/1.1\r\nhost: localhost\r\n";
    let chunked = |body: &str| format!("{post}transfer-encoding: chunked\r\n\r\n{body}");
    let long = |body: &str| format!("{post}{body}");
    let get = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let bare_line_feed = "GET /livez HTTP/1.1\nhost: localhost\r\n\r\n";
    // Requests whose end is known: the next one is served, or refused for its line end.
    let sound = [
        get.to_owned(),
        format!("\r\n\r\n{get}"),
        long("content-length: 5\r\n\r\nhello"),
        long("content-length: 0000000000000000000000005\r\n\r\nhello"),
        long("content-length:  5 \r\n\r\nhe\nlo"),
        long("content-length: 5\r\ncontent-length: 5\r\n\r\nhello"),
        chunked("0\r\n\r\n"),
        chunked("1;a=b\r\nx\r\n0\r\n\r\n"),
        chunked("1 \t;a\r\n\n\r\n0;b\r\na: b\r\nc: d\r\n\r\n"),
        chunked(&format!("{}1\r\nx\r\n{}\r\n\r\n", "0".repeat(60), "0".repeat(40))),
        long("transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        "OPTIONS /livez HTTP/1.1\r\nhost: localhost\r\norigin: https://docs.example\r\n\
         access-control-request-method: GET\r\n\r\n"
            .to_owned(),
    ];
    for (request, wanted) in sound.iter().flat_map(|one| [(one, 200), (one, 400)]) {
        let next = if wanted == 200 { get } else { bare_line_feed };
        for chunk_size in [1, 7, 10_000] {
            let text = format!(
                "{request}{request}{next}GET / HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n\r\n"
            );
            let answers = statuses(&test_server, &text, chunk_size).await;
            let first = answers.first().copied().unwrap_or_default();
            let rest = if wanted == 200 { vec![200, 200] } else { vec![400] };
            let expected = [vec![first, first], rest].concat();
            assert_eq!(answers, expected, "{text:?} in pieces of {chunk_size}");
            assert!([200, 204, 405].contains(&first), "{text:?}");
        }
    }
    // Requests after which the connection ends.
    let hidden = format!("{post}content-length: 900000\r\n\r\n{bare_line_feed}{get}");
    let malformed = [
        long("content-length: +5\r\n\r\nhello"),
        long("content-length: 5, 5\r\n\r\nhello"),
        long("content-length: 5\r\ncontent-length: 6\r\n\r\nhello"),
        long("content-length: 18446744073709551616\r\n\r\nhello"),
        long("content-length : 5\r\n\r\nhello"),
        long("transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
        long("transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"),
        chunked("0\r\n\n"),
        chunked("0\n\r\n"),
        chunked("0\n\n"),
        chunked("0\r\na: b\n\r\n"),
        chunked("0\r\na: b\n\n"),
        chunked("0\r\na\rb: c\r\n\r\n"),
        chunked("1\nx\r\n0\r\n\r\n"),
        chunked("1;a=b\nc\r\nx\r\n0\r\n\r\n"),
        chunked("1;a=b\rc\r\nx\r\n0\r\n\r\n"),
        chunked(" 1\r\nx\r\n0\r\n\r\n"),
        chunked("+1\r\nx\r\n0\r\n\r\n"),
        chunked("0x1\r\nx\r\n0\r\n\r\n"),
        chunked("\r\nx\r\n0\r\n\r\n"),
        chunked("1\r\nx\n0\r\n\r\n"),
        chunked("10000000000000001\r\nx\r\n0\r\n\r\n"),
        chunked(&format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(20_000))),
        "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: a\r\n b\r\n\r\n".to_owned(),
        format!("\r{get}"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "OPTIONS /livez HTTP/1.1\nhost: localhost\r\norigin: https://docs.example\r\n\
         access-control-request-method: GET\r\n\r\n"
            .to_owned(),
    ];
    for request in &malformed {
        for chunk_size in [1, 7, 100_000] {
            let answers = statuses(&test_server, &format!("{get}{request}{hidden}"), chunk_size).await;
            assert_eq!(answers.first(), Some(&200), "{request:?} in pieces of {chunk_size}");
            let is_refused = matches!(answers[1..], [] | [400 | 405])
                || matches!(answers[1..], [204] if request.starts_with("OPTIONS"));
            assert!(is_refused, "{request:?} in pieces of {chunk_size}: {answers:?}");
        }
    }
}

/// Sends bytes in pieces, and returns the status of each answer until the connection ends.
async fn statuses(test_server: &TestServer, text: &str, chunk_size: usize) -> Vec<u16> {
    let stream = test_server.connect().await;
    stream.set_nodelay(true).unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let sent = async {
        for chunk in text.as_bytes().chunks(chunk_size) {
            if writer.write_all(chunk).await.is_err() {
                return;
            }
        }
    };
    let mut received = Vec::new();
    let read = tokio::time::timeout(WAIT_TIMEOUT, reader.read_to_end(&mut received));
    let ((), read) = tokio::join!(sent, read);
    assert!(read.is_ok(), "the connection stays open after {text:?}");
    let received = String::from_utf8_lossy(&received);
    let answers = received.split("HTTP/1.1 ").skip(1);
    answers.map(|answer| answer.split(' ').next().unwrap().parse().unwrap()).collect()
}
