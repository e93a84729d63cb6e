//! Appends from many tasks: a thread of its own writes what came together in one piece.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::json;
use tokio::sync::oneshot;

use super::line::{Entry, Mode, digest};
use super::log::Log;

/// Entries written at once, at most.
const BATCH: usize = 256;

/// What the thread is asked for.
struct Job {
    entry: Entry,
    written: Option<oneshot::Sender<()>>,
}

/// Records entries in the log of a data directory. Failing to write never fails what is recorded: it is said in the
/// program's log, loudly.
#[derive(Debug)]
pub struct Recorder {
    log: Log,
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
    policy: Mutex<Option<String>>,
}

impl Recorder {
    /// Records into this folder. Nothing is made, and no thread begun, before the first entry.
    #[must_use]
    pub fn new(folder: &Path, mode: Mode) -> Arc<Self> {
        Arc::new(Self { log: Log::new(folder, mode), thread: Mutex::default(), policy: Mutex::default() })
    }

    /// The log that it writes to.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Records an entry; returns when it is written, and where it is durable, on the disk.
    pub async fn record(&self, entry: Entry) {
        let (written, done) = oneshot::channel();
        if self.ask(Job { entry, written: Some(written) }) {
            // The thread answers every job, or has ended with the program.
            drop(done.await);
        }
    }

    /// Records an entry without waiting; it is written before this recorder is dropped.
    pub fn note(&self, entry: Entry) {
        self.ask(Job { entry, written: None });
    }

    fn ask(&self, job: Job) -> bool {
        if self.log.mode() == Mode::Off {
            return false;
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (jobs, queue) = channel();
            let log = self.log.clone();
            let begun = std::thread::Builder::new().name("audit".into()).spawn(move || write(&log, &queue));
            match begun {
                Ok(handle) => *thread = Some((jobs, handle)),
                Err(error) => tracing::error!("no thread for the audit log: {error}"),
            }
        }
        thread.as_ref().is_some_and(|(jobs, _)| jobs.send(job).is_ok())
    }

    /// The policy that decides now, by its text: a change since it was last seen, by any process, is recorded.
    pub fn policy(&self, file: &Path, text: &str) {
        if self.log.mode() == Mode::Off {
            return;
        }
        let now = digest(text.as_bytes());
        let mut seen = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&now) {
            return;
        }
        let kept = self.log.file().with_file_name("policy.sha256");
        let before = std::fs::read_to_string(&kept).ok().map(|text| text.trim().to_owned());
        let none = before.is_none() && text.trim().is_empty();
        if before.as_ref() != Some(&now) && !none {
            let entry =
                Entry::new("policy.changed", None, json!({ "file": file, "from": before, "to": now }));
            self.note(entry.with_detail(json!({ "text": text })).durably());
            let folder = kept.parent().unwrap_or(Path::new("."));
            let wrote =
                std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&kept, format!("{now}\n")));
            if let Err(error) = wrote {
                tracing::warn!("remembering the policy in {}: {error}", kept.display());
            }
        }
        *seen = Some(now);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((jobs, handle)) = thread {
            drop(jobs);
            if handle.join().is_err() {
                tracing::error!("the audit log's writer panicked");
            }
        }
    }
}

fn write(log: &Log, queue: &Receiver<Job>) {
    let mut known = None;
    while let Ok(first) = queue.recv() {
        let mut jobs = vec![first];
        while jobs.len() < BATCH
            && let Ok(job) = queue.try_recv()
        {
            jobs.push(job);
        }
        let (entries, written): (Vec<Entry>, Vec<_>) = jobs.into_iter().map(|j| (j.entry, j.written)).unzip();
        let now = jiff::Timestamp::now().as_millisecond();
        if let Err(error) = log.append(entries, now, &mut known) {
            known = None;
            tracing::error!("{error}: what happened meanwhile is not in it");
        }
        for written in written.into_iter().flatten() {
            // Whoever asked may have gone away.
            let _ = written.send(());
        }
    }
}
