//! What a person sees and does in Browse.

mod support;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use skill_workbench::gateway::{
    ClientView, ClientViewEntry, ClientViewState, Event, FileContent, FileText,
};
use skill_workbench::registry::{Catalogue, Change, Entry};
use skill_workbench::skill::{Role, SkillId};
use skill_workbench::tui::action::Action;
use skill_workbench::tui::pane::{Effect, Message, Pane};
use skill_workbench::tui::panes::browse::Browse;
use skill_workbench::tui::widgets::render::render;
use support::catalogues::{catalogue, detail, levels, skill};
use support::screen::{Screen, find, text};

/// Answers effects as the core would, from the values made by hand, until nothing more is asked.
fn serve(pane: &mut Browse, mut effects: Vec<Effect>) {
    while let Some(effect) = effects.pop() {
        let message = match effect {
            Effect::Describe(id) if id.as_str() == "pdf-tables" => {
                Message::Detail(id.clone(), Ok(Arc::new(detail(id.as_str()))))
            }
            Effect::Render(job) => Message::Rendered(job.key, render(&job).into()),
            Effect::Levels(ids) => {
                let count = |(i, id): (usize, &SkillId)| levels(id.as_str(), 24 + i as u32, 3_240 - 700 * i as u32 % 3_000);
                Message::Levels(ids.iter().enumerate().map(count).collect())
            }
            Effect::ReadFile(id, path) => {
                let content = if path.ends_with(".pdf") {
                    FileText::Binary(b"%PDF-1.7\n\x00\xff\xfe stream".to_vec())
                } else {
                    FileText::Text("import sys\n\n\ndef extract(path):\n    return path\n".into())
                };
                let file = FileContent { path: path.clone(), bytes: 9_800, media_type: "text/x-python".into(), content };
                Message::File(id, path, Ok(Arc::new(file)))
            }
            _ => continue,
        };
        effects.extend(pane.message(&message));
    }
}

fn drawn(pane: &mut Browse, screen: &mut Screen) -> String {
    loop {
        let (buffer, wanted) = screen.draw(pane);
        if wanted.is_empty() {
            return text(&buffer);
        }
        serve(pane, wanted);
    }
}

fn opened() -> Browse {
    let mut pane = Browse::new();
    let effects = pane.message(&Message::Catalogue(Arc::new(catalogue())));
    serve(&mut pane, effects);
    for _ in 0..20 {
        if drawn(&mut pane, &mut Screen::new(120, 36)).contains("━ pdf-tables") {
            break;
        }
        let here = drawn(&mut pane, &mut Screen::new(120, 36));
        if here.lines().any(|l| l.starts_with('▌') && l.contains("pdf-tables")) {
            break;
        }
        act(&mut pane, Action::Down);
    }
    pane
}

fn act(pane: &mut Browse, action: Action) -> Vec<Effect> {
    let effects = pane.act(action).unwrap_or_default();
    serve(pane, effects.clone());
    effects
}

fn type_text(pane: &mut Browse, text: &str) {
    for c in text.chars() {
        let effects = pane.text_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        serve(pane, effects);
    }
}

#[test]
fn skills_and_the_chosen_one_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (180, 50), (60, 20)] {
        let mut pane = opened();
        let mut screen = Screen::new(width, height);
        insta::assert_snapshot!(format!("browse-{width}x{height}"), drawn(&mut pane, &mut screen));
    }
}

#[test]
fn every_sub_tab_shows_its_part() {
    let mut pane = opened();
    let mut screen = Screen::new(120, 36);
    act(&mut pane, Action::Open);
    for name in ["frontmatter", "files", "findings"] {
        act(&mut pane, Action::NextTab);
        if name == "files" {
            act(&mut pane, Action::Bottom);
        }
        insta::assert_snapshot!(format!("browse-{name}-120x36"), drawn(&mut pane, &mut screen));
    }
}

#[test]
fn an_empty_machine_is_told_where_was_looked() {
    let mut pane = Browse::new();
    let empty = Catalogue { roots: catalogue().roots, ..Catalogue::default() };
    pane.message(&Message::Catalogue(Arc::new(empty)));
    insta::assert_snapshot!("browse-empty-120x36", drawn(&mut pane, &mut Screen::new(120, 36)));
}
