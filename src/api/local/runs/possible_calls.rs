//! The capabilities that steps may call: their own, those of the skills that they run, and the gates of these.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::decision_preview;
use skills_runs::Capabilities;
use skills_skill::contract::{Capability, Contract, GateFailure, Step, StepAction};

/// Maximum number of capabilities that a text about gates names, and of these texts.
const MAX_NAMED: usize = 8;
/// Maximum number of capabilities without an approval that are named.
const MAX_UNAPPROVED: usize = 100;

/// A capability that steps may call.
#[derive(Debug, Clone, Copy)]
pub(super) struct PossibleCall<'a> {
    pub capability: &'a Capability,
    /// Whether it is called as a gate of another one, which requires no approval.
    pub is_gate: bool,
}

impl PossibleCall<'_> {
    /// Returns whether it has external side effects.
    pub(super) fn acts(&self) -> bool {
        self.capability.properties.side_effects
    }

    /// Returns whether each call requires approval.
    pub(super) fn requires_approval(&self) -> bool {
        !self.is_gate && self.capability.safety.requires_confirmation
    }

    /// Returns whether it has external side effects that neither an approval nor a gate can prevent.
    fn is_unapproved(&self) -> bool {
        let gates = &self.capability.safety.mandatory_pre_gates;
        let is_gated = !self.is_gate && gates.iter().any(|gate| gate.on_fail != GateFailure::Warn);
        self.acts() && !self.requires_approval() && !is_gated
    }
}

/// Returns what steps may call, each capability once, and once more if it is also a gate. `skills` are the contracts that
/// they run, directly or through others.
pub(super) fn of_steps<'a>(
    steps: impl IntoIterator<Item = &'a Step>,
    skills: &'a BTreeMap<String, Arc<Contract>>,
    capabilities: &'a Capabilities,
) -> Vec<PossibleCall<'a>> {
    let mut pending: VecDeque<&Step> = steps.into_iter().collect();
    let (mut run, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut calls = Vec::new();
    while let Some(step) = pending.pop_front() {
        if let StepAction::Skill(id) = &step.action
            && run.insert(id)
            && let Some(contract) = skills.get(id)
        {
            pending.extend(&contract.steps);
        }
        for id in step.called_capabilities() {
            let Some(capability) = capabilities.capability(id) else { continue };
            if !seen.insert((id, false)) {
                continue;
            }
            calls.push(PossibleCall { capability, is_gate: false });
            for gate in &capability.safety.mandatory_pre_gates {
                let id = gate.capability.as_str();
                if let Some(capability) = capabilities.capability(id)
                    && seen.insert((id, true))
                {
                    calls.push(PossibleCall { capability, is_gate: true });
                }
            }
        }
    }
    calls
}

/// Describes the gates and approvals of calls; where they differ, for each capability.
pub(super) fn gates(calls: &[PossibleCall<'_>]) -> Vec<String> {
    let mut by_gates: BTreeMap<Vec<String>, BTreeSet<&str>> = BTreeMap::new();
    for call in calls.iter().filter(|call| !call.is_gate) {
        by_gates.entry(decision_preview::gates(call.capability)).or_default().insert(&call.capability.id);
    }
    if by_gates.len() < 2 {
        return by_gates.into_keys().next().unwrap_or_default();
    }
    let mut out = Vec::new();
    for (mut gates, ids) in by_gates {
        if gates.is_empty() {
            gates.push("no approval or gate".to_owned());
        }
        let ids = names(&ids, MAX_NAMED);
        out.extend(gates.into_iter().map(|gate| format!("{ids}: {gate}")));
    }
    let more = out.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        out.truncate(MAX_NAMED);
        out.push(format!("and {more} more"));
    }
    out
}

/// Names the capabilities with external side effects that neither an approval nor a gate can prevent; `None` if there
/// are none.
pub(super) fn unapproved(calls: &[PossibleCall<'_>]) -> Option<String> {
    let calls = calls.iter().filter(|call| call.is_unapproved());
    let ids: BTreeSet<&str> = calls.map(|call| call.capability.id.as_str()).collect();
    (!ids.is_empty()).then(|| names(&ids, MAX_UNAPPROVED))
}

fn names(ids: &BTreeSet<&str>, most: usize) -> String {
    let named: Vec<&str> = ids.iter().copied().take(most).collect();
    match ids.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use skills_skill::contract::{parse, parse_capability};

    fn contract(steps: &str) -> Contract {
        parse(Path::new("skill.yaml"), &format!("id: c\nversion: 1.0.0\nsteps:\n{steps}")).0.unwrap()
    }

    fn capability(text: &str) -> Capability {
        parse_capability(Path::new("c.yaml"), &format!("version: 1.0.0\n{text}")).0.unwrap()
    }

    fn call(capability: &Capability, is_gate: bool) -> PossibleCall<'_> {
        PossibleCall { capability, is_gate }
    }

    #[test]
    fn calls_of_nested_skills_are_followed_once() {
        let inner = contract("  - {id: again, uses: 'skill:inner'}\n  - {id: go, uses: c0}\n");
        let skills = BTreeMap::from([("inner".to_owned(), Arc::new(inner))]);
        let outer = contract("  - {id: a, uses: 'skill:inner'}\n  - {id: b, uses: 'skill:absent'}\n");
        assert!(of_steps(&outer.steps, &skills, &Capabilities::default()).is_empty());
    }

    #[test]
    fn gates_are_stated_for_each_capability_where_they_differ() {
        let asks = capability(
            "id: a.ask\nsafety: {requires_confirmation: true}\nproperties: {side_effects: true}\n",
        );
        let also = capability("id: a.too\nsafety: {requires_confirmation: true}\n");
        let sends = capability("id: b.send\nproperties: {side_effects: true}\n");
        let one = [call(&asks, false), call(&also, false)];
        assert_eq!(gates(&one), ["always requires approval"]);
        assert_eq!(unapproved(&one), None);
        let all = [call(&asks, false), call(&also, false), call(&sends, false)];
        assert_eq!(gates(&all), ["b.send: no approval or gate", "a.ask, a.too: always requires approval"]);
        assert_eq!(unapproved(&all).as_deref(), Some("b.send"));
        assert!(gates(&[call(&sends, false)]).is_empty() && gates(&[]).is_empty());
        // The call of a gate requires no approval.
        assert_eq!(unapproved(&[call(&asks, true)]).as_deref(), Some("a.ask"));
    }

    #[test]
    fn only_a_gate_that_can_stop_a_call_prevents_it() {
        for (on_fail, named) in [("block", None), ("require_human", None), ("warn", Some("b.send"))] {
            let sends = capability(&format!(
                "id: b.send\nproperties: {{side_effects: true}}\n\
                 safety: {{mandatory_pre_gates: [{{capability: a.check, on_fail: {on_fail}}}]}}\n"
            ));
            assert_eq!(unapproved(&[call(&sends, false)]).as_deref(), named, "{on_fail}");
        }
    }

    #[test]
    fn names_are_limited() {
        let ids: Vec<String> = (0..20).map(|n| format!("c{n:02}")).collect();
        let text = names(&ids.iter().map(String::as_str).collect(), 8);
        assert!(text.starts_with("c00, c01") && text.ends_with("c07 and 12 more"), "{text}");
    }
}
