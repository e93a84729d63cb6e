//! What this process counts and times: one registry, read as `OpenMetrics` text and as JSON.
//!
//! A handle is cheap to clone and to record with; rooms that must not know of it are observed by anyone who
//! calls them.

mod families;
mod report;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use self::families::{Families, many, one, two};

/// Runs and workers of a store at a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunGauges {
    /// Runs by state.
    pub runs: BTreeMap<String, u64>,
    /// Seconds for which the run that has waited longest for an approval waits; 0 where none does.
    pub oldest_waiting_s: f64,
    /// Worker processes by state.
    pub workers: BTreeMap<String, u64>,
    /// Runs whose worker is lost.
    pub expired_leases: u64,
}

pub use report::{Bucket, Distribution, MetricFamily, MetricKind, MetricSample, MetricsReport};

/// Content type of [`Metrics::text`] (`OpenMetrics` 1.0).
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The outcome of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOutcome {
    /// It was new.
    Created,
    /// Its run was answered.
    Reused,
    /// It was used for another payload.
    Conflict,
    /// Its time was over, and it was used again.
    Expired,
}

/// A handle on the counters of this process. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<RwLock<Arc<Families>>>);

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(Arc::new(Families::new()))))
    }
}

/// `ok` or `error`: the two values of the label `outcome`.
fn outcome(ok: bool) -> &'static str {
    if ok { "ok" } else { "error" }
}

impl Metrics {
    fn families(&self) -> Arc<Families> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A key was looked up at a launch.
    pub fn key(&self, became: KeyOutcome) {
        let families = self.families();
        let counter = match became {
            KeyOutcome::Created => &families.key_created,
            KeyOutcome::Reused => &families.key_reused,
            KeyOutcome::Conflict => &families.key_conflict,
            KeyOutcome::Expired => &families.key_expired,
        };
        counter.inc();
    }

    /// A run came into a state.
    pub fn run_moved(&self, state: &str) {
        self.families().run_transitions.get_or_create(&one("state", state)).inc();
    }

    /// A step was recorded.
    pub fn step(&self, status: &str, took: Duration) {
        let families = self.families();
        families.steps.get_or_create(&one("status", status)).inc();
        families.step_duration.get_or_create(&one("status", status)).observe(took.as_secs_f64());
    }

    /// A capability was called; `took` covers every binding that was tried.
    pub fn capability_call(&self, took: Duration, failure: Option<&str>) {
        let labels = one("outcome", failure.unwrap_or("ok"));
        self.families().call_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A binding was called, and executed a capability or did not.
    pub fn binding(&self, binding: &str, ok: bool) {
        let labels = two("binding", binding, "outcome", outcome(ok));
        self.families().bindings.get_or_create(&labels).inc();
    }

    /// How long the binding took that executed a capability, or failed as the only one.
    pub fn binding_took(&self, binding: &str, took: Duration) {
        self.families().binding_duration.get_or_create(&one("binding", binding)).observe(took.as_secs_f64());
    }

    /// An operation of the core was asked for.
    pub fn operation(&self, operation: &'static str, ok: bool, took: Duration) {
        let families = self.families();
        families.operations.get_or_create(&two("operation", operation, "outcome", outcome(ok))).inc();
        families.operation_duration.get_or_create(&one("operation", operation)).observe(took.as_secs_f64());
    }

    /// A request was ranked.
    pub fn discovery(&self, took: Duration) {
        self.families().discovery_duration.observe(took.as_secs_f64());
    }

    /// A link of the routing chain worked for a request.
    pub fn link(&self, link: &str, took: Duration) {
        self.families().link_duration.get_or_create(&one("link", link)).observe(took.as_secs_f64());
    }

    /// A link failed, or was past its budget, and was left out of a request.
    pub fn link_left_out(&self, link: &str) {
        self.families().links_left_out.get_or_create(&one("link", link)).inc();
    }

    /// An HTTP request was answered. `route` is the route's pattern, never the path asked for: anyone who
    /// asks must not choose how many series there are.
    pub fn http(&self, method: &str, route: &str, status: u16, took: Duration) {
        let families = self.families();
        let class = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        let labels = many([("method", method), ("route", route), ("status", class)]);
        families.http_requests.get_or_create(&labels).inc();
        families
            .http_duration
            .get_or_create(&two("method", method, "route", route))
            .observe(took.as_secs_f64());
    }

    /// The store made a commit durable that `jobs` callers shared.
    pub fn commit(&self, jobs: usize, took: Duration) {
        let families = self.families();
        families.commit_jobs.inc_by(u64::try_from(jobs).unwrap_or(u64::MAX));
        families.commit_duration.observe(took.as_secs_f64());
    }

    /// A runtime tool of a session was called.
    pub fn tool(&self, tool: &str, ok: bool, took: Duration) {
        let families = self.families();
        families.tools.get_or_create(&two("tool", tool, "outcome", outcome(ok))).inc();
        families.tool_duration.get_or_create(&one("tool", tool)).observe(took.as_secs_f64());
    }

    /// The rate limiter let a request through, or did not.
    pub fn limited(&self, allowed: bool) {
        let labels = one("outcome", if allowed { "allowed" } else { "denied" });
        self.families().limited.get_or_create(&labels).inc();
    }

    /// A run was taken over from a lost worker.
    pub fn takeover(&self) {
        self.families().takeovers.inc();
    }

    /// The store failed to do something.
    pub fn store_error(&self, cause: &str) {
        self.families().store_errors.get_or_create(&one("cause", cause)).inc();
    }

    /// A run with a label was launched, or ended.
    pub fn labeled_run(&self, state: &str, label: &str, value: &str) {
        let labels = many([("state", state), ("label", label), ("value", value)]);
        self.families().labeled_runs.get_or_create(&labels).inc();
    }

    /// The runs and workers of the store now.
    pub fn set_run_gauges(&self, gauges: &RunGauges) {
        let families = self.families();
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (family, counts) in [(&families.runs, &gauges.runs), (&families.workers, &gauges.workers)] {
            // A state that no run is in any longer has no sample.
            family.clear();
            for (state, count) in counts {
                family.get_or_create(&one("state", state)).set(whole(*count));
            }
        }
        families.oldest_waiting.set(gauges.oldest_waiting_s);
        families.expired_leases.set(whole(gauges.expired_leases));
    }

    /// Everything as `OpenMetrics` text, which Prometheus reads.
    ///
    /// # Errors
    /// None today: writing to a text does not fail.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        self.families().text()
    }

    /// Everything as data.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn report(&self) -> Result<MetricsReport, std::fmt::Error> {
        let families = self.families();
        Ok(report::report(&families.text()?, families.since_ms, &families.names))
    }

    /// Starts over with nothing counted, which Prometheus takes for a restart.
    pub fn reset(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Families::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_those_of_the_last_look() {
        let metrics = Metrics::default();
        let look = |state: &str, waiting| RunGauges {
            runs: [(state.to_owned(), 3)].into(),
            oldest_waiting_s: waiting,
            workers: [("live".to_owned(), 2)].into(),
            expired_leases: 1,
        };
        metrics.set_run_gauges(&look("failed", 7.5));
        metrics.set_run_gauges(&look("running", 0.0));
        metrics.store_error("disk_full");
        metrics.takeover();
        let text = metrics.text().unwrap();
        for line in [
            "agent_skills_runtime_runs{state=\"running\"} 3",
            "agent_skills_runtime_waiting_oldest_seconds 0.0",
            "agent_skills_runtime_workers{state=\"live\"} 2",
            "agent_skills_runtime_leases_expired 1",
            "agent_skills_runtime_takeovers_total 1",
            "agent_skills_store_errors_total{cause=\"disk_full\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing from\n{text}");
        }
        assert!(!text.contains("state=\"failed\""), "{text}");
        let report = metrics.report().unwrap();
        let runs = report.families.iter().find(|family| family.name == "runtime.runs").unwrap();
        assert_eq!(runs.samples[0].value, Some(3.0));
    }

    #[test]
    fn keys_are_counted_under_the_names_that_operators_know() {
        let metrics = Metrics::default();
        metrics.key(KeyOutcome::Created);
        metrics.key(KeyOutcome::Created);
        metrics.key(KeyOutcome::Conflict);
        let text = metrics.text().unwrap();
        for line in [
            "agent_skills_runtime_idempotency_created_total 2",
            "agent_skills_runtime_idempotency_reused_total 0",
            "agent_skills_runtime_idempotency_conflict_total 1",
            "agent_skills_runtime_idempotency_expired_total 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        let report = metrics.report().unwrap();
        assert_eq!(report.counters["runtime.idempotency.created"], 2);
        assert_eq!(report.counters["runtime.idempotency.expired"], 0);
    }

    #[test]
    fn json_says_the_same_as_the_text() {
        let metrics = Metrics::default();
        metrics.http("GET", "/v1/runs/{run_id}", 200, Duration::from_millis(3));
        metrics.http("GET", "/v1/runs/{run_id}", 404, Duration::from_millis(3));
        metrics.binding("odd \"name\"\nof\\a binding", false);
        let report = metrics.report().unwrap();
        let family = |name: &str| report.families.iter().find(|f| f.name == name).unwrap();
        let requests = family("http.requests");
        assert_eq!(
            (requests.kind, requests.text_name.as_str()),
            (MetricKind::Counter, "agent_skills_http_requests")
        );
        assert_eq!(requests.samples.len(), 2);
        assert_eq!(requests.samples[0].labels["status"], "2xx");
        assert_eq!(requests.samples[0].value, Some(1.0));
        let took = family("http.duration").samples[0].distribution.as_ref().unwrap();
        assert_eq!(took.count, 2);
        assert!((took.sum - 0.006).abs() < 1e-9);
        assert!(took.p50.is_some_and(|p| (0.002..=0.005).contains(&p)), "{took:?}");
        let binding = &family("runtime.bindings").samples[0];
        assert_eq!(binding.labels["binding"], "odd \"name\"\nof\\a binding");
    }

    #[test]
    fn a_reset_begins_anew_for_every_handle() {
        let metrics = Metrics::default();
        let other = metrics.clone();
        other.operation("discover", true, Duration::from_micros(80));
        metrics.reset();
        let report = other.report().unwrap();
        assert!(report.families.iter().all(|f| f.name != "operations" || f.samples.is_empty()));
        other.key(KeyOutcome::Reused);
        assert_eq!(metrics.report().unwrap().counters["runtime.idempotency.reused"], 1);
    }

    #[test]
    fn what_a_bundle_calls_itself_cannot_grow_without_bound() {
        let metrics = Metrics::default();
        metrics.binding(&"x".repeat(5_000), true);
        let report = metrics.report().unwrap();
        let bindings = report.families.iter().find(|f| f.name == "runtime.bindings").unwrap();
        assert!(bindings.samples[0].labels["binding"].len() <= 200);
    }
}
