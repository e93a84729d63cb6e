//! Packages: a bundle as a `tar.gz` archive with a manifest of digests. The same bundle yields the same bytes; archives
//! from elsewhere are validated within limits, and never unpacked where they could do harm.

mod prepare;
mod secrets;
mod validate;

use std::path::Path;

use icu_normalizer::DecomposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};

use super::LintFinding;
use super::trust::{self, HOOKS_IN_FRONTMATTER, TrustSubject};
use skills_registry::Trust;
use skills_skill::{Digest, Skill, SkillId};

pub use self::prepare::{PackageJob, prepare};
pub use self::validate::validate;

/// Name of the manifest inside the archive, next to the bundle's folder.
pub const MANIFEST: &str = "skill-package.json";
/// Format identifier in the manifest.
pub const FORMAT: &str = "skill-package/1";
/// Maximum size of the archive in bytes.
pub const MAX_ARCHIVE: u64 = 64 << 20;
/// Maximum total size of all files in bytes.
pub const MAX_BYTES: u64 = 128 << 20;
/// Maximum size of a file in bytes.
pub const MAX_FILE: u64 = 32 << 20;
/// Maximum number of files.
pub const MAX_FILES: usize = 5_000;
/// Maximum length of a path in bytes.
pub const MAX_PATH: usize = 240;
/// Maximum nesting depth of folders.
pub const MAX_DEPTH: usize = 16;

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Path inside the bundle, with `/` as separator.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub sha256: Digest,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// The manifest of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: String,
    /// The skill's id, which is its folder's name.
    pub id: String,
    /// Its version, if it states one.
    pub version: Option<String>,
    /// SHA-256 over all files: the digest that `skills trust` shows after unpacking.
    pub digest: Digest,
    /// Every file, by path.
    pub files: Vec<PackedFile>,
}

/// A problem with a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageFinding {
    /// Stable kebab-case code: `path-escape`, `link`, `digest-mismatch`, ….
    pub code: String,
    /// The path it concerns, as in the archive or bundle.
    pub path: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl PackageFinding {
    fn new(code: &str, path: Option<&str>, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), path: path.map(str::to_owned), message: message.into() }
    }
}

/// The result of preparing or validating a package.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackageReport {
    /// The archive; `None` if none was written.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: Option<std::path::PathBuf>,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of the archive.
    pub sha256: Option<Digest>,
    pub skill_id: Option<SkillId>,
    pub manifest: Option<Manifest>,
    /// Files of the bundle that are not packed: hidden ones, caches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What users should know before installation: definitions of capabilities, contract, scripts, bindings, services,
    /// hooks.
    pub runs: Vec<String>,
    /// What prevents it from being a package.
    pub findings: Vec<PackageFinding>,
    pub lint: Vec<LintFinding>,
}

impl PackageReport {
    fn empty() -> Self {
        Self {
            file: None,
            bytes: 0,
            sha256: None,
            skill_id: None,
            manifest: None,
            left_out: Vec::new(),
            runs: Vec::new(),
            findings: Vec::new(),
            lint: Vec::new(),
        }
    }

    /// Returns whether there are no findings and no lint errors.
    pub fn good(&self) -> bool {
        self.findings.is_empty()
            && self.lint.iter().all(|found| found.finding.severity != skills_skill::Severity::Error)
    }
}

/// Returns why a path is not allowed in a package.
fn path_problem(path: &str) -> Option<(&'static str, &'static str)> {
    let escape = path.is_empty()
        || path.starts_with('/')
        || path.contains(['\\', '\0'])
        || path.chars().nth(1) == Some(':')
        || path.split('/').any(|part| part == ".." || part == ".");
    if escape {
        return Some(("path-escape", "it points outside the bundle, or is not a relative path"));
    }
    if path.chars().any(char::is_control) || path.split('/').any(str::is_empty) {
        return Some(("bad-path", "it contains control characters or an empty component"));
    }
    if path.split('/').any(|part| part.starts_with('.')) {
        return Some(("hidden-file", "hidden files are not part of a skill"));
    }
    if path.len() > MAX_PATH || path.split('/').count() > MAX_DEPTH {
        return Some(("long-path", "the path is longer or deeper than most systems support"));
    }
    None
}

/// The finding of two names that some file systems do not distinguish.
const SAME_NAME: &str =
    "it has the same name as another file on systems that ignore case or Unicode normalization";

/// Returns the form of a path in which names are equal that some file systems do not distinguish: without case (`ß` is
/// `ss`, `ſ` is `s`) and in one normalization form. A dotless `ı` counts as `i`, too.
fn folded(path: &str) -> String {
    let decomposed = |text: &str| -> String {
        DecomposingNormalizerBorrowed::new_nfd().normalize_iter(text.chars()).collect()
    };
    // Upper case replaces what has no lower case of its own; `ẞ` has to be in lower case before.
    decomposed(&decomposed(path).to_lowercase().to_uppercase().to_lowercase())
}

/// Describes the executable content of a bundle, and what changes the runs of other skills, one line each. That of
/// nested skills is included as far as clients execute it when they load them.
fn runs(place: &Path, skill: Option<&Skill>) -> Vec<String> {
    let mut subject = trust::survey(&untrusting(), place, skill, None);
    let commands = std::mem::take(&mut subject.commands);
    let hooks = subject.hooks.then(|| HOOKS_IN_FRONTMATTER.to_owned());
    runs_of_files(subject).into_iter().chain(commands).chain(hooks).collect()
}

fn runs_of_files(subject: TrustSubject) -> Vec<String> {
    let capabilities = subject.capabilities.into_iter().map(|line| format!("capability {line}"));
    let contract = subject.contract.map(|line| format!("contract {line}"));
    let scripts = subject.scripts.into_iter().map(|path| format!("script {path}"));
    let bindings = subject.bindings.into_iter().map(|line| format!("binding {line}"));
    let services = subject.services.into_iter().map(|line| format!("service {line}"));
    capabilities.chain(contract).chain(scripts).chain(bindings).chain(services).collect()
}

fn untrusting() -> Trust {
    Trust::new(None, std::path::PathBuf::new(), Vec::new())
}

impl PackageReport {
    /// Adds the findings of the skills in folders of the bundle, and what they could execute. The paths are below the
    /// bundle, in order.
    fn add_nested<'p>(&mut self, bundle: &Path, paths: impl Iterator<Item = &'p str>) {
        let mut described = None;
        for path in paths {
            let Some((folder, name)) = path.rsplit_once('/') else { continue };
            if !skills_skill::is_main_file(name) {
                continue;
            }
            let read = skills_skill::read_bundle(&bundle.join(path));
            let findings = super::lint::bundle(&read).findings.into_iter().map(|mut found| {
                found.finding.file = Path::new(folder).join(&found.finding.file);
                found
            });
            self.lint.extend(findings);
            // A folder with two main files is described once.
            if described != Some(folder) {
                let folder_path = bundle.join(folder);
                let subject = trust::survey_without_nested(&untrusting(), &folder_path, read.ok().as_ref());
                let lines = runs_of_files(subject);
                self.runs.extend(lines.into_iter().map(|line| format!("{folder}: {line}")));
                described = Some(folder);
            }
        }
    }
}

#[cfg(all(test, unix))]
#[path = "tests.rs"]
mod tests;
