//! Operations for operators: the board, workers, facets, saved views, logs of steps, assignments.

use super::arguments::{
    AssignArguments, BoardArguments, DrainArguments, FacetsArguments, LogArguments, NoArguments,
    ViewArguments, ViewNameArguments,
};
use super::runs::checked_wait;
use super::{CallContext, Hints, Operation, Route, Scope};
use crate::{LogRequest, RunCommand};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "run.board",
            Route::get("/v1/board"),
            Scope::Read,
            "Returns waiting runs by deadline, runs in progress, failures by reason and completed runs over the last hours, \
                and the workers.",
            |context: CallContext, ask: BoardArguments| async move {
                context.service.core.board(ask.hours).await
            },
        )
        .without_catalog()
        .large_read()
        .tool(),
        Operation::new(
            "run.facets",
            Route::get("/v1/facets"),
            Scope::Read,
            "Returns the fields and values that distinguish the runs matching a filter, with the terms that select \
                them.",
            |context: CallContext, ask: FacetsArguments| async move {
                context.caller.may_filter(Some(&ask.r#where))?;
                context.service.core.facets(&ask.r#where).await
            },
        )
        .without_catalog()
        .large_read(),
        Operation::new(
            "run.log",
            Route::get("/v1/runs/{run_id}/log"),
            Scope::Read,
            "Returns complete output lines of a run, optionally of one step or with a text.",
            |context: CallContext, ask: LogArguments| async move {
                let LogArguments { run_id: run, step, text, after, limit, wait_ms } = ask;
                let wait_ms = checked_wait(wait_ms)?;
                context.service.core.run_log(LogRequest { run, step, text, after, limit, wait_ms }).await
            },
        )
        .without_catalog(),
        Operation::new(
            "run.assign",
            Route::post("/v1/runs/{run_id}/assign"),
            Scope::Run,
            "Assigns a run to a person with a note, or removes the assignment.",
            |context: CallContext, ask: AssignArguments| async move {
                let AssignArguments { run_id, to, note, assignee, by } = ask;
                let by = context.caller.name(by);
                let principal = context.caller.principal.clone();
                let command = RunCommand::Assign { to, note, assignee, by };
                context.service.core.command_as(&run_id, command, principal).await
            },
        )
        .assignment()
        .without_catalog()
        .hints(Hints { idempotent: true, ..Hints::default() }),
        Operation::new(
            "worker.list",
            Route::get("/v1/workers"),
            Scope::Read,
            "Lists the processes that execute runs, with their runs, versions and last heartbeats.",
            |context: CallContext, _: NoArguments| async move { context.service.core.workers().await },
        )
        .without_catalog(),
        Operation::new(
            "worker.drain",
            Route::post("/v1/workers/drain"),
            Scope::Admin,
            "Lets a worker finish its runs and claim no others, or claim runs again.",
            |context: CallContext, ask: DrainArguments| async move {
                let by = context.caller.name(None);
                context.service.core.drain(&ask.worker, ask.drain, by).await
            },
        )
        .without_catalog()
        .hints(Hints { idempotent: true, ..Hints::default() }),
        Operation::new(
            "view.list",
            Route::get("/v1/views"),
            Scope::Read,
            "Lists saved views: named filters of runs.",
            |context: CallContext, _: NoArguments| async move { context.service.core.views().await },
        )
        .without_catalog(),
        Operation::new(
            "view.save",
            Route::post("/v1/views"),
            Scope::Run,
            "Saves a filter of runs under a name, for everyone on the store.",
            |context: CallContext, ask: ViewArguments| async move {
                let ViewArguments { name, r#where, by } = ask;
                let by = context.caller.name(by);
                context.service.core.save_view(&name, Some(&r#where), by).await
            },
        )
        .without_catalog()
        .hints(Hints { idempotent: true, ..Hints::default() }),
        Operation::new(
            "view.delete",
            Route::post("/v1/views/delete"),
            Scope::Run,
            "Deletes a saved view.",
            |context: CallContext, ask: ViewNameArguments| async move {
                let by = context.caller.name(ask.by);
                context.service.core.save_view(&ask.name, None, by).await
            },
        )
        .without_catalog()
        .hints(Hints { destructive: true, idempotent: true, ..Hints::default() }),
    ]
}
