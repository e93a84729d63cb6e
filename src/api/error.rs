//! The error type of every adapter: a closed table of codes, and one format on every wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skills_skill::SkillId;
use strum::{Display, EnumIter, EnumString};

use crate::operations::Scope;

/// Every error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    InvalidRequest,
    AttachInvalid,
    PathEscape,
    MaxDepthExceeded,
    Unauthorized,
    Forbidden,
    Untrusted,
    SafetyDenied,
    NotFound,
    TargetNotFound,
    CheckpointNotFound,
    InvalidConfiguration,
    InvalidTransition,
    IdempotencyConflict,
    SkillChanged,
    NotLoaded,
    TooManySkills,
    SessionConflict,
    MethodNotAllowed,
    RequestTimeout,
    ConformanceUnmet,
    PayloadTooLarge,
    UnsupportedMediaType,
    ConfirmationRequired,
    RateLimited,
    RuntimeError,
    InternalError,
    NotImplemented,
    UpstreamFailure,
    GateExecutionFailure,
    NotReady,
    StoreUnavailable,
    StepTimeout,
    UpstreamTimeout,
}

/// The outcomes of a command of many runs where it was not executed, in the order of a summary.
pub const UNDONE: [&str; 3] = ["skipped", "refused", "failed"];

impl Code {
    /// Returns the HTTP status of this code (RFC 9110, RFC 6585).
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest | Self::AttachInvalid | Self::PathEscape | Self::MaxDepthExceeded => 400,
            Self::Unauthorized => 401,
            Self::Forbidden | Self::Untrusted | Self::SafetyDenied => 403,
            Self::NotFound | Self::TargetNotFound | Self::CheckpointNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::InvalidConfiguration
            | Self::InvalidTransition
            | Self::IdempotencyConflict
            | Self::SkillChanged
            | Self::NotLoaded
            | Self::TooManySkills
            | Self::SessionConflict => 409,
            Self::ConformanceUnmet => 412,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::ConfirmationRequired => 428,
            Self::RateLimited => 429,
            Self::RuntimeError | Self::InternalError => 500,
            Self::NotImplemented => 501,
            Self::UpstreamFailure => 502,
            Self::GateExecutionFailure | Self::NotReady | Self::StoreUnavailable => 503,
            Self::StepTimeout | Self::UpstreamTimeout => 504,
        }
    }

    /// Returns the process exit code of the command line for this error: 1 the run failed, 2 usage, 3 not found, 4
    /// refused, 5 waiting for approval or a signal, or paused, 69 the service is unavailable, 70 internal or the store is
    /// unavailable.
    pub fn exit(self) -> u8 {
        match self {
            Self::NotReady => 69,
            Self::StoreUnavailable => 70,
            _ => match self.status() {
                400 | 405 | 415 => 2,
                404 => 3,
                428 => 5,
                401 | 403 | 408 | 409 | 412 | 413 | 429 => 4,
                502..=504 => 1,
                _ => 70,
            },
        }
    }

    /// Returns the seconds after which the same request may succeed, for a transient condition.
    pub fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Self::NotReady => Some(2),
            Self::StoreUnavailable => Some(5),
            _ => None,
        }
    }
}

/// A failed operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of failure.
    pub code: Code,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// Similar names, best first ("did you mean").
    pub suggestions: Vec<String>,
    /// The structured reason, if the code has one (a failed attachment, a refused transition).
    pub reason: Option<Value>,
}

impl Error {
    /// Creates an error without suggestions.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), suggestions: Vec::new(), reason: None }
    }

    /// Creates the error of a caller without a scope that the call needs.
    pub fn needs_scope(scope: Scope, message: impl Into<String>) -> Self {
        let reason = serde_json::json!({ NEEDED_SCOPE: scope });
        Self { reason: Some(reason), ..Self::new(Code::Forbidden, message) }
    }

    /// A run does not have this checkpoint; `last` is the number of the last one that it has.
    pub fn no_checkpoint(run: &str, number: u64, last: u64) -> Self {
        let message = format!("run {run} has no checkpoint {number}; available: 0 to {last}");
        Self::new(Code::CheckpointNotFound, message)
    }

    /// A skill has instructions only; [`Self::has_no_contract`] recognizes the error.
    pub fn no_contract(skill: &SkillId) -> Self {
        let message = format!(
            "skill `{skill}` has no contract (`skill.yaml`) and cannot be run; load it in a session instead"
        );
        let reason = serde_json::json!({ NO_CONTRACT: true });
        Self { reason: Some(reason), ..Self::new(Code::InvalidConfiguration, message) }
    }

    /// Returns whether a skill has instructions only, as opposed to an invalid contract.
    pub fn has_no_contract(&self) -> bool {
        self.reason_member(NO_CONTRACT).is_some()
    }

    /// Creates an error for an unreachable service, whose [`exit`](Self::exit) code differs from an error that the
    /// service reports.
    pub fn service_unreachable(
        code: Code,
        address: impl std::fmt::Display,
        message: impl Into<String>,
    ) -> Self {
        let reason = serde_json::json!({ SERVICE_UNREACHABLE: address.to_string() });
        Self { reason: Some(reason), ..Self::new(code, message) }
    }

    /// Returns whether it is a [`Self::service_unreachable`].
    pub fn is_service_unreachable(&self) -> bool {
        self.reason_member(SERVICE_UNREACHABLE).is_some()
    }

    /// Returns the error of a request that was sent and may or may not have been executed.
    pub(crate) fn outcome_unknown(mut self, advice: &str) -> Self {
        self.message = format!("{}; the outcome is unknown: {advice}", self.message);
        self.reason.get_or_insert_with(|| serde_json::json!({}))[OUTCOME_UNKNOWN] = true.into();
        self
    }

    /// Returns the outcome of a command of many runs that ended with this error, in one word of [`UNDONE`]: `skipped`
    /// if the run does not take it, `failed` if the service or its store failed, else `refused`.
    pub fn outcome(&self) -> &'static str {
        match self.code {
            Code::SkillChanged | Code::InvalidTransition => "skipped",
            code if code.status() >= 500 => "failed",
            _ => "refused",
        }
    }

    /// Returns whether the request was sent and may or may not have been executed.
    pub fn is_outcome_unknown(&self) -> bool {
        self.reason_member(OUTCOME_UNKNOWN).is_some()
    }

    /// Returns whether a command that failed with this error was sent, as the beginning of a message.
    pub fn command_status(&self) -> &'static str {
        if self.is_outcome_unknown() {
            "Sent, outcome unknown"
        } else if self.is_service_unreachable() {
            "Not sent"
        } else {
            "Rejected"
        }
    }

    /// Marks the error of a golden set or another file of queries that cannot be read: wrong configuration, which is not
    /// refused but has to be repaired.
    pub(crate) fn of_unreadable_file(mut self) -> Self {
        self.reason.get_or_insert_with(|| serde_json::json!({}))[UNREADABLE_FILE] = true.into();
        self
    }

    /// Names the file that was rejected, by its id.
    pub(crate) fn of_rejected_skill(mut self, id: &SkillId) -> Self {
        self.reason.get_or_insert_with(|| serde_json::json!({}))[REJECTED_SKILL] = id.as_str().into();
        self
    }

    /// Returns the id of the rejected file, if that is the failure.
    pub(crate) fn rejected_skill(&self) -> Option<&str> {
        self.reason_member(REJECTED_SKILL)?.as_str()
    }

    /// Notes that only shipped skills have the requested name, which are not used next to others.
    pub(crate) fn of_shipped_skill(mut self) -> Self {
        self.reason.get_or_insert_with(|| serde_json::json!({}))[SHIPPED_SKILL] = true.into();
        self
    }

    /// Returns whether the requested skill is a shipped one, so that each interface can name its way to use them.
    #[must_use]
    pub fn is_of_shipped_skill(&self) -> bool {
        self.reason_member(SHIPPED_SKILL).is_some()
    }

    fn reason_member(&self, member: &str) -> Option<&Value> {
        self.reason.as_ref()?.get(member)
    }

    /// Returns the process exit code of the command line: that of the code, except 69 for an unreachable service, 2 for
    /// an unreadable golden set, and for an attachment that of its failed check: 3 for an unknown skill, 4 for one that
    /// cannot be attached there.
    pub fn exit(&self) -> u8 {
        match self.code {
            _ if self.is_service_unreachable() => 69,
            Code::AttachInvalid if self.reason_member("cause").is_some_and(|cause| cause == "not_found") => 3,
            Code::AttachInvalid if self.reason_member("check").is_some() => 4,
            Code::InvalidConfiguration if self.reason_member(UNREADABLE_FILE).is_some() => 2,
            code => code.exit(),
        }
    }

    /// Creates the error of a task that panicked or was canceled. The panic message is only logged: it may contain what
    /// only the operator should see.
    pub fn from_join_error(error: &tokio::task::JoinError) -> Self {
        tracing::error!(%error, "an operation panicked");
        Self::new(Code::InternalError, "internal error; see the log")
    }
}

/// Member of [`Error::reason`] with the scope that the caller lacks.
pub const NEEDED_SCOPE: &str = "needed_scope";
/// Member of [`Error::reason`] with the address of an unreachable service.
const SERVICE_UNREACHABLE: &str = "service_unreachable";
/// Member of [`Error::reason`] of a skill without a contract.
const NO_CONTRACT: &str = "no_contract";
/// Member of [`Error::reason`] of a file of queries that cannot be read.
const UNREADABLE_FILE: &str = "unreadable_file";
/// Member of [`Error::reason`] with the id of a rejected file.
const REJECTED_SKILL: &str = "rejected_skill";
/// Member of the reason of a skill that is a shipped example.
const SHIPPED_SKILL: &str = "shipped_skill";
/// Member of [`Error::reason`] of a request that may or may not have been executed.
const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// The only form of an error on every interface: `{"error": {"code", "message", "type"}, "trace_id"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorBody {
    /// The failure.
    pub error: ErrorDetail,
    /// Trace id of the request, if any.
    pub trace_id: Option<String>,
}

/// Content of an error response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorDetail {
    /// The code.
    pub code: Code,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// `usage`, `not_found`, `refused`, `waiting`, `failed`, `unavailable` or `internal`: the name of the
    /// exit code.
    #[serde(rename = "type")]
    pub kind: String,
    /// Similar names, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// The structured reason, if the code has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Value>,
}

impl ErrorDetail {
    /// Returns whether the caller lacks a scope.
    pub(crate) fn is_missing_scope(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.get(NEEDED_SCOPE).is_some())
    }
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        let kind = match error.exit() {
            1 => "failed",
            2 => "usage",
            3 => "not_found",
            4 => "refused",
            5 => "waiting",
            69 => "unavailable",
            _ => "internal",
        };
        Self {
            error: ErrorDetail {
                code: error.code,
                message: error.message.clone(),
                kind: kind.to_owned(),
                suggestions: error.suggestions.clone(),
                reason: error.reason.clone(),
            },
            trace_id: None,
        }
    }
}
