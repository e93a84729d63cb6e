//! What an operator sees in Runs while a core elsewhere cannot be reached: what is on its way, and what is not sent.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use skills_api::{Code, ConnectionState, Error, Event, Sending, UnderWay};
use skills_model::{Gate, RunState, Verdict};
use skills_store::{RunId, RunPage};
use skills_tui::action::Action;
use skills_tui::app::AppEvent;
use skills_tui::harness::Harness;
use skills_tui::pane::{Effect, Message, Pane as _, PaneId, PickerKind};
use skills_tui::panes::runs::Runs;
use skills_tui::run_requests::{RunAsk, RunTold};
use support::run_pane::{core, has, id, opened, orders};
use support::run_samples::{INVOICE, contract_view, detail};

fn tell(harness: &mut Harness, event: Event) {
    harness.tell(AppEvent::All(Message::Event(event)));
}

fn lost() -> Event {
    let now = Instant::now();
    let (why, next_try) = ("connection refused".to_owned(), now + Duration::from_secs(9));
    Event::Connection(ConnectionState::Lost { since: now, why, next_try })
}

/// An approval of what a run of the samples waits with.
fn yes(run: &str, gate: &Gate, sending: Sending) -> Event {
    let Gate::Human { step, inputs_digest, .. } = gate else { panic!("no gate for a person") };
    Event::Order(Box::new(UnderWay {
        run: run.to_owned(),
        step: step.clone(),
        inputs_digest: inputs_digest.clone(),
        verdict: Verdict::Approve,
        choice: None,
        approver: Some("bo".to_owned()),
        since: Instant::now(),
        sending,
    }))
}

#[test]
fn a_decision_that_waits_for_the_connection_shows_everywhere_and_is_taken_back_by_a_key() {
    let waiting = detail(&id(1), "invoice-intake", RunState::WaitingForHuman);
    let gate = waiting.run.gate.clone().unwrap();
    let client = core(vec![waiting]);
    for (width, height) in [(120, 40), (80, 24)] {
        let mut harness = opened(&client, width, height);
        tell(&mut harness, yes(&id(1), &gate, Sending::Waiting));
        harness.wait_for("unsent");
        has(&harness, &["approved by bo", "B withdraw"]);
        insta::assert_snapshot!(format!("runs-away-{width}x{height}"), harness.screen());
        harness.press("d").wait_for("decision pending");
        // The sheet, opened again, says the same, and decides nothing else meanwhile.
        harness.press("a").wait_for("Your decision").wait_for("Withdraw");
        insta::assert_snapshot!(format!("runs-away-sheet-{width}x{height}"), harness.screen());
        let footer = harness.screen().lines().last().unwrap().to_owned();
        assert!(footer.contains("B withdraw") && !footer.contains("deny"), "{footer}");
        harness.press("A D");
        assert_eq!(orders(&client), []);
        harness.press("B").wait_until("it is taken back", |_| {
            client.runs.taken_back.lock().unwrap().last().is_some_and(|run| *run == id(1))
        });
        tell(&mut harness, yes(&id(1), &gate, Sending::Over));
        harness.tell(AppEvent::Answer(
            PaneId::Runs,
            Message::Run(RunTold::Ordered(1, RunId(id(1)), Err(UnderWay::taken_back()))),
        ));
        harness.wait_for("A approve").press("esc").wait_for("needs you");
        // Once sent, it cannot be taken back, and every view shows this.
        tell(&mut harness, yes(&id(1), &gate, Sending::Sent));
        harness.wait_for("approved by bo just now: sent;");
        let screen = harness.screen();
        let words = screen.split_whitespace().collect::<Vec<_>>();
        assert!(!words.windows(2).any(|pair| pair == ["B", "withdraw"]), "{screen}");
        harness.press("a").wait_for("Your decision");
        has(&harness, &["waiting for the response"]);
        assert!(!harness.screen().contains("Withdraw"));
        client.runs.taken_back.lock().unwrap().clear();
    }
}

#[test]
fn a_launch_without_a_connection_says_so_at_once_and_keeps_what_was_typed() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    client.runs.add_contract(contract_view("invoice-intake", INVOICE));
    let mut harness = opened(&client, 80, 24);
    tell(&mut harness, lost());
    harness.press("n").wait_for("no connection: cannot launch");
    assert!(!harness.screen().contains("Launch a run"));
    tell(&mut harness, Event::Connection(ConnectionState::Connected));
    let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
    harness.tell(AppEvent::All(picked)).wait_for("Launch a run");
    harness.type_text("invoices/7.pdf");
    tell(&mut harness, lost());
    harness.wait_for("launch when it is restored");
    harness.press("ctrl-s").wait_for("Not sent: no connection");
    assert!(client.runs.launches.lock().unwrap().is_empty());
    has(&harness, &["invoices/7.pdf"]);
    tell(&mut harness, Event::Connection(ConnectionState::Connected));
    harness.wait_until("the warning goes", |screen| {
        !screen.contains("There is no connection") && !screen.contains("Not sent:")
    });
    harness.press("ctrl-s").wait_until("the sheet is gone", |screen| !screen.contains("Launch a run"));
    let launched = client.runs.launches.lock().unwrap().clone();
    assert_eq!(launched.len(), 1);
    assert!(launched[0].inputs.values().any(|value| value == "invoices/7.pdf"), "{launched:?}");
}

#[test]
fn a_run_that_cannot_be_read_now_is_not_said_to_wait_for_nobody() {
    let mut pane = Runs::new();
    let asked = pane.message(&Message::Run(RunTold::Following));
    let Some(Effect::Run(RunAsk::Page { generation, .. })) = asked.first() else { panic!("{asked:?}") };
    let run = detail(&id(1), "invoice-intake", RunState::WaitingForHuman).run;
    let counts = BTreeMap::from([(RunState::WaitingForHuman, 1)]);
    let page = RunPage { runs: vec![run], next: None, counts };
    pane.message(&Message::Run(RunTold::Page(*generation, Ok(Arc::new(page)))));
    pane.act(Action::Approve);
    let error = Error::new(Code::UpstreamFailure, "gate.example cannot be reached");
    let told = pane.message(&Message::Run(RunTold::Detail(RunId(id(1)), Err(error))));
    let toast = "cannot load the pending decision: gate.example cannot be reached";
    assert!(told.contains(&Effect::Toast(toast.to_owned())), "{told:?}");
}
