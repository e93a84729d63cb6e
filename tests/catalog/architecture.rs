//! The structure of the sources: crates depend on earlier crates only, every file states its subject,
//! and nothing refers to documents that a reader does not have.

mod lexer;
mod rules;

use std::path::{Path, PathBuf};
use std::process::Command;

use rules::{foreign_references, has_module_comment};

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

/// The crates in the order of their dependencies: each may use those before it.
const CRATES: &[&str] = &[
    "base",
    "skill",
    "config",
    "sandbox",
    "registry",
    "discovery",
    "model",
    "store",
    "session",
    "runs",
    "authoring",
    "api",
    "tui",
    "http",
    "mcp",
    "cli",
];

/// Translate between the core and the outside, and do not use each other.
const ADAPTERS: &[&str] = &["tui", "http", "mcp", "cli"];

/// The workspace's crates and what each depends on in its own code, as cargo reads their manifests.
fn dependencies() -> Vec<(String, Vec<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let folder = |name: &str| name.strip_prefix("skills-").map(str::to_owned);
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|package| {
            let used = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| folder(dependency["name"].as_str().unwrap()))
                .collect();
            Some((folder(package["name"].as_str().unwrap())?, used))
        })
        .collect()
}

/// Dependencies that the order of the crates forbids.
fn forbidden(dependencies: &[(String, Vec<String>)]) -> Vec<String> {
    let position = |name: &str| CRATES.iter().position(|listed| *listed == name);
    let mut findings = Vec::new();
    for (name, used) in dependencies {
        let Some(own) = position(name) else {
            findings.push(format!("src/{name} is not in the list of crates"));
            continue;
        };
        for other in used {
            if position(other).is_none_or(|other| other >= own) {
                findings.push(format!("src/{name} uses src/{other}, which is not listed before it"));
            } else if ADAPTERS.contains(&name.as_str()) && ADAPTERS.contains(&other.as_str()) {
                findings.push(format!("the adapter src/{name} uses the adapter src/{other}"));
            }
        }
    }
    findings
}

#[test]
fn crates_depend_on_earlier_crates_only() {
    let dependencies = dependencies();
    assert_eq!(dependencies.len(), CRATES.len(), "{dependencies:?}");
    report("forbidden dependencies", &forbidden(&dependencies));
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
fn sources_refer_to_no_unpublished_documents() {
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

/// Work that is started in another way does not count against the limits of its caller once the caller is gone.
#[test]
fn operations_start_blocking_work_with_their_permit() {
    let calls = |(path, text): &(String, String)| path != "work.rs" && text.contains("task::spawn_blocking");
    let found: Vec<String> =
        files("src/api", &["rs"]).into_iter().filter(calls).map(|(path, _)| path).collect();
    report("start blocking work with `crate::work`", &found);
}

#[test]
fn dependencies_against_the_order_are_reported() {
    let of = |name: &str, used: &[&str]| (name.to_owned(), used.iter().map(ToString::to_string).collect());
    assert_eq!(forbidden(&[of("store", &["model", "base"])]), Vec::<String>::new());
    assert_eq!(
        forbidden(&[of("store", &["api"]), of("cli", &["tui"]), of("helpers", &[])]),
        [
            "src/store uses src/api, which is not listed before it",
            "the adapter src/cli uses the adapter src/tui",
            "src/helpers is not in the list of crates",
        ]
    );
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
