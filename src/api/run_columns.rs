//! Cells and order of the run list, the same in every adapter.

use std::borrow::Borrow;

use crate::Deadline;
use skills_base::duration::age;
use skills_config::{RunColumn, RunSort};
use skills_model::{RunState, step_label};
use skills_store::{RunRecord, WorkerId};

/// A value by which a column is sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Number(i64),
    Steps((u32, u32)),
    Text(String),
}

/// Returns the text of a cell. It can contain text of skills, callers and services: display it through `safe_text`.
pub fn run_cell(column: RunColumn, run: &RunRecord, now_ms: i64) -> String {
    match column {
        RunColumn::State => run.state.to_string(),
        RunColumn::Title => run.title_or_skill().to_owned(),
        RunColumn::Skill => run.skill_id.clone(),
        RunColumn::Id => run.id.0.clone(),
        RunColumn::Progress => format!("{}/{}", run.progress.0, run.progress.1),
        RunColumn::Step => run.step.as_deref().map(step_label).unwrap_or_default().to_owned(),
        RunColumn::Error => {
            let notes: Vec<String> = run.wait_notes().collect();
            if notes.is_empty() { run.failure().unwrap_or_default() } else { notes.join(", ") }
        }
        RunColumn::By => run.started_by.clone(),
        RunColumn::Assigned => {
            run.options.assigned.as_ref().map(|assigned| assigned.to.clone()).unwrap_or_default()
        }
        RunColumn::Worker => {
            let worker = run.lease.as_ref().and_then(|lease| lease.worker.as_ref());
            worker.map(WorkerId::describe).unwrap_or_default()
        }
        // Only a wait has a deadline.
        RunColumn::Deadline if run.state.is_waiting() => Deadline::of(run.expires_ms, now_ms).text(age),
        RunColumn::Deadline => String::new(),
        RunColumn::Since => age(now_ms.saturating_sub(run.since_ms)),
        RunColumn::Age => age(now_ms.saturating_sub(run.created_ms)),
    }
}

/// Sorts runs by a column.
pub fn sort_runs<R: Borrow<RunRecord>>(runs: &mut [R], sort: RunSort) {
    runs.sort_by_cached_key(|run| sort_key(sort.column, run.borrow()));
    if sort.descending {
        runs.reverse();
    }
}

fn sort_key(column: RunColumn, run: &RunRecord) -> SortKey {
    match column {
        RunColumn::State => SortKey::Number(state_rank(run.state)),
        RunColumn::Progress => SortKey::Steps(run.progress),
        RunColumn::Deadline => {
            let expires_ms = run.expires_ms.filter(|_| run.state.is_waiting());
            SortKey::Number(expires_ms.unwrap_or(i64::MAX))
        }
        RunColumn::Since => SortKey::Number(-run.since_ms),
        RunColumn::Age => SortKey::Number(-run.created_ms),
        RunColumn::Title
        | RunColumn::Skill
        | RunColumn::Id
        | RunColumn::Step
        | RunColumn::Error
        | RunColumn::By
        | RunColumn::Assigned
        | RunColumn::Worker => SortKey::Text(run_cell(column, run, 0)),
    }
}

/// Returns the sort rank of a state: states that require a person come first.
fn state_rank(state: RunState) -> i64 {
    match state {
        RunState::WaitingForHuman => 0,
        RunState::Failed => 1,
        RunState::WaitingForSignal => 2,
        RunState::Running | RunState::Replaying => 3,
        RunState::Pending => 4,
        RunState::Completed => 5,
        RunState::Canceled => 6,
    }
}
