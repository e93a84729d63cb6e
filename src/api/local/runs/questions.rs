//! Keeps the questions of waiting runs up to date while runs are executed here: if a script is edited while its run
//! waits, the question is replaced by one about what would run now. Readers of a run compute the same without recording
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{Approvals, RunRuntime};
use crate::Error;
use skills_model::{ApprovalReason, Gate, RunState};
use skills_registry::RegistryEvent;
use skills_store::RunFilter;

/// Maximum time between two passes: not every file that a script loads is watched.
const INTERVAL: Duration = Duration::from_secs(60);
/// Delay between a change of the skills and the pass that follows it: an edit is several changes.
const SETTLE: Duration = Duration::from_millis(500);
/// Pause after a pass, as a multiple of its duration.
const PAUSE_FACTOR: u32 = 20;
/// Runs read per page.
const PAGE: usize = 200;

impl Approvals {
    /// Checks the runs that wait for approval, sequentially, whenever the skills change, and periodically.
    pub(super) async fn follow_questions(self: Arc<Self>, runtime: Arc<RunRuntime>) {
        self.registry.wait_scanned().await;
        loop {
            // Unreceived events keep their snapshots in memory; those from before this pass are covered by it.
            let mut events = self.registry.events();
            let started = Instant::now();
            if let Err(error) = self.update_questions(&runtime).await {
                tracing::warn!("cannot check waiting runs for changed scripts: {error}");
            }
            let rest = started.elapsed() * PAUSE_FACTOR;
            tokio::select! {
                () = tokio::time::sleep(INTERVAL.max(rest)) => continue,
                () = changed(&mut events) => {}
            }
            drop(events);
            tokio::time::sleep(SETTLE.max(rest)).await;
        }
    }

    async fn update_questions(self: &Arc<Self>, runtime: &RunRuntime) -> Result<(), Error> {
        let mut filter =
            RunFilter { states: vec![RunState::WaitingForHuman], limit: PAGE, ..RunFilter::default() };
        loop {
            let page = runtime.store.runs(filter.clone()).await?;
            // Runs without pins cannot change.
            let of_here = page.runs.into_iter().filter(|run| run.options.pins.is_some());
            let of_here: Vec<_> = of_here.filter(|run| self.places.elsewhere(run).is_none()).collect();
            if !of_here.is_empty() {
                self.services.refresh().await?;
            }
            for run in of_here {
                let id = run.id.clone();
                let before = run.gate.clone();
                let updated = match self.present_question(runtime, run).await {
                    Ok((now, Some(_))) if has_changed(before.as_ref(), now.gate.as_ref()) => match now.gate {
                        Some(gate) => Self::record_question(runtime, &id, gate).await.map_err(Error::from),
                        None => Ok(()),
                    },
                    Ok(_) => Ok(()),
                    Err(error) => Err(error),
                };
                if let Err(error) = updated {
                    tracing::warn!("cannot determine what run {id} would execute: {error}");
                }
            }
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => return Ok(()),
            }
        }
    }
}

/// Returns whether a question is about another change of the skills. One that differs only in its digest is kept: this
/// process may have other services than the one that asked.
fn has_changed(before: Option<&Gate>, now: Option<&Gate>) -> bool {
    fn reason(gate: Option<&Gate>) -> Option<(&String, &ApprovalReason)> {
        match gate? {
            Gate::Human { step, why, .. } => Some((step, why)),
            Gate::Signal { .. } => None,
        }
    }
    reason(before) != reason(now)
}

/// Returns when the skills have changed.
async fn changed(events: &mut Receiver<RegistryEvent>) {
    loop {
        match events.recv().await {
            Ok(RegistryEvent::Change(_)) | Err(RecvError::Lagged(_)) => return,
            Ok(RegistryEvent::Progress(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
