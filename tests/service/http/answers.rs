//! The responses of every operation match the document.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use skills_api::operations::operations;
use skills_http::{document, document_text};

use super::test_server::{TestServer, filled};

/// Fails unless a value matches a schema of the document.
pub fn fits(schema: &Value, value: &Value, what: &str) {
    let mut complete_schema = schema.clone();
    complete_schema["components"] = document()["components"].clone();
    let validator = jsonschema::validator_for(&complete_schema).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{what} is not as the document says:\n{}\n{value}", wrong.join("\n"));
}

/// Calls operations and compares their responses with the document.
struct Checked {
    test_server: TestServer,
    called: BTreeSet<&'static str>,
}

impl Checked {
    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.test_server.call(name, arguments.clone()).await;
        let (operation, ..) = filled(name, arguments);
        assert_eq!(answer.status, operation.status, "{name}: {}", answer.body);
        let entry =
            &document()["paths"][operation.route.path][operation.route.method.to_string().to_lowercase()];
        let parsed =
            &entry["responses"][operation.status.to_string()]["content"]["application/json"]["schema"];
        fits(parsed, &answer.json(), name);
        self.called.insert(operation.name);
        answer.json()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_of_every_operation_match_the_document() {
    let mut all = Checked { test_server: TestServer::open().await, called: BTreeSet::new() };
    for name in [
        "runtime.health",
        "runtime.caller",
        "runtime.metrics",
        "skill.diagnostics",
        "skill.governance.list",
        "skill.list",
        "skill.catalogue",
        "skill.rescan",
        "skill.budget",
        "client.list",
        "capability.list",
        "agent.list",
        "session.list",
        "run.list",
        "event.list",
        "event.newest",
        "run.board",
        "run.facets",
        "worker.list",
        "view.list",
    ] {
        all.call(name, json!({})).await;
    }
    let found = all.call("skill.discover", json!({ "intent": "book a sum after somebody said yes" })).await;
    assert_eq!(found["results"][0]["skill_id"], "ledger");
    let one = json!({ "skill_id": "ledger" });
    for name in ["skill.describe", "skill.contract", "skill.levels"] {
        all.call(name, one.clone()).await;
    }
    all.call("skill.lines", json!({ "skill_id": "ledger", "intent": "entry" })).await;
    all.call("skill.file", json!({ "skill_id": "ledger", "path": "skill.yaml" })).await;
    all.call("skill.tokens", json!({ "skills": ["ledger"] })).await;
    all.call("client.view", json!({ "client": "claude-code" })).await;
    let seen = all.call("skill.visibility", json!({ "skill": "ledger", "clients": ["codex"] })).await;
    assert_eq!(seen["skills"][0]["cells"][0]["client"], "codex");
    let why = all.call("skill.why", json!({ "skill_id": "ledger", "intent": "book a sum" })).await;
    assert_eq!(why["ranking"]["rank"], 1, "{why}");
    let rivals = all.call("skill.rivals", json!({ "skill_id": "ledger" })).await;
    assert_eq!(rivals["skill_id"], "ledger", "{rivals}");
    all.call("skill.pair", json!({ "skill_id": "ledger", "rival": "upload" })).await;
    let map = all.call("skill.collisions", json!({ "wait_ms": 10_000 })).await;
    assert_eq!(map["complete"], true, "{map}");
    let lint = all.call("skill.lint", json!({ "level": "error", "limit": 1 })).await;
    assert!(lint["findings"].is_array(), "{lint}");
    assert!(all.call("lint.rules", json!({})).await["rules"].as_array().unwrap().len() > 50);
    let draft = all.call(
        "skill.draft",
        json!({ "skill_id": "ledger", "description": "Sings.", "intent": "book a sum" }),
    );
    assert_eq!(draft.await["before"]["rank"], 1);
    let queries = json!([{ "query": "book a sum", "expect": ["ledger"] }, { "query": "sing a song" }]);
    let fit = all.call("skill.budget.fit", json!({ "clients": ["codex"], "queries": queries.clone() })).await;
    assert_eq!(fit["clients"][0]["client"], "codex", "{fit}");
    let golden = all.call("golden.report", json!({ "queries": queries })).await;
    assert_eq!(golden["figures"]["queries"], 1, "{golden}");
    let query = json!({ "query": "close the month", "expect": ["ledger"] });
    let explained = all.call("golden.explain", json!({ "query": query, "queries": queries })).await;
    assert_ne!(explained["first"]["skill_id"], json!(null), "{explained}");
    all.call("capability.explain", json!({ "capability_id": "test.amounts.add" })).await;
    let sum = json!({ "capability_id": "test.amounts.add", "inputs": { "amounts": [1, 2] }, "include_trace": true });
    assert_eq!(all.call("capability.execute", sum.clone()).await["run"]["state"], "completed");
    all.call("capability.execute_async", sum).await;
    let explained = all.call("capability.activate", json!({ "capability_id": "test.amounts.add" })).await;
    assert_eq!(explained["explanation"]["capability"], "test.amounts.add", "{explained}");

    let upload = json!({ "skill_id": "upload", "inputs": { "name": "right.csv" }, "include_trace": true });
    assert!(all.call("skill.execute", upload).await["trace"].as_array().unwrap().len() > 2);
    let ledger = json!({ "skill_id": "ledger", "inputs": { "amounts": [1, 2] } });
    all.call("skill.execute_async", ledger.clone()).await;
    let run = all.call("run.launch", ledger.clone()).await["run"]["id"].as_str().unwrap().to_owned();
    let one = json!({ "run_id": run });
    assert_eq!(all.call("run.settle", one.clone()).await["state"], "waiting_for_human");
    for name in ["run.show", "run.checkpoints", "run.events", "run.status", "run.log"] {
        all.call(name, one.clone()).await;
    }
    let attached = json!({ "skill_id": "watch", "target_type": "run", "target_ref": run });
    all.call("skill.attach_preview", attached.clone()).await;
    all.call("skill.attach", attached.clone()).await;
    all.call("skill.attach_async", attached).await;
    all.call("target.list", json!({ "target_type": "run" })).await;
    all.call("artifact.create", json!({ "name": "rows.csv", "content": "a,b\n" })).await;
    let assigned = json!({ "run_id": run, "to": "kim", "note": "registry is back", "by": "ana" });
    let assigned = all.call("run.assign", assigned).await;
    assert_eq!(assigned["run"]["options"]["assigned"]["to"], "kim", "{assigned}");
    let view = json!({ "name": "Failed", "where": "state:failed", "by": "ana" });
    let views = all.call("view.save", view).await;
    assert_eq!(views["views"][0]["where"], "state:failed", "{views}");
    assert_eq!(all.call("view.delete", json!({ "name": "Failed" })).await["views"], json!([]));
    let board = all.call("run.board", json!({ "hours": 2 })).await;
    assert!(board["waiting"].as_array().is_some_and(|runs| !runs.is_empty()), "{board}");
    let decision = all.test_server.decision(&run).await;
    all.call("run.approve", decision).await;
    assert_eq!(all.call("run.settle", one.clone()).await["state"], "completed");
    all.call("run.replay", one.clone()).await;
    let fork = all.call("run.fork", one).await["run"]["id"].as_str().unwrap().to_owned();
    let resumed = all.call("run.resume", json!({ "run_id": fork })).await;
    assert_eq!(resumed["mode"], "checkpoint_resume");
    all.call("run.cancel", json!({ "run_id": fork })).await;
    let run = all.test_server.waiting().await;
    all.call("run.deny", json!({ "run_id": run, "step": "book" })).await;
    let legacy = all.call("run.status", json!({ "run_id": run })).await;
    assert_eq!(legacy["status"], "failed", "older callers know no canceled run");
    let close = all.call("skill.execute_async", json!({ "skill_id": "close" })).await["run"]["id"].clone();
    all.call("run.settle", json!({ "run_id": close })).await;
    all.call("run.signal", json!({ "run_id": close, "name": "books-closed", "payload": { "by": "kim" } }))
        .await;
    let run = all.test_server.waiting().await;
    all.call("run.cancel_legacy", json!({ "run_id": run })).await;

    let session = all.call("session.new", json!({ "cap": 3 })).await["session_id"].clone();
    let one = json!({ "session_id": session });
    all.call("session.configure", json!({ "session_id": session, "settings": { "locations": true } })).await;
    all.call("session.say", json!({ "session_id": session, "speaker": "user", "text": "book it" })).await;
    let tool = json!({ "session_id": session, "tool": "skills.load", "arguments": { "names": ["ledger"] } });
    all.call("session.tool", tool).await;
    all.call("session.compose", one.clone()).await;
    all.call("session.show", one).await;
    all.call("skill.levels", json!({ "skill_id": "ledger", "session_id": session })).await;
    all.call("session.export", json!({ "session_id": session, "api": "anthropic", "model": "m" })).await;
    all.call("session.list", json!({})).await;
    let old = std::fs::read_to_string(all.test_server.place.path("skills/watch/SKILL.md")).unwrap();
    let last = old.lines().last().unwrap();
    let line = old.lines().count();
    let diff = format!("@@ -{line} +{line} @@\n-{last}\n+{last} Twice.\n");
    let arguments = json!({ "skill_id": "watch", "diff": diff, "justification": "It watches twice." });
    let denied = all.call("proposal.create", arguments.clone()).await["summary"]["proposal_id"].clone();
    all.call("proposal.deny", json!({ "proposal_id": denied, "notes": "no" })).await;
    let view = all.call("proposal.create", arguments).await;
    let id = &view["summary"]["proposal_id"];
    let approval = json!({
        "proposal_id": id, "proposal_digest": view["proposal_digest"], "base_digest": view["base_digest"],
    });
    all.call("proposal.approve", approval).await;
    all.call("proposal.rollback", json!({ "proposal_id": id })).await;
    assert_eq!(all.call("proposal.list", json!({})).await["total"], 2);
    all.call("proposal.show", json!({ "proposal_id": id })).await;

    all.test_server.core.start_workers().await.unwrap();
    let worker = loop {
        let list = all.call("worker.list", json!({})).await;
        if list["workers"][0]["state"] == "live" {
            break list["workers"][0]["worker"].clone();
        }
        tokio::task::yield_now().await;
    };
    let drained = all.call("worker.drain", json!({ "worker": worker })).await;
    assert_eq!(drained["workers"][0]["state"], "draining", "{drained}");
    let claiming = all.call("worker.drain", json!({ "worker": worker, "drain": false })).await;
    assert_eq!(claiming["workers"][0]["state"], "live", "{claiming}");
    all.test_server.core.stop_workers().await;
    // Again, with something in them.
    for name in ["run.list", "event.list", "skill.diagnostics", "runtime.metrics", "skill.metrics.reset"] {
        all.call(name, json!({})).await;
    }
    let every: BTreeSet<&str> = operations().iter().map(|operation| operation.name).collect();
    assert_eq!(every.difference(&all.called).collect::<Vec<_>>(), Vec::<&&str>::new(), "never called here");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_and_alias_calls_its_operation() {
    let test_server = TestServer::open().await;
    for operation in operations() {
        for route in std::iter::once(&operation.route).chain(&operation.aliases) {
            let path = route.path.replace(['{', '}'], "");
            let answer =
                test_server.ask(&route.method.to_string(), &path, &[("x-trace-id", "t-1")], "").await;
            assert_eq!(answer.header("x-trace-id"), Some("t-1"), "{path}");
            let parsed = answer.json();
            let lost =
                parsed["error"]["message"].as_str().is_some_and(|message| message.starts_with("route "));
            assert!(!lost && answer.status < 500 && answer.status != 405, "{path}: {}", answer.body);
            if answer.status >= 400 {
                let schema = json!({ "$ref": format!("#/components/responses/Error{}", answer.status) });
                let response =
                    document().pointer(schema["$ref"].as_str().unwrap().trim_start_matches('#')).unwrap();
                fits(&response["content"]["application/problem+json"]["schema"], &parsed, &path);
            }
        }
    }
}

#[test]
fn the_copy_of_the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let copy = std::fs::read_to_string(path).unwrap();
    assert!(copy == document_text(), "docs/openapi.json has drifted: skills openapi > docs/openapi.json");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_documentation_pages_are_served() {
    let test_server = TestServer::open().await;
    assert_eq!(test_server.get("/livez").await.body, "ok\n");
    let ready = test_server.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("ready")));
    assert_eq!(test_server.get("/openapi.json").await.json()["openapi"], "3.1.0");
    test_server.get("/v1/skills/list").await;
    let counted = test_server.get("/v1/metrics/prometheus").await;
    let line = "agent_skills_http_requests_total{method=\"GET\",route=\"/v1/skills/list\",status=\"2xx\"} 1";
    assert!(counted.body.lines().any(|l| l == line), "{}", counted.body);
    for page in ["/", "/docs"] {
        let page = test_server.get(page).await;
        assert!(page.header("content-type").unwrap().starts_with("text/html"), "{}", page.head);
        assert!(page.body.contains("id=\"skill.discover\"") && page.body.contains("id=\"not_found\""));
    }
}
