//! Operations on runs of a remote service.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{Arguments, LONG_CALL_TIMEOUT, to_arguments};
use super::event_buffer::Backlog;
use super::{Inner, Remote};
use crate::local_files::is_path;
use crate::operations::arguments::{
    ActivationArguments, AllEventsArguments, CapabilityArguments, RunArguments, RunCheckpointsArguments,
    RunEventsArguments, SkillArguments, TargetsArguments,
};
use crate::operations::{CapabilityList, CheckpointList, EventList, NewestEvent, Principal, TargetList};
use crate::{
    AttachPreview, AttachRequest, Attached, CapabilityExplanation, CapabilityRequest, Code, CommandResult,
    ContractView, Error, LARGEST_PAGE, LaunchRequest, Launched, LocalFiles, NewArtifact, RunClient,
    RunCommand, RunDetail, SessionAccess, StoredArtifact, TargetChoice,
};
use skills_skill::AttachTarget;
use skills_store::{RunEvent, RunFilter, RunPage, RunRecord};

/// Maximum time that a single request for events waits at the service, in milliseconds.
const MAX_WAIT_MS: u64 = 30_000;
/// Pause before waiting again for a run after the service shut down.
const PAUSE: Duration = Duration::from_millis(250);

#[async_trait]
impl RunClient for Remote {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error> {
        self.launches.launched(request).await
    }

    async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        self.launches.capability_launched(request).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        // A service rejects a limit of zero, and one above the maximum.
        let limit = (filter.limit > 0).then(|| filter.limit.min(LARGEST_PAGE));
        let mut fields = to_arguments(&filter)?;
        fields.insert("limit".to_owned(), json!(limit));
        if limit.is_none() {
            fields.remove("limit");
        }
        self.inner.ask("run.list", fields).await
    }

    async fn run(&self, run: &str) -> Result<RunDetail, Error> {
        self.commands.detail(run).await
    }

    async fn run_checkpoints(
        &self,
        run: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<CheckpointList, Error> {
        let fields = to_arguments(&RunCheckpointsArguments { run_id: run.to_owned(), before, limit })?;
        self.inner.ask("run.checkpoints", fields).await
    }

    /// The service takes the principal from the key of this client.
    async fn command_as(
        &self,
        run: &str,
        command: RunCommand,
        _principal: Option<Principal>,
    ) -> Result<CommandResult, Error> {
        self.commands.send(run, command).await
    }

    async fn wait_for_completion(&self, run: &str, leave: CancellationToken) -> Result<RunRecord, Error> {
        loop {
            tokio::select! {
                completed = self.inner.completion(run) => if let Some(completed) = completed? {
                    return Ok(completed);
                },
                () = leave.cancelled() => return Ok(self.commands.detail(run).await?.run),
            }
        }
    }

    async fn run_events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        let Some(run) = run else {
            if wait_ms == 0 {
                let fields = to_arguments(&AllEventsArguments { after, limit, wait_ms: 0 })?;
                return Ok(self.inner.ask::<EventList>("event.list", fields).await?.events);
            }
            self.follow();
            return self.inner.followed(after, limit, Duration::from_millis(wait_ms)).await;
        };
        self.inner.events_of(run, after, limit, wait_ms).await
    }

    async fn newest_event(&self) -> Result<u64, Error> {
        Ok(self.inner.ask::<NewestEvent>("event.newest", Arguments::new()).await?.newest)
    }

    async fn event_log(&self) -> Result<String, Error> {
        Ok(self.inner.ask::<NewestEvent>("event.newest", Arguments::new()).await?.log)
    }

    async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error> {
        self.launches.attachment_previewed(request).await
    }

    async fn attach(&self, request: AttachRequest) -> Result<Attached, Error> {
        self.launches.attached(request).await
    }

    async fn target_choices(
        &self,
        target_type: AttachTarget,
        text: &str,
        limit: usize,
        _sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error> {
        let fields = to_arguments(&TargetsArguments { target_type, text: text.to_owned(), limit })?;
        let mut choices = self.inner.ask::<TargetList>("target.list", fields).await?.targets;
        if let Some(local) = local_files.filter(|_| target_type == AttachTarget::Artifact).cloned() {
            // A path would name a file of this machine, described by the service.
            choices.retain(|choice| !is_path(&choice.target_ref));
            // Local files of the caller: attaching uploads them.
            let text = text.to_lowercase();
            let own = crate::work::spawn_blocking(move || local.choices()).await.unwrap_or_default();
            choices.extend(own.into_iter().filter(|file| file.target_ref.to_lowercase().contains(&text)));
            choices.truncate(limit);
        }
        Ok(choices)
    }

    async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error> {
        self.launches.artifact_stored(artifact).await
    }

    async fn contract(&self, skill: &str) -> Result<ContractView, Error> {
        self.inner.ask("skill.contract", to_arguments(&SkillArguments { skill_id: skill.to_owned() })?).await
    }

    async fn explain_capability(&self, capability: &str) -> Result<CapabilityExplanation, Error> {
        self.inner
            .ask(
                "capability.explain",
                to_arguments(&CapabilityArguments { capability_id: capability.to_owned() })?,
            )
            .await
    }

    async fn capabilities(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.ask::<CapabilityList>("capability.list", Arguments::new()).await?.capabilities)
    }

    async fn activate(
        &self,
        capability: &str,
        binding: Option<&str>,
        _by: Option<String>,
    ) -> Result<CapabilityExplanation, Error> {
        let fields = to_arguments(&ActivationArguments {
            capability_id: capability.to_owned(),
            binding: binding.map(str::to_owned),
        })?;
        self.inner.execute("capability.activate", fields).await
    }
}

impl Inner {
    /// Returns events of all runs from the event stream, through any outage.
    async fn followed(&self, mut after: u64, limit: usize, wait: Duration) -> Result<Vec<RunEvent>, Error> {
        let end = Instant::now() + wait;
        let mut changes = self.event_buffer.changes();
        loop {
            changes.mark_unchanged();
            match self.event_buffer.behind(after, limit) {
                Backlog::Events(events) => return Ok(events),
                Backlog::Nothing => {
                    if tokio::time::timeout_at(end, changes.changed()).await.is_err() {
                        return Ok(Vec::new());
                    }
                }
                Backlog::Elsewhere(from) => {
                    let reconnects = self.link.reconnect_count();
                    let fields = to_arguments(&AllEventsArguments { after, limit, wait_ms: 0 })?;
                    let reading = self.wire.reading();
                    match self.once::<EventList>("event.list", fields, reading).await {
                        // Those events have been purged.
                        Ok(list) if list.events.is_empty() => after = from,
                        Ok(list) => return Ok(list.events),
                        Err(trouble) => {
                            self.link.recover(&self.wire, reconnects, trouble).await?;
                        }
                    }
                }
                Backlog::OfAnotherLog => {
                    let message = format!(
                        "{} has a different store now: event {after} was from the previous one; start over",
                        self.wire.address()
                    );
                    return Err(Error::new(Code::InvalidRequest, message));
                }
            }
        }
    }

    /// Returns events of one run, and waits for the first one through any outage.
    async fn events_of(
        &self,
        run: &str,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        let wait_ms = wait_ms.min(MAX_WAIT_MS);
        let fields = to_arguments(&RunEventsArguments { run_id: run.to_owned(), after, limit, wait_ms })?;
        if wait_ms == 0 {
            return Ok(self.ask::<EventList>("run.events", fields).await?.events);
        }
        let patience = self.wire.reading() + Duration::from_millis(wait_ms);
        loop {
            let reconnects = self.link.reconnect_count();
            let trouble = match self.once::<EventList>("run.events", fields.clone(), patience).await {
                Ok(list) => return Ok(list.events),
                Err(trouble) => trouble,
            };
            self.link.recover(&self.wire, reconnects, trouble).await?;
        }
    }

    /// Waits for the end of a run; `None` if it continues, or the connection was lost and is back.
    async fn completion(&self, run: &str) -> Result<Option<RunRecord>, Error> {
        let reconnects = self.link.reconnect_count();
        let fields = to_arguments(&RunArguments { run_id: run.to_owned() })?;
        match self.once::<RunRecord>("run.settle", fields, LONG_CALL_TIMEOUT).await {
            // A service that shuts down releases its runs; another one continues them.
            Ok(completed) if completed.is_executable() => {
                tokio::time::sleep(PAUSE).await;
                Ok(None)
            }
            Ok(completed) => Ok(Some(completed)),
            Err(trouble) => self.link.recover(&self.wire, reconnects, trouble).await.map(|()| None),
        }
    }
}
