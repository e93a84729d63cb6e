//! Views, the table, facets, saved views and the board in the pane of runs.

use crate::support;

use std::sync::Arc;

use serde_json::json;
use skills_api::{BoardRun, Code, Error, RunCommand, RunDetail, WorkerState, WorkerView};
use skills_model::{Gate, RunState};
use skills_tui::app::AppEvent;
use skills_tui::harness::Harness;
use skills_tui::pane::{Message, Pane};
use skills_tui::panes::runs::Runs;
use skills_tui::run_requests::{Outage, RunResponse};
use support::run_pane::{commands, core, has, id, opened};
use support::run_samples::{NOW_MS, decision_preview, detail, settings as sample_settings};

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
fn a_table_takes_only_the_rows_that_it_needs() {
    for (width, height) in [(80, 24), (120, 36)] {
        let client = core(runs());
        let mut harness = opened(&client, width, height);
        harness.press("/").type_text("state:completed").press("enter").wait_for("1 of 6");
        let screen = harness.screen();
        let lines: Vec<&str> = screen.lines().collect();
        let row = lines.iter().position(|line| line.contains("Deploy 5.3.9 to staging")).unwrap();
        assert!(lines[row + 1].starts_with("─ Deploy 5.3.9 to staging ─"), "{screen}");
    }
}

#[test]
fn an_ellipsis_follows_values_if_more_exist_than_fit() {
    let region = |number: u32| format!("region-number-{number}");
    let all = (1..=6).map(|n| run(n, RunState::Completed, &format!("Deploy {n}"), &region(n)));
    let client = core(all.collect());
    let mut harness = opened(&client, 80, 24);
    harness.press("/").type_text("state:completed").press("enter").wait_for("region-number-1 1");
    let screen = harness.screen();
    let line = screen.lines().find(|line| line.contains("input.region")).unwrap();
    assert!(line.contains("region-number-2 1 …") && !line.contains("region-number-3"), "{line}");
}

#[test]
fn values_of_one_field_are_selected_as_alternatives() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("/").type_text("input.region:us-east-1").press("enter").wait_for("2 of 6");
    has(&harness, &["● us-east-1 2", "eu-west-1 3"]);
    let mut choose = |value: &str| {
        harness.press("+").wait_for("Add to the filter").type_text(value).press("enter");
        harness.screen()
    };
    let screen = choose("region:eu-west");
    assert!(screen.contains("input.region:us-east-1,eu-west-1") && screen.contains("5 of 6"), "{screen}");
    let screen = choose("state:failed");
    assert!(screen.contains("input.region:us-east-1,eu-west-1 state:failed"), "{screen}");
    assert!(screen.contains("3 of 6"), "{screen}");
    let screen = choose("region:us-east");
    assert!(
        screen.contains("/ input.region:eu-west-1 state:failed"),
        "a selected value is removed\n{screen}"
    );
}

#[test]
fn every_tab_is_visible_in_a_small_window() {
    let client = core(runs());
    let harness = opened(&client, 80, 24);
    has(&harness, &["All 6  Waiting ◆2  Running  Failed  Board"]);
}

#[test]
fn the_board_stays_visible_beside_saved_views() {
    let client = core(runs());
    for number in 1..=8 {
        client.runs.views.lock().unwrap().push(skills_api::SavedView {
            name: format!("Release {number}"),
            r#where: format!("input.version:{number}"),
            by: None,
        });
    }
    for (width, height) in [(80, 24), (120, 36)] {
        let mut harness = opened(&client, width, height);
        has(&harness, &["All", "Wait", "Board"]);
        for number in 1..=8 {
            harness.press(if number == 1 { "] ] ] ]" } else { "]" });
            harness.wait_for(&format!("input.version:{number}"));
            has(&harness, &["All", "Wait", "Board"]);
        }
        harness.press("]").wait_for("failed, by reason");
        harness.press("esc");
        let screen = harness.screen();
        let row = screen.lines().position(|line| line.contains("Board")).unwrap();
        let line = screen.lines().nth(row).unwrap();
        let column = line.chars().take_while(|c| *c != 'B').count();
        harness.click(u16::try_from(column).unwrap(), u16::try_from(row).unwrap());
        harness.wait_for("failed, by reason");
    }
}

#[test]
fn names_of_saved_views_use_the_free_width() {
    let client = core(runs());
    for name in ["production failures", "waiting for finance", "releases of this week", "older than an hour"]
    {
        client.runs.views.lock().unwrap().push(skills_api::SavedView {
            name: name.to_owned(),
            r#where: format!("title:{}*", name.replace(' ', "-")),
            by: None,
        });
    }
    let mut harness = opened(&client, 100, 30);
    harness.press("] ] ]").wait_for("state:failed");
    has(&harness, &["production f", "waiting for f", "releases of t", "older than a", "Board"]);
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
    harness.wait_until("all are sent", |_| commands(&client).len() >= 99);
    let resumed =
        commands(&client).iter().filter(|command| matches!(command, RunCommand::Resume { .. })).count();
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
    has(&harness, &["expires in", "no deadline", "failed, by reason", "2 to approve"]);
    insta::assert_snapshot!("runs-board-120x36", harness.screen());
    harness
        .press("G D")
        .wait_until("it drains", |_| client.runs.workers.lock().unwrap()[0].state == WorkerState::Draining);
    harness.wait_for("draining");
    harness.press("g enter").wait_for("Checkpoints");
    has(&harness, &["Promote 5.4.0 to eu-west-1"]);
}

#[test]
fn the_counts_of_the_board_add_up_at_every_width() {
    let mut all = runs();
    all.push(run(7, RunState::Canceled, "Deploy 5.4.0 to us-east-1", "us-east-1"));
    all.push(run(8, RunState::WaitingForSignal, "Close the books", "eu-west-1"));
    all.push(run(9, RunState::Pending, "Deploy 5.4.1 to eu-west-1", "eu-west-1"));
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let client = core(all.clone());
        let mut harness = opened(&client, width, height);
        harness.press("b").wait_for("failed, by reason");
        let screen = harness.screen();
        let row = screen.lines().find(|line| line.contains("2 to approve")).unwrap();
        let counts = row.split("oldest approval").next().unwrap().split_whitespace();
        let sum: usize = counts.filter_map(|word| word.parse::<usize>().ok()).sum();
        assert_eq!(sum, all.len(), "{row}");
        assert_eq!(row.contains("1 canceled"), width >= 120, "{row}");
    }
}

fn waiting_runs(number: u32) -> Vec<RunDetail> {
    let one = |number: u32| {
        let mut run = run(5, RunState::WaitingForHuman, &format!("Promote {number:02}"), "eu-west-1");
        run.run.id.0 = format!("0198a1b2-5000-7000-8000-{number:012}");
        run.run.expires_ms = Some(NOW_MS + i64::from(number + 1) * 3_600_000);
        run
    };
    (0..number).map(one).collect()
}

#[test]
fn the_board_scrolls_with_its_cursor() {
    let client = core(waiting_runs(24));
    let mut harness = opened(&client, 80, 24);
    harness.press("b").wait_for("Promote 00");
    has(&harness, &["of 24"]);
    assert!(!harness.screen().contains("Promote 20"), "{}", harness.screen());
    for _ in 0..20 {
        harness.press("down");
    }
    let screen = harness.screen();
    let row = screen.lines().find(|line| line.contains("Promote 20"));
    assert!(row.is_some_and(|row| row.contains('▌')), "the cursor is on a drawn row\n{screen}");
    assert!(!screen.contains("Promote 00"), "{screen}");
}

#[test]
fn a_reason_of_failures_opens_its_runs() {
    let client = core(runs().into_iter().filter(|run| run.run.state == RunState::Failed).collect());
    let mut harness = opened(&client, 120, 36);
    harness.press("b").wait_for("failed, by reason");
    has(&harness, &["open runs"]);
    harness.press("down enter").wait_for("state:failed error:");
    let screen = harness.screen();
    assert!(!screen.contains("failed, by reason"), "{screen}");
    assert!(screen.contains("Check 5.4.0") != screen.contains("Deploy 5.4.0"), "one reason\n{screen}");
}

#[test]
fn a_board_of_several_days_has_dates() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("b").wait_for("8 h");
    let month = skills_tui::widgets::relative_time::moment(NOW_MS).split(' ').nth(1).unwrap().to_owned();
    assert!(!harness.screen().contains(&month), "{}", harness.screen());
    harness.press("- -").wait_for("72 h");
    assert!(harness.screen().matches(&month).count() > 2, "{}", harness.screen());
}

#[test]
fn marks_do_not_apply_on_the_board() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("] *").wait_for("2 marked");
    harness.press("b").wait_for("failed, by reason");
    harness.press("x");
    assert!(!harness.screen().contains("Cancel 2 runs"), "{}", harness.screen());
}

#[test]
fn keys_on_the_board_apply_to_its_cursor() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("b").wait_for("failed, by reason");
    // Two runs wait; below them is the first reason of failures.
    harness.press("down down").wait_for("open runs");
    let dialogs = ["this run", "Your decision", "Launch"];
    for key in ["a", "d", "r", "s", "x", "p", "f", "H", "v", "t", "y"] {
        harness.press(key).wait_for("no run under the cursor");
        assert!(
            dialogs.iter().all(|dialog| !harness.screen().contains(dialog)),
            "{key}\n{}",
            harness.screen()
        );
    }
    for key in ["c", "=", "o", "V", "space", "*", "shift-down", "tab"] {
        harness.press(key).wait_for("not available on the board");
    }
    harness.press("up x").wait_for("Cancel this run?");
    has(&harness, &["Delete 41 stale branches"]);
    harness.press("esc r").wait_for("waiting for approval; press a");
}

#[test]
fn the_board_opens_from_the_details() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("enter b").wait_for("failed, by reason");
}

#[test]
fn every_reason_of_failures_is_drawn_or_counted() {
    let reasons = 7_u32;
    let client = core(
        (0..reasons)
            .map(|number| {
                let mut run = run(1, RunState::Failed, &format!("Deploy {number}"), "eu-west-1");
                run.run.id.0 = format!("0198a1b2-6000-7000-8000-{number:012}");
                run.run.error = Some(json!({"code": "runtime_error", "message": format!("reason {number}")}));
                run
            })
            .collect(),
    );
    let mut harness = opened(&client, 120, 40);
    harness.press("b").wait_for("failed, by reason");
    for number in 0..reasons {
        has(&harness, &[&format!("reason {number}")]);
    }
    harness.resize(120, 12);
    has(&harness, &["more reasons, "]);
}

fn outage(since_s: i64, seen_s: i64) -> AppEvent {
    let error = Error::new(Code::StoreUnavailable, "the run store is unavailable");
    let outage = Outage::new(error, Some(NOW_MS + seen_s * 1_000), NOW_MS + since_s * 1_000);
    AppEvent::All(Message::Run(RunResponse::NotFollowing(outage)))
}

#[test]
fn an_outage_of_the_store_is_shown_with_its_times() {
    use skills_tui::widgets::relative_time::time_of_day;

    let (since, seen) = (time_of_day(NOW_MS - 2_000), time_of_day(NOW_MS - 5_000));
    let long = format!("store unreachable since {since}, last data {seen}");
    let short = format!("store unreachable, last data {seen}");
    for (width, height, text) in [(120, 36, &long), (80, 24, &short)] {
        let client = core(runs());
        let mut harness = opened(&client, width, height);
        has(&harness, &["5 Runs ◆2 "]);
        assert!(!harness.screen().contains("unreachable"), "{}", harness.screen());
        harness.deliver(outage(-2, -5)).wait_for(text);
        has(&harness, &["5 Runs ◆2?"]);
        assert!(harness.screen().lines().next().unwrap().contains("store"), "{}", harness.screen());
        harness.press("] ] ]").wait_for(&long);
        harness.press("b").wait_for("failed, by reason");
        has(&harness, &[&format!("store unreachable since {since}, last data "), " as of "]);
        harness.deliver(AppEvent::All(Message::Run(RunResponse::Following)));
        harness.wait_until("the store is back", |screen| !screen.contains("unreachable"));
        has(&harness, &["5 Runs ◆2 "]);
    }
}

#[test]
fn deleted_runs_leave_the_list_when_their_deletion_is_noticed() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    has(&harness, &["6 total", "Deploy 5.3.9 to staging"]);
    client.runs.book().runs.retain(|run| run.run.state == RunState::WaitingForHuman);
    harness.deliver(AppEvent::All(Message::Run(RunResponse::Deleted))).wait_for("2 total");
    harness.wait_until("its row is gone", |screen| !screen.contains("Deploy 5.3.9 to staging"));
}

#[test]
fn a_full_store_does_not_outdate_what_is_read() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    let reason = Some(json!({ "cause": "disk_full" }));
    let error = Error { reason, ..Error::new(Code::StoreUnavailable, "the disk is full") };
    let response = RunResponse::NotFollowing(Outage::new(error, None, NOW_MS));
    harness.deliver(AppEvent::All(Message::Run(response))).wait_for("store unavailable since ");
    assert!(!harness.screen().contains("◆2?"), "{}", harness.screen());
}

#[test]
fn the_board_states_that_it_is_not_filtered() {
    let client = core(runs());
    let mut harness = opened(&client, 80, 24);
    harness.press("b").wait_for("failed, by reason");
    assert!(!harness.screen().contains("not filtered"), "{}", harness.screen());
    harness.press("esc ] ] ]").wait_for("state:failed");
    harness.press("b").wait_for("all runs, not filtered");
}

#[test]
fn runs_that_the_filter_excludes_are_not_decided_together() {
    let named = |number: u32, region: &str| {
        let mut run = run(number, RunState::WaitingForHuman, &format!("Promote {number}"), region);
        run.sheet = Some(decision_preview(&run.run));
        run
    };
    let runs = vec![named(1, "eu"), named(2, "eu"), named(3, "us")];
    let client = core(runs);
    let mut harness = opened(&client, 120, 40);
    harness.press("a").wait_for("3 runs are waiting for");
    harness.press("esc / ").type_text("input.region:eu").press("enter");
    harness.press("a").wait_for("2 runs are waiting for");
    has(&harness, &["and match the filter"]);
    harness.press("esc b").wait_for("not filtered");
    harness.press("a").wait_for("3 runs are waiting for");
}

#[test]
fn runs_with_the_same_title_do_not_read_the_same() {
    let note = |number: u32, state: RunState, end: &str| {
        let mut run = run(number, state, "pay-note: amount: 77", "");
        let text = format!("Dear supplier, the invoice that you sent last week {end}");
        run.run.inputs = json!({ "amount": 77, "text": text });
        run
    };
    let client = core(vec![
        note(1, RunState::WaitingForHuman, "is late"),
        note(2, RunState::WaitingForHuman, "was paid"),
        note(3, RunState::Failed, "has no date"),
    ]);
    let mut harness = opened(&client, 80, 24);
    has(&harness, &["is late", "was paid", "no date"]);
    harness.press("]").wait_for("state:waiting");
    has(&harness, &["is late", "was paid"]);
    harness.press("b").wait_for("Board");
    has(&harness, &["late", "paid", "no date"]);
}

#[test]
fn waiting_runs_are_listed_by_deadline() {
    let mut late = run(1, RunState::WaitingForHuman, "Deploy 1 to eu", "eu");
    let mut old = run(2, RunState::WaitingForHuman, "Deploy 2 to eu", "eu");
    let mut soon = run(3, RunState::WaitingForHuman, "Deploy 3 to eu", "eu");
    (late.run.expires_ms, old.run.expires_ms) = (Some(NOW_MS + 3_600_000), None);
    (soon.run.expires_ms, soon.run.since_ms) = (Some(NOW_MS + 60_000), NOW_MS);
    let client = core(vec![late, old, soon]);
    let mut harness = opened(&client, 120, 36);
    let order = |screen: &str| {
        let at = |title: &str| screen.find(title).unwrap();
        let places = ["Deploy 3 to eu", "Deploy 1 to eu", "Deploy 2 to eu"].map(at);
        assert!(places.is_sorted(), "{screen}");
    };
    assert!(harness.screen().contains("deadline first"), "{}", harness.screen());
    order(&harness.screen());
    harness.press("]").wait_for("state:waiting");
    order(&harness.screen());
}

#[test]
fn the_number_of_further_rows_covers_no_row() {
    let runs = (1..40).map(|number| {
        let mut run = run(number, RunState::Failed, "", "eu");
        run.run.options.title = Some(format!("Deploy {number} to eu"));
        run
    });
    let client = core(runs.collect());
    let mut harness = opened(&client, 80, 24);
    harness.press("] ] ]").wait_for("state:failed");
    let screen = harness.screen();
    let line = screen.lines().find(|line| line.contains(" more ")).unwrap();
    assert!(!line.contains("Deploy"), "{screen}");
}

fn worker(number: u32, state: WorkerState) -> WorkerView {
    WorkerView {
        worker: format!("build-{number}/1/4711/9"),
        name: format!("process 4711 on build-{number}"),
        version: None,
        state,
        slots: Some(4),
        runs: Vec::new(),
        started_ms: None,
        seen_ms: None,
    }
}

#[test]
fn lost_workers_have_no_slots_and_are_not_drained() {
    let client = core(runs());
    client.runs.workers.lock().unwrap().extend([
        worker(1, WorkerState::Draining),
        worker(2, WorkerState::Live),
        worker(3, WorkerState::Lost),
    ]);
    let mut harness = opened(&client, 120, 40);
    harness.press("b").wait_for("build-3");
    has(&harness, &["0 of 8 slots"]);
    harness.press("G D");
    has(&harness, &["the worker is lost"]);
    assert!(client.runs.workers.lock().unwrap()[2].state == WorkerState::Lost);
    harness.press("up up");
    has(&harness, &["D undrain"]);
}

#[test]
fn the_deadline_is_shown_in_full_and_only_for_waits() {
    use skills_config::RunColumn::{Deadline, Since, State, Title};
    let mut all = runs();
    all[4].run.expires_ms = Some(NOW_MS + 23 * 3_600_000);
    let client = core(all);
    let columns = vec![State, Title, Deadline, Since];
    let settings = skills_config::RunSettings { columns, ..skills_config::RunSettings::default() };
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(Runs::of(settings))];
    let mut harness = Harness::new(Arc::clone(&client) as _, panes, &sample_settings(), 120, 36).unwrap();
    harness.wait_for(" total ");
    harness.press("/").type_text("state:failed").press("enter");
    assert!(!harness.screen().contains("no deadline"), "{}", harness.screen());
    harness.press("/ ctrl-u").type_text("state:waiting").press("enter");
    has(&harness, &["expires in 23 h", "no deadline"]);
}

#[test]
fn a_view_counts_runs_that_are_not_loaded() {
    let mut all = Vec::new();
    for number in 0..300_u32 {
        let state = if number < 60 { RunState::Failed } else { RunState::Completed };
        let mut run = run(1, state, &format!("Deploy {number}"), "eu-west-1");
        run.run.id.0 = format!("0198a1b2-1000-7000-8000-{number:012}");
        run.run.created_ms += i64::from(number);
        all.push(run);
    }
    let client = core(all);
    client.runs.views.lock().unwrap().push(skills_api::SavedView {
        name: "Broken".to_owned(),
        r#where: "state:failed skill:deploy*".to_owned(),
        by: None,
    });
    let mut harness = opened(&client, 120, 36);
    harness.wait_for("Broken 60");
}

#[test]
fn a_partly_approved_run_keeps_its_deadline() {
    let mut all = runs();
    let Some(Gate::Human { approvals, .. }) = &mut all[4].run.gate else { panic!("it waits for a person") };
    (approvals.need, approvals.by) = (2, vec!["kim".to_owned()]);
    let client = core(all);
    let mut harness = opened(&client, 120, 36);
    has(&harness, &["5 m left 1/2"]);
    harness.press("b").wait_for("5 m left, 1 of 2");
}

/// A run that waits for the second of two approvals, escalated and assigned.
fn reassigned(number: u32) -> RunDetail {
    let mut run = run(number, RunState::WaitingForHuman, "Promote 5.5.0 to eu-west-1", "eu-west-1");
    if let Some(Gate::Human { approvals, .. }) = &mut run.run.gate {
        (approvals.need, approvals.by) = (2, vec!["ana".to_owned()]);
    }
    run.run.options.escalated_ms = Some(run.run.since_ms);
    run.run.options.escalated_to = vec!["lead".to_owned()];
    run.run.options.assigned = Some(skills_store::Assignment {
        to: "lena".to_owned(),
        by: "kim".to_owned(),
        note: Some("look at the registry first".to_owned()),
        at_ms: NOW_MS,
    });
    run
}

#[test]
fn approvals_escalation_and_assignee_are_in_every_view() {
    let client = core([runs(), vec![reassigned(7)]].concat());
    let mut harness = opened(&client, 80, 24);
    has(&harness, &["Promote 5.5.0 to eu-we… 1/2 !"]);
    harness.resize(160, 40);
    has(&harness, &["Promote 5.5.0 to eu-west-1", "1 of 2 escalated for lena"]);
    harness.press("]").wait_for("state:waiting_for_human");
    has(&harness, &["assigned", "lena", "status", "approved, 1 of 2, escalated to lead", "expires in 5 m"]);
    harness.press("b").wait_for("failed, by reason");
    has(&harness, &["1 of 2, escalated to le"]);
    harness.resize(200, 60);
    has(&harness, &["1 of 2, escalated to lead, for lena"]);
    let mut alone = opened(&core(vec![reassigned(7)]), 140, 40);
    alone.wait_for("Checkpoints");
    has(&alone, &["! escalated to lead", "assigned to lena by kim: look at the registry first"]);
}

#[test]
fn titles_identify_runs_in_a_small_window() {
    let client = core(runs());
    let harness = opened(&client, 80, 24);
    for title in ["Promote 5.4.0 to e", "Delete 41 stale branches", "Deploy 5.4.0 to us-east-1"] {
        has(&harness, &[title]);
    }
    insta::assert_snapshot!("runs-titled-80x24", harness.screen());
}

#[test]
fn a_wide_board_shows_id_starter_and_step() {
    let client = core([runs(), vec![reassigned(7)]].concat());
    let mut harness = opened(&client, 200, 60);
    harness.press("b").wait_for("failed, by reason");
    insta::assert_snapshot!("runs-board-200x60", harness.screen());
}

#[test]
fn all_ended_runs_of_the_period_are_counted_on_the_board() {
    let ended = |number: u32| {
        let mut run = run(4, RunState::Completed, &format!("Deploy {number}"), "staging");
        run.run.id.0 = format!("0198a1b2-7000-7000-8000-{number:012}");
        run
    };
    let client = core((0..80).map(ended).collect());
    let mut harness = opened(&client, 120, 40);
    harness.press("b").wait_for("of 80");
}

#[test]
fn views_that_another_workbench_saved_become_tabs() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    client.runs.views.lock().unwrap().push(skills_api::SavedView {
        name: "Staging".to_owned(),
        r#where: "input.region:staging".to_owned(),
        by: Some("ana".to_owned()),
    });
    harness.pass(std::time::Duration::from_secs(61)).wait_for("Staging");
}
