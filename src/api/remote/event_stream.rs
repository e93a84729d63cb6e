//! Events of the service: its event stream, kept open as long as there are subscribers, and recovery of what was missed
//! during an outage.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Inner;
use super::call::Arguments;
use super::stream::{Stream, StreamEvent};
use super::transport::TransportError;
use crate::{Code, Diagnostics, Error, Event};
use skills_registry::{Catalog, Change};

/// Minimum duration of a stream that resets the number of failures.
const MIN_STABLE_DURATION: Duration = Duration::from_secs(5);

/// The event of a changed catalog.
#[derive(Deserialize)]
struct NewCatalog {
    generation: u64,
}

/// The event at the beginning of a stream.
#[derive(Deserialize)]
struct StreamStart {
    log: String,
    after: u64,
}

/// A notice for users.
#[derive(Deserialize)]
struct Notice {
    message: String,
}

/// Forwards events until it is dropped.
pub async fn follow(inner: Arc<Inner>) {
    let mut failures = 0;
    let mut before = false;
    loop {
        let reconnects = inner.link.reconnect_count();
        let started = Instant::now();
        let why = inner.listen(before).await.error();
        // What this stream missed is recovered by the next one.
        before = true;
        failures = if started.elapsed() >= MIN_STABLE_DURATION { 0 } else { failures + 1 };
        tracing::info!("event stream of {} failed: {why}", inner.wire.address());
        inner.link.reconnect(&inner.wire, reconnects, &why, failures - failures.min(1)).await;
    }
}

impl Inner {
    /// Receives events until the stream ends; returns why it did. After a previous stream, missed changes are fetched.
    async fn listen(&self, before: bool) -> TransportError {
        let mut response = match self.wire.stream("event.list", self.event_buffer.last()).await {
            Ok(response) => response,
            Err(trouble) => return trouble,
        };
        if before && let Err(error) = self.catch_up().await {
            return TransportError::Server(error);
        }
        let mut stream = Stream::default();
        loop {
            let chunk = match self.awaited(&mut response).await {
                Ok(Some(chunk)) => {
                    self.link.mark_responsive();
                    chunk
                }
                Ok(None) => {
                    let message = format!("{} closed the event stream", self.wire.address());
                    return TransportError::ResponseLost(Error::new(Code::UpstreamFailure, message));
                }
                Err(trouble) => return trouble,
            };
            let mut newest = None;
            for event in stream.push(&chunk) {
                match self.forward(&event) {
                    Ok(generation) => newest = generation.or(newest),
                    Err(error) => {
                        tracing::warn!("unknown event ({}): {error}", event.kind);
                    }
                }
            }
            // Of several new catalogs only the last is fetched, unless it is already here.
            if newest.is_some_and(|newest| newest > self.generation())
                && let Err(error) = self.read_catalog().await
            {
                return TransportError::Server(error);
            }
        }
    }

    /// Returns the next piece of the stream. A service sends something at least every 15 s: after two thirds of the
    /// response timeout without data it is reported as silent, and after as long again as lost.
    async fn awaited(&self, response: &mut reqwest::Response) -> Result<Option<Vec<u8>>, TransportError> {
        let (started, quiet) = (Instant::now(), self.wire.reading() * 2 / 3);
        if let Ok(chunk) =
            tokio::time::timeout(quiet, self.wire.next_chunk(response, self.wire.reading())).await
        {
            return chunk;
        }
        self.link.mark_silent(started);
        self.wire.next_chunk(response, quiet).await.map_err(|trouble| match trouble {
            TransportError::ResponseLost(error) if error.code == Code::UpstreamTimeout => {
                let silent = (2 * quiet).as_secs();
                let message = format!("no data from {} for {silent} s", self.wire.address());
                TransportError::ResponseLost(Error { message, ..error })
            }
            trouble => trouble,
        })
    }

    /// Forwards one event; returns the generation of a new catalog.
    fn forward(&self, event: &StreamEvent) -> Result<Option<u64>, serde_json::Error> {
        let data = event.data.as_str();
        let event = match event.kind.as_str() {
            "catalogue" => {
                return serde_json::from_str::<NewCatalog>(data).map(|update| Some(update.generation));
            }
            "scan" => Event::Scan(serde_json::from_str(data)?),
            "index" => Event::Index(serde_json::from_str(data)?),
            "waiting" => Event::Waiting(serde_json::from_str(data)?),
            "notice" => Event::Notice(serde_json::from_str::<Notice>(data)?.message),
            "run" => {
                self.event_buffer.push(serde_json::from_str(data)?);
                return Ok(None);
            }
            "ready" => {
                let StreamStart { log, after } = serde_json::from_str(data)?;
                if !self.event_buffer.begin(&log, after) {
                    return Ok(None);
                }
                Event::Replaced
            }
            "reset" => {
                let StreamStart { log, after } = serde_json::from_str(data)?;
                self.event_buffer.reset(&log, after);
                Event::Replaced
            }
            _ => return Ok(None),
        };
        self.link.emit(event);
        Ok(None)
    }

    /// Fetches the current state in place of missed events.
    async fn catch_up(&self) -> Result<(), Error> {
        self.read_catalog().await?;
        let found: Diagnostics = self.ask("skill.diagnostics", Arguments::new()).await?;
        self.link.emit(Event::Scan(found.scan));
        self.link.emit(Event::Index(found.index));
        Ok(())
    }

    async fn read_catalog(&self) -> Result<(), Error> {
        let before = self.cached_catalog().clone();
        let now = self.catalog().await?;
        let change = Change::between(&before.unwrap_or_default(), &now);
        self.link.emit(Event::Catalog(Arc::new(change)));
        Ok(())
    }

    /// Fetches the catalog and caches it, to detect later changes.
    pub async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        let now: Arc<Catalog> = Arc::new(self.ask("skill.catalogue", Arguments::new()).await?);
        *self.cached_catalog() = Some(Arc::clone(&now));
        Ok(now)
    }

    fn generation(&self) -> u64 {
        self.cached_catalog().as_ref().map_or(0, |cached| cached.generation)
    }
}
