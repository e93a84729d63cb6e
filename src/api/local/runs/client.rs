//! The operations on runs, each counted.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::super::Local;
use super::find;
use super::lease_holder::with_holder;
use crate::operations::{CheckpointList, Principal, RunObserver};
use crate::{
    AttachPreview, AttachRequest, Attached, CapabilityExplanation, CapabilityRequest, CommandResult,
    ContractView, Error, LaunchRequest, Launched, LocalFiles, NewArtifact, RunClient, RunCommand, RunDetail,
    SessionAccess, StoredArtifact, TargetChoice,
};
use skills_skill::AttachTarget;
use skills_store::{RecordedDecision, RunEvent, RunFilter, RunId, RunPage, RunRecord};

#[async_trait]
impl RunClient for Local {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error> {
        self.operations.count("launch", self.runs.launches.launch(request)).await
    }

    async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        self.operations.count("execute_capability", self.runs.launches.execute_capability(request)).await
    }

    async fn record_expired_waits(&self) -> Result<(), Error> {
        let runtime = self.runs.store.runtime().await?;
        Ok(skills_runs::record_expired_waits(&*runtime.store).await?)
    }

    async fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        self.operations.count("runs", self.runs.overview.runs(filter)).await
    }

    async fn run(&self, run: &str) -> Result<RunDetail, Error> {
        self.operations.count("run", self.runs.details.detail(run)).await
    }

    async fn run_checkpoints(
        &self,
        run: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<CheckpointList, Error> {
        self.operations.count("run", self.runs.details.checkpoints(run, before, limit)).await
    }

    async fn command_as(
        &self,
        run: &str,
        command: RunCommand,
        principal: Option<Principal>,
    ) -> Result<CommandResult, Error> {
        self.operations.count("order", self.runs.commands.execute(run, command, principal.as_ref())).await
    }

    async fn wait_for_completion(&self, run: &str, leave: CancellationToken) -> Result<RunRecord, Error> {
        let completed = self.runs.workers.wait_for_completion(run, &leave);
        self.operations.count("settle", async { completed.await.map(with_holder) }).await
    }

    async fn attach_until(
        &self,
        request: AttachRequest,
        leave: CancellationToken,
        observer: RunObserver,
    ) -> Result<Attached, Error> {
        self.operations.count("attach", self.runs.attachments.attach(request, &leave, &observer)).await
    }

    async fn run_events(
        &self,
        run: Option<&str>,
        after: u64,
        limit: usize,
        wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        self.operations.count("run_events", self.runs.overview.events(run, after, limit, wait_ms)).await
    }

    async fn newest_event(&self) -> Result<u64, Error> {
        Ok(self.runs.store.runtime().await?.store.newest_event().await?)
    }

    async fn newest_run_event(&self, run: &str) -> Result<(RunId, u64), Error> {
        let runtime = self.runs.store.runtime().await?;
        let run = find::listed(&*runtime.store, run).await?.id;
        let newest = runtime.store.newest_run_event(&run).await?;
        Ok((run, newest))
    }

    async fn decisions(&self, run: &str) -> Result<Vec<RecordedDecision>, Error> {
        let runtime = self.runs.store.runtime().await?;
        let run = find::listed(&*runtime.store, run).await?.id;
        Ok(runtime.store.decisions(&run).await?)
    }

    async fn event_log(&self) -> Result<String, Error> {
        Ok(self.runs.store.runtime().await?.store.identity())
    }

    async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error> {
        self.operations.count("attach_preview", self.runs.attachments.attach_preview(request)).await
    }

    async fn attach(&self, request: AttachRequest) -> Result<Attached, Error> {
        self.attach_until(request, CancellationToken::new(), RunObserver::default()).await
    }

    async fn target_choices(
        &self,
        target_type: AttachTarget,
        text: &str,
        limit: usize,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error> {
        self.operations
            .count(
                "target_choices",
                self.runs.targets.target_choices(target_type, text, limit, sessions, local_files),
            )
            .await
    }

    async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error> {
        self.operations.count("store_artifact", self.runs.uploads.store_artifact(artifact)).await
    }

    async fn contract(&self, skill: &str) -> Result<ContractView, Error> {
        self.operations.count("contract", self.runs.contracts.contract_view(skill)).await
    }

    async fn explain_capability(&self, capability: &str) -> Result<CapabilityExplanation, Error> {
        self.operations.count("explain_capability", self.runs.services.explain(capability)).await
    }

    async fn capabilities(&self) -> Result<Vec<String>, Error> {
        self.operations.count("capabilities", self.runs.services.capability_ids()).await
    }

    async fn activate(
        &self,
        capability: &str,
        binding: Option<&str>,
        by: Option<String>,
    ) -> Result<CapabilityExplanation, Error> {
        self.operations.count("activate", self.runs.services.activate(capability, binding, by)).await
    }
}
