//! The pictures of the README are screens of this program over its own skills: drawn again and compared.
//! `INSTA_UPDATE=always` writes them, as it writes snapshots.
use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pane_golden::TestHome;
use super::picture_places::{Authors, shift_core};
use skills_api::{Local, SharedSessionClient};
use skills_config::{Arguments, Config, Env};
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::pane::Pane;
use skills_tui::panes::attach::Attach;
use skills_tui::panes::browse::Browse;
use skills_tui::panes::discover::{Discover, History};
use skills_tui::panes::golden::Golden;
use skills_tui::panes::proposals::Proposals;
use skills_tui::panes::runs::Runs;
use skills_tui::panes::session::SessionPane;
use skills_tui::svg::svg;
use skills_tui::theme::{Depth, Theme};
use support::fixed_clock_client::FixedClockClient;
use support::run_pane::core;
use support::run_samples::{every_state, settings};
use support::steady_sessions::SteadySessions;

/// All of them, as the workbench has them.
fn panes() -> Vec<Box<dyn Pane>> {
    vec![
        Box::new(Browse::new()),
        Box::new(Discover::new(History::default())),
        Box::new(Attach::new()),
        Box::new(SessionPane::new()),
        Box::new(Runs::new()),
        Box::new(Golden::new()),
        Box::new(Proposals::new()),
    ]
}

/// The workbench over the shipped skills, read and indexed.
fn shipped(home: &Path) -> Harness {
    let arguments = Arguments { demo: true, watch: Some(false), ..Arguments::default() };
    let config = Config::load(home, &Env::at(home), &arguments).unwrap();
    let client = Arc::new(FixedClockClient(Local::open(config).unwrap()));
    let mut harness = Harness::new(client, panes(), &Settings::default(), 120, 32).unwrap();
    harness.wait_until("all skills read and indexed", |screen| {
        screen.contains("21 skills") && !screen.contains("indexed") && !screen.contains("so far")
    });
    harness
}

/// Timeout for pending reads, counts and rendering until the screen matches the picture.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

fn compare(harness: &mut Harness, name: &str, title: &str) {
    compare_without(harness, name, title, None);
}

/// Placeholder for the name of a temporary folder, of the same length.
const FOLDER: &str = "workspaces";

/// As [`compare`], without the name of a temporary folder, which differs at every run.
fn compare_without(harness: &mut Harness, name: &str, title: &str, folder: Option<&Path>) {
    let theme = Theme::shipped("dark", Depth::True).unwrap();
    let folder = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    assert!(folder.as_ref().is_none_or(|name| name.len() == FOLDER.len()), "{folder:?}");
    let draw = |harness: &Harness| {
        let drawn = svg(harness.buffer(), &theme, harness.cursor(), title);
        folder.as_ref().map_or_else(|| drawn.clone(), |folder| drawn.replace(folder, FOLDER))
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/pictures").join(name);
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let writing = std::env::var("INSTA_UPDATE").is_ok_and(|wish| wish == "always");
    let started = Instant::now();
    let mut drawn = draw(harness);
    while drawn != expected && started.elapsed() < WAIT_TIMEOUT && !writing {
        std::thread::sleep(Duration::from_millis(10));
        harness.pass(Duration::ZERO);
        drawn = draw(harness);
    }
    if writing {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, drawn).unwrap();
    } else if drawn != expected {
        let parted = drawn.lines().zip(expected.lines()).find(|(now, before)| now != before);
        panic!(
            "{name} is not what is drawn now; look at it, then write it with INSTA_UPDATE=always\n{}\n\n\
             first other line, now and kept: {parted:#?}",
            harness.screen()
        );
    }
}

#[test]
fn browse_and_discover_match_their_pictures() {
    let home = tempfile::tempdir().unwrap();
    let mut harness = shipped(home.path());
    harness
        .press("j j")
        .wait_until("token counts", |screen| screen.contains("L2 body") && !screen.contains("counting"));
    compare(
        &mut harness,
        "browse.svg",
        "Browse: skills on the left, the chosen one with its instructions on the right",
    );
    harness.press("2").type_text("turn the table in this mail into a clean csv").press("esc");
    harness.wait_for("fits");
    compare(
        &mut harness,
        "discover.svg",
        "Discover: a request, its ranking, and the breakdown of the first result",
    );
}

#[test]
fn decision_of_a_waiting_run_matches_its_picture() {
    let client = core(every_state());
    let mut harness = Harness::new(client, panes(), &settings(), 120, 36).unwrap();
    harness.press("5").wait_for(" total ").wait_for("Checkpoints").press("a").wait_for("Your decision");
    compare(
        &mut harness,
        "runs.svg",
        "Runs: one run waits, and its dialog shows what an approval would execute",
    );
}

#[test]
fn session_with_a_loaded_skill_matches_its_picture() {
    let home = tempfile::tempdir().unwrap();
    let arguments = Arguments {
        demo: true,
        watch: Some(false),
        store: Some("memory:".to_owned()),
        ..Arguments::default()
    };
    let config = Config::load(home.path(), &Env::at(home.path()), &arguments).unwrap();
    let local = Arc::new(Local::open(config).unwrap());
    let sessions: SharedSessionClient = local.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sessions = Arc::new(runtime.block_on(SteadySessions::over(sessions)));
    let mut harness = Harness::with_sessions(local, Some(sessions), panes(), &settings(), (120, 36)).unwrap();
    harness.press("4").wait_for("orchestrator 21");
    harness.press("c l").type_text("csv-profile").press("enter");
    harness.wait_for("1 of 8").wait_for("csv-profile body");
    harness.press("r").wait_for("Read a file of csv-profile").press("enter").wait_for("skills.read");
    // Notices of the steps expire; the remaining screen is the picture.
    harness
        .pass(Duration::from_secs(60))
        .wait_until("no toast", |text| !text.contains("loaded from the next call"));
    compare(
        &mut harness,
        "session.svg",
        "Session: a loaded skill is part of the next call, with tokens by level",
    );
}

#[test]
fn golden_set_and_draft_match_their_pictures() {
    let place = TestHome::new();
    let mut harness = place.open(120, 32);
    harness.press("6").wait_for("failing first").wait_for("would rank first");
    compare(&mut harness, "golden.svg", "Golden: failing queries first, and what would win the selected one");
    harness.press("w").wait_for("Draft of pdf-tables").type_text(" Makes a sheet of a statement.");
    harness.wait_until("measured", |screen| {
        screen.contains("1 won") && !screen.contains("updating") && !screen.contains("measuring")
    });
    compare(
        &mut harness,
        "draft.svg",
        "Draft: a description, the golden set with and without it, and the changed winners",
    );
}

#[test]
fn why_and_its_advice_match_their_picture() {
    let place = Authors::new();
    let mut harness = place.open(panes(), 120, 40);
    harness.press("2").type_text("add subscriptions to my next.js app").press("esc").wait_for("fits");
    harness.press("j").wait_for("Why stripe-billing").press("W");
    harness.wait_for("Why stripe-billing: add").wait_for("Advice");
    compare_without(
        &mut harness,
        "why.svg",
        "Why not: the checks of each client, the score next to the winner's, and measured advice",
        Some(place.folder()),
    );
}

#[test]
fn collisions_and_clients_match_their_pictures() {
    let place = Authors::new();
    let mut harness = place.open(panes(), 120, 40);
    harness.press("C").wait_for("in 3 clusters").press("n").wait_for("Advice");
    harness.wait_until("measured", |screen| screen.contains("add an exclusion") && screen.contains("merge"));
    compare(
        &mut harness,
        "collisions.svg",
        "Collisions: the requests that the skill in a row loses to the one in a column, and what helps",
    );
    harness.press("C V").wait_for("with description").wait_for("trip-planner");
    harness.press("down down down down down down down").press("right right right right right right");
    harness.wait_for("stripe-billing in OpenClaw");
    compare_without(
        &mut harness,
        "clients.svg",
        "Visibility: what the model of each client receives of each skill, and why",
        Some(place.folder()),
    );
}

#[test]
fn proposal_matches_its_picture() {
    let place = Authors::new();
    place.propose();
    let mut harness = place.open(panes(), 120, 40);
    harness.press("7").wait_for("Effect on the golden set").wait_for("query changes");
    compare_without(
        &mut harness,
        "proposals.svg",
        "Proposals: the checks, the diff, the justification and the measured effect of a change",
        Some(place.folder()),
    );
}

#[test]
fn filter_bulk_dialog_and_board_match_their_pictures() {
    let client = shift_core();
    let mut harness = Harness::new(client, panes(), &settings(), 120, 36).unwrap();
    harness.press("5").wait_for(" total ").press("] ] ]").wait_for("state:failed").wait_for("9 of 20");
    compare(
        &mut harness,
        "runs-filter.svg",
        "Runs: a filter, its most frequent values, and the selected run below the table",
    );
    harness
        .press("/ ctrl-u")
        .type_text("state:failed error:502 input.region:eu*")
        .press("enter")
        .wait_for("2 of 20");
    harness.press("*").wait_for("2 marked").press("r").wait_for("Resume 2 runs");
    compare(
        &mut harness,
        "runs-bulk.svg",
        "Runs: one dialog resumes the marked runs and lists what distinguishes them",
    );
    harness.press("esc esc esc").press("b").wait_for("process 4711 on build-1");
    compare(
        &mut harness,
        "runs-board.svg",
        "Board: approvals by deadline, running runs, failures by reason, completed runs, workers",
    );
}
