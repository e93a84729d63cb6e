//! The events of all runs, read from the store once and handed to all followers: a thousand monitors cost the
//! store one reader.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OnceCell, broadcast};
use tokio_util::sync::CancellationToken;

use skills_api::operations::{may_hold_details, remove_details};
use skills_api::{Error, SharedClient};
use skills_store::RunEvent;

/// Events buffered for slow subscribers; one that is further behind reads the store again.
const BUFFERED_EVENTS: usize = 512;
/// Events read at a time.
const PAGE: usize = 500;
/// Longest sleep between two looks.
const MAX_WAIT_MS: u64 = 60_000;
/// Pause after a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// An event, with its JSON written once for all who get it.
#[derive(Debug)]
pub(super) struct SerializedEvent {
    pub event: RunEvent,
    json: String,
    /// The same without details of failed calls, where it has any.
    public: Option<String>,
}

impl SerializedEvent {
    pub fn of(event: RunEvent) -> Self {
        let json = serde_json::to_string(&event).unwrap_or_default();
        let public = may_hold_details(json.as_bytes()).then(|| {
            let mut value = serde_json::to_value(&event).unwrap_or_default();
            remove_details(&mut value);
            value.to_string()
        });
        Self { event, json, public }
    }

    /// The event as JSON, for a caller who may or may not know where calls go.
    pub fn json_for(&self, admin: bool) -> &str {
        self.public.as_deref().filter(|_| !admin).unwrap_or(&self.json)
    }
}

/// Reads from the first subscription until the service ends.
pub(super) struct Feed {
    core: SharedClient,
    told: broadcast::Sender<Arc<SerializedEvent>>,
    reading: OnceCell<()>,
    end: CancellationToken,
}

impl Feed {
    pub fn new(core: SharedClient, end: CancellationToken) -> Self {
        Self { core, told: broadcast::Sender::new(BUFFERED_EVENTS), reading: OnceCell::new(), end }
    }

    /// Every event from now on. Events in the store at the time of return are not lost in between.
    pub async fn subscribe(&self) -> Result<broadcast::Receiver<Arc<SerializedEvent>>, Error> {
        let receiver = self.told.subscribe();
        let begin = || async {
            let newest = self.core.newest_event().await?;
            tokio::spawn(read(Arc::clone(&self.core), self.told.clone(), newest, self.end.clone()));
            Ok::<(), Error>(())
        };
        self.reading.get_or_try_init(begin).await?;
        Ok(receiver)
    }
}

async fn read(
    core: SharedClient,
    told: broadcast::Sender<Arc<SerializedEvent>>,
    mut seen: u64,
    end: CancellationToken,
) {
    loop {
        let read = tokio::select! {
            () = end.cancelled() => return,
            read = core.run_events(None, seen, PAGE, MAX_WAIT_MS) => read,
        };
        match read {
            Ok(events) => {
                for event in events {
                    seen = event.global;
                    // No subscriber: the next one reads the store first.
                    let _ = told.send(Arc::new(SerializedEvent::of(event)));
                }
            }
            Err(error) => {
                tracing::warn!("following runs for the service: {error}");
                tokio::select! {
                    () = end.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
}
