//! Operations on the service itself: whether it lives, what it counted.

use super::answers::Liveness;
use super::arguments::Nothing;
use super::skills::TOOL_PAGE;
use super::{Asked, Hints, Operation, Principal, Route, Scope};
use crate::{CallerView, Error, GovernanceFilter};

/// The failure of the store, for everybody: its cause without its place.
fn without_place(error: Error) -> Error {
    let cause = error.reason.as_ref().and_then(|reason| reason.get("cause")?.as_str());
    let message = format!("the store of runs cannot be used: {}", cause.unwrap_or("see the log"));
    Error { message, ..error }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "runtime.health",
            Route::get("/v1/health"),
            None,
            "Whether the service lives, can write to its store, and is through with reading its skills.",
            |asked: Asked, _: Nothing| async move {
                asked.service.core.ensure_store().await.map_err(without_place)?;
                let found = asked.service.core.diagnostics().await?;
                Ok(Liveness {
                    status: "ok".to_owned(),
                    version: found.version,
                    skills: found.skills,
                    ready: found.scan.done && found.index.done,
                })
            },
        )
        .tool(),
        Operation::new(
            "runtime.caller",
            Route::get("/v1/caller"),
            Scope::Read,
            "Who calls: the name that runs and decisions are recorded under, and what their key may do.",
            |asked: Asked, _: Nothing| async move {
                let known = |who: Principal| CallerView { name: Some(who.name), scopes: who.scopes };
                Ok(asked.caller.principal.map_or_else(CallerView::anyone, known))
            },
        ),
        Operation::new(
            "skill.diagnostics",
            Route::get("/v1/skills/diagnostics"),
            Scope::Read,
            "Roots, skills, caches, counts per operation and failures per link.",
            |asked: Asked, _: Nothing| async move { asked.service.core.diagnostics().await },
        )
        .tool(),
        Operation::new(
            "skill.metrics.reset",
            Route::post("/v1/skills/diagnostics/reset"),
            Scope::Admin,
            "Begins the counts of the diagnostics anew and answers them.",
            |asked: Asked, _: Nothing| async move { asked.service.core.reset_diagnostics().await },
        )
        .hints(Hints { destructive: true, idempotent: true, ..Hints::default() })
        .tool(),
        Operation::new(
            "runtime.metrics",
            Route::get("/v1/metrics"),
            Scope::Read,
            "Every metric as JSON; `/v1/metrics/prometheus` has the same as text.",
            |asked: Asked, _: Nothing| async move { asked.service.core.metrics().await },
        ),
        Operation::new(
            "skill.governance.list",
            Route::get("/v1/skills/governance"),
            Scope::Read,
            "How far each skill is proven, why, and what the next state asks for.",
            |asked: Asked, filter: GovernanceFilter| async move { asked.service.core.governance(filter).await },
        )
        .pages(TOOL_PAGE)
        .tool(),
    ]
}
