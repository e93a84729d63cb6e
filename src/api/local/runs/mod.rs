//! Runs in this process: combines store, engine, broker, trust and policy. These are opened at the first use.

mod approval;
mod artifacts;
mod attach;
mod attempts;
mod audit_entries;
mod builder;
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
mod possible_calls;
mod questions;
mod references;
mod runtime;
mod steps;
mod summary;
mod tasks;
mod transcripts;
mod workers;

use std::sync::{Arc, Mutex};

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
use self::runtime::RunRuntime;
pub use self::runtime::config_problems;
pub(super) use self::runtime::{CapabilityServices, RunStore, StorePlace};
use self::workers::Workers;
use super::Local;
use super::indexer::Shared;
use crate::{Error, Event};
use skills_base::sync::MutexExt as _;
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
