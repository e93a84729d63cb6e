//! Sessions from the command line, as a script drives them: shapes, exit codes, and nothing lost between two calls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod binary;

use binary::Home;

fn session(home: &Home) -> String {
    let made = home.json(&["session", "new"]);
    made["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_loaded_by_one_call_is_composed_by_the_next() {
    let home = Home::with_skills();
    let id = session(&home);
    let receipt = home.json(&["session", "load", &id, "pdf-tables", "csv-tools"]);
    assert_eq!(receipt["active"][1]["name"], "csv-tools");
    let composed = home.run(&["session", "compose", &id]);
    assert!(composed.stdout.contains("<active_skills>"), "{}", composed.stdout);
    let read = home.run(&["session", "read", &id, "references/layout.md", "--skill", "pdf-tables"]);
    assert_eq!((read.code, read.stdout.as_str()), (0, "How tables are laid out.\n"));
    let payload = home.json(&["session", "export", &id, "--api", "openai-chat"]);
    assert_eq!(payload["tools"][1]["function"]["name"], "skills_load");
}

#[test]
fn exit_codes_say_what_went_wrong() {
    let home = Home::with_skills();
    let id = session(&home);
    let code = |args: &[&str]| home.run(args).code;
    assert_eq!(code(&["session", "show", "no-such-session"]), 3);
    assert_eq!(code(&["session", "load", &id, "nothing-like-it"]), 3);
    assert_eq!(code(&["session", "read", &id, "SKILL.md"]), 4, "nothing is loaded");
    assert_eq!(code(&["session", "load", &id, "pdf-tables"]), 0);
    assert_eq!(code(&["session", "read", &id, "../csv-tools/SKILL.md"]), 2);
    assert_eq!(code(&["session", "set", &id, "--cap", "1"]), 0);
    assert_eq!(code(&["session", "load", &id, "csv-tools", "--add"]), 4);
}

#[test]
fn a_script_asks_first_and_a_failed_one_is_a_finding_however_it_is_told() {
    let home = Home::with_skills();
    home.file("pdf-tables/scripts/fail.sh", "echo out; exit 7\n");
    let id = session(&home);
    home.run(&["session", "load", &id, "pdf-tables"]);
    let run = ["session", "run-script", &id, "scripts/fail.sh"];
    assert_eq!(home.run(&run).code, 5, "nobody can be asked here");
    let plain = home.run(&[&run[..], &["--yes"]].concat());
    let json = home.run(&[&run[..], &["--yes", "--json"]].concat());
    if plain.stderr.contains("isolat") {
        eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
        return;
    }
    assert_eq!((plain.code, plain.stdout.as_str()), (1, "out\n"), "{}", plain.stderr);
    assert_eq!((json.code, &json.json()["exit_code"]), (1, &serde_json::json!(7)));
}
