//! The state of the connection, and reconnecting with backoff: one attempt at a time, shared by all waiting callers.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, broadcast, watch};

use super::transport::{HttpTransport, TransportError};
use crate::{ConnectionState, Error, Event};

/// Backoff before the first attempt; doubled up to the maximum.
const INITIAL_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// Number of events buffered for a slow receiver.
const EVENT_BUFFER_SIZE: usize = 256;

/// A connection that is re-established when it is lost.
pub struct ServiceConnection {
    state: watch::Sender<ConnectionState>,
    news: broadcast::Sender<Event>,
    /// Number of reconnects.
    reconnect_count: AtomicU64,
    /// Held by the task that reconnects.
    reconnect_lock: Mutex<()>,
}

impl ServiceConnection {
    /// Creates the state of a new connection.
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(ConnectionState::Connected),
            news: broadcast::Sender::new(EVENT_BUFFER_SIZE),
            reconnect_count: AtomicU64::new(0),
            reconnect_lock: Mutex::new(()),
        }
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.news.subscribe()
    }

    pub fn states(&self) -> watch::Receiver<ConnectionState> {
        self.state.subscribe()
    }

    pub fn state(&self) -> ConnectionState {
        self.state.borrow().clone()
    }

    /// Sends an event to all subscribers; having none is not an error.
    pub fn emit(&self, event: Event) {
        drop(self.news.send(event));
    }

    /// Returns the number of reconnects, by which callers detect a reconnect since an earlier call.
    pub fn reconnect_count(&self) -> u64 {
        self.reconnect_count.load(Ordering::SeqCst)
    }

    /// Returns why calls fail at this moment, if a reconnect is in progress, so that callers can fail immediately.
    pub fn lost_reason(&self) -> Option<String> {
        match self.state() {
            ConnectionState::Lost { why, .. } if self.reconnect_lock.try_lock().is_err() => Some(why),
            _ => None,
        }
    }

    /// Records that nothing was received for longer than the service is ever silent.
    pub fn mark_silent(&self, since: Instant) {
        self.change(|state| *state == ConnectionState::Connected, ConnectionState::Silent { since });
    }

    /// Records that the service responded late.
    pub fn mark_responsive(&self) {
        self.change(|state| matches!(state, ConnectionState::Silent { .. }), ConnectionState::Connected);
    }

    /// Changes the state if the current one matches.
    fn change(&self, from: impl FnOnce(&ConnectionState) -> bool, to: ConnectionState) {
        let new_state = to.clone();
        let changed = self.state.send_if_modified(|state| {
            let changes = from(state);
            if changes {
                *state = to;
            }
            changes
        });
        if changed {
            self.emit(Event::Connection(new_state));
        }
    }

    fn set(&self, state: ConnectionState) {
        if *self.state.borrow() != state {
            self.state.send_replace(state.clone());
            self.emit(Event::Connection(state));
        }
    }

    /// Returns when the connection is re-established. `count` is the number of reconnects before it was lost, so that a
    /// late caller notices immediately that another one has reconnected.
    ///
    /// `failures` lengthens the first backoff, for connections that fail again immediately.
    pub async fn reconnect(&self, wire: &HttpTransport, count: u64, why: &Error, failures: u32) {
        let since = Instant::now();
        let _guard = self.reconnect_lock.lock().await;
        if self.reconnect_count() != count {
            return;
        }
        let mut why = why.message.clone();
        for attempt in failures.. {
            let wait = spread(backoff(attempt), random());
            self.set(ConnectionState::Lost { since, why, next_try: Instant::now() + wait });
            tokio::time::sleep(wait).await;
            match wire.handshake().await {
                Ok(()) => {
                    tracing::info!("reconnected to {}", wire.address());
                    self.reconnect_count.fetch_add(1, Ordering::SeqCst);
                    self.set(ConnectionState::Connected);
                    return;
                }
                Err(trouble) => why = trouble.error().message,
            }
        }
    }

    /// Like [`Self::reconnect`] for a request without a response; an error response of the service does not concern the
    /// connection.
    ///
    /// # Errors
    /// Returns the error response.
    pub async fn recover(
        &self,
        wire: &HttpTransport,
        count: u64,
        trouble: TransportError,
    ) -> Result<(), Error> {
        match trouble {
            TransportError::Server(error) => Err(error),
            TransportError::RateLimited(_, pause) => {
                tokio::time::sleep(pause.min(MAX_BACKOFF)).await;
                Ok(())
            }
            TransportError::NotSent(error) | TransportError::ResponseLost(error) => {
                self.reconnect(wire, count, &error, 0).await;
                Ok(())
            }
        }
    }
}

fn backoff(attempt: u32) -> Duration {
    INITIAL_BACKOFF.saturating_mul(1_u32.checked_shl(attempt.min(16)).unwrap_or(u32::MAX)).min(MAX_BACKOFF)
}

/// Returns a random duration between half and all of the backoff, so that many clients of one service do not reconnect
/// simultaneously.
fn spread(wait: Duration, random: u64) -> Duration {
    let half = wait / 2;
    half + half.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Returns a random number from the standard library's hasher.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_ten_seconds_with_jitter() {
        let waits: Vec<u128> = (0..8).map(|attempt| backoff(attempt).as_millis()).collect();
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
        assert_eq!(spread(MAX_BACKOFF, 0), MAX_BACKOFF / 2);
        assert!(
            spread(MAX_BACKOFF, u64::MAX) <= MAX_BACKOFF
                && spread(MAX_BACKOFF, u64::MAX) > MAX_BACKOFF * 99 / 100
        );
    }
}
