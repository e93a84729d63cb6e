//! Attaching a skill to what exists: the four checks, what is handed over, and what a sidecar may do.
use crate::runs_place;

use runs_place::{
    TestHome, attach, attachment, kinds, launch, object, run, send_command, wait_for_completion,
};
use serde_json::{Value, json};
use skills_api::{
    AttachCheck, AttachRequest, CapabilityRequest, Code, Error, LocalFiles, RunClient as _, RunCommand,
    SessionAccess, SessionClient as _, SettingsChange,
};
use skills_model::{RunState, Verdict};
use skills_session::MessageRole;
use skills_skill::AttachTarget;

fn reason(error: &Error) -> (Code, String, String, Vec<String>) {
    let reason = error.reason.clone().expect("a structured reason");
    let text = |key: &str| reason[key].as_str().unwrap().to_owned();
    let allowed =
        reason["allowed"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    (error.code, text("check"), text("given"), allowed)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_check_fails_with_its_own_reason() {
    let mut place = TestHome::new();
    let only_runs = "---\nname: narrow\ndescription: Takes runs.\nmetadata:\n  classification: {role: sidecar, invocation: attach, attach_targets: [run], effect_mode: read_only}\n---\nx\n";
    place.write("skills/narrow/SKILL.md", only_runs);
    place.write(
        "skills/narrow/skill.yaml",
        "id: test.narrow\nversion: 1.0.0\nsteps:\n  - id: a\n    wait_for_signal: b\n",
    );
    place.config.watch = false;
    let core = place.open().await;
    let fails = async |skill: &str, kind: &str, reference: &str| {
        let error = core.attach(attachment(skill, kind, reference, json!({}))).await.unwrap_err();
        let preview = core.attach_preview(attachment(skill, kind, reference, json!({}))).await.unwrap();
        assert_eq!(
            serde_json::to_value(preview.reason).unwrap(),
            error.reason.clone().unwrap(),
            "both say the same"
        );
        error
    };
    let (code, check, actual, allowed) = reason(&fails("wach", "run", "x").await);
    assert_eq!((code, check.as_str(), actual.as_str()), (Code::AttachInvalid, "exists", "wach"));
    assert_eq!(allowed, ["watch"]);
    let (code, check, ..) = reason(&fails("notes", "run", "x").await);
    assert_eq!((code, check.as_str()), (Code::AttachInvalid, "exists"), "there is no contract to load");
    let (code, check, actual, allowed) = reason(&fails("ledger", "run", "x").await);
    assert_eq!((code, check.as_str(), actual.as_str()), (Code::AttachInvalid, "invocation", "direct"));
    assert_eq!(allowed, ["attach", "both"]);
    let (code, check, actual, allowed) = reason(&fails("narrow", "output", "x").await);
    assert_eq!((code, check.as_str(), actual.as_str()), (Code::AttachInvalid, "target_type", "output"));
    assert_eq!(allowed, ["run"]);
    let (code, check, actual, _) = reason(&fails("narrow", "run", "ffffffff").await);
    assert_eq!((code, check.as_str(), actual.as_str()), (Code::TargetNotFound, "target", "ffffffff"));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_errors_are_quoted_for_the_shell() {
    let place = TestHome::new();
    let (signal, none) = ("steps:\n  - id: a\n    wait_for_signal: b\n", "steps: []\n");
    let direct = "{invocation: direct}";
    let sidecar = "{role: sidecar, invocation: attach, attach_targets: [run], effect_mode: read_only}";
    for (name, classification, steps) in
        [("direct", direct, signal), ("sidecar", sidecar, signal), ("broken", direct, none)]
    {
        let text = format!(
            "---\nname: {name}\ndescription: Does {name} things.\nmetadata:\n  classification: {classification}\n---\nx\n"
        );
        place.write(&format!("skills/{name};date/SKILL.md"), &text);
        let contract = format!("id: test.{name}\nversion: 1.0.0\n{steps}");
        place.write(&format!("skills/{name};date/skill.yaml"), &contract);
    }
    let notes = "---\nname: attached\ndescription: Takes notes.\nmetadata:\n  classification: ";
    place.write("skills/attached/SKILL.md", &format!("{notes}{sidecar}\n---\nx\n"));
    let core = place.open().await;
    let error = core.attach(attachment("direct;date", "run", "x", json!({}))).await.unwrap_err();
    assert!(error.message.contains("`skills run 'direct;date'`"), "{error}");
    let error = launch(&core, "sidecar;date", json!({})).await.unwrap_err();
    assert!(error.message.contains("`skills attach 'sidecar;date'`"), "{error}");
    let error = launch(&core, "attached", json!({})).await.unwrap_err();
    assert!(error.has_no_contract(), "it cannot be attached either: {error}");
    let error = launch(&core, "broken;date", json!({})).await.unwrap_err();
    assert!(error.message.contains("`skills lint '/"), "{error}");
    assert!(error.message.ends_with("/skills/broken;date'` shows all"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_the_checks_the_content_and_the_command() {
    let place = TestHome::new();
    let core = place.open().await;
    let watched = run(&core, "ledger", json!({ "amounts": [40, 2] })).await;
    let reference = format!("{}/add", watched.id);
    let request = attachment("watch", "output", &reference, json!({ "wish": "none", "wihs": 1 }));
    let preview = core.attach_preview(request).await.unwrap();
    assert!(preview.checks.iter().all(|check| check.passed == Some(true)), "{:?}", preview.checks);
    assert_eq!(preview.content, Some(json!({ "sum": 42 })));
    assert_eq!(preview.content_bytes, Some(10));
    assert_eq!(preview.input_problems[0].0, "wihs");
    assert!(
        preview
            .cli
            .starts_with(&format!("skills attach watch --target-type output --target-ref {reference}"))
    );
    assert!(preview.curl.contains("/v1/skills/watch/attach"), "{}", preview.curl);
    assert!(
        preview.may_do.iter().any(|line| line.contains("can pause or cancel the target run")),
        "{:?}",
        preview.may_do
    );
    let wrong = attachment("watch", "output", "nowhere", json!({}));
    let preview = core.attach_preview(wrong).await.unwrap();
    let results: Vec<(AttachCheck, Option<bool>)> =
        preview.checks.iter().map(|c| (c.check, c.passed)).collect();
    assert_eq!(results.last(), Some(&(AttachCheck::Target, Some(false))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_applies_the_policy_to_the_labels_of_the_run() {
    let place = TestHome::new();
    place.write("home/.config/skill-workbench/policy.yaml", "require_approval: [{label: env=prod}]\n");
    let core = place.open().await;
    let watched = run(&core, "ledger", json!({ "amounts": [40, 2] })).await;
    let mut request = attachment("watch", "output", &format!("{}/add", watched.id), json!({}));
    for requires_approval in [false, true] {
        let preview = core.attach_preview(request.clone()).await.unwrap();
        let asks = |line: &String| line.starts_with("requires approval before its first step");
        assert_eq!(preview.may_do.iter().any(asks), requires_approval, "{:?}", preview.may_do);
        request.options.labels = [("env".to_owned(), "prod".to_owned())].into();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_target_is_passed() {
    let place = TestHome::new();
    place.write(
        "skills/tasks.yaml",
        "- {id: T-1, title: Check the books, status: open}\n- {id: T-2, status: done}\n",
    );
    place.write("work/rows.json", "{\"rows\": [1, 2]}");
    place.write("elsewhere/secret.txt", "secret");
    let core = place.open().await;
    let watched = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let id = watched.id.0.clone();
    // A local user may name files of the working directory.
    let attach = async |kind: &str, reference: &str| {
        let request = attachment("watch", kind, reference, json!({}));
        let local_files = Some(LocalFiles { cwd: place.path("work"), home: place.path("home") });
        core.attach(AttachRequest { local_files, ..request }).await
    };
    let seen = async |kind: &str, reference: &str| {
        let attached = attach(kind, reference).await.unwrap();
        assert_eq!(attached.execution.state, RunState::Completed, "{:?}", attached.execution);
        attached.execution.outputs.unwrap()["seen"].as_str().unwrap().to_owned()
    };
    assert!(
        seen("run", &id).await.contains("\"state\": \"waiting_for_human\"")
            || seen("run", &id).await.starts_with("run {")
    );
    assert_eq!(seen("output", &format!("{id}/add")).await, "output {\"sum\": 1}");
    assert!(seen("task", "task:T-1").await.contains("Check the books"));
    assert!(seen("task", &format!("task:{id}")).await.starts_with("task {"));
    assert!(seen("artifact", "rows.json").await.contains("\"rows\": [1, 2]"));
    let missing = async |kind: &str, reference: &str| {
        let error = attach(kind, reference).await.unwrap_err();
        assert_eq!(error.code, Code::TargetNotFound, "{error}");
        error.message
    };
    assert!(missing("task", "task:T-2").await.contains("done"));
    assert!(missing("artifact", "../elsewhere/secret.txt").await.contains("outside"));
    assert!(missing("transcript", "session:none").await.contains("session `none` not found"));
    assert!(missing("output", &format!("{id}/book")).await.contains("available: add"));
    assert!(missing("output", &id).await.contains("has no outputs yet: it "));
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_show_what_the_run_is_attached_to() {
    let place = TestHome::new();
    place.write(
        "skills/watch/capabilities/look.yaml",
        "id: test.watch.look\nversion: 1.0.0\ndescription: Looks at a target.\n\
         inputs: {wish: {type: any}, target: {type: any}, kind: {type: string}}\n\
         outputs: {control: {type: any}, seen: {type: string}}\n\
         properties: {deterministic: true, side_effects: false, idempotent: true}\n\
         safety: {trust_level: standard, requires_confirmation: true, reversible: true}\n",
    );
    // The step itself receives nothing of the target, but its script does.
    place.write(
        "skills/watch/skill.yaml",
        "id: test.watch\nversion: 1.0.0\ninputs:\n  wish: {type: any, default: none}\nsteps:\n\
         \x20 - {id: look, uses: test.watch.look, input: {wish: inputs.wish}}\n",
    );
    let core = place.open().await;
    let sheet_of = async |name: &str, content: String| {
        place.write(&format!("work/{name}"), &content);
        let request = attachment("watch", "artifact", name, json!({}));
        let local_files = Some(LocalFiles { cwd: place.path("work"), home: place.path("home") });
        let attached = core.attach(AttachRequest { local_files, ..request }).await.unwrap();
        let run = attached.execution;
        assert_eq!(run.state, RunState::WaitingForHuman, "{run:?}");
        (core.run(&run.id.0).await.unwrap().sheet.unwrap(), run)
    };
    let (sheet, run) = sheet_of("order.json", "{\"iban\": \"DE00\"}".to_owned()).await;
    let target = sheet.target.unwrap();
    assert_eq!((target.kind.as_str(), target.reference.as_str()), ("artifact", "order.json"));
    assert_eq!(target.label.as_deref(), Some("order.json"));
    assert_eq!(target.content["content"], json!({ "iban": "DE00" }));
    assert_eq!(target.content_bytes, target.content.to_string().len() as u64);
    assert!(!target.truncated);

    let refused = core.send_command(&run.id.0, unnamed_approval()).await.unwrap_err();
    assert_eq!(refused.code, Code::ConfirmationRequired, "{refused}");
    assert_eq!(refused.reason.unwrap()["decision"]["target"], json!(target));

    let (long, _) = sheet_of("long.txt", "x".repeat(3_000)).await;
    let shown = long.target.unwrap();
    assert!(shown.truncated && shown.content_bytes > 3_000, "{shown:?}");
    assert!(shown.content["content"].as_str().unwrap().ends_with("… 1000 more characters"));
    assert_ne!(long.inputs_digest, sheet.inputs_digest);
    assert_ne!(shown.sha256, target.sha256);
}

/// An approval that does not name what it approves.
fn unnamed_approval() -> RunCommand {
    RunCommand::Decide {
        verdict: Verdict::Approve,
        step: None,
        inputs_digest: None,
        approver: None,
        notes: None,
        choice: None,
        result: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_artifact_is_found_by_digest_and_suggested() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    core.send_command(&waiting.id.0, runs_place::decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    runs_place::wait_for_completion(&core, &waiting.id.0).await;
    let choices = core
        .target_choices(AttachTarget::Artifact, "entry", 10, &SessionAccess::default(), None)
        .await
        .unwrap();
    assert_eq!(choices.len(), 1, "{choices:?}");
    let attached = attach(&core, "artifact", &choices[0].target_ref, json!({})).await.unwrap();
    let content = &attached.execution.target.unwrap()["content"];
    assert_eq!(content["name"], "entry.txt");
    assert!(content["content"].to_string().contains("amount"), "{content}");
    let outputs = core
        .target_choices(AttachTarget::Output, &waiting.id.0, 10, &SessionAccess::default(), None)
        .await
        .unwrap();
    assert!(outputs.iter().any(|choice| choice.target_ref.ends_with("/add")), "{outputs:?}");
    assert!(
        core.target_choices(AttachTarget::Transcript, "", 10, &SessionAccess::default(), None)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_is_attached_to_the_transcript_of_a_session() {
    let place = TestHome::new();
    let core = place.open().await;
    let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
    core.new_session(SettingsChange::default()).await.unwrap();
    core.say(&id, MessageRole::User, "watch this talk").await.unwrap();
    let load = json!({"names": ["notes"]});
    core.call_tool(&id, "skills.load", load, None).await.unwrap().result.unwrap();
    let choices = core
        .target_choices(AttachTarget::Transcript, "notes", 10, &SessionAccess::default(), None)
        .await
        .unwrap();
    assert_eq!(choices.len(), 1, "a session in which nothing happened is not offered: {choices:?}");
    assert_eq!(choices[0].target_ref, format!("session:{id}"));
    assert_eq!(choices[0].label, "2 entries, notes");
    let attached = attach(&core, "transcript", &choices[0].target_ref, json!({})).await.unwrap();
    assert_eq!(attached.execution.state, RunState::Completed, "{:?}", attached.execution);
    let outputs = attached.execution.outputs.unwrap();
    assert!(outputs["seen"].as_str().unwrap().starts_with("transcript {"), "{outputs}");
    let content = &attached.execution.target.unwrap()["content"];
    assert_eq!((&content["session_id"], &content["active"][0]["name"]), (&json!(id), &json!("notes")));
    assert_eq!(content["entries"][0]["text"], "watch this talk");
    assert_eq!(content["entries"][1]["result"]["loaded"], json!(["notes"]));
    let short = &id[id.len() - 6..];
    assert!(attach(&core, "transcript", short, json!({})).await.is_ok(), "an end of the id is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecar_cancels_its_run_once() {
    let place = TestHome::new();
    let core = place.open().await;
    let watched = run(&core, "close", json!({})).await;
    let on = attach(&core, "run", &watched.id.0, json!({ "wish": "none" })).await.unwrap();
    assert!(on.control.unwrap().contains("resumes run"));
    let paused = attach(&core, "run", &watched.id.0, json!({ "wish": "pause" })).await.unwrap();
    assert!(paused.control.unwrap().contains("waiting for a signal; after the signal it is paused"));
    let watched_run = core.run(&watched.id.0).await.unwrap();
    assert_eq!((watched_run.run.state, watched_run.run.paused), (RunState::WaitingForSignal, true));
    assert!(
        kinds(&core, &watched_run.run).await.contains(&"control.applied".to_owned()),
        "both runs tell it"
    );
    let canceled = attach(&core, "run", &watched.id.0, json!({ "wish": "cancel" })).await.unwrap();
    assert!(canceled.control.as_ref().unwrap().contains("it is canceled"));
    let after = core.run(&watched.id.0).await.unwrap();
    assert_eq!(after.run.state, RunState::Canceled);
    let event_kinds = kinds(&core, &after.run).await;
    assert_eq!(event_kinds.iter().filter(|kind| *kind == "control.applied").count(), 2, "{event_kinds:?}");
    let by: Vec<&Value> =
        after.events.iter().map(|event| &event.event.data["by"]).filter(|by| !by.is_null()).collect();
    assert_eq!(by, [&json!(paused.execution.id), &json!(canceled.execution.id)], "the requester is named");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_sends_a_signal_with_its_payload() {
    let place = TestHome::new();
    let core = place.open().await;
    let watched = run(&core, "close", json!({})).await;
    let wish = json!({ "signal": { "name": "books-closed", "payload": { "by": "watch" } } });
    attach(&core, "run", &watched.id.0, json!({ "wish": wish })).await.unwrap();
    let done = runs_place::wait_for_completion(&core, &watched.id.0).await;
    assert_eq!(done.outputs, Some(json!({ "by": "watch" })));
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_of_a_sidecar_obeys_the_current_policy() {
    let mut place = TestHome::new();
    place.write("home/policy.yaml", "prefer: []\n");
    place.config.policy_file = Some(place.path("home/policy.yaml"));
    let core = place.open().await;
    let watched = run(&core, "close", json!({})).await;
    place.write("home/policy.yaml", "require_approval: [{id: close}]\n");
    let signal = json!({ "signal": { "name": "books-closed", "payload": {} } });
    let sent = attach(&core, "run", &watched.id.0, json!({ "wish": signal })).await.unwrap();
    let outcome = sent.control.unwrap();
    assert!(outcome.contains("not applied") && outcome.contains("since run"), "{outcome}");
    let after = core.run(&watched.id.0).await.unwrap().run;
    assert_eq!(after.state, RunState::WaitingForSignal);
    assert!(kinds(&core, &after).await.contains(&"control.refused".to_owned()));
}

/// Whichever process executes the sidecar or applies its signal.
#[tokio::test(flavor = "multi_thread")]
async fn signal_of_a_sidecar_obeys_the_policy_of_the_process_that_attached_it() {
    let mut place = TestHome::new();
    let other = place.open().await;
    let watched = run(&other, "close", json!({})).await;
    place.write("home/policy.yaml", "require_approval: [{id: close}]\n");
    place.config.policy_file = Some(place.path("home/policy.yaml"));
    let core = place.open().await;
    let signal = json!({ "signal": { "name": "books-closed", "payload": {} } });
    let mut request = attachment("watch", "run", &watched.id.0, json!({ "wish": signal }));
    request.options.wait = false;
    let sidecar = core.attach(request).await.unwrap().execution;
    let sidecar = wait_for_completion(&other, &sidecar.id.0).await;
    assert_eq!(sidecar.state, RunState::Completed, "{:?}", sidecar.error);
    let after = other.run(&watched.id.0).await.unwrap().run;
    assert_eq!(after.state, RunState::WaitingForSignal);
    assert!(kinds(&other, &after).await.contains(&"control.refused".to_owned()));

    // Attached where the policy permits it, and executed again where it does not.
    let signal = json!({ "signal": { "name": "other", "payload": {} } });
    let sidecar = attach(&other, "run", &watched.id.0, json!({ "wish": signal })).await.unwrap().execution;
    let again = RunCommand::Replay { checkpoint: Some(0), by: None, since_ms: None };
    let error = send_command(&core, &sidecar, again).await.unwrap_err();
    assert_eq!(error.code, Code::Forbidden, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_override_is_set_and_removed() {
    let place = TestHome::new();
    place.write(
        "skills/ledger/bindings/add2.yaml",
        "id: ledger-add-again\ncapability: test.amounts.add\nservice: bundle\nprotocol: script\noperation: scripts/add.sh\nresponse: {sum: response.sum}\nmetadata: {conformance_profile: standard}\n",
    );
    let core = place.open().await;
    assert!(core.capabilities().await.unwrap().contains(&"test.amounts.add".to_owned()));
    let before = core.explain_capability("test.amounts.add").await.unwrap();
    assert_eq!(before.used_by, ["ledger/add"]);
    let chosen = core.activate("test.amounts.add", Some("ledger-add-again"), None).await.unwrap();
    assert_eq!(chosen.explanation.chosen.as_deref(), Some("ledger-add-again"));
    let elsewhere = place.open().await.explain_capability("test.amounts.add").await.unwrap();
    assert_eq!(elsewhere.explanation.chosen.as_deref(), Some("ledger-add-again"), "it is kept");
    let back = core.activate("test.amounts.add", None, None).await.unwrap();
    assert_eq!(back.explanation.chosen, before.explanation.chosen);
    let wrong = core.activate("test.amounts.add", Some("ledger-book"), None).await.unwrap_err();
    assert_eq!(wrong.code, Code::InvalidRequest);
    let unknown = core.explain_capability("test.amounts.ad").await.unwrap_err();
    assert_eq!((unknown.code, unknown.suggestions[0].as_str()), (Code::NotFound, "test.amounts.add"));
}

/// The other process reads the choices again before each run; it does not have to be restarted.
#[tokio::test(flavor = "multi_thread")]
async fn binding_override_of_another_process_applies_at_once() {
    let place = TestHome::new();
    place.write(
        "skills/ledger/bindings/fixed.yaml",
        "id: ledger-fixed\ncapability: test.amounts.add\nservice: bundle\nprotocol: script\noperation: scripts/fixed.sh\nresponse: {sum: response.sum}\nmetadata: {conformance_profile: standard}\n",
    );
    place.write("skills/ledger/scripts/fixed.sh", "cat > /dev/null; echo '{\"sum\": 99}'\n");
    let (core, running) = (place.open().await, place.open().await);
    for (binding, sum) in [(None, 3), (Some("ledger-fixed"), 99), (None, 3)] {
        core.activate("test.amounts.add", binding, None).await.unwrap();
        let request = CapabilityRequest {
            capability: "test.amounts.add".to_owned(),
            inputs: object(json!({ "amounts": [1, 2] })),
            ..CapabilityRequest::default()
        };
        let launched = running.execute_capability(request).await.unwrap();
        let done = wait_for_completion(&running, &launched.run.id.0).await;
        assert_eq!(done.state, RunState::Completed, "{binding:?}: {:?}", done.error);
        assert_eq!(done.outputs.unwrap()["sum"], sum, "{binding:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contract_shows_the_bindings_of_its_steps() {
    let place = TestHome::new();
    let core = place.open().await;
    let view = core.contract("ledger").await.unwrap();
    assert_eq!(view.blocked, None);
    let [add, book] = &view.steps[..] else { panic!("two steps") };
    assert_eq!(add.binding.as_deref(), Some("script scripts/add.sh"));
    assert_eq!(add.effect, "no side effects; safe to repeat");
    assert_eq!(book.after, ["add"]);
    assert_eq!(book.gates, ["always requires approval"]);
    assert_eq!(book.effect, "external side effects; not idempotent");
    runs_place::launch(&core, "close", json!({})).await.unwrap();
    let checks = core.checkup().await.unwrap();
    let found = |subject: &str| checks.iter().find(|check| check.subject == subject).unwrap().found.clone();
    assert!(found("runs").contains("1 pending"), "{}", found("runs"));
    assert!(found("trust").contains("4 of 4 contracts"), "{}", found("trust"));
    assert!(found("capabilities").contains("5 callable"), "{}", found("capabilities"));
    assert!(!found("isolation").is_empty() && !found("workers").is_empty());
}

/// Adds `route`, which books or sends, and `nest`, which runs it.
fn write_routes(place: &TestHome) {
    let send = "id: test.wire.send\nversion: 1.0.0\ndescription: Sends.\nproperties: {side_effects: true}\n";
    place.write("skills/ledger/capabilities/send.yaml", send);
    let inputs = "inputs: {kind: {type: string, default: csv}}\n";
    let skill = |id: &str, step: &str| {
        let text = format!(
            "---\nname: {id}\ndescription: Does {id} things.\nmetadata:\n  classification: {{invocation: both, attach_targets: [run]}}\n---\nx\n"
        );
        place.write(&format!("skills/{id}/SKILL.md"), &text);
        let contract = format!("id: test.{id}\nversion: 1.0.0\n{inputs}steps:\n  - id: go\n{step}");
        place.write(&format!("skills/{id}/skill.yaml"), &contract);
    };
    let router = "{on: inputs.kind, cases: {xls: test.ledger.book}, default: test.wire.send}";
    skill(
        "route",
        &format!(
            "    uses: test.ledger.book\n    input: {{amount: 1, account: \"1\"}}\n    config: {{router: {router}}}\n"
        ),
    );
    skill("nest", "    uses: skill:route\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_of_routed_and_nested_calls_are_shown() {
    let place = TestHome::new();
    write_routes(&place);
    let core = place.open().await;
    let watched = run(&core, "close", json!({})).await;
    for skill in ["route", "nest"] {
        let request = attachment(skill, "run", &watched.id.0, json!({}));
        let preview = core.attach_preview(request).await.unwrap();
        for line in [
            "test.ledger.book has external side effects, after approval",
            "test.wire.send has external side effects",
        ] {
            assert!(preview.may_do.contains(&line.to_owned()), "{skill}: {:?}", preview.may_do);
        }
        let view = core.contract(skill).await.unwrap();
        let step = &view.steps[0];
        assert_eq!(
            step.gates,
            ["test.wire.send: no approval or gate", "test.ledger.book: always requires approval"],
            "{skill}"
        );
        assert_eq!(step.unapproved.as_deref(), Some("test.wire.send"), "{skill}");
        assert!(step.acts, "{skill}");
        assert_eq!(step.effect, "external side effects; not idempotent", "{skill}");
    }
    let ledger = core.contract("ledger").await.unwrap();
    assert!(ledger.steps.iter().all(|step| step.unapproved.is_none()), "{:?}", ledger.steps);
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_parts_of_a_contract_are_reported() {
    let mut place = TestHome::new();
    write_routes(&place);
    for (trusted, what) in [
        (["nest", "route"], "the folder with the definition of the capability `test."),
        (["nest", "ledger"], "route is not trusted"),
    ] {
        place.config.trust = trusted.iter().map(|id| place.path(&format!("skills/{id}"))).collect();
        let core = place.open().await;
        let blocked = core.contract("nest").await.unwrap().blocked.unwrap();
        assert!(blocked.contains(what), "{blocked}");
        let error = launch(&core, "nest", json!({})).await.unwrap_err();
        assert_eq!(error.code, Code::Untrusted, "{error}");
    }
}
