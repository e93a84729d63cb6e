//! Commits of other processes, noticed at once: each of them appends to the database's write-ahead log, and the
//! system tells who watches that file. Nothing is looked at while nothing happens.

use std::path::Path;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// A commit writes the log in many pieces; one look after this time answers them all.
const TOGETHER: Duration = Duration::from_millis(2);

/// Watches the log of a database for as long as it lives.
#[derive(Debug)]
pub(super) struct Foreign {
    _watcher: RecommendedWatcher,
}

impl Foreign {
    /// Calls `changed` after each commit, our own ones included. None where files cannot be watched: then whoever
    /// waits has to look from time to time.
    pub fn watch(database: &Path, changed: impl Fn() + Send + 'static) -> Option<Self> {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        let told = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_)) => {
                changed();
                std::thread::sleep(TOGETHER);
            }
            Ok(_) => {}
            Err(e) => tracing::warn!("watching the store's log: {e}"),
        };
        let watcher = notify::recommended_watcher(told).and_then(|mut watcher| {
            watcher.watch(Path::new(&log), RecursiveMode::NonRecursive).map(|()| watcher)
        });
        match watcher {
            Ok(watcher) => Some(Self { _watcher: watcher }),
            Err(e) => {
                tracing::info!("{} cannot be watched ({e}); looking from time to time", log.display());
                None
            }
        }
    }
}
