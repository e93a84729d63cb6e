//! Explains the complete decision for a capability.

use super::super::binding::BindingContext;
use super::super::call::{BindingChoice, CallConditions, Explanation};
use super::breaker::Breakers;
use super::decide::{Choice, Decision};
use skills_skill::contract::Protocol;
use skills_skill::safe_text;

/// Describes a decision as text; nothing is called. A call of no particular person is not stopped by breakers, which
/// are counted per person.
pub fn explain(
    capability: &str,
    conditions: &CallConditions,
    decision: &Decision,
    context: &BindingContext,
    breakers: &Breakers,
) -> Explanation {
    let person = conditions.ordered_by.as_deref();
    let line = |choice: &Choice| {
        let binding = &choice.offered.binding;
        BindingChoice {
            binding: binding.id.clone(),
            protocol: binding.protocol.to_string(),
            service: match binding.protocol {
                Protocol::Builtin => "this program".to_owned(),
                _ => binding.service.clone(),
            },
            target: safe_text::line(&context.target(&choice.offered)).into_owned(),
            conformance: binding.conformance,
            place: choice.place.clone(),
            obstacle: choice.obstacle.as_ref().map(|obstacle| obstacle.message.clone()),
            breaker: breakers.state(&binding.id, person),
            isolation: context.isolation(&choice.offered, conditions.unsandboxed),
        }
    };
    let passes = |choice: &&Choice| {
        let is_stopped = || person.is_some_and(|person| !breakers.allows(&choice.offered.binding.id, person));
        choice.obstacle.is_none() && !is_stopped()
    };
    let chosen = decision.chain.iter().find(passes).map(|choice| choice.offered.binding.id.clone());
    Explanation {
        capability: capability.to_owned(),
        conformance: conditions.conformance,
        summary: summary(capability, decision, chosen.as_deref()),
        chosen,
        bindings: decision.chain.iter().chain(&decision.others).map(line).collect(),
    }
}

fn summary(capability: &str, decision: &Decision, chosen: Option<&str>) -> String {
    if let Some(refused) = &decision.refused {
        return refused.message.clone();
    }
    let Some(first) = decision.chain.first() else { return format!("no binding implements `{capability}`") };
    let head = &first.offered.binding.id;
    let why_not = first.obstacle.as_ref().map_or("its circuit breaker is open", |obstacle| &obstacle.message);
    match chosen {
        Some(chosen) if chosen == head => {
            let reason = match first.place.as_str() {
                "override" => "set by you",
                _ if decision.chain.len() + decision.others.len() == 1 => "the only binding",
                _ => "the default",
            };
            let behind = decision.chain.len() - 1;
            match behind {
                0 => format!("binding `{chosen}`: {reason}; no fallback"),
                1 => format!("binding `{chosen}`: {reason}; one fallback"),
                _ => format!("binding `{chosen}`: {reason}; {behind} fallbacks"),
            }
        }
        Some(chosen) => {
            format!("binding `{chosen}`, as a fallback: `{head}` comes first, but {why_not}")
        }
        None if decision.chain.len() == 1 => {
            format!("no binding is available: `{head}` is the only one in its chain, but {why_not}")
        }
        None => format!(
            "no binding is available: `{head}` comes first, but {why_not}; none of its {} fallbacks is \
                available",
            decision.chain.len() - 1
        ),
    }
}
