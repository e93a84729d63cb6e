//! Runs that are stopped in the middle of a step, scripts that change while they wait, who sent which command, and a
//! worker that has not seen a skill yet.
use crate::runs_place;

use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;

use runs_place::{
    TestHome, decide, launch, request, resume, run, sandbox, send_command, wait_for_completion,
};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use skills_api::{
    AuditFilter, Code, CoreParts, ExecutionOptions, LaunchRequest, Local, RunClient as _, RunCommand,
    RunDetail, StepState, StepView, SuppliedFile, list_commands,
};
use skills_model::{ApprovalReason, Choice, Gate, RunState, Verdict};
use skills_skill::Digest;
use skills_skill::contract::Conformance;
use skills_store::{EventKind, IdempotencyOutcome, RunRecord};
use tokio_util::sync::CancellationToken;

/// Writes a bundle whose one step pays, for longer than a test is patient, and may not be repeated.
fn slow_pay(place: &TestHome, properties: &str) {
    bundle(place, "slow-pay", "test.bank.pay", properties, "#!/usr/bin/env bash\nexec sleep 600\n");
}

fn bundle(place: &TestHome, name: &str, capability: &str, properties: &str, script: &str) {
    let at = |path: &str| format!("skills/{name}/{path}");
    place
        .write(&at("SKILL.md"), &format!("---\nname: {name}\ndescription: Pays. Use it in tests.\n---\nx\n"));
    place.write(
        &at("skill.yaml"),
        &format!("id: test.{name}\nversion: 1.0.0\nsteps:\n  - {{ id: pay, uses: {capability} }}\n"),
    );
    let declared = format!(
        "id: {capability}\nversion: 1.0.0\ndescription: Pays a bill.\nproperties: {{{properties}}}\n"
    );
    place.write(&at("capabilities/pay.yaml"), &declared);
    let binding = format!(
        "id: {name}\ncapability: {capability}\nservice: bundle\nprotocol: script\noperation: scripts/pay.sh\n\
         metadata: {{conformance_profile: standard}}\n"
    );
    place.write(&at("bindings/pay.yaml"), &binding);
    place.write(&at("scripts/pay.sh"), script);
}

const UNSAFE: &str = "deterministic: false, side_effects: true, idempotent: false";
const SAFE: &str = "deterministic: true, side_effects: false, idempotent: true";

/// Launches it and returns in the middle of its step; the worker stops when it is canceled.
async fn in_the_middle(core: &Arc<Local>) -> (RunRecord, CancellationToken, tokio::task::JoinHandle<()>) {
    let launched = launch(core, "slow-pay", json!({})).await.unwrap().run;
    let (leave, worker) = until_begun(core, &launched).await;
    (launched, leave, worker)
}

/// Executes a run until its next step starts; the worker stops when it is canceled.
async fn until_begun(core: &Arc<Local>, run: &RunRecord) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let known = core.run_events(Some(&run.id.0), 0, 1000, 0).await.unwrap();
    let mut after = known.last().map_or(0, |event| event.number);
    let leave = CancellationToken::new();
    let worker = tokio::spawn({
        let (core, id, leave) = (Arc::clone(core), run.id.0.clone(), leave.clone());
        async move { drop(core.wait_for_completion(&id, leave).await) }
    });
    loop {
        let events = core.run_events(Some(&run.id.0), after, 100, 20_000).await.unwrap();
        assert!(!events.is_empty(), "the step never started");
        if events.iter().any(|event| event.event.kind.as_str() == "step.started") {
            return (leave, worker);
        }
        after = events.last().unwrap().number;
    }
}

/// As [`in_the_middle`], and the worker is gone: the run waits for a decision on the outcome of the step.
async fn lost(core: &Arc<Local>) -> RunRecord {
    let (run, leave, worker) = in_the_middle(core).await;
    leave.cancel();
    worker.await.unwrap();
    let asks = wait_for_completion(core, &run.id.0).await;
    assert!(matches!(&asks.gate, Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. })), "{asks:?}");
    asks
}

fn choose(run: &RunRecord, choice: Choice) -> RunCommand {
    match decide(run, Verdict::Approve, "bo") {
        RunCommand::Decide { verdict, step, inputs_digest, approver, notes, result, .. } => {
            RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice: Some(choice), result }
        }
        other => other,
    }
}

async fn pay(core: &Local, run: &RunRecord) -> StepView {
    core.run(&run.id.0).await.unwrap().steps.remove(0)
}

fn cancel(by: &str) -> RunCommand {
    RunCommand::Cancel { by: Some(by.to_owned()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_step_is_reported_as_started() {
    for (properties, summary) in [(UNSAFE, "outcome unknown"), (SAFE, "interrupted")] {
        let place = TestHome::new();
        slow_pay(&place, properties);
        let core = place.open().await;
        let (run, _leave, worker) = in_the_middle(&core).await;
        assert_eq!(pay(&core, &run).await.state, StepState::Running);
        send_command(&core, &run, cancel("ana")).await.unwrap();
        worker.await.unwrap();
        let step = pay(&core, &run).await;
        assert_eq!((step.state, step.attempts, step.ended_ms), (StepState::Interrupted, 1, None), "{step:?}");
        assert!(step.started_ms.is_some() && step.summary.as_deref().unwrap().ends_with(summary), "{step:?}");
        assert_eq!(core.run(&run.id.0).await.unwrap().run.state, RunState::Canceled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_outcome_survives_denial_and_resumed_failure() {
    let place = TestHome::new();
    slow_pay(&place, UNSAFE);
    let core = place.open().await;
    let denied = lost(&core).await;
    send_command(&core, &denied, decide(&denied, Verdict::Deny, "bo")).await.unwrap();
    let step = pay(&core, &denied).await;
    assert_eq!((step.state, step.attempts), (StepState::Interrupted, 1));
    assert!(step.started_ms.is_some(), "{step:?}");

    let failed = lost(&core).await;
    let started_at = pay(&core, &failed).await.started_ms.expect("it started");
    send_command(&core, &failed, choose(&failed, Choice::Fail)).await.unwrap();
    assert_eq!(wait_for_completion(&core, &failed.id.0).await.state, RunState::Failed);
    let step = pay(&core, &failed).await;
    assert_eq!((step.state, step.attempts, step.started_ms), (StepState::Failed, 1, Some(started_at)));
    send_command(&core, &failed, resume()).await.unwrap();
    let step = pay(&core, &failed).await;
    assert_eq!((step.state, step.started_ms), (StepState::Interrupted, Some(started_at)));
    let again = wait_for_completion(&core, &failed.id.0).await;
    assert!(
        matches!(&again.gate, Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. })),
        "{again:?}"
    );
    send_command(&core, &again, cancel("ana")).await.unwrap();
    assert_eq!(pay(&core, &again).await.state, StepState::Interrupted);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_outcome_without_a_choice_lists_all_four() {
    let place = TestHome::new();
    slow_pay(&place, UNSAFE);
    let core = place.open().await;
    let asks = lost(&core).await;
    for (request, missing) in
        [(decide(&asks, Verdict::Approve, "bo"), "choice"), (choose(&asks, Choice::Happened), "result")]
    {
        let error = send_command(&core, &asks, request).await.unwrap_err();
        assert_eq!(error.code, Code::ConfirmationRequired);
        let reason = error.reason.unwrap();
        assert_eq!(reason["missing"], json!([missing]));
        assert_eq!(reason["choices"], json!(["rerun", "happened", "skip", "fail"]));
    }
    assert_eq!(core.run(&asks.id.0).await.unwrap().decisions, []);
    assert_eq!(
        send_command(&core, &asks, choose(&asks, Choice::Skip)).await.unwrap().run.state,
        RunState::Pending
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_rerun_decides_nothing_new() {
    let place = TestHome::new();
    slow_pay(&place, UNSAFE);
    let core = place.open().await;
    let asks = lost(&core).await;
    let rerun = choose(&asks, Choice::Rerun);
    send_command(&core, &asks, rerun.clone()).await.unwrap();
    let (leave, worker) = until_begun(&core, &asks).await;
    leave.cancel();
    worker.await.unwrap();
    let again = wait_for_completion(&core, &asks.id.0).await;
    assert!(
        matches!(&again.gate, Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. })),
        "{again:?}"
    );
    let repeated = send_command(&core, &asks, rerun).await.unwrap();
    assert!(repeated.repeated, "it answers the question of the first loss");
    assert_eq!(repeated.run.gate, again.gate);
    assert_eq!(core.run(&asks.id.0).await.unwrap().decisions.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_before_a_resume_is_invalid_afterwards() {
    let place = TestHome::new();
    bundle(&place, "pay", "test.bank.pay", SAFE, "#!/usr/bin/env bash\nexit 1\n");
    let declared =
        "id: test.bank.pay\nversion: 1.0.0\ndescription: Pays.\nsafety: {requires_confirmation: true}\n";
    place.write("skills/pay/capabilities/pay.yaml", declared);
    let core = place.open().await;
    let waiting = run(&core, "pay", json!({})).await;
    let approval = decide(&waiting, Verdict::Approve, "bo");
    send_command(&core, &waiting, approval.clone()).await.unwrap();
    assert_eq!(wait_for_completion(&core, &waiting.id.0).await.state, RunState::Failed);
    send_command(&core, &waiting, resume()).await.unwrap();
    let again = wait_for_completion(&core, &waiting.id.0).await;
    assert!(matches!(&again.gate, Some(Gate::Human { why: ApprovalReason::Confirmation, .. })), "{again:?}");
    let repeated = send_command(&core, &waiting, approval).await.unwrap();
    assert!(repeated.repeated, "it answers the question from before the resume");
    assert_eq!((repeated.run.state, &repeated.run.gate), (RunState::WaitingForHuman, &again.gate));
    let shown = core.run(&waiting.id.0).await.unwrap();
    assert_eq!(shown.decisions.len(), 1);
    let current = decide(&shown.run, Verdict::Approve, "bo");
    assert_eq!(send_command(&core, &waiting, current).await.unwrap().run.state, RunState::Pending);
    assert_eq!(
        wait_for_completion(&core, &waiting.id.0).await.state,
        RunState::Failed,
        "the approved call was made"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changed_is_named_as_changed() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let changed = async || core.run(&waiting.id.0).await.unwrap().sheet.unwrap().changed;
    let script = "skills/ledger/scripts/book.sh";
    let launched = std::fs::read_to_string(place.path(script)).unwrap();
    place.write(script, &format!("{launched}# edited\n"));
    assert_eq!(changed().await.as_deref(), Some("scripts/book.sh changed since the launch"));
    place.write("skills/ledger/scripts/lib/more.sh", "x\n");
    let both = "scripts/book.sh changed since the launch; scripts/lib/more.sh did not exist when the run was \
        launched";
    assert_eq!(changed().await.as_deref(), Some(both));
    place.write(script, &launched);
    std::fs::remove_file(place.path("skills/ledger/scripts/lib/more.sh")).unwrap();
    assert_eq!(changed().await, None, "restored content is not a change");

    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let file = "skills/ledger/bindings/book.yaml";
    let binding = std::fs::read_to_string(place.path(file)).unwrap();
    place.write(file, &binding.replace("metadata: {", "metadata: {note: more, "));
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    let both =
        "the binding ledger-book changed since the launch; bindings/book.yaml changed since the launch";
    assert_eq!(sheet.changed.as_deref(), Some(both));
}

/// Launches a run that waits for approval, and edits its script: what it would ask now is shown.
async fn with_changed_script(place: &TestHome, core: &Arc<Local>) -> (RunRecord, RunDetail) {
    let waiting = run(core, "ledger", json!({ "amounts": [1] })).await;
    let script = "skills/ledger/scripts/book.sh";
    let launched = std::fs::read_to_string(place.path(script)).unwrap();
    place.write(script, &format!("{launched}# edited\n"));
    let shown = core.run(&waiting.id.0).await.unwrap();
    assert_ne!(shown.run.gate, waiting.gate, "what it would ask now is shown");
    (waiting, shown)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_workers_record_changed_approval_requests() {
    let place = TestHome::new();
    let core = place.open().await;
    let (waiting, shown) = with_changed_script(&place, &core).await;
    let seen = core.run(&waiting.id.0).await.unwrap().events.last().unwrap().number;
    assert_eq!(seen, shown.events.last().unwrap().number, "and reading records nothing");
    core.start_workers().await.unwrap();
    let recorded = core.run_events(Some(&waiting.id.0), seen, 10, 30_000).await.unwrap();
    core.stop_workers().await;
    let kinds: Vec<&EventKind> = recorded.iter().map(|event| &event.event.kind).collect();
    assert_eq!(kinds, [&EventKind::GateChanged]);
    assert_eq!(core.run(&waiting.id.0).await.unwrap().run.gate, shown.run.gate);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_decision_about_a_changed_question_records_nothing() {
    let place = TestHome::new();
    let core = place.open().await;
    let (waiting, shown) = with_changed_script(&place, &core).await;
    let mut decision = decide(&shown.run, Verdict::Approve, "bo");
    if let RunCommand::Decide { result, .. } = &mut decision {
        *result = Some(json!("no object"));
    }
    let rejected = send_command(&core, &shown.run, decision).await.unwrap_err();
    assert_eq!(rejected.code, Code::InvalidRequest, "{rejected}");
    let after = core.run(&waiting.id.0).await.unwrap();
    assert_eq!(after.events.last().unwrap().number, shown.events.last().unwrap().number);
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_bound_to_every_file_a_step_can_read() {
    let place = TestHome::new();
    place.write("skills/ledger/references/word.sh", "word=seen\n");
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    place.write("skills/ledger/references/word.sh", "word=EVIL\n");
    let refused = send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "ana")).await.unwrap_err();
    assert_eq!(refused.code, Code::ConfirmationRequired, "{refused}");
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    assert_eq!(sheet.changed.as_deref(), Some("references/word.sh changed since the launch"));
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_show_every_binding_that_they_allow() {
    let mut place = TestHome::new();
    place.config.conformance = Conformance::Experimental;
    place.write(
        "skills/ledger/bindings/trial.yaml",
        "id: ledger-trial\ncapability: test.ledger.book\nservice: bundle\nprotocol: script\noperation: scripts/trial.sh\n\
         response: {entry: response.entry}\n\
         metadata: {conformance_profile: experimental, default: true, fallback_binding_id: ledger-book}\n",
    );
    place.write(
        "skills/ledger/scripts/trial.sh",
        "#!/usr/bin/env bash\nset -euo pipefail\ncat > entry.txt\nprintf '{\"entry\": \"T-1\"}\\n'\n",
    );
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    place.config.conformance = Conformance::Strict;
    let other = place.open().await;
    for core in [&core, &other] {
        let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
        assert_eq!(sheet.binding, "script scripts/trial.sh", "every process shows what is executed");
        assert_eq!(sheet.fallbacks, ["script scripts/book.sh"]);
    }
    send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    let done = wait_for_completion(&core, &waiting.id.0).await;
    assert_eq!(done.outputs.unwrap()["entry"], "T-1", "what was shown is what was executed");
}

/// A run of `ledger` with the input file `pay.csv`.
fn with_file(key: Option<&str>) -> LaunchRequest {
    let files = [("pay.csv".to_owned(), "pay.csv".to_owned())].into();
    let idempotency_key = key.map(str::to_owned);
    let options = ExecutionOptions { files, idempotency_key, ..ExecutionOptions::default() };
    LaunchRequest { options, ..request("ledger", json!({ "amounts": [1] })) }
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_show_input_files_that_cannot_be_swapped() {
    let place = TestHome::new();
    place.write("work/pay.csv", "ana,1\n");
    let core = place.open().await;
    let launch = async || core.launch(with_file(None)).await.unwrap().run.id.0;
    let waiting = wait_for_completion(&core, &launch().await).await;
    assert_eq!(waiting.state, RunState::WaitingForHuman, "{waiting:?}");
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    let path = place.path("work/pay.csv").canonicalize().unwrap().to_string_lossy().into_owned();
    let sha256 = Some(Digest::of(b"ana,1\n").to_string());
    assert_eq!(sheet.files, [SuppliedFile { name: "pay.csv".to_owned(), path, sha256 }]);

    place.write("work/pay.csv", "eve,9\n");
    let other = wait_for_completion(&core, &launch().await).await;
    let other = core.run(&other.id.0).await.unwrap().sheet.unwrap();
    assert_ne!(other.inputs_digest, sheet.inputs_digest, "an approval is bound to the content");

    send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
    let failed = wait_for_completion(&core, &waiting.id.0).await;
    assert_eq!(failed.state, RunState::Failed, "{failed:?}");
    let error = failed.error.unwrap();
    assert_eq!(error["code"], "skill_changed", "{error}");
    assert!(error.to_string().contains("pay.csv changed since the run was launched"), "{error}");
    let detail = core.run(&waiting.id.0).await.unwrap();
    let book = detail.steps.iter().find(|step| step.step == "book").unwrap();
    assert!(book.artifacts.is_empty(), "nothing was executed");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_finds_the_run_after_a_file_edit() {
    let place = TestHome::new();
    place.write("work/pay.csv", "ana,1\n");
    let core = place.open().await;
    let first = core.launch(with_file(Some("k1"))).await.unwrap();
    place.write("work/pay.csv", "eve,9\n");
    let again = core.launch(with_file(Some("k1"))).await.unwrap();
    assert_eq!((again.idempotency, &again.run.id), (IdempotencyOutcome::Reused, &first.run.id));
    assert_eq!(again.run.options.file_digests["pay.csv"], Digest::of(b"ana,1\n").to_string());
}

/// Edits the database under a waiting and a pending run: neither is shown or continued, and the waiting one can be
/// denied. Returns the message of the error.
async fn refused_after_edit(place: &mut TestHome, edit: &str, rows: usize) -> String {
    let file = place.path("runs.db");
    place.config.store = Some(format!("sqlite:{}", file.display()));
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let pending = launch(&core, "ledger", json!({ "amounts": [1] })).await.unwrap().run;
    let other = rusqlite::Connection::open(&file).unwrap();
    assert_eq!(other.execute(edit, []).unwrap(), rows);

    let shown = core.run(&waiting.id.0).await.unwrap_err();
    assert_eq!(shown.code, Code::InternalError, "{shown}");
    let approved =
        send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "ana")).await.unwrap_err();
    assert_eq!(approved.code, Code::InternalError, "{approved}");
    let failed = wait_for_completion(&core, &pending.id.0).await;
    assert_eq!(failed.state, RunState::Failed);
    assert_eq!(failed.error.unwrap()["code"], "runtime_error");
    let denied = send_command(&core, &waiting, decide(&waiting, Verdict::Deny, "ana")).await.unwrap();
    assert_eq!(denied.run.state, RunState::Canceled, "it can be ended");
    shown.message
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_inputs_that_changed_are_neither_shown_nor_run() {
    let mut place = TestHome::new();
    let edit = "UPDATE runs SET inputs = replace(inputs, '1', '7')";
    refused_after_edit(&mut place, edit, 2).await;
    assert!(!place.open().await.store().health().await.unwrap().health.is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_contract_that_changed_is_neither_shown_nor_run() {
    let mut place = TestHome::new();
    let edit = "UPDATE contracts SET json = json_set(json, '$.contract.version', '9.9.9')";
    let message = refused_after_edit(&mut place, edit, 1).await;
    assert!(message.contains("the stored contract was modified"), "{message}");
    let found = place.open().await.store().health().await.unwrap().health.contradictions;
    assert_eq!(found, ["1 contract whose content differs from what was written"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_is_recorded_with_its_sender() {
    let place = TestHome::new();
    let core = place.open().await;
    let by = |name: &str| Some(name.to_owned());
    let closing = run(&core, "close", json!({})).await;
    let forked =
        send_command(&core, &closing, RunCommand::Fork { checkpoint: None, by: by("cy"), since_ms: None })
            .await
            .unwrap()
            .run;
    assert_eq!(forked.started_by, "cy", "who made it is who started it");
    let replayed =
        send_command(&core, &closing, RunCommand::Replay { checkpoint: None, by: by("di"), since_ms: None })
            .await
            .unwrap();
    assert_eq!(replayed.run.started_by, "di");
    let signal = RunCommand::Signal {
        name: "books-closed".to_owned(),
        payload: Value::Null,
        by: by("bo"),
        since_ms: None,
    };
    send_command(&core, &closing, signal).await.unwrap();
    send_command(&core, &closing, cancel("ana")).await.unwrap();
    let going_on = RunCommand::Resume {
        checkpoint: None,
        inputs: None,
        despite_change: false,
        by: by("ed"),
        since_ms: None,
    };
    send_command(&core, &forked, going_on).await.unwrap();

    let recorded_commands = async |run: &RunRecord| {
        let detail = core.run(&run.id.0).await.unwrap();
        let recorded_commands = list_commands(detail.events.iter());
        recorded_commands
            .into_iter()
            .map(|command| format!("{} by {}", command.what, command.by))
            .collect::<Vec<_>>()
    };
    let (fork, replay) = (&forked.id.0, &replayed.run.id.0);
    let all = [
        format!("forked as {fork} by cy"),
        format!("replayed as {replay} by di"),
        "signal books-closed by bo".to_owned(),
        "canceled by ana".to_owned(),
    ];
    assert_eq!(recorded_commands(&closing).await, all);
    assert_eq!(recorded_commands(&forked).await, ["resumed from checkpoint 0 by ed"]);

    let denied = run(&core, "ledger", json!({ "amounts": [1] })).await;
    send_command(&core, &denied, decide(&denied, Verdict::Deny, "fay")).await.unwrap();
    let detail = core.run(&denied.id.0).await.unwrap();
    assert_eq!(detail.events.last().unwrap().event.data, json!({ "reason": "denied", "by": "fay" }));

    let unsigned = run(&core, "close", json!({})).await;
    send_command(&core, &unsigned, RunCommand::Cancel { by: None }).await.unwrap();
    let who = recorded_commands(&unsigned).await;
    assert!(
        who[0].starts_with("canceled by ") && who[0].len() > "canceled by ".len(),
        "the account: {who:?}"
    );

    let log =
        std::fs::read_to_string(place.path("home/.local/share/skill-workbench/audit/audit.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (kind, run, who) in [
        ("run.forked", fork, "cy"),
        ("run.replayed", replay, "di"),
        ("run.signaled", &closing.id.0, "bo"),
        ("run.canceled", &closing.id.0, "ana"),
        ("run.resumed", fork, "ed"),
    ] {
        let line = lines.iter().find(|line| line["kind"] == kind && line["data"]["run"] == **run);
        assert_eq!(line.map(|line| &line["by"]), Some(&json!(who)), "{kind}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_reloads_skills_before_it_fails_a_run() {
    let place = TestHome::new();
    let workbench = place.open().await;
    workbench.start_workers().await.unwrap();
    // It has loaded the skills without this one.
    assert_eq!(run(&workbench, "upload", json!({ "name": "right.csv" })).await.state, RunState::Completed);
    bundle(&place, "late", "test.late.pay", SAFE, "#!/usr/bin/env bash\necho '{}'\n");
    let command = place.open().await;
    let launched = launch(&command, "late", json!({})).await.unwrap().run;
    let mut after = 0;
    let ended = 'summary: loop {
        let events = command.run_events(Some(&launched.id.0), after, 100, 20_000).await.unwrap();
        assert!(!events.is_empty(), "no worker executed it");
        for event in events {
            after = event.number;
            if ["run.completed", "run.failed"].contains(&event.event.kind.as_str()) {
                break 'summary event;
            }
        }
    };
    assert_eq!(ended.event.kind.as_str(), "run.completed", "{ended:?}");
    workbench.stop_workers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_equal_approval_is_a_repetition() {
    const POINT: &str = "gate-after-run";
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({"amounts": [1, 2]})).await;
    let (reached, is_reached) = tokio::sync::oneshot::channel();
    let (continue_signal, may_continue) = std::sync::mpsc::channel();
    let only_once = std::sync::Mutex::new(Some((reached, may_continue)));
    fail::cfg_callback(POINT, move || {
        let first = only_once.lock().unwrap().take();
        if let Some((reached, may_continue)) = first {
            reached.send(()).unwrap();
            may_continue.recv().unwrap();
        }
    })
    .unwrap();
    let late = tokio::spawn({
        let (core, waiting) = (Arc::clone(&core), waiting.clone());
        async move { send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "kim")).await }
    });
    is_reached.await.unwrap();
    let first = send_command(&core, &waiting, decide(&waiting, Verdict::Approve, "kim")).await.unwrap();
    assert!(!first.repeated);
    assert_eq!(wait_for_completion(&core, &waiting.id.0).await.state, RunState::Completed);
    continue_signal.send(()).unwrap();
    let late = late.await.unwrap().unwrap();
    fail::remove(POINT);
    assert!(late.repeated && late.run.state == RunState::Completed, "{late:?}");
}

/// Where the driver of the next test works; absent in an ordinary run.
const DRIVER: &str = "SKILLS_ORDERS_DRIVER";

/// Decides a run and ends itself, as by `kill -9`, at the configured point.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test below"]
async fn driver() {
    let Ok(driver) = std::env::var(DRIVER) else { return };
    let [point, verdict, id, folder] = driver.split('|').collect::<Vec<_>>().try_into().unwrap();
    let core = Local::open_once(TestHome::config_in(folder.as_ref()), CoreParts::Catalog).await.unwrap();
    let core = core.with_sandbox(sandbox());
    let waiting = core.run(id).await.unwrap().run;
    let verdict = if verdict == "approve" { Verdict::Approve } else { Verdict::Deny };
    fail::cfg_callback(point, || kill_process(getpid(), Signal::KILL).unwrap()).unwrap();
    send_command(&core, &waiting, decide(&waiting, verdict, "kim")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_decision_of_a_killed_process_is_audited_once() {
    let place = TestHome::new();
    let ledger = place.open().await;
    let lines = async |core: &Local, run: &RunRecord, kind: &str| {
        let filter = AuditFilter {
            run: Some(run.id.0.clone()),
            kind: Some(kind.to_owned()),
            ..AuditFilter::default()
        };
        core.audit_log().show(filter).await.unwrap()
    };
    for (verdict, kind) in [("approve", "run.approved"), ("deny", "run.denied")] {
        for (point, expected) in
            [("run-command-begun", 0), ("run-command-applied", 1), ("run-command-audited", 1)]
        {
            let waiting = run(&ledger, "ledger", json!({"amounts": [1, 2]})).await;
            let id = &waiting.id.0;
            let killed = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "core_commands::driver", "--ignored", "--nocapture"])
                .env(DRIVER, format!("{point}|{verdict}|{id}|{}", place.path("").display()))
                .output()
                .unwrap();
            assert_eq!(killed.status.signal(), Some(9), "{point} was not reached: {killed:?}");
            // The next process completes it, and the one after that does not add another line.
            for _ in 0..2 {
                let core = place.open().await;
                core.run(id).await.unwrap();
                let found = lines(&core, &waiting, kind).await;
                assert_eq!(found.len(), expected, "{verdict} {point}: {found:?}");
                assert!(found.iter().all(|line| line.by.as_deref() == Some("kim")), "{found:?}");
            }
            let left = std::fs::read_dir(place.path("home/.local/share/skill-workbench/audit/pending"))
                .unwrap()
                .count();
            assert_eq!(left, 0, "{verdict} {point}");
        }
    }
    assert!(ledger.audit_log().verify().await.unwrap().verification.broken.is_none());
}

/// Two decisions of one run are pending if its two approvers decide right before the process is killed.
#[tokio::test(flavor = "multi_thread")]
async fn two_interrupted_decisions_of_one_run_are_audited() {
    let place = TestHome::new();
    let ledger = place.open().await;
    let waiting = run(&ledger, "ledger", json!({"amounts": [1, 2]})).await;
    let id = &waiting.id.0;
    let killed = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "core_commands::driver", "--ignored", "--nocapture"])
        .env(DRIVER, format!("run-command-applied|approve|{id}|{}", place.path("").display()))
        .output()
        .unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    let folder = place.path("home/.local/share/skill-workbench/audit/pending");
    let files = || std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    let first = files();
    assert_eq!(first.len(), 1);
    std::fs::copy(&first[0], folder.join("another.json")).unwrap();
    let core = place.open().await;
    core.run(id).await.unwrap();
    let filter = AuditFilter {
        run: Some(id.clone()),
        kind: Some("run.approved".to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!((core.audit_log().show(filter).await.unwrap().len(), files()), (1, Vec::new()));
}
