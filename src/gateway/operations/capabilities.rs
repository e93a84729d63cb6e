//! Operations on capabilities: which there are, what carries them out and why.

use super::answers::CapabilityList;
use super::arguments::{Activation, Nothing, OneCapability};
use super::{Asked, Hints, Operation, Route, Scope};
use crate::gateway::CapabilityExplanation;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "capability.list",
            Route::get("/v1/capabilities"),
            Scope::Read,
            "The ids of all capabilities known.",
            |asked: Asked, _: Nothing| async move {
                Ok(CapabilityList { capabilities: asked.service.core.capabilities().await? })
            },
        ),
        Operation::new(
            "capability.explain",
            Route::post("/v1/capabilities/{capability_id}/explain"),
            Scope::Read,
            "Which binding carries a capability out, and why not the others.",
            |asked: Asked, one: OneCapability| async move {
                let explained = asked.service.core.explain_capability(&one.capability_id).await?;
                Ok(if asked.caller.may(Scope::Admin) { explained } else { without_places(explained) })
            },
        )
        .looks()
        .tool(),
        Operation::new(
            "capability.activate",
            Route::put("/v1/capabilities/{capability_id}/binding"),
            Scope::Admin,
            "Makes a binding the one for its capability here, or takes that back.",
            |asked: Asked, ask: Activation| async move {
                asked.service.core.activate(&ask.capability_id, ask.binding.as_deref()).await
            },
        )
        .hints(Hints { idempotent: true, ..Hints::default() }),
    ]
}

/// Without protocols and addresses, which tell an outsider what to attack.
fn without_places(mut explained: CapabilityExplanation) -> CapabilityExplanation {
    explained.explanation = explained.explanation.without_places();
    explained
}
