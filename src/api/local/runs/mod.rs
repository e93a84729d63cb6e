//! Runs in this process: combines store, engine, broker, trust and policy. These are opened at the first use.

mod approval;
mod artifacts;
mod attach;
mod attempts;
mod audited;
mod capabilities;
mod capability_run;
mod catalogue;
mod checks;
mod choices;
mod client;
mod commands;
mod contract_view;
mod contracts;
mod control_request;
mod detail;
mod durations;
mod find;
mod identity;
mod launch;
mod lease_holder;
mod maintenance;
mod measured;
mod notifications;
mod observed;
mod operating;
mod overrides;
mod permission;
mod questions;
mod references;
mod reproduce;
mod runtime;
mod sheet;
mod steps;
mod summary;
mod tasks;
mod transcripts;
mod workers;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tokio::sync::OnceCell;

pub use self::identity::account;
pub(super) use self::launch::files as handed_over;
pub(super) use self::runtime::StorePlace;
pub use self::runtime::config_problems;
use self::runtime::{CallServices, RunRuntime};
use super::Local;
use super::indexer::Shared;
use crate::policies::{self, PolicyFile};
use crate::{Error, Event, SingleFlight, names};
use skills_base::audit::Recorder;
use skills_base::telemetry::Metrics;
use skills_config::Config;
use skills_registry::policy::{Policy, Verdict};
use skills_registry::{Registry, Trust};
use skills_sandbox::Sandbox;
use skills_skill::Skill;

/// Everything about runs.
pub(super) struct Runs {
    config: Arc<Config>,
    registry: Arc<Registry>,
    shared: Arc<Shared>,
    trust: Trust,
    policy: Arc<PolicyFile>,
    metrics: Metrics,
    audit: Arc<Recorder>,
    by_contract_id: contracts::ByContractId,
    catalog_cache: catalogue::CatalogCache,
    /// When roots and trust were last reloaded for a worker that found them outdated.
    reread: tokio::sync::Mutex<Option<Instant>>,
    overrides: overrides::Overrides,
    /// Deduplicates concurrent checks of skills to be launched.
    launching: SingleFlight<launch::Readiness>,
    sandbox: OnceLock<Sandbox>,
    calling: Mutex<Option<Arc<CallServices>>>,
    places: Arc<runtime::KnownPlaces>,
    runtime: OnceCell<Arc<RunRuntime>>,
    working: tokio::sync::Mutex<Option<workers::WorkerSet>>,
    works: AtomicBool,
    /// Whether runs are claimed: not while the policy is invalid.
    claiming: AtomicBool,
    /// Whether work folders of dead processes have been cleaned up.
    cleared: AtomicBool,
    approver: OnceCell<(String, String)>,
    notices: Mutex<Vec<String>>,
}

impl Runs {
    pub(super) fn new(
        config: &Arc<Config>,
        registry: &Arc<Registry>,
        shared: &Arc<Shared>,
        trust: &Trust,
        policy: &Arc<PolicyFile>,
        metrics: &Metrics,
        audit: &Arc<Recorder>,
    ) -> Self {
        let data_dir = (!config.demo).then_some(config.dirs.data.as_path());
        Self {
            overrides: overrides::Overrides::new(data_dir),
            config: Arc::clone(config),
            registry: Arc::clone(registry),
            shared: Arc::clone(shared),
            trust: trust.clone(),
            policy: Arc::clone(policy),
            metrics: metrics.clone(),
            audit: Arc::clone(audit),
            by_contract_id: contracts::ByContractId::default(),
            catalog_cache: catalogue::CatalogCache::default(),
            reread: tokio::sync::Mutex::default(),
            launching: SingleFlight::default(),
            sandbox: OnceLock::new(),
            calling: Mutex::default(),
            places: Arc::default(),
            runtime: OnceCell::new(),
            working: tokio::sync::Mutex::default(),
            works: AtomicBool::new(false),
            claiming: AtomicBool::new(true),
            cleared: AtomicBool::new(false),
            approver: OnceCell::new(),
            notices: Mutex::default(),
        }
    }

    /// Resolves a skill by id, unambiguous name, or location.
    pub(super) fn skill(&self, wanted: &str) -> Result<Arc<Skill>, Error> {
        let catalogue = self.registry.snapshot();
        let place = self.config.cwd.join(wanted);
        let tidy = skills_config::expand(&place.to_string_lossy(), Path::new("/"), &self.config.dirs.home);
        names::resolve(&catalogue, wanted, Some(&tidy))
    }

    /// Returns the sandbox of scripts.
    pub(super) fn isolating(&self) -> Sandbox {
        self.sandbox.get_or_init(|| Sandbox::detect_in(self.config.scripts.work_dir.clone())).clone()
    }

    fn verdict(&self, skill: &Skill) -> Result<Verdict, Error> {
        Ok(policies::verdict(&*self.deciding()?, &self.registry.snapshot(), skill))
    }

    /// Returns the current policy; a change is recorded in the audit log.
    fn deciding(&self) -> Result<Arc<Policy>, Error> {
        let policy = self.policy.current()?;
        if let Some((file, text)) = self.policy.read() {
            self.audit.policy(file, &text);
        }
        Ok(policy)
    }

    /// Returns the default user.
    pub(in crate::local) fn account() -> String {
        identity::account()
    }

    /// Publishes a notice: to subscribers of events now, and to clients that fetch it later.
    fn notify(&self, notice: String) {
        tracing::warn!("{notice}");
        self.shared.emit(Event::Notice(notice.clone()));
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }
}

impl Local {
    /// Replaces the sandbox, for programs that are not their own sandbox helper. Must be called before anything is run.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Sandbox) -> Self {
        drop(self.runs.sandbox.set(sandbox));
        self
    }

    /// Starts the workers of this process: from now on pending runs of the store are executed here. Opens the store.
    ///
    /// # Errors
    /// Returns an error if the store cannot be opened.
    pub async fn start_workers(&self) -> Result<(), Error> {
        self.runs.start_workers().await?;
        self.keep_counting().await
    }

    /// Stops the workers of this process and releases their runs, so that others continue them.
    pub async fn stop_workers(&self) {
        self.runs.stop_workers(false).await;
        self.stop_counting().await;
    }

    /// Like [`Self::stop_workers`] without a grace period: for a process that has to exit immediately.
    pub async fn stop_workers_at_once(&self) {
        self.runs.stop_workers(true).await;
        self.stop_counting().await;
    }

    /// Returns and clears the notices since the last call, for example about a damaged store that was set aside.
    #[must_use]
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.runs.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
