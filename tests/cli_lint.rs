//! `skills lint`: findings, exit codes, formats, and `--fix` on a defect.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod binary;

use binary::Home;

const COLON: &str = "---\nname: notes\ndescription: Writes notes: short and long ones. Use when somebody asks for notes.\n---\n\n# Notes\n";

#[test]
fn findings_are_located_and_errors_fail() {
    let home = Home::empty();
    home.skill(
        "watcher",
        "description: Watches what a run writes and says when it is wrong.\n\
         metadata:\n  classification:\n    role: sidecar\n    invocation: direct",
        "# Watcher\n",
    );
    let answer = home.run(&["lint", "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let report = answer.json();
    assert_eq!(report["skills"], 1);
    let error = report["findings"].as_array().unwrap().iter().find(|f| f["severity"] == "error").unwrap();
    for key in
        ["skill_id", "location", "code", "severity", "field", "file", "span", "message", "help", "fixable"]
    {
        assert!(error.get(key).is_some(), "{key}: {error}");
    }
    assert_eq!(error["skill_id"], "watcher");
    assert_eq!(error["span"]["line"], 7);
    let text = home.run(&["lint"]).stdout;
    assert!(text.contains("invocation: direct") && text.contains("1 error"), "{text}");
    let github = home.run(&["lint", "--format", "github"]).stdout;
    assert!(
        github.lines().any(|line| line.starts_with("::error file=") && line.contains("line=7")),
        "{github}"
    );
}

#[test]
fn a_defect_is_fixed_and_then_clean() {
    let home = Home::empty();
    home.file("notes/SKILL.md", COLON);
    let file = home.skills().join("notes/SKILL.md");
    let before = home.json(&["lint"]);
    assert!(before["findings"].as_array().unwrap().iter().any(|f| f["fixable"] == true), "{before}");
    let fixed = home.run(&["lint", "--fix", file.to_str().unwrap()]);
    assert!(fixed.stdout.contains("notes"), "{}", fixed.stdout);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.ends_with("\n---\n\n# Notes\n") && text.contains("Writes notes: short and long ones."),
        "{text}"
    );
    let after = home.json(&["lint"]);
    assert!(after["findings"].as_array().unwrap().iter().all(|f| f["fixable"] == false), "{after}");
}

#[cfg(unix)]
#[test]
fn a_fix_keeps_the_permissions_and_what_it_need_not_touch() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::empty();
    home.file("notes/SKILL.md", COLON);
    let file = home.skills().join("notes/SKILL.md");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    home.run(&["lint", "--fix"]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let untouched = std::fs::metadata(&file).unwrap().modified().unwrap();
    home.run(&["lint", "--fix"]);
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), untouched);
}

#[test]
fn warnings_fail_only_when_they_are_denied() {
    let home = Home::empty();
    home.file("other-folder/SKILL.md", "---\nname: a-name\ndescription: Turns a table of a PDF file into rows of a spreadsheet. Use when a request names a PDF.\nlicense: MIT\n---\n\nRead [the layout](references/gone.md).\n");
    let report = home.json(&["lint"]);
    let severities: Vec<&str> =
        report["findings"].as_array().unwrap().iter().map(|f| f["severity"].as_str().unwrap()).collect();
    assert!(severities.contains(&"warning"), "{report}");
    if !severities.contains(&"error") {
        assert_eq!(home.run(&["lint"]).code, 0);
    }
    assert_eq!(home.run(&["lint", "--deny", "warnings"]).code, 1);
}

#[test]
fn a_path_that_is_not_there_exits_with_3() {
    let home = Home::empty();
    let answer = home.run(&["lint", "nowhere"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
}

#[test]
fn shadowed_copies_are_findings() {
    let home = Home::with_skills();
    let other = home.path().join("other");
    std::fs::create_dir_all(other.join("csv-tools")).unwrap();
    std::fs::write(
        other.join("csv-tools/SKILL.md"),
        "---\nname: csv-tools\ndescription: Reads CSV files in another way than the first one does.\n---\nx\n",
    )
    .unwrap();
    let report = home.run(&["--root", other.to_str().unwrap(), "lint", "--json"]).json();
    let shadowed = report["findings"].as_array().unwrap().iter().find(|f| f["code"] == "shadowed");
    assert!(shadowed.is_some(), "{report}");
}

#[test]
fn the_shipped_skills_are_clean() {
    let home = Home::empty();
    let answer = home.run_bare(&["--demo", "lint", "--deny", "warnings"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
}
