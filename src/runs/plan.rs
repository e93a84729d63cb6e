//! A contract with everything it will need, fixed when a run is launched, so that later edits do not affect the run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::canonical::digest_of;
use skills_skill::Severity;
use skills_skill::contract::expression::Expr;
use skills_skill::contract::{Capability, Contract, Step, StepAction};

/// Maximum nesting depth of skills that run skills.
pub const MAX_DEPTH: usize = 10;

/// A contract, the contracts it runs, and the capabilities that all of them call, including those of gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The contract.
    pub contract: Arc<Contract>,
    /// Contracts it runs, directly or indirectly, by id.
    pub skills: BTreeMap<String, Arc<Contract>>,
    /// Capabilities, by id.
    pub capabilities: BTreeMap<String, Arc<Capability>>,
    /// Description of the policy rule that requires approval before the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

/// A reason why a contract cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum PlanProblem {
    /// The capability is not declared.
    #[error("{used_by}: there is no capability {id:?}")]
    MissingCapability {
        /// The capability.
        id: String,
        /// The step, or the capability that names it as a gate.
        used_by: String,
    },
    /// There is no such skill, or it has no contract.
    #[error("{used_by}: there is no skill {id:?} with a contract")]
    MissingSkill {
        /// The skill.
        id: String,
        /// The step.
        used_by: String,
    },
    /// The contract has errors.
    #[error("the contract of {skill} has errors: {message}")]
    Broken {
        /// The skill.
        skill: String,
        /// The first error, and the number of others.
        message: String,
    },
    /// The skill runs itself, directly or through others.
    #[error("skills call each other in a cycle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// The nesting is deeper than [`MAX_DEPTH`].
    #[error("skills are nested deeper than {MAX_DEPTH}: {}", .0.join(" → "))]
    TooDeep(Vec<String>),
    /// The step does not support the control flow.
    #[error("{step}: {message}")]
    Unfit {
        /// The step.
        step: String,
        /// What is unsupported, and what to do.
        message: String,
    },
}

/// All reasons why a contract cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanError {
    /// The reasons; at least one.
    pub problems: Vec<PlanProblem>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for PlanError {}

impl PlanError {
    /// Returns whether the nesting is too deep, which has an error code of its own.
    #[must_use]
    pub fn too_deep(&self) -> bool {
        self.problems.iter().any(|problem| matches!(problem, PlanProblem::TooDeep(_)))
    }
}

/// Collects everything a plan needs.
struct Closure<'a> {
    find_skill: &'a dyn Fn(&str) -> Option<Arc<Contract>>,
    find_capability: &'a dyn Fn(&str) -> Option<Arc<Capability>>,
    skills: BTreeMap<String, Arc<Contract>>,
    capabilities: BTreeMap<String, Arc<Capability>>,
    problems: Vec<PlanProblem>,
}

impl Plan {
    /// Fixes a contract: follows nested skills to depth [`MAX_DEPTH`], and every capability of steps, routers, scatters
    /// and gates.
    ///
    /// # Errors
    /// Returns [`PlanError`] with every missing skill and capability, every cycle, and every contract with errors.
    pub fn pin(
        contract: &Contract,
        skills: &dyn Fn(&str) -> Option<Arc<Contract>>,
        capabilities: &dyn Fn(&str) -> Option<Arc<Capability>>,
        approval: Option<String>,
    ) -> Result<Self, PlanError> {
        let mut closure = Closure {
            find_skill: skills,
            find_capability: capabilities,
            skills: BTreeMap::new(),
            capabilities: BTreeMap::new(),
            problems: Vec::new(),
        };
        closure.contract(contract, &mut Vec::new());
        let Closure { skills, capabilities, problems, .. } = closure;
        if !problems.is_empty() {
            return Err(PlanError { problems });
        }
        Ok(Self { contract: Arc::new(normalized(contract)), skills, capabilities, approval })
    }

    /// Returns the SHA-256 of the plan's canonical JSON: two plans with the same digest run the same. File locations,
    /// lines of steps and lint findings are not part of a plan.
    #[must_use]
    pub fn digest(&self) -> String {
        digest_of(&self.to_value())
    }

    /// Returns the plan as it is stored with a run.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Contains only text keys and JSON values, so serialization cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Restores a plan that was stored under `digest`.
    ///
    /// # Errors
    /// Returns a message if it was modified since, or written by an incompatible version.
    pub fn from_value(value: &Value, digest: &str) -> Result<Self, String> {
        if digest_of(value) != digest {
            return Err(
                "the stored contract was modified after it was written, by a disk error or another program; \
                launch the skill again, or restore a backup"
                    .to_owned(),
            );
        }
        Self::deserialize(value).map_err(|error| format!("cannot read the stored plan of the run: {error}"))
    }

    /// Returns a capability of the plan.
    #[must_use]
    pub fn capability(&self, id: &str) -> Option<&Arc<Capability>> {
        self.capabilities.get(id)
    }

    /// Returns the capability that a step calls; `None` for a nested skill and a signal.
    #[must_use]
    pub fn capability_of(&self, step: &Step) -> Option<&Arc<Capability>> {
        match &step.action {
            StepAction::Capability(id) => self.capability(id),
            StepAction::Skill(_) | StepAction::WaitForSignal(_) => None,
        }
    }

    /// Returns the contract at a nesting path (`report`, `report/render`; empty for the run's own).
    #[must_use]
    pub fn contract_at(&self, frame: &str) -> Option<&Arc<Contract>> {
        let mut contract = &self.contract;
        for id in frame.split('/').filter(|id| !id.is_empty()) {
            let step = contract.steps.iter().find(|step| step.id == id)?;
            let StepAction::Skill(skill) = &step.action else { return None };
            contract = self.skills.get(skill)?;
        }
        Some(contract)
    }

    /// Returns the step that a path belongs to: `each` for `each[2]`, `send` for `send~gate:pii.detect`, `render` of
    /// the nested contract for `report/render`.
    #[must_use]
    pub fn step_at(&self, path: &str) -> Option<&Step> {
        let owner = path.split_once('~').map_or(path, |(owner, _)| owner);
        let (frame, id) = owner.rsplit_once('/').unwrap_or(("", owner));
        let id = id.split_once('[').map_or(id, |(id, _)| id);
        self.contract_at(frame)?.steps.iter().find(|step| step.id == id)
    }
}

/// Removes from a contract what does not affect its run.
fn normalized(contract: &Contract) -> Contract {
    let mut contract = contract.clone();
    contract.findings.clear();
    contract.location = PathBuf::new();
    for step in &mut contract.steps {
        step.line = 0;
    }
    contract
}

impl Closure<'_> {
    fn contract(&mut self, contract: &Contract, above: &mut Vec<String>) {
        if let Some(start) = above.iter().position(|id| *id == contract.id) {
            let circle = above[start..].iter().chain([&contract.id]).cloned().collect();
            self.problems.push(PlanProblem::Cycle(circle));
            return;
        }
        above.push(contract.id.clone());
        if above.len() > MAX_DEPTH + 1 {
            self.problems.push(PlanProblem::TooDeep(above.clone()));
        } else {
            self.errors_of(contract);
            for step in &contract.steps {
                self.step(contract, step, above);
            }
        }
        above.pop();
    }

    fn errors_of(&mut self, contract: &Contract) {
        let errors: Vec<_> = contract.findings.iter().filter(|f| f.severity == Severity::Error).collect();
        let Some(first) = errors.first() else { return };
        let line = first.span.map(|span| format!("line {}: ", span.line)).unwrap_or_default();
        let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
        let message = format!("{line}{}{more}; see skills lint", first.message);
        self.note(PlanProblem::Broken { skill: contract.id.clone(), message });
    }

    fn step(&mut self, contract: &Contract, step: &Step, above: &mut Vec<String>) {
        let place = format!("{}, step {}", contract.id, step.id);
        self.flow(step, &place);
        match &step.action {
            StepAction::WaitForSignal(_) => {}
            StepAction::Skill(id) => match self.skills.get(id).cloned().or_else(|| (self.find_skill)(id)) {
                Some(nested) => {
                    self.contract(&nested, above);
                    self.skills.entry(id.clone()).or_insert_with(|| Arc::new(normalized(&nested)));
                }
                None => self.note(PlanProblem::MissingSkill { id: id.clone(), used_by: place }),
            },
            // With a router or a scatter the step's own capability is only a name for planning.
            StepAction::Capability(id) => {
                let router = step.router.iter().flat_map(|r| r.cases.values().chain(&r.default));
                let scatter = step.scatter.iter().flat_map(|s| &s.capabilities);
                let mut called: Vec<&String> = router.chain(scatter).collect();
                if called.is_empty() {
                    called.push(id);
                }
                for id in called {
                    self.capability(id, &place);
                }
            }
        }
    }

    /// Checks for control flow that the action does not support, and for invalid expressions.
    fn flow(&mut self, step: &Step, place: &str) {
        let loops = [
            ("foreach", step.foreach.is_some()),
            ("while", step.repeat.is_some()),
            ("router", step.router.is_some()),
            ("scatter", step.scatter.is_some()),
        ];
        let signal = matches!(step.action, StepAction::WaitForSignal(_));
        if !matches!(step.action, StepAction::Capability(_)) {
            for (word, _) in loops.iter().filter(|(_, used)| *used) {
                let message = format!(
                    "{word} is only valid in a step that calls a capability; remove it, or call \
                        a capability"
                );
                self.note(PlanProblem::Unfit { step: place.to_owned(), message });
            }
        }
        for (word, used) in [("retry", step.retry.is_some()), ("timeout_seconds", step.timeout.is_some())] {
            if signal && used {
                let message = format!(
                    "{word} cannot be combined with wait_for_signal; launch the run with an \
                        expiry instead"
                );
                self.note(PlanProblem::Unfit { step: place.to_owned(), message });
            }
        }
        let expressions = [
            ("condition", step.condition.as_deref()),
            ("foreach.items", step.foreach.as_ref().map(|f| f.items.as_str())),
            ("while.condition", step.repeat.as_ref().map(|w| w.condition.as_str())),
            ("router.on", step.router.as_ref().map(|r| r.on.as_str())),
        ];
        for (word, text) in expressions.into_iter().filter_map(|(word, text)| Some((word, text?))) {
            if let Err(error) = Expr::parse(text) {
                let message = format!("invalid {word} {text:?}: {error}");
                self.note(PlanProblem::Unfit { step: place.to_owned(), message });
            }
        }
    }

    fn capability(&mut self, id: &str, used_by: &str) {
        if self.capabilities.contains_key(id) {
            return;
        }
        let Some(found) = (self.find_capability)(id) else {
            self.note(PlanProblem::MissingCapability { id: id.to_owned(), used_by: used_by.to_owned() });
            return;
        };
        let mut pinned = Capability::clone(&found);
        pinned.location = PathBuf::new();
        self.capabilities.insert(id.to_owned(), Arc::new(pinned));
        for gate in &found.safety.mandatory_pre_gates {
            self.capability(&gate.capability, &format!("gate of {id}"));
        }
    }

    fn note(&mut self, problem: PlanProblem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}
