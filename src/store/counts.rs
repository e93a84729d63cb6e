//! Persistent counters: calls of operations, requests granted by the rate limiter, runs by skill.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use super::StoreError;
use skills_model::RunState;

/// The kind of thing that a tally counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TallyKind {
    /// An operation of the core.
    Operation,
    /// A matcher of the routing chain; only its failures are counted.
    Link,
}

/// Counted calls of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub kind: TallyKind,
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Total duration in microseconds.
    pub total_us: u64,
    /// Longest duration in microseconds.
    pub max_us: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tallies {
    /// Start of the counting, milliseconds since 1970-01-01 UTC; `None` if nothing was ever counted.
    pub since_ms: Option<i64>,
    /// Time of the last reset, milliseconds since 1970-01-01 UTC.
    pub reset_ms: Option<i64>,
    /// By kind and name.
    pub tallies: Vec<Tally>,
}

/// The result of a request for an allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Number of requests granted; 0 if the window is used up.
    pub granted: u64,
    /// Number of requests granted in this window so far, to all callers.
    pub taken: u64,
}

/// The runs of one skill and contract that are in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRuns {
    pub skill_id: String,
    pub contract_digest: String,
    pub state: RunState,
    /// Their number.
    pub runs: u64,
    /// When the last of them entered the state, milliseconds since 1970-01-01 UTC.
    pub last_ms: i64,
}

/// A durable store of counters. As with runs, every method is one transaction, so that several processes can add.
#[async_trait]
pub trait Counts: Send + Sync + 'static {
    async fn add_tallies(&self, tallies: Vec<Tally>) -> Result<(), StoreError>;

    /// Returns everything tallied since the last reset.
    async fn tallies(&self) -> Result<Tallies, StoreError>;

    /// Resets all tallies to zero.
    async fn reset_tallies(&self) -> Result<Tallies, StoreError>;

    /// Grants up to `wanted` of the `limit` that a principal has in the window that starts at `began_ms`; earlier
    /// windows of that principal are deleted.
    async fn allowance(
        &self,
        principal: &str,
        began_ms: i64,
        requested: u64,
        limit: u64,
    ) -> Result<Allowance, StoreError>;

    /// Counts the runs by skill, contract and state.
    async fn runs_by_skill(&self) -> Result<Vec<SkillRuns>, StoreError>;
}
