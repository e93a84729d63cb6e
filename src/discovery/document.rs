//! What the router knows of a skill: the texts it ranks by, and the facts its rules look at.

use serde::{Deserialize, Serialize};

use crate::skill::{AttachTarget, Digest, EffectMode, Invocation, Role, Skill, SkillId, Status};

/// Headings and body of a skill; only their statistics stay in the index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BodyText {
    /// Markdown headings, without their signs.
    pub headings: Vec<String>,
    /// The body, code fences in or out (they do not count).
    pub body: String,
}

/// One skill as the router takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// What a load call takes.
    pub id: SkillId,
    /// Its name.
    pub name: String,
    /// What a router selects on.
    pub description: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Headings and body; `None` while they have not been read.
    pub text: Option<BodyText>,
    /// Place in an answer.
    pub role: Role,
    /// How it may be invoked.
    pub invocation: Invocation,
    /// Where it stands in its life.
    pub status: Status,
    /// What it does.
    pub effect_mode: EffectMode,
    /// What it can be attached to.
    pub attach_targets: Vec<AttachTarget>,
    /// Subject area.
    pub domain: Option<String>,
    /// For a shadowed one, the winner's place as a person reads it.
    pub shadowed_by: Option<String>,
    /// Digest of its file: a cached index knows by it that nothing changed.
    pub digest: Option<Digest>,
}

impl Document {
    /// A procedure with a name and a description and nothing else.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: SkillId::new(id),
            name: name.into(),
            description: description.into(),
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

    /// From a record, and its headings and body where they have been read.
    #[must_use]
    pub fn from_skill(skill: &Skill, text: Option<BodyText>) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
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

    /// Marked as a bundle that lost its id; `winner` is the winner's place as a person reads it.
    #[must_use]
    pub fn shadowed(self, winner: impl Into<String>) -> Self {
        Self { shadowed_by: Some(winner.into()), ..self }
    }

    /// Whether both say the same, apart from headings and body, which the digest stands for.
    pub(crate) fn same_facts(&self, other: &Self) -> bool {
        self.digest.is_some()
            && self.id == other.id
            && self.name == other.name
            && self.description == other.description
            && self.tags == other.tags
            && self.role == other.role
            && self.invocation == other.invocation
            && self.status == other.status
            && self.effect_mode == other.effect_mode
            && self.attach_targets == other.attach_targets
            && self.domain == other.domain
            && self.shadowed_by == other.shadowed_by
            && self.digest == other.digest
    }
}

/// A name's parts as words: `-`, `_` and `/` become spaces.
pub(crate) fn name_words(name: &str) -> String {
    name.replace(['-', '_', '/'], " ")
}

/// Splits Markdown into its headings (`#` to `####`, outside of fences) and the text itself.
#[must_use]
pub fn split_markdown(markdown: &str) -> BodyText {
    let mut headings = Vec::new();
    for (line, fenced) in lines_outside_fences(markdown) {
        let signs = line.bytes().take_while(|b| *b == b'#').count();
        if !fenced && (1..=4).contains(&signs) {
            let text = line[signs..].trim().trim_end_matches('#').trim_end();
            if !text.is_empty() && line.as_bytes().get(signs).is_some_and(u8::is_ascii_whitespace) {
                headings.push(text.to_owned());
            }
        }
    }
    BodyText { headings, body: markdown.to_owned() }
}

/// Each line with whether it belongs to a code fence (its marks included).
pub(crate) fn lines_outside_fences(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut open: Option<&str> = None;
    text.lines().map(move |line| {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| trimmed.starts_with(m));
        match (open, mark) {
            (None, Some(m)) => {
                open = Some(m);
                (line, true)
            }
            (Some(o), Some(m)) if o == m => {
                open = None;
                (line, true)
            }
            (o, _) => (line, o.is_some()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_in_code_are_none() {
        let text = "# Tables\ntext\n```sh\n# a comment\n```\n## When to use ##\n#no space\n##### too deep\n";
        assert_eq!(split_markdown(text).headings, ["Tables", "When to use"]);
    }

    #[test]
    fn a_changed_fact_or_a_missing_digest_is_not_the_same() {
        let mut a = Document::new("a", "a", "does a");
        assert!(!a.same_facts(&a.clone()), "without a digest nobody knows");
        a.digest = Some(Digest::of(b"x"));
        assert!(a.same_facts(&a.clone()));
        assert!(!a.same_facts(&a.clone().shadowed("~/.claude/skills")));
    }
}
