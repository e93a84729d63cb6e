//! The list of tools: the operations that the table marks as tools, and the runtime tools of a session.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool as Described, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use super::answer::SESSION;
use super::compact::EXPLAIN;
use super::runtime::Named;
use skills_api::operations::{self, Operation, operations, simplify};
use skills_session::{Compat, Tool};

/// The argument with the number of items of a page.
pub const LIMIT: &str = "limit";

/// A tool by its implementation.
pub enum Kind {
    /// An operation of the table.
    Operation(&'static Operation),
    Runtime(Named),
}

/// Returns the tool of this name; older names of runtime tools only with `compat`.
pub fn named(name: &str, compat: bool) -> Option<Kind> {
    match operations::tool(name) {
        Some(operation) => Some(Kind::Operation(operation)),
        None => Named::find(name, compat).map(Kind::Runtime),
    }
}

/// Returns the tools for a client, including those with older names if `compat` is set.
pub fn listed_tools(compat: bool) -> impl Iterator<Item = &'static Described> {
    static COMPAT: LazyLock<Vec<Described>> = LazyLock::new(|| Compat::iter().map(of_compat).collect());
    all().iter().chain(if compat { COMPAT.as_slice() } else { &[] })
}

/// Returns the tools that are always offered.
fn all() -> &'static [Described] {
    static ALL: LazyLock<Vec<Described>> = LazyLock::new(|| {
        let own = operations().iter().filter(|operation| operation.tool).map(of_operation);
        own.chain(Tool::iter().map(of_runtime)).collect()
    });
    &ALL
}

/// Adds to a tool the schema of its result with `explain: true`.
pub fn with_output_schema(tool: &Described) -> Described {
    let schema = operations::tool(&tool.name)
        .map(|operation| Arc::new(standalone_schema(|generator| operation.answer(generator))));
    match schema {
        Some(schema) => tool.clone().with_raw_output_schema(schema),
        None => tool.clone(),
    }
}

/// Returns whether a tool has this argument.
pub fn takes(name: &str, argument: &str) -> bool {
    let tool = all().iter().find(|tool| tool.name == name);
    let properties = tool.and_then(|tool| tool.input_schema.get("properties"));
    properties.is_some_and(|properties| properties.get(argument).is_some())
}

fn of_operation(operation: &Operation) -> Described {
    let hints = operation.hints;
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let mut input = standalone_schema(|generator| operation.arguments(generator));
    let limit = input.get_mut("properties").and_then(|properties| properties.get_mut(LIMIT));
    if let (Some(page), Some(limit)) = (operation.page, limit) {
        limit["default"] = json!(page);
        limit["description"] = json!(format!(
            "Page size, 1 to 1,000; default {page}. `next` in the result is the `cursor` of the next page."
        ));
    }
    let properties = input.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let about = "Return all details, also as structured content, instead of the short form.";
        properties.insert(EXPLAIN.to_owned(), json!({ "type": "boolean", "description": about }));
    }
    Described::new(operation.tool_name, operation.summary, Arc::new(input)).with_annotations(annotations)
}

fn of_runtime(tool: Tool) -> Described {
    let annotations = ToolAnnotations::new()
        .read_only(matches!(tool, Tool::List | Tool::Read))
        .destructive(tool == Tool::RunScript)
        .idempotent(tool != Tool::RunScript)
        .open_world(false);
    of_session(tool.to_string(), tool.description(), tool.schema()).with_annotations(annotations)
}

fn of_compat(tool: Compat) -> Described {
    let annotations = ToolAnnotations::new()
        .read_only(tool != Compat::ReadSkill)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    of_session(tool.to_string(), tool.description(), tool.schema()).with_annotations(annotations)
}

/// Describes a runtime tool, which accepts the id of a session other than the connection's own.
fn of_session(name: String, description: &'static str, schema: Value) -> Described {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    simplify_schema(&mut schema);
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let about = "Use this session instead of that of the connection.";
        properties.insert(SESSION.to_owned(), json!({ "type": "string", "description": about }));
    }
    Described::new(name, description, Arc::new(schema))
}

/// Returns a self-contained schema: its root is the type itself, and referenced types are in its own `$defs`.
fn standalone_schema(make: impl Fn(&mut SchemaGenerator) -> Schema) -> JsonObject {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schema = make(&mut generator).to_value();
    let mut definitions = generator.take_definitions(true);
    let referred = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.rsplit('/').next());
    let root = match referred {
        Some(name) => {
            let root = definitions.get(name).cloned().unwrap_or_else(|| json!({ "type": "object" }));
            // A recursive type is still needed under its name.
            let pointer = json!(format!("#/$defs/{name}"));
            if !definitions.values().any(|definition| refers(definition, &pointer)) {
                definitions.remove(name);
            }
            root
        }
        None => schema,
    };
    let Value::Object(mut root) = root else { return Map::new() };
    root.remove("title");
    simplify_schema(&mut root);
    definitions.values_mut().filter_map(Value::as_object_mut).for_each(simplify_schema);
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    root
}

/// Simplifies a schema, and removes what models do not need: number formats, whose range is already given by `minimum`,
/// and keywords that validators warn about.
fn simplify_schema(schema: &mut JsonObject) {
    let mut root = Value::Object(std::mem::take(schema));
    simplify(&mut root);
    remove_annotations(&mut root);
    if let Value::Object(root) = root {
        *schema = root;
    }
}

fn remove_annotations(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("format").is_some_and(Value::is_string) {
                members.shift_remove("format");
            }
            members.shift_remove("x-enum-descriptions");
            members.values_mut().for_each(remove_annotations);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_annotations),
        _ => {}
    }
}

fn refers(value: &Value, pointer: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.get("$ref") == Some(pointer) || map.values().any(|inner| refers(inner, pointer))
        }
        Value::Array(list) => list.iter().any(|inner| refers(inner, pointer)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_tools_are_those_of_the_table_and_the_runtime_tools() {
        let names: Vec<&str> = all().iter().map(|tool| tool.name.as_ref()).collect();
        let contract = [
            "artifact.create",
            "runtime.health",
            "skill.describe",
            "skill.list",
            "skill.discover",
            "skill.why",
            "skill.visibility",
            "skill.draft",
            "skill.rivals",
            "skill.pair",
            "skill.collisions",
            "skill.lint",
            "skill.diagnostics",
            "skill.metrics.reset",
            "skill.attach",
            "skill.execute",
            "capability.execute",
            "capability.explain",
            "skill.governance.list",
            "golden.report",
            "golden.explain",
            "run.list",
            "run.board",
            "propose_skill_update",
            "proposal.list",
            "proposal.show",
        ];
        let runtime = ["skills.list", "skills.load", "skills.unload", "skills.read", "skills.run_script"];
        let expected: BTreeSet<&str> = contract.into_iter().chain(runtime).collect();
        assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), expected);
        assert_eq!(names.len(), expected.len());
        // Letters, digits, `_`, `-` and `.`, at most 128: what the protocol allows in a name.
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        assert!(names.iter().all(|name| name.len() <= 128 && name.chars().all(fits)));
    }

    #[test]
    fn long_lists_are_paged_by_default() {
        let list = all().iter().find(|tool| tool.name == "skill.list").unwrap();
        assert_eq!(list.input_schema["properties"][LIMIT]["default"], 50);
        assert!(takes("skill.list", "cursor") && takes("skill.governance.list", "cursor"));
    }

    #[test]
    fn the_list_of_tools_stays_small() {
        let listed = serde_json::to_string(&listed_tools(false).collect::<Vec<_>>()).unwrap();
        assert!(listed.len() <= 40_000, "{} bytes", listed.len());
        assert!(all().iter().all(|tool| tool.output_schema.is_none()));
        assert_eq!(listed_tools(true).count(), all().len() + 3);
    }

    #[test]
    fn schemas_are_self_contained_objects() {
        for tool in listed_tools(true).map(with_output_schema) {
            let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
            for schema in schemas.into_iter().flatten() {
                assert_eq!(schema["type"], "object", "{}", tool.name);
                let text = serde_json::to_string(schema).unwrap();
                assert!(!text.contains("\"format\":"), "{}: clients know no such format", tool.name);
                let cleaned =
                    text.replace("\"additionalProperties\":true", "").replace("\"default\":true", "");
                assert!(!cleaned.contains(":true"), "{}: {cleaned}", tool.name);
                assert!(!text.contains("\"default\":null"), "{}", tool.name);
                for name in text.split("\"#/$defs/").skip(1).filter_map(|rest| rest.split('"').next()) {
                    assert!(schema["$defs"].get(name).is_some(), "{}: {name} is defined nowhere", tool.name);
                }
            }
        }
    }
}
