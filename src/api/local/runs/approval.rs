//! The pending approval of a waiting run, compared with what it would do now: a script that was edited since requires
//! approval of its current content, and what cannot be executed cannot be approved.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::{RunRuntime, Runs};
use crate::{Code, Error};
use skills_config::{MEMORY_STORE, quoted};
use skills_model::{ApprovalReason, Choice, Command, Decision, Gate, Verdict};
use skills_registry::{SHIPPED, shipped_versions};
use skills_runs::{PendingGate, Plan};
use skills_skill::contract::Capability;
use skills_store::{RunId, RunRecord, StoreError};

impl Runs {
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
        self.refresh().await?;
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
            if self.elsewhere(&run).is_some() {
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

    /// Replaces the pending question of a waiting run, unless it continued meanwhile.
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

    /// Returns why this process cannot execute a run: it does not read the skills that the run was launched from.
    pub(super) fn elsewhere(&self, run: &RunRecord) -> Option<String> {
        if run.state.is_terminal() {
            return None;
        }
        let Some(place) = &run.options.place else {
            let why = "the root of its skill is not recorded, so no worker executes it: cancel it, and launch it again";
            return Some(why.to_owned());
        };
        (!self.places().contains(place)).then(|| {
            let shipped = shipped_versions(&self.config.dirs.cache);
            if place == SHIPPED || Path::new(place).parent() == Some(&shipped) {
                // With only the shipped skills, runs are stored in memory unless a store is configured.
                let store = self.store_place().ok().map(|place| place.describe());
                let store = store.filter(|store| store != MEMORY_STORE);
                let store = store.map(|store| format!(" --store {}", quoted(&store))).unwrap_or_default();
                format!(
                    "it was launched from the shipped skills, which are not loaded: use --demo{store}, \
                        or leave it to a worker that loads them"
                )
            } else {
                format!(
                    "it was launched from the skills of {place}, which are not loaded: use --root {}, or \
                        leave it to a worker that loads them",
                    quoted(place)
                )
            }
        })
    }

    /// Returns why an approval could only lead to a failed step or to a run that no worker here can continue, with what
    /// to do; `None` if it can be executed. Reads files.
    pub(super) fn find_blocker(
        &self,
        runtime: &RunRuntime,
        run: &RunRecord,
        plan: &Plan,
        capability: Option<&Capability>,
    ) -> Option<Error> {
        let Some(Gate::Human { step, .. }) = &run.gate else { return None };
        if let Some(why) = self.elsewhere(run) {
            // What exactly an approval would run cannot be read here.
            let message = format!("{why}. The run keeps waiting; you can still deny it");
            return Some(Error::new(Code::InvalidConfiguration, message));
        }
        // Before the first step: the first step that could start.
        let first = || plan.contract.steps.iter().find_map(|step| plan.capability_of(step)).map(Arc::as_ref);
        let found = runtime.engine.obstacle(run, capability.or_else(first)?)?;
        let message = format!(
            "step {step} cannot be executed, so an approval would make it fail: {}. The run keeps \
                waiting; you can still deny it",
            found.message
        );
        let reason = json!({ "step": step, "binding": found.binding });
        Some(Error { reason: Some(reason), ..Error::new(Code::from(found.code), message) })
    }

    /// Rejects the approval of what cannot be executed, and of what was edited since it was reviewed, and records
    /// nothing. A denial is always accepted. If the decision is about a current question that is not recorded yet,
    /// records the question.
    pub(super) async fn check_approval(
        self: &Arc<Self>,
        runtime: &Arc<RunRuntime>,
        run: RunRecord,
        decision: &Decision,
    ) -> Result<RunRecord, Error> {
        let is_pending = decision.answers(run.gate.as_ref());
        let runs_it =
            decision.verdict == Verdict::Approve && matches!(decision.choice, None | Some(Choice::Rerun));
        let at_step = matches!(&run.gate, Some(Gate::Human { step, .. }) if *step == decision.step);
        let names_none = decision.verdict == Verdict::Deny && decision.inputs_digest.is_empty();
        if !at_step || names_none || (is_pending && !runs_it) {
            return Ok(run);
        }
        let (now, at) = self.at_gate(runtime, run.clone()).await?;
        let Some(Gate::Human { step, inputs_digest, why, .. }) = &now.gate else { return Ok(now) };
        let mut is_recorded = now.gate == run.gate;
        if !is_recorded {
            // It may have continued since it was read, and wait again.
            let present = runtime.store.run(&now.id).await?;
            is_recorded = present.is_some_and(|present| present.gate == now.gate);
        }
        if is_recorded && !decision.answers(now.gate.as_ref()) {
            // The store reports the current question.
            return Ok(now);
        }
        let what = match why {
            ApprovalReason::Changed { what, .. } => what.clone(),
            _ => "the pending request has changed".to_owned(),
        };
        if *inputs_digest != decision.inputs_digest {
            let message = format!(
                "no decision made: {what}. Review what it would execute now (skills runs show {}), then \
                    approve that: step {step}, inputs_digest {inputs_digest}",
                now.id
            );
            let reason = json!({ "step": step, "inputs_digest": inputs_digest, "changed": what });
            return Err(Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) });
        }
        if runs_it {
            let plan = runtime.plan(&now.contract_digest).await?;
            let own = plan.step_at(step).and_then(|step| plan.capability_of(step)).cloned();
            let capability = at.map_or(own, |at| at.capability);
            let (runs, runtime, waiting) = (Arc::clone(self), Arc::clone(runtime), now.clone());
            super::super::run_blocking(move || {
                runs.find_blocker(&runtime, &waiting, &plan, capability.as_deref()).map_or(Ok(()), Err)
            })
            .await?;
        }
        if let (false, Some(gate)) = (is_recorded, now.gate.clone()) {
            Self::record_question(runtime, &now.id, gate).await?;
        }
        Ok(now)
    }
}
