//! Operations on capabilities: list, explain, activate and execute them.

use super::answers::CapabilityList;
use super::arguments::{
    ActivationArguments, CapabilityArguments, CapabilityCallArguments, LaunchFields, NoArguments,
};
use super::runs::MUTATING_HINTS;
use super::{CallContext, Hints, Operation, Route, Scope, execute};
use crate::{CapabilityExplanation, CapabilityRequest, Error, Launched};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "capability.list",
            Route::get("/v1/capabilities"),
            Scope::Read,
            "Lists the ids of all capabilities.",
            |context: CallContext, _: NoArguments| async move {
                Ok(CapabilityList { capabilities: context.service.core.capabilities().await? })
            },
        ),
        Operation::new(
            "capability.explain",
            Route::post("/v1/capabilities/{capability_id}/explain"),
            Scope::Read,
            "Shows which binding implements a capability, and why not the others.",
            |context: CallContext, one: CapabilityArguments| async move {
                let explained = context.service.core.explain_capability(&one.capability_id).await?;
                Ok(if context.caller.may(Scope::Admin) { explained } else { without_places(explained) })
            },
        )
        .read_only()
        .tool(),
        Operation::waiting(
            "capability.execute",
            Route::post("/v1/capabilities/{capability_id}/execute"),
            Scope::Run,
            "Executes a capability as a run of one step, with its gates, and returns its outputs.",
            |context: CallContext, ask: CapabilityCallArguments| async move {
                let trace = ask.include_trace;
                let mut request = request(&context, ask)?;
                // Waited for below, where the caller can leave.
                request.options.wait = false;
                let launched = context.service.core.execute_capability(request).await?;
                execute::wait_for_completion(&context, launched, trace).await
            },
        )
        .hints(MUTATING_HINTS)
        .tool(),
        Operation::new(
            "capability.execute_async",
            Route::post("/v1/capabilities/{capability_id}/execute/async"),
            Scope::Run,
            "Launches a capability as a run of one step and returns the run.",
            |context: CallContext, ask: CapabilityCallArguments| async move {
                let mut request = request(&context, ask)?;
                let wait = std::mem::take(&mut request.options.wait);
                let launched = context.service.core.execute_capability(request).await?;
                if !wait {
                    return Ok(launched);
                }
                let Launched { run, idempotency, worker_alive } = launched;
                let id = run.id.clone();
                // A run of an earlier launch may be large, and is read again.
                drop(run);
                let core = &context.service.core;
                let run = core.wait_for_completion(&id.0, context.caller.leave.clone()).await?;
                Ok(Launched { run, idempotency, worker_alive })
            },
        )
        .hints(MUTATING_HINTS)
        .status(202),
        Operation::new(
            "capability.activate",
            Route::put("/v1/capabilities/{capability_id}/binding"),
            Scope::Admin,
            "Sets or resets the binding for a capability.",
            |context: CallContext, ask: ActivationArguments| async move {
                let by = context.caller.name(None);
                context.service.core.activate(&ask.capability_id, ask.binding.as_deref(), by).await
            },
        )
        .hints(Hints { idempotent: true, ..Hints::default() }),
    ]
}

fn request(context: &CallContext, mut ask: CapabilityCallArguments) -> Result<CapabilityRequest, Error> {
    let LaunchFields { inputs, options, started_by } = ask.take_launch_fields(&context.caller)?;
    Ok(CapabilityRequest { capability: ask.capability_id, inputs, options, started_by })
}

/// Removes protocols and addresses, which would tell an outsider what to attack.
fn without_places(mut explained: CapabilityExplanation) -> CapabilityExplanation {
    explained.explanation = explained.explanation.without_places();
    explained
}
