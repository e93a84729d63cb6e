//! Conversions of errors of the state machine, the stores, the runtime tools and the callers of capabilities to the
//! error type of adapters.

use serde_json::json;

use super::{Code, Error};
use skills_authoring::write_back::WriteError;
use skills_model::TransitionError;
use skills_runs::{CallError, CallFailure};
use skills_session::ToolFailure;
use skills_store::StoreError;

impl From<TransitionError> for Error {
    fn from(refusal: TransitionError) -> Self {
        let message = refusal.to_string();
        let reason = match refusal {
            TransitionError::Invalid { command, state, needed, allowed } => {
                Some(json!({ "command": command, "state": state, "needed": needed, "allowed": allowed }))
            }
            TransitionError::DecisionConflict(_)
            | TransitionError::StaleFence { .. }
            | TransitionError::NotClaimable
            | TransitionError::Paused
            | TransitionError::NotExpired => None,
        };
        Self { reason, ..Self::new(Code::InvalidTransition, message) }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (message, cause) = (error.to_string(), error.unavailability());
        match error {
            StoreError::Refused(refusal) | StoreError::AlreadyDecided { refusal, .. } => refusal.into(),
            StoreError::NoRun(_) => Self::new(Code::NotFound, message),
            StoreError::NoCheckpoint { .. } => Self::new(Code::CheckpointNotFound, message),
            StoreError::IdempotencyConflict { run, .. } => {
                Self { reason: Some(json!({ "run": run })), ..Self::new(Code::IdempotencyConflict, message) }
            }
            StoreError::AssignmentConflict { assigned, .. } => Self {
                reason: Some(json!({ "assigned": assigned })),
                ..Self::new(Code::InvalidTransition, message)
            },
            StoreError::PreconditionFailed { .. } => Self::new(Code::InvalidTransition, message),
            StoreError::DocumentConflict { .. } | StoreError::SessionConflict { .. } => {
                Self::new(Code::SessionConflict, message)
            }
            StoreError::NotEmpty { .. } => Self::new(Code::Forbidden, message),
            StoreError::Newer { .. } | StoreError::Unavailable { .. } => {
                Self { reason: Some(json!({ "cause": cause })), ..Self::new(Code::StoreUnavailable, message) }
            }
            StoreError::InvalidRequest(_) => Self::new(Code::InvalidRequest, message),
            StoreError::Failed { .. } => Self::new(Code::InternalError, message),
        }
    }
}

/// Returns the code of a file that is not written.
pub(crate) fn write_error_code(error: &WriteError) -> Code {
    match error {
        WriteError::NoField | WriteError::NotExact(..) => Code::InvalidConfiguration,
        WriteError::Changed(_) => Code::SkillChanged,
        WriteError::Io(_) => Code::InternalError,
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Self::new(write_error_code(&error), error.to_string())
    }
}

impl From<ToolFailure> for Code {
    fn from(failure: ToolFailure) -> Self {
        match failure {
            ToolFailure::InvalidRequest => Self::InvalidRequest,
            ToolFailure::NotFound => Self::NotFound,
            ToolFailure::NotLoaded => Self::NotLoaded,
            ToolFailure::TooManySkills => Self::TooManySkills,
            ToolFailure::PathEscape => Self::PathEscape,
            ToolFailure::PayloadTooLarge => Self::PayloadTooLarge,
            ToolFailure::ConfirmationRequired => Self::ConfirmationRequired,
            ToolFailure::SafetyDenied => Self::SafetyDenied,
            ToolFailure::SkillChanged => Self::SkillChanged,
            ToolFailure::InvalidTransition => Self::InvalidTransition,
            ToolFailure::RuntimeError => Self::RuntimeError,
        }
    }
}

impl From<CallFailure> for Code {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::InvalidRequest => Self::InvalidRequest,
            CallFailure::InvalidConfiguration => Self::InvalidConfiguration,
            CallFailure::ConformanceUnmet => Self::ConformanceUnmet,
            CallFailure::Untrusted => Self::Untrusted,
            CallFailure::Forbidden => Self::Forbidden,
            CallFailure::SkillChanged => Self::SkillChanged,
            CallFailure::SafetyDenied => Self::SafetyDenied,
            CallFailure::RuntimeError => Self::RuntimeError,
            CallFailure::UpstreamFailure => Self::UpstreamFailure,
            CallFailure::UpstreamTimeout => Self::UpstreamTimeout,
            CallFailure::StepTimeout => Self::StepTimeout,
            // The user who canceled it knows; there is no separate code for a canceled call.
            CallFailure::Canceled => Self::InvalidTransition,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        let reason = error.reason.map(|reason| *reason).or_else(|| error.public.map(|public| json!(public)));
        Self { reason, ..Self::new(error.code.into(), error.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_authoring::write_back::replace_file;
    use skills_model::{CommandName, RunState};
    use skills_store::RunId;

    #[test]
    fn rejected_command_lists_the_available_commands() {
        let refusal = TransitionError::Invalid {
            command: "approve".to_owned(),
            state: RunState::Completed,
            needed: None,
            allowed: vec![CommandName::Replay, CommandName::Fork],
        };
        let error = Error::from(StoreError::Refused(refusal));
        assert_eq!(error.code, Code::InvalidTransition);
        let reason = error.reason.unwrap();
        assert_eq!(reason["allowed"], json!(["replay", "fork"]));
        assert_eq!(reason["state"], "completed");
    }

    #[test]
    fn write_error_is_not_reported_as_a_changed_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("SKILL.md");
        let error = Error::from(replace_file(&file, b"a", b"b").unwrap_err());
        assert_eq!(error.code, Code::InternalError);
        let path = file.display().to_string();
        assert_eq!(error.message.matches(path.as_str()).count(), 1, "{}", error.message);
        std::fs::write(&file, "other").unwrap();
        assert_eq!(Error::from(replace_file(&file, b"a", b"b").unwrap_err()).code, Code::SkillChanged);
    }

    #[test]
    fn error_of_a_reused_key_names_its_run() {
        let error = StoreError::IdempotencyConflict { key: "k".to_owned(), run: RunId("r-1".to_owned()) };
        let error = Error::from(error);
        assert_eq!((error.code, error.reason), (Code::IdempotencyConflict, Some(json!({ "run": "r-1" }))));
    }
}
