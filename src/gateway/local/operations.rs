//! How often each operation was asked and how long it took.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::gateway::{Error, OperationCount};

/// Counts per operation, shared by all callers.
#[derive(Debug, Default)]
pub struct Operations {
    counts: Mutex<BTreeMap<&'static str, OperationCount>>,
}

impl Operations {
    /// Counts one call that began at `began`, and hands its result on.
    pub fn counted<T>(
        &self,
        operation: &'static str,
        began: Instant,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(operation).or_default();
        count.calls += 1;
        count.errors += u64::from(result.is_err());
        count.total_us = count.total_us.saturating_add(took);
        count.max_us = count.max_us.max(took);
        result
    }

    /// All counts up to now.
    pub fn snapshot(&self) -> BTreeMap<String, OperationCount> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Code;

    #[test]
    fn calls_and_errors_are_counted_apart() {
        let operations = Operations::default();
        let began = Instant::now();
        operations.counted("list", began, Ok(())).unwrap();
        operations.counted::<()>("list", began, Err(Error::new(Code::NotFound, "gone"))).unwrap_err();
        let count = operations.snapshot()["list"];
        assert_eq!((count.calls, count.errors), (2, 1));
        assert!(count.max_us <= count.total_us);
    }
}
