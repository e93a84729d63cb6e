//! Saves a description: to the file if it is writable, otherwise as a proposal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::proposals::{ProposalRequest, ProposalView};
use super::{Client, Code, Connection, Error, local};
use skills_authoring::proposals::diff;
use skills_authoring::write_back::{has_texts, replace_file, with_texts};
use skills_skill::{Digest, parse};

/// A description to save.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewDescription {
    /// Id, unambiguous name or location of the skill.
    pub skill_id: String,
    /// What the author was shown of the file; anything else is not replaced. `None` if nothing was shown.
    pub shown: Option<ShownFile>,
    /// The new one; default: the current one.
    pub description: Option<String>,
    /// The new `when_to_use`, empty to remove it; default: the current one.
    pub when_to_use: Option<String>,
    /// Justification of the proposal; default: that the author saved it.
    pub justification: Option<String>,
    /// Whether to create a proposal even if the file is writable.
    pub propose: bool,
    /// Earlier versions of the file, newest last: one that has the new texts and differs in nothing else is restored
    /// byte for byte.
    pub earlier: Vec<Arc<str>>,
}

/// What an author was shown of a file before changing its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownFile {
    Digest(Digest),
    Description(String),
}

impl ShownFile {
    fn is_of(&self, location: &Path, source: &str) -> bool {
        match self {
            Self::Digest(digest) => *digest == Digest::of(source.as_bytes()),
            Self::Description(shown) => {
                parse(location, source.as_bytes(), 0).is_ok_and(|present| present.description == *shown)
            }
        }
    }
}

/// Where a description was saved.
#[derive(Debug, Clone, PartialEq)]
pub enum SavedDescription {
    /// In the file: its location, its text before and after.
    Written(PathBuf, String, String),
    /// As a proposal, for this reason.
    Proposed(Box<ProposalView>, String),
}

/// Saves a description. Every other byte of the file is preserved.
///
/// # Errors
/// Returns `skill_changed` if the file is not what the author started from, and `internal_error` with the cause if it
/// cannot be written; also the errors of `propose`.
pub async fn save_description(
    core: &(impl Client + ?Sized),
    new: NewDescription,
) -> Result<SavedDescription, Error> {
    let detail = core.describe(&new.skill_id).await?;
    // The text that is compared is the one that is replaced: the catalog may not have noticed a change yet.
    let (location, source) = (detail.summary.location.clone(), detail.source.clone());
    if new.shown.as_ref().is_some_and(|shown| !shown.is_of(&location, &source)) {
        let message = format!(
            "not written: {} has changed since its description was shown; compare again",
            location.display()
        );
        return Err(Error::new(Code::SkillChanged, message));
    }
    // A description has no blanks around it.
    let description = new.description.as_deref().map(str::trim);
    let when_to_use = new.when_to_use.as_deref().map(str::trim);
    let restores = |earlier: &&Arc<str>| has_texts(&location, &source, earlier, description, when_to_use);
    let written = match new.earlier.iter().rev().find(restores) {
        Some(earlier) => earlier.to_string(),
        None => with_texts(&location, &source, description, when_to_use)?,
    };
    let obstacle = match core.connection() {
        Connection::Remote { .. } => Some("the file is on the service's machine".to_owned()),
        Connection::Local if new.propose => Some("as requested".to_owned()),
        Connection::Local => {
            let catalog = core.catalog().await?;
            local::read_only(&catalog, &detail.skill)
        }
    };
    if let Some(obstacle) = obstacle {
        let request = ProposalRequest {
            skill_id: new.skill_id,
            diff: diff::between(&source, &written)?,
            justification: new.justification.unwrap_or_else(|| "Changes the description.".to_owned()),
            ..ProposalRequest::default()
        };
        return Ok(SavedDescription::Proposed(Box::new(core.propose(request).await?), obstacle));
    }
    let (place, old, text) = (location.clone(), source.clone(), written.clone());
    let replaced =
        crate::work::spawn_blocking(move || replace_file(&place, old.as_bytes(), text.as_bytes())).await;
    replaced.map_err(|error| Error::new(Code::InternalError, error.to_string()))??;
    Ok(SavedDescription::Written(location, source, written))
}
