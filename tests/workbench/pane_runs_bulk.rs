//! Filtering the list of runs, marking runs and sending one command to all of them.

use crate::support;

use std::time::Duration;

use serde_json::json;
use skills_api::{Code, Error, RunCommand, RunDetail};
use skills_model::{RunState, Verdict};
use skills_tui::harness::Harness;
use support::run_pane::{commands, core, has, id, opened};
use support::run_samples::{decision_preview, detail};

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

/// A run with inputs that lists leave out.
fn long(number: u32, state: RunState, region: &str) -> RunDetail {
    let mut run = run(number, state, region);
    run.run.inputs["note"] = json!("x".repeat(4_200));
    run
}

/// Runs that wait for approval, of which the last but one has long inputs. It is not among those that the dialog for
/// marked runs loads at first.
fn waiting_with_a_long_one() -> Vec<RunDetail> {
    let one = |number: u32| {
        let new = if number == 25 { long } else { run };
        let mut one = new(1, RunState::WaitingForHuman, &format!("region-{number}"));
        one.run.id.0 = format!("0198a1b2-1000-7000-8000-{number:012}");
        one.sheet = Some(decision_preview(&one.run));
        one
    };
    (0..27).map(one).collect()
}

fn resumed(commands: &[RunCommand]) -> usize {
    commands.iter().filter(|command| matches!(command, RunCommand::Resume { checkpoint: None, .. })).count()
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
    has(&harness, &["Sending in 2 s", "Cancel sending"]);
    assert!(commands(&client).is_empty(), "nothing is sent before the delay is over");
    harness.press("esc").pass(Duration::from_secs(5));
    has(&harness, &["Nothing is sent yet"]);
    assert!(commands(&client).is_empty(), "it was withdrawn");
    harness.press("down space").press("enter").pass(Duration::from_secs(4));
    harness.wait_for("1 done");
    assert_eq!(
        resumed(&commands(&client)),
        1,
        "the run that was left out got no command: {:?}",
        commands(&client)
    );
    harness.press("esc esc");
    assert!(!harness.screen().contains("marked"), "{}", harness.screen());
}

#[test]
fn short_values_are_aligned_and_labels_that_a_run_does_not_have_are_omitted() {
    let run = |number: u32, n: u32, error: &str| {
        let mut run = run(number, RunState::Failed, "eu-central-1");
        run.run.options.title = Some(format!("Deploy 5.1.{number} to eu-central-1"));
        run.run.inputs = json!({ "n": n, "version": format!("5.1.{number}") });
        run.run.error = Some(json!({ "code": "runtime_error", "message": error }));
        run
    };
    let mut runs = vec![run(1, 1, "disk is full"), run(2, 200, "no route"), run(3, 7, "no space")];
    runs[1].run.options.labels = [("env".to_owned(), "prod".to_owned())].into();
    let client = core(runs);
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("Resume 3 runs");
    let screen = harness.screen();
    has(&harness, &["n=1 ", "label.env=prod", "n=7 "]);
    assert!(!screen.contains("env= "), "{screen}");
    let places = ["disk is full", "no route", "no space"].map(|error| {
        let line = screen.lines().find(|line| line.contains("] Deploy") && line.contains(error)).unwrap();
        line[..line.find(error).unwrap()].chars().count()
    });
    assert!(places.iter().all(|place| *place == places[0]), "{screen}");
}

#[test]
fn a_decision_for_many_names_what_each_run_waits_for() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:waiting");
    harness.press("* a");
    has(&harness, &["Approve 2 runs", "region=eu-west", "region=us-east"]);
    harness.press("ctrl-s enter").pass(Duration::from_secs(5));
    assert!(commands(&client).is_empty(), "only A approves");
}

#[test]
fn only_shift_a_approves_many() {
    let client = core(runs());
    let mut harness = opened(&client, 100, 30);
    filter(&mut harness, "state:waiting");
    harness.press("* a A").pass(Duration::from_secs(4));
    harness.wait_for("2 done");
    let all = commands(&client);
    let approved = all.iter().filter(|command| {
        matches!(command, RunCommand::Decide { verdict: Verdict::Approve, step: Some(step), inputs_digest: Some(_), .. } if step == "book")
    });
    assert_eq!(approved.count(), 2, "{all:?}");
}

#[test]
fn an_approval_that_the_policy_rejects_is_excluded() {
    let mut all = runs();
    let why = "the policy allows approvals by ana only";
    all[4].sheet.as_mut().unwrap().not_approver = Some(why.to_owned());
    all[5].sheet.as_mut().unwrap().not_approver = Some(why.to_owned());
    let client = core(all);
    let mut harness = opened(&client, 120, 40);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("excluded: the policy allows approvals by ana only");
    harness.press("down").wait_until("no approval is offered", |screen| !screen.contains("Approve 1 run"));
    assert!(commands(&client).is_empty());
}

#[test]
fn runs_that_cannot_accept_the_command_are_excluded() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("* x");
    has(&harness, &["Cancel 2 runs", "excluded: "]);
}

#[test]
fn filter_is_completed_and_its_errors_are_explained() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    harness.press("/").type_text("sta").press("tab");
    harness.type_text("fai").press("tab");
    has(&harness, &["state:failed", "3 of 6"]);
    harness.type_text("age:soon");
    has(&harness, &["`age:soon` is not a duration"]);
    harness.press("ctrl-u").type_text("state:f");
    has(&harness, &["state:failed"]);
    assert!(!harness.screen().contains("unknown state"), "{}", harness.screen());
    harness.press("ctrl-u").type_text("error:th").press("tab");
    has(&harness, &["error:\"the service answered 502\""]);
    harness.press("ctrl-u").type_text("error:502").press("tab");
    has(&harness, &["error:\"the service answered 502\""]);
    harness.press("ctrl-u").type_text("input.region:eu").press("tab");
    has(&harness, &["input.region:eu-west"]);
    harness.press("ctrl-u").type_text("nothing-has-this");
    has(&harness, &["no runs match the filter"]);
    harness.press("esc esc");
    harness.press("space shift-down");
    has(&harness, &["marked"]);
}

#[test]
fn only_the_store_compares_inputs_that_lists_leave_out() {
    let waits = RunState::WaitingForHuman;
    let client = core(vec![run(1, waits, "eu-west"), run(2, waits, "eu-north"), long(3, waits, "us-east")]);
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:waiting -input.region:us*");
    harness.wait_for("2 of 3");
    harness.press("* a").wait_for("Approve 2 runs").press("esc esc");
    harness.press("/ ctrl-u").type_text("state:waiting -us-east").press("enter");
    harness.wait_for("2 of 3");
    harness.press("/ ctrl-u").type_text("state:waiting input.region:us*").press("enter");
    harness.wait_for("1 of 3");
    harness.press("* x").wait_for("Cancel 1 run");
}

#[test]
fn a_run_that_arrives_with_long_inputs_is_read_to_compare_it() {
    let waits = RunState::WaitingForHuman;
    let client = core(vec![run(1, waits, "eu-west"), long(2, waits, "us-east")]);
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:waiting -input.region:us*");
    harness.wait_for("1 of 2");
    client.runs.add(long(3, waits, "us-east"));
    client.runs.add(long(4, waits, "eu-north"));
    harness.wait_for("2 of 4");
}

#[test]
fn runs_whose_inputs_are_not_loaded_are_not_decided() {
    let client = core(waiting_with_a_long_one());
    let mut harness = opened(&client, 120, 70);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("Approve 24 runs");
    let reasons = ["excluded: its inputs are not loaded", "excluded: what it would execute is not loaded"];
    has(&harness, &["3 runs excluded", reasons[0], reasons[1]]);
    harness.press("A").pass(Duration::from_secs(4));
    harness.wait_for("24 done");
    let sent = client.runs.commands.lock().unwrap();
    let is_loaded = |run: &str| ["24", "25", "26"].iter().all(|number| !run.ends_with(number));
    assert!(sent.len() == 24 && sent.iter().all(|(run, _)| is_loaded(run)), "{sent:?}");
}

#[test]
fn the_cursor_loads_inputs_that_lists_leave_out() {
    let client = core(waiting_with_a_long_one());
    let mut harness = opened(&client, 120, 70);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("Approve 24 runs");
    // One that is too long for its row is included once its details were shown.
    harness.press("pagedown pagedown").wait_for("Approve 26 runs");
    harness.press("up pagedown pagedown pagedown pagedown").wait_for("Approve 27 runs");
    harness.press("esc").press("x").wait_for("Cancel 27 runs");
}

#[test]
fn rows_of_an_approval_show_the_inputs_of_their_calls() {
    let mut all = waiting_with_a_long_one();
    for (number, one) in all.iter_mut().enumerate() {
        let to = if number == 26 { "mallory" } else { "alice" };
        one.sheet.as_mut().unwrap().inputs = json!({ "amount": number, "to": to });
    }
    let client = core(all);
    let mut harness = opened(&client, 120, 70);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("Approve 24 runs");
    assert!(!harness.screen().contains("mallory"), "{}", harness.screen());
    harness.press("pagedown pagedown").wait_for("Approve 26 runs");
    harness.press("up pagedown pagedown pagedown pagedown").wait_for("Approve 27 runs");
    let screen = harness.screen();
    assert!(
        screen.lines().any(|line| line.contains("call: amount=26") && line.contains("mallory")),
        "{screen}"
    );
}

#[test]
fn the_call_of_an_excluded_run_is_not_that_of_all() {
    let mut all = runs();
    all.truncate(5);
    all.extend([run(6, RunState::WaitingForHuman, "eu-west"), run(7, RunState::WaitingForHuman, "eu-west")]);
    for (one, to) in all[4..].iter_mut().zip(["alice", "mallory", "mallory"]) {
        one.sheet = Some(decision_preview(&one.run));
        one.sheet.as_mut().unwrap().inputs = json!({ "to": to });
    }
    all[4].sheet.as_mut().unwrap().not_approver = Some("another person must approve".to_owned());
    let client = core(all);
    let mut harness = opened(&client, 120, 40);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("Approve 2 runs");
    let screen = harness.screen();
    let is_of_all = |line: &str| line.contains("all runs") && !line.contains("in all runs");
    assert!(screen.contains("excluded") && !screen.lines().any(is_of_all), "{screen}");
    harness.press("down").wait_until("the call of all is shown", |screen| screen.lines().any(is_of_all));
    has(&harness, &["mallory"]);
}

#[test]
fn inputs_of_the_run_under_the_cursor_are_complete() {
    let padded = |number: u32| {
        let mut one = run(number, RunState::Failed, "eu-west");
        one.run.options.title = Some(format!("Payment R-{number}: {}", "x".repeat(60)));
        let text = |name: &str| json!(format!("{name} {number} {}", "x".repeat(60)));
        one.run.inputs =
            json!({ "a": text("a"), "b": text("b"), "c": text("c"), "to": format!("mallory-{number}") });
        one
    };
    let client = core(vec![padded(1), padded(2)]);
    let mut harness = opened(&client, 120, 40);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("Resume 1 run ");
    has(&harness, &["[ ]", "review: "]);
    let shown = |harness: &Harness| {
        let screen = harness.screen();
        // The facets of the list are not part of the dialog.
        [1, 2].map(|number| screen.contains(&format!("to  mallory-{number}")))
    };
    let before = shown(&harness);
    assert!(before.contains(&true), "{}", harness.screen());
    harness.press("down").wait_for("Resume 2 runs");
    assert!(shown(&harness).contains(&true) && shown(&harness) != before, "{}", harness.screen());
}

#[test]
fn common_values_of_marked_runs_are_complete_or_scroll() {
    let equal = |number: u32| {
        let mut one = run(number, RunState::Failed, "eu-west");
        one.run.options.title = Some("Payment R-9".to_owned());
        one.run.options.labels = [("env".to_owned(), "prod".to_owned())].into();
        one.run.inputs = (0..30).map(|n| (format!("field{n:02}"), json!("mallory".repeat(4)))).collect();
        one
    };
    let client = core(vec![equal(1), equal(2)]);
    let mut harness = opened(&client, 120, 80);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("Resume 2 runs");
    has(&harness, &["Payment R-9", "env=prod", "field00=", "field29=", "contract"]);
    let client = core(vec![equal(1)]);
    let mut harness = opened(&client, 120, 20);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("Resume 1 run");
    has(&harness, &["this run", "Payment R-9", "field00=", "more lines below the list", "more below"]);
    assert!(!harness.screen().contains("contract  "), "{}", harness.screen());
    harness.press("ctrl-s");
    has(&harness, &["What the runs have in common was not shown completely: scroll to its end"]);
    harness.press(&"pagedown ".repeat(60));
    has(&harness, &["started by    ana"]);
    harness.press("ctrl-s").wait_for("Sending in");
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
    harness.wait_for("first 1,000 of 1,250 matches");
    harness.press("*").wait_for("1,250 marked");
    has(&harness, &["1,250 of 1,251"]);
    harness.press("r").wait_for("Resume 1,250 runs");
}

#[test]
fn facets_count_every_match_of_the_service() {
    let client = core(thousands());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    // 250 of them are not loaded.
    harness.wait_for("eu-west 1,200");
    has(&harness, &["us-east 50"]);
}

#[test]
fn sorting_loads_every_match_first() {
    let client = core(thousands());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.wait_for("first 1,000 of");
    harness.press("o").wait_for("Sort by").type_text("title").press("enter");
    harness.wait_for("1,250 of 1,251");
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
    assert!(commands(&client).is_empty());
    harness.press("/ ctrl-u").type_text("state:failed");
    has(&harness, &["3 of 6"]);
}

#[test]
fn values_common_to_all_are_stated_once() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r");
    let screen = harness.screen();
    let inside: Vec<&str> = screen.lines().filter(|line| line.contains('┃')).collect();
    let count = |text: &str| inside.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("the service answered 502"), 1, "{screen}");
    let regions = ["eu-west", "us-east", "eu-north"].map(|region| count(&format!("region={region}")));
    assert_eq!(regions, [1, 1, 1], "{screen}");
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
        let mut decision = decision_preview(&run.run);
        decision.inputs = json!({ "to": "ana", "count": count });
        decision.headline = format!("Sends {count} invoices");
        run.sheet = Some(decision);
    }
    let client = core(runs);
    let mut harness = opened(&client, 120, 40);
    filter(&mut harness, "state:waiting");
    harness.press("* a").wait_for("Sends 3 invoices");
    has(
        &harness,
        &["Send 104 invoices to ana", "ledger.entry.create", "it cannot be undone", &"9f".repeat(32)],
    );
    harness.press("down").wait_for("Sends 104 invoices");
    insta::assert_snapshot!("runs-bulk-approve-120x40", harness.screen());
    harness.press("n").type_text("invoices checked").press("esc A").wait_for("Send 2 now");
    harness.press("S").wait_for("2 done");
    let all = commands(&client);
    let noted = |command: &RunCommand| matches!(command, RunCommand::Decide { notes: Some(notes), verdict: Verdict::Approve, .. } if notes == "invoices checked");
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
    assert!(commands(&client).is_empty());
}

#[test]
fn marks_block_commands_for_one_run() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* p");
    has(&harness, &["this command needs a single run; 3 are marked"]);
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

#[test]
fn an_invalid_filter_keeps_the_field_and_marks_nothing() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failederror:503");
    has(&harness, &["not applied", "unknown state"]);
    harness.type_text("x");
    has(&harness, &["state:failederror:503x"]);
    harness.press("esc *");
    has(&harness, &["the filter is not applied: unknown state"]);
    assert!(!harness.screen().contains(" marked"), "{}", harness.screen());
    assert!(!harness.screen().contains("mark all 6"), "{}", harness.screen());
}

#[test]
fn a_further_term_is_typed_behind_the_filter() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    filter(&mut harness, "input.region:eu*");
    has(&harness, &["2 of 6", "state:failed input.region:eu*"]);
    harness.press("/ enter *");
    has(&harness, &["2 marked"]);
}

#[test]
fn runs_of_a_changed_skill_are_resumed_only_on_request() {
    let mut all = runs();
    all[1].contract_unchanged = Some(false);
    let client = core(all);
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    harness.press("* r").wait_for("skill changed since the launch");
    has(&harness, &["Resume 2 runs", "1 run excluded.", "Include 1 run of changed skills"]);
    has(&harness, &["use the contract of the launch"]);
    harness.press("W");
    has(&harness, &["Resume 3 runs", "with the contract of the launch", "W exclude changed skills"]);
    harness.press("ctrl-s S").wait_for("3 done");
    let sent = commands(&client);
    let despite =
        sent.iter().filter(|command| matches!(command, RunCommand::Resume { despite_change: true, .. }));
    assert_eq!((sent.len(), despite.count()), (3, 1), "{sent:?}");
}

#[test]
fn a_skipped_resume_offers_the_contract_of_the_launch() {
    let client = core(runs());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:failed");
    let message = "the skill invoice-intake changed since the launch: 1.2.0 then, 1.3.0 now. Resume with the \
                   contract of the launch, or launch the skill again";
    *client.runs.refusal.lock().unwrap() = Some(Error::new(Code::SkillChanged, message));
    harness.press("* r enter S").wait_for("3 skipped");
    has(&harness, &["or launch the skill again", "Resume 3 runs with the contract of the launch"]);
    *client.runs.refusal.lock().unwrap() = None;
    harness.press("W S").wait_for("3 done");
    let sent = commands(&client);
    assert!(
        sent.iter().all(|command| matches!(command, RunCommand::Resume { despite_change: true, .. })),
        "{sent:?}"
    );
}

#[test]
fn an_outage_is_a_failure_and_a_lack_of_rights_a_refusal() {
    for (code, outcome) in [
        (Code::StoreUnavailable, "3 failed"),
        (Code::Forbidden, "3 refused"),
        (Code::InvalidTransition, "3 skipped"),
    ] {
        let client = core(runs());
        let mut harness = opened(&client, 120, 36);
        filter(&mut harness, "state:failed");
        *client.runs.refusal.lock().unwrap() = Some(Error::new(code, "not now"));
        harness.press("* r enter S").wait_for(&format!("0 done, {outcome}"));
    }
}

#[test]
fn a_signal_is_sent_to_all_marked_runs() {
    let client = core((1..4).map(|number| run(number, RunState::WaitingForSignal, "eu-west")).collect());
    let mut harness = opened(&client, 120, 36);
    filter(&mut harness, "state:waiting_for_signal");
    harness.press("* s").wait_for("Signal 3 runs");
    has(&harness, &["books-closed"]);
    harness.press("ctrl-s S").wait_for("3 done");
    let sent = commands(&client);
    let signals = sent
        .iter()
        .filter(|command| matches!(command, RunCommand::Signal { name, .. } if name == "books-closed"));
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
        has(&harness, &["send now", "cancel sending"]);
        harness.press("esc").wait_until("help is closed", |screen| !screen.contains("Keys in this dialog"));
        has(&harness, &["Resume 3 runs"]);
    }
    harness.press("esc").press("esc");
    harness.press("/ ctrl-u");
    harness.type_text("state:waiting").press("enter");
    harness.press("a").wait_for("Your decision").press("?").wait_for("Keys in this dialog");
    harness.press("esc").wait_for("Approve  A");
    assert!(commands(&client).is_empty());
}
