//! Filtering the list of runs, marking runs and sending one command to all of them.

use crate::support;

use std::time::Duration;

use serde_json::json;
use skills_api::{Code, Error, RunDetail, RunOrder};
use skills_model::{RunState, Verdict};
use skills_tui::harness::Harness;
use support::run_pane::{core, has, id, opened, orders};
use support::run_samples::{detail, sheet};

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

fn resumed(orders: &[RunOrder]) -> usize {
    orders.iter().filter(|order| matches!(order, RunOrder::Resume { checkpoint: None, .. })).count()
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
        matches!(order, RunOrder::Decide { verdict: Verdict::Approve, step: Some(step), inputs_digest: Some(_), .. } if step == "book")
    });
    assert_eq!(approved.count(), 2, "{all:?}");
}

#[test]
fn runs_that_cannot_take_the_command_are_left_out() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("* x");
    has(&harness, &["Cancel 2 runs", "left out: it is"]);
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

#[test]
fn what_is_the_same_in_all_is_stated_once() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r");
    let screen = harness.screen();
    let inside: Vec<&str> = screen.lines().filter(|line| line.contains('┃')).collect();
    let count = |text: &str| inside.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("the service answered 502"), 1, "{screen}");
    assert_eq!(count("invoices/2026-07.pdf"), 1, "{screen}");
    assert!(["eu-west", "us-east", "eu-north"].iter().all(|region| count(region) == 1), "{screen}");
}

#[test]
fn hidden_rows_are_counted() {
    let runs = (1..60).map(|number| run(number, RunState::Failed, &format!("region-{number}"))).collect();
    let client = core(runs);
    let mut harness = opened(&client, 120, 30);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("Resume 59 runs");
    let screen = harness.screen();
    let shown = screen.lines().filter(|line| line.contains("[x]")).count();
    has(&harness, &[&format!("and {} more", 59 - shown)]);
}

#[test]
fn a_bulk_approval_shows_what_each_run_would_execute() {
    let mut runs: Vec<RunDetail> =
        (1..3).map(|number| detail(&id(number), "send-invoices", RunState::WaitingForHuman)).collect();
    for (run, count) in runs.iter_mut().zip([3, 104]) {
        run.run.options.title = Some(format!("Send {count} invoices to ana"));
        let mut decision = sheet(&run.run);
        decision.inputs = json!({ "to": "ana", "count": count });
        decision.headline = format!("Sends {count} invoices");
        run.sheet = Some(decision);
    }
    let client = core(runs);
    let mut harness = opened(&client, 120, 40);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("Sends 3 invoices");
    has(&harness, &["Send 104 invoices to ana", "ledger.entry.create", "it cannot be undone", &"9f".repeat(32)]);
    harness.press("down").wait_for("Sends 104 invoices");
    insta::assert_snapshot!("runs-bulk-approve-120x40", harness.screen());
    harness.press("n").type_text("invoices checked").press("esc A").wait_for("Send 2 now");
    harness.press("S").wait_for("2 done");
    let all = orders(&client);
    let noted = |order: &RunOrder| {
        matches!(order, RunOrder::Decide { notes: Some(notes), verdict: Verdict::Approve, .. } if notes == "invoices checked")
    };
    assert!(all.len() == 2 && all.iter().all(noted), "{all:?}");
}

#[test]
fn the_undo_key_withdraws_what_was_not_sent() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r enter").wait_for("Sending in 3 s");
    harness.press("u").pass(Duration::from_secs(5));
    has(&harness, &["Nothing is sent yet"]);
    assert!(orders(&client).is_empty());
}

#[test]
fn runs_of_a_changed_skill_are_resumed_only_on_request() {
    let mut all = runs();
    all[1].contract_unchanged = Some(false);
    let client = core(all);
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("skill changed since the launch");
    has(&harness, &["Resume 2 runs", "Include 1 run despite the change"]);
    harness.press("W");
    has(&harness, &["Resume 3 runs", "with the contract of the launch"]);
    harness.press("ctrl-s S").wait_for("3 done");
    let sent = orders(&client);
    let despite = sent.iter().filter(|order| matches!(order, RunOrder::Resume { despite_change: true, .. }));
    assert_eq!((sent.len(), despite.count()), (3, 1), "{sent:?}");
}

#[test]
fn a_refused_resume_offers_the_contract_of_the_launch() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    let message = "the skill invoice-intake changed since the launch: 1.2.0 then, 1.3.0 now. Resume with the \
                   contract of the launch (--despite-change), or launch the skill again";
    *client.runs.refusal.lock().unwrap() = Some(Error::new(Code::SkillChanged, message));
    harness.press("* r enter S").wait_for("3 refused");
    has(&harness, &["or launch the skill again", "Resume 3 runs despite the change"]);
    *client.runs.refusal.lock().unwrap() = None;
    harness.press("W S").wait_for("3 done");
    let sent = orders(&client);
    assert!(sent.iter().all(|order| matches!(order, RunOrder::Resume { despite_change: true, .. })), "{sent:?}");
}

#[test]
fn a_signal_is_sent_to_all_marked_runs() {
    let client = core((1..4).map(|number| run(number, RunState::WaitingForSignal, "eu-west")).collect());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:waiting_for_signal");
    harness.press("* s").wait_for("Signal 3 runs");
    has(&harness, &["books-closed"]);
    harness.press("ctrl-s S").wait_for("3 done");
    let sent = orders(&client);
    let signals = sent.iter().filter(|order| matches!(order, RunOrder::Signal { name, .. } if name == "books-closed"));
    assert_eq!(signals.count(), 3, "{sent:?}");
}

#[test]
fn help_opens_over_a_dialog_and_returns_to_it() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("Resume 3 runs");
    for key in ["?", "f1"] {
        harness.press(key).wait_for("Keys in this dialog");
        has(&harness, &["send now", "undo"]);
        harness.press("esc").wait_until("help is closed", |screen| !screen.contains("Keys in this dialog"));
        has(&harness, &["Resume 3 runs"]);
    }
    harness.press("esc").press("esc");
    filter(&mut harness, "state:waiting");
    harness.press("a").wait_for("Your decision").press("?").wait_for("Keys in this dialog");
    harness.press("esc").wait_for("Approve  A");
    assert!(orders(&client).is_empty());
}
