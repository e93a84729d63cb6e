//! The time of the screen: the wall clock, and when something on the screen changes by itself.

use std::time::{Duration, Instant};

use super::SPINNER_INTERVAL;
use skills_base::duration::to_millis;

pub(super) struct Clock {
    started: Instant,
    /// The wall clock at the start, unless it is the system clock.
    start_ms: Option<i64>,
    /// When the spinners last advanced.
    spun: Instant,
    /// When a relative time on the screen changes.
    pub aged: Option<Instant>,
    /// When the countdown to the next connection attempt drops by a second.
    pub counted: Option<Instant>,
}

impl Clock {
    pub fn new(now: Instant, start_ms: Option<i64>) -> Self {
        Self { started: now, start_ms, spun: now, aged: None, counted: None }
    }

    /// Returns the wall clock at a moment, in milliseconds since 1970-01-01 UTC.
    pub fn wall_ms(&self, now: Instant) -> i64 {
        match self.start_ms {
            Some(start) => start.saturating_add(to_millis(self.elapsed(now))),
            None => jiff::Timestamp::now().as_millisecond(),
        }
    }

    pub fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// Advances time; returns whether the screen changes.
    pub fn tick(&mut self, is_animated: bool, now: Instant) -> bool {
        let turns = is_animated && now >= self.spun + SPINNER_INTERVAL;
        if turns {
            self.spun = now;
        }
        let is_due = |due: &mut Instant| now >= *due;
        let (aged, counted) = (self.aged.take_if(is_due), self.counted.take_if(is_due));
        turns || aged.is_some() || counted.is_some()
    }

    /// Returns when the screen next changes.
    pub fn next_change(&self, is_animated: bool) -> Option<Instant> {
        let spin = is_animated.then(|| self.spun + SPINNER_INTERVAL);
        [spin, self.aged, self.counted].into_iter().flatten().min()
    }

    /// Notes that the screen changes after some milliseconds.
    pub fn changes_in(&mut self, millis: Option<u64>, now: Instant) {
        let due = millis.map(|millis| now + Duration::from_millis(millis.max(1)));
        self.aged = self.aged.into_iter().chain(due).min();
    }
}
