//! Expands a step into its calls before any of them is made.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::CallFailure;
use super::completed::CompletedPaths;
use super::failure::Failure;
use super::frames::Frames;
use super::plan::Plan;
use super::scheduled_call::{checked_at, gate_digest};
use super::scheduler::{StepContext, part_path};
use skills_base::memory::object_bytes;
use skills_skill::contract::{Capability, Foreach, StepAction};

/// Maximum number of items of one `foreach`: each is a checkpoint.
const MAX_ITEMS: usize = 10_000;

/// Maximum memory in bytes of the inputs of all items of a `foreach`, which are in memory together.
const MAX_INPUT_BYTES: usize = 32 << 20;

type Inputs = Map<String, Value>;

/// The calls of a step, with inputs as their capabilities declare them, so that gates and approvals cover what is
/// executed.
#[derive(Debug)]
pub(super) enum StepCalls {
    Single {
        capability: Arc<Capability>,
        inputs: Inputs,
    },
    /// One call for each item, sequentially.
    Foreach {
        capability: Arc<Capability>,
        calls: Arc<Vec<Inputs>>,
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
    /// Returns a failure for a reference without a value, a `foreach` over something other than a list, a router value
    /// without a case, and inputs that their capability does not accept.
    pub fn of(
        context: StepContext<'_>,
        plan: &Plan,
        frames: &Frames,
        completed: &CompletedPaths,
    ) -> Result<Self, Failure> {
        let step = context.step;
        if let Some(scatter) = &step.scatter {
            let inputs = frames.inputs(context, &Inputs::new())?;
            let branch = |(index, id): (usize, &String)| -> Result<_, Failure> {
                let capability = context.capability(plan, id)?;
                let inputs = part_inputs(context, completed, index, &capability, inputs.clone())?;
                Ok((capability, inputs))
            };
            let branches = scatter.capabilities.iter().enumerate().map(branch);
            return Ok(Self::Scatter(branches.collect::<Result<_, Failure>>()?));
        }
        let capability = routed(context, plan, frames)?;
        if let Some(foreach) = &step.foreach {
            let calls = items(context, frames, completed, foreach, &capability)?;
            return Ok(Self::Foreach { capability, calls: Arc::new(calls) });
        }
        let inputs = checked_at(context.path, &capability, &frames.inputs(context, &Inputs::new())?)?;
        if step.repeat.is_some() {
            return Ok(Self::While { capability, inputs });
        }
        Ok(Self::Single { capability, inputs })
    }

    /// Returns the calls that are not complete, by index, which the gates of their capabilities have to allow.
    pub fn left(&self, is_complete: impl Fn(usize) -> bool) -> Vec<(usize, &Arc<Capability>, &Inputs)> {
        match self {
            Self::Single { capability, inputs } | Self::While { capability, inputs } => {
                vec![(0, capability, inputs)]
            }
            Self::Foreach { capability, calls } => {
                let left = calls.iter().enumerate().filter(|(index, _)| !is_complete(*index));
                left.map(|(index, inputs)| (index, capability, inputs)).collect()
            }
            Self::Scatter(branches) => {
                let left = branches.iter().enumerate().filter(|(index, _)| !is_complete(*index));
                left.map(|(index, (capability, inputs))| (index, capability, inputs)).collect()
            }
        }
    }

    /// Returns the capabilities that are called.
    pub fn capabilities(&self) -> Vec<&str> {
        match self {
            Self::Single { capability, .. }
            | Self::Foreach { capability, .. }
            | Self::While { capability, .. } => vec![&capability.id],
            Self::Scatter(branches) => {
                branches.iter().map(|(capability, _)| capability.id.as_str()).collect()
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

/// Returns the inputs of an item or branch as its capability declares them. One that is complete is not called again,
/// so that inputs of the run that were corrected later need not fit it.
fn part_inputs(
    context: StepContext<'_>,
    completed: &CompletedPaths,
    index: usize,
    capability: &Capability,
    inputs: Inputs,
) -> Result<Inputs, Failure> {
    let path = part_path(context.path, index);
    match checked_at(&path, capability, &inputs) {
        Err(_) if completed.contains(&path) => Ok(inputs),
        result => result,
    }
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
    completed: &CompletedPaths,
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
        let inputs = part_inputs(context, completed, index, capability, inputs)?;
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
