//! The commands that an operator sends to a run in Runs, by keys: resume, signal, cancel, fork, replay.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use skills_api::{Code, DecisionTarget, Error, Event, RunCommand, SuppliedFile};
use skills_config::Invocation;
use skills_model::{ApprovalReason, Choice, Decision, Gate, RunState, Verdict};
use skills_registry::Change;
use skills_skill::SkillId;
use skills_store::{Assignment, DecisionRecord, LeaseHolder, RecordedDecision, RunLease, WorkerId};
use skills_tui::Settings;
use skills_tui::app::{AppCommand, AppEvent};
use skills_tui::harness::Harness;
use skills_tui::keymap::Remap;
use support::run_pane::{commands, core, has, id, opened, opened_as};
use support::run_samples::{INVOICE, NOW_MS, contract_view, decision_preview, detail, every_state, settings};

fn remap(context: &str, action: &str, key: &str) -> Remap {
    Remap {
        context: context.to_owned(),
        action: action.to_owned(),
        keys: vec![key.to_owned()],
        file: "config.toml".to_owned(),
        line: 1,
        of_project: false,
    }
}

#[test]
fn the_hint_below_changes_names_the_keys_in_effect() {
    let remaps = vec![remap("runs-detail", "compare", "Q")];
    let client = core(vec![detail(&id(6), "invoice-intake", RunState::Completed)]);
    let mut harness = opened_as(&client, &Settings { remaps, ..settings() }, (120, 36));
    harness.wait_for("invoice-intake").press("enter c").wait_for("vars");
    harness.press("[ [ [ Q").wait_for("Compare c1 with").press("enter").wait_for("c0 → c1");
    has(&harness, &["[ ] move · Q the state"]);
}

#[test]
fn messages_name_the_keys_in_effect() {
    let remap = |action: &str, key: &str| remap("runs", action, key);
    let remaps = vec![remap("approve", "Q"), remap("filter", "Z"), remap("launch", "N")];
    let with_keys = Settings { remaps, ..settings() };
    let client = core(every_state());
    let mut harness = opened_as(&client, &with_keys, (120, 36));
    harness.wait_for("invoice-intake").press("r").wait_for("waiting for approval; press Q");
    harness.press("Z").type_text("nothing-has-this").press("enter").wait_for("Z changes it");
    let none = core(Vec::new());
    opened_as(&none, &with_keys, (120, 36)).wait_for("no runs yet: press N to launch one");
}

#[test]
fn only_accepted_commands_are_offered_and_others_explained() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    let footer = |harness: &Harness| harness.screen().lines().last().unwrap().to_owned();
    assert!(footer(&harness).contains("a approve") && !footer(&harness).contains("r resume"));
    harness.press("r");
    has(&harness, &["waiting for approval; press a"]);
    harness.press("/").type_text("flaky").press("enter").wait_for("the service answered 502");
    assert!(
        footer(&harness).contains("r resume") && !footer(&harness).contains("a approve"),
        "{}",
        footer(&harness)
    );
    harness.press("a");
    has(&harness, &["no pending decision: the run has failed"]);
}

#[test]
fn reader_follows_the_run() {
    let client = core(vec![detail(&id(3), "invoice-intake", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("v").wait_for("copy all");
    for page in 1..=40 {
        let log = json!({ "stream": "stdout", "text": format!("page {page} of 40") });
        client.runs.work(&id(3), "step.log", log, |_| {});
    }
    // The end of the text was visible, and stays visible.
    harness.wait_for("page 40 of 40");
    harness.press("g").wait_for("outputs");
    client.runs.work(&id(3), "step.log", json!({ "stream": "stdout", "text": "page 41" }), |_| {});
    harness.press("G").wait_for("page 41").press("esc").wait_for("Checkpoints");
}

#[test]
fn the_output_of_a_step_is_searched() {
    let client = core(vec![detail(&id(3), "invoice-intake", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("v").wait_for("copy all");
    for page in 1..=80 {
        let log = json!({ "stream": "stdout", "text": format!("Page {page} of 80") });
        client.runs.work(&id(3), "step.log", log, |_| {});
    }
    harness.wait_for("Page 80 of 80");
    harness.press("g /").type_text("page 7").press("enter").wait_for("1 of 11 matching lines");
    has(&harness, &["Page 7 of 80"]);
    harness.press("n").wait_for("2 of 11 matching lines");
    has(&harness, &["Page 70 of 80"]);
    harness.press("N N").wait_for("11 of 11 matching lines");
    has(&harness, &["Page 79 of 80"]);
    harness.press("/").type_text("no such text").wait_for("no match");
    harness.press("esc ?").wait_for("next match").press("esc");
    harness.wait_for("copy all").press("esc").wait_for("Checkpoints");
}

#[test]
fn waiting_run_is_assigned_and_reassigned_with_a_note() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let mut harness = opened(&client, 120, 36);
    harness
        .press("H")
        .wait_for("Assign this run")
        .type_text("kim")
        .press("tab")
        .type_text("registry is back");
    insta::assert_snapshot!("runs-assign-120x36", harness.screen());
    harness.press("ctrl-s").wait_until("the dialog is gone", |screen| !screen.contains("Assign this run"));
    let [RunCommand::Assign { to, note, .. }] = &commands(&client)[..] else { panic!("one order") };
    assert_eq!((to.as_deref(), note.as_deref()), (Some("kim"), Some("registry is back")));
    harness.wait_for("assigned to kim");
    harness
        .press("H")
        .wait_for("Reassign this run")
        .wait_for("Assigned to kim")
        .press("ctrl-u")
        .type_text("ana");
    harness.press("ctrl-s").wait_until("the dialog is gone", |screen| !screen.contains("Reassign this run"));
    let all = commands(&client);
    let Some(RunCommand::Assign { to, .. }) = all.last() else { panic!("a second assignment") };
    assert_eq!(to.as_deref(), Some("ana"));
}

#[test]
fn an_assignment_by_another_person_is_not_overwritten() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("H").wait_for("Assign this run").press("ctrl-s");
    has(&harness, &["Assign this run"]);
    assert!(commands(&client).is_empty(), "there is nothing to assign");
    harness.type_text("lee");
    let kim = Assignment { to: "kim".into(), by: "bo".into(), note: None, at_ms: NOW_MS };
    client.runs.work(&id(1), "run.assigned", json!({ "to": "kim" }), |run| {
        run.run.options.assigned = Some(kim);
    });
    harness.press("ctrl-s").wait_for("loaded;");
    let [RunCommand::Assign { to, assignee, .. }] = &commands(&client)[..] else { panic!("one order") };
    assert_eq!((to.as_deref(), assignee.as_deref()), (Some("lee"), Some("")));
    harness.press("ctrl-s").wait_until("the dialog is gone", |screen| !screen.contains("loaded;"));
    let all = commands(&client);
    let Some(RunCommand::Assign { to, assignee, .. }) = all.last() else { panic!("a second assignment") };
    assert_eq!((to.as_deref(), assignee.as_deref()), (Some("lee"), Some("kim")));
}

#[test]
fn a_failed_run_resumes_from_a_checkpoint_with_corrected_inputs() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("r").wait_for("Resume this run");
    insta::assert_snapshot!("runs-resume-120x36", harness.screen());
    // The checkpoint below the head, then the first input.
    harness.press("down tab ctrl-u").type_text("invoices/new.pdf").press("ctrl-s");
    harness.wait_until("the dialog is gone", |screen| !screen.contains("Resume this run"));
    let [RunCommand::Resume { checkpoint, inputs, despite_change, .. }] = &commands(&client)[..] else {
        panic!("one order")
    };
    assert_eq!((*checkpoint, *despite_change), (Some(1), false));
    assert_eq!(serde_json::to_value(inputs).unwrap(), json!({ "file": "invoices/new.pdf" }));
}

#[test]
fn multiline_input_is_corrected_and_the_change_shown() {
    let mut run = detail(&id(7), "flaky-upload", RunState::Failed);
    run.run.inputs = json!({ "file": "paper; 4; 18.40\ntotal; 1x\n", "limit": 3, "currency": "EUR" });
    let client = core(vec![run]);
    let mut harness = opened(&client, 80, 24);
    harness.wait_for("Log");
    harness.press("r").wait_for("Resume this run");
    harness.press("tab").wait_for("total; 1x").press("backspace backspace backspace").type_text("9");
    // The field below it is a choice, the one after it accepts numbers only.
    harness.press("tab tab ctrl-u").type_text("many").wait_for("expected a number").press("ctrl-s");
    assert_eq!(commands(&client), [], "what is not a number is not sent");
    harness.press("esc esc").wait_until("the dialog is gone", |screen| !screen.contains("Resume this run"));
    harness.press("r tab").wait_for("many");
    insta::assert_snapshot!("runs-resume-again-80x24", harness.screen());
    harness.press("tab tab ctrl-u").type_text("2.5").press("ctrl-s");
    harness.wait_until("the dialog is gone", |screen| !screen.contains("Resume this run"));
    let [RunCommand::Resume { inputs, .. }] = &commands(&client)[..] else { panic!("one order") };
    let sent = serde_json::to_value(inputs).unwrap();
    assert_eq!(sent, json!({ "file": "paper; 4; 18.40\ntotal; 9", "limit": 2.5 }));
    let event_data = json!({
        "checkpoint": 2, "corrected_inputs": sent,
        "inputs_before": { "file": "paper; 4; 18.40\ntotal; 1x\n", "limit": 3 },
    });
    client.runs.work(&id(7), "run.resumed", event_data, |_| {});
    harness.resize(120, 40).wait_for("resumed from c2 with changed");
    harness.wait_for("limit  3 → 2.5");
    has(&harness, &["− total; 1x", "+ total; 9"]);
}

#[test]
fn a_takeover_by_another_worker_is_reported() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    client.runs.work(&id(3), "run.claimed", json!({ "worker": "w1", "takeover": false }), |_| {});
    client.runs.work(&id(3), "run.claimed", json!({ "worker": "w2", "takeover": true }), |_| {});
    harness.wait_for("taken over by worker w2");
    assert!(!harness.screen().contains("w1"), "the first claim is not reported");
}

#[test]
fn signal_has_the_expected_name_and_a_json_payload() {
    let waiting = detail(&id(2), "books-close", RunState::WaitingForSignal);
    let client = core(vec![waiting.clone()]);
    let mut harness = opened(&client, 120, 36);
    harness.press("s").wait_for("Send a signal");
    has(&harness, &["books-closed", "accepts no other signal"]);
    harness.press("ctrl-u").type_text("{\"period\": ").wait_for("invalid JSON");
    harness.press("ctrl-s");
    assert_eq!(commands(&client), [], "what is not JSON is not sent");
    harness
        .type_text("7}")
        .press("ctrl-s")
        .wait_until("the dialog is gone", |screen| !screen.contains("Send a signal"));
    let sent = RunCommand::Signal {
        name: "books-closed".to_owned(),
        payload: json!({ "period": 7 }),
        by: None,
        since_ms: None,
    };
    assert_eq!(commands(&client), [sent.if_unchanged(&waiting.run)]);
}

#[test]
fn cancel_confirmation_starts_on_no() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("x").wait_for("Cancel this run?").press("enter");
    assert_eq!(commands(&client), []);
    harness.press("x").wait_for("Cancel this run?").press("tab enter");
    harness.wait_until("the dialog is gone", |screen| !screen.contains("Cancel this run?"));
    assert_eq!(commands(&client), [RunCommand::Cancel { by: None }]);
}

#[test]
fn a_fork_from_a_checkpoint_puts_the_cursor_on_the_new_run() {
    let completed = detail(&id(6), "invoice-intake", RunState::Completed);
    let client = core(vec![completed.clone()]);
    let mut harness = opened(&client, 120, 36);
    // Steps, output, then the checkpoints: head, c3.
    harness.press("enter down down down down down down").press("f").wait_for("Fork from a checkpoint");
    has(&harness, &["c3  after sum"]);
    harness.press("ctrl-s").wait_for("forked; held until it is resumed");
    let sent = RunCommand::Fork { checkpoint: Some(3), by: None, since_ms: None };
    assert_eq!(commands(&client), [sent.if_unchanged(&completed.run)]);
}

#[test]
fn replay_and_fork_send_the_checkpoint_that_is_shown() {
    for (key, title) in [("p", "Replay from a checkpoint"), ("f", "Fork from a checkpoint")] {
        let running = detail(&id(3), "site-report", RunState::Running);
        let client = core(vec![running.clone()]);
        let mut harness = opened(&client, 120, 36);
        harness.press(key).wait_for(title).wait_for("(latest)").press("ctrl-s");
        harness.wait_until("the dialog is gone", |screen| !screen.contains(title));
        // The run may have ended another step before its event arrives here.
        let [RunCommand::Replay { checkpoint, .. } | RunCommand::Fork { checkpoint, .. }] =
            &commands(&client)[..]
        else {
            panic!("one command")
        };
        assert_eq!(*checkpoint, Some(running.run.head), "{key}");
    }
}

#[test]
fn rejected_command_keeps_the_dialog_and_typed_text() {
    let client = core(vec![detail(&id(2), "books-close", RunState::WaitingForSignal)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("s").wait_for("Send a signal").press("ctrl-u").type_text("[1]");
    client.runs.work(&id(2), "step.log", json!({}), |run| run.run.state = RunState::Completed);
    harness.press("ctrl-s");
    harness.wait_for("cannot ");
    has(&harness, &["Send a signal", "[1]"]);
}

#[test]
fn outputs_are_read_completely_and_copied() {
    let mut run = detail(&id(6), "invoice-intake", RunState::Completed);
    run.run.outputs = Some(json!({ "page": "Errors\n     2 x  pool exhausted\n     1 x  closed" }));
    let client = core(vec![run]);
    let mut harness = opened(&client, 120, 36);
    let log = json!({ "stream": "stdout", "text": "host    lines  errors\nweb-1      12       3" });
    client.runs.work(&id(6), "step.log", log, |_| {});
    harness.wait_for("host    lines  errors");
    has(&harness, &["web-1      12       3"]);
    harness.press("v").wait_for("copy all");
    has(&harness, &["  Errors", "       2 x  pool exhausted", "host    lines  errors"]);
    harness.take_outside();
    harness.press("y");
    let copied = harness.take_outside().into_iter().find_map(|want| match want {
        AppCommand::Copy(text, _) => Some(text),
        _ => None,
    });
    assert!(copied.unwrap().contains("web-1      12       3"), "whole and as it was");
    harness.press("esc").wait_until("the text is gone", |screen| !screen.contains("copy all"));
    harness.press("enter v").wait_for("document.table.extract.script");
    has(&harness, &["given", "invoices/2026-07.pdf", "result"]);
}

#[test]
fn comparison_of_two_runs_starts_at_their_inputs() {
    let mut other = detail(&id(5), "invoice-intake", RunState::Completed);
    other.run.inputs = json!({ "file": "invoices/2026-08.pdf", "currency": "EUR" });
    other.steps[1].binding = Some("another.script".to_owned());
    let client = core(vec![detail(&id(6), "invoice-intake", RunState::Completed), other]);
    let mut harness = opened(&client, 120, 36);
    harness.press("=").wait_for("first difference at the inputs of the runs: file");
    has(
        &harness,
        &["invoices/2026-07.pdf", "invoices/2026-08.pdf", "different binding", "1 of 4 steps differ"],
    );
}

#[test]
fn result_of_a_step_marked_completed_is_checked() {
    let mut run = detail(&id(1), "vendor-sync", RunState::WaitingForHuman);
    let digest = "ab".repeat(32);
    run.run.gate = Some(Gate::human("book", digest, ApprovalReason::UnknownOutcome));
    let mut preview = decision_preview(&run.run);
    preview.outputs = contract_view("invoice-intake", INVOICE).contract.outputs;
    preview.outputs.get_mut("booking").unwrap().required = true;
    run.sheet = Some(preview);
    let client = core(vec![run]);
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("Outcome unknown").type_text("seen at the bank").press("esc H");
    harness.wait_for("enter the result").press("ctrl-s");
    assert_eq!(commands(&client), [], "a field that it always gives is missing");
    harness
        .type_text("B-7")
        .press("ctrl-s")
        .wait_until("the dialog is gone", |s| !s.contains("enter the result"));
    let [RunCommand::Decide { choice, result, notes, approver, .. }] = &commands(&client)[..] else {
        panic!()
    };
    assert_eq!((*choice, result), (Some(Choice::Happened), &Some(json!({ "booking": "B-7" }))));
    assert_eq!((notes.as_deref(), approver.as_deref()), (Some("seen at the bank"), Some("ana")));
}

#[test]
fn second_approver_sees_who_decided_first() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("Your decision");
    // An event without information: the dialog does not change.
    client.runs.work(&id(1), "step.log", json!({}), |run| {
        let inputs_digest = "9f".repeat(32);
        let (verdict, step) = (Verdict::Approve, "book".to_owned());
        run.run.decided = Some(Decision { verdict, step, inputs_digest, choice: None, result: None });
        (run.run.state, run.run.gate) = (RunState::Pending, None);
    });
    let run = id(1).to_uppercase();
    let tail: String = run.chars().skip(run.len() - 3).collect();
    harness.press("A").wait_for(&format!("invoice-intake {tail} was already approved by"));
    has(&harness, &["Your decision", "Close"]);
    harness.press("esc").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
}

#[test]
fn the_binding_is_updated_when_skills_are_read() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let binding = |text: &str| {
        client.runs.book().runs[0].sheet.as_mut().unwrap().binding = text.to_owned();
    };
    binding("no binding executes it");
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("Your decision").wait_for("no binding executes it");
    binding("script scripts/invoice.py");
    let read = Change {
        catalog: Arc::default(),
        added: vec![SkillId::new("invoice-intake")],
        changed: Vec::new(),
        removed: Vec::new(),
    };
    client.emit(Event::Catalog(Arc::new(read)));
    harness.wait_for("script scripts/invoice.py").wait_for("review it again");
}

#[test]
fn leaving_with_active_runs_is_confirmed_once() {
    let mut run = detail(&id(3), "site-report", RunState::Running);
    let worker = Some(WorkerId("here/1-a/7/9/0".to_owned()));
    run.run.lease =
        Some(RunLease { worker, until_ms: i64::MAX, until_boot: None, holder: LeaseHolder::Here });
    let client = core(vec![run]);
    let mut harness = opened(&client, 120, 36);
    harness.press("q").wait_for("1 run is executing here");
    has(&harness, &["at the next start"]);
    harness.press("esc");
    assert!(!harness.take_outside().contains(&AppCommand::Quit));
    harness.press("q").wait_for("executing here").press("Q");
    assert!(harness.take_outside().contains(&AppCommand::Quit));
}

#[test]
fn a_pause_request_is_shown_above_the_steps() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let mut harness = opened(&client, 120, 36);
    let wish = json!({
        "by": id(9), "skill": "secret-scan", "asked": "pause", "why": "1 finding",
        "did": "it is waiting for approval; after the decision it is paused until it is resumed",
    });
    client.runs.work(&id(1), "control.applied", wish, |run| run.run.paused = true);
    harness.wait_for("the sidecar secret-scan 009 requests a pause (1");
    has(&harness, &["waiting for approval, then paused"]);
    client.runs.work(&id(1), "run.held", json!({}), |run| run.run.state = RunState::Pending);
    client.runs.work(&id(1), "run.resumed", json!({}), |run| {
        (run.run.paused, run.run.state) = (false, RunState::Completed);
    });
    harness.wait_for("the sidecar secret-scan 009 requested a pause (1");
    assert!(!harness.screen().contains("requests a pause"), "{}", harness.screen());
    let client = core(vec![detail(&id(2), "books-close", RunState::WaitingForSignal)]);
    let mut harness = opened(&client, 120, 36);
    let wish = json!({ "by": id(9), "skill": "secret-scan", "asked": "pause", "why": "1 finding" });
    client.runs.work(&id(2), "control.applied", wish, |run| run.run.paused = true);
    harness.wait_for("requests a pause").press("s");
    harness.wait_for("pause requested by secret-scan (1 finding): after the signal");
}

#[test]
fn decision_shows_a_pending_pause_and_blocked_steps() {
    let mut run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    let sheet = run.sheet.as_mut().unwrap();
    sheet.pause = Some("secret-scan (1 finding)".to_owned());
    let client = core(vec![run.clone()]);
    let mut harness = opened(&client, 120, 40);
    harness.press("a").wait_for("pause requested by secret-scan (1 finding): after");
    harness.press("esc");
    run.sheet.as_mut().unwrap().blocked =
        Some("step book cannot be carried out: run skills trust".to_owned());
    let client = core(vec![run]);
    let mut harness = opened(&client, 80, 24);
    harness.press("a").wait_for("step book cannot be carried out");
    assert!(!harness.screen().contains("Approve"), "{}", harness.screen());
    harness.press("A").wait_for("Not approved: step book");
    assert_eq!(commands(&client), [], "no yes is sent");
    harness.press("D").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
    assert_eq!(commands(&client).len(), 1, "you can still deny it");
}

#[test]
fn remaining_wait_follows_the_clock_and_expiry_decides_nothing() {
    let mut run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    run.run.expires_ms = Some(NOW_MS + 90_000);
    run.sheet = Some(decision_preview(&run.run));
    let client = core(vec![run]);
    let mut harness = opened(&client, 120, 40);
    has(&harness, &["1 m left", "expires in 1 m: then denied and canceled"]);
    harness.press("a").wait_for("Your decision");
    has(&harness, &["in 1 m; then denied and canceled"]);
    harness.pass(Duration::from_secs(40));
    has(&harness, &["in 50 s; then denied"]);
    harness.pass(Duration::from_secs(51));
    has(&harness, &["invoice-intake expired at", "No pending decision."]);
    harness.press("A").press("D");
    assert_eq!(commands(&client), [], "nothing is decided after the time");
}

#[test]
fn wait_after_its_deadline_is_expired() {
    let mut run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    run.run.expires_ms = Some(NOW_MS - 5_000);
    let harness = opened(&core(vec![run]), 120, 36);
    has(&harness, &["expired", "expired 5 s ago: then denied"]);
    let screen = harness.screen();
    let mut rows = screen.lines().filter(|line| line.contains("invoice-intake"));
    assert!(!rows.any(|row| row.contains("approval")), "{screen}");
}

#[test]
fn run_canceled_by_timeout_shows_the_reason() {
    let mut run = detail(&id(1), "invoice-intake", RunState::Canceled);
    run.run.error =
        Some(json!({ "code": "expired", "message": "no approval in time", "expired_ms": NOW_MS }));
    for (width, height) in [(120, 36), (80, 24)] {
        let mut harness = opened(&core(vec![run.clone()]), width, height);
        has(&harness, &["expired"]);
        if width == 80 {
            harness.press("enter");
        }
        harness.wait_for("canceled: expired at");
    }
}

#[test]
fn unreadable_store_shows_the_command_to_repair_it() {
    let client = core(Vec::new());
    let damaged = "listing runs: it is damaged: `skills db check` says where";
    *client.runs.unreadable.lock().unwrap() = Some(Error::new(Code::InternalError, damaged));
    let invocation = Invocation::with(["--store", "sqlite:/x/a b.db"].map(str::to_owned).into());
    let mut harness = opened_as(&client, &Settings { invocation, ..settings() }, (120, 30));
    harness.wait_for("cannot be read");
    has(&harness, &["it is damaged: `skills --store 'sqlite:/x/a b.db' db check` says where"]);
    assert!(!harness.screen().contains(" reading "), "{}", harness.screen());
}

#[test]
fn copied_command_uses_the_store_of_this_workbench() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::Completed)]);
    let invocation = Invocation::with(["--store", "sqlite:/x/a b.db"].map(str::to_owned).into());
    let mut harness = opened_as(&client, &Settings { invocation, ..settings() }, (120, 30));
    harness.wait_for("Checkpoints").press("Y").wait_for("Copy as");
    let line = format!("skills --store 'sqlite:/x/a b.db' runs show {}", id(1));
    has(&harness, &["skills --store 'sqlite:/x/a b.db' runs show"]);
    harness.press("down enter").wait_until("the chooser is gone", |screen| !screen.contains("Copy as"));
    let copied = harness.take_outside();
    assert!(copied.contains(&AppCommand::Copy(line, "command line".to_owned())), "{copied:?}");
    // What is in memory is seen by no other command.
    let mut harness = opened_as(&client, &Settings { passing: true, ..settings() }, (120, 30));
    harness.wait_for("Checkpoints").press("Y").wait_for("the store is in memory").press("down enter");
    assert_eq!(harness.take_outside(), [], "a line that cannot work is not copied");
}

#[test]
fn runs_to_compare_with_are_distinguished() {
    let runs = (1..4).map(|number| detail(&id(number), "invoice-intake", RunState::Completed)).collect();
    let mut harness = opened(&core(runs), 120, 36);
    harness.press("=").wait_for("Compare with");
    has(&harness, &["invoice-intake 002", "invoice-intake 003", "completed, "]);
    assert!(!harness.screen().contains(&id(3)), "no bare ids: {}", harness.screen());
}

#[test]
fn notice_in_a_small_window_does_not_cover_its_subject() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::Completed)]);
    let mut harness = opened(&client, 80, 24);
    let before: Vec<String> = harness.screen().lines().map(str::to_owned).collect();
    harness.deliver(AppEvent::Done("copied the whole of something that takes a long time to say".to_owned()));
    let after: Vec<String> = harness.screen().lines().map(str::to_owned).collect();
    let (pane, foot) = (before.len() - 1, after.last().unwrap());
    assert_eq!(before[..pane], after[..pane], "the pane is as it was");
    assert!(foot.contains("copied the whole of something"), "{foot}");
    harness.pass(Duration::from_secs(5));
    assert_eq!(harness.screen().lines().last(), before.last().map(String::as_str), "then the keys are back");
}

#[test]
fn dialog_shows_the_files_of_the_run() {
    let mut run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    run.sheet.as_mut().unwrap().files = vec![SuppliedFile {
        name: "pay.csv".to_owned(),
        path: "/srv/pay.csv".to_owned(),
        sha256: Some("c4".repeat(32)),
    }];
    let mut harness = opened(&core(vec![run]), 120, 36);
    harness.press("a").wait_for("pay.csv  /srv/pay.csv  sha256");
    has(&harness, &[&"c4".repeat(32)]);
}

#[test]
fn dialog_shows_the_target_and_the_fallbacks() {
    let mut run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    let sheet = run.sheet.as_mut().unwrap();
    sheet.fallbacks = vec!["openapi POST https://backup.example/entries".to_owned()];
    sheet.target = Some(DecisionTarget {
        kind: "artifact".to_owned(),
        reference: "artifact:394a".to_owned(),
        label: Some("o.json".to_owned()),
        content_bytes: 55,
        sha256: "cd".repeat(32),
        content: json!({ "iban": "DE00 MALLORY" }),
        truncated: false,
    });
    let mut harness = opened(&core(vec![run]), 120, 46);
    harness.press("a").wait_for("https://backup.example/entries");
    has(&harness, &["artifact artifact:394a (o.json), 55 B as JSON", "DE00 MALLORY", "and this target"]);
}

#[test]
fn inputs_of_an_edited_step_are_not_shown() {
    let mut run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    run.sheet.as_mut().unwrap().inputs = json!(null);
    let mut harness = opened(&core(vec![run]), 120, 36);
    harness.press("a").wait_for("changed since requested: approval leads to another request");
    assert!(!harness.screen().contains("exactly these inputs are used"), "{}", harness.screen());
}

#[test]
fn step_marked_completed_shows_person_and_result() {
    let mut run = detail(&id(1), "invoice-intake", RunState::Completed);
    let decision = Decision {
        verdict: Verdict::Approve,
        step: "book".to_owned(),
        inputs_digest: "9f".repeat(32),
        choice: Some(Choice::Happened),
        result: Some(json!({ "entry_id": "B-7" })),
    };
    let by = DecisionRecord { approver: Some("kim".to_owned()), notes: Some("seen at the bank".to_owned()) };
    run.decisions.push(RecordedDecision { at_ms: NOW_MS - 1_000, decision, by });
    let client = core(vec![run]);
    let mut harness = opened(&client, 140, 40);
    let message = json!({ "approver": "kim", "choice": "happened", "result": { "entry_id": "B-7" } });
    client.runs.work(&id(1), "gate.approved", message, |_| ());
    harness.wait_for("marked completed by kim");
    harness.press("enter").wait_for("open").press("down down down space");
    harness.wait_for("marked completed by kim at");
    has(&harness, &["seen at the"]);
}

#[test]
fn run_of_unloaded_skills_names_who_can_execute_it() {
    let mut run = detail(&id(1), "invoice-intake", RunState::Pending);
    let why = "it was launched from the skills of /srv/skills, which are not loaded: use --root /srv/skills";
    run.elsewhere = Some(why.to_owned());
    let harness = opened(&core(vec![run]), 120, 36);
    let screen = harness.screen();
    assert!(screen.contains("! it was launched from the skills of /srv/skills"), "{screen}");
    assert!(screen.contains("use --root"), "{screen}");
}

#[test]
fn run_with_a_changed_request_is_unmarked() {
    let runs = (1..4).map(|n| detail(&id(n), "invoice-intake", RunState::WaitingForHuman)).collect();
    let client = core(runs);
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("3 runs are waiting for ledger.entry.create");
    harness.press("tab tab tab down space").wait_for("Approve 2");
    client.runs.work(&id(1), "gate.changed", json!({}), |run| {
        let inputs_digest = "77".repeat(32);
        run.sheet.as_mut().unwrap().inputs_digest.clone_from(&inputs_digest);
        run.run.gate = Some(Gate::human("book", inputs_digest, ApprovalReason::Confirmation));
    });
    harness.wait_until("it is not marked any more", |screen| !screen.contains("Approve 2"));
    harness.press("A").wait_until("one is decided", |_| !client.runs.commands.lock().unwrap().is_empty());
    let ordered: Vec<String> =
        client.runs.commands.lock().unwrap().iter().map(|(run, _)| run.clone()).collect();
    assert_eq!(ordered, [id(2)], "only the one that was read");
}
