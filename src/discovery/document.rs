//! The router's view of a skill: the texts it ranks by, and the facts its rules use.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use skills_skill::client::with_when_to_use;
use skills_skill::{AttachTarget, Digest, EffectMode, IndexText, Invocation, Role, Skill, SkillId, Status};

/// A skill as input of the router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The id by which it is loaded.
    pub id: SkillId,
    pub name: String,
    /// The text by which a model selects it.
    pub description: String,
    /// What the description says in a separate field, `when_to_use`.
    pub when_to_use: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Headings and body; `None` until they have been read. Only their statistics stay in the index.
    #[serde(skip)]
    pub text: Option<IndexText>,
    /// Its role in an answer.
    pub role: Role,
    /// How it may be invoked.
    pub invocation: Invocation,
    pub status: Status,
    pub effect_mode: EffectMode,
    /// What it can be attached to.
    pub attach_targets: Vec<AttachTarget>,
    /// Subject area.
    pub domain: Option<String>,
    /// For a shadowed skill, the display form of the winner's location.
    pub shadowed_by: Option<String>,
    /// Digest of its file, by which a cached index detects that nothing changed.
    pub digest: Option<Digest>,
}

impl Document {
    /// Creates a procedure with only an id, a name and a description.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: SkillId::new(id),
            name: name.into(),
            description: description.into(),
            when_to_use: None,
            tags: Vec::new(),
            text: None,
            role: Role::Procedure,
            invocation: Invocation::Direct,
            status: Status::Stable,
            effect_mode: EffectMode::Enrich,
            attach_targets: Vec::new(),
            domain: None,
            shadowed_by: None,
            digest: None,
        }
    }

    /// Creates a document from a skill record, and its headings and body if they have been read.
    #[must_use]
    pub fn from_skill(skill: &Skill, text: Option<IndexText>) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            when_to_use: skill.clients.when_to_use.clone(),
            tags: skill.tags.clone(),
            text,
            role: skill.classification.role.value,
            invocation: skill.classification.invocation.value,
            status: skill.status.value.clone(),
            effect_mode: skill.classification.effect_mode.value,
            attach_targets: skill.classification.attach_targets.clone(),
            domain: skill.domain.as_ref().map(|d| d.value.clone()),
            shadowed_by: None,
            digest: Some(skill.digest),
        }
    }

    /// Returns the description as it is ranked: with `when_to_use` at its end.
    #[must_use]
    pub fn full_description(&self) -> Cow<'_, str> {
        with_when_to_use(&self.description, self.when_to_use.as_deref())
    }

    /// Marks the document as shadowed; `winner` is the display form of the winner's location.
    #[must_use]
    pub fn shadowed(self, winner: impl Into<String>) -> Self {
        Self { shadowed_by: Some(winner.into()), ..self }
    }

    /// Returns whether it has the facts of a skill record; headings and body are compared by the digest.
    pub(crate) fn is_of(&self, skill: &Skill, shadowed_by: Option<&str>) -> bool {
        // Every field is named, so that a new one cannot be forgotten.
        let Self {
            id,
            name,
            description,
            when_to_use,
            tags,
            text: _,
            role,
            invocation,
            status,
            effect_mode,
            attach_targets,
            domain,
            shadowed_by: winner,
            digest,
        } = self;
        let classification = &skill.classification;
        *digest == Some(skill.digest)
            && *id == skill.id
            && *name == skill.name
            && *description == skill.description
            && *when_to_use == skill.clients.when_to_use
            && *tags == skill.tags
            && *role == classification.role.value
            && *invocation == classification.invocation.value
            && *status == skill.status.value
            && *effect_mode == classification.effect_mode.value
            && *attach_targets == classification.attach_targets
            && domain.as_ref() == skill.domain.as_ref().map(|domain| &domain.value)
            && winner.as_deref() == shadowed_by
    }
}

/// Splits a name into words: `-`, `_` and `/` become spaces.
pub(crate) fn name_words(name: &str) -> String {
    name.replace(['-', '_', '/'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_fact_or_missing_digest_is_a_difference() {
        let skill = |text: &str| {
            let text = format!("---\nname: a\ndescription: {text}\n---\n");
            skills_skill::parse(std::path::Path::new("/a/SKILL.md"), text.as_bytes(), 0).unwrap()
        };
        let (one, other) = (skill("Does a."), skill("Does b."));
        let document = Document::from_skill(&one, None);
        assert!(document.is_of(&one, None));
        assert!(!document.is_of(&other, None));
        assert!(!document.is_of(&one, Some("~/.claude/skills")));
        assert!(document.clone().shadowed("~/.claude/skills").is_of(&one, Some("~/.claude/skills")));
        let unknown = Document { digest: None, ..document };
        assert!(!unknown.is_of(&one, None), "equality is unknown without a digest");
    }
}
