//! `lint --fix`: files are repaired under the resolved paths that were checked, so that no link leads to another one.

use std::path::{Path, PathBuf};

use skills_base::files::{self, OpenError};
use skills_registry::Catalog;
use skills_registry::trust::is_bundle;
use skills_skill::lint::rules;
use skills_skill::{Finding, RefusalReason, SkillId, fix, is_main_file};

use super::{FixedFile, LintFinding, found};
use crate::{Code, Error};

/// A file that may be repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repairable {
    pub location: PathBuf,
    /// Its path with links resolved.
    pub real: PathBuf,
}

/// Resolves a file or folder named by the user, or returns the finding that it is a link that points outside its
/// folder. A bundle that is such a link is rejected, too; links of a folder of bundles are followed: `~/.claude/skills`
/// often is one.
///
/// # Errors
/// Returns the finding.
pub fn named(path: &Path) -> Result<Repairable, Box<LintFinding>> {
    let name = path.file_name().unwrap_or_default();
    let is_main = name.to_str().is_some_and(is_main_file);
    let real = match path.parent().filter(|bundle| is_main && bundle.file_name().is_some()) {
        Some(bundle) => {
            files::resolve_named(bundle).and_then(|bundle| files::resolve_named(&bundle.join(name)))
        }
        None if path.is_dir() && !is_bundle(path) => {
            return Ok(Repairable {
                location: path.to_owned(),
                real: files::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            });
        }
        None => files::resolve_named(path),
    };
    match real {
        Ok(real) => Ok(Repairable { location: path.to_owned(), real }),
        Err(OpenError::Link { path: link, why }) => Err(Box::new(leaves(path, &format!("{link}: {why}")))),
        // Any other problem is reported by the linter: nothing is written here.
        Err(_) => Ok(Repairable { location: path.to_owned(), real: path.to_owned() }),
    }
}

fn leaves(path: &Path, message: &str) -> LintFinding {
    let rule = &rules::LINK_LEAVES_ROOT;
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let id = SkillId::new(folder.file_name().unwrap_or_default().to_string_lossy());
    let finding = Finding {
        code: rule.code.to_owned(),
        severity: rule.severity,
        field: None,
        file: path.file_name().unwrap_or_default().into(),
        span: None,
        message: format!("{message}; it was not fixed"),
        help: rule.help.to_owned(),
        fixable: false,
    };
    found(&id, path, finding)
}

impl Repairable {
    /// Returns the files of a catalog in one of these folders, which are resolved paths. Bundles that the catalog
    /// rejected because they leave their root are omitted.
    pub fn of<'a>(catalog: &'a Catalog, folders: &'a [PathBuf]) -> impl Iterator<Item = Self> + 'a {
        let read = catalog
            .all_skills()
            .map(|skill| Self { location: skill.location.clone(), real: skill.real_location().to_owned() });
        let refused = catalog.refused.iter().filter(|refusal| refusal.reason != RefusalReason::LeavesRoot);
        let refused = refused.filter_map(|refusal| {
            let real = files::canonicalize(&refusal.location).ok()?;
            Some(Self { location: refusal.location.clone(), real })
        });
        // A folder may have become a link since it was resolved.
        read.chain(refused).filter(move |file| folders.iter().any(|folder| file.real.starts_with(folder)))
    }
}

/// Repairs the files with unambiguous repairs, each in one atomic write.
///
/// # Errors
/// Returns `invalid_configuration` for a file that cannot be written, or that was replaced by a link or changed
/// in the meantime.
pub fn repair(files: impl Iterator<Item = Repairable>) -> Result<Vec<FixedFile>, Error> {
    let mut fixed = Vec::new();
    for Repairable { location, real } in files {
        let cannot = |why: String| {
            Error::new(Code::InvalidConfiguration, format!("cannot fix {}: {why}", location.display()))
        };
        let bytes = match files::read_file(&real, skills_skill::MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(refusal @ OpenError::Link { .. }) => return Err(cannot(refusal.to_string())),
            Err(_) => continue,
        };
        let Some(better) = fix::fix(&bytes) else { continue };
        match files::replace_file(&real, &bytes, &better.bytes) {
            Ok(true) => {}
            Ok(false) => return Err(cannot("it has changed since it was read; try again".to_owned())),
            Err(error) => return Err(cannot(error.to_string())),
        }
        let repaired = better.applied.into_iter().map(str::to_owned).collect();
        fixed.push(FixedFile { location, repaired });
    }
    Ok(fixed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::lint;

    const CRLF: &str = "---\r\nname: notes\r\ndescription: Writes notes: short ones, when a user asks for \
                        notes.\r\n---\r\nbody\r\n";

    /// Returns a root with the bundle `notes`, without links in its path, and the bundle's file.
    fn root() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        let file = root.join("notes/SKILL.md");
        fs::create_dir_all(root.join("notes")).unwrap();
        fs::write(&file, CRLF).unwrap();
        (dir, root, file)
    }

    fn repaired(path: &Path) -> Result<Vec<FixedFile>, Error> {
        repair(std::iter::once(named(path).unwrap()))
    }

    #[test]
    fn a_repaired_file_has_no_fixable_finding_left() {
        let (_dir, _root, path) = root();
        let fixable = || {
            let report = lint::files(std::slice::from_ref(&path));
            report.findings.iter().filter(|found| found.finding.fixable).count()
        };
        assert!(fixable() > 0);
        let fixed = repaired(&path).unwrap();
        assert_eq!((fixed.len(), fixable()), (1, 0), "{fixed:?}");
        assert_eq!(repaired(&path).unwrap(), []);
    }

    #[cfg(unix)]
    #[test]
    fn link_to_a_file_in_the_folder_is_kept() {
        let (_dir, root, path) = root();
        let link = root.join("link.md");
        std::os::unix::fs::symlink("notes/SKILL.md", &link).unwrap();
        assert_eq!(repaired(&link).unwrap().len(), 1);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!fs::read_to_string(&path).unwrap().contains('\r'));
    }

    #[cfg(unix)]
    #[test]
    fn named_link_to_another_folder_is_a_finding() {
        let (dir, root, path) = root();
        let outside = dir.path().join("outside");
        fs::rename(root.join("notes"), &outside).unwrap();
        fs::create_dir(root.join("notes")).unwrap();
        std::os::unix::fs::symlink(outside.join("SKILL.md"), &path).unwrap();
        std::os::unix::fs::symlink("../outside", root.join("linked")).unwrap();
        for path in [path, root.join("linked"), root.join("linked/SKILL.md")] {
            let refused = named(&path).unwrap_err();
            assert_eq!((refused.finding.code.as_str(), &refused.location), ("link-leaves-root", &path));
        }
        let skills = dir.path().join("skills");
        std::os::unix::fs::symlink(&root, &skills).unwrap();
        assert_eq!(named(&skills).unwrap().real, root, "a folder of bundles");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_is_swapped_in_is_not_followed() {
        let (dir, root, path) = root();
        let outside = dir.path().join("outside");
        let file = named(&path).unwrap();
        fs::rename(root.join("notes"), &outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("notes")).unwrap();
        assert_eq!(repair(std::iter::once(file)).unwrap_err().code, Code::InvalidConfiguration);
        fs::remove_file(root.join("notes")).unwrap();
        fs::create_dir(root.join("notes")).unwrap();
        let file = Repairable { location: path.clone(), real: path.clone() };
        std::os::unix::fs::symlink(outside.join("SKILL.md"), &path).unwrap();
        assert_eq!(repair(std::iter::once(file)).unwrap_err().code, Code::InvalidConfiguration);
        assert_eq!(fs::read_to_string(outside.join("SKILL.md")).unwrap(), CRLF);
    }
}
