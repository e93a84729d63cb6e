//! `skills runs resume|signal|cancel|replay|fork`: sends a command to a run, and continues executing it.

use serde::Serialize;
use serde_json::Value;

use super::completion::{self, NextCommand};
use super::inputs::InputTypes;
use super::next_steps::Caller;
use super::reporter::Reporter;
use super::{bulk, follow, inputs, launch};
use crate::Context;
use crate::args::{BranchArgs, CancelArgs, ResumeArgs, RunsAssignArgs, SignalArgs};
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TextStyle};
use skills_api::{Code, CommandResult, CoreParts, Error, RunClient, RunCommand, RunDetail};
use skills_model::CommandName;
use skills_skill::safe_text;

/// The result of a command in JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    result: &'a CommandResult,
    next: Vec<NextCommand>,
}

/// Runs `skills runs resume`.
pub async fn resume(cx: &mut Context, args: &ResumeArgs) -> Result<Exit, Failure> {
    let Some(run) = &args.run else {
        let filter = args.bulk.r#where.as_deref().unwrap_or_default();
        let despite_change = args.despite_change;
        let to_command = |_: &_| RunCommand::Resume {
            checkpoint: None,
            inputs: None,
            despite_change,
            by: None,
            since_ms: None,
        };
        let words: &[&str] = if despite_change { &["--allow-changed-skill"] } else { &[] };
        return bulk::run(cx, filter, args.bulk.yes, (CommandName::Resume, words), to_command).await;
    };
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let detail = client.run(run).await?;
    let has_inputs = !args.inputs.pairs.is_empty() || args.inputs.inputs.is_some();
    let inputs = if has_inputs {
        // If the contract changed, types are derived from the run's own inputs, because its old contract is used.
        let unchanged = detail.contract_unchanged == Some(true);
        let contract = client.contract(&detail.run.skill_id).await.ok().filter(|_| unchanged);
        let likely = inputs::suggested(&detail.run.inputs);
        let types = contract
            .as_ref()
            .map_or(InputTypes::Likely(&likely), |view| InputTypes::Declared(&view.contract.inputs));
        Some(inputs::gather(&args.inputs, types, &cx.cwd)?)
    } else {
        None
    };
    let command = RunCommand::Resume {
        checkpoint: args.checkpoint,
        inputs,
        despite_change: args.despite_change,
        by: None,
        since_ms: None,
    };
    send_command(cx, &*client, &detail, command, args.onward.detach, &mut reporter).await
}

/// Runs `skills runs signal`.
pub async fn signal(cx: &mut Context, args: &SignalArgs) -> Result<Exit, Failure> {
    let payload = json("--payload", &args.payload, cx)?;
    let Some(name) = &args.name else {
        // The only argument is the name of the signal.
        let (name, filter) = (&args.run, args.bulk.r#where.as_deref().unwrap_or_default());
        let words = [name.as_str(), "--payload", &args.payload];
        let to_command = |_: &_| RunCommand::Signal {
            name: name.clone(),
            payload: payload.clone(),
            by: None,
            since_ms: None,
        };
        return bulk::run(cx, filter, args.bulk.yes, (CommandName::Signal, &words), to_command).await;
    };
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let detail = client.run(&args.run).await?;
    let command = RunCommand::Signal { name: name.clone(), payload, by: None, since_ms: None };
    send_command(cx, &*client, &detail, command, args.onward.detach, &mut reporter).await
}

/// Runs `skills runs cancel`.
pub async fn cancel(cx: &mut Context, args: &CancelArgs) -> Result<Exit, Failure> {
    let Some(run) = &args.run else {
        let filter = args.bulk.r#where.as_deref().unwrap_or_default();
        let to_command = |_: &_| RunCommand::Cancel { by: None };
        return bulk::run(cx, filter, args.bulk.yes, (CommandName::Cancel, &[]), to_command).await;
    };
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let result = client.send_command(run, RunCommand::Cancel { by: None }).await?;
    continue_run(cx, &*client, result, 0, &[], true, &mut reporter).await?;
    Ok(Exit::Success)
}

/// Runs `skills runs assign`.
pub async fn assign(cx: &mut Context, args: &RunsAssignArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let command =
        RunCommand::Assign { to: args.to.clone(), note: args.note.clone(), assignee: None, by: None };
    let result = client.send_command(&args.run, command).await?;
    if cx.out.json {
        cx.out.value(&result)?;
    } else {
        cx.out.line(format!("run {}: {}", result.run.id, safe_text::line(&result.note)))?;
    }
    Ok(Exit::Success)
}

/// Runs `skills runs replay`.
pub async fn replay(cx: &mut Context, args: &BranchArgs) -> Result<Exit, Failure> {
    let command = RunCommand::Replay { checkpoint: args.checkpoint, by: None, since_ms: None };
    branch(cx, args, command).await
}

/// Runs `skills runs fork`.
pub async fn fork(cx: &mut Context, args: &BranchArgs) -> Result<Exit, Failure> {
    let command = RunCommand::Fork { checkpoint: args.checkpoint, by: None, since_ms: None };
    branch(cx, args, command).await
}

async fn branch(cx: &mut Context, args: &BranchArgs, command: RunCommand) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let detail = client.run(&args.run).await?;
    let result = client.send_command(&detail.run.id.0, command).await.map_err(with_option)?;
    continue_run(cx, &*client, result, 0, &step_names(&detail), args.onward.detach, &mut reporter).await
}

async fn send_command(
    cx: &mut Context,
    client: &dyn RunClient,
    detail: &RunDetail,
    command: RunCommand,
    detach: bool,
    reporter: &mut Reporter,
) -> Result<Exit, Failure> {
    let result = client.send_command(&detail.run.id.0, command).await?;
    continue_run(cx, client, result, last_event(detail), &step_names(detail), detach, reporter).await
}

/// Adds the option that resumes a run although its skill changed.
pub fn with_option(mut error: Error) -> Error {
    if error.code == Code::SkillChanged {
        error.message += "; --allow-changed-skill resumes with the contract of the launch";
    }
    error
}

/// Returns the number of the newest event that the user has seen.
pub fn last_event(detail: &RunDetail) -> u64 {
    detail.events.last().map_or(0, |event| event.number)
}

pub fn step_names(detail: &RunDetail) -> Vec<String> {
    detail.steps.iter().map(|step| step.step.clone()).collect()
}

/// Reports the result of a command, and continues executing the run here if needed.
pub async fn continue_run(
    cx: &mut Context,
    client: &dyn RunClient,
    mut result: CommandResult,
    seen: u64,
    steps: &[String],
    detach: bool,
    reporter: &mut Reporter,
) -> Result<Exit, Failure> {
    let is_active_run = result.run.is_executable();
    let note = format!("run {}: {}", result.run.id, safe_text::line(&result.note));
    let mut obstacle: Option<String> = None;
    let done = if is_active_run && !detach {
        reporter.print_message("", &note);
        match completion::work(client, &result.run, seen, steps, reporter).await {
            Ok(completion) => {
                result.run = completion.run.clone();
                obstacle.clone_from(&completion.obstacle);
                completion::conclude(cx, &completion, reporter)?
            }
            // The command was accepted; who continues the run is reported, and is not an error of the command.
            Err(Failure::Core(error)) if error.code == Code::InvalidConfiguration => {
                reporter.print_message("", &safe_text::line(&cx.completed_in(&error.message)));
                Exit::Waiting
            }
            Err(failure) => return Err(failure),
        }
    } else {
        if is_active_run && let Some(warning) = launch::unattended(result.worker_alive) {
            reporter
                .print_line(&format!("{} {warning}", TextStyle::Warn.paint("warning:", reporter.look.color)));
        }
        if !cx.out.json {
            cx.out.line(cx.out.look.message_rows("", HANGING, &note).join("\n"))?;
        }
        obstacle = follow::approval_obstacle(client, &result.run).await;
        let caller = Caller::of(&cx.global);
        for row in
            completion::next_rows(&result.run, obstacle.as_deref(), &caller, cx.in_memory(), reporter.look)
        {
            reporter.print_line(&row);
        }
        Exit::Success
    };
    if cx.out.json {
        let next = completion::next(cx, &result.run, obstacle.as_deref());
        cx.out.value(&Outcome { result: &result, next })?;
    } else if is_active_run && !detach && result.run.outputs.is_none() {
        cx.out.line(&result.run.id.0)?;
    }
    Ok(done)
}

/// Parses the value of an option: JSON, or a file with it.
pub fn json(option: &str, text: &str, cx: &Context) -> Result<Value, Failure> {
    let text = match text.strip_prefix('@') {
        Some(file) => inputs::read(file, &cx.cwd)?,
        None => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!(
            "invalid value for {option}: not valid JSON: {error} (strings need quotes: '\"text\"')"
        ))
    })
}
