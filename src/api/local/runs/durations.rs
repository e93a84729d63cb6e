//! Typical durations of the steps of a contract, from its last completed runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skills_base::sync::MutexExt as _;
use skills_model::RunState;
use skills_store::{RunFilter, RunRecord, Store, StoreError};

/// Maximum number of completed runs used.
const MAX_RUNS: usize = 50;
/// Minimum number of samples of a step; with fewer, no duration is shown.
const MIN_SAMPLES: usize = 5;
/// How long results are cached.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Maximum number of contracts in the cache.
const MAX_CONTRACTS: usize = 64;

/// 95th percentiles in milliseconds by step.
type Percentiles = Arc<HashMap<String, u64>>;

/// Durations by contract digest, with the time they were read.
#[derive(Default)]
pub(super) struct StepDurations {
    cache: Mutex<HashMap<String, (Instant, Percentiles)>>,
}

impl StepDurations {
    /// Returns the 95th percentiles of the steps of a run's contract.
    pub(super) async fn of(&self, store: &dyn Store, run: &RunRecord) -> Result<Percentiles, StoreError> {
        if let Some(percentiles) = self.cached(&run.contract_digest) {
            return Ok(percentiles);
        }
        let filter = RunFilter {
            states: vec![RunState::Completed],
            skill_id: Some(run.skill_id.clone()),
            limit: MAX_RUNS,
            ..RunFilter::default()
        };
        let mut took: HashMap<String, Vec<u64>> = HashMap::new();
        let completed = store.runs(filter).await?.runs;
        for one in completed.iter().filter(|one| one.contract_digest == run.contract_digest) {
            for step in store.steps(&one.id, 0).await? {
                let ms = u64::try_from(step.ended_ms - step.started_ms).unwrap_or(0);
                took.entry(step.step).or_default().push(ms);
            }
        }
        let found = took.into_iter().filter_map(|(step, took)| Some((step, percentile(took)?)));
        let found: Percentiles = Arc::new(found.collect());
        let mut cache = self.cache.locked();
        if cache.len() >= MAX_CONTRACTS {
            cache.clear();
        }
        cache.insert(run.contract_digest.clone(), (Instant::now(), Arc::clone(&found)));
        Ok(found)
    }

    fn cached(&self, digest: &str) -> Option<Percentiles> {
        let cache = self.cache.locked();
        let (read, percentiles) = cache.get(digest)?;
        (read.elapsed() < MAX_AGE).then(|| Arc::clone(percentiles))
    }
}

/// Returns the 95th percentile; `None` if there are too few samples.
fn percentile(mut took: Vec<u64>) -> Option<u64> {
    if took.len() < MIN_SAMPLES {
        return None;
    }
    took.sort_unstable();
    let at = (took.len() * 95).div_ceil(100).saturating_sub(1);
    took.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_have_no_percentile() {
        assert_eq!(percentile(vec![1, 2, 3, 4]), None);
        assert_eq!(percentile(vec![5, 1, 2, 3, 4]), Some(5));
        assert_eq!(percentile((1..=100).collect()), Some(95));
    }
}
