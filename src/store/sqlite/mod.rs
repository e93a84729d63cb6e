//! The embedded store: `SQLite` (<https://sqlite.org>) in WAL mode, each commit synced to disk, one writer
//! with group commit and readers beside it. The same code on a private in-memory database serves trials.

mod checkpoints;
mod command;
mod control;
mod counts;
mod foreign;
mod launch;
mod maintenance;
mod methods;
mod read;
mod reason;
mod report;
mod rows;
mod schema;
mod sessions;
mod work;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::watch;

use super::StoreError;
use foreign::Foreign;
use reason::Reason;
use writer::Writer;

/// How often another process's events are looked for while somebody waits, beside being told of them: file systems
/// on a network do not always tell.
const POLL: Duration = Duration::from_secs(1);

/// As [`POLL`], where the system tells nothing.
const POLL_BLIND: Duration = Duration::from_millis(100);

/// Where the present moment comes from, in milliseconds since 1970-01-01 UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Told of each commit: how many jobs shared it, and how long it took until it was durable.
pub type CommitObserver = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// Asked for the roots of skills that a process reads.
pub type Places = Box<dyn Fn() -> Vec<String> + Send + Sync>;

/// The embedded store.
pub struct Sqlite {
    place: String,
    writer: Writer,
    /// A connection beside the writer's; none in memory, where the writer's reads too: two that share a cache see
    /// each other's unfinished work.
    reader: Option<Arc<Mutex<Connection>>>,
    committed: watch::Receiver<u64>,
    poll: Duration,
    now: Clock,
    observer: Arc<OnceLock<CommitObserver>>,
    places: OnceLock<Places>,
    /// Which numbering of events this is.
    identity: String,
    /// The file, for connections of their own; none in memory.
    path: Option<PathBuf>,
    _foreign: Option<Foreign>,
}

/// An opened store, and the damaged file that stood in its place.
pub struct Opened {
    /// The store.
    pub store: Sqlite,
    /// Where a damaged database was moved to, untouched, if there was one.
    pub set_aside: Option<PathBuf>,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("place", &self.place).finish_non_exhaustive()
    }
}

pub(super) fn failed(doing: String, reason: &dyn Reason) -> StoreError {
    StoreError::Failed { doing, reason: reason.in_words() }
}

/// A clock that never runs backwards, whatever the machine's does: leases and orders hold through a step back.
fn steady(now: Clock, from: i64) -> Clock {
    let latest = AtomicI64::new(from);
    Arc::new(move || {
        let present = now();
        latest.fetch_max(present, Ordering::Relaxed).max(present)
    })
}

impl Sqlite {
    /// Opens a database file, creating it and its folder where needed. A damaged file is set aside, never
    /// overwritten; one of a later version is refused.
    ///
    /// # Errors
    /// [`StoreError::Newer`], or [`StoreError::Failed`] with what the system said.
    pub fn open(path: &Path, now: Clock) -> Result<Opened, StoreError> {
        let place = format!("sqlite:{}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| failed(format!("creating the folder of {place}"), &e))?;
        }
        let mut set_aside = None;
        let connection = match prepare(path) {
            Ok(connection) => connection,
            Err(e) if schema::is_damage(&e) => {
                let aside = schema::set_aside(path, now())
                    .map_err(|e| failed(format!("setting the damaged {place} aside"), &e))?;
                tracing::error!("{place} is damaged ({e}); it was set aside as {}", aside.display());
                set_aside = Some(aside);
                prepare(path).map_err(|e| failed(format!("opening {place}"), &e))?
            }
            Err(e) => return Err(failed(format!("opening {place}"), &e)),
        };
        Ok(Opened {
            store: Self::start(
                connection,
                || reading(path, &place).map(Some),
                place.clone(),
                Some(path),
                now,
            )?,
            set_aside,
        })
    }

    /// A store in memory, gone with the process.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when the database cannot be made.
    pub fn in_memory(now: Clock) -> Result<Self, StoreError> {
        let connection =
            Connection::open_in_memory().map_err(|e| failed("making a store in memory".into(), &e))?;
        Self::start(connection, || Ok(None), "memory:".to_owned(), None, now)
    }

    fn start(
        mut connection: Connection,
        reader: impl FnOnce() -> Result<Option<Connection>, StoreError>,
        place: String,
        path: Option<&Path>,
        now: Clock,
    ) -> Result<Self, StoreError> {
        schema::migrate(&mut connection, &place)?;
        connection
            .execute_batch(checkpoints::NEWEST)
            .map_err(|e| failed(format!("preparing to write to {place}"), &e))?;
        let reader = reader()?;
        let from = connection
            .query_row("SELECT coalesce(max(since_ms), 0) FROM runs", [], |row| row.get(0))
            .map_err(|e| failed(format!("reading {place}"), &e))?;
        let identity = connection
            .query_row("SELECT id FROM identity", [], |row| row.get(0))
            .map_err(|e| failed(format!("reading {place}"), &e))?;
        let (commits, committed) = watch::channel(0_u64);
        let commits = Arc::new(commits);
        let tell = |commits: Arc<watch::Sender<u64>>| move || commits.send_modify(|n| *n = n.wrapping_add(1));
        let observer = Arc::new(OnceLock::new());
        let writer = Writer::start(connection, place.clone(), tell(commits.clone()), observer.clone())?;
        let foreign = path.and_then(|path| Foreign::watch(path, tell(commits)));
        Ok(Self {
            place,
            writer,
            reader: reader.map(|reader| Arc::new(Mutex::new(reader))),
            committed,
            poll: if foreign.is_some() || path.is_none() { POLL } else { POLL_BLIND },
            now: steady(now, from),
            observer,
            places: OnceLock::new(),
            identity,
            path: path.map(Path::to_owned),
            _foreign: foreign,
        })
    }

    /// Tells this observer of every commit from now on; only the first one given is told.
    pub fn observe_commits(&self, observer: CommitObserver) {
        drop(self.observer.set(observer));
    }

    /// Confines the claims of this handle to runs that were launched from these roots, and to those that name none;
    /// only the first answer given is asked.
    pub fn work_only(&self, places: Places) {
        drop(self.places.set(places));
    }

    /// The roots as a JSON array, for SQL; none where every run may be claimed.
    fn claimable_places(&self) -> Option<String> {
        self.places.get().map(|places| serde_json::Value::from(places()).to_string())
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, i64) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let now = self.now.clone();
        self.writer.run(move |connection| work(connection, now())).await
    }

    /// Reads the store as it is at one moment: what several questions find goes together, whoever writes meanwhile.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(reader) = self.reader.clone() else { return self.writer.alone(work).await };
        tokio::task::spawn_blocking(move || {
            let connection = reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let moment = connection
                .unchecked_transaction()
                .map_err(|e| failed("beginning to read the store".into(), &e))?;
            work(&moment)
        })
        .await
        .map_err(|e| failed("reading the store".into(), &e))?
    }
}

impl Sqlite {
    /// As a read, on a connection of its own, so that a long one holds up nobody.
    async fn read_apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(path) = self.path.clone() else { return self.read(work).await };
        let place = self.place.clone();
        tokio::task::spawn_blocking(move || work(&reading(&path, &place)?))
            .await
            .map_err(|e| failed("reading the store".into(), &e))?
    }
}

/// A reading connection to a file.
fn reading(path: &Path, place: &str) -> Result<Connection, StoreError> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .and_then(|connection| {
            schema::remembering(&connection);
            schema::patient(&connection).map(|()| connection)
        })
        .map_err(|e| failed(format!("opening {place} for reading"), &e))
}

/// A writing connection to a file that is a sound database as far as a quick look tells.
fn prepare(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    schema::configure(&connection)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_read_together_is_of_one_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = Sqlite::open(&path, Arc::new(|| 0)).unwrap().store;
        let tables = |connection: &Connection| {
            connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        let between = move |connection: &Connection| {
            let before = tables(connection);
            Connection::open(&path).unwrap().execute_batch("CREATE TABLE meanwhile (a)").unwrap();
            Ok((before, tables(connection)))
        };
        let (before, after) = store.read(between).await.unwrap();
        assert_eq!(before, after, "a commit between two questions shows in neither");
        assert_eq!(store.read(move |connection| Ok(tables(connection))).await.unwrap(), before + 1);
    }
}
