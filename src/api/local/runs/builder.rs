//! Builds the parts of [`Runs`] and connects them.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{OnceCell, Semaphore};

use super::contracts::ByContractId;
use super::runtime::LaunchPlaces;
use super::workers::OwnWorkers;
use super::{
    Approvals, Attachments, CapabilityServices, Commands, ContractViews, Details, HealthChecks, Launches,
    Maintenance, Notices, Permissions, Plans, RunOverview, RunStore, Runs, SavedViews, Targets, Uploads,
    Workers, attach, catalog, detail, overrides, workers,
};
use crate::SingleFlight;
use crate::local::indexer::Shared;
use crate::local::skills::Skills;
use crate::policies::PolicyFile;
use skills_base::audit::Recorder;
use skills_base::telemetry::Metrics;
use skills_config::Config;
use skills_registry::{Registry, Trust};
use skills_runs::CallerPermits;

impl Runs {
    pub(in crate::local) fn new(
        skills: &Skills,
        shared: &Arc<Shared>,
        trust: &Trust,
        policy: &Arc<PolicyFile>,
        metrics: &Metrics,
        audit: &Arc<Recorder>,
    ) -> Self {
        let services = Arc::new(capability_services(skills, trust, policy, audit));
        let by_contract_id = Arc::<ByContractId>::default();
        let permissions = Arc::new(Permissions {
            registry: Arc::clone(&skills.registry),
            policy: Arc::clone(policy),
            audit: Arc::clone(audit),
            by_contract_id: Arc::clone(&by_contract_id),
            services: Arc::clone(&services),
            claiming: AtomicBool::new(true),
        });
        let builder = Builder {
            skills,
            trust,
            metrics,
            audit,
            notices: Arc::new(Notices { shared: Arc::clone(shared), published: Mutex::default() }),
            places: LaunchPlaces {
                config: Arc::clone(&skills.config),
                registry: Arc::clone(&skills.registry),
                known: Arc::default(),
            },
            own_workers: Arc::default(),
            by_contract_id,
            services,
            permissions,
        };
        builder.build()
    }
}

fn capability_services(
    skills: &Skills,
    trust: &Trust,
    policy: &Arc<PolicyFile>,
    audit: &Arc<Recorder>,
) -> CapabilityServices {
    let Skills { config, registry } = skills;
    let data_dir = (!config.demo).then_some(config.dirs.data.as_path());
    CapabilityServices {
        config: Arc::clone(config),
        registry: Arc::clone(registry),
        trust: trust.clone(),
        policy: Arc::clone(policy),
        audit: Arc::clone(audit),
        catalog_cache: catalog::CatalogCache::default(),
        reread: tokio::sync::Mutex::default(),
        overrides: overrides::Overrides::new(data_dir),
        sandbox: OnceLock::new(),
        calling: Mutex::default(),
    }
}

/// What several parts of [`Runs`] share.
struct Builder<'a> {
    skills: &'a Skills,
    trust: &'a Trust,
    metrics: &'a Metrics,
    audit: &'a Arc<Recorder>,
    notices: Arc<Notices>,
    places: LaunchPlaces,
    own_workers: Arc<OwnWorkers>,
    by_contract_id: Arc<ByContractId>,
    services: Arc<CapabilityServices>,
    permissions: Arc<Permissions>,
}

impl Builder<'_> {
    fn build(self) -> Runs {
        let store = Arc::new(self.store());
        let plans = Arc::new(self.plans());
        let approvals = Arc::new(self.approvals());
        let uploads = Arc::new(Uploads {
            services: Arc::clone(&self.services),
            metrics: self.metrics.clone(),
            audit: Arc::clone(self.audit),
        });
        let workers = Arc::new(self.workers(&store, &approvals, &uploads));
        let targets = Targets { registry: self.registry(), store: Arc::clone(&store) };
        let launches = Arc::new(Launches {
            config: self.config(),
            store: Arc::clone(&store),
            plans: Arc::clone(&plans),
            workers: Arc::clone(&workers),
        });
        Runs {
            contracts: self.contract_views(&plans),
            attachments: Attachments {
                store: Arc::clone(&store),
                plans: Arc::clone(&plans),
                targets: targets.clone(),
                preparing: Semaphore::new(attach::MAX_PREPARED),
                launches: Arc::clone(&launches),
                workers: Arc::clone(&workers),
            },
            details: self.details(&store, &plans, &approvals),
            commands: self.commands(&store, &plans, &approvals),
            overview: RunOverview { store: Arc::clone(&store), audit: Arc::clone(self.audit) },
            views: SavedViews { config: self.config(), store: Arc::clone(&store) },
            health: self.health_checks(&store, &plans),
            services: self.services,
            permissions: self.permissions,
            store,
            plans,
            launches,
            targets,
            uploads,
            approvals,
            workers,
            notices: self.notices,
        }
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.skills.config)
    }

    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.skills.registry)
    }

    fn store(&self) -> RunStore {
        RunStore {
            config: self.config(),
            metrics: self.metrics.clone(),
            audit: Arc::clone(self.audit),
            notices: Arc::clone(&self.notices),
            places: self.places.clone(),
            services: Arc::clone(&self.services),
            permissions: Arc::clone(&self.permissions),
            runtime: OnceCell::new(),
        }
    }

    fn plans(&self) -> Plans {
        Plans {
            config: self.config(),
            skills: self.skills.clone(),
            trust: self.trust.clone(),
            by_contract_id: Arc::clone(&self.by_contract_id),
            services: Arc::clone(&self.services),
            permissions: Arc::clone(&self.permissions),
            launching: SingleFlight::default(),
        }
    }

    fn contract_views(&self, plans: &Arc<Plans>) -> ContractViews {
        ContractViews {
            config: self.config(),
            plans: Arc::clone(plans),
            services: Arc::clone(&self.services),
            permissions: Arc::clone(&self.permissions),
        }
    }

    fn approvals(&self) -> Approvals {
        Approvals {
            config: self.config(),
            registry: self.registry(),
            services: Arc::clone(&self.services),
            permissions: Arc::clone(&self.permissions),
            places: self.places.clone(),
            approver: OnceCell::new(),
        }
    }

    fn workers(&self, store: &Arc<RunStore>, approvals: &Arc<Approvals>, uploads: &Arc<Uploads>) -> Workers {
        Workers {
            config: self.config(),
            audit: Arc::clone(self.audit),
            notices: Arc::clone(&self.notices),
            store: Arc::clone(store),
            services: Arc::clone(&self.services),
            places: self.places.clone(),
            approvals: Arc::clone(approvals),
            maintenance: Maintenance {
                config: self.config(),
                audit: Arc::clone(self.audit),
                store: Arc::clone(store),
                uploads: Arc::clone(uploads),
                permissions: Arc::clone(&self.permissions),
            },
            own: Arc::clone(&self.own_workers),
            working: tokio::sync::Mutex::default(),
            cleared: AtomicBool::new(false),
            direct: CallerPermits::new(workers::MAX_DIRECT),
            stopping: Mutex::default(),
        }
    }

    fn details(&self, store: &Arc<RunStore>, plans: &Arc<Plans>, approvals: &Arc<Approvals>) -> Details {
        Details {
            store: Arc::clone(store),
            services: Arc::clone(&self.services),
            plans: Arc::clone(plans),
            approvals: Arc::clone(approvals),
            places: self.places.clone(),
            building: Semaphore::new(detail::MAX_BUILT),
        }
    }

    fn commands(&self, store: &Arc<RunStore>, plans: &Arc<Plans>, approvals: &Arc<Approvals>) -> Commands {
        Commands {
            store: Arc::clone(store),
            plans: Arc::clone(plans),
            permissions: Arc::clone(&self.permissions),
            approvals: Arc::clone(approvals),
            own_workers: Arc::clone(&self.own_workers),
        }
    }

    fn health_checks(&self, store: &Arc<RunStore>, plans: &Arc<Plans>) -> HealthChecks {
        HealthChecks {
            config: self.config(),
            registry: self.registry(),
            trust: self.trust.clone(),
            store: Arc::clone(store),
            plans: Arc::clone(plans),
            services: Arc::clone(&self.services),
            own_workers: Arc::clone(&self.own_workers),
        }
    }
}
