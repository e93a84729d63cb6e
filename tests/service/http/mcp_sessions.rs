//! MCP sessions over HTTP: whose they are, how many there may be, and when they end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skills_api::operations::Scope;
use skills_api::{Client as _, CoreParts};
use skills_http::Settings;
use skills_mcp::SessionLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::ownership::keyed;
use super::test_server::{Answer, TestServer, WAIT_TIMEOUT};
use crate::runs_place::TestHome;

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// A handshake without its last message; returns the session's id.
pub async fn initialize(test_server: &TestServer, key: &str) -> Result<String, Answer> {
    initialize_with(test_server, key, json!({})).await
}

/// Same for a client with these capabilities.
pub async fn initialize_with(
    test_server: &TestServer,
    key: &str,
    capabilities: Value,
) -> Result<String, Answer> {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    }});
    let answer = test_server.ask("POST", "/mcp", &[ACCEPT, ("x-api-key", key)], &hello.to_string()).await;
    match answer.header("mcp-session-id").map(str::to_owned) {
        Some(id) if answer.status == 200 => Ok(id),
        _ => Err(answer),
    }
}

pub async fn post(test_server: &TestServer, key: &str, session: &str, message: &str) -> Answer {
    let headers = [ACCEPT, ("x-api-key", key), ("mcp-session-id", session)];
    test_server.ask("POST", "/mcp", &headers, message).await
}

pub async fn complete(test_server: &TestServer, key: &str, session: &str) {
    let answer =
        post(test_server, key, session, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
}

async fn ping(test_server: &TestServer, key: &str, session: &str) -> u16 {
    post(test_server, key, session, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await.status
}

async fn open(limits: SessionLimits) -> TestServer {
    let place = TestHome::new();
    let core = place.open_with(CoreParts::Index).await;
    TestServer::limited(place, core, Settings::default(), limits).await
}

async fn gone(test_server: &TestServer, key: &str, session: &str) {
    let started = Instant::now();
    while ping(test_server, key, session).await != 404 {
        assert!(started.elapsed() < WAIT_TIMEOUT, "the session does not end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_belongs_to_its_creator_only() {
    let (test_server, [ana, ben, admin]) = keyed(SessionLimits::default()).await;
    let session = initialize(&test_server, &ana).await.unwrap();
    complete(&test_server, &ana, &session).await;
    for other in [&ben, &admin] {
        assert_eq!(ping(&test_server, other, &session).await, 404);
        for method in ["GET", "DELETE"] {
            let headers =
                [("accept", "text/event-stream"), ("x-api-key", other), ("mcp-session-id", &session)];
            assert_eq!(test_server.ask(method, "/mcp", &headers, "").await.status, 404, "{method}");
        }
    }
    // The body of a refused request is read: its connection stays open.
    let own = test_server.address;
    let refused = format!(
        "DELETE /mcp HTTP/1.1\r\nhost: {own}\r\nx-api-key: {ben}\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    let next = format!("GET /livez HTTP/1.1\r\nhost: {own}\r\nconnection: close\r\n\r\n");
    let mut stream = test_server.connect().await;
    stream.write_all(refused.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut chunk = [0; 4096];
    while !text.contains("HTTP/1.1 404") {
        let read = stream.read(&mut chunk).await.unwrap();
        assert!(read > 0, "{text}");
        text += std::str::from_utf8(&chunk[..read]).unwrap();
    }
    stream.write_all(next.as_bytes()).await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 200"), "{text}{rest}");
    assert_eq!(ping(&test_server, &ana, &session).await, 200);
    let headers = [("x-api-key", ana.as_str()), ("mcp-session-id", &session)];
    assert_eq!(test_server.ask("DELETE", "/mcp", &headers, "").await.status, 204);
    assert_eq!(test_server.ask("DELETE", "/mcp", &headers, "").await.status, 404);
}

/// Opens a session, completes it often, and ends it; returns the number of tasks before its end.
async fn used_session(test_server: &TestServer) -> usize {
    let session = initialize(test_server, "").await.unwrap();
    for _ in 0..50 {
        complete(test_server, "", &session).await;
    }
    let before = tasks();
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(test_server.ask("DELETE", "/mcp", &headers, "").await.status, 204);
    before
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_session_leaves_no_task_behind() {
    let test_server = open(SessionLimits::default()).await;
    // The first session starts what all of them share.
    used_session(&test_server).await;
    let idle = tasks();
    for _ in 0..10 {
        let before = used_session(&test_server).await;
        assert!(before < idle + 20, "{before} tasks after {idle}");
    }
    let started = Instant::now();
    while tasks() > idle {
        assert!(started.elapsed() < WAIT_TIMEOUT, "{} tasks are left of {idle}", tasks());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_a_handshake_are_evicted() {
    let test_server = open(SessionLimits { per_principal: 3, ..SessionLimits::default() }).await;
    let mut made = Vec::new();
    for _ in 0..20 {
        made.push(initialize(&test_server, "").await.unwrap());
    }
    let mut left = 0;
    for session in &made {
        left += usize::from(ping(&test_server, "", session).await == 200);
    }
    assert_eq!(left, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_in_use_are_not_evicted() {
    let (test_server, [ana, ben, _]) =
        keyed(SessionLimits { per_principal: 2, total: 3, ..SessionLimits::default() }).await;
    for _ in 0..2 {
        let session = initialize(&test_server, &ana).await.unwrap();
        complete(&test_server, &ana, &session).await;
    }
    let refused = initialize(&test_server, &ana).await.unwrap_err();
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")), "{}", refused.body);
    let session = initialize(&test_server, &ben).await.unwrap();
    complete(&test_server, &ben, &session).await;
    let refused = initialize(&test_server, &ben).await.unwrap_err();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")), "{}", refused.body);
}

/// Sends a call and reads its stream up to the question to the user, which is returned with it.
pub async fn elicited(
    test_server: &TestServer,
    key: &str,
    session: &str,
    call: &Value,
) -> (TcpStream, Value) {
    let body = call.to_string();
    let mut stream = test_server.connect().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: {}\r\nx-api-key: {key}\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        test_server.address,
        ACCEPT.1,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut chunk = [0; 4096];
    while !text.split_once("elicitation/create").is_some_and(|(_, rest)| rest.contains("\n\n")) {
        let read =
            tokio::time::timeout(WAIT_TIMEOUT, stream.read(&mut chunk)).await.expect("it in time").unwrap();
        assert!(read > 0, "{text}");
        text += std::str::from_utf8(&chunk[..read]).unwrap();
    }
    let elicitation = text.lines().find(|line| line.contains("elicitation/create")).unwrap();
    let elicitation = serde_json::from_str(elicitation.strip_prefix("data:").unwrap().trim()).unwrap();
    (stream, elicitation)
}

#[tokio::test(flavor = "multi_thread")]
async fn request_id_in_progress_is_not_accepted_twice() {
    let test_server = open(SessionLimits::default()).await;
    let session = initialize_with(&test_server, "", json!({ "elicitation": {} })).await.unwrap();
    complete(&test_server, "", &session).await;
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "skill.execute", "arguments": { "skill_id": "ledger", "inputs": { "amounts": [1, 2] } },
    }});
    let (mut stream, elicitation) = elicited(&test_server, "", &session, &call).await;
    for method in ["ping", "tools/call"] {
        let again = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": call["params"] });
        let refused = post(&test_server, "", &session, &again.to_string()).await;
        let error = refused.json();
        assert_eq!((refused.status, &error["error"]["code"]), (409, &json!(-32600)), "{error}");
        assert_eq!(error["id"], json!(null), "the id is that of the request in progress");
    }
    let same_number = r#"{"jsonrpc":"2.0","id":0.7e1,"method":"ping"}"#;
    assert_eq!(post(&test_server, "", &session, same_number).await.status, 409);
    assert_eq!(ping(&test_server, "", &session).await, 200, "another id");
    let text_id = r#"{"jsonrpc":"2.0","id":"7","method":"ping"}"#;
    assert_eq!(post(&test_server, "", &session, text_id).await.status, 200, "a text is another id");
    let no = json!({ "jsonrpc": "2.0", "id": elicitation["id"], "result": { "action": "decline" } });
    assert_eq!(post(&test_server, "", &session, &no.to_string()).await.status, 202);
    let mut rest = String::new();
    tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_string(&mut rest)).await.expect("its end").unwrap();
    assert!(rest.contains(r#""id":7"#), "{rest}");
    let after = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    assert_eq!(post(&test_server, "", &session, after).await.status, 200, "its request has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn id_of_an_abandoned_call_is_in_progress_until_the_call_ends() {
    let test_server = open(SessionLimits::default()).await;
    let session = initialize_with(&test_server, "", json!({ "elicitation": {} })).await.unwrap();
    complete(&test_server, "", &session).await;
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    for id in [7, 8] {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "skill.execute", "arguments": { "skill_id": "ledger", "inputs": { "amounts": [1, 2] } },
        }});
        let (stream, elicitation) = elicited(&test_server, "", &session, &call).await;
        drop(stream);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(post(&test_server, "", &session, &ping(id)).await.status, 409);
        let end = if id == 7 {
            json!({ "jsonrpc": "2.0", "id": elicitation["id"], "result": { "action": "decline" } })
        } else {
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
        };
        assert_eq!(post(&test_server, "", &session, &end.to_string()).await.status, 202);
        let started = Instant::now();
        while post(&test_server, "", &session, &ping(id)).await.status == 409 {
            assert!(started.elapsed() < WAIT_TIMEOUT, "the id is not free");
        }
        assert_eq!(post(&test_server, "", &session, &ping(id)).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_question_ends_unless_the_client_listens() {
    let resume = Duration::from_millis(300);
    let test_server = open(SessionLimits { resume, ..SessionLimits::default() }).await;
    let session = initialize_with(&test_server, "", json!({ "elicitation": {} })).await.unwrap();
    complete(&test_server, "", &session).await;
    let mut listener = test_server.connect().await;
    let get = format!(
        "GET /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n",
        test_server.address
    );
    listener.write_all(get.as_bytes()).await.unwrap();
    assert!(listener.read(&mut [0; 64]).await.unwrap() > 0);
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "skill.execute", "arguments": { "skill_id": "ledger", "inputs": { "amounts": [1, 2] } },
    }});
    drop(elicited(&test_server, "", &session, &call).await);
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    tokio::time::sleep(4 * resume).await;
    assert_eq!(post(&test_server, "", &session, ping).await.status, 409, "it can be answered");
    drop(listener);
    let started = Instant::now();
    while post(&test_server, "", &session, ping).await.status == 409 {
        assert!(started.elapsed() < WAIT_TIMEOUT, "the call does not end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_call_with_a_large_body_counts_until_it_ends() {
    let names = [("ana", &[Scope::Read, Scope::Run, Scope::Decide][..])];
    let (test_server, [ana]) = TestServer::with_keys(TestHome::new(), SessionLimits::default(), names).await;
    let session = initialize_with(&test_server, &ana, json!({ "elicitation": {} })).await.unwrap();
    complete(&test_server, &ana, &session).await;
    let call = |id: u64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "skill.execute", "_meta": { "padding": "x".repeat(100_000) },
            "arguments": { "skill_id": "ledger", "inputs": { "amounts": [1, 2] } },
        }})
    };
    for id in 10..14 {
        drop(elicited(&test_server, &ana, &session, &call(id)).await);
    }
    assert_eq!(post(&test_server, &ana, &session, &call(14).to_string()).await.status, 429);
    let headers = [("x-api-key", ana.as_str()), ("mcp-session-id", &session)];
    assert_eq!(test_server.ask("DELETE", "/mcp", &headers, "").await.status, 204);
    let next = initialize_with(&test_server, &ana, json!({ "elicitation": {} })).await.unwrap();
    complete(&test_server, &ana, &next).await;
    let started = Instant::now();
    while post(
        &test_server,
        &ana,
        &next,
        &json!({ "jsonrpc": "2.0", "id": 15, "method": "tools/call", "params": {
            "name": "skill.execute", "_meta": { "padding": "x".repeat(100_000) }, "arguments": {},
        }})
        .to_string(),
    )
    .await
    .status
        == 429
    {
        assert!(started.elapsed() < WAIT_TIMEOUT, "the permits are not returned");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_a_call_reads_no_complete_run() {
    let test_server = open(SessionLimits::default()).await;
    let watched = test_server.waiting().await;
    let session = initialize(&test_server, "").await.unwrap();
    complete(&test_server, "", &session).await;
    let call = async |id: u64, tool: &str, arguments: Value| {
        let meta = json!({ "progressToken": format!("token-{id}") });
        let params = json!({ "name": tool, "_meta": meta, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        post(&test_server, "", &session, &call.to_string()).await.body
    };
    let execution =
        json!({ "skill_id": "ledger", "inputs": { "amounts": [1, 2] }, "idempotency_key": "ledger-1" });
    // The second call finds the run of the first one.
    for id in [7, 8] {
        let answer = call(id, "skill.execute", execution.clone()).await;
        assert!(answer.contains("confirmation_required"), "{answer}");
        assert!(answer.contains("add completed (1 of 2)"), "{answer}");
    }
    let attachment = json!({ "skill_id": "watch", "target_type": "run", "target_ref": watched });
    let answer = call(9, "skill.attach", attachment).await;
    assert!(answer.contains("look completed (1 of 1)"), "{answer}");
    let operations = test_server.core.diagnostics().await.unwrap().operations;
    assert!(operations.contains_key("run_events") && !operations.contains_key("run"), "{operations:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handshake_times_out() {
    let soon = Duration::from_millis(200);
    let test_server = open(SessionLimits { handshake: soon, ..SessionLimits::default() }).await;
    let (done, half) =
        (initialize(&test_server, "").await.unwrap(), initialize(&test_server, "").await.unwrap());
    complete(&test_server, "", &done).await;
    gone(&test_server, "", &half).await;
    assert_eq!(ping(&test_server, "", &done).await, 200);
}
