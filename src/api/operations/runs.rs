//! Operations on runs: launch, attach, follow, control.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::answers::{CheckpointList, EventList, Executed, LegacyStatus, NewestEvent, TargetList};
use super::arguments::{
    AllEventsArguments, ApprovalArguments, ArtifactArguments, AttachArguments, BranchArguments,
    ContentEncoding, DenialArguments, ExecuteArguments, LaunchFields, NoArguments, ResumeArguments,
    RunArguments, RunCheckpointsArguments, RunCommandArguments, RunEventsArguments, RunListArguments,
    SignalArguments, TargetsArguments,
};
use super::{CallContext, Hints, Operation, Route, Scope, execute};
use crate::approver_obstacle::approver_obstacle;
use crate::{
    AttachPreview, AttachRequest, Attached, Code, CommandResult, Error, LaunchRequest, Launched, NewArtifact,
    RunCommand, RunDetail, StoredArtifact,
};
use skills_model::Verdict;
use skills_registry::policy::Approver;
use skills_store::{RunFilter, RunPage, RunRecord};

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
            execute_skill,
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
            attach,
        )
        .hints(MUTATING_HINTS)
        .tool(),
        Operation::new(
            "skill.attach_async",
            Route::post("/v1/skills/{skill_id}/attach/async"),
            Scope::Run,
            "Attaches a skill and returns the run that executes it; `options.wait` waits for the end of \
                the run.",
            start_attachment,
        )
        .hints(MUTATING_HINTS)
        .status(202),
        Operation::new(
            "skill.attach_preview",
            Route::post("/v1/skills/{skill_id}/attach/preview"),
            Scope::Read,
            "Shows the checks and effects of an attachment without starting it.",
            preview_attachment,
        )
        .large_read()
        .read_only(),
        Operation::new(
            "target.list",
            Route::get("/v1/targets"),
            Scope::Read,
            "Lists existing references of one type, for completion.",
            list_targets,
        )
        .large_read(),
        Operation::new(
            "artifact.create",
            Route::post("/v1/artifacts"),
            Scope::Run,
            "Stores content to attach skills to as `artifact:DIGEST`; identical content is stored once.",
            store_artifact,
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
            list_runs,
        )
        .without_catalog()
        .pages(TOOL_PAGE)
        .tool(),
        Operation::new(
            "run.show",
            Route::get("/v1/runs/{run_id}"),
            Scope::Read,
            "Returns a run: steps, checkpoints, events, decisions, and what it waits for.",
            show_run,
        )
        .without_catalog()
        .large_read(),
        Operation::new(
            "run.checkpoints",
            Route::get("/v1/runs/{run_id}/checkpoints"),
            Scope::Read,
            "Lists the checkpoints of a run by page, the newest page first.",
            list_checkpoints,
        )
        .without_catalog()
        .large_read(),
        Operation::new(
            "run.events",
            Route::get("/v1/runs/{run_id}/events"),
            Scope::Read,
            "Returns events of a run, as server-sent events if `text/event-stream` is accepted.",
            run_events,
        )
        .without_catalog()
        .follows(),
        Operation::new(
            "event.list",
            Route::get("/v1/events"),
            Scope::Read,
            "Returns events of all runs, as server-sent events with catalog changes if \
                `text/event-stream` is accepted.",
            all_events,
        )
        .without_catalog()
        .follows(),
        Operation::new(
            "event.newest",
            Route::get("/v1/events/newest"),
            Scope::Read,
            "Returns the number of the newest event of all runs, to follow from.",
            newest_event,
        )
        .without_catalog(),
        Operation::new(
            "run.settle",
            Route::post("/v1/runs/{run_id}/settle"),
            Scope::Run,
            "Waits until a run ends, waits or is paused, and returns it.",
            wait_for_run,
        )
        .hints(COMMAND_HINTS),
        Operation::new(
            "run.status",
            Route::get("/v1/run_status/{run_id}"),
            Scope::Read,
            "Returns a run in the legacy format; canceled runs are shown as failed.",
            legacy_status,
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
            approve,
        )
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "run.deny",
            Route::post("/v1/runs/{run_id}/deny"),
            Scope::Decide,
            "Denies a waiting step and cancels the run.",
            deny,
        )
        .without_catalog()
        .hints(COMMAND_HINTS),
        Operation::new(
            "run.resume",
            Route::post("/v1/runs/{run_id}/resume"),
            Scope::Run,
            "Resumes a paused or failed run, optionally from a checkpoint and with corrected inputs.",
            resume,
        )
        .hints(MUTATING_HINTS),
        Operation::new(
            "run.signal",
            Route::post("/v1/runs/{run_id}/signal"),
            Scope::Run,
            "Sends a signal to a run.",
            signal,
        )
        .without_catalog()
        .aliases([Route::post("/v1/runs/{run_id}/signals/{name}")]),
        Operation::new(
            "run.cancel",
            Route::post("/v1/runs/{run_id}/cancel"),
            Scope::Run,
            "Cancels a run and kills its scripts.",
            cancel,
        )
        .without_catalog()
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "run.cancel_legacy",
            Route::post("/v1/run_cancel/{run_id}"),
            Scope::Run,
            "Cancels a run and returns it in the legacy format.",
            cancel_legacy,
        )
        .without_catalog()
        .aliases([Route::post("/run_cancel/{run_id}")])
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "run.replay",
            Route::post("/v1/runs/{run_id}/replay"),
            Scope::Run,
            "Starts a new run from a checkpoint of this one.",
            replay,
        )
        .fork()
        .hints(MUTATING_HINTS),
        Operation::new(
            "run.fork",
            Route::post("/v1/runs/{run_id}/fork"),
            Scope::Run,
            "Creates a paused run from a checkpoint of this one.",
            fork,
        )
        .fork(),
    ]
}

async fn execute_skill(context: CallContext, mut ask: ExecuteArguments) -> Result<Executed, Error> {
    let trace = ask.include_trace;
    // Waited for below, where the run is reported first.
    ask.options.wait = false;
    let launched = launch(&context, ask).await?;
    execute::wait_for_completion(&context, launched, trace).await
}

async fn start_attachment(context: CallContext, ask: AttachArguments) -> Result<Attached, Error> {
    let request = attachment(&context, ask)?;
    attach_until(&context, request).await
}

async fn preview_attachment(context: CallContext, ask: AttachArguments) -> Result<AttachPreview, Error> {
    let request = attachment(&context, ask)?;
    context.service.core.attach_preview(request).await
}

async fn list_targets(context: CallContext, ask: TargetsArguments) -> Result<TargetList, Error> {
    let TargetsArguments { target_type, text, limit } = ask;
    let sessions = context.caller.session_access();
    let targets = context.service.core.target_choices(target_type, &text, limit, &sessions, None).await?;
    Ok(TargetList { targets })
}

async fn store_artifact(context: CallContext, ask: ArtifactArguments) -> Result<StoredArtifact, Error> {
    let artifact = new_artifact(&context, ask)?;
    context.service.core.store_artifact(artifact).await
}

async fn list_runs(context: CallContext, ask: RunListArguments) -> Result<RunPage, Error> {
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
}

async fn show_run(context: CallContext, one: RunArguments) -> Result<RunDetail, Error> {
    let mut detail = context.service.core.run(&one.run_id).await?;
    let Some(preview) = &mut detail.sheet else { return Ok(detail) };
    // A caller with a key decides under the key's name, not under the account of the service.
    if let Some(approver) = context.caller.approver() {
        preview.approver = Some(approver);
    }
    // A core in another process has determined it for this one.
    if let Some(required) = preview.required.take() {
        let principal = context.caller.principal.as_ref();
        preview.not_approver = principal.and_then(|principal| {
            let scopes: BTreeSet<String> = principal.scopes.iter().map(ToString::to_string).collect();
            let name = principal.name.as_str();
            approver_obstacle(&detail.run, &required, Approver { names: &[name], scopes: &scopes }, name)
        });
    }
    Ok(detail)
}

async fn list_checkpoints(
    context: CallContext,
    ask: RunCheckpointsArguments,
) -> Result<CheckpointList, Error> {
    let RunCheckpointsArguments { run_id, before, limit } = ask;
    context.service.core.run_checkpoints(&run_id, before, limit).await
}

async fn run_events(context: CallContext, ask: RunEventsArguments) -> Result<EventList, Error> {
    let RunEventsArguments { run_id, after, limit, wait_ms } = ask;
    let events = context.service.core.run_events(Some(&run_id), after, limit, checked_wait(wait_ms)?).await?;
    Ok(EventList { events, log: context.service.core.event_log().await? })
}

async fn all_events(context: CallContext, ask: AllEventsArguments) -> Result<EventList, Error> {
    let AllEventsArguments { after, limit, wait_ms } = ask;
    let mut wait_ms = checked_wait(wait_ms)?;
    if after > context.service.core.newest_event().await? {
        // The number is from another store, as the caller can see by the log: do not wait for what may never come.
        wait_ms = 0;
    }
    let events = context.service.core.run_events(None, after, limit, wait_ms).await?;
    Ok(EventList { events, log: context.service.core.event_log().await? })
}

async fn newest_event(context: CallContext, _: NoArguments) -> Result<NewestEvent, Error> {
    let log = context.service.core.event_log().await?;
    Ok(NewestEvent { newest: context.service.core.newest_event().await?, log })
}

async fn wait_for_run(context: CallContext, one: RunArguments) -> Result<RunRecord, Error> {
    context.service.core.wait_for_completion(&one.run_id, context.caller.leave.clone()).await
}

async fn legacy_status(context: CallContext, one: RunArguments) -> Result<LegacyStatus, Error> {
    Ok(legacy(context.service.core.run(&one.run_id).await?.run))
}

async fn approve(context: CallContext, ask: ApprovalArguments) -> Result<CommandResult, Error> {
    let ApprovalArguments { run_id, step, inputs_digest, approver, notes, choice, result } = ask;
    let approver = context.caller.name(approver);
    let verdict = Verdict::Approve;
    let decision = RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, result };
    send_command(&context, &run_id, decision).await
}

async fn deny(context: CallContext, ask: DenialArguments) -> Result<CommandResult, Error> {
    let DenialArguments { run_id, step, inputs_digest, approver, notes, choice, result } = ask;
    let approver = context.caller.name(approver);
    let verdict = Verdict::Deny;
    let decision = RunCommand::Decide { verdict, step, inputs_digest, approver, notes, choice, result };
    send_command(&context, &run_id, decision).await
}

async fn resume(context: CallContext, ask: ResumeArguments) -> Result<CommandResult, Error> {
    let ResumeArguments { run_id, checkpoint_id: checkpoint, inputs, despite_change, since_ms, by } = ask;
    let by = context.caller.name(by);
    send_command(&context, &run_id, RunCommand::Resume { checkpoint, inputs, despite_change, by, since_ms })
        .await
}

async fn signal(context: CallContext, ask: SignalArguments) -> Result<CommandResult, Error> {
    let SignalArguments { run_id, name, payload, since_ms, by } = ask;
    let by = context.caller.name(by);
    send_command(&context, &run_id, RunCommand::Signal { name, payload, by, since_ms }).await
}

async fn cancel_legacy(context: CallContext, ask: RunCommandArguments) -> Result<LegacyStatus, Error> {
    Ok(legacy(cancel(context, ask).await?.run))
}

async fn replay(context: CallContext, ask: BranchArguments) -> Result<CommandResult, Error> {
    let BranchArguments { run_id, checkpoint_id: checkpoint, since_ms, by } = ask;
    let by = context.caller.name(by);
    send_command(&context, &run_id, RunCommand::Replay { checkpoint, by, since_ms }).await
}

async fn fork(context: CallContext, ask: BranchArguments) -> Result<CommandResult, Error> {
    let BranchArguments { run_id, checkpoint_id: checkpoint, since_ms, by } = ask;
    let by = context.caller.name(by);
    send_command(&context, &run_id, RunCommand::Fork { checkpoint, by, since_ms }).await
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

async fn attach(context: CallContext, ask: AttachArguments) -> Result<AttachmentWithEvents, Error> {
    let trace = ask.include_trace;
    let mut request = attachment(&context, ask)?;
    request.options.wait = true;
    let attached = execute::attached(&context, attach_until(&context, request).await?).await?;
    let (trace, trace_truncated) = execute::trace_of(&context, &attached.execution, trace).await?;
    Ok(AttachmentWithEvents { attached, trace, trace_truncated })
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
    /// Whether the run has more events than the trace; they are in `run.events`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    trace_truncated: bool,
}

async fn cancel(context: CallContext, ask: RunCommandArguments) -> Result<CommandResult, Error> {
    let by = context.caller.name(ask.by);
    send_command(&context, &ask.run_id, RunCommand::Cancel { by }).await
}

async fn send_command(context: &CallContext, run: &str, command: RunCommand) -> Result<CommandResult, Error> {
    context.service.core.command_as(run, command, context.caller.principal.clone()).await
}

/// Returns the status for callers of a version without the state `canceled`.
fn legacy(run: RunRecord) -> LegacyStatus {
    LegacyStatus {
        run_id: run.id,
        skill_id: run.skill_id,
        status: run.state.legacy().to_string(),
        progress: run.progress,
        outputs: run.outputs,
        error: run.error,
        trace_id: run.trace_id,
    }
}
