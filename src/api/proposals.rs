//! Proposals: requests, lists, views and decisions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

use super::CheckResult;
use skills_authoring::proposals::diff::Hunk;
use skills_authoring::proposals::{ProposalDecision, ProposalState, SkillVersion};
use skills_discovery::GoldenChange;
use skills_skill::{Digest, Finding, SkillId};

/// A proposed change to a skill's `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposalRequest {
    /// Id, unambiguous name or location of the skill.
    pub skill_id: String,
    /// Unified diff of the skill's SKILL.md; paths in its headers are ignored.
    #[schemars(length(min = 1, max = 1_000_000))]
    pub diff: String,
    /// Why the change is needed.
    #[schemars(length(min = 1, max = 20_000))]
    pub justification: String,
    /// What supports it: sessions, queries, reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20_000))]
    pub evidence: Option<String>,
    /// Who proposes it, if the caller is not authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub by: Option<String>,
}

/// Which proposals are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProposalFilter {
    /// Only proposals in these states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<ProposalState>,
    /// Only proposals for this skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Page size, 1 to 1,000; default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<usize>,
    /// Continue after the page that ended with this cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The part of a file that a proposal changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, Display, EnumString, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProposedPart {
    /// Only the description.
    Description,
    /// Only the frontmatter.
    Frontmatter,
    /// Only the body.
    Body,
    /// Frontmatter and body.
    File,
}

/// A proposal in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProposalSummary {
    /// Id of the proposal.
    pub proposal_id: String,
    /// Id of the skill.
    pub skill_id: SkillId,
    /// State of the proposal.
    pub state: ProposalState,
    /// Who proposed it.
    pub proposed_by: String,
    /// When, milliseconds since 1970-01-01 UTC.
    pub proposed_at_ms: i64,
    /// The first line of the justification.
    pub title: String,
    /// The decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ProposalDecision>,
    /// The rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<ProposalDecision>,
    /// By how much P@1 of the golden sets changes, measured when it was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_at_1: Option<f64>,
}

/// Proposals, newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProposalList {
    /// The proposals.
    pub proposals: Vec<ProposalSummary>,
    /// Proposals that match, on all pages.
    pub total: usize,
    /// Proposals that wait for a decision, regardless of the filter.
    pub waiting: usize,
    /// Files in the folder of proposals that cannot be used, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What is checked before a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProposalCheckKind {
    /// The file is the one that the proposal was made for, so that the diff applies.
    Unchanged,
    /// The file can be written.
    Writable,
    /// Lint finds no more errors and warnings than before.
    Lint,
    /// No golden query is lost.
    Golden,
    /// The skill stays trusted.
    Trust,
}

/// A check with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposalCheck {
    /// What was checked.
    pub check: ProposalCheckKind,
    /// The result.
    pub result: CheckResult,
    /// Evidence, as a phrase without a final period.
    pub evidence: String,
}

/// A proposal with everything that its decision requires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProposalView {
    /// As in a list.
    pub summary: ProposalSummary,
    /// The skill's file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// Digest of the proposal: its diff, its texts and the file it is for.
    pub proposal_digest: Digest,
    /// Digest of the file that it was made for.
    pub base_digest: Digest,
    /// Digest of the file with the change.
    pub result_digest: Digest,
    /// The part of the file that it changes; none if the previous version is no longer available.
    pub part: Option<ProposedPart>,
    /// The unified diff.
    pub diff: String,
    /// The diff as data.
    pub hunks: Vec<Hunk>,
    /// Why it is proposed.
    pub justification: String,
    /// What supports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The description without the change; none if the previous version is no longer available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_description: Option<String>,
    /// The description with the change; none if the previous version is no longer available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Tokens of the description before and after (o200k vocabulary).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_tokens: Option<(u32, u32)>,
    /// Checks of a proposal that waits.
    pub checks: Vec<ProposalCheck>,
    /// Errors and warnings of lint that the change introduces.
    pub new_findings: Vec<Finding>,
    /// Errors and warnings of lint that the change fixes.
    pub fixed_findings: Vec<Finding>,
    /// Effects on the golden sets: measured now for a proposal that waits, else when it was proposed; none without a
    /// golden set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<GoldenChange>,
    /// Versions of the file that proposals know of, oldest first.
    pub versions: Vec<SkillVersion>,
}

impl ProposalView {
    /// Returns the failed check for which an approval would be rejected.
    pub fn blocking_check(&self) -> Option<&ProposalCheck> {
        self.checks.iter().find(|check| {
            check.result == CheckResult::Fail
                && matches!(check.check, ProposalCheckKind::Unchanged | ProposalCheckKind::Writable)
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProposalAction {
    /// Write the change.
    Approve {
        /// The digest of the proposal that was reviewed.
        proposal_digest: Option<Digest>,
        /// The digest of the file that it was reviewed for.
        base_digest: Option<Digest>,
    },
    /// Refuse the change.
    Deny,
    /// Restore the version before an applied change.
    RollBack,
}

/// Who gives a command, with notes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposalActionOptions {
    /// Who; default: the local account.
    pub by: Option<String>,
    /// Notes, stored with the decision.
    pub notes: Option<String>,
    /// Whether `by` is the owner of an API key without the scope `admin`, who may decide less.
    pub limited: bool,
}

/// The result of a command on a proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProposalOrdered")]
pub struct ProposalActionResult {
    /// The proposal.
    pub proposal: ProposalSummary,
    /// What happened, as a sentence without a final period.
    pub note: String,
    /// Whether the same had been decided before.
    pub repeated: bool,
}
