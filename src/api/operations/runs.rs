//! Operations on runs: launch, attach, follow, control.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::answers::{EventList, LegacyStatus, NewestEvent, TargetList};
use super::arguments::{
    AllEventsArguments, ApprovalArguments, ArtifactArguments, AttachArguments, BranchArguments,
    ContentEncoding, DenialArguments, ExecuteArguments, LaunchFields, NoArguments, ResumeArguments,
    RunArguments, RunCheckpointsArguments, RunCommandArguments, RunEventsArguments, RunListArguments,
    SignalArguments, TargetsArguments,
};
use super::{CallContext, Hints, Operation, Route, Scope, execute};
use crate::{
    AttachRequest, Attached, Code, CommandResult, Error, LaunchRequest, Launched, NewArtifact, RunCommand,
};
use skills_model::{RunState, Verdict};
use skills_store::{RunFilter, RunRecord};

/// Maximum size of a body with the content of an artifact, in bytes: 8 MiB in Base64, plus the other fields.
const MAX_ARTIFACT_BODY: usize = 12 << 20;
/// Runs on a page of a tool call.
const TOOL_PAGE: usize = 30;
/// Hints of operations with external effects through bindings.
pub(super) const MUTATING_HINTS: Hints =
    Hints { read_only: false, destructive: true, idempotent: false, open_world: true };
/// Hints of operations that change a run.
pub(super) const COMMAND_HINTS: Hints =
    Hints { read_only: false, destructive: false, idempotent: true, open_world: false };

pub(super) fn operations() -> Vec<Operation> {
    let mut all = launch_operations();
    all.extend(read_operations());
    all.extend(command_operations());
    all
}

fn launch_operations() -> Vec<Operation> {
    vec![
        Operation::waiting(
            "skill.execute",
            Route::post("/v1/skills/{skill_id}/execute"),
            Scope::Run,
            "Executes a skill's contract and returns its outputs. A run that waits for approval returns \
                confirmation_required and continues when approved.",
            |context: CallContext, mut ask: ExecuteArguments| async move {
                let trace = ask.include_trace;
                // Waited for below, where the run is reported first.
                ask.options.wait = false;
                let launched = launch(&context, ask).await?;
                execute::wait_for_completion(&context, launched, trace).await
            },
        )
        .hints(MUTATING_HINTS)
        .tool(),
        Operation::new(
            "skill.execute_async",
            Route::post("/v1/skills/{skill_id}/execute/async"),
            Scope::Run,
            "Launches a run and returns immediately; with an idempotency key, repeated calls return the \
                same run.",
            |context: CallContext, ask: ExecuteArguments| async move { launch(&context, ask).await },
        )
        .hints(MUTATING_HINTS)
        .status(202),
        Operation::new(
            "run.launch",
            Route::post("/v1/run_async"),
            Scope::Run,
            "Launches a run of the skill in the body.",
            |context: CallContext, ask: ExecuteArguments| async move { launch(&context, ask).await },
        )
        .aliases([Route::post("/run_async")])
        .hints(MUTATING_HINTS)
        .status(202),
        Operation::waiting(
            "skill.attach",
            Route::post("/v1/skills/{skill_id}/attach"),
            Scope::Run,
            "Attaches a skill to a task, run, output, transcript or artifact, whose content is passed as \
                `target`.",
            |context: CallContext, ask: AttachArguments| async move { attach(&context, ask).await },
        )
        .hints(MUTATING_HINTS)
        .tool(),
        Operation::new(
            "skill.attach_async",
            Route::post("/v1/skills/{skill_id}/attach/async"),
            Scope::Run,
            "Attaches a skill and returns the run that executes it; `options.wait` waits for the end of \
                the run.",
            |context: CallContext, ask: AttachArguments| async move {
                let request = attachment(&context, ask)?;
                attach_until(&context, request).await
            },
        )
        .hints(MUTATING_HINTS)
        .status(202),
        Operation::new(
            "skill.attach_preview",
            Route::post("/v1/skills/{skill_id}/attach/preview"),
            Scope::Read,
            "Shows the checks and effects of an attachment without starting it.",
            |context: CallContext, ask: AttachArguments| async move {
                let request = attachment(&context, ask)?;
                context.service.core.attach_preview(request).await
            },
        )
        .large_read()
        .read_only(),
        Operation::new(
            "target.list",
            Route::get("/v1/targets"),
            Scope::Read,
            "Lists existing references of one type, for completion.",
            |context: CallContext, ask: TargetsArguments| async move {
                let TargetsArguments { target_type, text, limit } = ask;
                let sessions = context.caller.session_access();
                let targets =
                    context.service.core.target_choices(target_type, &text, limit, &sessions, None).await?;
                Ok(TargetList { targets })
            },
        )
        .large_read(),
        Operation::new(
            "artifact.create",
            Route::post("/v1/artifacts"),
            Scope::Run,
            "Stores content to attach skills to as `artifact:DIGEST`; identical content is stored once.",
            |context: CallContext, ask: ArtifactArguments| async move {
                let artifact = new_artifact(&context, ask)?;
                context.service.core.store_artifact(artifact).await
            },
        )
        .hints(Hints { idempotent: true, ..Hints::default() })
        .max_body(MAX_ARTIFACT_BODY)
        .status(201)
        .tool(),
    ]
}

fn read_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "run.list",
            Route::get("/v1/runs"),
            Scope::Read,
            "Lists runs by page, waiting runs first.",
            |context: CallContext, ask: RunListArguments| async move {
                let RunListArguments { states, skill_id, text, trace_id, r#where, cursor, limit } = ask;
                context.caller.may_filter(r#where.as_deref())?;
                let filter = RunFilter {
                    states,
                    skill_id,
                    text,
                    trace_id: trace_id.filter(|id| !id.trim().is_empty()),
                    r#where,
                    cursor,
                    limit,
                };
                context.service.core.runs(filter).await
            },
        )
        .without_catalog()
        .pages(TOOL_PAGE)
        .tool(),
        Operation::new(
            "run.show",
            Route::get("/v1/runs/{run_id}"),
            Scope::Read,
            "Returns a run: steps, checkpoints, events, decisions, and what it waits for.",
            |context: CallContext, one: RunArguments| async move {
                let mut detail = context.service.core.run(&one.run_id).await?;
                // A caller with a key decides under the key's name, not under the account of the service.
                if let (Some(sheet), Some(approver)) = (&mut detail.sheet, context.caller.approver()) {
                    sheet.approver = Some(approver);
                }
                Ok(detail)
            },
        )
        .without_catalog()
        .large_read(),
        Operation::new(
            "run.checkpoints",
            Route::get("/v1/runs/{run_id}/checkpoints"),
            Scope::Read,
            "Lists the checkpoints of a run by page, the newest page first.",
            |context: CallContext, ask: RunCheckpointsArguments| async move {
                let RunCheckpointsArguments { run_id, before, limit } = ask;
                context.service.core.run_checkpoints(&run_id, before, limit).await
            },
        )
        .without_catalog()
        .large_read(),
        Operation::new(
            "run.events",
            Route::get("/v1/runs/{run_id}/events"),
            Scope::Read,
            "Returns events of a run, as server-sent events if `text/event-stream` is accepted.",
            |context: CallContext, ask: RunEventsArguments| async move {
                let RunEventsArguments { run_id, after, limit, wait_ms } = ask;
                let events = context
                    .service
                    .core
                    .run_events(Some(&run_id), after, limit, checked_wait(wait_ms)?)
                    .await?;
                Ok(EventList { events, log: context.service.core.event_log().await? })
            },
        )
        .without_catalog()
        .follows(),
        Operation::new(
            "event.list",
            Route::get("/v1/events"),
            Scope::Read,
            "Returns events of all runs, as server-sent events with catalog changes if \
                `text/event-stream` is accepted.",
            |context: CallContext, ask: AllEventsArguments| async move {
                let AllEventsArguments { after, limit, wait_ms } = ask;
                let mut wait_ms = checked_wait(wait_ms)?;
                if after > context.service.core.newest_event().await? {
                    // The number is from another store, as the caller can see by the log: do not wait for what may
                    // never come.
                    wait_ms = 0;
                }
                let events = context.service.core.run_events(None, after, limit, wait_ms).await?;
                Ok(EventList { events, log: context.service.core.event_log().await? })
            },
        )
        .without_catalog()
        .follows(),
        Operation::new(
            "event.newest",
            Route::get("/v1/events/newest"),
            Scope::Read,
            "Returns the number of the newest event of all runs, to follow from.",
            |context: CallContext, _: NoArguments| async move {
                let log = context.service.core.event_log().await?;
                Ok(NewestEvent { newest: context.service.core.newest_event().await?, log })
            },
        )
        .without_catalog(),
        Operation::new(
            "run.settle",
            Route::post("/v1/runs/{run_id}/settle"),
            Scope::Run,
            "Waits until a run ends, waits or is paused, and returns it.",
            |context: CallContext, one: RunArguments| async move {
                context.service.core.wait_for_completion(&one.run_id, context.caller.leave.clone()).await
            },
        )
        .hints(COMMAND_HINTS),
        Operation::new(
            "run.status",
            Route::get("/v1/run_status/{run_id}"),
            Scope::Read,
            "Returns a run in the legacy format; canceled runs are shown as failed.",
            |context: CallContext, one: RunArguments| async move {
                Ok(legacy(context.service.core.run(&one.run_id).await?.run))
            },
        )
        .without_catalog()
        .large_read()
        .aliases([Route::get("/run_status/{run_id}")]),
    ]
}

fn command_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "run.approve",
            Route::post("/v1/runs/{run_id}/approve"),
            Scope::Decide,
            "Approves a waiting step, identified by step and inputs digest; the run continues.",
            |context: CallContext, ask: ApprovalArguments| async move {
                let ApprovalArguments { run_id, step, inputs_digest, approver, notes, choice, result } = ask;
                let approver = context.caller.name(approver);
                let verdict = Verdict::Approve;
                let decision =
                    RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, result };
                send_command(&context, &run_id, decision).await
            },
        )
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "run.deny",
            Route::post("/v1/runs/{run_id}/deny"),
            Scope::Decide,
            "Denies a waiting step and cancels the run.",
            |context: CallContext, ask: DenialArguments| async move {
                let DenialArguments { run_id, step, inputs_digest, approver, notes, choice, result } = ask;
                let approver = context.caller.name(approver);
                let verdict = Verdict::Deny;
                let decision =
                    RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, result };
                send_command(&context, &run_id, decision).await
            },
        )
        .without_catalog()
        .hints(COMMAND_HINTS),
        Operation::new(
            "run.resume",
            Route::post("/v1/runs/{run_id}/resume"),
            Scope::Run,
            "Resumes a paused or failed run, optionally from a checkpoint and with corrected inputs.",
            |context: CallContext, ask: ResumeArguments| async move {
                let ResumeArguments { run_id, checkpoint_id: checkpoint, inputs, despite_change, by } = ask;
                let by = context.caller.name(by);
                send_command(&context, &run_id, RunCommand::Resume { checkpoint, inputs, despite_change, by })
                    .await
            },
        )
        .hints(MUTATING_HINTS),
        Operation::new(
            "run.signal",
            Route::post("/v1/runs/{run_id}/signal"),
            Scope::Run,
            "Sends a signal to a run.",
            |context: CallContext, ask: SignalArguments| async move {
                let SignalArguments { run_id, name, payload, by } = ask;
                let by = context.caller.name(by);
                send_command(&context, &run_id, RunCommand::Signal { name, payload, by }).await
            },
        )
        .without_catalog()
        .aliases([Route::post("/v1/runs/{run_id}/signals/{name}")]),
        Operation::new(
            "run.cancel",
            Route::post("/v1/runs/{run_id}/cancel"),
            Scope::Run,
            "Cancels a run and kills its scripts.",
            |context: CallContext, ask: RunCommandArguments| async move { cancel(&context, ask).await },
        )
        .without_catalog()
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "run.cancel_legacy",
            Route::post("/v1/run_cancel/{run_id}"),
            Scope::Run,
            "Cancels a run and returns it in the legacy format.",
            |context: CallContext, ask: RunCommandArguments| async move {
                Ok(legacy(cancel(&context, ask).await?.run))
            },
        )
        .without_catalog()
        .aliases([Route::post("/run_cancel/{run_id}")])
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "run.replay",
            Route::post("/v1/runs/{run_id}/replay"),
            Scope::Run,
            "Starts a new run from a checkpoint of this one.",
            |context: CallContext, ask: BranchArguments| async move {
                let BranchArguments { run_id, checkpoint_id: checkpoint, by } = ask;
                let by = context.caller.name(by);
                send_command(&context, &run_id, RunCommand::Replay { checkpoint, by }).await
            },
        )
        .fork()
        .hints(MUTATING_HINTS),
        Operation::new(
            "run.fork",
            Route::post("/v1/runs/{run_id}/fork"),
            Scope::Run,
            "Creates a paused run from a checkpoint of this one.",
            |context: CallContext, ask: BranchArguments| async move {
                let BranchArguments { run_id, checkpoint_id: checkpoint, by } = ask;
                let by = context.caller.name(by);
                send_command(&context, &run_id, RunCommand::Fork { checkpoint, by }).await
            },
        )
        .fork(),
    ]
}

/// Checks the maximum wait.
///
/// # Errors
/// Returns `invalid_request` for a longer one, which would otherwise return earlier than expected.
pub(super) fn checked_wait(wait_ms: u64) -> Result<u64, Error> {
    const MAX_WAIT_MS: u64 = 60_000;
    if wait_ms > MAX_WAIT_MS {
        let message = format!("invalid `wait_ms` {wait_ms}; the maximum is {MAX_WAIT_MS}");
        return Err(Error::new(Code::InvalidRequest, message));
    }
    Ok(wait_ms)
}

async fn launch(context: &CallContext, mut ask: ExecuteArguments) -> Result<Launched, Error> {
    let LaunchFields { inputs, options, started_by } = ask.take_launch_fields(&context.caller)?;
    let request = LaunchRequest { skill: ask.skill_id, inputs, options, started_by };
    // If the options wait for the run, the caller can still leave.
    context.service.core.launch_until(request, context.caller.leave.clone()).await
}

fn attachment(context: &CallContext, mut ask: AttachArguments) -> Result<AttachRequest, Error> {
    let LaunchFields { inputs, options, started_by } = ask.take_launch_fields(&context.caller)?;
    let AttachArguments { skill_id: skill, target_type, target_ref, .. } = ask;
    let sessions = context.caller.session_access();
    // The caller is remote, or a model, and must not name files of this machine.
    let local_files = None;
    Ok(AttachRequest { skill, target_type, target_ref, inputs, options, started_by, sessions, local_files })
}

fn new_artifact(context: &CallContext, ask: ArtifactArguments) -> Result<NewArtifact, Error> {
    let ArtifactArguments { name, content, encoding, by } = ask;
    let content = match encoding {
        ContentEncoding::Text => content.into_bytes(),
        ContentEncoding::Base64 => BASE64
            .decode(content)
            .map_err(|error| Error::new(Code::InvalidRequest, format!("`content` is not Base64: {error}")))?,
    };
    Ok(NewArtifact { name, content, by: context.caller.name(by) })
}

async fn attach_until(context: &CallContext, request: AttachRequest) -> Result<Attached, Error> {
    let (leave, observer) = (context.caller.leave.clone(), context.caller.observer.clone());
    context.service.core.attach_until(request, leave, observer).await
}

async fn attach(context: &CallContext, ask: AttachArguments) -> Result<AttachmentWithEvents, Error> {
    let trace = ask.include_trace;
    let mut request = attachment(context, ask)?;
    request.options.wait = true;
    let attached = execute::attached(context, attach_until(context, request).await?).await?;
    let trace = if trace { Some(execute::trace_of(context, &attached.execution).await?) } else { None };
    Ok(AttachmentWithEvents { attached, trace })
}

impl AsRef<RunRecord> for AttachmentWithEvents {
    fn as_ref(&self) -> &RunRecord {
        &self.attached.execution
    }
}

/// An attachment with its events, if requested.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[schemars(rename = "AttachedTraced")]
struct AttachmentWithEvents {
    #[serde(flatten)]
    attached: Attached,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<skills_store::RunEvent>>,
}

async fn cancel(context: &CallContext, ask: RunCommandArguments) -> Result<CommandResult, Error> {
    let by = context.caller.name(ask.by);
    send_command(context, &ask.run_id, RunCommand::Cancel { by }).await
}

async fn send_command(context: &CallContext, run: &str, command: RunCommand) -> Result<CommandResult, Error> {
    context.service.core.command_as(run, command, context.caller.principal.clone()).await
}

/// Returns the status for callers of a version without the state `canceled`.
fn legacy(run: RunRecord) -> LegacyStatus {
    let status = match run.state {
        RunState::Canceled => RunState::Failed,
        state => state,
    };
    LegacyStatus {
        run_id: run.id,
        skill_id: run.skill_id,
        status: status.to_string(),
        progress: run.progress,
        outputs: run.outputs,
        error: run.error,
        trace_id: run.trace_id,
    }
}
