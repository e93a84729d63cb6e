//! Commands that execute skills and control runs: they translate the command line to operations of the core, and report
//! the results.

mod attach;
mod board;
mod bulk;
mod capability;
pub mod clock;
mod commands;
mod compare;
mod completion;
mod decide;
mod decision_preview;
mod event_line;
mod follow;
mod inputs;
mod launch;
mod list;
mod next_steps;
mod plain;
mod progress;
mod reporter;
#[cfg(test)]
mod samples;
mod show;
mod status;
mod values;
mod watch;
mod work;
mod workers;

pub use self::attach::run as attach;
pub use self::capability::{activate, explain};
pub use self::launch::{run, trace};
pub use self::next_steps::{Caller, invocation};
pub use self::reporter::{Reporter, ask};

use super::Context;
use super::args::RunsAction;
use super::failure::{Exit, Failure};
use skills_model::Verdict;

/// Runs `skills runs …`.
pub async fn act(cx: &mut Context, action: Option<&RunsAction>) -> Result<Exit, Failure> {
    let Some(action) = action else {
        if cx.global.plain || cx.config()?.plain {
            return plain::run(cx).await;
        }
        let message = "name a command of `skills runs`, for example `skills runs list` (see `skills runs --help`); \
            `skills --plain runs` opens a dialog";
        return Err(Failure::usage(message));
    };
    match action {
        RunsAction::List(args) => list::run(cx, args).await,
        RunsAction::Board(args) => board::run(cx, args).await,
        RunsAction::Workers(args) => workers::workers(cx, args).await,
        RunsAction::Views(args) => workers::views(cx, args).await,
        RunsAction::Logs(args) => workers::logs(cx, args).await,
        RunsAction::Assign(args) => commands::assign(cx, args).await,
        RunsAction::Show(args) => show::run(cx, args).await,
        RunsAction::Watch(args) => watch::run(cx, args).await,
        RunsAction::Approve(args) => decide::run(cx, args, Verdict::Approve).await,
        RunsAction::Deny(args) => decide::run(cx, args, Verdict::Deny).await,
        RunsAction::Resume(args) => commands::resume(cx, args).await,
        RunsAction::Signal(args) => commands::signal(cx, args).await,
        RunsAction::Cancel(args) => commands::cancel(cx, args).await,
        RunsAction::Replay(args) => commands::replay(cx, args).await,
        RunsAction::Fork(args) => commands::fork(cx, args).await,
        RunsAction::Compare(args) => compare::run(cx, args).await,
        RunsAction::Work(args) => work::run(cx, args).await,
    }
}
