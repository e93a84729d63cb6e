//! Expands a step into its calls before any of them is made.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::CallFailure;
use super::failure::Failure;
use super::frames::Frames;
use super::plan::Plan;
use super::scheduled_call::gate_digest;
use super::scheduler::StepContext;
use skills_base::memory::object_bytes;
use skills_skill::contract::{Capability, Foreach, StepAction};

/// Maximum number of items of one `foreach`: each is a checkpoint.
const MAX_ITEMS: usize = 10_000;

/// Maximum memory in bytes of the inputs of all items of a `foreach`, which are in memory together.
const MAX_INPUT_BYTES: usize = 32 << 20;

type Inputs = Map<String, Value>;

#[derive(Debug)]
pub(super) enum StepCalls {
    Single {
        capability: Arc<Capability>,
        inputs: Inputs,
    },
    /// One call for each item, sequentially.
    Foreach {
        capability: Arc<Capability>,
        calls: Vec<Inputs>,
    },
    /// Sequential calls while a condition holds; the inputs are those of the first one.
    While {
        capability: Arc<Capability>,
        inputs: Inputs,
    },
    /// All calls in parallel.
    Scatter(Vec<(Arc<Capability>, Inputs)>),
}

impl StepCalls {
    /// Returns the calls of a step.
    ///
    /// # Errors
    /// Returns a failure for a reference without a value, a `foreach` over something other than a list, and a router
    /// value without a case.
    pub fn of(context: StepContext<'_>, plan: &Plan, frames: &Frames) -> Result<Self, Failure> {
        let step = context.step;
        if let Some(scatter) = &step.scatter {
            let inputs = frames.inputs(context, &Inputs::new())?;
            let branch = |id: &String| Ok((context.capability(plan, id)?, inputs.clone()));
            return Ok(Self::Scatter(
                scatter.capabilities.iter().map(branch).collect::<Result<_, Failure>>()?,
            ));
        }
        let capability = routed(context, plan, frames)?;
        if let Some(foreach) = &step.foreach {
            return Ok(Self::Foreach { calls: items(context, frames, foreach, &capability)?, capability });
        }
        let inputs = frames.inputs(context, &Inputs::new())?;
        if step.repeat.is_some() {
            return Ok(Self::While { capability, inputs });
        }
        Ok(Self::Single { capability, inputs })
    }

    /// Returns the capabilities with the inputs for their gates, each capability once. The gates of a `foreach` cover
    /// all items: a field that differs between items becomes the list of its values.
    pub fn gated(&self, through: impl Fn(usize) -> bool) -> Vec<(Arc<Capability>, Inputs)> {
        match self {
            Self::Single { capability, inputs } | Self::While { capability, inputs } => {
                vec![(capability.clone(), inputs.clone())]
            }
            Self::Foreach { capability, calls } => {
                let left =
                    calls.iter().enumerate().filter(|(index, _)| !through(*index)).map(|(_, call)| call);
                vec![(capability.clone(), together(&left.collect::<Vec<_>>()))]
            }
            Self::Scatter(branches) => {
                let mut seen: Vec<(Arc<Capability>, Inputs)> = Vec::new();
                for (capability, inputs) in branches {
                    if !seen.iter().any(|(known, _)| known.id == capability.id) {
                        seen.push((capability.clone(), inputs.clone()));
                    }
                }
                seen
            }
        }
    }

    /// Returns the digest of all calls of a step that makes several, whichever of them are complete.
    pub fn digest(&self, step: &str) -> Option<String> {
        let each = |call: &Inputs| Value::Object(call.clone());
        match self {
            Self::Foreach { capability, calls } => {
                Some(gate_digest(step, &capability.id, &calls.iter().map(each).collect()))
            }
            Self::Scatter(branches) => {
                let calls: Vec<_> = branches.iter().map(|(c, inputs)| json!([c.id, inputs])).collect();
                Some(gate_digest(step, "scatter", &Value::Array(calls)))
            }
            Self::Single { .. } | Self::While { .. } => None,
        }
    }
}

/// Merges the inputs of several calls: equal values once, differing ones as a list.
fn together(calls: &[&Inputs]) -> Inputs {
    let [first, rest @ ..] = calls else { return Inputs::new() };
    first
        .iter()
        .map(|(field, value)| {
            let same = rest.iter().all(|call| call.get(field) == Some(value));
            let joined = if same {
                value.clone()
            } else {
                calls.iter().map(|call| call.get(field).cloned().unwrap_or_default()).collect()
            };
            (field.clone(), joined)
        })
        .collect()
}

/// Returns the capability of a step: its own, or the one that its router selects.
fn routed(context: StepContext<'_>, plan: &Plan, frames: &Frames) -> Result<Arc<Capability>, Failure> {
    let StepAction::Capability(own) = &context.step.action else {
        return Err(context.failure(CallFailure::InvalidConfiguration, "it calls no capability"));
    };
    let Some(router) = &context.step.router else { return context.capability(plan, own) };
    let value = frames.evaluate(context, "router.on", &router.on)?;
    let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let chosen = router.cases.get(&word).or(router.default.as_ref()).ok_or_else(|| {
        let cases: Vec<&str> = router.cases.keys().map(String::as_str).collect();
        let message = format!(
            "router.on {:?} is {}, but the cases are {}; add that case, or a default",
            router.on,
            shortened(&value),
            cases.join(", ")
        );
        context.failure(CallFailure::InvalidRequest, message)
    })?;
    context.capability(plan, chosen)
}

/// Returns the JSON of a value for a message, shortened.
fn shortened(value: &Value) -> String {
    const CHARACTERS: usize = 200;
    let text = value.to_string();
    let end = text.char_indices().nth(CHARACTERS).map_or(text.len(), |(end, _)| end);
    if end < text.len() { format!("{}…", text.get(..end).unwrap_or_default()) } else { text }
}

fn items(
    context: StepContext<'_>,
    frames: &Frames,
    foreach: &Foreach,
    capability: &Capability,
) -> Result<Vec<Inputs>, Failure> {
    let items = match frames.evaluate(context, "foreach.items", &foreach.items)? {
        Value::Array(items) if items.len() <= MAX_ITEMS => items,
        Value::Array(items) => {
            let message = format!(
                "foreach.items {:?} has {} items, the maximum is {MAX_ITEMS}; split the list",
                foreach.items,
                items.len()
            );
            return Err(context.failure(CallFailure::InvalidRequest, message));
        }
        other => {
            let message =
                format!("foreach.items {:?} is {}, expected a list", foreach.items, shortened(&other));
            return Err(context.failure(CallFailure::InvalidRequest, message));
        }
    };
    let mut calls = Vec::with_capacity(items.len());
    let mut bytes = 0;
    for (index, item) in items.into_iter().enumerate() {
        let mut locals = Inputs::from_iter([(foreach.item.clone(), item)]);
        locals.extend(foreach.index_as.clone().map(|name| (name, index.into())));
        let mut inputs = frames.inputs(context, &locals)?;
        for (name, value) in locals {
            // The item becomes an input of its own name if the capability has a field of that name.
            if capability.inputs.contains_key(&name) && !inputs.contains_key(&name) {
                inputs.insert(name, value);
            }
        }
        bytes += object_bytes(&inputs);
        if bytes > MAX_INPUT_BYTES {
            let message = format!(
                "the inputs of the items of foreach.items {:?} take more than {} MiB of memory in total; pass each \
                 item only what it needs, or split the list",
                foreach.items,
                MAX_INPUT_BYTES >> 20
            );
            return Err(context.failure(CallFailure::InvalidRequest, message));
        }
        calls.push(inputs);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_of_several_calls_are_shown_as_one() {
        let calls = [json!({"to": "ana", "text": "hi"}), json!({"to": "ben", "text": "hi"})];
        let calls: Vec<&Inputs> = calls.iter().filter_map(Value::as_object).collect();
        assert_eq!(Value::Object(together(&calls)), json!({"to": ["ana", "ben"], "text": "hi"}));
    }
}
