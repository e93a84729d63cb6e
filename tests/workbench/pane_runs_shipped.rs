//! Runs, contracts and drafts over the real core and the shipped skills.

use std::path::Path;
use std::sync::Arc;

use skills_api::Local;
use skills_config::{Config, Env};
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::pane::Pane;
use skills_tui::panes::browse::Browse;
use skills_tui::panes::runs::Runs;

fn shipped(home: &Path, pane: Box<dyn Pane>) -> Harness {
    let mut config = Config::defaults(home, &Env::at(home));
    config.demo = true;
    config.store = Some("memory:".to_owned());
    let client = Arc::new(Local::open(config).unwrap());
    let mut screen = Harness::new(client, vec![pane], &Settings::default(), 120, 36).unwrap();
    screen.wait_for("21 skills");
    screen
}

/// Returns the line of the right panel that contains a text.
fn right_line(screen: &Harness, text: &str) -> String {
    let screen = screen.screen();
    let line = screen.lines().find(|line| line.contains(text)).expect("it is on the screen");
    line.rsplit('│').next().unwrap_or_default().to_owned()
}

#[test]
fn missing_contract_is_not_drawn_as_a_failure() {
    let home = tempfile::tempdir().unwrap();
    let mut screen = shipped(home.path(), Box::new(Browse::new()));
    screen.press("o").wait_for("Open a skill by name").type_text("json-diff").press("enter ] ] ]");
    screen.wait_for("has no contract");
    let reason = right_line(&screen, "has no contract");
    assert!(reason.trim_start().starts_with("skill `json-diff`"), "without a sign of failure: {reason}");
}

#[test]
fn draft_of_a_shipped_skill_requires_no_confirmation() {
    let home = tempfile::tempdir().unwrap();
    let mut screen = shipped(home.path(), Box::new(Browse::new()));
    screen.press("w").wait_for("Draft of").type_text("!");
    screen.press("ctrl-s").wait_for("shipped skills are read-only");
    assert!(!screen.screen().contains("Write this description"), "{}", screen.screen());
}

#[test]
fn only_skills_with_a_contract_are_offered_for_launching() {
    let home = tempfile::tempdir().unwrap();
    let mut screen = shipped(home.path(), Box::new(Runs::new()));
    screen.wait_for("no runs yet");
    screen.press("n").wait_for("Launch a skill").wait_for("invoice-intake");
    let seen = screen.screen();
    for without in ["changelog-check", "json-diff", "transcript-summary"] {
        assert!(!seen.contains(without), "{seen}");
    }
    screen.press("esc");
}
