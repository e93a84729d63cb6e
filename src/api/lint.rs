//! `lint`: all findings of the bundles below some paths, and their repair. Blocking.

mod baseline;
mod machine;
mod repair;
mod sarif;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::machine::Machine;
use super::{Code, Error, names, paging};
use skills_registry::{Alias, Catalog};
use skills_runs::{Capabilities, CapabilityFolder};
use skills_skill::client::SameName;
use skills_skill::contract::{self, Contract, KnownContracts, StepAction};
use skills_skill::lint::{Ignored, ReferenceKind, rules};
use skills_skill::{Finding, RejectedBundle, Severity, Skill, SkillId, lint};

pub use baseline::LintBaseline;
pub(super) use baseline::{check_version, read_baseline};
pub(super) use repair::{Repairable, named, repair};
pub use sarif::lint_sarif;

/// The parameters of `skills lint`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LintJob {
    /// Files and folders; if empty, all roots.
    pub paths: Vec<PathBuf>,
    /// Whether to first repair what can be repaired unambiguously.
    pub fix: bool,
    /// Whether to look up commands and environment variables on this machine.
    pub environment: bool,
}

/// What the operation returns of the findings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LintFilter {
    /// Only this skill: id, unambiguous name or location.
    #[schemars(length(min = 1))]
    pub skill: Option<String>,
    /// The lowest severity.
    pub level: Option<Severity>,
    /// Only these rules.
    pub rule: Vec<String>,
    /// Page size, 1 to 1,000; default: all findings.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Cursor: the `next` of the previous page.
    #[schemars(length(min = 1))]
    pub cursor: Option<String>,
}

/// A rule of the linter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintRule {
    /// Stable code.
    pub code: String,
    /// Severity of its findings.
    pub severity: Severity,
    /// Whether `skills lint --fix` can fix it.
    pub fixable: bool,
    /// Whether a comment in the file may ignore it.
    pub can_be_ignored: bool,
    /// What it finds.
    pub subject: String,
    /// What to do.
    pub help: String,
    /// Why it matters.
    pub reason: String,
    /// What it reports: a complete file, or a situation.
    pub example: String,
}

/// Returns all rules, in the order of the documentation.
pub fn lint_rules() -> Vec<LintRule> {
    let rule = |rule: &rules::Rule| LintRule {
        code: rule.code.to_owned(),
        severity: rule.severity,
        fixable: rule.fixable,
        can_be_ignored: rule.can_be_ignored(),
        subject: rule.subject.to_owned(),
        help: rule.help.to_owned(),
        reason: rule.reason.to_owned(),
        example: rule.example.to_owned(),
    };
    rules::ALL.iter().map(rule).collect()
}

/// How often a rule was violated with one severity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleCount {
    /// Code of the rule.
    pub code: String,
    /// Severity of the findings; those of a rule can differ in it.
    pub severity: Severity,
    /// Number of findings of the rule with this severity.
    pub findings: usize,
    /// Skills with such a finding.
    pub skills: usize,
}

/// A finding that a comment in its file ignores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredFinding {
    /// The finding.
    #[serde(flatten)]
    pub found: LintFinding,
    /// The reason in the comment.
    pub reason: String,
}

/// The findings compared with a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BaselineChange {
    /// Findings of the baseline that still exist; they are not part of `findings`.
    pub known: usize,
    /// Findings of the baseline that no longer exist.
    pub resolved: usize,
}

/// A finding and its bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// The skill, or the id that a refused bundle would have had.
    pub skill_id: SkillId,
    /// Absolute path of its file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A file changed by `--fix`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedFile {
    /// Absolute path.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Codes of the findings that are repaired.
    pub repaired: Vec<String>,
}

/// What lint found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LintReport {
    /// Number of checked bundles, including rejected ones.
    pub skills: usize,
    /// All findings, by file and place.
    pub findings: Vec<LintFinding>,
    /// Files that were repaired before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<FixedFile>,
    /// Findings that comments in their files ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredFinding>,
    /// The findings by rule and severity, the most frequent first; of all pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<RuleCount>,
    /// The change since the baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineChange>,
    /// Findings that the baseline has too.
    #[serde(skip)]
    pub known: Vec<LintFinding>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl LintFinding {
    /// Returns the absolute path of the file with the finding: the skill's own, or one next to it.
    pub fn path(&self) -> PathBuf {
        self.location.with_file_name(&self.finding.file)
    }
}

impl LintReport {
    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|found| found.finding.severity == severity).count()
    }

    /// Removes findings below a severity.
    pub fn keep_from(&mut self, level: Severity) {
        self.findings.retain(|found| found.finding.severity >= level);
        self.ignored.retain(|ignored| ignored.found.finding.severity >= level);
    }

    /// Counts the findings by rule and severity.
    pub fn summarize(&mut self) {
        let mut rules: BTreeMap<(&str, Severity), (usize, HashSet<&Path>)> = BTreeMap::new();
        for found in &self.findings {
            let finding = &found.finding;
            let (count, skills) = rules.entry((finding.code.as_str(), finding.severity)).or_default();
            *count += 1;
            skills.insert(&found.location);
        }
        let mut summary = Vec::with_capacity(rules.len());
        for ((code, severity), (findings, skills)) in rules {
            summary.push(RuleCount { code: code.to_owned(), severity, findings, skills: skills.len() });
        }
        summary.sort_by(|a, b| {
            let by_count = b.findings.cmp(&a.findings);
            by_count.then_with(|| a.code.cmp(&b.code)).then_with(|| b.severity.cmp(&a.severity))
        });
        self.summary = summary;
    }

    /// Returns the page of findings that a filter selects, with the summary of all selected ones. `skill` is the one
    /// that it names.
    ///
    /// # Errors
    /// Returns `invalid_request` for an unknown rule, a limit outside 1 to 1,000, and an unknown cursor.
    pub fn page(mut self, filter: &LintFilter, skill: Option<&Skill>) -> Result<Self, Error> {
        if let Some(unknown) = filter.rule.iter().find(|code| rules::by_code(code).is_none()) {
            let near = names::near(unknown, rules::ALL.iter().map(|rule| rule.code));
            let help =
                if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
            return Err(Error::new(Code::InvalidRequest, format!("lint rule `{unknown}` not found{help}")));
        }
        self.keep_from(filter.level.unwrap_or(Severity::Info));
        let wanted = |found: &LintFinding| {
            (filter.rule.is_empty() || filter.rule.contains(&found.finding.code))
                && skill.is_none_or(|skill| skill.location == found.location)
        };
        self.findings.retain(wanted);
        self.ignored.retain(|ignored| wanted(&ignored.found));
        self.summarize();
        if skill.is_some() {
            self.skills = 1;
        }
        let ids: Vec<String> = (0..self.findings.len()).map(|at| at.to_string()).collect();
        let (page, next) = paging::part(ids.len(), |at| &ids[at], filter.limit, filter.cursor.as_deref())?;
        self.findings.truncate(page.end);
        self.findings.drain(..page.start);
        self.next = next;
        Ok(self)
    }

    /// Returns the findings of each file, in order.
    pub fn by_file(&self) -> impl Iterator<Item = &[LintFinding]> {
        self.findings.chunk_by(|a, b| a.path() == b.path())
    }
}

/// Output format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LintStyle {
    /// Like a compiler's, with the source line.
    Report {
        /// With ANSI colors.
        colors: bool,
        /// Whether to print non-ASCII characters.
        unicode: bool,
        /// Width in terminal cells.
        width: usize,
    },
    /// GitHub's workflow commands.
    Github,
}

/// Formats the findings of one file; `shown` is its path as the user knows it.
pub fn lint_text(findings: &[LintFinding], shown: &str, style: LintStyle) -> String {
    let only: Vec<Finding> = findings.iter().map(|found| found.finding.clone()).collect();
    match style {
        LintStyle::Github => lint::github(&only, shown),
        LintStyle::Report { colors, unicode, width } => {
            // A file without located findings is not opened: a rejected link has none.
            let bytes = findings
                .iter()
                .find(|found| found.finding.span.is_some())
                .and_then(|found| skills_skill::read_regular(&found.path(), skills_skill::MAX_BYTES).ok())
                .unwrap_or_default();
            // Locations are byte offsets of the file; a file that is not UTF-8 is shown up to the first invalid byte.
            let source = match String::from_utf8(bytes) {
                Ok(source) => source,
                Err(error) => {
                    let valid = error.utf8_error().valid_up_to();
                    String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned()
                }
            };
            lint::report(&only, shown, &source, lint::ReportStyle { colors, unicode, width })
        }
    }
}

/// Returns the findings of a catalog: those of the parser and the linter, and those across bundles.
pub fn catalog(catalog: &Catalog) -> LintReport {
    checked_catalog(catalog, false)
}

/// Like [`catalog`], and with `environment` also checks commands and environment variables of this machine.
pub fn checked_catalog(catalog: &Catalog, environment: bool) -> LintReport {
    let checked = catalog.all_skills().count();
    let neighbors =
        Neighbors { machine: environment.then(Machine::of_process), ..Neighbors::of(catalog, checked) };
    let winners = catalog.entries.par_iter().map(|entry| of_skill(&entry.skill, Some(&neighbors)));
    let losers = catalog.shadowed.par_iter().map(|loser| {
        let shadowed = lint::shadowed(&loser.skill, &loser.winner, loser.identical);
        let mut own = of_skill(&loser.skill, Some(&neighbors));
        own.findings.push(found(&loser.skill.id, &loser.skill.location, shadowed));
        own
    });
    let refused = catalog.refused.par_iter().map(of_refused);
    let linked = linked_files(catalog);
    let linked = linked.par_iter().map(|(id, location)| of_linked(id, location));
    let undefined = LintReport { findings: undefined(catalog), ..LintReport::default() };
    let reports: Vec<LintReport> = winners.chain(losers).chain(refused).chain(linked).collect();
    let skills = catalog.entries.len() + catalog.shadowed.len() + catalog.refused.len();
    joined(skills, reports.into_iter().chain([undefined]))
}

fn joined(skills: usize, reports: impl Iterator<Item = LintReport>) -> LintReport {
    let mut out = LintReport { skills, ..LintReport::default() };
    for report in reports {
        out.findings.extend(report.findings);
        out.ignored.extend(report.ignored);
    }
    out.findings = sorted(out.findings);
    out
}

/// Returns the findings of these skills, which are not shadowed.
pub fn winners(catalog: &Catalog, skills: &[Arc<Skill>]) -> Vec<LintFinding> {
    let neighbors = Neighbors::of(catalog, skills.len());
    let own = skills.par_iter().flat_map_iter(|skill| of_skill(skill, Some(&neighbors)).findings);
    let mut all: Vec<LintFinding> = own.collect();
    let locations: HashSet<&Path> = skills.iter().map(|skill| skill.location.as_path()).collect();
    all.extend(undefined(catalog).into_iter().filter(|found| locations.contains(found.location.as_path())));
    all
}

/// Returns findings for skills of the same name in folders of a client that keeps one of them, and not always the same.
fn undefined(catalog: &Catalog) -> Vec<LintFinding> {
    let clients = skills_skill::client::profiles();
    let races = clients.iter().filter(|client| client.same_name.value() == Some(&SameName::Undefined));
    let mut findings = Vec::new();
    for client in races {
        let reads = |skill: &Skill| {
            client.folders.iter().any(|folder| {
                let at = Path::new(&folder.path);
                skill.location.ancestors().any(|above| above.ends_with(at))
            })
        };
        let mut first: HashMap<&str, &Skill> = HashMap::new();
        for skill in catalog.all_skills().filter(|skill| reads(skill)) {
            let Some(other) = first.get(skill.name.as_str()) else {
                first.insert(&skill.name, skill);
                continue;
            };
            let message = format!(
                "{} lists either this skill or the other `{}` at {}; the choice varies between starts",
                client.name,
                skill.name,
                other.location.display()
            );
            findings.push(found(&skill.id, &skill.location, lint::undefined_name(skill, message)));
        }
    }
    findings
}

/// Returns the findings in single files, independent of neighboring bundles.
pub fn files(paths: &[PathBuf]) -> LintReport {
    report_of(paths, None)
}

/// Returns the findings in single files, and between those below a root of the catalog and its skills; with
/// `environment` also checks commands and environment variables of this machine.
pub fn files_in_place(paths: &[PathBuf], catalog: &Catalog, environment: bool) -> LintReport {
    let with_machine = |neighbors| Neighbors { machine: environment.then(Machine::of_process), ..neighbors };
    let is_below = |root: &Path, path: &Path| {
        skills_base::files::canonicalize(path).is_ok_and(|real| real.starts_with(root))
    };
    let roots: Vec<PathBuf> =
        catalog.roots.iter().filter_map(|root| skills_base::files::canonicalize(&root.path).ok()).collect();
    let (below, others): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| roots.iter().any(|root| is_below(root, path)));
    report_of(&below, Some(&with_machine(Neighbors::of(catalog, below.len()))))
        .and(report_of(&others, Some(&with_machine(Neighbors::default()))))
}

/// Returns the findings in a bundle, independent of neighboring ones.
pub(crate) fn bundle(read: &Result<Skill, RejectedBundle>) -> LintReport {
    joined(1, std::iter::once(of_bundle(read, None)))
}

fn of_bundle(read: &Result<Skill, RejectedBundle>, neighbors: Option<&Neighbors>) -> LintReport {
    match read {
        Ok(skill) => of_skill(skill, neighbors),
        Err(refusal) => of_refused(refusal),
    }
}

fn of_refused(refusal: &RejectedBundle) -> LintReport {
    let all = lint::refused(refusal).into_iter();
    let findings = all.map(|finding| found(&refusal.id, &refusal.location, finding)).collect();
    LintReport { findings, ..LintReport::default() }
}

fn of_linked(id: &SkillId, location: &Path) -> LintReport {
    let all = lint::alongside(location).into_iter();
    LintReport {
        findings: all.map(|finding| found(id, location, finding)).collect(),
        ..LintReport::default()
    }
}

/// Returns the main files that are links to those of the catalog, each with the id of its skill. Those whose folder is
/// checked otherwise are left out.
fn linked_files(catalog: &Catalog) -> Vec<(SkillId, PathBuf)> {
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let links: Vec<&Alias> = catalog.aliases.iter().filter(|alias| is_link(&alias.location)).collect();
    if links.is_empty() {
        return Vec::new();
    }
    let skills = catalog.all_skills().map(|skill| (skill.location.as_path(), &skill.id));
    let refused = catalog.refused.iter().map(|refusal| (refusal.location.as_path(), &refusal.id));
    let ids: HashMap<&Path, &SkillId> = skills.chain(refused).collect();
    let refused = || {
        let all = catalog.refused.iter().filter(|refusal| lint::has_main_file(refusal));
        all.map(|refusal| refusal.location.as_path())
    };
    let checked = catalog.all_skills().map(|skill| skill.location.as_path()).chain(refused());
    let folders: HashSet<&Path> = checked.filter_map(Path::parent).collect();
    // Links of folders may lead to one folder on many paths, also to that of a bundle whose main file is a link.
    let linked = catalog.all_skills().filter(|skill| skill.real.is_some());
    let linked = linked.map(|skill| skill.real_folder().to_owned());
    let linked_refused = refused().filter(|location| is_link(location));
    let linked_refused =
        linked_refused.filter_map(|location| skills_base::files::canonicalize(location.parent()?).ok());
    let mut seen: HashSet<PathBuf> = linked.chain(linked_refused).collect();
    let mut found = Vec::new();
    for alias in links {
        let Some(folder) = alias.location.parent() else { continue };
        let is_checked = is_checked_with(folder, &folders);
        let is_new = skills_base::files::canonicalize(folder).is_ok_and(|real| seen.insert(real));
        if let (false, true, Some(id)) = (is_checked, is_new, ids.get(alias.same_as.as_path())) {
            found.push(((*id).clone(), alias.location.clone()));
        }
    }
    found
}

/// Returns whether a folder is checked with the bundle in one of these folders: hidden folders are not checked with the
/// bundle above them.
fn is_checked_with(folder: &Path, bundles: &HashSet<&Path>) -> bool {
    for above in folder.ancestors() {
        if bundles.contains(above) {
            return true;
        }
        if above.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            return false;
        }
    }
    false
}

fn report_of(paths: &[PathBuf], neighbors: Option<&Neighbors>) -> LintReport {
    let of_file = |path: &PathBuf| of_bundle(&skills_skill::read_bundle(path), neighbors);
    let reports: Vec<LintReport> = paths.par_iter().map(of_file).collect();
    joined(paths.len(), reports.into_iter())
}

impl LintReport {
    /// Merges two reports; a file in both counts once.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let locations: HashSet<PathBuf> = self.findings.iter().map(|found| found.location.clone()).collect();
        self.skills += other.skills;
        self.findings.extend(other.findings.into_iter().filter(|found| !locations.contains(&found.location)));
        self.findings = sorted(self.findings);
        self.ignored.extend(other.ignored);
        self
    }
}

/// Maximum number of unknown names of a skill for which similar ones are suggested.
const MAX_SUGGESTED_NAMES: usize = 20;
/// Maximum number of comparisons of an unknown name with a known one, of all checked skills.
const MAX_COMPARISONS: usize = 60_000_000;

/// What the neighboring bundles define that a bundle may refer to.
#[derive(Debug, Default)]
pub struct Neighbors {
    /// Folders that may contain capabilities: roots and bundles.
    folders: Vec<PathBuf>,
    /// The capabilities of those folders, read at the first contract.
    capabilities: OnceLock<DefinedCapabilities>,
    /// Ids and folders of the skills that are not shadowed.
    bundles: Vec<(String, PathBuf)>,
    /// The contracts of those skills, read at the first contract.
    contracts: OnceLock<KnownContracts>,
    /// Names by which skills can be loaded; `None` if the other skills are not known.
    skills: Option<BTreeSet<String>>,
    /// Number of skills that are checked with these neighbors.
    checked: usize,
    /// Commands and variables of this machine, if they are to be checked.
    machine: Option<Machine>,
}

/// What some folders define.
#[derive(Debug)]
struct DefinedCapabilities {
    folders: Vec<CapabilityFolder>,
    known_folders: HashSet<PathBuf>,
    capabilities: Capabilities,
    /// The findings about ids that are defined several times, by file.
    duplicates: BTreeMap<PathBuf, Vec<Finding>>,
}

impl DefinedCapabilities {
    fn load(folders: Vec<CapabilityFolder>) -> Self {
        let capabilities = Capabilities::load(&folders);
        let mut duplicates: BTreeMap<PathBuf, Vec<Finding>> = BTreeMap::new();
        for finding in capabilities.findings().iter().filter(|finding| is_duplicate(finding)) {
            duplicates.entry(finding.file.clone()).or_default().push(finding.clone());
        }
        let known_folders = folders.iter().map(|folder| folder.dir.clone()).collect();
        Self { folders, known_folders, capabilities, duplicates }
    }

    /// Returns the findings about ids of files in a folder that are also defined elsewhere.
    fn duplicates_in(&self, folder: &Path) -> impl Iterator<Item = &Finding> {
        let below = self.duplicates.range(folder.to_owned()..);
        below.take_while(move |(file, _)| file.starts_with(folder)).flat_map(|(_, findings)| findings)
    }
}

fn is_duplicate(finding: &Finding) -> bool {
    finding.code.ends_with("-duplicate")
}

impl Neighbors {
    /// Collects the neighbors of a catalog, to check this number of skills.
    pub fn of(catalog: &Catalog, checked: usize) -> Self {
        let skills: Vec<_> = catalog.all_skills().collect();
        let roots = catalog.roots.iter().map(|root| root.path.clone());
        Self {
            folders: roots.chain(skills.iter().map(|skill| skill.root_dir.clone())).collect(),
            skills: Some(
                skills.iter().flat_map(|skill| [skill.id.to_string(), skill.name.clone()]).collect(),
            ),
            bundles: catalog
                .entries
                .iter()
                .map(|entry| (entry.skill.id.to_string(), entry.skill.root_dir.clone()))
                .collect(),
            checked,
            ..Self::default()
        }
    }

    /// Returns findings about a skill's references to others. Reads the capability folders if it has a contract.
    pub fn check(&self, skill: &Skill, source: &str) -> Vec<Finding> {
        let mut findings = self.skills(skill, source);
        findings.extend(self.calls(skill).unwrap_or_default());
        if let Some(machine) = &self.machine {
            let kinds = [ReferenceKind::Command, ReferenceKind::Variable];
            findings.extend(lint::mentions(
                skill,
                source,
                &kinds,
                |found| machine.has(found, skill),
                |_| Vec::new(),
            ));
        }
        findings
    }

    /// Returns findings for skills that `requires` lists, or that the body mentions, and that do not exist here.
    fn skills(&self, skill: &Skill, source: &str) -> Vec<Finding> {
        let Some(names) = &self.skills else { return Vec::new() };
        let is_known = |name: &str| {
            let sibling = skill.root_dir.parent().map(|parent| parent.join(name));
            let is_plain = !name.contains(['/', '\\']) && !name.starts_with('.');
            names.contains(name)
                || (is_plain && sibling.is_some_and(|sibling| sibling.join("SKILL.md").is_file()))
        };
        let rest = Cell::new(suggestion_limit(self.checked, names.len()));
        let near = |name: &str| {
            let Some(fewer) = rest.get().checked_sub(1) else { return Vec::new() };
            rest.set(fewer);
            names::near(name, names.iter().map(String::as_str))
        };
        let missing = skill.requires.iter().map(String::as_str).filter(|name| !is_known(name));
        let mut findings = lint::requires_unknown(skill, source, missing, near);
        let required: HashSet<&str> = skill.requires.iter().map(String::as_str).collect();
        let is_here =
            |found: &lint::Reference| required.contains(found.name.as_str()) || is_known(&found.name);
        findings.extend(lint::mentions(skill, source, &[ReferenceKind::Skill], is_here, near));
        findings
    }

    fn calls(&self, skill: &Skill) -> Option<Vec<Finding>> {
        let (contract, source) = contract_in(&skill.root_dir)?;
        let shared = self.capabilities.get_or_init(|| {
            DefinedCapabilities::load(
                self.folders.iter().filter_map(|folder| capability_place(folder)).collect(),
            )
        });
        // A registry has its capabilities in a folder above its skills.
        let above = skill.root_dir.ancestors().filter(|folder| !shared.known_folders.contains(*folder));
        let mut all: Vec<CapabilityFolder> = above.filter_map(capability_place).collect();
        let own = (!all.is_empty()).then(|| {
            all.extend(shared.folders.iter().cloned());
            DefinedCapabilities::load(all)
        });
        let defined = own.as_ref().unwrap_or(shared);
        let (names, capabilities) = ([skill.id.as_str(), skill.name.as_str()], &defined.capabilities);
        let contracts = self.contracts(skill, &contract);
        let location = &contract.location;
        let mut findings =
            contract::check_calls(location, &source, &contract, &names, capabilities, contracts.as_deref());
        findings.extend(beside_contract(skill, defined));
        Some(findings)
    }

    /// Returns the contracts that a contract can run: those of all skills, and of the folders next to its own. `None`
    /// if the other skills are not known.
    fn contracts(&self, skill: &Skill, contract: &Contract) -> Option<Cow<'_, KnownContracts>> {
        self.skills.as_ref()?;
        let mut all = Cow::Borrowed(self.contracts.get_or_init(|| {
            let read =
                |(id, folder): &(String, PathBuf)| Some((id.clone(), Arc::new(contract_in(folder)?.0)));
            let mut all: KnownContracts = self.bundles.iter().filter_map(read).collect();
            // Contracts have separate ids, which may differ from those of their skills. The first root wins.
            for (id, _) in &self.bundles {
                if let Some(found) = all.get(id).cloned() {
                    all.entry(found.id.clone()).or_insert(found);
                }
            }
            all
        }));
        let siblings = skill.root_dir.parent()?;
        for step in &contract.steps {
            if let StepAction::Skill(id) = &step.action
                && !all.contains_key(id)
                && !id.contains(['/', '\\'])
                && !id.starts_with('.')
                && let Some((found, _)) = contract_in(&siblings.join(id))
            {
                all.to_mut().insert(id.clone(), Arc::new(found));
            }
        }
        Some(all)
    }
}

/// Returns for how many unknown names of each checked skill similar known names are suggested. The limit depends only on
/// the numbers of skills, so that the findings are always the same.
fn suggestion_limit(checked: usize, known: usize) -> usize {
    let comparisons = checked.max(1).saturating_mul(known.max(1));
    (MAX_COMPARISONS / comparisons).min(MAX_SUGGESTED_NAMES)
}

/// Reads the contract of a bundle, and its text.
fn contract_in(folder: &Path) -> Option<(Contract, String)> {
    let location = folder.join(CONTRACT);
    let source = skills_skill::read_regular_text(&location, skills_skill::MAX_BYTES).ok()?;
    Some((contract::parse(&location, &source).0?, source))
}

/// Returns the findings in the capabilities and bindings of a bundle.
fn beside_contract(skill: &Skill, defined: &DefinedCapabilities) -> Vec<Finding> {
    let capabilities = &defined.capabilities;
    let Some(place) = capability_place(&skill.root_dir) else { return Vec::new() };
    let own = Capabilities::load(&[place]);
    let inside = |file: &Path| file.strip_prefix(&skill.root_dir).ok().map(Path::to_owned);
    // References between files are checked below, among everything that is known.
    let of_files = own
        .findings()
        .iter()
        .filter(|finding| rules::by_code(&finding.code).is_some() && !is_duplicate(finding))
        .chain(defined.duplicates_in(&skill.root_dir));
    let mut findings: Vec<Finding> = of_files
        .filter_map(|finding| Some(Finding { file: inside(&finding.file)?, ..finding.clone() }))
        .collect();
    let Ok(bundle) = skill.open() else { return findings };
    for offered in own.bindings() {
        let Some(file) = inside(&offered.binding.location) else { continue };
        let text = file.to_str().and_then(|file| bundle.read_text(file, skills_skill::MAX_BYTES).ok());
        let Some(source) = text else { continue };
        findings.extend(contract::check_binding(&file, &source, &offered.binding, &bundle, capabilities));
    }
    findings
}

fn capability_place(folder: &Path) -> Option<CapabilityFolder> {
    let has_bindings = ["capabilities", "bindings"].iter().any(|name| folder.join(name).is_dir());
    has_bindings.then(|| CapabilityFolder {
        dir: folder.to_owned(),
        bundle: None,
        shipped: false,
        of_project: false,
    })
}

fn of_skill(skill: &Skill, neighbors: Option<&Neighbors>) -> LintReport {
    let source = skill.read().ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let (findings, ignored) = match source {
        Some(source) => checked(skill, &source, neighbors),
        // It was just read; the findings of that read still hold.
        None => (skill.findings.clone(), Vec::new()),
    };
    let of = |finding: Finding| found(&skill.id, &skill.location, finding);
    LintReport {
        skills: 1,
        findings: findings.into_iter().map(of).collect(),
        ignored: ignored
            .into_iter()
            .map(|Ignored { finding, reason }| IgnoredFinding { found: of(finding), reason })
            .collect(),
        ..LintReport::default()
    }
}

/// Returns the findings of one bundle, and separately those that its comments ignore. `source` is the file at its
/// location.
pub fn checked(skill: &Skill, source: &str, neighbors: Option<&Neighbors>) -> (Vec<Finding>, Vec<Ignored>) {
    let mut findings = lint::bundle(skill, source);
    findings.extend(neighbors.into_iter().flat_map(|neighbors| neighbors.check(skill, source)));
    let file = skill.location.file_name().map_or(Path::new("SKILL.md"), Path::new);
    let (findings, mut ignored) = lint::ignore(findings, file, source);
    if file == Path::new(CONTRACT) {
        return (findings, ignored);
    }
    let contract =
        skill.open().ok().and_then(|bundle| bundle.read_text(CONTRACT, skills_skill::MAX_BYTES).ok());
    let Some(contract) = contract else { return (findings, ignored) };
    let (findings, of_contract) = lint::ignore(findings, Path::new(CONTRACT), &contract);
    ignored.extend(of_contract);
    (findings, ignored)
}

/// File name of a contract.
const CONTRACT: &str = "skill.yaml";

fn found(id: &SkillId, location: &Path, finding: Finding) -> LintFinding {
    LintFinding { skill_id: id.clone(), location: location.to_owned(), finding }
}

fn sorted(mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    findings.sort_by(|a, b| {
        // The skill's own file first, then those next to it.
        let place = |found: &LintFinding| {
            let path = found.path();
            (path != found.location, path, found.finding.span.map(|span| span.offset))
        };
        a.location.cmp(&b.location).then_with(|| place(a).cmp(&place(b)))
    });
    findings
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes/SKILL.md");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn contract_findings_name_their_own_file() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let contract = dir.path().join("notes/skill.yaml");
        fs::write(&contract, "id: x.notes\ninputs: {n: {type: int}}\nsteps:\n  - {id: a, uses: x.y}\n")
            .unwrap();
        let report = files(&[path]);
        let own: Vec<_> =
            report.by_file().filter(|found| found[0].finding.file == Path::new("skill.yaml")).collect();
        let [own] = own.as_slice() else { panic!("{report:?}") };
        assert_eq!((own[0].path(), own[0].finding.span.unwrap().line), (contract, 2));
        let text =
            lint_text(own, "notes/skill.yaml", LintStyle::Report { colors: false, unicode: true, width: 80 });
        assert!(text.contains("type: int"), "{text}");
    }

    #[test]
    fn a_contract_that_cannot_be_read_is_a_finding() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let contract = dir.path().join("notes/skill.yaml");
        fs::write(&contract, b"id: x.notes\n# \xff\n").unwrap();
        let report = files(std::slice::from_ref(&path));
        assert_eq!(codes(&report), [("contract-invalid", 0, Severity::Error)], "{report:?}");
        fs::remove_file(&contract).unwrap();
        fs::create_dir(&contract).unwrap();
        assert_eq!(codes(&files(&[path])), [("contract-invalid", 0, Severity::Error)]);
    }

    #[test]
    fn duplicate_keys_of_a_contract_are_findings() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let contract = "id: x.notes\nid: y.notes\nsteps:\n  - id: a\n    uses: x.y\n    uses: x.z\n";
        fs::write(dir.path().join("notes/skill.yaml"), contract).unwrap();
        let report = files(&[path]);
        let found = report.findings.iter().filter(|found| found.finding.code == "duplicate-key");
        let found: Vec<_> = found
            .map(|found| (found.finding.field.as_deref().unwrap(), found.finding.span.as_ref().unwrap().line))
            .collect();
        assert_eq!(found, [("id", 2), ("steps.a.uses", 6)], "{report:?}");
    }

    #[test]
    fn approvals_of_a_contract_are_checked() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let lint = |approvals: &str| {
            let contract =
                format!("id: x.notes\nsteps:\n  - {{id: a, uses: text.upper}}\napprovals: {approvals}\n");
            fs::write(dir.path().join("notes/skill.yaml"), contract).unwrap();
            let report = files(std::slice::from_ref(&path));
            let of_approvals = |found: &&LintFinding| {
                found.finding.field.as_deref().is_some_and(|field| field.starts_with("approvals"))
            };
            report
                .findings
                .iter()
                .filter(of_approvals)
                .map(|found| found.finding.code.clone())
                .collect::<Vec<_>>()
        };
        assert!(lint("{need: 2, not_by: starter}").is_empty());
        for wrong in ["2", "{need: 0}", "{need: 1.5}", "{need: 21}", "{not_by: anyone}"] {
            assert_eq!(lint(wrong), ["contract-invalid"], "{wrong}");
        }
        assert_eq!(lint("{needs: 2}"), ["contract-unknown-key"]);
    }

    fn codes(report: &LintReport) -> Vec<(&str, u32, Severity)> {
        let line = |found: &LintFinding| found.finding.span.map_or(0, |span| span.line);
        let found = report.findings.iter().filter(|found| found.finding.code.starts_with("contract"));
        found.map(|found| (found.finding.code.as_str(), line(found), found.finding.severity)).collect()
    }

    #[test]
    fn calls_are_checked_against_their_capabilities() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let folder = dir.path().join("capabilities");
        fs::create_dir(&folder).unwrap();
        let capability =
            "id: text.count\ninputs: {text: {type: string, required: true}, most: {type: integer}}\n";
        fs::write(folder.join("text.count.yaml"), capability).unwrap();
        let contract = "id: x.notes
inputs: {text: string}
steps:
  - id: unknown
    uses: text.conut
  - id: typo
    uses: text.count
    input:
      text: inputs.text
      mots: 1
  - id: wrong
    uses: text.count
    input:
      text: inputs.text
      most: many
  - id: dangling
    uses: text.count
    input:
      text: vars.nothing
  - id: itself
    uses: skill:notes
  - id: hint
    uses: text.count
    input: {text: inputs.text, style: short}
";
        fs::write(dir.path().join("notes/skill.yaml"), contract).unwrap();
        let report = files_in_place(std::slice::from_ref(&path), &Catalog::default(), false);
        assert_eq!(
            codes(&report),
            [
                ("contract-capability", 5, Severity::Warning),
                ("contract-input", 10, Severity::Error),
                ("contract-input", 15, Severity::Error),
                ("contract-reference", 19, Severity::Error),
                ("contract-invalid", 21, Severity::Error),
                ("contract-input", 24, Severity::Error),
            ],
            "{report:#?}"
        );
        let help = |code: &str| {
            let found = report.findings.iter().find(|found| found.finding.code == code);
            found.map(|found| found.finding.help.clone()).unwrap_or_default()
        };
        assert!(
            help("contract-capability").contains("`text.count`") && help("contract-input").contains("`most`")
        );
        assert_eq!(codes(&files(&[path])), [("contract-reference", 19, Severity::Error)]);
    }

    #[test]
    fn types_defaults_and_outputs_are_compared_with_the_capability() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let folder = dir.path().join("notes/capabilities");
        fs::create_dir(&folder).unwrap();
        let capability = "id: text.count
inputs: {text: string, most: integer}
outputs: {words: integer, text: string}
";
        fs::write(folder.join("text.count.yaml"), capability).unwrap();
        fs::write(folder.join("open.yaml"), "id: text.open\noutputs: {n: integer}\n").unwrap();
        let bindings = dir.path().join("notes/bindings");
        fs::create_dir(&bindings).unwrap();
        let binding = "id: count
capability: text.count
protocol: builtin
operation: text.template
response: {more: response.more}
";
        fs::write(bindings.join("count.yaml"), binding).unwrap();
        let contract = "id: x.notes
inputs:
  text: string
  level: {type: number, default: high}
  mode: {type: string, default: c, enum: [a, b]}
steps:
  - id: one
    uses: text.count
    input:
      text: inputs.text
      most: inputs.text
    output:
      word: vars.words
      more: vars.more
      text: vars.text
  - id: two
    uses: text.count
    input:
      text: vars.text
      most: vars.text
  - id: three
    uses: text.open
    input: {anything: inputs.level}
    output: {n: vars.n}
  - id: four
    uses: text.count
    input: {most: inputs.level, text: vars.more}
";
        fs::write(dir.path().join("notes/skill.yaml"), contract).unwrap();
        let report = files_in_place(&[path], &Catalog::default(), false);
        assert_eq!(
            codes(&report),
            [
                ("contract-invalid", 4, Severity::Error),
                ("contract-invalid", 5, Severity::Error),
                ("contract-input", 11, Severity::Error),
                ("contract-output", 13, Severity::Warning),
                ("contract-input", 20, Severity::Warning),
            ],
            "{report:#?}"
        );
        assert!(report.findings.iter().any(|found| found.finding.help == "Did you mean `words`?"));
    }

    #[test]
    fn files_next_to_a_contract_are_checked() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let write = |name: &str, text: &str| {
            let path = dir.path().join("notes").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("skill.yaml", "id: x.notes\nsteps:\n  - {id: a, uses: text.count}\n");
        write("capabilities/count.yaml", "id: text.count\n");
        write("capabilities/broken.yaml", "id: text.broken\ninputs: [\n");
        write(
            "bindings/a.yaml",
            "id: a\ncapability: text.conut\nprotocol: builtin\noperation: text.template\n",
        );
        let script = |id: &str, operation: &str, service: &str| {
            let text = format!(
                "id: {id}\ncapability: text.count\nprotocol: script\nservice: {service}\noperation: {operation}\n"
            );
            write(&format!("bindings/{id}.yaml"), &text);
        };
        script("gone", "scripts/none.py", "bundle");
        script("here", "scripts/here.py", "bundle");
        // A file outside of the bundle counts as missing.
        script("outside", "../../outside.py", "bundle");
        write("../outside.py", "print('{}')\n");
        script("bare", "here.py", "bundle");
        script("module", "count_words", "words");
        script("described", "none.py", "words");
        write("services/words.yaml", "id: words\nmodule: words\n");
        write("scripts/here.py", "print('{}')\n");
        let report = files_in_place(&[path], &Catalog::default(), false);
        let notes = dir.path().join("notes");
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|found| (found.path(), found.finding.code.as_str(), found.finding.span.unwrap().line))
            .collect();
        assert_eq!(
            found,
            [
                (notes.join("bindings/a.yaml"), "contract-capability", 2),
                (notes.join("bindings/gone.yaml"), "contract-reference", 5),
                (notes.join("bindings/outside.yaml"), "contract-reference", 5),
                (notes.join("capabilities/broken.yaml"), "bad-yaml", 2),
            ]
        );
        assert_eq!(report.findings[0].finding.help, "Did you mean `text.count`?");
    }

    #[test]
    fn skills_run_by_a_contract_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, contract: &str| {
            let folder = dir.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            let text = format!("---\nname: {name}\ndescription: Writes {name}. Use for {name}.\n---\nbody\n");
            fs::write(folder.join("SKILL.md"), text).unwrap();
            fs::write(folder.join("skill.yaml"), contract).unwrap();
            skills_skill::read_bundle(&folder.join("SKILL.md")).unwrap()
        };
        let main = write(
            "main",
            "id: x.main
steps:
  - {id: a, uses: 'skill:nosuchskill'}
  - {id: b, uses: 'skill:x.other'}
  - {id: c, uses: 'skill:leaf', input: {n: 1, m: 2}}
  - {id: d, uses: 'skill:beside', input: {n: 1}}
  - {id: e, uses: 'skill:leef', output: {sum: vars.sum}}
  - {id: f, uses: 'skill:leaf', output: {sums: vars.sums}}
",
        );
        let other = write("other", "id: x.other\nsteps:\n  - {id: a, uses: 'skill:main'}\n");
        let simple = write(
            "leaf",
            "id: x.leaf\ninputs: {n: integer}\noutputs: {sum: integer}\nsteps:\n  - {id: a, wait_for_signal: go}\n",
        );
        write("beside", "id: x.beside\nsteps:\n  - {id: a, wait_for_signal: go}\n");
        let bundles = [&main, &other, &simple].map(|skill| (skill.id.to_string(), skill.root_dir.clone()));
        let neighbors = Neighbors {
            skills: Some(bundles.iter().map(|(id, _)| id.clone()).collect()),
            bundles: bundles.to_vec(),
            ..Neighbors::default()
        };
        let checked = |skill: &Skill| {
            let found = neighbors.calls(skill).unwrap();
            let line = |finding: &Finding| finding.span.map_or(0, |span| span.line);
            found.iter().map(|f| (f.code.clone(), line(f), f.severity)).collect::<Vec<_>>()
        };
        let expected = |all: &[(&str, u32, Severity)]| {
            all.iter()
                .map(|(code, line, severity)| ((*code).to_owned(), *line, *severity))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            checked(&main),
            expected(&[
                ("contract-reference", 3, Severity::Warning),
                ("contract-invalid", 4, Severity::Error),
                ("contract-input", 5, Severity::Error),
                ("contract-input", 6, Severity::Error),
                ("contract-reference", 7, Severity::Warning),
                ("contract-output", 8, Severity::Warning),
            ])
        );
        assert_eq!(checked(&other), expected(&[("contract-invalid", 3, Severity::Error)]));
        let cycle =
            neighbors.calls(&main).unwrap().into_iter().find(|f| f.code == "contract-invalid").unwrap();
        assert_eq!(cycle.message, "skills call each other in a cycle: x.main → x.other → x.main");
        let unknown = Neighbors::default();
        assert_eq!(unknown.calls(&main), Some(Vec::new()), "the other skills are not known");
    }

    #[test]
    fn required_name_with_a_space_has_a_position() {
        for (requires, line, column) in [
            ("requires: [pdf, table reader]", 4, 17),
            ("requires:\n  - pdf\n  - \"table reader\" # of tables", 6, 6),
            ("requires: table reader, pdf", 4, 11),
        ] {
            let source = format!(
                "---\nname: notes\ndescription: Writes notes. Use for notes.\n{requires}\n---\nbody\n"
            );
            let (_dir, path) = file(&source);
            let skill = skills_skill::read_bundle(&path).unwrap();
            let known = Some(BTreeSet::from(["pdf".to_owned()]));
            let found = Neighbors { skills: known, ..Neighbors::default() }.skills(&skill, &source);
            let positions: Vec<_> =
                found.iter().map(|finding| finding.span.map(|span| (span.line, span.column))).collect();
            assert_eq!(positions, [Some((line, column))], "{requires}");
        }
    }

    #[test]
    fn number_of_suggestions_is_limited() {
        let names: Vec<String> = (0..MAX_SUGGESTED_NAMES + 5).map(|n| format!("table-reader-{n}")).collect();
        let source = format!(
            "---\nname: notes\ndescription: Writes notes. Use for notes.\nrequires: [{}]\n---\nbody\n",
            names.join(", ")
        );
        let (_dir, path) = file(&source);
        let skill = skills_skill::read_bundle(&path).unwrap();
        for (checked, expected) in [(1, MAX_SUGGESTED_NAMES), (MAX_COMPARISONS / 3, 3), (usize::MAX, 0)] {
            let known = Some(BTreeSet::from(["table-reader".to_owned()]));
            let neighbors = Neighbors { skills: known, checked, ..Neighbors::default() };
            let found = neighbors.skills(&skill, &source);
            assert_eq!(found.len(), names.len(), "all are reported");
            let suggests = |finding: &&Finding| finding.help == "Did you mean table-reader?";
            assert_eq!(found.iter().filter(suggests).count(), expected, "{checked}");
        }
    }

    #[test]
    fn contracts_with_too_many_nested_steps_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, steps: usize, next: &str| {
            let folder = dir.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            let text = format!("---\nname: {name}\ndescription: Writes {name}. Use for {name}.\n---\nbody\n");
            fs::write(folder.join("SKILL.md"), text).unwrap();
            let uses = if next.is_empty() {
                "wait_for_signal: go".to_owned()
            } else {
                format!("uses: 'skill:{next}'")
            };
            let steps: String = (0..steps).map(|n| format!("  - {{id: s{n}, {uses}}}\n")).collect();
            fs::write(folder.join("skill.yaml"), format!("id: x.{name}\nsteps:\n{steps}")).unwrap();
            skills_skill::read_bundle(&folder.join("SKILL.md")).unwrap()
        };
        let mut all: Vec<Skill> =
            (0..12).map(|n| write(&format!("deep{n}"), 1, &format!("deep{}", n + 1))).collect();
        all.push(write("deep12", 1, ""));
        all.extend((0..4).map(|n| write(&format!("wide{n}"), 1_000, &format!("wide{}", n + 1))));
        all.push(write("wide4", 1_000, ""));
        let bundles: Vec<_> =
            all.iter().map(|skill| (skill.id.to_string(), skill.root_dir.clone())).collect();
        let neighbors = Neighbors {
            skills: Some(bundles.iter().map(|(id, _)| id.clone()).collect()),
            bundles,
            ..Neighbors::default()
        };
        let errors = |name: &str| {
            let skill = all.iter().find(|skill| skill.name == name).unwrap();
            let found = neighbors.calls(skill).unwrap();
            found
                .into_iter()
                .filter(|f| f.code == "contract-invalid")
                .map(|f| f.span.unwrap().line)
                .collect::<Vec<_>>()
        };
        assert_eq!((errors("deep0"), errors("deep1"), errors("deep2")), (vec![3], vec![3], Vec::new()));
        assert_eq!((errors("wide0").len(), errors("wide4").len()), (1, 0));
    }

    #[test]
    fn summary_counts_each_severity_of_a_rule() {
        let found = |severity| LintFinding {
            skill_id: SkillId::new("x"),
            location: "/skills/x/SKILL.md".into(),
            finding: Finding {
                code: "contract-reference".to_owned(),
                severity,
                field: None,
                file: "skill.yaml".into(),
                span: None,
                message: String::new(),
                help: String::new(),
                fixable: false,
            },
        };
        let findings = [Severity::Warning, Severity::Error, Severity::Error].map(found).to_vec();
        let mut report = LintReport { findings, ..LintReport::default() };
        report.summarize();
        let counts: Vec<_> =
            report.summary.iter().map(|rule| (rule.severity, rule.findings, rule.skills)).collect();
        assert_eq!(counts, [(Severity::Error, 2, 1), (Severity::Warning, 1, 1)]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_name_in_other_case_is_ignored_with_a_finding() {
        let (_dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        fs::write(path.with_file_name("skill.md"), "other").unwrap();
        let report = files(&[path]);
        assert_eq!(report.findings.iter().filter(|found| found.finding.code == "file-ignored").count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn contract_with_another_name_is_ignored_with_a_finding() {
        let (_dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        let messages = |path: &Path| {
            let found = files(&[path.to_owned()]).findings;
            let ignored = found.into_iter().filter(|found| found.finding.code == "file-ignored");
            ignored.map(|found| found.finding.message).collect::<Vec<_>>()
        };
        fs::write(path.with_file_name("Skill.yml"), "id: x.notes\n").unwrap();
        assert_eq!(messages(&path), ["`Skill.yml` is ignored: a contract is named `skill.yaml`"]);
        fs::write(path.with_file_name("skill.yaml"), "id: x.notes\n").unwrap();
        assert!(messages(&path).is_empty());
    }

    #[test]
    fn a_refused_file_is_in_the_report() {
        let (_dir, path) = file("---\nname: notes\n---\n");
        let report = files(&[path]);
        assert_eq!((report.skills, report.count(Severity::Error) > 0), (1, true));
    }

    #[test]
    fn files_of_a_refused_bundle_are_searched_for_hidden_text() {
        let (_dir, path) = file("---\nname: notes\nhooks: {Stop: []}\n---\n");
        fs::write(path.with_file_name("more.md"), "a\u{202e}b").unwrap();
        let codes = |report: LintReport| -> Vec<String> {
            report.findings.into_iter().map(|found| found.finding.code).collect()
        };
        let found = codes(files(&[path]));
        assert!(found.contains(&"smuggled-text".to_owned()), "{found:?}");
        assert!(found.contains(&"hooks".to_owned()), "{found:?}");
    }
}
