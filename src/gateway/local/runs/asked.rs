//! What a waiting run asks a person, held against what it would do now: a script that was edited since is asked about as
//! it is, and what cannot be carried out is not agreed to.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::{Room, Runs};
use crate::config::quoted;
use crate::engine::{AtGate, Plan};
use crate::gateway::{Code, Error};
use crate::registry::{SHIPPED, shipped_versions};
use crate::runs::{Asked, Choice, Command, Decision, Gate, Verdict};
use crate::skill::contract::Capability;
use crate::store::{RunRecord, StoreError};

impl Runs {
    /// A run that waits for a person, with what it would do next. Where that is not what it asked about, it asks anew,
    /// once, for whoever looks: one change is one question.
    pub(super) async fn at_gate(
        self: &Arc<Self>,
        room: &Room,
        run: RunRecord,
    ) -> Result<(RunRecord, Option<AtGate>), Error> {
        let Some(Gate::Human { inputs_digest, .. }) = &run.gate else { return Ok((run, None)) };
        room.verify(&run.id).await?;
        self.refresh().await?;
        let Some(at) = room.engine.at_gate(&run.id).await? else { return Ok((run, None)) };
        if at.inputs_digest == *inputs_digest {
            return Ok((run, Some(at)));
        }
        if self.elsewhere(&run).is_some() {
            // Whoever has other scripts cannot tell what this run would do.
            return Ok((run, None));
        }
        let gate = Gate::Human {
            step: at.step.clone(),
            inputs_digest: at.inputs_digest.clone(),
            why: at.why.clone(),
        };
        match room.store.command(&run.id, Command::Ask(gate), None, None, None).await {
            Ok(outcome) => Ok((outcome.run, Some(at))),
            Err(StoreError::Refused(_)) => {
                let present = room.store.run(&run.id).await?;
                Ok((present.unwrap_or(run), None))
            }
            Err(error) => {
                tracing::warn!("run {} asks about what was there before: {error}", run.id);
                Ok((run, None))
            }
        }
    }

    /// Why this process cannot work a run: it does not read the skills that the run was launched from.
    pub(super) fn elsewhere(&self, run: &RunRecord) -> Option<String> {
        let place = run.options.place.as_ref()?;
        (!run.state.is_terminal() && !super::room::places(&self.registry).contains(place)).then(|| {
            let shipped = shipped_versions(&self.config.dirs.cache);
            if place == SHIPPED || Path::new(place).parent() == Some(&shipped) {
                // Beside the shipped skills alone runs are kept in memory, unless a store is named.
                let store = super::room::store_file(self.config.store.as_deref(), &self.config.dirs.data);
                let file = store.ok().flatten().map(|file| format!("sqlite:{}", file.display()));
                let store = file.map(|file| format!(" --store {}", quoted(&file))).unwrap_or_default();
                format!(
                    "it was launched from the shipped skills, which are not read here: say --demo{store}, or leave it \
                     to a workbench that reads them"
                )
            } else {
                format!(
                    "it was launched from the skills of {place}, which are not read here: say --root {}, or leave it to \
                     a workbench that reads them",
                    quoted(place)
                )
            }
        })
    }

    /// Why a yes would lead to nothing but a failed step or a run that nobody here goes on with, with what to do; none
    /// where something can carry it out.
    pub(super) fn stands_in_the_way(
        &self,
        room: &Room,
        run: &RunRecord,
        plan: &Plan,
        capability: Option<&Capability>,
    ) -> Option<Error> {
        let Some(Gate::Human { step, .. }) = &run.gate else { return None };
        if let Some(why) = self.elsewhere(run) {
            // Nobody here can read what exactly a yes would run.
            let message = format!("{why}. The run goes on waiting; a no is always taken");
            return Some(Error::new(Code::InvalidConfiguration, message));
        }
        // Before the first step: the first one that could begin.
        let first = || plan.contract.steps.iter().find_map(|step| plan.capability_of(step)).map(Arc::as_ref);
        let found = room.engine.obstacle(run, capability.or_else(first)?)?;
        let message = format!(
            "step {step} cannot be carried out, so that a yes would only fail it: {}. The run goes on waiting; a no is \
             always taken",
            found.message
        );
        let reason = json!({ "step": step, "binding": found.binding });
        Some(Error { reason: Some(reason), ..Error::new(Code::from(found.code), message) })
    }

    /// Refuses to approve what cannot be carried out and what was edited since it was read: nothing of it is recorded.
    /// A denial is always taken.
    pub(super) async fn agreeable(
        self: &Arc<Self>,
        room: &Room,
        run: RunRecord,
        decision: &Decision,
    ) -> Result<RunRecord, Error> {
        let runs_it = matches!(decision.choice, None | Some(Choice::Rerun));
        let asked = decision.answers(run.gate.as_ref());
        if decision.verdict != Verdict::Approve || !runs_it || !asked {
            return Ok(run);
        }
        let (now, at) = self.at_gate(room, run.clone()).await?;
        let Some(Gate::Human { step, inputs_digest, why }) = &now.gate else { return Ok(now) };
        let what = match why {
            Asked::Changed { what, .. } => what.clone(),
            _ => "what it asks about is not what it was".to_owned(),
        };
        if *inputs_digest != decision.inputs_digest {
            let message = format!(
                "nothing was decided: {what}. Read what it would run now (skills runs show {}), then approve exactly \
                 that: step {step}, inputs_digest {inputs_digest}",
                now.id
            );
            let reason = json!({ "step": step, "inputs_digest": inputs_digest, "changed": what });
            return Err(Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) });
        }
        let plan = room.plan(&now.contract_digest).await?;
        let own = plan.step_at(step).and_then(|step| plan.capability_of(step)).cloned();
        let capability = at.map_or(own, |at| at.capability);
        match self.stands_in_the_way(room, &now, &plan, capability.as_deref()) {
            Some(error) => Err(error),
            None => Ok(now),
        }
    }
}
