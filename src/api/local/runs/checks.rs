//! The checks of `doctor` for runs: store, workers, isolation, trust, capabilities.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::launch::Plans;
use super::runtime::{CapabilityServices, RunRuntime, RunStore, StorePlace};
use super::workers::OwnWorkers;
use super::{contracts, notifications};
use crate::{Check, Error};
use skills_base::number::{self, byte_size};
use skills_config::{Audience, Config, MEMORY_STORE};
use skills_registry::{Catalog, Registry, RootState, Trust};
use skills_runs::{CallConditions, Caller as _, Capabilities, ProcessIdentity};
use skills_sandbox::{Guarantee, Leftovers, Level, Report, Sandbox};
use skills_skill::Skill;
use skills_store::{QuickCheck, RunFilter, Store};

/// Time limit for checking the pages of the store.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// What to do about a damaged store.
const DAMAGE_HELP: &str =
    "`skills db check` shows where; `skills db restore FILE` restores a backup and keeps the damaged files";

/// The checks of `doctor` for runs.
#[derive(Clone)]
pub(in crate::local) struct HealthChecks {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) trust: Trust,
    pub(super) store: Arc<RunStore>,
    pub(super) plans: Arc<Plans>,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) own_workers: Arc<OwnWorkers>,
}

impl HealthChecks {
    /// Returns one line per subject.
    pub(in crate::local) async fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        match self.store.runtime().await {
            Ok(runtime) => {
                checks.push(self.store_check(&runtime).await);
                checks.push(self.worker_check(&runtime).await);
            }
            Err(error) => checks.push(Check::problem(
                "runs",
                error.message,
                match self.config.audience {
                    Audience::Service => "do what the message says, or use another store",
                    Audience::CommandLine | Audience::Workbench => {
                        "do what the message says, or use another store (--store)"
                    }
                },
            )),
        }
        let health = self.clone();
        let rest = crate::work::run_blocking(move || {
            let capabilities = health.services.capabilities()?;
            let sandbox = health.services.calling()?.sandbox.clone();
            let isolation = isolation(sandbox.report());
            let rest = [
                isolation,
                health.script_check(&sandbox),
                health.trust_check(&capabilities),
                health.capability_check(&capabilities)?,
            ];
            Ok(rest
                .into_iter()
                .chain(notifications::reminder_check(&health.config.notify))
                .collect::<Vec<_>>())
        });
        match rest.await {
            Ok(rest) => checks.extend(rest),
            Err(error) => {
                checks.push(Check::problem("capabilities", error.message, "fix the reported problem"));
            }
        }
        checks
    }

    async fn store_check(&self, runtime: &RunRuntime) -> Check {
        let place = runtime.store.describe();
        if place == MEMORY_STORE
            && let Ok(StorePlace::File(file)) =
                StorePlace::of(self.config.store.as_deref(), &self.config.dirs.data)
        {
            let found =
                format!("sqlite:{} does not exist yet; the first run or session creates it", file.display());
            return Check::good("runs", found);
        }
        let place = if place == MEMORY_STORE { "in memory".to_owned() } else { place };
        let size =
            StorePlace::in_use(&self.config).ok().and_then(|at| at.file().map(size)).unwrap_or_default();
        match counted(&*runtime.store).await {
            Ok(counts) => looked_over(&*runtime.store, format!("{place}{size}; {counts}")).await,
            // A count can fail on a damaged page; the check still finds the damage.
            Err(error) => match runtime.store.quick_check(CHECK_TIMEOUT).await {
                Ok(QuickCheck { damage, .. }) if !damage.is_empty() => {
                    damaged(&format!("{place}{size}"), &damage)
                }
                _ => Check::problem("runs", error.message, DAMAGE_HELP),
            },
        }
    }

    async fn worker_check(&self, runtime: &RunRuntime) -> Check {
        if self.own_workers.works() {
            return Check::good("workers", "running in this process");
        }
        let lately = u64::try_from(skills_runs::HEARTBEAT_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        let here = ProcessIdentity::here();
        match runtime.store.live_workers(lately).await {
            Ok(workers) => match workers.iter().filter(|worker| !here.is_process_dead(worker)).count() {
                0 => Check::good(
                    "workers",
                    "none: commands execute the runs that they start; detached runs wait for a workbench or service",
                ),
                n => Check::good("workers", format!("{n} in other processes")),
            },
            Err(error) => Check::problem("workers", error.to_string(), "`skills db check` checks the store"),
        }
    }

    /// Returns how much a script may write, where, and what dead processes have left there.
    fn script_check(&self, sandbox: &Sandbox) -> Check {
        let limits = self.services.script_limits();
        let place = self.config.scripts.work_dir.as_deref();
        let place = place.map_or_else(|| "a temporary folder".to_owned(), |at| at.display().to_string());
        let disk = sandbox.report().coverage.iter().find(|row| row.promise == Guarantee::Disk);
        let how = disk.map_or("", |row| row.how.as_str());
        let found = format!(
            "{} MiB and {} files per step in {place}; {how}",
            limits.disk >> 20,
            number::grouped(limits.files)
        );
        match sandbox.leftovers() {
            Leftovers { folders: 0, .. } => Check::good("script limits", found),
            Leftovers { folders, bytes } => Check::note(
                "script limits",
                format!(
                    "{found}; stale work directories of processes that ended: {folders}, {}",
                    byte_size(bytes)
                ),
                "the next start of `serve`, the workbench, `run` or `runs work` deletes them",
            ),
        }
    }

    fn trust_check(&self, capabilities: &Capabilities) -> Check {
        let catalog = self.registry.snapshot();
        let bundles: Vec<_> = catalog
            .entries
            .iter()
            .map(|entry| &entry.skill)
            .filter(|skill| skill.root_dir.join("skill.yaml").is_file())
            .collect();
        let trusted = bundles.iter().filter(|skill| self.trust.state(&skill.root_dir).may_run());
        let (mut may, mut refusal) = (0_usize, None);
        for skill in trusted {
            if let Some(why) = self.definition_refusal(capabilities, &catalog, skill) {
                refusal.get_or_insert_with(|| format!("{} cannot run: {why}", skill.id));
            } else {
                may += 1;
            }
        }
        let roots = catalog.roots.iter().filter(|root| root.state == RootState::Present);
        let trusted: Vec<&str> = roots
            .filter(|root| self.trust.state(&root.path).may_run())
            .map(|root| root.label.as_str())
            .collect();
        let roots = if trusted.is_empty() { "none".to_owned() } else { trusted.join(", ") };
        let found = format!("{may} of {} contracts can run; trusted roots: {roots}", bundles.len());
        if may < bundles.len() {
            let advice = || "`skills trust SKILL` shows the content of a bundle and trusts it".to_owned();
            return Check::note("trust", found, refusal.unwrap_or_else(advice));
        }
        Check::good("trust", found)
    }

    /// Returns why the definition of a capability that the contract of a skill calls is not used.
    fn definition_refusal(
        &self,
        capabilities: &Capabilities,
        catalog: &Catalog,
        skill: &Arc<Skill>,
    ) -> Option<String> {
        let plan = self.plans.pin_untrusting(&contracts::read(skill).ok()?, None).ok()?;
        self.services.refusal_in_plan(capabilities, catalog, &plan)
    }

    fn capability_check(&self, capabilities: &Capabilities) -> Result<Check, Error> {
        let broker = &self.services.calling()?.broker;
        let catalog = self.registry.snapshot();
        let all = capabilities.ids().len();
        let conditions = CallConditions::from(self.config.conformance);
        let callable = capabilities
            .ids()
            .filter_map(|id| capabilities.capability(id))
            .filter(|capability| broker.explain(capability, &conditions).chosen.is_some())
            .filter(|capability| {
                self.services.definition_refusal(capabilities, &catalog, capability).is_none()
            })
            .count();
        let found = format!(
            "{all} known ({callable} callable), {} ({} activated), {} configured",
            number::counted(capabilities.bindings().len(), "binding"),
            self.services.chosen()?.len(),
            number::counted(self.config.services.len(), "service")
        );
        let findings = capabilities.findings().len();
        if findings > 0 {
            let found = format!("{found}; {}", number::counted(findings, "finding"));
            return Ok(Check::note(
                "capabilities",
                found,
                "`skills explain-capability` shows why one cannot be called",
            ));
        }
        Ok(Check::good("capabilities", found))
    }
}

/// Checks the pages of a readable store within a time limit.
async fn looked_over(store: &dyn Store, found: String) -> Check {
    match store.quick_check(CHECK_TIMEOUT).await {
        Ok(QuickCheck { damage, .. }) if !damage.is_empty() => damaged(&found, &damage),
        Ok(QuickCheck { is_complete: false, .. }) => Check::note(
            "runs",
            format!("{found}; the page check timed out after {} s", CHECK_TIMEOUT.as_secs()),
            "`skills db check` checks all pages",
        ),
        Ok(QuickCheck { other_roles: 0, .. }) => {
            Check::good("runs", format!("{found}; integrity check passed"))
        }
        Ok(QuickCheck { other_roles, .. }) => Check::note(
            "runs",
            format!(
                "{found}; integrity check passed; {} may connect to the database, and can stop all runs with \
                    advisory locks",
                number::counted(other_roles, "other role")
            ),
            "`REVOKE CONNECT ON DATABASE … FROM PUBLIC`, then `GRANT CONNECT` to the roles of the services",
        ),
        Err(error) => Check::problem("runs", error.to_string(), DAMAGE_HELP),
    }
}

fn damaged(found: &str, damage: &[String]) -> Check {
    Check::problem("runs", format!("{found}; damaged: {}", damage.join("; ")), DAMAGE_HELP)
}

async fn counted(store: &dyn Store) -> Result<String, Error> {
    let page = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?;
    let all: u64 = page.counts.values().sum();
    if all == 0 {
        return Ok("no runs".to_owned());
    }
    let parts: Vec<String> = page.counts.iter().map(|(state, n)| format!("{n} {}", state.label())).collect();
    Ok(format!("{}: {}", number::counted(all, "run"), parts.join(", ")))
}

/// Returns the size of a database with its log, and its journal mode (there is a log only in WAL mode).
fn size(file: &Path) -> String {
    let bytes = |file: &Path| std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let log = Path::new(&log);
    let mode = if log.exists() { ", WAL" } else { "" };
    format!(", {}{mode}", byte_size(bytes(file) + bytes(log)))
}

fn isolation(report: &Report) -> Check {
    let found = report.summary();
    match report.level {
        Level::Full if !report.untested => Check::good("isolation", found),
        Level::Full | Level::Partial => {
            let missing = if report.missing.is_empty() {
                "see the limits above".to_owned()
            } else {
                report.missing.join("; ")
            };
            Check::note("isolation", found, missing)
        }
        Level::Unavailable | Level::Unsandboxed => Check::problem(
            "isolation",
            found,
            "scripts are refused unless a run is launched with --unsandboxed",
        ),
    }
}
