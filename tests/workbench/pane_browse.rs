//! The pane Browse.

use crate::support;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use skills_api::{
    BudgetView, ClientView, ClientViewEntry, ClientViewState, Error, Event, FileContent, FileText,
    ForeignBundle, HiddenSkills, SkillDetail,
};
use skills_registry::{Catalog, Change, Entry};
use skills_session::{BudgetedCatalog, Fill, ListedEntry, Truncation, Unit};
use skills_skill::{Role, Severity, SkillId};
use skills_tui::action::Action;
use skills_tui::pane::{Effect, Message, Pane, PaneId, PickerKind, Target};
use skills_tui::panes::browse::Browse;
use skills_tui::run_requests::{RunRequest, RunResponse};
use skills_tui::session_requests::{SessionRequest, SessionResponse};
use skills_tui::widgets::render::render;
use support::catalogs::{catalog, detail, finding, levels, skill};
use support::run_samples::contract_view;
use support::screen::{Screen, find, text};

/// A contract with three branches, one of them two steps long, and a step that requires approval.
const SIDE_BY_SIDE: &str = "\
id: documents.pdf-tables
version: 1.2.0
description: Extracts tables from PDF files.
inputs:
  file: {type: string, required: true, description: The PDF.}
  pages: {type: array, description: 'Which pages; default: all of them.'}
  mode: {type: string, enum: [lattice, stream], default: lattice}
outputs:
  rows: {type: array, required: true}
steps:
  - {id: errors, uses: document.errors.list, input: {file: inputs.file}, output: {errors: vars.errors}, config: {depends_on: []}}
  - {id: layout, uses: document.layout.read, input: {file: inputs.file}, output: {layout: vars.layout}, config: {depends_on: [], retry: {max_attempts: 3}}}
  - {id: text, uses: document.text.read, input: {file: inputs.file}, output: {text: vars.text}, config: {depends_on: []}}
  - {id: cells, uses: document.cells.split, input: {text: vars.text}, output: {cells: vars.cells}, config: {depends_on: [text]}}
  - {id: ready, wait_for_signal: pages-checked, config: {depends_on: [errors, layout, cells]}}
  - {id: book, uses: ledger.rows.book, input: {cells: vars.cells}, output: {rows: outputs.rows}}
";

/// Responds to effects as the core would, with prepared values, until there are none.
fn serve(pane: &mut Browse, mut effects: Vec<Effect>) {
    while let Some(effect) = effects.pop() {
        let message = match effect {
            Effect::Describe(id) if id.as_str() == "pdf-tables" => {
                Message::Detail(id.clone(), Ok(Arc::new(detail(id.as_str()))))
            }
            Effect::Run(RunRequest::Contract(skill)) => {
                let view = if skill == "pdf-tables" {
                    Ok(Arc::new(contract_view(&skill, SIDE_BY_SIDE)))
                } else {
                    Err(Error::no_contract(&SkillId::new(&skill)))
                };
                Message::Run(RunResponse::Contract(skill, view))
            }
            Effect::Render(job) => Message::Rendered(job.key, render(&job).into()),
            Effect::Levels(ids) => {
                let count = |(i, id): (usize, &SkillId)| {
                    levels(id.as_str(), 24 + i as u32, 3_240 - 700 * i as u32 % 3_000)
                };
                Message::Levels(ids.iter().enumerate().map(count).collect())
            }
            Effect::ReadFile(id, path) => {
                let content = if path.starts_with("assets/") {
                    FileText::Binary(b"%PDF-1.7\n\x00\xff\xfe stream".to_vec())
                } else {
                    FileText::Text("import sys\n\n\ndef extract(path):\n    return path\n".into())
                };
                let file = FileContent {
                    path: path.clone(),
                    bytes: 9_800,
                    media_type: "text/x-python".into(),
                    content,
                };
                Message::File(id, path, Ok(Arc::new(file)))
            }
            _ => continue,
        };
        effects.extend(pane.message(&message));
    }
}

fn screen_text(pane: &mut Browse, screen: &mut Screen) -> String {
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
    let effects = pane.message(&Message::Catalog(Arc::new(catalog())));
    serve(&mut pane, effects);
    for _ in 0..20 {
        if screen_text(&mut pane, &mut Screen::new(120, 36)).contains("━ pdf-tables") {
            break;
        }
        let here = screen_text(&mut pane, &mut Screen::new(120, 36));
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
fn list_and_selected_skill_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (180, 50), (60, 20)] {
        let mut pane = opened();
        let mut screen = Screen::new(width, height);
        insta::assert_snapshot!(format!("browse-{width}x{height}"), screen_text(&mut pane, &mut screen));
    }
}

#[test]
fn every_sub_tab_shows_its_content() {
    let mut pane = opened();
    let mut screen = Screen::new(120, 36);
    act(&mut pane, Action::Open);
    for name in ["frontmatter", "files", "contract", "findings"] {
        act(&mut pane, Action::NextTab);
        if name == "files" {
            act(&mut pane, Action::Bottom);
        }
        insta::assert_snapshot!(format!("browse-{name}-120x36"), screen_text(&mut pane, &mut screen));
    }
}

#[test]
fn field_of_a_finding_is_shown_completely_or_not() {
    let long = finding(Severity::Info, "description-over-220", "description", 3, "it is long", "shorten it");
    let skill = Arc::new(skill("long-one", Role::Procedure, "Reads.", vec![long]));
    let catalog =
        Catalog { roots: catalog().roots, entries: vec![Entry { skill, root: 0 }], ..Catalog::default() };
    let mut pane = Browse::new();
    let effects = pane.message(&Message::Catalog(Arc::new(catalog)));
    serve(&mut pane, effects);
    let effects = pane.message(&Message::Visit(Target::Skill(SkillId::new("long-one"))));
    serve(&mut pane, effects);
    act(&mut pane, Action::PreviousTab);
    for width in [80, 120] {
        let screen = screen_text(&mut pane, &mut Screen::new(width, 24));
        let line = screen.lines().find(|line| line.contains("description-over-220")).unwrap();
        let (_, after) = line.split_once("description-over-220").unwrap();
        assert!(!after.contains("desc") || after.contains("description"), "{screen}");
        assert_eq!(after.contains("description"), width == 120, "{screen}");
    }
}

#[test]
fn without_skills_the_searched_folders_are_listed() {
    let mut pane = Browse::new();
    let empty = Catalog { roots: catalog().roots, ..Catalog::default() };
    pane.message(&Message::Catalog(Arc::new(empty)));
    insta::assert_snapshot!("browse-empty-120x36", screen_text(&mut pane, &mut Screen::new(120, 36)));
}

fn cursor_line(pane: &mut Browse) -> String {
    let screen = screen_text(pane, &mut Screen::new(120, 36));
    let line = screen.lines().find(|l| l.starts_with('▌')).unwrap_or_default();
    line.split('│').next().unwrap_or_default().to_owned()
}

#[test]
fn the_filter_keeps_what_matches_and_marks_the_letters() {
    let mut pane = opened();
    act(&mut pane, Action::Filter);
    assert!(pane.in_text());
    type_text(&mut pane, "pdf");
    insta::assert_snapshot!("browse-filter-120x36", screen_text(&mut pane, &mut Screen::new(120, 36)));
    let (buffer, _) = Screen::new(120, 36).draw(&mut pane);
    let at = find(&buffer, "po-diff").unwrap();
    let underlined: Vec<bool> = (0..7)
        .map(|i| buffer[(at.x + i, at.y)].modifier.contains(ratatui::style::Modifier::UNDERLINED))
        .collect();
    assert_eq!(underlined, [true, false, false, true, false, true, false]);
    act(&mut pane, Action::LeaveField);
    assert!(!pane.in_text());
    act(&mut pane, Action::Back);
    assert!(cursor_line(&mut pane).contains("pdf"), "the cursor stays on its skill when the filter goes");
    assert!(screen_text(&mut pane, &mut Screen::new(120, 36)).contains("xlsx"));
}

#[test]
fn groups_fold_and_the_grouping_cycles() {
    let mut pane = opened();
    act(&mut pane, Action::Fold);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(screen.contains("▸ ~/.claude/skills 5") && !screen.contains("pdf-forms"), "{screen}");
    assert!(screen.contains("invoice-pdf"));
    act(&mut pane, Action::Open);
    assert!(screen_text(&mut pane, &mut Screen::new(120, 36)).contains("pdf-forms"));
    act(&mut pane, Action::GroupBy);
    act(&mut pane, Action::GroupBy);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(screen.contains("▾ procedures 6") && screen.contains("▾ sidecars 1"), "{screen}");
}

#[test]
fn sorting_by_tokens_counts_them_all_and_puts_the_largest_first() {
    let mut pane = opened();
    let effects = pane.act(Action::Sort).unwrap();
    let level_count: usize =
        effects.iter().map(|e| if let Effect::Levels(ids) = e { ids.len() } else { 0 }).sum();
    assert_eq!(level_count, 1, "only the folded copy was not counted yet");
    pane.message(&Message::Levels(vec![levels("xlsx", 20, 9_900), levels("po-diff", 20, 100)]));
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    let place = |name: &str| screen.find(name).unwrap();
    assert!(place("xlsx") < place("invoice-pdf") && place("invoice-pdf") < place("po-diff"), "{screen}");
    assert!(screen.contains("sort tokens"));
}

#[test]
fn changed_bundle_is_shown_and_the_cursor_stays() {
    let mut pane = opened();
    pane.message(&Message::Event(Event::Scan(skills_registry::ScanProgress {
        found: 9,
        parsed: 9,
        done: true,
    })));
    // The result of the first scan, which is shown already.
    let scanned = Change {
        catalog: Arc::new(catalog()),
        changed: vec![SkillId::new("pdf-merge")],
        ..Change::default()
    };
    let effects = pane.message(&Message::Event(Event::Catalog(Arc::new(scanned))));
    serve(&mut pane, effects);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(!screen.contains('✎'), "nothing changed since the start: {screen}");
    let mut changed = catalog();
    changed.generation += 1;
    changed.entries.insert(
        0,
        Entry { skill: Arc::new(skill("aaa-first", Role::Procedure, "New.", Vec::new())), root: 0 },
    );
    let change = Change {
        catalog: Arc::new(changed),
        added: vec![SkillId::new("aaa-first")],
        changed: vec![SkillId::new("pdf-merge")],
        removed: Vec::new(),
    };
    let effects = pane.message(&Message::Event(Event::Catalog(Arc::new(change))));
    serve(&mut pane, effects);
    assert!(cursor_line(&mut pane).contains("pdf-tables"));
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    let line = screen.lines().find(|l| l.contains("pdf-merge")).unwrap();
    assert!(line.contains('✎'), "what changed since the start is marked: {line}");
}

#[test]
fn skill_found_only_by_the_client_shows_its_own_text() {
    let mut pane = opened();
    screen_text(&mut pane, &mut Screen::new(120, 36));
    let location = "/ws/skills/tide-log/SKILL.md";
    let view = ClientView {
        client: "openclaw".into(),
        name: "OpenClaw".into(),
        source: String::new(),
        version: None,
        entries: Vec::new(),
        foreign: vec![ForeignBundle {
            name: "tide-log".into(),
            location: location.into(),
            description: "Logs the tides of a harbor.".into(),
            state: ClientViewState::Found,
            setting: None,
            error: None,
            rejected: false,
            assumed: false,
            missed: false,
        }],
        list: BudgetedCatalog::default(),
        not_listed: Vec::new(),
        assumed_folders: Vec::new(),
    };
    let effects = pane.message(&Message::ClientView(Some(Arc::new(view))));
    serve(&mut pane, effects);
    let body = detail("pdf-tables").body;
    let line = body.lines().find(|line| line.starts_with(char::is_alphabetic)).unwrap();
    let words: String = line.chars().take(20).collect();
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(screen.contains(&words), "{words}: {screen}");
    let effects = pane.message(&Message::Visit(Target::Skill(SkillId::new(location))));
    serve(&mut pane, effects);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(screen.contains("Logs the tides of a harbor."), "{screen}");
    assert!(screen.contains("--root /ws/skills"), "{screen}");
    assert!(!screen.contains(&words), "{screen}");
}

#[test]
fn list_marks_skills_that_the_client_does_not_list() {
    let mut pane = opened();
    assert_eq!(pane.act(Action::PickClient), Some(vec![Effect::PickClient(None)]));
    let effects = pane.message(&Message::Picked(skills_tui::pane::PickerKind::Client, "codex".into()));
    let budget = Effect::Session(SessionRequest::Budget("codex".into()));
    assert_eq!(effects, [Effect::ClientView(Some("codex".into())), budget]);
    let state = |id: &str| match id {
        "pdf-forms" => ClientViewState::Dropped("its description is too long".into()),
        "xlsx" => ClientViewState::NotLooked,
        _ => ClientViewState::Found,
    };
    let entries = catalog().entries;
    let entry = |e: &Entry| ClientViewEntry {
        skill_id: e.skill.id.clone(),
        state: state(e.skill.id.as_str()),
        help: None,
        setting: None,
        assumed: false,
    };
    let view = ClientView {
        client: "codex".into(),
        name: "Codex".into(),
        source: "https://developers.openai.com/codex, 0.40".into(),
        version: None,
        entries: entries.iter().map(entry).collect(),
        foreign: Vec::new(),
        list: BudgetedCatalog::default(),
        not_listed: Vec::new(),
        assumed_folders: Vec::new(),
    };
    let effects = pane.message(&Message::ClientView(Some(Arc::new(view))));
    serve(&mut pane, effects);
    insta::assert_snapshot!("browse-client-120x36", screen_text(&mut pane, &mut Screen::new(120, 36)));
    let why = || "over budget: all descriptions are truncated evenly".to_owned();
    let made = |id: &str| match id {
        "pdf-tables" => Truncation::Shortened { characters: 94, why: why() },
        "pdf-merge" => Truncation::NameOnly { why: why() },
        "po-diff" => Truncation::Omitted { why: "budget exhausted".to_owned() },
        _ => Truncation::Complete,
    };
    // A skill that the client finds and that is user-only: only the budget contains it.
    let named = ["pdf-forms", "xlsx", "pdf-tables", "pdf-merge", "po-diff"];
    let ids = || entries.iter().map(|e| e.skill.id.as_str());
    let people = ids().find(|id| !named.contains(id)).unwrap().to_owned();
    let is_listed = |e: &Entry| ![named[0], named[1], people.as_str()].contains(&e.skill.id.as_str());
    let listed = |e: &Entry| {
        let id = e.skill.id.as_str();
        (
            ListedEntry { name: id.into(), skill_id: Some(e.skill.id.clone()), ..ListedEntry::default() },
            made(id),
        )
    };
    let budget = BudgetView {
        client: Some("codex".into()),
        name: "Codex".into(),
        source: String::new(),
        version: None,
        window: 200_000,
        allowance: BudgetedCatalog {
            entries: entries.iter().filter(|e| is_listed(e)).map(listed).collect(),
            fill: Fill {
                limit: Some(4_000),
                unit: Unit::Tokens,
                limit_from: "2 % of a context of 200000 tokens: 4000 tokens".into(),
                wanted: 9_105,
                used: 3_995,
                ..Fill::default()
            },
        },
        not_listed: vec![
            HiddenSkills {
                why: "not in a folder that Codex searches".into(),
                cause: None,
                skills: 1,
                names: vec!["xlsx".into()],
            },
            HiddenSkills {
                why: "a description of more than 1,024 characters".into(),
                cause: None,
                skills: 1,
                names: vec!["pdf-forms".into()],
            },
            HiddenSkills {
                why: "user-only: disable-model-invocation".into(),
                cause: None,
                skills: 1,
                names: vec![people.clone()],
            },
        ],
        tokens: (9_240, 4_100),
        tokens_estimated: false,
        long: Vec::new(),
        assumed_folders: Vec::new(),
    };
    let mut with_other_text = budget.clone();
    pane.message(&Message::Session(SessionResponse::Budget("codex".into(), Ok(Arc::new(budget)))));
    let seen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(seen.contains(&format!("{} of ", ids().count() - 3)), "{seen}");
    insta::assert_snapshot!("browse-client-budget-120x36", screen_text(&mut pane, &mut Screen::new(120, 36)));
    insta::assert_snapshot!("browse-client-budget-80x24", screen_text(&mut pane, &mut Screen::new(80, 24)));
    // The label and the number of findings do not touch.
    for (_, shown) in &mut with_other_text.allowance.entries {
        *shown = Truncation::OtherText;
    }
    pane.message(&Message::Session(SessionResponse::Budget("codex".into(), Ok(Arc::new(with_other_text)))));
    let seen = screen_text(&mut pane, &mut Screen::new(80, 24));
    assert!(seen.contains("✗1 other text"), "{seen}");
}

#[test]
fn editor_opens_at_the_displayed_line() {
    let mut pane = opened();
    let location = std::path::PathBuf::from("/home/ana/.claude/skills/pdf-tables");
    assert_eq!(pane.act(Action::Edit), Some(vec![Effect::Edit(location.join("SKILL.md"), 1)]));
    act(&mut pane, Action::Open);
    screen_text(&mut pane, &mut Screen::new(120, 24));
    act(&mut pane, Action::PageDown);
    screen_text(&mut pane, &mut Screen::new(120, 24));
    let Some([Effect::Edit(_, line)]) = pane.act(Action::Edit).as_deref().map(|e| [e[0].clone()]) else {
        panic!("edits")
    };
    assert!((12..26).contains(&line), "a page down is further in the file: {line}");
    act(&mut pane, Action::PreviousTab);
    assert_eq!(pane.act(Action::Open), Some(vec![Effect::Edit(location.join("SKILL.md"), 2)]));
    act(&mut pane, Action::Back);
    assert_eq!(pane.contexts()[0], skills_tui::action::Context::Browse);
}

#[test]
fn a_click_on_a_row_a_group_and_a_tab_does_what_is_under_it() {
    let mut pane = opened();
    let mut screen = Screen::new(120, 36);
    screen_text(&mut pane, &mut screen);
    let (buffer, _) = screen.draw(&mut pane);
    let click = |pane: &mut Browse, what: &str| {
        let at = find(&buffer, what).unwrap();
        let effects = pane.mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: at.x,
            row: at.y,
            modifiers: KeyModifiers::NONE,
        });
        serve(pane, effects);
    };
    click(&mut pane, "Frontmatter");
    assert!(screen_text(&mut pane, &mut screen).contains("name: pdf_tables"));
    click(&mut pane, "invoice-pdf");
    assert!(cursor_line(&mut pane).contains("invoice-pdf"));
    click(&mut pane, "~/.agents/skills");
    assert!(screen_text(&mut pane, &mut screen).contains("▸ ~/.agents/skills"));
}

#[test]
fn other_panes_can_open_a_filtered_skill() {
    let mut pane = opened();
    act(&mut pane, Action::Filter);
    type_text(&mut pane, "forms");
    let visit = skills_tui::pane::Target::Skill(SkillId::new("xlsx"));
    let effects = pane.message(&Message::Visit(visit));
    serve(&mut pane, effects);
    assert!(cursor_line(&mut pane).contains("xlsx"));
}

#[test]
fn any_skill_is_opened_by_its_name() {
    let mut pane = opened();
    let effects = act(&mut pane, Action::OpenByName);
    let [Effect::Pick(picker)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(picker.what, PickerKind::SkillToOpen);
    assert!(picker.choices.iter().any(|(id, ..)| id == "xlsx"), "{picker:?}");
    act(&mut pane, Action::Filter);
    type_text(&mut pane, "forms");
    let effects = pane.message(&Message::Picked(PickerKind::SkillToOpen, "xlsx".to_owned()));
    serve(&mut pane, effects);
    assert!(cursor_line(&mut pane).contains("xlsx"), "out of a filter that hides it");
}

#[test]
fn attach_names_the_rejected_skill() {
    let mut pane = opened();
    for _ in 0..20 {
        if cursor_line(&mut pane).contains("pdf-notes") {
            break;
        }
        act(&mut pane, Action::Down);
    }
    let attach = pane.commands().into_iter().find(|command| command.action == Action::AttachThis).unwrap();
    assert_eq!(attach.blocked.as_deref(), Some("the SKILL.md of pdf-notes was rejected"));
}

#[test]
fn contract_with_errors_has_no_version_and_number_of_steps() {
    let mut pane = opened();
    act(&mut pane, Action::Open);
    (0..3).for_each(|_| drop(act(&mut pane, Action::NextTab)));
    screen_text(&mut pane, &mut Screen::new(120, 36));
    let skill = "pdf-tables".to_owned();
    let view = contract_view(&skill, "id: documents.pdf-tables\ndescription: Extracts tables.\nsteps: []\n");
    let errors = view.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    assert!(errors > 0, "{:?}", view.findings);
    let effects = pane.message(&Message::Run(RunResponse::Contract(skill, Ok(Arc::new(view)))));
    serve(&mut pane, effects);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(screen.contains(&format!("invalid · {errors} error")), "{screen}");
    assert!(screen.contains("inputs unknown") && screen.contains("outputs unknown"), "{screen}");
    assert!(!screen.contains("0.0.0") && !screen.contains("0 steps"), "{screen}");
}

#[test]
fn no_resource_files_are_reported_as_such() {
    let mut pane = opened();
    let without_files = SkillDetail { files: Vec::new(), ..detail("pdf-tables") };
    let id = SkillId::new("pdf-tables");
    act(&mut pane, Action::Open);
    (0..2).for_each(|_| drop(act(&mut pane, Action::NextTab)));
    let effects = pane.message(&Message::Detail(id, Ok(Arc::new(without_files))));
    serve(&mut pane, effects);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    assert!(screen.contains("no resource files") && !screen.contains("no files besides"), "{screen}");
}

#[test]
fn contract_shows_its_steps_at_every_size() {
    for (width, height) in [(80, 24), (60, 20), (180, 50)] {
        let mut pane = opened();
        act(&mut pane, Action::Open);
        (0..3).for_each(|_| drop(act(&mut pane, Action::NextTab)));
        insta::assert_snapshot!(
            format!("browse-contract-{width}x{height}"),
            screen_text(&mut pane, &mut Screen::new(width, height))
        );
    }
    let mut pane = opened();
    act(&mut pane, Action::Open);
    (0..3).for_each(|_| drop(act(&mut pane, Action::NextTab)));
    let screen = screen_text(&mut pane, &mut Screen::ascii(120, 36));
    assert!(!screen.contains(['│', '├', '●', '◆', '·', '…']), "{screen}");
    let effects = act(&mut pane, Action::Open);
    assert!(
        matches!(&effects[..], [Effect::Go(PaneId::Runs, Some(Target::Launch(id)))] if id.as_str() == "pdf-tables")
    );
    act(&mut pane, Action::Back);
    act(&mut pane, Action::Down);
    let screen = screen_text(&mut pane, &mut Screen::new(120, 36));
    let line = screen.lines().find(|line| line.contains("has no contract")).expect("the reason");
    let reason = line.rsplit('│').next().unwrap_or_default();
    assert!(!reason.contains('✗'), "the usual case, not a failure: {screen}");
    let launch = pane.commands().into_iter().find(|command| command.action == Action::Launch).unwrap();
    assert!(launch.blocked.unwrap().contains("has no contract"));
}
