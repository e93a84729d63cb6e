//! The events of all runs, read from the store once and broadcast to all followers: a thousand monitors cost the store
//! one reader.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OnceCell, broadcast};
use tokio_util::sync::CancellationToken;

use skills_api::operations::{may_hold_details, remove_details};
use skills_api::{Error, SharedClient};
use skills_store::{RunEvent, RunId};

/// Events buffered for slow subscribers; a subscriber that falls further behind reads from the store again.
const BUFFERED_EVENTS: usize = 512;
/// Events read per page.
const PAGE: usize = 500;
/// Maximum wait for new events, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;
/// Pause after a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// What followers receive.
#[derive(Debug)]
pub(super) enum Broadcast {
    Event(SerializedEvent),
    /// An event that is too large to be buffered: followers read it from the store.
    Large,
}

/// Size in bytes from which an event is not buffered.
const LARGE_EVENT_BYTES: usize = 64 << 10;

/// An event with its JSON, serialized once for all receivers.
#[derive(Debug)]
pub(super) struct SerializedEvent {
    pub run: RunId,
    pub number: u64,
    pub global: u64,
    json: String,
    /// The JSON without details of failed calls, if the event has any.
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
        Self { run: event.run, number: event.number, global: event.global, json, public }
    }

    /// Returns the event as JSON, with details of failed calls only for callers with the scope `admin`.
    pub fn json_for(&self, admin: bool) -> &str {
        self.public.as_deref().filter(|_| !admin).unwrap_or(&self.json)
    }
}

/// Reads events from the first subscription until the service shuts down.
pub(super) struct EventBroadcast {
    core: SharedClient,
    sender: broadcast::Sender<Arc<Broadcast>>,
    reading: OnceCell<()>,
    end: CancellationToken,
}

impl EventBroadcast {
    pub fn new(core: SharedClient, end: CancellationToken) -> Self {
        Self { core, sender: broadcast::Sender::new(BUFFERED_EVENTS), reading: OnceCell::new(), end }
    }

    /// Subscribes to every event from now on. No event recorded after this returns is missed.
    pub async fn subscribe(&self) -> Result<broadcast::Receiver<Arc<Broadcast>>, Error> {
        let receiver = self.sender.subscribe();
        let begin = || async {
            let newest = self.core.newest_event().await?;
            tokio::spawn(read(Arc::clone(&self.core), self.sender.clone(), newest, self.end.clone()));
            Ok::<(), Error>(())
        };
        self.reading.get_or_try_init(begin).await?;
        Ok(receiver)
    }
}

async fn read(
    core: SharedClient,
    sender: broadcast::Sender<Arc<Broadcast>>,
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
                    let event = SerializedEvent::of(event);
                    let is_large = event.json.len() > LARGE_EVENT_BYTES;
                    let update = if is_large { Broadcast::Large } else { Broadcast::Event(event) };
                    // Without subscribers this fails; the next one reads the store first.
                    let _ = sender.send(Arc::new(update));
                }
            }
            Err(error) => {
                tracing::warn!("cannot follow runs: {error}");
                tokio::select! {
                    () = end.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
}
