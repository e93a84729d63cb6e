//! Messages about due runs that no worker executes.

use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{LeaseHolder, RunRecord, WorkerId};

/// How long a run may be pending before it is reported as unclaimed, in milliseconds: a run that was just launched is
/// about to be claimed.
pub const PENDING_MS: i64 = 5_000;

/// Returns why no worker executes a run that is due; `None` if one does, or if none has to. `age` formats milliseconds
/// for the adapter.
pub fn orphaned_run_reason(run: &RunRecord, now_ms: i64, age: impl Fn(i64) -> String) -> Option<String> {
    let Some(lease) = &run.lease else {
        let waits = run.state == RunState::Pending && !run.paused;
        return waits.then(|| "not yet claimed by a worker".to_owned());
    };
    let worker = lease.worker.as_ref().map_or_else(|| "its worker".to_owned(), WorkerId::describe);
    let worker = safe_text::line(&worker);
    match lease.holder {
        LeaseHolder::Here | LeaseHolder::Elsewhere => None,
        LeaseHolder::Dead => Some(format!("no worker owns it: {worker} has exited")),
        LeaseHolder::RunOut => {
            let ago = age(now_ms.saturating_sub(lease.until_ms));
            Some(format!("no worker owns it: the lease of {worker} expired {ago} ago"))
        }
        LeaseHolder::Left => Some("no worker owns it: its worker shut down cleanly".to_owned()),
    }
}
