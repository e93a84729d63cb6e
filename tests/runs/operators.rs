//! What operators rely on: titles, labels, approval rules, deadlines, retention, escalation, workers, logs, views.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use skills_api::operations::{Principal, Scope};
use skills_api::{
    AuditFilter, Client as _, Code, Local, LogRequest, OperatorClient as _, RunClient as _, RunCommand,
    WorkerState,
};
use skills_model::{RunState, Verdict};
use skills_store::{RunFilter, RunRecord};

use crate::runs_place::{TestHome, decide, kinds, request, resume, run, send_command, wait_for_completion};

fn key(name: &str, scopes: &[Scope]) -> Principal {
    Principal { name: name.to_owned(), scopes: scopes.iter().copied().collect::<BTreeSet<_>>() }
}

async fn until(what: &str, mut is_met: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if is_met().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

async fn listed(core: &Local, filter: &str) -> Vec<RunRecord> {
    let filter = RunFilter { r#where: Some(filter.to_owned()), ..RunFilter::default() };
    core.runs(filter).await.unwrap().runs
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_distinguished_by_title_label_and_reason() {
    let place = TestHome::new();
    let contract = std::fs::read_to_string(place.path("skills/upload/skill.yaml")).unwrap();
    place.write(
        "skills/upload/skill.yaml",
        &format!("{contract}title: \"Upload {{inputs.name}} at night\"\n"),
    );
    let core = place.open().await;
    let mut labeled = request("upload", json!({ "name": "wrong.csv" }));
    labeled.options.labels = [("env".to_owned(), "prod".to_owned())].into();
    let launched = core.launch(labeled.clone()).await.unwrap();
    assert_eq!(launched.run.title(), Some("Upload wrong.csv at night"));
    let failed = wait_for_completion(&core, &launched.run.id.0).await;
    assert_eq!(failed.state, RunState::Failed);
    let found = listed(&core, "label.env:prod title:*night state:failed").await;
    assert_eq!(found.iter().map(|run| &run.id).collect::<Vec<_>>(), [&failed.id]);
    assert!(!failed.failure().unwrap().contains("runtime error"), "{:?}", failed.error);

    let corrected = RunCommand::Resume {
        checkpoint: None,
        inputs: Some(json!({ "name": "right.csv" }).as_object().cloned().unwrap()),
        despite_change: false,
        by: None,
        since_ms: None,
    };
    let resumed = send_command(&core, &failed, corrected).await.unwrap().run;
    assert_eq!(resumed.title(), Some("Upload right.csv at night"), "the title follows the inputs");

    let derived = run(&core, "ledger", json!({ "amounts": [1, 2] })).await;
    assert_eq!(derived.title(), Some("ledger: account: 4711, amounts: 1, 2"));
    labeled.options.labels = [("Env".to_owned(), "prod".to_owned())].into();
    assert_eq!(core.launch(labeled).await.unwrap_err().code, Code::InvalidRequest);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_other_people_have_to_approve() {
    let place = TestHome::new();
    place.write(
        "home/.config/skill-workbench/policy.yaml",
        "approvals:\n- {id: ledger, need: 2, not_by: starter}\n- {id: ledger, of: [bo, kim, 'scope:admin']}\n",
    );
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1, 2] })).await;
    let approve = || decide(&waiting, Verdict::Approve, "somebody else");
    let by = |principal| {
        let (core, run, command) = (Arc::clone(&core), waiting.id.0.clone(), approve());
        async move { core.command_as(&run, command, Some(principal)).await }
    };
    let decides = [Scope::Decide];
    let starter = by(key("ana", &decides)).await.unwrap_err();
    assert_eq!(starter.code, Code::Forbidden, "{starter}");
    assert_eq!(starter.reason.unwrap()["approvals"]["need"], 2);
    assert_eq!(by(key("mallory", &decides)).await.unwrap_err().code, Code::Forbidden);
    let first = by(key("bo", &decides)).await.unwrap();
    assert_eq!(first.run.state, RunState::WaitingForHuman);
    assert_eq!(first.run.approval_progress().as_deref(), Some("approved, 1 of 2"));
    let again = by(key("bo", &decides)).await.unwrap();
    assert!(again.repeated, "{again:?}");
    let note = "a second approval by the same person does not count: approved, 1 of 2";
    assert!(again.note.ends_with(note), "{}", again.note);
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    assert!(
        sheet.why.contains("requires 2 approvals (1 so far: bo); ana, who started the run, cannot approve"),
        "{}",
        sheet.why
    );
    let last = by(key("root", &[Scope::Admin, Scope::Decide])).await.unwrap();
    assert_eq!(last.run.state, RunState::Pending);
    assert_eq!(wait_for_completion(&core, &waiting.id.0).await.state, RunState::Completed);
    let recorded = kinds(&core, &waiting).await;
    let gates: Vec<&String> = recorded.iter().filter(|kind| kind.starts_with("gate.")).collect();
    assert_eq!(gates, ["gate.waiting", "gate.endorsed", "gate.approved"]);

    let denied = run(&core, "ledger", json!({ "amounts": [3] })).await;
    let deny = decide(&denied, Verdict::Deny, "ana");
    let outcome = core.command_as(&denied.id.0, deny, Some(key("ana", &decides))).await.unwrap();
    assert_eq!(outcome.run.state, RunState::Canceled, "one denial is enough, by anyone who may decide");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_arrives_while_the_gate_opens_is_checked() {
    let place = TestHome::new();
    place.write("home/.config/skill-workbench/policy.yaml", "approvals: {id: ledger, not_by: starter}\n");
    let core = place.open().await;
    // The same inputs have the same digest, which is therefore known before the gate opens.
    let known = run(&core, "ledger", json!({ "amounts": [1, 2] })).await;
    for _ in 0..5 {
        let launched = core.launch(request("ledger", json!({ "amounts": [1, 2] }))).await.unwrap().run;
        let attempts = (0..4).map(|_| {
            let (core, launched, known) = (Arc::clone(&core), launched.clone(), known.clone());
            tokio::spawn(async move {
                loop {
                    let approve = decide(&known, Verdict::Approve, "ana");
                    let by = key("ana", &[Scope::Decide]);
                    match core.command_as(&launched.id.0, approve, Some(by)).await {
                        Err(error) if error.code == Code::Forbidden => break,
                        Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                        Ok(approved) => panic!("approved by who started it: {approved:?}"),
                    }
                }
            })
        });
        let attempts: Vec<_> = attempts.collect();
        let waiting = wait_for_completion(&core, &launched.id.0).await;
        assert_eq!((waiting.state, &waiting.gate), (RunState::WaitingForHuman, &known.gate));
        for attempt in attempts {
            attempt.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_raises_what_its_approvals_require() {
    let place = TestHome::new();
    let contract = std::fs::read_to_string(place.path("skills/ledger/skill.yaml")).unwrap();
    let raised = format!("{contract}approvals: {{need: 2, not_by: starter}}\n");
    place.write("skills/ledger/skill.yaml", &raised);
    place.write(
        "home/.config/skill-workbench/policy.yaml",
        "approvals: {id: ledger, need: 1, of: [bo, kim]}\n",
    );
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1, 2] })).await;
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    assert!(sheet.why.contains("requires 2 approvals (none yet)"), "{}", sheet.why);
    let by = async |name| {
        let command = decide(&waiting, Verdict::Approve, "lee");
        core.command_as(&waiting.id.0, command, Some(key(name, &[Scope::Decide]))).await
    };
    assert_eq!(by("ana").await.unwrap_err().code, Code::Forbidden, "the policy has a list");
    let first = by("bo").await.unwrap();
    assert_eq!(first.run.approval_progress().as_deref(), Some("approved, 1 of 2"));
    assert_eq!(by("kim").await.unwrap().run.state, RunState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn person_who_changes_inputs_cannot_approve_alone() {
    let place = TestHome::new();
    place.write("home/.config/skill-workbench/policy.yaml", "approvals: {id: ledger, not_by: starter}\n");
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let fork = RunCommand::Fork { checkpoint: Some(0), by: Some("ana".to_owned()), since_ms: None };
    let forked = core.send_command(&waiting.id.0, fork).await.unwrap().run;
    let corrected = RunCommand::Resume {
        checkpoint: None,
        inputs: json!({ "amounts": [1_000_000] }).as_object().cloned(),
        despite_change: false,
        by: Some("eve".to_owned()),
        since_ms: None,
    };
    core.send_command(&forked.id.0, corrected).await.unwrap();
    let waiting = wait_for_completion(&core, &forked.id.0).await;
    assert_eq!(waiting.state, RunState::WaitingForHuman);
    let sheet = core.run(&waiting.id.0).await.unwrap().sheet.unwrap();
    assert!(
        sheet.why.contains("ana and eve, who started the run or changed its inputs, cannot approve"),
        "{}",
        sheet.why
    );
    for name in ["ana", "eve"] {
        let approve = decide(&waiting, Verdict::Approve, name);
        let refused =
            core.command_as(&waiting.id.0, approve, Some(key(name, &[Scope::Decide]))).await.unwrap_err();
        assert_eq!(refused.code, Code::Forbidden, "{refused}");
    }
    // Who started or corrected it is excluded from its copies, too.
    let replay = RunCommand::Replay { checkpoint: Some(0), by: Some("bot".to_owned()), since_ms: None };
    let copied = core.send_command(&waiting.id.0, replay).await.unwrap().run;
    let copied = wait_for_completion(&core, &copied.id.0).await;
    for name in ["ana", "eve", "bot"] {
        let approve = decide(&copied, Verdict::Approve, name);
        let refused =
            core.command_as(&copied.id.0, approve, Some(key(name, &[Scope::Decide]))).await.unwrap_err();
        assert_eq!(refused.code, Code::Forbidden, "{refused}");
    }
    let approve = decide(&waiting, Verdict::Approve, "bo");
    core.command_as(&waiting.id.0, approve, Some(key("bo", &[Scope::Decide]))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admin_reruns_unsandboxed_launches() {
    let place = TestHome::new();
    let core = place.open().await;
    let mut unsandboxed = request("close", json!({}));
    unsandboxed.options.unsandboxed = true;
    let run = core.launch(unsandboxed).await.unwrap().run;
    wait_for_completion(&core, &run.id.0).await;
    let commands = || {
        [
            RunCommand::Replay { checkpoint: Some(0), by: None, since_ms: None },
            RunCommand::Fork { checkpoint: Some(0), by: None, since_ms: None },
            resume(),
        ]
    };
    for command in commands() {
        let refused = core.command_as(&run.id.0, command, Some(key("eve", &[Scope::Read, Scope::Run]))).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, Code::Forbidden, "{refused}");
        assert!(refused.message.contains("needs the scope `admin`"), "{refused}");
    }
    let [replay, fork, _] = commands();
    for command in [replay, fork] {
        core.command_as(&run.id.0, command, Some(key("root", &[Scope::Run, Scope::Admin]))).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_policy_applies_to_what_continues() {
    const POLICY: &str = "home/.config/skill-workbench/policy.yaml";
    let place = TestHome::new();
    place.write(POLICY, "{}\n");
    let core = place.open().await;
    let done = run(&core, "upload", json!({ "name": "right.csv" })).await;
    assert_eq!(done.state, RunState::Completed);
    let fork = || RunCommand::Fork { checkpoint: Some(0), by: None, since_ms: None };
    let forked = core.send_command(&done.id.0, fork()).await.unwrap().run;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let refused = async |run: &RunRecord, command: RunCommand| {
        let error = core.send_command(&run.id.0, command).await.unwrap_err();
        assert_eq!(error.code, Code::Forbidden, "{error}");
        error.message
    };
    let all = || {
        [
            (&done, fork()),
            (&done, RunCommand::Replay { checkpoint: Some(0), by: None, since_ms: None }),
            (&forked, resume()),
        ]
    };
    for (policy, text) in [
        ("deny: [{id: upload}, {id: ledger}]\n", "the policy forbids upload"),
        ("require_approval: [{id: upload}, {id: ledger}]\n", "the policy requires an approval of upload"),
    ] {
        place.write(POLICY, policy);
        for (run, command) in all() {
            let message = refused(run, command).await;
            assert!(message.contains(text), "{message}");
        }
    }
    // An approval is what the second policy requires.
    place.write(POLICY, "deny: [{id: ledger}]\n");
    refused(&waiting, decide(&waiting, Verdict::Approve, "bo")).await;
    place.write(POLICY, "require_approval: [{id: ledger}]\n");
    core.send_command(&waiting.id.0, decide(&waiting, Verdict::Approve, "bo")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_rule_denies_a_launch() {
    let place = TestHome::new();
    place.write(
        "home/.config/skill-workbench/policy.yaml",
        "deny: [{label: env=prod, id: upload}]\nrequire_approval: [{label: env=stage}]\n",
    );
    let core = place.open().await;
    let launch = |env: &str| {
        let mut request = request("upload", json!({ "name": "right.csv" }));
        request.options.labels = [("env".to_owned(), env.to_owned())].into();
        request
    };
    assert_eq!(core.launch(launch("prod")).await.unwrap_err().code, Code::Forbidden);
    let staged = core.launch(launch("stage")).await.unwrap().run;
    assert_eq!(wait_for_completion(&core, &staged.id.0).await.state, RunState::WaitingForHuman);
    let free = core.launch(launch("test")).await.unwrap().run;
    assert_eq!(wait_for_completion(&core, &free.id.0).await.state, RunState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_timeout_is_set_by_launch_contract_or_configuration() {
    let mut place = TestHome::new();
    place.config.runs.expires_in = Some(Duration::from_secs(7_200));
    let contract = std::fs::read_to_string(place.path("skills/close/skill.yaml")).unwrap();
    place.write("skills/close/skill.yaml", &format!("{contract}expires_in_seconds: 600\n"));
    let core = place.open().await;
    let setting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    assert_eq!(setting.expires_ms, Some(setting.since_ms + 7_200_000));
    let contract = run(&core, "close", json!({})).await;
    assert_eq!(contract.expires_ms, Some(contract.since_ms + 600_000));
    let mut expiring = request("close", json!({}));
    expiring.options.expires_in = Some(60);
    let expiring = core.launch(expiring).await.unwrap().run;
    let expiring = wait_for_completion(&core, &expiring.id.0).await;
    assert_eq!(expiring.expires_ms, Some(expiring.since_ms + 60_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_worker_claims_nothing_until_reactivated() {
    let place = TestHome::new();
    let core = place.open().await;
    core.start_workers().await.unwrap();
    until("the worker tells of itself", async || {
        let list = core.workers().await.unwrap().workers;
        list.iter().any(|worker| worker.version.is_some() && worker.state == WorkerState::Live)
    })
    .await;
    let worker = core.workers().await.unwrap().workers[0].clone();
    assert_eq!((worker.state, worker.slots.is_some()), (WorkerState::Live, true));
    assert_eq!(core.drain("nowhere", true, None).await.unwrap_err().code, Code::NotFound);
    let drained = core.drain(&worker.worker, true, None).await.unwrap().workers;
    assert_eq!(drained[0].state, WorkerState::Draining);
    let unattended = core.launch(request("upload", json!({ "name": "right.csv" }))).await.unwrap();
    assert!(!unattended.worker_alive, "the only worker claims nothing");
    // The request is followed within seconds: from then on what is launched stays pending.
    let mut left = None;
    until("a run stays pending", async || {
        let run = core.launch(request("upload", json!({ "name": "right.csv" }))).await.unwrap().run;
        tokio::time::sleep(Duration::from_millis(700)).await;
        let now = core.run(&run.id.0).await.unwrap().run;
        left = Some(now.id.clone());
        now.state == RunState::Pending
    })
    .await;
    let left = left.unwrap();
    core.drain(&worker.worker, false, None).await.unwrap();
    let attended = core.launch(request("upload", json!({ "name": "right.csv" }))).await.unwrap();
    assert!(attended.worker_alive);
    until("it is executed again", async || core.run(&left.0).await.unwrap().run.state == RunState::Completed)
        .await;
    let text = core.metrics_text().await.unwrap();
    assert!(text.contains("agent_skills_runtime_workers{state=\"live\"} 1"), "{text}");
    assert!(text.contains("agent_skills_runtime_runs{state=\"completed\"}"), "{text}");
    core.stop_workers().await;
    assert!(core.workers().await.unwrap().workers.is_empty(), "it has taken its leave");
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_runs_are_deleted_and_late_approvals_escalated() {
    let mut place = TestHome::new();
    place.config.retention.completed = Some(Duration::from_secs(1));
    place.write(
        "home/.config/skill-workbench/policy.yaml",
        "approvals: {of: [bo], escalate_after: 1s, escalate_to: [boss]}\n",
    );
    let core = place.open().await;
    let done = run(&core, "upload", json!({ "name": "right.csv" })).await;
    let failed = run(&core, "upload", json!({ "name": "wrong.csv" })).await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let refused = core
        .command_as(
            &waiting.id.0,
            decide(&waiting, Verdict::Approve, "boss"),
            Some(key("boss", &[Scope::Decide])),
        )
        .await;
    assert_eq!(refused.unwrap_err().code, Code::Forbidden, "not before the escalation");
    until("both are older than a second", async || {
        !listed(&core, "since:>1s state:waiting").await.is_empty()
    })
    .await;
    core.start_workers().await.unwrap();
    until("the completed run is deleted", async || core.run(&done.id.0).await.is_err()).await;
    until("the approval is escalated", async || {
        kinds(&core, &waiting).await.iter().any(|kind| kind == "run.escalated")
    })
    .await;
    assert_eq!(
        core.run(&failed.id.0).await.unwrap().run.state,
        RunState::Failed,
        "nothing is said of failed runs"
    );
    let record = core.run(&waiting.id.0).await.unwrap().run;
    assert_eq!(record.escalation().as_deref(), Some("escalated to boss"));
    let board = core.board(1).await.unwrap();
    assert_eq!(board.waiting[0].escalation, record.escalation(), "the board shows it");
    core.stop_workers().await;
    let approved = core
        .command_as(
            &waiting.id.0,
            decide(&waiting, Verdict::Approve, "boss"),
            Some(key("boss", &[Scope::Decide])),
        )
        .await;
    assert_eq!(approved.unwrap().run.state, RunState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_facets_board_and_logs_are_returned() {
    let place = TestHome::new();
    let core = place.open().await;
    for name in ["wrong.csv", "other.csv", "right.csv"] {
        run(&core, "upload", json!({ "name": name })).await;
    }
    let waiting = run(&core, "ledger", json!({ "amounts": [1] })).await;
    let board = core.board(8).await.unwrap();
    assert_eq!((board.waiting.len(), board.completed.iter().sum::<u32>()), (1, 1));
    assert_eq!(board.failed.iter().map(|reason| reason.runs).sum::<u64>(), 2);
    assert_eq!(core.board(0).await.unwrap_err().code, Code::InvalidRequest);

    let facets = core.facets("skill:upload").await.unwrap();
    let names = facets.facets.iter().find(|facet| facet.key == "input.name").unwrap();
    for value in &names.values {
        let found = listed(&core, &format!("skill:upload {}", value.term)).await;
        assert_eq!(found.len() as u64, value.runs, "{}", value.term);
    }
    let errors = facets.facets.iter().find(|facet| facet.key == "error");
    assert!(errors.is_none(), "two runs failed for one reason: {facets:?}");

    let views =
        core.save_view("Failed uploads", Some("state:failed skill:upload"), Some("ana".to_owned())).await;
    assert_eq!(views.unwrap().views[0].by.as_deref(), Some("ana"));
    assert_eq!(place.open().await.views().await.unwrap().views.len(), 1, "shared through the store");
    assert_eq!(core.save_view("x", Some("stat:failed"), None).await.unwrap_err().code, Code::InvalidRequest);
    assert!(core.save_view("Failed uploads", None, None).await.unwrap().views.is_empty());
    assert_eq!(core.save_view("Failed uploads", None, None).await.unwrap_err().code, Code::NotFound);

    let failed = listed(&core, "state:failed input.name:wrong.csv").await.remove(0);
    let log = |step: &str, text: Option<&str>| LogRequest {
        run: failed.id.0.clone(),
        step: Some(step.to_owned()),
        text: text.map(str::to_owned),
        after: 0,
        limit: 100,
        wait_ms: 0,
    };
    let lines = core.run_log(log("send", None)).await.unwrap();
    assert_eq!(
        lines.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(),
        ["only right.csv is taken"]
    );
    let reason = core.run(&failed.id.0).await.unwrap().run.failure().unwrap();
    assert!(reason.starts_with("exit code ") && reason.ends_with(": only right.csv is taken"), "{reason}");
    assert!(!lines.open);
    assert_eq!(core.run_log(log("send", Some("RIGHT"))).await.unwrap().lines.len(), 1);
    assert!(core.run_log(log("send", Some("left"))).await.unwrap().lines.is_empty());
    assert!(core.run_log(log("begin", None)).await.unwrap().lines.is_empty());

    let assign = |to: Option<&str>| RunCommand::Assign {
        to: to.map(str::to_owned),
        note: Some("registry is back".to_owned()),
        assignee: Some(String::new()),
        by: Some("ana".to_owned()),
    };
    let assigned = send_command(&core, &waiting, assign(Some("kim"))).await.unwrap().run;
    assert_eq!(assigned.options.assigned.unwrap().note.as_deref(), Some("registry is back"));
    assert_eq!(listed(&core, "assigned:kim").await.len(), 1);
    let late = send_command(&core, &waiting, assign(None)).await.unwrap_err();
    assert_eq!((late.code, late.code.status()), (Code::InvalidTransition, 409));
    assert_eq!(late.reason.unwrap()["assigned"]["to"], "kim");
    let clear = RunCommand::Assign { to: None, note: None, assignee: Some("kim".to_owned()), by: None };
    let unassigned = send_command(&core, &waiting, clear).await.unwrap().run;
    assert_eq!(unassigned.options.assigned, None);
    let filter = AuditFilter { kind: Some("run.assigned".to_owned()), ..AuditFilter::default() };
    let audited = core.audit_log().show(filter).await.unwrap();
    let last = audited.last().unwrap();
    assert!(last.by.is_some() && last.data.get("to").is_none_or(serde_json::Value::is_null), "{last:?}");
    assert!(send_command(&core, &waiting, resume()).await.is_err(), "an assignment does not move the run");
}

/// The output of `skills --plain runs` for these replies.
fn run_dialog(place: &TestHome, answers: &str) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let skills = place.path("skills");
    place.write("home/.config/skill-workbench/config.yaml", &format!("trust: [{}]\n", skills.display()));
    let mut child = Command::new(env!("CARGO_BIN_EXE_skills"))
        .args(["--plain", "runs", "--root"])
        .arg(&skills)
        .current_dir(place.path("work"))
        .env_clear()
        .env("HOME", place.path("home"))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plain_dialog_lists_reads_and_decides() {
    let place = TestHome::new();
    let core = place.open().await;
    let waiting = run(&core, "ledger", json!({ "amounts": [1, 2] })).await;
    for name in ["wrong.csv", "other.csv"] {
        run(&core, "upload", json!({ "name": name })).await;
    }
    let state = async || core.run(&waiting.id.0).await.unwrap().run.state;

    let read = run_dialog(&place, "1\n\nb\nq\n");
    for part in [
        "1 waiting for approval",
        "1. ledger: account: 4711",
        "No deadline.",
        "Digest: sha256 ",
        "Choose i inputs",
    ] {
        assert!(read.contains(part), "{part:?} is missing in\n{read}");
    }
    assert!(read.is_ascii() && !read.contains('\u{1b}'), "{read}");
    assert_eq!(state().await, RunState::WaitingForHuman, "Enter alone decides nothing");
    let refused = run_dialog(&place, "1\na\nyes\nq\n");
    assert!(refused.contains("Nothing was sent."), "{refused}");
    assert_eq!(state().await, RunState::WaitingForHuman, "only the word itself decides");
    let approved = run_dialog(&place, "1\na\napprove\nchecked with Ana\nb\nq\n");
    assert!(approved.contains("Sent: approve"), "{approved}");
    assert_eq!(state().await, RunState::Pending);
    let notes = core.run(&waiting.id.0).await.unwrap().decisions[0].by.notes.clone();
    assert_eq!(notes.as_deref(), Some("checked with Ana"));

    let resumed = run_dialog(&place, "v\nr\n2\nresume 1\nq\n");
    assert!(resumed.contains("Summary: 1 resumed, 0 skipped."), "{resumed}");
    assert_eq!(listed(&core, "skill:upload state:failed").await.len(), 1, "the other was left out");
}
