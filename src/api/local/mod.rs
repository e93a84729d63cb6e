//! The core in this process: registry, router, caches, counters.

mod auditing;
mod cache_file;
mod colliding;
mod counting;
mod drafting;
mod fitting;
mod golden;
mod governing;
mod index_cache;
mod indexer;
mod levels;
mod one_shot;
mod operations;
mod proposing;
mod runs;
mod sessions;
mod skills;
mod trusting;

use std::sync::{Arc, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rayon::prelude::*;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use self::cache_file::CacheFile;
use self::colliding::Collisions;
use self::counting::Counter;
use self::index_cache::IndexCache;
use self::indexer::{Indexer, Shared};
use self::levels::Levels;
use self::operations::Operations;
use self::runs::Runs;
use self::skills::Skills;
use super::known_contracts::KnownContracts;
use super::{
    BudgetFit, BudgetFitRequest, Check, Client, ClientView, Code, CollisionFilter, CollisionReport,
    Connection, Diagnostics, DraftReport, DraftRequest, Error, Event, FileContent, GoldenExplainRequest,
    GoldenExplanation, GoldenReport, GoldenRequest, GovernanceFilter, GovernanceList, LevelTokens,
    LintFilter, LintReport, ListFilter, MetricsReport, ProposalFilter, ProposalList, ProposalOrder,
    ProposalOrdered, ProposalOrderedBy, ProposalRequest, ProposalView, SkillDetail, SkillList, SkillRivals,
    client_view, detail, health_checks, in_place, listing, policies::PolicyFile, request_limits,
};
use skills_base::audit::Recorder;
use skills_base::locked_folder::{self, LockedFolder};
use skills_base::telemetry::Metrics;
use skills_config::{Config, RankPolicy};
use skills_discovery::{
    Adjustments, Answer, BodyLine, MatcherState, PairReport, Policy, Request, Router, Weights,
};
use skills_registry::{Catalogue, Registry, Settings, Trust};
use skills_skill::{Skill, SkillId, client};

pub use self::one_shot::{Needs, bisect, eval, lint};
pub(super) use self::proposing::read_only;
pub use self::runs::{account, config_problems};

/// Up to this many skills a request is answered on the caller's own thread: that is faster than passing it to another
/// thread and back.
const INLINE: usize = 500;
/// The same for the length of a request in bytes.
const INLINE_BYTES: usize = 1_000;

/// The core in this process.
pub struct Local {
    config: Arc<Config>,
    registry: Arc<Registry>,
    skills: Skills,
    shared: Arc<Shared>,
    levels: Arc<Levels>,
    collisions: Arc<Collisions>,
    operations: Arc<Operations>,
    counter: Counter,
    metrics: Metrics,
    audit: Arc<Recorder>,
    trust: Trust,
    contracts: Arc<KnownContracts>,
    policy: Arc<PolicyFile>,
    runs: Arc<Runs>,
    proposals: proposing::ProposalFolder,
    prepared: sessions::Prepared,
    /// Cache of skill files as clients parse them.
    skill_files: client_view::SkillFiles,
    transcripts: sessions::Transcripts,
    /// How long a request waits for the first scan.
    catalog_timeout: Duration,
    rebuilding: tokio::sync::Mutex<()>,
    /// Limits concurrent measurements.
    measurements: Arc<Semaphore>,
    /// Limits concurrent rankings on other threads.
    rankings: Arc<Semaphore>,
    golden: Arc<golden::GoldenCache>,
    /// Until when requests wait for bodies; set by the first one that does.
    bodies_deadline: OnceLock<Instant>,
}

impl Local {
    /// Opens the registry and follows it: returns immediately, while scan and index continue in the background.
    ///
    /// # Errors
    /// Returns `internal_error` if a thread cannot be started or a data file of this program is damaged.
    pub fn open(config: Config) -> Result<Self, Error> {
        let local = Self::new(config, false)?;
        let indexer = local.indexer();
        let news = local.registry.events();
        // Weak: the thread must not keep the registry alive, because it waits for its end.
        let registry = Arc::downgrade(&local.registry);
        let latest = move || {
            let registry = registry.upgrade()?;
            // In this order: if a scan ends in between, its event is received.
            let scanned = registry.progress().done;
            Some((registry.snapshot(), scanned))
        };
        let follow = move || indexer.follow(news, latest);
        std::thread::Builder::new()
            .name("indexer".to_owned())
            .spawn(follow)
            .map_err(|e| Error::new(Code::InternalError, format!("no thread for the index: {e}")))?;
        Ok(local)
    }

    fn new(config: Config, patient: bool) -> Result<Self, Error> {
        let internal = |what: &str, why: String| Error::new(Code::InternalError, format!("{what}: {why}"));
        // Its thread reads the cache while the router is built here.
        let settings = Settings::new(&config);
        let build = settings.build.clone();
        let registry = Registry::open(settings).map_err(|e| internal("the registry", e.to_string()))?;
        let router = router(&config, patient)?;
        let tokens =
            (!config.demo).then(|| CacheFile::new(config.dirs.cache.join("tokens.bin"), "tokens", "o200k 2"));
        let collisions = (!config.demo)
            .then(|| CacheFile::new(config.dirs.cache.join("collisions.json"), "collisions", build));
        let (config, registry, shared) =
            (Arc::new(config), Arc::new(registry), Arc::new(Shared::new(router)));
        let (trust, policy) = (Trust::of(&config), Arc::new(PolicyFile::of(&config)));
        let skills = Skills { config: Arc::clone(&config), registry: Arc::clone(&registry) };
        let metrics = Metrics::default();
        let audit = auditing::recorder(&config);
        let processors = available_parallelism().map_or(1, usize::from);
        Ok(Self {
            runs: Arc::new(Runs::new(&skills, &shared, &trust, &policy, &metrics, &audit)),
            skills,
            operations: Arc::new(Operations::new(metrics.clone())),
            proposals: proposing::ProposalFolder::of(&config, &audit),
            prepared: sessions::Prepared::default(),
            skill_files: client_view::SkillFiles::default(),
            transcripts: sessions::Transcripts::default(),
            counter: Counter::default(),
            metrics,
            audit,
            registry,
            shared,
            levels: Arc::new(Levels::new(tokens)),
            collisions: Arc::new(Collisions::new(collisions)),
            trust,
            contracts: Arc::default(),
            policy,
            config,
            catalog_timeout: CATALOG_TIMEOUT,
            rebuilding: tokio::sync::Mutex::default(),
            measurements: Arc::new(Semaphore::new(processors.max(2))),
            rankings: Arc::new(Semaphore::new(2 * processors)),
            golden: Arc::default(),
            bodies_deadline: OnceLock::new(),
        })
    }

    /// Sets how long requests wait for the first scan.
    #[must_use]
    pub fn with_catalog_timeout(self, catalog_timeout: Duration) -> Self {
        Self { catalog_timeout, ..self }
    }

    /// Runs a measurement that ranks many requests, on a snapshot of the router: new skills need not wait for it. At most
    /// as many as there are processors run concurrently, which leaves threads for other requests. It stops at its next
    /// request once the caller is gone.
    async fn measure<T: Send + 'static>(
        &self,
        work: impl FnOnce(Router) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.measurements).acquire_owned().await;
        let permit = permit.map_err(|e| Error::new(Code::InternalError, e.to_string()))?;
        let canceled = CancellationToken::new();
        let _cancel = canceled.clone().drop_guard();
        let shared = Arc::clone(&self.shared);
        run_blocking(move || {
            let _permit = permit;
            let router = shared.router.read().unwrap_or_else(PoisonError::into_inner).snapshot();
            work(router.cancelable(Arc::new(move || canceled.is_cancelled())))
        })
        .await
    }

    fn indexer(&self) -> Indexer {
        Indexer::new(Arc::clone(&self.shared), self.config.dirs.home.clone(), self.index_cache())
    }

    fn index_cache(&self) -> IndexCache {
        if self.config.demo {
            return IndexCache::off();
        }
        let settings = Settings::new(&self.config);
        IndexCache::new(&settings.cache_dir, &settings.roots, &settings.build)
    }

    /// Removes the index file because it is corrupt.
    fn remove_index_cache(&self) {
        self.index_cache().remove();
    }

    /// Returns the defaults of a request: policy, limit and use of bodies from the configuration.
    #[must_use]
    pub fn usual_request(&self) -> Request {
        usual_request(&self.config)
    }

    /// Resolves a skill by id, unambiguous name, or location.
    ///
    /// # Errors
    /// Returns `not_found` with similar names, `invalid_request` for an ambiguous name.
    pub fn resolve(&self, wanted: &str) -> Result<Arc<Skill>, Error> {
        self.skills.resolve(wanted)
    }

    /// Updates the gauges of runs and workers. Metrics are returned without them if the store cannot be read.
    async fn refresh_gauges(&self) {
        match self.runs.overview.gauges().await {
            Ok(Some(gauges)) => self.metrics.set_run_gauges(&gauges),
            Ok(None) => {}
            Err(error) => tracing::warn!("looking at the runs for metrics: {error}"),
        }
    }

    /// Returns the checks of the core for `doctor`.
    ///
    /// # Errors
    /// Never fails today; the result type is that of all operations.
    pub async fn checkup(&self) -> Result<Vec<Check>, Error> {
        let catalogue = self.registry.snapshot();
        let mut checks = health_checks::settings(&self.config);
        let bundles = |root: usize| {
            let winners = catalogue.entries.iter().filter(|entry| entry.root == root).count();
            winners + catalogue.shadowed.iter().filter(|loser| loser.root == root).count()
        };
        checks.extend(health_checks::roots(&catalogue.roots, self.config.watch, bundles));
        // One request that every matcher has to answer shows which of them work here.
        let probe = Request { intent: "read a file".to_owned(), ..self.usual_request() };
        if let Ok(answer) = self.discover(probe).await {
            checks.extend(health_checks::links(&answer.matchers));
        }
        checks.extend(health_checks::core(&self.diagnostics().await?));
        let index = self.shared.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
        checks.push(Check::good("index cache", index));
        checks.extend(self.runs.health.checks().await);
        Ok(checks)
    }

    async fn ranked(&self, request: Request) -> Result<Answer, Error> {
        self.ranked_by(request, self.adjustments()?).await
    }

    async fn ranked_by(&self, request: Request, adjustments: Arc<Adjustments>) -> Result<Answer, Error> {
        let domains = request.domain.clone();
        let is_small = request.intent.len() <= INLINE_BYTES
            && self.shared.router.try_read().is_ok_and(|router| router.len() <= INLINE);
        let mut answer = if is_small {
            rank(&self.shared, &request, &adjustments)
        } else {
            // Held until the ranking has ended, even if its caller is gone. The semaphore is never closed.
            let permit = Arc::clone(&self.rankings).acquire_owned().await;
            let (shared, request, adjustments) =
                (Arc::clone(&self.shared), request.clone(), Arc::clone(&adjustments));
            run_blocking(move || {
                let _permit = permit;
                rank(&shared, &request, &adjustments)
            })
            .await
        }?;
        if self.rebuild_damaged_index().await? {
            let shared = Arc::clone(&self.shared);
            answer = run_blocking(move || rank(&shared, &request, &adjustments)).await?;
        }
        if !domains.is_empty() {
            answer.hints = listing::unknown_values(&self.registry.snapshot(), &domains, None);
        }
        self.count_ranking(&answer);
        Ok(answer)
    }

    /// Waits until the index has every skill with its body, as metrics of a collection require: otherwise only a part
    /// of it would be measured.
    async fn wait_for_index(&self) -> Result<(), Error> {
        self.wait_for_catalog().await?;
        self.shared.bodies_read(self.catalog_timeout).await;
        Ok(())
    }

    /// Rebuilds the index if a request found corrupt data in its file; returns whether it did.
    async fn rebuild_damaged_index(&self) -> Result<bool, Error> {
        let damaged =
            |shared: &Shared| shared.router.read().unwrap_or_else(PoisonError::into_inner).is_damaged();
        if !damaged(&self.shared) {
            return Ok(false);
        }
        let _one = self.rebuilding.lock().await;
        if damaged(&self.shared) {
            let (indexer, catalogue) = (self.indexer(), self.registry.snapshot());
            run_blocking(move || {
                indexer.rebuild(&catalogue);
                Ok(())
            })
            .await?;
        }
        Ok(true)
    }

    fn count_ranking(&self, answer: &Answer) {
        self.metrics.discovery(Duration::from_micros(answer.took_us));
        for link in &answer.matchers {
            match &link.state {
                MatcherState::Failed(why) => {
                    tracing::warn!(link = link.matcher, why, "a matcher was skipped");
                    self.operations.link_failed(&link.matcher);
                    self.metrics.record_skipped_matcher(&link.matcher);
                }
                MatcherState::Ran => self.metrics.link(&link.matcher, Duration::from_micros(link.took_us)),
                MatcherState::Idle | MatcherState::Off => {}
            }
        }
    }
}

/// Returns the defaults of a request from the settings: policy, limit and use of bodies.
#[must_use]
pub fn usual_request(config: &Config) -> Request {
    let policy = match config.policy {
        RankPolicy::Blended => Policy::Blended,
        RankPolicy::Strict => Policy::Strict,
    };
    let usual = Request::default();
    Request { policy, limit: config.limit.unwrap_or(usual.limit), with_body: config.with_body, ..usual }
}

/// Creates a folder that is removed with this process: for the files of a demo, and of runs that are not persistent.
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

/// Returns an empty router with the weights of this program and without the matchers that the settings disable.
///
/// Interactive users prefer an answer without a late matcher; scripts need the same answer whatever else the machine
/// does, so the matchers of a `patient` router may take their time.
fn router(config: &Config, patient: bool) -> Result<Router, Error> {
    let weights = Weights::shipped()
        .map_err(|e| Error::new(Code::InternalError, format!("the ranker's weights: {e}")))?;
    Router::new(if patient { weights.patient() } else { weights })
        .without_matchers(config.links.off())
        .map_err(|e| Error::new(Code::InvalidRequest, e.to_string()))
}

/// Runs blocking or long work on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(Error::broken_off(&error)))
}

fn rank(shared: &Shared, request: &Request, adjustments: &Adjustments) -> Result<Answer, Error> {
    let router = shared.router.read().unwrap_or_else(PoisonError::into_inner);
    router
        .discover_adjusted(request, adjustments)
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
        if *self.shared.ready.borrow() {
            return Ok(());
        }
        // The index follows the scan: ranking an empty one would report that no skill fits.
        let mut ready = self.shared.ready.subscribe();
        let indexed = tokio::time::timeout(self.catalog_timeout, ready.wait_for(|ready| *ready)).await;
        indexed.map(drop).map_err(|_| {
            let progress = self.registry.progress();
            let message = if progress.done {
                format!("{} skills are still being indexed; try again shortly", progress.found)
            } else {
                let (parsed, found) = (progress.parsed, progress.found);
                format!(
                    "skills are still being loaded ({parsed} of at least {found} so far); try again shortly"
                )
            };
            Error::new(Code::NotReady, message)
        })
    }

    async fn wait_for_bodies(&self) {
        if self.shared.is_reading_bodies() {
            let deadline = *self.bodies_deadline.get_or_init(|| Instant::now() + BODIES_TIMEOUT);
            // The answer states what has not been read by then.
            self.shared.bodies_read(deadline.saturating_duration_since(Instant::now())).await;
        }
    }

    async fn catalogue(&self) -> Result<Arc<Catalogue>, Error> {
        Ok(self.registry.snapshot())
    }

    async fn discover(&self, request: Request) -> Result<Answer, Error> {
        let began = Instant::now();
        let answer = match request_limits::admit(request) {
            Ok(request) => self.ranked(request).await,
            Err(error) => Err(error),
        };
        self.operations.counted("discover", began, answer)
    }

    async fn list(&self, filter: ListFilter) -> Result<SkillList, Error> {
        let began = Instant::now();
        let catalogue = self.registry.snapshot();
        let facts = self.facts();
        let list = run_blocking(move || {
            let mut list = listing::list(&catalogue, &filter)?;
            list.skills.par_iter_mut().for_each(|summary| facts.add(&catalogue, summary));
            Ok(list)
        })
        .await;
        self.operations.counted("list", began, list)
    }

    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error> {
        let began = Instant::now();
        let detail = match self.resolve(skill) {
            Ok(skill) => {
                let catalogue = self.registry.snapshot();
                let facts = self.facts();
                run_blocking(move || {
                    let mut detail = detail::describe(&catalogue, &skill)?;
                    facts.add(&catalogue, &mut detail.summary);
                    Ok(detail)
                })
                .await
            }
            Err(error) => Err(error),
        };
        self.operations.counted("describe", began, detail)
    }

    async fn read_file(&self, skill: &str, path: &str) -> Result<FileContent, Error> {
        let began = Instant::now();
        let file = match self.resolve(skill) {
            Ok(skill) => {
                let path = path.to_owned();
                run_blocking(move || detail::read_file(&skill, &path)).await
            }
            Err(error) => Err(error),
        };
        self.operations.counted("read_file", began, file)
    }

    async fn levels(&self, skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error> {
        let began = Instant::now();
        let catalogue = self.registry.snapshot();
        let found: Vec<Arc<Skill>> =
            skills.iter().filter_map(|id| catalogue.by_id(id.as_str()).map(Arc::clone)).collect();
        let levels = Arc::clone(&self.levels);
        let counted = run_blocking(move || {
            let counted = found.iter().map(|skill| levels.of(skill)).collect();
            levels.save(Instant::now());
            Ok(counted)
        })
        .await;
        self.operations.counted("levels", began, counted)
    }

    async fn body_lines(&self, skill: &str, intent: &str, limit: usize) -> Result<Vec<BodyLine>, Error> {
        let began = Instant::now();
        let lines = match self.resolve(skill).and_then(|skill| Ok((skill, request_limits::intent(intent)?))) {
            Ok((skill, intent)) => {
                let shared = Arc::clone(&self.shared);
                run_blocking(move || {
                    let source = detail::source(&skill)?;
                    let router = shared.router.read().unwrap_or_else(PoisonError::into_inner);
                    Ok(router.body_lines(skills_skill::body(&source), skill.body_line, &intent, limit))
                })
                .await
            }
            Err(error) => Err(error),
        };
        self.operations.counted("body_lines", began, lines)
    }

    async fn client_view(&self, client: &str) -> Result<ClientView, Error> {
        let began = Instant::now();
        let view = in_place(|| self.client_list(client));
        self.operations.counted("client_view", began, view)
    }

    async fn draft(&self, request: DraftRequest) -> Result<DraftReport, Error> {
        let began = Instant::now();
        let report = self.drafted(request).await;
        self.operations.counted("draft", began, report)
    }

    async fn golden_report(&self, request: GoldenRequest) -> Result<GoldenReport, Error> {
        let began = Instant::now();
        let report = self.golden_measured(request).await;
        self.operations.counted("golden_report", began, report)
    }

    async fn golden_explain(&self, request: GoldenExplainRequest) -> Result<GoldenExplanation, Error> {
        let began = Instant::now();
        let explanation = self.golden_explained(request).await;
        self.operations.counted("golden_explain", began, explanation)
    }

    async fn budget_fit(&self, request: BudgetFitRequest) -> Result<BudgetFit, Error> {
        let began = Instant::now();
        let fit = self.budget_fitted(request).await;
        self.operations.counted("budget_fit", began, fit)
    }

    async fn propose(&self, request: ProposalRequest) -> Result<ProposalView, Error> {
        let began = Instant::now();
        let view = self.store_proposal(request).await;
        self.operations.counted("propose", began, view)
    }

    async fn proposals(&self, filter: ProposalFilter) -> Result<ProposalList, Error> {
        let began = Instant::now();
        let list = self.list_proposals(filter).await;
        self.operations.counted("proposals", began, list)
    }

    async fn proposal(&self, proposal: &str) -> Result<ProposalView, Error> {
        let began = Instant::now();
        let view = self.show_proposal(proposal).await;
        self.operations.counted("proposal", began, view)
    }

    async fn order_proposal(
        &self,
        proposal: &str,
        order: ProposalOrder,
        by: ProposalOrderedBy,
    ) -> Result<ProposalOrdered, Error> {
        let began = Instant::now();
        let ordered = self.decide_proposal(proposal, order, by).await;
        self.operations.counted("order_proposal", began, ordered)
    }

    async fn collisions(&self, filter: CollisionFilter) -> Result<CollisionReport, Error> {
        let began = Instant::now();
        let report = self.collided(filter).await;
        self.operations.counted("collisions", began, report)
    }

    async fn rivals(&self, skill: &str) -> Result<SkillRivals, Error> {
        let began = Instant::now();
        let report = self.rivals_of(skill).await;
        self.operations.counted("rivals", began, report)
    }

    async fn compare_skills(&self, first: &str, second: &str) -> Result<PairReport, Error> {
        let began = Instant::now();
        let report = self.compared(first, second).await;
        self.operations.counted("compare_skills", began, report)
    }

    async fn lint(&self, filter: LintFilter) -> Result<LintReport, Error> {
        let began = Instant::now();
        let report = match filter.skill.as_deref().map(|wanted| self.resolve(wanted)).transpose() {
            Ok(skill) => {
                let catalogue = self.registry.snapshot();
                run_blocking(move || super::lint::catalogue(&catalogue).page(&filter, skill.as_deref())).await
            }
            Err(error) => Err(error),
        };
        self.operations.counted("lint", began, report)
    }

    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(client::profiles().iter().map(|profile| (profile.id.clone(), profile.name.clone())).collect())
    }

    async fn diagnostics(&self) -> Result<Diagnostics, Error> {
        self.diagnose().await
    }

    async fn ensure_store(&self) -> Result<(), Error> {
        self.runs.store.ensure_known_store().await?;
        self.runs.store.ensure_store()
    }

    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error> {
        self.reset_counting().await?;
        self.diagnose().await
    }

    async fn metrics(&self) -> Result<MetricsReport, Error> {
        self.refresh_gauges().await;
        self.metrics.report().map_err(|e| Error::new(Code::InternalError, format!("the metrics: {e}")))
    }

    async fn metrics_text(&self) -> Result<String, Error> {
        self.refresh_gauges().await;
        self.metrics.text().map_err(|e| Error::new(Code::InternalError, format!("the metrics: {e}")))
    }

    async fn governance(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error> {
        let began = Instant::now();
        let list = self.governed(filter).await;
        self.operations.counted("governance", began, list)
    }

    async fn rescan(&self) -> Result<(), Error> {
        self.registry.rescan();
        Ok(())
    }
}

/// How long a request to a service that has just started waits for the first scan of the skills.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests of other processes wait for bodies, counted from the first of them.
const BODIES_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a one-shot command waits for a scan that hangs (a dead network share) before it answers with what was
/// found.
const SCAN_PATIENCE: Duration = Duration::from_secs(120);
