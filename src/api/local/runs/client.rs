//! The operations on runs, each counted.

use std::time::Instant;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::super::Local;
use super::find;
use super::lease_holder::with_holder;
use crate::operations::Principal;
use crate::{
    AttachPreview, AttachRequest, Attached, CapabilityExplanation, CapabilityRequest, CommandResult,
    ContractView, Error, LaunchRequest, Launched, LocalFiles, NewArtifact, RunClient, RunCommand, RunDetail,
    SessionAccess, StoredArtifact, TargetChoice,
};
use skills_skill::AttachTarget;
use skills_store::{RunEvent, RunFilter, RunPage, RunRecord};

/// Maximum number of events per response.
const MAX_EVENTS: usize = 10_000;
/// Maximum time to wait for an event, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;

#[async_trait]
impl RunClient for Local {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error> {
        let began = Instant::now();
        let wait = request.options.wait;
        let mut launched = self.runs.launches.launch(request).await;
        if let Ok(launched) = &mut launched
            && wait
        {
            launched.run =
                self.runs.workers.wait_for_completion(&launched.run.id.0, &CancellationToken::new()).await?;
        }
        let launched = launched.map(|launched| Launched { run: with_holder(launched.run), ..launched });
        self.operations.counted("launch", began, launched)
    }

    async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        let began = Instant::now();
        let wait = request.options.wait;
        let launched = async {
            let mut launched = self.runs.launches.execute_capability(request).await?;
            if wait {
                launched.run = self
                    .runs
                    .workers
                    .wait_for_completion(&launched.run.id.0, &CancellationToken::new())
                    .await?;
            }
            Ok(launched)
        };
        let launched = launched.await;
        self.operations.counted("execute_capability", began, launched)
    }

    async fn record_expired_waits(&self) -> Result<(), Error> {
        let runtime = self.runs.store.runtime().await?;
        Ok(skills_runs::record_expired_waits(&*runtime.store).await?)
    }

    async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        let began = Instant::now();
        let page = async {
            let runtime = self.runs.store.runtime().await?;
            let page = runtime.store.runs(filter).await?;
            Ok(RunPage { runs: page.runs.into_iter().map(with_holder).collect(), ..page })
        };
        let page = page.await;
        self.operations.counted("runs", began, page)
    }

    async fn run(&self, run: &str) -> Result<RunDetail, Error> {
        let began = Instant::now();
        let detail = self.runs.details.detail(run).await;
        let detail = detail.map(|detail| RunDetail { run: with_holder(detail.run), ..detail });
        self.operations.counted("run", began, detail)
    }

    async fn order(&self, run: &str, order: RunCommand) -> Result<CommandResult, Error> {
        self.order_as(run, order, None).await
    }

    async fn order_as(
        &self,
        run: &str,
        order: RunCommand,
        principal: Option<Principal>,
    ) -> Result<CommandResult, Error> {
        let began = Instant::now();
        let ordered = self.runs.commands.order(run, order, principal.as_ref()).await;
        let ordered = ordered.map(|ordered| CommandResult { run: with_holder(ordered.run), ..ordered });
        self.operations.counted("order", began, ordered)
    }

    async fn wait_for_completion(&self, run: &str, leave: CancellationToken) -> Result<RunRecord, Error> {
        let began = Instant::now();
        let completed = self.runs.workers.wait_for_completion(run, &leave).await.map(with_holder);
        self.operations.counted("settle", began, completed)
    }

    async fn run_events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        let began = Instant::now();
        let events = async {
            let runtime = self.runs.store.runtime().await?;
            let run = match run {
                Some(wanted) => Some(find::listed(&*runtime.store, wanted).await?.id),
                None => None,
            };
            let limit = limit.clamp(1, MAX_EVENTS);
            let deadline = Instant::now() + std::time::Duration::from_millis(wait_ms.min(MAX_WAIT_MS));
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
        };
        let events = events.await;
        self.operations.counted("run_events", began, events)
    }

    async fn newest_event(&self) -> Result<u64, Error> {
        Ok(self.runs.store.runtime().await?.store.newest_event().await?)
    }

    async fn event_log(&self) -> Result<String, Error> {
        Ok(self.runs.store.runtime().await?.store.identity())
    }

    async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error> {
        let began = Instant::now();
        let preview = self.runs.attachments.attach_preview(request).await;
        self.operations.counted("attach_preview", began, preview)
    }

    async fn attach(&self, request: AttachRequest) -> Result<Attached, Error> {
        self.attach_until(request, CancellationToken::new()).await
    }

    async fn attach_until(
        &self,
        request: AttachRequest,
        leave: CancellationToken,
    ) -> Result<Attached, Error> {
        let began = Instant::now();
        let attached = self.runs.attachments.attach(request, &leave).await;
        let attached =
            attached.map(|attached| Attached { execution: with_holder(attached.execution), ..attached });
        self.operations.counted("attach", began, attached)
    }

    async fn target_choices(
        &self,
        target_type: AttachTarget,
        text: &str,
        limit: usize,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error> {
        let began = Instant::now();
        let choices = self.runs.targets.target_choices(target_type, text, limit, sessions, local_files).await;
        self.operations.counted("target_choices", began, choices)
    }

    async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error> {
        let began = Instant::now();
        let stored = self.runs.uploads.store_artifact(artifact).await;
        self.operations.counted("store_artifact", began, stored)
    }

    async fn contract(&self, skill: &str) -> Result<ContractView, Error> {
        let began = Instant::now();
        let view = self.runs.contracts.contract_view(skill).await;
        self.operations.counted("contract", began, view)
    }

    async fn explain_capability(&self, capability: &str) -> Result<CapabilityExplanation, Error> {
        let began = Instant::now();
        let explained = self.runs.services.explain(capability).await;
        self.operations.counted("explain_capability", began, explained)
    }

    async fn capabilities(&self) -> Result<Vec<String>, Error> {
        let began = Instant::now();
        let ids = self.runs.services.capability_ids().await;
        self.operations.counted("capabilities", began, ids)
    }

    async fn activate(
        &self,
        capability: &str,
        binding: Option<&str>,
        by: Option<String>,
    ) -> Result<CapabilityExplanation, Error> {
        let began = Instant::now();
        let explained = self.runs.services.activate(capability, binding, by).await;
        self.operations.counted("activate", began, explained)
    }
}
