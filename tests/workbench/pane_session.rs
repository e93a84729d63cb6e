//! The session's pane over the real core and the shipped skills: what a presenter presses and sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use skills_api::{CoreParts, Local, SessionClient as _, SettingsChange, SharedClient, SharedSessionClient};
use skills_config::{Config, Env, GlyphSet};
use skills_sandbox::{Level, Sandbox, Setup};
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::panes::session::SessionPane;

struct Bench {
    screen: Harness,
    home: tempfile::TempDir,
    /// The core under the screen, as another process would use it.
    core: SharedSessionClient,
}

fn bench(width: u16, height: u16) -> Bench {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::defaults(home.path(), &Env::at(home.path()));
    config.demo = true;
    config.store = Some("memory:".to_owned());
    let (mut screen, core) = screen(Arc::new(Local::open(config).unwrap()), (width, height));
    screen.wait_for("orchestrator 21");
    Bench { screen, home, core }
}

fn screen(local: Arc<Local>, size: (u16, u16)) -> (Harness, SharedSessionClient) {
    let client: SharedClient = local.clone();
    let sessions: SharedSessionClient = local;
    let settings =
        Settings { theme: Some("dark".to_owned()), glyphs: GlyphSet::Unicode, ..Settings::default() };
    let panes = vec![Box::new(SessionPane::new()) as _];
    let screen = Harness::with_sessions(client, Some(sessions.clone()), panes, &settings, size).unwrap();
    (screen, sessions)
}

#[test]
fn skill_loaded_by_fuzzy_letters_is_in_the_next_call() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("c l").type_text("csv-profile").press("enter");
    screen.wait_for("<active_skills>").wait_for("1 of 8").wait_for("csv-profile body");
    screen.press("d").wait_for("Difference").wait_for("+ <active_skills>");
    screen.press("d tab").wait_for("L1").wait_for("L2").wait_for("append-only");
}

#[test]
fn levels_are_side_by_side_and_the_request_complete() {
    let mut bench = bench(140, 40);
    let screen = &mut bench.screen;
    screen.press("l").type_text("json-diff").press("enter").wait_for("1 of 8");
    screen.press("]").wait_for("L1 in every call").wait_for("L2 once loaded").wait_for("L3 when read");
    screen.press("]").wait_for("max_tokens");
    screen.press("]").wait_for("append-only").wait_for("skills.load");
}

#[test]
fn file_is_read_and_script_confirmation_starts_on_no() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen.press("r").wait_for("Read a file of csv-profile").press("enter");
    screen.wait_for("skills.read");
    screen.press("x").wait_for("Run a script of csv-profile").press("enter").wait_for("Cancel");
    let dialog = screen.screen();
    for expected in ["Run a script", "isolation", "args", "files", "Review"] {
        assert!(dialog.contains(expected), "{expected} in {dialog}");
    }
    screen.press("enter").wait_until("the dialog is gone", |text| !text.contains("Cancel"));
    assert!(!screen.screen().contains("skills.run_script"));
}

#[test]
fn a_script_runs_only_after_its_review() {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::defaults(home.path(), &Env::at(home.path()));
    config.demo = true;
    config.store = Some("memory:".to_owned());
    let helper = env!("CARGO_BIN_EXE_skills").into();
    let sandbox = Sandbox::with(Setup { helper, bubblewrap: None, ..Setup::of_this_program() });
    if sandbox.report().level < Level::Partial {
        eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
        return;
    }
    let local = Local::open(config).unwrap().with_sandbox(sandbox);
    let (mut screen, core) = screen(Arc::new(local), (120, 36));
    screen.wait_for("orchestrator 21");
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen.press("x").wait_for("Run a script of csv-profile").press("enter").wait_for("Cancel");
    screen.press("tab tab").type_text("--help").press("ctrl-s");
    screen.wait_for("Run this script?").wait_for("\"--help\"").wait_for("digest");
    screen.press("enter").wait_until("the review is gone", |text| !text.contains("Cancel"));
    let ran = |screen: &Harness| screen.screen().contains("exited with");
    assert!(!ran(&screen), "no has the focus");
    screen.press("x").wait_for("Run a script of csv-profile").press("enter").wait_for("Cancel");
    screen.wait_for("--help").press("ctrl-s").wait_for("Run this script?").press("ctrl-s");
    screen.wait_for("exited with");
    let transcript = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let latest = core.sessions(1).await.unwrap().remove(0);
        core.session(&latest.session_id).await.unwrap().transcript
    });
    assert_eq!(transcript.len(), 4, "the load, two reviews and one run");
}

#[test]
fn message_is_sent_and_in_the_transcript() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("s").wait_for("Append a message").type_text("profile the orders").press("ctrl-s");
    screen.wait_for("user  profile the orders");
    screen.press("] ]").wait_for("profile the orders");
    screen.wait_for("\"role\": \"user\"");
}

#[test]
fn figures_are_not_truncated_in_a_narrow_terminal() {
    let mut bench = bench(80, 24);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    let seen = screen.screen();
    assert!(seen.contains("21 skills") && seen.contains("of 200"), "{seen}");
}

#[test]
fn skills_are_reordered_and_unloaded() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    for skill in ["csv-profile", "json-diff"] {
        screen.press("l").type_text(skill).press("enter").wait_for(skill);
        screen.wait_until("loaded", |text| text.contains("of 8") && !text.contains("Load a skill"));
    }
    screen.wait_for("2 of 8").wait_for("the later one wins");
    screen.press("K").wait_until("different order", |text| {
        let at = |name: &str| text.find(name).unwrap_or(usize::MAX);
        at("1 json-diff") < at("2 csv-profile")
    });
    screen.press("u").wait_for("1 of 8");
}

#[test]
fn reordering_keeps_skills_loaded_by_other_processes() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    for skill in ["csv-profile", "json-diff"] {
        screen.press("l").type_text(skill).press("enter").wait_for(skill);
        screen.wait_until("loaded", |text| text.contains("of 8") && !text.contains("Load a skill"));
    }
    screen.wait_for("2 of 8");
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    elsewhere.block_on(async {
        let id = bench.core.sessions(1).await.unwrap()[0].session_id.clone();
        let load = serde_json::json!({"names": ["log-merge"], "mode": "add"});
        bench.core.call_tool(&id, "skills.load", load, None).await.unwrap().result.unwrap();
    });
    screen.press("K").wait_until("the third one, and another order", |text| {
        let at = |name: &str| text.find(name).unwrap_or(usize::MAX);
        text.contains("3 of 8") && at("1 json-diff") < at("2 csv-profile") && text.contains("3 log-merge")
    });
}

#[test]
fn changes_of_another_process_appear_with_their_source() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let act = |tool: &str, names: &[&str]| {
        elsewhere.block_on(async {
            let id = bench.core.sessions(1).await.unwrap()[0].session_id.clone();
            let arguments = match tool {
                "skills.load" => serde_json::json!({"names": names, "mode": "add"}),
                _ => serde_json::json!({"names": names}),
            };
            bench.core.call_tool(&id, tool, arguments, None).await.unwrap().result.unwrap();
        });
    };
    let look = std::time::Duration::from_millis(2_100);
    // The first check determines the newest change: it was made here and is not announced.
    screen.pass(look).pass(look);
    assert!(!screen.screen().contains("changed by another process"), "{}", screen.screen());
    act("skills.load", &["log-merge"]);
    screen
        .pass(look)
        .wait_for("changed by another process: +log-merge")
        .wait_for("2 of 8")
        .wait_for("2 log-merge");
    act("skills.unload", &["csv-profile"]);
    screen.pass(look).wait_for("changed by another process: -csv-profile").wait_for("1 of 8");
}

#[test]
fn level_one_shows_the_entries_and_unit_of_the_client() {
    let mut bench = bench(140, 40);
    let screen = &mut bench.screen;
    screen.press("l").type_text("json-diff").press("enter").wait_for("1 of 8");
    screen.press("]").wait_for("L1 in every call").wait_for("all 21: ").wait_for("complete catalog");
    screen.press("v").wait_for("Claude Code").press("down down enter").wait_for("as codex");
    screen.wait_for("tokens: o200k").wait_for("of 4,000 tok");
}

#[test]
fn new_session_dialog_shows_the_inherited_settings() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("v").wait_for("Claude Code").press("down down enter").wait_for("as codex");
    screen.press("n").wait_for("New session").wait_for("same settings").wait_for("default settings");
    screen.press("down enter").wait_for("complete catalog");
    screen.press("v").wait_for("Claude Code").press("down down enter").wait_for("as codex");
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen
        .press("n")
        .wait_for("same settings")
        .press("enter")
        .wait_for("no skills loaded")
        .wait_for("as codex");
}

#[test]
fn narrow_session_has_one_column() {
    let mut bench = bench(60, 20);
    let screen = &mut bench.screen;
    let seen = screen.screen();
    assert!(seen.contains("Active") || seen.contains("Model context"), "{seen}");
    screen.press("tab");
    assert!(screen.screen().lines().all(|line| line.chars().count() <= 60));
}

#[test]
fn session_is_identified_and_exported_without_overwriting() {
    let mut bench = bench(120, 36);
    let out = bench.home.path().join("out.json");
    let path = out.to_string_lossy().into_owned();
    let screen = &mut bench.screen;
    screen.wait_for("Model context");
    screen.press("s").wait_for("Append a message").type_text("profile the orders").press("ctrl-s");
    screen.wait_for("user  profile the orders");
    screen.press("E").wait_for("Export the session").wait_for("sizes").wait_for("openai-chat");
    screen.press("tab tab").type_text(&path).press("ctrl-s").wait_for("wrote");
    let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(written["messages"][0]["role"], "user");
    screen.press("E").wait_for("Export the session");
    screen.press("tab tab").type_text(&path).press("ctrl-s").wait_for("already exists");
    screen.press("esc enter").wait_until("the dialog is gone", |text| !text.contains("Export"));
    screen.press("Y").wait_for("Copy the session as").wait_for("skills session show").press("esc");
    screen.press("o").wait_for("Open a session").wait_for("1 entry, created");
}

#[test]
fn invalid_request_shows_its_remedy_while_it_applies() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen.press("] ]").wait_for("max_tokens").wait_for("require:");
    screen.press("n").wait_for("there are no messages");
    screen.press("s").wait_for("Append a message").type_text("profile the orders").press("ctrl-s");
    screen.wait_until("nothing is objected to", |text| {
        text.contains("\"role\": \"user\"") && !text.contains("require:")
    });
    screen.press("l").type_text("csv-profile").press("enter").wait_for("tool_use");
    assert!(!screen.screen().contains("require:"));
    screen.press("tab tab enter").wait_for("openai-responses");
}

#[test]
fn arguments_of_a_postponed_script_are_kept() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen.press("x").wait_for("Run a script of csv-profile").press("enter").wait_for("Cancel");
    screen.press("tab tab").type_text("--top 3").press("esc").press("enter");
    screen.wait_until("the dialog is gone", |text| !text.contains("Cancel"));
    screen.press("x").wait_for("Run a script of csv-profile").press("enter").wait_for("Cancel");
    screen.wait_for("--top 3");
}

#[test]
fn the_levels_of_a_skill_can_be_read_in_a_narrow_terminal() {
    let mut bench = bench(80, 24);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen.press("]").wait_for("L2 once loaded").wait_for("L3 when read");
    let seen = screen.screen();
    let row = |name: &str| seen.lines().position(|line| line.contains(name)).unwrap_or_default();
    let (first, body, last) = (row("L1 in every"), row("L2 once"), row("L3 when"));
    assert!(body - first >= 3 && last - body >= 6, "{seen}");
    assert!(seen.contains("tok  "), "{seen}");
}

#[test]
fn unloaded_skill_has_no_levels() {
    let mut bench = bench(120, 36);
    let screen = &mut bench.screen;
    screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
    screen.press("]").wait_for("L2 once loaded");
    screen.press("u").wait_for("no skills loaded").wait_for("load a skill to see its three levels");
    assert!(!screen.screen().contains("L2 once loaded"), "{}", screen.screen());
    screen.press("l").type_text("json-diff").press("enter").wait_for("1 of 8").wait_for("L2 once loaded");
    screen.press("n").wait_for("load a skill to see its three levels");
}

#[test]
fn truncated_descriptions_are_counted_since_the_last_call() {
    for (width, height) in [(120, 40), (80, 24)] {
        let mut bench = bench(width, height);
        let screen = &mut bench.screen;
        screen.press("c").wait_for("call recorded");
        screen.wait_until("the recorded call", |text| !text.contains("no recorded call"));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let id = bench.core.sessions(1).await.unwrap()[0].session_id.clone();
            let client = Some("codex".to_owned());
            let change = SettingsChange { client, window: Some(20_000), ..SettingsChange::default() };
            bench.core.configure_session(&id, change).await.unwrap();
        });
        screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8").wait_for("as codex");
        screen.wait_for("21 truncated: ");
        if height > 24 {
            screen.wait_until("both places say it", |text| text.matches("21 truncated").count() == 2);
        }
        screen.press("d").wait_for("21 entries truncated");
    }
}

#[test]
fn export_dialog_shows_the_errors_of_the_service() {
    for (width, height) in [(120, 36), (80, 24)] {
        let mut bench = bench(width, height);
        let screen = &mut bench.screen;
        screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
        screen.press("E").wait_for("Export the session").wait_for("note");
        screen.wait_for("require:").wait_for("Export");
    }
}

/// A core with its store in `home`, over these roots.
fn config(home: &Path, roots: &[PathBuf]) -> Config {
    let mut config = Config::defaults(home, &Env::at(home));
    config.argument_roots = roots.to_vec();
    config
}

fn bundle(root: &Path, name: &str, body: &str) {
    let folder = root.join(name);
    std::fs::create_dir_all(folder.join("references")).unwrap();
    std::fs::write(folder.join("references/rules.md"), "the rules\n").unwrap();
    let text = format!("---\nname: {name}\ndescription: Does {name} things. Use for {name}.\n---\n{body}\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// The workbench over a root of its own, in a session that has `name` of another root loaded, or none.
fn project(size: (u16, u16), loaded: Option<&str>) -> (Bench, PathBuf, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let (ours, theirs) = (home.path().join("ours"), home.path().join("theirs"));
    bundle(&ours, "beta", "# Beta");
    bundle(&theirs, "alpha", "# Alpha once");
    if let Some(name) = loaded {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let config = config(home.path(), std::slice::from_ref(&theirs));
            let core = Local::open_once(config, CoreParts::Catalog).await.unwrap();
            let id = core.new_session(SettingsChange::default()).await.unwrap().session_id;
            let load = serde_json::json!({"names": [name]});
            core.call_tool(&id, "skills.load", load, None).await.unwrap().result.unwrap();
        });
    }
    let local = Arc::new(Local::open(config(home.path(), std::slice::from_ref(&ours))).unwrap());
    let (screen, core) = screen(local, size);
    (Bench { screen, home, core }, ours, theirs)
}

#[test]
fn a_skill_of_another_project_is_readable() {
    let (mut bench, _, theirs) = project((120, 36), Some("alpha"));
    let screen = &mut bench.screen;
    screen.wait_for("1 alpha").wait_for("not in these roots; the loaded");
    assert!(!screen.screen().contains("changed on disk"), "{}", screen.screen());
    screen.press("]").wait_for("no entry: not in").wait_for("# Alpha once");
    screen.wait_for("references/rules.md");
    screen.press("r").wait_for("Read a file of alpha").press("enter").wait_for("skills.read");
    screen.press("x").wait_for("alpha has no scripts");
    screen.press("K").wait_for("reordering reloads all skills, and alpha cannot be");
    let look = std::time::Duration::from_millis(2_100);
    bundle(&theirs, "alpha", "# Another");
    screen.pass(look).wait_for("changed on disk").wait_for("# Alpha once");
    std::fs::remove_file(theirs.join("alpha/SKILL.md")).unwrap();
    screen.pass(look).wait_for("file does not exist");
    screen.press("e").wait_for("its SKILL.md was deleted; using");
    std::fs::remove_dir_all(&theirs).unwrap();
    screen.pass(look).wait_for("folder does not exist").wait_for("not known");
    screen.press("r").wait_for("its folder was deleted; using");
    assert!(screen.screen().contains("# Alpha once"), "{}", screen.screen());
    assert!(!screen.screen().contains("counting"), "{}", screen.screen());
}

#[test]
fn edited_file_is_marked_and_reloaded_by_a_key() {
    for size in [(120, 36), (80, 24)] {
        let (mut bench, ours, _) = project(size, None);
        let screen = &mut bench.screen;
        screen.press("l").type_text("beta").wait_for("Does beta things");
        assert!(!screen.screen().contains('●'), "nothing is set: {}", screen.screen());
        screen.press("enter").wait_for("1 of 8").wait_for("1 beta");
        assert!(!screen.screen().contains('✎'), "{}", screen.screen());
        bundle(&ours, "beta", "# Beta two");
        screen.wait_for("✎").wait_for("changed on disk");
        screen.press("l").wait_for("reload: changed on disk").type_text("beta").press("enter");
        screen.wait_until("what is there now is loaded", |text| !text.contains('✎'));
        screen.press("tab").wait_for("Beta two");
        // The content of the folder is counted again, and counting ends.
        screen.press("]").wait_for("L3 when read");
        std::fs::write(ours.join("beta/references/more.md"), "more\n").unwrap();
        bundle(&ours, "beta", "# Third");
        screen.wait_for("✎").wait_for("more.md");
    }
}

#[test]
fn body_placement_is_shown_and_result_bodies_readable() {
    for (width, height) in [(120, 40), (80, 24)] {
        let mut bench = bench(width, height);
        let screen = &mut bench.screen;
        screen.wait_for("skill bodies in the instructions (top-level)");
        let elsewhere = tokio::runtime::Runtime::new().unwrap();
        elsewhere.block_on(async {
            let id = bench.core.sessions(1).await.unwrap()[0].session_id.clone();
            let change = SettingsChange {
                instructions: Some("tool-result".parse().unwrap()),
                ..SettingsChange::default()
            };
            bench.core.configure_session(&id, change).await.unwrap();
        });
        // The list to choose from is that of the catalog.
        screen.wait_for("21 skills");
        screen.press("l").type_text("csv-profile").press("enter").wait_for("1 of 8");
        screen.wait_for("skill bodies in tool results (tool-result)");
        let expected = screen.wait_until("counted", |text| {
            let row = text.lines().find(|line| line.contains("1 csv-profile")).unwrap_or_default();
            !row.contains('~') && !text.contains("composing")
        });
        let expected = expected.screen();
        let counted = |line: &str| line.contains("L2") && line.contains('▆');
        assert!(expected.lines().any(counted), "{expected}");
        // The selected skill is read in place.
        screen.press("enter").wait_for("csv-profile, the result of entry 1");
        screen.press("]").wait_for("L2 in a tool result");
    }
}
