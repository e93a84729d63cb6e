//! The definitions of all metrics: names, help texts and buckets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::MutexExt as _;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

/// Prefix of every name in the text format.
const PREFIX: &str = "agent_skills";
/// Maximum length of a label value in bytes: some values come from bundles.
const MAX_LABEL_BYTES: usize = 200;
/// Maximum number of values of a label of runs that have separate series.
pub(super) const MAX_LABEL_VALUES: usize = 100;
/// Upper bounds of the latency buckets, in seconds.
const SECONDS: [f64; 17] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0,
];

type Label = (&'static str, Cow<'static, str>);
pub(super) type Labels = Vec<Label>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

pub(super) fn one_label(key: &'static str, value: &str) -> Labels {
    many_labels([(key, value)])
}

pub(super) fn two_labels(key: &'static str, value: &str, other: &'static str, its: &str) -> Labels {
    many_labels([(key, value), (other, its)])
}

/// Creates a set of labels, truncating long values.
pub(super) fn many_labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key, Cow::Owned(cut(value).to_owned()))).collect()
}

fn cut(value: &str) -> &str {
    let end = (0..=MAX_LABEL_BYTES.min(value.len())).rev().find(|end| value.is_char_boundary(*end));
    &value[..end.unwrap_or(0)]
}

fn latencies() -> Histogram {
    Histogram::new(SECONDS)
}

fn by_label() -> Histograms {
    Family::new_with_constructor(latencies as fn() -> Histogram)
}

/// All metrics of a process since the start of its counts.
#[derive(Debug)]
pub(super) struct Families {
    registry: Registry,
    /// The gauges of the store, which are omitted while they are unknown.
    gauges: Registry,
    has_gauges: AtomicBool,
    /// Maps names in the text format to names in the JSON format.
    pub names: BTreeMap<String, &'static str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    pub key_created: Counter,
    pub key_reused: Counter,
    pub key_conflict: Counter,
    pub key_expired: Counter,
    pub run_transitions: Counters,
    pub steps: Counters,
    pub step_duration: Histograms,
    pub call_duration: Histograms,
    pub bindings: Counters,
    pub binding_duration: Histograms,
    pub operations: Counters,
    pub operation_duration: Histograms,
    pub discovery_duration: Histogram,
    pub link_duration: Histograms,
    pub links_left_out: Counters,
    pub http_requests: Counters,
    pub http_duration: Histograms,
    pub commit_jobs: Counter,
    pub commit_duration: Histogram,
    pub tools: Counters,
    pub tool_duration: Histograms,
    pub limited: Counters,
    pub runs: Gauges,
    pub oldest_waiting: Gauge<f64, AtomicU64>,
    pub workers: Gauges,
    pub expired_leases: Gauge,
    pub takeovers: Counter,
    pub store_errors: Counters,
    pub labeled_runs: Counters,
    pub uploads: Counters,
    pub uploaded_bytes: Counter,
    /// The values of each label of runs that have separate series.
    label_values: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// Registers metrics, and records their names.
struct MetricRegistrar {
    registry: Registry,
    names: BTreeMap<String, &'static str>,
}

impl MetricRegistrar {
    fn counter<M: Metric + Clone>(&mut self, name: &'static str, help: &str, metric: M) -> M {
        let text = name.replace('.', "_");
        self.registry.register(text.clone(), help, metric.clone());
        self.names.insert(format!("{PREFIX}_{text}"), name);
        metric
    }

    fn seconds<M: Metric + Clone>(&mut self, name: &'static str, help: &str, metric: M) -> M {
        let text = name.replace('.', "_");
        self.registry.register_with_unit(text.clone(), help, Unit::Seconds, metric.clone());
        self.names.insert(format!("{PREFIX}_{text}_seconds"), name);
        metric
    }
}

impl Families {
    /// Creates all metrics with zero counts.
    pub fn new() -> Self {
        let mut registrar =
            MetricRegistrar { registry: Registry::with_prefix(PREFIX), names: BTreeMap::new() };
        let mut gauges = MetricRegistrar { registry: Registry::with_prefix(PREFIX), names: BTreeMap::new() };
        let key =
            |registrar: &mut MetricRegistrar, name, help| registrar.counter(name, help, Counter::default());
        let families = Self {
            key_created: key(
                &mut registrar,
                "runtime.idempotency.created",
                "Launches whose idempotency key was new",
            ),
            key_reused: key(
                &mut registrar,
                "runtime.idempotency.reused",
                "Launches that returned an existing run with the same key and payload",
            ),
            key_conflict: key(
                &mut registrar,
                "runtime.idempotency.conflict",
                "Launches rejected because their key was used for another payload",
            ),
            key_expired: key(
                &mut registrar,
                "runtime.idempotency.expired",
                "Launches whose key had expired and was reused",
            ),
            run_transitions: registrar.counter(
                "runtime.run.transitions",
                "Runs that entered a state",
                Counters::default(),
            ),
            steps: registrar.counter("runtime.steps", "Steps recorded, by outcome", Counters::default()),
            step_duration: registrar.seconds(
                "runtime.step.duration",
                "Time from the start of a step to its record",
                by_label(),
            ),
            call_duration: registrar.seconds(
                "runtime.call.duration",
                "Time of a capability call over all bindings tried",
                by_label(),
            ),
            bindings: registrar.counter("runtime.bindings", "Calls of bindings", Counters::default()),
            binding_duration: registrar.seconds(
                "runtime.binding.duration",
                "Time of calls for which this was the only binding tried",
                by_label(),
            ),
            operations: registrar.counter("operations", "Operations of the core", Counters::default()),
            operation_duration: registrar.seconds(
                "operation.duration",
                "Time of an operation of the core",
                by_label(),
            ),
            discovery_duration: registrar.seconds(
                "discovery.duration",
                "Time to rank the skills for a request",
                latencies(),
            ),
            link_duration: registrar.seconds("discovery.link.duration", "Time of a matcher", by_label()),
            links_left_out: registrar.counter(
                "discovery.links.left_out",
                "Matchers skipped in a request because of a failure or timeout",
                Counters::default(),
            ),
            http_requests: registrar.counter("http.requests", "HTTP requests", Counters::default()),
            http_duration: registrar.seconds("http.duration", "Time of an HTTP request", by_label()),
            commit_jobs: registrar.counter(
                "store.commit.jobs",
                "Changes of the store; several can share a commit",
                Counter::default(),
            ),
            commit_duration: registrar.seconds(
                "store.commit.duration",
                "Time from the start of a transaction until it is durable",
                latencies(),
            ),
            tools: registrar.counter(
                "session.tool.calls",
                "Runtime tools called by sessions",
                Counters::default(),
            ),
            tool_duration: registrar.seconds("session.tool.duration", "Time of a runtime tool", by_label()),
            limited: registrar.counter(
                "limits.requests",
                "Requests checked by the rate limiter",
                Counters::default(),
            ),
            runs: gauges.counter(
                "runtime.runs",
                "Runs in a state now, in the whole store",
                Gauges::default(),
            ),
            oldest_waiting: gauges.seconds(
                "runtime.waiting.oldest",
                "Age of the oldest pending approval; 0 if no run waits",
                Gauge::default(),
            ),
            workers: gauges.counter("runtime.workers", "Worker processes of the store", Gauges::default()),
            expired_leases: gauges.counter(
                "runtime.leases.expired",
                "Runs whose worker has exited or has not renewed its lease",
                Gauge::default(),
            ),
            takeovers: registrar.counter(
                "runtime.takeovers",
                "Runs that this process took over from a lost worker",
                Counter::default(),
            ),
            store_errors: registrar.counter(
                "store.errors",
                "Operations of the store that failed",
                Counters::default(),
            ),
            labeled_runs: registrar.counter(
                "runtime.labeled.runs",
                "Runs launched and ended, by the labels of `runs.metric_labels`",
                Counters::default(),
            ),
            uploads: registrar.counter(
                "artifacts.uploads",
                "Uploaded artifacts, by outcome",
                Counters::default(),
            ),
            uploaded_bytes: key(&mut registrar, "artifacts.uploaded.bytes", "Bytes of uploaded artifacts"),
            label_values: Mutex::default(),
            registry: Registry::default(),
            gauges: Registry::default(),
            has_gauges: AtomicBool::new(true),
            names: BTreeMap::new(),
            since_ms: jiff::Timestamp::now().as_millisecond(),
        };
        registrar.names.append(&mut gauges.names);
        Self { registry: registrar.registry, gauges: gauges.registry, names: registrar.names, ..families }
    }

    /// Returns the value under which runs with this value of a label are counted.
    pub fn bounded_value(&self, label: &str, value: &str) -> String {
        let value = cut(value);
        let mut known = self.label_values.locked();
        let values = known.entry(label.to_owned()).or_default();
        if values.len() < MAX_LABEL_VALUES {
            values.insert(value.to_owned());
        }
        if values.contains(value) { value.to_owned() } else { "other".to_owned() }
    }

    /// Records whether the gauges of the store are known.
    pub fn set_has_gauges(&self, has_gauges: bool) {
        self.has_gauges.store(has_gauges, Ordering::Relaxed);
    }

    /// Encodes all metrics as text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        if self.has_gauges.load(Ordering::Relaxed) {
            encode_registry(&mut text, &self.gauges)?;
        }
        encode_eof(&mut text)?;
        Ok(text)
    }
}
