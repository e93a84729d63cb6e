//! Untrusted directories: special files do not block a command, files outside are not opened.
#![cfg(unix)]
use crate::binary;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use binary::Home;

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Five skills, and next to them special files with the names of main files.
fn home() -> (Home, Vec<UnixListener>) {
    let home = Home::with_skills();
    let at = |path: &str| home.skills().join(path);
    fifo(&at("a-fifo/SKILL.md"));
    fifo(&at("b-contract/skill.yaml"));
    fs::create_dir_all(at("c-folder/SKILL.md/inner")).unwrap();
    fs::create_dir_all(at("d-socket")).unwrap();
    let socket = UnixListener::bind(at("d-socket/SKILL.md")).unwrap();
    fs::create_dir_all(at("e-zero")).unwrap();
    symlink("/dev/zero", at("e-zero/SKILL.md")).unwrap();
    fs::create_dir_all(at("f-link")).unwrap();
    symlink("../a-fifo/SKILL.md", at("f-link/SKILL.md")).unwrap();
    fifo(&at("pdf-tables/scripts/run.py"));
    (home, vec![socket])
}

#[test]
fn non_regular_files_are_rejected_and_listed() {
    let (home, _open) = home();
    let answer = home.run(&["lint", "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let report = answer.json();
    let found = |id: &str| -> Vec<(String, String)> {
        let all = report["findings"].as_array().unwrap().iter().filter(|f| f["skill_id"] == id);
        let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
        all.map(|f| (text(&f["code"]), text(&f["message"]))).collect()
    };
    for id in ["a-fifo", "b-contract", "c-folder", "d-socket"] {
        let found = found(id);
        assert!(
            matches!(found.as_slice(), [(code, message)] if code == "unreadable" && message.contains("not a file")),
            "{id}: {found:?}"
        );
    }
    assert_eq!(found("c-folder")[0].1, "SKILL.md is a folder, not a file");
    assert_eq!(found("e-zero")[0].0, "link-leaves-root");
}

#[test]
fn every_command_ends_despite_non_regular_files() {
    let (home, _open) = home();
    fifo(&home.skills().join("golden.yaml"));
    for (args, code) in [
        (&["list"][..], 0),
        (&["discover", "extract tables from a pdf", "--explain"], 0),
        (&["describe", "pdf-tables"], 0),
        (&["lint"], 1),
        (&["lint", "--fix"], 1),
        (&["eval"], 2),
    ] {
        let answer = home.run(args);
        assert_eq!(answer.code, code, "{args:?}: {}{}", answer.stdout, answer.stderr);
    }
    let place = home.skills().join("a-fifo/SKILL.md");
    let answer = home.run_bare(&["lint", place.to_str().unwrap()]);
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.contains("error[unreadable]"), "{}", answer.stdout);
}

#[test]
fn a_refused_link_is_neither_shown_nor_repaired() {
    let home = Home::with_skills();
    let outside = home.path().join("outside.md");
    let secret = "---\nname: secret\ndescription: a secret: hunter2\n---\r\n";
    fs::write(&outside, secret).unwrap();
    fs::create_dir_all(home.skills().join("linked")).unwrap();
    symlink(&outside, home.skills().join("linked/SKILL.md")).unwrap();
    let answer = home.run(&["lint", "--fix"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stdout.contains("link-leaves-root"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("hunter2"), "{}", answer.stdout);
    assert_eq!(fs::read_to_string(&outside).unwrap(), secret);
}

#[test]
fn a_link_that_is_named_is_not_repaired_outside_its_folder() {
    let home = Home::with_skills();
    let outside = home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let other =
        "---\r\nname: other\r\ndescription: Reads what is elsewhere. Use when asked for it.\r\n---\r\nx\r\n";
    fs::write(outside.join("SKILL.md"), other).unwrap();
    fs::create_dir(home.skills().join("linked-file")).unwrap();
    symlink(outside.join("SKILL.md"), home.skills().join("linked-file/SKILL.md")).unwrap();
    symlink("../outside", home.skills().join("linked-folder")).unwrap();
    home.file("own/SKILL.md", other.replace("other", "own"));
    for path in ["linked-file/SKILL.md", "linked-folder", "linked-folder/SKILL.md"] {
        let link = home.skills().join(path);
        let own = home.skills().join("own/SKILL.md");
        let answer =
            home.run_bare(&["lint", "--json", "--fix", link.to_str().unwrap(), own.to_str().unwrap()]);
        assert_eq!(answer.code, 1, "{path}: {}", answer.stderr);
        let report = answer.json();
        let refused = report["findings"].as_array().unwrap().iter().find(|f| f["code"] == "link-leaves-root");
        assert_eq!(refused.unwrap()["location"], link.to_str().unwrap(), "{report}");
        assert_eq!(fs::read_to_string(outside.join("SKILL.md")).unwrap(), other, "{path}");
    }
    let own = fs::read_to_string(home.skills().join("own/SKILL.md")).unwrap();
    assert!(!own.contains('\r'), "other files are repaired");
}

#[test]
fn golden_queries_are_not_written_through_a_link_out_of_the_project() {
    let home = Home::with_skills();
    let (outside, work) = (home.path().join("outside.yaml"), home.path().join("work"));
    let text = "- query: read a pdf\n  expect: [pdf-tables]\n";
    fs::write(&outside, text).unwrap();
    fs::write(work.join(".skill-workbench.yaml"), "limit: 5\n").unwrap();
    symlink("../outside.yaml", work.join("golden.yaml")).unwrap();
    for args in [&["golden", "add", "another", "--none"][..], &["golden", "remove", "read a pdf"]] {
        let answer = home.run(args);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.stdout);
        assert!(answer.stderr.contains("symbolic link"), "{}", answer.stderr);
        assert_eq!(fs::read_to_string(&outside).unwrap(), text);
    }
}

#[test]
fn a_space_at_the_end_of_an_id_is_visible() {
    let home = Home::with_skills();
    let description = "description: Cleans and joins CSV files, and turns a table into rows.";
    home.skill("csv-tools ", description, "# CSV\n\nJoin, filter, clean.\n");
    let commands: [&[&str]; 3] = [&["list"], &["visibility"], &["discover", "clean and join csv files"]];
    for command in commands {
        let answer = home.run(command);
        assert!(answer.stdout.contains("csv-tools⟨U+0020⟩"), "{command:?}: {}", answer.stdout);
    }
}
