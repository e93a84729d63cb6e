//! The contract of a skill with details of each step: its binding, its gates, and whether repeating it is safe.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::contracts::{self, SkillContract};
use super::possible_calls::{self, PossibleCall};
use super::runtime::{CallServices, CapabilityServices};
use super::{Permissions, Plans, decision_preview};
use crate::{ContractStep, ContractView, Error};
use skills_base::canonical::digest_of;
use skills_config::Config;
use skills_runs::{Caller as _, Capabilities, Explanation, Plan};
use skills_skill::contract::{Conformance, Contract, Step, StepAction};
use skills_skill::{Finding, Severity};
use skills_store::RunOptions;

/// The contracts of skills as they are shown.
#[derive(Clone)]
pub(in crate::local) struct ContractViews {
    pub(super) config: Arc<Config>,
    pub(super) plans: Arc<Plans>,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) permissions: Arc<Permissions>,
}

impl ContractViews {
    pub(super) async fn contract_view(&self, requested: &str) -> Result<ContractView, Error> {
        let (views, requested) = (self.clone(), requested.to_owned());
        crate::work::run_blocking(move || {
            let read = contracts::read(&views.plans.skills.resolve(&requested)?)?;
            views.view(&read)
        })
        .await
    }

    fn view(&self, read: &SkillContract) -> Result<ContractView, Error> {
        let capabilities = self.services.capabilities()?;
        let calling = self.services.calling()?;
        let pinned = self.plans.pin_untrusting(read, None);
        let approval = match &pinned {
            Ok(plan) => {
                let options = RunOptions::default();
                self.permissions.approval_of_plan(read.skill.id.as_str(), plan, &options)
            }
            Err(_) => self.permissions.approval(&read.skill),
        };
        let (approval, forbidden) = match approval {
            Ok(approval) => (approval, None),
            Err(error) => (None, Some(error.message)),
        };
        let pinned = pinned.map(|plan| Plan { approval, ..plan });
        let no_skills = BTreeMap::new();
        let mut views = StepViews {
            conformance: self.config.conformance,
            skills: pinned.as_ref().map_or(&no_skills, |plan| &plan.skills),
            capabilities: &capabilities,
            calling: &calling,
            explained: BTreeMap::new(),
            nested: BTreeMap::new(),
        };
        let steps: Vec<ContractStep> = read.contract.steps.iter().map(|step| views.view(step)).collect();
        let mut findings = read.contract.findings.clone();
        findings.extend(of_bundle(read, &capabilities));
        let broken =
            contracts::broken(read).or_else(|| pinned.as_ref().err().cloned()).map(|error| error.message);
        let untrusted = self.plans.ensure_trusted(read).err().map(|error| error.message);
        let contract = (*read.contract).clone();
        Ok(ContractView {
            skill_id: read.skill.id.clone(),
            digest: pinned.map_or_else(|_| unpinned(read), |plan| plan.digest()),
            blocked: broken.or(untrusted).or(forbidden),
            isolation: calling.sandbox.report().summary(),
            steps,
            findings,
            contract,
        })
    }
}

/// What holds for all that a step may call.
#[derive(Clone)]
struct CallSummary {
    gates: Vec<String>,
    unapproved: Option<String>,
    effect: String,
    acts: bool,
}

/// Describes the steps of a contract.
struct StepViews<'a> {
    conformance: Conformance,
    /// The contracts that the steps run, directly or through others.
    skills: &'a BTreeMap<String, Arc<Contract>>,
    capabilities: &'a Capabilities,
    calling: &'a CallServices,
    /// The bindings of the capabilities of earlier steps: many steps can call one with many bindings.
    explained: BTreeMap<&'a str, Option<Explanation>>,
    /// The summaries of skills that earlier steps run.
    nested: BTreeMap<&'a str, CallSummary>,
}

impl<'a> StepViews<'a> {
    fn view(&mut self, step: &'a Step) -> ContractStep {
        let called = step.called_capabilities();
        let (mut bindings, mut unbound) = (Vec::new(), false);
        for &id in &called {
            let explain = || {
                let capability = self.capabilities.capability(id)?;
                Some(self.calling.broker.explain(capability, &self.conformance.into()))
            };
            let explanation = self.explained.entry(id).or_insert_with(explain).as_ref();
            let words =
                explanation.map_or_else(|| format!("unknown capability {id}"), decision_preview::binding);
            bindings.push(if called.len() > 1 { format!("{id}: {words}") } else { words });
            unbound = unbound || explanation.is_none_or(|explanation| explanation.chosen.is_none());
        }
        let summarize = || {
            let calls = possible_calls::of_steps([step], self.skills, self.capabilities);
            CallSummary {
                gates: possible_calls::gates(&calls),
                unapproved: possible_calls::unapproved(&calls),
                effect: effect(step, &calls, self.capabilities),
                acts: calls.iter().any(PossibleCall::acts),
            }
        };
        let summary = if let StepAction::Skill(id) = &step.action {
            self.nested.entry(id).or_insert_with(summarize).clone()
        } else {
            summarize()
        };
        ContractStep {
            id: step.id.clone(),
            after: step.depends_on.clone(),
            uses: match &step.action {
                StepAction::Capability(_) => format!("capability {}", called.join(", ")),
                StepAction::Skill(id) => format!("skill {id}"),
                StepAction::WaitForSignal(name) => format!("signal {name}"),
            },
            flow: flow(step),
            binding: (!bindings.is_empty()).then(|| bindings.join("; ")),
            unbound,
            gates: summary.gates,
            unapproved: summary.unapproved,
            effect: summary.effect,
            acts: summary.acts,
        }
    }
}

/// Returns a digest for a contract without a plan, computed from its text.
fn unpinned(read: &SkillContract) -> String {
    digest_of(&serde_json::to_value(&*read.contract).unwrap_or_default())
}

/// Describes the control flow in a few words.
fn flow(step: &Step) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(condition) = &step.condition {
        words.push(format!("if {condition}"));
    }
    if let Some(foreach) = &step.foreach {
        words.push(format!("for each {} of {}", foreach.item, foreach.items));
    }
    if let Some(repeat) = &step.repeat {
        words.push(format!("while {}, at most {} times", repeat.condition, repeat.max_iterations));
    }
    if let Some(router) = &step.router {
        let cases: Vec<&str> = router.cases.keys().map(String::as_str).collect();
        words.push(format!("by {}: {}", router.on, cases.join(", ")));
    }
    if let Some(scatter) = &step.scatter {
        words.push(format!("{} in parallel, {}", scatter.capabilities.len(), scatter.merge));
    }
    if let Some(retry) = step.retry.filter(|retry| retry.max_attempts > 1) {
        words.push(format!("{} attempts", retry.max_attempts));
    }
    if let Some(timeout) = step.timeout {
        words.push(format!("at most {} s", timeout.as_secs_f64()));
    }
    words
}

/// Describes whether repeating a step is safe.
fn effect(step: &Step, calls: &[PossibleCall<'_>], capabilities: &Capabilities) -> String {
    let acting: Vec<&PossibleCall<'_>> = calls.iter().filter(|call| call.acts()).collect();
    match step.action {
        StepAction::WaitForSignal(_) => return "waits, no side effects".to_owned(),
        StepAction::Skill(_) if acting.is_empty() => return "those of its steps".to_owned(),
        StepAction::Skill(_) | StepAction::Capability(_) => {}
    }
    if step.called_capabilities().into_iter().any(|id| capabilities.capability(id).is_none()) {
        "unknown: a capability is missing".to_owned()
    } else if acting.is_empty() {
        "no side effects; safe to repeat".to_owned()
    } else if acting.iter().all(|call| call.capability.properties.idempotent) {
        "external side effects; idempotent".to_owned()
    } else {
        "external side effects; not idempotent".to_owned()
    }
}

/// Returns the findings of the capability files in the bundle, and of references of its steps that are missing.
fn of_bundle(read: &SkillContract, capabilities: &Capabilities) -> Vec<Finding> {
    let own = |finding: &&Finding| finding.file.starts_with(&read.skill.root_dir);
    let mut findings: Vec<Finding> = capabilities.findings().iter().filter(own).cloned().collect();
    for finding in &mut findings {
        if let Ok(inside) = finding.file.strip_prefix(&read.skill.root_dir) {
            finding.file = inside.to_owned();
        }
    }
    for step in &read.contract.steps {
        let called = step.called_capabilities().into_iter();
        for id in called.filter(|id| capabilities.capability(id).is_none()) {
            findings.push(Finding {
                code: "contract-reference".to_owned(),
                severity: Severity::Error,
                field: Some(format!("steps.{}", step.id)),
                file: "skill.yaml".into(),
                span: (step.line > 0).then_some(skills_skill::Span {
                    line: step.line,
                    column: 1,
                    offset: 0,
                    length: 0,
                }),
                message: format!("step `{}` calls `{id}`, which is not declared", step.id),
                help: "Add the capability to the bundle's `capabilities/`, or add the root that declares \
                    it."
                .to_owned(),
                fixable: false,
            });
        }
    }
    findings
}
