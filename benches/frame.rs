//! How long a frame of each pane takes at 200×60 with as many skills as a large machine has.

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use skills_model::RunState;
use skills_registry::{Catalog, Entry};
use skills_skill::{Role, SkillId};
use skills_store::RunPage;
use skills_tui::action::Action;
use skills_tui::pane::{Effect, Message, Pane};
use skills_tui::panes::browse::Browse;
use skills_tui::panes::discover::{Discover, History};
use skills_tui::panes::runs::Runs;
use skills_tui::run_requests::{RunRequest, RunResponse};
use skills_tui::widgets::render::render;
use support::answers::{INTENT, fits};
use support::catalogs::{catalog, detail, levels, skill};
use support::run_samples;
use support::screen::Screen;

const SKILLS: usize = 4_483;
const NAMES: usize = 14_639;
const RUNS: usize = 10_000;

fn large(count: usize) -> Catalog {
    let mut large = Catalog { roots: catalog().roots, ..Catalog::default() };
    for i in 0..count {
        let id = if i == 0 { "pdf-tables".to_owned() } else { format!("skill-{i:05}-pdf-{}", i % 97) };
        let skill = skill(&id, Role::Procedure, "Extracts tables from PDF files.", Vec::new());
        large.entries.push(Entry { skill: Arc::new(skill), root: i % 2 });
    }
    large
}

fn type_text(pane: &mut dyn Pane, text: &str) -> Vec<Effect> {
    let key = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    text.chars().flat_map(|c| pane.text_key(key(c))).collect()
}

fn browse(count: usize) -> (Browse, Screen) {
    let mut pane = Browse::new();
    pane.message(&Message::Catalog(Arc::new(large(count))));
    let id = SkillId::new("pdf-tables");
    pane.message(&Message::Detail(id, Ok(Arc::new(detail("pdf-tables")))));
    let mut screen = Screen::new(200, 60);
    for _ in 0..3 {
        for effect in screen.draw(&mut pane).1 {
            match effect {
                Effect::Render(job) => pane.message(&Message::Rendered(job.key, render(&job).into())),
                Effect::Levels(ids) => {
                    let counts = ids.iter().map(|id| levels(id.as_str(), 24, 3_240)).collect();
                    pane.message(&Message::Levels(counts))
                }
                _ => Vec::new(),
            };
        }
    }
    (pane, screen)
}

fn frames(c: &mut Criterion) {
    let (mut pane, mut screen) = browse(SKILLS);
    c.bench_function("frame/browse/200x60/4483", |b| b.iter(|| black_box(screen.draw(&mut pane))));

    let mut pane = Discover::new(History::default());
    let request = type_text(&mut pane, INTENT).len() as u64;
    pane.message(&Message::Answer(request, Ok(Arc::new(fits()))));
    pane.act(Action::Submit);
    let mut screen = Screen::new(200, 60);
    c.bench_function("frame/discover/200x60", |b| b.iter(|| black_box(screen.draw(&mut pane))));

    let mut pane = Runs::new();
    for effect in pane.message(&Message::Run(RunResponse::Following)) {
        let Effect::Run(RunRequest::Page { filter, generation }) = effect else { continue };
        let is_listed = filter.states.contains(&RunState::Completed);
        let runs = (0..if is_listed { RUNS } else { 0 }).map(|number| {
            let id = format!("0198a1b0-0000-7000-8000-{number:012}");
            run_samples::detail(&id, "bulk-job", RunState::Completed).run
        });
        let page = RunPage { runs: runs.collect(), next: None, counts: BTreeMap::new() };
        pane.message(&Message::Run(RunResponse::Page(generation, Ok(Arc::new(page)))));
    }
    let mut screen = Screen::new(200, 60);
    c.bench_function("frame/runs/200x60/10000", |b| b.iter(|| black_box(screen.draw(&mut pane))));
}

fn keys(c: &mut Criterion) {
    let (mut pane, mut screen) = browse(NAMES);
    pane.act(Action::Filter);
    c.bench_function("filter/keystroke/14639", |b| {
        b.iter(|| {
            type_text(&mut pane, "p");
            pane.act(Action::Clear)
        });
    });
    type_text(&mut pane, "pdf");
    c.bench_function("frame/browse/filtered/14639", |b| b.iter(|| black_box(screen.draw(&mut pane))));
    let next = Arc::new(large(NAMES));
    c.bench_function("catalog/change/14639", |b| {
        b.iter(|| pane.message(&Message::Catalog(Arc::clone(&next))));
    });
}

criterion_group!(benches, frames, keys);
criterion_main!(benches);
