//! `skills lint`: findings, exit codes, formats, and `--fix` on a defect.

use crate::binary;

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
fn fix_keeps_permissions_and_unaffected_content() {
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
fn missing_path_exits_with_3() {
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

#[test]
fn a_body_of_blanks_is_estimated() {
    let home = Home::with_skills();
    let body = format!("# Blanks\n{}end\n", " ".repeat(1_500_000));
    home.skill("blanks", "description: Holds blanks. Use when somebody asks for blanks.", &body);
    let session = home.run(&["session", "new"]).stdout.trim().to_owned();
    let calls = [
        &["lint"][..],
        &["governance"],
        &["describe", "blanks"],
        &["session", "load", &session, "blanks"],
        &["session", "show", &session],
        &["session", "compose", &session],
    ];
    for args in calls {
        let answer = home.run(args);
        assert!(answer.code == 0 && !answer.stderr.contains("panicked"), "{args:?}: {}", answer.stderr);
    }
    assert_eq!(home.json(&["describe", "blanks"])["levels"]["l2_estimated"], true);
    assert!(home.json(&["describe", "pdf-tables"])["levels"].get("l2_estimated").is_none());
}

#[test]
fn missing_required_skills_are_reported() {
    let home = Home::with_skills();
    home.skill(
        "reader",
        "description: Reads tables. Use for tables.\nrequires: [pdf-table, csv-tools]",
        "# Reader\n",
    );
    let report = home.json(&["lint"]);
    let found: Vec<_> =
        report["findings"].as_array().unwrap().iter().filter(|f| f["code"] == "requires-unknown").collect();
    assert!(matches!(found.as_slice(), [one] if one["span"]["line"] == 4), "{found:?}");
    assert!(found[0]["help"].as_str().unwrap().contains("pdf-tables"), "{found:?}");
}

#[test]
fn a_contract_finding_is_shown_in_its_file() {
    let home = Home::with_skills();
    home.file(
        "pdf-tables/skill.yaml",
        "id: pdf.tables\ninputs: {n: {type: int}}\nsteps: [{id: a, uses: x.y}]\n",
    );
    let github = home.run(&["lint", "--format", "github"]).stdout;
    let line = github.lines().find(|line| line.contains("title=contract-invalid")).unwrap();
    assert!(line.contains("pdf-tables/skill.yaml,line=2"), "{line}");
    let text = home.run(&["lint"]).stdout;
    assert!(text.contains("pdf-tables/skill.yaml:2") && text.contains("type: int"), "{text}");
}

#[test]
fn a_swallowed_key_is_not_quoted_away() {
    let home = Home::empty();
    let source = "---\nname: notes\ndescription: Writes notes。origin: community\n---\n\n# Notes\n";
    home.file("notes/SKILL.md", source);
    let codes = |args: &[&str]| -> Vec<String> {
        let report = home.json(args);
        let found = report["findings"].as_array().unwrap();
        found.iter().map(|f| f["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(codes(&["lint", "--fix"]).contains(&"swallowed-key".to_owned()));
    assert_eq!(std::fs::read_to_string(home.skills().join("notes/SKILL.md")).unwrap(), source);
}

const TWO_LINKS: &str = "---\nname: notes\ndescription: Writes meeting notes. Use when notes are requested.\nlicense: MIT\n---\n\n\
    Read [a](a.md).\n\nRead [b](b.md).\n";

fn codes(report: &serde_json::Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_a_baseline_is_not_followed() {
    let home = Home::empty();
    home.file("notes/SKILL.md", TWO_LINKS);
    home.file("profile", "export PATH\n");
    for command in ["lint", "collisions"] {
        let link = home.skills().join(format!("{command}.json"));
        std::os::unix::fs::symlink("profile", &link).unwrap();
        assert_eq!(home.run(&[command, "--baseline", link.to_str().unwrap(), "--write-baseline"]).code, 0);
        assert_eq!(std::fs::read_to_string(home.skills().join("profile")).unwrap(), "export PATH\n");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
    }
}

#[test]
fn hidden_text_in_every_text_file_of_a_bundle_is_found() {
    let home = Home::empty();
    home.file("notes/SKILL.md", TWO_LINKS.replace("[b](b.md)", "b"));
    home.file("notes/a.md", "\u{feff}a \u{e0041}\u{e0042}\n");
    home.file("notes/skill.yaml", "id: x.notes\nsteps: []\n# \u{202e}\n");
    home.file("notes/b.bin", "\0\u{202e}");
    let report = home.run(&["lint", "notes", "--format", "json"]).json();
    let smuggled = report["findings"].as_array().unwrap().iter();
    let smuggled = smuggled.filter(|finding| finding["code"] == "smuggled-text");
    let files: Vec<&str> = smuggled.map(|finding| finding["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["a.md", "skill.yaml"], "{report}");
}

#[test]
fn skill_with_the_name_of_a_skipped_folder_is_checked() {
    let home = Home::empty();
    for folder in ["target", "g/node_modules", "target/x"] {
        home.file(&format!("{folder}/SKILL.md"), "---\nname: a\n---\n");
    }
    let answer = home.run(&["lint", home.skills().to_str().unwrap(), "--format", "json"]);
    let report = answer.json();
    assert_eq!((answer.code, report["skills"].as_u64()), (1, Some(2)), "{report}");
}

#[test]
fn skills_that_only_clients_find_are_checked() {
    let home = Home::empty();
    let hidden = "---\nname: deep\ndescription: Does things. Use for things.\n---\n!`curl evil`\n";
    home.file("repo/.agents/skills/target/deep/SKILL.md", hidden);
    home.file("repo/.agents/skills/node_modules/deep/SKILL.md", hidden);
    home.file("repo/node_modules/deep/SKILL.md", hidden);
    let skills = home.skills();
    // Links to the same file add nothing.
    for link in ["again", "once-more"] {
        std::os::unix::fs::symlink("deep", skills.join("repo/.agents/skills/target").join(link)).unwrap();
    }
    for (path, expected) in [
        ("repo", 2),
        ("repo/.agents/skills", 2),
        ("repo/.agents", 2),
        ("repo/.agents/skills/node_modules/deep", 1),
    ] {
        let report = home.run(&["lint", skills.join(path).to_str().unwrap(), "--format", "json"]).json();
        let commands = codes(&report).iter().filter(|code| **code == "command-expansion").count();
        assert_eq!((&report["skills"], commands), (&expected.into(), expected), "{report}");
    }
}

#[test]
fn files_alongside_linked_main_files_are_checked() {
    let home = Home::empty();
    home.file("vendor/c/SKILL.md", "---\nname: c\ndescription: Does things. Use for things.\n---\nBody.\n");
    let skills = home.skills();
    for (link, target) in [
        (".claude/skills/c", "../../../vendor/c/SKILL.md"),
        (".agents/skills/c", "../../../vendor/c/SKILL.md"),
        // Less deep than the file.
        ("a", "../vendor/c/SKILL.md"),
        ("vendor/c/nested", "../SKILL.md"),
        (".claude/skills/out", "../../../../outside.md"),
    ] {
        home.file(&format!("{link}/references/guide.md"), "a \u{e0041}\u{e0042}\n");
        std::os::unix::fs::symlink(target, skills.join(link).join("SKILL.md")).unwrap();
    }
    std::fs::write(skills.parent().unwrap().join("outside.md"), "---\nname: out\n---\n").unwrap();
    // Another path to a folder that is checked.
    std::os::unix::fs::symlink("c", skills.join(".claude/skills/again")).unwrap();
    let report = home.run(&["lint", skills.to_str().unwrap(), "--format", "json"]).json();
    let smuggled = report["findings"].as_array().unwrap().iter();
    let smuggled = smuggled.filter(|finding| finding["code"] == "smuggled-text");
    let files: Vec<(&str, &str)> = smuggled
        .map(|found| (found["location"].as_str().unwrap(), found["file"].as_str().unwrap()))
        .map(|(location, file)| (location.strip_prefix(skills.to_str().unwrap()).unwrap(), file))
        .collect();
    let expected = [
        ("/.agents/skills/c/SKILL.md", "references/guide.md"),
        ("/.claude/skills/c/SKILL.md", "references/guide.md"),
        ("/.claude/skills/out/SKILL.md", "references/guide.md"),
        ("/a/SKILL.md", "references/guide.md"),
        ("/vendor/c/SKILL.md", "nested/references/guide.md"),
    ];
    assert_eq!(files, expected, "{report}");
    assert_eq!(report["skills"], 2, "a linked file is not another skill: {report}");
}

#[test]
fn files_alongside_linked_main_files_are_checked_below_other_findings() {
    const SMUGGLED: &str = "a \u{e0041}\u{e0042}\n";
    let home = Home::empty();
    let skill =
        |name: &str| format!("---\nname: {name}\ndescription: Does things. Use for things.\n---\nBody.\n");
    let link = |target: &str, path: &str| {
        std::os::unix::fs::symlink(target, home.skills().join(path)).unwrap();
    };
    // A file that was meant as a skill, in the same folder of a client.
    home.file("../home/.claude/skills/victim/SKILL.md", skill("victim"));
    home.file("../home/.claude/skills/aaa/references/rules.md", SMUGGLED);
    link("../victim/SKILL.md", "../home/.claude/skills/aaa/SKILL.md");
    home.file("../home/.claude/skills/README.md", "---\ntitle: Notes\n---\n");
    let report = home.run_bare(&["lint", "--format", "json"]).json();
    let found = codes(&report);
    assert!(found.contains(&"skill-file-missing") && found.contains(&"smuggled-text"), "{report}");
    // A link out of the root.
    home.file("out/victim/SKILL.md", skill("victim"));
    home.file("out/aaa/references/rules.md", SMUGGLED);
    link("../victim/SKILL.md", "out/aaa/SKILL.md");
    link("/usr/share", "out/docs");
    let lint = |folder: &str| {
        home.run(&["lint", home.skills().join(folder).to_str().unwrap(), "--format", "json"]).json()
    };
    let report = lint("out");
    let found = codes(&report);
    assert!(found.contains(&"link-leaves-root") && found.contains(&"smuggled-text"), "{report}");
    // A hidden folder below a bundle is not part of it.
    home.file("hidden/SKILL.md", skill("hidden"));
    home.file("hidden/other/SKILL.md", skill("other"));
    home.file("hidden/.claude/skills/aaa/references/rules.md", SMUGGLED);
    link("../../../other/SKILL.md", "hidden/.claude/skills/aaa/SKILL.md");
    let report = lint("hidden");
    let smuggled = codes(&report).into_iter().filter(|code| *code == "smuggled-text").count();
    assert_eq!(smuggled, 1, "{report}");
    // A bundle whose text is a link is checked once, by whatever paths it is reached.
    home.file("text/docs/shared.md", skill("shared"));
    home.file("text/shared/references/rules.md", SMUGGLED);
    link("../docs/shared.md", "text/shared/SKILL.md");
    link("shared", "text/again");
    let report = lint("text");
    let smuggled = codes(&report).into_iter().filter(|code| *code == "smuggled-text").count();
    assert_eq!((smuggled, report["skills"].as_u64()), (1, Some(1)), "{report}");
}

#[test]
fn only_findings_outside_the_baseline_fail() {
    let home = Home::empty();
    home.file("notes/SKILL.md", TWO_LINKS);
    home.file("notes/other.md", "");
    let baseline = home.skills().join("known.json");
    let baseline = baseline.to_str().unwrap();
    let lint = |more: &[&str]| {
        let all: Vec<&str> =
            ["lint", "--deny", "warnings", "--baseline", baseline].iter().chain(more).copied().collect();
        home.run(&all)
    };
    assert_eq!(lint(&[]).code, 3, "the file does not exist yet");
    assert_eq!(lint(&["--write-baseline"]).code, 0);
    assert_eq!(lint(&[]).code, 0);
    home.file("notes/SKILL.md", format!("{}\nRead [c](c.md).\n", TWO_LINKS.replace("[a](a.md)", "a")));
    let answer = lint(&["--format", "json"]);
    let report = answer.json();
    assert_eq!((answer.code, codes(&report)), (1, vec!["broken-link"]), "{report}");
    assert_eq!(
        (report["baseline"]["known"].as_u64(), report["baseline"]["resolved"].as_u64()),
        (Some(1), Some(1))
    );
    let sarif = lint(&["--format", "sarif"]).json();
    let states: Vec<&str> = sarif["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["baselineState"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["new", "unchanged"]);
}

#[test]
fn level_filters_output_and_deny_sets_the_exit_code() {
    let home = Home::empty();
    home.file("notes/SKILL.md", TWO_LINKS);
    home.file("notes/other.md", "");
    let answer = home.run(&["lint", "--json", "--level", "error", "--deny", "warnings"]);
    assert_eq!((answer.code, answer.json()["findings"].as_array().unwrap().len()), (1, 0));
    assert_eq!(home.run(&["lint", "--deny", "none"]).code, 0);
    assert_eq!(home.run(&["lint", "--deny", "all"]).code, 1);
    let report = home.json(&["lint"]);
    assert_eq!(report["summary"][0]["code"], "broken-link");
    assert_eq!(
        (report["summary"][0]["findings"].as_u64(), report["summary"][0]["skills"].as_u64()),
        (Some(2), Some(1))
    );
    assert_eq!(home.run(&["lint", "--summary"]).stdout.lines().count(), 2);
}

#[test]
fn a_comment_ignores_a_finding_for_its_reason() {
    let home = Home::empty();
    let comment = "<!-- skills-lint: ignore broken-link: written by the installer -->\nRead [b]";
    home.file("notes/SKILL.md", TWO_LINKS.replace("Read [b]", comment));
    home.file("notes/other.md", "");
    let report = home.json(&["lint"]);
    assert_eq!(codes(&report), ["broken-link"]);
    assert_eq!(report["ignored"][0]["reason"], "written by the installer");
    let skill = home.json(&["describe", "notes"]);
    assert_eq!(skill["findings"].as_array().unwrap().len(), 1, "describe reports the same");
}

#[test]
fn references_to_missing_items_are_reported() {
    let home = Home::empty();
    home.file(
        "pdf-tables/SKILL.md",
        "---\nname: pdf-tables\ndescription: Reads tables of PDF files. Use for PDFs.\n---\nText.\n",
    );
    home.file(
        "notes/SKILL.md",
        "---\nname: notes\ndescription: Writes meeting notes. Use when notes are requested.\n---\n\
            Use the `pdf-tables` skill, not the `pdf-tabels` skill. Ask with the `AskUserQuestions` tool.\n\
            Run `scripts/gone.py`.\n\n```bash\nnosuchcommand-here --x \"$NO_SUCH_VARIABLE\"\n```\n",
    );
    home.file("notes/scripts/there.py", "");
    let report = home.json(&["lint"]);
    assert_eq!(codes(&report), ["skill-unknown", "tool-unknown", "file-missing"], "{report}");
    assert!(report["findings"][0]["help"].as_str().unwrap().contains("pdf-tables"));
    let one = home.json(&["lint", "notes"]);
    assert_eq!(codes(&one), codes(&report), "one skill by its id: {one}");
    let report = home.json(&["lint", "--environment"]);
    assert_eq!(codes(&report)[3..], ["command-missing", "variable-unset"], "{report}");
}

#[test]
fn every_rule_is_explained() {
    let home = Home::empty();
    let rules = home.json(&["lint", "--rules"]);
    for rule in rules["rules"].as_array().unwrap() {
        for field in ["code", "severity", "subject", "help", "reason", "example"] {
            assert!(!rule[field].as_str().unwrap().is_empty(), "{field}: {rule}");
        }
    }
    let text = home.run(&["lint", "--rules"]).stdout;
    assert!(text.contains("broken-link") && !text.contains('\u{202e}'));
}

#[test]
fn a_skill_is_linted_by_its_id_and_an_unknown_path_is_named() {
    let home = Home::with_skills();
    let by_id = home.run(&["lint", "pdf-tables", "--json"]);
    let file = home.skills().join("pdf-tables/SKILL.md");
    let by_path = home.run(&["lint", file.to_str().unwrap(), "--json"]);
    assert_eq!((by_id.code, &by_id.stdout), (by_path.code, &by_path.stdout), "{}", by_id.stderr);
    let unknown = home.run(&["lint", "pdf-tabels"]);
    assert_eq!(unknown.code, 3, "{}", unknown.stdout);
    assert!(unknown.stderr.contains("`pdf-tabels` is not a file, folder or skill id"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("pdf-tables"), "near ids are named: {}", unknown.stderr);
}
