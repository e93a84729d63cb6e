//! Types for operators beyond single runs: the board of a shift, workers, facets of a filter, saved views, logs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Code, Error};
use skills_model::RunState;
use skills_store::{RunId, WorkerId};

/// A run as the board shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardRun {
    /// Id of the run.
    pub run: RunId,
    /// Id of the skill.
    pub skill_id: String,
    /// Title of the run, else the skill.
    pub title: String,
    /// What distinguishes it from other runs on the board with the same title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub distinction: String,
    /// State of the run.
    pub state: RunState,
    /// The current step.
    pub step: Option<String>,
    /// Completed steps and total steps.
    pub progress: (u32, u32),
    /// Who started it.
    pub started_by: String,
    /// Who it is assigned to.
    pub assigned: Option<String>,
    /// `approved, 1 of 2`, while more approvals are needed.
    pub approvals: Option<String>,
    /// The signal it waits for.
    pub signal: Option<String>,
    /// Whether it waits for a decision about a step whose outcome is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
    /// `escalated to lead`, while it waits for an approval that was escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<String>,
    /// Whether it is paused until resumed.
    #[serde(default, rename = "held", skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Its launch, milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Start of its state.
    pub since_ms: i64,
    /// When its wait ends.
    pub expires_ms: Option<i64>,
}

/// Failed runs with the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardFailures {
    /// The reason in a few words.
    pub reason: String,
    /// Number of runs.
    pub runs: u64,
    /// Number of skills concerned.
    pub skills: u64,
    /// The last of them, milliseconds since 1970-01-01 UTC.
    pub last_ms: i64,
    /// Runs per slice of the window, oldest first.
    pub slices: Vec<u32>,
}

/// Overview of everything that runs, waits and failed in a time window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    /// Start of the window, milliseconds since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End of the window: now.
    pub now_ms: i64,
    /// Runs by state over the whole store.
    pub counts: BTreeMap<RunState, u64>,
    /// Runs that wait for approval, nearest deadline first.
    pub waiting: Vec<BoardRun>,
    /// Runs that are executed, pending or wait for a signal.
    pub running: Vec<BoardRun>,
    /// Failures of the window by reason, most frequent first.
    pub failed: Vec<BoardFailures>,
    /// Runs that completed in the window, per slice.
    pub completed: Vec<u32>,
    /// The newest runs that completed, failed or were canceled in the window.
    pub ended: Vec<BoardRun>,
    /// Number of all runs that completed, failed or were canceled in the window.
    #[serde(default)]
    pub ended_runs: u64,
    /// Start of the longest wait for approval, milliseconds since 1970-01-01 UTC.
    pub oldest_waiting_ms: Option<i64>,
    /// The workers.
    pub workers: Vec<WorkerView>,
    /// Whether more runs ended in the window than were read.
    pub truncated: bool,
}

/// Whether a worker claims runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WorkerState {
    /// It claims runs.
    Live,
    /// It finishes its runs and claims none.
    Draining,
    /// It sent no heartbeat lately.
    Lost,
}

/// A process that executes runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerView {
    /// Id of the worker.
    pub worker: String,
    /// Its id for display: `process 4711 on build-2`.
    pub name: String,
    /// Version of the program; none for a worker of an earlier version.
    pub version: Option<String>,
    /// Whether it claims runs.
    pub state: WorkerState,
    /// Runs it executes at a time.
    pub slots: Option<u32>,
    /// What it executes.
    pub runs: Vec<BoardRun>,
    /// Its start, milliseconds since 1970-01-01 UTC.
    pub started_ms: Option<i64>,
    /// Last heartbeat of the worker.
    pub seen_ms: Option<i64>,
}

/// The workers of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerList {
    /// Live ones first, each group by id.
    pub workers: Vec<WorkerView>,
}

/// A value by which matching runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FacetValue {
    /// The value for display.
    pub value: String,
    /// How many runs have it.
    pub runs: u64,
    /// The term that adds it to a filter.
    pub term: String,
}

/// A field by which matching runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facet {
    /// The field: `error`, `skill`, `input.region`.
    pub key: String,
    /// Most frequent values of the field.
    pub values: Vec<FacetValue>,
}

/// What distinguishes the runs that match a filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FacetList {
    /// Number of runs examined.
    pub runs: u64,
    /// Whether more match.
    pub truncated: bool,
    /// Fields with more than one value.
    pub facets: Vec<Facet>,
}

/// A filter with a name, shared by all users of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedView {
    /// Name of the view.
    pub name: String,
    /// Filter of the view.
    pub r#where: String,
    /// Who saved it; none for one of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl SavedView {
    /// Returns a view of the configuration.
    pub(crate) fn configured(name: &str, filter: &str) -> Self {
        Self { name: name.to_owned(), r#where: filter.to_owned(), by: None }
    }
}

/// Checks that a view to save or delete is not one of the configuration.
pub(crate) fn ensure_not_configured(views: &BTreeMap<String, String>, name: &str) -> Result<(), Error> {
    if views.contains_key(name.trim()) {
        let message = format!("the view {name:?} is set in the configuration; change it there");
        return Err(Error::new(Code::InvalidConfiguration, message));
    }
    Ok(())
}

/// Saved views, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ViewList {
    /// The views.
    pub views: Vec<SavedView>,
}

/// Which lines of output to return.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogRequest {
    pub run: String,
    pub step: Option<String>,
    /// Only those that contain this text, regardless of case.
    pub text: Option<String>,
    /// Only those after this number of the run's events.
    pub after: u64,
    /// Maximum number of lines.
    pub limit: usize,
    /// If there are none, wait this long for the first, milliseconds.
    pub wait_ms: u64,
}

/// A line that a step printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// The number of its event within the run.
    pub number: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Id of the step.
    pub step: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The complete line.
    pub text: String,
}

/// Lines of output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPage {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// The number to continue after.
    pub next: u64,
    /// Whether the run may still print more.
    pub open: bool,
}

/// Returns the worker process that a worker id belongs to: all but its last part.
pub fn worker_process(worker: &WorkerId) -> &str {
    worker.0.rsplit_once('/').map_or(worker.0.as_str(), |(process, _)| process)
}
