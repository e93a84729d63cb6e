//! Operations on skills of a remote service.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::Remote;
use super::call::{Arguments, to_arguments};
use super::transport::TransportError;
use crate::operations::arguments::{
    ClientArguments, ProposalApprovalArguments, ProposalArguments, ProposalCommandArguments,
    SeveralSkillsArguments, SkillArguments, SkillFileArguments, SkillLinesArguments, SkillPairArguments,
};
use crate::operations::{ClientProfileList, LevelList, LineList, Liveness, Rescan};
use crate::{
    BudgetFit, BudgetFitRequest, CallerView, Client, ClientView, Code, CollisionFilter, CollisionReport,
    Connection, Diagnostics, DraftReport, DraftRequest, Error, Event, FileContent, GoldenExplainRequest,
    GoldenExplanation, GoldenReport, GoldenRequest, GovernanceFilter, GovernanceList, LevelTokens,
    LintFilter, LintReport, ListFilter, MetricsReport, ProposalAction, ProposalActionOptions,
    ProposalActionResult, ProposalFilter, ProposalList, ProposalRequest, ProposalView, SkillDetail,
    SkillList, SkillRivals,
};
use skills_discovery::{Answer, BodyLine, PairReport, Request};
use skills_registry::Catalog;
use skills_skill::SkillId;

/// Number of skills whose tokens a service counts in one call.
const COUNTED_AT_ONCE: usize = 500;
/// Path of the metrics as text; not in the table, because its result is not JSON.
const METRICS_TEXT: &str = "/v1/metrics/prometheus";

#[async_trait]
impl Client for Remote {
    fn connection(&self) -> Connection {
        Connection::Remote { address: self.address().to_string(), state: self.inner.link.state() }
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        let events = self.inner.link.subscribe();
        self.follow();
        events
    }

    async fn caller(&self) -> Result<CallerView, Error> {
        self.inner.ask("runtime.caller", Arguments::new()).await
    }

    async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.inner.catalog().await
    }

    async fn discover(&self, request: Request) -> Result<Answer, Error> {
        self.inner.ask("skill.discover", to_arguments(&request)?).await
    }

    async fn list(&self, filter: ListFilter) -> Result<SkillList, Error> {
        self.inner.ask("skill.list", to_arguments(&filter)?).await
    }

    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error> {
        self.inner.ask("skill.describe", to_arguments(&SkillArguments { skill_id: skill.to_owned() })?).await
    }

    async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error> {
        self.inner
            .ask(
                "skill.file",
                to_arguments(&SkillFileArguments { skill_id: skill.to_owned(), path: path.to_owned() })?,
            )
            .await
    }

    async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error> {
        let mut levels = Vec::new();
        for some in skills.chunks(COUNTED_AT_ONCE) {
            let counted: LevelList = self
                .inner
                .ask("skill.tokens", to_arguments(&SeveralSkillsArguments { skills: some.to_vec() })?)
                .await?;
            levels.extend(counted.levels);
        }
        Ok(levels)
    }

    async fn body_lines(&self, skill: &str, intent: &str, limit: usize) -> Result<Vec<BodyLine>, Error> {
        let fields = to_arguments(&SkillLinesArguments {
            skill_id: skill.to_owned(),
            intent: intent.to_owned(),
            limit,
        })?;
        Ok(self.inner.ask::<LineList>("skill.lines", fields).await?.lines)
    }

    async fn client_view(&self, client: &str) -> Result<ClientView, Error> {
        self.inner.ask("client.view", to_arguments(&ClientArguments { client: client.to_owned() })?).await
    }

    async fn draft(&self, request: DraftRequest) -> Result<DraftReport, Error> {
        self.inner.ask("skill.draft", to_arguments(&request)?).await
    }

    async fn golden_report(&self, request: GoldenRequest) -> Result<GoldenReport, Error> {
        self.inner.ask("golden.report", to_arguments(&request)?).await
    }

    async fn golden_explain(&self, request: GoldenExplainRequest) -> Result<GoldenExplanation, Error> {
        self.inner.ask("golden.explain", to_arguments(&request)?).await
    }

    async fn budget_fit(&self, request: BudgetFitRequest) -> Result<BudgetFit, Error> {
        self.inner.ask("skill.budget.fit", to_arguments(&request)?).await
    }

    async fn propose(&self, request: ProposalRequest) -> Result<ProposalView, Error> {
        self.inner.execute("proposal.create", to_arguments(&request)?).await
    }

    async fn proposals(&self, filter: ProposalFilter) -> Result<ProposalList, Error> {
        self.inner.ask("proposal.list", to_arguments(&filter)?).await
    }

    async fn proposal(&self, proposal: &str) -> Result<ProposalView, Error> {
        self.inner
            .ask("proposal.show", to_arguments(&ProposalArguments { proposal_id: proposal.to_owned() })?)
            .await
    }

    async fn act_on_proposal(
        &self,
        proposal: &str,
        action: ProposalAction,
        by: ProposalActionOptions,
    ) -> Result<ProposalActionResult, Error> {
        let ProposalActionOptions { by, notes, .. } = by;
        let proposal_id = proposal.to_owned();
        let operation = match action {
            ProposalAction::Approve { proposal_digest, base_digest } => {
                let fields =
                    ProposalApprovalArguments { proposal_id, proposal_digest, base_digest, by, notes };
                return self.inner.execute("proposal.approve", to_arguments(&fields)?).await;
            }
            ProposalAction::Deny => "proposal.deny",
            ProposalAction::RollBack => "proposal.rollback",
        };
        self.inner
            .execute(operation, to_arguments(&ProposalCommandArguments { proposal_id, by, notes })?)
            .await
    }

    async fn collisions(&self, filter: CollisionFilter) -> Result<CollisionReport, Error> {
        self.inner.ask("skill.collisions", to_arguments(&filter)?).await
    }

    async fn rivals(&self, skill: &str) -> Result<SkillRivals, Error> {
        self.inner.ask("skill.rivals", to_arguments(&SkillArguments { skill_id: skill.to_owned() })?).await
    }

    async fn compare_skills(&self, first: &str, second: &str) -> Result<PairReport, Error> {
        self.inner
            .ask(
                "skill.pair",
                to_arguments(&SkillPairArguments { skill_id: first.to_owned(), rival: second.to_owned() })?,
            )
            .await
    }

    async fn lint(&self, filter: LintFilter) -> Result<LintReport, Error> {
        self.inner.ask("skill.lint", to_arguments(&filter)?).await
    }

    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error> {
        let list: ClientProfileList = self.inner.ask("client.list", Arguments::new()).await?;
        Ok(list.clients.into_iter().map(|profile| (profile.id, profile.name)).collect())
    }

    async fn diagnostics(&self) -> Result<Diagnostics, Error> {
        self.inner.ask("skill.diagnostics", Arguments::new()).await
    }

    /// Other failures are about the connection, which has a separate state.
    async fn ensure_store(&self) -> Result<(), Error> {
        let wire = &self.inner.wire;
        match wire.ask::<Liveness>("runtime.health", Arguments::new(), wire.reading()).await {
            Err(TransportError::Server(error)) if error.code == Code::StoreUnavailable => Err(error),
            _ => Ok(()),
        }
    }

    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error> {
        self.inner.execute("skill.metrics.reset", Arguments::new()).await
    }

    async fn metrics(&self) -> Result<MetricsReport, Error> {
        self.inner.ask("runtime.metrics", Arguments::new()).await
    }

    async fn metrics_text(&self) -> Result<String, Error> {
        self.inner.wire.text(METRICS_TEXT).await.map_err(TransportError::error)
    }

    async fn governance(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error> {
        self.inner.ask("skill.governance.list", to_arguments(&filter)?).await
    }

    async fn rescan(&self) -> Result<(), Error> {
        self.inner.ask::<Rescan>("skill.rescan", Arguments::new()).await.map(drop)
    }
}
