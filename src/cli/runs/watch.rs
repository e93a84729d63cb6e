//! `skills runs watch`: events as they happen, of one run until it ends or waits, or of all.

use std::collections::HashMap;

use jiff::tz::TimeZone;

use super::follow::{self, RunUpdate};
use super::next_steps::Caller;
use super::reporter::Reporter;
use super::{clock, completion, event_line, status};
use crate::Context;
use crate::args::RunsWatchArgs;
use crate::failure::{Exit, Failure};
use skills_api::CoreParts;
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunId, RunRecord};

pub async fn run(cx: &mut Context, args: &RunsWatchArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let zone = TimeZone::system();
    let with_run = args.run.is_none();
    let caller = Caller::of(&cx.global);
    let mut warned = ReportedWarnings::new();
    let mut elsewhere = None;
    if let Some(run) = &args.run {
        let detail = client.run(run).await?;
        let run = detail.run;
        elsewhere = detail.elsewhere;
        if run.state == RunState::Pending && !run.paused {
            let work = caller.line(&["runs", "work", &run.id.0]);
            let next_step = elsewhere.as_deref().map_or(work, |why| safe_text::line(why).into_owned());
            reporter.print_line(&format!("pending: a worker will claim it, or {next_step}"));
            warned.insert(run.id.clone(), caller.line(&["runs", "work", &run.id.0]));
        } else {
            orphaned_run_reason(&run, elsewhere.as_deref(), &caller, &mut warned, &mut reporter);
        }
    }
    if args.run.is_none() {
        reporter.print_line("watching all runs; press Ctrl-C to stop");
    }
    let out = &mut cx.out;
    let mut tell = |update: RunUpdate<'_>| {
        match update {
            RunUpdate::Event(event, _) => {
                if out.json {
                    out.json_line(event)?;
                } else {
                    out.line(event_line::render(event, with_run, &zone, out.look))?;
                }
                out.flush()?;
            }
            RunUpdate::Silence(run) => {
                orphaned_run_reason(run, elsewhere.as_deref(), &caller, &mut warned, &mut reporter);
            }
            RunUpdate::Tick => {}
        }
        Ok(())
    };
    let Some(run) = &args.run else {
        follow::watch_all(&*client, &mut tell).await?;
        return Ok(Exit::Success);
    };
    let completion = follow::watch(&*client, run, &mut tell).await?;
    if completion.left {
        return Ok(Exit::Left);
    }
    let look = reporter.look;
    let text = completion::ending(&completion, &caller, cx.in_memory(), reporter.labeled, look);
    reporter.print_line(&text);
    Ok(status::done(&completion.run))
}

/// Runs already reported as having no worker, with the reason.
type ReportedWarnings = HashMap<RunId, String>;

/// Reports that no worker executes a run, and the command that does; once for each reason.
fn orphaned_run_reason(
    run: &RunRecord,
    elsewhere: Option<&str>,
    caller: &Caller,
    warned: &mut ReportedWarnings,
    reporter: &mut Reporter,
) {
    let work = caller.line(&["runs", "work", &run.id.0]);
    let Some(text) = skills_api::orphaned_run_reason(run, clock::now_ms(), clock::age) else {
        warned.remove(&run.id);
        return;
    };
    let why = run
        .lease
        .as_ref()
        .map_or_else(|| work.clone(), |lease| format!("{} {:?}", lease.holder, lease.worker));
    if warned.get(&run.id) != Some(&why) {
        let name = safe_text::name(&run.skill_id);
        let next_step = match elsewhere {
            // This process would be rejected.
            Some(why) => safe_text::line(why).into_owned(),
            None => format!("to execute it: `{work}`"),
        };
        reporter.warn(&format!("{name} {}: {text}; {next_step}", status::short(&run.id.0)));
        warned.insert(run.id.clone(), why);
    }
}
