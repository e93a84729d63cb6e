//! The operations of the core as one trait: a local form over the library, a remote one over HTTP.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::{
    BudgetFit, BudgetFitRequest, CallerView, ClientView, CollisionFilter, CollisionReport, Connection,
    Diagnostics, DraftReport, DraftRequest, Error, Event, FileContent, GoldenExplainRequest,
    GoldenExplanation, GoldenReport, GoldenRequest, GovernanceFilter, GovernanceList, LevelTokens,
    LintFilter, LintReport, ListFilter, MetricsReport, OperatorClient, ProposalFilter, ProposalList,
    ProposalOrder, ProposalOrdered, ProposalOrderedBy, ProposalRequest, ProposalView, RunClient, SkillDetail,
    SkillList, SkillRivals,
};
use skills_discovery::{Answer, BodyLine, PairReport, Request};
use skills_registry::Catalogue;
use skills_skill::SkillId;

/// Everything an adapter asks: of skills, of runs and of what operators look after.
pub trait Core: Client + RunClient + OperatorClient {}

impl<T: Client + RunClient + OperatorClient + ?Sized> Core for T {}

/// A client that several tasks share.
pub type SharedClient = Arc<dyn Core>;

/// What every adapter may ask of the core. Calls return at once with what is known now: a scan that is still
/// continuing shows in [`Event`]s, not in waiting. Skills are named by id, by an unambiguous name, or by
/// location; an unknown one answers `not_found` with near names.
#[async_trait]
pub trait Client: Send + Sync + 'static {
    /// Where the core is.
    fn connection(&self) -> Connection;

    /// Who calls, as the core knows them. In this process they may do everything.
    ///
    /// # Errors
    /// Those of asking a service; `unauthorized` for a key that it does not know.
    async fn caller(&self) -> Result<CallerView, Error> {
        Ok(CallerView::anyone())
    }

    /// News: catalog changes, scan and index progress. A receiver that lags asks for the catalog again.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// Waits until the first scan of the roots has finished, for ten seconds at most: before that, a skill that is not
    /// in the catalog may still be found.
    ///
    /// # Errors
    /// `not_ready` where the scan has not finished by then.
    async fn wait_for_catalog(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until the headings and bodies of the first scan have been read, for two seconds at most in the life of the
    /// process: before that, a request may have another first result.
    async fn wait_for_bodies(&self) {}

    /// The present snapshot: roots, entries, shadowed and refused ones.
    async fn catalogue(&self) -> Result<Arc<Catalogue>, Error>;

    /// Ranks the skills for a request.
    ///
    /// # Errors
    /// `invalid_request` for an empty intent, one of more than 20,000 bytes or with a word of more than 1,000
    /// characters, and for a limit outside 1 to 1,000.
    async fn discover(&self, request: Request) -> Result<Answer, Error>;

    /// Lists skills, in catalog order.
    async fn list(&self, filter: ListFilter) -> Result<SkillList, Error>;

    /// One skill whole: record, findings of lint, body, files.
    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error>;

    /// A file inside a bundle.
    ///
    /// # Errors
    /// `path_escape` for a path that leaves the bundle, `not_found`.
    async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error>;

    /// Token counts (o200k vocabulary) of each level; loads the vocabulary on first use, caches by digest.
    async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error>;

    /// The lines of a skill's headings and body that hold words of the intent, at most `limit`.
    async fn body_lines(&self, skill: &str, intent: &str, limit: usize) -> Result<Vec<BodyLine>, Error>;

    /// What a client (by the id of its profile) finds, drops and shadows among the present roots.
    async fn client_view(&self, client: &str) -> Result<ClientView, Error>;

    /// What another description of a skill would change. Nothing is written.
    ///
    /// # Errors
    /// `invalid_request` for a description without text; `invalid_configuration` for a golden set that cannot be read.
    async fn draft(&self, request: DraftRequest) -> Result<DraftReport, Error>;

    /// How the queries of the golden sets are answered.
    ///
    /// # Errors
    /// `invalid_configuration` for a golden set that cannot be read, `invalid_request` for an invalid query,
    /// `not_found` for an unknown skill.
    async fn golden_report(&self, request: GoldenRequest) -> Result<GoldenReport, Error>;

    /// Why a query is answered as it is, and a measured change that wins it.
    ///
    /// # Errors
    /// As [`Self::golden_report`].
    async fn golden_explain(&self, request: GoldenExplainRequest) -> Result<GoldenExplanation, Error>;
    /// A smallest change with which the lists of clients fit their budgets and no golden query is lost. Nothing is
    /// written.
    ///
    /// # Errors
    /// `not_found` for an unknown client; `invalid_request` for none, and where there are no golden queries;
    /// `invalid_configuration` for a golden set that cannot be read.
    async fn budget_fit(&self, request: BudgetFitRequest) -> Result<BudgetFit, Error>;
    /// Stores a proposed change of a skill's `SKILL.md`. The file is not changed.
    ///
    /// # Errors
    /// `invalid_request` for a diff that does not apply or makes the file unusable; `rate_limited` where too many wait.
    async fn propose(&self, request: ProposalRequest) -> Result<ProposalView, Error>;

    /// Lists proposals, newest first.
    async fn proposals(&self, filter: ProposalFilter) -> Result<ProposalList, Error>;

    /// A proposal with its checks and effects, measured now while it waits.
    ///
    /// # Errors
    /// `not_found` with near ids.
    async fn proposal(&self, proposal: &str) -> Result<ProposalView, Error>;

    /// Approves, denies or rolls back a proposal.
    ///
    /// # Errors
    /// `confirmation_required` for an approval that does not name both digests, with what would be decided;
    /// `invalid_transition` for a proposal that was decided otherwise; `skill_changed` for a file that changed.
    async fn order_proposal(
        &self,
        proposal: &str,
        order: ProposalOrder,
        by: ProposalOrderedBy,
    ) -> Result<ProposalOrdered, Error>;

    /// Which skills match each other's requests, or how far that is: a large collection takes up to a minute in the
    /// background.
    ///
    /// # Errors
    /// `not_found` with near names, `invalid_request` for a limit or a time out of range.
    async fn collisions(&self, filter: CollisionFilter) -> Result<CollisionReport, Error>;

    /// The nearest rivals of a skill: who wins requests made from its description, and golden queries.
    ///
    /// # Errors
    /// `not_found` with near names; `invalid_configuration` for a golden set that cannot be read.
    async fn rivals(&self, skill: &str) -> Result<SkillRivals, Error>;

    /// Two skills with the terms and clauses that separate them, and measured advice.
    ///
    /// # Errors
    /// As [`Self::rivals`]; `invalid_request` for the same skill twice.
    async fn compare_skills(&self, first: &str, second: &str) -> Result<PairReport, Error>;

    /// Findings of lint about the present catalog.
    ///
    /// # Errors
    /// `not_found` with near names, `invalid_request` for an unknown rule, limit or cursor.
    async fn lint(&self, filter: LintFilter) -> Result<LintReport, Error>;

    /// The client profiles known, `(id, name)`.
    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error>;

    /// Counts per operation, per link, roots, cache, memory.
    async fn diagnostics(&self) -> Result<Diagnostics, Error>;

    /// Makes sure that runs can be recorded, as far as the last write and the last probe of the store tell.
    ///
    /// # Errors
    /// `store_unavailable`, with the cause and since when as its reason.
    async fn ensure_store(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Sets the counts of diagnostics and all metrics back to nothing; answers diagnostics as they are then.
    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error>;

    /// What the process counted since it began or was reset.
    async fn metrics(&self) -> Result<MetricsReport, Error>;

    /// The same as `OpenMetrics` text, for Prometheus; its type is [`super::METRICS_CONTENT_TYPE`].
    async fn metrics_text(&self) -> Result<String, Error>;

    /// The quality states of skills, with what led to each and what is missing for the next.
    ///
    /// # Errors
    /// `not_found` with near names; `invalid_configuration` for a golden set that cannot be read.
    async fn governance(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error>;

    /// Rescans all roots.
    async fn rescan(&self) -> Result<(), Error>;
}
