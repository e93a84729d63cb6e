//! Explanations of the error codes.

use skills_api::Code;

/// Returns when a code is returned, and what to do.
pub(super) fn meaning(code: Code) -> &'static str {
    match code {
        Code::InvalidRequest => "The request is invalid: the message names the argument or the location.",
        Code::AttachInvalid => {
            "The skill cannot be attached to the target; `reason` contains the check, the given value and the \
                allowed ones."
        }
        Code::PathEscape => "A path points outside the skill's folder.",
        Code::MaxDepthExceeded => "Runs are nested too deep.",
        Code::Unauthorized => "The API key is missing or unknown.",
        Code::Forbidden => "The key lacks a scope, or a policy forbids it.",
        Code::Untrusted => "The skill is not trusted on the service's machine: run `skills trust` there.",
        Code::SafetyDenied => "A gate or a person denied it.",
        Code::NotFound => "Not found; `suggestions` lists similar names.",
        Code::TargetNotFound => "The target of the attachment does not exist.",
        Code::CheckpointNotFound => "The run has no such checkpoint.",
        Code::InvalidConfiguration => "The skill, its contract or the configuration is invalid.",
        Code::InvalidTransition => {
            "The run does not accept this command in its state; the message lists the accepted ones. \
                Also returned if a script differs from the confirmed one."
        }
        Code::IdempotencyConflict => "The idempotency key was used for another payload.",
        Code::SkillChanged => {
            "The skill changed since the run was launched; set `despite_change` to resume anyway."
        }
        Code::NotLoaded => "The session has not loaded the skill.",
        Code::TooManySkills => "The session has the maximum number of active skills.",
        Code::SessionConflict => "The session was modified concurrently; try again.",
        Code::MethodNotAllowed => "The path does not support this method; `Allow` lists the supported ones.",
        Code::RequestTimeout => "The body did not arrive in time.",
        Code::ConformanceUnmet => "No binding has the required conformance level.",
        Code::PayloadTooLarge => {
            "The body is larger than 2 MiB or has more than 200,000 values, or a value exceeds its size limit."
        }
        Code::UnsupportedMediaType => "The content type of the body is not `application/json`.",
        Code::ConfirmationRequired => {
            "The run is waiting for approval, or a decision does not name what it decides. `reason` has the \
                run, the pending decision, and in `send` the request that decides it; for a script of a \
                session, what would run in `script`."
        }
        Code::RateLimited => {
            "Too many requests; `Retry-After` gives the time until the next one is accepted."
        }
        Code::RuntimeError => "The run failed; `reason` has its error.",
        Code::InternalError => "Internal error; see the log for the trace id.",
        Code::NotImplemented => {
            "Not supported: an unknown method, or files of a machine other than the service's."
        }
        Code::UpstreamFailure => "An upstream service failed.",
        Code::GateExecutionFailure => "A gate could not be evaluated.",
        Code::NotReady => {
            "The service is starting and is still loading its skills; `Retry-After` gives the time to wait."
        }
        Code::StoreUnavailable => {
            "The run store cannot be read or written; the request had no effect. `reason.cause` gives the \
                cause, `Retry-After` the time to wait."
        }
        Code::StepTimeout => "A step took longer than its contract allows.",
        Code::UpstreamTimeout => "An upstream service did not respond in time.",
    }
}
