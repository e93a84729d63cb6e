//! The state of the connection, and how a lost one is found again: one attempt at a time for everybody who
//! waits.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, broadcast, watch};

use super::transport::{HttpTransport, TransportError};
use crate::{ConnectionState, Error, Event};

/// Wait before the first attempt, which doubles up to the last one.
const FIRST: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// News kept for a receiver that is late.
const EVENT_BUFFER_SIZE: usize = 256;

/// A connection that comes and goes.
pub struct Link {
    state: watch::Sender<ConnectionState>,
    news: broadcast::Sender<Event>,
    /// How often it was found again.
    times: AtomicU64,
    /// Held by the one who looks for it.
    looking: Mutex<()>,
}

impl Link {
    /// A connection that was just made.
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(ConnectionState::Connected),
            news: broadcast::Sender::new(EVENT_BUFFER_SIZE),
            times: AtomicU64::new(0),
            looking: Mutex::new(()),
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
    pub fn tell(&self, event: Event) {
        drop(self.news.send(event));
    }

    /// How often the connection was found again: what happened before a certain time is asked with this.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::SeqCst)
    }

    /// Why calls do not get through at this moment, where somebody looks for the connection: anyone who wants
    /// to send something learns it at once.
    pub fn given_up(&self) -> Option<String> {
        match self.state() {
            ConnectionState::Lost { why, .. } if self.looking.try_lock().is_err() => Some(why),
            _ => None,
        }
    }

    /// Nothing has come for longer than the service is ever silent.
    pub fn silent(&self, since: Instant) {
        self.change(|state| *state == ConnectionState::Connected, ConnectionState::Silent { since });
    }

    /// It was only late.
    pub fn heard(&self) {
        self.change(|state| matches!(state, ConnectionState::Silent { .. }), ConnectionState::Connected);
    }

    /// Changes the state where the one in force is such a one.
    fn change(&self, from: impl FnOnce(&ConnectionState) -> bool, to: ConnectionState) {
        let told = to.clone();
        let changed = self.state.send_if_modified(|state| {
            let changes = from(state);
            if changes {
                *state = to;
            }
            changes
        });
        if changed {
            self.tell(Event::Connection(told));
        }
    }

    fn set(&self, state: ConnectionState) {
        if *self.state.borrow() != state {
            self.state.send_replace(state.clone());
            self.tell(Event::Connection(state));
        }
    }

    /// Comes back when the connection stands again. `times` is how often it had been found before it was lost: who
    /// comes late learns at once that somebody else has found it.
    ///
    /// `failures` makes the first wait longer, for what breaks again as soon as it is made.
    pub async fn find(&self, wire: &HttpTransport, times: u64, why: &Error, failures: u32) {
        let since = Instant::now();
        let _looking = self.looking.lock().await;
        if self.times() != times {
            return;
        }
        let mut why = why.message.clone();
        for attempt in failures.. {
            let wait = spread(doubled(attempt), random());
            self.set(ConnectionState::Lost { since, why, next_try: Instant::now() + wait });
            tokio::time::sleep(wait).await;
            match wire.handshake().await {
                Ok(()) => {
                    tracing::info!("reconnected to {}", wire.address());
                    self.times.fetch_add(1, Ordering::SeqCst);
                    self.set(ConnectionState::Connected);
                    return;
                }
                Err(trouble) => why = trouble.error().message,
            }
        }
    }

    /// The same for a request without a response; an error response of the service does not concern the connection.
    ///
    /// # Errors
    /// The error response.
    pub async fn find_after(
        &self,
        wire: &HttpTransport,
        times: u64,
        trouble: TransportError,
    ) -> Result<(), Error> {
        match trouble {
            TransportError::Answered(error) => Err(error),
            TransportError::Busy(_, pause) => {
                tokio::time::sleep(pause.min(MAX_BACKOFF)).await;
                Ok(())
            }
            TransportError::Unsent(error) | TransportError::Lost(error) => {
                self.find(wire, times, &error, 0).await;
                Ok(())
            }
        }
    }
}

fn doubled(attempt: u32) -> Duration {
    FIRST.saturating_mul(1_u32.checked_shl(attempt.min(16)).unwrap_or(u32::MAX)).min(MAX_BACKOFF)
}

/// Between a half and the whole of a wait, so that many who lost the same service do not come back at once.
fn spread(wait: Duration, random: u64) -> Duration {
    let half = wait / 2;
    half + half.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

/// The standard library's source of randomness.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_ten_seconds_and_are_spread() {
        let waits: Vec<u128> = (0..8).map(|attempt| doubled(attempt).as_millis()).collect();
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        assert_eq!(doubled(u32::MAX), MAX_BACKOFF);
        assert_eq!(spread(MAX_BACKOFF, 0), MAX_BACKOFF / 2);
        assert!(
            spread(MAX_BACKOFF, u64::MAX) <= MAX_BACKOFF
                && spread(MAX_BACKOFF, u64::MAX) > MAX_BACKOFF * 99 / 100
        );
    }
}
