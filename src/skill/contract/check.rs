//! Static checks of a contract: names, references, expressions, order, outputs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::expression::Expr;
use super::parse::NAMESPACES;
use super::reader::Reader;
use super::title::placeholders;
use super::types::{Contract, MergeStrategy, Source, Step, StepAction};
use crate::Severity;
use crate::lint::rules;
use crate::yaml::{Content, Node};

/// Help for a skill that calls itself.
pub(super) const OWN_SKILL: &str = "Call another skill, or remove the step.";

/// Namespaces that steps may write: `inputs` and `frame` are read-only, and `target` is what a skill is attached to.
const WRITABLE: &[&str] = &["vars", "outputs", "working", "output", "extensions"];

pub(super) fn check(reader: &mut Reader<'_>, contract: &Contract, root: &Node) {
    let places = Places::of(root, contract);
    let order = Order::of(contract);
    if !is_version(&contract.version) {
        let message = format!("`version` is `{}`; expected a version such as 1.0.0", contract.version);
        let finding =
            reader.invalid("version", &places.at(&["version"]), message, "Use numbers separated by periods.");
        finding.severity = Severity::Warning;
    }
    let mut written: BTreeMap<String, &str> = BTreeMap::new();
    for (index, step) in contract.steps.iter().enumerate() {
        let facts = StepFacts { contract, order: &order, index, step, before: OnceCell::new() };
        identity(reader, &places, &facts);
        inputs(reader, &places, &facts);
        targets(reader, &places, &facts, &mut written);
        for expression in expressions(step) {
            check_expression(reader, &places, &facts, expression);
        }
        if matches!(&step.action, StepAction::Skill(id) if *id == contract.id) {
            let place = places.within(step, &["uses"]);
            let message = format!("step `{}` runs its own skill", step.id);
            reader.invalid(&format!("steps.{}", step.id), &place, message, OWN_SKILL);
        }
    }
    title(reader, &places, contract);
    if let Some(cycle) = cycle(contract)
        && let Some(step) = contract.steps.iter().find(|step| step.id == cycle[0])
    {
        let message = format!("dependency cycle: {}", cycle.join(" → "));
        let place = places.within(step, &["config", "depends_on"]);
        let path = format!("steps.{}.depends_on", step.id);
        reader.invalid(&path, &place, message, "Remove one of these dependencies.");
    }
    for (output, field) in &contract.outputs {
        let path = format!("outputs.{output}");
        let produced =
            written.keys().any(|target| *target == path || target.starts_with(&format!("{path}.")));
        if !produced && field.required {
            let message = format!("no step writes the required output `{output}`");
            let place = places.field("outputs", output);
            reader.note(&rules::CONTRACT_OUTPUT, &path, &place, message);
        }
    }
}

/// Checks the id of a step and its dependencies.
fn identity(reader: &mut Reader<'_>, places: &Places<'_>, facts: &StepFacts<'_>) {
    let (step, order) = (facts.step, facts.order);
    let path = format!("steps.{}", step.id);
    if order.first(&step.id) != Some(facts.index) {
        let place = places.within(step, &["id"]);
        let message = format!("there are two steps with the id `{}`", step.id);
        reader.invalid(&path, &place, message, "Rename one of them.");
    }
    if let Some(wrong) = step.id.chars().find(|&c| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.')) {
        let message = format!("the step id `{}` contains {wrong:?}", step.id);
        let help = "Use letters, digits, `-`, `_` and `.` only.";
        let finding = reader.invalid(&path, &places.within(step, &["id"]), message, help);
        // Such a step runs, but `/`, `[` and `~` are separators in the paths that identify steps elsewhere.
        finding.severity = Severity::Warning;
    }
    for other in &step.depends_on {
        let is_known = order.first(other).is_some();
        // The second step with an id implicitly follows the first one, which was reported above.
        let is_itself = *other == step.id && order.first(other) == Some(facts.index);
        if !is_known || is_itself {
            let message = format!("step `{}` depends on `{other}`, which is not another step", step.id);
            let place = places.within(step, &["config", "depends_on"]);
            reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
            reader.suggest(other, order.ids().filter(|id| *id != step.id));
        }
    }
}

fn inputs(reader: &mut Reader<'_>, places: &Places<'_>, facts: &StepFacts<'_>) {
    let step = facts.step;
    let path = format!("steps.{}", step.id);
    for (field, source) in &step.input {
        let place = places.within(step, &["input", field.as_str()]);
        for reference in references(source) {
            let Some(unresolved) = facts.unresolved(reference, false) else { continue };
            let name = reference.join(".");
            let problem = match unresolved {
                Unresolved::NoInput(input) => format!("unknown input `{input}`"),
                Unresolved::NoFrame => format!("`{name}` is always null, because runs do not set `frame`"),
                Unresolved::NoWriter => format!("no step writes `{name}`"),
                Unresolved::Later(writer) => format!("`{name}` is written only later, by step `{writer}`"),
                Unresolved::Itself => format!("`{name}` is written only by this step"),
                Unresolved::Parallel(writer) => {
                    format!("`{name}` is written by step `{writer}`, which this step does not depend on")
                }
            };
            let message = format!("step `{}`, {field}: {problem}", step.id);
            let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
            // A `foreach` without items reads nothing, and waiting for a signal has no inputs.
            let is_read = step.foreach.is_none() && !matches!(step.action, StepAction::WaitForSignal(_));
            let is_certain = match unresolved {
                Unresolved::NoInput(_) => true,
                Unresolved::NoWriter => step.condition.is_none(),
                Unresolved::Later(_) | Unresolved::Itself => step.condition.is_none() && is_read,
                Unresolved::NoFrame | Unresolved::Parallel(_) => false,
            };
            if !is_certain {
                finding.severity = Severity::Warning;
            }
            facts.advise(reader, &name, unresolved);
        }
    }
}

/// Checks the targets of a step's outputs.
fn targets<'c>(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    facts: &StepFacts<'c>,
    written: &mut BTreeMap<String, &'c str>,
) {
    let step = facts.step;
    let path = format!("steps.{}", step.id);
    let place = places.step(step);
    for (field, target) in &step.output {
        let name = target.join(".");
        if !WRITABLE.contains(&target[0].as_str()) || target.len() < 2 {
            let message = format!(
                "step `{}` writes to `{name}`; steps write to a path in {}",
                step.id,
                WRITABLE.join(", ")
            );
            reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
        }
        let outputs = &facts.contract.outputs;
        if let [namespace, output, ..] = target.as_slice()
            && namespace == "outputs"
            && !outputs.is_empty()
            && !outputs.contains_key(output)
        {
            let message = format!("step `{}` writes `{name}`, which `outputs` does not declare", step.id);
            let place = places.within(step, &["output", field.as_str()]);
            let finding = reader.note(&rules::CONTRACT_OUTPUT, &path, &place, message);
            "Declare it in `outputs`, or write to `vars`.".clone_into(&mut finding.help);
            reader.suggest(output, outputs.keys().map(String::as_str));
        }
        let twice = written.insert(name.clone(), &step.id);
        if let Some(first) = twice.filter(|_| step.merge_strategy == MergeStrategy::Overwrite) {
            let message =
                format!("steps `{first}` and `{}` both write `{name}`; set merge_strategy", step.id);
            let help = "Set it to append, deep_merge or replace, or write to another path.";
            reader.invalid(&path, &place, message, help);
        }
    }
}

fn check_expression(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    facts: &StepFacts<'_>,
    (what, key, text): Expression<'_>,
) {
    let step = facts.step;
    let path = format!("steps.{}", step.id);
    let place = places.within(step, key);
    let expr = match Expr::parse(text) {
        Ok(expr) => expr,
        Err(error) => {
            let message = format!("invalid {what} of step `{}`: {error}", step.id);
            reader.note(&rules::CONTRACT_EXPRESSION, &path, &place, message);
            return;
        }
    };
    for reference in expr.references() {
        let name = reference.join(".");
        if !NAMESPACES.contains(&reference[0].as_str()) {
            let message = format!(
                "{what} of step `{}` reads `{name}`; references begin with {}",
                step.id,
                NAMESPACES.join(", ")
            );
            reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
            continue;
        }
        // The condition of a `while` is evaluated after the step has written its outputs.
        let Some(unresolved) = facts.unresolved(reference, key.contains(&"while")) else { continue };
        let problem = match unresolved {
            Unresolved::NoInput(_) => "which is not an input".to_owned(),
            Unresolved::NoFrame => "which is always null, because runs do not set `frame`".to_owned(),
            Unresolved::NoWriter => "which no step writes".to_owned(),
            Unresolved::Later(writer) => format!("which is written only later, by step `{writer}`"),
            Unresolved::Itself => "which is written only by this step".to_owned(),
            Unresolved::Parallel(writer) => {
                format!("which step `{writer}` writes, but this step does not depend on it")
            }
        };
        let message = format!("{what} of step `{}` reads `{name}`, {problem}", step.id);
        let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &place, message);
        // Whether an expression is evaluated depends on values; the items of a `foreach` always are.
        let is_certain = key.contains(&"foreach")
            && step.condition.is_none()
            && matches!(expr, Expr::Reference(_))
            && !matches!(unresolved, Unresolved::NoFrame | Unresolved::Parallel(_));
        if !is_certain {
            finding.severity = Severity::Warning;
        }
        facts.advise(reader, &name, unresolved);
    }
}

fn title(reader: &mut Reader<'_>, places: &Places<'_>, contract: &Contract) {
    let Some(title) = &contract.title else { return };
    let place = places.at(&["title"]);
    for name in placeholders(title) {
        let input = name.strip_prefix("inputs.").map(|path| path.split('.').next().unwrap_or(path));
        match input {
            Some(input) if contract.inputs.contains_key(input) => {}
            Some(input) => {
                let message = format!("`title`: unknown input `{input}`");
                reader.note(&rules::CONTRACT_REFERENCE, "title", &place, message);
                reader.suggest(input, contract.inputs.keys().map(String::as_str));
            }
            None => {
                let message = format!("`title` reads `{name}`; a title reads inputs only: {{inputs.NAME}}");
                reader.note(&rules::CONTRACT_REFERENCE, "title", &place, message);
            }
        }
    }
}

/// Returns whether a text is a version: numbers separated by periods, then an optional pre-release or build suffix.
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let core = text.split(['-', '+']).next().unwrap_or(text);
    core.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// The execution order of the steps, and which step writes which target.
struct Order<'c> {
    /// The first step with each id.
    first: BTreeMap<&'c str, usize>,
    /// The dependencies of each step.
    depends_on: Vec<Vec<usize>>,
    /// The steps that write each target.
    writers: BTreeMap<String, Vec<usize>>,
    /// Whether all step ids are unique; otherwise `depends_on` is ambiguous.
    is_known: bool,
}

impl<'c> Order<'c> {
    fn of(contract: &'c Contract) -> Self {
        let mut first = BTreeMap::new();
        let mut writers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, step) in contract.steps.iter().enumerate() {
            first.entry(step.id.as_str()).or_insert(index);
            for target in step.output.values() {
                writers.entry(target.join(".")).or_default().push(index);
            }
            if step.output.is_empty() && step.scatter.is_some() {
                writers.entry(format!("vars.{}", step.id)).or_default().push(index);
            }
        }
        let index = |id: &String| first.get(id.as_str()).copied();
        let steps = contract.steps.iter();
        let depends_on = steps.map(|step| step.depends_on.iter().filter_map(index).collect()).collect();
        let is_known = first.len() == contract.steps.len();
        Self { first, depends_on, writers, is_known }
    }

    fn first(&self, id: &str) -> Option<usize> {
        self.first.get(id).copied()
    }

    fn ids(&self) -> impl Iterator<Item = &'c str> {
        self.first.keys().copied()
    }

    /// Returns for each step whether it completes before this one starts.
    fn before(&self, step: usize) -> Vec<bool> {
        let mut before = vec![false; self.depends_on.len()];
        let mut left = vec![step];
        while let Some(step) = left.pop() {
            for &other in self.depends_on.get(step).into_iter().flatten() {
                if let Some(seen) = before.get_mut(other)
                    && !std::mem::replace(seen, true)
                {
                    left.push(other);
                }
            }
        }
        before
    }
}

/// One step with its context.
struct StepFacts<'c> {
    contract: &'c Contract,
    order: &'c Order<'c>,
    index: usize,
    step: &'c Step,
    before: OnceCell<Vec<bool>>,
}

/// Why a reference has no value when its step starts.
#[derive(Clone, Copy)]
enum Unresolved<'a> {
    NoInput(&'a str),
    NoFrame,
    NoWriter,
    Later(&'a str),
    Itself,
    Parallel(&'a str),
}

/// Namespaces that contain only what steps write: reading anything else in them fails.
const PRODUCED: &[&str] = &["vars", "outputs", "working"];

impl<'c> StepFacts<'c> {
    /// Returns why a reference has no value, or `None` if it refers to something that an earlier step writes, a part
    /// of it, or an object that contains it. `own` states whether the step itself counts as an earlier one.
    fn unresolved<'r>(&self, reference: &'r [String], own: bool) -> Option<Unresolved<'r>>
    where
        'c: 'r,
    {
        let [namespace, rest, ..] = reference else { return None };
        if namespace == "inputs" {
            return (!self.contract.inputs.contains_key(rest)).then_some(Unresolved::NoInput(rest));
        }
        // The item of a `foreach` may have that name.
        if namespace == "frame" && self.step.foreach.as_ref().is_none_or(|foreach| foreach.item != "frame") {
            return Some(Unresolved::NoFrame);
        }
        if !PRODUCED.contains(&namespace.as_str()) {
            return None;
        }
        let name = reference.join(".");
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let targets = self.order.writers.iter();
        let matching = targets.filter(|(target, _)| within(&name, target) || within(target, &name));
        let writers: Vec<usize> = matching.flat_map(|(_, writers)| writers).copied().collect();
        if writers.is_empty() {
            return Some(Unresolved::NoWriter);
        }
        if !self.order.is_known {
            return None;
        }
        let before = self.before.get_or_init(|| self.order.before(self.index));
        let is_earlier =
            |writer: &usize| before.get(*writer) == Some(&true) || (own && *writer == self.index);
        if writers.iter().any(is_earlier) {
            return None;
        }
        let Some(&writer) = writers.iter().find(|writer| **writer != self.index) else {
            return Some(Unresolved::Itself);
        };
        let id = self.contract.steps.get(writer).map_or("", |step| step.id.as_str());
        let is_later = self.order.before(writer).get(self.index) == Some(&true);
        Some(if is_later { Unresolved::Later(id) } else { Unresolved::Parallel(id) })
    }

    /// Adds help to the last finding.
    fn advise(&self, reader: &mut Reader<'_>, name: &str, unresolved: Unresolved<'_>) {
        let id = &self.step.id;
        match unresolved {
            Unresolved::NoInput(input) => {
                reader.suggest(input, self.contract.inputs.keys().map(String::as_str));
            }
            Unresolved::NoFrame => reader.set_help(
                "Read an input, or what an earlier step writes; a `foreach` passes each item in the input field that \
                    `as` names."
                    .to_owned(),
            ),
            Unresolved::NoWriter => reader.suggest(name, self.order.writers.keys().map(String::as_str)),
            Unresolved::Later(writer) => {
                reader.set_help(format!("Move step `{writer}` before step `{id}`, or change `depends_on`."));
            }
            Unresolved::Itself => {
                reader.set_help("Read an input, or what an earlier step writes.".to_owned());
            }
            Unresolved::Parallel(writer) => {
                reader.set_help(format!("Add `{writer}` to `depends_on` of step `{id}`."));
            }
        }
    }
}

/// Positions of the parts of a contract in its file.
pub(super) struct Places<'n> {
    root: &'n Node,
    /// Steps by their addresses, because two steps can have the same id.
    steps: HashMap<*const Step, &'n Node>,
}

impl<'n> Places<'n> {
    pub fn of(root: &'n Node, contract: &Contract) -> Self {
        let mut nodes = match root.get("steps").map(|entry| &entry.value.value) {
            Some(Content::List(items)) => items.iter(),
            _ => [].iter(),
        };
        let has_id = |node: &Node, wanted: &str| {
            node.get("id")
                .is_some_and(|id| matches!(&id.value.value, Content::Text(id) if id.trim() == wanted))
        };
        // Invalid steps are not in the contract; the others are in file order.
        let steps = contract.steps.iter();
        let steps = steps.filter_map(|step| {
            let mut rest = nodes.clone();
            let node = rest.find(|node| has_id(node, &step.id))?;
            nodes = rest;
            Some((std::ptr::from_ref(step), node))
        });
        Self { root, steps: steps.collect() }
    }

    /// Returns the start of a step.
    pub fn step(&self, step: &Step) -> Range<usize> {
        let node = self.steps.get(&std::ptr::from_ref(step));
        node.map_or_else(|| self.root.at.clone(), |node| node.at.start..node.at.start)
    }

    /// Returns the range of the value under some keys of a step, or the start of the step if it has none.
    pub fn within(&self, step: &Step, keys: &[&str]) -> Range<usize> {
        let node = self.steps.get(&std::ptr::from_ref(step));
        let node = node.and_then(|node| keys.iter().try_fold(*node, value));
        node.map_or_else(|| self.step(step), |node| node.at.clone())
    }

    /// Returns the range of the value under some keys of the contract, or the contract if it has none.
    pub fn at(&self, keys: &[&str]) -> Range<usize> {
        let node = keys.iter().try_fold(self.root, value);
        node.map_or_else(|| self.root.at.clone(), |node| node.at.clone())
    }

    /// Returns the range of the name of a declared input or output, or the contract if it has none.
    pub fn field(&self, key: &str, name: &str) -> Range<usize> {
        let entry = self.root.get(key).and_then(|fields| fields.value.get(name));
        entry.map_or_else(|| self.root.at.clone(), |entry| entry.key_at.clone())
    }
}

fn value<'n>(node: &'n Node, key: &&str) -> Option<&'n Node> {
    node.get(key).map(|entry| &entry.value)
}

/// Returns every reference in a source, at any depth.
pub(super) fn references(source: &Source) -> Vec<&[String]> {
    match source {
        Source::Reference(path) => vec![path],
        Source::Literal(_) => Vec::new(),
        Source::List(items) => items.iter().flat_map(references).collect(),
        Source::Object(map) => map.values().flat_map(references).collect(),
    }
}

/// The label of an expression, its key path, and its text.
type Expression<'s> = (&'static str, &'static [&'static str], &'s str);

fn expressions(step: &Step) -> Vec<Expression<'_>> {
    let mut all: Vec<Expression<'_>> = Vec::new();
    let condition = step.condition.as_deref();
    all.extend(condition.map(|text| ("condition", &["config", "condition"][..], text)));
    let items = step.foreach.as_ref().map(|f| f.items.as_str());
    all.extend(items.map(|text| ("foreach.items", &["config", "foreach", "items"][..], text)));
    let repeat = step.repeat.as_ref().map(|w| w.condition.as_str());
    all.extend(repeat.map(|text| ("while.condition", &["config", "while", "condition"][..], text)));
    let on = step.router.as_ref().map(|r| r.on.as_str());
    all.extend(on.map(|text| ("router.on", &["config", "router", "on"][..], text)));
    all
}

/// Finds steps that wait for each other: depth-first search with an explicit stack, because a chain of steps can be of
/// any length.
fn cycle(contract: &Contract) -> Option<Vec<String>> {
    let edges: BTreeMap<&str, &[String]> =
        contract.steps.iter().map(|step| (step.id.as_str(), step.depends_on.as_slice())).collect();
    let mut seen = BTreeSet::new();
    for step in &contract.steps {
        if !seen.insert(step.id.as_str()) {
            continue;
        }
        // The steps on the path, each with the number of its dependencies that were visited.
        let mut path = vec![(step.id.as_str(), 0)];
        let mut on_path = BTreeSet::from([step.id.as_str()]);
        while let Some((id, visited)) = path.last_mut() {
            let id = *id;
            let Some(next) = edges.get(id).and_then(|after| after.get(*visited)) else {
                on_path.remove(id);
                path.pop();
                continue;
            };
            *visited += 1;
            // A step that depends on itself is reported as its own finding.
            if next == id {
                continue;
            }
            if on_path.contains(next.as_str()) {
                let ids = path.iter().map(|(id, _)| *id).skip_while(|id| id != next);
                return Some(ids.chain([next.as_str()]).map(str::to_owned).collect());
            }
            if seen.insert(next) {
                on_path.insert(next);
                path.push((next, 0));
            }
        }
    }
    None
}
