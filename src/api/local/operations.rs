//! Calls and durations of each operation since the counts were last written to the store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::{Error, OperationCount};
use skills_base::sync::MutexExt as _;
use skills_base::telemetry::Metrics;
use skills_store::{Tally, TallyKind};

type Counts = BTreeMap<(TallyKind, String), OperationCount>;

/// Counts per operation, shared by all callers.
#[derive(Debug, Default)]
pub struct Operations {
    counts: Mutex<Counts>,
    metrics: Metrics,
}

/// Adds two counts of the same thing.
pub fn joined(a: OperationCount, b: OperationCount) -> OperationCount {
    OperationCount {
        calls: a.calls.saturating_add(b.calls),
        errors: a.errors.saturating_add(b.errors),
        total_us: a.total_us.saturating_add(b.total_us),
        max_us: a.max_us.max(b.max_us),
    }
}

impl Operations {
    /// Creates empty counts; calls are recorded in the metrics as well.
    pub fn new(metrics: Metrics) -> Self {
        Self { counts: Mutex::default(), metrics }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.locked()
    }

    fn add(&self, kind: TallyKind, name: &str, more: OperationCount) {
        let mut counts = self.counts();
        let count = counts.entry((kind, name.to_owned())).or_default();
        *count = joined(*count, more);
    }

    /// Counts a call that started at `began`, and returns its result.
    pub fn counted<T>(
        &self,
        operation: &'static str,
        started: Instant,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        let elapsed = started.elapsed();
        let took = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let errors = u64::from(result.is_err());
        let one = OperationCount { calls: 1, errors, total_us: took, max_us: took };
        self.add(TallyKind::Operation, operation, one);
        self.metrics.operation(operation, result.is_ok(), elapsed);
        result
    }

    /// Makes a call, counts it, and returns its result.
    pub async fn count<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let result = call.await;
        self.counted(operation, started, result)
    }

    /// Counts a failure of a matcher.
    pub fn matcher_failed(&self, link: &str) {
        self.add(TallyKind::Link, link, OperationCount { errors: 1, ..OperationCount::default() });
    }

    /// Removes and returns the counts that are not stored elsewhere.
    pub fn drain(&self) -> Vec<Tally> {
        let counts = std::mem::take(&mut *self.counts());
        counts
            .into_iter()
            .map(|((kind, name), count)| Tally {
                kind,
                name,
                calls: count.calls,
                errors: count.errors,
                total_us: count.total_us,
                max_us: count.max_us,
            })
            .collect()
    }

    /// Adds back counts that could not be stored.
    pub fn put_back(&self, tallies: Vec<Tally>) {
        for tally in tallies {
            let count = count_of(&tally);
            self.add(tally.kind, &tally.name, count);
        }
    }

    /// Returns all counts of one kind, added to those that are stored elsewhere.
    pub fn with(&self, tallies: &[Tally], kind: TallyKind) -> BTreeMap<String, OperationCount> {
        let here = self.counts();
        let here =
            here.iter().filter(|((k, _), _)| *k == kind).map(|((_, name), count)| (name.clone(), *count));
        let tallies = tallies.iter().filter(|tally| tally.kind == kind);
        let mut all: BTreeMap<String, OperationCount> = here.collect();
        for tally in tallies {
            let count = all.entry(tally.name.clone()).or_default();
            *count = joined(*count, count_of(tally));
        }
        all
    }
}

fn count_of(tally: &Tally) -> OperationCount {
    OperationCount {
        calls: tally.calls,
        errors: tally.errors,
        total_us: tally.total_us,
        max_us: tally.max_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn calls_and_errors_are_counted_separately() {
        let operations = Operations::default();
        let started = Instant::now();
        operations.counted("list", started, Ok(())).unwrap();
        operations.counted::<()>("list", started, Err(Error::new(Code::NotFound, "gone"))).unwrap_err();
        let count = operations.with(&[], TallyKind::Operation)["list"];
        assert_eq!((count.calls, count.errors), (2, 1));
        assert!(count.max_us <= count.total_us);
    }

    #[test]
    fn returned_counts_are_merged_with_newer_ones() {
        let operations = Operations::default();
        operations.counted("list", Instant::now(), Ok(())).unwrap();
        operations.matcher_failed("typo");
        let taken = operations.drain();
        assert!(operations.with(&[], TallyKind::Operation).is_empty());
        operations.counted("list", Instant::now(), Ok(())).unwrap();
        assert_eq!(operations.with(&taken, TallyKind::Operation)["list"].calls, 2);
        operations.put_back(taken);
        assert_eq!(operations.with(&[], TallyKind::Operation)["list"].calls, 2);
        assert_eq!(operations.with(&[], TallyKind::Link)["typo"].errors, 1);
    }
}
