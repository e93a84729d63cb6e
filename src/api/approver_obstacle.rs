//! Why an approval by a person does not count.

use skills_model::Gate;
use skills_registry::policy::{Approver, RequiredApprovals};
use skills_store::{ClockReading, RunRecord};

/// Returns how long the gate of a run has waited, in seconds.
pub fn waited_s(run: &RunRecord) -> u64 {
    u64::try_from((ClockReading::now().wall_ms - run.since_ms) / 1_000).unwrap_or(0)
}

/// Returns why an approval does not count that is recorded under `identity`; `None` if it does.
pub fn approver_obstacle(
    run: &RunRecord,
    required: &RequiredApprovals,
    approver: Approver<'_>,
    identity: &str,
) -> Option<String> {
    required.refuses(approver, run.starters(), waited_s(run)).or_else(|| {
        let Some(Gate::Human { approvals, .. }) = &run.gate else { return None };
        // About an unknown outcome, another choice replaces the first one.
        let repeats =
            required.need > 1 && !run.is_outcome_unknown() && approvals.by.iter().any(|by| by == identity);
        repeats.then(|| format!("{identity} has already approved; another person must approve, too"))
    })
}
