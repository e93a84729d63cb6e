//! The contracts that a contract runs, directly or through others. Each is read and walked once, however many steps
//! run it: the work grows with the size of the files, not with the number of paths through them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::types::{Contract, Step, StepAction};

/// Maximum nesting depth of skills that run skills.
pub const MAX_DEPTH: usize = 10;

/// Maximum number of contracts that a contract runs, directly or through others. It also bounds the recursion here.
pub const MAX_CONTRACTS: usize = 256;

/// Maximum number of steps of a contract, with the steps of the contracts that it runs, once for each step that runs
/// them.
pub const MAX_STEPS: usize = 10_000;

/// Maximum number of cycles that are reported.
const MAX_CYCLES: usize = 10;

/// How much a step or a contract runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Levels of contracts below it.
    pub depth: usize,
    /// Steps, with those of all levels.
    pub steps: usize,
}

/// The contracts that a contract runs.
#[derive(Debug, Default)]
pub struct Nesting {
    /// Contracts by the ids that steps name; `None` where there is none.
    contracts: BTreeMap<String, Option<Arc<Contract>>>,
    found: usize,
    extents: BTreeMap<String, Extent>,
    /// Cycles of calls, each with the id at which it closes at both ends.
    pub cycles: Vec<Vec<String>>,
    /// There are more than [`MAX_CONTRACTS`]; the others were not looked up.
    pub is_cut: bool,
}

impl Nesting {
    /// Finds the contracts that a contract runs.
    pub fn of(contract: &Contract, find: &dyn Fn(&str) -> Option<Arc<Contract>>) -> Self {
        let mut nesting = Self::default();
        nesting.walk(contract, find, &mut vec![contract.id.clone()]);
        nesting
    }

    /// Returns the contracts with the ids by which steps name them.
    pub fn contracts(&self) -> impl Iterator<Item = (&str, &Arc<Contract>)> {
        self.contracts.iter().filter_map(|(id, found)| Some((id.as_str(), found.as_ref()?)))
    }

    /// Returns whether there is no contract with this id. One that was not looked up is not missing.
    pub fn lacks(&self, id: &str) -> bool {
        matches!(self.contracts.get(id), Some(None))
    }

    /// Returns how much a step runs; meaningless in a cycle.
    pub fn of_step(&self, step: &Step) -> Extent {
        let StepAction::Skill(id) = &step.action else { return Extent { depth: 0, steps: 1 } };
        let inner = self.extents.get(id).copied().unwrap_or_default();
        Extent { depth: inner.depth.saturating_add(1), steps: inner.steps.saturating_add(1) }
    }

    /// Returns how much a contract runs; meaningless in a cycle.
    pub fn of_contract(&self, contract: &Contract) -> Extent {
        contract.steps.iter().map(|step| self.of_step(step)).fold(Extent::default(), |sum, step| Extent {
            depth: sum.depth.max(step.depth),
            steps: sum.steps.saturating_add(step.steps),
        })
    }

    /// Returns the step that runs most steps.
    pub fn largest_step<'c>(&self, contract: &'c Contract) -> Option<&'c Step> {
        contract.steps.iter().max_by_key(|step| self.of_step(step).steps)
    }

    /// Returns the ids on the deepest path of calls, down to the first level that is too deep.
    pub fn deepest_path(&self, contract: &Contract) -> Vec<String> {
        let mut path = vec![contract.id.clone()];
        let mut at = contract;
        while path.len() <= MAX_DEPTH + 1
            && let Some(step) = at.steps.iter().max_by_key(|step| self.of_step(step).depth)
            && let StepAction::Skill(id) = &step.action
            && let Some(Some(next)) = self.contracts.get(id)
        {
            path.push(next.id.clone());
            at = next;
        }
        path
    }

    /// Returns for each contract that leads back to `contract` the id that it has to run for the shortest way; `None`
    /// for `contract` itself.
    pub(super) fn shortest_cycles(&self, contract: &Contract) -> BTreeMap<&str, Option<&str>> {
        let mut callers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut ways = BTreeMap::new();
        let mut reached = VecDeque::new();
        for (id, found) in self.contracts() {
            if found.id == contract.id {
                ways.insert(id, None);
                reached.push_back(id);
                continue;
            }
            for step in &found.steps {
                if let StepAction::Skill(called) = &step.action {
                    callers.entry(called).or_default().insert(id);
                }
            }
        }
        while let Some(id) = reached.pop_front() {
            for &caller in callers.get(id).into_iter().flatten() {
                if !ways.contains_key(caller) {
                    ways.insert(caller, Some(id));
                    reached.push_back(caller);
                }
            }
        }
        ways
    }

    pub(super) fn contract(&self, id: &str) -> Option<&Arc<Contract>> {
        self.contracts.get(id)?.as_ref()
    }

    fn walk(
        &mut self,
        contract: &Contract,
        find: &dyn Fn(&str) -> Option<Arc<Contract>>,
        above: &mut Vec<String>,
    ) {
        for step in &contract.steps {
            if let StepAction::Skill(id) = &step.action
                && !self.extents.contains_key(id)
                && !self.lacks(id)
            {
                self.visit(id, find, above);
            }
        }
    }

    fn visit(&mut self, id: &str, find: &dyn Fn(&str) -> Option<Arc<Contract>>, above: &mut Vec<String>) {
        let found = match self.contracts.get(id) {
            Some(known) => known.clone(),
            None if self.found >= MAX_CONTRACTS => {
                self.is_cut = true;
                return;
            }
            None => {
                let found = find(id);
                self.found += usize::from(found.is_some());
                self.contracts.insert(id.to_owned(), found.clone());
                found
            }
        };
        let Some(found) = found else { return };
        if let Some(start) = above.iter().position(|other| *other == found.id) {
            let cycle: Vec<String> = above[start..].iter().chain([&found.id]).cloned().collect();
            if self.cycles.len() < MAX_CYCLES && !self.cycles.contains(&cycle) {
                self.cycles.push(cycle);
            }
            return;
        }
        above.push(found.id.clone());
        self.walk(&found, find, above);
        above.pop();
        self.extents.insert(id.to_owned(), self.of_contract(&found));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;

    use super::*;

    /// Returns a contract whose steps each run the skill `called`, or a capability if that is empty.
    fn contract(id: &str, steps: usize, called: &str) -> Arc<Contract> {
        let uses = if called.is_empty() { "text.echo".to_owned() } else { format!("skill:{called}") };
        let steps: String = (0..steps)
            .map(|n| format!("  - {{id: s{n}, uses: '{uses}', config: {{depends_on: []}}}}\n"))
            .collect();
        let text = format!("id: {id}\nversion: 1.0.0\nsteps:\n{steps}");
        Arc::new(super::super::parse(Path::new("skill.yaml"), &text).0.unwrap())
    }

    /// Returns a chain of contracts `n0`, `n1`, …, and the number of lookups that its nesting took.
    fn chain(length: usize, steps: usize, end: &str) -> (Nesting, Arc<Contract>, usize) {
        let name = |n: usize| if n < length { format!("n{n}") } else { end.to_owned() };
        let all: BTreeMap<String, Arc<Contract>> =
            (0..length).map(|n| (name(n), contract(&name(n), steps, &name(n + 1)))).collect();
        let lookups = Cell::new(0);
        let find = |id: &str| {
            lookups.set(lookups.get() + 1);
            all.get(id).cloned()
        };
        let nesting = Nesting::of(&all["n0"], &find);
        (nesting, Arc::clone(&all["n0"]), lookups.get())
    }

    #[test]
    fn shared_contracts_are_looked_up_once() {
        let (nesting, first, lookups) = chain(5, 500, "");
        assert_eq!(lookups, 4);
        let all = 500 + 500_usize.pow(2) + 500_usize.pow(3) + 500_usize.pow(4) + 500_usize.pow(5);
        assert_eq!(nesting.of_contract(&first), Extent { depth: 4, steps: all });
        assert!(nesting.cycles.is_empty() && !nesting.is_cut);
    }

    #[test]
    fn a_cycle_of_many_steps_is_noted_once() {
        let (nesting, first, lookups) = chain(4, 1_000, "n0");
        assert_eq!(nesting.cycles, [["n0", "n1", "n2", "n3", "n0"].map(str::to_owned)]);
        assert_eq!(lookups, 4);
        assert_eq!(nesting.shortest_cycles(&first)["n1"], Some("n2"));
        assert_eq!(nesting.shortest_cycles(&first)["n0"], None);
    }

    #[test]
    fn long_chains_are_truncated() {
        let (nesting, first, lookups) = chain(2_000, 1, "");
        assert!(nesting.is_cut);
        assert_eq!(lookups, MAX_CONTRACTS);
        assert_eq!(nesting.deepest_path(&first).len(), MAX_DEPTH + 2);
        let (nesting, first, _) = chain(MAX_DEPTH + 1, 1, "");
        assert_eq!(nesting.of_contract(&first).depth, MAX_DEPTH);
    }

    #[test]
    fn missing_contracts_are_looked_up_once() {
        let (nesting, _, lookups) = chain(1, 300, "absent");
        assert_eq!(lookups, 1);
        assert!(nesting.lacks("absent") && !nesting.lacks("other"));
    }
}
