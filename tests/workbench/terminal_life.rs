//! The workbench in a real pseudo-terminal: first frame, sizes, rest, and giving the terminal back.
use crate::support;

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use skills_tui::pane::Pane;
use skills_tui::panes::discover::{Discover, History};
use skills_tui::{Settings, run_panes};
use support::answers::fits;
use support::fake_client::FakeClient;
use support::note_pane::NotePane;
use support::pty::Pty;

const CHILD: &str = "SKILLS_TEST_CHILD";

/// Not a test: the program that the tests below start in a terminal, this very binary.
#[test]
fn child_workbench() {
    let Ok(kind) = std::env::var(CHILD) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = NotePane::of(&["pdf-tables", "日本語のメモ と 👩‍💻 emoji │", "ascii ascii ascii  emoji │"]);
    notes.panics = kind == "panics";
    let settings = Settings { editor: std::env::var("SKILLS_TEST_EDITOR").ok(), ..Settings::default() };
    let client = Arc::new(FakeClient::answering(|_| fits()));
    let panes =
        |_: &_| -> Vec<Box<dyn Pane>> { vec![Box::new(notes), Box::new(Discover::new(History::default()))] };
    if let Err(error) = runtime.block_on(run_panes(client, None, panes, settings, None)) {
        panic!("{error}");
    }
    println!("left in peace");
}

fn command(kind: &str) -> CommandBuilder {
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["terminal_life::child_workbench", "--exact", "--nocapture"]);
    surroundings(&mut command, kind);
    command
}

fn surroundings(command: &mut CommandBuilder, kind: &str) {
    command.env(CHILD, kind);
    command.env("TERM", "xterm-256color");
    command.env("COLORTERM", "truecolor");
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"];
    for name in ["NO_COLOR", "COLORFGBG", "SKILLS_TEST_EDITOR"].into_iter().chain(desktop) {
        command.env_remove(name);
    }
}

/// The program itself, in a home of its own.
fn at_home(command: &mut CommandBuilder, home: &std::path::Path) {
    surroundings(command, "");
    command.env("HOME", home);
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    command.cwd(home);
}

fn started() -> Pty {
    let mut pty = Pty::spawn(command("plain"), 80, 24);
    pty.wait_for("pdf-tables").wait_for(": commands");
    pty
}

#[test]
fn first_frame_is_drawn_and_exit_restores_the_terminal() {
    let mut pty = started();
    assert!(pty.terminal().alternate_screen() && !pty.restored());
    pty.send("q");
    assert_eq!(pty.wait_for_end(), 0);
    assert!(pty.restored());
    assert!(pty.screen().contains("left in peace"));
}

#[test]
fn idle_workbench_writes_nothing_and_uses_no_cpu() {
    let mut pty = started();
    pty.rest(Duration::from_millis(400));
    let before = used(pty.pid());
    assert_eq!(pty.written_within(Duration::from_secs(2)), 0);
    if let (Some(before), Some(after)) = (before, used(pty.pid())) {
        assert!(after - before <= 1, "{} hundredths of a second", after - before);
    }
}

/// Processor time of a process in hundredths of a second, if `/proc` provides it.
fn used(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// Asserts that the workbench ends within a second; on a busy machine, within a second of its own processor time.
fn assert_ends(pty: &mut Pty, what: impl std::fmt::Display) -> Duration {
    const MAX_USED: u64 = 100;
    let before = used(pty.pid());
    let took = pty.end_within(Duration::from_secs(1)).or_else(|| {
        let after = used(pty.pid());
        let spent = after.unwrap_or_default().saturating_sub(before.unwrap_or_default());
        assert!(spent <= MAX_USED, "{what}: still running after {spent} hundredths of a second of its own");
        pty.end_within(Duration::from_secs(9))
    });
    took.unwrap_or_else(|| panic!("{what}: still running after ten seconds"))
}

#[test]
fn resizing_draws_again_and_a_tiny_window_recovers() {
    let mut pty = started();
    pty.resize(120, 30).wait_until("the wider frame", |pty| {
        let last = pty.terminal().rows(0, 120).nth(29).unwrap_or_default();
        last.trim_end().ends_with("? help") && last.trim_end().len() > 100
    });
    pty.resize(20, 5).wait_for("terminal too small");
    pty.resize(3, 1).rest(Duration::from_millis(100));
    pty.resize(80, 24).wait_for(": commands");
}

#[test]
fn wide_characters_keep_columns_straight() {
    let mut pty = started();
    let bar =
        |row: u16| (0..80).find(|x| pty.terminal().cell(row, *x).is_some_and(|cell| cell.contents() == "│"));
    assert!(bar(3).is_some());
    assert_eq!(bar(3), bar(4));
    pty.send("\x03");
    pty.wait_for_end();
}

#[test]
fn a_panic_restores_the_terminal_before_its_message() {
    let mut pty = Pty::spawn(command("panics"), 80, 24);
    pty.wait_for(": commands").send(" ");
    assert_ne!(pty.wait_for_end(), 0);
    assert!(pty.restored());
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    let (left, message_at) = (raw.rfind("\x1b[?1049l").unwrap(), raw.find("panics on purpose").unwrap());
    assert!(left < message_at, "the message comes on the main screen");
}

#[test]
fn termination_signal_ends_the_workbench() {
    for signal in ["TERM", "HUP"] {
        let mut pty = started();
        let pid = pty.pid().to_string();
        std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert_eq!(pty.wait_for_end(), 0, "{signal}");
        assert!(pty.restored(), "{signal}");
    }
}

/// The program itself over the public corpus, or over its own skills where that is not there.
fn workbench(home: &std::path::Path) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    match support::corpus::data("corpus", "corpus") {
        Some(corpus) => command.args([std::ffi::OsStr::new("--root"), corpus.as_os_str()]),
        None => command.args(["--demo"]),
    }
    at_home(&mut command, home);
    Pty::spawn(command, 120, 36)
}

/// What a command writes to a terminal with these variables.
fn terminal_output(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    command.args(arguments);
    at_home(&mut command, home.path());
    for name in [
        "TMUX",
        "STY",
        "SSH_CONNECTION",
        "SSH_TTY",
        "FORCE_HYPERLINK",
        "TERM_PROGRAM",
        "VTE_VERSION",
        "WT_SESSION",
        "KONSOLE_VERSION",
        "DOMTERM",
    ] {
        command.env_remove(name);
    }
    for (name, value) in variables {
        command.env(name, value);
    }
    let mut pty = Pty::spawn(command, 120, 36);
    assert_eq!(pty.wait_for_end(), 0, "{}", pty.screen());
    String::from_utf8_lossy(&pty.raw).into_owned()
}

#[test]
fn files_are_hyperlinks_where_the_terminal_supports_them() {
    let ghostty = ("TERM_PROGRAM", "ghostty");
    let path = ["config", "path"];
    let linked = |arguments: &[&str], variables: &[(&str, &str)]| {
        let text = terminal_output(arguments, variables);
        assert!(text.contains("config.yaml"), "{text:?}");
        text.contains("\x1b]8;;file:///")
    };
    assert!(linked(&path, &[ghostty]));
    assert!(linked(&path, &[("FORCE_HYPERLINK", "1")]));
    assert!(linked(&path, &[("SKILLS_HYPERLINKS", "true")]));
    for variables in [
        &[][..],
        &[ghostty, ("FORCE_HYPERLINK", "0")],
        &[ghostty, ("SKILLS_HYPERLINKS", "false")],
        &[ghostty, ("SKILLS_PLAIN", "1")],
        &[ghostty, ("TERM", "dumb")],
        &[ghostty, ("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")],
    ] {
        assert!(!linked(&path, variables), "{variables:?}");
    }
    assert!(!linked(&["--plain", "config", "path"], &[ghostty]));
}

#[test]
fn a_dumb_terminal_is_refused_with_the_alternative() {
    let home = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    command.args(["--demo"]);
    at_home(&mut command, home.path());
    command.env("TERM", "dumb");
    let mut pty = Pty::spawn(command, 120, 36);
    assert_eq!(pty.wait_for_end(), 2);
    assert!(pty.screen().contains("--plain`"), "{}", pty.screen());
}

/// Keys that move through a list and turn panes, with an escape sequence in pieces at their end.
fn burst() -> String {
    format!("{}\x1b[", "jjjk\x1b[B2\x1b1".repeat(400))
}

#[test]
fn a_terminal_without_a_size_is_drawn_on() {
    let mut pty = Pty::spawn(command("plain"), 0, 0);
    pty.wait_for("pdf-tables").wait_for(": commands").send("q");
    assert_eq!(pty.wait_for_end(), 0);
}

#[test]
fn closed_terminal_ends_the_workbench_under_any_backlog() {
    let home = tempfile::tempdir().unwrap();
    // The first start reads every file; the later ones find the cache.
    workbench(home.path())
        .wait_for("skills")
        .wait_until("the index", |pty| !pty.screen().contains("indexed"));
    let mut slowest = Duration::ZERO;
    for round in 0..50 {
        let mut pty = workbench(home.path());
        pty.wait_for(": commands");
        if round % 2 == 0 {
            pty.wait_for(" skills").rest(Duration::from_millis(100));
        }
        pty.press_for(&"j".repeat(250), Duration::from_millis(300)).send(&burst()).stop_reading();
        slowest = slowest.max(assert_ends(pty.hang_up(), format_args!("round {round}")));
    }
    eprintln!("the slowest of 50 took {slowest:?}");
}

#[test]
fn signal_ends_the_workbench_with_an_unread_terminal() {
    let home = tempfile::tempdir().unwrap();
    for signal in ["TERM", "HUP", "INT"] {
        let mut pty = workbench(home.path());
        pty.wait_for(": commands").send(&burst()).stop_reading();
        assert_ends(pty.send(&burst()).signal(signal), signal);
    }
}

#[test]
fn signal_ends_the_workbench_while_the_editor_runs() {
    let dir = tempfile::tempdir().unwrap();
    let editor = dir.path().join("vi");
    std::fs::write(&editor, "#!/bin/sh\necho editing\nread answer\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command("plain");
    command.env("SKILLS_TEST_EDITOR", &editor);
    let mut pty = Pty::spawn(command, 80, 24);
    pty.wait_for(": commands").send("d").wait_for("editing").signal("TERM");
    assert_eq!(pty.wait_for_end(), 0);
    assert!(pty.restored());
}

#[test]
fn closed_terminal_keeps_the_stored_state() {
    let home = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    command.args(["--root", home.path().to_str().unwrap()]);
    at_home(&mut command, home.path());
    let mut pty = Pty::spawn(command, 120, 36);
    pty.wait_for(": commands").send("4").wait_for("next call").send("s").wait_for("Append a message");
    pty.send("keep me\x13")
        .wait_for("keep me")
        .wait_until("the message", |pty| !pty.screen().contains("Append a message"));
    assert_ends(pty.send(&burst()).stop_reading().hang_up(), "with a message");
    let skills = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skills"));
        command.args(arguments).env("HOME", home.path()).current_dir(home.path());
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let listed: serde_json::Value = serde_json::from_str(&skills(&["session", "list", "--json"])).unwrap();
    let id = listed[0]["session_id"].as_str().unwrap().to_owned();
    assert!(skills(&["session", "show", &id, "--json"]).contains("keep me"));
    let workers: serde_json::Value = serde_json::from_str(&skills(&["runs", "workers", "--json"])).unwrap();
    assert_eq!(workers["workers"], serde_json::json!([]), "its worker is deregistered");
    skills(&["db", "check"]);
}

#[test]
fn suspend_restores_the_terminal_and_fg_resumes() {
    let mut shell = CommandBuilder::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    surroundings(&mut shell, "plain");
    shell.env("PS1", "shell> ");
    shell.env("CHILD", std::env::current_exe().unwrap());
    let mut pty = Pty::spawn(shell, 80, 24);
    pty.wait_for("shell>")
        .send("\"$CHILD\" terminal_life::child_workbench --exact --nocapture\r")
        .wait_for(": commands");
    pty.send("\x1a").wait_until("the shell", |pty| {
        !pty.terminal().alternate_screen() && pty.screen().contains("Stopped")
    });
    pty.send("echo still here\r")
        .wait_until("the shell's answer", |pty| pty.screen().matches("still here").count() > 1);
    pty.send("fg\r").wait_until("the workbench", |pty| {
        pty.terminal().alternate_screen() && pty.screen().contains(": commands")
    });
    pty.send("q").wait_for("left in peace").send("exit\r");
    pty.wait_for_end();
}

#[test]
fn the_editor_gets_the_terminal_and_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let editor = dir.path().join("vi");
    std::fs::write(&editor, "#!/bin/sh\necho \"editing $*\"\nread answer\necho \"$answer\" > \"$0.out\"\n")
        .unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command("plain");
    command.env("SKILLS_TEST_EDITOR", &editor);
    let mut pty = Pty::spawn(command, 80, 24);
    pty.wait_for(": commands").send("d").wait_for("editing +3 /skills/SKILL.md");
    assert!(pty.restored());
    pty.send("q q 2\r").wait_until("the workbench", |pty| {
        pty.terminal().alternate_screen() && pty.screen().contains(": commands")
    });
    assert_eq!(std::fs::read_to_string(dir.path().join("vi.out")).unwrap(), "q q 2\n");
    pty.send("q");
    assert_eq!(pty.wait_for_end(), 0);
}

#[test]
fn light_terminal_selects_the_light_theme_even_late() {
    const LIGHT: vt100::Color = vt100::Color::Rgb(0xfb, 0xf8, 0xf1);
    const DARK: vt100::Color = vt100::Color::Rgb(0x13, 0x15, 0x1a);
    let background = |pty: &Pty| pty.terminal().cell(10, 40).unwrap().bgcolor();
    let answer = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\";
    let queried = |pty: &Pty| pty.raw.windows(5).any(|bytes| bytes == b"\x1b]11;");
    let mut pty = Pty::spawn(command("plain"), 80, 24);
    pty.wait_until("the question", queried).send(&format!("\x1b[1;2R{answer}\x1b[?62;22c"));
    // On a busy machine this response is late, too.
    pty.wait_for(": commands").wait_until("the light theme", |pty| background(pty) == LIGHT);

    let mut pty = started();
    assert_eq!(background(&pty), DARK);
    pty.send(answer)
        .wait_until("the light theme", |pty| background(pty) == LIGHT)
        .send("2")
        .wait_for("Request");
    assert!(!pty.screen().contains("ffff"), "{}", pty.screen());
}

#[test]
fn terminal_with_wide_symbols_uses_ascii() {
    let mut command = command("plain");
    // Over SSH the workbench waits longer than a response takes on a busy machine.
    command.env("SSH_TTY", "/dev/pts/0");
    let mut pty = Pty::spawn(command, 80, 24);
    let queried = |pty: &Pty| pty.raw.windows(4).any(|bytes| bytes == b"\x1b[6n");
    pty.wait_until("the question", queried).send("\x1b[1;3R\x1b[?62;22c").wait_for(": commands");
    assert!(pty.screen().contains("##=- skills"), "{}", pty.screen());
}

#[test]
fn copying_uses_the_terminal_without_a_desktop() {
    let mut pty = started();
    pty.send("y").wait_for("copied the note through the terminal");
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(raw.contains("\x1b]52;c;cGRmLXRhYmxlcw=="), "pdf-tables in base64");
}

#[test]
fn missing_terminal_is_reported_with_an_alternative() {
    let started_at = Instant::now();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["terminal_life::child_workbench", "--exact", "--nocapture"])
        .env(CHILD, "plain")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("the workbench needs a terminal"), "{stderr}");
    assert!(started_at.elapsed() < Duration::from_secs(20));
}

#[test]
fn binary_starts_ranks_idles_and_exits() {
    let home = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    command.args(["--demo"]);
    at_home(&mut command, home.path());
    let mut pty = Pty::spawn(command, 120, 36);
    pty.wait_for("21 skills").wait_for("csv-profile");
    pty.send("2turn the table in this mail into a clean csv").wait_for("Why table-from-text");
    pty.wait_until("the index", |pty| !pty.screen().contains("indexed"));
    // A busy machine may draw late; a screen that never becomes idle fails.
    let rests = (0..5).any(|_| pty.written_within(Duration::from_secs(2)) == 0);
    assert!(rests, "{}", pty.screen());
    pty.send("\x1b").wait_for("? help").send(">q");
    assert_eq!(pty.wait_for_end(), 0);
    assert!(pty.restored());
    let state = home.path().join(".local/state/skill-workbench/workbench.yaml");
    let content = std::fs::read_to_string(state).unwrap();
    assert!(content.contains("discover: 2"), "{content}");
}

#[test]
fn a_damaged_store_is_reported_with_commands_for_it() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("g.db"), vec![7; 9_000]).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    command.args(["--demo", "--store", "sqlite:g.db"]);
    at_home(&mut command, home.path());
    let mut pty = Pty::spawn(command, 120, 36);
    pty.wait_for("csv-profile").send("5").wait_for("cannot open").send("q");
    assert_eq!(pty.wait_for_end(), 0);
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    let (_, printed) = raw.split_once("skills: cannot start a worker").unwrap_or_else(|| panic!("{raw}"));
    for command in ["restore FILE", "reset"] {
        assert!(printed.contains(&format!("g.db db {command}`")), "{printed}");
    }
}

#[test]
fn unattended_demonstration_ends_and_stores_nothing() {
    let home = tempfile::tempdir().unwrap();
    let play = |script: &str| {
        let file = home.path().join("demo.yaml");
        std::fs::write(&file, script).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
        command.args(["demo", "demo.yaml", "--auto", "0.2"]);
        at_home(&mut command, home.path());
        let mut pty = Pty::spawn(command, 120, 36);
        pty.wait_for("q Esc end script");
        let code = pty.wait_for_end();
        assert!(pty.restored());
        code
    };
    let session = "title: t\nsteps:\n- say: The session.\n  do: ['4', {until: available_skills}]\n- say: A message.\n  \
                   do: [s, {until: Append a message}, {type: hello}, ctrl-s, {until: user  hello}]\n";
    assert_eq!(play(session), 0);
    let data = home.path().join(".local/share/skill-workbench");
    let content = std::fs::read_dir(&data).map_or(0, |entries| {
        let content = |entry: &std::fs::DirEntry| {
            entry.file_name() == "audit" || entry.path().extension().is_some_and(|end| end == "db")
        };
        entries.flatten().filter(content).count()
    });
    assert_eq!(content, 0, "it plays on a store that ends with it");
}
