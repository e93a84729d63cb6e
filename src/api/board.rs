//! The board, and the facets of a filter, computed from runs.

use std::borrow::Borrow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::distinction::distinguishing_texts;
use super::operator_types::{Board, BoardFailures, BoardRun, Facet, FacetList, FacetValue, WorkerView};
use skills_model::{Gate, RunState};
use skills_store::{RunId, RunRecord, failure_kind};

/// Number of slices of the window in which runs are counted.
pub const SLICES: usize = 64;
/// Maximum number of ended runs listed individually.
const MAX_ENDED: usize = 50;
/// Maximum number of runs of a list that are distinguished from others with the same title.
const MAX_DISTINGUISHED: usize = 100;
/// Maximum number of values of a facet.
const MAX_VALUES: usize = 6;
/// Maximum number of facets of a filter.
const MAX_FACETS: usize = 8;
/// Maximum number of characters of a facet's value.
const MAX_VALUE: usize = 60;

impl BoardRun {
    /// Converts a run to its form on the board.
    pub fn of(run: &RunRecord) -> Self {
        Self {
            run: run.id.clone(),
            skill_id: run.skill_id.clone(),
            title: run.title_or_skill().to_owned(),
            distinction: String::new(),
            state: run.state,
            step: run.step.clone(),
            progress: run.progress,
            started_by: run.started_by.clone(),
            assigned: run.options.assigned.as_ref().map(|assigned| assigned.to.clone()),
            approvals: run.approval_progress(),
            signal: match &run.gate {
                Some(Gate::Signal { name, .. }) => Some(name.clone()),
                _ => None,
            },
            outcome_unknown: run.is_outcome_unknown(),
            escalation: run.escalation(),
            paused: run.paused && !run.state.is_terminal(),
            created_ms: run.created_ms,
            since_ms: run.since_ms,
            expires_ms: run.expires_ms,
        }
    }

    /// Returns what distinguishes its wait for approval: an unknown outcome, the approvals it has, the escalation.
    pub fn wait_notes(&self) -> impl Iterator<Item = &str> {
        let unknown = self.outcome_unknown.then_some("outcome unknown");
        [unknown, self.approvals.as_deref(), self.escalation.as_deref()].into_iter().flatten()
    }

    /// Returns whether nothing is executed until it is resumed.
    pub fn is_paused(&self) -> bool {
        self.paused && self.state == RunState::Pending
    }
}

impl Board {
    /// Builds the board from all open runs and those that ended in the window.
    pub fn of(
        runs: &[RunRecord],
        counts: BTreeMap<RunState, u64>,
        workers: Vec<WorkerView>,
        (from_ms, now_ms): (i64, i64),
    ) -> Self {
        let mut board = Self { from_ms, now_ms, counts, workers, ..Self::default() };
        let slice_of = |at_ms: i64| {
            let span = u64::try_from(now_ms - from_ms).unwrap_or(0).max(1);
            let at = u64::try_from(at_ms - from_ms).unwrap_or(0);
            usize::try_from(at.saturating_mul(SLICES as u64) / span).unwrap_or(0).min(SLICES - 1)
        };
        board.completed = vec![0; SLICES];
        let in_window = runs.iter().filter(|run| run.state == RunState::Failed && run.since_ms >= from_ms);
        let reasons = Reasons::of(in_window);
        let mut failures: BTreeMap<String, (BoardFailures, BTreeSet<&str>)> = BTreeMap::new();
        for run in runs {
            match run.state {
                RunState::WaitingForHuman => board.waiting.push(BoardRun::of(run)),
                RunState::Pending | RunState::Running | RunState::Replaying | RunState::WaitingForSignal => {
                    board.running.push(BoardRun::of(run));
                }
                _ if run.since_ms < from_ms => {}
                RunState::Completed => {
                    board.completed[slice_of(run.since_ms)] += 1;
                    board.ended.push(BoardRun::of(run));
                }
                RunState::Failed => {
                    let reason = reasons.reason(run).unwrap_or_else(|| "failed".to_owned());
                    let (of_reason, skills) = failures.entry(reason.clone()).or_insert_with(|| {
                        let slices = vec![0; SLICES];
                        (BoardFailures { reason, runs: 0, skills: 0, last_ms: 0, slices }, BTreeSet::new())
                    });
                    of_reason.runs += 1;
                    of_reason.last_ms = of_reason.last_ms.max(run.since_ms);
                    of_reason.slices[slice_of(run.since_ms)] += 1;
                    skills.insert(&run.skill_id);
                    board.ended.push(BoardRun::of(run));
                }
                RunState::Canceled => board.ended.push(BoardRun::of(run)),
            }
        }
        // An unknown outcome has no deadline of its own: without one it comes before other approvals.
        board
            .waiting
            .sort_by_key(|run| (run.expires_ms.unwrap_or(i64::MAX), !run.outcome_unknown, run.since_ms));
        board.oldest_waiting_ms = board.waiting.iter().map(|run| run.since_ms).min();
        board.running.sort_by_key(|run| (!run.state.is_active(), run.created_ms));
        board.ended.sort_by_key(|run| -run.since_ms);
        board.ended_runs = board.ended.len() as u64;
        board.ended.truncate(MAX_ENDED);
        board.distinguish(runs);
        board.failed = failures
            .into_values()
            .map(|(of_reason, skills)| BoardFailures { skills: skills.len() as u64, ..of_reason })
            .collect();
        board.failed.sort_by_key(|failures| std::cmp::Reverse((failures.runs, failures.last_ms)));
        board
    }

    /// Adds what distinguishes the first runs of each list that have the same title.
    fn distinguish(&mut self, runs: &[RunRecord]) {
        let mut listed = [&mut self.waiting, &mut self.running, &mut self.ended];
        let first = listed.iter().flat_map(|group| group.iter().take(MAX_DISTINGUISHED));
        let ids: HashSet<&RunId> = first.map(|run| &run.run).collect();
        let runs: Vec<&RunRecord> = runs.iter().filter(|run| ids.contains(&run.id)).collect();
        let rows = distinguishing_texts(&runs, "  ");
        let mut rows: HashMap<&RunId, String> = runs.iter().map(|run| &run.id).zip(rows).collect();
        for run in listed.iter_mut().flat_map(|group| group.iter_mut()) {
            run.distinction = rows.remove(&run.run).unwrap_or_default();
        }
    }

    /// Returns the number of runs that failed in the window.
    pub fn failed_runs(&self) -> u64 {
        self.failed.iter().map(|reason| reason.runs).fold(0, u64::saturating_add)
    }

    /// Returns the number of runs that completed in the window.
    pub fn completed_runs(&self) -> u64 {
        self.completed.iter().map(|runs| u64::from(*runs)).sum()
    }

    /// Returns the number of runs that were canceled in the window.
    pub fn canceled_runs(&self) -> u64 {
        self.ended_runs.saturating_sub(self.failed_runs().saturating_add(self.completed_runs()))
    }

    /// Returns the number of pending runs that are paused.
    pub fn paused(&self) -> u64 {
        self.running.iter().filter(|run| run.is_paused()).count() as u64
    }
}

/// Reasons of failures, which group runs: the typed part, with the beginning of the text that all of its runs share.
struct Reasons(HashMap<String, String>);

impl Reasons {
    fn of<'r>(runs: impl Iterator<Item = &'r RunRecord>) -> Self {
        let mut reasons: HashMap<String, String> = HashMap::new();
        for summary in runs.filter_map(RunRecord::failure).filter(|summary| !summary.is_empty()) {
            match reasons.entry(failure_kind(&summary).to_owned()) {
                Entry::Vacant(entry) => {
                    entry.insert(summary);
                }
                Entry::Occupied(mut entry) => {
                    let shared = shared_beginning(entry.key(), entry.get(), &summary);
                    entry.insert(shared);
                }
            }
        }
        Self(reasons)
    }

    fn reason(&self, run: &RunRecord) -> Option<String> {
        self.0.get(failure_kind(&run.failure()?)).cloned()
    }
}

/// Returns the words that two summaries of a kind begin with, with `…` if others follow.
fn shared_beginning(kind: &str, one: &str, other: &str) -> String {
    let one = one.trim_end_matches('…');
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a);
    let mut shared: String = same.collect();
    if shared.len() == other.len() {
        return other.to_owned();
    }
    let is_in_word = |text: &str| text.get(shared.len()..).is_some_and(|rest| !rest.starts_with(' '));
    if is_in_word(other) || is_in_word(one) {
        shared.truncate(shared.rfind(' ').map_or(0, |at| at + 1));
    }
    if shared.len() > kind.len() { shared + "…" } else { kind.to_owned() }
}

/// Returns the facets of these runs: fields with several values that repeat. `alternatives` are fields that the filter
/// restricts, each with the runs that match the rest of the filter: their values can be selected too.
#[must_use]
pub fn facets<R: Borrow<RunRecord>>(
    runs: &[R],
    truncated: bool,
    alternatives: &[(String, Vec<R>)],
) -> FacetList {
    let mut facets = all_facets(runs);
    let distinguishing: Vec<String> = facets.iter().map(|facet| facet.key.clone()).collect();
    for (key, others) in alternatives {
        if let Some(facet) = all_facets(others).into_iter().find(|facet| facet.key == *key) {
            facets.retain(|known| known.key != *key);
            facets.push(facet);
        }
    }
    let rank = |key: &str| match key {
        "error" => 0,
        "skill" => 1,
        "state" => 2,
        key if key.starts_with("label.") => 3,
        key if key.starts_with("input.") => 4,
        _ => 5,
    };
    // What distinguishes the runs is shown first.
    facets.sort_by_key(|facet| (!distinguishing.contains(&facet.key), rank(&facet.key), facet.key.clone()));
    facets.truncate(MAX_FACETS);
    FacetList { runs: runs.len() as u64, truncated, facets }
}

/// Returns the facets of these runs, in no order.
fn all_facets<R: Borrow<RunRecord>>(runs: &[R]) -> Vec<Facet> {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut add = |key: String, value: String| {
        // The filter of a truncated reason matches its beginning; other values are matched whole.
        let is_long = value.chars().count() > MAX_VALUE;
        let value = if is_long && key == "error" {
            let truncated_value = value.trim_end_matches('…').chars().take(MAX_VALUE - 1).collect::<String>();
            format!("{}…", truncated_value.trim_end())
        } else {
            value
        };
        if !value.is_empty() && value.chars().count() <= MAX_VALUE {
            *counts.entry(key).or_default().entry(value).or_default() += 1;
        }
    };
    let reasons = Reasons::of(runs.iter().map(Borrow::borrow));
    for run in runs {
        let run: &RunRecord = run.borrow();
        add("state".to_owned(), run.state.to_string());
        add("skill".to_owned(), run.skill_id.clone());
        add("by".to_owned(), run.started_by.clone());
        if let Some(step) = run.step.clone().filter(|_| !run.state.is_terminal()) {
            add("step".to_owned(), step);
        }
        if let Some(reason) = reasons.reason(run) {
            add("error".to_owned(), reason);
        }
        for (name, value) in &run.options.labels {
            add(format!("label.{name}"), value.clone());
        }
        for (name, value) in run.inputs.as_object().into_iter().flatten() {
            match value {
                Value::String(text) => add(format!("input.{name}"), text.clone()),
                Value::Number(_) | Value::Bool(_) => add(format!("input.{name}"), value.to_string()),
                _ => {}
            }
        }
    }
    counts
        .into_iter()
        // A single value distinguishes nothing, and as many values as runs (an id) do not group them.
        .filter(|(_, values)| values.len() > 1 && (values.len() < runs.len() || runs.len() <= MAX_VALUES))
        .map(|(key, values)| {
            let mut values: Vec<FacetValue> = values
                .into_iter()
                .map(|(value, runs)| FacetValue { term: term(&key, &value), value, runs })
                .collect();
            values.sort_by(|a, b| (b.runs, &a.value).cmp(&(a.runs, &b.value)));
            values.truncate(MAX_VALUES);
            Facet { key, values }
        })
        .collect()
}

/// Returns the filter term for a value: `error:"http 503"`.
pub fn term(key: &str, value: &str) -> String {
    // A truncated reason is matched by its beginning.
    format!("{key}:{}", skills_store::quoted_value(value.trim_end_matches('…')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skills_store::{RunOptions, RunQuery};

    const HOUR: i64 = 3_600_000;

    fn run(id: &str, state: RunState, since_ms: i64) -> RunRecord {
        let error =
            (state == RunState::Failed).then(|| json!({"code": "runtime_error", "message": "no space left"}));
        RunRecord {
            id: RunId(id.to_owned()),
            skill_id: "deploy".to_owned(),
            state,
            paused: false,
            gate: None,
            decided: None,
            contract_digest: String::new(),
            inputs: json!({"region": format!("r{}", id.len() % 2), "id": id}),
            target: None,
            options: skills_store::RunOptions::default(),
            outputs: None,
            error,
            trace_id: String::new(),
            started_by: "kim".to_owned(),
            source: None,
            progress: (1, 2),
            step: Some("push".to_owned()),
            head: 0,
            fence: 0,
            lease: None,
            created_ms: since_ms - 1_000,
            since_ms,
            expires_ms: None,
            allowed: Vec::new(),
        }
    }

    #[test]
    fn the_board_sorts_by_deadline_and_counts_by_slice() {
        let waits = |id: &str, since, expires| RunRecord {
            expires_ms: expires,
            ..run(id, RunState::WaitingForHuman, since)
        };
        let runs = [
            waits("a", 10, None),
            waits("b", 20, Some(9 * HOUR)),
            waits("c", 30, Some(8 * HOUR + 5)),
            run("d", RunState::Completed, 8 * HOUR - 1),
            run("e", RunState::Completed, HOUR),
            run("f", RunState::Failed, 4 * HOUR),
            run("g", RunState::Failed, 4 * HOUR + 1),
            run("h", RunState::Failed, -1),
            run("i", RunState::Running, 1),
            run("j", RunState::Canceled, 3 * HOUR),
        ];
        let runs = runs.map(|run| {
            let options = RunOptions { title: Some("Deploy".to_owned()), ..RunOptions::default() };
            RunRecord { options, ..run }
        });
        let board = Board::of(&runs, BTreeMap::new(), Vec::new(), (0, 8 * HOUR));
        assert_eq!((board.failed_runs(), board.completed_runs(), board.canceled_runs()), (2, 2, 1));
        assert_eq!(board.ended_runs, 5);
        let order: Vec<&str> = board.waiting.iter().map(|run| run.run.0.as_str()).collect();
        assert_eq!(order, ["c", "b", "a"], "nearest deadline first");
        assert_eq!(board.oldest_waiting_ms, Some(10));
        assert_eq!((board.completed[SLICES - 1], board.completed[SLICES / 8]), (1, 1));
        assert_eq!(board.failed.len(), 1);
        assert_eq!((board.failed[0].runs, board.failed[0].slices[SLICES / 2]), (2, 2));
        assert_eq!(board.failed[0].reason, "no space left");
        assert_eq!(board.running.len(), 1);
        let ended: Vec<&str> = board.ended.iter().map(|run| run.run.0.as_str()).collect();
        assert_eq!(ended, ["d", "g", "f", "j", "e"], "failed runs are listed with the other ended ones");
        assert_eq!(board.ended[0].distinction, "id=d", "runs with the same title are distinguished");
        let many: Vec<RunRecord> =
            (0..60).map(|at| run("x", RunState::Completed, 8 * HOUR - 1 - at)).collect();
        let board = Board::of(&many, BTreeMap::new(), Vec::new(), (0, 8 * HOUR));
        assert_eq!((board.ended.len(), board.ended_runs), (MAX_ENDED, 60), "all are counted");
        let many: Vec<RunRecord> = (0..=MAX_DISTINGUISHED as i64)
            .map(|at| {
                let options = RunOptions { title: Some("Deploy".to_owned()), ..RunOptions::default() };
                RunRecord { options, ..run(&format!("run{at}"), RunState::Running, at) }
            })
            .collect();
        let running = Board::of(&many, BTreeMap::new(), Vec::new(), (0, 8 * HOUR)).running;
        assert_eq!(running[MAX_DISTINGUISHED - 1].distinction, "id=run99  region=r1");
        assert_eq!(running[MAX_DISTINGUISHED].distinction, "", "only the first ones are compared");
    }

    #[test]
    fn failures_are_grouped_by_their_typed_reason() {
        let exits = [
            (Some("vault: permission denied for acct-1"), 7),
            (Some("vault: permission denied for acct-22"), 7),
            (Some("vault: permission denied for acct-1"), 7),
            (Some("disk full"), 70),
            (Some("no token"), 70),
            (None, 3),
            (Some("x"), 3),
        ];
        let failed = exits.iter().enumerate().map(|(at, (line, code))| {
            let reason = json!({"kind": "invalid_answer", "exit_code": code, "stderr_line": line});
            let mut error = json!({"code": "runtime_error", "message": "m", "reason": reason});
            error["summary"] = skills_store::failure_summary(&error).into();
            let id = format!("r{at}");
            RunRecord { error: Some(error), ..run(&id, RunState::Failed, 5) }
        });
        let failed: Vec<RunRecord> = failed.collect();
        let groups =
            [("exit code 7: vault: permission denied for …", 3), ("exit code 3", 2), ("exit code 70: …", 2)];
        let board = Board::of(&failed, BTreeMap::new(), Vec::new(), (0, HOUR));
        let found: Vec<(&str, u64)> =
            board.failed.iter().map(|group| (group.reason.as_str(), group.runs)).collect();
        assert_eq!(found, groups);
        let list = facets(&failed, false, &[]);
        let facet = list.facets.iter().find(|facet| facet.key == "error").unwrap();
        for (value, (reason, runs)) in facet.values.iter().zip(groups) {
            assert_eq!((value.value.as_str(), value.runs), (reason, runs));
            let query = RunQuery::parse(&value.term).unwrap();
            assert_eq!(failed.iter().filter(|run| query.matches(run, 10)).count() as u64, runs, "{reason}");
        }
    }

    #[test]
    fn facet_terms_select_the_runs_of_their_group() {
        let names = ["a", "bb", "c", "dd", "e", "ff", "g", "hh"];
        let runs =
            names.map(|id| run(id, if id.len() == 1 { RunState::Failed } else { RunState::Completed }, 5));
        let list = facets(&runs, false, &[]);
        let keys: Vec<&str> = list.facets.iter().map(|facet| facet.key.as_str()).collect();
        assert_eq!(keys, ["state", "input.region"], "ids group nothing, one skill distinguishes nothing");
        for facet in &list.facets {
            for value in &facet.values {
                let query = RunQuery::parse(&value.term).unwrap();
                let found = runs.iter().filter(|run| query.matches(run, 10)).count() as u64;
                assert_eq!(found, value.runs, "{}", value.term);
            }
        }
        let (failed, completed): (Vec<&RunRecord>, Vec<&RunRecord>) =
            runs.iter().partition(|run| run.state == RunState::Failed);
        let all: Vec<&RunRecord> = failed.iter().chain(&completed).copied().collect();
        let list = facets(&failed, false, &[("state".to_owned(), all)]);
        let state = list.facets.iter().find(|facet| facet.key == "state").unwrap();
        assert_eq!(state.values.len(), 2, "the states that can be selected besides: {state:?}");
        assert_eq!(list.runs, failed.len() as u64);
        assert_eq!(term("error", "bad \"gateway\""), r#"error:"bad \"gateway\"""#);
    }
}
