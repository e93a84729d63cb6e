//! Connections that read a file at the same time: one is opened with the store, the others when they are needed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::guard::FileGuard;
use super::{failed, reading, schema};
use crate::StoreError;
use skills_base::sync::MutexExt as _;

/// Maximum number of connections: more than the large reads of one principal of a service at a time.
const MAX_READERS: usize = 8;

/// The file that is read.
pub(super) struct ReadFile {
    pub path: PathBuf,
    pub place: String,
    /// Whether it is opened as immutable.
    pub immutable: bool,
    /// Id of the store.
    pub identity: String,
    /// The open files, if they are written.
    pub guard: Option<Arc<FileGuard>>,
}

/// The connections of one store.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    /// One for each idle connection.
    permits: Arc<Semaphore>,
    /// Number of connections, idle and in use.
    opened: AtomicUsize,
    file: ReadFile,
}

impl Readers {
    pub fn new(first: Connection, file: ReadFile) -> Self {
        Self {
            idle: Mutex::new(vec![first]),
            permits: Arc::new(Semaphore::new(1)),
            opened: AtomicUsize::new(1),
            file,
        }
    }

    /// Waits for a connection. If all are in use, another one is opened.
    pub async fn acquire(self: &Arc<Self>) -> Result<Reader, StoreError> {
        let action = || "read the store".to_owned();
        if self.permits.available_permits() == 0 && self.opened.load(Ordering::Relaxed) < MAX_READERS {
            let readers = Arc::clone(self);
            tokio::task::spawn_blocking(move || readers.open_another())
                .await
                .map_err(|e| failed(action(), &e))?;
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|e| failed(action(), &e.to_string()))?;
        let connection = self.idle.locked().pop();
        Ok(Reader { connection, readers: Arc::clone(self), _permit: permit })
    }

    /// Opens one more connection, unless there are enough. If it cannot be opened, callers wait for the existing ones.
    fn open_another(&self) {
        let next = |opened: usize| (opened < MAX_READERS).then_some(opened + 1);
        if self.opened.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_err() {
            return;
        }
        match self.open() {
            Ok(connection) => {
                self.idle.locked().push(connection);
                self.permits.add_permits(1);
            }
            Err(error) => {
                self.opened.fetch_sub(1, Ordering::Relaxed);
                tracing::debug!("cannot open another connection: {error}");
            }
        }
    }

    /// Opens a connection to the same store: the file at the path may have been replaced.
    fn open(&self) -> Result<Connection, StoreError> {
        let ReadFile { path, place, immutable, identity, guard } = &self.file;
        if let Some(guard) = guard {
            guard.check()?;
        }
        let connection = reading(path, place, *immutable)?;
        schema::recognize(&connection, place, Some(identity))?;
        Ok(connection)
    }
}

/// A connection in use. It is idle again when this is dropped.
pub(super) struct Reader {
    connection: Option<Connection>,
    readers: Arc<Readers>,
    /// Released after the connection is idle.
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    pub fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(|| failed("read the store".to_owned(), &"no connection is idle"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.readers.idle.locked().extend(self.connection.take());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Sqlite;

    #[tokio::test]
    async fn long_read_does_not_block_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("runs.db"), Arc::new(|| 0)).unwrap().store;
        let (start, started) = tokio::sync::oneshot::channel::<()>();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let long = store.read(move |_| {
            start.send(()).unwrap();
            Ok(ended.recv().is_ok())
        });
        let others = async {
            started.await.unwrap();
            let other = tokio::time::timeout(Duration::from_secs(30), store.read(|_| Ok(true))).await;
            end.send(()).unwrap();
            other.expect("another connection").unwrap()
        };
        let (long, other) = tokio::join!(long, others);
        assert!(long.unwrap() && other);
        let readers = store.readers.clone().unwrap();
        assert_eq!((readers.opened.load(Ordering::Relaxed), readers.permits.available_permits()), (2, 2));
    }

    #[tokio::test]
    async fn another_file_at_the_path_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = Sqlite::open(&path, Arc::new(|| 0)).unwrap().store;
        let readers = store.readers.clone().unwrap();
        std::fs::rename(&path, folder.path().join("moved.db")).unwrap();
        readers.open_another();
        std::fs::write(&path, "another file").unwrap();
        readers.open_another();
        assert_eq!((readers.opened.load(Ordering::Relaxed), readers.idle.locked().len()), (1, 1));
    }
}
