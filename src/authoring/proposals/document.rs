//! A proposal as a Markdown file: frontmatter with the facts, followed by sections for readers.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

use skills_discovery::GoldenChange;
use skills_skill::{Digest, SkillId};

/// The state of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, Display, EnumString, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProposalState {
    /// Waiting for a decision.
    Waiting,
    /// Approved and applied.
    Approved,
    /// Denied.
    Denied,
    /// Applied and later rolled back.
    RolledBack,
}

/// Who decided, when, and with which notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposalDecision {
    /// Who.
    pub by: String,
    /// When, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// The facts of a proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Its id, which is also the name of its file.
    pub proposal_id: String,
    pub skill_id: SkillId,
    /// The skill's file.
    pub location: PathBuf,
    /// The file's real path when the change was proposed; absent in proposals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<PathBuf>,
    /// Digest of the file that the diff was made for.
    pub base_digest: Digest,
    /// Digest of the file with the diff.
    pub result_digest: Digest,
    /// Who proposed it.
    pub proposed_by: String,
    /// When, milliseconds since 1970-01-01 UTC.
    pub proposed_at_ms: i64,
    pub state: ProposalState,
    /// An approval that was recorded and whose write was not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applying: Option<ProposalDecision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ProposalDecision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<ProposalDecision>,
    /// The effect on the golden sets, measured when it was proposed; absent without golden sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<GoldenChange>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub facts: Facts,
    /// Why the change is proposed.
    pub justification: String,
    /// Supporting evidence.
    pub evidence: Option<String>,
    /// The unified diff.
    pub diff: String,
}

/// The beginning of a proposal's file, which lists show: the facts, without the queries of the effect, and the first line
/// of the justification.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalHead {
    pub facts: Facts,
    /// The first line of the justification.
    pub title: String,
}

impl ProposalHead {
    /// Reads the beginning of a file that [`Proposal::to_markdown`] created, at most `limit` bytes.
    ///
    /// # Errors
    /// Returns what is missing or invalid.
    pub fn read(file: impl Read, limit: u64) -> Result<Self, String> {
        let mut lines = BufReader::new(file.take(limit)).lines();
        let mut next = || lines.next().transpose().map_err(|error| error.to_string());
        if next()?.as_deref() != Some("---") {
            return Err(NO_START.to_owned());
        }
        let mut facts = String::new();
        loop {
            match next()?.as_deref() {
                Some("---") => break,
                Some(line) => facts.extend([line, "\n"]),
                None => return Err(NO_END.to_owned()),
            }
        }
        let mut facts: Facts =
            serde_saphyr::from_str(&facts).map_err(|error| error.without_snippet().to_string())?;
        if let Some(effect) = &mut facts.effect {
            *effect = GoldenChange { before: effect.before, after: effect.after, ..GoldenChange::default() };
        }
        while let Some(line) = next()? {
            if line.trim_end() == SECTIONS[0] {
                while let Some(line) = next()? {
                    if !line.trim().is_empty() {
                        return Ok(Self { facts, title: unescaped(&line) });
                    }
                }
            }
        }
        Err(NO_JUSTIFICATION.to_owned())
    }
}

const NO_START: &str = "it does not begin with `---`";
const NO_END: &str = "its frontmatter does not end";
const NO_JUSTIFICATION: &str = "it has no section `## Justification`";

/// The section headings, in order.
const SECTIONS: [&str; 3] = ["## Justification", "## Evidence", "## Diff"];

impl Proposal {
    /// Returns what lists show of it.
    pub fn head(&self) -> ProposalHead {
        let title = self.justification.lines().next().unwrap_or_default().to_owned();
        ProposalHead { facts: self.facts.clone(), title }
    }

    /// Returns the digest of everything that is decided: what is proposed, for which file, by whom and why.
    pub fn digest(&self) -> Digest {
        let Facts {
            proposal_id,
            skill_id,
            location,
            base_digest,
            result_digest,
            proposed_by,
            proposed_at_ms,
            ..
        } = &self.facts;
        let mut text = String::new();
        let parts = [
            proposal_id.as_str(),
            skill_id.as_str(),
            &location.to_string_lossy(),
            &base_digest.to_string(),
            &result_digest.to_string(),
            proposed_by,
            &proposed_at_ms.to_string(),
            &self.justification,
            self.evidence.as_deref().unwrap_or_default(),
            &self.diff,
        ];
        for part in parts {
            // Prefixed by their lengths, so that no two proposals have the same encoding.
            let _ = writeln!(text, "{}:{part}", part.len());
        }
        Digest::of(text.as_bytes())
    }

    /// Formats the proposal as a Markdown file.
    ///
    /// # Errors
    /// Returns an error if the facts cannot be serialized as YAML.
    pub fn to_markdown(&self) -> Result<String, String> {
        let facts = serde_saphyr::to_string(&self.facts).map_err(|error| error.to_string())?;
        let mut out = format!("---\n{}\n---\n", facts.trim_end());
        let _ = write!(out, "\n{}\n\n{}\n", SECTIONS[0], escaped(&self.justification));
        if let Some(evidence) = &self.evidence {
            let _ = write!(out, "\n{}\n\n{}\n", SECTIONS[1], escaped(evidence));
        }
        let longest = self.diff.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let end = if self.diff.ends_with('\n') { "" } else { "\n" };
        let _ = write!(out, "\n{}\n\n{fence}diff\n{}{end}{fence}\n", SECTIONS[2], self.diff);
        Ok(out)
    }

    /// Parses a file that [`Self::to_markdown`] created.
    ///
    /// # Errors
    /// Returns what is missing or invalid.
    pub fn of_markdown(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("---\n").ok_or(NO_START)?;
        let (facts, body) = rest.split_once("\n---\n").ok_or(NO_END)?;
        let facts: Facts =
            serde_saphyr::from_str(facts).map_err(|error| error.without_snippet().to_string())?;
        let mut sections: [Option<String>; 3] = [None, None, None];
        let mut current = None;
        for line in body.split_inclusive('\n') {
            let heading = SECTIONS.iter().position(|title| *title == line.trim_end());
            // The diff is the last section: everything after its heading belongs to it.
            match heading.filter(|_| current != Some(2)) {
                Some(at) => {
                    current = Some(at);
                    sections[at] = Some(String::new());
                }
                None => {
                    if let Some(section) = current.and_then(|at| sections[at].as_mut()) {
                        section.push_str(line);
                    }
                }
            }
        }
        let [justification, evidence, diff] = sections;
        let diff = diff.as_deref().and_then(fenced).ok_or("it has no section `## Diff` with a code block")?;
        let justification = justification.ok_or(NO_JUSTIFICATION)?;
        Ok(Self {
            facts,
            justification: unescaped(&justification),
            evidence: evidence.as_deref().map(unescaped),
            diff,
        })
    }
}

/// Returns the content of the code block that a section consists of.
fn fenced(section: &str) -> Option<String> {
    let section = section.trim_start_matches('\n').trim_end();
    let (first, rest) = section.split_once('\n')?;
    let fence: String = first.chars().take_while(|letter| *letter == '`').collect();
    let inside = rest.strip_suffix(&fence).filter(|_| fence.len() >= 3)?;
    Some(inside.to_owned())
}

/// Escapes lines that would start a section: a backslash before `##` is an escape in Markdown.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        if line.trim_start_matches('\\').starts_with("## ") { format!("\\{line}") } else { line.to_owned() }
    };
    text.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

fn unescaped(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix('\\') {
        Some(rest) if rest.trim_start_matches('\\').starts_with("## ") => rest.to_owned(),
        _ => line.to_owned(),
    };
    text.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn proposal(id: &str) -> Proposal {
        Proposal {
            facts: Facts {
                proposal_id: id.to_owned(),
                skill_id: SkillId::new("billing"),
                location: "/s/billing/SKILL.md".into(),
                real: None,
                base_digest: Digest::of(b"base"),
                result_digest: Digest::of(b"result"),
                proposed_by: "ana: \"#1\"".to_owned(),
                proposed_at_ms: 1_780_000_000_123,
                state: ProposalState::Waiting,
                applying: None,
                decision: None,
                rollback: None,
                effect: Some(GoldenChange::default()),
            },
            justification: "Misses “subscriptions”.".to_owned(),
            evidence: None,
            diff: "@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        }
    }

    #[test]
    fn every_text_round_trips() {
        let mut one = proposal("billing-1");
        one.justification = "Why:\n\n## Diff\n\\## Evidence\n```\ncode\n---\n".trim().to_owned();
        one.evidence = Some("## Justification\n- [why.json](why.json)".to_owned());
        one.diff = "@@ -1,2 +1,3 @@\n ---\n-````diff\n+## Evidence\n+---\n".to_owned();
        one.facts.decision = Some(ProposalDecision {
            by: "kim".to_owned(),
            at_ms: 5,
            notes: Some("line\n---\nline".to_owned()),
        });
        let read = Proposal::of_markdown(&one.to_markdown().unwrap()).unwrap();
        assert_eq!(read, one);
        assert_eq!(read.digest(), one.digest());
        let text = one.to_markdown().unwrap();
        assert_eq!(ProposalHead::read(text.as_bytes(), 1 << 20).unwrap(), one.head());
    }

    #[test]
    fn digest_covers_the_decided_content() {
        let one = proposal("billing-1");
        let mut decided = one.clone();
        decided.facts.state = ProposalState::Denied;
        assert_eq!(one.digest(), decided.digest());
        let other = Proposal { diff: one.diff.replace("+b", "+c"), ..one.clone() };
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn damaged_file_error_names_the_missing_part() {
        let text = proposal("billing-1").to_markdown().unwrap();
        assert!(Proposal::of_markdown("x").is_err());
        assert!(
            Proposal::of_markdown(&text.replace("## Justification", "## Reason"))
                .unwrap_err()
                .contains("Justification")
        );
        assert!(Proposal::of_markdown(&text.replace("```", "")).unwrap_err().contains("Diff"));
        assert!(Proposal::of_markdown(&text.replace("base_digest", "base")).is_err());
        for damaged in [
            "x".to_owned(),
            text.replace("## Justification", "## Reason"),
            text.replace("base_digest", "base"),
        ] {
            let error = Proposal::of_markdown(&damaged).unwrap_err();
            assert_eq!(ProposalHead::read(damaged.as_bytes(), 1 << 20).unwrap_err(), error);
        }
        assert!(ProposalHead::read(text.as_bytes(), 40).is_err());
    }
}
