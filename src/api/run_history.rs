//! History of a resumed run: earlier failures and corrected inputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A failed part of a run, and how the run was resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierAttempt {
    /// Number, from 1.
    pub number: u32,
    /// Time of the failure, milliseconds since 1970-01-01 UTC; none if the run was paused.
    pub failed_ms: Option<i64>,
    /// The step that failed, if any.
    pub step: Option<String>,
    /// Why the attempt failed.
    pub error: Option<Value>,
    /// When the run was resumed, milliseconds since 1970-01-01 UTC.
    pub resumed_ms: i64,
    /// The checkpoint from which it was resumed.
    pub checkpoint: u64,
    /// Inputs that were corrected.
    pub changed: Vec<ChangedInput>,
}

/// An input of a run that was corrected when the run was resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedInput {
    /// Name of the input.
    pub name: String,
    /// Previous value of the input, if any.
    pub before: Option<Value>,
    /// New value of the input.
    pub after: Value,
}
