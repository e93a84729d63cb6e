//! The orders that an operator gives a run in Runs, by keys: resume, signal, cancel, fork, replay.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says where it failed")]

mod support;

use serde_json::json;
use skill_workbench::gateway::RunOrder;
use skill_workbench::runs::RunState;
use skill_workbench::tui::harness::Harness;
use support::run_pane::{core, has, id, opened, orders};
use support::run_samples::{detail, every_state};

#[test]
fn only_what_a_run_takes_is_offered_and_the_rest_says_why_not() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    let footer = |harness: &Harness| harness.screen().lines().last().unwrap().to_owned();
    assert!(footer(&harness).contains("a approve") && !footer(&harness).contains("r resume"));
    harness.press("r");
    has(&harness, &["approval needed"]);
    harness.press("/").type_text("flaky").press("enter").wait_for("the service answered 502");
    assert!(
        footer(&harness).contains("r resume") && !footer(&harness).contains("a approve"),
        "{}",
        footer(&harness)
    );
    harness.press("a");
    has(&harness, &["it asks for no decision: it is failed"]);
}

#[test]
fn a_failed_run_resumes_from_a_checkpoint_with_corrected_inputs() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("r").wait_for("Resume this run");
    insta::assert_snapshot!("runs-resume-120x36", harness.screen());
    // The checkpoint below the head, then the first input.
    harness.press("down tab ctrl-u").type_text("invoices/new.pdf").press("ctrl-s");
    harness.wait_until("the sheet is gone", |screen| !screen.contains("Resume this run"));
    let [RunOrder::Resume { checkpoint, inputs, despite_change }] = &orders(&client)[..] else {
        panic!("one order")
    };
    assert_eq!((*checkpoint, *despite_change), (Some(1), false));
    assert_eq!(serde_json::to_value(inputs).unwrap(), json!({ "file": "invoices/new.pdf" }));
}

#[test]
fn an_input_of_several_lines_is_corrected_and_the_run_says_what_changed() {
    let mut run = detail(&id(7), "flaky-upload", RunState::Failed);
    run.run.inputs = json!({ "file": "paper; 4; 18.40\ntotal; 1x\n", "limit": 3, "currency": "EUR" });
    let client = core(vec![run]);
    let mut harness = opened(&client, 80, 24);
    harness.wait_for("Output");
    harness.press("r").wait_for("Resume this run");
    harness.press("tab").wait_for("total; 1x").press("backspace backspace backspace").type_text("9");
    // The field below it is a choice, the one after it takes numbers alone.
    harness.press("tab tab ctrl-u").type_text("many").wait_for("needs a number").press("ctrl-s");
    assert_eq!(orders(&client), [], "what is no number is not sent");
    harness.press("esc esc").wait_until("the sheet is gone", |screen| !screen.contains("Resume this run"));
    harness.press("r tab").wait_for("many");
    insta::assert_snapshot!("runs-resume-again-80x24", harness.screen());
    harness.press("tab tab ctrl-u").type_text("2.5").press("ctrl-s");
    harness.wait_until("the sheet is gone", |screen| !screen.contains("Resume this run"));
    let [RunOrder::Resume { inputs, .. }] = &orders(&client)[..] else { panic!("one order") };
    let sent = serde_json::to_value(inputs).unwrap();
    assert_eq!(sent, json!({ "file": "paper; 4; 18.40\ntotal; 9", "limit": 2.5 }));
    let told = json!({
        "checkpoint": 2, "corrected_inputs": sent,
        "inputs_before": { "file": "paper; 4; 18.40\ntotal; 1x\n", "limit": 3 },
    });
    client.runs.work(&id(7), "run.resumed", told, |_| {});
    harness.resize(120, 40).wait_for("resumed from c2 with corrected");
    harness.wait_for("limit 3 → 2.5");
    has(&harness, &["− total; 1x", "+ total; 9"]);
}

#[test]
fn a_takeover_by_another_worker_is_told() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    client.runs.work(&id(3), "run.claimed", json!({ "worker": "w1", "takeover": false }), |_| {});
    client.runs.work(&id(3), "run.claimed", json!({ "worker": "w2", "takeover": true }), |_| {});
    harness.wait_for("taken over by w2");
    assert!(!harness.screen().contains("w1"), "the first claim is no news");
}

#[test]
fn a_signal_has_the_name_that_is_waited_for_and_a_payload_that_is_json() {
    let client = core(vec![detail(&id(2), "books-close", RunState::WaitingForSignal)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("s").wait_for("Send a signal");
    has(&harness, &["books-closed"]);
    harness.press("ctrl-u").type_text("{\"period\": ").wait_for("no JSON");
    harness.press("ctrl-s");
    assert_eq!(orders(&client), [], "what is no JSON is not sent");
    harness
        .type_text("7}")
        .press("ctrl-s")
        .wait_until("the sheet is gone", |screen| !screen.contains("Send a signal"));
    let sent = RunOrder::Signal { name: "books-closed".to_owned(), payload: json!({ "period": 7 }) };
    assert_eq!(orders(&client), [sent]);
}

#[test]
fn canceling_asks_first_and_begins_on_no() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("x").wait_for("Cancel this run?").press("enter");
    assert_eq!(orders(&client), []);
    harness.press("x").wait_for("Cancel this run?").press("tab enter");
    harness.wait_until("the sheet is gone", |screen| !screen.contains("Cancel this run?"));
    assert_eq!(orders(&client), [RunOrder::Cancel]);
}

#[test]
fn a_fork_from_a_checkpoint_puts_the_cursor_on_the_new_run() {
    let client = core(vec![detail(&id(6), "invoice-intake", RunState::Completed)]);
    let mut harness = opened(&client, 120, 36);
    // Steps, output, then the checkpoints: head, c3.
    harness.press("enter down down down down down down").press("f").wait_for("Fork from a checkpoint");
    has(&harness, &["c3  after sum"]);
    harness.press("ctrl-s").wait_for("forked; held until it is resumed");
    assert_eq!(orders(&client), [RunOrder::Fork { checkpoint: Some(3) }]);
}

#[test]
fn a_refused_order_keeps_the_sheet_and_what_was_typed() {
    let client = core(vec![detail(&id(2), "books-close", RunState::WaitingForSignal)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("s").wait_for("Send a signal").press("ctrl-u").type_text("[1]");
    client.runs.work(&id(2), "step.log", json!({}), |run| run.run.state = RunState::Completed);
    harness.press("ctrl-s");
    harness.wait_for("does not take");
    has(&harness, &["Send a signal", "[1]"]);
}
