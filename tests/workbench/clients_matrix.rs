//! The matrix of skills and clients, opened by its key and by the palette.
use crate::support;

use std::sync::Arc;

use skills_api::{Visibility, VisibilityCell, VisibilityClient, VisibilityReport, VisibilityRow};
use skills_skill::SkillId;
use skills_tui::Settings;
use skills_tui::app::AppEvent;
use skills_tui::harness::Harness;
use skills_tui::pane::{Message, Pane, PaneId};
use support::answers::fits;
use support::fake_client::FakeClient;
use support::note_pane::NotePane;

const CLIENTS: [(&str, &str); 8] = [
    ("Claude Code", "2.1.330"),
    ("Codex", "0.169.0"),
    ("GitHub Copilot", "1.0.102"),
    ("Cursor", ""),
    ("Gemini CLI", "0.61.0"),
    ("goose", ""),
    ("OpenClaw", "2026.9.6"),
    ("OpenCode", "1.18.33"),
];
/// Skills with their roots, and the state of each in each client, by its ASCII symbol.
const SKILLS: [(&str, &str, &str); 6] = [
    ("api-style-guide", "~/.agents/skills", "o%x?@@o@"),
    ("release-notes", "~/.agents/skills", "/%/?@?/@"),
    ("stripe-billing", "~/.agents/skills", "o%x?@@o@"),
    ("csv-tools", ".agents/skills", ".%@?@@o="),
    ("pdf-tables", ".agents/skills", ".%@?@@o="),
    ("pdf-tables@2", ".claude/skills", "o.s?.?.="),
];
const DESCRIPTION: &str = "Integrates Stripe Billing into a web backend: customers, products, prices, invoices and \
    webhooks. Use for recurring payments, subscriptions, plan changes, proration, trials and dunning.";
const CUT_DESCRIPTION: &str =
    "Integrates Stripe Billing into a web backend: customers, products, prices, invoices an";

fn cell(client: &VisibilityClient, sign: char) -> VisibilityCell {
    let state = Visibility::ALL.into_iter().find(|state| state.sign(false).starts_with(sign)).unwrap();
    let reason = match state {
        Visibility::Full => None,
        Visibility::Cut => Some("122 entries share 4,000 tokens (2 % of the context); each is cut alike"),
        Visibility::Dropped => Some("line 3: unquoted “: ” in the description"),
        Visibility::NameOnly => Some("the budget of the list is spent"),
        _ => Some("see the profile of the client"),
    };
    VisibilityCell {
        client: client.client.clone(),
        state,
        words: if state == Visibility::Cut { 12 } else { 0 },
        name: None,
        repaired: None,
        location: None,
        reason: reason.map(str::to_owned),
        shown: (state == Visibility::Cut).then(|| CUT_DESCRIPTION.to_owned()),
        assumed: false,
    }
}

fn report(only: Option<&str>) -> Arc<VisibilityReport> {
    let clients: Vec<VisibilityClient> = CLIENTS
        .iter()
        .map(|(name, version)| VisibilityClient {
            client: name.to_lowercase().replace(' ', "-"),
            name: (*name).to_owned(),
            version: (!version.is_empty()).then(|| (*version).to_owned()),
            source: "run: recorded on 2026-11-22".to_owned(),
            with_description: name.len(),
            limit: "2 % of the context window".to_owned(),
            assumed_folders: Vec::new(),
        })
        .collect();
    let skills: Vec<VisibilityRow> = SKILLS
        .iter()
        .filter(|(id, ..)| only.is_none_or(|only| only == *id))
        .map(|(id, root, signs)| VisibilityRow {
            skill_id: SkillId::new(*id),
            location: format!("/work/{id}/SKILL.md").into(),
            root: (*root).to_owned(),
            words: 24,
            description: only.map(|_| DESCRIPTION.to_owned()),
            cells: clients.iter().zip(signs.chars()).map(|(client, sign)| cell(client, sign)).collect(),
        })
        .collect();
    let total = skills.len();
    Arc::new(VisibilityReport { clients, skills, total, next: None })
}

fn opened(width: u16, height: u16) -> Harness {
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(NotePane::of(&["one"]))];
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let mut harness = Harness::new(client, panes, &Settings::default(), width, height).unwrap();
    harness.press("V");
    deliver(&mut harness, None);
    harness
}

fn deliver(harness: &mut Harness, skill: Option<&str>) {
    let message = Message::Visibility(skill.map(SkillId::new), Ok(report(skill)));
    harness.deliver(AppEvent::Answer(PaneId::Browse, message));
}

#[test]
fn the_matrix_at_every_size() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let mut harness = opened(width, height);
        // The truncated cell of that skill.
        harness.press("down down right");
        insta::assert_snapshot!(format!("clients-{width}x{height}"), harness.screen());
    }
}

#[test]
fn other_clients_are_reached_by_scrolling() {
    let mut harness = opened(80, 24);
    assert!(harness.screen().contains("clients 1 to 4 of 8"), "{}", harness.screen());
    harness.press("right right right right right right right");
    let screen = harness.screen();
    assert!(screen.contains("OpenCode") && screen.contains("stripe-billing"), "{screen}");
    insta::assert_snapshot!("clients-scrolled-80x24", screen);
}

#[test]
fn enter_explains_a_cell() {
    let mut harness = opened(120, 40);
    harness.press("down down right enter");
    deliver(&mut harness, Some("stripe-billing"));
    insta::assert_snapshot!("clients-cell-120x40", harness.screen());
    harness.press("esc").wait_for("api-style-guide").press("esc");
    assert!(!harness.screen().contains("Visibility in clients"), "{}", harness.screen());
}

#[test]
fn palette_finds_the_matrix_by_both_words() {
    for word in ["clients", "visibility"] {
        let panes: Vec<Box<dyn Pane>> = vec![Box::new(NotePane::of(&["one"]))];
        let client = Arc::new(FakeClient::answering(|_| fits()));
        let mut harness = Harness::new(client, panes, &Settings::default(), 120, 40).unwrap();
        harness.press(":").type_text(word).press("enter");
        assert!(harness.screen().contains("Visibility in clients"), "{word}: {}", harness.screen());
    }
}
