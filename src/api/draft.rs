//! `draft`: what another description of a skill would change, before it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GoldenQuery;
use skills_discovery::{Advice, AttractingWord, ClauseValue, GoldenChange, SignalSums};
use skills_skill::{Finding, SkillId};

/// How much of a draft is measured: an editor requests little at each key, and more when its user pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DraftMeasure {
    /// The request, tokens, findings, and what clients show.
    Request,
    /// The golden sets too.
    Golden,
    /// Advice for missed queries too.
    #[default]
    All,
}

/// A draft of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftRequest {
    /// Id, unambiguous name or location.
    pub skill_id: String,
    /// The description; default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20_000))]
    pub description: Option<String>,
    /// `when_to_use`, which Claude Code appends to the description; an empty value removes it; default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20_000))]
    pub when_to_use: Option<String>,
    /// The name; default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    /// The tags; default: the current ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(max = 200)))]
    pub tags: Option<Vec<String>>,
    /// A request to rank with and without the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20_000))]
    pub intent: Option<String>,
    /// Whether to measure the contribution of each clause of the description, and which of its words attract queries of
    /// other skills.
    #[serde(default)]
    pub clauses: bool,
    /// How much to measure; default: everything.
    #[serde(default)]
    pub measure: DraftMeasure,
    /// Whether to write a prompt that asks a model or a colleague for a better description.
    #[serde(default)]
    pub prompt: bool,
    /// Golden queries in addition to those of the roots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2_000))]
    pub queries: Vec<GoldenQuery>,
}

/// The skill's rank for a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DraftPlace {
    /// Rank, from 1; none if the skill is not a result.
    pub rank: Option<usize>,
    /// Score.
    pub score: Option<f64>,
    /// Whether the skill is first and fits.
    pub fits: bool,
    /// The first result.
    pub first: Option<SkillId>,
    /// The score by signal: name, description, body, semantic, rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<SignalSums>,
}

/// What a client would show of the description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftShown {
    /// Id of the client's profile.
    pub client: String,
    /// Name of the client.
    #[serde(default)]
    pub name: String,
    /// The version that was measured; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Characters that the client shows.
    pub characters: usize,
    /// Characters of the description, with `when_to_use` where the client appends it.
    pub of: usize,
    /// What the client shows instead of the description, or why it does not list the skill with the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
    /// Whether the client does not search the skill's folder, and is shown as if it did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl DraftShown {
    /// Why nothing is known of any client.
    pub const NONE: &str = "no client searches its folder, or the draft cannot be written to its file";

    /// Returns the client's name with the version that was measured, and whether its folder is assumed: `Codex 0.169.0`,
    /// `goose (assumed)`.
    pub fn label(&self) -> String {
        let name = if self.name.is_empty() { &self.client } else { &self.name };
        let version = self.version.iter().map(|version| format!(" {version}")).collect::<String>();
        format!("{name}{version}{}", if self.assumed { " (assumed)" } else { "" })
    }
}

/// Effects of a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DraftReport {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// The description of the draft.
    pub description: String,
    /// The `when_to_use` of the draft, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// Tokens of the description (o200k vocabulary).
    pub tokens: u32,
    /// The current rank for the request, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<DraftPlace>,
    /// The rank for the request with the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DraftPlace>,
    /// Effects on the golden sets of the roots; none if no root has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden: Option<GoldenChange>,
    /// Words that would win missed queries, each measured with its own draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Contribution of each clause, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<ClauseValue>,
    /// A prompt for a better description, if requested. It contains no held-out query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Words of the draft that attract queries of other skills, or of none, if clauses are requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attractions: Vec<AttractingWord>,
    /// Findings of lint about the file with the draft.
    pub findings: Vec<Finding>,
    /// What clients would show of the description, if they list the skill; empty if only the request is measured.
    pub shown: Vec<DraftShown>,
}
