//! Runs in memory that are not executed: commands change them by the table of the state machine, and a
//! test moves them on by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use skills_api::operations::{CheckpointList, Principal};
use skills_api::{
    AttachCheck, AttachCheckResult, AttachPreview, AttachRequest, Attached, Board, CapabilityExplanation,
    CapabilityRequest, Code, CommandResult, ContractView, Error, FacetList, LaunchRequest, Launched,
    LocalFiles, LogLine, LogPage, LogRequest, NewArtifact, OperatorClient, RunClient, RunCommand, RunDetail,
    SavedView, SessionAccess, StoredArtifact, TargetChoice, ViewList, WorkerList, WorkerView, facets,
};
use skills_model::{RunState, Transition, allowed, transition};
use skills_skill::{AttachTarget, EffectMode, SkillId};
use skills_store::{
    Assignment, IdempotencyOutcome, NewEvent, RunEvent, RunFilter, RunId, RunPage, RunQuery, RunRecord,
    StoreError,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::run_commands::{event_of, moved, note, run_snapshot, state_command};
use super::run_samples::{self, NOW_MS};

/// Runs, contracts and capabilities that a test put there.
#[derive(Default)]
pub struct FakeRuns {
    book: Mutex<Book>,
    news: Notify,
    /// Received commands in order, each with the run as it was named.
    pub commands: Mutex<Vec<(String, RunCommand)>>,
    pub launches: Mutex<Vec<LaunchRequest>>,
    /// Executed attachments in order.
    pub attachments: Mutex<Vec<AttachRequest>>,
    /// The response to every launch, attachment and command, if a test rejects them.
    pub refusal: Mutex<Option<Error>>,
    pub views: Mutex<Vec<SavedView>>,
    /// Workers, defined by the test.
    pub workers: Mutex<Vec<WorkerView>>,
    /// The response to every list and event request, if a test simulates an unreadable store.
    pub unreadable: Mutex<Option<Error>>,
}

#[derive(Default)]
pub struct Book {
    pub runs: Vec<RunDetail>,
    pub events: Vec<RunEvent>,
    pub contracts: Vec<ContractView>,
    pub capabilities: Vec<CapabilityExplanation>,
    pub choices: Vec<(AttachTarget, TargetChoice)>,
    /// The result of a preview instead of passed checks.
    pub preview: Option<AttachPreview>,
    made: usize,
}

impl FakeRuns {
    /// These runs; their events become the store's, in the order of the runs.
    pub fn of(runs: Vec<RunDetail>) -> Self {
        let fake = Self::default();
        for run in runs {
            fake.add(run);
        }
        fake
    }

    /// Everything stored, to inspect and change.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// One run more.
    pub fn add(&self, mut run: RunDetail) {
        let mut book = self.book();
        for event in &mut run.events {
            event.global = book.events.len() as u64 + 1;
            book.events.push(event.clone());
        }
        book.runs.push(run);
        drop(book);
        self.news.notify_waiters();
    }

    /// Adds a contract, or replaces it with its current version.
    pub fn add_contract(&self, view: ContractView) {
        let mut book = self.book();
        book.contracts.retain(|known| known.skill_id != view.skill_id);
        book.contracts.push(view);
    }

    /// Changes a run as a worker would, and publishes an event.
    pub fn work(&self, id: &str, kind: &str, data: Value, change: impl FnOnce(&mut RunDetail)) {
        let mut book = self.book();
        let detail = book.runs.iter_mut().find(|detail| detail.run.id.0 == id).unwrap();
        change(detail);
        detail.run.allowed = allowed(&run_snapshot(&detail.run));
        let id = detail.run.id.clone();
        book.append(&id, kind, data);
        drop(book);
        self.news.notify_waiters();
    }

    fn refused(&self) -> Result<(), Error> {
        self.refusal.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

/// A run as lists return it: without long inputs.
fn listed(run: RunRecord) -> RunRecord {
    let inputs = if run.inputs.to_string().len() > 4_096 { Value::Null } else { run.inputs };
    RunRecord { inputs, ..run }
}

impl Book {
    fn append(&mut self, id: &RunId, kind: &str, data: Value) {
        let global = self.events.len() as u64 + 1;
        let detail = self.runs.iter_mut().find(|detail| detail.run.id == *id).unwrap();
        let number = detail.events.len() as u64 + 1;
        let event = NewEvent { kind: kind.into(), step: detail.run.step.clone(), data };
        let event = RunEvent { run: id.clone(), number, global, at_ms: NOW_MS + number as i64, event };
        detail.events.push(event.clone());
        self.events.push(event);
    }

    fn position(&self, named: &str) -> Result<usize, Error> {
        let fits =
            |id: &str| id == named || named.len() >= 3 && (id.starts_with(named) || id.ends_with(named));
        let found: Vec<usize> = (0..self.runs.len()).filter(|i| fits(&self.runs[*i].run.id.0)).collect();
        match found[..] {
            [one] => Ok(one),
            [] => Err(Error::new(Code::NotFound, format!("run `{named}` not found"))),
            _ => Err(Error::new(Code::InvalidRequest, format!("{} runs are called {named}", found.len()))),
        }
    }

    fn new_id(&mut self) -> String {
        self.made += 1;
        format!("0198ffff-0000-7000-8000-{:012}", self.made)
    }
}

#[async_trait]
impl RunClient for FakeRuns {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error> {
        self.refused()?;
        self.launches.lock().unwrap().push(request.clone());
        let id = self.book().new_id();
        let mut detail = run_samples::detail(&id, &request.skill, RunState::Pending);
        detail.run.inputs = Value::Object(request.inputs);
        (detail.run.created_ms, detail.run.since_ms) = (NOW_MS, NOW_MS);
        let run = detail.run.clone();
        self.add(detail);
        Ok(Launched { run, idempotency: IdempotencyOutcome::None, worker_alive: true })
    }

    async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        let skill = format!("capability:{}", request.capability);
        let CapabilityRequest { inputs, options, started_by, .. } = request;
        self.launch(LaunchRequest { skill, inputs, options, started_by }).await
    }

    /// Waits until a test moved the run to where it ends or waits.
    async fn wait_for_completion(&self, run: &str, leave: CancellationToken) -> Result<RunRecord, Error> {
        loop {
            let notified = self.news.notified();
            let record = self.run(run).await?.run;
            if !matches!(record.state, RunState::Pending | RunState::Running | RunState::Replaying) {
                return Ok(record);
            }
            tokio::select! {
                () = notified => {}
                () = leave.cancelled() => return Ok(record),
            }
        }
    }

    async fn run_checkpoints(
        &self,
        run: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<CheckpointList, Error> {
        let detail = self.run(run).await?;
        let mut checkpoints = detail.checkpoints;
        checkpoints.retain(|checkpoint| before.is_none_or(|before| checkpoint.number < before));
        let checkpoints = checkpoints.split_off(checkpoints.len().saturating_sub(limit));
        Ok(CheckpointList { run_id: detail.run.id, checkpoint_head: detail.run.head, checkpoints })
    }

    async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        self.unreadable.lock().unwrap().clone().map_or(Ok(()), Err)?;
        let book = self.book();
        let mut counts = BTreeMap::new();
        for detail in &book.runs {
            *counts.entry(detail.run.state).or_default() += 1;
        }
        let query = RunQuery::parse(filter.r#where.as_deref().unwrap_or_default()).unwrap();
        let text = filter.text.as_deref().unwrap_or_default();
        let is_match = |run: &RunRecord| {
            let step = run.step.as_deref().unwrap_or_default();
            run.id.0.contains(text) || run.skill_id.contains(text) || step.contains(text)
        };
        let mut runs: Vec<RunRecord> = book
            .runs
            .iter()
            .map(|detail| detail.run.clone())
            .filter(|run| filter.states.is_empty() || filter.states.contains(&run.state))
            .filter(|run| filter.skill_id.as_ref().is_none_or(|skill| run.skill_id == *skill))
            .filter(|run| query.matches(run, NOW_MS))
            .filter(is_match)
            .collect();
        let waits =
            |run: &RunRecord| matches!(run.state, RunState::WaitingForHuman | RunState::WaitingForSignal);
        runs.sort_by_key(|run| (!waits(run), if waits(run) { run.since_ms } else { -run.created_ms }));
        let from: usize = filter.cursor.as_deref().map_or(0, |cursor| cursor.parse().unwrap());
        let limit = if filter.limit == 0 { 100 } else { filter.limit };
        let next = (runs.len() > from + limit).then(|| (from + limit).to_string());
        let runs = runs.into_iter().skip(from).take(limit).map(listed).collect();
        Ok(RunPage { runs, next, counts })
    }

    async fn run(&self, run: &str) -> Result<RunDetail, Error> {
        let book = self.book();
        Ok(book.runs[book.position(run)?].clone())
    }

    async fn command_as(
        &self,
        run: &str,
        command: RunCommand,
        _principal: Option<Principal>,
    ) -> Result<CommandResult, Error> {
        self.refused()?;
        self.commands.lock().unwrap().push((run.to_owned(), command.clone()));
        let mut book = self.book();
        let at = book.position(run)?;
        if let RunCommand::Assign { to, note, assignee, by } = &command {
            let detail = &mut book.runs[at];
            let assigned = detail.run.options.assigned.clone();
            if assignee.as_deref().is_some_and(|expected| {
                assigned.as_ref().map_or("", |assigned| assigned.to.as_str()) != expected
            }) {
                let run = detail.run.id.clone();
                return Err(StoreError::AssignmentConflict { run, assigned }.into());
            }
            detail.run.options.assigned = to.clone().map(|to| Assignment {
                to,
                by: by.clone().unwrap_or_default(),
                note: note.clone(),
                at_ms: NOW_MS,
            });
            let run = detail.run.clone();
            let (kind, data) = event_of(&command);
            book.append(&run.id, kind, data);
            drop(book);
            self.news.notify_waiters();
            return Ok(CommandResult {
                run,
                note: "assigned".to_owned(),
                worker_alive: true,
                repeated: false,
                mode: None,
            });
        }
        let before = &book.runs[at].run;
        let next = transition(&run_snapshot(before), &state_command(&command)).map_err(Error::from)?;
        let id = before.id.clone();
        let note = note(&command, &next, &book.runs[at].decisions);
        let (kind, data) = event_of(&command);
        let answered = if let Transition::NewRun { paused } = next {
            let new = book.new_id();
            let mut branch = book.runs[at].clone();
            let head = match &command {
                RunCommand::Replay { checkpoint, .. } | RunCommand::Fork { checkpoint, .. } => {
                    checkpoint.unwrap_or(branch.run.head)
                }
                _ => branch.run.head,
            };
            branch.run.source = Some((id.clone(), head));
            branch.run.id = RunId(new);
            (branch.run.state, branch.run.paused, branch.run.gate, branch.sheet) =
                (RunState::Pending, paused, None, None);
            (branch.events, branch.descendants) = (Vec::new(), Vec::new());
            branch.run.allowed = allowed(&run_snapshot(&branch.run));
            let run = branch.run.clone();
            book.runs[at].descendants.push(run.id.clone());
            book.runs.push(branch);
            let from = if paused { "run.forked_from" } else { "run.replayed_from" };
            book.append(&run.id, from, json!({ "run": id, "checkpoint": head }));
            run
        } else {
            moved(&mut book.runs[at], next.clone(), &command);
            book.runs[at].run.clone()
        };
        if next != Transition::Unchanged {
            book.append(&id, kind, data);
        }
        drop(book);
        self.news.notify_waiters();
        Ok(CommandResult {
            run: answered,
            note,
            worker_alive: true,
            repeated: next == Transition::Unchanged,
            mode: None,
        })
    }

    async fn run_events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        let id = run
            .map(|run| self.book().position(run))
            .transpose()?
            .map(|at| self.book().runs[at].run.id.clone());
        let fits = |event: &&RunEvent| match &id {
            Some(id) => event.run == *id && event.number > after,
            None => event.global > after,
        };
        let found =
            || -> Vec<RunEvent> { self.book().events.iter().filter(fits).take(limit).cloned().collect() };
        let notified = self.news.notified();
        let events = found();
        if !events.is_empty() || wait_ms == 0 {
            return Ok(events);
        }
        tokio::time::timeout(Duration::from_millis(wait_ms), notified).await.ok();
        Ok(found())
    }

    async fn newest_event(&self) -> Result<u64, Error> {
        self.unreadable.lock().unwrap().clone().map_or(Ok(()), Err)?;
        Ok(self.book().events.len() as u64)
    }

    async fn event_log(&self) -> Result<String, Error> {
        Ok("fake".to_owned())
    }

    async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error> {
        if let Some(preview) = self.book().preview.clone() {
            return Ok(preview);
        }
        let is_match = |check, note: String| AttachCheckResult { check, passed: Some(true), note };
        Ok(AttachPreview {
            checks: vec![
                is_match(AttachCheck::Exists, format!("{} 1.2.0", request.skill)),
                is_match(AttachCheck::Invocation, "attach".to_owned()),
                is_match(AttachCheck::TargetType, format!("{} is among its targets", request.target_type)),
                is_match(AttachCheck::Target, "found".to_owned()),
            ],
            reason: None,
            target_label: Some(format!("{} {}", request.target_type, request.target_ref)),
            content: Some(json!({ "rows": [{ "item": "paper", "price": 12.5 }] })),
            content_bytes: Some(44),
            input_problems: Vec::new(),
            effect_mode: Some(EffectMode::ReadOnly),
            may_do: vec!["reads the target and changes nothing".to_owned()],
            cli: format!(
                "skills attach {} --target-type {} --target-ref {}",
                request.skill, request.target_type, request.target_ref
            ),
            curl: format!("curl -X POST http://127.0.0.1:8080/v1/skills/{}/attach", request.skill),
        })
    }

    async fn attach(&self, request: AttachRequest) -> Result<Attached, Error> {
        self.attachments.lock().unwrap().push(request.clone());
        self.refused()?;
        let target_type = request.target_type.parse().map_err(|_| {
            Error::new(Code::AttachInvalid, format!("no target type {}", request.target_type))
        })?;
        let id = self.book().new_id();
        let mut detail = run_samples::detail(&id, &request.skill, RunState::Completed);
        detail.run.target =
            Some(json!({ "type": request.target_type, "ref": request.target_ref, "content": null }));
        let execution = detail.run.clone();
        self.add(detail);
        Ok(Attached {
            skill_id: SkillId::new(&request.skill),
            target_type,
            target_ref: request.target_ref,
            execution,
            control: None,
            attached_at: "2026-07-14T09:30:00Z".to_owned(),
        })
    }

    async fn target_choices(
        &self,
        target_type: AttachTarget,
        text: &str,
        limit: usize,
        _sessions: &SessionAccess,
        _: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error> {
        let book = self.book();
        let of_type = book.choices.iter().filter(|(kind, _)| *kind == target_type).map(|(_, choice)| choice);
        let fits = |choice: &&TargetChoice| choice.target_ref.contains(text) || choice.label.contains(text);
        Ok(of_type.filter(fits).take(limit).cloned().collect())
    }

    async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error> {
        Err(Error::new(Code::NotImplemented, format!("{} is not stored in these tests", artifact.name)))
    }

    async fn contract(&self, skill: &str) -> Result<ContractView, Error> {
        let book = self.book();
        let found = book.contracts.iter().find(|view| view.skill_id.as_str() == skill).cloned();
        found.ok_or_else(|| Error::no_contract(&SkillId::new(skill)))
    }

    async fn explain_capability(&self, capability: &str) -> Result<CapabilityExplanation, Error> {
        let book = self.book();
        let found = book.capabilities.iter().find(|c| c.explanation.capability == capability).cloned();
        found.ok_or_else(|| Error::new(Code::NotFound, format!("capability `{capability}` not found")))
    }

    async fn capabilities(&self) -> Result<Vec<String>, Error> {
        Ok(self.book().capabilities.iter().map(|c| c.explanation.capability.clone()).collect())
    }

    async fn activate(
        &self,
        capability: &str,
        binding: Option<&str>,
        _by: Option<String>,
    ) -> Result<CapabilityExplanation, Error> {
        let mut found = self.explain_capability(capability).await?;
        if let Some(binding) = binding {
            if !found.explanation.bindings.iter().any(|choice| choice.binding == binding) {
                return Err(Error::new(
                    Code::InvalidRequest,
                    format!("{binding} does not carry out {capability}"),
                ));
            }
            found.explanation.chosen = Some(binding.to_owned());
        }
        let mut book = self.book();
        if let Some(existing) = book.capabilities.iter_mut().find(|c| c.explanation.capability == capability)
        {
            *existing = found.clone();
        }
        Ok(found)
    }
}

#[async_trait]
impl OperatorClient for FakeRuns {
    async fn board(&self, hours: u32) -> Result<Board, Error> {
        let page = self.runs(RunFilter { limit: 10_000, ..RunFilter::default() }).await?;
        let workers = self.workers.lock().unwrap().clone();
        Ok(Board::of(&page.runs, page.counts, workers, (NOW_MS - i64::from(hours) * 3_600_000, NOW_MS)))
    }

    async fn workers(&self) -> Result<WorkerList, Error> {
        Ok(WorkerList { workers: self.workers.lock().unwrap().clone() })
    }

    async fn drain(&self, worker: &str, drain: bool, _by: Option<String>) -> Result<WorkerList, Error> {
        for known in self.workers.lock().unwrap().iter_mut().filter(|known| known.worker == worker) {
            known.state =
                if drain { skills_api::WorkerState::Draining } else { skills_api::WorkerState::Live };
        }
        self.workers().await
    }

    async fn facets(&self, filter: &str) -> Result<FacetList, Error> {
        let filter = RunFilter { r#where: Some(filter.to_owned()), limit: 10_000, ..RunFilter::default() };
        Ok(facets(&self.runs(filter).await?.runs, false, &[]))
    }

    async fn views(&self) -> Result<ViewList, Error> {
        Ok(ViewList { views: self.views.lock().unwrap().clone() })
    }

    async fn save_view(
        &self,
        name: &str,
        filter: Option<&str>,
        by: Option<String>,
    ) -> Result<ViewList, Error> {
        {
            let mut views = self.views.lock().unwrap();
            views.retain(|view| view.name != name);
            views.extend(filter.map(|filter| SavedView {
                name: name.to_owned(),
                r#where: filter.to_owned(),
                by,
            }));
        }
        self.views().await
    }

    async fn run_log(&self, request: LogRequest) -> Result<LogPage, Error> {
        let detail = self.run(&request.run).await?;
        let line = |event: &RunEvent| {
            let text = event.event.data.get("text")?.as_str()?.to_owned();
            let step = event.event.step.clone().unwrap_or_default();
            Some(LogLine {
                number: event.number,
                at_ms: event.at_ms,
                step,
                stream: "stdout".to_owned(),
                text,
            })
        };
        Ok(LogPage { lines: detail.events.iter().filter_map(line).collect(), next: 0, open: false })
    }
}
