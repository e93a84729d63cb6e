//! `skills runs work`: executes unclaimed runs, sequentially.

use super::completion;
use crate::Context;
use crate::args::WorkArgs;
use crate::failure::{Exit, Failure};
use crate::output::TextStyle;
use skills_api::{Code, CoreParts};
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunFilter, RunPage, RunRecord};

use super::commands::{last_event, step_names};

pub async fn run(cx: &mut Context, args: &WorkArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    client.record_expired_waits().await?;
    let ids = if args.runs.is_empty() { open(&*client).await? } else { args.runs.clone() };
    let mut worked: Vec<RunRecord> = Vec::new();
    let mut worst = Exit::Success;
    for id in &ids {
        let detail = client.run(id).await?;
        let run = &detail.run;
        let skill = safe_text::name(&run.skill_id).into_owned();
        reporter.print_line(&format!("{} {}", TextStyle::Strong.paint(&skill, reporter.look.color), run.id));
        let steps = step_names(&detail);
        let completion = match completion::work(&*client, run, last_event(&detail), &steps, &mut reporter)
            .await
        {
            // No run was named: runs of another project are left to its workers.
            Err(Failure::Core(error)) if args.runs.is_empty() && error.code == Code::InvalidConfiguration => {
                reporter.print_message("  ", &safe_text::line(&cx.completed_in(&error.message)));
                continue;
            }
            completion => completion?,
        };
        let done = completion::conclude(cx, &completion, &mut reporter)?;
        worst = worse(worst, done);
        worked.push(completion.run);
        if done == Exit::Left {
            break;
        }
    }
    if ids.is_empty() {
        reporter.print_line("no unclaimed runs");
    }
    if cx.out.json {
        let counts = std::collections::BTreeMap::default();
        cx.out.value(&RunPage { runs: worked, next: None, counts })?;
    }
    Ok(worst)
}

/// Returns all runs that a worker could execute, the pending ones first.
async fn open(client: &dyn skills_api::RunClient) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for states in [vec![RunState::Pending], vec![RunState::Running, RunState::Replaying]] {
        let mut filter = RunFilter { states, limit: 500, ..RunFilter::default() };
        loop {
            let page = client.runs(filter.clone()).await?;
            ids.extend(page.runs.into_iter().filter(|run| !run.paused).map(|run| run.id.0));
            let Some(cursor) = page.next else { break };
            filter.cursor = Some(cursor);
        }
    }
    Ok(ids)
}

/// Returns the most severe end of two: left, failed, waiting, success.
fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |done| match done {
        Exit::Left => 3,
        Exit::ChecksFailed => 2,
        Exit::Waiting => 1,
        Exit::Success => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_result_is_reported() {
        assert_eq!(worse(Exit::Success, Exit::Waiting), Exit::Waiting);
        assert_eq!(worse(Exit::ChecksFailed, Exit::Waiting), Exit::ChecksFailed);
        assert_eq!(worse(Exit::ChecksFailed, Exit::Left), Exit::Left);
    }
}
