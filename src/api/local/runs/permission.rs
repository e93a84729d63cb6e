//! What the policy says about a run: the rules for its skill or capability, for the skills that its contracts run, and
//! for the bundles of the capabilities that they call. The strictest of all counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Runs, capability_run, launch};
use crate::{Code, Error, policies};
use skills_registry::Catalogue;
use skills_registry::policy::{Effect, RequiredApprovals, Subject, Verdict};
use skills_runs::{Capabilities, Plan};
use skills_skill::contract::Capability;
use skills_skill::{EffectMode, Role, Skill, SkillId};
use skills_store::{Claimed, RunRecord};

/// Interval between attempts to read an invalid policy for a claimed run.
const POLICY_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// A part of a run to which rules of the policy apply.
#[derive(Clone)]
pub(super) enum Part {
    /// The skill of the run, or one that its contracts run.
    Skill(Arc<Skill>),
    /// The capability of a run of a single one, with the id of that run's skill.
    Capability(String, Arc<Capability>),
    /// The skill whose bundle contains a capability that is called: only its `deny` and `require_approval` apply.
    Bundle(Arc<Skill>, String),
    /// A removed skill or capability, of which only the id is known.
    Removed(String),
}

impl Part {
    fn subject<'a>(&'a self, catalogue: &'a Catalogue, labels: &'a BTreeMap<String, String>) -> Subject<'a> {
        match self {
            Self::Skill(skill) | Self::Bundle(skill, _) => {
                Subject::of(skill, policies::root_label(catalogue, skill)).with_labels(labels)
            }
            Self::Capability(id, capability) => capability_run::subject(id, capability, labels),
            Self::Removed(id) => Subject {
                id,
                tags: &[],
                domain: None,
                role: Role::Utility,
                effect: EffectMode::Enrich,
                location: Path::new(""),
                root: "",
                labels,
            },
        }
    }

    /// Returns the rule that requires an approval before the first step.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the rule.
    fn allowed(&self, verdict: Verdict) -> Result<Option<String>, Error> {
        let forbidden = |message: String| Err(Error::new(Code::Forbidden, message));
        match self {
            Self::Skill(skill) => launch::allowed(&skill.id, verdict),
            Self::Removed(id) => launch::allowed(&SkillId::new(id.as_str()), verdict),
            Self::Capability(id, _) if !verdict.allowed => {
                let why = verdict.denied_by.unwrap_or_else(|| "no rule allows it".to_owned());
                forbidden(format!("the policy forbids {id}: {why}"))
            }
            Self::Capability(..) => Ok(verdict.require_approval),
            Self::Bundle(skill, capability) => {
                let rule = |effect: Effect| verdict.rules.iter().find(|rule| rule.effect == effect);
                match rule(Effect::Deny) {
                    Some(why) => forbidden(format!(
                        "the policy forbids {}, which contains capability:{capability}: {}",
                        skill.id, why.rule
                    )),
                    None => Ok(rule(Effect::RequireApproval).map(|rule| rule.rule.clone())),
                }
            }
        }
    }

    fn skill(&self) -> Option<&Arc<Skill>> {
        match self {
            Self::Skill(skill) | Self::Bundle(skill, _) => Some(skill),
            Self::Capability(..) | Self::Removed(_) => None,
        }
    }
}

/// Returns the skill whose bundle contains a capability.
fn bundle_of<'c>(catalogue: &'c Catalogue, capability: &Capability) -> Option<&'c Arc<Skill>> {
    let winners = catalogue.entries.iter().map(|entry| &entry.skill);
    let all = winners.chain(catalogue.shadowed.iter().map(|loser| &loser.skill));
    let containing = all.filter(|skill| capability.location.starts_with(&skill.root_dir));
    containing.max_by_key(|skill| skill.root_dir.as_os_str().len())
}

impl Runs {
    /// Returns the parts of a run with this skill and plan. Reads from disk.
    pub(super) fn parts(&self, skill_id: &str, plan: &Plan) -> Result<Vec<Part>, Error> {
        let (catalogue, known) = (self.registry.snapshot(), self.capabilities()?);
        let mut parts = vec![self.own_part(skill_id, &known)];
        for id in plan.skills.keys() {
            let found = self.by_contract_id.find(&catalogue, id).map(|found| found.skill);
            let skill = found.or_else(|| catalogue.by_id(id).cloned());
            parts.push(skill.map_or_else(|| Part::Removed(id.clone()), Part::Skill));
        }
        for id in plan.capabilities.keys() {
            let Some(capability) = known.capability(id) else { continue };
            let Some(skill) = bundle_of(&catalogue, capability) else { continue };
            let is_new = |part: &Part| part.skill().is_none_or(|other| other.location != skill.location);
            if parts.iter().all(is_new) {
                parts.push(Part::Bundle(Arc::clone(skill), id.clone()));
            }
        }
        Ok(parts)
    }

    fn own_part(&self, skill_id: &str, known: &Capabilities) -> Part {
        if let Ok(skill) = self.skill(skill_id) {
            return Part::Skill(skill);
        }
        let capability = capability_run::capability_of(skill_id).and_then(|id| known.capability(id));
        match capability {
            Some(capability) => Part::Capability(skill_id.to_owned(), Arc::clone(capability)),
            None => Part::Removed(skill_id.to_owned()),
        }
    }

    /// Returns the first rule that requires an approval before the first step of a run with these parts.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the rule, and `invalid_configuration` for an invalid policy.
    pub(super) fn approval_of_parts(
        &self,
        parts: &[Part],
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Error> {
        let policy = self.deciding()?;
        let catalogue = self.registry.snapshot();
        let mut required = None;
        for part in parts {
            let rule = part.allowed(policy.verdict(&part.subject(&catalogue, labels)))?;
            required = required.or(rule);
        }
        Ok(required)
    }

    /// Like [`Self::approval_of_parts`] for a plan. Reads from disk.
    pub(super) fn approval_of_plan(
        &self,
        skill_id: &str,
        plan: &Plan,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Error> {
        if self.deciding()?.is_empty() {
            return Ok(None);
        }
        self.approval_of_parts(&self.parts(skill_id, plan)?, labels)
    }

    /// Returns what the policy, and the contracts of the run's plan, require for its approval. Reads from disk.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an invalid policy.
    pub(super) fn required_approvals(
        &self,
        run: &RunRecord,
        plan: &Plan,
    ) -> Result<RequiredApprovals, Error> {
        let policy = self.deciding()?;
        let mut required = if policy.approvals.is_empty() {
            RequiredApprovals::default()
        } else {
            let (parts, catalogue) = (self.parts(&run.skill_id, plan)?, self.registry.snapshot());
            let own = parts.iter().filter(|part| !matches!(part, Part::Bundle(..)));
            let subjects: Vec<_> = own.map(|part| part.subject(&catalogue, &run.options.labels)).collect();
            policy.approvals(&subjects)
        };
        let contracts = std::iter::once(&plan.contract).chain(plan.skills.values());
        for approvals in contracts.filter_map(|contract| contract.approvals.as_ref()) {
            required.raise(approvals);
        }
        Ok(required)
    }

    /// Checks that the policy requires no more for a skill than the confirmation of any one person.
    ///
    /// # Errors
    /// Returns `forbidden` with what the policy requires, and `invalid_configuration` for an invalid policy.
    pub(in crate::local) fn ensure_single_approval(&self, skill: &Skill) -> Result<(), Error> {
        let (policy, catalogue) = (self.deciding()?, self.registry.snapshot());
        let required = policy.approvals(&[Subject::of(skill, policies::root_label(&catalogue, skill))]);
        if !required.is_strict() {
            return Ok(());
        }
        let message = format!(
            "the `approvals` of the policy for {} require more than one confirmation by anyone, which a session cannot \
                collect; run its contract instead (skills run {}): its gates collect them",
            skill.id, skill.id
        );
        Err(Error { reason: Some(json!({ "approvals": required })), ..Error::new(Code::Forbidden, message) })
    }

    /// Checks that the current policy permits what a run executes next. Rules may be newer than the run; `is_approved` is
    /// whether its next step is approved.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the rule, and `invalid_configuration` for an invalid policy.
    pub(super) async fn ensure_permitted(
        self: &Arc<Self>,
        run: &RunRecord,
        plan: &Plan,
        is_approved: bool,
    ) -> Result<(), Error> {
        if self.deciding()?.rules.is_empty() {
            return Ok(());
        }
        let (runs, plan) = (Arc::clone(self), plan.clone());
        let (skill_id, labels) = (run.skill_id.clone(), run.options.labels.clone());
        let look = move || runs.approval_of_plan(&skill_id, &plan, &labels);
        match super::super::run_blocking(look).await? {
            Some(rule) if !is_approved => {
                let message = format!(
                    "the policy requires an approval of {} since run {} was launched: {rule}; launch it again",
                    run.skill_id, run.id
                );
                Err(Error::new(Code::Forbidden, message))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the current policy permits a claimed run. Waits while the policy is invalid: a typing error must not
    /// fail every run.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the rule.
    pub(super) async fn permitted_now(self: &Arc<Self>, claimed: &Claimed) -> Result<(), Error> {
        let run = &claimed.run;
        loop {
            let permitted = async {
                if self.deciding()?.rules.is_empty() {
                    return Ok(());
                }
                // An unreadable plan is reported when the run is executed.
                let Ok(plan) = Plan::from_value(&claimed.contract, &run.contract_digest) else {
                    return Ok(());
                };
                // An approval is required before the first step.
                let has_begun = run.head > 0 || run.decided.is_some();
                self.ensure_permitted(run, &plan, plan.approval.is_some() || has_begun).await
            };
            match permitted.await {
                Err(error) if error.code != Code::Forbidden => {
                    tracing::warn!("run {} waits until the policy can be read: {}", run.id, error.message);
                    tokio::time::sleep(POLICY_RETRY_INTERVAL).await;
                }
                permitted => return permitted,
            }
        }
    }
}
