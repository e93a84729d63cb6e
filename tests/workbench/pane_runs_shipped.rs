//! Runs over the real core and the shipped skills.

use std::sync::Arc;

use skills_api::Local;
use skills_config::{Config, Env};
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::panes::runs::Runs;

#[test]
fn only_skills_with_a_contract_are_offered_for_launching() {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::defaults(home.path(), &Env::at(home.path()));
    config.demo = true;
    config.store = Some("memory:".to_owned());
    let client = Arc::new(Local::open(config).unwrap());
    let panes = vec![Box::new(Runs::new()) as _];
    let mut screen = Harness::new(client, panes, &Settings::default(), 120, 36).unwrap();
    screen.wait_for("21 skills").wait_for("no runs yet");
    screen.press("n").wait_for("Launch a skill").wait_for("invoice-intake");
    let seen = screen.screen();
    for without in ["changelog-check", "json-diff", "transcript-summary"] {
        assert!(!seen.contains(without), "{seen}");
    }
    screen.press("esc");
}
