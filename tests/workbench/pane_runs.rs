//! The pane Runs, driven by keys, over a core with runs in memory.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use skills_api::{Code, ContractView, Error, RunCommand, RunDetail};
use skills_model::{ApprovalReason, Choice, Gate, RunState, Verdict};
use skills_store::{LeaseHolder, RunFilter, RunId, RunLease, RunPage, RunRecord, WorkerId};
use skills_tui::Settings;
use skills_tui::app::{AppCommand, AppEvent};
use skills_tui::harness::Harness;
use skills_tui::pane::{Effect, Message, Pane, PickerKind};
use skills_tui::panes::runs::Runs;
use skills_tui::run_requests::{RunRequest, RunResponse};
use support::catalogs::catalog;
use support::note_pane::NotePane;
use support::run_pane::{commands, core, has, id, opened, opened_as};
use support::run_samples::{INVOICE, NOW_MS, contract_view, decision_preview, detail, every_state, settings};

#[test]
fn waiting_runs_are_first_at_every_size() {
    let client = core(every_state());
    for (width, height) in [(120, 36), (80, 24)] {
        let harness = opened(&client, width, height);
        insta::assert_snapshot!(format!("runs-{width}x{height}"), harness.screen());
    }
    let mut harness = opened_as(&client, &settings(), (60, 20));
    harness.wait_for(" total ");
    insta::assert_snapshot!("runs-60x20", harness.screen());
    harness.press("enter").wait_for("Log");
    insta::assert_snapshot!("runs-detail-60x20", harness.screen());
}

#[test]
fn without_color_every_state_has_a_symbol() {
    let client = core(every_state());
    let settings = Settings {
        depth: Some(skills_tui::theme::Depth::None),
        theme: Some("mono".to_owned()),
        glyphs: skills_config::GlyphSet::Ascii,
        ..settings()
    };
    let mut harness = opened_as(&client, &settings, (100, 30));
    harness.wait_for("Checkpoints");
    let screen = harness.screen();
    assert!(screen.is_ascii() || !screen.contains(['◆', '◇', '✓', '✗', '▆', '│', '─']), "{screen}");
    insta::assert_snapshot!("runs-ascii-100x30", screen);
}

#[test]
fn empty_run_list_shows_how_to_start() {
    let client = core(Vec::new());
    let mut harness = opened_as(&client, &settings(), (80, 24));
    harness.wait_for("no runs yet: press n to launch one");
    insta::assert_snapshot!("runs-empty-80x24", harness.screen());
}

#[test]
fn decision_shows_its_effect_and_is_sent_once() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("Your decision");
    insta::assert_snapshot!("runs-approve-120x36", harness.screen());
    harness.press("a a a");
    assert_eq!(commands(&client), [], "a held key approves nothing");
    harness.press("A A A").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
    let [RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, .. }] =
        &commands(&client)[..]
    else {
        panic!("one order: {:?}", commands(&client))
    };
    let digest = "9f".repeat(32);
    assert_eq!(
        (*verdict, step.as_deref(), inputs_digest.as_deref()),
        (Verdict::Approve, Some("book"), Some(&digest[..]))
    );
    assert_eq!((approver.as_deref(), notes, choice), (Some("ana"), &None, &None));
    has(&harness, &["approved"]);
}

#[test]
fn enter_in_a_new_dialog_decides_nothing() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("Your decision").press("enter");
    assert!(!harness.screen().contains("Your decision"));
    harness.press("d").wait_for("Your decision").press("esc");
    assert_eq!(commands(&client), []);
}

#[test]
fn denial_has_person_and_reason() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    harness.press("d").wait_for("Your decision").press("tab tab tab ctrl-u").type_text("Kim A D");
    harness.press("enter").type_text("not this month").press("esc");
    has(&harness, &["Kim A D", "not this month"]);
    assert_eq!(commands(&client), [], "capital letters in a field are text");
    harness.press("D").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
    let [RunCommand::Decide { verdict, approver, notes, .. }] = &commands(&client)[..] else {
        panic!("one order")
    };
    assert_eq!(*verdict, Verdict::Deny);
    assert_eq!((approver.as_deref(), notes.as_deref()), (Some("Kim A D"), Some("not this month")));
}

#[test]
fn dialog_shows_decision_of_another_person() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("Your decision");
    client.runs.work(&id(1), "gate.approved", json!({ "approver": "ben" }), |run| {
        (run.run.state, run.run.gate, run.sheet) = (RunState::Pending, None, None);
    });
    harness.wait_for("it is now pending");
    has(&harness, &["Close"]);
    harness.press("A");
    assert_eq!(commands(&client), [], "there is nothing left to decide");
}

#[test]
fn letters_typed_in_a_decision_become_lasting_notes() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    let gone = |screen: &str| !screen.contains("Your decision");
    harness.press("a").wait_for("Your decision").type_text("just this once, A");
    assert_eq!(commands(&client), [], "a capital letter in a text decides nothing");
    has(&harness, &["just this once, A", "Press Esc to leave the field"]);
    harness.press("backspace backspace backspace esc esc").wait_until("the dialog is gone", gone);
    harness.press("q").wait_for("The notes for the decision on invoice-intake").press("esc");
    assert!(!harness.take_outside().contains(&AppCommand::Quit));
    harness.press("a").wait_for("just this once").press("A").wait_until("the dialog is gone", gone);
    let [RunCommand::Decide { notes, .. }] = &commands(&client)[..] else { panic!("one order") };
    assert_eq!(notes.as_deref(), Some("just this once"));
    harness.press("q");
    assert!(harness.take_outside().contains(&AppCommand::Quit), "what was sent is not lost");
}

#[test]
fn late_command_is_no_longer_offered() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("x").wait_for("Cancel this run?");
    client.runs.work(&id(3), "run.completed", json!({}), |run| run.run.state = RunState::Completed);
    harness.wait_for("The run is completed");
    insta::assert_snapshot!("runs-too-late-120x36", harness.screen());
    harness.press("ctrl-s tab enter").wait_until("the dialog is gone", |s| !s.contains("Cancel this run?"));
    assert_eq!(commands(&client), []);
}

#[test]
fn a_resume_is_not_sent_after_another_one() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Failed)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("r").wait_for("Resume this run");
    client.runs.work(&id(3), "run.failed", json!({}), |run| run.run.inputs = json!({ "iban": "DE99" }));
    harness.wait_for("The run has changed since");
    harness.press("ctrl-s esc").wait_until("the dialog is gone", |s| !s.contains("Resume this run"));
    assert_eq!(commands(&client), []);
}

#[test]
fn a_resume_shows_inputs_that_lists_leave_out() {
    let mut failed = detail(&id(3), "invoice-intake", RunState::Failed);
    let (file, note) = ("invoices/2026-09.pdf", "x".repeat(4_200));
    failed.run.inputs = json!({ "file": file, "currency": "USD", "note": note });
    let client = core(vec![failed, detail(&id(4), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("down").wait_for("Checkpoints");
    // The list is read again, without the inputs that were loaded.
    client.runs.work(&id(4), "run.completed", json!({}), |run| run.run.state = RunState::Completed);
    harness.wait_until("the other run has ended", |screen| !screen.contains("in progress"));
    assert!(!harness.screen().contains(file), "{}", harness.screen());
    harness.press("r").wait_for("Resume this run");
    has(&harness, &[file]);
    harness.press("ctrl-s").wait_until("the dialog is gone", |s| !s.contains("Resume this run"));
    let all = commands(&client);
    assert!(matches!(all[..], [RunCommand::Resume { inputs: None, .. }]), "{all:?}");
}

#[test]
fn a_signal_is_not_sent_to_another_wait() {
    let other_step = |run: &mut RunRecord| {
        run.gate = Some(Gate::Signal { step: "pay".to_owned(), name: "books-closed".to_owned() });
    };
    let same_step = |run: &mut RunRecord| run.since_ms += 1;
    for change in [&other_step as &dyn Fn(&mut RunRecord), &same_step] {
        let client = core(vec![detail(&id(2), "books-close", RunState::WaitingForSignal)]);
        let mut harness = opened(&client, 120, 36);
        harness.press("s").wait_for("Send a signal");
        client.runs.work(&id(2), "run.waiting", json!({}), |run| change(&mut run.run));
        harness.wait_for("The run has changed since");
        harness.press("ctrl-s esc").wait_until("the dialog is gone", |s| !s.contains("Send a signal"));
        assert_eq!(commands(&client), []);
    }
}

#[test]
fn unknown_outcome_offers_other_choices() {
    let mut run = detail(&id(1), "vendor-sync", RunState::WaitingForHuman);
    let digest = "ab".repeat(32);
    run.run.gate = Some(Gate::human("book", digest, ApprovalReason::UnknownOutcome));
    run.sheet = Some(decision_preview(&run.run));
    let client = core(vec![run]);
    let mut harness = opened(&client, 120, 36);
    has(&harness, &["unknown"]);
    harness.press("a").wait_for("Outcome unknown");
    insta::assert_snapshot!("runs-unknown-120x36", harness.screen());
    harness.press("A");
    assert_eq!(commands(&client), [], "there is no plain yes to it");
    harness.press("S").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
    assert!(matches!(commands(&client)[..], [RunCommand::Decide { choice: Some(Choice::Skip), .. }]));
}

#[test]
fn runs_that_wait_for_the_same_can_be_decided_together() {
    let runs =
        (1..4).map(|number| detail(&id(number), "invoice-intake", RunState::WaitingForHuman)).collect();
    let client = core(runs);
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("3 runs are waiting for ledger.entry.create");
    insta::assert_snapshot!("runs-together-120x36", harness.screen());
    harness.press("space A").wait_for("None is selected");
    assert_eq!(commands(&client), [], "nothing marked, nothing decided");
    harness.press("space down space").wait_for("Approve 2");
    harness.press("A").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
    let mut ordered: Vec<String> =
        client.runs.commands.lock().unwrap().iter().map(|(run, _)| run.clone()).collect();
    ordered.dedup();
    assert_eq!(ordered.len(), 2, "{ordered:?}");
}

#[test]
fn arrows_move_in_the_list_at_once() {
    let runs =
        (1..4).map(|number| detail(&id(number), "invoice-intake", RunState::WaitingForHuman)).collect();
    let client = core(runs);
    let mut harness = opened(&client, 120, 36);
    harness.press("a").wait_for("3 runs are waiting for ledger.entry.create");
    harness.press("down down space").wait_for("Approve 2");
    harness.press("A").wait_until("the dialog is gone", |screen| !screen.contains("Your decision"));
    let mut decided: Vec<String> =
        client.runs.commands.lock().unwrap().iter().map(|(run, _)| run.clone()).collect();
    decided.sort();
    assert_eq!(decided, [id(1), id(3)]);
}

#[test]
fn runs_that_are_decided_together_are_listed_by_title() {
    let mut runs: Vec<RunDetail> =
        (1..4).map(|number| detail(&id(number), "send-invoices", RunState::WaitingForHuman)).collect();
    let left = [240_000, 7_200_000, 90_000];
    for ((run, count), left) in runs.iter_mut().zip([3, 104, 208]).zip(left) {
        run.run.options.title = Some(format!("Send {count} invoices to ana"));
        run.run.expires_ms = Some(NOW_MS + left);
        run.sheet = Some(decision_preview(&run.run));
    }
    let client = core(runs);
    let mut harness = opened(&client, 120, 40);
    harness.press("a").wait_for("3 runs are waiting for ledger.entry.create");
    let screen = harness.screen();
    for title in ["Send 3 invoices", "Send 104 invoices", "Send 208 invoices"] {
        let row = screen.lines().find(|line| line.contains(title) && line.contains("left"));
        assert!(row.is_some(), "{title}: {screen}");
    }
    harness.press("down");
    insta::assert_snapshot!("runs-together-titled-120x40", harness.screen());
}

#[test]
fn the_dialog_of_a_command_names_the_run_by_its_title() {
    let mut run = detail(&id(1), "send-invoices", RunState::WaitingForHuman);
    run.run.options.title = Some("Send 3 invoices to ana".to_owned());
    let client = core(vec![run]);
    let mut harness = opened(&client, 120, 36);
    let dialogs = [
        ("x", "Cancel this run?", "esc"),
        // The first Esc leaves the field.
        ("H", "Assign this run", "esc esc"),
        ("a", "Your decision", "esc"),
    ];
    for (key, dialog, close) in dialogs {
        harness.press(key).wait_for(dialog);
        let screen = harness.screen();
        let mut inside = screen.lines().filter(|line| line.contains('┃'));
        assert!(inside.any(|line| line.contains("Send 3 invoices to ana")), "{screen}");
        if key == "x" {
            has(&harness, &["Keep running  Esc", "Cancel run  ^S"]);
        }
        harness.press(close).wait_until("it is closed", |screen| !screen.contains(dialog));
    }
}

#[test]
fn selected_run_stays_visible_in_a_small_window() {
    let runs =
        (1..22).map(|number| detail(&id(number), "invoice-intake", RunState::WaitingForHuman)).collect();
    let client = core(runs);
    let mut harness = opened(&client, 80, 24);
    harness.press("a").wait_for("1–3 of 21 loaded runs waiting for ledger.entry.create");
    has(&harness, &["inputs ", "sha256 "]);
    for _ in 0..24 {
        harness.press("down");
        has(&harness, &["▌○ "]);
    }
    has(&harness, &["19–21 of 21 loaded", "inputs ", "binding "]);
    // A smaller window does not show all of it: pages move the text.
    harness.resize(80, 16);
    for _ in 0..10 {
        harness.press("pagedown");
        has(&harness, &["▌○ "]);
    }
    assert!(!harness.screen().contains("of 21 loaded"), "{}", harness.screen());
    harness.press("space").wait_for("Approve 2");
    for _ in 0..10 {
        harness.press("pageup");
        has(&harness, &["▌● "]);
    }
}

#[test]
fn a_checkpoint_opens_as_a_tree_and_is_compared_with_another() {
    let client = core(vec![detail(&id(6), "invoice-intake", RunState::Completed)]);
    let mut harness = opened(&client, 120, 36);
    harness.press("enter c").wait_for("vars");
    insta::assert_snapshot!("runs-state-120x36", harness.screen());
    harness.press("[ [ [ =").wait_for("Compare c1 with").press("enter");
    harness.wait_for("c0 → c1");
    has(&harness, &["vars/rows"]);
    assert!(!harness.screen().contains("⏎ open"), "nothing can be opened: {}", harness.screen());
    harness.press("esc").wait_for("Checkpoints");
    // From the list it is the newest.
    harness.press("esc").press("c").wait_for("vars");
}

#[test]
fn run_is_compared_with_its_source_by_step() {
    let one = detail(&id(6), "invoice-intake", RunState::Completed);
    let mut other = detail(&id(7), "invoice-intake", RunState::Failed);
    other.run.source = Some((RunId(id(6)), 2));
    other.steps[1].result = Some(json!({ "rows": [{ "item": "ink", "price": 12.5 }], "ok": true }));
    let client = core(vec![one, other]);
    let mut harness = opened(&client, 120, 36);
    harness.press("/").type_text("invoice sum").press("esc").wait_for("the service answered 502");
    harness.press("=").wait_for("compared").wait_for("differ");
    insta::assert_snapshot!("runs-compare-120x36", harness.screen());
}

#[test]
fn a_run_is_launched_with_a_form_of_its_contract() {
    let client = core(vec![detail(&id(6), "invoice-intake", RunState::Completed)]);
    client.runs.add_contract(contract_view("invoice-intake", INVOICE));
    let mut harness = opened(&client, 120, 36);
    let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
    harness.deliver(AppEvent::All(picked)).wait_for("Launch a run");
    insta::assert_snapshot!("runs-launch-120x36", harness.screen());
    harness.press("ctrl-s");
    assert!(client.runs.launches.lock().unwrap().is_empty(), "a required input is missing");
    harness.type_text("invoices/a.pdf").press("ctrl-s").wait_for("launched");
    let launches = client.runs.launches.lock().unwrap();
    assert_eq!(launches[0].inputs["file"], json!("invoices/a.pdf"));
    assert_eq!(launches.len(), 1);
}

#[test]
fn a_run_without_a_worker_is_marked() {
    let mut waits = detail(&id(3), "site-report", RunState::Pending);
    waits.run.since_ms = NOW_MS - 60_000;
    let mut harness = opened(&core(vec![waits]), 120, 36);
    harness.wait_for("not yet claimed by a worker");
    let mut lost = detail(&id(3), "site-report", RunState::Running);
    let worker = Some(WorkerId("build-2/1-ab/4711/99/0".to_owned()));
    lost.run.lease =
        Some(RunLease { worker, until_ms: i64::MAX, until_boot: None, holder: LeaseHolder::Dead });
    opened(&core(vec![lost]), 120, 36).wait_for("no worker owns it: process 4711 on build-2 has");
}

#[test]
fn events_before_the_first_step_have_no_step_in_the_log() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    client.runs.work(&id(3), "run.escalated", json!({ "to": ["bo"] }), |detail| {
        detail.run.step = Some("~policy".to_owned());
    });
    harness.wait_for("escalated to bo");
    assert!(!harness.screen().contains("before the first step  escalated"), "{}", harness.screen());
}

#[test]
fn output_of_a_step_is_shown_while_it_runs() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 120, 36);
    client.runs.work(
        &id(3),
        "step.log",
        json!({ "stream": "stdout", "text": "page 7 of 12\u{1b}[2J" }),
        |_| {},
    );
    harness.wait_for("page 7 of 12");
    assert!(!harness.screen().contains('\u{1b}'));
}

#[test]
fn further_lines_of_an_output_use_the_width_of_a_narrow_screen() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let mut harness = opened(&client, 80, 24);
    let text = "plan\nchecking server 6 of 12";
    client.runs.work(&id(3), "step.log", json!({ "stream": "stdout", "text": text }), |_| {});
    harness.wait_for("checking server 6 of 12");
}

#[test]
fn the_cursor_stays_on_its_run_while_the_list_changes() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    harness.press("down").wait_for("site-report ─");
    for number in 10..13 {
        let mut run = detail(
            &format!("0198a1b0-0000-7000-8000-0000000000{number}"),
            "deploy-check",
            RunState::WaitingForHuman,
        );
        run.run.since_ms = NOW_MS - 1_000;
        client.runs.add(run);
    }
    harness.wait_for("◆4 to approve");
    has(&harness, &["site-report ─"]);
    harness.press("y");
    assert!(matches!(&harness.take_outside()[..], [AppCommand::Copy(copied, _)] if *copied == id(3)));
}

#[test]
fn a_hint_is_about_the_panel_without_the_key() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    harness.press("tab n").wait_for("n is not available in this panel");
}

#[test]
fn launch_dialog_states_nothing_about_an_invalid_contract() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    let opened_for = |steps: &str| {
        let source = format!("id: invoice-intake\nversion: 1.0.0\nsteps:{steps}\n");
        client.runs.add_contract(contract_view("invoice-intake", &source));
        let mut harness = opened(&client, 100, 30);
        let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
        harness.deliver(AppEvent::All(picked)).wait_for("Launch a run");
        harness
    };
    let valid = opened_for("\n  - {id: count, uses: text.count}");
    has(&valid, &["1.0.0 · 1 step", "This skill has no inputs."]);
    let invalid = opened_for(" []").screen();
    assert!(!invalid.contains("no inputs") && !invalid.contains("0 steps"), "{invalid}");
}

#[test]
fn open_launch_dialog_follows_trust_and_edits() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    let ready = contract_view("invoice-intake", INVOICE);
    let why = "the root is not trusted: skills trust /skills";
    let mut blocked = ContractView { blocked: Some(why.to_owned()), ..ready.clone() };
    blocked.steps[0].acts = true;
    client.runs.add_contract(blocked);
    let mut harness = opened(&client, 100, 30);
    let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
    harness.deliver(AppEvent::All(picked)).wait_for("Launch a run");
    has(&harness, &["the root is not trusted", "unapproved", "step extract changes external state"]);
    assert!(!harness.screen().contains("^S launch"), "what cannot be done is not offered");
    let catalog_event = || AppEvent::All(Message::Catalog(Arc::new(catalog())));
    client.runs.add_contract(ready.clone());
    harness
        .deliver(catalog_event())
        .wait_until("the root is trusted", |screen| !screen.contains("is not trusted"));
    harness.type_text("invoices/7.pdf");
    let other = INVOICE.replace("limit:", "ceiling:");
    client
        .runs
        .add_contract(ContractView { digest: "c1".repeat(32), ..contract_view("invoice-intake", &other) });
    harness.deliver(catalog_event()).wait_for("was edited in the meantime").wait_for("ceiling");
    has(&harness, &["invoices/7.pdf"]);
}

#[test]
fn launch_dialog_names_what_acts_without_an_approval() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    let mut view = contract_view("invoice-intake", INVOICE);
    for (uses, place) in [("capability text.count, wire.send", "before extract"), ("skill pay", "in extract")]
    {
        let step = &mut view.steps[0];
        uses.clone_into(&mut step.uses);
        step.gates = ["wire.send: no approval or gate", "text.count: always requires approval"]
            .map(str::to_owned)
            .to_vec();
        (step.acts, step.unapproved) = (true, Some("wire.send".to_owned()));
        client.runs.add_contract(view.clone());
        let mut harness = opened(&client, 120, 36);
        let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
        harness.deliver(AppEvent::All(picked)).wait_for("Launch a run");
        let approval = format!("{place}: wire.send");
        has(&harness, &[approval.as_str(), "step extract (wire.send) changes external state"]);
    }
}

#[test]
fn launch_dialog_shows_all_capabilities_without_an_approval() {
    let client = core(vec![detail(&id(7), "flaky-upload", RunState::Failed)]);
    let mut view = contract_view("invoice-intake", INVOICE);
    let names: Vec<String> = (0..100).map(|n| format!("wire.send{n:02}")).collect();
    (view.steps[0].acts, view.steps[0].unapproved) = (true, Some(names.join(", ")));
    client.runs.add_contract(view);
    let mut harness = opened(&client, 80, 24);
    let picked = Message::Picked(PickerKind::Launchable, "invoice-intake".to_owned());
    harness.deliver(AppEvent::All(picked)).wait_for("PgDn shows all");
    assert!(!harness.screen().contains("wire.send40"));
    harness.press("pagedown").wait_for("wire.send40").press("pagedown").wait_for("wire.send99");
    harness.press("esc").wait_for("PgDn shows all");
}

#[test]
fn a_new_wait_is_announced_on_every_pane() {
    let client = core(vec![detail(&id(3), "site-report", RunState::Running)]);
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(NotePane::of(&["a note"])), Box::new(Runs::new())];
    let mut harness = Harness::new(Arc::clone(&client) as _, panes, &settings(), 100, 24).unwrap();
    // A run that waits when the workbench opens is not notified: it is known before it starts to wait.
    harness.press("5").wait_for("site-report");
    harness.press("1").wait_for("a note");
    client.runs.work(&id(3), "gate.waiting", json!({}), |run| {
        *run = RunDetail {
            events: run.events.clone(),
            ..detail(&id(3), "site-report", RunState::WaitingForHuman)
        };
    });
    harness.wait_for("5 Runs ◆1").wait_for("site-report 003 is waiting for approval at book");
    harness.press("5").wait_for("waiting for approval");
}

#[test]
fn runs_waiting_at_the_start_are_not_announced() {
    let all: Vec<RunRecord> = every_state().into_iter().map(|detail| detail.run).collect();
    let notifies = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Awaited(_)));
    for ended_first in [false, true] {
        let mut pane = Runs::new();
        let effects = pane.message(&Message::Run(RunResponse::Following));
        let mut pages: Vec<(u64, RunFilter)> = effects
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Run(RunRequest::Page { filter, generation }) => Some((generation, *filter)),
                _ => None,
            })
            .collect();
        pages.sort_by_key(|(_, filter)| filter.states.contains(&RunState::Completed) != ended_first);
        assert_eq!(pages.len(), 2, "the open runs and the ended ones");
        for (generation, filter) in pages {
            let runs = all.iter().filter(|run| filter.states.contains(&run.state)).cloned().collect();
            let page = RunPage { runs, next: None, counts: BTreeMap::new() };
            let effects = pane.message(&Message::Run(RunResponse::Page(generation, Ok(Arc::new(page)))));
            assert!(!notifies(&effects), "ended first: {ended_first}");
        }
        let mut begins = all.iter().find(|run| run.state == RunState::Running).unwrap().clone();
        begins.state = RunState::WaitingForHuman;
        let id = begins.id.clone();
        let seen = RunDetail { run: begins, ..detail(&id.0, "site-report", RunState::WaitingForHuman) };
        let effects = pane.message(&Message::Run(RunResponse::Detail(id, Ok(Arc::new(seen)))));
        assert!(notifies(&effects), "a run that begins to wait later is notified");
    }
}

#[test]
fn ten_thousand_runs_load_by_page() {
    let runs = (0..10_000).map(|number| {
        let mut run =
            detail(&format!("0198a1b0-0000-7000-8000-{number:012}"), "bulk-job", RunState::Completed);
        run.run.created_ms = NOW_MS - 1_000_000 - number * 1_000;
        run.run.since_ms = run.run.created_ms + 500;
        (run.events, run.checkpoints) = (Vec::new(), run.checkpoints.split_off(3));
        run
    });
    let client = core(runs.collect());
    let mut harness = opened_as(&client, &settings(), (120, 36));
    harness.wait_for("10,000 total");
    harness.press("G G G").wait_for("bulk-job");
    has(&harness, &["10,000 total"]);
}

#[test]
fn ages_follow_the_clock_without_idle_animation() {
    let client = core(vec![detail(&id(1), "invoice-intake", RunState::WaitingForHuman)]);
    let mut harness = opened(&client, 100, 30);
    has(&harness, &["1 m"]);
    let now = std::time::Instant::now();
    let next = harness.app().next_change(now);
    assert!(next.is_some_and(|next| next > now + std::time::Duration::from_secs(30)), "{next:?}");
    harness.pass(std::time::Duration::from_secs(61));
    has(&harness, &["2 m"]);
}

#[test]
fn clicks_select_press_buttons_and_the_wheel_scrolls() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    let row = harness.screen().lines().position(|line| line.contains("flaky-upload")).unwrap();
    harness.click(10, row as u16).wait_for("flaky-upload ─");
    harness.press("g").wait_for("a approve");
    let screen = harness.screen();
    let (row, line) =
        screen.lines().enumerate().find(|(_, line)| line.contains("a approve  d deny")).unwrap();
    let column = line.chars().position(|c| c == '│').unwrap()
        + line
            .chars()
            .skip_while(|c| *c != '│')
            .collect::<String>()
            .chars()
            .collect::<Vec<_>>()
            .windows(9)
            .position(|part| part.iter().collect::<String>() == "a approve")
            .unwrap();
    harness.click(column as u16, row as u16).wait_for("Your decision");
    harness.press("esc").wheel(90, 10, 2);
}

#[test]
fn an_error_of_the_core_keeps_the_list() {
    let client = core(every_state());
    let mut harness = opened(&client, 120, 36);
    *client.runs.refusal.lock().unwrap() = Some(Error::new(Code::InternalError, "the disk is full"));
    harness.press("n");
    has(&harness, &["no skill has a contract", "invoice-intake"]);
}
