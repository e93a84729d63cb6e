//! Enforces the maximum lengths that the schemas of arguments state, before an operation is executed: the work of some
//! grows faster than the length of a text.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::operations;
use crate::{Code, Error};
use skills_base::nesting::{self, MAX_LEVELS};

/// Maximum lengths of a value and of what it contains.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lengths {
    characters: Option<usize>,
    items: Option<usize>,
    item: Option<Box<Lengths>>,
    members: BTreeMap<String, Lengths>,
}

static LENGTHS: LazyLock<HashMap<&'static str, Lengths>> = LazyLock::new(|| {
    let lengths = |operation: &super::Operation| {
        let mut generator = SchemaGenerator::default();
        let schema = operation.bounded_arguments(&mut generator).to_value();
        let mut definitions = generator.take_definitions(true);
        definitions.values_mut().for_each(add_maxima);
        (operation.name, Lengths::of(&schema, &definitions, MAX_DEPTH))
    };
    operations().iter().map(lengths).collect()
});

/// Maximum depth of the values whose lengths are checked.
const MAX_DEPTH: usize = 4;
/// Maximum length of a text in characters if its schema states none.
const MAX_CHARACTERS: u64 = 4096;
/// Maximum length of a list if its schema states none.
const MAX_ITEMS: u64 = 1000;

/// Adds the default maxima to a schema of arguments, except to parts that it refers to.
pub(super) fn add_maxima(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    let is = |kind: &str| match fields.get("type") {
        Some(Value::String(stated)) => stated == kind,
        Some(Value::Array(stated)) => stated.iter().any(|one| one == kind),
        _ => false,
    };
    let has_values = ["enum", "const"].iter().any(|name| fields.contains_key(*name));
    let (is_text, is_list) = (is("string") && !has_values, is("array"));
    if is_text {
        fields.entry("maxLength").or_insert(MAX_CHARACTERS.into());
    }
    if is_list {
        fields.entry("maxItems").or_insert(MAX_ITEMS.into());
    }
    if let Some(items) = fields.get_mut("items") {
        add_maxima(items);
    }
    for member in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        add_maxima(member.1);
    }
    for kind in ["anyOf", "allOf", "oneOf"] {
        fields.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten().for_each(add_maxima);
    }
}

/// Checks the arguments of an operation.
///
/// # Errors
/// Returns `invalid_request` for the first value that is too long or too deeply nested, naming it and the maximum.
pub(super) fn check(operation: &str, arguments: &Value) -> Result<(), Error> {
    for (name, value) in arguments.as_object().into_iter().flatten() {
        if nesting::exceeds(value, MAX_LEVELS) {
            let message = format!("`{name}` is nested more than {MAX_LEVELS} levels deep");
            return Err(Error::new(Code::InvalidRequest, message));
        }
    }
    LENGTHS.get(operation).map_or(Ok(()), |lengths| lengths.check(arguments, ""))
}

impl Lengths {
    fn of(schema: &Value, definitions: &Map<String, Value>, depth: usize) -> Self {
        let mut lengths = Self::default();
        if depth == 0 {
            return lengths;
        }
        lengths.add(schema, definitions, depth);
        lengths
    }

    fn add(&mut self, schema: &Value, definitions: &Map<String, Value>, depth: usize) {
        let number =
            |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        self.characters = self.characters.or_else(|| number("maxLength"));
        self.items = self.items.or_else(|| number("maxItems"));
        if let Some(items) = schema.get("items") {
            self.item = Some(Box::new(Self::of(items, definitions, depth - 1)));
        }
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.members.insert(name.clone(), Self::of(member, definitions, depth - 1));
        }
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let referenced = name.and_then(|name| definitions.get(name));
        let variants = ["anyOf", "allOf", "oneOf"].iter().filter_map(|kind| schema.get(*kind)?.as_array());
        for part in referenced.into_iter().chain(variants.flatten()) {
            self.add(part, definitions, depth);
        }
    }

    fn check(&self, value: &Value, name: &str) -> Result<(), Error> {
        let refuse = |length: usize, unit: &str, max: usize| {
            let message = format!("`{name}` has {length} {unit}; the maximum is {max}");
            Err(Error::new(Code::InvalidRequest, message))
        };
        match value {
            Value::String(text) => match self.characters {
                // Counted only if it can be too long.
                Some(max) if text.len() > max && text.chars().count() > max => {
                    refuse(text.chars().count(), "characters", max)
                }
                _ => Ok(()),
            },
            Value::Array(items) => {
                if let Some(max) = self.items.filter(|max| items.len() > *max) {
                    return refuse(items.len(), "items", max);
                }
                let Some(lengths) = &self.item else { return Ok(()) };
                let mut items = items.iter().enumerate();
                items.try_for_each(|(at, item)| lengths.check(item, &format!("{name}[{at}]")))
            }
            Value::Object(members) => members.iter().try_for_each(|(member, value)| {
                let Some(lengths) = self.members.get(member) else { return Ok(()) };
                let name = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
                lengths.check(value, &name)
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_lists_that_are_longer_than_the_schema_states_are_rejected() {
        let long = "ä".repeat(20_001);
        let message = |operation, arguments| check(operation, &arguments).unwrap_err().message;
        assert_eq!(
            message("skill.draft", json!({ "skill_id": "a", "intent": long })),
            "`intent` has 20001 characters; the maximum is 20000"
        );
        assert_eq!(
            message(
                "skill.draft",
                json!({ "skill_id": "a", "queries": [{ "query": "a" }, { "query": long }] })
            ),
            "`queries[1].query` has 20001 characters; the maximum is 20000"
        );
        let queries = vec![json!({ "query": "a" }); 2001];
        assert_eq!(
            message("skill.draft", json!({ "skill_id": "a", "queries": queries })),
            "`queries` has 2001 items; the maximum is 2000"
        );
        let expected = json!([{ "query": "a", "expect": vec!["b"; 33] }]);
        assert_eq!(
            message("skill.draft", json!({ "skill_id": "a", "queries": expected })),
            "`queries[0].expect` has 33 items; the maximum is 32"
        );
        assert_eq!(
            message("run.assign", json!({ "run_id": "a", "note": "ä".repeat(1001) })),
            "`note` has 1001 characters; the maximum is 1000"
        );
        assert_eq!(
            message("run.approve", json!({ "notes": "ä".repeat(4097) })),
            "`notes` has 4097 characters; the maximum is 4096"
        );
        assert_eq!(
            message("run.launch", json!({ "options": { "trace_id": "a".repeat(4097) } })),
            "`options.trace_id` has 4097 characters; the maximum is 4096"
        );
        assert_eq!(
            message("skill.visibility", json!({ "clients": vec!["codex"; 51] })),
            "`clients` has 51 items; the maximum is 50"
        );
        assert_eq!(
            message("skill.tokens", json!({ "skills": vec!["a"; 1001] })),
            "`skills` has 1001 items; the maximum is 1000"
        );
        let longest = "ä".repeat(20_000);
        check("skill.draft", &json!({ "skill_id": "a", "intent": longest, "name": 5 })).unwrap();
        check("skill.draft", &json!({ "unknown": longest })).unwrap();
        let nested = |levels| (0..levels).fold(json!(1), |value, _| json!([value]));
        check("skill.execute", &json!({ "inputs": nested(MAX_LEVELS) })).unwrap();
        assert_eq!(
            message("skill.execute", json!({ "inputs": nested(MAX_LEVELS + 1) })),
            "`inputs` is nested more than 64 levels deep"
        );
    }
}
