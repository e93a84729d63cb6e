//! How a run came to where it is: what failed before it was resumed, and what was corrected for that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A stretch of a run that failed, and how the run went on after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierAttempt {
    /// Counts up from 1.
    pub number: u32,
    /// When it failed, milliseconds since 1970-01-01 UTC; none where the run was held and had not run.
    pub failed_ms: Option<i64>,
    /// The step that failed, where one was to blame.
    pub step: Option<String>,
    /// Why.
    pub error: Option<Value>,
    /// When the run was resumed, milliseconds since 1970-01-01 UTC.
    pub resumed_ms: i64,
    /// From which checkpoint.
    pub checkpoint: u64,
    /// Inputs that were corrected.
    pub changed: Vec<ChangedInput>,
}

/// An input of a run that was corrected when the run was resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedInput {
    /// Its name.
    pub name: String,
    /// What it was; none where it was not given.
    pub before: Option<Value>,
    /// What it is.
    pub after: Value,
}
