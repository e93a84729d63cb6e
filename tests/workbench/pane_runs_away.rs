//! The pane Runs while a remote core cannot be reached: commands are refused, and dialogs keep their
//! contents.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use skills_api::{Code, Connection, ConnectionState, Error, Event, RunCommand, RunDetail};
use skills_model::{RunState, Verdict};
use skills_store::{RunId, RunPage};
use skills_tui::action::Action;
use skills_tui::app::AppEvent;
use skills_tui::harness::Harness;
use skills_tui::pane::{Effect, Message, Pane as _, PickerKind};
use skills_tui::panes::runs::Runs;
use skills_tui::run_requests::{Outage, RunRequest, RunResponse};
use support::fake_client::FakeClient;
use support::run_pane::{commands, has, id, opened};
use support::run_samples::{INVOICE, NOW_MS, contract_view, detail};

fn deliver(harness: &mut Harness, event: Event) {
    harness.deliver(AppEvent::All(Message::Event(event)));
}

fn lost() -> Event {
    let now = Instant::now();
    // An attempt that is due is shown without a countdown, which would depend on the speed of the test.
    let next_try = now.checked_sub(Duration::from_secs(60)).unwrap();
    let why = "connection refused".to_owned();
    Event::Connection(ConnectionState::Lost { since: now, why, next_try })
}

/// A remote core that holds runs.
fn remote(runs: Vec<RunDetail>) -> Arc<FakeClient> {
    let mut client = FakeClient::answering(|_| panic!("nothing is ranked here"));
    let address = "gate.example:8080".to_owned();
    client.connection = Connection::Remote { address, state: ConnectionState::Connected };
    runs.into_iter().for_each(|run| client.runs.add(run));
    Arc::new(client)
}

/// Loses the connection: from now on the core refuses commands.
fn lose(client: &FakeClient, harness: &mut Harness) {
    let message = "cannot connect to gate.example:8080: connection refused (the request was not sent; repeat \
        it when connected)";
    let error = Error::service_unreachable(Code::UpstreamFailure, "gate.example:8080", message);
    *client.runs.refusal.lock().unwrap() = Some(error);
    deliver(harness, lost());
}

fn restore(client: &FakeClient, harness: &mut Harness) {
    *client.runs.refusal.lock().unwrap() = None;
    deliver(harness, Event::Connection(ConnectionState::Connected));
}

fn footer(harness: &Harness) -> String {
    harness.screen().lines().last().unwrap_or_default().to_owned()
}

/// Each key with the state of the run that accepts it and the title of its dialog.
const COMMANDS: [(&str, RunState, &str); 8] = [
    ("a", RunState::WaitingForHuman, "Your decision"),
    ("d", RunState::WaitingForHuman, "Your decision"),
    ("r", RunState::Failed, "Resume this run"),
    ("s", RunState::WaitingForSignal, "Send a signal"),
    ("x", RunState::WaitingForHuman, "Cancel this run?"),
    ("p", RunState::Failed, "Replay from a checkpoint"),
    ("f", RunState::Failed, "Fork from a checkpoint"),
    ("H", RunState::WaitingForHuman, "Assign this run"),
];

#[test]
fn no_command_key_works_without_a_connection() {
    for (key, state, title) in COMMANDS {
        let client = remote(vec![detail(&id(1), "invoice-intake", state)]);
        let mut harness = opened(&client, 120, 40);
        lose(&client, &mut harness);
        harness.press(key).wait_for("commands are refused until it is restored");
        assert!(!harness.screen().contains(title), "{key} opens no dialog:\n{}", harness.screen());
        restore(&client, &mut harness);
        assert_eq!(commands(&client), [], "{key}");
        harness.press(key).wait_for(title);
    }
}

#[test]
fn the_screen_offers_no_command_without_a_connection() {
    for (width, height) in [(120, 40), (80, 24)] {
        let client = remote(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
        let mut harness = opened(&client, width, height);
        assert!(footer(&harness).contains("a approve"));
        lose(&client, &mut harness);
        harness.wait_for("commands are refused");
        insta::assert_snapshot!(format!("runs-away-{width}x{height}"), harness.screen());
        assert!(!harness.screen().contains("a approve"));
        restore(&client, &mut harness);
        // A note may cover the footer of a small window for a while.
        harness.pass(Duration::from_secs(30)).wait_for("a approve");
        assert!(footer(&harness).contains("a approve"));
    }
}

#[test]
fn an_open_decision_is_refused_and_keeps_its_notes() {
    for (width, height) in [(120, 40), (80, 24)] {
        for key in ["A", "D"] {
            let client = remote(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
            let mut harness = opened(&client, width, height);
            harness.press("a").wait_for("Your decision").press("n").type_text("otes").press("esc");
            lose(&client, &mut harness);
            harness.press(key).wait_for("Not sent: cannot connect to gate.example:8080");
            has(&harness, &["notes", "commands are refused"]);
            if key == "A" {
                insta::assert_snapshot!(format!("runs-away-sheet-{width}x{height}"), harness.screen());
            }
            restore(&client, &mut harness);
            assert_eq!(commands(&client), [], "nothing is sent when the connection is restored");
            harness.press(key).wait_until("it is closed", |screen| !screen.contains("Your decision"));
            let [RunCommand::Decide { verdict, notes, .. }] = &commands(&client)[..] else {
                panic!("one order: {:?}", commands(&client))
            };
            assert_eq!((*verdict == Verdict::Approve, notes.as_deref()), (key == "A", Some("notes")));
        }
    }
}

#[test]
fn other_open_dialogs_are_refused_and_stay() {
    for (key, state, title) in &COMMANDS[2..] {
        let client = remote(vec![detail(&id(1), "invoice-intake", *state)]);
        let mut harness = opened(&client, 120, 40);
        harness.press(key).wait_for(title);
        if *key == "H" {
            harness.type_text("bo");
        }
        lose(&client, &mut harness);
        harness.press("ctrl-s").wait_for("not sent");
        has(&harness, &[title]);
        restore(&client, &mut harness);
        assert_eq!(commands(&client), [], "{key}");
        harness.press("ctrl-s").wait_until("it is closed", |screen| !screen.contains(title));
        assert_eq!(commands(&client).len(), 1, "{key}");
    }
}

#[test]
fn marked_runs_stay_chosen_when_the_connection_is_lost() {
    let runs = (1..=3).map(|number| detail(&id(number), "flaky-upload", RunState::Failed)).collect();
    let client = remote(runs);
    let mut harness = opened(&client, 120, 40);
    harness.press("* r").wait_for("Resume 3 runs");
    lose(&client, &mut harness);
    harness.press("enter").pass(Duration::from_secs(4));
    harness.wait_for("Not sent: cannot connect to gate.example:8080");
    restore(&client, &mut harness);
    harness.pass(Duration::from_secs(4));
    assert_eq!(commands(&client), []);
    harness.press("enter").pass(Duration::from_secs(4));
    harness.wait_for("3 done");
    assert_eq!(commands(&client).len(), 3);
}

#[test]
fn launch_without_a_connection_fails_and_keeps_typed_text() {
    let client = remote(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    client.runs.add_contract(contract_view("invoice-intake", INVOICE));
    let mut harness = opened(&client, 80, 24);
    lose(&client, &mut harness);
    harness.press("n").wait_for("commands are refused until it is");
    assert!(!harness.screen().contains("Launch a run"));
    restore(&client, &mut harness);
    let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
    harness.deliver(AppEvent::All(picked)).wait_for("Launch a run");
    harness.type_text("invoices/7.pdf");
    lose(&client, &mut harness);
    harness.press("ctrl-s").wait_for("not sent");
    has(&harness, &["invoices/7.pdf"]);
    restore(&client, &mut harness);
    assert_eq!(client.runs.launches.lock().unwrap().len(), 0);
    harness.press("ctrl-s").wait_until("the dialog is gone", |screen| !screen.contains("Launch a run"));
    let launched = client.runs.launches.lock().unwrap().clone();
    assert_eq!(launched.len(), 1);
    assert!(launched[0].inputs.values().any(|value| value == "invoices/7.pdf"), "{launched:?}");
}

#[test]
fn unreadable_run_is_not_reported_as_not_waiting() {
    let mut pane = Runs::new();
    let effects = pane.message(&Message::Run(RunResponse::Following));
    let Some(Effect::Run(RunRequest::Page { generation, .. })) = effects.first() else {
        panic!("{effects:?}")
    };
    let run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman).run;
    let counts = BTreeMap::from([(RunState::WaitingForHuman, 1)]);
    let page = RunPage { runs: vec![run], next: None, counts };
    pane.message(&Message::Run(RunResponse::Page(*generation, Ok(Arc::new(page)))));
    pane.act(Action::Approve);
    let error = Error::new(Code::UpstreamFailure, "gate.example cannot be reached");
    let responses = pane.message(&Message::Run(RunResponse::Detail(RunId(id(1)), Err(error))));
    let toast = "cannot load the pending decision: gate.example cannot be reached";
    assert!(responses.contains(&Effect::Toast(toast.to_owned())), "{responses:?}");
}

#[test]
fn an_outage_of_the_store_is_shown_again_after_the_connection_was_lost() {
    let client = remote(vec![detail(&id(1), "invoice-intake", RunState::Failed)]);
    let mut harness = opened(&client, 120, 36);
    let text = "store unreachable since ";
    let error = Error::new(Code::StoreUnavailable, "the run store is unavailable");
    let outage = RunResponse::NotFollowing(Outage::new(error, None, NOW_MS));
    harness.deliver(AppEvent::All(Message::Run(outage))).wait_for(text);
    lose(&client, &mut harness);
    restore(&client, &mut harness);
    harness.wait_until("reconnected", |screen| screen.contains("reconnected"));
    has(&harness, &[text, "store unreachable"]);
    harness.deliver(AppEvent::All(Message::Run(RunResponse::Following)));
    harness.wait_until("the store is back", |screen| !screen.contains("unreachable"));
}

#[test]
fn an_unreachable_service_is_shown_with_its_times() {
    let client = remote(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let mut harness = opened(&client, 120, 36);
    lose(&client, &mut harness);
    harness.wait_for("service unreachable since ");
    has(&harness, &["last data ", "5 Runs ◆1?"]);
    harness.press("b").wait_for("service unreachable since ");
    restore(&client, &mut harness);
    harness.wait_until("it is back", |screen| !screen.contains("unreachable") && !screen.contains("◆1?"));
}
