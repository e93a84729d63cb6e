//! What the command line does about stores and files that are not as they were: refusals, ways out, permissions, the audit
//! log's anchors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::binary::Answer;
use crate::cli_runs_fixture::RunsFixture;

const WORDS: [&str; 4] = ["run", "words", "--input", "text=a b"];

fn code(answer: &Answer) -> (i32, Value) {
    (answer.code, answer.error()["error"]["code"].clone())
}

#[test]
fn a_damaged_store_ends_commands_with_70() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let original = fs::read(fixture.store()).unwrap();
    for damaged in [
        [&b"XXXX"[..], &original[4..]].concat(),
        original[..60_000.min(original.len() / 2)].to_vec(),
        vec![7; 9_000],
        vec![],
    ] {
        fs::write(fixture.store(), &damaged).unwrap();
        for command in [&["runs", "list", "--json"][..], &["serve", "--port", "0", "--json"]] {
            let refused = fixture.run(command);
            assert_eq!(code(&refused), (70, json!("store_unavailable")), "{command:?} {}", refused.stderr);
        }
        let check = fixture.run(&["db", "check"]);
        assert_eq!(check.code, 1, "its finding is the damage");
        let output = check.stdout;
        assert!(output.matches("damaged:").count() == 1 && !output.contains("0 runs"), "{output}");
        assert!(fs::read(fixture.store()).unwrap() == damaged);
    }
    fs::write(fixture.store(), vec![7; 9_000]).unwrap();
    assert_eq!(fixture.run(&["db", "check", "--json"]).json()["damage"], json!(["file is not a database"]));
    fs::write(fixture.store(), []).unwrap();
    let refused = fixture.run(&["db", "reset", "--json"]);
    assert_ne!(refused.code, 0, "nothing is reset unasked");
    let done = fixture.json(&["db", "reset", "--yes"]);
    let backup = PathBuf::from(done["kept"][0].as_str().unwrap());
    assert_eq!(fs::metadata(backup).unwrap().len(), 0, "the last damage is kept");
    assert_eq!(fixture.json(&["runs", "list"])["runs"], json!([]));
}

#[test]
fn a_missing_or_replaced_store_is_refused() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let aside = fixture.store().with_extension("aside");
    fs::rename(fixture.store(), &aside).unwrap();
    let missing = fixture.run(&["runs", "list", "--json"]);
    assert_eq!(code(&missing), (70, json!("store_unavailable")));
    assert_eq!(missing.error()["error"]["reason"], json!({ "cause": "missing" }));
    let place = format!("sqlite:{}", fixture.store().display());
    let output = fixture.run(&["--store", &place, "runs", "list"]).stderr;
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    for command in ["db reset`", "db restore FILE`"] {
        assert!(output.contains(&format!("--store {place} {command}")), "{output}");
    }
    assert!(!fixture.store().exists());
    let nothing = fixture.run(&["db", "adopt", "--yes", "--json"]).error()["error"].clone();
    assert_eq!(nothing["reason"], json!({ "cause": "missing" }));
    assert!(!nothing["message"].as_str().unwrap().contains("--store-must-exist"), "{nothing}");
    let other = RunsFixture::new();
    assert_eq!(other.run(&WORDS).code, 0);
    fs::copy(other.store(), fixture.store()).unwrap();
    let replaced = fixture.run(&["runs", "list", "--json"]);
    assert_eq!(replaced.error()["error"]["reason"], json!({ "cause": "replaced" }));
    assert_eq!(fixture.run(&["db", "adopt", "--yes"]).code, 0);
    assert_eq!(fixture.json(&["runs", "list"])["runs"].as_array().unwrap().len(), 1);
    let nowhere = format!("sqlite:{}", fixture.store().with_extension("none").display());
    let absent = fixture.run(&["runs", "list", "--store", &nowhere, "--store-must-exist", "--json"]);
    assert_eq!(code(&absent), (70, json!("store_unavailable")));
}

#[test]
fn a_store_of_a_newer_version_ends_commands_with_70() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let connection = rusqlite::Connection::open(fixture.store()).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    for command in [&["runs", "list", "--json"][..], &["db", "check", "--json"]] {
        let refused = fixture.run(command);
        assert_eq!(code(&refused), (70, json!("store_unavailable")), "{command:?} {}", refused.stderr);
        assert_eq!(refused.error()["error"]["reason"], json!({ "cause": "newer" }));
    }
}

#[test]
fn a_backup_is_restored() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let backup = fixture.home.path().join("backup.db").display().to_string();
    assert_eq!(fixture.run(&["db", "backup", &backup]).code, 0);
    assert_eq!(fixture.run(&WORDS).code, 0);
    let refused = fixture.run(&["db", "restore", &backup, "--json"]);
    assert_ne!(refused.code, 0, "nothing is restored without a confirmation");
    assert_eq!(fixture.json(&["runs", "list"])["runs"].as_array().unwrap().len(), 2);
    let done = fixture.json(&["db", "restore", &backup, "--yes"]);
    assert!(PathBuf::from(done["kept"][0].as_str().unwrap()).exists());
    assert_eq!(fixture.json(&["runs", "list"])["runs"].as_array().unwrap().len(), 1);
    let none = fixture.run(&["db", "restore", "none.db", "--yes", "--json"]);
    assert_eq!(code(&none), (3, json!("not_found")));
}

#[test]
fn file_that_is_not_a_store_is_not_restored() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let folder = fixture.home.path();
    fs::write(folder.join("notes.txt"), "Not a database. ".repeat(100)).unwrap();
    rusqlite::Connection::open(folder.join("other.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    for (file, cause) in [("notes.txt", "damaged"), ("other.db", "unopenable")] {
        let path = folder.join(file).display().to_string();
        let refused = fixture.run(&["db", "restore", &path, "--yes", "--json"]);
        let error = refused.error();
        assert_eq!((refused.code, &error["error"]["reason"]["cause"]), (70, &json!(cause)), "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(&path) && message.contains("`skills db backup`"), "{message}");
        for useless in ["db check", "db reset", "--store"] {
            assert!(!message.contains(useless), "{message}");
        }
    }
    assert_eq!(fixture.json(&["runs", "list"])["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_folder_is_not_renamed_by_a_reset_or_a_restore() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let backup = fixture.home.path().join("backup.db").display().to_string();
    assert_eq!(fixture.run(&["db", "backup", &backup]).code, 0);
    let folder = fixture.home.path().join("data");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let store = format!("sqlite:{}", folder.display());
    for command in [&["db", "reset"][..], &["db", "restore", &backup]] {
        let refused = fixture.run(&[command, &["--store", &store, "--yes", "--json"]].concat());
        let error = refused.error();
        assert_eq!((refused.code, &error["error"]["reason"]["cause"]), (70, &json!("unopenable")), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("is a folder"), "{error}");
        assert_eq!(fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
    }
}

#[test]
fn a_store_in_use_is_not_reset() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let connection = rusqlite::Connection::open(fixture.store()).unwrap();
    connection.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0)).unwrap();
    let refused = fixture.run(&["db", "reset", "--yes", "--json"]);
    assert_eq!(refused.error()["error"]["reason"], json!({ "cause": "busy" }), "{}", refused.stderr);
    drop(connection);
    assert_eq!(fixture.run(&["db", "reset", "--yes"]).code, 0);
}

#[test]
fn a_store_is_migrated_to_another() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let from = format!("sqlite:{}", fixture.store().display());
    let to = format!("sqlite:{}", fixture.home.path().join("new.db").display());
    let migrate = ["db", "migrate", "--from", &from, "--store", &to, "--json"];
    let connection = rusqlite::Connection::open(fixture.store()).unwrap();
    connection.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0)).unwrap();
    let busy = fixture.run(&migrate);
    assert_eq!(code(&busy), (70, json!("store_unavailable")));
    assert_eq!(busy.error()["error"]["reason"], json!({ "cause": "busy" }), "{}", busy.stderr);
    let memory = fixture.run(&["db", "migrate", "--from", &from, "--store", "memory:", "--json"]);
    assert_eq!(code(&memory), (2, json!("invalid_request")));
    let damaged = fixture.home.path().join("damaged.db");
    let copied = fixture.run(&["db", "backup", damaged.to_str().unwrap()]);
    assert_eq!(copied.code, 0, "{}", copied.stderr);
    fs::OpenOptions::new().write(true).open(&damaged).unwrap().set_len(20_000).unwrap();
    let damaged = format!("sqlite:{}", damaged.display());
    let refused = fixture.run(&["db", "migrate", "--from", &damaged, "--store", &to, "--json"]);
    assert_eq!(code(&refused), (70, json!("store_unavailable")));
    assert_eq!(refused.error()["error"]["reason"], json!({ "cause": "damaged" }), "{}", refused.stderr);
    let message = refused.error()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("`skills --store {damaged} db check`")), "{message}");
    assert!(!message.contains(&to), "{message}");
    let crafted = fixture.home.path().join("crafted.db");
    assert_eq!(fixture.run(&["db", "backup", crafted.to_str().unwrap()]).code, 0);
    let changed = rusqlite::Connection::open(&crafted).unwrap();
    changed.execute_batch("CREATE TABLE \"documents\"\" WHERE 1=1 --\"(a)").unwrap();
    drop(changed);
    let crafted = format!("sqlite:{}", crafted.display());
    let refused = fixture.run(&["db", "migrate", "--from", &crafted, "--store", &to, "--json"]);
    assert_eq!(code(&refused), (70, json!("store_unavailable")));
    let message = refused.error()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("which no store has"), "{message}");
    assert!(!fixture.home.path().join("new.db").exists(), "a refused migration creates no store");
    drop(connection);
    let before = fixture.json(&["runs", "list"])["runs"].clone();
    let done = fixture.json(&migrate[..6]);
    assert_eq!((&done["from"], &done["to"]), (&json!(from), &json!(to)));
    let runs = done["tables"].as_array().unwrap().iter().find(|of| of["table"] == "runs").unwrap();
    assert_eq!(runs["rows"], 1);
    assert_eq!(fixture.json(&["runs", "list", "--store", &to])["runs"], before);
    assert_eq!(fixture.run(&["db", "check", "--store", &to]).code, 0);
    assert_eq!(code(&fixture.run(&migrate)), (4, json!("forbidden")), "it has runs now");
    let none = fixture.run(&["db", "migrate", "--from", "sqlite:none.db", "--store", &to, "--json"]);
    assert_eq!(code(&none), (3, json!("not_found")));
}

/// Commands that read the store, or act on what is in it.
const READING: [&[&str]; 18] = [
    &["db", "check"],
    &["db", "backup", "copy.db"],
    &["db", "purge", "--older-than", "1d", "--yes"],
    &["audit-purge", "--older-than", "1d", "--yes"],
    &["runs", "list"],
    &["runs", "show", "4f1c"],
    &["runs", "logs", "4f1c"],
    &["runs", "board"],
    &["runs", "workers"],
    &["runs", "views"],
    &["runs", "watch"],
    &["runs", "compare", "4f1c", "5a2d"],
    &["runs", "approve", "4f1c", "--yes"],
    &["runs", "cancel", "4f1c"],
    &["runs", "work"],
    &["governance"],
    &["session", "list"],
    &["session", "show", "4f1c"],
];

#[test]
fn reading_a_named_store_creates_none() {
    let fixture = RunsFixture::new();
    let typo = fixture.home.path().join("typo");
    let store = format!("sqlite:{}", typo.join("runs.db").display());
    let refused = |command: &[&str], answer: &Answer| {
        assert_eq!(answer.code, 70, "{command:?} {}", answer.stderr);
        assert_eq!(answer.error()["error"]["reason"]["cause"], "missing", "{command:?} {}", answer.stderr);
        assert!(!typo.exists(), "{command:?}");
    };
    for command in READING {
        refused(command, &fixture.run(&[&["--store", &store, "--json"], command].concat()));
        let mut named = fixture.command();
        named.env("SKILLS_STORE", &store).arg("--json").args(command);
        refused(command, &Answer::of(named.output().unwrap()));
    }
    let doctor = fixture.run(&["doctor", "--store", &store, "--json"]);
    assert!(doctor.stdout.contains("check the path"), "{}", doctor.stdout);
    assert_eq!(fixture.run(&["audit", "verify", "--store", &store]).code, 1, "the anchor cannot be checked");
    assert_eq!(fixture.run(&["db", "reset", "--yes", "--store", &store]).code, 3, "nothing to reset");
    assert!(!typo.exists());
    fixture.home.config(&format!("store: {store}\n"));
    refused(&["runs", "list"], &fixture.run(&["runs", "list", "--json"]));
    assert_eq!(fixture.run(&["session", "new"]).code, 0, "what writes creates it");
    assert_eq!(fixture.json(&["runs", "list"])["runs"], json!([]));
    let other = format!("sqlite:{}", typo.join("other.db").display());
    for _ in 0..2 {
        assert_eq!(fixture.json(&["db", "create", "--store", &other])["place"], other);
    }
    assert_eq!(fixture.run(&["db", "check", "--store", &other, "--store-must-exist"]).code, 0);
}

#[test]
fn reading_the_default_store_creates_none() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.json(&["runs", "list"])["runs"], json!([]));
    assert_eq!(fixture.json(&["session", "list"]), json!([]));
    for command in
        [&["runs", "board"][..], &["runs", "workers"], &["db", "purge", "--older-than", "1d", "--yes"]]
    {
        assert_eq!(fixture.run(command).code, 0, "{command:?}");
    }
    let unknown = fixture.run(&["runs", "show", "4f1c", "--json"]);
    assert_eq!(code(&unknown), (3, json!("not_found")));
    assert_eq!(fixture.run(&["db", "check", "--json"]).code, 70);
    fixture.run(&["doctor"]);
    assert!(!fixture.store().exists());
    assert_eq!(fixture.run(&WORDS).code, 0);
    assert_eq!(fixture.json(&["runs", "list"])["runs"].as_array().unwrap().len(), 1);
    fs::remove_file(fixture.store()).unwrap();
    assert_eq!(
        code(&fixture.run(&["runs", "list", "--json"])),
        (70, json!("store_unavailable")),
        "it was there"
    );
}

/// Every file and folder of a home with its permissions.
fn modes(folder: &Path, found: &mut Vec<(PathBuf, u32)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        found.push((entry.path(), metadata.permissions().mode() & 0o777));
        if metadata.is_dir() {
            modes(&entry.path(), found);
        }
    }
}

#[test]
fn files_are_private_under_every_umask() {
    for umask in ["000", "022", "077"] {
        let fixture = RunsFixture::new();
        let call = |args: &[&str]| {
            let unwrapped = fixture.command();
            let mut command = Command::new("sh");
            command
                .arg("-c")
                .arg(format!("umask {umask} && exec \"$0\" \"$@\""))
                .arg(unwrapped.get_program());
            command.arg("--root").arg(fixture.home.skills()).args(args).env_clear();
            command.envs(unwrapped.get_envs().filter_map(|(name, value)| Some((name, value?))));
            if let Some(folder) = unwrapped.get_current_dir() {
                command.current_dir(folder);
            }
            Answer::of(command.output().unwrap())
        };
        let ran = call(&WORDS);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(call(&["session", "new"]).code, 0);
        let copy = fixture.home.path().join("copy.db");
        assert_eq!(call(&["db", "backup", copy.to_str().unwrap()]).code, 0);
        assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
        let own = fixture.home.path().join("home");
        let mut found = Vec::new();
        for part in [".local/share/skill-workbench", ".local/state/skill-workbench", ".cache/skill-workbench"]
        {
            modes(&own.join(part), &mut found);
            found.push((own.join(part), fs::metadata(own.join(part)).unwrap().permissions().mode() & 0o777));
        }
        assert!(found.iter().any(|(path, _)| path.ends_with("audit/audit.jsonl")), "{found:?}");
        assert!(found.iter().any(|(path, _)| path.ends_with("skills.log")), "{found:?}");
        // Examples that ship with the program contain no user data, and are in a private directory.
        found.retain(|(path, _)| {
            !path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("shipped"))
        });
        for (path, mode) in found {
            assert_eq!(mode & 0o077, 0, "umask {umask}: {} is {mode:o}", path.display());
        }
    }
}

#[test]
fn own_files_of_earlier_versions_are_restricted() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    let data = fixture.home.path().join("home/.local/share/skill-workbench");
    let log = fixture.home.path().join("home/.local/state/skill-workbench/skills.log");
    let store = data.join("runs.db");
    for (path, mode) in [(&data, 0o755), (&store, 0o644), (&log, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(fixture.run(&WORDS).code, 0);
    for (path, mode) in [(&data, 0o700), (&store, 0o600), (&log, 0o600)] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
}

#[test]
fn truncated_audit_log_is_detected_by_file_and_store() {
    let fixture = RunsFixture::new();
    assert_eq!(fixture.run(&WORDS).code, 0);
    assert_eq!(fixture.run(&WORDS).code, 0);
    let audit = fixture.home.path().join("home/.local/share/skill-workbench/audit");
    let log = audit.join("audit.jsonl");
    let report = fixture.json(&["audit", "verify"]);
    let places: Vec<_> =
        report["anchors"].as_array().unwrap().iter().map(|a| (&a["place"], &a["anchor"]["seq"])).collect();
    assert_eq!(places, [(&json!("file"), &report["last"]), (&json!("store"), &report["last"])]);
    let original = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = original.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n") + "\n";
    let edited = original.replacen("run.completed", "run.failed", 9);
    for text in [&cut, &edited] {
        fs::write(&log, text).unwrap();
        let found = fixture.run(&["audit", "verify", "--json"]);
        assert_eq!(found.code, 1, "{}", found.stdout);
        assert!(!found.json()["broken"].is_null());
    }
    fs::write(&log, &cut).unwrap();
    fs::remove_file(audit.join("audit.anchor")).unwrap();
    let found = fixture.run(&["audit", "verify", "--json"]);
    assert_eq!(found.code, 1, "the store remembers: {}", found.stdout);
    assert_eq!(fs::read_to_string(&log).unwrap(), cut, "a verification does not write");
    fs::write(&log, &original).unwrap();
    assert_eq!(fixture.run(&["audit", "verify"]).code, 0);
    fs::write(&log, &cut).unwrap();
    let store = fixture.home.path().join("home/.local/share/skill-workbench/runs.db");
    fs::rename(&store, store.with_extension("away")).unwrap();
    let found = fixture.run(&["audit", "verify", "--json"]);
    assert_eq!(found.code, 1, "the anchor of a missing store is not checked: {}", found.stdout);
    assert!(found.json()["unchecked"].is_string());
}
