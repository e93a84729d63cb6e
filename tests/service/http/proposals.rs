//! Proposals over HTTP and MCP: validity, required fields of an approval, and writing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skills_api::CoreParts;
use skills_api::operations::{Caller, Principal, Scope, Service, operation};
use skills_http::Settings;
use skills_mcp::SessionLimits;

use super::errors::is;
use super::test_server::{Answer, TestServer};
use crate::runs_place::TestHome;

const OLD: &str = "---\nname: invoices\ndescription: Reads invoices.\n---\n# Invoices\n\nRead them.\n";
const DIFF: &str = "--- a/etc/passwd\n+++ b/etc/passwd\n@@ -1,4 +1,4 @@\n ---\n name: invoices\n\
    -description: Reads invoices.\n+description: Reads invoices and receipts of suppliers.\n ---\n";

async fn test_server() -> TestServer {
    let place = TestHome::new();
    place.write("skills/invoices/SKILL.md", OLD);
    place.write(
        "skills/golden.yaml",
        "- query: read the receipts of suppliers\n  expect: [invoices]\n- query: sing a song\n  expect: none\n",
    );
    let core = place.open_with(CoreParts::Index).await;
    TestServer::over(place, core, Settings::default()).await
}

fn file(test_server: &TestServer) -> String {
    std::fs::read_to_string(test_server.place.path("skills/invoices/SKILL.md")).unwrap()
}

async fn propose(test_server: &TestServer, diff: &str) -> Answer {
    let request = json!({ "skill_id": "invoices", "diff": diff, "justification": "Receipts are missed." });
    test_server.call("proposal.create", request).await
}

async fn proposed(test_server: &TestServer) -> (String, Value) {
    let answer = propose(test_server, DIFF).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let view = answer.json();
    (view["summary"]["proposal_id"].as_str().unwrap().to_owned(), view)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_measured_and_writes_nothing() {
    let test_server = test_server().await;
    let (id, view) = proposed(&test_server).await;
    assert_eq!(file(&test_server), OLD);
    assert_eq!((&view["summary"]["state"], &view["part"]), (&json!("waiting"), &json!("description")));
    assert!(view["effect"]["after"]["mrr_at_10"].as_f64() >= view["effect"]["before"]["mrr_at_10"].as_f64());
    assert_eq!(view["effect"]["after"]["queries"], 1);
    let checks = view["checks"].as_array().unwrap();
    let of = |kind: &str| checks.iter().find(|check| check["check"] == kind).unwrap()["result"].clone();
    assert_eq!(
        [of("unchanged"), of("writable"), of("golden")],
        [json!("pass"), json!("pass"), json!("pass")]
    );
    assert!(!view["diff"].as_str().unwrap().contains("passwd"), "paths in headers are ignored");
    let list = test_server.call("proposal.list", json!({ "state": ["waiting"] })).await.json();
    assert_eq!((&list["waiting"], &list["proposals"][0]["proposal_id"]), (&json!(1), &json!(id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_skill_that_is_not_ranked_is_not_measured() {
    let place = TestHome::new();
    let old = OLD.replace(
        "invoices.\n---",
        "invoices.\nmetadata: {classification: {role: sidecar, invocation: attach}}\n---",
    );
    place.write("skills/invoices/SKILL.md", &old);
    place.write("skills/golden.yaml", "- query: read the receipts of suppliers\n  expect: [invoices]\n");
    let core = place.open_with(CoreParts::Index).await;
    let test_server = TestServer::over(place, core, Settings::default()).await;
    let diff = DIFF.replace(
        "suppliers.\n ---",
        "suppliers.\n metadata: {classification: {role: sidecar, invocation: attach}}",
    );
    let answer = propose(&test_server, &diff).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let view = answer.json();
    assert!(view["effect"].is_null() && view["summary"]["p_at_1"].is_null(), "{view}");
    let golden = view["checks"].as_array().unwrap().iter().find(|check| check["check"] == "golden");
    assert_eq!(golden.unwrap()["result"], "unknown", "{view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_that_does_not_fit_is_refused() {
    let test_server = test_server().await;
    let second = format!("{DIFF}--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-a\n+b\n");
    let removed: String = OLD.lines().map(|line| format!("-{line}\n")).collect();
    let unusable = &format!("@@ -1,7 +0,0 @@\n{removed}");
    let stale = DIFF.replace("-description: Reads invoices.", "-description: Reads bills.");
    for diff in ["no diff", &second, unusable, &stale, &DIFF.replace(" and receipts of suppliers", "")] {
        is(&propose(&test_server, diff).await, 400, "invalid_request");
    }
    let blank = json!({ "skill_id": "invoices", "diff": DIFF, "justification": " " });
    is(&test_server.call("proposal.create", blank).await, 400, "invalid_request");
    let unknown = json!({ "skill_id": "invioces", "diff": DIFF, "justification": "x" });
    is(&test_server.call("proposal.create", unknown).await, 404, "not_found");
    assert_eq!(test_server.call("proposal.list", json!({})).await.json()["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_names_what_was_reviewed() {
    let test_server = test_server().await;
    let (id, view) = proposed(&test_server).await;
    let path = format!("/v1/proposals/{id}/approve");
    let digests = json!({ "proposal_digest": view["proposal_digest"], "base_digest": view["base_digest"] });
    for lacking in [json!({}), json!({ "base_digest": view["base_digest"] })] {
        let response = test_server.post(&path, &lacking).await;
        is(&response, 428, "confirmation_required");
        let reason = response.json()["error"]["reason"].clone();
        assert!(reason["missing"].as_array().unwrap().contains(&json!("proposal_digest")), "{reason}");
        assert_eq!((&reason["send"]["body"], &reason["send"]["path"]), (&digests, &json!(path)));
    }
    let other = json!({ "proposal_digest": view["base_digest"], "base_digest": view["base_digest"] });
    is(&test_server.post(&path, &other).await, 409, "skill_changed");
    assert_eq!(file(&test_server), OLD);

    let mut body = digests.clone();
    body["notes"] = json!("good");
    body["by"] = json!("kim");
    let approved = test_server.post(&path, &body).await;
    assert_eq!(approved.status, 200, "{}", approved.body);
    assert_eq!(file(&test_server), OLD.replace("invoices.\n", "invoices and receipts of suppliers.\n"));
    let again = test_server.post(&path, &digests).await;
    assert_eq!((again.status, &again.json()["repeated"]), (200, &json!(true)));
    is(&test_server.call("proposal.deny", json!({ "proposal_id": id })).await, 409, "invalid_transition");

    let shown = test_server.call("proposal.show", json!({ "proposal_id": id })).await.json();
    assert_eq!(shown["summary"]["decision"]["by"], "kim");
    assert_eq!(shown["versions"][1]["by"], "kim");
    assert_eq!(shown["versions"][1]["current"], true);
    let back = test_server.call("proposal.rollback", json!({ "proposal_id": id })).await;
    assert_eq!((back.status, file(&test_server).as_str()), (200, OLD));
    is(&test_server.call("proposal.show", json!({ "proposal_id": "../x" })).await, 404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_changed_since_the_review_is_not_overwritten() {
    let test_server = test_server().await;
    let (id, view) = proposed(&test_server).await;
    let edited = OLD.replace("Read them.", "Read them twice.");
    test_server.place.write("skills/invoices/SKILL.md", &edited);
    let digests = json!({ "proposal_id": id, "proposal_digest": view["proposal_digest"], "base_digest": view["base_digest"] });
    is(&test_server.call("proposal.approve", digests).await, 409, "skill_changed");
    assert_eq!(file(&test_server), edited);
    is(&test_server.call("proposal.rollback", json!({ "proposal_id": id })).await, 409, "invalid_transition");
    let shown = test_server.call("proposal.show", json!({ "proposal_id": id })).await.json();
    assert_eq!(shown["checks"][0]["result"], "fail");
    assert_eq!(test_server.call("proposal.deny", json!({ "proposal_id": id })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn proposing_needs_run_and_deciding_needs_decide() {
    let test_server = test_server().await;
    let service = Service { core: test_server.core.clone() as _, sessions: test_server.core.clone() as _ };
    let caller = |name: &str, scopes: &[Scope]| {
        let scopes: BTreeSet<Scope> = scopes.iter().copied().collect();
        Caller {
            principal: Some(Principal { name: name.to_owned(), scopes }),
            local: false,
            ..Caller::anyone()
        }
    };
    let (reader, agent) = (caller("reader", &[Scope::Read]), caller("agent", &[Scope::Read, Scope::Run]));
    let request =
        json!({ "skill_id": "invoices", "diff": DIFF, "justification": "x", "by": "somebody else" });
    let call = async |name: &str, caller: &Caller, arguments: Value| {
        operation(name).unwrap().call(&service, caller, arguments).await
    };
    assert_eq!(
        call("proposal.create", &reader, request.clone()).await.unwrap_err().code.to_string(),
        "forbidden"
    );
    let view = call("proposal.create", &agent, request).await.unwrap();
    assert_eq!(view["summary"]["proposed_by"], "agent", "an authenticated caller cannot take another name");
    let id = view["summary"]["proposal_id"].clone();
    let digests = json!({ "proposal_id": id, "proposal_digest": view["proposal_digest"], "base_digest": view["base_digest"] });
    for (name, arguments) in [
        ("proposal.approve", digests),
        ("proposal.deny", json!({ "proposal_id": id })),
        ("proposal.rollback", json!({ "proposal_id": id })),
    ] {
        assert_eq!(call(name, &agent, arguments).await.unwrap_err().code.to_string(), "forbidden", "{name}");
    }
    assert_eq!(file(&test_server), OLD);
}

#[tokio::test(flavor = "multi_thread")]
async fn approver_cannot_approve_own_or_policy_relevant_changes() {
    let place = TestHome::new();
    let old = OLD.replace("---\n# Inv", "domain: finance\ntags: [money]\n---\n# Inv");
    place.write("skills/invoices/SKILL.md", &old);
    let names: [(&str, &[Scope]); 3] = [
        ("ana", &[Scope::Read, Scope::Run, Scope::Decide]),
        ("ben", &[Scope::Read, Scope::Run, Scope::Decide]),
        ("boss", &[Scope::Read, Scope::Run, Scope::Decide, Scope::Admin]),
    ];
    let (test_server, [ana, ben, boss]) = TestServer::with_keys(place, SessionLimits::default(), names).await;
    let ask = async |key: &str, path: &str, body: &Value| {
        test_server.ask("POST", path, &[("x-api-key", key)], &body.to_string()).await
    };
    let proposed = async |diff: &str| {
        let request = json!({ "skill_id": "invoices", "diff": diff, "justification": "Tidy." });
        let view = ask(&ana, "/v1/proposals", &request).await.json();
        let id = view["summary"]["proposal_id"].as_str().unwrap_or_else(|| panic!("{view}")).to_owned();
        let digests =
            json!({ "proposal_digest": view["proposal_digest"], "base_digest": view["base_digest"] });
        (format!("/v1/proposals/{id}"), digests)
    };
    let description = DIFF
        .replace("1,4 +1,4", "2,3 +2,3")
        .replace(" ---\n name", " name")
        .replace("suppliers.\n ---\n", "suppliers.\n domain: finance\n");
    let (path, digests) = proposed(&description).await;
    let own = ask(&ana, &format!("{path}/approve"), &digests).await;
    is(&own, 403, "forbidden");
    assert!(own.message().contains("another person, or a key"), "{}", own.message());
    assert_eq!(file(&test_server), old);
    assert_eq!(ask(&ben, &format!("{path}/approve"), &digests).await.status, 200);
    assert_eq!(ask(&ana, &format!("{path}/rollback"), &json!({})).await.status, 200);

    let domain = "@@ -3,4 +3,3 @@\n description: Reads invoices.\n-domain: finance\n tags: [money]\n ---\n";
    let (path, digests) = proposed(domain).await;
    let refused = ask(&ben, &format!("{path}/approve"), &digests).await;
    is(&refused, 403, "forbidden");
    assert!(
        refused.message().contains("domain") && refused.message().contains("`admin`"),
        "{}",
        refused.message()
    );
    assert_eq!(file(&test_server), old);
    assert_eq!(ask(&boss, &format!("{path}/approve"), &digests).await.status, 200);
    is(&ask(&ben, &format!("{path}/rollback"), &json!({})).await, 403, "forbidden");
    assert_eq!(ask(&boss, &format!("{path}/rollback"), &json!({})).await.status, 200);
    assert_eq!(file(&test_server), old);
}
