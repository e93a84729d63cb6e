//! Invalid requests, and the error of each.

use serde_json::{Value, json};
use skills_api::CoreParts;
use skills_http::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::test_server::{Answer, TestServer};
use crate::runs_place::TestHome;

/// Fails unless the response is this error, in the envelope of every interface and as a problem document.
#[track_caller]
pub fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let parsed = answer.json();
    assert_eq!((&parsed["status"], &parsed["detail"]), (&json!(status), &parsed["error"]["message"]));
    assert_eq!(parsed["type"], format!("/docs#{code}"));
    assert_eq!(parsed["trace_id"].as_str(), answer.header("x-trace-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_reported_with_location() {
    let test_server = TestServer::open().await;
    let post = |body: &'static str| test_server.ask("POST", "/v1/skills/discover", &[], body);
    let cut = post("{\"intent\":").await;
    is(&cut, 400, "invalid_request");
    assert!(cut.message().contains("line 1 column 10"), "{}", cut.message());
    for (body, expected) in [
        ("[1]", "the body is a list"),
        ("{\"intnt\": 1}", "intnt"),
        ("{\"intent\": 1}", "`intent` is 1; expected a string"),
        ("{\"intent\": {}}", "`intent` is an object; expected a string"),
        ("{\"intent\": \"a\", \"limit\": []}", "`limit` is a list; expected"),
        ("{\"intent\": \"a\", \"trace_id\": 1}", "`trace_id` is 1; expected a string"),
        ("{\"intent\": \"\"}", "empty"),
        ("{\"intent\": \"a\", \"limit\": 100000}", "1000"),
    ] {
        let answer = post(body).await;
        is(&answer, 400, "invalid_request");
        assert!(answer.message().contains(expected), "{body}: {}", answer.message());
    }
    let deep = format!("{{\"intent\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    is(&test_server.ask("POST", "/v1/skills/discover", &[], &deep).await, 400, "invalid_request");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    is(
        &test_server.ask("POST", "/v1/skills/discover", &form, "{\"intent\": \"a\"}").await,
        415,
        "unsupported_media_type",
    );
    let unknown = test_server.get("/v1/runs?stats=failed").await;
    is(&unknown, 400, "invalid_request");
    assert_eq!(unknown.json()["error"]["suggestions"], json!(["states"]));
    is(&test_server.get("/v1/runs?states=asleep").await, 400, "invalid_request");
    is(&test_server.get("/v1/events?wait_ms=60001").await, 400, "invalid_request");
    is(&test_server.get("/v1/runs?limit=%zz").await, 400, "invalid_request");
    // On every store: PostgreSQL has no texts with a NUL character.
    for nul in
        ["runs/a%00b", "runs/a%00b/events", "sessions/a%00b", "runs?where=a%00b", "runs?skill_id=a%00b"]
    {
        is(&test_server.get(&format!("/v1/{nul}")).await, 400, "invalid_request");
    }
    is(&test_server.get("/v1/runs?text=a%00b").await, 400, "invalid_request");
    let long = "a".repeat(60_000);
    is(&test_server.get(&format!("/v1/runs?text={long}")).await, 400, "invalid_request");
    is(&test_server.get(&format!("/v1/runs/{long}")).await, 400, "invalid_request");
    let short = "a".repeat(4096);
    is(&test_server.get(&format!("/v1/runs/{short}")).await, 404, "not_found");
    for list in ["/v1/runs", "/v1/skills/list", "/v1/skills/governance", "/v1/sessions"] {
        for limit in ["0", "1001"] {
            is(&test_server.get(&format!("{list}?limit={limit}")).await, 400, "invalid_request");
        }
    }
    for list in ["/v1/runs", "/v1/skills/list", "/v1/skills/governance"] {
        is(&test_server.get(&format!("{list}?cursor=")).await, 400, "invalid_request");
    }
    is(&test_server.get("/v1/skills/ledger/lines?intent=a&limit=1001").await, 400, "invalid_request");
    is(&test_server.get("/v1/events?limit=10001").await, 400, "invalid_request");
    is(&test_server.get("/v1/skills/%ff/describe").await, 400, "invalid_request");
    is(&test_server.ask("POST", "/v1/skills/discover?intent=a", &[], "").await, 400, "invalid_request");
    is(&test_server.ask("GET", "/v1/runs", &[("x-trace-id", "a b")], "").await, 400, "invalid_request");
    // A value for an object must be one, even if the items of a list would fit its members.
    let launch = "/v1/skills/ledger/execute/async";
    is(&test_server.post(launch, &json!({ "options": [true, "t-1"] })).await, 400, "invalid_request");
    let settings = test_server.ask("PATCH", "/v1/sessions/0198", &[], "{\"settings\": [null, null]}").await;
    is(&settings, 400, "invalid_request");
    assert!(settings.message().contains("`settings`") && settings.message().contains("an object"));
    let blank = [("x-idempotency-key", "")];
    is(&test_server.ask("POST", "/v1/skills/watch/attach/preview", &blank, "").await, 400, "invalid_request");
    let both = test_server.ask("POST", "/v1/runs/a1/cancel", &[], "{\"run_id\": \"b2\"}").await;
    assert!(both.message().contains("different values"), "{}", both.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_routes_suggest_similar_ones() {
    let test_server = TestServer::open().await;
    let slip = test_server.ask("POST", "/v1/runs/0198/aprove", &[], "").await;
    is(&slip, 404, "not_found");
    assert_eq!(slip.json()["error"]["suggestions"][0], "POST /v1/runs/{run_id}/approve");
    let method = test_server.ask("DELETE", "/v1/runs", &[], "").await;
    is(&method, 405, "method_not_allowed");
    assert_eq!(method.header("allow"), Some("get, head"));
    let skill = test_server.get("/v1/skills/ledgr/describe").await;
    is(&skill, 404, "not_found");
    assert_eq!(skill.json()["error"]["suggestions"], json!(["ledger"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_more_than_two_mebibytes_is_refused_before_it_is_read() {
    let test_server = TestServer::open().await;
    let large = format!("{{\"intent\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    is(&test_server.ask("POST", "/v1/skills/discover", &[], &large).await, 413, "payload_too_large");
    let stated = "POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                  content-length: 99999999999\r\n\r\n";
    is(&test_server.send(stated.as_bytes()).await, 413, "payload_too_large");
    // In chunks without a total length.
    let mut chunked = b"POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                        content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..40 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend(std::iter::repeat_n(b' ', 0x10000));
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    is(&test_server.send(&chunked).await, 413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_request_receives_its_error() {
    let test_server = TestServer::open().await;
    let send = async |head: &str, status: u16| {
        let mut stream = test_server.connect().await;
        let head =
            format!("{head} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", test_server.address);
        let length = 5 << 20;
        stream.write_all(format!("{head}content-length: {length}\r\n\r\n").as_bytes()).await.unwrap();
        // Like a program that writes a complete request before it reads: a reset connection fails here.
        stream.write_all(&vec![b' '; length]).await.expect("everything is taken");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("the answer is not lost");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
    };
    for _ in 0..5 {
        send("POST /v1/skills/discover", 413).await;
    }
    send("POST /v1/nowhere", 404).await;
    send("POST /v1/skills/list", 405).await;
    // It is not stored, and its slot is free for others.
    assert_eq!(test_server.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_contain_no_path_of_the_server() {
    let mut place = TestHome::new();
    place.config.trust.clear();
    place.write("skills/broken/SKILL.md", "---\nname: broken\n---\n");
    place.write("skills/odd/SKILL.md", "---\nname: odd\ndescription: Has a contract that is none.\n---\n");
    place.write("skills/odd/skill.yaml", "id: [\n");
    let root = place.path("skills");
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    let folder = root.parent().unwrap().display().to_string();
    for (name, arguments, code) in [
        ("skill.execute", json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } }), "untrusted"),
        ("skill.execute", json!({ "skill_id": "odd" }), "invalid_configuration"),
        ("skill.describe", json!({ "skill_id": "broken" }), "invalid_configuration"),
        ("skill.file", json!({ "skill_id": "ledger", "path": "scripts/none.sh" }), "not_found"),
    ] {
        let answer = test_server.call(name, arguments).await;
        assert_eq!(answer.code(), code, "{}", answer.body);
        assert!(!answer.body.contains(&folder), "{name}: {}", answer.body);
    }
    let untrusted = test_server
        .call("skill.execute", json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } }))
        .await;
    assert!(untrusted.message().contains("`skills trust ledger`"), "{}", untrusted.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_requests_have_a_code() {
    let test_server = TestServer::open().await;
    let call = |name: &'static str, arguments: Value| test_server.call(name, arguments);
    is(
        &call("skill.file", json!({ "skill_id": "ledger", "path": "../notes/SKILL.md" })).await,
        400,
        "path_escape",
    );
    is(&call("skill.execute", json!({ "skill_id": "notes" })).await, 409, "invalid_configuration");
    let attach =
        |kind: &str, place: &str| json!({ "skill_id": "watch", "target_type": kind, "target_ref": place });
    let notes = json!({ "skill_id": "notes", "target_type": "run", "target_ref": "01a0" });
    is(&call("skill.attach", notes).await, 400, "attach_invalid");
    is(&call("skill.attach", attach("run", "01a00000")).await, 404, "target_not_found");

    let asks = call("skill.execute", json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } })).await;
    is(&asks, 428, "confirmation_required");
    let run = asks.json()["error"]["reason"]["run_id"].clone();
    for checkpoint in [99, u64::MAX] {
        let replay = json!({ "run_id": run, "checkpoint_id": checkpoint });
        is(&call("run.replay", replay).await, 404, "checkpoint_not_found");
    }
    assert_eq!(call("run.deny", json!({ "run_id": run, "step": "book" })).await.status, 200);
    let late = call("run.approve", json!({ "run_id": run })).await;
    is(&late, 409, "invalid_transition");

    let keyed = |amount: u8| json!({ "skill_id": "ledger", "inputs": { "amounts": [amount] }, "idempotency_key": "order-7" });
    assert_eq!(call("run.launch", keyed(1)).await.json()["idempotency"], "created");
    assert_eq!(call("run.launch", keyed(1)).await.json()["idempotency"], "reused");
    is(&call("run.launch", keyed(2)).await, 409, "idempotency_conflict");

    let long = json!({ "skill_id": "ledger", "inputs": { "amounts": [1] }, "options": { "expires_in": 9_223_372_036_854_775_u64 } });
    is(&call("run.launch", long).await, 400, "invalid_request");
    is(&call("session.new", json!({ "cap": 65 })).await, 400, "invalid_request");
    let session = call("session.new", json!({ "cap": 1 })).await.json()["session_id"].clone();
    let tool = |name: &str, skill: &str| json!({ "session_id": session, "tool": name, "arguments": { "skill_id": skill } });
    is(&call("session.tool", tool("skills.nothing", "ledger")).await, 404, "not_found");

    let failed =
        call("skill.execute", json!({ "skill_id": "upload", "inputs": { "name": "wrong.csv" } })).await;
    assert!(
        failed.status >= 500 && failed.json()["error"]["reason"]["run_id"].is_string(),
        "{}",
        failed.body
    );
    let files = json!({ "skill_id": "watch", "options": { "files": { "a": "/etc/passwd" } } });
    is(&call("skill.execute", files).await, 400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_skill_does_not_run_and_changes_are_reported() {
    let mut place = TestHome::new();
    place.config.trust.clear();
    let core = place.open().await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    let ledger = json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } });
    is(&test_server.call("skill.execute", ledger).await, 403, "untrusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_message_is_rejected_with_a_json_rpc_error() {
    let test_server = TestServer::open().await;
    let headers = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
    let post = |body: &'static str| test_server.ask("POST", "/mcp", &headers, body);
    for (body, code, id) in [
        ("{\"jsonrpc\": \"2.0\",", -32_700, Value::Null),
        ("not json at all", -32_700, Value::Null),
        ("[]", -32_600, Value::Null),
        ("{\"id\": 7, \"method\": \"ping\"}", -32_600, json!(7)),
    ] {
        let answer = post(body).await;
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")), "{body}");
        let parsed = answer.json();
        assert_eq!((&parsed["error"]["code"], &parsed["id"]), (&json!(code), &id), "{body}: {parsed}");
    }
    let cut = post("{\"jsonrpc\":").await.message();
    assert!(cut.contains("line 1 column 11"), "{cut}");
    let form = [headers[0], ("content-type", "text/plain")];
    is(&test_server.ask("POST", "/mcp", &form, "{}").await, 415, "unsupported_media_type");
    let large = "x".repeat((2 << 20) + 1);
    assert_eq!(test_server.ask("POST", "/mcp", &headers, &large).await.status, 413);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
        "capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    assert_eq!(post(hello).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn transport_errors_have_the_common_shape() {
    let test_server = TestServer::open().await;
    let form = ("accept", "application/json, text/event-stream");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
        "capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = test_server.ask("POST", "/mcp", &[form], hello).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let old = ("mcp-protocol-version", "2025-06-18");
    let of = |id| [form, old, ("mcp-session-id", id)];
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let refused = [
        (test_server.ask("POST", "/mcp", &[("accept", "text/html")], ping).await, 406, "invalid_request"),
        (test_server.ask("POST", "/mcp", &of("never-began"), ping).await, 404, "not_found"),
        (test_server.ask("DELETE", "/mcp", &of("never-began"), "").await, 404, "not_found"),
        (test_server.ask("PUT", "/mcp", &[form], ping).await, 405, "method_not_allowed"),
        // The newest revision keeps no sessions.
        (
            test_server.ask("DELETE", "/mcp", &[("mcp-protocol-version", "2026-07-28")], "").await,
            405,
            "method_not_allowed",
        ),
        (
            test_server.ask("POST", "/mcp", &[form, ("origin", "https://evil.example")], ping).await,
            403,
            "forbidden",
        ),
    ];
    for (answer, status, code) in refused {
        is(&answer, status, code);
        let parsed = answer.json();
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{parsed}");
        assert_eq!((&parsed["instance"], parsed["trace_id"].is_string()), (&json!("/mcp"), true), "{parsed}");
        assert_eq!(answer.header("allow").is_some(), status == 405, "{}", answer.head);
    }
    let ended = test_server.ask("DELETE", "/mcp", &of(&session), "").await;
    assert_eq!((ended.status, ended.body.as_str()), (204, ""));
    is(&test_server.ask("POST", "/mcp", &of(&session), ping).await, 404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn stateless_tool_error_explains_how_to_name_a_session() {
    let test_server = TestServer::open().await;
    let call = |arguments: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": "skills.read", "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
        let test_server = &test_server;
        async move {
            let headers = [
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "skills.read"),
            ];
            let answer = test_server.ask("POST", "/mcp", &headers, &body).await;
            let events = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
            let parsed = events
                .chain([answer.body.as_str()])
                .filter_map(|text| serde_json::from_str::<Value>(text).ok())
                .find(|message| message["id"] == 7)
                .unwrap_or_else(|| panic!("{} {}", answer.head, answer.body));
            let text = parsed["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{parsed}"));
            serde_json::from_str::<Value>(text).unwrap()["error"].clone()
        }
    };
    let parsed = call(json!({ "path": "SKILL.md" })).await;
    assert_eq!(parsed["code"], "not_loaded", "{parsed}");
    let message = parsed["message"].as_str().unwrap();
    assert!(message.contains("pass `session_id` as returned by skills.load"), "{message}");
    assert_eq!(call(json!({ "session_id": 7 })).await["code"], "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_in_run_data_is_rejected_by_field() {
    let test_server = TestServer::open().await;
    let run = test_server.waiting().await;
    let decision = test_server.decision(&run).await;
    let mut noted = decision.clone();
    noted["notes"] = json!("yes\0");
    let launch = json!({ "skill_id": "ledger", "inputs": { "amounts": [1], "account": "\0" } });
    let mut labeled = json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } });
    labeled["options"] = json!({ "labels": { "env": "\0" } });
    let book = json!({ "capability_id": "test.ledger.book", "inputs": { "amount": 1, "account": "a\0" } });
    for (operation, arguments, field) in [
        ("skill.execute_async", launch, "`inputs.account`"),
        ("skill.execute_async", labeled, "env"),
        ("capability.execute", book, "`inputs.account`"),
        ("run.approve", noted, "`notes`"),
        ("run.deny", json!({ "run_id": run, "step": "book", "notes": "\0" }), "`notes`"),
        ("run.signal", json!({ "run_id": run, "name": "x", "payload": [{ "a": "\0" }] }), "`payload[0].a`"),
        ("run.signal", json!({ "run_id": run, "name": "x", "payload": { "a": ["\0"] } }), "`payload.a[0]`"),
        ("run.assign", json!({ "run_id": run, "to": "kim", "note": "\0" }), "`note`"),
        ("run.resume", json!({ "run_id": run, "inputs": { "account": "\0" } }), "`inputs.account`"),
    ] {
        let refused = test_server.call(operation, arguments).await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "invalid_request"),
            "{operation}: {}",
            refused.body
        );
        assert!(refused.message().contains(field), "{operation}: {}", refused.message());
    }
    // The escape of NUL is a text like any other.
    let assigned =
        test_server.call("run.assign", json!({ "run_id": run, "to": "kim", "note": "\\u0000" })).await.json();
    assert_eq!(assigned["run"]["options"]["assigned"]["note"], "\\u0000");
    assert_eq!(test_server.call("run.approve", decision).await.status, 200);
}
