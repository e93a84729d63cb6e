//! What each error code means to whoever gets it.

use skills_api::Code;

/// When a code is answered, and what to do.
pub(super) fn meaning(code: Code) -> &'static str {
    match code {
        Code::InvalidRequest => {
            "The request cannot be understood: the message names the argument or the place."
        }
        Code::AttachInvalid => {
            "The skill cannot be attached there; `reason` has the check, what was given and what is allowed."
        }
        Code::PathEscape => "A path leads out of the skill's folder.",
        Code::MaxDepthExceeded => "Runs start runs deeper than is allowed.",
        Code::Unauthorized => "A key is needed, or the one given is not known.",
        Code::Forbidden => "The key lacks the scope, or a policy says no.",
        Code::Untrusted => {
            "What the skill would run has not been trusted on the service's machine: `skills trust` there."
        }
        Code::SafetyDenied => "A gate or a person said no.",
        Code::NotFound => "Nothing goes by that name; `suggestions` has near ones.",
        Code::TargetNotFound => "What the skill should be attached to is not there.",
        Code::CheckpointNotFound => "The run has no such checkpoint.",
        Code::InvalidConfiguration => "The skill, its contract or a setting cannot work as it is.",
        Code::InvalidTransition => {
            "The run does not take this order in its state; the message says what it takes."
        }
        Code::IdempotencyConflict => "The idempotency key was used for another payload.",
        Code::SkillChanged => {
            "The skill is not as it was when the run began; resume with `despite_change` if that is meant."
        }
        Code::NotLoaded => "The session has not loaded the skill.",
        Code::TooManySkills => "The session holds as many skills as it may.",
        Code::SessionConflict => "The session changed meanwhile; ask again.",
        Code::MethodNotAllowed => "The path does not take this method; `Allow` lists those it takes.",
        Code::RequestTimeout => "The body did not arrive in time.",
        Code::ConformanceUnmet => "No binding conforms as much as is asked for.",
        Code::PayloadTooLarge => "The body is larger than 2 MiB, or a value than what may be kept.",
        Code::UnsupportedMediaType => "The body is not declared as `application/json`.",
        Code::ConfirmationRequired => {
            "The run waits for a person, or a decision does not name what it decides. `reason` has the run, what would be \
             decided, and in `send` the request that does."
        }
        Code::RateLimited => "Too many requests; `Retry-After` says when the next one is let through.",
        Code::RuntimeError => "The run failed; `reason` has its error.",
        Code::InternalError => {
            "A mistake of the program or of its machine; the log has it under the trace id."
        }
        Code::NotImplemented => {
            "Nothing here can do that: a method that is unknown, or files of a machine that is not the service's."
        }
        Code::UpstreamFailure => "What a binding called failed.",
        Code::GateExecutionFailure => "A gate could not be asked.",
        Code::NotReady => {
            "The service has just started and is still reading its skills; `Retry-After` says when to try again."
        }
        Code::StoreUnavailable => {
            "The store of runs cannot be read or written now; nothing of the request happened. `reason.cause` says why, \
             `Retry-After` when to try again."
        }
        Code::StepTimeout => "A step took longer than its contract allows.",
        Code::UpstreamTimeout => "What a binding called did not answer in time.",
    }
}
