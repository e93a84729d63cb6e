//! The quality state of a skill: five states, each with rules over what is known of it. Pure: what is known
//! comes in as values, what follows goes out with its reasons.
//!
//! The states build on each other. A skill has the highest one up to which all rules hold.

mod rules;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

pub use rules::{
    GOLDEN_GOOD, GOLDEN_LEAST, GOLDEN_VERY_GOOD, RUNS_GOOD, RUNS_LEAST, RUNS_MANY, RUNS_VERY_GOOD, judge,
};

/// Quality state of a skill, in increasing order.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    EnumString,
    EnumIter,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum QualityState {
    /// No evidence.
    Draft,
    /// It conforms to the specification and its status is stable.
    Validated,
    /// Tested: golden requests find it, and its contract completed.
    LabVerified,
    /// It is trusted, and its runs complete.
    Trusted,
    /// Its runs complete reliably, without findings against it.
    Recommended,
}

/// What a skill says about its state in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Life {
    /// Finished.
    #[default]
    Stable,
    /// Not finished.
    Unfinished,
    /// On its way out.
    Deprecated,
}

/// Requests of the golden sets that name a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GoldenFacts {
    /// Requests that should find it.
    pub expected: usize,
    /// Of those, requests that found it first.
    pub found: usize,
    /// Requests that should not find it.
    pub unwanted: usize,
    /// Of those, requests that found it first all the same.
    pub intruded: usize,
}

/// Runs of the contract that a skill has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunFacts {
    /// Completed ones.
    pub completed: u64,
    /// Failed ones.
    pub failed: u64,
    /// Completed and failed ones of contracts it had before.
    pub earlier: u64,
}

/// Everything that the rules look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Findings of lint that are errors.
    pub errors: usize,
    /// Findings of lint that are warnings.
    pub warnings: usize,
    /// Where it says it stands.
    pub life: Life,
    /// Golden requests.
    pub golden: GoldenFacts,
    /// Whether it has a contract.
    pub has_contract: bool,
    /// Its runs.
    pub runs: RunFacts,
    /// Why it may not run as it is, if it may not; nothing for one that is trusted or brings nothing to run.
    pub untrusted: Option<String>,
    /// The rule of the policy that forbids it.
    pub denied: Option<String>,
}

/// What the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The highest state up to which all rules hold.
    pub state: QualityState,
    /// What led to it.
    pub reasons: Vec<String>,
    /// What is missing for the next one.
    pub next: Vec<String>,
}
