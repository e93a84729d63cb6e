//! Functions of the core for operators: metrics, stored counts, quality states, single capabilities.
use crate::runs_place;

use runs_place::{TestHome, decide, launch, object, request, run, send_command, wait_for_completion};
use serde_json::json;
use skills_api::{
    CapabilityRequest, Client as _, Code, GovernanceFilter, ListFilter, Local, MetricsReport, RunClient as _,
};
use skills_authoring::governance::QualityState;
use skills_model::{RunState, Verdict};

/// The value of a counter with this label.
fn counted(report: &MetricsReport, family: &str, label: (&str, &str)) -> f64 {
    let family = report.families.iter().find(|f| f.name == family).expect(family);
    let fits = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get(label.0).map(String::as_str) == Some(label.1)
    };
    family.samples.iter().filter(|sample| fits(&sample.labels)).filter_map(|sample| sample.value).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn launches_keys_steps_bindings_and_commits_are_counted() {
    let place = TestHome::new();
    let core = place.open().await;
    let keyed = |amounts: serde_json::Value| {
        let mut request = request("ledger", json!({ "amounts": amounts }));
        request.options.idempotency_key = Some("order-7".to_owned());
        request
    };
    let first = core.launch(keyed(json!([1, 2]))).await.unwrap();
    core.launch(keyed(json!([1, 2]))).await.unwrap();
    core.launch(keyed(json!([3]))).await.unwrap_err();
    let waiting = wait_for_completion(&core, &first.run.id.0).await;
    send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    assert_eq!(wait_for_completion(&core, &first.run.id.0).await.state, RunState::Completed);

    let report = core.metrics().await.unwrap();
    let keys = |word: &str| report.counters[&format!("runtime.idempotency.{word}")];
    assert_eq!((keys("created"), keys("reused"), keys("conflict"), keys("expired")), (1, 1, 1, 0));
    let moved = |state: &str| counted(&report, "runtime.run.transitions", ("state", state));
    assert!((moved("waiting_for_human") - 1.0).abs() < 0.1 && (moved("completed") - 1.0).abs() < 0.1);
    assert!((moved("pending") - 2.0).abs() < 0.1, "launched, and pending again once approved");
    assert!((counted(&report, "runtime.steps", ("status", "completed")) - 2.0).abs() < 0.1);
    assert!((counted(&report, "runtime.bindings", ("outcome", "ok")) - 2.0).abs() < 0.1);
    let commits = report.families.iter().find(|f| f.name == "store.commit.duration").unwrap();
    let took = commits.samples[0].distribution.as_ref().unwrap();
    assert!(took.count > 5 && took.sum > 0.0, "{took:?}");
    assert!((counted(&report, "operations", ("operation", "launch")) - 3.0).abs() < 0.1);
    let text = core.metrics_text().await.unwrap();
    assert!(text.contains("\nagent_skills_runtime_idempotency_conflict_total 1\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_survive_a_restart_and_can_be_reset() {
    let place = TestHome::new();
    let calls = |diagnostics: &skills_api::Diagnostics, operation: &str| {
        diagnostics.operations.get(operation).map_or(0, |count| count.calls)
    };
    let fresh = place.open().await;
    assert!(!fresh.diagnostics().await.unwrap().counting.persisted, "asking makes no store");
    drop(fresh);
    let since = {
        let core = place.open().await;
        core.start_workers().await.unwrap();
        core.list(ListFilter::default()).await.unwrap();
        core.describe("nowhere").await.unwrap_err();
        core.stop_workers().await;
        core.diagnostics().await.unwrap().counting.since_ms
    };
    let core = place.open().await;
    core.list(ListFilter::default()).await.unwrap();
    let diagnostics = core.diagnostics().await.unwrap();
    assert_eq!(calls(&diagnostics, "list"), 2, "{:?}", diagnostics.operations);
    assert_eq!(diagnostics.operations["describe"].errors, 1);
    assert!(diagnostics.counting.persisted);
    assert_eq!((diagnostics.counting.since_ms, diagnostics.counting.last_reset_ms), (since, None));
    assert!(diagnostics.counting.file.is_some_and(|file| file.is_file()));

    let reset = core.reset_diagnostics().await.unwrap();
    assert!(reset.operations.is_empty(), "{:?}", reset.operations);
    let at = reset.counting.last_reset_ms.expect("a moment");
    drop(core);
    let core = place.open().await;
    core.list(ListFilter::default()).await.unwrap();
    let diagnostics = core.diagnostics().await.unwrap();
    assert_eq!((calls(&diagnostics, "list"), calls(&diagnostics, "describe")), (1, 0));
    assert_eq!(diagnostics.counting.last_reset_ms, Some(at));
}

fn capability(id: &str, inputs: serde_json::Value) -> CapabilityRequest {
    CapabilityRequest {
        capability: id.to_owned(),
        inputs: object(inputs),
        started_by: Some("ana".to_owned()),
        ..CapabilityRequest::default()
    }
}

async fn executed(core: &Local, id: &str, inputs: serde_json::Value) -> skills_store::RunRecord {
    let launched = core.execute_capability(capability(id, inputs)).await.unwrap();
    wait_for_completion(core, &launched.run.id.0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn capability_run_checks_its_gates() {
    let place = TestHome::new();
    let core = place.open().await;
    let added = executed(&core, "test.amounts.add", json!({ "amounts": [40, 2] })).await;
    assert_eq!((added.state, added.skill_id.as_str()), (RunState::Completed, "capability:test.amounts.add"));
    assert_eq!(added.outputs, Some(json!({ "sum": 42 })));
    let detail = core.run(&added.id.0).await.unwrap();
    assert_eq!(detail.contract_unchanged, Some(true));
    assert_eq!(detail.steps.len(), 1);

    let pending = executed(&core, "test.ledger.book", json!({ "amount": 7, "account": "1" })).await;
    assert_eq!(pending.state, RunState::WaitingForHuman, "its confirmation holds without a skill as well");
    send_command(&core, &pending, decide(&pending, Verdict::Approve, "bo")).await.unwrap();
    assert_eq!(wait_for_completion(&core, &pending.id.0).await.outputs, Some(json!({ "entry": "B-1" })));

    let wrong =
        core.execute_capability(capability("test.amounts.add", json!({ "amount": 1 }))).await.unwrap_err();
    assert_eq!(wrong.code, Code::InvalidRequest);
    assert!(wrong.message.contains("capability:test.amounts.add"), "{wrong}");
    let gone = core.execute_capability(capability("test.amounts.ad", json!({}))).await.unwrap_err();
    assert_eq!((gone.code, gone.suggestions[0].as_str()), (Code::NotFound, "test.amounts.add"));
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_applies_to_capability_runs() {
    let mut place = TestHome::new();
    place.write(
        "policy.yaml",
        "deny:\n  - id: capability:test.ledger.*\nrequire_approval:\n  - id: capability:*\n",
    );
    place.config.policy_file = Some(place.path("policy.yaml"));
    let core = place.open().await;
    let refused = core
        .execute_capability(capability("test.ledger.book", json!({ "amount": 7, "account": "1" })))
        .await
        .unwrap_err();
    assert_eq!(refused.code, Code::Forbidden);
    assert!(refused.message.contains("line 2"), "{refused}");
    let pending = executed(&core, "test.amounts.add", json!({ "amounts": [1] })).await;
    assert_eq!(pending.state, RunState::WaitingForHuman, "a rule requires approval");
    launch(&core, "ledger", json!({ "amounts": [1] })).await.expect("skills are not capabilities");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_for_a_skill_apply_to_its_capabilities() {
    let mut place = TestHome::new();
    place.write("policy.yaml", "deny: [{id: ledger}]\nrequire_approval: [{id: upload}]\n");
    place.config.policy_file = Some(place.path("policy.yaml"));
    let core = place.open().await;
    let book = capability("test.ledger.book", json!({ "amount": 7, "account": "1" }));
    let refused = core.execute_capability(book).await.unwrap_err();
    assert_eq!(refused.code, Code::Forbidden);
    assert!(refused.message.contains("the policy forbids ledger, which contains capability:"), "{refused}");
    let started = std::fs::read_to_string(place.path("skills/upload/capabilities/begin.yaml")).unwrap();
    let id = started.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let pending = executed(&core, id, json!({ "name": "a.csv" })).await;
    assert_eq!(pending.state, RunState::WaitingForHuman, "the rule for the skill requires approval");
}

#[tokio::test(flavor = "multi_thread")]
async fn quality_state_rises_with_golden_requests_and_runs() {
    let place = TestHome::new();
    place.write(
        "skills/golden.yaml",
        "- {query: add amounts up and book the sum, expect: [ledger]}\n\
         - {query: book amounts in the ledger, expect: [ledger]}\n\
         - {query: ledger, expect: [ledger]}\n",
    );
    let only =
        |skill: &str| GovernanceFilter { skill: Some(skill.to_owned()), ..GovernanceFilter::default() };
    let open = || async {
        let config = place.config.clone();
        let core = Local::open_once(config, skills_api::CoreParts::Index).await.unwrap();
        core.governance(only("ledger")).await.unwrap().skills.remove(0)
    };
    let before = open().await;
    assert_eq!(before.state, QualityState::Validated, "{before:?}");
    assert_eq!(before.next, ["complete a run of its current contract (`skills run ledger`)"], "{before:?}");

    let core = place.open().await;
    for amount in 1..=5 {
        let waiting = run(&core, "ledger", json!({ "amounts": [amount] })).await;
        send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
        assert_eq!(wait_for_completion(&core, &waiting.id.0).await.state, RunState::Completed);
    }
    let after = open().await;
    assert_eq!(after.state, QualityState::Trusted, "{after:?}");
    assert!(after.reasons.iter().any(|r| r.contains("5 of 5 runs")), "{after:?}");

    let text = std::fs::read_to_string(place.path("skills/ledger/skill.yaml")).unwrap();
    place.write("skills/ledger/skill.yaml", &text.replace("version: 1.0.0", "version: 1.1.0"));
    let changed = open().await;
    assert_eq!(changed.state, QualityState::Validated, "runs of another contract prove nothing: {changed:?}");

    let all = core.governance(GovernanceFilter::default()).await.unwrap();
    assert!(all.skills.len() > 3);
    let none = core.governance(only("legder")).await.unwrap_err();
    assert_eq!((none.code, none.suggestions[0].as_str()), (Code::NotFound, "ledger"));
}
