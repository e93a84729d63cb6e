//! The single writer thread. Jobs that arrive while a commit is being made durable share the next one (group commit),
//! each in a savepoint of its own, so that a refused job leaves nothing behind.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use super::guard::FileGuard;
use super::{Clock, CommitObserver, failed, reading, schema};
use crate::StoreError;
use crate::write_health::WriteHealth;

/// Maximum number of jobs per commit: bounds how long the first of them waits.
const BATCH: usize = 256;

/// Maximum number of queued jobs; further callers wait for a slot.
const QUEUE: usize = 4 * BATCH;

/// Responds to the caller of a job once its commit succeeded or failed.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// Runs inside an open transaction, or receives the reason why there is none; returns the responder and its own error.
type Work = Box<dyn FnOnce(Result<&Connection, StoreError>) -> (Answer, Option<StoreError>) + Send>;

/// A request to the writer.
enum Job {
    /// Runs inside a transaction shared with others.
    Shared(Work),
    /// Runs alone, outside of a transaction.
    Alone(Box<dyn FnOnce(&Connection) + Send>),
}

/// The database to write to.
pub(super) struct Target {
    pub place: String,
    /// Its files; `None` in memory.
    pub file: Option<Arc<FileGuard>>,
    /// Its path and store id; `None` in memory.
    pub identity: Option<(PathBuf, String)>,
    pub health: Arc<WriteHealth>,
    pub now: Clock,
}

impl Target {
    /// Checks that committed data could be found again.
    fn check(&self) -> Result<(), StoreError> {
        if let Some(error) = self.health.refusal() {
            return Err(error);
        }
        self.file.as_ref().map_or(Ok(()), |file| file.check())
    }

    /// Checks that the file at the path is still this store.
    fn check_identity(&self) -> Result<(), StoreError> {
        self.check()?;
        let Some((path, id)) = &self.identity else { return Ok(()) };
        schema::recognize(&reading(path, &self.place, false)?, &self.place, Some(id))
    }
}

/// The writing side of a database.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread; `committed` is called after each commit, and `observer` is notified of each transaction.
    pub fn start(
        connection: Connection,
        target: Target,
        committed: impl Fn() + Send + 'static,
        observer: Arc<OnceLock<CommitObserver>>,
    ) -> Result<Self, StoreError> {
        let (jobs, mut queue) = channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || write(&connection, &mut queue, &target, &committed, &observer))
            .map_err(|e| failed("start the store's writer".into(), &e))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `work` inside the next commit; returns after that commit is on disk.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Shared(Box::new(move |connection| {
            let result = connection.and_then(|connection| in_savepoint(connection, work));
            let error = result.as_ref().err().cloned();
            let respond: Answer = Box::new(move |commit| {
                // The caller may be gone; the work is durable nevertheless.
                let _ = answer.send(commit.and(result));
            });
            (respond, error)
        }));
        self.ask(job).await?;
        answered.await.map_err(|_| gone())?
    }

    /// Like [`Self::run`], without waiting; a failure is logged.
    ///
    /// # Errors
    /// Returns an error if the writer has stopped, or too many jobs are queued.
    pub fn post(
        &self,
        work: impl FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let job = Job::Shared(Box::new(move |connection| {
            let result = connection.and_then(|connection| in_savepoint(connection, work));
            let error = result.as_ref().err().cloned();
            let log: Answer = Box::new(move |commit| {
                if let Err(error) = commit.and(result) {
                    tracing::warn!("{error}");
                }
            });
            (log, error)
        }));
        self.jobs.as_ref().ok_or_else(gone)?.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => failed("write to the store".into(), &"too many pending writes"),
            TrySendError::Closed(_) => gone(),
        })
    }

    /// Runs `work` between two commits, for what cannot be part of a transaction.
    pub async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Job::Alone(Box::new(move |connection| {
            let _ = answer.send(work(connection));
        })))
        .await?;
        answered.await.map_err(|_| gone())?
    }

    async fn ask(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).await.map_err(|_| gone())
    }
}

fn gone() -> StoreError {
    failed("write to the store".into(), &"the writer has stopped; see the log")
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer panicked");
        }
    }
}

/// Runs a statement that stays prepared.
fn cached(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let sql = |text: &str| cached(connection, text).map_err(|e| failed(text.to_owned(), &e));
    sql("SAVEPOINT job")?;
    match work(connection) {
        Ok(value) => {
            sql("RELEASE job")?;
            Ok(value)
        }
        Err(error) => {
            // A full or failing disk has already ended the whole transaction.
            if !connection.is_autocommit() {
                sql("ROLLBACK TO job")?;
                sql("RELEASE job")?;
            }
            Err(error)
        }
    }
}

fn write(
    connection: &Connection,
    queue: &mut Receiver<Job>,
    target: &Target,
    committed: &impl Fn(),
    observer: &OnceLock<CommitObserver>,
) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| queue.blocking_recv()) {
        let before = connection.total_changes();
        match job {
            Job::Alone(work) => work(connection),
            Job::Shared(first) => next = together(connection, first, queue, target, observer.get()),
        }
        if connection.total_changes() != before {
            committed();
        }
    }
    // Otherwise closing the last connection would merge the log into a file that is not this store, and delete it.
    if let Err(error) = target.check_identity() {
        tracing::error!("{error}; its log (-wal) is left as it is");
        if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
            tracing::error!("keeping the log of {}: {error}", target.place);
        }
    }
}

/// Runs the queued jobs in one commit; returns the first job that cannot be part of it.
fn together(
    connection: &Connection,
    first: Work,
    queue: &mut Receiver<Job>,
    target: &Target,
    observer: Option<&CommitObserver>,
) -> Option<Job> {
    let began = Instant::now();
    let mut answers = Vec::new();
    let mut separate_job = None;
    let place = &target.place;
    let before = connection.total_changes();
    let begun = cached(connection, "BEGIN IMMEDIATE");
    let mut broken = begun.map_err(|e| failed(format!("lock {place}"), &e)).err();
    // Otherwise each of the queued jobs would wait for the lock as long as the first one, one after another.
    let is_locked = broken.is_some();
    let mut next = Some(first);
    while let Some(work) = next.take() {
        // Without a transaction a job must not run: its savepoint alone would commit.
        let (answer, error) = work(broken.clone().map_or(Ok(connection), Err));
        answers.push(answer);
        if broken.is_none() && connection.is_autocommit() {
            // A full or failing disk ends the transaction, with everything done in it.
            broken = error.or_else(|| Some(failed(format!("write to {place}"), &"the transaction failed")));
        }
        if (broken.is_none() || is_locked) && answers.len() < BATCH {
            match queue.try_recv() {
                Ok(Job::Shared(work)) => next = Some(work),
                Ok(alone) => separate_job = Some(alone),
                Err(_) => {}
            }
        }
    }
    let outcome = match broken {
        Some(error) => Err(error),
        None => target.check().and_then(|()| {
            cached(connection, "COMMIT").map_err(|e| failed(format!("commit to {place}"), &e))
        }),
    };
    match &outcome {
        // A transaction that changed nothing does not show that the disk can be written.
        Ok(()) if connection.total_changes() != before => target.health.succeeded(),
        Ok(()) => {}
        Err(error) => target.health.failed(error, (target.now)()),
    }
    if outcome.is_err()
        && !connection.is_autocommit()
        && let Err(e) = connection.execute_batch("ROLLBACK")
    {
        tracing::warn!("rolling back after a failed commit: {e}");
    }
    if let Some(observer) = observer.filter(|_| outcome.is_ok()) {
        observer(answers.len(), began.elapsed());
    }
    for answer in answers {
        answer(outcome.clone());
    }
    separate_job
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Arc, Connection, OnceLock, Target, WriteHealth, Writer};

    #[tokio::test]
    async fn all_queued_jobs_fail_with_the_one_that_could_not_lock_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("runs.db")).unwrap();
        let (connection, other) = (open(), open());
        connection.execute_batch("CREATE TABLE t (n)").unwrap();
        connection.busy_timeout(Duration::from_secs(1)).unwrap();
        let target = Target {
            place: "runs.db".into(),
            file: None,
            identity: None,
            health: Arc::new(WriteHealth::default()),
            now: Arc::new(|| 0),
        };
        let writer = Writer::start(connection, target, || {}, Arc::new(OnceLock::new())).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let insert = async || {
            let written = writer
                .run(|connection| {
                    connection.execute("INSERT INTO t VALUES (1)", []).map_err(|_| super::gone())
                })
                .await;
            if !other.is_autocommit() {
                other.execute_batch("ROLLBACK").unwrap();
            }
            written
        };
        let written = futures::future::join_all((0..5).map(|_| insert())).await;
        assert!(written.iter().all(Result::is_err), "{written:?}");
        assert!(insert().await.is_ok(), "the lock is released");
    }
}
