//! Results of operations as JSON: lists are wrapped in an object, so that every result is a JSON object.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{AgentView, Code, Error, LevelTokens, SessionSummary, TargetChoice, ToolAnswer};
use skills_discovery::BodyLine;
use skills_session::{ScriptPreview, ToolError};
use skills_store::{Checkpoint, IdempotencyOutcome, RunEvent, RunId, RunRecord};

/// Result of `runtime.health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// `ok`.
    pub status: String,
    /// This program's version.
    pub version: String,
    /// Skills that can be ranked now.
    pub skills: usize,
    /// Whether scan and index are complete.
    pub ready: bool,
}

/// Result of `skill.rescan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rescan {
    /// The rescan of all roots has started; its results appear in the catalog.
    pub begun: bool,
}

/// Token counts of skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelList {
    /// One per skill found.
    pub levels: Vec<LevelTokens>,
}

/// Lines of a skill that match words of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineList {
    /// The lines.
    pub lines: Vec<BodyLine>,
}

/// A client profile by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientProfileName {
    /// Id of the client profile.
    pub id: String,
    /// Display name.
    pub name: String,
}

/// The client profiles known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientProfileList {
    /// The profiles.
    pub clients: Vec<ClientProfileName>,
}

/// The rules of the linter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintRuleList {
    /// The rules.
    pub rules: Vec<crate::LintRule>,
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
    /// The run: completed with its outputs, waiting for a signal, or still executing if the service is
    /// shutting down.
    pub run: RunRecord,
    /// Use of the idempotency key.
    pub idempotency: IdempotencyOutcome,
    /// The first events, if the trace was requested: at most 10,000, fewer if they are large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<RunEvent>>,
    /// Whether the run has more events than the trace; they are in `run.events`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace_truncated: bool,
}

impl AsRef<RunRecord> for Executed {
    fn as_ref(&self) -> &RunRecord {
        &self.run
    }
}

/// A page of checkpoints of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointList {
    /// Id of the run.
    pub run_id: RunId,
    /// Number of the newest one, from which it continues.
    pub checkpoint_head: u64,
    /// Oldest first. Pass the number of the first one as `before` to get those before it, until a page is empty.
    pub checkpoints: Vec<Checkpoint>,
}

/// Events of one run or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventList {
    /// Oldest first.
    pub events: Vec<RunEvent>,
    /// Id of the event log, for which numbers over all runs are valid. If it changes, the store is a
    /// different one.
    #[serde(default)]
    pub log: String,
}

/// Where following begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewestEvent {
    /// The number of the newest event over all runs.
    pub newest: u64,
    /// Id of the event log of the service's store, for which the numbers are valid.
    #[serde(default)]
    pub log: String,
}

/// A run in the legacy format, in which `canceled` is shown as `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegacyStatus {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of the skill.
    pub skill_id: String,
    /// State of the run, `failed` for a canceled one.
    pub status: String,
    /// Completed steps and total steps.
    pub progress: (u32, u32),
    /// Outputs, once completed.
    pub outputs: Option<serde_json::Value>,
    /// Why it failed.
    pub error: Option<serde_json::Value>,
    /// Trace id of the run.
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
    /// Most recently changed first.
    pub sessions: Vec<SessionSummary>,
}

/// A message that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Said")]
pub struct AppendReply {
    /// Number of the message in the transcript.
    pub entry: u64,
}

/// The result of a runtime tool. A failed tool is an error, with the entry as its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Called")]
pub struct ToolReply {
    /// The call's number in the transcript.
    pub entry: u64,
    /// What the model reads.
    pub result: Value,
    /// The current version of the session.
    pub version: u64,
}

/// The reason of a tool's error: the failed call is in the transcript too.
#[derive(Serialize, Deserialize)]
struct FailedCall {
    entry: u64,
    version: u64,
    /// What would run, where that has to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script: Option<Box<ScriptPreview>>,
}

impl ToolReply {
    pub(super) fn of(answer: ToolAnswer) -> Result<Self, Error> {
        let ToolAnswer { entry, result, version } = answer;
        match result {
            Ok(result) => Ok(Self { entry, result, version }),
            Err(ToolError { code, message, script }) => Err(Error {
                reason: Some(json!(FailedCall { entry, version, script })),
                ..Error::new(Code::from(code), message)
            }),
        }
    }

    /// Converts the response for a caller back to the answer of the tool.
    ///
    /// # Errors
    /// Returns the error that prevented the tool from being called.
    pub fn back(outcome: Result<Self, Error>) -> Result<ToolAnswer, Error> {
        let error = match outcome {
            Ok(Self { entry, result, version }) => {
                return Ok(ToolAnswer { entry, result: Ok(result), version });
            }
            Err(error) => error,
        };
        let failed =
            error.reason.clone().and_then(|reason| serde_json::from_value::<FailedCall>(reason).ok());
        let code = serde_json::from_value(json!(error.code)).ok();
        match (failed, code) {
            (Some(FailedCall { entry, version, script }), Some(code)) => {
                let result = Err(ToolError { code, message: error.message, script });
                Ok(ToolAnswer { entry, result, version })
            }
            _ => Err(error),
        }
    }
}

/// The agents known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// The agents.
    pub agents: Vec<AgentView>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_session::ToolFailure as F;

    #[test]
    fn tool_results_and_errors_round_trip() {
        let answer = |result| ToolAnswer { entry: 3, result, version: 4 };
        let well = answer(Ok(json!({ "skills": [] })));
        assert_eq!(ToolReply::back(ToolReply::of(well.clone())), Ok(well));
        for failure in [
            F::InvalidRequest,
            F::NotFound,
            F::NotLoaded,
            F::TooManySkills,
            F::PathEscape,
            F::PayloadTooLarge,
            F::ConfirmationRequired,
            F::SafetyDenied,
            F::SkillChanged,
            F::InvalidTransition,
            F::RuntimeError,
        ] {
            let failed = answer(Err(ToolError::new(failure, "why")));
            let called = ToolReply::of(failed.clone());
            assert_eq!(called.as_ref().unwrap_err().code.to_string(), failure.to_string());
            assert_eq!(ToolReply::back(called), Ok(failed));
        }
        let never = Error::new(Code::NotFound, "no such session");
        assert_eq!(ToolReply::back(Err(never.clone())), Err(never));
    }
}
