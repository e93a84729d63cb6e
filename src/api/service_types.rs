//! Serializable types for operators: persisted counts, quality states, single capabilities.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use strum::IntoEnumIterator as _;

use super::ExecutionOptions;
use super::operations::Scope;
use skills_authoring::governance::QualityState;
use skills_base::audit::{AnchorCheck, Verification};
use skills_skill::SkillId;
use skills_store::{Health, TableRows};

/// Start of the counts, and whether they persist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counting {
    /// Start of the counts below, milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// Time of the last reset.
    pub last_reset_ms: Option<i64>,
    /// Whether they are persisted in the store, including those of earlier processes.
    pub persisted: bool,
    /// Where they are stored, or why they are not.
    pub place: String,
    /// The file of the store, if any.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: Option<PathBuf>,
}

/// The caller, as the core knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerView {
    /// The name under which runs and decisions are recorded; none if authentication is disabled.
    pub name: Option<String>,
    /// Permissions.
    pub scopes: BTreeSet<Scope>,
}

impl CallerView {
    /// Creates a caller without authentication, who may do everything.
    pub fn anyone() -> Self {
        Self { name: None, scopes: Scope::iter().collect() }
    }
}

/// The result of `audit-purge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditPurged {
    /// Runs whose step inputs and output lines were deleted.
    pub runs: u64,
    /// Deleted lines of the audit log.
    pub lines: u64,
    /// End of the deleted time range, milliseconds since 1970-01-01 UTC.
    pub before_ms: i64,
}

/// Which lines of the audit log to show. Empty keeps all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuditFilter {
    /// Only lines about this run, by its id, or a unique prefix or suffix of it.
    pub run: Option<String>,
    /// Only kinds with this prefix: `run.`, `trust.`, `policy.changed`.
    pub kind: Option<String>,
    /// Only by this person.
    pub by: Option<String>,
    /// Maximum number of lines, counted from the end; 0 means 100.
    pub limit: usize,
}

/// The result of an audit log check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// Path of the audit log.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub file: PathBuf,
    /// Whether it exists.
    pub exists: bool,
    /// `off`, `standard` or `full`.
    pub mode: String,
    /// The result of the verification.
    #[serde(flatten)]
    pub verification: Verification,
    /// Anchors of the log, from the file next to it and from the store.
    #[serde(default)]
    pub anchors: Vec<AnchorCheck>,
    /// Why the anchors of the store could not be checked, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
}

/// Which skills to evaluate. Empty keeps all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GovernanceFilter {
    /// Only this skill: id, unambiguous name, or location.
    pub skill: Option<String>,
    /// Only these states.
    pub state: Vec<QualityState>,
    /// Only these domains.
    pub domain: Vec<String>,
    /// Page size, 1 to 1,000; default: all skills.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Cursor: the `next` of the previous page.
    #[schemars(length(min = 1))]
    pub cursor: Option<String>,
}

/// A skill's quality state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GovernedSkill {
    /// Id of the skill.
    #[schemars(with = "String")]
    pub skill_id: SkillId,
    /// The highest state whose rules hold.
    pub state: QualityState,
    /// Reasons for the state, as text.
    pub reasons: Vec<String>,
    /// Requirements of the next state, as text; empty for the highest.
    pub next: Vec<String>,
}

/// Quality states of the catalog.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GovernanceList {
    /// In catalog order, without shadowed ones.
    pub skills: Vec<GovernedSkill>,
    /// Number of skills that match the filter, on all pages.
    #[serde(default)]
    pub total: usize,
    /// Cursor of the next page, if any.
    #[serde(default)]
    pub next: Option<String>,
    /// Golden files that were skipped, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A run of a single capability.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityRequest {
    pub capability: String,
    #[serde(default)]
    pub inputs: Map<String, Value>,
    #[serde(default)]
    pub options: ExecutionOptions,
    /// Who launches it; default: the user's name.
    #[serde(default)]
    pub started_by: Option<String>,
}

/// A store that was reset or restored, and the previous files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoreReset {
    /// Kind and location of the store.
    pub place: String,
    /// Id of the store.
    pub id: String,
    /// New paths of the previous files.
    #[serde(rename = "kept")]
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub previous_files: Vec<PathBuf>,
}

/// A store that was copied into another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoreMigrated {
    /// Address of the store that was copied.
    pub from: String,
    /// Address of the store that received the records.
    pub to: String,
    /// Rows of each table, equal in both.
    pub tables: Vec<TableRows>,
}

/// The result of checking the store of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoreHealth {
    /// Kind and location of the store.
    pub place: String,
    /// The result.
    #[serde(flatten)]
    pub health: Health,
}
