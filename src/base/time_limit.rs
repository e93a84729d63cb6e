//! Limits of computations.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A limit of the processor time of a computation on one thread. Time in which the thread waits for a processor does not
/// count, so that results do not depend on the load of the machine.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    limit: Duration,
    started: Instant,
    used: Duration,
}

impl TimeLimit {
    /// Starts a computation on this thread.
    pub fn start(limit: Duration) -> Self {
        Self { limit, started: Instant::now(), used: thread_time() }
    }

    /// Returns whether the limit is exceeded; called on the thread that started the computation.
    pub fn is_exceeded(&self) -> bool {
        // The processor time is at most the elapsed time, which is cheaper to read.
        self.started.elapsed() > self.limit && thread_time().saturating_sub(self.used) > self.limit
    }
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_does_not_count() {
        let limit = TimeLimit::start(Duration::from_millis(100));
        std::thread::sleep(Duration::from_millis(150));
        assert!(!limit.is_exceeded());
        while !limit.is_exceeded() {}
        assert!(limit.started.elapsed() >= Duration::from_millis(250));
    }
}
