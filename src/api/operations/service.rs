//! Operations on the service itself: health and metrics.

use std::path::PathBuf;

use super::answers::Liveness;
use super::arguments::NoArguments;
use super::skills::TOOL_PAGE;
use super::{CallContext, Hints, Operation, Principal, Route, Scope};
use crate::{CallerView, Diagnostics, Error, GovernanceFilter};

/// Returns the error of the store for all callers: its cause without its path or address.
pub(super) fn without_place(error: Error) -> Error {
    let cause = error.reason.as_ref().and_then(|reason| reason.get("cause")?.as_str());
    let message = format!(
        "the run store is unavailable (cause: {}); see the log of the service",
        cause.unwrap_or("unknown")
    );
    Error { message, ..error }
}

/// Returns the diagnostics without the location of the store and the folder of the cache.
fn without_locations(mut found: Diagnostics) -> Diagnostics {
    // The reason why counts are not stored may contain the location too.
    let place = if found.counting.persisted { "the run store" } else { "in memory" };
    place.clone_into(&mut found.counting.place);
    found.counting.file = None;
    found.cache.0 = found.cache.0.file_name().map(PathBuf::from).unwrap_or_default();
    found
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "runtime.health",
            Route::get("/v1/health"),
            None,
            "Reports whether the service is alive, can write to its store, and has loaded its skills.",
            |context: CallContext, _: NoArguments| async move {
                context.service.core.ensure_store().await.map_err(without_place)?;
                let found = context.service.core.load_state().await?;
                Ok(Liveness {
                    status: "ok".to_owned(),
                    version: found.version,
                    skills: found.skills,
                    ready: found.scan.done && found.index.done,
                })
            },
        )
        .without_catalog()
        .tool(),
        Operation::new(
            "runtime.caller",
            Route::get("/v1/caller"),
            Scope::Read,
            "Returns the caller's principal and scopes.",
            |context: CallContext, _: NoArguments| async move {
                let view = |who: Principal| CallerView { name: Some(who.name), scopes: who.scopes };
                Ok(context.caller.principal.map_or_else(CallerView::anyone, view))
            },
        )
        .without_catalog(),
        Operation::new(
            "skill.diagnostics",
            Route::get("/v1/skills/diagnostics"),
            Scope::Read,
            "Returns roots, skills, caches, operation counts and matcher failures.",
            |context: CallContext, _: NoArguments| async move {
                let found = context.service.core.diagnostics().await?;
                Ok(if context.caller.may(Scope::Admin) { found } else { without_locations(found) })
            },
        )
        .without_catalog()
        .tool(),
        Operation::new(
            "skill.metrics.reset",
            Route::post("/v1/skills/diagnostics/reset"),
            Scope::Admin,
            "Resets the diagnostic counts and returns them.",
            |context: CallContext, _: NoArguments| async move { context.service.core.reset_diagnostics().await },
        )
        .without_catalog()
        .hints(Hints { destructive: true, idempotent: true, ..Hints::default() })
        .tool(),
        Operation::new(
            "runtime.metrics",
            Route::get("/v1/metrics"),
            Scope::Read,
            "Returns all metrics as JSON; `/v1/metrics/prometheus` has them as text.",
            |context: CallContext, _: NoArguments| async move { context.service.core.metrics().await },
        )
        .without_catalog(),
        Operation::new(
            "skill.governance.list",
            Route::get("/v1/skills/governance"),
            Scope::Read,
            "Returns the quality state of skills, the evidence, and the requirements of the next state.",
            |context: CallContext, filter: GovernanceFilter| async move {
                context.service.core.governance(filter).await
            },
        )
        .pages(TOOL_PAGE)
        .tool(),
    ]
}
