//! Runs through the core, with real bundles, scripts and a store on disk: launched, decided, resumed, branched.
use crate::runs_place;

use runs_place::{
    TestHome, decide, kinds, launch, object, request, resume, run, send_command, wait_for_completion,
};
use serde_json::json;
use skills_api::{Code, RunClient as _, RunCommand, StepState};
use skills_model::{CommandName, RunState, Verdict};
use skills_store::{IdempotencyOutcome, RunFilter, RunRecord};

#[tokio::test(flavor = "multi_thread")]
async fn run_requests_approval_and_completes() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [4, 38] })).await;
    assert_eq!(waiting.state, RunState::WaitingForHuman, "{waiting:?}");
    let detail = core.run(&waiting.id.0).await.unwrap();
    let sheet = detail.sheet.expect("a sheet to decide");
    assert_eq!(sheet.headline, "Books an amount in the ledger: account 4711, amount 42");
    assert_eq!((sheet.step.as_str(), sheet.place), ("book", (2, 2)));
    assert_eq!(sheet.inputs, json!({ "amount": 42, "account": "4711" }));
    assert_eq!(sheet.capability_note, "elevated, not idempotent");
    assert_eq!(sheet.binding, "script scripts/book.sh");
    assert_eq!(sheet.irreversible.as_deref(), Some("This step cannot be undone."));
    assert!(!sheet.isolation.is_empty());
    let states: Vec<StepState> = detail.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [StepState::Completed, StepState::WaitingForHuman]);
    assert_eq!(detail.steps[0].summary.as_deref(), Some("sum 42"));
    assert_eq!(detail.contract_unchanged, Some(true));

    let approved = send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    assert_eq!((approved.run.state, approved.note.as_str()), (RunState::Pending, "approved"));
    let done = wait_for_completion(&core, &waiting.id.0).await;
    assert_eq!(done.state, RunState::Completed, "{done:?}");
    assert_eq!(done.outputs, Some(json!({ "sum": 42, "entry": "B-1" })));
    let detail = core.run(&waiting.id.0).await.unwrap();
    assert_eq!(detail.decisions[0].by.approver.as_deref(), Some("bo"));
    assert_eq!(detail.decisions[0].by.notes.as_deref(), Some("as agreed"));
    let left: Vec<&str> = detail.steps[1].artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
    assert_eq!(left, ["entry.txt"]);
    let logged = detail.events.iter().find(|event| event.event.kind.as_str() == "step.log").expect("a line");
    assert_eq!(logged.event.data, json!({ "stream": "stderr", "text": "added 42" }));

    let again = send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "cy")).await.unwrap();
    assert!(again.note.starts_with("was already approved by bo at ") && again.repeated, "{}", again.note);
    let other = send_command(&core, &waiting, decide(&waiting, Verdict::Deny, "cy")).await.unwrap_err();
    assert_eq!(other.code, Code::InvalidTransition);
    assert!(other.message.contains("was already approved by bo at "), "who and when: {other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_run_is_canceled_and_lists_available_commands() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let early = send_command(&core, &waiting, resume()).await.unwrap_err();
    assert_eq!(early.code, Code::InvalidTransition);
    assert!(early.message.contains("step book is waiting for approval"), "{early}");
    let denied = send_command(&core, &waiting, decide(&waiting, Verdict::Deny, "bo")).await.unwrap();
    assert_eq!((denied.run.state, denied.note.as_str()), (RunState::Canceled, "denied"));
    assert_eq!(denied.run.allowed, [CommandName::Replay, CommandName::Fork]);
    let late = send_command(&core, &waiting, resume()).await.unwrap_err();
    assert_eq!(late.reason.unwrap()["allowed"], json!(["replay", "fork"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_decisions_are_one_decision() {
    let place = TestHome::new();
    let (one, other) = (place.open().await, place.open().await);
    let waiting = run(&one, "ledger", json!({ "amounts": [1] })).await;
    let id = waiting.id.0.as_str();
    let (a, b) = tokio::join!(
        one.send_command(id, decide(&waiting, Verdict::Approve, "ana")),
        other.send_command(id, decide(&waiting, Verdict::Approve, "bo"))
    );
    let mut notes = [a.unwrap().note, b.unwrap().note];
    notes.sort();
    assert_eq!(notes[0], "approved", "{notes:?}");
    assert!(notes[1].starts_with("was already approved by "), "{notes:?}");
    assert_eq!(one.run(id).await.unwrap().decisions.len(), 1);

    let waiting = run(&one, "ledger", json!({ "amounts": [2] })).await;
    let id = waiting.id.0.as_str();
    let (a, b) = tokio::join!(
        one.send_command(id, decide(&waiting, Verdict::Approve, "ana")),
        other.send_command(id, decide(&waiting, Verdict::Deny, "bo"))
    );
    let refused = [a, b].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert_eq!(refused.len(), 1, "one of two different answers holds");
    assert_eq!(refused[0].code, Code::InvalidTransition);
}

#[tokio::test(flavor = "multi_thread")]
async fn early_signal_is_buffered_and_its_payload_output() {
    let place = TestHome::new();
    let core = place.open().await;
    let signal = |name: &str| RunCommand::Signal {
        name: name.to_owned(),
        payload: json!({ "by": "bo" }),
        by: None,
        since_ms: None,
    };
    let waiting = run(&core, "close", json!({})).await;
    assert_eq!(waiting.state, RunState::WaitingForSignal);
    let wrong = send_command(&core, &waiting, signal("other")).await.unwrap_err();
    assert!(wrong.message.contains("books-closed"), "{wrong}");
    let sent = send_command(&core, &waiting, signal("books-closed")).await.unwrap();
    assert_eq!(sent.note, "sent signal `books-closed`");
    assert_eq!(wait_for_completion(&core, &waiting.id.0).await.outputs, Some(json!({ "by": "bo" })));

    let again = run(&core, "close", json!({})).await;
    let before = RunRecord { since_ms: again.since_ms - 1, ..again.clone() };
    let outdated =
        send_command(&core, &again, signal("books-closed").if_unchanged(&before)).await.unwrap_err();
    assert_eq!(outdated.code, Code::InvalidTransition);
    assert!(outdated.message.contains("has changed since it was loaded"), "{outdated}");
    send_command(&core, &again, signal("books-closed").if_unchanged(&again)).await.unwrap();

    let early = launch(&core, "close", json!({})).await.unwrap().run;
    let buffered = send_command(&core, &early, signal("books-closed")).await.unwrap();
    assert_eq!(buffered.note, "signal `books-closed` is buffered until a step waits for it");
    assert_eq!(wait_for_completion(&core, &early.id.0).await.state, RunState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_run_continues_with_corrected_inputs() {
    let place = TestHome::new();
    let core = place.open().await;
    let failed = run(&core, "upload", json!({ "name": "wrong.csv" })).await;
    assert_eq!(failed.state, RunState::Failed);
    let error = failed.error.clone().unwrap();
    assert!(error.to_string().contains("only right.csv is taken"), "{error}");
    let detail = core.run(&failed.id.0).await.unwrap();
    assert_eq!(detail.steps[1].state, StepState::Failed);
    assert!(detail.steps[1].summary.is_some());

    let with = |inputs| RunCommand::Resume {
        checkpoint: None,
        inputs: Some(object(inputs)),
        despite_change: false,
        by: None,
        since_ms: None,
    };
    let unfit = send_command(&core, &failed, with(json!({ "name": 7, "nam": "x" }))).await.unwrap_err();
    assert_eq!(unfit.code, Code::InvalidRequest);
    assert!(unfit.message.contains("did you mean name?") && unfit.message.contains("name: "), "{unfit}");
    let nowhere = RunCommand::Resume {
        checkpoint: Some(99),
        inputs: None,
        despite_change: false,
        by: None,
        since_ms: None,
    };
    assert_eq!(send_command(&core, &failed, nowhere).await.unwrap_err().code, Code::CheckpointNotFound);

    let resumed = send_command(&core, &failed, with(json!({ "name": "right.csv" }))).await.unwrap();
    assert_eq!(resumed.note, "resumed with changed input `name`");
    let done = wait_for_completion(&core, &failed.id.0).await;
    assert_eq!(done.outputs, Some(json!({ "taken": "right.csv" })));
    let event_kinds = kinds(&core, &done).await;
    let started = event_kinds.iter().filter(|kind| *kind == "step.started").count();
    assert_eq!(started, 3, "the first step did not run again: {event_kinds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_of_inputs_before_a_correction_are_not_shown_as_pending() {
    let place = TestHome::new();
    let file = "skills/upload/capabilities/send.yaml";
    let text = std::fs::read_to_string(place.path(file)).unwrap();
    let gate = "safety: {mandatory_pre_gates: [{capability: test.upload.check, on_fail: block}]}\n";
    place.write(file, &format!("{text}{gate}"));
    place.write(
        "skills/upload/capabilities/check.yaml",
        "id: test.upload.check\nversion: 1.0.0\ninputs: {name: {type: string}}\n\
         outputs: {allowed: {type: boolean}}\nproperties: {side_effects: false}\n",
    );
    place.write(
        "skills/upload/bindings/check.yaml",
        "id: upload-check\ncapability: test.upload.check\nservice: bundle\nprotocol: script\n\
         operation: scripts/check.sh\nresponse: {allowed: response.allowed}\n\
         metadata: {conformance_profile: standard}\n",
    );
    place.write("skills/upload/scripts/check.sh", "#!/usr/bin/env bash\nprintf '{\"allowed\": true}\\n'\n");
    let core = place.open().await;
    let failed = run(&core, "upload", json!({ "name": "wrong.csv" })).await;
    let gates = async || {
        let steps = core.run(&failed.id.0).await.unwrap().steps;
        let gates = steps.into_iter().filter(|view| view.step.contains("~gate:"));
        gates.map(|view| view.state).collect::<Vec<_>>()
    };
    assert_eq!(gates().await, [StepState::Completed], "{:?}", failed.error);
    let resume = RunCommand::Resume {
        checkpoint: None,
        inputs: Some(object(json!({ "name": "right.csv" }))),
        despite_change: false,
        by: None,
        since_ms: None,
    };
    send_command(&core, &failed, resume).await.unwrap();
    let done = wait_for_completion(&core, &failed.id.0).await;
    assert_eq!((done.state, gates().await), (RunState::Completed, vec![StepState::Completed]));
}

#[tokio::test(flavor = "multi_thread")]
async fn null_restores_the_default_of_a_corrected_input() {
    let place = TestHome::new();
    let file = "skills/upload/skill.yaml";
    let text = std::fs::read_to_string(place.path(file)).unwrap();
    let with_folder = "inputs:\n  folder: {type: string, default: inbox}\n  name:";
    place.write(file, &text.replace("inputs:\n  name:", with_folder));
    let core = place.open().await;
    let failed = run(&core, "upload", json!({ "name": "wrong.csv", "folder": "other" })).await;
    assert_eq!(core.run(&failed.id.0).await.unwrap().run.inputs["folder"], "other");
    let resume = RunCommand::Resume {
        checkpoint: None,
        inputs: Some(object(json!({ "name": "right.csv", "folder": null }))),
        despite_change: false,
        by: None,
        since_ms: None,
    };
    send_command(&core, &failed, resume).await.unwrap();
    wait_for_completion(&core, &failed.id.0).await;
    let done = core.run(&failed.id.0).await.unwrap().run;
    assert_eq!(done.inputs, json!({ "name": "right.csv", "folder": "inbox" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn contract_edit_during_a_wait_is_reported() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let failed = run(&core, "upload", json!({ "name": "wrong.csv" })).await;
    for skill in ["ledger", "upload"] {
        let file = format!("skills/{skill}/skill.yaml");
        let text = std::fs::read_to_string(place.path(&file)).unwrap();
        place.write(&file, &text.replace("version: 1.0.0", "version: 2.0.0"));
    }
    let core = place.open().await;
    let pending = core.run(&waiting.id.0).await.unwrap();
    assert_eq!(pending.contract_unchanged, Some(false));
    let changed = pending.sheet.unwrap().changed;
    assert_eq!(changed.as_deref(), Some("skill.yaml changed since the launch"), "a script can read it");
    send_command(&core, &waiting, decide(&pending.run, Verdict::Approve, "bo")).await.unwrap();
    let done = wait_for_completion(&core, &waiting.id.0).await;
    assert_eq!(done.state, RunState::Completed, "what was approved is what runs: {done:?}");
    assert_eq!(core.run(&waiting.id.0).await.unwrap().contract_version, "1.0.0");

    let changed = send_command(&core, &failed, resume()).await.unwrap_err();
    assert_eq!(changed.code, Code::SkillChanged);
    assert!(changed.message.contains("1.0.0 then, 2.0.0 now"), "{changed}");
    let on =
        RunCommand::Resume { checkpoint: None, inputs: None, despite_change: true, by: None, since_ms: None };
    assert_eq!(send_command(&core, &failed, on).await.unwrap().run.state, RunState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_returns_its_run_and_rejects_another_payload() {
    let place = TestHome::new();
    let core = place.open().await;
    let keyed = |amounts: serde_json::Value, who: &str| {
        let mut request = request("ledger", json!({ "amounts": amounts }));
        request.options.idempotency_key = Some("order-7".to_owned());
        request.started_by = Some(who.to_owned());
        request
    };
    let first = core.launch(keyed(json!([1]), "ana")).await.unwrap();
    assert_eq!(first.idempotency, IdempotencyOutcome::Created);
    let again = core.launch(keyed(json!([1]), "ana")).await.unwrap();
    assert_eq!((again.idempotency, again.run.id), (IdempotencyOutcome::Reused, first.run.id.clone()));
    let other = core.launch(keyed(json!([2]), "ana")).await.unwrap_err();
    assert_eq!(other.code, Code::IdempotencyConflict);
    assert_eq!(other.reason.unwrap()["run"], json!(first.run.id));
    let somebody = core.launch(keyed(json!([2]), "bo")).await.unwrap();
    assert_eq!(somebody.idempotency, IdempotencyOutcome::Created, "keys of others never meet");
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_errors_state_what_to_do() {
    let mut place = TestHome::new();
    let broken = "id: test.broken\nversion: 1.0.0\nsteps:\n  - id: a\n    uses: unknown.has.this\n    input: {x: inputs.nothing}\n";
    place.write("skills/broken/SKILL.md", "---\nname: broken\ndescription: Has a mistake.\n---\nx\n");
    place.write("skills/broken/skill.yaml", broken);
    let core = place.open().await;
    let refused = |error: skills_api::Error| (error.code, error.message);
    let (code, message) = refused(launch(&core, "notes", json!({})).await.unwrap_err());
    assert_eq!(code, Code::InvalidConfiguration);
    assert!(message.contains("has no contract") && message.contains("load it in a session"), "{message}");
    let missing = core.contract("notes").await.unwrap_err();
    assert!(missing.has_no_contract(), "{missing:?}");
    let invalid = launch(&core, "broken", json!({})).await.unwrap_err();
    assert!(!invalid.has_no_contract(), "{invalid:?}");
    let (code, message) = refused(invalid);
    assert_eq!(code, Code::InvalidConfiguration);
    assert!(
        message.contains("skill.yaml:6: step `a`, x: unknown input `nothing`"),
        "the line is named: {message}"
    );
    let (code, message) = refused(launch(&core, "watch", json!({})).await.unwrap_err());
    assert_eq!(code, Code::InvalidRequest);
    assert!(message.contains("skills attach watch"), "{message}");
    let error = launch(&core, "ledgr", json!({})).await.unwrap_err();
    assert_eq!((error.code, error.suggestions), (Code::NotFound, vec!["ledger".to_owned()]));
    let error = launch(&core, "ledger", json!({ "amounts": "x", "acount": "1" })).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
    assert!(
        error.message.contains("amounts: ") && error.message.contains("did you mean account?"),
        "{error}"
    );

    let steps = core.contract("ledger").await.unwrap().steps;
    assert_eq!((steps[1].unbound, steps[1].binding.as_deref()), (false, Some("script scripts/book.sh")));
    let steps = core.contract("broken").await.unwrap().steps;
    let unknown = Some("unknown capability unknown.has.this");
    assert_eq!((steps[0].unbound, steps[0].binding.as_deref()), (true, unknown));

    place.config.trust.clear();
    let core = place.open().await;
    let (code, message) = refused(launch(&core, "ledger", json!({ "amounts": [1] })).await.unwrap_err());
    assert_eq!(code, Code::Untrusted);
    assert!(message.contains("skills trust"), "{message}");
    let view = core.contract("ledger").await.unwrap();
    assert!(view.blocked.unwrap().contains("skills trust"));
    assert_eq!(core.runs(RunFilter::default()).await.unwrap().runs, [], "nothing was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_denies_or_requires_approval() {
    let mut place = TestHome::new();
    place.write(
        "home/policy.yaml",
        "deny:\n  - {id: upload, reason: by hand only}\nrequire_approval:\n  - {id: close}\n",
    );
    place.config.policy_file = Some(place.path("home/policy.yaml"));
    let core = place.open().await;
    let error = launch(&core, "upload", json!({ "name": "a" })).await.unwrap_err();
    assert_eq!(error.code, Code::Forbidden);
    assert!(error.message.contains("by hand only"), "{error}");
    let waiting = run(&core, "close", json!({})).await;
    assert_eq!(waiting.state, RunState::WaitingForHuman);
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    assert_eq!(sheet.headline, "Run close 1.0.0 (1 step)");
    assert!(sheet.why.contains("require_approval id close"), "{}", sheet.why);
    send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    assert_eq!(wait_for_completion(&core, &waiting.id.0).await.state, RunState::WaitingForSignal);
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_continues_and_fork_is_paused() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [20, 3] })).await;
    let replayed =
        send_command(&core, &waiting, RunCommand::Replay { checkpoint: None, by: None, since_ms: None })
            .await
            .unwrap();
    assert_eq!(replayed.run.source, Some((waiting.id.clone(), waiting.head)));
    assert!(replayed.note.ends_with(&format!(" from checkpoint {}", waiting.head)), "{}", replayed.note);
    let replayed = wait_for_completion(&core, &replayed.run.id.0).await;
    assert_eq!(replayed.state, RunState::WaitingForHuman, "its gate asks for itself");
    let event_kinds = kinds(&core, &replayed).await;
    assert!(
        !event_kinds.contains(&"step.started".to_owned()),
        "the first step was restored, not run: {event_kinds:?}"
    );

    let forked =
        send_command(&core, &waiting, RunCommand::Fork { checkpoint: Some(0), by: None, since_ms: None })
            .await
            .unwrap();
    assert!(forked.run.paused && forked.note.contains("until it is resumed"), "{}", forked.note);
    let paused = wait_for_completion(&core, &forked.run.id.0).await;
    assert_eq!((paused.state, paused.paused), (RunState::Pending, true), "no worker runs it");
    send_command(&core, &paused, resume()).await.unwrap();
    assert_eq!(wait_for_completion(&core, &paused.id.0).await.state, RunState::WaitingForHuman);
    let lineage = core.run(&waiting.id.0).await.unwrap().descendants;
    assert_eq!(lineage, [replayed.id, paused.id]);
    let nowhere =
        send_command(&core, &waiting, RunCommand::Fork { checkpoint: Some(50), by: None, since_ms: None })
            .await
            .unwrap_err();
    assert_eq!(nowhere.code, Code::CheckpointNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn run_is_found_by_the_end_of_its_id() {
    let place = TestHome::new();
    let core = place.open().await;
    let run = launch(&core, "close", json!({})).await.unwrap().run;
    let other = launch(&core, "close", json!({})).await.unwrap().run;
    let end = &run.id.0[run.id.0.len() - 8..];
    assert_eq!(core.run(end).await.unwrap().run.id, run.id);
    let error = core.run(&run.id.0[..3]).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
    assert_eq!(error.suggestions.len(), 2);
    for ending in &error.suggestions {
        let found = core.run(ending).await.unwrap().run.id;
        assert!([&run.id, &other.id].contains(&&found) && found.0.ends_with(ending), "{ending}");
    }
    assert_eq!(core.run("zz").await.unwrap_err().code, Code::NotFound);
    assert_eq!(core.run("ffffffffffff").await.unwrap_err().code, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_the_process_claim_detached_runs() {
    let place = TestHome::new();
    let core = place.open().await;
    let alone = launch(&core, "upload", json!({ "name": "right.csv" })).await.unwrap();
    assert!(!alone.worker_alive, "there is no worker yet");
    let newest = core.newest_event().await.unwrap();
    core.start_workers().await.unwrap();
    assert!(launch(&core, "close", json!({})).await.unwrap().worker_alive);
    let mut after = newest;
    'event_kinds: loop {
        let events = core.run_events(None, after, 100, 20_000).await.unwrap();
        assert!(!events.is_empty(), "the run was never completed");
        for event in events {
            after = event.global;
            if event.event.kind.as_str() == "run.completed" && event.run == alone.run.id {
                break 'event_kinds;
            }
        }
    }
    core.stop_workers().await;
    assert_eq!(core.run(&alone.run.id.0).await.unwrap().run.state, RunState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_store_is_rejected_and_not_modified() {
    let place = TestHome::new();
    place.write(
        "home/.local/share/skill-workbench/runs.db",
        &"no database, and long enough to be read ".repeat(200),
    );
    let before = std::fs::read(place.path("home/.local/share/skill-workbench/runs.db")).unwrap();
    let core = place.open().await;
    let error = launch(&core, "close", json!({})).await.unwrap_err();
    assert_eq!((error.code, error.reason), (Code::StoreUnavailable, Some(json!({ "cause": "damaged" }))));
    assert_eq!(std::fs::read(place.path("home/.local/share/skill-workbench/runs.db")).unwrap(), before);
    assert!(!core.store().health().await.unwrap().health.is_sound());
}
