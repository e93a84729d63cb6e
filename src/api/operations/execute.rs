//! Execution while the caller waits: a launch, the run until it ends or waits, and the resulting response or error.

use serde_json::{Value, json};

use super::answers::Executed;
use super::{CallContext, Scope, await_returned_run};
use crate::{Attached, Code, Error, Launched, RunDetail, first_events};
use skills_model::{Decision, Gate, RunState, Verdict};
use skills_store::{RunEvent, RunRecord};

/// Executes a launched run until it ends or waits, and reports it to the observer of the call before.
///
/// # Errors
/// Returns the run's own failure; `confirmation_required` if it waits for approval.
pub(super) async fn wait_for_completion(
    context: &CallContext,
    launched: Launched,
    trace: bool,
) -> Result<Executed, Error> {
    let Launched { run, idempotency, .. } = launched;
    context.caller.observer.report(&run);
    let id = run.id.clone();
    // A run of an earlier launch may be large, and is read again.
    drop(run);
    let run = context.service.core.wait_for_completion(&id.0, context.caller.leave.clone()).await?;
    check_outcome(context, &run).await?;
    let (trace, trace_truncated) = trace_of(context, &run, trace).await?;
    Ok(Executed { run, idempotency, trace, trace_truncated })
}

/// Returns an attachment that was executed, or the error of its run.
pub(super) async fn attached(context: &CallContext, attached: Attached) -> Result<Attached, Error> {
    check_outcome(context, &attached.execution).await?;
    Ok(attached)
}

/// Returns the events of a run for its result, if they are requested, and whether it has more.
pub(super) async fn trace_of(
    context: &CallContext,
    run: &RunRecord,
    is_requested: bool,
) -> Result<(Option<Vec<RunEvent>>, bool), Error> {
    if !is_requested {
        return Ok((None, false));
    }
    await_returned_run().await?;
    let core = &*context.service.core;
    let (events, has_more) = first_events(core, &run.id.0, RunDetail::MAX_EVENT_BYTES).await?;
    Ok((Some(events), has_more))
}

/// Returns the error of a run in this state for a caller that waits for its outputs.
async fn check_outcome(context: &CallContext, run: &RunRecord) -> Result<(), Error> {
    let id = &run.id;
    match run.state {
        RunState::WaitingForHuman => Err(Error {
            reason: Some(json!({
                "run_id": id, "state": run.state, "step": run.step, "gate": run.gate, "send": approval(run),
            })),
            ..Error::new(
                Code::ConfirmationRequired,
                format!(
                    "run {id} of {} is waiting for approval: a caller with the scope `{}` must approve or deny it",
                    run.skill_id,
                    Scope::Decide
                ),
            )
        }),
        RunState::Failed => Err(failed_run_error(run)),
        RunState::Canceled => match run.decided.as_ref().filter(|decided| decided.verdict == Verdict::Deny) {
            Some(denial) => Err(denied(context, run, denial).await),
            None => Err(Error {
                reason: Some(json!({ "run_id": id, "state": run.state, "error": run.error })),
                ..Error::new(Code::RuntimeError, canceled(run))
            }),
        },
        _ => Ok(()),
    }
}

/// Returns the request that approves what a run waits for, to be sent after it was reviewed.
fn approval(run: &RunRecord) -> Option<Value> {
    let Some(Gate::Human { step, inputs_digest, .. }) = &run.gate else { return None };
    let path = format!("/v1/runs/{}/approve", run.id);
    let body = json!({ "step": step, "inputs_digest": inputs_digest });
    Some(json!({ "method": "POST", "path": path, "body": body }))
}

/// Returns the error of a denied run, with who denied it and why.
async fn denied(context: &CallContext, run: &RunRecord, denial: &Decision) -> Error {
    let decisions = context.service.core.decisions(&run.id.0).await.unwrap_or_default();
    let booked = decisions.into_iter().rev().find(|record| record.decision == *denial);
    let by = booked.as_ref().and_then(|booked| booked.by.approver.clone());
    let notes = booked.and_then(|booked| booked.by.notes).filter(|notes| !notes.trim().is_empty());
    let who = by.as_deref().map(|name| format!(" by {name}")).unwrap_or_default();
    let why = notes.as_deref().map(|notes| format!(" ({notes})")).unwrap_or_default();
    let message = format!(
        "step {} of run {} of {} was denied{who}{why}, and the run is canceled: do not start it again \
            without being asked",
        denial.step, run.id, run.skill_id
    );
    let reason =
        json!({ "run_id": run.id, "state": run.state, "step": denial.step, "denied_by": by, "notes": notes });
    Error { reason: Some(reason), ..Error::new(Code::SafetyDenied, message) }
}

/// Returns the message of a canceled run, with the reason if it was not canceled by a user.
fn canceled(run: &RunRecord) -> String {
    let why = run.error.as_ref().and_then(|error| error["message"].as_str());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("run {} of {} was canceled{why}", run.id, run.skill_id)
}

/// Returns the error of a failed run with its code and message, naming the run.
fn failed_run_error(run: &RunRecord) -> Error {
    let run_error = run.error.as_ref();
    let text = |key: &str| run_error.and_then(|error| error.get(key)).and_then(serde_json::Value::as_str);
    let code = text("code").and_then(|code| code.parse().ok()).unwrap_or(Code::RuntimeError);
    let step = text("step").map(|step| format!(" at {step}")).unwrap_or_default();
    let why = text("message").unwrap_or("no reason was recorded");
    Error {
        reason: Some(json!({ "run_id": run.id, "state": run.state, "error": run_error })),
        ..Error::new(code, format!("run {} of {} failed{step}: {why}", run.id, run.skill_id))
    }
}
