//! Who executes a run, as far as this process can tell: a store knows leases, the system knows processes.

use skills_runs::ProcessIdentity;
use skills_store::{ClockReading, LeaseHolder, RunLease, RunRecord};

/// Adds to a run what is known about its lease holder.
pub(super) fn with_holder(mut run: RunRecord) -> RunRecord {
    if let Some(lease) = &mut run.lease {
        let now = ClockReading::now();
        lease.until_ms = lease.ends_ms(&now);
        lease.holder = holder(lease, &ProcessIdentity::here(), now.wall_ms);
    }
    run
}

fn holder(lease: &RunLease, here: &ProcessIdentity, now_ms: i64) -> LeaseHolder {
    match &lease.worker {
        None => LeaseHolder::Left,
        // The lease of a worker found dead has an expiry in the past.
        Some(worker) if lease.until_ms == 0 || here.is_process_dead(worker) => LeaseHolder::Dead,
        Some(_) if lease.until_ms < now_ms => LeaseHolder::RunOut,
        Some(worker) if here.is_mine(worker) => LeaseHolder::Here,
        Some(_) => LeaseHolder::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_store::WorkerId;

    #[test]
    fn run_is_lost_after_worker_exit_or_lease_expiry() {
        let here = ProcessIdentity::here();
        let leased = |worker: Option<WorkerId>, until_ms| {
            holder(
                &RunLease { worker, until_ms, until_boot: None, holder: LeaseHolder::Elsewhere },
                &here,
                1_000,
            )
        };
        assert_eq!(leased(Some(here.next_worker()), 2_000), LeaseHolder::Here);
        assert_eq!(leased(Some(WorkerId("far/1-a/7/9/0".into())), 2_000), LeaseHolder::Elsewhere);
        assert_eq!(leased(Some(WorkerId("far/1-a/7/9/0".into())), 999), LeaseHolder::RunOut);
        assert_eq!(leased(Some(WorkerId("far/1-a/7/9/0".into())), 0), LeaseHolder::Dead);
        assert_eq!(leased(None, 0), LeaseHolder::Left);
        assert!(LeaseHolder::Dead.is_lost() && !LeaseHolder::Here.is_lost());
    }
}
