//! What is counted and survives: calls of operations, requests let through, runs by skill.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use super::StoreError;
use skills_model::RunState;

/// What a tally is of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display, EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TallyKind {
    /// An operation of the core.
    Operation,
    /// A link of the routing chain; only its failures are counted.
    Link,
}

/// Calls of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// What it is.
    pub kind: TallyKind,
    /// Its name.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Of those, failed ones.
    pub errors: u64,
    /// Sum of the time, microseconds.
    pub total_us: u64,
    /// Longest, microseconds.
    pub max_us: u64,
}

/// Everything tallied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tallies {
    /// Since when, milliseconds since 1970-01-01 UTC; none where nothing was ever added.
    pub since_ms: Option<i64>,
    /// When it was last set back to nothing.
    pub reset_ms: Option<i64>,
    /// By kind and name.
    pub tallies: Vec<Tally>,
}

/// What came of asking for an allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// How many are let through; 0 when the window is used up.
    pub granted: u64,
    /// How many of the window are granted so far, to all callers.
    pub taken: u64,
}

/// Runs of one skill and contract that came to one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRuns {
    /// The skill.
    pub skill_id: String,
    /// The contract they were launched with.
    pub contract_digest: String,
    /// Their state.
    pub state: RunState,
    /// How many.
    pub runs: u64,
    /// When the last of them came there, milliseconds since 1970-01-01 UTC.
    pub last_ms: i64,
}

/// A durable store of counts. As with runs, every method is one transaction, so that several processes add up.
#[async_trait]
pub trait Counts: Send + Sync + 'static {
    /// Adds to what is there.
    async fn add_tallies(&self, tallies: Vec<Tally>) -> Result<(), StoreError>;

    /// Everything tallied since the last reset.
    async fn tallies(&self) -> Result<Tallies, StoreError>;

    /// Sets everything back to nothing.
    async fn reset_tallies(&self) -> Result<Tallies, StoreError>;

    /// Grants up to `wanted` of the `limit` that a principal has in the window that began at a moment; windows of
    /// that principal that began earlier are forgotten.
    async fn allowance(
        &self,
        principal: &str,
        began_ms: i64,
        wanted: u64,
        limit: u64,
    ) -> Result<Allowance, StoreError>;

    /// Runs by skill, contract and state.
    async fn runs_by_skill(&self) -> Result<Vec<SkillRuns>, StoreError>;
}
