//! The frame of the workbench, driven by keys, clicks and sizes.
use crate::support;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ratatui::style::Color;
use skills_api::{Event, IndexProgress};
use skills_base::telemetry::{Level, RingBuffer};
use skills_config::GlyphSet;
use skills_tui::Settings;
use skills_tui::app::{AppCommand, AppEvent};
use skills_tui::harness::Harness;
use skills_tui::pane::{Message, Pane, PaneId};
use skills_tui::panes::discover::{Discover, History};
use support::answers::{INTENT, fits, none_fits};
use support::fake_client::FakeClient;
use support::note_pane::NotePane;

fn notes() -> NotePane {
    NotePane::of(&["pdf-tables", "日本語のメモ と 👩‍💻 emoji", "xlsx", "csv-tools"])
}

fn workbench_with(
    client: Arc<FakeClient>,
    notes: NotePane,
    settings: &Settings,
    width: u16,
    height: u16,
) -> Harness {
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(notes), Box::new(Discover::new(History::default()))];
    Harness::new(client, panes, settings, width, height).unwrap()
}

fn workbench(width: u16, height: u16) -> Harness {
    let client =
        FakeClient::answering(|request| if request.intent.contains("rain") { none_fits() } else { fits() });
    workbench_with(Arc::new(client), notes(), &Settings::default(), width, height)
}

fn last_row(harness: &Harness) -> String {
    harness.screen().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn frame_is_drawn_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (60, 20), (40, 10)] {
        let harness = workbench(width, height);
        let screen = harness.screen();
        let rows: Vec<&str> = screen.lines().collect();
        let ends = format!("{}\n{}", rows[0], rows[rows.len() - 1]);
        insta::assert_snapshot!(format!("frame-{width}x{height}"), ends);
    }
}

#[test]
fn too_small_window_is_reported_and_recovers() {
    let mut harness = workbench(80, 24);
    let before = harness.screen();
    harness.resize(39, 9);
    assert!(harness.screen().contains("terminal too small"));
    assert!(harness.screen().contains("39x9, needs 40x10"));
    harness.resize(7, 1).resize(1, 1).resize(80, 24);
    assert_eq!(harness.screen(), before);
}

#[test]
fn number_keys_switch_panes_except_in_text_fields() {
    let mut harness = workbench(120, 36);
    harness.press("2").type_text("q 1 ? turn");
    let screen = harness.screen();
    assert!(screen.contains("q 1 ? turn"), "{screen}");
    assert_eq!(harness.take_outside(), []);
    assert!(last_row(&harness).contains("F2 commands"), "{}", last_row(&harness));
    harness.press("esc 1");
    assert!(harness.screen().contains("pdf-tables"));
    assert!(last_row(&harness).contains(": commands  ? help"));
}

#[test]
fn every_key_ranks_and_the_cursor_is_visible() {
    let mut harness = workbench(120, 36);
    harness.press("2").type_text(INTENT);
    assert!(harness.screen().contains("pdf-tables"));
    assert!(harness.cursor().is_some());
    harness.press("esc");
    assert_eq!(harness.cursor(), None);
}

#[test]
fn slow_response_never_replaces_a_newer_one() {
    let client = Arc::new(FakeClient::answering(|request| {
        let mut answer = fits();
        answer.results[0].name = format!("answer-to-{}", request.intent);
        answer
    }));
    let gate = client.hold("a");
    let mut harness = workbench_with(Arc::clone(&client), notes(), &Settings::default(), 120, 36);
    harness.press("2").settle_within(Duration::from_millis(30)).type_text("a").type_text("b");
    gate.add_permits(8);
    harness.wait_for("answer-to-ab");
    let mut late = fits();
    late.results[0].name = "too-late".to_owned();
    harness.deliver(AppEvent::Answer(PaneId::Discover, Message::Answer(1, Ok(Arc::new(late)))));
    assert!(harness.screen().contains("answer-to-ab") && !harness.screen().contains("too-late"));
}

#[test]
fn palette_finds_and_runs_commands_or_shows_the_reason() {
    let mut harness = workbench(120, 36);
    harness.press(":");
    insta::assert_snapshot!("palette-120x36", harness.screen());
    harness.type_text("thm");
    insta::assert_snapshot!("palette-found-120x36", harness.screen());
    harness.press("enter");
    assert!(harness.screen().contains("Theme"));
    harness.press("esc");
    harness.press("ctrl-p").type_text("edit").press("enter");
    assert!(harness.screen().contains("these notes are read only"), "{}", harness.screen());
}

#[test]
fn the_demo_is_played_from_the_palette() {
    let mut harness = workbench(100, 30);
    harness.press(":").type_text("demo").wait_for("play the demonstration").press("enter");
    assert!(harness.take_outside().contains(&AppCommand::Demo));
    harness.press("f3");
    assert!(harness.take_outside().contains(&AppCommand::Demo));
}

#[test]
fn themes_are_previewed_before_selection() {
    let ground = |harness: &Harness| harness.buffer()[(0, 10)].bg;
    let (dark, light) = (Color::Rgb(0x13, 0x15, 0x1a), Color::Rgb(0xfb, 0xf8, 0xf1));
    let mut harness = workbench(80, 24);
    harness.press("T down");
    assert_eq!(ground(&harness), light);
    harness.press("esc");
    assert_eq!(ground(&harness), dark);
    harness.press("T down enter");
    assert_eq!(ground(&harness), light);
    harness.press("T");
    insta::assert_snapshot!("themes-80x24", harness.screen());
}

#[test]
fn help_is_generated_from_the_keymap_and_searchable() {
    let mut harness = workbench(120, 36);
    harness.press("?");
    insta::assert_snapshot!("help-120x36", harness.screen());
    harness.press("/").type_text("theme");
    let screen = harness.screen();
    assert!(screen.contains("choose a theme") && !screen.contains("suspend"), "{screen}");
    harness.press("esc esc");
    assert!(!harness.screen().contains("Keys in"));
    harness.resize(60, 20).press("?");
    insta::assert_snapshot!("help-60x20", harness.screen());
    harness.press("G");
    assert!(harness.screen().contains("L3 files"), "{}", harness.screen());
}

#[test]
fn notices_expire_and_errors_stay_until_dismissed() {
    let mut harness = workbench(120, 36);
    harness.deliver(AppEvent::Done("copied the note".to_owned()));
    harness.deliver(AppEvent::Failed(
        "vi ended with exit status: 1".to_owned(),
        "/skills/pdf/SKILL.md".to_owned(),
    ));
    insta::assert_snapshot!("notices-120x36", harness.screen());
    harness.pass(Duration::from_secs(10));
    assert!(!harness.screen().contains("copied the note"));
    assert!(harness.screen().contains("vi ended with"));
    harness.press("esc");
    assert!(!harness.screen().contains("vi ended with"));
}

#[test]
fn error_height_follows_its_text_up_to_a_third() {
    let rows = |text: &str, (width, height): (u16, u16)| {
        let mut harness = workbench(width, height);
        let bands = |harness: &Harness| -> Vec<String> {
            let screen = harness.screen();
            screen.lines().filter_map(|row| Some(row.split_once('▌')?.1.to_owned())).collect()
        };
        let before = bands(&harness).len();
        harness.deliver(AppEvent::All(Message::Event(Event::Notice(text.to_owned()))));
        let band = bands(&harness);
        (band.len() - before, band.concat().split_whitespace().collect::<String>())
    };
    let long = "a damaged store was set aside whole, a new one begun: /home/ann/.local/share/runs.db is now \
                /home/ann/.local/share/runs.db.damaged-1795382829662";
    let (height, words) = rows(long, (120, 30));
    assert!(words.contains("1795382829662") && words.ends_with("dismiss"), "{words}");
    assert!(height > 2, "{height}");
    assert_eq!(rows("no answer", (120, 30)).0, 2);
    let (height, words) = rows(&long.repeat(20), (60, 18));
    assert!(height <= 6 && words.contains('…') && words.ends_with("dismiss"), "{height} rows: {words}");
}

#[test]
fn quitting_is_confirmed_only_with_unsaved_text() {
    let mut harness = workbench(80, 24);
    harness.press("q");
    assert_eq!(harness.take_outside(), [AppCommand::Quit]);

    let lost = Some("The description of pdf-tables is changed and not saved.".to_owned());
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let mut harness =
        workbench_with(client, NotePane { unsaved: lost, ..notes() }, &Settings::default(), 80, 24);
    harness.press("q");
    insta::assert_snapshot!("question-80x24", harness.screen());
    harness.press("enter");
    assert_eq!(harness.take_outside(), []);
    assert!(!harness.screen().contains("Quit the workbench?"));
    harness.press("ctrl-c Q");
    assert_eq!(harness.take_outside(), [AppCommand::Quit]);
}

#[test]
fn escape_at_the_top_never_quits() {
    let mut harness = workbench(80, 24);
    harness.press("esc esc esc");
    assert_eq!(harness.take_outside(), []);
}

#[test]
fn the_mouse_reaches_tabs_footer_rows_and_closes_overlays() {
    let mut harness = workbench(120, 36);
    let column = |harness: &Harness, y: usize, text: &str| {
        let screen = harness.screen();
        let row = screen.lines().nth(y).unwrap_or_default().to_owned();
        row[..row.find(text).unwrap()].chars().count() as u16
    };
    let x = column(&harness, 0, "2 Discover");
    harness.click(x, 0);
    assert!(harness.screen().contains("Request"));
    harness.click(column(&harness, 0, "1 Browse"), 0);
    let help = column(&harness, 35, "? help");
    harness.click(help, 35);
    assert!(harness.screen().contains("Keys in Browse"));
    harness.click(0, 1);
    assert!(!harness.screen().contains("Keys in Browse"));
    harness.click(5, 4).press("y");
    assert_eq!(harness.take_outside(), [AppCommand::Copy("xlsx".to_owned(), "the note".to_owned())]);
}

#[test]
fn blocked_command_shows_its_reason_outside_the_footer() {
    let mut harness = workbench(120, 36);
    assert!(!last_row(&harness).contains("edit"));
    harness.press("e");
    assert!(harness.screen().contains("these notes are read only"));
}

#[test]
fn a_key_without_an_action_shows_a_hint() {
    let mut harness = workbench(120, 36);
    harness.press("w");
    assert!(
        harness.screen().contains("w is not available in this panel; ? lists the keys"),
        "{}",
        harness.screen()
    );
    harness.press("f9");
    let screen = harness.screen();
    assert!(screen.contains("F9 is not available") && !screen.contains("w is not available"), "{screen}");
    harness.resize(80, 24).press("w");
    assert!(last_row(&harness).contains("w is not available"), "{}", last_row(&harness));
    harness.pass(Duration::from_secs(10));
    assert!(!harness.screen().contains("is not available"));
    harness.press("w");
    assert!(harness.screen().contains("is not available in this panel"), "{}", harness.screen());
    harness.press("2");
    assert!(!harness.screen().contains("is not available"), "it concerns the pane that is left");
    harness.type_text("w");
    assert!(!harness.screen().contains("is not available"), "a text field takes letters");
}

#[test]
fn clients_are_read_from_the_core_and_the_choice_is_sent() {
    let mut harness = workbench(80, 24);
    harness.press("v").wait_for("View as client");
    insta::assert_snapshot!("chooser-80x24", harness.screen());
    harness.press("/").type_text("dex").press("down up enter");
    assert!(harness.screen().contains("picked Client codex"), "{}", harness.screen());
}

#[test]
fn progress_is_shown_only_while_active() {
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let mut harness = workbench_with(Arc::clone(&client), notes(), &Settings::default(), 120, 36);
    client.emit(Event::Index(IndexProgress { indexed: 8_412, total: 14_639, done: false }));
    harness.wait_for("indexed 8,412 of 14,639");
    insta::assert_snapshot!("progress", harness.screen().lines().nth(34).unwrap_or_default().to_owned());
    client.emit(Event::Index(IndexProgress { indexed: 14_639, total: 14_639, done: true }));
    harness.wait_until("no progress", |screen| !screen.contains("indexed"));
}

#[test]
fn an_internal_error_does_not_stop_the_workbench() {
    let mut client = FakeClient::answering(|_| fits());
    client.broken = Some("describe");
    let mut harness = workbench_with(Arc::new(client), notes(), &Settings::default(), 120, 36);
    harness.press("enter").wait_for("describe: internal error");
    harness.press("esc 2").type_text("table");
    assert!(harness.screen().contains("pdf-tables"));
}

#[test]
fn the_log_shows_newest_last_and_unsafe_text_is_made_visible() {
    let log = RingBuffer::new();
    let push = |text: String| log.push(Level::WARN, SystemTime::UNIX_EPOCH, "skills_registry", text);
    (0..100).for_each(|at| push(format!("line {at} ")));
    push("a\x1b[31mb".to_owned());
    let settings = Settings { log: log.clone(), ..Settings::default() };
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let mut harness = workbench_with(client, notes(), &settings, 80, 24);
    harness.press("L");
    let screen = harness.screen();
    assert!(screen.contains("line 99") && !screen.contains("line 0 "), "{screen}");
    assert!(!screen.contains('\x1b') && screen.contains("[31mb"), "{screen}");
    harness.press("g");
    assert!(harness.screen().contains("line 0 "));
}

#[test]
fn frame_without_glyphs_is_ascii() {
    let settings =
        Settings { glyphs: GlyphSet::Ascii, theme: Some("mono".to_owned()), ..Settings::default() };
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let mut harness = workbench_with(client, NotePane::of(&["plain"]), &settings, 120, 36);
    for keys in ["f5", ":", "esc ?", "esc T", "esc v"] {
        harness.press(keys);
        let screen = harness.screen();
        let foreign: String = screen.chars().filter(|c| !c.is_ascii()).collect();
        assert!(foreign.is_empty(), "{keys}: {foreign}\n{screen}");
    }
}

#[test]
fn wide_characters_keep_the_box_of_an_overlay_straight() {
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let wide: Vec<&str> = vec![
        "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語";
        20
    ];
    let mut harness = workbench_with(client, NotePane::of(&wide), &Settings::default(), 81, 24);
    harness.press(":").type_text("日本語");
    let buffer = harness.buffer();
    let edges: Vec<u16> = (0..24)
        .filter_map(|y| (0..81).find(|x| ["│", "╭", "╰"].contains(&buffer[(*x, y)].symbol())))
        .collect();
    assert!(
        edges.len() > 10 && edges.windows(2).all(|pair| pair[0] == pair[1]),
        "{edges:?}\n{}",
        harness.screen()
    );
}

#[test]
fn splits_and_full_screen_reach_the_pane() {
    let mut harness = workbench(120, 36);
    harness.press("2").type_text(INTENT).press("esc");
    let before = harness.screen();
    harness.press(">");
    assert_ne!(harness.screen(), before);
    harness.press("<");
    assert_eq!(harness.screen(), before);
    harness.press("F");
    assert_ne!(harness.screen(), before);
    harness.press("F");
    assert_eq!(harness.screen(), before);
}
