//! Pane 7 over the real core: proposals are shown, decided and rolled back by keys and by the mouse.

use std::path::PathBuf;
use std::sync::Arc;

use skills_api::Local;
use skills_authoring::proposals::{NewProposal, Proposal, ProposalDecision, ProposalState, ProposalStore};
use skills_config::{Arguments, Config, Env, GlyphSet};
use skills_skill::SkillId;
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::pane::Pane;
use skills_tui::panes::browse::Browse;
use skills_tui::panes::proposals::Proposals;

/// 2026-11-22 09:30:00 UTC, in milliseconds.
const NOW_MS: i64 = 1_795_339_800_000;

fn text(description: &str) -> String {
    format!("---\nname: billing\ndescription: {description}\n---\n# Billing\n\nWrite the bill.\n")
}

struct TestHome {
    dir: tempfile::TempDir,
    store: ProposalStore,
}

impl TestHome {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = ProposalStore::new(
            dir.path().join(".local/share/skill-workbench/proposals"),
            dir.path().join(".local/share/skill-workbench/proposals-in-progress"),
            skills_base::audit::Recorder::new(dir.path(), skills_base::audit::Mode::Off),
        );
        let place = Self { dir, store };
        place.write("billing", &text("Writes bills for customers. Use it for invoices."));
        std::fs::write(
            place.dir.path().join("skills/golden.yaml"),
            "- query: add a subscription with recurring payments\n  expect: [billing]\n- query: write an invoice\n  expect: [billing]\n",
        )
        .unwrap();
        place
    }

    fn file(&self, skill: &str) -> PathBuf {
        self.dir.path().join("skills").join(skill).join("SKILL.md")
    }

    fn write(&self, skill: &str, content: &str) {
        let file = self.file(skill);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    fn read(&self) -> String {
        std::fs::read_to_string(self.file("billing")).unwrap()
    }

    fn propose(&self, result: &str, minutes_ago: i64) -> Proposal {
        let new = NewProposal {
            skill_id: SkillId::new("billing"),
            location: self.file("billing"),
            real: self.file("billing").canonicalize().unwrap(),
            base: self.read(),
            result: result.to_owned(),
            justification: "Requests about subscriptions find no skill.\n\nThree of them this week."
                .to_owned(),
            evidence: Some("session 00cafe".to_owned()),
            proposed_by: "orchestrator".to_owned(),
            at_ms: NOW_MS - minutes_ago * 60_000,
            effect: None,
        };
        self.store.create(new).unwrap()
    }

    fn screen(&self, width: u16, height: u16) -> Harness {
        let home = self.dir.path();
        let arguments = Arguments {
            roots: vec![home.join("skills")],
            store: Some("memory:".to_owned()),
            watch: Some(false),
            ..Arguments::default()
        };
        let config = Config::load(home, &Env::at(home), &arguments).unwrap();
        let client = Arc::new(Local::open(config).unwrap());
        let panes: Vec<Box<dyn Pane>> = vec![Box::new(Browse::new()), Box::new(Proposals::new())];
        let settings = Settings { clock_ms: Some(NOW_MS), glyphs: GlyphSet::Unicode, ..Settings::default() };
        let mut screen = Harness::new(client, panes, &settings, width, height).unwrap();
        screen.wait_for("1 skill");
        screen
    }

    /// What is seen, without what is another one on each machine.
    fn seen(&self, screen: &Harness) -> String {
        let name = self.dir.path().file_name().unwrap().to_string_lossy().into_owned();
        screen.screen().replace(&name, &"x".repeat(name.len()))
    }
}

const NEW: &str = "Writes bills and invoices, adds subscriptions and recurring payments for customers.";

#[test]
fn waiting_proposals_show_their_diff_and_effect() {
    let place = TestHome::new();
    let denied = place.propose(&place.read().replace("Write the bill.", "Write it."), 3 * 24 * 60);
    let by = ProposalDecision {
        by: "kim".to_owned(),
        at_ms: NOW_MS - 86_400_000,
        notes: Some("too short".to_owned()),
    };
    place.store.deny(&denied.facts.proposal_id, by).unwrap();
    place.propose(&text(NEW), 12);
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("Effect on the golden set").wait_for("from no skill");
    insta::assert_snapshot!("proposals_120", place.seen(&screen));
    screen.press("u").wait_until("unified", |seen| !seen.contains("current   "));
    screen.press("u").resize(80, 24);
    insta::assert_snapshot!("proposals_list_80", place.seen(&screen));
    screen.press("enter").wait_for("SKILL.md");
    insta::assert_snapshot!("proposals_detail_80", place.seen(&screen));
    screen.press("u").wait_for("too narrow");
}

#[test]
fn changed_white_space_is_shown_where_it_is_approved() {
    let place = TestHome::new();
    place.propose(&place.read().replace("Write the bill.", "   Write  the bill."), 5);
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("+    Write  the bill.");
    screen.press("u").wait_until("unified", |seen| !seen.contains("current   "));
    screen.press("a").wait_for("Your decision").wait_for("+    Write  the bill.");
}

#[test]
fn base_of_an_outdated_diff_is_not_shown_as_current() {
    let place = TestHome::new();
    place.propose(&text(NEW), 5);
    place.write("billing", &text("Tallies bills of customers."));
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("│  base   ").wait_for("propose the change again");
    assert!(!screen.screen().contains("│  current   "), "{}", screen.screen());
    screen.wait_for("blocked");
    assert!(!screen.screen().contains("for rollback"), "nothing is written: {}", screen.screen());
}

#[test]
fn blocked_proposal_offers_no_approval() {
    let place = TestHome::new();
    place.propose(&text(NEW), 5);
    place.write("billing", &text("Tallies bills of customers."));
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("blocked");
    screen.press("d").wait_for("Your decision").wait_for("cannot be approved; you can deny it");
    let offers = |line: &str| line.contains('┃') && line.contains("Approve");
    assert!(!screen.screen().lines().any(offers), "{}", screen.screen());
    screen.press("A").wait_for("Your decision").press("D").wait_for("denied by");
}

#[test]
fn only_the_capital_letter_approves() {
    let place = TestHome::new();
    let base = place.read();
    let id = place.propose(&text(NEW), 12).facts.proposal_id;
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("Effect on the golden set");
    screen.press("a").wait_for("Your decision").press("a").press("enter");
    assert_eq!(place.read(), base, "neither the letter again nor Enter decides");
    screen.press("a").wait_for("Your decision").press("A");
    screen.wait_until("approved", |seen| seen.contains("approved by") && !seen.contains("Your decision"));
    assert_eq!(place.read(), text(NEW));
    let facts = place.store.find(&id).unwrap().facts;
    assert_eq!(facts.state, ProposalState::Approved);
    screen.press("R").wait_for("Roll back this proposal?").press("ctrl-s").wait_for("rolled back by");
    assert_eq!(place.read(), base);
}

#[test]
fn a_denial_keeps_its_notes() {
    let place = TestHome::new();
    let (base, id) = (place.read(), place.propose(&text(NEW), 12).facts.proposal_id);
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("Effect on the golden set");
    let state = || place.store.find(&id).unwrap().facts.state;
    screen.press("d").wait_for("Your decision").press("tab").type_text("A Dubious").press("enter");
    screen.type_text(" Assertion").wait_for("A Dubious Assertion");
    assert_eq!(state(), ProposalState::Waiting, "Enter does not leave the notes");
    screen.press("tab").press("enter").wait_for("Unsent notes.");
    assert_eq!(state(), ProposalState::Waiting, "the button after the notes decides nothing");
    screen.press("down").wait_for("Approval writes the file only").press("D");
    screen.wait_for("denied by");
    let facts = place.store.find(&id).unwrap().facts;
    assert_eq!(facts.decision.unwrap().notes.as_deref(), Some("A Dubious Assertion"));
    assert_eq!((facts.state, place.read()), (ProposalState::Denied, base));
}

#[test]
fn proposals_of_others_appear_and_are_filtered() {
    let place = TestHome::new();
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("No proposals.");
    place.propose(&text(NEW), 12);
    screen.pass(std::time::Duration::from_secs(3)).wait_for("1 waiting");
    screen.press("/").type_text("nothing like it").wait_for("no proposals match the filter");
    screen.press("ctrl-u").type_text("orchestrator").wait_for("waiting for approval");
}

#[test]
fn the_proposed_text_opens_as_a_draft() {
    let place = TestHome::new();
    place.propose(&text(NEW), 12);
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("Effect on the golden set").press("t");
    screen.wait_for("Draft of billing").wait_for("adds subscriptions");
}

#[test]
fn draft_of_an_outdated_proposal_names_the_change() {
    let place = TestHome::new();
    place.propose(&text(NEW), 12);
    place.write("billing", &(place.read() + "More.\n"));
    let mut screen = place.screen(120, 36);
    screen.press("7").wait_for("propose the change again").press("t");
    screen.wait_until("the reason", |seen| seen.matches("propose the change again").count() > 1);
    assert!(!screen.screen().contains("does not change the description"), "{}", screen.screen());
}
