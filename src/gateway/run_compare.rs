//! Two runs step by step: what differs between them, as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RunDetail, StepState, StepView};
use crate::runs::RunState;
use crate::store::RunId;

/// A place where two values differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// Where, as a JSON pointer (RFC 6901); empty for the whole value.
    pub path: String,
    /// What the first has there; none where it has nothing.
    pub left: Option<Value>,
    /// What the second has there.
    pub right: Option<Value>,
}

/// One of two compared runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComparedRun {
    /// The run.
    pub run: RunId,
    /// Its skill.
    pub skill_id: String,
    /// Version of its contract.
    pub contract_version: String,
    /// Where it stands.
    pub state: RunState,
}

/// One step in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepComparison {
    /// Its path.
    pub step: String,
    /// Where it stands in the first; none where that has no such step.
    pub left: Option<StepState>,
    /// Where it stands in the second.
    pub right: Option<StepState>,
    /// How long it took in the first, milliseconds.
    pub left_ms: Option<i64>,
    /// How long it took in the second.
    pub right_ms: Option<i64>,
    /// Differences of its inputs.
    pub inputs: Vec<Change>,
    /// Differences of its result.
    pub result: Vec<Change>,
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
    /// Whether nothing differs but time.
    pub same: bool,
    /// Differences of the inputs.
    pub inputs: Vec<Change>,
    /// Differences of the outputs.
    pub outputs: Vec<Change>,
    /// Steps of either, in the order of the first, the second's own ones behind the step they follow there.
    pub steps: Vec<StepComparison>,
}

/// Where two values differ, objects and lists by their members, in the order of the first.
#[must_use]
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

/// Compares two runs.
#[must_use]
pub fn compare_runs(left: &RunDetail, right: &RunDetail) -> RunComparison {
    let side = |detail: &RunDetail| ComparedRun {
        run: detail.run.id.clone(),
        skill_id: detail.run.skill_id.clone(),
        contract_version: detail.contract_version.clone(),
        state: detail.run.state,
    };
    let optional = |one: Option<&Value>, other: Option<&Value>| {
        let mut out = Vec::new();
        differ(String::new(), one, other, &mut out);
        out
    };
    let steps: Vec<StepComparison> = paths(&left.steps, &right.steps)
        .into_iter()
        .map(|step| {
            let find = |steps: &'_ [StepView]| steps.iter().find(|view| view.step == step).cloned();
            let (one, other) = (find(&left.steps), find(&right.steps));
            let took = |view: &Option<StepView>| {
                view.as_ref().and_then(|view| Some(view.ended_ms? - view.started_ms?))
            };
            let pair = |of: fn(&StepView) -> Option<&Value>| match (&one, &other) {
                (Some(one), Some(other)) => optional(of(one), of(other)),
                _ => Vec::new(),
            };
            StepComparison {
                inputs: pair(|view| view.inputs.as_ref()),
                result: pair(|view| view.result.as_ref()),
                left_ms: took(&one),
                right_ms: took(&other),
                left: one.as_ref().map(|view| view.state),
                right: other.as_ref().map(|view| view.state),
                step,
            }
        })
        .collect();
    let inputs = changes(&left.run.inputs, &right.run.inputs);
    let outputs = optional(left.run.outputs.as_ref(), right.run.outputs.as_ref());
    let same_contract = left.run.contract_digest == right.run.contract_digest;
    let same_steps =
        steps.iter().all(|step| step.left == step.right && step.inputs.is_empty() && step.result.is_empty());
    RunComparison {
        left: side(left),
        right: side(right),
        same_contract,
        same: same_contract
            && same_steps
            && inputs.is_empty()
            && outputs.is_empty()
            && left.run.state == right.run.state,
        inputs,
        outputs,
        steps,
    }
}

/// The paths of both lists, each once.
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
    fn differences_are_named_by_their_place() {
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
    fn a_step_of_one_run_alone_stands_where_it_ran() {
        let view = |step: &str| StepView {
            step: step.to_owned(),
            depth: 0,
            uses: String::new(),
            state: StepState::Completed,
            started_ms: None,
            ended_ms: None,
            attempts: 1,
            inputs: None,
            result: None,
            gist: None,
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
