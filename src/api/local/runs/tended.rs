//! Who executes a run, as this process can tell: a store knows leases, the system knows processes.

use skills_runs::Workplace;
use skills_store::{Hold, Holder, Moment, RunRecord};

/// A run with what is known about its holder.
pub(super) fn tended(mut run: RunRecord) -> RunRecord {
    if let Some(hold) = &mut run.hold {
        let now = Moment::now();
        hold.until_ms = hold.ends_ms(&now);
        hold.holder = holder(hold, &Workplace::here(), now.wall_ms);
    }
    run
}

fn holder(hold: &Hold, here: &Workplace, now_ms: i64) -> Holder {
    match &hold.worker {
        None => Holder::Left,
        // An end in the past is written down for workers that somebody found dead.
        Some(worker) if hold.until_ms == 0 || here.knows_dead(worker) => Holder::Dead,
        Some(_) if hold.until_ms < now_ms => Holder::RunOut,
        Some(worker) if here.is_mine(worker) => Holder::Here,
        Some(_) => Holder::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_store::WorkerId;

    #[test]
    fn a_run_is_lost_when_its_worker_left_or_its_lease_is_over() {
        let here = Workplace::here();
        let held = |worker: Option<WorkerId>, until_ms| {
            holder(&Hold { worker, until_ms, until_boot: None, holder: Holder::Elsewhere }, &here, 1_000)
        };
        assert_eq!(held(Some(here.next_worker()), 2_000), Holder::Here);
        assert_eq!(held(Some(WorkerId("far/1-a/7/9/0".into())), 2_000), Holder::Elsewhere);
        assert_eq!(held(Some(WorkerId("far/1-a/7/9/0".into())), 999), Holder::RunOut);
        assert_eq!(held(Some(WorkerId("far/1-a/7/9/0".into())), 0), Holder::Dead);
        assert_eq!(held(None, 0), Holder::Left);
        assert!(Holder::Dead.is_lost() && !Holder::Here.is_lost());
    }
}
