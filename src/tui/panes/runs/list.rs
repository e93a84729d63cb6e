//! The rows of the list: waiting for approval, in progress, waiting for a signal or paused, ended. Rebuilt when a run
//! changes.

use super::feed::KnownRuns;
use crate::widgets::relative_time::age;
use crate::widgets::text_width::shown;
use skills_model::{Gate, RunState};
use skills_store::{RunId, RunRecord};

/// The group of a run in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Waiting for a person's decision.
    WaitingForApproval,
    /// Executing, or about to.
    Running,
    /// Waiting for a signal, or paused.
    WaitingOrPaused,
    /// Ended.
    Ended,
}

impl Group {
    /// Returns the heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::WaitingForApproval => "waiting for approval",
            Self::Running => "in progress",
            Self::WaitingOrPaused => "waiting for a signal, paused",
            Self::Ended => "ended",
        }
    }

    /// Returns the group of a run.
    pub fn of(run: &RunRecord) -> Self {
        match run.state {
            RunState::WaitingForHuman => Self::WaitingForApproval,
            RunState::Running | RunState::Replaying => Self::Running,
            RunState::Pending if run.paused => Self::WaitingOrPaused,
            RunState::Pending => Self::Running,
            RunState::WaitingForSignal => Self::WaitingOrPaused,
            RunState::Completed | RunState::Failed | RunState::Canceled => Self::Ended,
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Heading(Group),
    /// A blank row between groups.
    Blank,
    Run(RunId),
    /// The number of runs that are not loaded yet.
    Older(u64),
}

/// Returns the rows of the runs that are shown, of which it is known whether they belong to the loaded pages: groups in
/// order, waiting runs by deadline and then oldest first, others newest first; last, the number of older ones.
pub fn rows(runs: &KnownRuns, mut is_shown: impl FnMut(&RunRecord, bool) -> bool, older: u64) -> Vec<Row> {
    let mut found: Vec<(Group, (i64, i64), &RunRecord)> = Vec::new();
    for (run, listed) in runs.iter() {
        if is_shown(run, listed) {
            let group = Group::of(run);
            let order = match group {
                Group::WaitingForApproval | Group::WaitingOrPaused => {
                    (run.expires_ms.unwrap_or(i64::MAX), run.since_ms)
                }
                Group::Running => (-run.created_ms, 0),
                Group::Ended => (-run.since_ms, 0),
            };
            found.push((group, order, run));
        }
    }
    found.sort_by(|a, b| (a.0, a.1, &a.2.id).cmp(&(b.0, b.1, &b.2.id)));
    let mut out = Vec::with_capacity(found.len() + 8);
    let mut group = None;
    for (of, _, run) in found {
        if group != Some(of) {
            if group.is_some() {
                out.push(Row::Blank);
            }
            out.push(Row::Heading(of));
            group = Some(of);
        }
        out.push(Row::Run(run.id.clone()));
    }
    if older > 0 {
        out.extend([Row::Blank, Row::Older(older)]);
    }
    out
}

impl Row {
    /// Returns the run of the row.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Run(id) => Some(id),
            _ => None,
        }
    }
}

/// Returns the row of a run at an index or nearest to it.
pub fn nearest_run(rows: &[Row], at: usize) -> Option<usize> {
    let is_run = |row: &usize| matches!(rows.get(*row), Some(Row::Run(_)));
    let below = (at..rows.len()).find(is_run);
    below.or_else(|| (0..at.min(rows.len())).rev().find(is_run))
}

/// Returns the row of the run that is `by` runs further; stops at the ends.
pub fn moved(rows: &[Row], at: usize, by: isize) -> usize {
    let runs: Vec<usize> = (0..rows.len()).filter(|row| matches!(rows[*row], Row::Run(_))).collect();
    let here = runs.partition_point(|row| *row < at);
    let next = here.saturating_add_signed(by).min(runs.len().saturating_sub(1));
    runs.get(next).copied().unwrap_or(0)
}

/// Returns the last three characters of an id.
pub fn tail(id: &RunId) -> String {
    let all: Vec<char> = shown(&id.0).chars().collect();
    all[all.len().saturating_sub(3)..].iter().collect::<String>().to_uppercase()
}

/// Returns whether the wait of a run has expired, although the engine has not ended it yet.
pub fn has_expired(run: &RunRecord, now_ms: i64) -> bool {
    run.state.is_waiting() && run.expires_ms.is_some_and(|at| at <= now_ms)
}

/// Returns the state in two or three words, and whether it requires a person.
pub fn state_label(run: &RunRecord, now_ms: i64) -> (String, bool) {
    match (run.state, &run.gate) {
        _ if has_expired(run, now_ms) => ("expired".to_owned(), false),
        (RunState::WaitingForHuman, _) => approval_label(run, now_ms),
        (RunState::WaitingForSignal, _) if run.expires_ms.is_some() => {
            let left = run.expires_ms.unwrap_or(now_ms) - now_ms;
            (format!("{} left", age(left)), true)
        }
        (RunState::WaitingForSignal, Some(Gate::Signal { name, .. })) => {
            (format!("signal {}", shown(name)), false)
        }
        (RunState::WaitingForSignal, _) => ("signal".to_owned(), false),
        (RunState::Pending, _) if run.paused && run.source.is_some() => ("paused fork".to_owned(), false),
        (RunState::Pending, _) if run.paused => ("paused".to_owned(), false),
        (RunState::Pending, _) => ("pending".to_owned(), false),
        (RunState::Replaying, _) => ("replaying".to_owned(), false),
        (RunState::Failed, _) => (failure(run), false),
        (RunState::Canceled, _) if run.expired_ms().is_some() => ("expired".to_owned(), false),
        (RunState::Canceled, _) if run.denied_at().is_some() => ("denied".to_owned(), false),
        (RunState::Canceled, _) => ("canceled".to_owned(), false),
        (RunState::Running, _) if run.paused => ("pausing".to_owned(), false),
        (RunState::Running | RunState::Completed, _) => (String::new(), false),
    }
}

/// Returns what distinguishes a wait for approval, which the heading of its group states.
fn approval_label(run: &RunRecord, now_ms: i64) -> (String, bool) {
    let mut parts = Vec::new();
    parts.extend(run.is_outcome_unknown().then(|| "unknown".to_owned()));
    parts.extend(run.expires_ms.map(|at| format!("{} left", age(at - now_ms))));
    if let Some(Gate::Human { approvals, .. }) = &run.gate
        && !approvals.is_empty()
    {
        let between = if parts.is_empty() { " of " } else { "/" };
        parts.push(format!("{}{between}{}", approvals.by.len(), approvals.need));
    }
    parts.extend(run.escalation().map(|_| "escalated".to_owned()));
    let asks = !parts.is_empty();
    parts.extend(run.options.assigned.as_ref().map(|assigned| format!("for {}", shown(&assigned.to))));
    (parts.join(" "), asks)
}

/// Returns shorter texts for a wait, longest first; none for states whose text can be cut.
pub fn short_labels(run: &RunRecord, now_ms: i64) -> Vec<String> {
    if !run.state.is_waiting() || has_expired(run, now_ms) {
        return Vec::new();
    }
    let unknown = run.is_outcome_unknown().then(|| "?".to_owned());
    let left = run.expires_ms.map(|at| age(at - now_ms));
    let approvals = match &run.gate {
        Some(Gate::Human { approvals, .. }) if !approvals.is_empty() => {
            Some(format!("{}/{}", approvals.by.len(), approvals.need))
        }
        _ => None,
    };
    let escalated = run.escalation().map(|_| "!".to_owned());
    let mut parts: Vec<String> = [unknown, left, approvals, escalated].into_iter().flatten().collect();
    let short = parts.join(" ");
    parts.extend(run.options.assigned.as_ref().map(|assigned| shown(&assigned.to)));
    let mut labels = vec![parts.join(" "), short];
    labels.retain(|text| !text.is_empty());
    labels.dedup();
    labels
}

/// Returns briefly why a run failed.
fn failure(run: &RunRecord) -> String {
    let why = run.failure().filter(|why| !why.is_empty());
    why.map_or_else(|| "failed".to_owned(), |why| shown(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: usize) -> Row {
        Row::Run(RunId(at.to_string()))
    }

    #[test]
    fn cursor_moves_between_runs_and_skips_headings() {
        let rows = [
            Row::Heading(Group::WaitingForApproval),
            run(1),
            Row::Blank,
            Row::Heading(Group::Ended),
            run(2),
            run(3),
        ];
        assert_eq!(moved(&rows, 1, 1), 4);
        assert_eq!(moved(&rows, 4, -1), 1);
        assert_eq!(moved(&rows, 1, -5), 1);
        assert_eq!(moved(&rows, 4, 100), 5);
        assert_eq!(nearest_run(&rows, 2), Some(4));
        assert_eq!(nearest_run(&rows, 9), Some(5));
    }
}
