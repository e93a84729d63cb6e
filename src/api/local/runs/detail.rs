//! The details of a run: record, steps, checkpoints, events, decisions, and the pending decision.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;

use super::lease_holder::with_holder;
use super::runtime::{CapabilityServices, LaunchPlaces, RunRuntime, RunStore};
use super::{Approvals, Plans, attempts, find, steps};
use crate::operations::CheckpointList;
use crate::{Code, Error, RunDetail, StepState, requested_pause};
use skills_runs::Plan;
use skills_store::{Checkpoint, RunEvent, RunId, Store, damaged};

/// Events read per page.
const PAGE: usize = 2000;
/// Maximum size of the inputs and results of steps in a response, in bytes of JSON.
const MAX_STEP_BYTES: u64 = 8 << 20;
/// Maximum number of responses that are built at the same time, because each holds what a run holds.
pub(super) const MAX_BUILT: usize = 4;
/// Maximum memory of the state of a checkpoint, in bytes.
const MAX_CHECKPOINT_BYTES: usize = 8 << 20;

pub(in crate::local) struct Details {
    pub(super) store: Arc<RunStore>,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) plans: Arc<Plans>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) places: LaunchPlaces,
    /// Permits to build a response.
    pub(super) building: Semaphore,
}

impl Details {
    pub(super) async fn detail(&self, requested: &str) -> Result<RunDetail, Error> {
        let runtime = self.store.runtime().await?;
        let run = find::run(&*runtime.store, requested).await?;
        let _permit = self.building.acquire().await;
        runtime.verify(&run.id).await?;
        let plan = runtime.plan(&run.contract_digest).await?;
        let (run, at) = self.approvals.at_gate(&runtime, run).await?;
        let events = newest_events(&*runtime.store, &run.id).await?;
        let records = runtime.store.steps(&run.id, MAX_STEP_BYTES).await?;
        let (present, _) = self.plans.present(&run, &plan).await;
        let mut preview = self.approvals.decision_preview(&runtime, &run, &plan, at.as_ref()).await?;
        if let Some(preview) = &mut preview {
            preview.pause = requested_pause(&run, events.iter());
        }
        let mut steps = steps::views(&run, &plan, &records, &events);
        if steps.iter().any(|step| step.state == StepState::Running) {
            let usual = runtime.durations.of(&*runtime.store, &run).await?;
            for step in steps.iter_mut().filter(|step| step.state == StepState::Running) {
                step.p95_ms = usual.get(&step.step).copied();
            }
        }
        let isolation = self.services.isolation(run.options.unsandboxed).await?;
        Ok(RunDetail {
            contract_version: plan.contract.version.clone(),
            input_fields: plan.contract.inputs.clone(),
            contract_unchanged: present.map(|digest| digest == run.contract_digest),
            steps,
            checkpoints: newest_checkpoints(&*runtime.store, &run.id).await?,
            decisions: runtime.store.decisions(&run.id).await?,
            descendants: runtime.store.descendants(&run.id).await?,
            isolation,
            earlier: attempts::attempts(&events),
            events,
            sheet: preview,
            elsewhere: self.places.elsewhere(&run),
            run: with_holder(run),
        })
    }
}

impl Details {
    pub(super) async fn checkpoints(
        &self,
        requested: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<CheckpointList, Error> {
        let runtime = self.store.runtime().await?;
        let run = find::run(&*runtime.store, requested).await?;
        let _permit = self.building.acquire().await;
        let checkpoints = runtime.store.checkpoints(&run.id, before, limit).await?;
        Ok(CheckpointList { run_id: run.id, checkpoint_head: run.head, checkpoints })
    }
}

impl RunRuntime {
    /// Returns the plan that a run was launched with.
    pub(super) async fn plan(&self, digest: &str) -> Result<Plan, Error> {
        let contract = self.store.contract(digest).await?;
        let contract = contract.ok_or_else(|| {
            let message = format!("contract {digest} is not in the store; run `skills db check`");
            Error::new(Code::InternalError, message)
        })?;
        Plan::from_value(&contract, digest).map_err(|why| Error::new(Code::InternalError, why))
    }

    /// Checks that what a run continues from is unmodified, before it is shown or decided on.
    pub(super) async fn verify(&self, run: &RunId) -> Result<(), Error> {
        match self.store.damage(run).await? {
            Some(part) => Err(Error::new(Code::InternalError, damaged(run, part))),
            None => Ok(()),
        }
    }
}

/// Returns the newest checkpoints of a run. If the last one alone is too large, its state is replaced by its size.
async fn newest_checkpoints(store: &dyn Store, run: &RunId) -> Result<Vec<Checkpoint>, Error> {
    let mut checkpoints = store.checkpoints(run, None, RunDetail::MAX_CHECKPOINTS).await?;
    if let [only] = checkpoints.as_mut_slice() {
        let bytes = skills_base::memory::value_bytes(&only.state);
        if bytes > MAX_CHECKPOINT_BYTES {
            only.state = json!({ "omitted_bytes": bytes });
        }
    }
    Ok(checkpoints)
}

/// Returns the newest events of a run, as many as a response contains. Followers read the others by number.
async fn newest_events(store: &dyn Store, run: &RunId) -> Result<Vec<RunEvent>, Error> {
    let mut events: VecDeque<(usize, RunEvent)> = VecDeque::new();
    let mut bytes = 0;
    // Their numbers have no gaps.
    let mut after = store.newest_run_event(run).await?.saturating_sub(RunDetail::MAX_EVENTS as u64);
    loop {
        let page = store.events(Some(run), after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for event in page {
            let size = skills_base::memory::value_bytes(&event.event.data);
            bytes += size;
            events.push_back((size, event));
        }
        while events.len() > RunDetail::MAX_EVENTS || (bytes > RunDetail::MAX_EVENT_BYTES && events.len() > 1)
        {
            bytes -= events.pop_front().map_or(0, |(size, _)| size);
        }
    }
    Ok(events.into_iter().map(|(_, event)| event).collect())
}
