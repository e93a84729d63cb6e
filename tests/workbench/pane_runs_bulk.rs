//! Filtering the list of runs, marking runs and sending one command to all of them.

use crate::support;

use std::time::Duration;

use serde_json::json;
use skills_api::{RunCommand, RunDetail};
use skills_model::{RunState, Verdict};
use skills_tui::harness::Harness;
use support::run_pane::{core, has, id, opened, orders};
use support::run_samples::detail;

fn run(number: u32, state: RunState, region: &str) -> RunDetail {
    let mut run = detail(&id(number), "invoice-intake", state);
    run.run.inputs = json!({ "file": "invoices/2026-07.pdf", "region": region });
    run
}

fn runs() -> Vec<RunDetail> {
    vec![
        run(1, RunState::Failed, "eu-west"),
        run(2, RunState::Failed, "us-east"),
        run(3, RunState::Failed, "eu-north"),
        run(4, RunState::Completed, "eu-west"),
        run(5, RunState::WaitingForHuman, "eu-west"),
        run(6, RunState::WaitingForHuman, "us-east"),
    ]
}

fn resumed(orders: &[RunCommand]) -> usize {
    orders.iter().filter(|order| matches!(order, RunCommand::Resume { checkpoint: None, .. })).count()
}

fn filter(harness: &mut Harness, text: &str) {
    harness.press("/").type_text(text).press("enter");
}

#[test]
fn marked_runs_are_resumed_one_by_one_after_a_delay() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed input.region:eu*");
    harness.press("*");
    has(&harness, &["2 marked"]);
    harness.press("r");
    insta::assert_snapshot!("runs-bulk-120x36", harness.screen());
    harness.press("enter").pass(Duration::from_millis(1_500));
    has(&harness, &["Sending in 2 s", "Undo"]);
    assert!(orders(&client).is_empty(), "nothing is sent before the delay is over");
    harness.press("esc").pass(Duration::from_secs(5));
    has(&harness, &["Nothing is sent yet"]);
    assert!(orders(&client).is_empty(), "it was withdrawn");
    harness.press("down space").press("enter").pass(Duration::from_secs(4));
    harness.wait_for("1 done");
    assert_eq!(
        resumed(&orders(&client)),
        1,
        "the run that was left out got no command: {:?}",
        orders(&client)
    );
    harness.press("esc esc");
    assert!(!harness.screen().contains("marked"), "{}", harness.screen());
}

#[test]
fn a_decision_for_many_names_what_each_run_waits_for() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:waiting");
    harness.press("* a");
    has(&harness, &["Approve 2 runs", "region=eu-west", "region=us-east"]);
    harness.press("ctrl-s enter").pass(Duration::from_secs(5));
    assert!(orders(&client).is_empty(), "only A approves");
}

#[test]
fn only_shift_a_approves_many() {
    let client = core(runs());
    let mut harness = opened(&client, 100, 30);
    filter(&mut harness, "state:waiting");
    harness.press("* a A").pass(Duration::from_secs(4));
    harness.wait_for("2 done");
    let all = orders(&client);
    let approved = all.iter().filter(|order| {
        matches!(order, RunCommand::Decide { verdict: Verdict::Approve, step: Some(step), inputs_digest: Some(_), .. } if step == "book")
    });
    assert_eq!(approved.count(), 2, "{all:?}");
}

#[test]
fn runs_that_cannot_take_the_command_are_left_out() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("* x");
    has(&harness, &["Cancel 2 runs", "excluded: "]);
}

#[test]
fn a_filter_is_completed_and_its_mistakes_are_explained() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("/").type_text("sta").press("tab");
    harness.type_text("fai").press("tab");
    has(&harness, &["state:failed", "3 of 6"]);
    harness.type_text("age:soon");
    has(&harness, &["`age:soon` is not a duration"]);
    harness.press("ctrl-u").type_text("nothing-has-this");
    has(&harness, &["no runs match the filter"]);
    harness.press("esc esc");
    harness.press("space shift-down");
    has(&harness, &["marked"]);
}

/// Failed runs of two reasons, of which the service returns the first thousand at once, and one that waits.
fn thousands() -> Vec<RunDetail> {
    let mut all = vec![run(5, RunState::WaitingForHuman, "eu-west")];
    for number in 0..1_250_u32 {
        let region = if number < 1_200 { "eu-west" } else { "us-east" };
        let mut failed = run(1, RunState::Failed, region);
        failed.run.id.0 = format!("0198a1b2-1000-7000-8000-{number:012}");
        failed.run.options.title = Some(format!("Deploy {number:04}"));
        // The last ones are the newest, so that a sorted first page would not contain the first ones.
        failed.run.created_ms += i64::from(number);
        all.push(failed);
    }
    all
}

#[test]
fn marking_all_loads_every_match_first() {
    let client = core(thousands());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.wait_for("first 1 000 of 1 250 matches");
    harness.press("*").wait_for("1 250 marked");
    has(&harness, &["1 250 of 1 251"]);
    harness.press("r").wait_for("Resume 1 250 runs");
}

#[test]
fn facets_count_every_match_of_the_service() {
    let client = core(thousands());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    // 250 of them are not loaded.
    harness.wait_for("eu-west 1 200");
    has(&harness, &["us-east 50"]);
}

#[test]
fn sorting_loads_every_match_first() {
    let client = core(thousands());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.wait_for("first 1 000 of");
    harness.press("o").wait_for("Sort by").type_text("title").press("enter");
    harness.wait_for("1 250 of 1 251");
    harness.press("g");
    has(&harness, &["Deploy 0000"]);
}

#[test]
fn a_new_filter_unmarks_every_run() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("*");
    has(&harness, &["3 marked"]);
    harness.press("/").type_text(" input.region:us*").press("enter");
    assert!(!harness.screen().contains("marked"), "{}", harness.screen());
    harness.press("r");
    assert!(!harness.screen().contains("Resume 3 runs"), "{}", harness.screen());
}

#[test]
fn a_filter_without_matches_selects_no_run() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    has(&harness, &["Checkpoints"]);
    filter(&mut harness, "nothing-has-this");
    for key in ["a", "x", "r"] {
        harness.press(key);
        has(&harness, &["no run is selected"]);
    }
    assert!(orders(&client).is_empty());
}

#[test]
fn marks_block_commands_for_one_run() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* p");
    has(&harness, &["this command takes one run, and 3 are marked"]);
    harness.press("esc");
    assert!(!harness.screen().contains("3 marked"), "{}", harness.screen());
}

#[test]
fn a_term_without_value_is_ignored() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("/").type_text("state:failed error:");
    has(&harness, &["3 of 6"]);
    harness.type_text("no-such-error");
    has(&harness, &["0 of 6"]);
    harness.press("ctrl-u").type_text("age:soon");
    has(&harness, &["not applied"]);
}
