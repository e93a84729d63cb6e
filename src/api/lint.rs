//! `lint`: everything that can be said of the bundles below some paths, and their repair. Blocking.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::Serialize;

use super::{Code, Error, names};
use skills_registry::Catalogue;
use skills_runs::{Capabilities, Place};
use skills_skill::client::SameName;
use skills_skill::contract;
use skills_skill::{Finding, Severity, Skill, SkillId, fix, lint};

/// One finding, and the bundle it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    /// The skill, or the id that a refused bundle would have had.
    pub skill_id: SkillId,
    /// Absolute path of its file.
    pub location: PathBuf,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A file that `--fix` changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FixedFile {
    /// Absolute path.
    pub location: PathBuf,
    /// Codes of the findings that are repaired.
    pub repaired: Vec<&'static str>,
}

/// What lint found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LintReport {
    /// Bundles that were looked at, refused ones included.
    pub skills: usize,
    /// All findings, by file and place.
    pub findings: Vec<LintFinding>,
    /// Files that were repaired before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<FixedFile>,
}

impl LintFinding {
    /// Absolute path of the file that the finding is in: the skill's own, or one beside it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.location.with_file_name(&self.finding.file)
    }
}

impl LintReport {
    /// How many findings of a severity there are.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|found| found.finding.severity == severity).count()
    }

    /// The findings of each file, in order.
    pub fn by_file(&self) -> impl Iterator<Item = &[LintFinding]> {
        self.findings.chunk_by(|a, b| a.path() == b.path())
    }
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LintStyle {
    /// Like a compiler's, with the source line.
    Report {
        /// With ANSI colors.
        colours: bool,
        /// With signs beyond ASCII.
        unicode: bool,
        /// Cells in a line.
        width: usize,
    },
    /// GitHub's workflow commands.
    Github,
}

/// The findings of one file as text; `shown` is its path as the person knows it.
#[must_use]
pub fn lint_text(findings: &[LintFinding], shown: &str, style: LintStyle) -> String {
    let only: Vec<Finding> = findings.iter().map(|found| found.finding.clone()).collect();
    match style {
        LintStyle::Github => lint::github(&only, shown),
        LintStyle::Report { colours, unicode, width } => {
            // What has no place is not opened: a link that was refused has none.
            let bytes = findings
                .iter()
                .find(|found| found.finding.span.is_some())
                .and_then(|found| skills_skill::read_regular(&found.path(), skills_skill::MAX_BYTES).ok())
                .unwrap_or_default();
            // A place counts bytes of the file; a file that is not UTF-8 is shown as far as it is.
            let source = match String::from_utf8(bytes) {
                Ok(source) => source,
                Err(error) => {
                    let valid = error.utf8_error().valid_up_to();
                    String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned()
                }
            };
            lint::report(&only, shown, &source, lint::Look { colours, unicode, width })
        }
    }
}

/// What is wrong in a catalog: the parser's, the linter's and the neighbors' findings.
#[must_use]
pub fn catalogue(catalogue: &Catalogue) -> LintReport {
    let known = Neighbors::of(catalogue);
    let winners = catalogue.entries.par_iter().flat_map_iter(|entry| of_skill(&entry.skill, Some(&known)));
    let losers = catalogue.shadowed.par_iter().flat_map_iter(|loser| {
        let shadowed = lint::shadowed(&loser.skill, &loser.winner, loser.identical);
        let own = of_skill(&loser.skill, Some(&known));
        own.into_iter().chain([found(&loser.skill.id, &loser.skill.location, shadowed)])
    });
    let refused = catalogue.refused.par_iter().flat_map_iter(|refusal| {
        refusal.findings.iter().map(|finding| found(&refusal.id, &refusal.location, finding.clone()))
    });
    let mut all: Vec<LintFinding> = winners.chain(losers).chain(refused).collect();
    all.extend(undefined(catalogue));
    LintReport {
        skills: catalogue.entries.len() + catalogue.shadowed.len() + catalogue.refused.len(),
        findings: sorted(all),
        fixed: Vec::new(),
    }
}

/// The findings of these skills, none of them shadowed.
pub fn winners(catalogue: &Catalogue, skills: &[Arc<Skill>]) -> Vec<LintFinding> {
    let known = Neighbors::of(catalogue);
    let own = skills.par_iter().flat_map_iter(|skill| of_skill(skill, Some(&known)));
    let mut all: Vec<LintFinding> = own.collect();
    let locations: HashSet<&Path> = skills.iter().map(|skill| skill.location.as_path()).collect();
    all.extend(undefined(catalogue).into_iter().filter(|found| locations.contains(found.location.as_path())));
    all
}

/// Skills of one name in folders of a client that keeps one of them, and not always the same.
fn undefined(catalogue: &Catalogue) -> Vec<LintFinding> {
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
        let losers = catalogue.shadowed.iter().map(|loser| &loser.skill);
        let all = catalogue.entries.iter().map(|entry| &entry.skill).chain(losers);
        let mut first: HashMap<&str, &Skill> = HashMap::new();
        for skill in all.filter(|skill| reads(skill)) {
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

/// What is wrong in single files, whatever is beside their bundles.
#[must_use]
pub fn files(paths: &[PathBuf]) -> LintReport {
    report_of(paths, None)
}

/// What is wrong in single files, and between their contracts and the capabilities in addition to them.
#[must_use]
pub fn files_in_place(paths: &[PathBuf]) -> LintReport {
    report_of(paths, Some(&Neighbors::default()))
}

fn report_of(paths: &[PathBuf], known: Option<&Neighbors>) -> LintReport {
    let of_file = |path: &PathBuf| match skills_skill::read_bundle(path) {
        Ok(skill) => of_skill(&skill, known),
        Err(refusal) => {
            let all = refusal.findings.into_iter();
            all.map(|finding| found(&refusal.id, &refusal.location, finding)).collect()
        }
    };
    let findings = paths.par_iter().flat_map_iter(of_file).collect();
    LintReport { skills: paths.len(), findings: sorted(findings), fixed: Vec::new() }
}

impl LintReport {
    /// Both together; a file that is in both counts once.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let known: HashSet<PathBuf> = self.findings.iter().map(|found| found.location.clone()).collect();
        self.skills += other.skills;
        self.findings.extend(other.findings.into_iter().filter(|found| !known.contains(&found.location)));
        self.findings = sorted(self.findings);
        self
    }
}

/// What the bundles beside one have that it may name.
#[derive(Debug, Default)]
pub struct Neighbors {
    /// Folders that may hold capabilities: roots and bundles.
    folders: Vec<PathBuf>,
    /// The capabilities of those folders, read where a contract is first met.
    capabilities: OnceLock<(Vec<Place>, Capabilities)>,
    /// Names by which skills can be loaded; nothing where the others are not known.
    skills: Option<BTreeSet<String>>,
}

impl Neighbors {
    /// All of a catalog.
    #[must_use]
    pub fn of(catalogue: &Catalogue) -> Self {
        let winners = catalogue.entries.iter().map(|entry| &*entry.skill);
        let skills: Vec<&Skill> =
            winners.chain(catalogue.shadowed.iter().map(|loser| &*loser.skill)).collect();
        let roots = catalogue.roots.iter().map(|root| root.path.clone());
        Self {
            folders: roots.chain(skills.iter().map(|skill| skill.root_dir.clone())).collect(),
            skills: Some(
                skills.iter().flat_map(|skill| [skill.id.to_string(), skill.name.clone()]).collect(),
            ),
            capabilities: OnceLock::new(),
        }
    }

    /// Findings about what a skill names of others. Reads the folders that hold capabilities where it has a contract.
    #[must_use]
    pub fn check(&self, skill: &Skill, source: &str) -> Vec<Finding> {
        let mut findings = self.requirements(skill, source);
        findings.extend(self.calls(skill).unwrap_or_default());
        findings
    }

    fn requirements(&self, skill: &Skill, source: &str) -> Vec<Finding> {
        let Some(known) = &self.skills else { return Vec::new() };
        let beside = |name: &String| {
            let sibling = skill.root_dir.parent().map(|parent| parent.join(name));
            let plain = !name.contains(['/', '\\']) && !name.starts_with('.');
            plain && sibling.is_some_and(|sibling| sibling.join("SKILL.md").is_file())
        };
        let missing = skill.requires.iter().filter(|name| !known.contains(*name) && !beside(name));
        missing
            .map(|name| {
                let near = names::near(name, known.iter().map(String::as_str));
                lint::requires_unknown(skill, source, name, &near)
            })
            .collect()
    }

    fn calls(&self, skill: &Skill) -> Option<Vec<Finding>> {
        let location = skill.root_dir.join("skill.yaml");
        let source = skills_skill::read_regular_text(&location, skills_skill::MAX_BYTES).ok()?;
        let contract = contract::parse(&location, &source).0?;
        let (places, shared) = self.capabilities.get_or_init(|| {
            let places: Vec<Place> =
                self.folders.iter().filter_map(|folder| capability_place(folder)).collect();
            let capabilities = Capabilities::load(&places);
            (places, capabilities)
        });
        // A registry keeps its capabilities in a folder above its skills.
        let above = skill.root_dir.ancestors().filter_map(capability_place);
        let mut all: Vec<Place> = above.filter(|place| !places.contains(place)).collect();
        let own = (!all.is_empty()).then(|| {
            all.extend(places.iter().cloned());
            Capabilities::load(&all)
        });
        let (names, known) = ([skill.id.as_str(), skill.name.as_str()], own.as_ref().unwrap_or(shared));
        Some(contract::check_calls(&location, &source, &contract, &names, known))
    }
}

fn capability_place(folder: &Path) -> Option<Place> {
    let holds = ["capabilities", "bindings"].iter().any(|name| folder.join(name).is_dir());
    holds.then(|| Place { dir: folder.to_owned(), bundle: None, shipped: false })
}

fn of_skill(skill: &Skill, known: Option<&Neighbors>) -> Vec<LintFinding> {
    let source = skill.read().ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let findings = match source {
        Some(source) => {
            let mut findings = lint::bundle(skill, &source);
            findings.extend(known.into_iter().flat_map(|known| known.check(skill, &source)));
            findings
        }
        // It was read a moment ago; what was found then still holds.
        None => skill.findings.clone(),
    };
    findings.into_iter().map(|finding| found(&skill.id, &skill.location, finding)).collect()
}

fn found(id: &SkillId, location: &Path, finding: Finding) -> LintFinding {
    LintFinding { skill_id: id.clone(), location: location.to_owned(), finding }
}

fn sorted(mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    findings.sort_by(|a, b| {
        // The skill's own file first, then those beside it.
        let place = |found: &LintFinding| {
            let path = found.path();
            (path != found.location, path, found.finding.span.map(|span| span.offset))
        };
        a.location.cmp(&b.location).then_with(|| place(a).cmp(&place(b)))
    });
    findings
}

/// Repairs the files in which something can be repaired without a guess, each in one atomic write.
///
/// # Errors
/// `invalid_configuration` for a file that cannot be written.
pub fn repair<'a>(files: impl Iterator<Item = &'a Path>) -> Result<Vec<FixedFile>, Error> {
    let mut fixed = Vec::new();
    for path in files {
        let Ok(bytes) = skills_skill::read_regular(path, skills_skill::MAX_BYTES) else { continue };
        let Some(better) = fix::fix(&bytes) else { continue };
        replace(path, &better.bytes).map_err(|error| {
            Error::new(Code::InvalidConfiguration, format!("cannot fix {}: {error}", path.display()))
        })?;
        fixed.push(FixedFile { location: path.to_owned(), repaired: better.applied });
    }
    Ok(fixed)
}

/// Puts new content in the place of a file: whole or not at all, with the permissions it had. A link
/// stays a link; what it leads to is replaced.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let real = path.canonicalize()?;
    let folder = real.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let permissions = fs::metadata(&real)?.permissions();
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&real)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes/SKILL.md");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn a_repaired_file_has_no_fixable_finding_left() {
        let (_dir, path) = file(
            "---\r\nname: notes\r\ndescription: Writes notes: short ones, when somebody asks for notes.\r\n---\r\nbody\r\n",
        );
        let fixable = || {
            files(std::slice::from_ref(&path)).findings.iter().filter(|found| found.finding.fixable).count()
        };
        assert!(fixable() > 0);
        let fixed = repair([path.as_path()].into_iter()).unwrap();
        assert_eq!((fixed.len(), fixable()), (1, 0), "{fixed:?}");
        assert_eq!(repair([path.as_path()].into_iter()).unwrap(), []);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let (dir, path) = file("---\nname: notes\ndescription: Writes notes: short ones\n---\n");
        let link = dir.path().join("link.md");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        repair([link.as_path()].into_iter()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&path).unwrap().contains("short ones"));
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
        let text = lint_text(
            own,
            "notes/skill.yaml",
            LintStyle::Report { colours: false, unicode: true, width: 80 },
        );
        assert!(text.contains("type: int"), "{text}");
    }

    fn codes(report: &LintReport) -> Vec<(&str, u32, Severity)> {
        let line = |found: &LintFinding| found.finding.span.map_or(0, |span| span.line);
        let found = report.findings.iter().filter(|found| found.finding.code.starts_with("contract"));
        found.map(|found| (found.finding.code.as_str(), line(found), found.finding.severity)).collect()
    }

    #[test]
    fn calls_are_held_against_their_capabilities() {
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
        let report = files_in_place(std::slice::from_ref(&path));
        assert_eq!(
            codes(&report),
            [
                ("contract-capability", 5, Severity::Warning),
                ("contract-input", 10, Severity::Warning),
                ("contract-input", 15, Severity::Error),
                ("contract-reference", 19, Severity::Error),
                ("contract-invalid", 21, Severity::Error),
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_differs_by_case_is_ignored_aloud() {
        let (_dir, path) = file("---\nname: notes\ndescription: Writes notes. Use for notes.\n---\nbody\n");
        fs::write(path.with_file_name("skill.md"), "other").unwrap();
        let report = files(&[path]);
        assert_eq!(report.findings.iter().filter(|found| found.finding.code == "file-ignored").count(), 1);
    }

    #[test]
    fn a_refused_file_is_in_the_report() {
        let (_dir, path) = file("---\nname: notes\n---\n");
        let report = files(&[path]);
        assert_eq!((report.skills, report.count(Severity::Error) > 0), (1, true));
    }
}
