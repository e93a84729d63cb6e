//! Who may call, how often, and under which trace and key.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use skills_api::operations::{
    Caller, Principal, Scope, Service, call_permit, complete_result_permit, large_response_permit, operation,
};
use skills_api::{Code, CoreParts, Error, Origin, RateLimit, new_key};
use skills_http::{Authenticator, ServiceKeys, Settings};
use skills_mcp::SessionLimits;
use skills_skill::contract::{Endpoint, ServiceTarget};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::events::Stream;
use super::mcp_sessions::{complete, elicited, initialize, initialize_with, post};
use super::test_server::{Answer, TestServer, WAIT_TIMEOUT};
use crate::runs_place::TestHome;

/// A service with authentication, and keys of a reader, of one who starts runs, and of one who decides.
pub async fn keyed() -> (TestServer, [String; 3]) {
    let names: [(&str, &[Scope]); 3] = [
        ("reader", &[Scope::Read]),
        ("runner", &[Scope::Read, Scope::Run]),
        ("decider", &[Scope::Read, Scope::Decide]),
    ];
    TestServer::with_keys(TestHome::new(), SessionLimits::default(), names).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admin_reads_files_of_agents() {
    let place = TestHome::new();
    place.write("skills/agents/auditor.yaml", "# by kim\nid: auditor\nprompt: You audit.\n");
    place.write("skills/agents/monitor.yaml", "datadog: {api_key: 0123456789abcdef}\n");
    let names: [(&str, &[Scope]); 2] = [("reader", &[Scope::Read]), ("admin", &[Scope::Read, Scope::Admin])];
    let (test_server, keys) = TestServer::with_keys(place, SessionLimits::default(), names).await;
    let ask = async |key: &str| test_server.ask("GET", "/v1/agents", &[("x-api-key", key)], "").await;
    let [reader, admin] = [ask(&keys[0]).await, ask(&keys[1]).await];
    for text in ["by kim", "0123456789abcdef"] {
        assert!(admin.body.contains(text), "{}", admin.body);
        assert!(!reader.body.contains(text), "{}", reader.body);
    }
    let listed = reader.json();
    assert_eq!(listed["agents"][0]["agent"]["prompt"], "You audit.");
    assert_eq!(listed["agents"][1]["problems"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_too_many_clauses_is_refused() {
    let test_server = TestServer::open().await;
    let draft = |clauses: usize| json!({ "skill_id": "ledger", "description": "Adds amounts. ".repeat(clauses), "clauses": true });
    let refused = test_server.post("/v1/skills/draft", &draft(65)).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
    assert_eq!(test_server.post("/v1/skills/draft", &draft(64)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn lengths_of_the_schema_are_enforced_and_errors_are_short() {
    let test_server = TestServer::open().await;
    let draft = json!({ "skill_id": "ledger", "intent": "word ".repeat(4_001) });
    let refused = test_server.post("/v1/skills/draft", &draft).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
    assert_eq!(refused.message(), "`intent` has 20005 characters; the maximum is 20000");
    // The message names the unknown argument, of a megabyte of paths.
    let name = "/00/00 ".repeat(150_000);
    let refused =
        test_server.post("/v1/skills/discover", &json!({ (name): 1, "intent": "/0".repeat(9_000) })).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
    assert!(refused.body.len() < 30_000, "{} bytes", refused.body.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_for_the_limits_of_their_caller_and_health_checks_do_not() {
    let (test_server, [reader, ..]) = keyed().await;
    let metrics = async || {
        test_server.ask("GET", "/v1/metrics/prometheus", &[("x-api-key", reader.as_str())], "").await.status
    };
    assert_eq!(metrics().await, 200);
    // As many as may run and wait.
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    for name in ["reader", "anyone"] {
        let principal = Principal { name: name.to_owned(), scopes: BTreeSet::new() };
        let caller = Arc::new(Caller { principal: Some(principal), ..Caller::anyone() });
        loop {
            let caller = Arc::clone(&caller);
            let mut permit = Box::pin(async move { call_permit(&caller).await });
            match futures::poll!(&mut permit) {
                Poll::Ready(Ok(permit)) => running.push(permit),
                Poll::Ready(Err(error)) => {
                    assert_eq!(error.code, Code::RateLimited);
                    break;
                }
                Poll::Pending => waiting.push(permit),
            }
        }
    }
    assert_eq!(metrics().await, 429);
    assert_eq!(test_server.get("/v1/health").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn listening_streams_of_unknown_length_do_not_count_as_large_bodies() {
    let (test_server, [reader, ..]) = keyed().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": { "resourcesListChanged": true },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
    .to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nx-api-key: {reader}\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: subscriptions/listen\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        test_server.address,
        body.len()
    );
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = test_server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        tokio::time::timeout(WAIT_TIMEOUT, stream.read_exact(&mut head)).await.expect("a response").unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        streams.push(stream);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn key_allows_its_scopes_and_its_name_is_recorded() {
    let (test_server, [reader, runner, decider]) = keyed().await;
    for open in ["/livez", "/readyz", "/openapi.json", "/docs", "/v1/health"] {
        assert_eq!(test_server.get(open).await.status, 200, "{open}");
    }
    for closed in ["/v1/skills/list", "/v1/metrics/prometheus", "/v1/nowhere", "/v1/events"] {
        let answer = test_server.get(closed).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{closed}");
        assert_eq!(answer.header("www-authenticate"), Some("bearer"));
    }
    let wrong = test_server.ask("GET", "/v1/skills/list", &[("x-api-key", "skw_wrong")], "").await;
    assert_eq!(wrong.status, 401);
    assert!(!wrong.body.contains("skw_wrong"), "a key is not repeated");
    let bearer = format!("Bearer {reader}");
    assert_eq!(
        test_server.ask("GET", "/v1/skills/list", &[("authorization", &bearer)], "").await.status,
        200
    );

    let who = test_server.ask("GET", "/v1/caller", &[("x-api-key", &runner)], "").await.json();
    assert_eq!(who, json!({ "name": "runner", "scopes": ["read", "run"] }));

    let body = json!({ "inputs": { "amounts": [1] }, "started_by": "somebody else" }).to_string();
    let path = "/v1/skills/ledger/execute/async";
    let refused = test_server.ask("POST", path, &[("x-api-key", &reader)], &body).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));
    assert!(
        refused.message().contains("`run`") && refused.message().contains("reader"),
        "{}",
        refused.message()
    );
    let launched = test_server.ask("POST", path, &[("x-api-key", &runner)], &body).await.json();
    assert_eq!(launched["run"]["started_by"], "runner", "a name that is given counts for nothing");
    let run = launched["run"]["id"].as_str().unwrap();
    test_server.ask("POST", &format!("/v1/runs/{run}/settle"), &[("x-api-key", &runner)], "").await;
    let approve = format!("/v1/runs/{run}/approve");
    assert_eq!(test_server.ask("POST", &approve, &[("x-api-key", &runner)], "").await.status, 403);
    let unconfirmed =
        test_server.ask("POST", &approve, &[("x-api-key", &decider)], "{\"approver\": \"eve\"}").await;
    assert_eq!(unconfirmed.code(), "confirmation_required");
    let body = unconfirmed.json()["error"]["reason"]["send"]["body"].to_string();
    let decided = test_server.ask("POST", &approve, &[("x-api-key", &decider)], &body).await;
    assert_eq!(decided.status, 200, "{}", decided.body);
    let shown =
        test_server.ask("GET", &format!("/v1/runs/{run}"), &[("x-api-key", &reader)], "").await.json();
    assert!(shown.to_string().contains("\"approver\":\"decider\"") && !shown.to_string().contains("\"eve\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_upstream_bodies_are_for_admin_alone() {
    let upstream = failing_upstream().await;
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut place = super::faulty_bundles::place(&mute);
    let reach = ServiceTarget::Http { url: format!("http://{upstream}"), headers: BTreeMap::new() };
    place.config.services.insert("gone".to_owned(), Endpoint { reach, timeout: None });
    let names: [(&str, &[Scope]); 2] =
        [("runner", &[Scope::Read, Scope::Run]), ("admin", &[Scope::Read, Scope::Run, Scope::Admin])];
    let (test_server, [runner, admin]) = TestServer::with_keys(place, SessionLimits::default(), names).await;
    let secrets = ["hunter2", &upstream.to_string(), "/ask", "binding\":"];
    let get = async |key: &str, path: &str| test_server.ask("GET", path, &[("x-api-key", key)], "").await;
    let key = [("x-api-key", runner.as_str())];
    let failed = test_server.ask("POST", "/v1/skills/gone/execute", &key, "{}").await;
    assert_eq!((failed.status, failed.code().as_str()), (502, "upstream_failure"), "{}", failed.body);
    let reason = &failed.json()["error"]["reason"];
    assert_eq!(
        reason["error"]["reason"],
        json!({ "kind": "error_answer", "capability": "test.gone", "status": 500 })
    );
    let run = reason["run_id"].as_str().unwrap().to_owned();
    let one = test_server.ask("POST", "/v1/capabilities/test.gone/execute", &key, "{}").await;
    let follow = [("x-api-key", runner.as_str()), ("accept", "text/event-stream")];
    let stream = test_server.stream_until("run.failed", &format!("/v1/runs/{run}/events"), &follow).await;
    let paths = [format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events"), "/v1/runs".to_owned()];
    let mut responses = vec![failed.body, one.body, stream];
    for path in &paths {
        responses.push(get(&runner, path).await.body);
    }
    // What a sidecar receives is read by others than the callers of the run.
    for (kind, reference) in [("run", run.clone()), ("output", format!("{run}/try"))] {
        let body = json!({ "target_type": kind, "target_ref": reference }).to_string();
        let attached = test_server.ask("POST", "/v1/skills/watch/attach", &key, &body).await.json();
        let id = attached["execution"]["id"].as_str().unwrap_or_else(|| panic!("{attached}"));
        let stored = get(&admin, &format!("/v1/runs/{id}")).await.json()["run"]["target"].clone();
        assert!(stored["content"].to_string().contains("upstream_failure"), "{stored}");
        responses.push(stored.to_string());
    }
    for text in &responses {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    // Whether a run matches a filter would reveal them too, character by character.
    for filter in ["error:hunter2", "hunter2", "error:%2Fask", "target:hunter2"] {
        let found = get(&runner, &format!("/v1/runs?where={filter}")).await.json();
        assert_eq!(found["runs"], json!([]), "{filter}");
    }
    for path in ["/v1/runs", "/v1/facets"] {
        let refused = get(&runner, &format!("{path}?where=detail:hunter2")).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{path}");
    }
    let found = get(&admin, "/v1/runs?where=detail:hunter2").await.json();
    assert_eq!(found["runs"].as_array().unwrap().len(), 2, "of the skill and of the capability");
    let complete = get(&admin, &paths[0]).await.body;
    assert!(complete.contains("hunter2") && complete.contains(&upstream.to_string()), "{complete}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admin_sees_what_an_obstacle_names() {
    let names: [(&str, &[Scope]); 2] = [
        ("decider", &[Scope::Read, Scope::Run, Scope::Decide]),
        ("admin", &[Scope::Read, Scope::Decide, Scope::Admin]),
    ];
    let (test_server, [decider, admin]) =
        TestServer::with_keys(TestHome::new(), SessionLimits::default(), names).await;
    let ask = async |key: &str, method: &str, path: &str, body: &str| {
        test_server.ask(method, path, &[("x-api-key", key)], body).await
    };
    let inputs = r#"{"inputs": {"amounts": [1]}}"#;
    let waiting = ask(&decider, "POST", "/v1/skills/ledger/execute", inputs).await.json();
    let run = waiting["error"]["reason"]["run_id"].as_str().unwrap_or_else(|| panic!("{waiting}"));
    let path = format!("/v1/runs/{run}");
    std::fs::remove_file(test_server.place.path("skills/ledger/scripts/book.sh")).unwrap();
    for (key, is_admin) in [(&decider, false), (&admin, true)] {
        let sheet = ask(key, "GET", &path, "").await.json()["sheet"].clone();
        let body = json!({ "step": sheet["step"], "inputs_digest": sheet["inputs_digest"] }).to_string();
        let refused = ask(key, "POST", &format!("{path}/approve"), &body).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "invalid_configuration"));
        let blocked = sheet["blocked"].as_str().unwrap();
        for text in [blocked, &refused.message()] {
            assert!(text.contains("`test.ledger.book`") && text.contains("you can still deny it"), "{text}");
        }
        for text in [blocked, &refused.body] {
            assert_eq!(text.contains("ledger-book"), is_admin, "{text}");
            assert_eq!(text.contains("under `services:`"), is_admin, "{text}");
        }
        assert_eq!(sheet["blocked_public"].is_string(), is_admin, "{sheet}");
        assert_eq!(sheet["binding"], "no binding is available");
        assert_eq!(refused.json()["error"]["reason"]["kind"], "not_configured");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn preview_states_why_its_caller_may_not_approve() {
    let place = TestHome::new();
    let policy = "approvals: {id: ledger, need: 2, not_by: starter}\n";
    place.write("home/.config/skill-workbench/policy.yaml", policy);
    let scopes: &[Scope] = &[Scope::Read, Scope::Run, Scope::Decide];
    let names = [("lee", scopes), ("ana", scopes), ("bo", scopes)];
    let (test_server, [lee, ana, bo]) = TestServer::with_keys(place, SessionLimits::default(), names).await;
    let ask = async |key: &str, method: &str, path: &str, body: &str| {
        test_server.ask(method, path, &[("x-api-key", key)], body).await.json()
    };
    let inputs = r#"{"inputs": {"amounts": [1]}}"#;
    let waiting = ask(&lee, "POST", "/v1/skills/ledger/execute", inputs).await;
    let run = waiting["error"]["reason"]["run_id"].as_str().unwrap_or_else(|| panic!("{waiting}"));
    let path = format!("/v1/runs/{run}");
    let sheet = async |key: &str| ask(key, "GET", &path, "").await["sheet"].clone();
    let first = sheet(&ana).await;
    assert_eq!(first["not_approver"], Value::Null);
    let body = json!({ "step": first["step"], "inputs_digest": first["inputs_digest"] }).to_string();
    ask(&ana, "POST", &format!("{path}/approve"), &body).await;
    let of_starter = sheet(&lee).await["not_approver"].clone();
    assert_eq!(of_starter, "lee started the run and cannot approve it; another person must");
    let of_first = sheet(&ana).await["not_approver"].clone();
    assert_eq!(of_first, "ana has already approved; another person must approve, too");
    assert_eq!(sheet(&bo).await["not_approver"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admin_sees_where_the_store_is() {
    let names: [(&str, &[Scope]); 2] =
        [("reader", &[Scope::Read]), ("admin", &[Scope::Read, Scope::Run, Scope::Admin])];
    let (test_server, [reader, admin]) =
        TestServer::with_keys(TestHome::new(), SessionLimits::default(), names).await;
    let diagnostics = async |key: &str| {
        test_server.ask("GET", "/v1/skills/diagnostics", &[("x-api-key", key)], "").await.json()
    };
    let home = test_server.place.path("home").display().to_string();
    // Before and after a run has created the store.
    for _ in 0..2 {
        let (shown, complete) = (diagnostics(&reader).await, diagnostics(&admin).await);
        assert_ne!(shown["counting"]["place"], complete["counting"]["place"]);
        assert_eq!(shown["counting"]["file"], Value::Null);
        for member in ["counting", "cache"] {
            assert!(!shown[member].to_string().contains(&home), "{}", shown[member]);
        }
        let inputs = r#"{"inputs": {"amounts": [1]}}"#;
        let key = [("x-api-key", admin.as_str())];
        test_server.ask("POST", "/v1/skills/ledger/execute/async", &key, inputs).await;
    }
}

/// Keys of a file, which counts how often a caller is authenticated.
struct CountedKeys(ServiceKeys, Arc<AtomicUsize>);

#[async_trait]
impl Authenticator for CountedKeys {
    async fn authenticate(&self, headers: &axum::http::HeaderMap) -> Result<Principal, Error> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.authenticate(headers).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_stream_has_the_current_rights_of_its_key() {
    let upstream = failing_upstream().await;
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut place = super::faulty_bundles::place(&mute);
    let reach = ServiceTarget::Http { url: format!("http://{upstream}"), headers: BTreeMap::new() };
    place.config.services.insert("gone".to_owned(), Endpoint { reach, timeout: None });
    let (secret, boss) = new_key("boss", [Scope::Read, Scope::Admin].into()).unwrap();
    let (run, runner) = new_key("runner", [Scope::Read, Scope::Run].into()).unwrap();
    let line = |key: &str| format!("  {key}\n");
    place.write("keys.yaml", &format!("keys:\n{}{}", line(&boss.line()), line(&runner.line())));
    let calls = Arc::new(AtomicUsize::new(0));
    let keys = ServiceKeys::open(None, Some(place.path("keys.yaml"))).unwrap();
    let authenticator = Arc::new(CountedKeys(keys, Arc::clone(&calls)));
    let core = place.open_with(CoreParts::Index).await;
    let settings = Settings { authenticator: Some(authenticator), ..Settings::default() };
    let (demoted, rest) = (line(&boss.line().replace("admin", "run")), line(&runner.line()));
    assert_ne!(demoted, line(&boss.line()));
    let files = (place.path("new.yaml"), place.path("keys.yaml"));
    let test_server = TestServer::over(place, core, settings).await;
    // Replaced atomically: a service that reads a partial file would end the stream.
    let write = |lines: &[&str]| {
        std::fs::write(&files.0, format!("keys:\n{}", lines.concat())).unwrap();
        std::fs::rename(&files.0, &files.1).unwrap();
    };
    // With the stream, the connection ends.
    let key = format!("x-api-key: {secret}\r\nconnection: close\r\n");
    let mut stream = Stream::over(test_server.connect().await, &test_server, "/v1/events", &key).await;
    while stream.next().await.unwrap().kind != "index" {}
    let failure = async |stream: &mut Stream| {
        let failed = test_server.ask("POST", "/v1/skills/gone/execute", &[("x-api-key", &run)], "{}").await;
        assert_eq!(failed.code(), "upstream_failure", "{}", failed.body);
        let mut events = String::new();
        while !events.contains("run.failed") {
            events += &stream.run().await.data.to_string();
        }
        events
    };
    assert!(failure(&mut stream).await.contains("hunter2"), "admin sees what the service answered");
    write(&[&demoted, &rest]);
    // No request is open but the stream.
    let before = calls.load(Ordering::SeqCst);
    let checked = async {
        while calls.load(Ordering::SeqCst) == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, checked).await.expect("the key is checked again");
    let public = failure(&mut stream).await;
    assert!(!public.contains("hunter2") && !public.contains(&upstream.to_string()), "{public}");
    write(&[&rest]);
    while stream.next().await.is_some() {}
    assert_eq!(test_server.ask("GET", "/v1/caller", &[("x-api-key", &secret)], "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_mcp_notifications_ends_with_its_key() {
    let place = TestHome::new();
    let (left, leaver) = new_key("leaver", [Scope::Read].into()).unwrap();
    let (_, other) = new_key("other", [Scope::Read].into()).unwrap();
    place.write("keys.yaml", &format!("keys:\n  {}\n  {}\n", leaver.line(), other.line()));
    let keys = ServiceKeys::open(None, Some(place.path("keys.yaml"))).unwrap();
    let core = place.open_with(CoreParts::Index).await;
    let (new, file) = (place.path("new.yaml"), place.path("keys.yaml"));
    let settings = Settings { authenticator: Some(Arc::new(keys)), ..Settings::default() };
    let test_server = TestServer::limited(place, core, settings, SessionLimits::default()).await;
    let session = initialize(&test_server, &left).await.unwrap();
    complete(&test_server, &left, &session).await;
    let mut stream = test_server.connect().await;
    let request = format!(
        "GET /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nx-api-key: {left}\r\nmcp-session-id: {session}\r\nconnection: close\r\n\r\n",
        test_server.address
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    std::fs::write(&new, format!("keys:\n  {}\n", other.line())).unwrap();
    std::fs::rename(&new, &file).unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut rest))
        .await
        .expect("the stream ends")
        .unwrap();
}

/// A service whose key file has an approver, and a function that replaces that file atomically with other scopes of the
/// approver.
async fn revocable() -> (TestServer, String, impl Fn(&str)) {
    let place = TestHome::new();
    let (key, approver) = new_key("approver", [Scope::Read, Scope::Run, Scope::Decide].into()).unwrap();
    let (new, file) = (place.path("new.yaml"), place.path("keys.yaml"));
    let line = approver.line();
    assert!(line.contains("[read, run, decide]"), "{line}");
    let write = move |scopes: &str| {
        let line = line.replace("[read, run, decide]", scopes);
        std::fs::write(&new, format!("keys:\n  {line}\n")).unwrap();
        std::fs::rename(&new, &file).unwrap();
    };
    write("[read, run, decide]");
    let keys = ServiceKeys::open(None, Some(place.path("keys.yaml"))).unwrap();
    let core = place.open_with(CoreParts::Index).await;
    let settings = Settings { authenticator: Some(Arc::new(keys)), ..Settings::default() };
    (TestServer::over(place, core, settings).await, key, write)
}

#[tokio::test(flavor = "multi_thread")]
async fn elicitation_cannot_use_revoked_scopes() {
    for answers_at_once in [false, true] {
        let (test_server, key, write) = revocable().await;
        let session = initialize_with(&test_server, &key, json!({ "elicitation": {} })).await.unwrap();
        complete(&test_server, &key, &session).await;
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "skill.execute", "arguments": { "skill_id": "ledger", "inputs": { "amounts": [1, 2] } },
        }});
        let (mut stream, elicitation) = elicited(&test_server, &key, &session, &call).await;
        write("[read, run]");
        if !answers_at_once {
            // The stream ends, and the session with its pending call.
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut rest));
            ended.await.expect("the stream ends").unwrap();
        }
        let yes = json!({ "jsonrpc": "2.0", "id": elicitation["id"], "result": { "action": "accept", "content": {} } });
        let answered = post(&test_server, &key, &session, &yes.to_string()).await;
        assert_eq!(answered.status, 404, "{}", answered.body);
        let runs = test_server.ask("GET", "/v1/runs", &[("x-api-key", &key)], "").await.json();
        assert_eq!(runs["runs"][0]["state"], "waiting_for_human", "{runs}");
        let session = initialize(&test_server, &key).await.unwrap();
        complete(&test_server, &key, &session).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_request_body_uses_the_current_rights() {
    let (test_server, key, write) = revocable().await;
    let path = "/v1/skills/ledger/execute/async";
    let body = json!({ "inputs": { "amounts": [1] } }).to_string();
    let launched = test_server.ask("POST", path, &[("x-api-key", &key)], &body).await.json();
    let run = launched["run"]["id"].as_str().unwrap();
    test_server.ask("POST", &format!("/v1/runs/{run}/settle"), &[("x-api-key", &key)], "").await;
    let shown = test_server.ask("GET", &format!("/v1/runs/{run}"), &[("x-api-key", &key)], "").await.json();
    let sheet = &shown["sheet"];
    let body = json!({ "step": sheet["step"], "inputs_digest": sheet["inputs_digest"] }).to_string();
    let head = format!(
        "POST /v1/runs/{run}/approve HTTP/1.1\r\nhost: {}\r\nx-api-key: {key}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        test_server.address,
        body.len()
    );
    let mut stream = test_server.connect().await;
    stream.write_all(format!("{head}{}", &body[..10]).as_bytes()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    write("[read, run]");
    stream.write_all(&body.as_bytes()[10..]).await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    let answer = Answer::of(&received);
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{}", answer.body);
}

/// A service that responds to every request with an error that contains a secret.
async fn failing_upstream() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer =
        || async { (axum::http::StatusCode::INTERNAL_SERVER_ERROR, "{\"error\":\"password=hunter2\"}") };
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn other_pages_cannot_use_a_service_without_keys() {
    let test_server = TestServer::open().await;
    let foreign = [("origin", "https://evil.example")];
    assert_eq!(test_server.ask("POST", "/v1/skills/ledger/execute", &foreign, "").await.status, 403);
    let rebound = [("host", "evil.example")];
    assert_eq!(test_server.ask("GET", "/v1/skills/list", &rebound, "").await.code(), "forbidden");
    let own = format!("http://{}", test_server.address);
    let own = [("origin", own.as_str()), ("accept", "application/json, text/event-stream")];
    assert_eq!(test_server.ask("GET", "/v1/skills/list", &own, "").await.status, 200);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "page", "version": "1" },
    }});
    assert_eq!(test_server.ask("POST", "/mcp", &own, &hello.to_string()).await.status, 200);
    for other in [foreign, rebound] {
        assert_eq!(test_server.ask("POST", "/mcp", &other, &hello.to_string()).await.status, 403);
    }
}

/// The weak tag of a response, whose head was converted to lower case.
fn weak(answer: &Answer) -> String {
    format!("W/{}", answer.header("etag").unwrap().strip_prefix("w/").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_its_host_once() {
    let test_server = TestServer::open().await;
    let own = test_server.address;
    for head in [
        format!("GET /v1/health HTTP/1.1\r\nhost: {own}\r\nhost: evil.example\r\n"),
        format!("GET /v1/health HTTP/1.1\r\nhost: {own}\r\nhost: {own}\r\n"),
        "GET /v1/health HTTP/1.1\r\n".to_owned(),
        format!("GET http://evil.example/v1/health HTTP/1.1\r\nhost: {own}\r\n"),
        format!("GET ftp://{own}/v1/health HTTP/1.1\r\nhost: {own}\r\n"),
        format!("GET /v1/health HTTP/1.1\r\nhost: {own}, evil.example\r\n"),
        format!("GET /v1/health HTTP/1.1\r\nhost: user@{own}\r\n"),
    ] {
        let answer = test_server.send(format!("{head}connection: close\r\n\r\n").as_bytes()).await;
        assert_eq!((answer.status, answer.code()), (400, "invalid_request".to_owned()), "{head}");
    }
    for head in [
        format!("GET http://{own}/v1/health HTTP/1.1\r\nhost: {own}\r\nconnection: close\r\n"),
        "GET /v1/health HTTP/1.0\r\n".to_owned(),
    ] {
        assert_eq!(test_server.send(format!("{head}\r\n").as_bytes()).await.status, 200, "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_line_feed_ends_no_line() {
    let test_server = TestServer::open().await;
    let own = test_server.address;
    let sound =
        format!("POST /v1/skills/discover HTTP/1.1\r\nhost: {own}\r\ncontent-type: application/json\r\n");
    for request in [
        format!("GET /v1/health HTTP/1.1\nhost: {own}\nconnection: close\n\n"),
        format!("GET /v1/health HTTP/1.1\r\nhost: {own}\nconnection: close\r\n\r\n"),
        format!("GET /v1/health HTTP/1.1\r\nhost: {own}\r\nconnection: close\n\r\n"),
    ] {
        let answer = test_server.send(request.as_bytes()).await;
        assert_eq!((answer.status, answer.code()), (400, "invalid_request".to_owned()), "{request:?}");
        // Behind a request with a body on the same connection, too.
        let body = "{\n\"intent\":\n\n\"x\"}";
        let length = body.len();
        let first = format!("{sound}content-length: {length}\r\n\r\n{body}");
        let both = test_server.send(format!("{first}{request}").as_bytes()).await;
        assert_eq!(both.status, 200, "{}", both.body);
        assert!(both.body.contains("HTTP/1.1 400"), "{}", both.body);
    }
    let body = "{\n\"intent\": \"x\"\n}\n";
    let chunked = format!(
        "{sound}connection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    assert_eq!(test_server.send(chunked.as_bytes()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_origin_requests_are_rejected() {
    let (test_server, [reader, ..]) = keyed().await;
    let list = async |site: &str| {
        let headers = [("x-api-key", reader.as_str()), ("sec-fetch-site", site)];
        test_server.ask("GET", "/v1/skills/list", &headers, "").await
    };
    for site in ["same-origin", "none"] {
        assert_eq!(list(site).await.status, 200, "{site}");
    }
    let open = TestServer::open().await;
    for site in ["cross-site", "same-site"] {
        let refused = list(site).await;
        assert_eq!((refused.status, refused.code()), (403, "forbidden".to_owned()), "{site}");
        let headers = [("sec-fetch-site", site)];
        assert_eq!(open.ask("GET", "/v1/skills/list", &headers, "").await.status, 403, "{site}");
        assert_eq!(open.ask("POST", "/v1/reload", &headers, "").await.status, 403, "{site}");
        assert_eq!(open.ask("POST", "/mcp", &headers, "{}").await.status, 403, "{site}");
        // A link on another page points to the documentation.
        assert_eq!(open.ask("GET", "/docs", &headers, "").await.status, 200, "{site}");
    }
    let origin = "https://docs.example";
    let named =
        TestServer::with(Settings { cors: vec![Origin::parse(origin).unwrap()], ..Settings::default() })
            .await;
    let headers = [("sec-fetch-site", "cross-site"), ("origin", origin)];
    assert_eq!(named.ask("GET", "/v1/skills/list", &headers, "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_list_is_not_sent_again() {
    let (test_server, [reader, ..]) = keyed().await;
    let list = async |headers: &[(&str, &str)]| test_server.ask("GET", "/v1/skills/list", headers, "").await;
    let known = [("x-api-key", reader.as_str())];
    let (one, other) = tokio::join!(list(&known), list(&known));
    assert_eq!((one.status, other.status), (200, 200));
    assert_eq!(one.body, other.body);
    let tag = &weak(&one);
    assert_eq!(one.header("cache-control"), Some("private, no-cache"));
    let again = list(&[("x-api-key", &reader), ("if-none-match", tag)]).await;
    assert_eq!((again.status, again.body.as_str(), &weak(&again)), (304, "", tag));
    assert!(again.header("x-trace-id").is_some());
    assert_eq!(list(&[("if-none-match", tag)]).await.status, 401, "a tag does not authenticate");
    let with_tag = [("x-api-key", reader.as_str()), ("if-none-match", tag)];
    let role = test_server.ask("GET", "/v1/skills/list?role=sidecar", &with_tag, "").await;
    assert_eq!(role.status, 200, "another list has another tag");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_responses_are_compressed_on_request() {
    let test_server = TestServer::open().await;
    let gzip = [("accept-encoding", "gzip, br")];
    let uncompressed = test_server.get("/openapi.json").await;
    assert_eq!(uncompressed.header("content-encoding"), None);
    let small = test_server.ask("GET", "/openapi.json", &gzip, "").await;
    assert_eq!(small.header("content-encoding"), Some("gzip"));
    assert!(small.header("vary").is_some_and(|vary| vary.contains("accept-encoding")), "{}", small.head);
    assert!(
        small.body.len() * 2 < uncompressed.body.len(),
        "{} of {} bytes",
        small.body.len(),
        uncompressed.body.len()
    );
    // Small bodies and streams are not compressed.
    let health = test_server.ask("GET", "/v1/health", &gzip, "").await;
    assert_eq!((health.header("content-encoding"), health.json()["status"].as_str()), (None, Some("ok")));
    let accepts = "accept-encoding: gzip\r\n";
    let mut stream = Stream::over(test_server.connect().await, &test_server, "/v1/events", accepts).await;
    while let Some(line) = stream.line().await.filter(|line| !line.is_empty()) {
        assert!(!line.to_ascii_lowercase().starts_with("content-encoding"), "{line}");
    }
    // One tag identifies the response in either form.
    let list = async |headers: &[(&str, &str)]| test_server.ask("GET", "/v1/skills/list", headers, "").await;
    let (one, other) = (list(&[]).await, list(&gzip).await);
    let tag = &weak(&one);
    assert_eq!(&weak(&other), tag);
    assert_eq!(list(&[gzip[0], ("if-none-match", tag)]).await.status, 304);
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_of_header_or_body_reaches_run_and_response() {
    let test_server = TestServer::open().await;
    let path = "/v1/skills/ledger/execute/async";
    let body = json!({ "inputs": { "amounts": [1] } });
    let by_header = test_server.ask("POST", path, &[("x-trace-id", "night-1")], &body.to_string()).await;
    assert_eq!(by_header.header("x-trace-id"), Some("night-1"));
    assert_eq!(by_header.json()["run"]["trace_id"], "night-1");
    let parent = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
    let by_parent = test_server.ask("POST", path, &parent, &body.to_string()).await;
    assert_eq!(by_parent.json()["run"]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let by_body =
        test_server.post(path, &json!({ "inputs": { "amounts": [1] }, "trace_id": "night-2" })).await;
    assert_eq!(by_body.header("x-trace-id"), Some("night-2"));
    assert_eq!(by_body.json()["run"]["trace_id"], "night-2");
    let made = test_server.post(path, &body).await;
    assert_eq!(made.header("x-trace-id"), made.json()["run"]["trace_id"].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_header_makes_a_launch_safe_to_repeat() {
    let test_server = TestServer::open().await;
    let launch = |name: &'static str, key: &'static str, body: Value| {
        let (test_server, body) = (&test_server, body.to_string());
        async move { test_server.ask("POST", "/v1/skills/ledger/execute/async", &[(name, key)], &body).await }
    };
    let body = json!({ "inputs": { "amounts": [1] } });
    let first = launch("x-idempotency-key", "order-7", body.clone()).await.json();
    let again = launch("idempotency-key", "order-7", body.clone()).await.json();
    assert_eq!((&first["idempotency"], &again["idempotency"]), (&json!("created"), &json!("reused")));
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    let other = launch("x-idempotency-key", "order-7", json!({ "inputs": { "amounts": [2] } })).await;
    assert_eq!((other.status, other.code().as_str()), (409, "idempotency_conflict"));
    let mut twice = body;
    twice["idempotency_key"] = json!("order-8");
    assert_eq!(launch("x-idempotency-key", "order-7", twice).await.code(), "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_caller_gets_retry_after() {
    let place = TestHome::new();
    let core = place.open_with(CoreParts::Index).await;
    let limiter = core.limiter(RateLimit { requests: 20, window_seconds: 3600 }).await.unwrap();
    let test_server =
        TestServer::over(place, core, Settings { limiter: Some(limiter), ..Settings::default() }).await;
    let first = test_server.get("/v1/capabilities").await;
    assert_eq!(first.header("ratelimit-policy"), Some("\"default\";q=20;w=3600"));
    assert!(first.header("ratelimit").unwrap().starts_with("\"default\";r=19;t="), "{}", first.head);
    let mut through = 1;
    let mut refused = Vec::new();
    for _ in 0..60 {
        let answer = test_server.get("/v1/capabilities").await;
        if answer.status == 200 { through += 1 } else { refused.push(answer) }
    }
    assert_eq!((through, refused.len()), (20, 41));
    for answer in &refused {
        assert_eq!((answer.status, answer.code().as_str()), (429, "rate_limited"));
        assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    }
    assert_eq!(test_server.get("/v1/health").await.status, 200, "health checks are never rate-limited");
    let counted = test_server.core.recorder().text().unwrap();
    assert!(counted.contains("limits_requests_total{outcome=\"denied\"} 41"), "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pages_of_allowed_origins_may_call() {
    let docs = "https://docs.example";
    let cors = vec![Origin::parse(docs).unwrap()];
    let test_server = TestServer::with(Settings { cors, ..Settings::default() }).await;
    let preflight = |origin: &'static str| {
        let asks = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,x-api-key"),
        ];
        let test_server = &test_server;
        async move { test_server.ask("OPTIONS", "/v1/skills/discover", &asks, "").await }
    };
    let preflighted = preflight(docs).await;
    assert_eq!((preflighted.status, preflighted.header("access-control-allow-origin")), (204, Some(docs)));
    assert!(preflighted.header("access-control-allow-headers").unwrap().contains("x-api-key"));
    assert!(preflighted.header("access-control-allow-methods").unwrap().contains("post"));
    let call = async |origin: &str, path: &str| test_server.ask("GET", path, &[("origin", origin)], "").await;
    for path in ["/v1/skills/list", "/v1/nowhere"] {
        let answer = call(docs, path).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some(docs), "{path}, errors too");
        assert_eq!(answer.header("vary"), Some("origin"));
        assert!(answer.header("access-control-expose-headers").unwrap().contains("x-trace-id"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    assert_eq!(call(docs, "/v1/skills/list").await.status, 200);
    for other in ["https://docs.example.evil.example", "http://docs.example", "null"] {
        assert_eq!(preflight(other).await.header("access-control-allow-origin"), None, "{other}");
        let answer = call(other, "/v1/skills/list").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None), "{other}");
    }
    // Without the setting no page may, and the response has no CORS headers.
    let closed = TestServer::open().await;
    let answer = closed.ask("GET", "/v1/skills/list", &[("origin", docs)], "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
}

/// The response of a caller with a key is held until it is sent; compression must not break that.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_compressed_response_is_complete() {
    let (test_server, [key]) =
        TestServer::with_keys(TestHome::new(), SessionLimits::default(), [("ana", &[Scope::Read])]).await;
    let queries: Vec<Value> = (0..500).map(|_| json!({ "query": "0" })).collect();
    let body = json!({ "queries": queries }).to_string();
    for encoding in ["identity", "gzip"] {
        let headers = [("x-api-key", key.as_str()), ("accept-encoding", encoding)];
        let report = test_server.ask("POST", "/v1/golden/report", &headers, &body).await;
        assert_eq!(report.status, 200, "{encoding}: {}", report.body);
        match report.header("content-length") {
            Some(length) => assert_eq!(report.body.len().to_string(), length),
            None => assert!(report.body.ends_with("\r\n0\r\n\r\n"), "{encoding}: incomplete"),
        }
        assert_eq!(report.header("content-encoding"), (encoding == "gzip").then_some("gzip"));
    }
}

/// A caller with the name of a key, whose limits the test uses up.
fn same_principal(name: &str) -> Caller {
    let principal = Principal { name: name.to_owned(), scopes: BTreeSet::new() };
    Caller { principal: Some(principal), ..Caller::anyone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn result_of_a_change_is_sent_over_the_response_limit() {
    let names: [(&str, &[Scope]); 1] = [("ana", &[Scope::Read, Scope::Run])];
    let (test_server, [key]) = TestServer::with_keys(TestHome::new(), SessionLimits::default(), names).await;
    let caller = same_principal("ana");
    let (mut permits, mut waiting) = (Vec::new(), Vec::new());
    loop {
        let mut next = Box::pin(large_response_permit(&caller, 2 << 20));
        match futures::poll!(&mut next) {
            Poll::Ready(Ok(permit)) => permits.push(permit),
            Poll::Ready(Err(error)) => break assert_eq!(error.code, Code::RateLimited),
            Poll::Pending => waiting.push(next),
        }
    }
    let body = json!({ "inputs": { "amounts": [1], "account": "x".repeat(1_900_000) } }).to_string();
    let headers = [("x-api-key", key.as_str())];
    let launched = test_server.ask("POST", "/v1/skills/ledger/execute/async", &headers, &body).await;
    assert_eq!(launched.status, 202, "{:.300}", launched.body);
    assert!(launched.body.len() > 1 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_tool_results_are_computed_one_at_a_time() {
    let names: [(&str, &[Scope]); 1] = [("ana", &[Scope::Read])];
    let (test_server, [key]) = TestServer::with_keys(TestHome::new(), SessionLimits::default(), names).await;
    let session = initialize(&test_server, &key).await.unwrap();
    complete(&test_server, &key, &session).await;
    let ask = async |explain: bool| {
        let arguments = json!({ "intent": "add amounts", "explain": explain });
        let params = json!({ "name": "skill.discover", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        post(&test_server, &key, &session, &call.to_string()).await.body
    };
    assert!(ask(true).await.contains("structuredContent"));
    let caller = same_principal("ana");
    let (mut permits, mut waiting) = (Vec::new(), Vec::new());
    loop {
        let mut next = Box::pin(complete_result_permit(&caller));
        match futures::poll!(&mut next) {
            Poll::Ready(Ok(permit)) => permits.push(permit),
            Poll::Ready(Err(error)) => break assert_eq!(error.code, Code::RateLimited),
            Poll::Pending => waiting.push(next),
        }
    }
    let refused = ask(true).await;
    assert!(refused.contains("rate_limited") && refused.contains("complete results"), "{refused}");
    let short = ask(false).await;
    assert!(short.contains("ledger") && !short.contains("rate_limited"), "{short}");
    drop((permits, waiting));
    assert!(ask(true).await.contains("structuredContent"));
}

/// A repeated launch of a few bytes, a wait for a run that has ended, or a command on it holds the complete run.
#[tokio::test(flavor = "multi_thread")]
async fn four_large_runs_of_a_principal_are_returned_at_a_time() {
    let test_server = TestServer::open().await;
    let service = Service { core: test_server.core.clone() as _, sessions: test_server.core.clone() as _ };
    let call = async |name: &str, caller: &Caller, arguments: &Value| {
        operation(name).unwrap().call(&service, caller, arguments.clone()).await.unwrap()
    };
    let caller = || {
        let scopes = BTreeSet::from([Scope::Read, Scope::Run]);
        Caller { principal: Some(Principal { name: "large runs".to_owned(), scopes }), ..Caller::anyone() }
    };
    let inputs = json!({ "amounts": [1], "account": "x".repeat(1_900_000) });
    let launch = json!({ "skill_id": "ledger", "inputs": inputs, "idempotency_key": "large" });
    let launched = call("skill.execute_async", &caller(), &launch).await;
    let wait = json!({ "run_id": launched["run"]["id"] });
    let assign = json!({ "run_id": launched["run"]["id"], "to": "kim" });
    let calls = [("skill.execute_async", &launch), ("run.settle", &wait), ("run.assign", &assign)];
    for (name, arguments) in calls {
        let unsent: Vec<Caller> = (0..4).map(|_| caller()).collect();
        for caller in &unsent {
            call(name, caller, arguments).await;
        }
        let last = caller();
        let mut waiting = Box::pin(call(name, &last, arguments));
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut waiting).await.is_err(), "{name}");
        drop(unsent);
        waiting.await;
    }
    let note = json!({ "run_id": launched["run"]["id"], "to": "kim", "note": "x" });
    for arguments in [&assign, &note] {
        let assigned = call("run.assign", &caller(), arguments).await;
        let account = assigned["run"]["inputs"]["account"].as_str();
        assert_eq!(account.map(str::len), Some(1_900_000), "the answer is complete");
    }
}

/// Each correction of a large input is an event with both values.
#[tokio::test(flavor = "multi_thread")]
async fn trace_ends_at_its_maximum_size() {
    let test_server = TestServer::open().await;
    let service = Service { core: test_server.core.clone() as _, sessions: test_server.core.clone() as _ };
    let call = async |name: &str, arguments: Value| {
        operation(name).unwrap().call(&service, &Caller::anyone(), arguments).await.unwrap()
    };
    let inputs = json!({ "name": "wrong.csv" });
    let launch = json!({ "skill_id": "upload", "inputs": inputs, "idempotency_key": "corrected" });
    let run = call("skill.execute_async", launch.clone()).await["run"]["id"].clone();
    let wait = json!({ "run_id": run });
    assert_eq!(call("run.settle", wait.clone()).await["state"], "failed");
    for (name, state) in [("x".repeat(5_000_000), "failed"), ("right.csv".to_owned(), "completed")] {
        call("run.resume", json!({ "run_id": run, "inputs": { "name": name } })).await;
        assert_eq!(call("run.settle", wait.clone()).await["state"], state);
    }
    let mut traced = launch;
    traced["include_trace"] = json!(true);
    let executed = call("skill.execute", traced).await;
    assert_eq!((&executed["run"]["id"], &executed["trace_truncated"]), (&run, &json!(true)));
    let trace = executed["trace"].as_array().unwrap();
    assert_eq!(trace.iter().filter(|event| event["kind"] == "run.resumed").count(), 1);
    let small = json!({ "skill_id": "upload", "inputs": { "name": "right.csv" }, "include_trace": true });
    let executed = call("skill.execute", small).await;
    assert_eq!(executed["trace"].as_array().unwrap().last().unwrap()["kind"], "run.completed");
    assert_eq!(executed["trace_truncated"], json!(null));
}

/// A folder of a bundle can have a name that no JSON can have: git and archives create them.
#[tokio::test(flavor = "multi_thread")]
async fn non_utf8_path_does_not_break_a_response() {
    let place = TestHome::new();
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    let bad = place.path("skills").join(name(b"bad\xff\xfename"));
    std::fs::create_dir(&bad).unwrap();
    std::fs::write(bad.join("SKILL.md"), "---\nname: bad\ndescription: Reads bad names.\n---\nBody\n")
        .unwrap();
    std::fs::create_dir(bad.join("references")).unwrap();
    std::fs::write(place.path("skills/ledger").join(name(b"notes\xff.md")), "text").unwrap();
    std::fs::create_dir_all(place.path("outside/elsewhere")).unwrap();
    symlink(place.path("skills/ledger"), place.path("skills").join(name(b"same\xff"))).unwrap();
    symlink(place.path("outside/elsewhere"), place.path("skills").join(name(b"out\xff"))).unwrap();
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    for path in [
        "/v1/skills/list",
        "/v1/skills/lint",
        "/v1/skills/visibility",
        "/v1/skills/budget",
        "/v1/skills/budget?client=codex",
        "/v1/skills/catalogue",
        "/v1/skills/collisions",
        "/v1/skills/governance",
        "/v1/clients/codex/view",
        "/v1/clients/claude-code/view",
        "/v1/skills/ledger/describe",
        "/v1/skills/diagnostics",
    ] {
        let answer = test_server.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    let list = test_server.get("/v1/skills/list").await.json();
    let refused = list["refused"].as_array().unwrap();
    let bad = refused.iter().find(|one| one["id"] == r"bad\xff\xfename").unwrap_or_else(|| panic!("{list}"));
    assert_eq!((&bad["reason"], &bad["findings"][0]["code"]), (&json!("not_utf8"), &json!("path-not-utf8")));
    assert!(bad["location"].as_str().unwrap().ends_with(r"/bad\xff\xfename/SKILL.md"), "{bad}");
}
