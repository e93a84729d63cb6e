//! How a runtime tool fails.

use serde::{Deserialize, Serialize};
use strum::Display;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolFailure {
    /// Invalid arguments.
    InvalidRequest,
    /// No such skill, file or agent.
    NotFound,
    /// The skill is not loaded.
    NotLoaded,
    /// More than the maximum number of active skills; no changes made.
    TooManySkills,
    /// The path points outside the bundle, or to a hidden file.
    PathEscape,
    /// More bytes than can be returned at once.
    PayloadTooLarge,
    /// Requires permission by a person or the policy.
    ConfirmationRequired,
    /// Forbidden by policy or missing isolation.
    SafetyDenied,
    /// The folder of the skill is not the one that was loaded.
    SkillChanged,
    /// The file or script is unusable; the system's error.
    RuntimeError,
}

/// An error of a runtime tool; the model reads it, so it states what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[error("{message}")]
pub struct ToolError {
    /// The kind of failure.
    pub code: ToolFailure,
    /// What was wrong, and what to do.
    pub message: String,
}

impl ToolError {
    /// Creates an error.
    pub fn new(code: ToolFailure, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
