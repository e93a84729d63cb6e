//! The report of `W`: what each client shows, the scores, the words and the winner, over the real core.

use super::picture_places::Authors;
use skills_tui::harness::Harness;
use skills_tui::pane::Pane;
use skills_tui::panes::browse::Browse;
use skills_tui::panes::discover::{Discover, History};

fn opened(place: &Authors, width: u16, height: u16) -> Harness {
    let panes: Vec<Box<dyn Pane>> =
        vec![Box::new(Browse::new()), Box::new(Discover::new(History::default()))];
    let mut harness = place.open(panes, width, height);
    harness.press("2").type_text("add subscriptions to my next.js app").press("esc").wait_for("fits");
    harness.press("j").wait_for("stripe-billing").press("W").wait_for("Found by clients");
    harness
}

/// What is seen, without what is another one on each machine.
fn seen(place: &Authors, harness: &Harness) -> String {
    let name = place.folder().file_name().unwrap().to_string_lossy().into_owned();
    harness.screen().replace(&name, &"x".repeat(name.len()))
}

#[test]
fn the_report_has_scores_words_and_the_winner() {
    let place = Authors::new();
    let mut harness = opened(&place, 120, 48);
    for part in
        ["as OpenClaw shows it", "with its full text", "What OpenClaw shows", "What nextjs-starter says"]
    {
        assert!(harness.screen().contains(part), "{part} is missing in\n{}", harness.screen());
    }
    insta::assert_snapshot!("why-120x48", seen(&place, &harness));
    harness.resize(80, 24);
    insta::assert_snapshot!("why-80x24", seen(&place, &harness));
    harness.press("G");
    insta::assert_snapshot!("why-end-80x24", seen(&place, &harness));
    harness.press("w").wait_for("Draft of stripe-billing");
}

#[test]
fn a_report_without_a_request_has_no_scores() {
    let place = Authors::new();
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(Browse::new())];
    let mut harness = place.open(panes, 120, 40);
    harness.press("W").wait_for("Found by clients");
    assert!(!harness.screen().contains("threshold"), "{}", harness.screen());
}
