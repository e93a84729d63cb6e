//! `skills run` and `skills trace`: launches a skill and executes the run in this process until it ends or waits.

use std::path::Path;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::completion::{self, NextCommand};
use super::follow::{self, Completion, RunUpdate};
use super::inputs::InputTypes;
use super::reporter::Reporter;
use super::{event_line, inputs};
use crate::Context;
use crate::args::{ExecArgs, InputArgs, RunArgs, TraceArgs};
use crate::dialog::clean;
use crate::failure::{Exit, Failure};
use crate::output::{TextStyle, counted};
use skills_api::{Code, ContractView, CoreParts, Error, ExecutionOptions, LaunchRequest, Launched};
use skills_skill::safe_text;
use skills_store::IdempotencyOutcome;

/// `skills run --json`.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    launched: &'a Launched,
    isolation: &'a str,
    next: Vec<NextCommand>,
}

/// Runs `skills run`.
pub async fn run(cx: &mut Context, args: &RunArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let contract = client.contract(&args.skill).await?;
    let request = request(cx, &args.skill, &args.inputs, &args.exec, &contract)?;
    let mut launched = client.launch(request).await?;
    reporter.print_line(&opening(&contract, &launched, &reporter));
    let detached = args.exec.detach;
    if detached {
        if let Some(warning) = unattended(launched.worker_alive) {
            reporter
                .print_line(&format!("{} {warning}", TextStyle::Warn.paint("warning:", reporter.look.color)));
        }
        // An idempotency key returns an existing run, which may be waiting.
        let obstacle = follow::approval_obstacle(&*client, &launched.run).await;
        let completion = Completion { run: launched.run.clone(), left: false, obstacle };
        let done =
            if cx.out.json { Exit::Success } else { completion::conclude(cx, &completion, &mut reporter)? };
        answer(cx, &launched, &contract, completion.obstacle.as_deref())?;
        return Ok(done);
    }
    let steps: Vec<String> = contract.steps.iter().map(|step| step.id.clone()).collect();
    let completion = completion::work(&*client, &launched.run, 0, &steps, &mut reporter).await?;
    launched.run = completion.run.clone();
    let done = completion::conclude(cx, &completion, &mut reporter)?;
    answer(cx, &launched, &contract, completion.obstacle.as_deref())?;
    Ok(done)
}

/// Runs `skills trace`.
pub async fn trace(cx: &mut Context, args: &TraceArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    if args.exec.detach {
        return Err(Failure::usage(
            "`skills trace` executes the run in this process; use `skills run \
            --detach` to leave it to a worker",
        ));
    }
    let contract = client.contract(&args.skill).await?;
    let request = request(cx, &args.skill, &args.inputs, &args.exec, &contract)?;
    let launched = client.launch(request).await?;
    reporter.print_line(&opening(&contract, &launched, &reporter));
    let zone = TimeZone::system();
    let out = &mut cx.out;
    let completion = follow::wait_for_completion(&*client, &launched.run, 0, false, &mut |news| {
        if let RunUpdate::Event(event, _) = news {
            if out.json {
                out.json_line(event)?;
            } else {
                out.line(event_line::render(event, false, &zone, out.look))?;
            }
            out.flush()?;
        }
        Ok(())
    })
    .await?;
    completion::conclude(cx, &completion, &mut reporter)
}

fn answer(
    cx: &mut Context,
    launched: &Launched,
    contract: &ContractView,
    obstacle: Option<&str>,
) -> Result<(), Failure> {
    if cx.out.json {
        let next = completion::next(cx, &launched.run, obstacle);
        cx.out.value(&Outcome { launched, isolation: &contract.isolation, next })?;
    } else if launched.run.outputs.is_none() {
        // Without outputs the id of the run is printed, for scripts.
        cx.out.line(&launched.run.id.0)?;
    }
    Ok(())
}

/// Describes what is launched and its isolation, before the first step.
fn opening(contract: &ContractView, launched: &Launched, reporter: &Reporter) -> String {
    if reporter.labeled {
        let (id, version) = (clean(contract.skill_id.as_str()), clean(&contract.contract.version));
        let steps = counted(contract.steps.len(), "step");
        let (run, isolation) = (&launched.run.id, clean(&contract.isolation));
        return format!("Skill: {id}, version {version}, {steps}.\nRun: {run}\nIsolation: {isolation}.");
    }
    let color = reporter.look.color;
    let id = safe_text::name(contract.skill_id.as_str()).into_owned();
    let key = match launched.idempotency {
        IdempotencyOutcome::Reused => " (existing run with this idempotency key)",
        IdempotencyOutcome::Expired => " (the idempotency key had expired and was reused)",
        IdempotencyOutcome::None | IdempotencyOutcome::Created => "",
    };
    format!(
        "{} {}, {}\n{} {}{key}\n{} {}",
        TextStyle::Strong.paint(&id, color),
        safe_text::line(&contract.contract.version),
        counted(contract.steps.len(), "step"),
        TextStyle::Muted.paint("run       ", color),
        launched.run.id,
        TextStyle::Muted.paint("isolation ", color),
        safe_text::line(&contract.isolation),
    )
}

/// Returns a warning for a run that is left to a worker, if there is none.
pub fn unattended(worker_alive: bool) -> Option<&'static str> {
    (!worker_alive).then_some(
        "no worker is connected to this store: open the workbench, or execute the run with \
            the command below",
    )
}

/// Builds the request of a launch: inputs typed by the contract, options as given.
fn request(
    cx: &Context,
    skill: &str,
    args: &InputArgs,
    exec: &ExecArgs,
    contract: &ContractView,
) -> Result<LaunchRequest, Failure> {
    if exec.detach && cx.in_memory() {
        return Err(Failure::usage(
            "--detach needs a store that other processes can open; use --store sqlite:FILE",
        ));
    }
    Ok(LaunchRequest {
        skill: skill.to_owned(),
        inputs: inputs::gather(args, InputTypes::Declared(&contract.contract.inputs), &cx.cwd)?,
        options: options(exec, &cx.cwd)?,
        started_by: None,
    })
}

/// Returns the options of an execution, with existing files.
///
/// # Errors
/// Returns `not_found` for a file that does not exist.
pub fn options(exec: &ExecArgs, cwd: &Path) -> Result<ExecutionOptions, Failure> {
    let mut files = std::collections::BTreeMap::new();
    for file in &exec.files {
        let path = cwd.join(&file.path);
        let absolute =
            skills_base::files::canonicalize(&path).map_err(|error| Failure::file(&path, &error))?;
        if !absolute.is_file() {
            return Err(Failure::usage(format!("{} is not a file", path.display())));
        }
        if files.insert(file.name.clone(), absolute.display().to_string()).is_some() {
            let message =
                format!("two files have the name {} in the work directory", safe_text::line(&file.name));
            return Err(Error::new(Code::InvalidRequest, message).into());
        }
    }
    Ok(ExecutionOptions {
        wait: false,
        trace_id: exec.trace_id.clone(),
        idempotency_key: exec.idempotency_key.clone(),
        conformance: exec.conformance,
        audit_mode: exec.audit_mode,
        labels: exec.labels.iter().map(|label| (label.name.clone(), label.value.clone())).collect(),
        expires_in: exec.expires_in,
        on_expiry: exec.on_expiry,
        unsandboxed: exec.unsandboxed,
        files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::InputFileArg;

    #[test]
    fn files_are_passed_by_absolute_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.pdf"), "x").unwrap();
        let file = |name: &str, path: &str| InputFileArg { name: name.into(), path: path.into() };
        let exec = |files| ExecArgs { files, expires_in: Some(7_200), ..ExecArgs::default() };
        let read = options(&exec(vec![file("in.pdf", "a.pdf")]), dir.path()).unwrap();
        let absolute = dir.path().canonicalize().unwrap().join("a.pdf");
        assert_eq!(read.files["in.pdf"], absolute.display().to_string());
        assert_eq!((read.expires_in, read.wait), (Some(7_200), false));
        let code = |files| match options(&exec(files), dir.path()) {
            Err(Failure::Core(error)) => error.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(vec![file("in.pdf", "gone.pdf")]), Code::NotFound);
        assert_eq!(code(vec![file("in", "a.pdf"), file("in", "a.pdf")]), Code::InvalidRequest);
        assert_eq!(code(vec![file("in", ".")]), Code::InvalidRequest);
    }
}
