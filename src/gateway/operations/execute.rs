//! Executing while the caller waits: a launch, the run worked to where it ends or waits, and the answer or the error
//! that this comes to.

use serde_json::json;

use super::answers::Executed;
use super::{Asked, Scope};
use crate::gateway::{Attached, Code, Error, Launched};
use crate::runs::RunState;
use crate::store::{RunEvent, RunRecord};

/// Events of a trace, at most.
const MOST_EVENTS: usize = 10_000;

/// Works a launched run until it ends or waits.
///
/// # Errors
/// The run's own failure; `confirmation_required` when it waits for a person.
pub(super) async fn settled(asked: &Asked, launched: Launched, trace: bool) -> Result<Executed, Error> {
    let run = asked.service.core.settle(&launched.run.id.0, asked.caller.leave.clone()).await?;
    judged(&run)?;
    let trace = if trace { Some(trace_of(asked, &run).await?) } else { None };
    Ok(Executed { run, idempotency: launched.idempotency, trace })
}

/// An attachment that was executed, or the error that its run came to.
pub(super) fn attached(attached: Attached) -> Result<Attached, Error> {
    judged(&attached.execution)?;
    Ok(attached)
}

/// What happened in a run.
pub(super) async fn trace_of(asked: &Asked, run: &RunRecord) -> Result<Vec<RunEvent>, Error> {
    asked.service.core.run_events(Some(&run.id.0), 0, MOST_EVENTS, 0).await
}

/// The error that a run as it stands means to somebody who waited for its outputs.
fn judged(run: &RunRecord) -> Result<(), Error> {
    let id = &run.id;
    match run.state {
        RunState::WaitingForHuman => Err(Error {
            reason: Some(json!({ "run_id": id, "state": run.state, "step": run.step, "gate": run.gate })),
            ..Error::new(
                Code::ConfirmationRequired,
                format!(
                    "run {id} of {} waits for a person: somebody with the scope `{}` approves or denies it",
                    run.skill_id,
                    Scope::Decide
                ),
            )
        }),
        RunState::Failed => Err(failed(run)),
        RunState::Canceled => Err(Error {
            reason: Some(json!({ "run_id": id, "state": run.state })),
            ..Error::new(Code::RuntimeError, format!("run {id} of {} was canceled", run.skill_id))
        }),
        _ => Ok(()),
    }
}

/// A failed run's own code and words, with the run to look at.
fn failed(run: &RunRecord) -> Error {
    let told = run.error.as_ref();
    let text = |key: &str| told.and_then(|error| error.get(key)).and_then(serde_json::Value::as_str);
    let code = text("code").and_then(|code| code.parse().ok()).unwrap_or(Code::RuntimeError);
    let step = text("step").map(|step| format!(" at {step}")).unwrap_or_default();
    let why = text("message").unwrap_or("no reason was recorded");
    Error {
        reason: Some(json!({ "run_id": run.id, "state": run.state, "error": told })),
        ..Error::new(code, format!("run {} of {} failed{step}: {why}", run.id, run.skill_id))
    }
}
