//! The embedded store: `SQLite` (<https://sqlite.org>) in WAL mode, each commit synced to disk, one writer with group
//! commit and concurrent readers. With a private in-memory database, the same code is used for tests.

mod change_watch;
mod guard;
mod leftover;
mod open;
mod readers;
mod reason;
mod schema;
mod source;
mod storage;
mod tx;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::watch;

use super::write_health::WriteHealth;
use super::{Clock, Clocks, CommitObserver, Places, Unavailability};
use crate::sql::methods::{implement_store, prelude::*};
use change_watch::ChangeWatch;
pub use open::{OpenOptions, OpenedStore, Reset, adopt, has_existed, reset, restore};
use readers::{ReadFile, Readers};
use reason::Reason;
pub use source::check_source;
pub(crate) use source::{Batch, Source};
pub use storage::damage_of;
use tx::{Transaction, complete, read_tx, write_tx};
use writer::{Target, Writer};

/// Polling interval for events of other processes while a caller waits, in addition to file notifications, which
/// network file systems do not always send.
const POLL: Duration = Duration::from_secs(1);

/// Like [`POLL`], without file notifications.
const POLL_BLIND: Duration = Duration::from_millis(100);

/// The embedded store.
pub struct Sqlite {
    place: String,
    /// The read connections; `None` in memory, where reads use the writer's: two connections that share a cache see each
    /// other's uncommitted changes. Closed before the writer's, because only a connection that writes checkpoints the
    /// log when it is the last to close.
    readers: Option<Arc<Readers>>,
    /// `None` if the file is read-only.
    writer: Option<Writer>,
    health: Arc<WriteHealth>,
    committed: watch::Receiver<u64>,
    poll: Duration,
    clocks: Clocks,
    searches: read::Searches,
    observer: Arc<OnceLock<CommitObserver>>,
    places: Arc<OnceLock<Places>>,
    /// Unique id of the store, to which event numbers belong.
    identity: String,
    /// The file, to open further connections; `None` in memory.
    path: Option<PathBuf>,
    /// The open files, if they are written.
    file: Option<Arc<guard::FileGuard>>,
    /// Whether the file is opened as immutable.
    immutable: bool,
    _foreign: Option<ChangeWatch>,
    /// Folder of a copy that is read instead of the file.
    copy: Option<tempfile::TempDir>,
    /// Outlives the connections.
    _open_here: Option<guard::OpenCount>,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("place", &self.place).finish_non_exhaustive()
    }
}

pub(super) fn failed(action: String, reason: &dyn Reason) -> StoreError {
    let words = reason.describe();
    match reason.unavailability() {
        Some(cause) => StoreError::Unavailable { cause, action, reason: words },
        None => StoreError::Failed { action, reason: words },
    }
}

/// Returns a clock that never runs backwards, even if the system clock does, so that expiries and orders stay valid.
fn steady(now: Clock, from: i64) -> Clock {
    let latest = AtomicI64::new(from);
    Arc::new(move || {
        let present = now();
        latest.fetch_max(present, Ordering::Relaxed).max(present)
    })
}

impl Sqlite {
    /// Creates a store in memory, which is lost when it is dropped.
    ///
    /// # Errors
    /// Returns [`StoreError::Failed`] if the database cannot be created.
    pub fn in_memory(clocks: impl Into<Clocks>) -> Result<Self, StoreError> {
        let connection =
            Connection::open_in_memory().map_err(|e| failed("make a store in memory".into(), &e))?;
        Self::start(connection, || Ok(None), "memory:".to_owned(), None, clocks.into())
    }

    fn start(
        mut connection: Connection,
        reader: impl FnOnce() -> Result<Option<Connection>, StoreError>,
        place: String,
        path: Option<&Path>,
        clocks: Clocks,
    ) -> Result<Self, StoreError> {
        schema::migrate(&mut connection, &place)?;
        connection
            .execute_batch(schema::NEWEST)
            .map_err(|e| failed(format!("prepare to write to {place}"), &e))?;
        let reader = reader()?;
        let from = connection
            .query_row("SELECT coalesce(max(since_ms), 0) FROM runs", [], |row| row.get(0))
            .map_err(|e| failed(format!("read {place}"), &e))?;
        let identity = identity_of(&connection, &place)?;
        let (commits, committed) = watch::channel(0_u64);
        let commits = Arc::new(commits);
        let notify =
            |commits: Arc<watch::Sender<u64>>| move || commits.send_modify(|n| *n = n.wrapping_add(1));
        let observer = Arc::new(OnceLock::new());
        let health = Arc::new(WriteHealth::default());
        let file = path.and_then(|path| open::guard(path, &place)).map(Arc::new);
        let writer = Writer::start(
            connection,
            Target {
                place: place.clone(),
                file: file.clone(),
                identity: path.map(|path| (path.to_owned(), identity.clone())),
                health: health.clone(),
                now: Arc::clone(&clocks.wall),
            },
            notify(commits.clone()),
            observer.clone(),
        )?;
        let readers = reader.zip(path).map(|(reader, path)| {
            let (path, place, identity) = (path.to_owned(), place.clone(), identity.clone());
            let file = ReadFile { path, place, immutable: false, identity, guard: file.clone() };
            Arc::new(Readers::new(reader, file))
        });
        let foreign = path.and_then(|path| ChangeWatch::watch(path, notify(commits)));
        Ok(Self {
            place,
            readers,
            writer: Some(writer),
            health,
            committed,
            poll: if foreign.is_some() || path.is_none() { POLL } else { POLL_BLIND },
            clocks: {
                let wall = steady(Arc::clone(&clocks.wall), from);
                clocks.with_wall(wall)
            },
            searches: read::Searches::default(),
            observer,
            places: Arc::default(),
            identity,
            path: path.map(Path::to_owned),
            file,
            immutable: false,
            _foreign: foreign,
            copy: None,
            _open_here: None,
        })
    }

    /// Creates a read-only store with only a read connection.
    fn of_reader(
        connection: Connection,
        place: &str,
        path: &Path,
        immutable: bool,
        clocks: Clocks,
    ) -> Result<Self, StoreError> {
        let identity = identity_of(&connection, place)?;
        let file = ReadFile {
            path: path.to_owned(),
            place: place.to_owned(),
            immutable,
            identity: identity.clone(),
            guard: None,
        };
        Ok(Self {
            place: place.to_owned(),
            readers: Some(Arc::new(Readers::new(connection, file))),
            writer: None,
            health: Arc::default(),
            committed: watch::channel(0).1,
            poll: POLL,
            clocks,
            searches: read::Searches::default(),
            observer: Arc::default(),
            places: Arc::default(),
            identity,
            path: Some(path.to_owned()),
            file: None,
            immutable,
            _foreign: None,
            copy: None,
            _open_here: None,
        })
    }

    /// Returns the writer, or why there is none.
    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(|| {
            self.health
                .refusal()
                .unwrap_or_else(|| failed(format!("write to {}", self.place), &"it is opened read-only"))
        })
    }

    /// Notifies this observer of every commit from now on; only the first registered one is used.
    pub fn observe_commits(&self, observer: CommitObserver) {
        drop(self.observer.set(observer));
    }

    /// Restricts claims through this handle to runs that were launched from these roots; only the first registered
    /// function is used.
    pub fn work_only(&self, places: Places) {
        drop(self.places.set(places));
    }

    /// Returns the roots as a JSON array for SQL; `None` if every run may be claimed. May read from disk.
    async fn claimable_places(&self) -> Result<Option<String>, StoreError> {
        crate::sql::claimable(&self.places).await
    }

    fn poll(&self) -> Duration {
        self.poll
    }

    fn wall_ms(&self) -> i64 {
        self.clocks.now().wall_ms
    }

    async fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let clocks = self.clocks.clone();
        self.writer()?.run(move |connection| work(Transaction::new(connection, clocks.now()))).await
    }

    /// Reads a consistent snapshot: several queries give consistent results during concurrent writes.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let now = self.clocks.now();
        let Some(readers) = &self.readers else {
            return self.writer()?.alone(move |connection| work(Transaction::new(connection, now))).await;
        };
        let reader = readers.acquire().await?;
        tokio::task::spawn_blocking(move || {
            let connection = reader.connection()?;
            let _moment = connection
                .unchecked_transaction()
                .map_err(|e| failed("begin to read the store".into(), &e))?;
            work(Transaction::new(connection, now))
        })
        .await
        .map_err(|e| failed("read the store".into(), &e))?
    }
}

implement_store!(Sqlite, write_tx, read_tx, read_tx);

impl Sqlite {
    /// Checks the file as another process would see it, then writes to it. If the file was damaged or replaced, writes
    /// are refused until a later check succeeds.
    async fn probe_storage(&self) -> Result<(), StoreError> {
        self.writer()?;
        let mut looked = Ok(());
        if let (Some(path), Some(_)) = (self.path.clone(), &self.readers) {
            let (place, identity, file) = (self.place.clone(), self.identity.clone(), self.file.clone());
            let look = move || {
                // Before a connection is opened, which would create missing files.
                file.map_or(Ok(()), |file| file.check())?;
                let connection = reading(&path, &place, false)?;
                schema::recognize(&connection, &place, Some(&identity))
            };
            looked = tokio::task::spawn_blocking(look)
                .await
                .map_err(|e| failed("look at the store".into(), &e))?;
            match &looked {
                Ok(()) => self.health.allow_writes(),
                Err(error) => {
                    let lost = [Unavailability::Damaged, Unavailability::Replaced].map(Some);
                    // For other errors the write itself is more specific.
                    if lost.contains(&error.unavailability()) {
                        self.health.refuse_writes(error.clone(), self.clocks.now().wall_ms);
                    }
                }
            }
        }
        write_tx!(self, tx => crate::sql::maintenance::probe(tx).await).and(looked)
    }

    /// Reads on a separate connection, so that a long read does not block others.
    async fn read_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(path) = self.path.clone() else { return self.writer()?.alone(work).await };
        let (place, immutable) = (self.place.clone(), self.immutable);
        tokio::task::spawn_blocking(move || work(&reading(&path, &place, immutable)?))
            .await
            .map_err(|e| failed("read the store".into(), &e))?
    }
}

impl Sqlite {
    async fn check_storage(&self) -> Result<Health, StoreError> {
        let now = self.clocks.now();
        self.read_blocking(move |connection| storage::check(connection, now)).await
    }

    async fn quick_check_storage(&self, patience: Duration) -> Result<QuickCheck, StoreError> {
        self.read_blocking(move |connection| storage::quick_check(connection, patience)).await
    }

    async fn copy_storage(&self, to: &Path) -> Result<(), StoreError> {
        let to = to.to_owned();
        self.read_blocking(move |connection| storage::backup(connection, &to)).await
    }

    async fn compact_storage(&self) -> Result<(), StoreError> {
        self.writer()?.alone(storage::compact).await
    }

    /// Reads a page on a separate connection and with a time limit, so that it does not block other reads.
    async fn search_runs(&self, filter: RunFilter) -> Result<RunPage, StoreError> {
        let permit = self.searches.permit(&filter).await?;
        let now = self.clocks.now();
        self.read_blocking(move |connection| {
            // Held until the search has ended, even if its caller is gone.
            let _permit = permit;
            let _snapshot = connection
                .unchecked_transaction()
                .map_err(|e| failed("begin to read the store".into(), &e))?;
            let search = || complete(read::runs(&Transaction::new(connection, now), &filter));
            let (page, is_interrupted) = storage::within(connection, RunFilter::TIMEOUT, search);
            if is_interrupted && page.is_err() { Err(read::too_slow()) } else { page }
        })
        .await
    }

    async fn count_runs_by_skill(&self) -> Result<Vec<SkillRuns>, StoreError> {
        let now = self.clocks.now();
        self.read_blocking(move |connection| {
            complete(counts::runs_by_skill(&Transaction::new(connection, now)))
        })
        .await
    }

    /// Returns whether this is the store of a file.
    fn is_at(&self, file: &Path) -> bool {
        let own = self.path.as_ref().and_then(|path| path.canonicalize().ok());
        own.is_some() && own == file.canonicalize().ok()
    }

    /// Removes the anchors of audit logs at the latest when the store is closed.
    fn forget_audit_anchors(&self) -> Result<(), StoreError> {
        let clocks = self.clocks.clone();
        self.writer()?.post(move |connection| {
            complete(audit_anchors::remove(&Transaction::new(connection, clocks.now())))
        })
    }

    fn post_audit_anchor(&self, log: String, anchor: AuditAnchor) {
        let clocks = self.clocks.clone();
        let result = self.writer().and_then(|writer| {
            writer.post(move |connection| {
                complete(audit_anchors::insert(&Transaction::new(connection, clocks.now()), &log, &anchor))
            })
        });
        if let Err(error) = result {
            tracing::debug!("cannot store the anchor of the audit log: {error}");
        }
    }
}

/// Opens a read-only connection to a file; `immutable` for one that does not change and has no log.
fn reading(path: &Path, place: &str, immutable: bool) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = if immutable {
        Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
    } else {
        Connection::open_with_flags(path, flags)
    };
    opened
        .and_then(|connection| {
            schema::enable_statement_cache(&connection);
            schema::restrict(&connection).map(|()| connection)
        })
        .map_err(|e| failed(format!("open {place} for reading"), &e))
}

/// <https://sqlite.org/uri.html>
fn immutable_uri(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri + "?mode=ro&immutable=1"
}

fn identity_of(connection: &Connection, place: &str) -> Result<String, StoreError> {
    connection
        .query_row("SELECT id FROM identity", [], |row| row.get(0))
        .map_err(|e| failed(format!("read {place}"), &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Tx as _;

    #[tokio::test]
    async fn joint_reads_use_one_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = Sqlite::open(&path, Arc::new(|| 0)).unwrap().store;
        let tables = |transaction: &Transaction<'_>| {
            let sql = "SELECT count(*) FROM sqlite_schema";
            let mut rows = complete(transaction.query("count tables", sql, &[])).unwrap();
            rows[0].take::<i64>(0).unwrap()
        };
        let between = move |transaction: Transaction<'_>| {
            let before = tables(&transaction);
            Connection::open(&path).unwrap().execute_batch("CREATE TABLE meanwhile (a)").unwrap();
            Ok((before, tables(&transaction)))
        };
        let (before, after) = store.read(between).await.unwrap();
        assert_eq!(before, after, "a commit between two questions shows in neither");
        assert_eq!(store.read(move |transaction| Ok(tables(&transaction))).await.unwrap(), before + 1);
    }
}
