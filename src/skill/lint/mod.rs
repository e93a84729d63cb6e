//! The linter: rules of the specification, advice on descriptions, and what a user should know before trusting a
//! bundle.

mod description;
mod fields;
mod ignore;
mod links;
mod references;
mod report;
pub mod rules;
pub(super) mod size;
mod trust;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use super::bundle::{is_main_file, is_same_name};
use super::finding_builder::{Notes, slice};
use super::yaml::{Entry, Node};
use super::{Finding, RefusalReason, RejectedBundle, Skill, fence};
use skills_base::files::{Folder, OpenError};

pub(super) use fields::near_key;
pub use ignore::{Ignored, ignore};
pub use references::{Reference, ReferenceKind, references};
pub use report::{ReportStyle, github, report};
pub(super) use trust::frontmatter_for_claude_code;
pub use trust::{ARGUMENTS, executed_on_load};

/// The input of rules that need only the file.
pub(super) struct LintInput<'a> {
    /// The record, without findings.
    pub skill: &'a Skill,
    /// The YAML mapping.
    pub root: &'a Node,
    /// Maps byte ranges of the YAML to those of the file.
    pub at: &'a dyn Fn(&Range<usize>) -> Range<usize>,
    /// The frontmatter in the file.
    pub frontmatter: Range<usize>,
}

impl LintInput<'_> {
    fn entry(&self, key: &str) -> Option<&Entry> {
        self.root.get(key)
    }

    fn value(&self, key: &str) -> Option<Range<usize>> {
        self.entry(key).map(|entry| (self.at)(&entry.value.at))
    }

    fn key(&self, key: &str) -> Option<Range<usize>> {
        self.entry(key).map(|entry| (self.at)(&entry.key_at))
    }
}

/// Checks all rules that need only the file, for a `SKILL.md`.
pub(super) fn check(subject: &LintInput<'_>, body: Range<usize>, notes: &mut Notes<'_>) {
    fields::name(subject, notes);
    check_shared(subject, notes);
    size::estimated(slice(notes.source, body.clone()), body.start, notes);
}

/// Checks the same rules for a lone `skill.yaml`.
pub(super) fn check_contract(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    check_shared(subject, notes);
}

fn check_shared(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    fields::lengths(subject, notes);
    fields::keys(subject, notes);
    fields::contradictions(subject, notes);
    description::check(subject, notes);
}

/// Checks the rules about trust, which also apply to files that are refused here, because clients may load them. `body`
/// is the start of the body of a `SKILL.md`.
pub(super) fn check_trust(subject: &LintInput<'_>, body: Option<usize>, notes: &mut Notes<'_>) {
    trust::hidden_characters(notes);
    trust::escaped_characters(subject, notes);
    trust::hooks(subject, notes);
    trust::grants(subject, notes);
    if let Some(body) = body {
        trust::argument_names(subject, notes);
        trust::expansions(body, notes);
    }
}

/// Lints one bundle: returns the record's own findings, broken relative links, and exact token counts in place of the
/// scan's estimates. `source` is the content of the file at the skill's location. Reads the bundle's folder; loads the
/// token vocabulary if the body is large.
pub fn bundle(skill: &Skill, source: &str) -> Vec<Finding> {
    let file = skill.location.file_name().map_or(Path::new("SKILL.md"), Path::new);
    let mut notes = Notes::new(file, source);
    if skill.has_body {
        let body = fence::split(source).body;
        size::exact(slice(source, body.clone()), body.start, &mut notes);
        let text = slice(source, body.clone());
        let is_ignored = ignore::is_ignored(source);
        links::check(text, body.start, &skill.root_dir, &is_ignored, &mut notes);
        references::check(text, body.start, &skill.root_dir, &is_ignored, &mut notes);
    }
    let counted = [rules::BODY_MANY_TOKENS.code, rules::BODY_TOO_MANY_TOKENS.code];
    let mut findings: Vec<Finding> =
        skill.findings.iter().filter(|finding| !counted.contains(&finding.code.as_str())).cloned().collect();
    ignored_files(&skill.root_dir, file, &mut notes);
    findings.extend(notes.finish());
    findings.extend(contract_findings(skill));
    findings.extend(skill.open().iter().flat_map(|bundle| trust::other_files(bundle, file)));
    findings.sort_by_key(|finding| finding.span.map(|span| span.offset));
    findings
}

/// Returns the findings of a refused bundle: those of its main file, and those about trust of its other files, which
/// clients may load.
pub fn refused(refusal: &RejectedBundle) -> Vec<Finding> {
    let mut findings = refusal.findings.clone();
    if has_main_file(refusal) {
        findings.extend(alongside(&refusal.location));
    }
    findings
}

/// Returns whether the location of a refused bundle is a main file, so that the files next to it are checked.
pub fn has_main_file(refusal: &RejectedBundle) -> bool {
    let name = refusal.location.file_name().and_then(OsStr::to_str);
    name.is_some_and(is_main_file) && refusal.reason != RefusalReason::NoSkillFile
}

/// Returns the findings about trust of the files next to a main file. The main file may be a link: clients load the
/// files of the folder that contains the link.
pub fn alongside(location: &Path) -> Vec<Finding> {
    let (Some(folder), Some(main)) = (location.parent(), location.file_name()) else { return Vec::new() };
    Folder::follow(folder).map(|folder| trust::other_files(&folder, Path::new(main))).unwrap_or_default()
}

/// Returns the finding of a bundle that is shadowed. `winner` is the winner's file; `identical` states whether both
/// files are equal byte for byte.
pub fn shadowed(skill: &Skill, winner: &Path, identical: bool) -> Finding {
    let file = skill.location.file_name().map_or(Path::new("SKILL.md"), Path::new);
    let mut notes = Notes::new(file, "");
    let how = if identical { "the same file byte for byte" } else { "a different file" };
    let id = skill.id.as_str().split('@').next().unwrap_or_default();
    let message = format!("`{id}` is already used by {}, {how}", winner.display());
    let finding = notes.add(&rules::SHADOWED, Some("name"), None, message);
    if identical {
        finding.severity = super::Severity::Info;
        "Delete the copy; the files are identical.".clone_into(&mut finding.help);
    }
    finding.clone()
}

/// Returns the finding of a bundle that shares its name with another one, for a client that lists either of the two.
pub fn undefined_name(skill: &Skill, message: String) -> Finding {
    let file = skill.location.file_name().map_or(Path::new("SKILL.md"), Path::new);
    let mut notes = Notes::new(file, "");
    notes.add(&rules::NAME_UNDEFINED, Some("name"), None, message).clone()
}

/// Reports files in a bundle's folder that are ignored because the name of the main file differs only by case, or
/// because they are contracts with a name other than `skill.yaml`.
fn ignored_files(folder: &Path, main: &Path, notes: &mut Notes<'_>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    for read in ["SKILL.md", "skill.yaml"] {
        let read = if main.to_str().is_some_and(|main| is_same_name(main, read)) {
            main.display().to_string()
        } else {
            read.to_owned()
        };
        for name in names.iter().filter(|name| **name != read && is_same_name(name, &read)) {
            if names.contains(&read) {
                let message = format!("`{name}` is ignored, because `{read}` next to it is used");
                notes.add(&rules::FILE_IGNORED, None, None, message);
            }
        }
    }
    let is_contract =
        |name: &str| ["skill.yaml", "skill.yml"].iter().any(|own| name.eq_ignore_ascii_case(own));
    // Some file systems ignore case.
    if !folder.join(CONTRACT).exists() {
        for name in names.iter().filter(|name| is_contract(name)) {
            let message = format!("`{name}` is ignored: a contract is named `{CONTRACT}`");
            let finding = notes.add(&rules::FILE_IGNORED, None, None, message);
            finding.help = format!("Rename it to {CONTRACT}.");
        }
    }
}

/// Returns the findings of a bundle that requires unknown skills; `near` returns the most similar known ids. `source` is
/// the content of the file at the skill's location.
pub fn requires_unknown<'a>(
    skill: &Skill,
    source: &str,
    missing: impl Iterator<Item = &'a str>,
    near: impl Fn(&str) -> Vec<String>,
) -> Vec<Finding> {
    let mut missing = missing.peekable();
    if missing.peek().is_none() {
        return Vec::new();
    }
    let file = skill.location.file_name().map_or(Path::new("SKILL.md"), Path::new);
    let mut notes = Notes::new(file, source);
    let frontmatter = fence::split(source).yaml;
    let text = slice(source, frontmatter.clone());
    // The first occurrence after the key is the value.
    let value = text.find(REQUIRES).map_or(text.len(), |key| key + REQUIRES.len());
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut from = frontmatter.start + value;
    for word in slice(text, value..).split([' ', '\t', '\n', '\r', ',', '[', ']', '"', '\'']) {
        places.entry(word).or_insert(from);
        from += word.len() + 1;
    }
    // Names with spaces.
    from = frontmatter.start + value;
    for part in slice(text, value..).split(['\n', '\r', ',', '[', ']', '#']) {
        let name = part.trim_start_matches([' ', '\t', ':', '-', '"', '\'']);
        let at = from + part.len() - name.len();
        places.entry(name.trim_end_matches([' ', '\t', '"', '\''])).or_insert(at);
        from += part.len() + 1;
    }
    for requested in missing {
        let at = places.get(requested).map(|at| *at..at + requested.len());
        let message = format!("`requires` lists `{requested}`, which is not a known skill");
        let finding = notes.add(&rules::REQUIRES_UNKNOWN, Some(REQUIRES), at, message);
        let near = near(requested);
        if !near.is_empty() {
            finding.help = format!("Did you mean {}?", near.join(", "));
        }
    }
    notes.in_order()
}

/// Returns the findings about references of a body that `is_known` rejects: skills, or, with the environment of a
/// machine, commands and variables. `near` returns names that may have been meant.
pub fn mentions(
    skill: &Skill,
    source: &str,
    kinds: &[ReferenceKind],
    is_known: impl Fn(&Reference) -> bool,
    near: impl Fn(&str) -> Vec<String>,
) -> Vec<Finding> {
    if !skill.has_body {
        return Vec::new();
    }
    let file = skill.location.file_name().map_or(Path::new("SKILL.md"), Path::new);
    let mut notes = Notes::new(file, source);
    let body = fence::split(source).body;
    for reference in references(slice(source, body.clone())) {
        if !kinds.contains(&reference.kind) || is_known(&reference) {
            continue;
        }
        let name = &reference.name;
        let at = body.start + reference.at.start..body.start + reference.at.end;
        let (rule, message) = match reference.kind {
            ReferenceKind::Skill => (&rules::SKILL_UNKNOWN, format!("skill `{name}` not found")),
            ReferenceKind::Command => {
                (&rules::COMMAND_MISSING, format!("this machine has no command `{name}`"))
            }
            ReferenceKind::Variable => {
                (&rules::VARIABLE_UNSET, format!("`{name}` is not set in this environment"))
            }
            ReferenceKind::Tool | ReferenceKind::File => continue,
        };
        let finding = notes.add(rule, None, at, message);
        let near = if reference.kind == ReferenceKind::Skill { near(name) } else { Vec::new() };
        if !near.is_empty() {
            finding.help = format!("Did you mean {}?", near.join(", "));
        }
    }
    notes.finish()
}

/// Returns the findings of the bundle's contract, if it has one.
fn contract_findings(skill: &Skill) -> Vec<Finding> {
    let Ok(bundle) = skill.open() else { return Vec::new() };
    match bundle.read_text(CONTRACT, crate::MAX_BYTES) {
        Ok(source) => {
            let mut findings = crate::contract::parse(&skill.root_dir.join(CONTRACT), &source).1;
            findings.extend(contract_duplicates(&source));
            findings
        }
        Err(OpenError::NotFound { .. }) => Vec::new(),
        Err(error) => {
            let mut notes = Notes::new(Path::new(CONTRACT), "");
            notes.add(&rules::CONTRACT_INVALID, None, None, format!("cannot read the contract: {error}"));
            notes.finish()
        }
    }
}

/// Duplicate keys do not prevent a run, so that they are not among the findings of the contract itself.
fn contract_duplicates(source: &str) -> Vec<Finding> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let Ok(root) = super::yaml::parse(source) else { return Vec::new() };
    let mut notes = Notes::new(Path::new(CONTRACT), source);
    fields::duplicates(&root, "", &Range::clone, &mut notes);
    let mut findings = notes.finish();
    for finding in &mut findings {
        "Keep one of the keys.".clone_into(&mut finding.help);
    }
    findings
}

/// The key of the skills that a skill needs.
const REQUIRES: &str = "requires";

/// The file of a bundle's contract.
const CONTRACT: &str = "skill.yaml";
