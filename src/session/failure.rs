//! How a runtime tool fails.

use std::collections::BTreeMap;

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
    /// What would run is not what was confirmed.
    InvalidTransition,
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
    /// What would run, where that has to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptPreview>>,
}

/// What a person is shown before a script runs: everything that decides what happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "ScriptSheet")]
pub struct ScriptPreview {
    /// The loaded skill.
    pub skill: String,
    /// Digest of its SKILL.md as it was loaded.
    pub skill_digest: String,
    /// Path of the script.
    pub path: String,
    /// Digest of the script, as of its file in `bundle_digest`.
    pub script_digest: String,
    /// Digest of all files of the bundle that the script can read.
    pub bundle_digest: String,
    /// Arguments after the script's name.
    pub args: Vec<String>,
    /// Environment variables in addition to the few that every script gets.
    pub env: BTreeMap<String, String>,
    /// Current directory, relative to the private work directory.
    pub workdir: Option<String>,
    /// Digests of the files that are copied to the work directory, by their names there.
    pub files: BTreeMap<String, String>,
    /// Isolation of the script.
    pub isolation: String,
    /// Digest of all of this in this session. Running the script needs it.
    pub inputs_digest: String,
}

impl ToolError {
    pub fn new(code: ToolFailure, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), script: None }
    }
}
