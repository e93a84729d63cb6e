//! `skills runs watch`: events as they happen, of one run until it ends or waits, or of all.

use jiff::tz::TimeZone;

use super::follow::{self, News};
use super::onward::Caller;
use super::voice::Voice;
use super::{clock, event_line, standing};
use crate::cli::Context;
use crate::cli::args::RunsWatchArgs;
use crate::cli::failure::{Done, Failure};
use crate::cli::output::Ink;
use crate::gateway::Needs;
use crate::runs::RunState;
use crate::store::RunRecord;

/// Runs the command.
pub async fn run(cx: &mut Context, args: &RunsWatchArgs) -> Result<Done, Failure> {
    let client = cx.reach(Needs::Catalogue).await?;
    let mut voice = cx.voice();
    let zone = TimeZone::system();
    let with_run = args.run.is_none();
    let caller = Caller::of(&cx.global);
    let mut warned: Option<String> = None;
    if let Some(run) = &args.run {
        let run = client.run(run).await?.run;
        if run.state == RunState::Pending && !run.held {
            voice.say(&format!(
                "pending: a worker takes it, or {}",
                caller.line(&["runs", "work", &run.id.0])
            ));
            warned = Some(caller.line(&["runs", "work", &run.id.0]));
        } else {
            unworked(&run, &caller, &mut warned, &mut voice);
        }
    }
    if args.run.is_none() {
        voice.say("all runs, from now on; Ctrl-C leaves");
    }
    let out = &mut cx.out;
    let mut tell = |news: News<'_>| {
        match news {
            News::Event(event, _) => {
                if out.json {
                    out.json_line(event)?;
                } else {
                    out.line(event_line::render(event, with_run, &zone, out.look))?;
                }
                out.flush()?;
            }
            News::Silence(run) => unworked(run, &caller, &mut warned, &mut voice),
            News::Tick => {}
        }
        Ok(())
    };
    let Some(run) = &args.run else {
        follow::watch_all(&*client, &mut tell).await?;
        return Ok(Done::Fine);
    };
    let settled = follow::watch(&*client, run, &mut tell).await?;
    if settled.left {
        return Ok(Done::Left);
    }
    let look = voice.look;
    voice.say(&format!("{} {}", standing::sign(&settled.run, look), standing::words(&settled.run)));
    for (verb, line) in Caller::of(&cx.global).next(&settled.run) {
        voice.say(&format!(
            "  {} {line}",
            Ink::Muted.paint(&format!("{:<8}", format!("{verb}:")), look.colour)
        ));
    }
    Ok(standing::done(&settled.run))
}

/// Says that nobody works a run, and the command that does; once for each reason.
fn unworked(run: &RunRecord, caller: &Caller, warned: &mut Option<String>, voice: &mut Voice) {
    let why = run.hold.as_ref().map(|hold| format!("{} {:?}", hold.holder, hold.worker));
    let Some(told) = standing::unworked(run, clock::now_ms()) else {
        *warned = None;
        return;
    };
    let why = why.unwrap_or_else(|| caller.line(&["runs", "work", &run.id.0]));
    if warned.as_ref() != Some(&why) {
        voice.warn(&format!("{told}; to go on with it: {}", caller.line(&["runs", "work", &run.id.0])));
        *warned = Some(why);
    }
}
