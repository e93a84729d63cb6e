//! Requests and measurements over the current index.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::index_cache::IndexCache;
use super::indexer::{Indexer, Shared};
use super::operations::Operations;
use super::skills::Skills;
use crate::policies::PolicyFile;
use crate::work::{self, run_blocking};
use crate::{Code, Error, detail, listing, request_limits};
use skills_base::number::inflected;
use skills_base::sync::RwLockExt as _;
use skills_base::telemetry::Metrics;
use skills_discovery::{Adjustments, Answer, BodyLine, MatcherState, Request, Router};
use skills_registry::Settings;
use skills_skill::SkillId;

/// Up to this many skills a request is answered on the caller's own thread: that is faster than passing it to another
/// thread and back.
const INLINE: usize = 500;
/// The same for the length of a request and its filter in bytes.
const INLINE_BYTES: usize = 1_000;

/// How long a request to a service that has just started waits for the first scan of the skills.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests of other processes wait for bodies, counted from the first of them.
const BODIES_TIMEOUT: Duration = Duration::from_secs(2);
/// Requests and measurements over the current index.
pub(super) struct Ranking {
    pub skills: Skills,
    pub shared: Arc<Shared>,
    policy: Arc<PolicyFile>,
    pub metrics: Metrics,
    pub operations: Arc<Operations>,
    /// How long a request waits for the first scan.
    pub timeout: OnceLock<Duration>,
    rebuilding: tokio::sync::Mutex<()>,
    /// Limits concurrent measurements.
    measurements: MeasurementPool,
    /// Limits concurrent measurements that take minutes, so that the others do not wait for them.
    long_measurements: MeasurementPool,
    /// Limits concurrent rankings on other threads.
    rankings: Arc<Semaphore>,
    /// Until when requests wait for bodies; set by the first one that does.
    bodies_deadline: OnceLock<Instant>,
}

/// Time after which a measurement ends if others wait: principals with many long measurements leave time to others.
const TIME_SLICE: Duration = Duration::from_secs(30);

/// Limits how many measurements run concurrently.
struct MeasurementPool {
    slots: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl MeasurementPool {
    fn new(slots: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(slots)), waiting: Arc::default() }
    }

    async fn acquire(&self) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = WaitGuard::new(&self.waiting);
        let permit = Arc::clone(&self.slots).acquire_owned().await;
        permit.map_err(|e| Error::new(Code::InternalError, e.to_string()))
    }

    /// Starts the time slice of a measurement. One without limits for its principal, such as that of a workbench, has no end.
    fn time_slice(&self) -> TimeSlice {
        let end = work::is_limited().then(|| Instant::now() + TIME_SLICE);
        TimeSlice { end, waiting: Arc::clone(&self.waiting), was_ended: Arc::default() }
    }
}

/// Counts as waiting until it is dropped.
struct WaitGuard<'a>(&'a AtomicUsize);

impl<'a> WaitGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The time of a measurement.
#[derive(Clone)]
struct TimeSlice {
    end: Option<Instant>,
    waiting: Arc<AtomicUsize>,
    was_ended: Arc<AtomicBool>,
}

impl TimeSlice {
    /// Returns whether the measurement has to end, because its time is over and others wait.
    fn is_over(&self) -> bool {
        let is_over =
            self.end.is_some_and(|end| Instant::now() >= end) && self.waiting.load(Ordering::Relaxed) > 0;
        self.was_ended.fetch_or(is_over, Ordering::Relaxed) || is_over
    }

    /// Returns the error of a measurement that was ended.
    fn error(&self) -> Option<Error> {
        let message = format!(
            "measurement canceled after {} s to let other callers run; send fewer queries, or try again later",
            TIME_SLICE.as_secs()
        );
        self.was_ended.load(Ordering::Relaxed).then(|| Error::new(Code::RateLimited, message))
    }
}

impl Ranking {
    pub(super) fn new(
        skills: &Skills,
        shared: &Arc<Shared>,
        policy: &Arc<PolicyFile>,
        operations: &Arc<Operations>,
        metrics: Metrics,
    ) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            skills: skills.clone(),
            shared: Arc::clone(shared),
            policy: Arc::clone(policy),
            metrics,
            operations: Arc::clone(operations),
            timeout: OnceLock::new(),
            rebuilding: tokio::sync::Mutex::default(),
            measurements: MeasurementPool::new(processors.max(2)),
            long_measurements: MeasurementPool::new(1),
            rankings: Arc::new(Semaphore::new(2 * processors)),
            bodies_deadline: OnceLock::new(),
        }
    }

    /// Keeps the index up to date with the registry, on a separate thread.
    pub(super) fn follow(&self) -> Result<(), Error> {
        let indexer = self.indexer();
        let events = self.skills.registry.events();
        // Weak: the thread must not keep the registry alive, because it waits for its end.
        let registry = Arc::downgrade(&self.skills.registry);
        let latest = move || {
            let registry = registry.upgrade()?;
            // In this order: if a scan ends in between, its event is received.
            let scanned = registry.progress().done;
            Some((registry.snapshot(), scanned))
        };
        let follow = move || indexer.follow(events, latest);
        std::thread::Builder::new()
            .name("indexer".to_owned())
            .spawn(follow)
            .map(drop)
            .map_err(|e| Error::new(Code::InternalError, format!("cannot start the index thread: {e}")))
    }

    fn catalog_timeout(&self) -> Duration {
        self.timeout.get().copied().unwrap_or(CATALOG_TIMEOUT)
    }

    pub(super) async fn wait_for_catalog(&self) -> Result<(), Error> {
        if *self.shared.ready.borrow() {
            return Ok(());
        }
        // The index follows the scan: ranking an empty one would report that no skill fits.
        let mut ready = self.shared.ready.subscribe();
        let indexed = tokio::time::timeout(self.catalog_timeout(), ready.wait_for(|ready| *ready)).await;
        indexed.map(drop).map_err(|_| {
            let progress = self.skills.registry.progress();
            let message = if progress.done {
                let skills = inflected(progress.found, "skill is", "skills are");
                format!("{skills} still being indexed; try again shortly")
            } else {
                let (parsed, found) = (progress.parsed, progress.found);
                format!(
                    "skills are still being loaded ({parsed} of at least {found} so far); try again shortly"
                )
            };
            Error::new(Code::NotReady, message)
        })
    }

    pub(super) async fn wait_for_bodies(&self) {
        if self.shared.is_reading_bodies() {
            let deadline = *self.bodies_deadline.get_or_init(|| Instant::now() + BODIES_TIMEOUT);
            // The answer states what has not been read by then.
            self.shared.bodies_read(deadline.saturating_duration_since(Instant::now())).await;
        }
    }

    /// Waits until the index has every skill with its body, as metrics of a collection require: otherwise only a part
    /// of it would be measured.
    pub(super) async fn wait_for_index(&self) -> Result<(), Error> {
        self.wait_for_catalog().await?;
        self.shared.bodies_read(self.catalog_timeout()).await;
        Ok(())
    }

    pub(super) async fn discover(&self, request: Request) -> Result<Answer, Error> {
        let started = Instant::now();
        let answer = match request_limits::admit(request) {
            Ok(request) => self.ranked(request).await,
            Err(error) => Err(error),
        };
        self.operations.counted("discover", started, answer)
    }

    /// Returns how the policy currently changes answers.
    pub(super) fn adjustments(&self) -> Result<Arc<Adjustments>, Error> {
        self.policy.adjustments(&self.skills.registry.snapshot())
    }

    pub(super) async fn ranked(&self, request: Request) -> Result<Answer, Error> {
        self.ranked_by(request, self.adjustments()?).await
    }

    pub(super) async fn ranked_by(
        &self,
        request: Request,
        adjustments: Arc<Adjustments>,
    ) -> Result<Answer, Error> {
        let (domains, skill, is_first_page) =
            (request.domain.clone(), request.skill.clone(), request.offset == 0);
        let is_small =
            is_short(&request) && self.shared.router.try_read().is_ok_and(|router| router.len() <= INLINE);
        let mut answer = if is_small {
            rank(&self.shared, &request, &adjustments)
        } else {
            // Held until the ranking has ended, even if its caller is gone. The semaphore is never closed.
            let permit = Arc::clone(&self.rankings).acquire_owned().await;
            let (shared, request, adjustments) =
                (Arc::clone(&self.shared), request.clone(), Arc::clone(&adjustments));
            run_blocking(move || {
                let _permit = permit;
                rank(&shared, &request, &adjustments)
            })
            .await
        }?;
        if self.rebuild_damaged_index().await? {
            let shared = Arc::clone(&self.shared);
            answer = run_blocking(move || rank(&shared, &request, &adjustments)).await?;
        }
        if !domains.is_empty() {
            answer.hints = listing::unknown_values(&self.skills.registry.snapshot(), &domains, None);
        }
        if let Some(skill) = skill
            && answer.results.is_empty()
            && answer.attachable.is_empty()
            && answer.excluded.is_empty()
        {
            let hint = self.why_absent(&skill)?;
            if is_first_page {
                answer.hints.push(hint);
            }
        }
        self.count_ranking(&answer);
        Ok(answer)
    }

    /// Says why the only skill of a request has no score; returns an error if it does not exist.
    fn why_absent(&self, skill: &SkillId) -> Result<String, Error> {
        let found = self.skills.resolve(skill.as_str())?;
        Ok(if found.id == *skill {
            format!("{skill} does not match the request")
        } else {
            format!("no skill has id `{skill}`; did you mean {}?", found.id)
        })
    }

    /// Rebuilds the index if a request found corrupt data in its file; returns whether it did.
    async fn rebuild_damaged_index(&self) -> Result<bool, Error> {
        let damaged = |shared: &Shared| shared.router.read_locked().is_damaged();
        if !damaged(&self.shared) {
            return Ok(false);
        }
        let _one = self.rebuilding.lock().await;
        if damaged(&self.shared) {
            let (indexer, catalog) = (self.indexer(), self.skills.registry.snapshot());
            run_blocking(move || {
                indexer.rebuild(&catalog);
                Ok(())
            })
            .await?;
        }
        Ok(true)
    }

    fn count_ranking(&self, answer: &Answer) {
        self.metrics.discovery(Duration::from_micros(answer.took_us));
        for link in &answer.matchers {
            match &link.state {
                MatcherState::Failed(why) => {
                    tracing::warn!(matcher = link.matcher, reason = why, "matcher skipped");
                    self.operations.matcher_failed(&link.matcher);
                    self.metrics.record_skipped_matcher(&link.matcher);
                }
                MatcherState::Ran => self.metrics.link(&link.matcher, Duration::from_micros(link.took_us)),
                MatcherState::Idle | MatcherState::Off => {}
            }
        }
    }

    pub(super) async fn body_lines(
        &self,
        skill: &str,
        intent: &str,
        limit: usize,
    ) -> Result<Vec<BodyLine>, Error> {
        match self.skills.resolve(skill).and_then(|skill| Ok((skill, request_limits::intent(intent)?))) {
            Ok((skill, intent)) => {
                let shared = Arc::clone(&self.shared);
                run_blocking(move || {
                    let source = detail::source(&skill)?;
                    let router = shared.router.read_locked();
                    Ok(router.body_lines(skills_skill::body(&source), skill.body_line, &intent, limit))
                })
                .await
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a measurement that ranks many requests, on a snapshot of the router: new skills need not wait for it. At
    /// most as many as there are processors run concurrently, which leaves threads for other requests. It stops at its
    /// next request once the caller is gone.
    pub(super) async fn measure<T: Send + 'static>(
        &self,
        work: impl FnOnce(Router) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.measure_within(&self.measurements, work).await
    }

    /// Like [`Self::measure`], for what may take minutes: one at a time, and the others do not wait for it.
    pub(super) async fn measure_long<T: Send + 'static>(
        &self,
        work: impl FnOnce(Router) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.measure_within(&self.long_measurements, work).await
    }

    async fn measure_within<T: Send + 'static>(
        &self,
        pool: &MeasurementPool,
        work: impl FnOnce(Router) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = pool.acquire().await?;
        let canceled = CancellationToken::new();
        let _cancel = canceled.clone().drop_guard();
        let time_slice = pool.time_slice();
        let shared = Arc::clone(&self.shared);
        run_blocking(move || {
            let _permit = permit;
            let is_over = time_slice.clone();
            let router = shared.router.read_locked().snapshot();
            let router = router.cancelable(Arc::new(move || canceled.is_cancelled() || is_over.is_over()));
            work(router).map_err(|error| time_slice.error().unwrap_or(error))
        })
        .await
    }

    pub(super) fn indexer(&self) -> Indexer {
        Indexer::new(Arc::clone(&self.shared), self.skills.config.dirs.home.clone(), self.index_cache())
    }

    fn index_cache(&self) -> IndexCache {
        if self.skills.config.demo {
            return IndexCache::off();
        }
        let settings = Settings::new(&self.skills.config);
        IndexCache::new(&settings.cache_dir, &settings.roots, &settings.build)
    }

    /// Removes the index file because it is corrupt.
    pub(super) fn remove_index_cache(&self) {
        self.index_cache().remove();
    }
}

fn rank(shared: &Shared, request: &Request, adjustments: &Adjustments) -> Result<Answer, Error> {
    let router = shared.router.read_locked();
    router
        .discover_adjusted(request, adjustments)
        .map_err(|e| Error::new(Code::InvalidRequest, e.to_string()))
}

/// Returns whether the texts of a request are short enough to be answered on the caller's own thread.
fn is_short(request: &Request) -> bool {
    request.intent.len().saturating_add(request.filter.len()) <= INLINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_filter_makes_a_long_request() {
        let request = |filter: usize| Request {
            intent: "add numbers".to_owned(),
            filter: "a".repeat(filter),
            ..Request::default()
        };
        assert!(is_short(&request(100)));
        assert!(!is_short(&request(INLINE_BYTES)));
    }

    #[tokio::test]
    async fn measurement_ends_after_its_time_slice_if_others_wait() {
        let pool = MeasurementPool::new(1);
        let over = |end| TimeSlice { end, waiting: Arc::clone(&pool.waiting), was_ended: Arc::default() };
        let (running, unlimited) = (over(Some(Instant::now())), over(None));
        let _slot = pool.acquire().await.unwrap();
        assert!(!running.is_over() && running.error().is_none(), "no other one waits");
        let mut waiting = Box::pin(pool.acquire());
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(!over(Some(Instant::now() + TIME_SLICE)).is_over(), "its time is not over");
        assert!(running.is_over() && !unlimited.is_over());
        drop(waiting);
        assert!(running.is_over(), "an ended measurement stays ended");
        assert_eq!(running.error().unwrap().code, Code::RateLimited);
        assert!(!over(Some(Instant::now())).is_over(), "no other one waits any more");
    }

    #[tokio::test]
    async fn only_calls_with_limits_have_a_time_slice() {
        assert!(MeasurementPool::new(1).time_slice().end.is_none());
        let permit =
            work::with_permit(Some(Vec::new().into()), async { MeasurementPool::new(1).time_slice().end });
        assert!(permit.await.is_some());
    }
}
