//! `skills runs watch`: events as they happen, of one run until it ends or waits, or of all.

use jiff::tz::TimeZone;

use super::follow::{self, News};
use super::onward::Caller;
use super::{event_line, standing};
use crate::cli::Context;
use crate::cli::args::RunsWatchArgs;
use crate::cli::failure::{Done, Failure};
use crate::cli::output::Ink;
use crate::gateway::{Needs, RunClient as _};
use crate::runs::RunState;

/// Runs the command.
pub async fn run(cx: &mut Context, args: &RunsWatchArgs) -> Result<Done, Failure> {
    let client = cx.open(Needs::Catalogue).await?;
    let mut voice = cx.voice();
    let zone = TimeZone::system();
    let with_run = args.run.is_none();
    if let Some(run) = &args.run {
        let run = client.run(run).await?.run;
        if run.state == RunState::Pending && !run.held {
            let line = Caller::of(&cx.global).line(&["runs", "work", &run.id.0]);
            voice.say(&format!("pending: a worker takes it, or {line}"));
        }
    }
    let out = &mut cx.out;
    let mut tell = |news: News<'_>| {
        if let News::Event(event, _) = news {
            if out.json {
                out.json_line(event)?;
            } else {
                out.line(event_line::render(event, with_run, &zone, out.look))?;
            }
            out.flush()?;
        }
        Ok(())
    };
    let Some(run) = &args.run else {
        voice.say("all runs, from now on; Ctrl-C leaves");
        follow::watch_all(&client, &mut tell).await?;
        return Ok(Done::Fine);
    };
    let settled = follow::watch(&client, run, &mut tell).await?;
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
