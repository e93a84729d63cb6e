//! The real core with a fixed clock: every response takes the same time.

use std::sync::Arc;

use async_trait::async_trait;
use skills_api::{
    Client, ClientView, Connection, Diagnostics, Error, Event, FileContent, GovernanceFilter, GovernanceList,
    LevelTokens, ListFilter, Local, MetricsReport, SkillDetail, SkillList,
};
use skills_discovery::{Answer, BodyLine, Request};
use skills_registry::Catalog;
use skills_skill::SkillId;
use tokio::sync::broadcast;

use super::delegate_runs::delegate_runs;

pub struct FixedClockClient(pub Local);

delegate_runs!(FixedClockClient, 0);

#[async_trait]
impl Client for FixedClockClient {
    fn connection(&self) -> Connection {
        self.0.connection()
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events()
    }

    async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.0.catalog().await
    }

    async fn discover(&self, request: Request) -> Result<Answer, Error> {
        let mut answer = self.0.discover(request).await?;
        answer.took_us = 600;
        answer.matchers.iter_mut().for_each(|link| link.took_us = 100);
        Ok(answer)
    }

    async fn list(&self, filter: ListFilter) -> Result<SkillList, Error> {
        self.0.list(filter).await
    }

    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error> {
        self.0.describe(skill).await
    }

    async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error> {
        self.0.read_file(skill, path).await
    }

    async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error> {
        self.0.levels(skills).await
    }

    async fn body_lines(&self, skill: &str, intent: &str, limit: usize) -> Result<Vec<BodyLine>, Error> {
        self.0.body_lines(skill, intent, limit).await
    }

    async fn client_view(&self, client: &str) -> Result<ClientView, Error> {
        self.0.client_view(client).await
    }

    async fn draft(&self, request: skills_api::DraftRequest) -> Result<skills_api::DraftReport, Error> {
        self.0.draft(request).await
    }

    async fn golden_report(
        &self,
        request: skills_api::GoldenRequest,
    ) -> Result<skills_api::GoldenReport, Error> {
        Ok(skills_api::GoldenReport { took_us: 4_000, ..self.0.golden_report(request).await? })
    }

    async fn golden_explain(
        &self,
        request: skills_api::GoldenExplainRequest,
    ) -> Result<skills_api::GoldenExplanation, Error> {
        self.0.golden_explain(request).await
    }

    async fn budget_fit(
        &self,
        request: skills_api::BudgetFitRequest,
    ) -> Result<skills_api::BudgetFit, Error> {
        self.0.budget_fit(request).await
    }

    async fn propose(&self, request: skills_api::ProposalRequest) -> Result<skills_api::ProposalView, Error> {
        self.0.propose(request).await
    }

    async fn proposals(&self, filter: skills_api::ProposalFilter) -> Result<skills_api::ProposalList, Error> {
        self.0.proposals(filter).await
    }

    async fn proposal(&self, proposal: &str) -> Result<skills_api::ProposalView, Error> {
        self.0.proposal(proposal).await
    }

    async fn act_on_proposal(
        &self,
        proposal: &str,
        action: skills_api::ProposalAction,
        by: skills_api::ProposalActionOptions,
    ) -> Result<skills_api::ProposalActionResult, Error> {
        self.0.act_on_proposal(proposal, action, by).await
    }

    async fn collisions(
        &self,
        filter: skills_api::CollisionFilter,
    ) -> Result<skills_api::CollisionReport, Error> {
        self.0.collisions(filter).await
    }

    async fn rivals(&self, skill: &str) -> Result<skills_api::SkillRivals, Error> {
        self.0.rivals(skill).await
    }

    async fn compare_skills(&self, first: &str, second: &str) -> Result<skills_discovery::PairReport, Error> {
        self.0.compare_skills(first, second).await
    }

    async fn lint(&self, filter: skills_api::LintFilter) -> Result<skills_api::LintReport, Error> {
        self.0.lint(filter).await
    }

    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error> {
        self.0.client_profiles().await
    }

    async fn diagnostics(&self) -> Result<Diagnostics, Error> {
        self.0.diagnostics().await
    }

    async fn load_state(&self) -> Result<skills_api::LoadState, Error> {
        self.0.load_state().await
    }

    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error> {
        self.0.reset_diagnostics().await
    }

    async fn metrics(&self) -> Result<MetricsReport, Error> {
        self.0.metrics().await
    }

    async fn metrics_text(&self) -> Result<String, Error> {
        self.0.metrics_text().await
    }

    async fn governance(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error> {
        self.0.governance(filter).await
    }

    async fn rescan(&self) -> Result<(), Error> {
        self.0.rescan().await
    }
}
