//! Operations on the service itself: whether it lives, what it counted.

use super::answers::Liveness;
use super::arguments::Nothing;
use super::{Asked, Operation, Route, Scope};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "runtime.health",
            Route::get("/v1/health"),
            None,
            "Whether the service lives and is through with reading its skills.",
            |asked: Asked, _: Nothing| async move {
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
            "skill.diagnostics",
            Route::get("/v1/skills/diagnostics"),
            Scope::Read,
            "Roots, skills, caches, counts per operation and failures per link.",
            |asked: Asked, _: Nothing| async move { asked.service.core.diagnostics().await },
        )
        .tool(),
    ]
}
