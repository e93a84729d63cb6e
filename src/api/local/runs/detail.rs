//! The details of a run: record, steps, checkpoints, events, decisions, and the pending decision.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{RunRuntime, Runs, attempts, capability_run, contracts, find, identity, sheet, steps};
use crate::{Code, DecisionSheet, Error, RunDetail, StepState, pause_wanted};
use skills_model::Gate;
use skills_registry::policy::RequiredApprovals;
use skills_runs::{PendingGate, Plan};
use skills_store::{RunEvent, RunId, RunRecord, Store, damaged};

/// Events read per page.
const PAGE: usize = 2000;
/// Maximum number of events in a response; the newest are returned. Followers read the others by number.
const MAX_EVENTS: usize = 10_000;
/// Maximum memory for their data, in bytes.
const MAX_EVENT_BYTES: usize = 16 << 20;

impl Runs {
    /// Returns the details of a run.
    pub(super) async fn detail(self: &Arc<Self>, wanted: &str) -> Result<RunDetail, Error> {
        let runtime = self.runtime().await?;
        let run = find::run(&*runtime.store, wanted).await?;
        runtime.verify(&run.id).await?;
        let plan = runtime.plan(&run.contract_digest).await?;
        let (run, at) = self.at_gate(&runtime, run).await?;
        let events = newest_events(&*runtime.store, &run.id).await?;
        let records = runtime.store.steps(&run.id).await?;
        let (present, _) = self.present(&run, &plan).await;
        let mut sheet = self.decision_sheet(&runtime, &run, &plan, at.as_ref()).await?;
        if let Some(sheet) = &mut sheet {
            sheet.pause = pause_wanted(&run, events.iter());
        }
        let mut steps = steps::views(&run, &plan, &records, &events);
        if steps.iter().any(|step| step.state == StepState::Running) {
            let usual = runtime.durations.of(&*runtime.store, &run).await?;
            for step in steps.iter_mut().filter(|step| step.state == StepState::Running) {
                step.p95_ms = usual.get(&step.step).copied();
            }
        }
        let isolation = self.isolation(run.options.unsandboxed).await?;
        Ok(RunDetail {
            contract_version: plan.contract.version.clone(),
            input_fields: plan.contract.inputs.clone(),
            contract_unchanged: present.map(|digest| digest == run.contract_digest),
            steps,
            checkpoints: runtime.store.checkpoints(&run.id).await?,
            decisions: runtime.store.decisions(&run.id).await?,
            descendants: runtime.store.descendants(&run.id).await?,
            isolation,
            earlier: attempts::attempts(&events),
            events,
            sheet,
            elsewhere: self.elsewhere(&run),
            run,
        })
    }

    /// Returns what a person needs to know to decide the gate of a run; `None` if it waits for no person. `at` is what
    /// it would do next.
    pub(super) async fn decision_sheet(
        self: &Arc<Self>,
        runtime: &Arc<RunRuntime>,
        run: &RunRecord,
        plan: &Plan,
        at: Option<&PendingGate>,
    ) -> Result<Option<DecisionSheet>, Error> {
        if !matches!(run.gate, Some(Gate::Human { .. })) {
            return Ok(None);
        }
        let approver = self.approver().await;
        let (runs, runtime) = (Arc::clone(self), Arc::clone(runtime));
        let (run, plan, at) = (run.clone(), plan.clone(), at.cloned());
        super::super::run_blocking(move || {
            let sheet = sheet::sheet(&run, &plan, at.as_ref(), &*runtime.broker, approver);
            let Some(mut sheet) = sheet else { return Ok(None) };
            let capability = plan.capability(&sheet.capability).map(Arc::as_ref);
            sheet.why = with_approvals(sheet.why, &run, &runs.required_approvals(&run, &plan)?);
            sheet.blocked = runs.find_blocker(&runtime, &run, &plan, capability).map(|error| error.message);
            if runs.elsewhere(&run).is_some() {
                "the bindings of the skills it was launched from".clone_into(&mut sheet.binding);
            }
            Ok(Some(sheet))
        })
        .await
    }

    /// Returns the digest and the version that a run's skill would be launched with now; `None` if it can no longer
    /// run. An approval required by the policy is not a change of the skill.
    pub(super) async fn present(
        self: &Arc<Self>,
        run: &RunRecord,
        plan: &Plan,
    ) -> (Option<String>, Option<String>) {
        let (runs, wanted, approval) = (Arc::clone(self), run.skill_id.clone(), plan.approval.clone());
        let inputs = run.inputs.clone();
        let looked = super::super::run_blocking(move || {
            if let Some(capability) = capability_run::capability_of(&wanted) {
                return runs.present_capability(capability, &inputs, approval);
            }
            let skill = runs.skill(&wanted)?;
            let read = contracts::read(&skill)?;
            let version = read.contract.version.clone();
            let digest = match contracts::broken(&read) {
                None => runs.pin_untrusting(&read, approval).ok().map(|plan| plan.digest()),
                Some(_) => None,
            };
            Ok((digest, Some(version)))
        });
        looked.await.unwrap_or((None, None))
    }

    /// Returns the default approver; git is queried once.
    pub(in crate::local) async fn approver(self: &Arc<Self>) -> (String, String) {
        let runs = Arc::clone(self);
        let ask = || async move {
            let cwd = runs.config.cwd.clone();
            let result = tokio::task::spawn_blocking(move || identity::approver(&cwd)).await;
            result.unwrap_or_else(|_| (identity::account(), "the account".to_owned()))
        };
        self.approver.get_or_init(ask).await.clone()
    }
}

/// Appends to the reason of an approval who else has to approve.
fn with_approvals(why: String, run: &RunRecord, required: &RequiredApprovals) -> String {
    let mut parts = vec![why];
    if required.need > 1 {
        let so_far = match &run.gate {
            Some(Gate::Human { approvals, .. }) if !approvals.is_empty() => {
                format!("so far {}{}", approvals.by.join(", "), approvals.shared_choice())
            }
            _ => "none has yet".to_owned(),
        };
        parts.push(format!("{} people have to approve, {so_far}", required.need));
    }
    if required.not_by_starter {
        let starters: Vec<&str> = run.starters().collect();
        let what = if starters.len() > 1 { "who started it or changed its inputs" } else { "who started it" };
        parts.push(format!("not {}, {what}", starters.join(" or ")));
    }
    parts.extend(required.of.iter().map(|list| format!("by {} only", list.join(", "))));
    parts.join("; ")
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

/// Returns the newest events of a run, as many as a response contains.
async fn newest_events(store: &dyn Store, run: &RunId) -> Result<Vec<RunEvent>, Error> {
    let mut events: VecDeque<(usize, RunEvent)> = VecDeque::new();
    let (mut bytes, mut after) = (0, 0);
    loop {
        let page = store.events(Some(run), after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for event in page {
            let size = skills_runs::memory_bytes(&event.event.data);
            bytes += size;
            events.push_back((size, event));
        }
        while events.len() > MAX_EVENTS || (bytes > MAX_EVENT_BYTES && events.len() > 1) {
            bytes -= events.pop_front().map_or(0, |(size, _)| size);
        }
    }
    Ok(events.into_iter().map(|(_, event)| event).collect())
}
