//! Hands every operation on runs on to a part of a client.

/// `RunClient` for a client whose part of this name has the runs.
macro_rules! delegate_runs {
    ($client:ty, $part:tt) => {
        #[async_trait::async_trait]
        impl skills_api::RunClient for $client {
            async fn launch(
                &self,
                request: skills_api::LaunchRequest,
            ) -> Result<skills_api::Launched, skills_api::Error> {
                self.$part.launch(request).await
            }

            async fn execute_capability(
                &self,
                request: skills_api::CapabilityRequest,
            ) -> Result<skills_api::Launched, skills_api::Error> {
                self.$part.execute_capability(request).await
            }

            async fn wait_for_completion(
                &self,
                run: &str,
                leave: tokio_util::sync::CancellationToken,
            ) -> Result<skills_store::RunRecord, skills_api::Error> {
                self.$part.wait_for_completion(run, leave).await
            }

            async fn runs(
                &self,
                filter: skills_store::RunFilter,
            ) -> Result<skills_store::RunPage, skills_api::Error> {
                self.$part.runs(filter).await
            }

            async fn run(&self, run: &str) -> Result<skills_api::RunDetail, skills_api::Error> {
                self.$part.run(run).await
            }

            async fn run_checkpoints(
                &self,
                run: &str,
                before: Option<u64>,
                limit: usize,
            ) -> Result<skills_api::operations::CheckpointList, skills_api::Error> {
                self.$part.run_checkpoints(run, before, limit).await
            }

            async fn command_as(
                &self,
                run: &str,
                command: skills_api::RunCommand,
                principal: Option<skills_api::operations::Principal>,
            ) -> Result<skills_api::CommandResult, skills_api::Error> {
                self.$part.command_as(run, command, principal).await
            }

            async fn record_expired_waits(&self) -> Result<(), skills_api::Error> {
                self.$part.record_expired_waits().await
            }

            async fn launch_until(
                &self,
                request: skills_api::LaunchRequest,
                leave: tokio_util::sync::CancellationToken,
            ) -> Result<skills_api::Launched, skills_api::Error> {
                self.$part.launch_until(request, leave).await
            }

            async fn attach_until(
                &self,
                request: skills_api::AttachRequest,
                leave: tokio_util::sync::CancellationToken,
                observer: skills_api::operations::RunObserver,
            ) -> Result<skills_api::Attached, skills_api::Error> {
                self.$part.attach_until(request, leave, observer).await
            }

            async fn run_events(
                &self,
                run: Option<&str>,
                after: u64,
                limit: usize,
                wait_ms: u64,
            ) -> Result<Vec<skills_store::RunEvent>, skills_api::Error> {
                self.$part.run_events(run, after, limit, wait_ms).await
            }

            async fn newest_event(&self) -> Result<u64, skills_api::Error> {
                self.$part.newest_event().await
            }

            async fn event_log(&self) -> Result<String, skills_api::Error> {
                self.$part.event_log().await
            }

            async fn attach_preview(
                &self,
                request: skills_api::AttachRequest,
            ) -> Result<skills_api::AttachPreview, skills_api::Error> {
                self.$part.attach_preview(request).await
            }

            async fn attach(
                &self,
                request: skills_api::AttachRequest,
            ) -> Result<skills_api::Attached, skills_api::Error> {
                self.$part.attach(request).await
            }

            async fn target_choices(
                &self,
                target_type: skills_skill::AttachTarget,
                text: &str,
                limit: usize,
                sessions: &skills_api::SessionAccess,
                local_files: Option<&skills_api::LocalFiles>,
            ) -> Result<Vec<skills_api::TargetChoice>, skills_api::Error> {
                self.$part.target_choices(target_type, text, limit, sessions, local_files).await
            }

            async fn store_artifact(
                &self,
                artifact: skills_api::NewArtifact,
            ) -> Result<skills_api::StoredArtifact, skills_api::Error> {
                self.$part.store_artifact(artifact).await
            }

            async fn contract(&self, skill: &str) -> Result<skills_api::ContractView, skills_api::Error> {
                self.$part.contract(skill).await
            }

            async fn explain_capability(
                &self,
                capability: &str,
            ) -> Result<skills_api::CapabilityExplanation, skills_api::Error> {
                self.$part.explain_capability(capability).await
            }

            async fn capabilities(&self) -> Result<Vec<String>, skills_api::Error> {
                self.$part.capabilities().await
            }

            async fn activate(
                &self,
                capability: &str,
                binding: Option<&str>,
                by: Option<String>,
            ) -> Result<skills_api::CapabilityExplanation, skills_api::Error> {
                self.$part.activate(capability, binding, by).await
            }
        }

        #[async_trait::async_trait]
        impl skills_api::OperatorClient for $client {
            async fn board(&self, hours: u32) -> Result<skills_api::Board, skills_api::Error> {
                self.$part.board(hours).await
            }

            async fn workers(&self) -> Result<skills_api::WorkerList, skills_api::Error> {
                self.$part.workers().await
            }

            async fn drain(
                &self,
                worker: &str,
                drain: bool,
                by: Option<String>,
            ) -> Result<skills_api::WorkerList, skills_api::Error> {
                self.$part.drain(worker, drain, by).await
            }

            async fn facets(&self, filter: &str) -> Result<skills_api::FacetList, skills_api::Error> {
                self.$part.facets(filter).await
            }

            async fn views(&self) -> Result<skills_api::ViewList, skills_api::Error> {
                self.$part.views().await
            }

            async fn save_view(
                &self,
                name: &str,
                filter: Option<&str>,
                by: Option<String>,
            ) -> Result<skills_api::ViewList, skills_api::Error> {
                self.$part.save_view(name, filter, by).await
            }

            async fn run_log(
                &self,
                request: skills_api::LogRequest,
            ) -> Result<skills_api::LogPage, skills_api::Error> {
                self.$part.run_log(request).await
            }
        }
    };
}

pub(crate) use delegate_runs;
