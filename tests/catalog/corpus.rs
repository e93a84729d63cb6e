//! Every file of the public corpus is parsed, and a table lists the results.
//! Needs `SKILLS_TEST_DATA` (a folder with `corpus.tar.xz`, or with `corpus/` unpacked).
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use skills_skill::Severity;

use crate::corpus_data::data;

fn skill_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            skill_files(&entry.path(), found);
        } else if entry.file_name().to_str().is_some_and(skills_skill::is_main_file) {
            found.push(entry.path());
        }
    }
}

#[test]
fn every_file_of_the_corpus_is_processed() {
    let Some(corpus) = data("corpus", "corpus") else { return };
    let mut files = Vec::new();
    skill_files(&corpus, &mut files);
    files.sort();
    let sources: Vec<_> = files.into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect();

    let started = Instant::now();
    let results: Vec<_> = sources.iter().map(|(bytes, path)| skills_skill::parse(path, bytes, 0)).collect();
    let took = started.elapsed();
    eprintln!("{} files in {took:?}, {:?} each", sources.len(), took / u32::try_from(sources.len()).unwrap());

    let mut codes: BTreeMap<(Severity, String), usize> = BTreeMap::new();
    let (mut refused, mut defective) = (String::new(), String::new());
    for result in &results {
        let (findings, location) = match result {
            Ok(skill) => (&skill.findings, &skill.location),
            Err(refusal) => (&refusal.findings, &refusal.location),
        };
        let path = location.strip_prefix(&corpus).unwrap().display();
        for finding in findings {
            *codes.entry((finding.severity, finding.code.clone())).or_default() += 1;
        }
        if let Err(refusal) = result {
            let why = refusal.findings.last().unwrap();
            writeln!(refused, "{path}\n    {:?}: {}", refusal.reason, why.message).unwrap();
        }
        for finding in findings.iter().filter(|finding| DEFECTS.contains(&finding.code.as_str())) {
            let line = finding.span.map_or(0, |span| span.line);
            writeln!(defective, "{path}:{line} {}", finding.code).unwrap();
        }
    }
    let mut table =
        format!("{} files, {} read\n\n", results.len(), results.iter().filter(|r| r.is_ok()).count());
    for ((severity, code), count) in codes.iter().rev() {
        writeln!(table, "{count:>5} {severity:<8} {code}").unwrap();
    }
    insta::assert_snapshot!(format!("{table}\nrefused\n{refused}\nrepaired or defective\n{defective}"));
}

/// Codes whose files are listed one by one.
const DEFECTS: &[&str] = &[
    "byte-order-mark",
    "no-frontmatter",
    "no-opening-fence",
    "no-closing-fence",
    "leading-blank-lines",
    "bad-yaml",
    "unquoted-colon",
    "unquoted-value",
    "duplicate-key",
    "file-name-case",
    "name-missing",
    "description-missing",
    "smuggled-text",
];

#[test]
fn every_official_contract_of_the_public_registry_is_a_skill() {
    let Some(official) = data("contract-registry", "registry/skills/official") else { return };
    let mut files = Vec::new();
    skill_files(&official, &mut files);
    files.sort();
    let mut table = String::new();
    for path in &files {
        let skill = skills_skill::read_bundle(path).unwrap();
        let class = &skill.classification;
        let domain = skill.domain.map(|domain| domain.value).unwrap_or_default();
        let (role, invocation, effect) = (class.role.value, class.invocation.value, class.effect_mode.value);
        let status = skill.status.value.as_str();
        writeln!(table, "{} ({domain}): {role} {invocation} {effect}, {status}", skill.id).unwrap();
        for finding in &skill.findings {
            writeln!(table, "    {} {}: {}", finding.severity, finding.code, finding.message).unwrap();
        }
    }
    insta::assert_snapshot!(format!("{} skills\n\n{table}", files.len()));
}
