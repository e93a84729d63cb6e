//! Comparison of two runs, step by step, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RunDetail, StepState, StepView};
use skills_model::RunState;
use skills_store::{EventKind, RunId};

/// A place where two values differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// Location as a JSON pointer (RFC 6901); empty for the complete value.
    pub path: String,
    /// The value in the first; none if it is missing there.
    pub left: Option<Value>,
    /// The value in the second.
    pub right: Option<Value>,
}

/// One of two compared runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComparedRun {
    /// Id of the run.
    pub run: RunId,
    /// Id of the skill.
    pub skill_id: String,
    /// Version of its contract.
    pub contract_version: String,
    /// State of the run.
    pub state: RunState,
    /// Duration from its launch to its end in milliseconds; none until it has ended.
    pub took_ms: Option<i64>,
}

/// One step in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepComparison {
    /// Path of the step within the run.
    pub step: String,
    /// Its state in the first; none if the step does not occur there.
    pub left: Option<StepState>,
    /// Its state in the second.
    pub right: Option<StepState>,
    /// Its duration in the first, in milliseconds.
    pub left_ms: Option<i64>,
    /// Its duration in the second.
    pub right_ms: Option<i64>,
    /// The binding that executed it in the first.
    pub left_binding: Option<String>,
    /// The binding that executed it in the second.
    pub right_binding: Option<String>,
    /// Whether both had the same inputs, by the digests that are recorded when a step starts; none if it has not
    /// started in one of them. Known even if inputs are not stored.
    pub same_inputs: Option<bool>,
    /// Differences of its inputs, if they are stored.
    pub inputs: Vec<Change>,
    /// Differences of its result.
    pub result: Vec<Change>,
}

impl StepComparison {
    /// Returns whether the step is the same in both, except for timing.
    pub fn is_same(&self) -> bool {
        self.differences().is_empty()
    }

    /// Returns whether two different bindings executed it.
    pub fn other_binding(&self) -> bool {
        let both = self.left_binding.as_ref().zip(self.right_binding.as_ref());
        both.is_some_and(|(left, right)| left != right)
    }

    pub fn differences(&self) -> Vec<&'static str> {
        let both = self.left.is_some() && self.right.is_some();
        let found = [
            (self.right.is_none(), "only in left"),
            (self.left.is_none(), "only in right"),
            (self.same_inputs == Some(false) || !self.inputs.is_empty(), "different inputs"),
            (self.other_binding(), "different binding"),
            (both && self.left != self.right, "different outcome"),
            (!self.result.is_empty(), "different result"),
        ];
        found.into_iter().filter(|(differs, _)| *differs).map(|(_, word)| word).collect()
    }
}

/// Two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunComparison {
    /// The first.
    pub left: ComparedRun,
    /// The second.
    pub right: ComparedRun,
    /// Whether both run the same contract.
    pub same_contract: bool,
    /// Whether only timing differs.
    pub same: bool,
    /// The first difference as text, in execution order.
    pub first: Option<String>,
    /// Differences of the inputs.
    pub inputs: Vec<Change>,
    /// Differences of what they are attached to.
    pub target: Vec<Change>,
    /// Differences of the outputs.
    pub outputs: Vec<Change>,
    /// Steps of either run, in the order of the first; steps of the second run only follow the step that precedes them
    /// there.
    pub steps: Vec<StepComparison>,
}

/// Returns where two values differ, comparing objects and lists by their members, in the order of the first.
pub fn changes(left: &Value, right: &Value) -> Vec<Change> {
    let mut out = Vec::new();
    differ(String::new(), Some(left), Some(right), &mut out);
    out
}

fn differ(path: String, left: Option<&Value>, right: Option<&Value>, out: &mut Vec<Change>) {
    match (left, right) {
        (None, None) => {}
        (Some(left), Some(right)) if left == right => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            for name in names {
                let member = name.replace('~', "~0").replace('/', "~1");
                differ(format!("{path}/{member}"), one.get(name), other.get(name), out);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for place in 0..one.len().max(other.len()) {
                differ(format!("{path}/{place}"), one.get(place), other.get(place), out);
            }
        }
        _ => out.push(Change { path, left: left.cloned(), right: right.cloned() }),
    }
}

/// Returns the differences of two values that may be missing.
fn optional(one: Option<&Value>, other: Option<&Value>) -> Vec<Change> {
    let mut out = Vec::new();
    differ(String::new(), one, other, &mut out);
    out
}

fn side(detail: &RunDetail) -> ComparedRun {
    let run = &detail.run;
    let ended = run.state.is_terminal() || run.state == RunState::Failed;
    ComparedRun {
        run: run.id.clone(),
        skill_id: run.skill_id.clone(),
        contract_version: detail.contract_version.clone(),
        state: run.state,
        took_ms: ended.then(|| run.since_ms.saturating_sub(run.created_ms)),
    }
}

/// Returns the digests of the inputs of a run's steps, from the last time that each started.
fn input_digests(detail: &RunDetail) -> BTreeMap<&str, &str> {
    let started = detail.events.iter().filter(|event| event.event.kind == EventKind::StepStarted);
    started
        .filter_map(|event| Some((event.event.step.as_deref()?, event.event.data["inputs_digest"].as_str()?)))
        .collect()
}

pub fn compare_runs(left: &RunDetail, right: &RunDetail) -> RunComparison {
    let (left_given, right_given) = (input_digests(left), input_digests(right));
    let steps: Vec<StepComparison> = paths(&left.steps, &right.steps)
        .into_iter()
        .map(|step| {
            let find = |steps: &'_ [StepView]| steps.iter().find(|view| view.step == step).cloned();
            let (one, other) = (find(&left.steps), find(&right.steps));
            let took = |view: &Option<StepView>| {
                view.as_ref().and_then(|view| Some(view.ended_ms?.saturating_sub(view.started_ms?)))
            };
            let pair = |of: fn(&StepView) -> Option<&Value>| match (&one, &other) {
                // Values that the response omits cannot be compared.
                (Some(one), Some(other)) if one.omitted_bytes.or(other.omitted_bytes).is_none() => {
                    optional(of(one), of(other))
                }
                _ => Vec::new(),
            };
            let digests = left_given.get(step.as_str()).zip(right_given.get(step.as_str()));
            let binding = |view: &Option<StepView>| view.as_ref().and_then(|view| view.binding.clone());
            // Inputs stored by only one of them cannot be compared.
            let has_inputs =
                |view: &Option<StepView>| view.as_ref().is_some_and(|view| view.inputs.is_some());
            let inputs = if has_inputs(&one) && has_inputs(&other) {
                pair(|view| view.inputs.as_ref())
            } else {
                Vec::new()
            };
            StepComparison {
                inputs,
                result: pair(|view| view.result.as_ref()),
                same_inputs: digests.map(|(one, other)| one == other),
                left_ms: took(&one),
                right_ms: took(&other),
                left_binding: binding(&one),
                right_binding: binding(&other),
                left: one.as_ref().map(|view| view.state),
                right: other.as_ref().map(|view| view.state),
                step,
            }
        })
        .collect();
    let inputs = changes(&left.run.inputs, &right.run.inputs);
    let target = optional(left.run.target.as_ref(), right.run.target.as_ref());
    let outputs = optional(left.run.outputs.as_ref(), right.run.outputs.as_ref());
    let mut comparison = RunComparison {
        left: side(left),
        right: side(right),
        same_contract: left.run.contract_digest == right.run.contract_digest,
        same: false,
        first: None,
        inputs,
        target,
        outputs,
        steps,
    };
    comparison.first = first(&comparison);
    comparison.same = comparison.first.is_none();
    comparison
}

/// Returns the first difference.
fn first(comparison: &RunComparison) -> Option<String> {
    let names = |changes: &[Change]| {
        let mut names: Vec<&str> =
            changes.iter().filter_map(|change| change.path.split('/').nth(1)).collect();
        names.dedup();
        names.join(", ")
    };
    if !comparison.inputs.is_empty() {
        return Some(format!("the inputs of the runs: {}", names(&comparison.inputs)));
    }
    if !comparison.target.is_empty() {
        return Some(format!("what they are attached to: {}", names(&comparison.target)));
    }
    if !comparison.same_contract {
        return Some("the contract that they run".to_owned());
    }
    if let Some(step) = comparison.steps.iter().find(|step| !step.is_same()) {
        return Some(format!("step {}: {}", step.step, step.differences().join(", ")));
    }
    if !comparison.outputs.is_empty() {
        return Some(format!("the outputs: {}", names(&comparison.outputs)));
    }
    let (one, other) = (comparison.left.state, comparison.right.state);
    (one != other).then(|| format!("states: {one} and {other}"))
}

/// Returns the paths of both lists, each once.
fn paths(left: &[StepView], right: &[StepView]) -> Vec<String> {
    let mut out: Vec<String> = left.iter().map(|view| view.step.clone()).collect();
    let mut behind = 0;
    for view in right {
        if let Some(place) = out.iter().position(|path| *path == view.step) {
            behind = place + 1;
        } else {
            out.insert(behind, view.step.clone());
            behind += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_by_path() {
        let left = json!({ "a": 1, "list": [1, 2], "same": { "x": null }, "a/b": 1 });
        let right = json!({ "a": 2, "list": [1], "same": { "x": null }, "new": true });
        let change = |path: &str, left, right| Change { path: path.to_owned(), left, right };
        assert_eq!(
            changes(&left, &right),
            [
                change("/a", Some(json!(1)), Some(json!(2))),
                change("/list/1", Some(json!(2)), None),
                change("/a~1b", Some(json!(1)), None),
                change("/new", None, Some(json!(true))),
            ]
        );
        assert!(changes(&left, &left).is_empty());
    }

    #[test]
    fn step_of_one_run_only_is_listed_in_order() {
        let view = |step: &str| StepView {
            p95_ms: None,
            omitted_bytes: None,
            step: step.to_owned(),
            depth: 0,
            uses: String::new(),
            state: StepState::Completed,
            started_ms: None,
            ended_ms: None,
            attempts: 1,
            inputs: None,
            result: None,
            summary: None,
            binding: None,
            isolation: None,
            artifacts: Vec::new(),
            status: None,
        };
        let left = ["a", "each", "c"].map(view);
        let right = ["a", "each", "each[0]", "each[1]", "c", "d"].map(view);
        assert_eq!(paths(&left, &right), ["a", "each", "each[0]", "each[1]", "c", "d"]);
    }
}
