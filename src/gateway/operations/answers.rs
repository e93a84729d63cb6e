//! Answers that are made for a wire: lists under a name, so that every answer is a JSON object.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::discovery::BodyLine;
use crate::gateway::{AgentView, LevelTokens, SessionSummary, TargetChoice};
use crate::store::{Checkpoint, IdempotencyOutcome, RunEvent, RunId, RunRecord};

/// Answer of `runtime.health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// `ok`.
    pub status: String,
    /// This program's version.
    pub version: String,
    /// Skills that can be ranked now.
    pub skills: usize,
    /// Whether the scan of the roots and the index are through.
    pub ready: bool,
}

/// Answer of `skill.rescan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rescan {
    /// The reading of all roots has begun; what it finds shows in the catalogue.
    pub begun: bool,
}

/// Token counts of skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelList {
    /// One a skill that was found.
    pub levels: Vec<LevelTokens>,
}

/// Lines of a skill that hold words of an intent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineList {
    /// The lines.
    pub lines: Vec<BodyLine>,
}

/// A client profile by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientProfileName {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// The client profiles known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientProfileList {
    /// The profiles.
    pub clients: Vec<ClientProfileName>,
}

/// The capabilities known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityList {
    /// Their ids, sorted.
    pub capabilities: Vec<String>,
}

/// A run that was executed while the caller waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executed {
    /// As it stands: completed with its outputs, or waiting for a signal.
    pub run: RunRecord,
    /// What became of the idempotency key.
    pub idempotency: IdempotencyOutcome,
    /// What happened, where the trace was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<RunEvent>>,
}

/// The checkpoints of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointList {
    /// The run.
    pub run_id: RunId,
    /// Number of the newest one, from which it goes on.
    pub checkpoint_head: u64,
    /// Oldest first.
    pub checkpoints: Vec<Checkpoint>,
}

/// Events of one run or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventList {
    /// Oldest first.
    pub events: Vec<RunEvent>,
}

/// Where following begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewestEvent {
    /// The number of the newest event over all runs.
    pub newest: u64,
}

/// A run as older callers ask for it. They do not know `canceled`: it shows as `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegacyStatus {
    /// Its id.
    pub run_id: RunId,
    /// The skill.
    pub skill_id: String,
    /// Its state, `failed` for a canceled one.
    pub status: String,
    /// Steps through, and steps there are.
    pub progress: (u32, u32),
    /// Outputs, once completed.
    pub outputs: Option<serde_json::Value>,
    /// Why it failed.
    pub error: Option<serde_json::Value>,
    /// Its trace.
    pub trace_id: String,
}

/// References that exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetList {
    /// Newest first.
    pub targets: Vec<TargetChoice>,
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The one that changed last first.
    pub sessions: Vec<SessionSummary>,
}

/// A message that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Its number in the transcript.
    pub entry: u64,
}

/// The agents known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// The agents.
    pub agents: Vec<AgentView>,
}
