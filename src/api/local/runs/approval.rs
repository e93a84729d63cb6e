//! The pending approval of a waiting run, compared with what it would do now: a script that was edited since requires
//! approval of its current content, and what cannot be executed cannot be approved.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use strum::IntoEnumIterator as _;
use tokio::sync::OnceCell;

use super::runtime::{CapabilityServices, LaunchPlaces, RunRuntime};
use super::{Permissions, decision_preview, identity};
use crate::approver_obstacle::{approver_obstacle, waited_s};
use crate::operations::{OS_ACCOUNT, Scope};
use crate::{Code, DecisionPreview, Error};
use skills_config::{Config, quoted};
use skills_model::{ApprovalReason, Choice, Command, Decision, Gate, Verdict};
use skills_registry::Registry;
use skills_registry::policy::{Approver, RequiredApprovals};
use skills_runs::{PendingGate, Plan};
use skills_skill::contract::Capability;
use skills_store::{RunId, RunRecord, StoreError};

/// The pending approvals of waiting runs, as they are now.
pub(in crate::local) struct Approvals {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) permissions: Arc<Permissions>,
    pub(super) places: LaunchPlaces,
    pub(super) approver: OnceCell<(String, String)>,
}

impl Approvals {
    /// Returns a run that waits for approval, with what it would do next. If that differs from the recorded question,
    /// the returned gate is the current one; nothing is recorded.
    pub(super) async fn at_gate(
        self: &Arc<Self>,
        runtime: &RunRuntime,
        run: RunRecord,
    ) -> Result<(RunRecord, Option<PendingGate>), Error> {
        if !matches!(run.gate, Some(Gate::Human { .. })) {
            return Ok((run, None));
        }
        runtime.verify(&run.id).await?;
        self.services.refresh().await?;
        self.present_question(runtime, run).await
    }

    /// Like [`Self::at_gate`], with the skills as they were last read.
    pub(super) async fn present_question(
        &self,
        runtime: &RunRuntime,
        mut run: RunRecord,
    ) -> Result<(RunRecord, Option<PendingGate>), Error> {
        loop {
            let Some(Gate::Human { step, inputs_digest, .. }) = &run.gate else { return Ok((run, None)) };
            let Some(at) = runtime.engine.at_gate(&run.id).await? else { return Ok((run, None)) };
            if at.inputs_digest == *inputs_digest {
                return Ok((run, Some(at)));
            }
            if self.places.elsewhere(&run).is_some() {
                // A process with other scripts cannot determine what this run would do.
                return Ok((run, None));
            }
            // The question may differ because the run was decided and continued between the two reads.
            let present = runtime.store.run(&run.id).await?.unwrap_or_else(|| run.clone());
            if (present.state, &present.gate) != (run.state, &run.gate) {
                run = present;
                continue;
            }
            if at.step != *step {
                return Ok((present, None));
            }
            run.gate = Some(Gate::human(at.step.clone(), at.inputs_digest.clone(), at.why.clone()));
            return Ok((run, Some(at)));
        }
    }

    /// Replaces the pending question of a waiting run, unless it continued in the meantime.
    pub(super) async fn record_question(
        runtime: &RunRuntime,
        run: &RunId,
        gate: Gate,
    ) -> Result<(), StoreError> {
        match runtime.store.command(run, Command::Ask(gate), None, None, None).await {
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns why an approval could only lead to a failed step or to a run that no worker here can continue, with what
    /// to do; `None` if it can be executed. Reads files. If the error contains addresses or paths, its reason is that of
    /// a failed call, whose `message` is for all callers.
    pub(super) fn find_blocker(
        &self,
        runtime: &RunRuntime,
        run: &RunRecord,
        plan: &Plan,
        capability: Option<&Capability>,
    ) -> Option<Error> {
        let Some(Gate::Human { step, .. }) = &run.gate else { return None };
        if let Some(why) = self.places.elsewhere(run) {
            // What exactly an approval would run cannot be read here.
            let message = format!("{why}. The run keeps waiting; you can still deny it");
            return Some(Error::new(Code::InvalidConfiguration, message));
        }
        // Before the first step: the first one that calls something, unless it chooses what.
        let first = || {
            let step = plan.contract.steps.iter().find(|step| !step.called_capabilities().is_empty())?;
            plan.capability_of(step).map(Arc::as_ref)
        };
        let found = runtime.engine.obstacle(run, capability.or_else(first)?)?;
        let describe = |why: &str| {
            format!(
                "step `{step}` cannot be approved, because it cannot be executed: {why}. The run keeps waiting; \
                    you can still deny it"
            )
        };
        let mut reason = json!({ "step": step, "binding": found.binding });
        if let Some(public) = &found.public {
            reason["code"] = json!(found.code);
            reason["kind"] = json!(public.kind);
            reason["capability"] = json!(public.capability);
            reason["message"] = describe(&public.message).into();
            reason["detail"] = found.message.as_str().into();
        }
        let message = describe(&found.message);
        Some(Error { reason: Some(reason), ..Error::new(Code::from(found.code), message) })
    }

    /// Rejects the approval of what cannot be executed, and of what was edited since it was reviewed. A denial is always
    /// accepted. If the decision is about a current question that is not recorded yet, also returns that question; nothing
    /// is recorded.
    pub(super) async fn check_approval(
        self: &Arc<Self>,
        runtime: &Arc<RunRuntime>,
        run: RunRecord,
        decision: &Decision,
    ) -> Result<(RunRecord, Option<Gate>), Error> {
        let is_pending = decision.answers(run.gate.as_ref());
        let runs_it =
            decision.verdict == Verdict::Approve && matches!(decision.choice, None | Some(Choice::Rerun));
        let at_step = matches!(&run.gate, Some(Gate::Human { step, .. }) if *step == decision.step);
        let names_none = decision.verdict == Verdict::Deny && decision.inputs_digest.is_empty();
        if !at_step || names_none || (is_pending && !runs_it) {
            return Ok((run, None));
        }
        let (now, at) = self.at_gate(runtime, run.clone()).await?;
        let Some(Gate::Human { step, inputs_digest, why, .. }) = &now.gate else { return Ok((now, None)) };
        let mut is_recorded = now.gate == run.gate;
        if !is_recorded {
            // It may have continued since it was read, and wait again.
            let present = runtime.store.run(&now.id).await?;
            is_recorded = present.is_some_and(|present| present.gate == now.gate);
        }
        if is_recorded && !decision.answers(now.gate.as_ref()) {
            // The store reports the current question.
            return Ok((now, None));
        }
        let what = match why {
            ApprovalReason::Changed { what, .. } => what.clone(),
            _ => "what it would call from here is not what was asked about: its complete inputs differ, a binding \
                became available or unavailable, or this process has other `services` or `bindings`"
                .to_owned(),
        };
        if *inputs_digest != decision.inputs_digest {
            let message = format!(
                "no decision made: {what}. Review what it would execute now (skills runs show {}), then \
                    approve that: step {step}, inputs_digest {inputs_digest}",
                quoted(&now.id.0)
            );
            let reason = json!({ "step": step, "inputs_digest": inputs_digest, "changed": what });
            return Err(Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) });
        }
        if runs_it {
            let plan = runtime.plan(&now.contract_digest).await?;
            let own = plan.step_at(step).and_then(|step| plan.capability_of(step)).cloned();
            let capability = at.map_or(own, |at| at.capability);
            let (approvals, runtime, waiting) = (Arc::clone(self), Arc::clone(runtime), now.clone());
            crate::work::run_blocking(move || {
                approvals.find_blocker(&runtime, &waiting, &plan, capability.as_deref()).map_or(Ok(()), Err)
            })
            .await?;
        }
        let unrecorded = now.gate.clone().filter(|_| !is_recorded);
        Ok((now, unrecorded))
    }

    /// Returns what a person needs to know to decide the gate of a run; `None` if it waits for no person. `at` is what
    /// it would do next.
    pub(super) async fn decision_preview(
        self: &Arc<Self>,
        runtime: &Arc<RunRuntime>,
        run: &RunRecord,
        plan: &Plan,
        at: Option<&PendingGate>,
    ) -> Result<Option<DecisionPreview>, Error> {
        if !matches!(run.gate, Some(Gate::Human { .. })) {
            return Ok(None);
        }
        let approver = self.approver().await;
        let (mut run, plan, at) = (run.clone(), plan.clone(), at.cloned());
        // The record may be one of a list, without the content of its target.
        if run.target.as_ref().is_some_and(|target| target.get("content").is_none())
            && let Some(complete) = runtime.store.run(&run.id).await?
        {
            run.target = complete.target;
        }
        let (approvals, runtime) = (Arc::clone(self), Arc::clone(runtime));
        crate::work::run_blocking(move || {
            let name = approver.0.clone();
            let preview = decision_preview::preview(&run, &plan, at.as_ref(), &runtime.engine, approver);
            let Some(mut preview) = preview else { return Ok(None) };
            let capability = plan.capability(&preview.capability).map(Arc::as_ref);
            let required = approvals.permissions.required_approvals(&run, &plan)?;
            preview.why = with_approvals(preview.why, &run, &required);
            preview.not_approver = not_approver(&run, &required, &name);
            preview.required = Some(required);
            if let Some(blocker) = approvals.find_blocker(&runtime, &run, &plan, capability) {
                let public = blocker.reason.as_ref().and_then(|reason| reason.get("message")?.as_str());
                preview.blocked_public = public.map(str::to_owned);
                preview.blocked = Some(blocker.message);
            }
            if approvals.places.elsewhere(&run).is_some() {
                "the bindings of the skills it was launched from".clone_into(&mut preview.binding);
                preview.fallbacks.clear();
            }
            Ok(Some(preview))
        })
        .await
    }

    /// Returns the default approver; git is queried once.
    pub(in crate::local) async fn approver(&self) -> (String, String) {
        let cwd = self.config.cwd.clone();
        let ask = || async move {
            let result = crate::work::spawn_blocking(move || identity::approver(&cwd)).await;
            result.unwrap_or_else(|_| (identity::account(), OS_ACCOUNT.to_owned()))
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
                let so_far = approvals.by.len();
                format!("{so_far} so far: {}{}", approvals.by.join(", "), approvals.shared_choice())
            }
            _ => "none yet".to_owned(),
        };
        parts.push(format!("requires {} approvals ({so_far})", required.need));
    }
    if required.not_by_starter {
        let starters: Vec<&str> = run.starters().collect();
        let what = if starters.len() > 1 { " or changed its inputs" } else { "" };
        parts.push(format!("{}, who started the run{what}, cannot approve", starters.join(" and ")));
    }
    let lists = required.approvers(waited_s(run));
    parts.extend(lists.map(|names| format!("approvals only by {}", names.join(", "))));
    parts.join("; ")
}

/// Returns why an approval by the account of this process, with the default name of an approver, does not count.
fn not_approver(run: &RunRecord, required: &RequiredApprovals, name: &str) -> Option<String> {
    let account = identity::account();
    let scopes: BTreeSet<String> = Scope::iter().map(|scope| scope.to_string()).collect();
    let names = [account.as_str(), name];
    approver_obstacle(run, required, Approver { names: &names, scopes: &scopes }, &account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_store::RunOptions;

    #[test]
    fn an_account_that_has_approved_is_not_an_approver() {
        let mut run: RunRecord = serde_json::from_value(json!({
            "id": "a", "skill_id": "demo", "state": "waiting_for_human", "held": false, "gate": null,
            "decided": null, "contract_digest": "c", "inputs": {}, "target": null,
            "options": RunOptions::default(), "outputs": null, "error": null, "trace_id": "t",
            "started_by": "ana", "source": null, "progress": [0, 1], "step": null, "head": 0, "fence": 1,
            "created_ms": 0, "since_ms": 0, "expires_ms": null, "allowed": ["approve"],
        }))
        .unwrap();
        let one = RequiredApprovals::default();
        let two = RequiredApprovals { need: 2, ..RequiredApprovals::default() };
        let mut gate = Gate::human("book", "d", ApprovalReason::Confirmation);
        run.gate = Some(gate.clone());
        assert_eq!(not_approver(&run, &two, "kim"), None);
        if let Gate::Human { approvals, .. } = &mut gate {
            (approvals.need, approvals.by) = (2, vec![identity::account()]);
        }
        run.gate = Some(gate);
        assert!(not_approver(&run, &two, "kim").unwrap().contains("has already approved"));
        assert_eq!(not_approver(&run, &one, "kim"), None, "the rule now requires one approval");
    }
}
