//! Builds the core from its parts.

use std::sync::Arc;

use super::audit::{self, AuditLogs};
use super::cache_file::CacheFile;
use super::collisions::Collisions;
use super::counters::Counter;
use super::golden::{GoldenCache, Measurements};
use super::indexer::Shared;
use super::levels::Levels;
use super::operations::Operations;
use super::proposals::{ProposalFolder, Proposals};
use super::quality_states::Governance;
use super::ranking::Ranking;
use super::records::SkillRecords;
use super::reports::Reports;
use super::runs::{Runs, StoreMaintenance};
use super::sessions::{AgentFolders, ClientLists, ComposedCatalogs, LocalSessions, Views};
use super::skills::Skills;
use super::trust::{PolicyViews, TrustPins};
use super::{Local, ensure_cache, router};
use crate::known_contracts::KnownContracts;
use crate::policies::PolicyFile;
use crate::{Code, Error, client_view};
use skills_base::telemetry::Metrics;
use skills_config::Config;
use skills_registry::{Registry, Settings, Trust};

/// Opens the registry, and builds the core around it.
///
/// # Errors
/// Returns `internal_error` if a thread cannot be started or a data file of this program is damaged.
pub(super) fn compose(mut config: Config, generous_time_limits: bool) -> Result<Local, Error> {
    let internal = |what: &str, why: String| Error::new(Code::InternalError, format!("{what}: {why}"));
    let temporary_cache = ensure_cache(&mut config)?;
    // Its thread reads the cache while the router is built here.
    let settings = Settings::new(&config);
    let build = settings.build.clone();
    let registry =
        Registry::open(settings).map_err(|e| internal("cannot open the registry", e.to_string()))?;
    let router = router(&config, generous_time_limits)?;
    let cache = |file: &str, kind: &'static str, version: String| {
        (!config.demo).then(|| CacheFile::new(config.dirs.cache.join(file), kind, version))
    };
    let tokens = cache("tokens.bin", "tokens", "o200k 2".to_owned());
    let maps = Arc::new(Collisions::new(cache("collisions.json", "collisions", build)));
    let levels = Arc::new(Levels::new(tokens));
    let (trust, policy) = (Trust::of(&config), Arc::new(PolicyFile::of(&config)));
    let audit = audit::recorder(&config);
    let folder = ProposalFolder::of(&config, &audit);
    let (config, shared) = (Arc::new(config), Arc::new(Shared::new(router)));
    let skills = Skills { config: Arc::clone(&config), registry: Arc::new(registry) };
    let metrics = Metrics::default();
    let operations = Arc::new(Operations::new(metrics.clone()));
    let contracts = Arc::<KnownContracts>::default();
    let golden = Arc::<GoldenCache>::default();
    let reports = Arc::new(Reports::new());
    let runs = Runs::new(&skills, &shared, &trust, &policy, &metrics, &audit);
    let ranking = Arc::new(Ranking::new(&skills, &shared, &policy, &operations, metrics.clone()));
    let lists = Arc::new(ClientLists {
        skills: skills.clone(),
        policy: Arc::clone(&policy),
        levels: Arc::clone(&levels),
        agents: AgentFolders { skills: skills.clone() },
        prepared: ComposedCatalogs::default(),
        views: Views::default(),
        skill_files: client_view::SkillFiles::default(),
    });
    Ok(Local {
        counter: Counter::new(&ranking, &runs),
        records: SkillRecords {
            skills: skills.clone(),
            levels: Arc::clone(&levels),
            trust: trust.clone(),
            contracts: Arc::clone(&contracts),
            policy: Arc::clone(&policy),
            reports: Arc::clone(&reports),
        },
        measurements: Measurements {
            skills: skills.clone(),
            levels: Arc::clone(&levels),
            golden: Arc::clone(&golden),
            lists: Arc::clone(&lists),
            maps,
            ranking: Arc::clone(&ranking),
        },
        proposals: Proposals {
            skills: skills.clone(),
            folder,
            levels,
            golden,
            trust: trust.clone(),
            ranking: Arc::clone(&ranking),
            approvals: Arc::clone(&runs.approvals),
        },
        quality: Governance {
            skills: skills.clone(),
            shared: Arc::clone(&shared),
            trust: trust.clone(),
            contracts,
            policy: Arc::clone(&policy),
            store: Arc::clone(&runs.store),
            plans: Arc::clone(&runs.plans),
            reports,
        },
        sessions: Arc::new(LocalSessions::new(&lists, &ranking, &runs, &audit)),
        audit_logs: AuditLogs {
            config: Arc::clone(&config),
            recorder: Arc::clone(&audit),
            store: Arc::clone(&runs.store),
        },
        maintenance: StoreMaintenance { config, store: Arc::clone(&runs.store) },
        trust_pins: TrustPins { skills: skills.clone(), trust, audit },
        policies: PolicyViews { skills: skills.clone(), policy, ranking: Arc::clone(&ranking) },
        skills,
        shared,
        operations,
        metrics,
        ranking,
        lists,
        runs,
        temporary_cache,
    })
}
