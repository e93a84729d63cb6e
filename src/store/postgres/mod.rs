//! The server store: `PostgreSQL` (<https://www.postgresql.org>), for several machines. Each method is one transaction
//! on a connection of a pool; the logic and the statements are shared with the embedded store.
//!
//! A run is locked while a transaction changes it. Leases expire by the current clock of the database: after that clock
//! is set back, a process that used the latest time it has seen would expire the leases of processes that have not seen
//! it. Only the times of events never go backward. The server groups the commits of concurrent transactions (group
//! commit).

mod address;
mod listener;
mod reason;
mod schema;
mod tx;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::sync::{Semaphore, watch};

use crate::sql::methods::{implement_store, prelude::*};
use crate::sql::{Tx as _, values};
use crate::write_health::WriteHealth;
use crate::{Clock, CommitObserver, KnownStores, Places, Unavailability};
pub use address::PostgresAddress;
use listener::{Channel, CommitListener};
use reason::{failed, no_connection};
use tx::{Attempt, Mode, Shared, Transaction, follow_tx, read_tx, write_tx};

/// How often the store is polled while a caller waits, in addition to notifications of commits.
const POLL: Duration = Duration::from_secs(1);

/// Maximum number of audit log anchors written concurrently; further ones are skipped, because later anchors replace
/// them.
const ANCHORS: usize = 4;

/// The server store.
pub struct Postgres {
    place: String,
    pool: Pool,
    identity: String,
    health: WriteHealth,
    commits: Arc<watch::Sender<u64>>,
    committed: watch::Receiver<u64>,
    listener: CommitListener,
    shared: Arc<Shared>,
    /// Replaces the database's clock, in tests.
    clock: Option<Clock>,
    observer: OnceLock<CommitObserver>,
    places: Arc<OnceLock<Places>>,
    anchors: Arc<Semaphore>,
    searches: read::Searches,
    /// The runtime that opened the store; anchors arrive from threads without one.
    runtime: tokio::runtime::Handle,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Options for opening a store on a server.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// Record of which store was opened at which address.
    pub known: Option<KnownStores>,
    /// Whether to refuse to create the tables.
    pub must_exist: bool,
}

impl Postgres {
    /// Opens a store, creating its tables if no store is known to have existed there.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`], [`StoreError::Newer`], or [`StoreError::Failed`] with the error of the
    /// server.
    pub async fn open(address: &PostgresAddress, options: &PostgresOptions) -> Result<Self, StoreError> {
        Self::open_with(address, options, None).await
    }

    /// Like [`Self::open`], with a clock other than the database's.
    pub async fn open_with(
        address: &PostgresAddress,
        options: &PostgresOptions,
        clock: Option<Clock>,
    ) -> Result<Self, StoreError> {
        let place = address.place.clone();
        let expected = match &options.known {
            Some(known_stores) => known_stores.id_of(&place)?,
            None => None,
        };
        let pool = pool(address)?;
        let mut client = connection(&pool, &place).await?;
        let expected_store =
            schema::Expected { place: &place, id: expected.as_deref(), must_exist: options.must_exist };
        let identity = schema::prepare(&mut client, &expected_store).await?;
        drop(client);
        if let (Some(known_stores), None) = (&options.known, &expected) {
            let now_ms = jiff::Timestamp::now().as_millisecond();
            if let Err(error) = known_stores.record(&place, &identity, now_ms) {
                tracing::warn!("cannot record {place}: {error}");
            }
        }
        let (commits, committed) = watch::channel(0);
        let commits = Arc::new(commits);
        let channel = Channel {
            config: address.config.clone(),
            tls: address.tls()?,
            name: format!("skill_workbench_{identity}"),
            commits: Arc::clone(&commits),
        };
        Ok(Self {
            place,
            pool,
            identity,
            health: WriteHealth::default(),
            commits,
            committed,
            listener: CommitListener::listen(channel),
            shared: Arc::default(),
            clock,
            observer: OnceLock::new(),
            places: Arc::default(),
            anchors: Arc::new(Semaphore::new(ANCHORS)),
            searches: read::Searches::default(),
            runtime: tokio::runtime::Handle::current(),
        })
    }

    /// Records the store that is at an address now in place of the recorded one; returns its id.
    pub async fn adopt(address: &PostgresAddress, known_stores: &KnownStores) -> Result<String, StoreError> {
        let store = Self::open(address, &PostgresOptions::default()).await?;
        known_stores.remove_place(&store.place)?;
        known_stores.record(&store.place, &store.identity, store.wall_ms())
    }

    /// Calls this observer after every commit from now on; only the first one is registered.
    pub fn observe_commits(&self, observer: CommitObserver) {
        drop(self.observer.set(observer));
    }

    /// Returns how often transactions have waited for the server so far, not counting the preparation of their
    /// statements. The cost of an operation is measured by it, because a round trip takes longer than the statements.
    pub fn round_trips(&self) -> u64 {
        self.shared.round_trips()
    }

    /// Restricts claims through this handle to runs that were launched from these roots, and to runs without a root;
    /// only the first registered function is used.
    pub fn work_only(&self, places: Places) {
        drop(self.places.set(places));
    }

    /// Returns the roots as a JSON array for SQL; `None` if every run may be claimed. May read from disk.
    async fn claimable_places(&self) -> Result<Option<String>, StoreError> {
        crate::sql::claimable(&self.places).await
    }

    fn poll(&self) -> Duration {
        POLL
    }

    fn wall_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }

    async fn begin(&self, mode: Mode) -> Result<Transaction, StoreError> {
        let client = connection(&self.pool, &self.place).await?;
        let now_ms = self.clock.as_ref().map(|clock| clock());
        Transaction::begin(client, mode, &self.shared, now_ms).await
    }

    /// Ends a transaction, and wakes the callers that wait for events if it recorded any.
    async fn finish<T>(&self, transaction: Transaction, outcome: Result<T, StoreError>) -> Attempt<T> {
        let (has_events, began) = (transaction.records_events() && outcome.is_ok(), Instant::now());
        let ended = transaction.finish(outcome).await;
        if has_events && matches!(ended, Attempt::Done(Ok(_))) {
            if let Some(observer) = self.observer.get() {
                observer(1, began.elapsed());
            }
            self.commits.send_modify(|n| *n = n.wrapping_add(1));
            self.listener.announce();
        }
        ended
    }

    /// Records the result of a write.
    fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Ok(_) => self.health.succeeded(),
            Err(error) => self.health.failed(error, self.wall_ms()),
        }
        result
    }

    async fn check_storage(&self) -> Result<Health, StoreError> {
        read_tx!(self, tx => {
            let mut contradictions = Vec::new();
            for (what, sql) in maintenance::RULES {
                let count: u64 = number(tx, sql).await?;
                if count > 0 {
                    contradictions.push(format!("{count} {what}"));
                }
            }
            contradictions.extend(maintenance::describe_modified(tx).await?);
            Ok(Health {
                damage: checksum_failures(tx).await?,
                contradictions,
                runs: number(tx, "SELECT count(*) FROM runs").await?,
                events: number(tx, "SELECT count(*) FROM events").await?,
                bytes: number(tx, BYTES).await?,
                free_bytes: 0,
            })
        })
    }

    /// The server verifies the pages that it reads; its report is all that can be checked in a short time.
    async fn quick_check_storage(&self, patience: Duration) -> Result<QuickCheck, StoreError> {
        let looked = async {
            read_tx!(self, tx => {
                let damage = checksum_failures(tx).await?;
                Ok(QuickCheck { damage, is_complete: true, other_roles: number(tx, OTHER_ROLES).await? })
            })
        };
        tokio::time::timeout(patience, looked).await.unwrap_or_else(|_| Ok(QuickCheck::default()))
    }

    async fn copy_storage(&self, _: &Path) -> Result<(), StoreError> {
        let advice = "a store on a server is backed up with its tools: pg_dump, pg_basebackup, or snapshots";
        Err(StoreError::InvalidRequest(advice.to_owned()))
    }

    /// Reclaims the space of deleted rows, and refreshes the planner's statistics.
    async fn compact_storage(&self) -> Result<(), StoreError> {
        let client = connection(&self.pool, &self.place).await?;
        for table in ["runs", "steps", "checkpoints", "newest", "intents", "events", "signals", "decisions"] {
            let sql = format!("VACUUM (ANALYZE) {table}");
            client.batch_execute(&sql).await.map_err(|e| failed("reclaim free space", &e))?;
        }
        Ok(())
    }

    /// Writes to the store, and checks that it is the one that was opened.
    async fn probe_storage(&self) -> Result<(), StoreError> {
        let identity = write_tx!(self, tx => {
            maintenance::probe(tx).await?;
            let row = tx.find("probe the store", "SELECT id FROM identity", &[]).await?;
            row.map(|mut row| row.take::<String>(0)).transpose()
        })?;
        if identity.as_ref() == Some(&self.identity) {
            return Ok(());
        }
        Err(StoreError::Unavailable {
            cause: Unavailability::Replaced,
            action: format!("write to {}", self.place),
            reason: format!("expected the store {}; restart this process", self.identity),
        })
    }

    /// Reads a page with a time limit.
    async fn search_runs(&self, filter: RunFilter) -> Result<RunPage, StoreError> {
        let _permit = self.searches.permit(&filter).await?;
        let began = Instant::now();
        let limit = format!("SET LOCAL statement_timeout = {}", RunFilter::TIMEOUT.as_millis());
        let page = read_tx!(self, tx => {
            tx.execute("limit the time of a search", &limit, &[]).await?;
            read::runs(tx, &filter).await
        });
        match page {
            // The server has canceled the statement.
            Err(error)
                if error.unavailability() == Some(Unavailability::Busy)
                    && began.elapsed() >= RunFilter::TIMEOUT =>
            {
                Err(read::too_slow())
            }
            page => page,
        }
    }

    async fn count_runs_by_skill(&self) -> Result<Vec<SkillRuns>, StoreError> {
        read_tx!(self, tx => counts::runs_by_skill(tx).await)
    }

    fn is_at(&self, _: &Path) -> bool {
        false
    }

    fn post_audit_anchor(&self, log: String, anchor: AuditAnchor) {
        let Ok(permit) = Arc::clone(&self.anchors).try_acquire_owned() else {
            return tracing::debug!("the anchor of the audit log is left to the next one");
        };
        let (pool, place, shared) = (self.pool.clone(), self.place.clone(), Arc::clone(&self.shared));
        let now_ms = self.clock.as_ref().map(|clock| clock());
        self.runtime.spawn(async move {
            let _permit = permit;
            let outcome = async {
                let client = connection(&pool, &place).await?;
                let transaction = Transaction::begin(client, Mode::Write, &shared, now_ms).await?;
                let outcome = audit_anchors::insert(&transaction, &log, &anchor).await;
                match transaction.finish(outcome).await {
                    Attempt::Done(result) => result,
                    Attempt::Again(error) => Err(error),
                }
            };
            if let Err(error) = outcome.await {
                tracing::debug!("cannot store the anchor of the audit log: {error}");
            }
        });
    }
}

implement_store!(Postgres, write_tx, read_tx, follow_tx);

/// Size of the tables with their indexes, except tables that need not survive a crash.
const BYTES: &str = "SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS bigint) FROM pg_class c
    WHERE c.relnamespace = CAST(current_schema() AS regnamespace) AND c.relkind = 'r' AND c.relpersistence = 'p'";

/// Counts the other roles that may connect only because every role may. Advisory locks need no other privilege.
const OTHER_ROLES: &str = "SELECT count(*) FROM pg_roles
    WHERE rolcanlogin AND NOT rolsuper AND rolname <> current_user
        AND has_database_privilege('public', current_database(), 'CONNECT')";

async fn number(tx: &Transaction, sql: &str) -> Result<u64, StoreError> {
    tx.find("check the store", sql, values![]).await?.map_or(Ok(0), |mut row| row.take(0))
}

/// Returns corrupt pages that the server reports, if checksums are enabled.
async fn checksum_failures(tx: &Transaction) -> Result<Vec<String>, StoreError> {
    let sql =
        "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()";
    let failures = number(tx, sql).await?;
    let message = format!("{failures} pages with wrong checksums; see the server log");
    Ok(if failures > 0 { vec![message] } else { Vec::new() })
}

fn pool(address: &PostgresAddress) -> Result<Pool, StoreError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(address.config.clone(), address.tls()?, recycling);
    Pool::builder(manager)
        .max_size(address.pool_size)
        .wait_timeout(Some(address.pool_timeout))
        .create_timeout(Some(address.pool_timeout))
        .recycle_timeout(Some(address.pool_timeout))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|e| crate::sql::failed("make a pool of connections", &e))
}

async fn connection(pool: &Pool, place: &str) -> Result<Object, StoreError> {
    pool.get().await.map_err(|error| no_connection(place, &error))
}

/// Number of attempts at one operation.
#[derive(Default)]
pub(crate) struct Attempts(u32);

impl Attempts {
    /// Enough for a short outage, and for conflicts between two transactions.
    const MAX_RETRIES: u32 = 6;

    /// Waits before another attempt (backoff); returns the error after the last one.
    async fn again(&mut self, error: StoreError) -> Option<StoreError> {
        let is_lost = error.unavailability() == Some(Unavailability::Io);
        if self.0 >= Self::MAX_RETRIES || (error.unavailability().is_some() && !is_lost) {
            return Some(error);
        }
        let pause = if is_lost { 50 << self.0 } else { 2 << self.0 };
        self.0 += 1;
        // Randomized, so that two conflicting transactions do not conflict again.
        let spread = u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs()) % pause;
        tokio::time::sleep(Duration::from_millis(pause / 2 + spread)).await;
        None
    }
}
