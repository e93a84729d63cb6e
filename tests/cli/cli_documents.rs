//! Generated documents: manual, completions, schema, settings, help.

use crate::binary;

use binary::Home;

#[test]
fn the_manual_has_the_exit_codes_and_every_command() {
    let home = Home::empty();
    let page = home.run_bare(&["man"]).stdout;
    assert!(page.contains("EXIT STATUS") && page.contains("internal error"), "{page}");
    let dir = home.path().join("man");
    let listed = home.run_bare(&["man", dir.to_str().unwrap()]).stdout;
    assert!(listed.lines().count() >= 14, "{listed}");
    assert!(dir.join("skills-discover.1").is_file());
}

#[test]
fn completions_contain_the_commands() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run_bare(&["completions", shell]).stdout;
        assert!(script.contains("discover") && script.contains("describe"), "{shell}");
    }
}

#[test]
fn the_schema_is_json_and_drift_is_named() {
    let home = Home::empty();
    let schema = home.run_bare(&["schema"]);
    let copy = home.path().join("schema.json");
    std::fs::write(&copy, &schema.stdout).unwrap();
    assert_eq!(home.run_bare(&["schema", "--check", copy.to_str().unwrap()]).code, 0);
    std::fs::write(&copy, schema.stdout.replace("description", "descripton")).unwrap();
    let drifted = home.run_bare(&["schema", "--check", copy.to_str().unwrap()]);
    assert_eq!(drifted.code, 1);
    assert!(drifted.stdout.contains("is out of date"), "{}", drifted.stdout);
}

#[test]
fn the_settings_file_is_written_by_the_editor_command() {
    let home = Home::empty();
    let path = home.run_bare(&["config", "path"]).stdout;
    let path = path.trim().to_owned();
    assert!(path.ends_with(".config/skill-workbench/config.yaml"), "{path}");
    let edited = home.run_bare_with(&["config", "edit"], &[("EDITOR", "true")]);
    assert_eq!(edited.code, 0, "{}", edited.stderr);
    assert!(std::path::Path::new(&path).is_file());
    assert_eq!(home.run_bare(&["config", "check"]).code, 0);
}

#[test]
fn help_lists_the_exit_codes() {
    let home = Home::empty();
    let help = home.run_bare(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("Exit codes:") && help.stdout.contains("doctor"), "{}", help.stdout);
}
