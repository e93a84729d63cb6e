//! Buffer of run events received by the event stream, read by number.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::watch;

use skills_base::memory::value_bytes;
use skills_base::sync::MutexExt as _;
use skills_store::RunEvent;

/// Number of buffered events; readers that are further behind request them from the service.
const BUFFER_SIZE: usize = 4096;
/// Maximum memory of the data of the buffered events, in bytes: an event can have megabytes of inputs.
const MAX_BUFFER_BYTES: usize = 16 << 20;

/// The buffer of received events.
pub struct EventBuffer {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The log to which the numbers belong; `None` before the first stream.
    log: Option<String>,
    /// Every event after this number is buffered, up to the last.
    from: u64,
    last: u64,
    events: VecDeque<RunEvent>,
    /// Memory of the data of `events`.
    bytes: usize,
    /// The last number of the previous logs.
    over: u64,
}

/// The events after a number.
#[derive(Debug, PartialEq)]
pub enum Backlog {
    Events(Vec<RunEvent>),
    /// None yet.
    Nothing,
    /// There may have been events that are no longer buffered; from this number on all are.
    Elsewhere(u64),
    /// The number belongs to another log.
    OfAnotherLog,
}

impl EventBuffer {
    pub fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Subscribes to changes from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns where a stream continues; `None` for the first one.
    pub fn last(&self) -> Option<u64> {
        let state = self.state();
        state.log.as_ref().map(|_| state.last)
    }

    /// Starts a stream after a number; returns whether it belongs to a different log than the previous one.
    pub fn begin(&self, log: &str, after: u64) -> bool {
        let mut state = self.state();
        let other = state.log.as_ref().is_some_and(|known| known != log);
        if other || after > state.last {
            state.restart(log, after);
        } else {
            state.log = Some(log.to_owned());
        }
        drop(state);
        self.changed.send_replace(());
        other
    }

    /// Handles that the service does not know the number after which the stream was to continue.
    pub fn reset(&self, log: &str, after: u64) {
        self.state().restart(log, after);
        self.changed.send_replace(());
    }

    /// Adds an event; one that was received before is ignored.
    pub fn push(&self, event: RunEvent) {
        let mut state = self.state();
        if event.global <= state.last {
            return;
        }
        state.last = event.global;
        state.bytes += value_bytes(&event.event.data);
        state.events.push_back(event);
        while (state.events.len() > BUFFER_SIZE || state.bytes > MAX_BUFFER_BYTES)
            && let Some(oldest) = state.events.pop_front()
        {
            state.bytes -= value_bytes(&oldest.event.data);
            state.from = oldest.global;
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Returns at most `limit` events after a number.
    pub fn behind(&self, after: u64, limit: usize) -> Backlog {
        let state = self.state();
        if state.log.is_none() {
            return Backlog::Nothing;
        }
        if after > state.last && after <= state.over {
            return Backlog::OfAnotherLog;
        }
        if after < state.from {
            return Backlog::Elsewhere(state.from);
        }
        let begin = state.events.partition_point(|event| event.global <= after);
        let events: Vec<RunEvent> = state.events.iter().skip(begin).take(limit).cloned().collect();
        if events.is_empty() { Backlog::Nothing } else { Backlog::Events(events) }
    }
}

impl State {
    fn restart(&mut self, log: &str, after: u64) {
        if self.log.is_some() {
            self.over = self.over.max(self.last);
        }
        self.log = Some(log.to_owned());
        self.events.clear();
        self.bytes = 0;
        (self.from, self.last) = (after, after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_store::{EventKind, NewEvent, RunId};

    fn event(global: u64) -> RunEvent {
        let event = NewEvent { kind: EventKind::RunCreated, step: None, data: serde_json::Value::Null };
        RunEvent { run: RunId("a".to_owned()), number: 1, global, at_ms: 0, event }
    }

    fn numbers(behind: Backlog) -> Vec<u64> {
        match behind {
            Backlog::Events(events) => events.iter().map(|event| event.global).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn repeated_events_are_delivered_once() {
        let buffer = EventBuffer::new();
        assert_eq!((buffer.last(), buffer.behind(0, 9)), (None, Backlog::Nothing));
        assert!(!buffer.begin("one", 5));
        for number in [6, 7, 9] {
            buffer.push(event(number));
        }
        // Resumed after the last event, with one received again.
        assert!(!buffer.begin("one", 7));
        buffer.push(event(9));
        buffer.push(event(10));
        assert_eq!(numbers(buffer.behind(5, 9)), [6, 7, 9, 10]);
        assert_eq!(numbers(buffer.behind(7, 1)), [9]);
        assert_eq!(buffer.behind(10, 9), Backlog::Nothing);
        assert_eq!((buffer.behind(4, 9), buffer.last()), (Backlog::Elsewhere(5), Some(10)));
    }

    #[test]
    fn another_log_restarts_the_numbers() {
        let buffer = EventBuffer::new();
        buffer.begin("one", 90);
        buffer.push(event(91));
        assert!(buffer.begin("two", 3), "another store");
        assert_eq!(buffer.behind(91, 9), Backlog::OfAnotherLog);
        buffer.push(event(4));
        assert_eq!(numbers(buffer.behind(3, 9)), [4]);
        // A restored backup has the same log id and fewer events.
        buffer.reset("two", 1);
        assert!(!buffer.begin("two", 1));
        assert_eq!(buffer.behind(4, 9), Backlog::OfAnotherLog);
    }

    #[test]
    fn events_older_than_the_buffer_are_requested() {
        let buffer = EventBuffer::new();
        buffer.begin("one", 0);
        (1..=BUFFER_SIZE as u64 + 2).for_each(|number| buffer.push(event(number)));
        assert_eq!(buffer.behind(1, 9), Backlog::Elsewhere(2));
        assert_eq!(numbers(buffer.behind(2, 2)), [3, 4]);
    }

    #[test]
    fn the_data_of_buffered_events_is_limited() {
        let buffer = EventBuffer::new();
        buffer.begin("one", 0);
        let large = |global: u64, bytes: usize| {
            let mut event = event(global);
            event.event.data = "x".repeat(bytes).into();
            event
        };
        (1..=20).for_each(|number| buffer.push(large(number, 1 << 20)));
        let Backlog::Elsewhere(from) = buffer.behind(0, 99) else { panic!("all are buffered") };
        assert!((4..8).contains(&from), "{from}");
        assert_eq!(numbers(buffer.behind(19, 9)), [20]);
        // One that is larger than the buffer is requested, and later ones are buffered again.
        buffer.push(large(21, MAX_BUFFER_BYTES + 1));
        assert_eq!(buffer.behind(20, 9), Backlog::Elsewhere(21));
        buffer.push(event(22));
        assert_eq!(numbers(buffer.behind(21, 9)), [22]);
    }
}
