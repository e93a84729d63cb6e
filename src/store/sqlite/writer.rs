//! The single writer thread. Jobs that arrive while a commit is being made durable share the next one (group commit).
//! A refused job leaves nothing behind: their transaction is rolled back, and the others are run again in another one.

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

/// A job inside a transaction shared with others.
trait Work: Send {
    /// Runs it in the open transaction; returns its error. Without `savepoint` the transaction has to be rolled back
    /// then, and its other jobs are run again.
    fn run(&mut self, connection: &Connection, savepoint: bool) -> Option<StoreError>;

    /// Responds to its caller once the commit succeeded or failed.
    fn answer(self: Box<Self>, commit: Result<(), StoreError>);
}

/// A job with its last result.
struct SharedJob<T, W, A> {
    work: W,
    result: Result<T, StoreError>,
    answer: A,
}

impl<T, W, A> Work for SharedJob<T, W, A>
where
    T: Send,
    W: FnMut(&Connection) -> Result<T, StoreError> + Send,
    A: FnOnce(Result<T, StoreError>) + Send,
{
    fn run(&mut self, connection: &Connection, savepoint: bool) -> Option<StoreError> {
        self.result =
            if savepoint { in_savepoint(connection, &mut self.work) } else { (self.work)(connection) };
        self.result.as_ref().err().cloned()
    }

    fn answer(self: Box<Self>, commit: Result<(), StoreError>) {
        (self.answer)(commit.and(self.result));
    }
}

/// A request to the writer.
enum Job {
    /// Runs inside a transaction shared with others.
    Shared(Box<dyn Work>),
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
            .map_err(|e| failed("start the store writer".into(), &e))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `work` inside the next commit; returns after that commit is on disk.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let answer = |result| {
            // The caller may be gone; the work is durable nevertheless.
            let _ = answer.send(result);
        };
        let job = Job::Shared(Box::new(SharedJob { work, result: Err(writer_stopped_error()), answer }));
        self.ask(job).await?;
        answered.await.map_err(|_| writer_stopped_error())?
    }

    /// Like [`Self::run`], without waiting; a failure is logged.
    ///
    /// # Errors
    /// Returns an error if the writer has stopped, or too many jobs are queued.
    pub fn post(
        &self,
        work: impl FnMut(&Connection) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let answer = |result| {
            if let Err(error) = result {
                tracing::warn!("{error}");
            }
        };
        let job = Job::Shared(Box::new(SharedJob { work, result: Err(writer_stopped_error()), answer }));
        self.jobs.as_ref().ok_or_else(writer_stopped_error)?.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => failed("write to the store".into(), &"too many pending writes"),
            TrySendError::Closed(_) => writer_stopped_error(),
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
        answered.await.map_err(|_| writer_stopped_error())?
    }

    async fn ask(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or_else(writer_stopped_error)?;
        jobs.send(job).await.map_err(|_| writer_stopped_error())
    }
}

fn writer_stopped_error() -> StoreError {
    failed("write to the store".into(), &"the writer has stopped; see the log")
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store writer panicked");
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

/// The jobs of one transaction.
struct Batch<'c> {
    connection: &'c Connection,
    place: &'c str,
    jobs: Vec<Box<dyn Work>>,
    /// Whether each job runs in a savepoint. One copies every page that its job changes, and few jobs fail: there are
    /// none until one did.
    savepoints: bool,
    /// Why there is no transaction.
    broken: Option<StoreError>,
}

impl Batch<'_> {
    fn begin(&mut self) {
        let begun = cached(self.connection, "BEGIN IMMEDIATE");
        self.broken = begun.map_err(|e| failed(format!("lock {}", self.place), &e)).err();
    }

    /// Runs another job. If it fails, nothing remains of it.
    fn add(&mut self, job: Box<dyn Work>) {
        self.jobs.push(job);
        let has_failed = self.run(self.jobs.len() - 1);
        if !has_failed || self.savepoints || self.broken.is_some() {
            return;
        }
        if let Err(error) = cached(self.connection, "ROLLBACK") {
            self.broken = Some(failed(format!("write to {}", self.place), &error));
            return;
        }
        self.begin();
        if self.jobs.len() > 1 {
            self.savepoints = true;
            for job in 0..self.jobs.len() {
                self.run(job);
            }
        }
    }

    /// Runs one of the jobs; returns whether it failed. Without a transaction a job must not run: its savepoint alone
    /// would commit.
    fn run(&mut self, job: usize) -> bool {
        let Some(job) = self.jobs.get_mut(job).filter(|_| self.broken.is_none()) else { return false };
        let error = job.run(self.connection, self.savepoints);
        let has_failed = error.is_some();
        if self.connection.is_autocommit() {
            // A full or failing disk ends the transaction, with everything done in it.
            let ended = || failed(format!("write to {}", self.place), &"the transaction failed");
            self.broken = Some(error.unwrap_or_else(ended));
        }
        has_failed
    }
}

/// Runs the queued jobs in one commit; returns the first job that cannot be part of it.
fn together(
    connection: &Connection,
    first: Box<dyn Work>,
    queue: &mut Receiver<Job>,
    target: &Target,
    observer: Option<&CommitObserver>,
) -> Option<Job> {
    let began = Instant::now();
    let place = &target.place;
    let before = connection.total_changes();
    let mut batch = Batch { connection, place, jobs: Vec::new(), savepoints: false, broken: None };
    batch.begin();
    // Otherwise each of the queued jobs would wait for the lock as long as the first one, one after another.
    let is_locked = batch.broken.is_some();
    let mut separate_job = None;
    let mut next = Some(first);
    while let Some(job) = next.take() {
        batch.add(job);
        if (batch.broken.is_none() || is_locked) && batch.jobs.len() < BATCH {
            match queue.try_recv() {
                Ok(Job::Shared(job)) => next = Some(job),
                Ok(alone) => separate_job = Some(alone),
                Err(_) => {}
            }
        }
    }
    let Batch { jobs, broken, .. } = batch;
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
        tracing::warn!("cannot roll back after a failed commit: {e}");
    }
    if let Some(observer) = observer.filter(|_| outcome.is_ok()) {
        observer(jobs.len(), began.elapsed());
    }
    for job in jobs {
        job.answer(outcome.clone());
    }
    separate_job
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Arc, Connection, OnceLock, Target, WriteHealth, Writer};

    fn target() -> Target {
        Target {
            place: "runs.db".into(),
            file: None,
            identity: None,
            health: Arc::new(WriteHealth::default()),
            now: Arc::new(|| 0),
        }
    }

    #[tokio::test]
    async fn failed_job_leaves_nothing_behind_and_the_others_are_committed_once() {
        for failing in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let open = || Connection::open(folder.path().join("runs.db")).unwrap();
            let (connection, other) = (open(), open());
            connection.execute_batch("CREATE TABLE t (n)").unwrap();
            let writer = Writer::start(connection, target(), || {}, Arc::new(OnceLock::new())).unwrap();
            // The writer waits until all jobs are queued.
            let (queued, is_queued) = std::sync::mpsc::channel();
            let insert = |job: i64| {
                writer.run(move |connection| {
                    connection
                        .execute("INSERT INTO t VALUES (?1)", [job])
                        .map_err(|_| super::writer_stopped_error())?;
                    if job == failing { Err(super::writer_stopped_error()) } else { Ok(job) }
                })
            };
            let blocked = writer.alone(move |_| is_queued.recv().map_err(|_| super::writer_stopped_error()));
            let jobs = futures::future::join_all((0..4).map(insert));
            let release = async { queued.send(()).unwrap() };
            let (blocked, written, ()) = futures::join!(blocked, jobs, release);
            blocked.unwrap();
            let is_ok: Vec<bool> = written.iter().map(Result::is_ok).collect();
            assert_eq!(is_ok, (0..4).map(|job| job != failing).collect::<Vec<_>>());
            let stored: String =
                other.query_row("SELECT group_concat(n) FROM t", [], |row| row.get(0)).unwrap();
            let expected: Vec<String> =
                (0..4).filter(|job| *job != failing).map(|job| job.to_string()).collect();
            assert_eq!(stored, expected.join(","));
        }
    }

    #[tokio::test]
    async fn all_queued_jobs_fail_with_the_one_that_could_not_lock_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("runs.db")).unwrap();
        let (connection, other) = (open(), open());
        connection.execute_batch("CREATE TABLE t (n)").unwrap();
        connection.busy_timeout(Duration::from_secs(1)).unwrap();
        let writer = Writer::start(connection, target(), || {}, Arc::new(OnceLock::new())).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let insert = async || {
            let written = writer
                .run(|connection| {
                    connection
                        .execute("INSERT INTO t VALUES (1)", [])
                        .map_err(|_| super::writer_stopped_error())
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
