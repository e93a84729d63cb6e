//! What can be said about a contract before it runs: names, references, expressions, order, outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::expression::Expr;
use super::parse::NAMESPACES;
use super::reader::{Reader, suggest};
use super::title::placeholders;
use super::types::{Contract, MergeStrategy, Source, Step, StepAction};
use crate::Severity;
use crate::lint::rules;
use crate::yaml::{Content, Node};

/// Where steps may write: `inputs` and `frame` are given, `target` is what a skill is attached to.
const WRITABLE: &[&str] = &["vars", "outputs", "working", "output", "extensions"];

pub(super) fn check(reader: &mut Reader<'_>, contract: &Contract, root: &Node) {
    let ids: BTreeSet<&str> = contract.steps.iter().map(|step| step.id.as_str()).collect();
    let places = Places::of(root);
    let produced: BTreeSet<String> =
        contract.steps.iter().flat_map(|step| step.output.values()).map(|target| target.join(".")).collect();
    let mut seen = BTreeSet::new();
    let mut written: BTreeMap<String, &str> = BTreeMap::new();
    for step in &contract.steps {
        let path = format!("steps.{}", step.id);
        let place = places.step(step);
        if !seen.insert(step.id.as_str()) {
            reader.invalid(&path, &place, format!("there are two steps with the id `{}`", step.id));
        }
        for other in &step.depends_on {
            if !ids.contains(other.as_str()) || *other == step.id {
                let message = format!("step `{}` depends on `{other}`, which is not another step", step.id);
                let place = places.within(step, &["config", "depends_on"]);
                let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                suggest(finding, other, ids.iter().copied().filter(|id| *id != step.id));
            }
        }
        for (field, source) in &step.input {
            let place = places.within(step, &["input", field.as_str()]);
            for reference in references(source) {
                if let [namespace, input, ..] = reference
                    && namespace == "inputs"
                    && !contract.inputs.contains_key(input)
                {
                    let message = format!("step `{}`, {field}: there is no input `{input}`", step.id);
                    let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                    suggest(finding, input, contract.inputs.keys().map(String::as_str));
                } else if is_dangling(reference, &produced) {
                    let name = reference.join(".");
                    let message = format!("step `{}`, {field}: no step writes `{name}`", step.id);
                    let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                    if step.condition.is_some() {
                        finding.severity = Severity::Warning;
                    }
                    suggest(finding, &name, produced.iter().map(String::as_str));
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
                    "steps `{first}` and `{}` both write `{}`; set merge_strategy",
                    step.id,
                    target.join(".")
                );
                reader.invalid(&path, &place, message);
            }
        }
        for (what, key, text) in expressions(step) {
            let place = places.within(step, key);
            match Expr::parse(text) {
                Err(error) => {
                    let message = format!("invalid {what} of step `{}`: {error}", step.id);
                    reader.note(&rules::CONTRACT_EXPRESSION, &path, &place, message);
                }
                Ok(expr) => {
                    for reference in expr.references() {
                        if !NAMESPACES.contains(&reference[0].as_str()) {
                            let message = format!(
                                "{what} of step `{}` reads `{}`; references begin with {}",
                                step.id,
                                reference.join("."),
                                NAMESPACES.join(", ")
                            );
                            reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                        } else if is_dangling(reference, &produced) {
                            let name = reference.join(".");
                            let message =
                                format!("{what} of step `{}` reads `{name}`, which no step writes", step.id);
                            let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
                            // Whether an expression comes to it, only its values say.
                            finding.severity = Severity::Warning;
                            suggest(finding, &name, produced.iter().map(String::as_str));
                        }
                    }
                }
            }
        }
        if matches!(&step.action, StepAction::Skill(id) if *id == contract.id) {
            let place = places.within(step, &["uses"]);
            reader.invalid(&path, &place, format!("step `{}` runs its own skill", step.id));
        }
    }
    if let Some(title) = &contract.title {
        let place = root.get("title").map_or_else(|| root.at.clone(), |entry| entry.value.at.clone());
        for name in placeholders(title) {
            let input = name.strip_prefix("inputs.").map(|path| path.split('.').next().unwrap_or(path));
            match input {
                Some(input) if contract.inputs.contains_key(input) => {}
                Some(input) => {
                    let message = format!("`title`: there is no input `{input}`");
                    let finding = reader.note(&rules::CONTRACT_REFERENCE, "title", &place, message);
                    suggest(finding, input, contract.inputs.keys().map(String::as_str));
                }
                None => {
                    let message =
                        format!("`title` reads `{name}`; a title reads inputs only: {{inputs.NAME}}");
                    reader.note(&rules::CONTRACT_REFERENCE, "title", &place, message);
                }
            }
        }
    }
    if let Some(cycle) = cycle(contract)
        && let Some(step) = contract.steps.iter().find(|step| step.id == cycle[0])
    {
        let message = format!("dependency cycle: {}", cycle.join(" → "));
        let place = places.within(step, &["config", "depends_on"]);
        reader.invalid(&format!("steps.{}.depends_on", step.id), &place, message);
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

/// Where the steps are in their file.
pub(super) struct Places<'n> {
    root: &'n Node,
    steps: &'n [Node],
}

impl<'n> Places<'n> {
    pub fn of(root: &'n Node) -> Self {
        let steps = match root.get("steps").map(|entry| &entry.value.value) {
            Some(Content::List(items)) => items.as_slice(),
            _ => &[],
        };
        Self { root, steps }
    }

    fn node(&self, step: &Step) -> Option<&'n Node> {
        let id = |node: &Node| match &node.get("id")?.value.value {
            Content::Text(id) => Some(id.trim().to_owned()),
            _ => None,
        };
        self.steps.iter().find(|node| id(node).as_ref() == Some(&step.id))
    }

    /// Where a step begins.
    pub fn step(&self, step: &Step) -> Range<usize> {
        self.node(step).map_or_else(|| self.root.at.clone(), |node| node.at.start..node.at.start)
    }

    /// The value under some keys of a step; the step where it has none.
    pub fn within(&self, step: &Step, keys: &[&str]) -> Range<usize> {
        let value = |node: &'n Node, key: &&str| node.get(key).map(|entry| &entry.value);
        let node = self.node(step).and_then(|node| keys.iter().try_fold(node, value));
        node.map_or_else(|| self.step(step), |node| node.at.clone())
    }
}

/// Namespaces that hold nothing but what steps write: reading anything else there fails.
const PRODUCED: &[&str] = &["vars", "outputs", "working"];

/// Whether a reference leads to something that no step writes: neither it, nor what it is a part of, nor a part of it.
fn is_dangling(reference: &[String], produced: &BTreeSet<String>) -> bool {
    if reference.len() < 2 || !PRODUCED.contains(&reference[0].as_str()) {
        return false;
    }
    let name = reference.join(".");
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    !produced.iter().any(|target| within(&name, target) || within(target, &name))
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

/// The name of an expression, its key path, and its text.
type Expression<'s> = (&'static str, &'static [&'static str], &'s str);

fn expressions(step: &Step) -> Vec<Expression<'_>> {
    let mut all: Vec<Expression<'_>> = Vec::new();
    let condition = step.condition.as_deref();
    all.extend(condition.map(|text| ("the condition", &["config", "condition"][..], text)));
    let items = step.foreach.as_ref().map(|f| f.items.as_str());
    all.extend(items.map(|text| ("foreach.items", &["config", "foreach", "items"][..], text)));
    let repeat = step.repeat.as_ref().map(|w| w.condition.as_str());
    all.extend(repeat.map(|text| ("while.condition", &["config", "while", "condition"][..], text)));
    let on = step.router.as_ref().map(|r| r.on.as_str());
    all.extend(on.map(|text| ("router.on", &["config", "router", "on"][..], text)));
    all
}

/// Steps that wait for each other, if any: depth-first search with colors.
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
            .filter(|next| *next != id) // reported where it is
            .find_map(|next| visit(next, edges, path, done));
        path.pop();
        found
    }
    let edges: BTreeMap<&str, &[String]> =
        contract.steps.iter().map(|step| (step.id.as_str(), step.depends_on.as_slice())).collect();
    let mut done = BTreeSet::new();
    contract.steps.iter().find_map(|step| visit(&step.id, &edges, &mut Vec::new(), &mut done))
}
