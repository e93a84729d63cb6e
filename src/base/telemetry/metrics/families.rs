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

/// All metrics of a process since the start of its counts.
#[derive(Debug)]
pub(super) struct Families {
    registry: Registry,
    /// Maps names in the text format to names in the JSON format.
    pub names: BTreeMap<String, &'static str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    pub keys: KeyCounters,
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
    pub gauges: StoreGauges,
    pub takeovers: Counter,
    pub store_errors: Counters,
    pub labeled_runs: Counters,
    pub uploads: Counters,
    pub uploaded_bytes: Counter,
    /// The values of each label of runs that have separate series.
    label_values: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// Lookups of idempotency keys at launches, by result.
#[derive(Debug)]
pub(super) struct KeyCounters {
    pub created: Counter,
    pub reused: Counter,
    pub conflict: Counter,
    pub expired: Counter,
}

/// The gauges of the store, which are omitted while they are unknown.
#[derive(Debug)]
pub(super) struct StoreGauges {
    registry: Registry,
    is_known: AtomicBool,
    pub runs: Gauges,
    pub oldest_waiting: Gauge<f64, AtomicU64>,
    pub workers: Gauges,
    pub expired_leases: Gauge,
}

/// Registers metrics, and records their names.
struct MetricRegistrar {
    registry: Registry,
    names: BTreeMap<String, &'static str>,
}

impl MetricRegistrar {
    fn new() -> Self {
        Self { registry: Registry::with_prefix(PREFIX), names: BTreeMap::new() }
    }

    /// Registers a metric with the value 0.
    fn metric<M: Metric + Clone + Default>(&mut self, name: &'static str, help: &str) -> M {
        let metric = M::default();
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

    fn durations(&mut self, name: &'static str, help: &str) -> Histogram {
        self.seconds(name, help, latencies())
    }

    fn labeled_durations(&mut self, name: &'static str, help: &str) -> Histograms {
        self.seconds(name, help, Family::new_with_constructor(latencies as fn() -> Histogram))
    }
}

impl KeyCounters {
    fn new(registrar: &mut MetricRegistrar) -> Self {
        Self {
            created: registrar
                .metric("runtime.idempotency.created", "Launches whose idempotency key was new"),
            reused: registrar.metric(
                "runtime.idempotency.reused",
                "Launches that returned an existing run with the same key and payload",
            ),
            conflict: registrar.metric(
                "runtime.idempotency.conflict",
                "Launches rejected because their key was used for another payload",
            ),
            expired: registrar
                .metric("runtime.idempotency.expired", "Launches whose key had expired and was reused"),
        }
    }
}

impl StoreGauges {
    /// Creates the gauges in a registry of their own, and records their names.
    fn new(names: &mut BTreeMap<String, &'static str>) -> Self {
        let mut registrar = MetricRegistrar::new();
        let gauges = Self {
            registry: Registry::default(),
            is_known: AtomicBool::new(true),
            runs: registrar.metric("runtime.runs", "Runs in a state now, in the whole store"),
            oldest_waiting: registrar.seconds(
                "runtime.waiting.oldest",
                "Age of the oldest pending approval; 0 if no run waits",
                Gauge::default(),
            ),
            workers: registrar.metric("runtime.workers", "Worker processes of the store"),
            expired_leases: registrar.metric(
                "runtime.leases.expired",
                "Runs whose worker has exited or has not renewed its lease",
            ),
        };
        names.append(&mut registrar.names);
        Self { registry: registrar.registry, ..gauges }
    }
}

impl Families {
    /// Creates all metrics with zero counts.
    pub fn new() -> Self {
        let mut registrar = MetricRegistrar::new();
        let families = Self {
            keys: KeyCounters::new(&mut registrar),
            run_transitions: registrar.metric("runtime.run.transitions", "Runs that entered a state"),
            steps: registrar.metric("runtime.steps", "Steps recorded, by outcome"),
            step_duration: registrar
                .labeled_durations("runtime.step.duration", "Time from the start of a step to its record"),
            call_duration: registrar.labeled_durations(
                "runtime.call.duration",
                "Time of a capability call over all bindings tried",
            ),
            bindings: registrar.metric("runtime.bindings", "Calls of bindings"),
            binding_duration: registrar.labeled_durations(
                "runtime.binding.duration",
                "Time of calls for which this was the only binding tried",
            ),
            operations: registrar.metric("operations", "Operations of the core"),
            operation_duration: registrar
                .labeled_durations("operation.duration", "Time of an operation of the core"),
            discovery_duration: registrar
                .durations("discovery.duration", "Time to rank the skills for a request"),
            link_duration: registrar.labeled_durations("discovery.link.duration", "Time of a matcher"),
            links_left_out: registrar.metric(
                "discovery.links.left_out",
                "Matchers skipped in a request because of a failure or timeout",
            ),
            http_requests: registrar.metric("http.requests", "HTTP requests"),
            http_duration: registrar.labeled_durations("http.duration", "Time of an HTTP request"),
            commit_jobs: registrar
                .metric("store.commit.jobs", "Changes of the store; several can share a commit"),
            commit_duration: registrar.durations(
                "store.commit.duration",
                "Time from the start of a transaction until it is durable",
            ),
            tools: registrar.metric("session.tool.calls", "Runtime tools called by sessions"),
            tool_duration: registrar.labeled_durations("session.tool.duration", "Time of a runtime tool"),
            limited: registrar.metric("limits.requests", "Requests checked by the rate limiter"),
            gauges: StoreGauges::new(&mut registrar.names),
            takeovers: registrar
                .metric("runtime.takeovers", "Runs that this process took over from a lost worker"),
            store_errors: registrar.metric("store.errors", "Operations of the store that failed"),
            labeled_runs: registrar.metric(
                "runtime.labeled.runs",
                "Runs launched and ended, by the labels of `runs.metric_labels`",
            ),
            uploads: registrar.metric("artifacts.uploads", "Uploaded artifacts, by outcome"),
            uploaded_bytes: registrar.metric("artifacts.uploaded.bytes", "Bytes of uploaded artifacts"),
            label_values: Mutex::default(),
            registry: Registry::default(),
            names: BTreeMap::new(),
            since_ms: jiff::Timestamp::now().as_millisecond(),
        };
        Self { registry: registrar.registry, names: registrar.names, ..families }
    }

    /// Returns the value under which runs with this value of a label are counted.
    pub fn bounded_value(&self, label: &str, value: &str) -> String {
        let value = cut(value);
        let mut label_values = self.label_values.locked();
        let values = label_values.entry(label.to_owned()).or_default();
        if values.len() < MAX_LABEL_VALUES {
            values.insert(value.to_owned());
        }
        if values.contains(value) { value.to_owned() } else { "other".to_owned() }
    }

    /// Records whether the gauges of the store are known.
    pub fn set_has_gauges(&self, has_gauges: bool) {
        self.gauges.is_known.store(has_gauges, Ordering::Relaxed);
    }

    /// Encodes all metrics as text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        if self.gauges.is_known.load(Ordering::Relaxed) {
            encode_registry(&mut text, &self.gauges.registry)?;
        }
        encode_eof(&mut text)?;
        Ok(text)
    }
}
