//! The core in this process: registry, router, caches, counters.

mod audit;
mod budget_fit;
mod cache_file;
mod collisions;
mod compose;
mod counters;
mod drafts;
mod golden;
mod index_cache;
mod indexer;
mod levels;
mod one_shot;
mod operations;
mod proposals;
mod quality_states;
mod ranking;
mod records;
mod reports;
mod runs;
mod sessions;
mod skills;
mod trust;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::broadcast;

pub use self::audit::AuditLogs;
use self::compose::compose;
use self::counters::Counter;
use self::golden::Measurements;
use self::indexer::Shared;
use self::operations::Operations;
use self::proposals::Proposals;
use self::quality_states::Governance;
use self::ranking::Ranking;
use self::records::SkillRecords;
use self::runs::Runs;
pub use self::runs::StoreMaintenance;
use self::sessions::{ClientLists, LocalSessions};
use self::skills::Skills;
pub use self::trust::{PolicyViews, TrustPins};
use super::{
    AgentView, BudgetFit, BudgetFitRequest, BudgetView, Check, Client, ClientView, Code, CollisionFilter,
    CollisionReport, ComposedView, Connection, Diagnostics, DraftReport, DraftRequest, Error, Event,
    FileContent, GoldenExplainRequest, GoldenExplanation, GoldenReport, GoldenRequest, GovernanceFilter,
    GovernanceList, LevelTokens, LevelsView, Limiter, LintFilter, LintReport, ListFilter, LoadState,
    MetricsReport, ProposalAction, ProposalActionOptions, ProposalActionResult, ProposalFilter, ProposalList,
    ProposalRequest, ProposalView, RateLimit, SessionAccess, SessionClient, SessionSummary, SessionView,
    SettingsChange, SharedSessionClient, SkillDetail, SkillList, SkillRivals, ToolAnswer, health_checks,
    in_place,
};
use skills_base::locked_folder::{self, LockedFolder};
use skills_base::sync::MutexExt as _;
use skills_base::telemetry::Metrics;
use skills_config::{Config, RankPolicy};
use skills_discovery::{Answer, BodyLine, PairReport, Policy, Request, Router, Weights};
use skills_registry::Catalog;
use skills_session::{Api, MessageRole, Payload};
use skills_skill::{Skill, SkillId, client};

pub use self::one_shot::{CoreParts, bisect, eval, lint};
pub use self::proposals::SHIPPED_IS_READ_ONLY;
pub(super) use self::proposals::read_only;
pub use self::runs::{account, config_problems};

/// The core in this process.
pub struct Local {
    skills: Skills,
    shared: Arc<Shared>,
    operations: Arc<Operations>,
    counter: Counter,
    metrics: Metrics,
    ranking: Arc<Ranking>,
    records: SkillRecords,
    lists: Arc<ClientLists>,
    measurements: Measurements,
    proposals: Proposals,
    quality: Governance,
    runs: Runs,
    sessions: Arc<LocalSessions>,
    audit_logs: AuditLogs,
    maintenance: StoreMaintenance,
    trust_pins: TrustPins,
    policies: PolicyViews,
    /// Replaces a cache folder that cannot be written, as long as this process uses it.
    temporary_cache: Option<LockedFolder>,
}

impl Local {
    /// Opens the registry and follows it: returns immediately, while scan and index continue in the background.
    ///
    /// # Errors
    /// Returns `internal_error` if a thread cannot be started or a data file of this program is damaged.
    pub fn open(config: Config) -> Result<Self, Error> {
        let local = compose(config, false)?;
        local.ranking.follow()?;
        Ok(local)
    }

    /// Sets how long requests wait for the first scan. Must be called before anything is requested.
    #[must_use]
    pub fn with_catalog_timeout(self, catalog_timeout: Duration) -> Self {
        self.ranking.timeout.get_or_init(|| catalog_timeout);
        self
    }

    pub fn audit_log(&self) -> &AuditLogs {
        &self.audit_logs
    }

    /// Returns the maintenance of the store of runs.
    pub fn store(&self) -> &StoreMaintenance {
        &self.maintenance
    }

    pub fn trust_pins(&self) -> &TrustPins {
        &self.trust_pins
    }

    pub fn policies(&self) -> &PolicyViews {
        &self.policies
    }

    /// Returns the metrics of this process, for adapters that record more.
    pub fn recorder(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Creates a rate limiter over the store, shared by every instance on it. Opens the store.
    pub async fn limiter(&self, limit: RateLimit) -> Result<Limiter, Error> {
        self.counter.limiter(limit).await
    }

    /// Returns the defaults of a request: policy, limit and use of bodies from the configuration.
    pub fn usual_request(&self) -> Request {
        usual_request(&self.skills.config)
    }

    /// Resolves a skill by id, unambiguous name, or location.
    ///
    /// # Errors
    /// Returns `not_found` with similar names, `invalid_request` for an ambiguous name.
    pub fn resolve(&self, requested: &str) -> Result<Arc<Skill>, Error> {
        self.skills.resolve(requested)
    }

    /// Returns the checks of the core for `doctor`.
    ///
    /// # Errors
    /// Never fails today; the result type is that of all operations.
    pub async fn checkup(&self) -> Result<Vec<Check>, Error> {
        let mut checks = health_checks::settings(&self.skills.config);
        checks.extend(self.temporary_cache.as_ref().map(|_| health_checks::temporary_cache()));
        checks.extend(health_checks::roots(&self.skills.registry.snapshot()));
        // One request that every matcher has to answer shows which of them work here.
        let probe = Request { intent: "read a file".to_owned(), ..self.usual_request() };
        if let Ok(answer) = self.discover(probe).await {
            checks.extend(health_checks::matchers(&answer.matchers));
        }
        checks.extend(health_checks::core(&self.diagnostics().await?));
        let index = self.shared.cache.locked().clone();
        checks.push(Check::good("index cache", index));
        checks.extend(self.runs.health.checks().await);
        Ok(checks)
    }
}

/// Returns the defaults of a request from the settings: policy, limit and use of bodies.
pub fn usual_request(config: &Config) -> Request {
    let policy = match config.policy {
        RankPolicy::Blended => Policy::Blended,
        RankPolicy::Strict => Policy::Strict,
    };
    let usual = Request::default();
    Request { policy, limit: config.limit.unwrap_or(usual.limit), with_body: config.with_body, ..usual }
}

/// Creates a folder that is removed with this process: for the files of a demo, of runs that are not persistent, and
/// of a cache that cannot be written.
fn temporary_folder() -> std::io::Result<LockedFolder> {
    const PREFIX: &str = "skills-demo-";
    let base = std::env::temp_dir();
    for leftover in locked_folder::leftovers(&base, PREFIX) {
        let path = leftover.path().to_owned();
        if let Err(error) = leftover.clear() {
            tracing::warn!("clearing {}: {error}", path.display());
        }
    }
    LockedFolder::create_in(&base, PREFIX, false)
}

/// Uses a temporary cache folder if the shipped skills may be needed and cannot be unpacked to the configured one.
///
/// # Errors
/// Returns `internal_error` if the shipped skills are the only ones, and no folder for them can be written.
fn ensure_cache(config: &mut Config) -> Result<Option<LockedFolder>, Error> {
    let Err(unwritable) = skills_registry::check_cache(config) else { return Ok(None) };
    let usual = config.dirs.cache.display().to_string();
    tracing::warn!("cannot write to the cache folder {usual}: {unwritable}; using a temporary folder");
    let replaced = temporary_folder().and_then(|folder| {
        folder.path().clone_into(&mut config.dirs.cache);
        skills_registry::check_cache(config).map(|()| folder)
    });
    match replaced {
        Err(error) if config.demo => Err(Error::new(
            Code::InternalError,
            format!(
                "cannot unpack the shipped skills to {usual}: {unwritable}; nor to {}: {error}; set XDG_CACHE_HOME \
                    or TMPDIR to a writable folder",
                std::env::temp_dir().display()
            ),
        )),
        replaced => Ok(replaced.ok()),
    }
}

/// Returns an empty router with the weights of this program and without the matchers that the settings disable.
///
/// Interactive users prefer an answer without a late matcher; scripts need the same answer whatever else the machine
/// does, so with `generous_time_limits` the time limits of the matchers are long.
fn router(config: &Config, generous_time_limits: bool) -> Result<Router, Error> {
    let weights = Weights::shipped()
        .map_err(|e| Error::new(Code::InternalError, format!("cannot load the ranking weights: {e}")))?;
    Router::new(if generous_time_limits { weights.with_generous_time_limits() } else { weights })
        .without_matchers(config.matchers.off())
        .map_err(|e| Error::new(Code::InvalidRequest, e.to_string()))
}

#[async_trait]
impl Client for Local {
    fn connection(&self) -> Connection {
        Connection::Local
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    async fn wait_for_catalog(&self) -> Result<(), Error> {
        self.ranking.wait_for_catalog().await
    }

    async fn wait_for_bodies(&self) {
        self.ranking.wait_for_bodies().await;
    }

    async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        Ok(self.skills.snapshot())
    }

    async fn discover(&self, request: Request) -> Result<Answer, Error> {
        self.ranking.discover(request).await
    }

    async fn list(&self, filter: ListFilter) -> Result<SkillList, Error> {
        self.operations.count("list", self.records.list(filter)).await
    }

    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error> {
        self.operations.count("describe", self.records.describe(skill)).await
    }

    async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error> {
        self.operations.count("read_file", self.records.read_file(skill, path)).await
    }

    async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error> {
        self.operations.count("levels", self.records.levels(skills)).await
    }

    async fn body_lines(&self, skill: &str, intent: &str, limit: usize) -> Result<Vec<BodyLine>, Error> {
        self.operations.count("body_lines", self.ranking.body_lines(skill, intent, limit)).await
    }

    async fn client_view(&self, client: &str) -> Result<ClientView, Error> {
        self.operations.count("client_view", async { in_place(|| self.lists.client_list(client)) }).await
    }

    async fn draft(&self, request: DraftRequest) -> Result<DraftReport, Error> {
        self.operations.count("draft", self.measurements.draft(request)).await
    }

    async fn golden_report(&self, request: GoldenRequest) -> Result<GoldenReport, Error> {
        self.operations.count("golden_report", self.measurements.golden_report(request)).await
    }

    async fn golden_explain(&self, request: GoldenExplainRequest) -> Result<GoldenExplanation, Error> {
        self.operations.count("golden_explain", self.measurements.golden_explain(request)).await
    }

    async fn budget_fit(&self, request: BudgetFitRequest) -> Result<BudgetFit, Error> {
        self.operations.count("budget_fit", self.measurements.budget_fit(request)).await
    }

    async fn propose(&self, request: ProposalRequest) -> Result<ProposalView, Error> {
        self.operations.count("propose", self.proposals.create(request)).await
    }

    async fn proposals(&self, filter: ProposalFilter) -> Result<ProposalList, Error> {
        self.operations.count("proposals", self.proposals.list(filter)).await
    }

    async fn proposal(&self, proposal: &str) -> Result<ProposalView, Error> {
        self.operations.count("proposal", self.proposals.show(proposal)).await
    }

    async fn act_on_proposal(
        &self,
        proposal: &str,
        action: ProposalAction,
        by: ProposalActionOptions,
    ) -> Result<ProposalActionResult, Error> {
        self.operations.count("order_proposal", self.proposals.decide(proposal, action, by)).await
    }

    async fn collisions(&self, filter: CollisionFilter) -> Result<CollisionReport, Error> {
        self.operations.count("collisions", self.measurements.collided(filter)).await
    }

    async fn rivals(&self, skill: &str) -> Result<SkillRivals, Error> {
        self.operations.count("rivals", self.measurements.rivals_of(skill)).await
    }

    async fn compare_skills(&self, first: &str, second: &str) -> Result<PairReport, Error> {
        self.operations.count("compare_skills", self.measurements.compared(first, second)).await
    }

    async fn lint(&self, filter: LintFilter) -> Result<LintReport, Error> {
        self.operations.count("lint", self.records.lint(filter)).await
    }

    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(client::profiles().iter().map(|profile| (profile.id.clone(), profile.name.clone())).collect())
    }

    async fn diagnostics(&self) -> Result<Diagnostics, Error> {
        self.counter.diagnose().await
    }

    async fn load_state(&self) -> Result<LoadState, Error> {
        Ok(self.counter.load_state())
    }

    async fn ensure_store(&self) -> Result<(), Error> {
        self.runs.store.ensure_known_store().await?;
        self.runs.store.ensure_store()
    }

    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error> {
        self.counter.reset().await?;
        self.counter.diagnose().await
    }

    async fn metrics(&self) -> Result<MetricsReport, Error> {
        self.counter.report().await
    }

    async fn metrics_text(&self) -> Result<String, Error> {
        self.counter.text().await
    }

    async fn governance(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error> {
        self.operations.count("governance", self.quality.governed(filter)).await
    }

    async fn rescan(&self) -> Result<(), Error> {
        self.skills.registry.rescan();
        Ok(())
    }
}

#[async_trait]
impl SessionClient for Local {
    fn with_access(self: Arc<Self>, access: SessionAccess) -> SharedSessionClient {
        Arc::clone(&self.sessions).with_access(access)
    }

    async fn new_session(&self, change: SettingsChange) -> Result<SessionView, Error> {
        self.sessions.new_session(change).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        self.sessions.sessions(limit).await
    }

    async fn session(&self, session: &str) -> Result<SessionView, Error> {
        self.sessions.session(session).await
    }

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        self.sessions.configure_session(session, change).await
    }

    async fn say(&self, session: &str, speaker: MessageRole, text: &str) -> Result<u64, Error> {
        self.sessions.say(session, speaker, text).await
    }

    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        arguments: Value,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        self.sessions.call_tool(session, tool, arguments, confirmed).await
    }

    async fn run_script(
        &self,
        session: &str,
        arguments: Value,
        files: BTreeMap<String, String>,
        confirmed: Option<&str>,
    ) -> Result<ToolAnswer, Error> {
        self.sessions.run_script(session, arguments, files, confirmed).await
    }

    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error> {
        self.sessions.compose(session, made).await
    }

    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        self.sessions.export_session(session, api, model).await
    }

    async fn level_view(&self, skill: &str, session: Option<&str>) -> Result<LevelsView, Error> {
        self.sessions.level_view(skill, session).await
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        self.sessions.budget(client, window).await
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        self.sessions.agents().await
    }
}

/// How long a one-shot command waits for a scan that hangs (a dead network share) before it answers with what was
/// found.
const SCAN_TIMEOUT: Duration = Duration::from_secs(120);
