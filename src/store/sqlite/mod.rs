//! The embedded store: `SQLite` (<https://sqlite.org>) in WAL mode, each commit synced to disk, one writer
//! with group commit and readers beside it. The same code on a private in-memory database serves trials.

mod audit_anchors;
mod checkpoints;
mod command;
mod control;
mod counts;
mod documents;
mod filter;
mod foreign;
mod guard;
mod integrity;
mod launch;
mod maintenance;
mod methods;
mod open;
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

use super::{Clock, Clocks, Moment, StoreError, Unavailability};
use foreign::Foreign;
use guard::WriteHealth;
pub use open::{OpenOptions, Opened, Reset, adopt, reset};
use reason::Reason;
use writer::{Target, Writer};

/// How often another process's events are looked for while somebody waits, beside being told of them: file systems
/// on a network do not always tell.
const POLL: Duration = Duration::from_secs(1);

/// As [`POLL`], where the system tells nothing.
const POLL_BLIND: Duration = Duration::from_millis(100);

/// Told of each commit: how many jobs shared it, and how long it took until it was durable.
pub type CommitObserver = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// Asked for the roots of skills that a process reads.
pub type Places = Box<dyn Fn() -> Arc<Vec<String>> + Send + Sync>;

/// The embedded store.
pub struct Sqlite {
    place: String,
    /// A connection beside the writer's; none in memory, where the writer's reads too: two that share a cache see
    /// each other's unfinished work. Closed before the writer's: only a connection that writes folds the log in when
    /// it is the last.
    reader: Option<Arc<Mutex<Connection>>>,
    /// None where the file can only be read.
    writer: Option<Writer>,
    health: Arc<WriteHealth>,
    committed: watch::Receiver<u64>,
    poll: Duration,
    clocks: Clocks,
    observer: Arc<OnceLock<CommitObserver>>,
    places: Arc<OnceLock<Places>>,
    /// Which numbering of events this is.
    identity: String,
    /// The file, for connections of their own; none in memory.
    path: Option<PathBuf>,
    /// The file is read as one that nobody changes.
    immutable: bool,
    _foreign: Option<Foreign>,
    /// The folder of a copy that is read instead of the file.
    copy: Option<tempfile::TempDir>,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("place", &self.place).finish_non_exhaustive()
    }
}

pub(super) fn failed(doing: String, reason: &dyn Reason) -> StoreError {
    let words = reason.in_words();
    match reason.unavailability() {
        Some(cause) => StoreError::Unavailable { cause, doing, reason: words },
        None => StoreError::Failed { doing, reason: words },
    }
}

/// A clock that never runs backwards, whatever the machine's does: expiries and orders hold through a step back.
fn steady(now: Clock, from: i64) -> Clock {
    let latest = AtomicI64::new(from);
    Arc::new(move || {
        let present = now();
        latest.fetch_max(present, Ordering::Relaxed).max(present)
    })
}

impl Sqlite {
    /// A store in memory, gone with the process.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when the database cannot be made.
    pub fn in_memory(clocks: impl Into<Clocks>) -> Result<Self, StoreError> {
        let connection =
            Connection::open_in_memory().map_err(|e| failed("making a store in memory".into(), &e))?;
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
            .execute_batch(checkpoints::NEWEST)
            .map_err(|e| failed(format!("preparing to write to {place}"), &e))?;
        let reader = reader()?;
        let from = connection
            .query_row("SELECT coalesce(max(since_ms), 0) FROM runs", [], |row| row.get(0))
            .map_err(|e| failed(format!("reading {place}"), &e))?;
        let identity = identity_of(&connection, &place)?;
        let (commits, committed) = watch::channel(0_u64);
        let commits = Arc::new(commits);
        let tell = |commits: Arc<watch::Sender<u64>>| move || commits.send_modify(|n| *n = n.wrapping_add(1));
        let observer = Arc::new(OnceLock::new());
        let health = Arc::new(WriteHealth::default());
        let file = path.and_then(|path| open::guard(path, &place));
        let writer = Writer::start(
            connection,
            Target { place: place.clone(), file, health: health.clone(), now: Arc::clone(&clocks.wall) },
            tell(commits.clone()),
            observer.clone(),
        )?;
        let foreign = path.and_then(|path| Foreign::watch(path, tell(commits)));
        Ok(Self {
            place,
            reader: reader.map(|reader| Arc::new(Mutex::new(reader))),
            writer: Some(writer),
            health,
            committed,
            poll: if foreign.is_some() || path.is_none() { POLL } else { POLL_BLIND },
            clocks: {
                let wall = steady(Arc::clone(&clocks.wall), from);
                clocks.with_wall(wall)
            },
            observer,
            places: Arc::default(),
            identity,
            path: path.map(Path::to_owned),
            immutable: false,
            _foreign: foreign,
            copy: None,
        })
    }

    /// A store of which there is a reading connection alone.
    fn of_reader(
        connection: Connection,
        place: &str,
        path: &Path,
        immutable: bool,
        clocks: Clocks,
    ) -> Result<Self, StoreError> {
        let identity = identity_of(&connection, place)?;
        Ok(Self {
            place: place.to_owned(),
            reader: Some(Arc::new(Mutex::new(connection))),
            writer: None,
            health: Arc::default(),
            committed: watch::channel(0).1,
            poll: POLL,
            clocks,
            observer: Arc::default(),
            places: Arc::default(),
            identity,
            path: Some(path.to_owned()),
            immutable,
            _foreign: None,
            copy: None,
        })
    }

    /// The half that writes.
    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(|| {
            self.health
                .refusal()
                .unwrap_or_else(|| failed(format!("writing to {}", self.place), &"it is opened read-only"))
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

    /// Tells the roots as a JSON array, for SQL; none where every run may be claimed. May read disks.
    fn claimable_places(&self) -> impl FnOnce() -> Option<String> + Send + 'static {
        let places = Arc::clone(&self.places);
        move || places.get().map(|places| serde_json::json!(*places()).to_string())
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, i64) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_at(move |connection, now| work(connection, now.wall_ms)).await
    }

    /// As [`Self::write`], for what goes by the boot clock.
    async fn write_at<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Moment) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let clocks = self.clocks.clone();
        self.writer()?.run(move |connection| work(connection, &clocks.now())).await
    }

    /// Reads the store as it is at one moment: what several questions find goes together, whoever writes meanwhile.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(reader) = self.reader.clone() else { return self.writer()?.alone(work).await };
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
    /// Looks at the file as another process would, then writes to it. Where the file is not what it was, nothing more
    /// is written until it is again.
    async fn probe_file(&self) -> Result<(), StoreError> {
        self.writer()?;
        let mut looked = Ok(());
        if let (Some(path), Some(_)) = (self.path.clone(), &self.reader) {
            let (place, identity) = (self.place.clone(), self.identity.clone());
            let look = move || {
                let connection = reading(&path, &place, false)?;
                schema::recognize(&connection, &place, Some(&identity))
            };
            looked = tokio::task::spawn_blocking(look)
                .await
                .map_err(|e| failed("looking at the store".into(), &e))?;
            match &looked {
                Ok(()) => self.health.allow_writes(),
                Err(error) => {
                    let lost = [Unavailability::Damaged, Unavailability::Replaced].map(Some);
                    // Of anything else the write finds out more.
                    if lost.contains(&error.unavailability()) {
                        self.health.refuse_writes(error.clone());
                    }
                }
            }
        }
        self.write(|connection, now| {
            let sql = "INSERT OR REPLACE INTO write_probe (only_one, at_ms) VALUES (1, ?1)";
            rows::execute(connection, "probing the store", sql, [now]).map(drop)
        })
        .await
        .and(looked)
    }

    /// As a read, on a connection of its own, so that a long one holds up nobody.
    async fn read_apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(path) = self.path.clone() else { return self.read(work).await };
        let (place, immutable) = (self.place.clone(), self.immutable);
        tokio::task::spawn_blocking(move || work(&reading(&path, &place, immutable)?))
            .await
            .map_err(|e| failed("reading the store".into(), &e))?
    }
}

/// A reading connection to a file; `immutable` for one that nobody changes and that has no log.
fn reading(path: &Path, place: &str, immutable: bool) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = if immutable {
        Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
    } else {
        Connection::open_with_flags(path, flags)
    };
    opened
        .and_then(|connection| {
            schema::remembering(&connection);
            schema::patient(&connection).map(|()| connection)
        })
        .map_err(|e| failed(format!("opening {place} for reading"), &e))
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
        .map_err(|e| failed(format!("reading {place}"), &e))
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
