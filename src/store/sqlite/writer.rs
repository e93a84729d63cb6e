//! One thread writes. Jobs that arrive while a commit is being made durable share the next one
//! (group commit), each in a savepoint of its own, so that a refused job leaves nothing behind.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failed;
use crate::store::StoreError;

/// Jobs per commit at most: bounds how long the first of them waits.
const BATCH: usize = 256;

/// Answers a job once its commit is through or has failed.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// Works inside an open transaction, or learns why there is none.
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Answer + Send>;

/// The writing half of a database.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread; `committed` is called after each commit.
    pub fn start(
        connection: Connection,
        place: String,
        committed: impl Fn() + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || write(&connection, &queue, &place, &committed))
            .map_err(|e| failed("starting the store's writer".into(), &e))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `work` inside the next commit; returns after that commit is on disk.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let result = connection.and_then(|connection| in_savepoint(connection, work));
            Box::new(move |commit| {
                // The asker may have gone away; the work is durable all the same.
                let _ = answer.send(commit.and(result));
            })
        });
        let gone = || failed("writing to the store".into(), &"the writer has stopped; see the log");
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(gone)?;
        answered.await.map_err(|_| gone())?
    }
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

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let sql = |text: &str| {
        connection
            .prepare_cached(text)
            .and_then(|mut s| s.execute([]))
            .map_err(|e| failed(text.to_owned(), &e))
    };
    sql("SAVEPOINT job")?;
    match work(connection) {
        Ok(value) => {
            sql("RELEASE job")?;
            Ok(value)
        }
        Err(error) => {
            sql("ROLLBACK TO job")?;
            sql("RELEASE job")?;
            Err(error)
        }
    }
}

fn write(connection: &Connection, queue: &Receiver<Job>, place: &str, committed: &impl Fn()) {
    while let Ok(first) = queue.recv() {
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        let mut answers = Vec::new();
        let outcome = match begun {
            Ok(()) => {
                answers.push(first(Ok(connection)));
                while answers.len() < BATCH
                    && let Ok(job) = queue.try_recv()
                {
                    answers.push(job(Ok(connection)));
                }
                connection.execute_batch("COMMIT").map_err(|e| {
                    let error = failed(format!("committing to {place}"), &e);
                    if let Err(e) = connection.execute_batch("ROLLBACK") {
                        tracing::warn!("rolling back after a failed commit: {e}");
                    }
                    error
                })
            }
            Err(e) => {
                // Without a transaction the job must not run: its savepoint alone would commit.
                let error = failed(format!("locking {place}"), &e);
                answers.push(first(Err(error.clone())));
                Err(error)
            }
        };
        for answer in answers {
            answer(outcome.clone());
        }
        committed();
    }
}
