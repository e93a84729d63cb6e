//! A contract with everything it will need, fixed when a run is launched, so that later edits do not affect the run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gates::ambiguity;
use skills_base::canonical::digest_of;
use skills_skill::Severity;
use skills_skill::contract::expression::Expr;
use skills_skill::contract::{
    Capability, Contract, MAX_CONTRACTS, MAX_DEPTH, MAX_STEPS, Nesting, Step, StepAction,
};

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 100;

/// A contract, the contracts it runs, and the capabilities that all of them call, including those of gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub contract: Arc<Contract>,
    /// Contracts it runs, directly or indirectly, by id.
    pub skills: BTreeMap<String, Arc<Contract>>,
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
    #[error("{used_by}: capability {id:?} not found")]
    MissingCapability {
        /// The capability.
        id: String,
        /// The step, or the capability that names it as a gate.
        used_by: String,
    },
    /// There is no such skill, or it has no contract.
    #[error("{used_by}: no skill {id:?} with a contract found")]
    MissingSkill { id: String, used_by: String },
    /// The contract has errors.
    #[error("the contract of {skill} has errors: {message}")]
    Broken {
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
    /// The contract runs more than [`MAX_STEPS`] steps or [`MAX_CONTRACTS`] contracts.
    #[error("{skill}: {message}")]
    TooLarge {
        skill: String,
        /// What there is too much of, the step that runs most of it, and the limit.
        message: String,
    },
    /// The step does not support the control flow, or a gate does not fit its capability.
    #[error("{step}: {message}")]
    Unfit {
        /// The step, or the guarded capability.
        step: String,
        /// What is unsupported, and what to do.
        message: String,
    },
}

/// The reasons why a contract cannot run; of very many, the first.
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
    /// Returns whether the nesting is too deep, which has a separate error code.
    pub fn too_deep(&self) -> bool {
        self.problems.iter().any(|problem| matches!(problem, PlanProblem::TooDeep(_)))
    }
}

/// Collects everything a plan needs.
struct Closure<'a> {
    nesting: &'a Nesting,
    find_capability: &'a dyn Fn(&str) -> Option<Arc<Capability>>,
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
        let nesting = Nesting::of(contract, skills);
        let mut closure = Closure {
            nesting: &nesting,
            find_capability: capabilities,
            capabilities: BTreeMap::new(),
            problems: Vec::new(),
        };
        closure.nesting(contract);
        closure.contract(contract);
        for (_, nested) in nesting.contracts() {
            closure.contract(nested);
        }
        closure.gates();
        let Closure { capabilities, problems, .. } = closure;
        if !problems.is_empty() {
            return Err(PlanError { problems });
        }
        let skills =
            nesting.contracts().map(|(id, nested)| (id.to_owned(), Arc::new(normalized(nested)))).collect();
        Ok(Self { contract: Arc::new(normalized(contract)), skills, capabilities, approval })
    }

    /// Returns the SHA-256 of the plan's canonical JSON: two plans with the same digest run the same. File locations,
    /// lines of steps and lint findings are not part of a plan.
    pub fn digest(&self) -> String {
        digest_of(&self.to_value())
    }

    /// Returns the plan as it is stored with a run.
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

    /// Returns whether this is the contract of a nested skill of the plan.
    pub fn runs_contract(&self, id: &str, contract: &Contract) -> bool {
        self.skills.get(id).is_some_and(|pinned| **pinned == normalized(contract))
    }

    /// Returns whether this is the definition of a capability of the plan.
    pub fn calls_capability(&self, found: &Capability) -> bool {
        let found = Capability { location: PathBuf::new(), ..found.clone() };
        self.capabilities.get(&found.id).is_some_and(|pinned| **pinned == found)
    }

    pub fn capability(&self, id: &str) -> Option<&Arc<Capability>> {
        self.capabilities.get(id)
    }

    /// Returns the capability that a step calls; `None` for a nested skill and a signal, and where a router or a scatter
    /// names several.
    pub fn capability_of(&self, step: &Step) -> Option<&Arc<Capability>> {
        let called = step.called_capabilities();
        let [id] = called.as_slice() else { return None };
        self.capability(id)
    }

    /// Returns the contract at a nesting path (`report`, `report/render`; empty for the run's own).
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
    /// Checks how the contracts run each other, and how much they run in total.
    fn nesting(&mut self, contract: &Contract) {
        for cycle in &self.nesting.cycles {
            self.note(PlanProblem::Cycle(cycle.clone()));
        }
        if !self.nesting.cycles.is_empty() {
            return; // there is no depth and no number of steps
        }
        let extent = self.nesting.of_contract(contract);
        if extent.depth > MAX_DEPTH {
            self.note(PlanProblem::TooDeep(self.nesting.deepest_path(contract)));
        }
        let most = self.nesting.largest_step(contract).map(|step| step.id.as_str()).unwrap_or_default();
        let message = if self.nesting.is_cut {
            format!(
                "its steps run more than {MAX_CONTRACTS} contracts, directly or through others (step {most} runs \
                    the most steps)"
            )
        } else if extent.steps > MAX_STEPS {
            format!(
                "it runs {} steps, including those of nested skills (step {most} runs the most); the maximum is \
                    {MAX_STEPS}",
                extent.steps
            )
        } else {
            return;
        };
        self.note(PlanProblem::TooLarge { skill: contract.id.clone(), message });
    }

    fn contract(&mut self, contract: &Contract) {
        self.errors_of(contract);
        for step in &contract.steps {
            self.step(contract, step);
        }
    }

    fn errors_of(&mut self, contract: &Contract) {
        let errors: Vec<_> = contract.findings.iter().filter(|f| f.severity == Severity::Error).collect();
        let Some(first) = errors.first() else { return };
        let line = first.span.map(|span| format!("line {}: ", span.line)).unwrap_or_default();
        let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
        let message = format!("{line}{}{more}; see skills lint", first.message);
        self.note(PlanProblem::Broken { skill: contract.id.clone(), message });
    }

    fn step(&mut self, contract: &Contract, step: &Step) {
        let place = format!("{}, step {}", contract.id, step.id);
        self.flow(step, &place);
        match &step.action {
            StepAction::WaitForSignal(_) => {}
            StepAction::Skill(id) => {
                if self.nesting.lacks(id) {
                    self.note(PlanProblem::MissingSkill { id: id.clone(), used_by: place });
                }
            }
            StepAction::Capability(_) => {
                for id in step.called_capabilities() {
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

    /// Adds a capability and its gates, their gates included: with a work list, because a chain of gates can be of any
    /// length.
    fn capability(&mut self, id: &str, used_by: &str) {
        let mut wanted = vec![(id.to_owned(), used_by.to_owned())];
        while let Some((id, used_by)) = wanted.pop() {
            if self.capabilities.contains_key(&id) {
                continue;
            }
            let Some(found) = (self.find_capability)(&id) else {
                self.note(PlanProblem::MissingCapability { id, used_by });
                continue;
            };
            let mut pinned = Capability::clone(&found);
            pinned.location = PathBuf::new();
            let gates = found.safety.mandatory_pre_gates.iter().rev();
            wanted.extend(gates.map(|gate| (gate.capability.clone(), format!("gate of {id}"))));
            self.capabilities.insert(id, Arc::new(pinned));
        }
    }

    /// Checks that each gate fits the capabilities that it guards.
    fn gates(&mut self) {
        let mut found = Vec::new();
        for guarded in self.capabilities.values() {
            for gate in &guarded.safety.mandatory_pre_gates {
                let gate = self.capabilities.get(&gate.capability);
                let message = gate.and_then(|gate| ambiguity(gate, guarded));
                found.extend(message.map(|message| PlanProblem::Unfit { step: guarded.id.clone(), message }));
            }
        }
        for problem in found {
            self.note(problem);
        }
    }

    fn note(&mut self, problem: PlanProblem) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use skills_skill::contract::{parse, parse_capability};

    fn contract(text: &str) -> Arc<Contract> {
        Arc::new(parse(Path::new("skill.yaml"), text).0.unwrap())
    }

    fn capability(text: &str) -> Arc<Capability> {
        Arc::new(parse_capability(Path::new("c.yaml"), text).0.unwrap())
    }

    /// Returns the contract `n{level}`, which runs the next one in 1,000 steps.
    fn fanning(level: usize, next: &str) -> Arc<Contract> {
        let steps: String = (0..1_000).map(|n| format!("  - {{id: s{n}, uses: '{next}'}}\n")).collect();
        contract(&format!("id: n{level}\nversion: 1.0.0\nsteps:\n{steps}"))
    }

    fn problems_of(last: &str) -> Vec<PlanProblem> {
        let nested = |id: &str| {
            let level: usize = id.strip_prefix('n')?.parse().ok()?;
            let next = if level == 4 { last.to_owned() } else { format!("skill:n{}", level + 1) };
            Some(fanning(level, &next))
        };
        let echo = |_: &str| Some(capability("id: text.echo\nversion: 1.0.0\n"));
        Plan::pin(&fanning(1, "skill:n2"), &nested, &echo, None).unwrap_err().problems
    }

    #[test]
    fn exponential_nesting_is_refused_at_once() {
        let problems = problems_of("text.echo");
        assert!(
            matches!(&problems[..], [PlanProblem::TooLarge { skill, .. }] if skill == "n1"),
            "{problems:?}"
        );
        assert!(problems[0].to_string().contains("1001001001000 steps"), "{}", problems[0]);
    }

    #[test]
    fn a_cycle_of_thousands_of_steps_is_one_problem() {
        let problems = problems_of("skill:n1");
        assert!(matches!(&problems[..], [PlanProblem::Cycle(ids)] if ids.len() == 5), "{problems:?}");
    }

    #[test]
    fn long_chains_of_gates_are_followed() {
        const LENGTH: usize = 20_000;
        let base = capability("id: c\nversion: 1.0.0\n");
        let find = |id: &str| {
            let number: usize = id.strip_prefix('c')?.parse().ok()?;
            let mut found = Capability { id: id.to_owned(), ..Capability::clone(&base) };
            if number + 1 < LENGTH {
                let capability = format!("c{}", number + 1);
                let on_fail = skills_skill::contract::GateFailure::Block;
                found.safety.mandatory_pre_gates.push(skills_skill::contract::Gate { capability, on_fail });
            }
            Some(Arc::new(found))
        };
        let first = contract("id: g\nversion: 1.0.0\nsteps:\n  - {id: s, uses: c0}\n");
        assert_eq!(Plan::pin(&first, &|_| None, &find, None).unwrap().capabilities.len(), LENGTH);
    }

    #[test]
    fn a_gate_whose_input_could_mean_two_values_is_refused() {
        let guarded = "id: a.go\nversion: 1.0.0\ninputs: {inputs: object, capability: string}\n\
                       safety: {mandatory_pre_gates: [{capability: a.check, on_fail: block}]}\n";
        let first = contract("id: g\nversion: 1.0.0\nsteps:\n  - {id: s, uses: a.go}\n");
        for (inputs, is_refused) in [
            ("inputs: object, capability: string", false),
            ("method: string", false),
            ("inputs: object", true),
            ("capability: string", true),
        ] {
            let gate = format!("id: a.check\nversion: 1.0.0\ninputs: {{{inputs}}}\n");
            let find = |id: &str| Some(capability(if id == "a.check" { gate.as_str() } else { guarded }));
            let problems = Plan::pin(&first, &|_| None, &find, None).err().map(|error| error.to_string());
            assert_eq!(problems.is_some(), is_refused, "{problems:?}");
            assert!(problems.is_none_or(|text| text.contains("both declare the input")));
        }
    }

    #[test]
    fn problem_list_is_truncated() {
        let steps: String = (0..1_000).map(|n| format!("  - {{id: s{n}, uses: c{n}}}\n")).collect();
        let broken = contract(&format!("id: many\nversion: 1.0.0\nsteps:\n{steps}"));
        let problems = Plan::pin(&broken, &|_| None, &|_| None, None).unwrap_err().problems;
        assert_eq!(problems.len(), MAX_PROBLEMS);
    }
}
