//! Metrics of this process: one registry, exported as `OpenMetrics` text and as JSON.
//!
//! A handle is cheap to clone and to record with; crates that do not depend on it are measured by their callers.

mod families;
mod report;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use self::families::{Families, many_labels, one_label, two_labels};
use crate::sync::RwLockExt as _;

/// Runs and workers of a store at a point in time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunGauges {
    /// Number of runs by state.
    pub runs: BTreeMap<String, u64>,
    /// Longest time in seconds that a run has waited for an approval; 0 if none waits.
    pub oldest_waiting_s: f64,
    /// Number of worker processes by state.
    pub workers: BTreeMap<String, u64>,
    /// Number of runs whose worker is lost.
    pub expired_leases: u64,
}

pub use report::{Bucket, Distribution, MetricFamily, MetricKind, MetricSample, MetricsReport};

/// Content type of [`Metrics::text`] (`OpenMetrics` 1.0).
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The result of looking up an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOutcome {
    Created,
    /// The existing run was returned.
    Reused,
    /// The key was used for a different payload.
    Conflict,
    /// The key had expired, and was used again.
    Expired,
}

/// What became of uploaded content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadOutcome {
    Stored,
    /// It was refused, by a limit or an error.
    Refused,
    /// It was deleted after its time.
    Deleted,
}

/// A handle to the metrics of this process. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<RwLock<Arc<Families>>>);

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(Arc::new(Families::new()))))
    }
}

/// Returns the value of the label `outcome`: `ok` or `error`.
fn outcome(ok: bool) -> &'static str {
    if ok { "ok" } else { "error" }
}

impl Metrics {
    fn families(&self) -> Arc<Families> {
        Arc::clone(&self.0.read_locked())
    }

    /// Counts the lookup of an idempotency key at a launch.
    pub fn key(&self, became: KeyOutcome) {
        let families = self.families();
        let counter = match became {
            KeyOutcome::Created => &families.keys.created,
            KeyOutcome::Reused => &families.keys.reused,
            KeyOutcome::Conflict => &families.keys.conflict,
            KeyOutcome::Expired => &families.keys.expired,
        };
        counter.inc();
    }

    /// Counts the transition of a run to a state.
    pub fn run_moved(&self, state: &str) {
        self.families().run_transitions.get_or_create(&one_label("state", state)).inc();
    }

    pub fn step(&self, status: &str, took: Duration) {
        let families = self.families();
        families.steps.get_or_create(&one_label("status", status)).inc();
        families.step_duration.get_or_create(&one_label("status", status)).observe(took.as_secs_f64());
    }

    /// Records a call of a capability; `took` covers every binding that was tried.
    pub fn capability_call(&self, took: Duration, failure: Option<&str>) {
        let labels = one_label("outcome", failure.unwrap_or("ok"));
        self.families().call_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a call of a binding, by success.
    pub fn binding(&self, binding: &str, ok: bool) {
        let labels = two_labels("binding", binding, "outcome", outcome(ok));
        self.families().bindings.get_or_create(&labels).inc();
    }

    /// Records the duration of a binding that executed a capability, or failed as the only one.
    pub fn binding_took(&self, binding: &str, took: Duration) {
        self.families()
            .binding_duration
            .get_or_create(&one_label("binding", binding))
            .observe(took.as_secs_f64());
    }

    /// Records a call of an operation.
    pub fn operation(&self, operation: &'static str, ok: bool, took: Duration) {
        let families = self.families();
        families.operations.get_or_create(&two_labels("operation", operation, "outcome", outcome(ok))).inc();
        families
            .operation_duration
            .get_or_create(&one_label("operation", operation))
            .observe(took.as_secs_f64());
    }

    /// Records the ranking of a request.
    pub fn discovery(&self, took: Duration) {
        self.families().discovery_duration.observe(took.as_secs_f64());
    }

    /// Records that a matcher processed a request.
    pub fn link(&self, link: &str, took: Duration) {
        self.families().link_duration.get_or_create(&one_label("link", link)).observe(took.as_secs_f64());
    }

    /// Counts a matcher that failed or exceeded its time limit, and was skipped for a request.
    pub fn record_skipped_matcher(&self, link: &str) {
        self.families().links_left_out.get_or_create(&one_label("link", link)).inc();
    }

    /// Records an HTTP request. `route` is the pattern of the route, never the requested path: callers must not
    /// control the number of time series.
    pub fn http(&self, method: &str, route: &str, status: u16, took: Duration) {
        let families = self.families();
        let class = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        let labels = many_labels([("method", method), ("route", route), ("status", class)]);
        families.http_requests.get_or_create(&labels).inc();
        families
            .http_duration
            .get_or_create(&two_labels("method", method, "route", route))
            .observe(took.as_secs_f64());
    }

    /// Records a durable commit of the store that `jobs` callers shared.
    pub fn commit(&self, jobs: usize, took: Duration) {
        let families = self.families();
        families.commit_jobs.inc_by(u64::try_from(jobs).unwrap_or(u64::MAX));
        families.commit_duration.observe(took.as_secs_f64());
    }

    /// Records a call of a runtime tool of a session.
    pub fn tool(&self, tool: &str, ok: bool, took: Duration) {
        let families = self.families();
        families.tools.get_or_create(&two_labels("tool", tool, "outcome", outcome(ok))).inc();
        families.tool_duration.get_or_create(&one_label("tool", tool)).observe(took.as_secs_f64());
    }

    /// Counts a decision of the rate limiter.
    pub fn limited(&self, allowed: bool) {
        let labels = one_label("outcome", if allowed { "allowed" } else { "denied" });
        self.families().limited.get_or_create(&labels).inc();
    }

    /// Counts an uploaded artifact, and its bytes if it was stored.
    pub fn upload(&self, outcome: UploadOutcome, bytes: u64) {
        let families = self.families();
        let outcome = match outcome {
            UploadOutcome::Stored => {
                families.uploaded_bytes.inc_by(bytes);
                "stored"
            }
            UploadOutcome::Refused => "refused",
            UploadOutcome::Deleted => "deleted",
        };
        families.uploads.get_or_create(&one_label("outcome", outcome)).inc();
    }

    /// Counts a run that was taken over from a lost worker.
    pub fn takeover(&self) {
        self.families().takeovers.inc();
    }

    /// Adds the counters of these errors of the store at 0: the first error of a counter that appears with it is not
    /// an increase for Prometheus.
    pub fn expect_store_errors(&self, causes: impl IntoIterator<Item = String>) {
        for cause in causes {
            drop(self.families().store_errors.get_or_create(&one_label("cause", &cause)));
        }
    }

    /// Counts an error of the store.
    pub fn store_error(&self, cause: &str) {
        self.families().store_errors.get_or_create(&one_label("cause", cause)).inc();
    }

    /// Counts the launch or the end of a run with a label. Callers choose the value, so only the first
    /// 100 of each label have separate series; the others share the value `other`.
    pub fn labeled_run(&self, state: &str, label: &str, value: &str) {
        let families = self.families();
        let value = families.bounded_value(label, value);
        let labels = many_labels([("state", state), ("label", label), ("value", &value)]);
        families.labeled_runs.get_or_create(&labels).inc();
    }

    /// Sets the gauges of the runs and workers of the store.
    pub fn set_run_gauges(&self, gauges: &RunGauges) {
        let families = self.families();
        let clamped = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (family, counts) in
            [(&families.gauges.runs, &gauges.runs), (&families.gauges.workers, &gauges.workers)]
        {
            // A state without runs has no sample.
            family.clear();
            for (state, count) in counts {
                family.get_or_create(&one_label("state", state)).set(clamped(*count));
            }
        }
        families.gauges.oldest_waiting.set(gauges.oldest_waiting_s);
        families.gauges.expired_leases.set(clamped(gauges.expired_leases));
        families.set_has_gauges(true);
    }

    /// Omits the gauges of the store until they are set again: old values would look like current ones.
    pub fn forget_run_gauges(&self) {
        self.families().set_has_gauges(false);
    }

    /// Returns all metrics as `OpenMetrics` text for Prometheus.
    ///
    /// # Errors
    /// Currently never fails: writing to a string cannot fail.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        self.families().text()
    }

    /// Returns all metrics as data.
    pub fn report(&self) -> Result<MetricsReport, std::fmt::Error> {
        let families = self.families();
        Ok(report::report(&families.text()?, families.since_ms, &families.names))
    }

    /// Resets all metrics, which Prometheus treats as a restart.
    pub fn reset(&self) {
        *self.0.write_locked() = Arc::new(Families::new());
    }
}

#[cfg(test)]
mod tests {
    use super::families::MAX_LABEL_VALUES;
    use super::*;

    #[test]
    fn gauges_have_the_latest_values() {
        let metrics = Metrics::default();
        let look = |state: &str, waiting| RunGauges {
            runs: [(state.to_owned(), 3)].into(),
            oldest_waiting_s: waiting,
            workers: [("live".to_owned(), 2)].into(),
            expired_leases: 1,
        };
        metrics.set_run_gauges(&look("failed", 7.5));
        metrics.set_run_gauges(&look("running", 0.0));
        metrics.expect_store_errors(["busy".to_owned()]);
        metrics.store_error("disk_full");
        metrics.takeover();
        let text = metrics.text().unwrap();
        for line in [
            "agent_skills_runtime_runs{state=\"running\"} 3",
            "agent_skills_runtime_waiting_oldest_seconds 0.0",
            "agent_skills_runtime_workers{state=\"live\"} 2",
            "agent_skills_runtime_leases_expired 1",
            "agent_skills_runtime_takeovers_total 1",
            "agent_skills_store_errors_total{cause=\"busy\"} 0",
            "agent_skills_store_errors_total{cause=\"disk_full\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing from\n{text}");
        }
        assert!(!text.contains("state=\"failed\""), "{text}");
        metrics.forget_run_gauges();
        let text = metrics.text().unwrap();
        assert!(!text.contains("runtime_runs") && !text.contains("waiting_oldest"), "{text}");
        assert!(text.contains("runtime_takeovers") && text.ends_with("# EOF\n"), "{text}");
        metrics.set_run_gauges(&look("running", 0.0));
        let report = metrics.report().unwrap();
        let runs = report.families.iter().find(|family| family.name == "runtime.runs").unwrap();
        assert_eq!(runs.samples[0].value, Some(3.0));
    }

    #[test]
    fn keys_are_counted_by_configured_name() {
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
    fn json_and_text_agree() {
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
    fn reset_applies_to_every_handle() {
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
    fn callers_cannot_create_unlimited_series() {
        let metrics = Metrics::default();
        for n in 0..MAX_LABEL_VALUES + 50 {
            metrics.labeled_run("pending", "env", &format!("value{n}"));
        }
        metrics.labeled_run("completed", "env", "value0");
        metrics.labeled_run("pending", "team", "value9999");
        let report = metrics.report().unwrap();
        let family = report.families.iter().find(|family| family.name == "runtime.labeled.runs").unwrap();
        let value = |state: &str, label: &str, value: &str| {
            let expected = [("label", label), ("state", state), ("value", value)];
            let has =
                |sample: &&MetricSample| expected.iter().all(|(key, value)| sample.labels[*key] == *value);
            family.samples.iter().find(has).and_then(|sample| sample.value)
        };
        assert_eq!(family.samples.len(), MAX_LABEL_VALUES + 3);
        assert_eq!(value("pending", "env", "other"), Some(50.0));
        assert_eq!(value("completed", "env", "value0"), Some(1.0));
        assert_eq!(value("pending", "team", "value9999"), Some(1.0));
    }

    #[test]
    fn bundle_names_cannot_create_unlimited_series() {
        let metrics = Metrics::default();
        metrics.binding(&"x".repeat(5_000), true);
        let report = metrics.report().unwrap();
        let bindings = report.families.iter().find(|f| f.name == "runtime.bindings").unwrap();
        assert!(bindings.samples[0].labels["binding"].len() <= 200);
    }
}
