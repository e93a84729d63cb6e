//! Selects the binding that executes a capability, the order of its fallbacks, and what prevents each from being
//! called.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::call::{BindingChoice, CallFailure};
use super::super::capabilities::{Capabilities, RegisteredBinding};
use skills_skill::contract::{Binding, Conformance};

/// Why a binding cannot be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallObstruction {
    pub code: CallFailure,
    /// What is missing, and what to do.
    pub message: String,
}

impl CallObstruction {
    pub fn new(code: CallFailure, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Configuration that is missing.
    pub fn unconfigured(message: impl Into<String>) -> Self {
        Self::new(CallFailure::InvalidConfiguration, message)
    }
}

/// A binding and its position in the order.
#[derive(Debug, Clone)]
pub struct Choice {
    pub offered: Arc<RegisteredBinding>,
    /// `override`, `default`, `fallback of …`, `not chosen`.
    pub place: String,
    pub obstacle: Option<CallObstruction>,
}

/// The order in which bindings are tried, and the bindings that are not tried.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The first binding and its fallbacks.
    pub chain: Vec<Choice>,
    /// The other bindings, by id.
    pub others: Vec<Choice>,
    /// Why nothing can be tried at all.
    pub refused: Option<CallObstruction>,
}

/// Decides for a capability. `obstacle` returns what else prevents a binding, except for its conformance level.
pub fn decide(
    capability: &str,
    demanded: Conformance,
    catalog: &Capabilities,
    overrides: &BTreeMap<String, String>,
    obstacle: &dyn Fn(&RegisteredBinding) -> Option<CallObstruction>,
) -> Decision {
    let in_the_way = |offered: &Arc<RegisteredBinding>| {
        let level = offered.binding.conformance;
        if level < demanded {
            let message = format!(
                "its conformance level is {level}, but {demanded} is required: set \
                    metadata.conformance_profile in the binding, or lower the \
                    required level to {level} (`conformance` of the run or in the configuration)"
            );
            return Some(CallObstruction::new(CallFailure::ConformanceUnmet, message));
        }
        obstacle(offered)
    };
    let mut all: Vec<Choice> = catalog
        .bindings_of(capability)
        .iter()
        .map(|offered| Choice {
            offered: Arc::clone(offered),
            place: BindingChoice::NOT_CHOSEN.to_owned(),
            obstacle: in_the_way(offered),
        })
        .collect();
    if all.is_empty() {
        let message = format!(
            "no binding implements `{capability}`; add a file in bindings/ with `capability: {capability}`, or \
                run `skills lint` to find out why an existing binding is ignored"
        );
        return Decision {
            chain: Vec::new(),
            others: all,
            refused: Some(CallObstruction::unconfigured(message)),
        };
    }
    let (head, place) = if let Some(requested) = overrides.get(capability) {
        let Some(at) = all.iter().position(|choice| choice.offered.binding.id == *requested) else {
            // A bundle that may not run does not appear in the advice for the configuration.
            let may_run = |choice: &&Choice| {
                let refused = obstacle(&choice.offered).map(|refused| refused.code);
                !matches!(refused, Some(CallFailure::Untrusted | CallFailure::Forbidden))
            };
            let ids: Vec<_> =
                all.iter().filter(may_run).map(|choice| choice.offered.binding.id.as_str()).collect();
            let others = if ids.is_empty() {
                String::new()
            } else {
                format!("set `bindings: {{{capability}: …}}` to one of {}, or ", ids.join(", "))
            };
            let message = format!(
                "`{capability}` is set to the binding `{requested}`, which does not exist or implements \
                    another capability; {others}remove it"
            );
            let refused = Some(CallObstruction::unconfigured(message));
            return Decision { chain: Vec::new(), others: all, refused };
        };
        (at, "override")
    } else {
        let best = all.iter().enumerate().min_by_key(|(_, choice)| rank(choice)).map_or(0, |(at, _)| at);
        (best, "default")
    };
    let mut chain = vec![Choice { place: place.to_owned(), ..all.remove(head) }];
    while let Some(last) = chain.last()
        && let Some(next) = last.offered.binding.fallback.clone()
        && let Some(at) = all.iter().position(|choice| choice.offered.binding.id == next)
    {
        let place = format!("fallback of {}", last.offered.binding.id);
        chain.push(Choice { place, ..all.remove(at) });
    }
    Decision { chain, others: all, refused: None }
}

/// The sort key of a default: callable first, then marked as default by its registry, then by conformance, stability
/// and id.
fn rank(choice: &Choice) -> (bool, bool, Reverse<Conformance>, u8, &str) {
    let binding = &choice.offered.binding;
    let marked = binding.metadata.get("default").and_then(serde_json::Value::as_bool) == Some(true);
    (choice.obstacle.is_some(), !marked, Reverse(binding.conformance), unsettled(binding), &binding.id)
}

/// Returns the rank of a binding's declared `status`, stable first.
fn unsettled(binding: &Binding) -> u8 {
    match binding.metadata.get("status").and_then(serde_json::Value::as_str) {
        Some("stable") => 0,
        Some("pilot") | None => 1,
        Some(_) => 2,
    }
}
