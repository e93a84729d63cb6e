//! The quality state of a skill: five states, each with rules over known facts. Pure: facts are passed in as values,
//! and the state is returned with its reasons.
//!
//! The states build on each other. A skill has the highest state up to which all rules hold.

mod rules;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

pub use rules::{
    MIN_COMPLETED_PERCENT_RECOMMENDED, MIN_COMPLETED_PERCENT_TRUSTED, MIN_GOLDEN, MIN_RUNS,
    MIN_RUNS_RECOMMENDED, MIN_TOP1_PERCENT_LAB_VERIFIED, MIN_TOP1_PERCENT_RECOMMENDED, judge,
};

/// Quality state of a skill, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, Display, EnumString, EnumIter)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum QualityState {
    /// No evidence.
    Draft,
    /// It conforms to the specification and its status is stable.
    Validated,
    /// Tested: golden queries find it, and its contract completed.
    LabVerified,
    /// It is trusted, and its runs complete.
    Trusted,
    /// Its runs complete reliably, without findings against it.
    Recommended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LifecycleStatus {
    /// Finished.
    #[default]
    Stable,
    /// Not finished yet.
    Unfinished,
    Deprecated,
}

/// Golden queries about a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GoldenFacts {
    /// Number of queries that should find it.
    pub expected: usize,
    /// Number of those for which it is first.
    pub found: usize,
    /// Number of queries that should not find it.
    pub unwanted: usize,
    /// Number of those for which it is first nevertheless.
    pub intruded: usize,
}

/// Runs of the current contract of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunFacts {
    /// Number of completed runs.
    pub completed: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Number of completed and failed runs of earlier contracts.
    pub earlier: u64,
}

/// The input of the rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The skill's id as an operand of a command, quoted for a shell.
    pub operand: String,
    /// Number of lint findings that are errors.
    pub errors: usize,
    /// Number of lint findings that are warnings.
    pub warnings: usize,
    pub life: LifecycleStatus,
    pub golden: GoldenFacts,
    pub has_contract: bool,
    pub runs: RunFacts,
    /// Why it may not run, if it may not; `None` if it is trusted or contains nothing executable.
    pub untrusted: Option<String>,
    /// The policy rule that denies it.
    pub denied: Option<String>,
}

/// The result of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The highest state up to which all rules hold.
    pub state: QualityState,
    /// Why it has this state.
    pub reasons: Vec<String>,
    /// What is missing for the next state.
    pub next: Vec<String>,
}
