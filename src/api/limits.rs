//! Rate limits: a budget of requests per principal and time window, shared by all instances on one store.
//!
//! An instance takes small batches of requests from the store and grants them without further writes, so that at most
//! one request of a batch waits for a write. All instances together never grant more than the limit; when one of them
//! rejects requests, each of the others may still have the rest of a batch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use skills_base::sync::MutexExt as _;
use skills_base::telemetry::Metrics;
use skills_store::{Clock, Counts};

/// A batch is the limit divided by this …
const BATCHES_PER_LIMIT: u64 = 20;
/// … but at most this many requests.
const LARGEST_BATCH: u64 = 100;
/// Number of principals in memory above which those of past windows are removed.
const MAX_PRINCIPALS: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Number of requests per window.
    pub requests: u64,
    /// Length of a window in seconds; windows start at multiples of it since 1970-01-01 UTC, for all principals.
    pub window_seconds: u64,
}

impl RateLimit {
    fn window_ms(self) -> i64 {
        i64::try_from(self.window_seconds.max(1)).unwrap_or(i64::MAX).saturating_mul(1000)
    }

    fn batch(self) -> u64 {
        (self.requests / BATCHES_PER_LIMIT).clamp(1, LARGEST_BATCH)
    }

    /// Returns the value of the header `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).
    pub fn policy_header(self) -> String {
        format!("\"default\";q={};w={}", self.requests, self.window_seconds)
    }
}

/// Whether a request is allowed, and the state of its principal's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    pub allowed: bool,
    /// Number of requests per window.
    pub limit: u64,
    /// Requests left in this window, as far as this instance knows.
    pub remaining: u64,
    /// Seconds until the next window, at least 1: `Retry-After` of a rejected request.
    pub reset_seconds: u64,
}

impl Admission {
    /// Returns the value of the header `RateLimit`.
    pub fn header(&self) -> String {
        format!("\"default\";r={};t={}", self.remaining, self.reset_seconds)
    }
}

/// The part of one principal's window that an instance has.
#[derive(Debug, Default)]
struct WindowLease {
    started_ms: i64,
    /// Requests taken from the store and not used.
    left: u64,
    /// Requests taken by all instances, at the last write.
    taken: u64,
    /// Whether the window is used up in the store.
    used_up: bool,
}

/// Grants or rejects requests. Shared by all tasks of an instance.
pub struct Limiter {
    counts: Arc<dyn Counts>,
    limit: RateLimit,
    now: Clock,
    metrics: Metrics,
    shares: Mutex<HashMap<String, Arc<tokio::sync::Mutex<WindowLease>>>>,
}

impl Limiter {
    /// Creates a limiter over a store.
    pub fn new(counts: Arc<dyn Counts>, limit: RateLimit, now: Clock, metrics: Metrics) -> Self {
        Self { counts, limit, now, metrics, shares: Mutex::default() }
    }

    pub fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Counts a request of a principal. If the store cannot be written, this instance counts separately.
    pub async fn admit(&self, principal: &str) -> Admission {
        let now = (self.now)();
        let window = self.limit.window_ms();
        let started_ms = now - now.rem_euclid(window);
        let share = self.share(principal, started_ms);
        let mut share = share.lock().await;
        if share.started_ms < started_ms {
            *share = WindowLease { started_ms, ..WindowLease::default() };
        }
        if share.left == 0 && !share.used_up {
            self.refill(principal, &mut share).await;
        }
        let allowed = share.left > 0;
        share.left = share.left.saturating_sub(1);
        self.metrics.limited(allowed);
        let until = share.started_ms.saturating_add(window).saturating_sub(now);
        Admission {
            allowed,
            limit: self.limit.requests,
            remaining: self.limit.requests.saturating_sub(share.taken).saturating_add(share.left),
            reset_seconds: until.unsigned_abs().div_ceil(1000).max(1),
        }
    }

    fn share(&self, principal: &str, started_ms: i64) -> Arc<tokio::sync::Mutex<WindowLease>> {
        let mut shares = self.shares.locked();
        if let Some(share) = shares.get(principal) {
            return Arc::clone(share);
        }
        if shares.len() >= MAX_PRINCIPALS {
            // An entry in use is kept, or its principal would start over with a full window.
            shares.retain(|_, share| share.try_lock().map_or(true, |share| share.started_ms >= started_ms));
        }
        Arc::clone(shares.entry(principal.to_owned()).or_default())
    }

    async fn refill(&self, principal: &str, share: &mut WindowLease) {
        let (batch, limit) = (self.limit.batch(), self.limit.requests);
        match self.counts.allowance(principal, share.started_ms, batch, limit).await {
            Ok(allowance) => {
                share.left = allowance.granted;
                share.taken = allowance.taken;
                share.used_up = allowance.granted < batch;
            }
            Err(error) => {
                tracing::warn!("cannot read the shared rate limit: {error}; limiting this instance only");
                let granted = batch.min(limit.saturating_sub(share.taken));
                share.left = granted;
                share.taken += granted;
                share.used_up = granted < batch;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use skills_store::Sqlite;

    struct Fixture {
        time: Arc<AtomicI64>,
        folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            Self { time: Arc::new(AtomicI64::new(1_000_000)), folder: tempfile::tempdir().unwrap() }
        }

        fn clock(&self) -> Clock {
            let time = self.time.clone();
            Arc::new(move || time.load(Ordering::SeqCst))
        }

        fn instance(&self, requests: u64) -> Limiter {
            let store = Sqlite::open(&self.folder.path().join("runs.db"), self.clock()).unwrap().store;
            let limit = RateLimit { requests, window_seconds: 60 };
            Limiter::new(Arc::new(store), limit, self.clock(), Metrics::default())
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn limiter_admits_exactly_the_limit_and_states_retry_after() {
        let fixture = Fixture::new();
        let limiter = fixture.instance(50);
        // 1,000 s is 40 s into its window of 60.
        for n in 1..=50 {
            let admission = limiter.admit("ana").await;
            assert!(admission.allowed, "request {n}");
            assert_eq!(admission.remaining, 50 - n);
            assert_eq!(admission.reset_seconds, 20);
        }
        let refused = limiter.admit("ana").await;
        assert_eq!(refused, Admission { allowed: false, limit: 50, remaining: 0, reset_seconds: 20 });
        assert_eq!(refused.header(), "\"default\";r=0;t=20");
        assert_eq!(limiter.limit().policy_header(), "\"default\";q=50;w=60");
        assert!(limiter.admit("bo").await.allowed, "budgets are each principal's own");
        fixture.time.fetch_add(20_000, Ordering::SeqCst);
        assert_eq!(limiter.admit("ana").await.remaining, 49, "a new window");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn two_instances_share_one_budget_within_a_batch() {
        let fixture = Fixture::new();
        let (one, other) = (fixture.instance(200), fixture.instance(200));
        let mut through = 0;
        for _ in 0..400 {
            through +=
                u64::from(one.admit("ana").await.allowed) + u64::from(other.admit("ana").await.allowed);
        }
        assert_eq!(through, 200, "asked in turns, nothing is left in a batch");
        fixture.time.fetch_add(60_000, Ordering::SeqCst);
        assert!(other.admit("ana").await.allowed);
        let mut alone = 0;
        while one.admit("ana").await.allowed {
            alone += 1;
        }
        let batch = RateLimit { requests: 200, window_seconds: 60 }.batch();
        assert!((200 - batch..200).contains(&alone), "{alone} with a batch of {batch} at the other instance");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_tasks_do_not_exceed_the_limit() {
        let fixture = Fixture::new();
        let limiter = Arc::new(fixture.instance(120));
        let ask = |_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.admit("ana").await.allowed })
        };
        let requests: Vec<_> = (0..500).map(ask).collect();
        let mut through = 0;
        for one in requests {
            through += u32::from(one.await.unwrap());
        }
        assert_eq!(through, 120);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn principals_of_past_windows_are_removed() {
        let fixture = Fixture::new();
        let limiter = fixture.instance(10);
        for n in 0..MAX_PRINCIPALS {
            limiter.share(&format!("p{n}"), 960_000);
        }
        fixture.time.fetch_add(60_000, Ordering::SeqCst);
        assert!(limiter.admit("new").await.allowed);
        assert_eq!(limiter.shares.lock().unwrap().len(), 1);
    }
}
