//! The services that runs need, opened on first use: capabilities and their broker, the store, the engine.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::super::SCAN_TIMEOUT;
use super::super::temporary_folder;
use super::audit_entries;
use super::catalog::CatalogCache;
use super::durations::StepDurations;
use super::metered_broker::CountedBroker;
use super::observed_store::ObservedStore;
use super::overrides::{Chosen, Overrides};
use super::{Notices, Permissions};
use crate::policies::{self, PolicyFile};
use crate::remote::Address;
use crate::{Code, Error, keys};
use skills_base::audit::{Anchor, Recorder};
use skills_base::hex;
use skills_base::locked_folder::LockedFolder;
use skills_base::sync::MutexExt as _;
use skills_base::telemetry::Metrics;
use skills_config::{Audience, Config, MEMORY_STORE, MissingStore, quoted};
use skills_registry::policy::Effect;
use skills_registry::{Catalog, Registry, Root, RootOrigin, SHIPPED, Trust, shipped_versions};
use skills_runs::{
    Artifacts, Broker, BrokerSettings, BundleCheck, BundleRefusal, Capabilities, Engine, Execute,
    ProcessIdentity,
};
use skills_sandbox::{Level, Limits, Sandbox};
use skills_store::{
    self, AuditAnchor, AuditAnchors, Claimed, Clocks, CommitObserver, Counts, KnownStores, OpenOptions,
    Places, Postgres, PostgresAddress, PostgresOptions, Reset, RunQuery, RunRecord, Sessions, Sqlite, Store,
    StoreError, Unavailability,
};

/// Maximum age of the capability catalog when a worker starts a run.
const CAPABILITIES_MAX_AGE: Duration = Duration::from_millis(500);

/// The services that execute capabilities, without a store.
pub(super) struct CallServices {
    /// Files that steps produced.
    pub artifacts: Arc<Artifacts>,
    /// Selects and calls bindings.
    pub broker: Arc<Broker>,
    /// Sandbox of scripts.
    pub sandbox: Sandbox,
    /// Folder of a process whose runs are not persistent; removed on drop.
    _temporary: Option<LockedFolder>,
}

/// The services that execute runs.
pub(in crate::local) struct RunRuntime {
    pub store: Arc<dyn Store>,
    /// The store of sessions, which is the same.
    pub sessions: Arc<dyn Sessions>,
    /// The store of counters, which is the same.
    pub counts: Arc<dyn Counts>,
    /// The store of audit log anchors, which is the same.
    anchors: Arc<dyn AuditAnchors>,
    /// Files that steps produced.
    pub artifacts: Arc<Artifacts>,
    /// Executes claimed runs.
    pub engine: Engine,
    /// The engine in the form that workers require.
    pub execute: Arc<dyn Execute>,
    /// Typical durations of steps.
    pub(super) durations: StepDurations,
}

/// Returns problems of the settings that are parsed only when a store, a service or a saved view is used.
pub fn config_problems(config: &Config) -> Vec<String> {
    let located = |key: &str, problem: String| match config.places.get(key) {
        Some(place) => format!("{place}: {problem}"),
        None => problem,
    };
    let store = StorePlace::of(config.store.as_deref(), &config.dirs.data).err();
    let connect = config.connect.as_deref().and_then(|address| Address::parse(address).err());
    let views = config.runs.views.iter().filter_map(|(name, filter)| {
        Some(format!("the filter of the view `{name}` (runs.views): {}", RunQuery::parse(filter).err()?))
    });
    let store = store.map(|error| located("store", error.to_string()));
    let connect = connect.map(|error| located("connect", error.to_string()));
    store.into_iter().chain(connect).chain(views).collect()
}

/// The location of a store.
pub(in crate::local) enum StorePlace {
    /// In memory: it is lost when the process ends.
    Memory,
    File(PathBuf),
    Server(Box<PostgresAddress>),
}

impl StorePlace {
    /// Returns the location from the settings.
    pub fn of(store: Option<&str>, data: &Path) -> Result<Self, Error> {
        match store {
            None => Ok(Self::File(data.join("runs.db"))),
            Some(MEMORY_STORE) => Ok(Self::Memory),
            Some(address) if PostgresAddress::is_one(address) => {
                let parsed = PostgresAddress::parse(address);
                let address = parsed.map_err(|e| Error::new(Code::InvalidConfiguration, e.to_string()))?;
                Ok(Self::Server(Box::new(address)))
            }
            Some(address) => match address.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
                // Recorded and shown as a path, with the password that it probably contains.
                Some(path) if path.starts_with("//") && path.contains('@') => Err(Error::new(
                    Code::InvalidConfiguration,
                    "the store is a file (sqlite:), but is written like the address of a server; expected sqlite:PATH \
                        or postgres://USER@HOST/DATABASE",
                )),
                Some(path) => Ok(Self::File(PathBuf::from(path))),
                None => Err(Error::new(
                    Code::InvalidConfiguration,
                    "unknown store; expected sqlite:PATH, postgres://USER@HOST/DATABASE, or memory: for a temporary \
                        store",
                )),
            },
        }
    }

    /// Where the store is; in memory where a default store that does not exist is only read.
    ///
    /// # Errors
    /// `invalid_configuration` for a store that is unknown; `store_unavailable` for a damaged record of known stores.
    pub fn in_use(config: &Config) -> Result<Self, Error> {
        let place = Self::of(config.store.as_deref(), &config.dirs.data)?;
        if config.missing_store == MissingStore::EmptyDefault
            && let Some(file) = place.file()
            && !skills_store::has_existed(file, &store_options(config, file))?
        {
            return Ok(Self::Memory);
        }
        Ok(place)
    }

    /// Returns the file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Memory | Self::Server(_) => None,
        }
    }

    /// Returns its address, without a password.
    pub fn describe(&self) -> String {
        match self {
            Self::Memory => MEMORY_STORE.to_owned(),
            Self::File(file) => format!("sqlite:{}", file.display()),
            Self::Server(address) => address.place().to_owned(),
        }
    }

    /// Returns whether opening the store reads one, rather than creating it. `if_missing` applies to a file that does
    /// not exist.
    fn is_stored(&self, if_missing: MissingStore) -> bool {
        match self {
            Self::Memory => false,
            Self::File(file) => file.exists() || if_missing != MissingStore::Create,
            Self::Server(_) => true,
        }
    }
}

fn store_options(config: &Config, file: &Path) -> OpenOptions {
    OpenOptions {
        mode: config.store_mode,
        known: Some(KnownStores::new(config.dirs.known_stores())),
        must_exist: config.missing_store == MissingStore::Refuse,
        own_folder: file.starts_with(&config.dirs.data),
    }
}

/// The capabilities of the current skills and what executes them, opened at the first use.
pub(in crate::local) struct CapabilityServices {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) trust: Trust,
    pub(super) policy: Arc<PolicyFile>,
    pub(super) audit: Arc<Recorder>,
    pub(super) catalog_cache: CatalogCache,
    /// When roots and trust were last reloaded for a worker that found them outdated.
    pub(super) reread: tokio::sync::Mutex<Option<Instant>>,
    pub(super) overrides: Overrides,
    pub(super) sandbox: OnceLock<Sandbox>,
    pub(super) calling: Mutex<Option<Arc<CallServices>>>,
}

impl CapabilityServices {
    /// Returns the sandbox of scripts.
    pub(in crate::local) fn isolating(&self) -> Sandbox {
        self.sandbox.get_or_init(|| Sandbox::detect_in(self.config.scripts.work_dir.clone())).clone()
    }

    /// Returns the services that execute capabilities, with the current catalog. Reads from disk.
    pub(super) fn calling(&self) -> Result<Arc<CallServices>, Error> {
        let mut opened = self.calling.locked();
        if let Some(calling) = &*opened {
            return Ok(Arc::clone(calling));
        }
        let internal =
            |what: &str, why: &std::io::Error| Error::new(Code::InternalError, format!("{what}: {why}"));
        let temporary = match StorePlace::in_use(&self.config)? {
            StorePlace::File(_) | StorePlace::Server(_) if !self.config.demo => None,
            _ => Some(temporary_folder().map_err(|e| internal("a folder for artifacts", &e))?),
        };
        let folder = match &temporary {
            Some(folder) => folder.path().join("artifacts"),
            None => self.config.dirs.data.join("artifacts"),
        };
        let artifacts = Artifacts::open(&folder)
            .map_err(|e| internal(&format!("the artifacts in {}", folder.display()), &e))?;
        let artifacts = Arc::new(artifacts);
        let sandbox = self.isolating();
        let settings = BrokerSettings {
            services: self.config.services.clone(),
            overrides: self.chosen()?,
            limits: self.script_limits(),
            ..BrokerSettings::default()
        };
        let (capabilities, _) = self.catalog_cache.present(&self.registry.snapshot(), &self.trust);
        let check = self.bundle_check();
        let broker = Broker::new(capabilities, settings, sandbox.clone(), check, Arc::clone(&artifacts));
        let calling =
            Arc::new(CallServices { artifacts, broker: Arc::new(broker), sandbox, _temporary: temporary });
        *opened = Some(Arc::clone(&calling));
        Ok(calling)
    }

    /// Returns a check whether something of a bundle may be executed: it must be trusted, and the policy must not deny it.
    fn bundle_check(&self) -> BundleCheck {
        let (trust, policy, registry) =
            (self.trust.clone(), Arc::clone(&self.policy), Arc::clone(&self.registry));
        Arc::new(move |folder, read| {
            let shown = folder.display().to_string();
            if let Some(why) = trust.refusal_of(folder, read, &shown, &shown) {
                return Err(BundleRefusal::Untrusted(why));
            }
            // Nothing is claimed while the policy is invalid; runs claimed before continue.
            let Ok(policy) = policy.current() else { return Ok(()) };
            let catalog = registry.snapshot();
            let Some((skill, _)) = catalog.in_folder(folder) else { return Ok(()) };
            let result = policies::policy_result(&policy, &catalog, skill);
            match result.rules.iter().find(|rule| rule.effect == Effect::Deny) {
                Some(rule) => {
                    Err(BundleRefusal::Denied(format!("the policy forbids {}: {}", skill.id, rule.rule)))
                }
                None => Ok(()),
            }
        })
    }

    /// Returns the resource limits of scripts.
    pub(in crate::local) fn script_limits(&self) -> Limits {
        let (own, stated) = (Limits::default(), &self.config.scripts);
        Limits {
            disk: stated.disk.unwrap_or(own.disk),
            files: stated.files.unwrap_or(own.files),
            // A single file may be as large as all of them together.
            file_size: own.file_size.max(stated.disk.unwrap_or(0)),
            ..own
        }
    }

    /// Returns the current capabilities, which the broker uses from now on. Reads from disk.
    pub(super) fn capabilities(&self) -> Result<Arc<Capabilities>, Error> {
        let calling = self.calling()?;
        let (capabilities, _) = self.catalog_cache.present(&self.registry.snapshot(), &self.trust);
        if !Arc::ptr_eq(&capabilities, &calling.broker.capabilities()) {
            calling.broker.replace(Arc::clone(&capabilities));
        }
        // Another process may have changed them.
        calling.broker.set_overrides(self.chosen()?);
        Ok(capabilities)
    }

    /// Reloads the capabilities from disk for subsequent calls.
    pub(super) async fn refresh(self: &Arc<Self>) -> Result<(), Error> {
        let services = Arc::clone(self);
        crate::work::run_blocking(move || services.capabilities().map(drop)).await
    }

    /// Like [`Self::refresh`], unless that was done within this time.
    async fn refresh_within(self: &Arc<Self>, age: Duration) -> Result<(), Error> {
        let is_current = self.catalog_cache.is_younger_than(age, &self.registry.snapshot());
        if is_current { Ok(()) } else { self.refresh().await }
    }

    /// Reloads roots and trust, unless a reload started after this moment.
    async fn reread(self: &Arc<Self>, requested_at: Instant) {
        let mut last = self.reread.lock().await;
        if last.is_some_and(|began| began >= requested_at) {
            return;
        }
        let began = Instant::now();
        // An unresponsive folder must not delay a run forever.
        if tokio::time::timeout(SCAN_TIMEOUT, self.registry.reread()).await.is_err() {
            tracing::warn!("cannot reload the skills within {} s", SCAN_TIMEOUT.as_secs());
        }
        self.catalog_cache.doubt();
        match self.refresh().await {
            Ok(()) => *last = Some(began),
            Err(error) => tracing::warn!("cannot reload the capabilities: {error}"),
        }
    }

    /// Returns the preferred bindings: those set by `activate` override the settings.
    pub(super) fn chosen(&self) -> Result<Chosen, Error> {
        let mut chosen = self.config.bindings.clone();
        chosen.extend(self.overrides.present()?);
        Ok(chosen)
    }

    /// Returns the store of files that scripts produce.
    pub(in crate::local) fn kept_files(&self) -> Result<Arc<Artifacts>, Error> {
        Ok(Arc::clone(&self.calling()?.artifacts))
    }

    /// Describes the isolation of scripts here.
    pub(super) async fn isolation(self: &Arc<Self>, unsandboxed: bool) -> Result<String, Error> {
        let services = Arc::clone(self);
        crate::work::run_blocking(move || {
            let calling = services.calling()?;
            let report = calling.sandbox.report();
            let summary = report.summary();
            Ok(match (unsandboxed, report.level >= Level::Partial) {
                (true, true) => {
                    format!("{summary} (--unsandboxed has no effect: scripts can be sandboxed)")
                }
                (true, false) => format!("none (--unsandboxed); this machine: {summary}"),
                (false, _) => summary,
            })
        })
        .await
    }
}

/// The store of runs with its engine, opened at the first use.
pub(in crate::local) struct RunStore {
    pub(super) config: Arc<Config>,
    pub(super) metrics: Metrics,
    pub(super) audit: Arc<Recorder>,
    pub(super) notices: Arc<Notices>,
    pub(super) places: LaunchPlaces,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) permissions: Arc<Permissions>,
    pub(super) runtime: OnceCell<Arc<RunRuntime>>,
}

impl RunStore {
    /// Returns the store of sessions; opens the store.
    pub(in crate::local) async fn sessions(self: &Arc<Self>) -> Result<Arc<dyn Sessions>, Error> {
        Ok(Arc::clone(&self.runtime().await?.sessions))
    }

    /// Returns the store of counters, if it is open or can be opened without creating it.
    pub(in crate::local) async fn counts(self: &Arc<Self>) -> Result<Option<Arc<dyn Counts>>, Error> {
        if self.runtime.get().is_none()
            && !StorePlace::in_use(&self.config)?.is_stored(self.config.missing_store)
        {
            return Ok(None);
        }
        Ok(Some(Arc::clone(&self.runtime().await?.counts)))
    }

    /// Returns the stored anchors of the audit log, if there is a store.
    pub(in crate::local) async fn audit_anchors(self: &Arc<Self>) -> Result<Vec<Anchor>, Error> {
        if self.runtime.get().is_none()
            && !StorePlace::in_use(&self.config)?.is_stored(self.config.missing_store)
        {
            return Ok(Vec::new());
        }
        let anchors = Arc::clone(&self.runtime().await?.anchors);
        let mut found = anchors_of(&*anchors, &self.audit_log_name()?).await?;
        if matches!(StorePlace::in_use(&self.config)?, StorePlace::Server(_)) {
            // Of versions that did not store the host, or copied from a store in a file.
            found.extend(anchors_of(&*anchors, &self.audit_file()).await?);
        }
        Ok(found)
    }

    /// Returns the name of the audit log in the store. Hosts that share a store each have a log at the same path.
    fn audit_log_name(&self) -> Result<String, Error> {
        Ok(match StorePlace::in_use(&self.config)? {
            StorePlace::Server(_) => format!("{}:{}", ProcessIdentity::here().host(), self.audit_file()),
            _ => self.audit_file(),
        })
    }

    fn audit_file(&self) -> String {
        self.audit.log().file().display().to_string()
    }

    /// Returns the store of counters; opens the store.
    pub(in crate::local) async fn opened_counts(self: &Arc<Self>) -> Result<Arc<dyn Counts>, Error> {
        Ok(Arc::clone(&self.runtime().await?.counts))
    }

    /// Returns the store and the engine; opened once, at the first operation that needs them.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an unknown kind of store; `store_unavailable`; `internal_error` with the
    /// system's error.
    pub(in crate::local) async fn runtime(self: &Arc<Self>) -> Result<Arc<RunRuntime>, Error> {
        let own = Arc::clone(self);
        let open = || async {
            let runtime = crate::work::run_blocking(move || own.open()).await?;
            self.complete_audit(&runtime).await;
            Ok(runtime)
        };
        self.runtime.get_or_try_init(open).await.cloned()
    }

    /// Returns the store and the engine, if they are open.
    pub(super) fn opened(&self) -> Option<&Arc<RunRuntime>> {
        self.runtime.get()
    }

    /// Records the commands that a killed process of this installation applied and did not record.
    pub(super) async fn complete_audit(&self, runtime: &RunRuntime) {
        if let Err(error) = audit_entries::complete(&self.audit, &*runtime.store).await {
            tracing::warn!("an interrupted command is not in the audit log yet: {error}");
        }
    }

    /// Checks that runs can be recorded, according to the last write; a store that is not open yet passes.
    pub(in crate::local) fn ensure_store(&self) -> Result<(), Error> {
        let Some(failure) = self.runtime.get().and_then(|runtime| runtime.store.write_failure()) else {
            return Ok(());
        };
        let error = Error::from(failure.error);
        let mut reason = error.reason.unwrap_or_default();
        reason["since_ms"] = failure.since_ms.into();
        Err(Error { reason: Some(reason), ..error })
    }

    /// Opens a store that is known to have existed and is not open yet: one that is missing or damaged is an error.
    pub(in crate::local) async fn ensure_known_store(self: &Arc<Self>) -> Result<(), Error> {
        if self.runtime.get().is_none()
            && let Some(file) = StorePlace::in_use(&self.config)?.file()
            && skills_store::has_existed(file, &store_options(&self.config, file))?
        {
            self.runtime().await?;
        }
        Ok(())
    }

    /// Creates a new, empty store at the store's path; the previous files are renamed.
    pub(super) fn reset_store(&self) -> Result<Reset, Error> {
        let file = self.store_on_disk()?;
        if !skills_store::has_existed(&file, &store_options(&self.config, &file))? {
            let message = format!(
                "store not found at {}; check the path, or create a store with `skills db create`",
                file.display()
            );
            return Err(Error::new(Code::NotFound, message));
        }
        Ok(skills_store::reset(&file, &store_options(&self.config, &file), Clocks::system())?)
    }

    /// Copies a backup to the store's path; the previous files are renamed.
    pub(super) fn restore_store(&self, backup: &Path) -> Result<Reset, Error> {
        let file = self.store_on_disk()?;
        Ok(skills_store::restore(&file, backup, &store_options(&self.config, &file), Clocks::system())?)
    }

    /// Records the store that is at the store's path now; returns its id.
    pub(super) fn adopt_store(&self) -> Result<String, Error> {
        if let StorePlace::Server(address) = StorePlace::in_use(&self.config)? {
            let known_stores = KnownStores::new(self.config.dirs.known_stores());
            return Ok(Handle::current().block_on(Postgres::adopt(&address, &known_stores))?);
        }
        let file = self.store_on_disk()?;
        Ok(skills_store::adopt(&file, &store_options(&self.config, &file), Clocks::system())?)
    }

    fn store_on_disk(&self) -> Result<PathBuf, Error> {
        let place = StorePlace::in_use(&self.config)?;
        place.file().map(Path::to_owned).ok_or_else(|| {
            let message = match place {
                StorePlace::Server(_) => {
                    "a store on a server is neither reset nor restored here: create another database or schema for it, or \
                        use the server's tools"
                }
                _ => "an in-memory store has no file; use --store sqlite:PATH",
            };
            Error::new(Code::InvalidRequest, message)
        })
    }

    fn open(&self) -> Result<Arc<RunRuntime>, Error> {
        let metrics = self.metrics.clone();
        let commits: CommitObserver = Arc::new(move |jobs, took| metrics.commit(jobs, took));
        let (registry, places) = (Arc::downgrade(&self.places.registry), Arc::clone(&self.places.known));
        let places: Places = Box::new(move || {
            registry.upgrade().map(|registry| places.of(&registry.snapshot())).unwrap_or_default()
        });
        let store = match StorePlace::in_use(&self.config)? {
            StorePlace::Server(address) => {
                let options = PostgresOptions {
                    known: Some(KnownStores::new(self.config.dirs.known_stores())),
                    must_exist: self.config.missing_store == MissingStore::Refuse,
                };
                // Runs on a blocking thread; the connections belong to the runtime.
                let store = Handle::current().block_on(Postgres::open(&address, &options))?;
                store.observe_commits(commits);
                store.work_only(places);
                return self.furnish(store);
            }
            StorePlace::Memory => Sqlite::in_memory(Clocks::system())?,
            StorePlace::File(file) => {
                let opened = Sqlite::open_with(&file, &store_options(&self.config, &file), Clocks::system())?;
                for notice in opened.notices {
                    self.notices.publish(notice);
                }
                opened.store
            }
        };
        store.observe_commits(commits);
        store.work_only(places);
        self.furnish(store)
    }

    /// Builds the services that execute runs around an open store.
    fn furnish<S>(&self, store: S) -> Result<Arc<RunRuntime>, Error>
    where
        S: Store + Sessions + Counts + AuditAnchors,
    {
        let calling = self.services.calling()?;
        let store = Arc::new(store);
        if store.write_failure().is_none() {
            let (anchors, log) = (Arc::clone(&store), self.audit_log_name()?);
            // Runs on a blocking thread.
            let stored = Handle::current().block_on(anchors_of(&*store, &log)).unwrap_or_else(|error| {
                tracing::error!("cannot compare the audit log with the store: {error}");
                Vec::new()
            });
            let observer = move |anchor: &Anchor| {
                let anchor = AuditAnchor { seq: anchor.seq, head: anchor.head.clone() };
                anchors.store_audit_anchor(&log, anchor);
            };
            self.audit.observe_anchors(&stored, Box::new(observer));
        }
        let anchors: Arc<dyn AuditAnchors> = store.clone();
        let sessions: Arc<dyn Sessions> = store.clone();
        let counts: Arc<dyn Counts> = store.clone();
        let store: Arc<dyn Store> = Arc::new(ObservedStore::new(
            store,
            self.metrics.clone(),
            Arc::clone(&self.audit),
            self.config.runs.metric_labels.clone(),
        ));
        let caller = Arc::new(CountedBroker::new(Arc::clone(&calling.broker), self.metrics.clone()));
        let engine = Engine::new(Arc::clone(&store), caller)
            .with_conformance(self.config.conformance)
            .with_question_key(keys::random::<32>().map_or_else(|_| String::new(), |key| hex::encode(&key)));
        let execute: Arc<dyn Execute> = Arc::new(CurrentEngine {
            permissions: Arc::downgrade(&self.permissions),
            engine: engine.clone(),
        });
        Ok(Arc::new(RunRuntime {
            durations: StepDurations::default(),
            store,
            sessions,
            counts,
            anchors,
            artifacts: Arc::clone(&calling.artifacts),
            engine,
            execute,
        }))
    }
}

async fn anchors_of(store: &dyn AuditAnchors, log: &str) -> Result<Vec<Anchor>, Error> {
    let anchors = store.audit_anchors(log).await?;
    Ok(anchors.into_iter().map(|anchor| Anchor { seq: anchor.seq, head: anchor.head }).collect())
}

/// The roots of a generation of skills, in the form in which runs name their root.
#[derive(Default)]
pub(super) struct KnownPlaces(Mutex<Option<(u64, Arc<Vec<String>>)>>);

impl KnownPlaces {
    fn of(&self, catalog: &Catalog) -> Arc<Vec<String>> {
        let mut cached = self.0.locked();
        if let Some((generation, places)) = &*cached
            && *generation == catalog.generation
        {
            return Arc::clone(places);
        }
        let places = Arc::new(places(catalog));
        *cached = Some((catalog.generation, Arc::clone(&places)));
        places
    }
}

/// The roots that this process reads, compared with those that runs were launched from.
#[derive(Clone)]
pub(super) struct LaunchPlaces {
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub known: Arc<KnownPlaces>,
}

impl LaunchPlaces {
    /// Returns why this process cannot execute a run: it does not read the skills that the run was launched from.
    pub(super) fn elsewhere(&self, run: &RunRecord) -> Option<String> {
        if run.state.is_terminal() {
            return None;
        }
        let Some(place) = &run.options.place else {
            let why = "the root of its skill is not recorded, so no worker executes it: cancel it, and launch it again";
            return Some(why.to_owned());
        };
        (!self.known.of(&self.registry.snapshot()).contains(place)).then(|| {
            let shipped = shipped_versions(&self.config.dirs.cache);
            let (skills, options) = if place == SHIPPED || Path::new(place).parent() == Some(&shipped) {
                // With only the shipped skills, runs are stored in memory unless a store is configured.
                let store = StorePlace::in_use(&self.config).ok().map(|place| place.describe());
                let store = store.filter(|store| store != MEMORY_STORE);
                let store = store.map(|store| format!(" --store {}", quoted(&store))).unwrap_or_default();
                ("the shipped skills".to_owned(), format!("--demo{store}"))
            } else {
                (format!("the skills of {place}"), format!("--root {}", quoted(place)))
            };
            let own = match self.config.audience {
                Audience::CommandLine => format!("use {options}, or "),
                Audience::Workbench => format!("start the workbench with {options}, or "),
                Audience::Service => String::new(),
            };
            format!(
                "it was launched from {skills}, which are not loaded: {own}leave it to a worker that has loaded them"
            )
        })
    }
}

fn places(catalog: &Catalog) -> Vec<String> {
    let mut places: Vec<String> = catalog.roots.iter().map(place_of_root).collect();
    // Runs of earlier versions name the folder to which their shipped skills were unpacked, next to the current one.
    let shipped = catalog.roots.iter().find(|root| root.origin == RootOrigin::Shipped);
    let neighbors = shipped.and_then(|root| std::fs::read_dir(root.path.parent()?).ok());
    places
        .extend(neighbors.into_iter().flatten().flatten().map(|at| at.path().to_string_lossy().into_owned()));
    places
}

/// Returns the form in which a run names the root that its skill was launched from.
pub(super) fn place_of_root(root: &Root) -> String {
    match root.origin {
        RootOrigin::Shipped => SHIPPED.to_owned(),
        _ => root.path.to_string_lossy().into_owned(),
    }
}

/// The engine for workers: it uses the skills as they are when a run is started.
struct CurrentEngine {
    permissions: Weak<Permissions>,
    engine: Engine,
}

#[async_trait]
impl Execute for CurrentEngine {
    async fn execute(&self, claimed: Claimed, cancel: CancellationToken) -> Result<(), StoreError> {
        if let Some(permissions) = self.permissions.upgrade() {
            let services = &permissions.services;
            // A worker that starts with the program must not find the catalog empty and fail the runs it takes over.
            let scanned = tokio::time::timeout(SCAN_TIMEOUT, services.registry.wait_scanned());
            tokio::select! {
                _ = scanned => {}
                () = cancel.cancelled() => {}
            }
            if let Err(error) = services.refresh_within(CAPABILITIES_MAX_AGE).await {
                tracing::warn!("cannot reload the capabilities: {error}");
            }
            // A recently launched run may be of a bundle that did not exist or was not trusted when the roots were
            // read.
            if !self.engine.is_as_launched(&claimed).await {
                tokio::select! {
                    () = services.reread(Instant::now()) => {}
                    () = cancel.cancelled() => {}
                }
            }
            tokio::select! {
                permitted = permissions.permitted_now(&self.engine, &claimed) => match permitted {
                    Ok(()) => {}
                    Err(error) if matches!(error.code, Code::Forbidden | Code::Untrusted) => {
                        return self.engine.refuse(&claimed, &error.code.to_string(), error.message).await;
                    }
                    // The lease is released: a typing error in the policy must not fail runs.
                    Err(error) => {
                        let (action, cause) =
                            (format!("execute run {}", claimed.run.id), Unavailability::Busy);
                        return Err(StoreError::Unavailable { cause, action, reason: error.message });
                    }
                },
                () = cancel.cancelled() => return Ok(()),
            }
        }
        Execute::execute(&self.engine, claimed, cancel).await
    }

    fn may_claim(&self) -> bool {
        self.permissions.upgrade().is_none_or(|permissions| permissions.may_claim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_file_a_server_or_memory() {
        let data = Path::new("/data");
        let place = |store| StorePlace::of(store, data);
        assert_eq!(place(None).unwrap().file(), Some(Path::new("/data/runs.db")));
        assert_eq!(place(Some("sqlite:/x/y.db")).unwrap().file(), Some(Path::new("/x/y.db")));
        assert!(matches!(place(Some("memory:")), Ok(StorePlace::Memory)));
        let server = place(Some("postgres://kim:secret@db/runs")).unwrap();
        assert_eq!(server.describe(), "postgres://kim@db:5432/runs");
        for wrong in [
            "postgres://kim:secret@db:x/runs",
            "postgres://kim:a@secret@db/runs",
            "sqlite://kim:secret@db/runs",
            "mysql://x",
            "sqlite:",
            "/x.db",
        ] {
            let error = place(Some(wrong)).err().unwrap();
            assert_eq!(error.code, Code::InvalidConfiguration, "{wrong}");
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }
}
