//! Guards the shape of the sources: imports point one way, every file says its subject,
//! and nothing leans on papers that a reader does not have.

mod imports;
mod lexer;
mod rules;

use std::path::{Path, PathBuf};

use rules::{forbidden_imports, foreign_references, has_module_comment};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file with one of these endings below a folder of the project, as `(path from there, text)`.
fn files(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let base = root().join(folder);
    let mut open: Vec<PathBuf> = vec![base.clone()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if endings.iter().any(|e| path.extension().is_some_and(|x| x == *e)) {
                let name = path.strip_prefix(&base).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn report(what: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{what}:\n{}", findings.join("\n"));
}

#[test]
fn imports_point_one_way() {
    let sources = files("src", &["rs"]);
    assert!(sources.len() > 20, "the sources were not found");
    let findings: Vec<String> =
        sources.iter().flat_map(|(file, source)| forbidden_imports(file, source)).collect();
    report("forbidden imports", &findings);
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let findings: Vec<String> = ["src", "tests", "benches"]
        .into_iter()
        .flat_map(|folder| files(folder, &["rs"]).into_iter().map(move |(name, text)| (folder, name, text)))
        .filter(|(_, name, _)| !name.starts_with("fixtures/"))
        .filter(|(_, _, text)| !has_module_comment(text))
        .map(|(folder, name, _)| format!("{folder}/{name}:1"))
        .collect();
    report("files whose first line does not say what they are about (`//! …`)", &findings);
}

#[test]
fn nothing_leans_on_papers_that_readers_do_not_have() {
    let mut findings = Vec::new();
    for folder in ["src", "tests", "benches"] {
        for (name, source) in files(folder, &["rs"]) {
            let (_, comments) = lexer::lex(&source);
            for comment in comments {
                // The rule has to name what it forbids.
                if !name.ends_with("architecture/rules.rs") && !name.ends_with("architecture.rs") {
                    findings.extend(foreign_references(
                        &format!("{folder}/{name}"),
                        &comment.text,
                        comment.line,
                    ));
                }
            }
        }
    }
    for (folder, text) in [("docs", files("docs", &["md"])), ("assets", files("assets", &["yaml", "md"]))] {
        for (name, text) in text {
            findings.extend(foreign_references(&format!("{folder}/{name}"), &text, 1));
        }
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap_or_default();
    findings.extend(foreign_references("README.md", &readme, 1));
    report("references to papers outside of the project", &findings);
}

// The checks themselves can fail: each on a source made for it.

#[test]
fn an_import_upwards_is_found_with_its_line() {
    let source = "//! A.\nuse std::fmt;\nuse crate::gateway::Client;\n";
    let found = forbidden_imports("skill/record.rs", source);
    assert_eq!(found, ["src/skill/record.rs:3: `skill` imports `gateway`; it may import files"]);
}

#[test]
fn groups_renames_nested_groups_and_plain_paths_are_seen() {
    for line in [
        "use crate::{skill::SkillId, tui::{action::Action, pane}};",
        "use crate::tui as screen;",
        "use crate::{\n    tui::pane,\n};",
        "fn f() { crate::tui::run() }",
        "fn f(x: &'static str) -> Vec<crate::tui::Pane> { x }",
        "pub(crate) use crate::tui::*;",
        "use skill_workbench::tui::Pane;",
        "macro_rules! m { () => { $crate::tui::run() } }",
        "use super::super::tui::pane;",
        "use super::{super::tui, entry};",
        "mod inner { use super::super::super::tui::pane; }",
    ] {
        let found = forbidden_imports("registry/scan.rs", &format!("//! A.\n{line}\n"));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].contains("`registry` imports `tui`"), "{line}: {found:?}");
    }
}

#[test]
fn the_crate_root_may_not_be_imported_whole() {
    for line in ["use crate::*;", "use crate as all;", "use super::super::*;", "use crate::{self as all};"] {
        let found = forbidden_imports("registry/scan.rs", line);
        assert_eq!(
            found,
            ["src/registry/scan.rs:1: imports the crate's root whole; name the room"],
            "{line}"
        );
    }
}

#[test]
fn strings_comments_and_own_modules_are_no_imports() {
    let source = r##"//! Mentions crate::tui::Pane.
        /* crate::tui /* nested */ crate::cli */
        const A: &str = "crate::tui::x \" crate::cli::y";
        const B: &str = r#"use crate::tui; " "#;
        const C: (u8, char, char) = (b'"', '"', '\'');
        pub(in crate::registry) fn life<'crate_>(x: &'crate_ str) -> &'crate_ str { x }
        use self::inner::Thing; use super::catalogue::Entry; use crate::registry::Root; use crate::skill::Skill;
        mod tui { use super::Entry; }
    "##;
    assert_eq!(forbidden_imports("registry/scan.rs", source), Vec::<String>::new());
}

#[test]
fn adapters_take_values_but_no_machinery_and_leave_each_other_alone() {
    let values = "use crate::skill::{SkillId, safe_text}; use crate::discovery::{Answer, Request as R};";
    assert_eq!(forbidden_imports("tui/app.rs", values), Vec::<String>::new());
    let found = forbidden_imports("tui/app.rs", "use crate::discovery::Router;\nuse crate::cli::main;\n");
    assert_eq!(found.len(), 2);
    assert!(found[0].contains("`discovery::Router`, which is no plain value; ask `gateway`"), "{found:?}");
    assert!(
        found[1].starts_with("src/tui/app.rs:2: `tui` imports `cli`; it may import gateway"),
        "{found:?}"
    );
    assert_eq!(forbidden_imports("tui/app.rs", "use crate::registry::*;").len(), 1);
    assert_eq!(forbidden_imports("cli/open.rs", "use crate::tui::run;"), Vec::<String>::new());
}

#[test]
fn a_room_without_a_row_is_refused() {
    assert_eq!(forbidden_imports("helpers/mod.rs", "//! A.").len(), 1);
    assert_eq!(forbidden_imports("main.rs", "fn main() { skill_workbench::gateway::open() }").len(), 1);
}

#[test]
fn a_missing_module_comment_is_found() {
    assert!(has_module_comment("//! A.\n"));
    assert!(!has_module_comment("use x;\n"));
}

#[test]
fn requirement_numbers_and_pages_are_found_but_keys_and_controls_are_not() {
    for line in
        ["// as requirements.md says", "/// See A6.", "// requirement F2 wants it", "// (C10)", "// issue 3"]
    {
        assert_eq!(foreign_references("src/a.rs", line, 7).len(), 1, "{line}");
    }
    for line in
        ["// F1 opens help", "// C0 and C1 controls", "// U+E0001, RFC 9110", "/// A file of 2 MiB", "// 4A"]
    {
        assert_eq!(foreign_references("src/a.rs", line, 7), Vec::<String>::new(), "{line}");
    }
}
