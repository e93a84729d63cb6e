//! Detects commits of other processes immediately: each of them appends to the database's write-ahead log, and the
//! system notifies watchers of that file. Idle stores cost nothing.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Pauses in milliseconds between checks after the log was written. A commit writes it in many pieces, which one check
/// covers. The data can be read only once it is durable, about which the system sends no notification: that takes a
/// fast disk less than a millisecond, and a busy one many.
const PAUSES: [u64; 6] = [2, 4, 10, 30, 90, 270];

/// How long writes are batched after the first one, which is reported at once.
const BATCH_INTERVAL: Duration = Duration::from_millis(4);

/// Watches the log of a database until it is dropped.
#[derive(Debug)]
pub(super) struct ChangeWatch {
    _watcher: RecommendedWatcher,
}

impl ChangeWatch {
    /// Calls `changed` after each commit, including those of this process. `None` if files cannot be watched: then
    /// callers have to poll.
    pub fn watch(database: &Path, changed: impl Fn() + Send + 'static) -> Option<Self> {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        let (tell, changes) = channel();
        let written = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_)) => {
                // Fails only after the watcher was dropped.
                let _ = tell.send(());
                // Until they are read, the system merges identical events; otherwise a process that writes thousands of
                // times a second would cause hundreds of wake-ups.
                std::thread::sleep(BATCH_INTERVAL);
            }
            Ok(_) => {}
            Err(e) => tracing::warn!("cannot watch the log of the store: {e}"),
        };
        let watcher = notify::recommended_watcher(written).and_then(|mut watcher| {
            watcher.watch(Path::new(&log), RecursiveMode::NonRecursive).map(|()| watcher)
        });
        let started = watcher.map_err(|e| e.to_string()).and_then(|watcher| {
            std::thread::Builder::new()
                .name("store-foreign".into())
                .spawn(move || watch_changes(&changes, &changed))
                .map(|_| Self { _watcher: watcher })
                .map_err(|e| e.to_string())
        });
        started
            .inspect_err(|e| {
                tracing::info!("cannot watch {} ({e}); polling instead", log.display());
            })
            .ok()
    }
}

/// Checks immediately when the log was written, and again until the data must be durable; ends when the channel closes.
fn watch_changes(changes: &Receiver<()>, changed: &impl Fn()) {
    while changes.recv().is_ok() {
        let mut pauses = PAUSES.iter();
        loop {
            changed();
            let Some(pause) = pauses.next() else { break };
            let pause = Duration::from_millis(*pause);
            match changes.recv_timeout(pause) {
                Ok(()) => {
                    // Another commit, or the rest of this one: its pieces share the next check.
                    std::thread::sleep(Duration::from_millis(PAUSES[0]));
                    while changes.try_recv().is_ok() {}
                    pauses = PAUSES.iter();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn late_durable_commit_is_checked_again() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("runs.db-wal");
        std::fs::write(&log, "").unwrap();
        let (sender, notices) = channel();
        let _foreign = ChangeWatch::watch(&folder.path().join("runs.db"), move || {
            let _ = sender.send(Instant::now());
        });
        std::fs::write(&log, "a frame").unwrap();
        let durable = Instant::now() + Duration::from_millis(50);
        let seen = || notices.recv_timeout(Duration::from_secs(20)).expect("it is looked at again");
        while seen() < durable {}
    }

    #[test]
    fn idle_database_is_not_checked() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let (tell, changes) = channel();
        let (looked, notices) = channel();
        let thread = std::thread::spawn(move || {
            watch_changes(&changes, &move || looked.send(()).unwrap());
            ENDED.store(true, Ordering::SeqCst);
        });
        tell.send(()).unwrap();
        for _ in 0..=PAUSES.len() {
            notices.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        assert!(!ENDED.load(Ordering::SeqCst), "it waits for the next write");
        assert!(notices.try_recv().is_err(), "and looks no more meanwhile");
        drop(tell);
        thread.join().unwrap();
    }
}
