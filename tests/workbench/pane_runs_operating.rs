//! Views, the table, facets, saved views and the board in the pane of runs.

use crate::support;

use serde_json::json;
use skills_api::{BoardRun, RunCommand, RunDetail, WorkerState, WorkerView};
use skills_model::RunState;
use support::run_pane::{core, has, id, opened, orders};
use support::run_samples::{NOW_MS, detail};

fn run(number: u32, state: RunState, title: &str, region: &str) -> RunDetail {
    let mut run = detail(&id(number), "deploy-service", state);
    run.run.options.title = Some(title.to_owned());
    run.run.inputs = json!({ "version": "5.4.0", "region": region });
    run
}

fn runs() -> Vec<RunDetail> {
    let mut all = vec![
        run(1, RunState::Failed, "Deploy 5.4.0 to eu-west-1", "eu-west-1"),
        run(2, RunState::Failed, "Deploy 5.4.0 to us-east-1", "us-east-1"),
        run(3, RunState::Failed, "Check 5.4.0 for us-east-1", "us-east-1"),
        run(4, RunState::Completed, "Deploy 5.3.9 to staging", "staging"),
        run(5, RunState::WaitingForHuman, "Promote 5.4.0 to eu-west-1", "eu-west-1"),
        run(6, RunState::WaitingForHuman, "Delete 41 stale branches", "eu-west-1"),
    ];
    all[2].run.error =
        Some(json!({"code": "step_timeout", "message": "step push_image took longer than 60 s"}));
    all[4].run.expires_ms = Some(NOW_MS + 5 * 60_000);
    all[5].run.expires_ms = None;
    all
}

#[test]
fn a_view_shows_a_table_that_is_sorted_and_narrowed() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    has(&harness, &["Deploy 5.4.0", "All", "Waiting", "Failed", "Board"]);
    harness.press("] ] ]");
    has(&harness, &["state:failed", "Deploy 5.4.0 to eu-west-1", "step timeout", "title", "error"]);
    insta::assert_snapshot!("runs-filter-120x36", harness.screen());
    harness.press("o").wait_for("Sort by").type_text("-title").press("enter");
    let screen = harness.screen();
    let first = screen.find("Deploy 5.4.0 to us-east-1").unwrap();
    assert!(first < screen.find("Check 5.4.0 for us-east-1").unwrap(), "{screen}");
    harness.press("g +").wait_for("Add to the filter").press("enter");
    has(&harness, &["error:\"the service answered 502\""]);
    assert!(!harness.screen().contains("Check 5.4.0 for us-east-1"), "{}", harness.screen());
    harness.press("V").wait_for("Save this filter as").type_text("Answered 502").press("enter");
    harness.wait_for("saved as Answered 502");
    assert_eq!(
        client.runs.views.lock().unwrap()[0].r#where,
        "state:failed error:\"the service answered 502\""
    );
    has(&harness, &["Answered 502"]);
}

#[test]
fn every_tab_is_in_sight_in_a_small_window() {
    let client = core(runs());
    let harness = opened(&client, 80, 24);
    has(&harness, &["All  Wait ◆2  Run  Fail  Board"]);
}

#[test]
fn the_table_fits_a_small_window() {
    let client = core(runs());
    let mut harness = opened(&client, 80, 24);
    harness.press("] ] ]").wait_for("state:failed");
    insta::assert_snapshot!("runs-filter-80x24", harness.screen());
}

#[test]
fn a_hundred_failed_runs_are_resumed_in_ten_keys() {
    let mut all: Vec<RunDetail> = Vec::new();
    for number in 0..106_u32 {
        let mut run = run(1, RunState::Failed, &format!("Deploy {number}"), "eu-west-1");
        run.run.id.0 = format!("0198a1b2-1000-7000-8000-{number:012}");
        if number >= 99 {
            run.run.error = Some(json!({"code": "step_timeout", "message": "too long"}));
        }
        all.push(run);
    }
    let client = core(all);
    let mut harness = opened(&client, 120, 36);
    // The view of failed runs, the reason of the first row, all of them, resume, confirm: ten keys.
    let keys = ["]", "]", "]", "+", "enter", "*", "r", "enter"];
    for key in keys {
        harness.press(key);
    }
    assert!(keys.len() <= 10);
    harness.pass(std::time::Duration::from_secs(4));
    harness.wait_until("all are sent", |_| orders(&client).len() >= 99);
    let resumed = orders(&client).iter().filter(|order| matches!(order, RunCommand::Resume { .. })).count();
    assert!(resumed == 99 || resumed == 7, "exactly the runs with one reason: {resumed}");
}

#[test]
fn the_board_shows_deadlines_failures_and_workers() {
    let client = core(runs());
    let busy = run(1, RunState::Running, "Deploy 5.4.0 to eu-west-1", "eu-west-1");
    client.runs.workers.lock().unwrap().push(WorkerView {
        worker: "build-2/1/4711/9".to_owned(),
        name: "process 4711 on build-2".to_owned(),
        version: Some("0.2.0".to_owned()),
        state: WorkerState::Live,
        slots: Some(8),
        runs: vec![BoardRun::of(&busy.run)],
        started_ms: Some(NOW_MS - 60_000),
        seen_ms: Some(NOW_MS - 2_000),
    });
    let mut harness = opened(&client, 120, 36);
    harness.press("b").wait_for("process 4711 on build-2");
    has(&harness, &["expires in", "no deadline", "failed, by reason", "2 waiting"]);
    insta::assert_snapshot!("runs-board-120x36", harness.screen());
    harness
        .press("G D")
        .wait_until("it drains", |_| client.runs.workers.lock().unwrap()[0].state == WorkerState::Draining);
    harness.wait_for("draining");
    harness.press("g enter").wait_for("Checkpoints");
    has(&harness, &["Promote 5.4.0 to eu-west-1"]);
}
