//! Scaffolds a new skill: generates its files, lints them before they are moved into place, and never overwrites
//! anything.

mod template;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Code, Error, LintFinding, lint, trust};
use skills_authoring::write_back::replace_real_file;
use skills_base::files::{self, OpenError};
use skills_base::text::collapse_whitespace;
use skills_config::quoted;
use skills_discovery::golden_yaml;
use skills_skill::contract;
use skills_skill::{AttachTarget, EffectMode, Invocation, Kind, Role, Severity, SkillId, read_regular_text};

/// File name of the golden queries, next to the skills of a root.
const GOLDEN: &str = "golden.yaml";
/// Maximum size of a hand-written list of queries, in bytes.
const MAX_GOLDEN: u64 = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptLanguage {
    /// Python 3.
    Python,
    Node,
    /// A POSIX shell.
    Shell,
}

/// The properties of a new skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    /// Its id, which is the folder's name.
    pub id: String,
    /// What it does, in a sentence.
    pub description: String,
    /// When to use it, as a continuation of "Use when".
    pub when: Option<String>,
    /// Knowledge or tool; the default depends on the script.
    pub kind: Option<Kind>,
    pub role: Role,
    /// How it is invoked; the default depends on the role.
    pub invocation: Option<Invocation>,
    /// What it can be attached to.
    pub targets: Vec<AttachTarget>,
    /// Its effect on its target.
    pub effect: EffectMode,
    /// Its subject area.
    pub domain: Option<String>,
    pub tags: Vec<String>,
    /// The language of a script to generate, if any.
    pub script: Option<ScriptLanguage>,
    /// Whether to generate a contract that runs the script.
    pub contract: bool,
    /// Whether to generate a page of reference material.
    pub references: bool,
    /// Example requests; without any, no golden queries are written.
    pub queries: Option<Vec<String>>,
}

/// The created skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaffoldResult {
    pub skill_id: SkillId,
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub folder: PathBuf,
    /// Its files, by relative path.
    pub files: Vec<String>,
    /// The file to which golden queries were added, and their number.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub golden: Option<(PathBuf, usize)>,
    /// Why golden queries were not added although requested.
    pub golden_note: Option<String>,
    /// Lint findings, which are at most infos.
    pub findings: Vec<LintFinding>,
    /// Next steps, as commands and sentences.
    pub next: Vec<String>,
}

/// A file to be written.
struct NewFile {
    path: String,
    text: String,
    executable: bool,
}

/// Returns why a text cannot be the id of a new skill.
pub fn id_problem(id: &str) -> Option<String> {
    let has_valid_letters = id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let hyphens = id.starts_with('-') || id.ends_with('-') || id.contains("--");
    let valid = has_valid_letters && !hyphens && (1..=64).contains(&id.len());
    (!valid).then(|| {
        format!(
            "`{id}` is not a valid id: expected 1 to 64 lowercase letters, digits and \
        single hyphens"
        )
    })
}

impl Scaffold {
    /// Returns how it is invoked.
    pub fn invocation(&self) -> Invocation {
        let usual = if self.role == Role::Sidecar { Invocation::Attach } else { Invocation::Direct };
        self.invocation.unwrap_or(usual)
    }

    /// Returns whether it is knowledge or a tool.
    pub fn kind(&self) -> Kind {
        let usual = if self.script.is_some() || self.contract { Kind::Tool } else { Kind::HostKnowledge };
        self.kind.unwrap_or(usual)
    }

    /// Returns the description for the frontmatter.
    pub fn whole_description(&self) -> String {
        let stop = |text: &str| {
            let text = collapse_whitespace(text);
            if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
        };
        match self.when.as_deref().map(str::trim).filter(|when| !when.is_empty()) {
            Some(when) => {
                let is_plain_scalar =
                    when.strip_prefix("Use when ").or_else(|| when.strip_prefix("use when ")).unwrap_or(when);
                format!("{} Use when {}", stop(&self.description), stop(is_plain_scalar))
            }
            None => stop(&self.description),
        }
    }

    /// Returns a description of contradictory properties, if any.
    fn problem(&self) -> Option<String> {
        let invocation = self.invocation();
        if let Some(problem) = id_problem(&self.id) {
            return Some(problem);
        }
        if self.description.trim().is_empty() {
            return Some(
                "a description is required: what the skill does, in one sentence (--description)".to_owned(),
            );
        }
        if self.role == Role::Sidecar && invocation != Invocation::Attach {
            return Some(
                "a sidecar can only be attached: remove --invocation, or use --invocation attach".to_owned(),
            );
        }
        if invocation != Invocation::Direct && self.targets.is_empty() {
            return Some(
                "a target is required: --target task, run, output, transcript or artifact".to_owned(),
            );
        }
        if invocation == Invocation::Direct && !self.targets.is_empty() {
            return Some(
                "a direct skill has no targets: remove --target, or use --invocation both".to_owned(),
            );
        }
        if self.contract && self.script == Some(ScriptLanguage::Shell) {
            return Some("a script of a contract reads JSON: use --script python or node".to_owned());
        }
        if self.effect == EffectMode::ControlSignal && invocation == Invocation::Direct {
            return Some("a control signal needs a target: use --invocation attach and --target".to_owned());
        }
        let word =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_. ".contains(c));
        if let Some(bad) = self.tags.iter().chain(&self.domain).find(|text| !word(text.trim())) {
            return Some(format!(
                "`{bad}` is not a valid tag or domain: use letters, digits, `-`, `_` and \
                `.`"
            ));
        }
        None
    }
}

/// Creates the skill in a folder. Everything is written to a temporary folder next to its destination, linted there,
/// and then moved.
///
/// # Errors
/// Returns `invalid_request` for contradictory properties or ones that would not pass lint, `forbidden` if the name is
/// taken or the folder cannot be written.
pub fn scaffold(spec: &Scaffold, parent: &Path) -> Result<ScaffoldResult, Error> {
    if let Some(problem) = spec.problem() {
        return Err(Error::new(Code::InvalidRequest, problem));
    }
    let folder = parent.join(&spec.id);
    if folder.symlink_metadata().is_ok() {
        let message = format!("{} already exists; no changes made", folder.display());
        return Err(Error::new(Code::Forbidden, message));
    }
    let refused = |error: std::io::Error| {
        Error::new(Code::Forbidden, format!("cannot create {}: {error}", folder.display()))
    };
    fs::create_dir_all(parent).map_err(refused)?;
    let work = tempfile::Builder::new().prefix(".scaffold-").tempdir_in(parent).map_err(refused)?;
    let draft = work.path().join(&spec.id);
    let files = template::files(spec);
    for file in &files {
        write(&draft.join(&file.path), file).map_err(refused)?;
    }
    let findings = linted(&draft);
    if let Some(worst) = findings.iter().find(|found| found.finding.severity != Severity::Info) {
        let finding = &worst.finding;
        let message =
            format!("nothing was created, because of a lint finding: {}. {}", finding.message, finding.help);
        return Err(Error::new(Code::InvalidRequest, message));
    }
    let (golden, golden_note) = match golden(spec, parent) {
        Ok(golden) => (golden, None),
        Err(why) => (None, Some(why)),
    };
    // A folder that was created in the meantime is replaced only if it is empty.
    fs::rename(&draft, &folder).map_err(refused)?;
    let golden = match golden {
        Some((golden, count)) => {
            golden.write().map_err(refused)?;
            Some((golden.file, count))
        }
        None => None,
    };
    let findings = findings
        .into_iter()
        .map(|found| {
            let inside = found.location.strip_prefix(&draft).map(Path::to_path_buf).unwrap_or_default();
            LintFinding { location: folder.join(inside), ..found }
        })
        .collect();
    Ok(ScaffoldResult {
        skill_id: SkillId::new(spec.id.clone()),
        files: files.into_iter().map(|file| file.path).collect(),
        next: next(spec, &folder, golden.is_some()),
        folder,
        golden,
        golden_note,
        findings,
    })
}

/// Returns the skill's own findings, and those of every file of its contract.
fn linted(bundle: &Path) -> Vec<LintFinding> {
    let main = bundle.join("SKILL.md");
    let mut findings = lint::files(std::slice::from_ref(&main)).findings;
    let id = SkillId::new(bundle.file_name().and_then(|name| name.to_str()).unwrap_or_default());
    for folder in ["capabilities", "bindings"] {
        for entry in fs::read_dir(bundle.join(folder)).into_iter().flatten().flatten() {
            let location = entry.path();
            let Ok(text) = read_regular_text(&location, MAX_GOLDEN) else { continue };
            let found = if folder == "capabilities" {
                contract::parse_capability(&location, &text).1
            } else {
                contract::parse_binding(&location, &text).1
            };
            findings.extend(found.into_iter().map(|finding| LintFinding {
                skill_id: id.clone(),
                location: location.clone(),
                finding,
            }));
        }
    }
    findings
}

/// A golden queries file and its new text.
struct GoldenFile {
    file: PathBuf,
    /// The real path and the text of a file that exists.
    before: Option<(PathBuf, String)>,
    text: String,
}

impl GoldenFile {
    fn write(&self) -> std::io::Result<()> {
        match &self.before {
            Some((real, before)) => replace_real_file(real, before.as_bytes(), self.text.as_bytes())
                .map_err(|error| std::io::Error::other(error.to_string())),
            None => create(&self.file, &self.text),
        }
    }
}

/// Returns the golden queries file with the queries of this skill added, and their number.
fn golden(spec: &Scaffold, parent: &Path) -> Result<Option<(GoldenFile, usize)>, String> {
    let Some(queries) = &spec.queries else { return Ok(None) };
    if spec.role == Role::Sidecar {
        return if queries.is_empty() { Ok(None) } else { Err("sidecars are not ranked".to_owned()) };
    }
    let queries = if queries.is_empty() { template::usual_queries(spec) } else { queries.clone() };
    let queries: BTreeSet<String> =
        queries.iter().map(|query| query.trim().to_owned()).filter(|query| !query.is_empty()).collect();
    if queries.is_empty() {
        return Ok(None);
    }
    let file = parent.join(GOLDEN);
    // A link that points outside the folder is refused, as in `golden add`.
    let real = match files::resolve_named(&file) {
        Ok(real) => Some(real),
        Err(OpenError::NotFound { .. }) => None,
        Err(error) => return Err(error.to_string()),
    };
    let before = match &real {
        Some(real) => files::read_text(real, MAX_GOLDEN).map_err(|error| error.to_string())?,
        None => String::new(),
    };
    let mut text = before.clone();
    if !text.is_empty() {
        text += if text.ends_with('\n') { "\n" } else { "\n\n" };
    }
    text += &format!("# {}\n", spec.id);
    for query in &queries {
        // JSON strings are valid YAML, whatever they contain.
        text += &format!("- query: {}\n  expect: [{}]\n", template::scalar(query), spec.id);
    }
    let count_before =
        if before.trim().is_empty() { 0 } else { golden_yaml(&before).map_err(|e| e.to_string())?.len() };
    match golden_yaml(&text) {
        Ok(cases) if cases.len() == count_before + queries.len() => {
            let edit = GoldenFile { file, before: real.map(|real| (real, before)), text };
            Ok(Some((edit, queries.len())))
        }
        Ok(_) => Err(format!("{} is not a list; add the queries manually", file.display())),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

fn next(spec: &Scaffold, folder: &Path, golden: bool) -> Vec<String> {
    let shown = quoted(&folder.to_string_lossy());
    let parent = quoted(&folder.parent().unwrap_or(folder).to_string_lossy());
    let mut next = vec![format!("edit {}/SKILL.md: the instructions that a model reads", folder.display())];
    next.push(format!("skills lint {shown}"));
    if golden {
        next.push(format!("skills eval --root {parent}"));
    }
    if trust::has_contract(folder) {
        next.push(format!("skills trust {shown}"));
        if spec.invocation() == Invocation::Attach {
            let target = spec.targets.first().map_or_else(|| "output".to_owned(), ToString::to_string);
            let id = &spec.id;
            next.push(format!("skills attach {id} --root {parent} --target-type {target} --target-ref REF"));
        } else {
            next.push(format!("skills run {} --root {parent} --input text=\"one line\"", spec.id));
        }
    }
    next.push(format!("skills package-prepare {shown}"));
    next
}

fn write(path: &Path, file: &NewFile) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    create(path, &file.text)?;
    if file.executable { skills_base::private_files::set_mode(path, 0o755) } else { Ok(()) }
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    fs::File::options().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(all(test, unix))]
#[path = "tests.rs"]
mod tests;
