//! Operations for operators: the board, workers, facets, saved views, logs of steps; and periodic maintenance of runs
//! while a worker runs here: retention and escalation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::super::Local;
use super::runtime::{RunRuntime, RunStore};
use super::{Permissions, Uploads, find, identity, lease_holder::with_holder};
use crate::board::facets;
use crate::operator_types::{ensure_not_configured, worker_process};
use crate::{
    Board, BoardRun, Code, Error, FacetList, LogLine, LogPage, LogRequest, OperatorClient, SavedView,
    ViewList, WorkerList, WorkerState, WorkerView,
};
use skills_base::audit::{Entry, Recorder};
use skills_base::duration::to_millis;
use skills_base::telemetry::RunGauges;
use skills_config::Config;
use skills_model::RunState;
use skills_registry::policy::RequiredApprovals;
use skills_runs::{DRAIN_PREFIX, HEARTBEAT_TIMEOUT, ProcessIdentity, UPLOADS_KEPT_FOR, WORKER_PREFIX};
use skills_skill::safe_text;
use skills_store::{
    ClockReading, EventKind, NewEvent, Precondition, RunEvent, RunFilter, RunId, RunPage, RunQuery,
    RunRecord, StoreError, WorkerId, without_each_field,
};

/// Runs read per page.
const PAGE: usize = 500;
/// Maximum number of ended runs read for a board.
const MAX_BOARD_RUNS: usize = 5_000;
/// Maximum number of runs read for facets.
const MAX_FACET_RUNS: usize = 5_000;
/// Maximum number of fields of a filter whose alternatives are counted: each is a search.
const MAX_ALTERNATIVE_FIELDS: usize = 4;
/// Maximum number of hours of a board.
const MAX_HOURS: u32 = 24 * 14;
/// Maximum number of lines on a page of a log.
const MAX_LINES: usize = 10_000;
/// Size in bytes from which a page of a log ends.
const MAX_LOG_BYTES: usize = 1 << 20;
/// Maximum number of events per response.
const MAX_EVENTS: usize = 10_000;
/// Maximum time to wait for an event or a line, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;
/// Name prefix of documents with saved views.
const VIEW_PREFIX: &str = "view:";
/// Maximum number of saved views of a store: each is shown with its count.
const MAX_VIEWS: usize = 200;
/// Maximum size of the filter of a saved view in bytes.
const MAX_VIEW_FILTER: usize = 4 << 10;
/// Maximum number of characters of a view's name.
const MAX_VIEW_NAME: usize = 40;
/// Interval of the checks for runs to delete or escalate.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(30);
/// Interval of the deletion of ended runs.
const RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);

#[async_trait]
impl OperatorClient for Local {
    async fn board(&self, hours: u32) -> Result<Board, Error> {
        self.operations.count("board", self.runs.overview.board(hours)).await
    }

    async fn workers(&self) -> Result<WorkerList, Error> {
        self.operations.count("workers", self.runs.overview.worker_list()).await
    }

    async fn drain(&self, worker: &str, drain: bool, by: Option<String>) -> Result<WorkerList, Error> {
        self.operations.count("drain", self.runs.overview.drain(worker, drain, by)).await
    }

    async fn facets(&self, filter: &str) -> Result<FacetList, Error> {
        self.operations.count("facets", self.runs.overview.facets(filter)).await
    }

    async fn views(&self) -> Result<ViewList, Error> {
        self.operations.count("views", self.runs.views.views()).await
    }

    async fn save_view(
        &self,
        name: &str,
        filter: Option<&str>,
        by: Option<String>,
    ) -> Result<ViewList, Error> {
        self.operations.count("save_view", self.runs.views.save_view(name, filter, by)).await
    }

    async fn run_log(&self, request: LogRequest) -> Result<LogPage, Error> {
        self.operations.count("run_log", self.runs.overview.log(request)).await
    }
}

/// Returns at most `max` runs that match a filter, without outputs, and whether there are more.
async fn read(
    runtime: &RunRuntime,
    mut filter: RunFilter,
    max: usize,
) -> Result<(Vec<RunRecord>, bool), Error> {
    let mut runs: Vec<RunRecord> = Vec::new();
    loop {
        filter.limit = PAGE.min(max - runs.len());
        let page = runtime.store.runs(filter.clone()).await?;
        runs.extend(page.runs.into_iter().map(|run| RunRecord { outputs: None, ..with_holder(run) }));
        match page.next {
            Some(_) if runs.len() >= max => return Ok((runs, true)),
            Some(cursor) => filter.cursor = Some(cursor),
            None => return Ok((runs, false)),
        }
    }
}

/// What operators see of the runs and workers of the store.
#[derive(Clone)]
pub(in crate::local) struct RunOverview {
    pub(super) store: Arc<RunStore>,
    pub(super) audit: Arc<Recorder>,
}

impl RunOverview {
    pub(super) async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        let page = self.store.runtime().await?.store.runs(filter).await?;
        Ok(RunPage { runs: page.runs.into_iter().map(with_holder).collect(), ..page })
    }

    pub(super) async fn events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        let runtime = self.store.runtime().await?;
        let run = match run {
            Some(requested) => Some(find::listed(&*runtime.store, requested).await?.id),
            None => None,
        };
        let limit = limit.clamp(1, MAX_EVENTS);
        let deadline = Instant::now() + Duration::from_millis(wait_ms.min(MAX_WAIT_MS));
        loop {
            // The store wakes up on any new event; of a single run only events after `after` count.
            let seen = runtime.store.newest_event().await?;
            let events = runtime.store.events(run.as_ref(), after, limit).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !events.is_empty() || left.is_zero() {
                return Ok(events);
            }
            runtime.store.wait(seen, u64::try_from(left.as_millis()).unwrap_or(u64::MAX)).await?;
        }
    }

    async fn facets(&self, filter: &str) -> Result<FacetList, Error> {
        let runtime = self.store.runtime().await?;
        let of = |filter: String| RunFilter { r#where: Some(filter), ..RunFilter::default() };
        let (runs, truncated) = read(&runtime, of(filter.to_owned()), MAX_FACET_RUNS).await?;
        let mut alternatives = Vec::new();
        for (key, others) in without_each_field(filter).into_iter().take(MAX_ALTERNATIVE_FIELDS) {
            let (others, is_partial) = read(&runtime, of(others), MAX_FACET_RUNS).await?;
            // Counts of a part would be wrong.
            if !is_partial {
                alternatives.push((key, others));
            }
        }
        Ok(facets(&runs, truncated, &alternatives))
    }

    async fn board(&self, hours: u32) -> Result<Board, Error> {
        if !(1..=MAX_HOURS).contains(&hours) {
            let message = format!("`hours`: {hours} is out of range; allowed: 1 to {MAX_HOURS}");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let runtime = self.store.runtime().await?;
        let open = RunFilter { states: RunState::OPEN.to_vec(), ..RunFilter::default() };
        let (mut runs, _) = read(&runtime, open, MAX_BOARD_RUNS).await?;
        let ended = RunFilter {
            states: RunState::ENDED.to_vec(),
            r#where: Some(format!("since:<{hours}h")),
            ..RunFilter::default()
        };
        let (ended, truncated) = read(&runtime, ended, MAX_BOARD_RUNS).await?;
        runs.extend(ended);
        let counts = runtime.store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?.counts;
        let workers = workers_of(&runtime, &runs).await?;
        let now_ms = ClockReading::now().wall_ms;
        let window = (now_ms - i64::from(hours) * 3_600_000, now_ms);
        Ok(Board { truncated, ..Board::of(&runs, counts, workers, window) })
    }

    async fn worker_list(&self) -> Result<WorkerList, Error> {
        let runtime = self.store.runtime().await?;
        let states = vec![RunState::Running, RunState::Replaying];
        let (runs, _) = read(&runtime, RunFilter { states, ..RunFilter::default() }, MAX_BOARD_RUNS).await?;
        Ok(WorkerList { workers: workers_of(&runtime, &runs).await? })
    }

    async fn drain(&self, requested: &str, drain: bool, by: Option<String>) -> Result<WorkerList, Error> {
        let list = self.worker_list().await?;
        let named = |view: &&WorkerView| view.worker == requested;
        let parts = |view: &&WorkerView| view.worker.contains(requested) || view.name.contains(requested);
        let exact: Vec<&WorkerView> = list.workers.iter().filter(named).collect();
        let found = if exact.is_empty() { list.workers.iter().filter(parts).collect() } else { exact };
        let worker = match found[..] {
            [one] if !requested.is_empty() => &one.worker,
            [] => {
                let workers: Vec<&str> = list.workers.iter().map(|view| view.worker.as_str()).collect();
                let hint = if workers.is_empty() {
                    "no workers are registered".to_owned()
                } else {
                    format!("expected one of: {}", workers.join(", "))
                };
                return Err(Error::new(Code::NotFound, format!("worker `{requested}` not found: {hint}")));
            }
            _ => {
                let message =
                    format!("{} workers match {requested:?}; use a longer part of the id", found.len());
                return Err(Error::new(Code::InvalidRequest, message));
            }
        };
        let runtime = self.store.runtime().await?;
        let request = drain.then(|| json!({ "requested_ms": ClockReading::now().wall_ms }));
        runtime.store.put_document(&format!("{DRAIN_PREFIX}{worker}"), request, None).await?;
        let kind = if drain { "worker.drained" } else { "worker.resumed" };
        let by = by.unwrap_or_else(identity::account);
        self.audit.record(Entry::new(kind, Some(&by), json!({ "worker": worker }))).await;
        self.worker_list().await
    }

    async fn log(&self, request: LogRequest) -> Result<LogPage, Error> {
        let runtime = self.store.runtime().await?;
        let run = find::listed(&*runtime.store, &request.run).await?;
        let limit = request.limit.clamp(1, MAX_LINES);
        let text = request.text.as_ref().map(|text| text.to_lowercase());
        let deadline = Instant::now() + Duration::from_millis(request.wait_ms.min(MAX_WAIT_MS));
        let mut page = LogPage { lines: Vec::new(), next: request.after, open: true };
        let mut bytes = 0;
        loop {
            let newest = runtime.store.newest_event().await?;
            let state = runtime.store.listed_run(&run.id).await?.map_or(run.state, |run| run.state);
            page.open = !(state.is_terminal() || state == RunState::Failed);
            loop {
                let events = runtime.store.events(Some(&run.id), page.next, PAGE).await?;
                if events.is_empty() {
                    break;
                }
                for event in events {
                    page.next = event.number;
                    let lines = log_lines(&event).into_iter().filter(|line| {
                        let of_step = |step: &String| {
                            line.step == *step
                                || line.step.starts_with(&format!("{step}["))
                                || line.step.starts_with(&format!("{step}/"))
                        };
                        request.step.as_ref().is_none_or(of_step)
                            && text.as_ref().is_none_or(|text| line.text.to_lowercase().contains(text))
                    });
                    // A page ends with an event: the next one continues after it.
                    let before = page.lines.len();
                    page.lines.extend(lines);
                    bytes += page.lines[before..].iter().map(|line| line.text.len()).sum::<usize>();
                    if page.lines.len() >= limit || bytes >= MAX_LOG_BYTES {
                        return Ok(page);
                    }
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !page.lines.is_empty() || left.is_zero() || !page.open {
                return Ok(page);
            }
            runtime.store.wait(newest, u64::try_from(left.as_millis()).unwrap_or(u64::MAX)).await?;
        }
    }

    /// Returns the current gauges of runs; `None` if no store is open.
    pub(in crate::local) async fn gauges(&self) -> Result<Option<RunGauges>, Error> {
        let Some(runtime) = self.store.opened() else { return Ok(None) };
        let page = runtime.store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?;
        let now_ms = ClockReading::now().wall_ms;
        let oldest = page.runs.first().filter(|run| run.state == RunState::WaitingForHuman);
        let states = vec![RunState::Running, RunState::Replaying];
        let (active, _) = read(runtime, RunFilter { states, ..RunFilter::default() }, MAX_BOARD_RUNS).await?;
        let is_lost = |run: &&RunRecord| run.lease.as_ref().is_some_and(|lease| lease.holder.is_lost());
        let workers = workers_of(runtime, &active).await?;
        let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
        for worker in &workers {
            *by_state.entry(worker.state.to_string()).or_default() += 1;
        }
        Ok(Some(RunGauges {
            runs: page.counts.iter().map(|(state, runs)| (state.to_string(), *runs)).collect(),
            oldest_waiting_s: oldest.map_or(0.0, |run| seconds(now_ms - run.since_ms)),
            workers: by_state,
            expired_leases: active.iter().filter(is_lost).count() as u64,
        }))
    }
}

/// The views that are saved in the store, and those of the configuration.
pub(in crate::local) struct SavedViews {
    pub(super) config: Arc<Config>,
    pub(super) store: Arc<RunStore>,
}

impl SavedViews {
    async fn views(&self) -> Result<ViewList, Error> {
        let runtime = self.store.runtime().await?;
        let own = self.config.runs.views.iter();
        let mut views: BTreeMap<String, SavedView> =
            own.map(|(name, filter)| (name.clone(), SavedView::configured(name, filter))).collect();
        for document in runtime.store.documents(VIEW_PREFIX).await? {
            let Some(name) = document.name.strip_prefix(VIEW_PREFIX) else { continue };
            let text = |key: &str| document.value.get(key).and_then(Value::as_str).map(str::to_owned);
            if let Some(filter) = text("where").filter(|_| !views.contains_key(name)) {
                let view = SavedView { name: name.to_owned(), r#where: filter, by: text("by") };
                views.insert(name.to_owned(), view);
            }
        }
        Ok(ViewList { views: views.into_values().collect() })
    }

    async fn save_view(
        &self,
        name: &str,
        filter: Option<&str>,
        by: Option<String>,
    ) -> Result<ViewList, Error> {
        let wrong = |message: String| Error::new(Code::InvalidRequest, message);
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_VIEW_NAME || name.chars().any(char::is_control) {
            return Err(wrong(format!("the name of a view has 1 to {MAX_VIEW_NAME} characters on one line")));
        }
        ensure_not_configured(&self.config.runs.views, name)?;
        let by = by.unwrap_or_else(identity::account);
        let document = match filter {
            None => {
                if !self.views().await?.views.iter().any(|view| view.name == name) {
                    return Err(Error::new(Code::NotFound, format!("view `{name}` not found")));
                }
                None
            }
            Some(text) => {
                let query = RunQuery::parse(text).map_err(|error| wrong(error.to_string()))?;
                if query.is_empty() {
                    return Err(wrong("the filter of a view is empty".to_owned()));
                }
                Some(json!({ "where": text.trim(), "by": by }))
            }
        };
        if document.is_some() {
            let views = self.views().await?.views;
            if views.len() >= MAX_VIEWS && !views.iter().any(|view| view.name == name) {
                return Err(wrong(format!("there are {MAX_VIEWS} saved views; delete some first")));
            }
            if filter.is_some_and(|text| text.len() > MAX_VIEW_FILTER) {
                return Err(wrong(format!("the filter of a view has at most {MAX_VIEW_FILTER} bytes")));
            }
        }
        let runtime = self.store.runtime().await?;
        runtime.store.put_document(&format!("{VIEW_PREFIX}{name}"), document, None).await?;
        self.views().await
    }
}

/// The periodic maintenance of runs while a worker runs here.
#[derive(Clone)]
pub(super) struct Maintenance {
    pub config: Arc<Config>,
    pub audit: Arc<Recorder>,
    pub store: Arc<RunStore>,
    pub uploads: Arc<Uploads>,
    pub permissions: Arc<Permissions>,
}

impl Maintenance {
    /// Deletes ended runs as configured, and escalates approvals that wait too long, while runs are executed here.
    pub(super) async fn maintain_runs(self, runtime: Arc<RunRuntime>) {
        let mut purged: Option<Instant> = None;
        loop {
            if purged.is_none_or(|at| at.elapsed() >= RETENTION_INTERVAL) {
                purged = Some(Instant::now());
                if let Err(error) = self.purge_by_retention(&runtime, ClockReading::now().wall_ms).await {
                    tracing::warn!("cannot delete ended runs: {error}");
                }
                if let Err(error) = self.uploads.expire_uploads(&runtime, UPLOADS_KEPT_FOR).await {
                    tracing::warn!("cannot delete uploaded artifacts: {error}");
                }
            }
            if let Err(error) = self.escalate(&runtime, ClockReading::now().wall_ms).await {
                tracing::warn!("escalating approvals: {error}");
            }
            self.store.complete_audit(&runtime).await;
            tokio::time::sleep(MAINTENANCE_INTERVAL).await;
        }
    }

    /// Deletes runs that ended before the retention time; returns how many.
    pub(super) async fn purge_by_retention(
        &self,
        runtime: &RunRuntime,
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        let retention = self.config.retention;
        let mut all = 0;
        for (state, keep) in [
            (RunState::Completed, retention.completed),
            (RunState::Failed, retention.failed),
            (RunState::Canceled, retention.canceled),
        ] {
            let Some(keep) = keep else { continue };
            all += runtime.store.purge_states(&[state], now_ms.saturating_sub(to_millis(keep))).await?;
        }
        if let Some(keep) = retention.sessions {
            let sessions = runtime.sessions.purge_sessions(now_ms.saturating_sub(to_millis(keep))).await?;
            if sessions > 0 {
                tracing::info!("deleted {sessions} sessions by retention");
                self.audit.record(Entry::new("session.purged", None, json!({ "sessions": sessions }))).await;
            }
        }
        if all > 0 {
            tracing::info!("deleted {all} ended runs by retention");
            self.audit.record(Entry::new("run.purged", None, json!({ "runs": all }))).await;
        }
        Ok(all)
    }

    /// Escalates approvals that wait longer than the policy allows, once for each wait: of several processes on a store
    /// one does it.
    pub(super) async fn escalate(&self, runtime: &RunRuntime, now_ms: i64) -> Result<usize, Error> {
        let after_s =
            self.permissions.deciding()?.approvals.iter().filter_map(|rule| rule.escalate_after_s).min();
        let Some(after_s) = after_s else { return Ok(0) };
        let after_ms = i64::try_from(after_s).unwrap_or(i64::MAX).saturating_mul(1_000);
        let (mut escalated, mut place) = (0, None);
        // All pages: waits that no rule escalates must not hide later ones.
        loop {
            let page = runtime.store.unescalated(now_ms.saturating_sub(after_ms), place, PAGE).await?;
            let Some((_, last)) = page.last() else { return Ok(escalated) };
            place = Some(*last);
            for (run, _) in page {
                escalated += usize::from(self.escalate_one(runtime, &run, now_ms).await?);
            }
        }
    }

    /// Escalates an approval if it is due; returns whether this process did.
    async fn escalate_one(&self, runtime: &RunRuntime, run: &RunRecord, now_ms: i64) -> Result<bool, Error> {
        let Some(required) = self.escalation_of(runtime, run).await? else { return Ok(false) };
        let waited_s = u64::try_from((now_ms - run.since_ms) / 1_000).unwrap_or(0);
        if required.escalate_after_s.is_none_or(|after| waited_s < after) {
            return Ok(false);
        }
        let data = json!({ "to": required.escalate_to, "waited_s": waited_s });
        let event = NewEvent { kind: EventKind::RunEscalated, step: run.step.clone(), data: data.clone() };
        let fields = Map::from_iter([
            ("escalated_ms".to_owned(), json!(run.since_ms)),
            ("escalated_to".to_owned(), json!(required.escalate_to)),
        ]);
        let requires = Some(Precondition::NotEscalated(run.since_ms));
        match runtime.store.annotate(&run.id, fields, vec![event], requires).await {
            Ok(_) => {}
            // Another process escalated it, it was decided, or deleted.
            Err(StoreError::PreconditionFailed { .. } | StoreError::NoRun(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let mut entry = Entry::new("run.escalated", None, data);
        entry.data.insert("run".to_owned(), json!(run.id));
        self.audit.record(entry).await;
        Ok(true)
    }

    /// Returns what the approval of a run requires; `None` if its stored contract cannot be read.
    async fn escalation_of(
        &self,
        runtime: &RunRuntime,
        run: &RunRecord,
    ) -> Result<Option<RequiredApprovals>, Error> {
        let plan = match runtime.plan(&run.contract_digest).await {
            Ok(plan) => plan,
            Err(error) => {
                tracing::warn!("run {}: {}", run.id, error.message);
                return Ok(None);
            }
        };
        let (permissions, run) = (Arc::clone(&self.permissions), run.clone());
        crate::work::run_blocking(move || permissions.required_approvals(&run, &plan)).await.map(Some)
    }
}

/// Returns the workers of the store: those that sent heartbeats, and those that have runs.
async fn workers_of(runtime: &RunRuntime, runs: &[RunRecord]) -> Result<Vec<WorkerView>, Error> {
    let lately = u64::try_from(HEARTBEAT_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    let here = ProcessIdentity::here();
    let live = runtime.store.live_workers(lately).await?;
    let live: BTreeSet<&str> =
        live.iter().filter(|worker| !here.is_process_dead(worker)).map(worker_process).collect();
    let drained = runtime.store.documents(DRAIN_PREFIX).await?;
    let drained: BTreeSet<&str> =
        drained.iter().filter_map(|document| document.name.strip_prefix(DRAIN_PREFIX)).collect();
    let documents = runtime.store.documents(WORKER_PREFIX).await?;
    let mut by_process: BTreeMap<&str, Option<&Value>> =
        live.iter().map(|process| (*process, None)).collect();
    for document in &documents {
        if let Some(process) = document.name.strip_prefix(WORKER_PREFIX) {
            by_process.insert(process, Some(&document.value));
        }
    }
    let holder = |run: &RunRecord| {
        let worker = run.lease.as_ref()?.worker.as_ref()?;
        run.state.is_active().then(|| worker_process(worker).to_owned())
    };
    let leased: Vec<(String, &RunRecord)> = runs.iter().filter_map(|run| Some((holder(run)?, run))).collect();
    for (process, _) in &leased {
        by_process.entry(process.as_str()).or_insert(None);
    }
    let mut views: Vec<WorkerView> = by_process
        .into_iter()
        .map(|(process, about)| {
            let number = |name: &str| about.and_then(|about| about.get(name)?.as_i64());
            let state = match (live.contains(process), drained.contains(process)) {
                (true, false) => WorkerState::Live,
                (true, true) => WorkerState::Draining,
                (false, _) => WorkerState::Lost,
            };
            let name = WorkerId(format!("{process}/0")).describe();
            WorkerView {
                worker: process.to_owned(),
                name: safe_text::line(&name).into_owned(),
                version: about.and_then(|about| about.get("version")?.as_str().map(str::to_owned)),
                state,
                slots: number("slots").and_then(|slots| u32::try_from(slots).ok()),
                runs: leased
                    .iter()
                    .filter(|(holder, _)| holder == process)
                    .map(|(_, run)| BoardRun::of(run))
                    .collect(),
                started_ms: number("started_ms"),
                seen_ms: number("seen_ms"),
            }
        })
        .collect();
    views.sort_by(|a, b| {
        let order = |view: &WorkerView| view.state == WorkerState::Lost;
        (order(a), &a.worker).cmp(&(order(b), &b.worker))
    });
    Ok(views)
}

#[allow(clippy::cast_precision_loss, reason = "an age in milliseconds is far below 2^53")]
fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1_000.0
}

/// Returns the lines of a log event, which contains those printed within a short time; none for other events.
fn log_lines(event: &skills_store::RunEvent) -> Vec<LogLine> {
    if event.event.kind != EventKind::StepLog {
        return Vec::new();
    }
    let text = |key: &str| event.event.data.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let line = |line: &str| LogLine {
        number: event.number,
        at_ms: event.at_ms,
        step: event.event.step.clone().unwrap_or_default(),
        stream: text("stream"),
        text: line.to_owned(),
    };
    text("text").lines().map(line).collect()
}

/// Assigns a run and records the event. With an assignee, only if the run is currently assigned to them.
pub(super) async fn assign(
    runtime: &RunRuntime,
    run: &RunId,
    (assignee, to): (Option<String>, Option<String>),
    by: &str,
    note: Option<String>,
) -> Result<RunRecord, Error> {
    let assignment = to
        .as_ref()
        .map(|to| json!({ "to": to, "by": by, "note": note, "at_ms": ClockReading::now().wall_ms }));
    let event = NewEvent {
        kind: EventKind::RunAssigned,
        step: None,
        data: json!({ "to": to, "by": by, "note": note }),
    };
    let fields = Map::from_iter([("assigned".to_owned(), json!(assignment))]);
    Ok(runtime.store.annotate(run, fields, vec![event], assignee.map(Precondition::AssignedTo)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_line_is_a_log_line() {
        let event = |kind: EventKind| skills_store::RunEvent {
            run: RunId("r-1".to_owned()),
            number: 4,
            global: 4,
            at_ms: 1,
            event: NewEvent {
                kind,
                step: Some("plan".to_owned()),
                data: json!({ "stream": "stdout", "text": "one\ntwo\n\nthree" }),
            },
        };
        let lines = log_lines(&event(EventKind::StepLog));
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["one", "two", "", "three"]);
        assert!(lines.iter().all(|line| (line.number, &*line.step, &*line.stream) == (4, "plan", "stdout")));
        assert!(log_lines(&event(EventKind::StepCompleted)).is_empty());
    }
}
