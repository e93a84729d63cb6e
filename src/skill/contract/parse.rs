//! Parses `skill.yaml` to [`Contract`].

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::check;
use super::reader::{Reader, join};
use super::types::{
    Contract, ContractApprovals, Field, FieldType, Foreach, Merge, MergeStrategy, Retry, Router, Scatter,
    Source, Step, StepAction, While,
};
use crate::Finding;
use crate::yaml::{Content, Node};

/// Namespaces: first parts of a dotted text that make it a reference; any other text is a constant.
pub const NAMESPACES: &[&str] =
    &["inputs", "vars", "outputs", "working", "frame", "output", "extensions", "target"];

/// Top-level keys of a contract. Others are properties of the skill, or custom keys of its author.
const KEYS: &[&str] = &[
    "id",
    "version",
    "name",
    "description",
    "title",
    "expires_in_seconds",
    "approvals",
    "inputs",
    "outputs",
    "steps",
];

/// Maximum timeout of an approval or a signal that a contract can set, in seconds: a year.
const MAX_EXPIRY_SECONDS: f64 = 31_536_000.0;

/// Maximum number of people whose approval a contract can require.
const MAX_APPROVERS: f64 = 20.0;

/// Maximum timeout of one invocation, in seconds: a day.
const DAY: f64 = 86_400.0;

/// Parses a contract. Returns `None` if the file is not a YAML mapping or has no steps, with findings that state why.
/// A contract with errors among its findings is also returned, so that it can be shown; it does not run.
pub fn parse(location: &Path, source: &str) -> (Option<Contract>, Vec<Finding>) {
    let file = location.file_name().map_or(Path::new("skill.yaml"), Path::new);
    let mut reader = Reader::new(file, source.strip_prefix('\u{feff}').unwrap_or(source));
    let Some(root) = reader.root() else { return (None, reader.findings()) };
    reader.misspelled(&root, KEYS);
    let Some(steps) = root.get("steps") else { return (None, reader.findings()) };
    let mut contract = Contract {
        id: reader.required(&root, "", "id").unwrap_or_default(),
        version: reader.text(&root, "", "version").unwrap_or_else(|| "0.0.0".to_owned()),
        name: reader.text(&root, "", "name"),
        description: reader.text(&root, "", "description"),
        title: reader.text(&root, "", "title").filter(|title| !title.is_empty()),
        expires_in_seconds: reader
            .number(&root, "", "expires_in_seconds", 1.0, MAX_EXPIRY_SECONDS)
            .map(|seconds| Duration::from_secs_f64(seconds).as_secs()),
        approvals: approvals(&mut reader, &root),
        inputs: fields(&mut reader, &root, "inputs"),
        outputs: fields(&mut reader, &root, "outputs"),
        steps: Vec::new(),
        findings: Vec::new(),
        location: location.to_owned(),
    };
    for (index, node) in reader.list(&root, "", "steps").iter().enumerate() {
        let before = contract.steps.last().map(|step: &Step| step.id.clone());
        if let Some(step) = step(&mut reader, node, index, before) {
            contract.steps.push(step);
        }
    }
    if matches!(&steps.value.value, Content::Null)
        || matches!(&steps.value.value, Content::List(items) if items.is_empty())
    {
        reader.invalid(
            "steps",
            &steps.value.at,
            "`steps` is empty",
            "Add a step: `- {id: NAME, uses: CAPABILITY}`.",
        );
    }
    check::check(&mut reader, &contract, &root);
    let findings = reader.findings();
    contract.findings.clone_from(&findings);
    (Some(contract), findings)
}

fn approvals(reader: &mut Reader<'_>, root: &Node) -> Option<ContractApprovals> {
    let entry = root.get("approvals")?;
    if !matches!(entry.value.value, Content::Map(_)) {
        let help = "Write for example `approvals: {need: 2, not_by: starter}`.";
        reader.invalid("approvals", &entry.value.at, "`approvals` must be a mapping", help);
        return None;
    }
    reader.only(&entry.value, "approvals", &["need", "not_by"]);
    let need = reader.number(&entry.value, "approvals", "need", 1.0, MAX_APPROVERS).unwrap_or(1.0);
    if need.fract() > 0.0 {
        reader.invalid(
            "approvals.need",
            &entry.value.at,
            "`approvals.need` must be an integer",
            "Use an integer.",
        );
    }
    let not_by = reader.word::<ExcludedApprover>(&entry.value, "approvals", "not_by", "starter");
    Some(ContractApprovals { need: need as u32, not_by_starter: not_by.is_some() })
}

/// Whose approval does not count.
#[derive(strum::EnumString)]
#[strum(serialize_all = "snake_case")]
enum ExcludedApprover {
    Starter,
}

/// Parses typed fields under a key: `{name: {type, required, …}}`, or `{name: type}` for short.
pub(super) fn fields(reader: &mut Reader<'_>, node: &Node, key: &str) -> BTreeMap<String, Field> {
    let mut out = BTreeMap::new();
    for entry in reader.map(node, "", key) {
        if let Some(field) = field(reader, &entry.value, &join(key, &entry.key)) {
            out.insert(entry.key.clone(), field);
        }
    }
    out
}

/// Parses one typed field: a type, or a mapping with one.
fn field(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<Field> {
    let types = "string, number, integer, boolean, array, object, any";
    match &node.value {
        Content::Text(word) => {
            let kind = word.parse().unwrap_or_else(|_| {
                let message = format!("`{path}` is `{word}`; expected one of {types}");
                reader.invalid(path, &node.at, message, "Use one of these types.");
                reader.suggest(word, types.split(", "));
                FieldType::Any
            });
            Some(Field::of(kind))
        }
        Content::Map(_) => {
            let keys = [
                "type",
                "required",
                "description",
                "default",
                "enum",
                "items",
                "properties",
                "format",
                "example",
                "examples",
            ];
            reader.only(node, path, &keys);
            let items = node.get("items").filter(|items| items.value.value != Content::Null);
            Some(Field {
                kind: reader.word(node, path, "type", types).unwrap_or(FieldType::Any),
                required: reader.flag(node, path, "required").unwrap_or(false),
                description: reader.text(node, path, "description"),
                default: Reader::json(node, "default"),
                allowed: reader.list(node, path, "enum").iter().map(Node::to_json).collect(),
                items: items
                    .and_then(|items| field(reader, &items.value, &join(path, "items")))
                    .map(Box::new),
            })
        }
        _ => {
            let message = format!("`{path}` is neither a type nor a mapping with one");
            reader.invalid(path, &node.at, message, "Write a type such as string, or a mapping with `type`.");
            None
        }
    }
}

fn step(reader: &mut Reader<'_>, node: &Node, index: usize, before: Option<String>) -> Option<Step> {
    let place = format!("steps.{index}");
    let id = reader.required(node, &place, "id")?;
    let path = format!("steps.{id}");
    let keys = ["id", "uses", "wait_for_signal", "input", "output", "config", "description", "name"];
    reader.only(node, &path, &keys);
    let action = action(reader, node, &id, &path)?;
    let input = reader
        .map(node, &path, "input")
        .iter()
        .map(|entry| (entry.key.clone(), source(&entry.value.to_json())))
        .collect();
    let output = outputs(reader, node, &path);
    let empty = Node { value: Content::Map(Vec::new()), at: node.at.clone() };
    let config = node.get("config").map_or(&empty, |entry| &entry.value);
    let path = join(&path, "config");
    let keys = [
        "depends_on",
        "condition",
        "retry",
        "foreach",
        "while",
        "router",
        "scatter",
        "merge_strategy",
        "timeout_seconds",
    ];
    reader.only(config, &path, &keys);
    let mut step = Step {
        action,
        input,
        output,
        depends_on: match reader.texts(config, &path, "depends_on") {
            Some(stated) => stated,
            None => before.into_iter().collect(),
        },
        condition: reader.text(config, &path, "condition"),
        retry: part(config, "retry").and_then(|node| retry(reader, node, &join(&path, "retry"))),
        foreach: part(config, "foreach").and_then(|node| foreach(reader, node, &join(&path, "foreach"))),
        repeat: part(config, "while").and_then(|node| repeat(reader, node, &join(&path, "while"))),
        router: part(config, "router").and_then(|node| router(reader, node, &join(&path, "router"))),
        scatter: part(config, "scatter").map(|node| scatter(reader, node, &join(&path, "scatter"))),
        merge_strategy: reader
            .word(config, &path, "merge_strategy", "overwrite, append, deep_merge, replace")
            .unwrap_or(MergeStrategy::Overwrite),
        timeout: reader.number(config, &path, "timeout_seconds", 0.001, DAY).map(Duration::from_secs_f64),
        line: reader.line(&node.at),
        id,
    };
    if let Some(foreach) = &step.foreach {
        let names = [Some(&foreach.item), foreach.index_as.as_ref()];
        for source in step.input.values_mut() {
            item_reference(source, &names);
        }
    }
    let exclusive = [step.foreach.is_some(), step.repeat.is_some(), step.scatter.is_some()];
    if exclusive.iter().filter(|x| **x).count() > 1 || (step.scatter.is_some() && step.router.is_some()) {
        let message = "foreach, while and scatter cannot be combined, nor scatter with router";
        reader.invalid(
            &path,
            &config.at,
            message,
            "Keep one of them, and move the others into further steps.",
        );
    }
    Some(step)
}

/// Parses what a step does.
fn action(reader: &mut Reader<'_>, node: &Node, id: &str, path: &str) -> Option<StepAction> {
    let uses = reader.text(node, path, "uses");
    let signal = reader.text(node, path, "wait_for_signal");
    match (uses, signal) {
        (Some(uses), None) => match uses.strip_prefix("skill:") {
            Some(skill) => Some(StepAction::Skill(skill.trim().to_owned())),
            None => Some(StepAction::Capability(uses)),
        },
        (None, Some(name)) => Some(StepAction::WaitForSignal(name)),
        (Some(_), Some(_)) => {
            let message = format!("step `{id}` has both `uses` and `wait_for_signal`");
            reader.invalid(path, &node.at, message, "Remove one of them.");
            None
        }
        (None, None) => {
            let message = format!("step `{id}` has neither `uses` nor `wait_for_signal`");
            let help = "Add `uses: CAPABILITY`, `uses: skill:ID` or `wait_for_signal: NAME`.";
            reader.invalid(path, &node.at, message, help);
            None
        }
    }
}

/// Parses where a step stores its outputs: a path by field.
fn outputs(reader: &mut Reader<'_>, node: &Node, path: &str) -> BTreeMap<String, Vec<String>> {
    let mut output = BTreeMap::new();
    for entry in reader.map(node, path, "output") {
        let Content::Text(target) = &entry.value.value else {
            reader.invalid(
                &join(path, "output"),
                &entry.value.at,
                "an output needs a dotted path such as vars.rows",
                "Use a path in vars, outputs, working, output or extensions.",
            );
            continue;
        };
        output.insert(entry.key.clone(), target.trim().split('.').map(str::to_owned).collect());
    }
    output
}

fn part<'n>(config: &'n Node, key: &str) -> Option<&'n Node> {
    config.get(key).map(|entry| &entry.value).filter(|node| node.value != Content::Null)
}

/// Parses a source: a text whose first part is a namespace is a reference, everything else is a constant, at any
/// depth.
pub(super) fn source(value: &Value) -> Source {
    match value {
        Value::String(text) => {
            let path: Vec<&str> = text.split('.').collect();
            let is_identifier = |part: &&str| {
                !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            };
            if NAMESPACES.contains(&path[0]) && path.len() > 1 && path.iter().all(is_identifier) {
                Source::Reference(path.into_iter().map(str::to_owned).collect())
            } else {
                Source::Literal(value.clone())
            }
        }
        Value::Array(items) => Source::List(items.iter().map(source).collect()),
        Value::Object(map) => Source::Object(map.iter().map(|(k, v)| (k.clone(), source(v))).collect()),
        _ => Source::Literal(value.clone()),
    }
}

/// Converts a text in a `foreach` that is the name of the item or the index (or a path below it) to a reference.
fn item_reference(source: &mut Source, names: &[Option<&String>]) {
    match source {
        Source::Literal(Value::String(text)) => {
            let path: Vec<String> = text.split('.').map(str::to_owned).collect();
            if names.iter().flatten().any(|name| **name == path[0]) {
                *source = Source::Reference(path);
            }
        }
        Source::List(items) => items.iter_mut().for_each(|item| item_reference(item, names)),
        Source::Object(map) => map.values_mut().for_each(|item| item_reference(item, names)),
        Source::Literal(_) | Source::Reference(_) => {}
    }
}

fn retry(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<Retry> {
    reader.only(node, path, &["max_attempts", "backoff_seconds", "backoff_multiplier"]);
    let attempts = reader.number(node, path, "max_attempts", 1.0, 100.0);
    if node.get("max_attempts").is_none() {
        let message = format!("`{path}.max_attempts` is missing");
        reader.invalid(path, &node.at, message, "Add `max_attempts`.");
    }
    Some(Retry {
        max_attempts: attempts? as u32,
        backoff_seconds: reader.number(node, path, "backoff_seconds", 0.0, DAY).unwrap_or(1.0),
        backoff_multiplier: reader.number(node, path, "backoff_multiplier", 1.0, 100.0).unwrap_or(2.0),
    })
}

fn foreach(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<Foreach> {
    reader.only(node, path, &["items", "as", "index_as"]);
    Some(Foreach {
        items: reader.required(node, path, "items")?,
        item: reader.required(node, path, "as")?,
        index_as: reader.text(node, path, "index_as"),
    })
}

fn repeat(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<While> {
    reader.only(node, path, &["condition", "max_iterations"]);
    Some(While {
        condition: reader.required(node, path, "condition")?,
        max_iterations: reader.number(node, path, "max_iterations", 1.0, 10_000.0).unwrap_or(10.0) as u32,
    })
}

fn router(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<Router> {
    reader.only(node, path, &["on", "cases", "default"]);
    let mut cases = BTreeMap::new();
    for entry in reader.map(node, path, "cases") {
        if let Content::Text(capability) = &entry.value.value {
            cases.insert(entry.key.clone(), capability.trim().to_owned());
        } else {
            let help = "Write the id of a capability.";
            reader.invalid(&join(path, "cases"), &entry.value.at, "a case names a capability", help);
        }
    }
    if cases.is_empty() {
        let help = "Add a case: `VALUE: CAPABILITY`.";
        reader.invalid(&join(path, "cases"), &node.at, "a router needs at least one case", help);
    }
    Some(Router {
        on: reader.required(node, path, "on")?,
        cases,
        default: reader.text(node, path, "default"),
    })
}

fn scatter(reader: &mut Reader<'_>, node: &Node, path: &str) -> Scatter {
    reader.only(node, path, &["capabilities", "merge"]);
    let capabilities = reader.texts(node, path, "capabilities").unwrap_or_default();
    if capabilities.len() < 2 {
        let message = "a scatter needs at least two capabilities";
        let help = "Add a capability, or call the only one with `uses`.";
        reader.invalid(&join(path, "capabilities"), &node.at, message, help);
    }
    let merge = reader.word(node, path, "merge", "collect, concat_lists, first_success");
    Scatter { capabilities, merge: merge.unwrap_or(Merge::Collect) }
}
