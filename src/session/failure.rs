//! How a runtime tool fails.

use serde::{Deserialize, Serialize};
use strum::Display;

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolFailure {
    /// The arguments are not those of the tool.
    InvalidRequest,
    /// No such skill, file or agent.
    NotFound,
    /// The skill has to be loaded first.
    NotLoaded,
    /// More skills than may be active at once; nothing was changed.
    TooManySkills,
    /// The path leads out of the bundle, or to something hidden in it.
    PathEscape,
    /// More bytes than are handed out at once.
    PayloadTooLarge,
    /// A person or the policy has to allow it first.
    ConfirmationRequired,
    /// The policy, or missing isolation, forbids it.
    SafetyDenied,
    /// The file or script could not be used; the system's words.
    RuntimeError,
}

/// A failed call of a runtime tool; goes to the model, so it says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[error("{message}")]
pub struct ToolError {
    /// How.
    pub code: ToolFailure,
    /// What was wrong, and what to do.
    pub message: String,
}

impl ToolError {
    /// A failure as text.
    pub fn new(code: ToolFailure, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
