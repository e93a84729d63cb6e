//! Forwards the output lines of running steps to the event log: batched, so that a verbose step costs a few writes per
//! second, and truncated, so that an endless one does not fill the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use super::call::{LogLine, LogSink};
use skills_base::sync::MutexExt as _;
use skills_store::{EventKind, NewEvent};

/// Maximum number of output bytes stored per step.
pub const LOG_BYTES: usize = 256 << 10;
/// Minimum time between two writes.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct LogBuffer {
    /// Step, stream, joined lines.
    pending: Vec<(Arc<str>, String, String)>,
    /// Bytes so far, by step.
    bytes: HashMap<Arc<str>, usize>,
}

/// Lines that are not yet written.
#[derive(Clone, Default)]
pub(super) struct LogQueue {
    gathered: Arc<Mutex<LogBuffer>>,
    arrived: Arc<Notify>,
}

impl LogQueue {
    fn lock(&self) -> MutexGuard<'_, LogBuffer> {
        self.gathered.locked()
    }

    /// Returns the sink for the lines of a step.
    pub fn sink(&self, step: &str) -> LogSink {
        let logs = self.clone();
        let step: Arc<str> = step.into();
        Arc::new(move |line| logs.push(&step, line))
    }

    fn push(&self, step: &Arc<str>, line: LogLine) {
        let mut gathered = self.lock();
        let before = gathered.bytes.get(step).copied().unwrap_or(0);
        if before > LOG_BYTES {
            return;
        }
        let after = before + line.text.len() + 1;
        gathered.bytes.insert(step.clone(), after);
        if after > LOG_BYTES {
            let text = format!("output truncated: at most {} KiB are kept per step", LOG_BYTES >> 10);
            gathered.pending.push((step.clone(), "engine".to_owned(), text));
        } else {
            match gathered.pending.last_mut() {
                Some((last, stream, text)) if *last == *step && *stream == line.stream => {
                    text.push('\n');
                    text.push_str(&line.text);
                }
                _ => gathered.pending.push((step.clone(), line.stream, line.text)),
            }
        }
        drop(gathered);
        self.arrived.notify_one();
    }

    /// Waits until there are lines.
    pub async fn arrive(&self) {
        while self.lock().pending.is_empty() {
            self.arrived.notified().await;
        }
    }

    /// Removes the pending lines and returns them as events.
    pub fn drain(&self) -> Vec<NewEvent> {
        let pending = std::mem::take(&mut self.lock().pending);
        pending
            .into_iter()
            .map(|(step, stream, text)| NewEvent {
                kind: EventKind::StepLog,
                step: Some(step.to_string()),
                data: json!({"stream": stream, "text": text}),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stream: &str, text: &str) -> LogLine {
        LogLine { stream: stream.into(), text: text.into() }
    }

    #[test]
    fn lines_of_one_stream_are_one_event() {
        let logs = LogQueue::default();
        let (a, b) = (logs.sink("a"), logs.sink("b"));
        a(line("stdout", "1"));
        a(line("stdout", "2"));
        a(line("stderr", "3"));
        b(line("stderr", "4"));
        let events: Vec<_> =
            logs.drain().into_iter().map(|e| (e.step.unwrap(), e.data.to_string())).collect();
        assert_eq!(
            events,
            [
                ("a".to_owned(), r#"{"stream":"stdout","text":"1\n2"}"#.to_owned()),
                ("a".to_owned(), r#"{"stream":"stderr","text":"3"}"#.to_owned()),
                ("b".to_owned(), r#"{"stream":"stderr","text":"4"}"#.to_owned()),
            ]
        );
        assert!(logs.drain().is_empty());
    }

    #[test]
    fn endless_output_is_truncated_with_one_note() {
        let logs = LogQueue::default();
        let sink = logs.sink("a");
        for _ in 0..1000 {
            sink(line("stdout", &"x".repeat(1023)));
        }
        let events = logs.drain();
        let text = |index: usize| events[index].data["text"].as_str().unwrap_or_default();
        assert_eq!(events.len(), 2);
        assert_eq!(text(0).len(), LOG_BYTES - 1);
        assert!(text(1).contains("256 KiB"), "{}", text(1));
        logs.sink("b")(line("stdout", "another step has its own share"));
        assert_eq!(logs.drain().len(), 1);
    }
}
