//! Metrics as data, parsed from the text format, so that both are always consistent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All counts of a process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MetricsReport {
    /// Start of the counts of this process, milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// Counters without labels, by name (`runtime.idempotency.created`).
    pub counters: BTreeMap<String, u64>,
    /// Every metric with its samples, by name.
    pub families: Vec<MetricFamily>,
}

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// A value that only increases.
    Counter,
    /// A value that increases and decreases.
    Gauge,
    /// A distribution of values.
    Histogram,
    /// Anything else.
    Unknown,
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricFamily {
    /// Name of the metric, dotted.
    pub name: String,
    /// Name of the metric in the text form.
    pub text_name: String,
    /// Description of the metric.
    pub help: String,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Unit of the metric, if it has one (`seconds`).
    pub unit: Option<String>,
    /// One sample for each set of labels.
    pub samples: Vec<MetricSample>,
}

/// A metric's value for a set of labels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MetricSample {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The value, except for a histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The distribution, for a histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
}

/// Distribution of a histogram.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Median, estimated from the buckets; absent without values, or past the last bound.
    pub p50: Option<f64>,
    /// 95th percentile, estimated in the same way.
    pub p95: Option<f64>,
    /// 99th percentile, estimated in the same way.
    pub p99: Option<f64>,
    /// Cumulative number of values up to each bound.
    pub buckets: Vec<Bucket>,
}

/// A bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Upper bound; none for the last bucket, which counts all values.
    pub le: Option<f64>,
    /// Number of values up to it.
    pub count: u64,
}

impl Distribution {
    /// Estimates the value below which this share of all values lies, by linear interpolation in its bucket.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = share * self.count as f64;
        let (mut below, mut from) = (0_u64, 0.0);
        for bucket in &self.buckets {
            if bucket.count as f64 >= rank && bucket.count > below {
                let inside = (rank - below as f64) / (bucket.count - below) as f64;
                return bucket.le.map(|le| from + (le - from) * inside);
            }
            below = bucket.count;
            from = bucket.le.unwrap_or(from);
        }
        None
    }
}

/// Parses the text format. `names` maps names in the text to dotted names.
pub(super) fn report(text: &str, since_ms: i64, names: &BTreeMap<String, &'static str>) -> MetricsReport {
    let mut families: BTreeMap<String, MetricFamily> = BTreeMap::new();
    for line in text.lines() {
        let described = line.strip_prefix("# ").and_then(|rest| {
            let (what, rest) = rest.split_once(' ')?;
            let (name, message) = rest.split_once(' ').unwrap_or((rest, ""));
            Some((what, name, message))
        });
        if let Some((what, name, message)) = described {
            let family = families.entry(name.to_owned()).or_insert_with(|| MetricFamily {
                name: names.get(name).map_or_else(|| name.to_owned(), |name| (*name).to_owned()),
                text_name: name.to_owned(),
                help: String::new(),
                kind: MetricKind::Unknown,
                unit: None,
                samples: Vec::new(),
            });
            match what {
                "HELP" => message.clone_into(&mut family.help),
                "UNIT" => family.unit = Some(message.to_owned()),
                "TYPE" => family.kind = kind(message),
                _ => {}
            }
        } else if let Some(read) = sample(line) {
            let ends = ["_total", "_bucket", "_sum", "_count", ""];
            let base =
                |end: &&str| read.name.strip_suffix(*end).is_some_and(|base| families.contains_key(base));
            if let Some(end) = ends.into_iter().find(base)
                && let Some(family) = families.get_mut(read.name.strip_suffix(end).unwrap_or(read.name))
            {
                add(family, end.trim_start_matches('_'), read.labels, read.value);
            }
        }
    }
    let mut families: Vec<MetricFamily> = families.into_values().collect();
    for distribution in
        families.iter_mut().flat_map(|f| &mut f.samples).filter_map(|s| s.distribution.as_mut())
    {
        distribution.p50 = distribution.quantile(0.5);
        distribution.p95 = distribution.quantile(0.95);
        distribution.p99 = distribution.quantile(0.99);
    }
    for family in &mut families {
        family.samples.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    families.sort_by(|a, b| a.name.cmp(&b.name));
    let counters = families
        .iter()
        .filter(|family| family.kind == MetricKind::Counter)
        .filter_map(|family| {
            let unlabeled = family.samples.iter().find(|sample| sample.labels.is_empty())?;
            Some((family.name.clone(), to_count(unlabeled.value?)))
        })
        .collect();
    MetricsReport { since_ms, counters, families }
}

fn kind(word: &str) -> MetricKind {
    match word {
        "counter" => MetricKind::Counter,
        "gauge" => MetricKind::Gauge,
        "histogram" => MetricKind::Histogram,
        _ => MetricKind::Unknown,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count is whole and never negative; past 2^53 its text form is no longer exact"
)]
fn to_count(value: f64) -> u64 {
    value as u64
}

/// Adds a sample to its family: `part` is the suffix after the family's name.
fn add(family: &mut MetricFamily, part: &str, mut labels: BTreeMap<String, String>, value: f64) {
    let bound = labels.remove("le");
    // The lines of one set of labels follow each other.
    if family.samples.last().is_none_or(|last| last.labels != labels) {
        family.samples.push(MetricSample { labels, ..MetricSample::default() });
    }
    let Some(sample) = family.samples.last_mut() else { return };
    if family.kind != MetricKind::Histogram {
        sample.value = Some(value);
        return;
    }
    let distribution = sample.distribution.get_or_insert_default();
    match part {
        "sum" => distribution.sum = value,
        "count" => distribution.count = to_count(value),
        "bucket" => {
            let le = bound.and_then(|bound| bound.parse().ok()).filter(|le: &f64| le.is_finite());
            distribution.buckets.push(Bucket { le, count: to_count(value) });
        }
        _ => {}
    }
}

/// A parsed line with a value.
struct MetricLine<'t> {
    name: &'t str,
    labels: BTreeMap<String, String>,
    value: f64,
}

fn sample(line: &str) -> Option<MetricLine<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => read_labels(inside)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(MetricLine { name, labels, value })
}

/// Parses `key="value",…}` with escapes; returns the rest of the text as well.
fn read_labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (key, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut signs = quoted.char_indices();
        loop {
            match signs.next()? {
                (at, '"') => {
                    rest = &quoted[at + 1..];
                    break;
                }
                (_, '\\') => match signs.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        }
        labels.insert(key.to_owned(), value);
    }
}
