//! Drift of the loaded skills of a session: their files are read again, and looked up in the current roots.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::composition::Composer;
use crate::local::levels;
use crate::{Code, Error, LevelSize, LevelsView, LoadedFile, LoadedFrom, SkillDrift};
use skills_base::files::{self, Folder};
use skills_registry::Catalog;
use skills_session::{Active, Session, ToolError, ToolFailure, body_text, entry_text};
use skills_skill::{Digest, Skill, SkillId};

impl Composer {
    /// Returns the state of each loaded skill that differs from what was loaded.
    pub(super) async fn drift(&self, active: &[Active]) -> Result<BTreeMap<String, SkillDrift>, Error> {
        let catalog = self.skills.registry.snapshot();
        let files: Vec<_> = active
            .iter()
            .map(|skill| {
                // Another path of the file has the same content, whichever bundle contains it.
                let here = catalog.by_location(&skill.location).cloned();
                let loaded = (skill.location.clone(), skill.digest.clone());
                (skill.name.clone(), loaded, here, known(skill, &catalog))
            })
            .collect();
        crate::work::run_blocking(move || {
            let now = files.into_iter().map(|(name, (location, digest), here, roots)| {
                let file = file_now(here.as_deref(), &location, &digest);
                (name, SkillDrift { file, roots })
            });
            Ok(now.filter(|(_, drift)| !drift.is_usual()).collect())
        })
        .await
    }

    /// Returns a loaded skill at each level, as the session has it: its body is the one that was loaded, even if its
    /// file changed since.
    pub(super) async fn levels_of_loaded(
        &self,
        session: &Session,
        requested: &str,
    ) -> Result<LevelsView, Error> {
        let active = session
            .loaded(Some(requested))
            .map_err(|error| Error::new(Code::NotFound, error.message))?
            .clone();
        let catalog = self.skills.registry.snapshot();
        let counts = Arc::clone(&self.levels);
        crate::work::run_blocking(move || {
            let here = listed(&active, &catalog).filter(|skill| skill.id.as_str() == active.name);
            let entry = here.map(|skill| levels::entry(skill));
            let listed =
                open(&active, &catalog).and_then(|bundle| super::composition::sizes(&counts, &bundle));
            let (files, files_unknown) = match listed {
                Ok(files) => (files, None),
                Err(error) => (Vec::new(), Some(unknown(&active.root_dir, &error))),
            };
            Ok(LevelsView {
                l1: entry.as_ref().map_or(LevelSize::default(), |entry| counts.size(&entry_text(entry))),
                l2: counts.size(&body_text(&active.name, &active.body)),
                skill_id: SkillId::new(active.name),
                entry,
                body: active.body,
                files,
                files_unknown,
            })
        })
        .await
    }
}

fn unknown(folder: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            format!("its folder does not exist: {}", folder.display())
        }
        _ => format!("cannot read its folder: {}: {error}", folder.display()),
    }
}

/// Returns the loaded skill as the catalog lists it. The file may be listed as that of a bundle in another folder, if it is
/// a link: that is another skill.
pub(super) fn listed<'c>(active: &Active, catalog: &'c Catalog) -> Option<&'c Arc<Skill>> {
    catalog.by_location(&active.location).filter(|skill| is_same_bundle(active, skill))
}

/// Returns whether the bundle of a listed skill is the one that was loaded, perhaps by another path.
fn is_same_bundle(active: &Active, skill: &Skill) -> bool {
    skill.location == active.location
        || files::canonicalize(&active.root_dir).is_ok_and(|real| real == skill.real_folder())
}

fn known(active: &Active, catalog: &Catalog) -> LoadedFrom {
    if let Some(here) = listed(active, catalog) {
        return if here.id.as_str() == active.name { LoadedFrom::Here } else { LoadedFrom::Renamed };
    }
    if catalog.refused.iter().any(|refusal| refusal.location == active.location) {
        return LoadedFrom::Refused;
    }
    if catalog.by_id(&active.name).is_some() { LoadedFrom::Namesake } else { LoadedFrom::Elsewhere }
}

/// Opens the folder of a loaded skill, to read files beneath it: its current location if the roots contain it, else the
/// one from which it was loaded.
///
/// # Errors
/// Returns an error of the system, and if the roots now list the file as that of another bundle.
pub(super) fn open(active: &Active, catalog: &Catalog) -> std::io::Result<Folder> {
    match catalog.by_location(&active.location) {
        Some(skill) if is_same_bundle(active, skill) => skill.open(),
        Some(skill) => Err(std::io::Error::other(format!(
            "{} is now listed as the file of {} in {}; load the skill again",
            active.location.display(),
            skill.id,
            skill.root_dir.display()
        ))),
        None => Folder::open(&active.root_dir),
    }
}

/// Like [`open`], for a tool.
///
/// # Errors
/// Returns `skill_changed` if the folder was replaced by a link, no longer exists, or is not that of the listed skill.
pub(super) fn open_loaded(active: &Active, catalog: &Catalog) -> Result<Folder, ToolError> {
    open(active, catalog).map_err(|error| {
        let code = match error.kind() {
            ErrorKind::PermissionDenied => ToolFailure::RuntimeError,
            _ => ToolFailure::SkillChanged,
        };
        let message = format!("cannot open the folder of {} as it was loaded: {error}", active.name);
        ToolError::new(code, message)
    })
}

fn file_now(here: Option<&Skill>, location: &Path, loaded: &str) -> LoadedFile {
    let read = here.map_or_else(|| files::read_file(location, skills_skill::MAX_BYTES), Skill::read);
    match read.map_err(std::io::Error::from) {
        // Like loading: invalid UTF-8 is replaced before the digest is computed.
        Ok(bytes) if Digest::of(String::from_utf8_lossy(&bytes).as_bytes()).to_string() == loaded => {
            LoadedFile::Unchanged
        }
        Ok(_) => LoadedFile::Changed,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let folder = location.parent().is_some_and(Path::is_dir);
            if folder { LoadedFile::Gone } else { LoadedFile::FolderGone }
        }
        Err(_) => LoadedFile::Unreadable,
    }
}
