//! Every code of the closed table, provoked by a request, and the same over MCP where a tool does it.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use skills_api::operations::{Scope, normalize_volatile_fields, operation};
use skills_api::{Code, CoreParts, RateLimit};
use skills_api::{KeyRing, new_key};
use skills_http::Settings;
use strum::IntoEnumIterator as _;
use tokio::time::Instant;

use super::connections::hasty;
use super::errors::is;
use super::faulty_bundles;
use super::starting::{FIRST_SCAN, starting};
use super::test_server::{Answer, TestServer, WAIT_TIMEOUT};
use super::tools::Tools;
use crate::runs_place::TestHome;

/// What was seen so far.
#[derive(Default)]
struct Seen {
    codes: BTreeSet<String>,
}

impl Seen {
    /// A request that results in this error, with its setup.
    #[track_caller]
    fn note(&mut self, code: Code, answer: &Answer) {
        is(answer, code.status(), &code.to_string());
        assert!(!answer.message().is_empty(), "{}", answer.body);
        self.codes.insert(code.to_string());
    }

    /// An operation that fails alike over HTTP and, as a tool, over MCP.
    async fn call(
        &mut self,
        test_server: &TestServer,
        tools: &Tools<'_>,
        code: Code,
        name: &str,
        arguments: Value,
    ) {
        let answer = test_server.call(name, arguments.clone()).await;
        self.note(code, &answer);
        let response = if operation(name).unwrap().tool {
            tools.error(name, &arguments).await
        } else if name == "session.tool" {
            let mut inside = arguments["arguments"].clone();
            inside["session_id"] = arguments["session_id"].clone();
            tools.error(arguments["tool"].as_str().unwrap(), &inside).await
        } else {
            return;
        };
        // A failed call of a runtime tool is an entry of the transcript each time.
        let without_details = |error: &Value| {
            let mut error = normalize_volatile_fields(error);
            if name == "session.tool" {
                error.as_object_mut().unwrap().shift_remove("reason");
            }
            error
        };
        assert_eq!(
            without_details(&response),
            without_details(&answer.json()["error"]),
            "{name}: MCP beside HTTP"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_code_has_a_request() {
    let mut seen = Seen::default();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = faulty_bundles::place(&mute);
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    let tools = Tools::of(&test_server, None).await;
    skills_and_runs(&mut seen, &test_server, &tools).await;
    send_run_commands(&mut seen, &test_server).await;
    sessions(&mut seen, &test_server, &tools).await;
    let large = "x".repeat(2 * 1024 * 1024 + 1);
    seen.note(Code::PayloadTooLarge, &test_server.ask("POST", "/v1/skills/discover", &[], &large).await);
    seen.note(Code::NotImplemented, &test_server.ask("BREW", "/v1/skills/list", &[], "").await);
    seen.note(Code::NotImplemented, &test_server.ask("BREW", "/v1/nowhere", &[], "").await);
    seen.note(Code::MethodNotAllowed, &test_server.ask("PUT", "/v1/skills/list", &[], "").await);
    let form = [("content-type", "text/plain")];
    seen.note(Code::UnsupportedMediaType, &test_server.ask("POST", "/v1/skills/discover", &form, "{}").await);
    callers(&mut seen).await;
    slow(&mut seen).await;
    lost_store(&mut seen, &test_server).await;
    let all: BTreeSet<String> = Code::iter().map(|code| code.to_string()).collect();
    let never: Vec<&String> = all.difference(&seen.codes).collect();
    assert!(never.is_empty(), "no request provokes {never:?}");
}

async fn skills_and_runs(seen: &mut Seen, test_server: &TestServer, tools: &Tools<'_>) {
    let ledger = || json!({ "skill_id": "ledger", "inputs": { "amounts": [1, 2] } });
    let upload = |name: &str| json!({ "skill_id": "upload", "inputs": { "name": name } });
    let mut strict = upload("right.csv");
    strict["options"] = json!({ "conformance": "strict" });
    let keyed = |name: &str| {
        let mut launch = upload(name);
        launch["idempotency_key"] = json!("order-7");
        launch
    };
    assert_eq!(test_server.call("skill.execute", keyed("right.csv")).await.status, 200);
    for (code, arguments) in [
        (Code::InvalidRequest, json!({ "skill_id": "ledger", "inputs": {} })),
        (Code::NotFound, json!({ "skill_id": "ledgr" })),
        (Code::InvalidConfiguration, json!({ "skill_id": "notes" })),
        (Code::Untrusted, json!({ "skill_id": "stranger" })),
        (Code::MaxDepthExceeded, json!({ "skill_id": "deep-0" })),
        (Code::ConformanceUnmet, strict),
        (Code::IdempotencyConflict, keyed("other.csv")),
        (Code::ConfirmationRequired, ledger()),
        (Code::RuntimeError, upload("wrong.csv")),
        (Code::SafetyDenied, json!({ "skill_id": "guarded" })),
        (Code::GateExecutionFailure, json!({ "skill_id": "unjudged" })),
        (Code::StepTimeout, json!({ "skill_id": "slow" })),
        (Code::UpstreamTimeout, json!({ "skill_id": "mute" })),
        (Code::UpstreamFailure, json!({ "skill_id": "gone" })),
    ] {
        seen.call(test_server, tools, code, "skill.execute", arguments).await;
    }
    let alone = json!({ "intent": "book a sum", "skill": "ledgr" });
    seen.call(test_server, tools, Code::NotFound, "skill.discover", alone).await;
    let attach = |skill: &str| json!({ "skill_id": skill, "target_type": "run", "target_ref": "01a00000" });
    seen.call(test_server, tools, Code::AttachInvalid, "skill.attach", attach("notes")).await;
    seen.call(test_server, tools, Code::TargetNotFound, "skill.attach", attach("watch")).await;
}

/// Nothing is accepted, and the service is not ready, once the file of the store is deleted.
async fn lost_store(seen: &mut Seen, test_server: &TestServer) {
    assert_eq!(test_server.get("/readyz").await.status, 200);
    let store = test_server.place.path("home/.local/share/skill-workbench/runs.db");
    std::fs::rename(&store, store.with_extension("moved")).unwrap();
    let launch = json!({ "skill_id": "upload", "inputs": { "name": "right.csv" } });
    let refused = test_server.call("skill.execute_async", launch.clone()).await;
    seen.note(Code::StoreUnavailable, &refused);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(refused.json()["error"]["reason"]["cause"], "missing");
    let ready = test_server.get("/readyz").await;
    assert_eq!((ready.status, ready.header("retry-after")), (503, Some("5")));
    assert_eq!(ready.json()["store"]["cause"], "missing", "{}", ready.body);
    let health = test_server.get("/v1/health").await;
    seen.note(Code::StoreUnavailable, &health);
    assert!(!health.body.contains("runs.db"), "everybody may ask: {}", health.body);
    assert_eq!(test_server.get("/livez").await.status, 200);
    std::fs::rename(store.with_extension("moved"), &store).unwrap();
    assert_eq!(test_server.call("skill.execute_async", launch).await.status, 202);
    assert_eq!(test_server.get("/v1/health").await.status, 200);
}

/// Commands on runs, which are not tools.
async fn send_run_commands(seen: &mut Seen, test_server: &TestServer) {
    let run = test_server.waiting().await;
    let branch = json!({ "run_id": run, "checkpoint_id": 99 });
    seen.note(Code::CheckpointNotFound, &test_server.call("run.replay", branch).await);
    assert_eq!(test_server.call("run.deny", json!({ "run_id": run, "step": "book" })).await.status, 200);
    seen.note(Code::InvalidTransition, &test_server.call("run.approve", json!({ "run_id": run })).await);
    let wrong = json!({ "skill_id": "upload", "inputs": { "name": "wrong.csv" } });
    let failed = test_server.call("skill.execute", wrong).await.json()["error"]["reason"]["run_id"].clone();
    let contract = std::fs::read_to_string(test_server.place.path("skills/upload/skill.yaml")).unwrap();
    test_server
        .place
        .write("skills/upload/skill.yaml", &contract.replace("version: 1.0.0", "version: 1.1.0"));
    let resumed = test_server.call("run.resume", json!({ "run_id": failed })).await;
    seen.note(Code::SkillChanged, &resumed);
    assert!(resumed.message().contains("1.0.0 then, 1.1.0 now"), "{}", resumed.message());
}

async fn sessions(seen: &mut Seen, test_server: &TestServer, tools: &Tools<'_>) {
    let session = test_server.call("session.new", json!({ "cap": 1 })).await.json()["session_id"].clone();
    let tool =
        |name: &str, arguments: Value| json!({ "session_id": session, "tool": name, "arguments": arguments });
    let read = |path: &str| tool("skills.read", json!({ "path": path }));
    seen.call(test_server, tools, Code::NotLoaded, "session.tool", read("SKILL.md")).await;
    let two = tool("skills.load", json!({ "names": ["ledger", "notes"] }));
    seen.call(test_server, tools, Code::TooManySkills, "session.tool", two).await;
    let one = tool("skills.load", json!({ "names": ["ledger"] }));
    let loaded = test_server.call("session.tool", one).await.json();
    assert_eq!(loaded["result"]["active"][0]["name"], "ledger", "{loaded}");
    seen.call(test_server, tools, Code::PathEscape, "session.tool", read("../notes/SKILL.md")).await;
    let much = tool("skills.read", json!({ "path": "SKILL.md", "length": 1_u64 << 40 }));
    seen.call(test_server, tools, Code::PayloadTooLarge, "session.tool", much).await;
    let none = tool("skills.none", json!({}));
    assert_eq!(test_server.call("session.tool", none).await.code(), "not_found");
    let transcript = test_server.call("session.show", json!({ "session_id": session })).await.json();
    let response = transcript["transcript"].to_string();
    for code in ["not_loaded", "too_many_skills", "path_escape", "payload_too_large"] {
        assert!(response.contains(code), "a failed call is in the transcript too: {code} {response}");
    }
    crowd(seen, test_server).await;
    // What an older or broken program left in the store.
    let store = test_server.place.path("home/.local/share/skill-workbench/runs.db");
    let ended = rusqlite::Connection::open(store).unwrap().execute("UPDATE sessions SET document = '{}'", []);
    assert!(ended.unwrap() > 0);
    let spoilt = test_server.call("session.show", json!({ "session_id": session })).await;
    seen.call(test_server, tools, Code::InternalError, "session.tool", read("SKILL.md")).await;
    assert_eq!(spoilt.code(), "internal_error");
}

/// Many concurrent writers of one session: some get a retry error, and every accepted write is present.
async fn crowd(seen: &mut Seen, test_server: &TestServer) {
    let session = test_server.call("session.new", json!({})).await.json()["session_id"].clone();
    let say = json!({ "session_id": session, "speaker": "user", "text": "me first" });
    let end = Instant::now() + WAIT_TIMEOUT;
    let mut taken = 0;
    loop {
        let answers =
            futures::future::join_all((0..100).map(|_| test_server.call("session.say", say.clone()))).await;
        let (well, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        taken += well.len();
        for answer in &refused {
            seen.note(Code::SessionConflict, answer);
        }
        if !refused.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "no write conflicted");
    }
    let shown = test_server.call("session.show", json!({ "session_id": session })).await.json();
    assert_eq!(shown["transcript"].as_array().unwrap().len(), taken, "nothing is lost or there twice");
}

/// Timeouts: a body, and the first scan of a service that has just started.
async fn slow(seen: &mut Seen) {
    let test_server = TestServer::with(hasty()).await;
    let head = "POST /v1/skills/discover HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 50\r\n\r\n{";
    seen.note(Code::RequestTimeout, &test_server.send(head.as_bytes()).await);
    let test_server = starting(Duration::from_millis(50)).await;
    let launch = json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } });
    seen.note(Code::NotReady, &test_server.call("run.launch", launch).await);
    fail::remove(FIRST_SCAN);
}

/// Who calls, and how often.
async fn callers(seen: &mut Seen) {
    let (place, mut ring) = (TestHome::new(), KeyRing::default());
    let (key, stored) = new_key("reader", BTreeSet::from([Scope::Read])).unwrap();
    place.write("keys.yaml", &format!("keys:\n  {}\n", stored.line()));
    ring.read(&place.path("keys.yaml")).unwrap();
    let core = place.open_with(CoreParts::Index).await;
    let limiter = Some(core.limiter(RateLimit { requests: 8, window_seconds: 3600 }).await.unwrap());
    let test_server = TestServer::over(
        place,
        core,
        Settings { authenticator: Some(Arc::new(ring)), limiter, ..Settings::default() },
    );
    let test_server = test_server.await;
    let asks = |path: &'static str, method: &'static str, keys: Vec<(&'static str, String)>| {
        let test_server = &test_server;
        async move {
            let keys: Vec<(&str, &str)> = keys.iter().map(|(name, key)| (*name, key.as_str())).collect();
            test_server.ask(method, path, &keys, if method == "POST" { "{}" } else { "" }).await
        }
    };
    let known = || vec![("x-api-key", key.clone())];
    // The MCP server uses the same middleware.
    for (path, method) in [("/v1/runs", "GET"), ("/mcp", "POST")] {
        seen.note(Code::Unauthorized, &asks(path, method, Vec::new()).await);
        let wrong = vec![("x-api-key", "skw_wrong".to_owned())];
        seen.note(Code::Unauthorized, &asks(path, method, wrong).await);
    }
    let tools = Tools::of(&test_server, Some(&key)).await;
    let refused = asks("/v1/skills/ledger/execute", "POST", known()).await;
    seen.note(Code::Forbidden, &refused);
    let response = tools.error("skill.execute", &json!({ "skill_id": "ledger" })).await;
    assert_eq!(normalize_volatile_fields(&response), normalize_volatile_fields(&refused.json()["error"]));
    while asks("/v1/runs", "GET", known()).await.status == 200 {}
    for (path, method) in [("/v1/runs", "GET"), ("/mcp", "POST")] {
        let answer = asks(path, method, known()).await;
        seen.note(Code::RateLimited, &answer);
        assert!(answer.header("retry-after").is_some(), "{}", answer.head);
    }
}
