//! Runs in this process: combines store, engine, broker, trust and policy. These are opened at the first use.

mod approval;
mod artifacts;
mod attach;
mod attempts;
mod audit_entries;
mod capabilities;
mod capability_run;
mod catalog;
mod checks;
mod choices;
mod client;
mod commands;
mod contract_view;
mod contracts;
mod control_request;
mod decision_preview;
mod detail;
mod durations;
mod find;
mod identity;
mod launch;
mod lease_holder;
mod maintenance;
mod metered_broker;
mod notifications;
mod observed_store;
mod operator;
mod overrides;
mod permission;
mod questions;
mod references;
mod runtime;
mod steps;
mod summary;
mod tasks;
mod transcripts;
mod workers;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{OnceCell, Semaphore};

pub(super) use self::approval::Approvals;
use self::artifacts::Uploads;
use self::attach::Attachments;
use self::checks::HealthChecks;
use self::commands::Commands;
use self::contract_view::ContractViews;
use self::detail::Details;
pub use self::identity::account;
use self::launch::Launches;
pub(super) use self::launch::Plans;
pub(super) use self::launch::files as handed_over;
pub use self::maintenance::StoreMaintenance;
pub(super) use self::operator::RunOverview;
use self::operator::{Maintenance, SavedViews};
pub(super) use self::permission::Permissions;
use self::references::Targets;
pub use self::runtime::config_problems;
pub(super) use self::runtime::{CapabilityServices, RunStore, StorePlace};
use self::runtime::{LaunchPlaces, RunRuntime};
use self::workers::{OwnWorkers, Workers};
use super::Local;
use super::indexer::Shared;
use super::skills::Skills;
use crate::policies::PolicyFile;
use crate::{Error, Event, SingleFlight};
use skills_base::audit::Recorder;
use skills_base::sync::MutexExt as _;
use skills_base::telemetry::Metrics;
use skills_registry::Trust;
use skills_sandbox::Sandbox;

/// Everything about runs.
pub(super) struct Runs {
    pub services: Arc<CapabilityServices>,
    pub permissions: Arc<Permissions>,
    pub store: Arc<RunStore>,
    pub plans: Arc<Plans>,
    pub contracts: ContractViews,
    pub launches: Arc<Launches>,
    pub targets: Targets,
    pub attachments: Attachments,
    pub uploads: Arc<Uploads>,
    pub approvals: Arc<Approvals>,
    pub details: Details,
    pub commands: Commands,
    pub workers: Arc<Workers>,
    pub overview: RunOverview,
    pub views: SavedViews,
    pub health: HealthChecks,
    notices: Arc<Notices>,
}

impl Runs {
    pub(super) fn new(
        skills: &Skills,
        shared: &Arc<Shared>,
        trust: &Trust,
        policy: &Arc<PolicyFile>,
        metrics: &Metrics,
        audit: &Arc<Recorder>,
    ) -> Self {
        let Skills { config, registry } = skills;
        let by_contract_id = Arc::<contracts::ByContractId>::default();
        let own_workers = Arc::<OwnWorkers>::default();
        let notices = Arc::new(Notices { shared: Arc::clone(shared), published: Mutex::default() });
        let data_dir = (!config.demo).then_some(config.dirs.data.as_path());
        let services = Arc::new(CapabilityServices {
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
        });
        let permissions = Arc::new(Permissions {
            registry: Arc::clone(registry),
            policy: Arc::clone(policy),
            audit: Arc::clone(audit),
            by_contract_id: Arc::clone(&by_contract_id),
            services: Arc::clone(&services),
            claiming: AtomicBool::new(true),
        });
        let places = LaunchPlaces {
            config: Arc::clone(config),
            registry: Arc::clone(registry),
            known: Arc::default(),
        };
        let store = Arc::new(RunStore {
            config: Arc::clone(config),
            metrics: metrics.clone(),
            audit: Arc::clone(audit),
            notices: Arc::clone(&notices),
            places: places.clone(),
            services: Arc::clone(&services),
            permissions: Arc::clone(&permissions),
            runtime: OnceCell::new(),
        });
        let plans = Arc::new(Plans {
            config: Arc::clone(config),
            skills: skills.clone(),
            trust: trust.clone(),
            by_contract_id,
            services: Arc::clone(&services),
            permissions: Arc::clone(&permissions),
            launching: SingleFlight::default(),
        });
        let contracts = ContractViews {
            config: Arc::clone(config),
            trust: trust.clone(),
            plans: Arc::clone(&plans),
            services: Arc::clone(&services),
            permissions: Arc::clone(&permissions),
        };
        let approvals = Arc::new(Approvals {
            config: Arc::clone(config),
            registry: Arc::clone(registry),
            services: Arc::clone(&services),
            permissions: Arc::clone(&permissions),
            places: places.clone(),
            approver: OnceCell::new(),
        });
        let uploads = Arc::new(Uploads {
            services: Arc::clone(&services),
            metrics: metrics.clone(),
            audit: Arc::clone(audit),
        });
        let targets = Targets { registry: Arc::clone(registry), store: Arc::clone(&store) };
        let workers = Arc::new(Workers {
            config: Arc::clone(config),
            audit: Arc::clone(audit),
            notices: Arc::clone(&notices),
            store: Arc::clone(&store),
            services: Arc::clone(&services),
            places: places.clone(),
            approvals: Arc::clone(&approvals),
            maintenance: Maintenance {
                config: Arc::clone(config),
                audit: Arc::clone(audit),
                store: Arc::clone(&store),
                uploads: Arc::clone(&uploads),
                permissions: Arc::clone(&permissions),
            },
            own: Arc::clone(&own_workers),
            working: tokio::sync::Mutex::default(),
            cleared: AtomicBool::new(false),
            direct: skills_runs::CallerPermits::new(workers::MAX_DIRECT),
            stopping: Mutex::default(),
        });
        let launches = Arc::new(Launches {
            config: Arc::clone(config),
            store: Arc::clone(&store),
            plans: Arc::clone(&plans),
            workers: Arc::clone(&workers),
        });
        Self {
            contracts,
            attachments: Attachments {
                store: Arc::clone(&store),
                trust: trust.clone(),
                plans: Arc::clone(&plans),
                targets: targets.clone(),
                preparing: Semaphore::new(attach::MAX_PREPARED),
                launches: Arc::clone(&launches),
                workers: Arc::clone(&workers),
            },
            details: Details {
                store: Arc::clone(&store),
                services: Arc::clone(&services),
                plans: Arc::clone(&plans),
                approvals: Arc::clone(&approvals),
                places,
                building: Semaphore::new(detail::MAX_BUILT),
            },
            commands: Commands {
                store: Arc::clone(&store),
                plans: Arc::clone(&plans),
                permissions: Arc::clone(&permissions),
                approvals: Arc::clone(&approvals),
                own_workers: Arc::clone(&own_workers),
            },
            overview: RunOverview { store: Arc::clone(&store), audit: Arc::clone(audit) },
            views: SavedViews { config: Arc::clone(config), store: Arc::clone(&store) },
            health: HealthChecks {
                config: Arc::clone(config),
                registry: Arc::clone(registry),
                trust: trust.clone(),
                store: Arc::clone(&store),
                services: Arc::clone(&services),
                own_workers,
            },
            services,
            permissions,
            store,
            plans,
            launches,
            targets,
            uploads,
            approvals,
            workers,
            notices,
        }
    }
}

/// Notices about this process: for subscribers of events now, and for clients that fetch them later.
struct Notices {
    shared: Arc<Shared>,
    published: Mutex<Vec<String>>,
}

impl Notices {
    fn publish(&self, notice: String) {
        tracing::warn!("{notice}");
        self.shared.emit(Event::Notice(notice.clone()));
        self.published.locked().push(notice);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.published.locked())
    }
}

impl Local {
    /// Replaces the sandbox, for programs that are not their own sandbox helper. Must be called before anything is run.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Sandbox) -> Self {
        drop(self.runs.services.sandbox.set(sandbox));
        self
    }

    /// Starts the workers of this process: from now on pending runs of the store are executed here. Opens the store. A
    /// failure is also reported as a notice.
    pub async fn start_workers(&self) -> Result<(), Error> {
        self.runs.workers.start_workers().await?;
        let counting = self.counter.start().await;
        if let Err(error) = &counting {
            self.runs.notices.publish(format!("cannot record metrics: {error}"));
        }
        counting
    }

    /// Stops the runs that requests of this process execute: its clients get their current state.
    pub fn stop_requests(&self) {
        self.runs.workers.stop_requests();
    }

    /// Stops the workers of this process and releases their runs, so that others continue them.
    pub async fn stop_workers(&self) {
        self.runs.workers.stop_workers(false).await;
        self.counter.finish().await;
    }

    /// Like [`Self::stop_workers`] without a grace period: for a process that has to exit immediately.
    pub async fn stop_workers_at_once(&self) {
        self.runs.workers.stop_workers(true).await;
        self.counter.finish().await;
    }

    /// Returns and clears the notices since the last call, for example about a damaged store that was set aside.
    pub fn take_notices(&self) -> Vec<String> {
        self.runs.notices.take()
    }
}
