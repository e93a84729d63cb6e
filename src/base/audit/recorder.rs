//! Records entries from many tasks: a dedicated thread writes queued entries in batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::anchor::Anchor;

use super::line::{Entry, Line, Mode, digest};
use super::log::{End, Log};
use super::pending::PendingOperation;
use crate::paths::escaped;
use crate::private_files;
use crate::sync::MutexExt as _;

/// Maximum number of entries per write.
const BATCH: usize = 256;

/// Maximum number of queued entries; a caller with one more waits for a slot.
const QUEUE: usize = 4 * BATCH;

/// Maximum number of lines of this process that are not anchored yet.
const MAX_UNANCHORED: usize = 256;

/// Maximum time before a line is anchored.
const ANCHOR_DELAY: Duration = Duration::from_secs(1);

/// Called with each anchor after it was written.
pub type AnchorObserver = Box<dyn Fn(&Anchor) + Send + Sync>;

/// The anchors that are stored elsewhere.
#[derive(Default)]
struct StoredAnchors {
    observer: OnceLock<AnchorObserver>,
    /// The furthest one of earlier processes, until the log is compared with it.
    uncompared: Mutex<Option<Anchor>>,
}

impl StoredAnchors {
    /// Compares the log with the furthest anchor of earlier processes, once.
    fn compare(&self, log: &Log, end: &mut Option<End>) {
        let Some(furthest) = self.uncompared.locked().take() else { return };
        let now = jiff::Timestamp::now().as_millisecond();
        if let Err(error) = log.compare(&furthest, now, end) {
            tracing::error!("{error}");
        }
    }
}

/// A request to the thread.
struct Job {
    entry: Entry,
    /// Receives whether the entry was written.
    written: Option<oneshot::Sender<bool>>,
}

/// Records entries in the log of a data directory. A failed write does not fail the recorded operation; it is reported
/// as an error in the program's log.
pub struct Recorder {
    log: Log,
    /// The end of the log after this process's last write.
    end: Arc<Mutex<Option<End>>>,
    stored: Arc<StoredAnchors>,
    thread: Mutex<Option<(SyncSender<Job>, JoinHandle<()>)>>,
    policy: Mutex<Option<String>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("log", &self.log).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Creates a recorder for this folder. No file is created and no thread is started before the first entry.
    pub fn new(folder: &Path, mode: Mode) -> Arc<Self> {
        Arc::new(Self {
            log: Log::new(folder, mode),
            end: Arc::default(),
            stored: Arc::default(),
            thread: Mutex::default(),
            policy: Mutex::default(),
        })
    }

    /// Returns the log that it writes to.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Registers an observer that is called with every new anchor; only the first observer is registered. `stored` are
    /// the anchors that it has stored before. Before this process writes to the log or stores another anchor, which
    /// replaces them, a log that contradicts them is recorded in the log.
    pub fn observe_anchors(&self, stored: &[Anchor], observer: AnchorObserver) {
        if self.log.mode() == Mode::Off {
            return;
        }
        // Each line contains the digest of the one before it: if the furthest anchor is right, the earlier ones are.
        *self.stored.uncompared.locked() = stored.iter().max_by_key(|anchor| anchor.seq).cloned();
        drop(self.stored.observer.set(observer));
    }

    /// Anchors lines that a killed process left without an anchor. Reads the end of the log.
    pub fn catch_up(&self) {
        anchor(&self.log, &self.end, &self.stored);
    }

    /// Records an entry; returns when it is written and, if it is durable, on the disk. Returns false if that failed.
    pub async fn record(&self, entry: Entry) -> bool {
        let Some(jobs) = self.jobs() else { return self.log.mode() == Mode::Off };
        let (written, done) = oneshot::channel();
        match jobs.try_send(Job { entry, written: Some(written) }) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => {
                drop(tokio::task::spawn_blocking(move || jobs.send(job)).await);
            }
            Err(TrySendError::Disconnected(_)) => {
                tracing::error!("the audit log writer has stopped; an entry was not written");
                return false;
            }
        }
        // The thread answers every job, or has ended with the program.
        done.await.unwrap_or(false)
    }

    /// Records an entry like [`Self::record`], on a thread that may block.
    pub fn record_blocking(&self, entry: Entry) -> bool {
        let Some(jobs) = self.jobs() else { return self.log.mode() == Mode::Off };
        let (written, done) = oneshot::channel();
        if jobs.send(Job { entry, written: Some(written) }).is_err() {
            tracing::error!("the audit log writer has stopped; an entry was not written");
            return false;
        }
        done.blocking_recv().unwrap_or(false)
    }

    /// Stores an operation before it is applied. Its entry is recorded afterwards, by another process if this one is
    /// killed in between. Returns `None` if recording is disabled, or if that failed.
    pub fn begin(&self, what: Value) -> Option<PendingOperation> {
        if self.log.mode() == Mode::Off {
            return None;
        }
        match PendingOperation::begin(self.log.folder(), what) {
            Ok(pending) => Some(pending),
            Err(error) => {
                tracing::warn!("cannot store an operation in {}: {error}", self.log.folder().display());
                None
            }
        }
    }

    /// Returns the operations whose entry is not recorded yet, of all processes.
    pub fn pending(&self) -> Vec<PendingOperation> {
        PendingOperation::all(self.log.folder()).unwrap_or_else(|error| {
            tracing::warn!("cannot read {}: {error}", self.log.folder().display());
            Vec::new()
        })
    }

    /// Records an entry of an operation that was interrupted, unless its line is already in the log: one of the same
    /// kind with the same `key`, fields that identify the operation. Returns false if that failed. Every other
    /// process that could record it must be locked out.
    pub fn record_missing(&self, entry: Entry, key: &[&str]) -> bool {
        let requested = Line::of(entry.clone(), self.log.mode(), 0, 0, "").data;
        let is_it = |line: &Line| {
            line.kind == entry.kind && key.iter().all(|name| line.data.get(*name) == requested.get(*name))
        };
        match self.log.show(1, is_it) {
            Ok(found) if !found.is_empty() => true,
            Ok(_) => self.record_blocking(entry),
            Err(error) => {
                tracing::error!("{error}");
                false
            }
        }
    }

    /// Records an entry without waiting for the write, which happens at the latest when this recorder is dropped.
    /// Waits only for a slot in the queue.
    pub fn note(&self, entry: Entry) {
        if let Some(jobs) = self.jobs()
            && jobs.send(Job { entry, written: None }).is_err()
        {
            tracing::error!("the audit log writer has stopped; an entry was not written");
        }
    }

    /// Returns the channel to the thread, which starts with the first entry; `None` if recording is disabled.
    fn jobs(&self) -> Option<SyncSender<Job>> {
        if self.log.mode() == Mode::Off {
            return None;
        }
        let mut thread = self.thread.locked();
        if thread.as_ref().is_some_and(|(_, handle)| handle.is_finished()) {
            tracing::error!("the audit log writer panicked; restarting it");
            *thread = None;
        }
        if thread.is_none() {
            let (jobs, queue) = sync_channel(QUEUE);
            let (log, end) = (self.log.clone(), Arc::clone(&self.end));
            let stored = Arc::clone(&self.stored);
            let started = std::thread::Builder::new()
                .name("audit".into())
                .spawn(move || write(&log, &queue, &end, &stored));
            match started {
                Ok(handle) => *thread = Some((jobs, handle)),
                Err(error) => tracing::error!("cannot start the audit log thread: {error}"),
            }
        }
        thread.as_ref().map(|(jobs, _)| jobs.clone())
    }

    /// Records the policy in force if its text has changed since it was last recorded by any process.
    pub fn policy(&self, file: &Path, text: &str) {
        if self.log.mode() == Mode::Off {
            return;
        }
        let now = digest(text.as_bytes());
        let mut seen = self.policy.locked();
        if seen.as_ref() == Some(&now) {
            return;
        }
        let digest_file = self.log.file().with_file_name("policy.sha256");
        let before = std::fs::read_to_string(&digest_file).ok().map(|text| text.trim().to_owned());
        let none = before.is_none() && text.trim().is_empty();
        if before.as_ref() != Some(&now) && !none {
            let entry = Entry::new(
                "policy.changed",
                None,
                json!({ "file": escaped(file), "from": before, "to": now }),
            );
            self.note(entry.with_detail(json!({ "text": text })).durably());
            let wrote = private_files::replace(&digest_file, format!("{now}\n").as_bytes());
            if let Err(error) = wrote {
                tracing::warn!("cannot store the policy in {}: {error}", digest_file.display());
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
                tracing::error!("the audit log writer panicked");
            }
        }
    }
}

fn write(log: &Log, queue: &Receiver<Job>, end: &Mutex<Option<End>>, stored: &StoredAnchors) {
    // Number of lines without an anchor, and the time of the first of them.
    let mut unanchored: Option<(usize, Instant)> = None;
    loop {
        let next = match unanchored {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((lines, _)) if lines >= MAX_UNANCHORED => Err(RecvTimeoutError::Timeout),
            Some((_, since)) => queue.recv_timeout(ANCHOR_DELAY.saturating_sub(since.elapsed())),
        };
        match next {
            Ok(first) => {
                let lines = append(log, first, queue, end, stored);
                let (before, since) = unanchored.unwrap_or((0, Instant::now()));
                unanchored = Some((before + lines, since));
            }
            Err(ended) => {
                if unanchored.take().is_some() {
                    anchor(log, end, stored);
                }
                if ended == RecvTimeoutError::Disconnected {
                    return;
                }
            }
        }
    }
}

/// Writes a job and those queued after it; returns the number of lines.
fn append(
    log: &Log,
    first: Job,
    queue: &Receiver<Job>,
    end: &Mutex<Option<End>>,
    stored: &StoredAnchors,
) -> usize {
    let mut jobs = vec![first];
    while jobs.len() < BATCH
        && let Ok(job) = queue.try_recv()
    {
        jobs.push(job);
    }
    let (entries, written): (Vec<Entry>, Vec<_>) = jobs.into_iter().map(|j| (j.entry, j.written)).unzip();
    let (lines, now) = (entries.len(), jiff::Timestamp::now().as_millisecond());
    let mut end = end.locked();
    stored.compare(log, &mut end);
    let appended = log.append(entries, now, &mut end);
    if let Err(error) = &appended {
        *end = None;
        tracing::error!("{error}: entries are missing");
    }
    drop(end);
    for written in written.into_iter().flatten() {
        // The caller may have been canceled.
        let _ = written.send(appended.is_ok());
    }
    lines
}

fn anchor(log: &Log, end: &Mutex<Option<End>>, stored: &StoredAnchors) {
    // An observer is registered after the anchor that the log is compared with before it receives another one.
    let observer = stored.observer.get();
    let mut end = end.locked();
    if observer.is_some() {
        stored.compare(log, &mut end);
    }
    let written = log.write_anchor(&mut end);
    drop(end);
    match written {
        Ok(Some(anchor)) => {
            if let Some(observer) = observer
                && catch_unwind(AssertUnwindSafe(|| observer(&anchor))).is_err()
            {
                tracing::error!("the anchor of the audit log is not in the store: its observer panicked");
            }
        }
        Ok(None) => {}
        Err(error) => tracing::error!("{error}"),
    }
}
