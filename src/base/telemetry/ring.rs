//! The most recent records of the log in memory, for the log view of the workbench.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::sync::MutexExt as _;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

pub use tracing::Level;

/// Maximum number of records.
const CAPACITY: usize = 1000;

/// One record of the log. It may contain text of bundles: display it through `safe_text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub level: Level,
    pub time: SystemTime,
    /// The module that logged it.
    pub target: String,
    pub message: String,
}

/// The most recent 1,000 records. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RingBuffer(Arc<Mutex<VecDeque<Record>>>);

impl RingBuffer {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all stored records, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.0.locked().iter().cloned().collect()
    }

    /// Adds a record; if the buffer is full, the oldest one is dropped.
    pub fn push(&self, level: Level, time: SystemTime, target: &str, message: String) {
        let mut records = self.0.locked();
        if records.len() == CAPACITY {
            records.pop_front();
        }
        records.push_back(Record { level, time, target: target.to_owned(), message });
    }

    /// Returns a layer that writes to this buffer.
    pub(super) fn layer<S: Subscriber>(&self) -> impl Layer<S> + use<S> {
        RingBufferLayer(self.clone())
    }
}

struct RingBufferLayer(RingBuffer);

impl<S: Subscriber> Layer<S> for RingBufferLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let metadata = event.metadata();
        self.0.push(*metadata.level(), SystemTime::now(), metadata.target(), text.0);
    }
}

/// The message, followed by the other fields as `key=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = if field.name() == "message" {
            let rest = std::mem::take(&mut self.0);
            write!(self.0, "{value:?}{rest}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn ring_buffer_keeps_the_last_thousand_lines() {
        let ring = RingBuffer::new();
        let clone = ring.clone();
        for n in 0..1010 {
            ring.push(Level::INFO, SystemTime::UNIX_EPOCH, "t", n.to_string());
        }
        let all = ring.records();
        assert_eq!((all.len(), all[0].message.as_str(), all[999].message.as_str()), (1000, "10", "1009"));
        assert_eq!(clone.records(), all, "clones share the records");
    }

    #[test]
    fn log_lines_have_level_target_and_fields() {
        let ring = RingBuffer::new();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(ring.layer()), || {
            tracing::warn!(target: "room", path = "a/b", "cannot read {}", 3);
        });
        let record = &ring.records()[0];
        assert_eq!((record.level, record.target.as_str()), (Level::WARN, "room"));
        assert_eq!(record.message, "cannot read 3 path=\"a/b\"");
    }
}
