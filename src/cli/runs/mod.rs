//! Commands that execute skills and act on runs: what is read from the command line goes through the
//! gateway's door, what comes back is reported.

mod attach;
mod capability;
pub mod clock;
mod compare;
mod decide;
mod event_line;
mod follow;
mod inputs;
mod launch;
mod list;
mod onward;
mod orders;
mod progress;
#[cfg(test)]
mod samples;
mod settle;
mod sheet;
mod show;
mod standing;
mod values;
mod voice;
mod watch;
mod work;

pub use self::attach::run as attach;
pub use self::capability::{activate, explain};
pub use self::launch::{run, trace};
pub use self::onward::{Caller, invocation};
pub use self::voice::{Voice, ask};

use super::Context;
use super::args::RunsAction;
use super::failure::{Done, Failure};
use skills_model::Verdict;

/// Runs `skills runs …`.
pub async fn act(cx: &mut Context, action: &RunsAction) -> Result<Done, Failure> {
    match action {
        RunsAction::List(args) => list::run(cx, args).await,
        RunsAction::Show(args) => show::run(cx, args).await,
        RunsAction::Watch(args) => watch::run(cx, args).await,
        RunsAction::Approve(args) => decide::run(cx, args, Verdict::Approve).await,
        RunsAction::Deny(args) => decide::run(cx, args, Verdict::Deny).await,
        RunsAction::Resume(args) => orders::resume(cx, args).await,
        RunsAction::Signal(args) => orders::signal(cx, args).await,
        RunsAction::Cancel(args) => orders::cancel(cx, args).await,
        RunsAction::Replay(args) => orders::replay(cx, args).await,
        RunsAction::Fork(args) => orders::fork(cx, args).await,
        RunsAction::Compare(args) => compare::run(cx, args).await,
        RunsAction::Work(args) => work::run(cx, args).await,
    }
}
