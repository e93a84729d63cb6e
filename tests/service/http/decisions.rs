//! Decisions over HTTP: required fields, repetition, and the traces of calls.

use serde_json::{Value, json};
use skills_api::CoreParts;
use skills_api::operations::operations;
use skills_http::Settings;

use super::errors::is;
use super::test_server::{Answer, TestServer, filled};
use crate::runs_place::TestHome;

/// A skill whose two steps wait for an approval each.
async fn two_gates() -> (TestServer, String) {
    let place = TestHome::new();
    place.write(
        "skills/pair/SKILL.md",
        "---\nname: pair\ndescription: Books twice. Use it in tests.\n---\nx\n",
    );
    let steps = "  - { id: small, uses: test.ledger.book, input: { amount: inputs.small, account: inputs.account } }\n\
                 \x20 - { id: big, uses: test.ledger.book, input: { amount: inputs.big, account: inputs.account } }\n";
    let inputs = "  small: { type: number, default: 1 }\n  big: { type: number, default: 1000 }\n  \
                  account: { type: string, default: \"4711\" }\n";
    place.write(
        "skills/pair/skill.yaml",
        &format!("id: test.pair\nversion: 1.0.0\ninputs:\n{inputs}steps:\n{steps}"),
    );
    let ledger = |path: &str| std::fs::read_to_string(place.path(&format!("skills/ledger/{path}"))).unwrap();
    let binding = ledger("bindings/book.yaml").replace("ledger-book", "pair-book");
    place.write("skills/pair/bindings/book.yaml", &binding);
    place.write("skills/pair/scripts/book.sh", &ledger("scripts/book.sh"));
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    let asks = test_server.call("skill.execute", json!({ "skill_id": "pair" })).await;
    is(&asks, 428, "confirmation_required");
    let run = asks.json()["error"]["reason"]["run_id"].as_str().unwrap().to_owned();
    (test_server, run)
}

async fn post(test_server: &TestServer, run: &str, command: &str, body: &Value) -> Answer {
    test_server.ask("POST", &format!("/v1/runs/{run}/{command}"), &[], &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_names_the_read_digest() {
    let (test_server, run) = two_gates().await;
    let shown = async || test_server.call("run.show", json!({ "run_id": run })).await.json();
    for lacking in [json!({}), json!({ "step": "small" }), json!({ "choice": "rerun" })] {
        let unconfirmed = post(&test_server, &run, "approve", &lacking).await;
        is(&unconfirmed, 428, "confirmation_required");
        let reason = unconfirmed.json()["error"]["reason"].clone();
        assert!(reason["missing"].as_array().unwrap().contains(&json!("inputs_digest")), "{reason}");
        assert_eq!(reason["decision"]["inputs"], json!({ "amount": 1, "account": "4711" }));
        assert_eq!(reason["send"]["path"], json!(format!("/v1/runs/{run}/approve")));
    }
    assert_eq!(shown().await["decisions"], json!([]));

    let unconfirmed = post(&test_server, &run, "approve", &json!({ "notes": "small is fine" })).await;
    let body = unconfirmed.json()["error"]["reason"]["send"]["body"].clone();
    assert_eq!((&body["step"], &body["notes"]), (&json!("small"), &json!("small is fine")));
    let approved = post(&test_server, &run, "approve", &body).await;
    assert_eq!((approved.status, &approved.json()["repeated"]), (200, &json!(false)), "{}", approved.body);
    test_server.call("run.settle", json!({ "run_id": run })).await;
    assert_eq!(shown().await["run"]["gate"]["human"]["step"], "big");

    // Its response was lost, and it is sent again: the first result, without effect on the next gate.
    let again = post(&test_server, &run, "approve", &body).await;
    assert_eq!((again.status, &again.json()["repeated"]), (200, &json!(true)), "{}", again.body);
    let now = shown().await;
    assert_eq!(
        (&now["run"]["state"], &now["run"]["gate"]["human"]["step"]),
        (&json!("waiting_for_human"), &json!("big"))
    );
    assert_eq!(now["decisions"].as_array().unwrap().len(), 1);
    let other = json!({ "step": "big", "inputs_digest": body["inputs_digest"] });
    is(&post(&test_server, &run, "approve", &other).await, 409, "invalid_transition");
    let taken_back = json!({ "step": "small", "inputs_digest": body["inputs_digest"] });
    let late = post(&test_server, &run, "deny", &taken_back).await;
    is(&late, 409, "invalid_transition");
    assert_eq!(late.json()["error"]["reason"]["decided"]["verdict"], Value::Null);
    assert_eq!(late.json()["error"]["reason"]["decided"]["decision"]["verdict"], "approve");
    let by_step = post(&test_server, &run, "deny", &json!({ "step": "small" })).await;
    is(&by_step, 409, "invalid_transition");
    assert_eq!(by_step.json()["error"]["reason"]["decided"]["decision"]["verdict"], "approve");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_names_its_step() {
    let (test_server, run) = two_gates().await;
    let unconfirmed = post(&test_server, &run, "deny", &json!({})).await;
    is(&unconfirmed, 428, "confirmation_required");
    let body = unconfirmed.json()["error"]["reason"]["send"]["body"].clone();
    assert_eq!(body, json!({ "step": "small" }));
    is(&post(&test_server, &run, "deny", &json!({ "step": "big" })).await, 409, "invalid_transition");
    for repeated in [false, true] {
        let denied = post(&test_server, &run, "deny", &body).await.json();
        assert_eq!((&denied["run"]["state"], &denied["repeated"]), (&json!("canceled"), &json!(repeated)));
    }
    is(&post(&test_server, &run, "approve", &json!({})).await, 409, "invalid_transition");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_and_names_of_others_stay_on_one_line() {
    let test_server = TestServer::open().await;
    let key = [("x-idempotency-key", "once")];
    let body = json!({ "inputs": { "amounts": [1] } }).to_string();
    let execute = async || test_server.ask("POST", "/v1/skills/ledger/execute", &key, &body).await;
    let waiting = execute().await;
    is(&waiting, 428, "confirmation_required");
    let run = waiting.json()["error"]["reason"]["run_id"].as_str().unwrap().to_owned();
    let assigned = post(&test_server, &run, "assign", &json!({ "to": "ana\nerror: moved" })).await;
    assert_eq!(assigned.json()["note"], "assigned to ana error: moved");
    let notes = "wrong amount)\nerror: moved\u{1b}[2J\u{202e}";
    let denied = post(&test_server, &run, "deny", &json!({ "step": "book", "notes": notes })).await;
    assert_eq!(denied.status, 200, "{}", denied.body);
    let again = execute().await;
    is(&again, 403, "safety_denied");
    assert!(again.message().contains("(wrong amount) error: moved␛[2J⟨U+202E⟩)"), "{}", again.message());
    assert_eq!(again.json()["error"]["reason"]["notes"], notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_named_in_the_path_too() {
    let test_server = TestServer::open().await;
    let run = test_server.call("skill.execute_async", json!({ "skill_id": "close" })).await.json();
    let run = run["run"]["id"].as_str().unwrap();
    test_server.call("run.settle", json!({ "run_id": run })).await;
    let twice = json!({ "name": "other", "payload": 1 });
    is(&post(&test_server, run, "signals/books-closed", &twice).await, 400, "invalid_request");
    let sent = post(&test_server, run, "signals/books-closed", &json!({ "payload": { "by": "kim" } })).await;
    assert_eq!((sent.status, &sent.json()["run"]["state"]), (200, &json!("pending")), "{}", sent.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_body_may_name_the_trace_of_its_call() {
    let test_server = TestServer::open().await;
    for operation in operations().iter().filter(|operation| operation.takes_body()) {
        let unknown = json!({
            "skill_id": "nowhere", "capability_id": "no.where", "run_id": "0000-none", "session_id": "none", "name": "x",
            "tool": "skills.list", "client": "none", "proposal_id": "none", "rival": "none",
            "worker": "none", "view": "none",
        });
        let Value::Object(all) = unknown else { unreachable!() };
        let named = operation.route.parameters().map(|name| (name.to_owned(), all[name].clone())).collect();
        let (_, path, _) = filled(operation.name, Value::Object(named));
        let method = operation.route.method.to_string();
        let answer = test_server.ask(&method, &path, &[], r#"{"trace_id": "nightly-7"}"#).await;
        assert_eq!(answer.header("x-trace-id"), Some("nightly-7"), "{}: {}", operation.name, answer.body);
        assert!(!answer.body.contains("unknown field"), "{}: {}", operation.name, answer.body);
        let wrong = test_server.ask(&method, &path, &[], r#"{"trace_id": 7}"#).await;
        is(&wrong, 400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_their_trace() {
    let test_server = TestServer::open().await;
    let launch = |trace: &str| json!({ "skill_id": "close", "trace_id": trace });
    for trace in ["nightly-2026-11-23", "hourly-2026-11-23", "nightly-2026-11-23"] {
        assert_eq!(test_server.call("run.launch", launch(trace)).await.status, 202);
    }
    let found = async |query: &str| {
        let page = test_server.get(&format!("/v1/runs?{query}")).await.json();
        let runs = page["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| run["trace_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("trace_id=nightly-2026-11-23").await, ["nightly-2026-11-23"; 2]);
    assert_eq!(found("trace_id=nightly").await, Vec::<String>::new());
    assert_eq!(found("text=hourly-2026").await, ["hourly-2026-11-23"]);
    assert_eq!(found("text=hourly").await, Vec::<String>::new(), "too short to be the beginning of a trace");
}
