//! Attaches a skill: makes the four checks in order, passes the target's content on, and previews the effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use strum::IntoEnumIterator as _;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::contracts::{self, SkillContract};
use super::launch::policy_options;
use super::lease_holder::with_holder;
use super::possible_calls::{self, PossibleCall};
use super::references::{self, ResolvedTarget};
use super::runtime::{RunRuntime, RunStore};
use super::{Launches, Plans, Targets, Workers, workers};
use crate::operations::RunObserver;
use crate::run_types::SKIPPED;
use crate::{
    AttachCheck, AttachCheckResult, AttachPreview, AttachReason, AttachRequest, Attached, Code, Error,
    content, reproduce,
};
use skills_config::operands;
use skills_model::RunState;
use skills_runs::check_inputs;
use skills_skill::{AttachTarget, EffectMode, Invocation, Skill};
use skills_store::{RunId, RunOptions};

/// Maximum number of targets that are read at the same time.
pub(super) const MAX_PREPARED: usize = 4;

/// Maximum number of references suggested by a failed lookup.
const MAX_OFFERED_TARGETS: usize = 3;

/// The results of the four checks.
struct AttachChecks {
    checks: Vec<AttachCheckResult>,
    failed: Option<(AttachReason, Error)>,
    read: Option<SkillContract>,
    target: Option<(AttachTarget, ResolvedTarget)>,
}

impl AttachChecks {
    fn record_passed(&mut self, check: AttachCheck, note: String) {
        self.checks.push(AttachCheckResult { check, passed: Some(true), note });
    }

    /// Fails a check; the later ones are not made.
    fn fails(mut self, check: AttachCheck, value: &str, allowed: Vec<String>, error: Error) -> Self {
        self.checks.push(AttachCheckResult { check, passed: Some(false), note: error.message.clone() });
        for later in AttachCheck::iter().filter(|later| *later > check) {
            let note = SKIPPED.to_owned();
            self.checks.push(AttachCheckResult { check: later, passed: None, note });
        }
        let reason = AttachReason { check, value: value.to_owned(), allowed, cause: None };
        self.failed = Some((reason, error));
        self
    }
}

/// Attachments of skills to targets.
pub(in crate::local) struct Attachments {
    pub(super) store: Arc<RunStore>,
    pub(super) plans: Arc<Plans>,
    pub(super) targets: Targets,
    /// Permits to read targets, which may have many megabytes.
    pub(super) preparing: Semaphore,
    pub(super) launches: Arc<Launches>,
    pub(super) workers: Arc<Workers>,
}

impl Attachments {
    /// Attaches a skill to a target; if its run is waited for, at most until `leave` fires, and the observer receives it
    /// before.
    pub(super) async fn attach(
        &self,
        request: AttachRequest,
        leave: &CancellationToken,
        observer: &RunObserver,
    ) -> Result<Attached, Error> {
        let runtime = self.store.runtime().await?;
        let preparing = self.preparing.acquire().await;
        let looked = self.look(&runtime, &request).await?;
        if let Some((reason, error)) = looked.failed {
            return Err(Error { reason: serde_json::to_value(reason).ok(), ..error });
        }
        let (Some(read), Some((target_type, found))) = (looked.read, looked.target) else {
            return Err(Error::new(
                Code::InternalError,
                "the checks of an attachment ended without a result",
            ));
        };
        let plans = Arc::clone(&self.plans);
        let (skill, inputs, options) = (Arc::clone(&read.skill), request.inputs, request.options.clone());
        let prepared = crate::work::run_blocking(move || plans.prepare(&skill, &inputs, &options)).await?;
        let mut target = json!({
            "type": target_type, "ref": request.target_ref,
            "effect_mode": read.skill.classification.effect_mode.value,
        });
        if let Some(run) = &found.run {
            target["run"] = json!(run.id);
            if steers(&read.skill)
                && let Some(why) = workers::signal_refusal(&self.store, &runtime, run).await?
            {
                target["signal_refused"] = json!(why);
            }
        }
        // Last, so that lists need not read it.
        target["content"] = found.content;
        let launched =
            self.launches.begin(prepared, Some(target), &request.options, request.started_by).await?;
        drop(preparing);
        let mut control = None;
        let execution = if request.options.wait {
            observer.report(&launched.run);
            // The contents of the target are not held while the run is waited for.
            let id = launched.run.id.clone();
            drop((launched, found.run));
            let execution = self.workers.wait_for_completion(&id.0, leave).await?;
            // The control request was already applied when the run ended; the store returns its outcome again.
            control = workers::steer(&self.store, &runtime, &execution).await?;
            execution
        } else {
            self.launches.returned(launched, false).await?.run
        };
        Ok(Attached {
            skill_id: read.skill.id.clone(),
            target_type,
            target_ref: request.target_ref,
            execution: with_holder(execution),
            control,
            attached_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        })
    }

    /// Returns the four checks and what attaching would do.
    pub(super) async fn attach_preview(&self, request: AttachRequest) -> Result<AttachPreview, Error> {
        let runtime = self.store.runtime().await?;
        let _preparing = self.preparing.acquire().await;
        let looked = self.look(&runtime, &request).await?;
        let skill = looked.read.as_ref().map(|read| Arc::clone(&read.skill));
        let input_problems = looked
            .read
            .as_ref()
            .and_then(|read| check_inputs(&read.contract.inputs, &request.inputs).err())
            .unwrap_or_default()
            .into_iter()
            .map(|problem| (problem.field, problem.message))
            .collect();
        let found = looked.target.as_ref().map(|(_, found)| found);
        let may_do = match &looked.read {
            Some(read) => self.may_do(read, found, policy_options(&request.options)).await?,
            None => Vec::new(),
        };
        let named = skill.as_ref().map_or(request.skill.as_str(), |skill| skill.id.as_str());
        Ok(AttachPreview {
            reason: looked.failed.map(|(reason, _)| reason),
            checks: looked.checks,
            target_label: found.map(|found| found.label.clone()),
            content: found.map(|found| content::cut(&found.content)),
            content_bytes: found.map(|found| found.content.to_string().len() as u64),
            input_problems,
            effect_mode: skill.as_ref().map(|skill| skill.classification.effect_mode.value),
            may_do,
            cli: reproduce::cli(named, &request),
            curl: reproduce::curl(reproduce::DEFAULT_ADDRESS, named, &request),
        })
    }

    /// Performs the four checks, each only if those before it pass.
    async fn look(&self, runtime: &RunRuntime, request: &AttachRequest) -> Result<AttachChecks, Error> {
        let mut looked = AttachChecks { checks: Vec::new(), failed: None, read: None, target: None };
        let read = match self.loads(&request.skill).await {
            Ok(read) => read,
            Err(error) => {
                let allowed = error.suggestions.clone();
                let cause = Some(error.code);
                let error = Error { code: Code::AttachInvalid, ..error };
                looked = looked.fails(AttachCheck::Exists, &request.skill, allowed, error);
                looked.failed =
                    looked.failed.map(|(reason, error)| (AttachReason { cause, ..reason }, error));
                return Ok(looked);
            }
        };
        let skill = Arc::clone(&read.skill);
        looked.record_passed(AttachCheck::Exists, format!("{} {} loaded", skill.id, read.contract.version));
        looked.read = Some(read);

        let invocation = skill.classification.invocation.value;
        if invocation == Invocation::Direct {
            let id = operands([skill.id.as_str()]);
            // A caller over MCP may have no command line.
            let run = format!("run it with `skills run {id}`, or the operation `skill.execute`");
            let message = format!("{} cannot be attached; {run}", skill.id);
            let allowed = vec![Invocation::Attach.to_string(), Invocation::Both.to_string()];
            let error = Error::new(Code::AttachInvalid, message);
            return Ok(looked.fails(AttachCheck::Invocation, &invocation.to_string(), allowed, error));
        }
        let found = if invocation == Invocation::Both {
            "can be attached or invoked directly"
        } else {
            "can be attached"
        };
        looked.record_passed(AttachCheck::Invocation, found.to_owned());

        let targets = &skill.classification.attach_targets;
        let allowed: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let target_type = request.target_type.trim();
        let kind = target_type.parse::<AttachTarget>().ok().filter(|kind| targets.contains(kind));
        let Some(kind) = kind else {
            let message = if allowed.is_empty() {
                format!("{} declares no targets in its classification", skill.id)
            } else {
                let (skill, allowed) = (&skill.id, allowed.join(", "));
                format!("`{skill}` cannot be attached to `{target_type}`; expected one of: {allowed}")
            };
            let error = Error::new(Code::AttachInvalid, message);
            return Ok(looked.fails(AttachCheck::TargetType, target_type, allowed, error));
        };
        looked.record_passed(AttachCheck::TargetType, format!("accepts {}", allowed.join(", ")));

        let (sessions, local_files) = (&request.sessions, request.local_files.as_ref());
        match self.targets.target(runtime, kind, &request.target_ref, sessions, local_files).await {
            Ok(found) => {
                looked.record_passed(AttachCheck::Target, found.label.clone());
                looked.target = Some((kind, found));
                Ok(looked)
            }
            Err(error) if matches!(error.code, Code::TargetNotFound | Code::PayloadTooLarge) => {
                let choices = self
                    .targets
                    .target_choices(kind, "", MAX_OFFERED_TARGETS, sessions, local_files)
                    .await
                    .unwrap_or_default();
                let mut allowed = vec![references::forms(kind, local_files).to_owned()];
                allowed.extend(choices.into_iter().map(|choice| choice.target_ref));
                Ok(looked.fails(AttachCheck::Target, &request.target_ref, allowed, error))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a skill whose contract loads without errors.
    async fn loads(&self, requested: &str) -> Result<SkillContract, Error> {
        let (skills, requested) = (self.plans.skills.clone(), requested.to_owned());
        crate::work::run_blocking(move || {
            let read = contracts::read(&skills.resolve(&requested)?)?;
            match contracts::broken(&read) {
                Some(error) => Err(error),
                None => Ok(read),
            }
        })
        .await
    }

    /// Describes what a run of the skill with these options may do to the target and beyond.
    async fn may_do(
        &self,
        read: &SkillContract,
        found: Option<&ResolvedTarget>,
        options: RunOptions,
    ) -> Result<Vec<String>, Error> {
        let (plans, read) = (Arc::clone(&self.plans), read.clone());
        let run = found.and_then(|found| found.run.as_ref()).map(|run| (run.id.clone(), run.state));
        crate::work::run_blocking(move || {
            let mut out = vec![effect(&read.skill)];
            if let Some((id, state)) = run.filter(|_| steers(&read.skill)) {
                out.push(effect_of_signals(&id, state));
            }
            let capabilities = plans.services.capabilities()?;
            let plan = plans.pin_untrusting(&read, None).ok();
            let no_skills = BTreeMap::new();
            let skills = plan.as_ref().map_or(&no_skills, |plan| &plan.skills);
            let mut acting = possible_calls::of_steps(&read.contract.steps, skills, &capabilities);
            acting.retain(PossibleCall::acts);
            if acting.is_empty() && plan.is_some() {
                out.push("no step declares external side effects".to_owned());
            }
            for call in acting {
                let how = if call.requires_approval() {
                    ", after approval"
                } else if call.is_gate {
                    ", as a gate"
                } else {
                    ""
                };
                out.push(format!("{} has external side effects{how}", call.capability.id));
            }
            if let Err(error) = plans.ensure_trusted(&read) {
                out.push(error.message);
            }
            let approval = match &plan {
                Some(plan) => plans.permissions.approval_of_plan(read.skill.id.as_str(), plan, &options),
                None => plans.permissions.approval(&read.skill),
            };
            match approval {
                Ok(Some(rule)) => out.push(format!("requires approval before its first step: {rule}")),
                Ok(None) => {}
                Err(error) => out.push(error.message),
            }
            Ok(out)
        })
        .await
    }
}

/// Describes when control signals take effect on a run in this state.
fn effect_of_signals(id: &RunId, state: RunState) -> String {
    let effect = if state.is_terminal() {
        "control signals no longer have an effect"
    } else {
        "a pause takes effect before its next step, a cancellation immediately"
    };
    let clause = state.clause();
    format!("run {id} {}: {effect}", clause.strip_prefix("it ").unwrap_or(&clause))
}

fn steers(skill: &Skill) -> bool {
    skill.classification.effect_mode.value == EffectMode::ControlSignal
}

fn effect(skill: &Skill) -> String {
    match skill.classification.effect_mode.value {
        EffectMode::ReadOnly => "reads the target and its inputs; declares no side effects".to_owned(),
        EffectMode::Enrich => "reads the target and its inputs, and returns information about it".to_owned(),
        EffectMode::ControlSignal => "can pause or cancel the target run, or send it a signal".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn effect_of_signals_names_the_state_in_prose() {
        let message = effect_of_signals(&RunId("r1".to_owned()), RunState::WaitingForHuman);
        assert!(message.starts_with("run r1 is waiting for approval: "), "{message}");
        let message = effect_of_signals(&RunId("r1".to_owned()), RunState::Failed);
        assert!(message.starts_with("run r1 has failed: "), "{message}");
    }

    #[test]
    fn checks_after_a_failed_one_are_skipped() {
        let mut looked = AttachChecks { checks: Vec::new(), failed: None, read: None, target: None };
        looked.record_passed(AttachCheck::Exists, "a 1.0.0, loads".to_owned());
        let error = Error::new(Code::AttachInvalid, "run directly");
        let looked = looked.fails(AttachCheck::Invocation, "direct", vec!["attach".to_owned()], error);
        let results: Vec<Option<bool>> = looked.checks.iter().map(|check| check.passed).collect();
        assert_eq!(results, [Some(true), Some(false), None, None]);
        let (reason, _) = looked.failed.unwrap();
        let wire: Value = serde_json::to_value(reason).unwrap();
        assert_eq!(wire, json!({ "check": "invocation", "given": "direct", "allowed": ["attach"] }));
    }
}
