//! Hands every operation on runs on to a part of a client.

/// `RunClient` for a client whose part of this name has the runs.
macro_rules! hand_runs_on {
    ($client:ty, $part:tt) => {
        #[async_trait::async_trait]
        impl skill_workbench::gateway::RunClient for $client {
            async fn launch(
                &self,
                request: skill_workbench::gateway::LaunchRequest,
            ) -> Result<skill_workbench::gateway::Launched, skill_workbench::gateway::Error> {
                self.$part.launch(request).await
            }

            async fn execute_capability(
                &self,
                request: skill_workbench::gateway::CapabilityRequest,
            ) -> Result<skill_workbench::gateway::Launched, skill_workbench::gateway::Error> {
                self.$part.execute_capability(request).await
            }

            async fn settle(
                &self,
                run: &str,
                leave: tokio_util::sync::CancellationToken,
            ) -> Result<skill_workbench::store::RunRecord, skill_workbench::gateway::Error> {
                self.$part.settle(run, leave).await
            }

            async fn runs(
                &self,
                filter: skill_workbench::store::RunFilter,
            ) -> Result<skill_workbench::store::RunPage, skill_workbench::gateway::Error> {
                self.$part.runs(filter).await
            }

            async fn run(
                &self,
                run: &str,
            ) -> Result<skill_workbench::gateway::RunDetail, skill_workbench::gateway::Error> {
                self.$part.run(run).await
            }

            async fn order(
                &self,
                run: &str,
                order: skill_workbench::gateway::RunOrder,
            ) -> Result<skill_workbench::gateway::Ordered, skill_workbench::gateway::Error> {
                self.$part.order(run, order).await
            }

            fn take_back(&self, run: &str) -> Result<(), skill_workbench::gateway::Error> {
                self.$part.take_back(run)
            }

            async fn run_events(
                &self,
                run: Option<&str>,
                after: u64,
                limit: usize,
                wait_ms: u64,
            ) -> Result<Vec<skill_workbench::store::RunEvent>, skill_workbench::gateway::Error> {
                self.$part.run_events(run, after, limit, wait_ms).await
            }

            async fn newest_event(&self) -> Result<u64, skill_workbench::gateway::Error> {
                self.$part.newest_event().await
            }

            async fn event_log(&self) -> Result<String, skill_workbench::gateway::Error> {
                self.$part.event_log().await
            }

            async fn attach_preview(
                &self,
                request: skill_workbench::gateway::AttachRequest,
            ) -> Result<skill_workbench::gateway::AttachPreview, skill_workbench::gateway::Error> {
                self.$part.attach_preview(request).await
            }

            async fn attach(
                &self,
                request: skill_workbench::gateway::AttachRequest,
            ) -> Result<skill_workbench::gateway::Attached, skill_workbench::gateway::Error> {
                self.$part.attach(request).await
            }

            async fn target_choices(
                &self,
                target_type: skill_workbench::skill::AttachTarget,
                text: &str,
                limit: usize,
                sessions: &skill_workbench::gateway::SessionAccess,
                local_files: Option<&skill_workbench::gateway::LocalFiles>,
            ) -> Result<Vec<skill_workbench::gateway::TargetChoice>, skill_workbench::gateway::Error> {
                self.$part.target_choices(target_type, text, limit, sessions, local_files).await
            }

            async fn store_artifact(
                &self,
                artifact: skill_workbench::gateway::NewArtifact,
            ) -> Result<skill_workbench::gateway::StoredArtifact, skill_workbench::gateway::Error> {
                self.$part.store_artifact(artifact).await
            }

            async fn contract(
                &self,
                skill: &str,
            ) -> Result<skill_workbench::gateway::ContractView, skill_workbench::gateway::Error> {
                self.$part.contract(skill).await
            }

            async fn explain_capability(
                &self,
                capability: &str,
            ) -> Result<skill_workbench::gateway::CapabilityExplanation, skill_workbench::gateway::Error>
            {
                self.$part.explain_capability(capability).await
            }

            async fn capabilities(&self) -> Result<Vec<String>, skill_workbench::gateway::Error> {
                self.$part.capabilities().await
            }

            async fn activate(
                &self,
                capability: &str,
                binding: Option<&str>,
            ) -> Result<skill_workbench::gateway::CapabilityExplanation, skill_workbench::gateway::Error>
            {
                self.$part.activate(capability, binding).await
            }
        }
    };
}

pub(crate) use hand_runs_on;
