//! The operations of the core as one trait, implemented locally over the library and remotely over HTTP.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::{
    BudgetFit, BudgetFitRequest, CallerView, ClientView, CollisionFilter, CollisionReport, Connection,
    Diagnostics, DraftReport, DraftRequest, Error, Event, FileContent, GoldenExplainRequest,
    GoldenExplanation, GoldenReport, GoldenRequest, GovernanceFilter, GovernanceList, LevelTokens,
    LintFilter, LintReport, ListFilter, LoadState, MetricsReport, OperatorClient, ProposalAction,
    ProposalActionOptions, ProposalActionResult, ProposalFilter, ProposalList, ProposalRequest, ProposalView,
    RunClient, SkillDetail, SkillList, SkillRivals,
};
use skills_discovery::{Answer, BodyLine, PairReport, Request};
use skills_registry::Catalog;
use skills_skill::SkillId;

/// Everything that adapters call: operations on skills, on runs, and for operators.
pub trait Core: Client + RunClient + OperatorClient {}

impl<T: Client + RunClient + OperatorClient + ?Sized> Core for T {}

/// A client that several tasks share.
pub type SharedClient = Arc<dyn Core>;

/// Operations of the core for all adapters. Calls return immediately with what is known now: the progress of a scan is
/// reported by [`Event`]s, not by waiting. Skills are named by id, by an unambiguous name, or by location; for an
/// unknown one, calls return `not_found` with similar names.
#[async_trait]
pub trait Client: Send + Sync + 'static {
    /// Returns where the core is.
    fn connection(&self) -> Connection;

    /// Returns the caller as known to the core. In this process they may do everything.
    ///
    /// # Errors
    /// Returns the errors of a request to the service; `unauthorized` for an unknown key.
    async fn caller(&self) -> Result<CallerView, Error> {
        Ok(CallerView::anyone())
    }

    /// Subscribes to events: catalog changes, scan and index progress. A receiver that lags has to reload the catalog.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// Waits until the first scan of the roots has finished, for at most ten seconds: before that, a skill that is not
    /// in the catalog may still be found.
    ///
    /// # Errors
    /// Returns `not_ready` if the scan has not finished by then.
    async fn wait_for_catalog(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until the headings and bodies of the first scan have been read, for at most two seconds in the lifetime of
    /// the process: before that, a request may have another first result.
    async fn wait_for_bodies(&self) {}

    /// Returns the current snapshot: roots, entries, shadowed and rejected bundles.
    async fn catalog(&self) -> Result<Arc<Catalog>, Error>;

    /// Ranks the skills for a request.
    ///
    /// # Errors
    /// Returns `invalid_request` for an empty intent, one of more than 20,000 bytes or with a word of more than 1,000
    /// characters, and for a limit outside 1 to 1,000.
    async fn discover(&self, request: Request) -> Result<Answer, Error>;

    /// Lists skills, in catalog order.
    async fn list(&self, filter: ListFilter) -> Result<SkillList, Error>;

    /// Returns the details of a skill: record, lint findings, body, files.
    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error>;

    /// Returns a file of a bundle.
    ///
    /// # Errors
    /// Returns `path_escape` for a path that leaves the bundle, or `not_found`.
    async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error>;

    /// Counts the tokens (o200k vocabulary) of each level; loads the vocabulary on first use, caches by digest.
    async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error>;

    /// Returns at most `limit` lines of a skill's headings and body that contain words of the intent.
    async fn body_lines(&self, skill: &str, intent: &str, limit: usize) -> Result<Vec<BodyLine>, Error>;

    /// Returns what a client (by profile id) finds, drops and shadows among the current roots.
    async fn client_view(&self, client: &str) -> Result<ClientView, Error>;

    /// Measures what another description of a skill would change. Nothing is written.
    ///
    /// # Errors
    /// Returns `invalid_request` for an empty description, `invalid_configuration` for an unreadable golden set.
    async fn draft(&self, request: DraftRequest) -> Result<DraftReport, Error>;

    /// Measures how the queries of the golden sets are answered.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an unreadable golden set, `invalid_request` for an invalid query,
    /// `not_found` for an unknown skill.
    async fn golden_report(&self, request: GoldenRequest) -> Result<GoldenReport, Error>;

    /// Explains why a query is answered as it is, with a measured change that wins it.
    async fn golden_explain(&self, request: GoldenExplainRequest) -> Result<GoldenExplanation, Error>;
    /// Finds the smallest change that makes the lists of clients fit their budgets without losing a golden query. Nothing
    /// is written.
    ///
    /// # Errors
    /// Returns `not_found` for an unknown client; `invalid_request` without clients or golden queries;
    /// `invalid_configuration` for an unreadable golden set.
    async fn budget_fit(&self, request: BudgetFitRequest) -> Result<BudgetFit, Error>;
    /// Stores a proposed change to a skill's `SKILL.md`. The file is not changed.
    ///
    /// # Errors
    /// Returns `invalid_request` for a diff that does not apply or makes the file unusable; `rate_limited` if too many
    /// are pending.
    async fn propose(&self, request: ProposalRequest) -> Result<ProposalView, Error>;

    /// Lists proposals, newest first.
    async fn proposals(&self, filter: ProposalFilter) -> Result<ProposalList, Error>;

    /// Returns a proposal with its checks and effects, measured now if it is pending.
    ///
    /// # Errors
    /// Returns `not_found` with similar ids.
    async fn proposal(&self, proposal: &str) -> Result<ProposalView, Error>;

    /// Approves, denies or rolls back a proposal.
    ///
    /// # Errors
    /// Returns `confirmation_required`, with what would be decided, for an approval that does not name both digests;
    /// `invalid_transition` for a proposal that was decided differently; `skill_changed` for a file that changed.
    async fn act_on_proposal(
        &self,
        proposal: &str,
        action: ProposalAction,
        by: ProposalActionOptions,
    ) -> Result<ProposalActionResult, Error>;

    /// Returns which skills match each other's requests, or the progress of the computation: a large collection takes
    /// up to a minute in the background.
    ///
    /// # Errors
    /// Returns `not_found` with similar names, `invalid_request` for a limit or a time out of range.
    async fn collisions(&self, filter: CollisionFilter) -> Result<CollisionReport, Error>;

    /// Returns the closest rivals of a skill: which skills win requests made from its description, and golden queries.
    ///
    /// # Errors
    /// Returns `not_found` with similar names; `invalid_configuration` for an unreadable golden set.
    async fn rivals(&self, skill: &str) -> Result<SkillRivals, Error>;

    /// Compares two skills: the terms and clauses that separate them, and measured advice.
    ///
    /// # Errors
    /// Same as [`Self::rivals`]; `invalid_request` for the same skill twice.
    async fn compare_skills(&self, first: &str, second: &str) -> Result<PairReport, Error>;

    /// Returns the lint findings of the current catalog.
    ///
    /// # Errors
    /// Returns `not_found` with similar names, `invalid_request` for an unknown rule, limit or cursor.
    async fn lint(&self, filter: LintFilter) -> Result<LintReport, Error>;

    /// Returns the known client profiles as `(id, name)`.
    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error>;

    /// Returns counts per operation and matcher, and the state of roots, cache and memory.
    async fn diagnostics(&self) -> Result<Diagnostics, Error>;

    /// Returns what is loaded, which a local core knows without reading its store.
    ///
    /// # Errors
    /// Returns the errors of [`Self::diagnostics`].
    async fn load_state(&self) -> Result<LoadState, Error> {
        let Diagnostics { version, skills, scan, index, .. } = self.diagnostics().await?;
        Ok(LoadState { version, skills, scan, index })
    }

    /// Checks that runs can be recorded, according to the last write and the last probe of the store.
    ///
    /// # Errors
    /// Returns `store_unavailable`, with the cause and the start time as its reason.
    async fn ensure_store(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Resets the counts of diagnostics and all metrics; returns the diagnostics after the reset.
    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error>;

    /// Returns the metrics of the process since its start or last reset.
    async fn metrics(&self) -> Result<MetricsReport, Error>;

    /// Returns the metrics as `OpenMetrics` text, for Prometheus; its type is [`super::METRICS_CONTENT_TYPE`].
    async fn metrics_text(&self) -> Result<String, Error>;

    /// Returns the quality states of skills, with the reasons of each and what is missing for the next.
    ///
    /// # Errors
    /// Returns `not_found` with similar names; `invalid_configuration` for an unreadable golden set.
    async fn governance(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error>;

    /// Rescans all roots.
    async fn rescan(&self) -> Result<(), Error>;
}
