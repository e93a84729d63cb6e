//! What can be said about a contract before it runs: names, references, expressions, order, outputs.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::Expr;
use super::parse::NAMESPACES;
use super::reader::Reader;
use super::types::{Contract, MergeStrategy, Source, Step, StepAction};
use crate::skill::lint::rules;
use crate::skill::yaml::Node;

/// Where steps may write: `inputs` and `frame` are given, `target` is what a skill is attached to.
const WRITABLE: &[&str] = &["vars", "outputs", "working", "output", "extensions"];

pub(super) fn check(reader: &mut Reader<'_>, contract: &Contract, root: &Node) {
    let ids: BTreeSet<&str> = contract.steps.iter().map(|step| step.id.as_str()).collect();
    let nodes: Vec<&Node> = root
        .get("steps")
        .map(|entry| match &entry.value.value {
            crate::skill::yaml::Content::List(items) => items.iter().collect(),
            _ => Vec::new(),
        })
        .unwrap_or_default();
    let at = |step: &Step| {
        nodes
            .iter()
            .find(|node| reader_id(node) == Some(step.id.as_str()))
            .map_or(root.at.clone(), |node| node.at.start..node.at.start)
    };
    let mut seen = BTreeSet::new();
    let mut written: BTreeMap<String, &str> = BTreeMap::new();
    for step in &contract.steps {
        let path = format!("steps.{}", step.id);
        let place = at(step);
        if !seen.insert(step.id.as_str()) {
            reader.invalid(&path, &place, format!("there are two steps with the id `{}`", step.id));
        }
        for other in &step.depends_on {
            if !ids.contains(other.as_str()) || *other == step.id {
                let message = format!("step `{}` depends on `{other}`, which is no other step", step.id);
                reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
            }
        }
        for (field, source) in &step.input {
            for reference in references(source) {
                if reference[0] == "inputs" && !contract.inputs.contains_key(&reference[1]) {
                    let message =
                        format!("step `{}`, {field}: there is no input `{}`", step.id, reference[1]);
                    reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                }
            }
        }
        for target in step.output.values() {
            if !WRITABLE.contains(&target[0].as_str()) || target.len() < 2 {
                let message = format!(
                    "step `{}` writes to `{}`; steps write to a path in {}",
                    step.id,
                    target.join("."),
                    WRITABLE.join(", ")
                );
                reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
            }
            let twice = written.insert(target.join("."), &step.id);
            if let Some(first) = twice.filter(|_| step.merge_strategy == MergeStrategy::Overwrite) {
                let message = format!(
                    "steps `{first}` and `{}` both write `{}`; say how with merge_strategy",
                    step.id,
                    target.join(".")
                );
                reader.invalid(&path, &place, message);
            }
        }
        for (what, text) in expressions(step) {
            match Expr::parse(text) {
                Err(error) => {
                    let message = format!("{what} of step `{}` cannot be read: {error}", step.id);
                    reader.note(&rules::CONTRACT_EXPRESSION, &path, &place, message);
                }
                Ok(expr) => {
                    for reference in expr.references() {
                        if !NAMESPACES.contains(&reference[0].as_str()) {
                            let message = format!(
                                "{what} of step `{}` reads `{}`; a reference begins with {}",
                                step.id,
                                reference.join("."),
                                NAMESPACES.join(", ")
                            );
                            reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                        }
                    }
                }
            }
        }
        if matches!(&step.action, StepAction::Skill(id) if *id == contract.id) {
            reader.invalid(&path, &place, format!("step `{}` runs this very skill", step.id));
        }
    }
    if let Some(cycle) = cycle(contract) {
        let message = format!("steps wait for each other: {}", cycle.join(" → "));
        reader.invalid("steps", &root.at, message);
    }
    for (output, field) in &contract.outputs {
        let path = format!("outputs.{output}");
        let produced =
            written.keys().any(|target| *target == path || target.starts_with(&format!("{path}.")));
        if !produced && field.required {
            let message = format!("no step writes the required output `{output}`");
            reader.note(&rules::CONTRACT_OUTPUT, &path, &root.at, message);
        }
    }
}

fn reader_id(node: &Node) -> Option<&str> {
    match &node.get("id")?.value.value {
        crate::skill::yaml::Content::Text(id) => Some(id.trim()),
        _ => None,
    }
}

/// Every reference in a source, at any depth.
pub(super) fn references(source: &Source) -> Vec<&[String]> {
    match source {
        Source::Reference(path) => vec![path],
        Source::Literal(_) => Vec::new(),
        Source::List(items) => items.iter().flat_map(references).collect(),
        Source::Object(map) => map.values().flat_map(references).collect(),
    }
}

fn expressions(step: &Step) -> Vec<(&'static str, &str)> {
    let mut all = Vec::new();
    all.extend(step.condition.as_deref().map(|text| ("the condition", text)));
    all.extend(step.foreach.as_ref().map(|f| ("foreach.items", f.items.as_str())));
    all.extend(step.repeat.as_ref().map(|w| ("while.condition", w.condition.as_str())));
    all.extend(step.router.as_ref().map(|r| ("router.on", r.on.as_str())));
    all
}

/// Steps that wait for each other, if any: depth-first search with colours.
fn cycle(contract: &Contract) -> Option<Vec<String>> {
    fn visit<'c>(
        id: &'c str,
        edges: &BTreeMap<&'c str, &'c [String]>,
        path: &mut Vec<&'c str>,
        done: &mut BTreeSet<&'c str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|step| *step == id) {
            return Some(path[start..].iter().chain([&id]).map(|s| (*s).to_owned()).collect());
        }
        if !done.insert(id) {
            return None;
        }
        path.push(id);
        let found = edges
            .get(id)
            .into_iter()
            .flat_map(|next| next.iter())
            .find_map(|next| visit(next, edges, path, done));
        path.pop();
        found
    }
    let edges: BTreeMap<&str, &[String]> =
        contract.steps.iter().map(|step| (step.id.as_str(), step.depends_on.as_slice())).collect();
    let mut done = BTreeSet::new();
    contract.steps.iter().find_map(|step| visit(&step.id, &edges, &mut Vec::new(), &mut done))
}
