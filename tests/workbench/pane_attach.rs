//! The pane Attach, driven by keys, over a core with runs.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use skills_api::{AttachCheck, AttachCheckResult, AttachPreview, AttachReason, Code, Error, TargetChoice};
use skills_config::GlyphSet;
use skills_registry::{Catalog, Entry};
use skills_skill::{AttachTarget, EffectMode, Invocation, Role, WithOrigin};
use skills_tui::Settings;
use skills_tui::app::{AppCommand, AppEvent};
use skills_tui::harness::Harness;
use skills_tui::pane::{Message, Pane, Target};
use skills_tui::panes::attach::Attach;
use skills_tui::panes::browse::Browse;
use skills_tui::run_requests::RunResponse;
use support::answers::none_fits;
use support::catalogs::{catalog, skill};
use support::fake_client::FakeClient;
use support::run_samples::{NOW_MS, contract_view};

const AUDIT: &str = "\
id: data.table-audit
version: 1.2.0
name: Table audit
description: Checks the rows of a run against rules.
inputs:
  threshold: {type: number, required: true, description: Share of rows that must pass.}
  columns: {type: array, description: Columns to look at.}
  note: {type: string}
outputs:
  passed: {type: boolean}
steps:
  - id: audit
    uses: data.table.audit
    input: {target: target}
    output: {passed: outputs.passed}
";

fn skills() -> Catalog {
    let mut catalog = catalog();
    let mut add = |id: &str, description: &str, targets: &[AttachTarget]| {
        let mut skill = skill(id, Role::Sidecar, description, Vec::new());
        skill.classification.invocation = WithOrigin::explicit(Invocation::Attach);
        skill.classification.attach_targets = targets.to_vec();
        catalog.entries.push(Entry { skill: Arc::new(skill), root: 0 });
    };
    add(
        "table-audit",
        "Checks the rows of a run against rules.",
        &[AttachTarget::Output, AttachTarget::Artifact],
    );
    add("cost-watch", "Watches what a run costs.", &[AttachTarget::Run]);
    catalog
}

fn choices() -> Vec<(AttachTarget, TargetChoice)> {
    let choice = |kind, target_ref: &str, label: &str, minutes: i64| {
        let at_ms = Some(NOW_MS - minutes * 60_000);
        (kind, TargetChoice { target_ref: target_ref.to_owned(), label: label.to_owned(), at_ms })
    };
    vec![
        choice(AttachTarget::Output, "01J8ZC4M7Q/extract", "invoice-intake", 2),
        choice(AttachTarget::Output, "01J8ZB11KD/extract", "table-extract", 61),
        choice(AttachTarget::Output, "01J8ZB11KD/export", "table-extract", 62),
        choice(AttachTarget::Run, "01J8ZC4M7Q", "invoice-intake, waiting", 2),
    ]
}

fn preview(effect: EffectMode, may_do: &[&str]) -> AttachPreview {
    let passed_check =
        |check, note: &str| AttachCheckResult { check, passed: Some(true), note: note.to_owned() };
    let mut rows: Vec<Value> = vec![json!(["2026-10-03", "paper", 18.4, 2.94])];
    rows.resize(214, json!(["2026-10-04", "toner", 92.0, 14.69]));
    AttachPreview {
        checks: vec![
            passed_check(AttachCheck::Exists, "table-audit 1.2.0 loaded"),
            passed_check(AttachCheck::Invocation, "invocation attach"),
            passed_check(AttachCheck::TargetType, "output, artifact"),
            passed_check(AttachCheck::Target, "run 01J8ZC4M7Q, step extract"),
        ],
        reason: None,
        target_label: Some("output of run 01J8ZC4M7Q, step extract".to_owned()),
        content: Some(json!({ "rows": 214, "columns": ["date", "text", "amount", "vat"], "sample": rows })),
        content_bytes: Some(2_140),
        input_problems: Vec::new(),
        effect_mode: Some(effect),
        may_do: may_do.iter().map(ToString::to_string).collect(),
        cli: "skills attach table-audit --target-type output --target-ref 01J8ZC4M7Q/extract --input \
              threshold=0.8 --input columns=date,amount,vat"
            .to_owned(),
        curl: "curl -X POST http://127.0.0.1:8080/v1/skills/table-audit/attach -d '{\"target_type\": \
               \"output\"}'"
            .to_owned(),
    }
}

const STOPS: [&str; 3] = [
    "may stop the run it is attached to",
    "01J8ZC4M7Q waits for a person now; a stop cancels it and its open approval.",
    "reads target and inputs, writes nothing, no network",
];

struct AttachFixture {
    core: Arc<FakeClient>,
    harness: Harness,
}

fn desk_with(width: u16, height: u16, settings: &Settings) -> AttachFixture {
    let core = Arc::new(FakeClient::answering(|_| none_fits()));
    core.runs.add_contract(contract_view("table-audit", AUDIT));
    core.runs.book().choices = choices();
    core.runs.book().preview = Some(preview(EffectMode::ControlSignal, &STOPS));
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(Attach::new()), Box::new(Browse::new())];
    let mut harness = Harness::new(core.clone(), panes, settings, width, height).unwrap();
    harness.deliver(AppEvent::All(Message::Catalog(Arc::new(skills()))));
    AttachFixture { core, harness }
}

fn fixture(width: u16, height: u16) -> AttachFixture {
    desk_with(width, height, &Settings { clock_ms: Some(NOW_MS), ..Settings::default() })
}

/// Chooses table-audit and fills the form as in the picture; the cursor is in the reference.
fn composed(fixture: &mut AttachFixture) {
    let harness = &mut fixture.harness;
    harness.press("down tab tab");
    harness.type_text("01J8ZC4M7Q/ex").press("enter").type_text("0.8");
    harness.press("tab").type_text("date, amount, vat");
    harness.press("esc i").press("ctrl-w").type_text("ex");
}

#[test]
fn an_attachment_is_composed_with_its_preview_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (60, 20)] {
        let mut fixture = fixture(width, height);
        composed(&mut fixture);
        insta::assert_snapshot!(format!("attach-{width}x{height}"), fixture.harness.screen());
        if width == 60 {
            fixture.harness.press("esc tab");
            insta::assert_snapshot!("attach-preview-60x20", fixture.harness.screen());
        }
    }
    let settings = Settings {
        glyphs: GlyphSet::Ascii,
        depth: Some(skills_tui::theme::Depth::None),
        theme: Some("mono".to_owned()),
        clock_ms: Some(NOW_MS),
        ..Settings::default()
    };
    let mut fixture = desk_with(120, 36, &settings);
    composed(&mut fixture);
    let screen = fixture.harness.screen();
    assert!(screen.is_ascii(), "{screen}");
    insta::assert_snapshot!("attach-ascii-120x36", screen);
}

#[test]
fn attachment_is_sent_once_and_links_to_its_run() {
    let mut fixture = fixture(120, 36);
    composed(&mut fixture);
    fixture.harness.press("ctrl-s");
    let screen = fixture.harness.screen();
    assert!(screen.contains("attached") && screen.contains("g opens the run"), "{screen}");
    insta::assert_snapshot!("attach-done-120x36", screen);
    let sent = fixture.core.runs.attachments.lock().unwrap().clone();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].skill.as_str(), sent[0].target_type.as_str()), ("table-audit", "output"));
    assert_eq!(
        Value::Object(sent[0].inputs.clone()),
        json!({"threshold": 0.8, "columns": ["date", "amount", "vat"]})
    );
}

#[test]
fn last_result_follows_its_run() {
    let mut fixture = fixture(120, 36);
    composed(&mut fixture);
    fixture.harness.press("ctrl-s").wait_for("attached");
    let run = fixture.core.runs.book().runs.last().unwrap().run.id.0.clone();
    fixture.core.runs.work(&run, "run.failed", serde_json::json!({}), |run| {
        run.run.state = skills_model::RunState::Failed;
    });
    fixture.harness.wait_for("its run failed");
}

#[test]
fn failure_is_shown_with_its_reason_in_place() {
    let mut fixture = fixture(120, 36);
    composed(&mut fixture);
    let reason = AttachReason {
        check: AttachCheck::Target,
        value: "01J8ZC4M7Q/ex".to_owned(),
        allowed: vec!["extract".to_owned(), "export".to_owned()],
        cause: None,
    };
    *fixture.core.runs.refusal.lock().unwrap() = Some(Error {
        reason: serde_json::to_value(&reason).ok(),
        ..Error::new(Code::TargetNotFound, "run 01J8ZC4M7Q has no output of a step ex any more")
    });
    fixture.harness.press("ctrl-s");
    insta::assert_snapshot!("attach-refused-120x36", fixture.harness.screen());
    fixture.harness.press("g");
    assert!(fixture.harness.screen().contains("nothing attached yet"), "{}", fixture.harness.screen());
}

#[test]
fn button_is_enabled_only_if_all_checks_pass() {
    let mut fixture = fixture(120, 36);
    fixture.harness.press("down tab tab");
    assert!(fixture.harness.screen().contains("enter a reference"), "{}", fixture.harness.screen());
    fixture.harness.type_text("01J8ZC4M7Q/extract");
    assert!(fixture.harness.screen().contains("threshold is required"), "{}", fixture.harness.screen());
    fixture.harness.press("ctrl-s");
    assert!(fixture.core.runs.attachments.lock().unwrap().is_empty());
    fixture.harness.press("tab").type_text("high");
    let screen = fixture.harness.screen();
    assert!(screen.contains("expected a number"), "{screen}");
    fixture.harness.press("ctrl-u").type_text("0.8");
    assert!(fixture.harness.screen().contains("all checks passed"), "{}", fixture.harness.screen());
    let mut failing = preview(EffectMode::ReadOnly, &["changes nothing"]);
    failing.checks[2] = AttachCheckResult {
        check: AttachCheck::TargetType,
        passed: Some(false),
        note: "run is not among its targets: output, artifact".to_owned(),
    };
    failing.checks[3] =
        AttachCheckResult { check: AttachCheck::Target, passed: None, note: "not looked at".to_owned() };
    failing.content = None;
    fixture.core.runs.book().preview = Some(failing);
    fixture.harness.type_text("5");
    insta::assert_snapshot!("attach-failing-120x36", fixture.harness.screen());
    fixture.harness.press("ctrl-s");
    assert!(fixture.core.runs.attachments.lock().unwrap().is_empty(), "what fails a check is never sent");
}

#[test]
fn failed_check_is_reported_before_the_missing_reference() {
    let mut fixture = fixture(120, 36);
    let mut failing = preview(EffectMode::ReadOnly, &["changes nothing"]);
    failing.checks[0] = AttachCheckResult {
        check: AttachCheck::Exists,
        passed: Some(false),
        note: "its contract is broken".to_owned(),
    };
    fixture.core.runs.book().preview = Some(failing);
    fixture.harness.press("down tab tab").wait_for("its contract is broken");
    let screen = fixture.harness.screen();
    assert!(!screen.contains("enter a reference"), "a reference would not help: {screen}");
    assert_eq!(
        screen.matches("its contract is broken").count(),
        2,
        "at the check and at the button: {screen}"
    );
}

#[test]
fn references_complete_by_fuzzy_letters_arrows_and_the_ghost() {
    let mut fixture = fixture(120, 36);
    fixture.harness.press("down tab tab").type_text("kdexp");
    let screen = fixture.harness.screen();
    assert!(screen.contains("01J8ZB11KD/export") && !screen.contains("01J8ZC4M7Q/extract  "), "{screen}");
    fixture.harness.press("enter");
    fixture.harness.press("esc i ctrl-u").type_text("01J8ZB");
    fixture.harness.press("right");
    assert!(fixture.harness.cursor().is_some());
    fixture.harness.press("esc Y");
    let screen = fixture.harness.screen();
    assert!(screen.contains("01J8ZB11KD/extract"), "the ghost was taken: {screen}");
}

#[test]
fn only_attachable_skills_and_their_own_targets_can_be_chosen() {
    let mut fixture = fixture(120, 36);
    fixture.harness.press("enter");
    let screen = fixture.harness.screen();
    assert!(
        screen.contains("cost-watch") && screen.contains("table-audit") && !screen.contains("pdf-forms"),
        "{screen}"
    );
    fixture.harness.press("down enter");
    let screen = fixture.harness.screen();
    assert_eq!(screen.matches("not accepted by this skill").count(), 3, "{screen}");
    fixture.harness.press("tab down");
    assert!(fixture.harness.screen().contains("● artifact"), "{}", fixture.harness.screen());
    fixture.harness.press("down down up");
    assert!(fixture.harness.screen().contains("● output"), "{}", fixture.harness.screen());
}

#[test]
fn typed_text_is_restored_and_leaving_is_confirmed() {
    let mut fixture = fixture(120, 36);
    composed(&mut fixture);
    fixture.harness.press("esc tab tab up");
    assert!(fixture.harness.screen().contains("`cost-watch` has no"), "{}", fixture.harness.screen());
    fixture.harness.press("down");
    assert!(fixture.harness.screen().contains("date, amount, vat"), "{}", fixture.harness.screen());
    fixture.harness.press("q");
    assert!(fixture.harness.screen().contains("inputs for table-audit"), "{}", fixture.harness.screen());
    assert!(!fixture.harness.take_outside().contains(&AppCommand::Quit));
}

#[test]
fn the_content_unfolds_scrolls_and_is_copied() {
    let mut fixture = fixture(120, 36);
    composed(&mut fixture);
    fixture.harness.press("esc tab");
    assert!(fixture.harness.screen().contains("… 212 more"), "{}", fixture.harness.screen());
    fixture.harness.press("enter pagedown pagedown");
    let screen = fixture.harness.screen();
    assert!(screen.contains("14.69],") && screen.contains("of 2"), "{screen}");
    fixture.harness.press("enter y ] y Y");
    insta::assert_snapshot!("attach-copy-120x36", fixture.harness.screen());
    fixture.harness.press("down down down enter");
    let copied: Vec<String> = fixture
        .harness
        .take_outside()
        .into_iter()
        .filter_map(|want| if let AppCommand::Copy(_, what) = want { Some(what) } else { None })
        .collect();
    assert_eq!(copied, ["command line", "curl line", "target's content"]);
}

#[test]
fn clicks_do_what_keys_do() {
    let mut fixture = fixture(120, 36);
    let at = |screen: &str, text: &str| {
        let row = screen.lines().position(|line| line.contains(text)).unwrap();
        let column = screen.lines().nth(row).unwrap().split(text).next().unwrap().chars().count();
        (column as u16, row as u16)
    };
    fixture.harness.press("down");
    let (x, y) = at(&fixture.harness.screen(), "○ artifact");
    fixture.harness.click(x + 3, y);
    assert!(fixture.harness.screen().contains("● artifact"));
    let (x, y) = at(&fixture.harness.screen(), "○ output");
    fixture.harness.click(x, y);
    let (x, y) = at(&fixture.harness.screen(), "RUN/STEP");
    fixture.harness.click(x, y);
    let (x, y) = at(&fixture.harness.screen(), "01J8ZB11KD/export");
    fixture.harness.click(x, y);
    let (x, y) = at(&fixture.harness.screen(), "threshold");
    fixture.harness.click(x + 14, y);
    fixture.harness.type_text("0.8");
    let (x, y) = at(&fixture.harness.screen(), "Attach ^S");
    fixture.harness.click(x, y);
    let sent = fixture.core.runs.attachments.lock().unwrap().clone();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].target_ref, "01J8ZB11KD/export");
}

#[test]
fn run_selects_only_a_skill_attachable_to_it() {
    let mut fixture = fixture(120, 36);
    let ready = vec![(skills_skill::SkillId::new("table-audit"), String::new())];
    fixture.harness.deliver(AppEvent::All(Message::Run(RunResponse::Launchable(Ok(ready.into())))));
    let target = Some(("run".to_owned(), "01J8ZC4M7Q".to_owned()));
    fixture.harness.deliver(AppEvent::All(Message::Visit(Target::Attach { skill: None, target })));
    let screen = fixture.harness.screen();
    assert!(screen.contains("select a skill") && screen.contains("01J8ZC4M7Q"), "{screen}");
    assert!(!screen.contains("cost-watch"), "instructions only, it can run on nothing: {screen}");
}

#[test]
fn form_opened_from_another_pane_is_filled_in() {
    let mut fixture = fixture(120, 36);
    let target = Some(("run".to_owned(), "01J8ZC4M7Q".to_owned()));
    fixture.harness.deliver(AppEvent::All(Message::Visit(Target::Attach { skill: None, target })));
    let screen = fixture.harness.screen();
    assert!(
        screen.contains("cost-watch") && screen.contains("● run") && screen.contains("01J8ZC4M7Q"),
        "{screen}"
    );
    let skill = Some(skills_skill::SkillId::new("table-audit"));
    fixture.harness.deliver(AppEvent::All(Message::Visit(Target::Attach { skill, target: None })));
    let screen = fixture.harness.screen();
    assert!(screen.contains("● output") && fixture.harness.cursor().is_some(), "{screen}");
}

#[test]
fn pane_without_attachable_skills_shows_help() {
    let mut fixture = fixture(80, 24);
    fixture.harness.deliver(AppEvent::All(Message::Catalog(Arc::new(catalog()))));
    insta::assert_snapshot!("attach-empty-80x24", fixture.harness.screen());
    fixture.harness.pass(Duration::from_secs(1)).press("tab ctrl-s q");
    assert!(fixture.harness.take_outside().contains(&AppCommand::Quit));
}
