//! Bytes that are not requests, bodies that are not JSON, clients that do not read: each one gets a response or is
//! disconnected, without effect on others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;

use serde_json::{Value, json};
use skills_api::operations::{Caller, Operation, Scope, Service, operation, operations};
use skills_api::{Code, CoreParts, KeyRing, new_key};
use skills_http::{Settings, document};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::connections::hasty;
use super::errors::is;
use super::events::Stream;
use super::test_server::{TestServer, WAIT_TIMEOUT};
use crate::runs_place::TestHome;

/// The method and the path of an operation, with something in the place of each parameter.
fn somewhere(operation: &Operation) -> (String, String) {
    (operation.route.method.to_string(), operation.route.path.replace(['{', '}'], ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_reject_bodies_that_are_not_objects() {
    let test_server = TestServer::open().await;
    let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let bodies: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"nul",
        b"\0",
        b"{\"a\": 1,}",
        b"{'a': 1}",
        b"{\"a\": NaN}",
        b"{\"a\": 1e999}",
        b"{\"a\": \"\\ud800\"}",
        b"{\"a\": \"\xff\xfe\"}",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"\"text\"",
        b"17",
        b"[]",
        deep.as_bytes(),
    ];
    let mut tried = 0;
    for operation in operations().iter().filter(|operation| !operation.route.asks_by_query()) {
        let (method, path) = somewhere(operation);
        for body in &bodies {
            let mut request = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            )
            .into_bytes();
            request.extend_from_slice(body);
            let answer = test_server.send(&request).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]);
            assert_eq!(answer.status, 400, "{method} {path} {shown}: {}", answer.body);
            is(&answer, 400, "invalid_request");
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried}");
    assert_eq!(test_server.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_http_is_rejected_without_smuggling() {
    let test_server = TestServer::with(hasty()).await;
    let long = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x-more: 1\r\n".repeat(10_000));
    let far = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(1 << 20));
    // Two lengths, or a length with chunked encoding, are interpreted differently by a proxy and by the service.
    let within = "GET /v1/runs HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let post = "POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let two = format!("{post}content-length: 2\r\ncontent-length: 40\r\n\r\n{{}}{within}");
    let huge = format!("{post}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{{}}\r\n0\r\n\r\n");
    let negative = format!("{post}content-length: -1\r\n\r\n{{}}");
    let rough: Vec<&[u8]> = vec![
        b"\r\n\r\n\r\n\r\n",
        b"HELLO\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /livez HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost : localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: localhost\r\n folded\r\n\r\n",
        b"GET /live\0z HTTP/1.1\r\nhost: localhost\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
        far.as_bytes(),
        two.as_bytes(),
        huge.as_bytes(),
        negative.as_bytes(),
    ];
    for bytes in rough {
        let mut stream = test_server.connect().await;
        let _ = stream.write_all(bytes).await;
        let mut received = Vec::new();
        // Rejected or closed; either way the connection ends, and what followed is not a request.
        let read = tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut received)).await;
        let received = String::from_utf8_lossy(&received).into_owned();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(read.is_ok(), "{shown} holds its connection");
        assert!(
            received.is_empty() || received.starts_with("HTTP/1.1 4") || received.starts_with("HTTP/1.0 4"),
            "{shown}: {received}"
        );
        assert_eq!(
            received.matches("HTTP/1.").count(),
            usize::from(!received.is_empty()),
            "{shown}: {received}"
        );
        assert_eq!(test_server.get("/livez").await.status, 200, "after {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_requires_a_key_and_its_scope() {
    let (place, mut ring) = (TestHome::new(), KeyRing::default());
    let other = |name: &str, scope| {
        let (key, stored) = new_key(name, BTreeSet::from([scope])).unwrap();
        (key, format!("  {}\n", stored.line()))
    };
    let (reader, one) = other("reader", Scope::Read);
    let (decider, two) = other("decider", Scope::Decide);
    place.write("keys.yaml", &format!("keys:\n{one}{two}"));
    ring.read(&place.path("keys.yaml")).unwrap();
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(
        place,
        core,
        Settings { authenticator: Some(Arc::new(ring)), ..Settings::default() },
    )
    .await;
    let mut open = BTreeSet::new();
    for operation in operations() {
        let routes = std::iter::once(&operation.route).chain(&operation.aliases);
        for (method, path) in
            routes.map(|route| (route.method.to_string(), route.path.replace(['{', '}'], "")))
        {
            let anonymous = test_server.ask(&method, &path, &[], "").await;
            if anonymous.status != 401 {
                open.insert(path);
                continue;
            }
            is(&anonymous, 401, "unauthorized");
            // A key with other scopes, and the same key truncated.
            let key = if operation.scope == Some(Scope::Read) { &decider } else { &reader };
            let half = &key[..key.len() - 1];
            is(&test_server.ask(&method, &path, &[("x-api-key", half)], "").await, 401, "unauthorized");
            let known = test_server.ask(&method, &path, &[("x-api-key", key)], "{}").await;
            let received = known.json()["error"]["message"].clone();
            assert!(
                known.status == 403 && received.as_str().is_some_and(|received| received.contains("scope")),
                "{method} {path}: {}",
                known.body
            );
        }
    }
    assert_eq!(open.into_iter().collect::<Vec<_>>(), ["/v1/health"], "routes without authentication");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_monitor_blocks_no_other_and_misses_nothing() {
    let test_server = TestServer::open().await;
    // A small receive buffer, so that unread data soon fills the server's send buffer.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut lazy = Stream::over(
        socket.connect(test_server.address).await.unwrap(),
        &test_server,
        "/v1/events?after=0",
        "",
    )
    .await;
    let mut awake = Stream::open(&test_server, "/v1/events?after=0", None).await;
    let mut seen = 0;
    while seen < 200 {
        test_server.waiting().await;
        let newest = test_server.call("event.newest", json!({})).await.json()["newest"].as_u64().unwrap();
        while seen < newest {
            seen += 1;
            assert_eq!(awake.run().await.id, Some(seen), "a client that reads gets events at once");
        }
    }
    let mut back = Stream::open(&test_server, "/v1/events", Some(1)).await;
    for number in 2..=seen {
        assert_eq!(back.run().await.id, Some(number));
    }
    for number in 1..=seen {
        assert_eq!(lazy.run().await.id, Some(number), "late is not too late");
    }
}

#[test]
fn the_document_names_a_code_for_every_status_of_an_error() {
    let responses = document()["components"]["responses"].as_object().unwrap();
    for (name, response) in responses.iter().filter(|(name, _)| name.starts_with("Error")) {
        assert!(response["x-codes"].as_array().is_some_and(|all: &Vec<Value>| !all.is_empty()), "{name}");
    }
}

/// Makes a chain of folders in a folder, as deep as a path can name.
#[cfg(unix)]
fn nest(folder: &std::path::Path) {
    const LONGEST_PATH: usize = 4_000;
    std::fs::create_dir_all(folder).unwrap();
    let mut at = folder.to_owned();
    while at.as_os_str().len() < LONGEST_PATH {
        at.push("d");
        std::fs::create_dir(&at).unwrap();
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn deeply_nested_folders_are_handled() {
    for (trusted, code) in [(true, "invalid_request"), (false, "untrusted")] {
        let mut place = TestHome::new();
        nest(&place.path("skills/ledger/references"));
        if !trusted {
            place.config.trust.clear();
        }
        let core = place.open_with(CoreParts::Index).await;
        let test_server = TestServer::over(place, core, Settings::default()).await;
        assert_eq!(test_server.get("/v1/skills/governance").await.status, 200);
        assert_eq!(test_server.get("/v1/skills/ledger/describe").await.status, 200);
        let ledger = json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } });
        let launched = test_server.call("skill.execute", ledger).await;
        assert_eq!(launched.code(), code, "{}", launched.body);
        assert_eq!(test_server.get("/livez").await.status, 200);
    }
}

/// Number of threads of this process.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn measurements_of_disconnected_callers_use_no_threads() {
    let test_server = TestServer::open().await;
    let service = Service { core: test_server.core.clone() as _, sessions: test_server.core.clone() as _ };
    let fit = operation("skill.budget.fit").unwrap();
    let query =
        |n: usize| json!({ "query": format!("read the tables of invoice {n}"), "expect": ["ledger"] });
    let queries: Vec<Value> = (0..2_000).map(query).collect();
    let arguments = json!({ "clients": ["claude-code"], "queries": queries });
    let (caller, before) = (Caller::anyone(), threads());
    let mut abandoned = 0;
    for _ in 0..100 {
        let call = fit.call(&service, &caller, arguments.clone());
        match futures::poll!(Box::pin(call)) {
            Poll::Pending => abandoned += 1,
            // Work of calls that were abandoned counts against the limits until it has ended.
            Poll::Ready(answer) => assert_eq!(answer.unwrap_err().code, Code::RateLimited),
        }
    }
    assert!(abandoned > 0);
    assert!(threads() < before + 50, "{before} threads before, {} after", threads());
}
