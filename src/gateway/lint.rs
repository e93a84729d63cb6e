//! `lint`: everything that can be said of the bundles below some paths, and their repair. Blocking.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::{Code, Error};
use crate::registry::Catalogue;
use crate::skill::{self, Finding, Severity, Skill, SkillId, fix, lint};

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

impl LintReport {
    /// How many findings of a severity there are.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|found| found.finding.severity == severity).count()
    }

    /// The findings of each file, in order.
    pub fn by_file(&self) -> impl Iterator<Item = &[LintFinding]> {
        self.findings.chunk_by(|a, b| a.location == b.location)
    }
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LintStyle {
    /// Like a compiler's, with the source line.
    Report {
        /// With ANSI colours.
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
                .and_then(|found| skill::read_regular(&found.location, skill::MAX_BYTES).ok())
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

/// What is wrong in a catalogue: the parser's, the linter's and the neighbours' findings.
#[must_use]
pub fn catalogue(catalogue: &Catalogue) -> LintReport {
    let winners = catalogue.entries.par_iter().flat_map_iter(|entry| of_skill(&entry.skill));
    let losers = catalogue.shadowed.par_iter().flat_map_iter(|loser| {
        let shadowed = lint::shadowed(&loser.skill, &loser.winner, loser.identical);
        of_skill(&loser.skill).into_iter().chain([found(&loser.skill.id, &loser.skill.location, shadowed)])
    });
    let refused = catalogue.refused.par_iter().flat_map_iter(|refusal| {
        refusal.findings.iter().map(|finding| found(&refusal.id, &refusal.location, finding.clone()))
    });
    LintReport {
        skills: catalogue.entries.len() + catalogue.shadowed.len() + catalogue.refused.len(),
        findings: sorted(winners.chain(losers).chain(refused).collect()),
        fixed: Vec::new(),
    }
}

/// What is wrong in single files.
#[must_use]
pub fn files(paths: &[PathBuf]) -> LintReport {
    let of_file = |path: &PathBuf| match skill::read_bundle(path) {
        Ok(skill) => of_skill(&skill),
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

fn of_skill(skill: &Skill) -> Vec<LintFinding> {
    let findings = match skill::read_regular_text(&skill.location, skill::MAX_BYTES) {
        Ok(source) => lint::bundle(skill, &source),
        // It was read a moment ago; what was found then still holds.
        Err(_) => skill.findings.clone(),
    };
    findings.into_iter().map(|finding| found(&skill.id, &skill.location, finding)).collect()
}

fn found(id: &SkillId, location: &Path, finding: Finding) -> LintFinding {
    LintFinding { skill_id: id.clone(), location: location.to_owned(), finding }
}

fn sorted(mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    findings.sort_by(|a, b| {
        let place = |found: &LintFinding| found.finding.span.map(|span| span.offset);
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
        let Ok(bytes) = skill::read_regular(path, skill::MAX_BYTES) else { continue };
        let Some(better) = fix::fix(&bytes) else { continue };
        replace(path, &better.bytes).map_err(|error| {
            Error::new(Code::InvalidConfiguration, format!("{} cannot be repaired: {error}", path.display()))
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
    fn a_refused_file_is_in_the_report() {
        let (_dir, path) = file("---\nname: notes\n---\n");
        let report = files(&[path]);
        assert_eq!((report.skills, report.count(Severity::Error) > 0), (1, true));
    }
}
