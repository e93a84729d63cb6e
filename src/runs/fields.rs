//! Validates values against declared fields: inputs before anything runs, outputs before a step counts as complete.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use skills_base::json_value::value_kind;
use skills_base::suggest::nearest_name;
use skills_skill::contract::{Field, FieldType};

/// Maximum number of characters of a wrong value in a message.
const MAX_SHOWN_CHARS: usize = 60;

/// Maximum number of wrong list elements in a message.
const ELEMENTS: usize = 3;

/// Maximum number of undeclared fields with a problem of their own.
const MAX_UNDECLARED: usize = 20;

/// Maximum number of declared fields in a message.
const MAX_DECLARED_SHOWN: usize = 50;

/// A problem with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldProblem {
    pub field: String,
    /// What was found and what is expected.
    pub message: String,
}

/// Returns inputs as a contract or a capability declares them: defaults filled in, `null` for an optional field treated
/// as absent, and integers accepted when written as `3.0`.
///
/// # Errors
/// Returns a problem for every field that is missing, of the wrong type or not among the allowed values, and for the first
/// unknown ones.
pub fn check_inputs(
    declared: &BTreeMap<String, Field>,
    values: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<FieldProblem>> {
    let mut problems = undeclared(declared, values);
    let mut checked = Map::new();
    for (name, field) in declared {
        match check_field(field, values.get(name)) {
            Ok(Some(value)) => {
                checked.insert(name.clone(), value);
            }
            Ok(None) => {}
            Err(message) => problems.push(FieldProblem { field: name.clone(), message }),
        }
    }
    if problems.is_empty() { Ok(checked) } else { Err(problems) }
}

/// Checks outputs against their declaration. Undeclared outputs are accepted: a producer may return more than it
/// declares.
///
/// # Errors
/// Returns a problem for every required output that is missing, and every output of the wrong type.
pub fn check_outputs(
    declared: &BTreeMap<String, Field>,
    values: &Map<String, Value>,
) -> Result<(), Vec<FieldProblem>> {
    let problems: Vec<FieldProblem> = declared
        .iter()
        .filter_map(|(name, field)| {
            let without_default = Field { default: None, ..field.clone() };
            let message = check_field(&without_default, values.get(name)).err()?;
            Some(FieldProblem { field: name.clone(), message })
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn check_field(field: &Field, input: Option<&Value>) -> Result<Option<Value>, String> {
    let value = match input {
        Some(Value::Null) if field.kind == FieldType::Any && field.required => Value::Null,
        Some(Value::Null) | None => match &field.default {
            Some(default) => return Ok(Some(default.clone())),
            None if field.required => return Err(format!("required ({}), but missing", field.kind)),
            None => return Ok(None),
        },
        Some(value) => value.clone(),
    };
    check_value(field, &value)?;
    Ok(Some(value))
}

/// Checks a value against the type, allowed values and element constraints of its field.
///
/// # Errors
/// Returns a description of the mismatch.
pub fn check_value(field: &Field, value: &Value) -> Result<(), String> {
    if !is_of(field.kind, value) {
        let kind = if value.is_null() { String::new() } else { format!(" ({})", value_kind(value)) };
        return Err(format!("expected {}, found {}{kind}", article(field.kind), shown(value)));
    }
    if !field.allowed.is_empty() && !field.allowed.contains(value) {
        let allowed: Vec<String> = field.allowed.iter().map(shown).collect();
        return Err(format!("{} is not one of {}", shown(value), allowed.join(", ")));
    }
    let (Some(items), Value::Array(elements)) = (&field.items, value) else { return Ok(()) };
    let mut wrong = elements.iter().enumerate().filter(|(_, element)| !is_valid(items, element));
    let first: Vec<String> = wrong
        .by_ref()
        .take(ELEMENTS)
        .filter_map(|(index, element)| Some(format!("[{index}] {}", check_value(items, element).err()?)))
        .collect();
    match wrong.count() {
        _ if first.is_empty() => Ok(()),
        0 => Err(first.join("; ")),
        more => Err(format!("{} (and {more} more elements)", first.join("; "))),
    }
}

/// Returns whether [`check_value`] accepts a value, without a description of the mismatch.
fn is_valid(field: &Field, value: &Value) -> bool {
    let are_elements_valid = || match (&field.items, value) {
        (Some(items), Value::Array(elements)) => elements.iter().all(|element| is_valid(items, element)),
        _ => true,
    };
    is_of(field.kind, value)
        && (field.allowed.is_empty() || field.allowed.contains(value))
        && are_elements_valid()
}

/// Returns a problem for each of the first undeclared fields; one more states the number of the others.
fn undeclared(declared: &BTreeMap<String, Field>, values: &Map<String, Value>) -> Vec<FieldProblem> {
    let mut names = values.keys().filter(|name| !declared.contains_key(*name));
    let mut is_listed = false;
    let mut problems: Vec<FieldProblem> = Vec::new();
    for name in names.by_ref().take(MAX_UNDECLARED) {
        let message = match nearest_name(name, declared.keys().map(String::as_str)) {
            Some(known) => format!("not declared (did you mean {known}?)"),
            None if is_listed => "not declared".to_owned(),
            None => {
                is_listed = true;
                format!("not declared ({})", listed(declared))
            }
        };
        problems.push(FieldProblem { field: name.clone(), message });
    }
    if let Some(name) = names.next() {
        let message = match names.count() {
            0 => "not declared".to_owned(),
            others => format!("not declared (and {others} more)"),
        };
        problems.push(FieldProblem { field: name.clone(), message });
    }
    problems
}

/// Describes the declared fields.
fn listed(declared: &BTreeMap<String, Field>) -> String {
    if declared.is_empty() {
        return "no fields are declared".to_owned();
    }
    let names: Vec<&str> = declared.keys().map(String::as_str).take(MAX_DECLARED_SHOWN).collect();
    let more = match declared.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("declared: {}{more}", names.join(", "))
}

fn is_of(requested: FieldType, value: &Value) -> bool {
    match requested {
        FieldType::Any => true,
        FieldType::String => value.is_string(),
        FieldType::Number => value.is_number(),
        FieldType::Integer => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        FieldType::Boolean => value.is_boolean(),
        FieldType::Array => value.is_array(),
        FieldType::Object => value.is_object(),
    }
}

fn article(kind: FieldType) -> &'static str {
    match kind {
        FieldType::String => "a string",
        FieldType::Number => "a number",
        FieldType::Integer => "an integer",
        FieldType::Boolean => "true or false",
        FieldType::Array => "a list",
        FieldType::Object => "an object",
        FieldType::Any => "anything",
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text;
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declared(fields: &Value) -> BTreeMap<String, Field> {
        let complete_field = |field: &Value| {
            let mut out = json!({"required": false, "description": null, "default": null, "enum": []});
            for (key, value) in field.as_object().into_iter().flatten() {
                out[key] = value.clone();
            }
            serde_json::from_value(out).unwrap()
        };
        fields
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, field)| (name.clone(), complete_field(field)))
            .collect()
    }

    fn check(fields: &Value, inputs: &Value) -> Result<Value, Vec<String>> {
        check_inputs(&declared(fields), inputs.as_object().unwrap())
            .map(Value::Object)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn defaults_are_filled_in_and_null_is_absent() {
        let fields = json!({"file": {"type": "string", "required": true}, "mode": {"type": "string", "default": "fast"},
            "limit": {"type": "integer"}});
        let checked = check(&fields, &json!({"file": "a.pdf", "limit": null})).unwrap();
        assert_eq!(checked, json!({"file": "a.pdf", "mode": "fast"}));
        assert_eq!(check(&fields, &json!({"file": "a", "limit": 3.0})).unwrap()["limit"], 3.0);
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let fields = json!({"file": {"type": "string", "required": true}, "limit": {"type": "integer"},
            "mode": {"type": "string", "enum": ["fast", "slow"]}});
        let problems = check(&fields, &json!({"fil": "a.pdf", "limit": 2.5, "mode": "medium"})).unwrap_err();
        assert_eq!(
            problems,
            [
                "fil: not declared (did you mean file?)",
                "file: required (string), but missing",
                "limit: expected an integer, found 2.5 (a number)",
                "mode: \"medium\" is not one of \"fast\", \"slow\"",
            ]
        );
    }

    #[test]
    fn invalid_list_element_is_named_by_its_index() {
        let integers =
            json!({"required": false, "description": null, "default": null, "enum": [], "type": "integer"});
        let rows = json!({"required": false, "description": null, "default": null, "enum": [], "type": "array",
            "items": integers});
        let fields =
            json!({"rounds": {"type": "array", "items": integers}, "grid": {"type": "array", "items": rows}});
        let problems = check(&fields, &json!({"rounds": [1, "a", null, 4], "grid": [[1], [2, 2.5]]}));
        assert_eq!(
            problems.unwrap_err(),
            [
                "grid: [1] [1] expected an integer, found 2.5 (a number)",
                "rounds: [1] expected an integer, found \"a\" (a string); [2] expected an integer, found null",
            ]
        );
        let many = check(&fields, &json!({"rounds": ["a", "b", "c", "d", "e"]})).unwrap_err();
        assert!(many[0].ends_with("(and 2 more elements)"), "{many:?}");
        assert!(check(&fields, &json!({"rounds": [1, 2.0], "grid": [[], [3]]})).is_ok());
    }

    #[test]
    fn thousands_of_wrong_fields_and_elements_are_counted() {
        let words: Vec<String> = (0..40).map(|n| format!("word-{n}")).collect();
        let item =
            json!({"required": false, "description": null, "default": null, "enum": words, "type": "string"});
        let mut fields = json!({"list": {"type": "array", "items": item}});
        for n in 0..40 {
            fields[format!("declared_field_{n:02}")] = json!({"type": "string"});
        }
        let mut inputs: Value = (0..10_000).map(|n| (format!("zz{n:05}"), json!(0))).collect();
        inputs["list"] = json!(vec!["x"; 10_000]);
        let problems = check(&fields, &inputs).unwrap_err();
        assert_eq!(problems.len(), MAX_UNDECLARED + 2);
        assert!(problems[0].contains("not declared (declared: declared_field_00, "), "{}", problems[0]);
        assert_eq!(problems[1], "zz00001: not declared");
        assert_eq!(problems[MAX_UNDECLARED], "zz00020: not declared (and 9979 more)");
        assert!(problems[MAX_UNDECLARED + 1].ends_with("(and 9997 more elements)"));
        assert!(problems.iter().map(String::len).sum::<usize>() < 10_000);
        let few: Value = (0..3).map(|n| (format!("zz{n}"), json!(0))).collect();
        assert_eq!(check(&json!({}), &few).unwrap_err()[0], "zz0: not declared (no fields are declared)");
    }

    #[test]
    fn undeclared_outputs_are_accepted() {
        let fields = declared(&json!({"total": {"type": "number", "required": true}}));
        let check = |value: Value| check_outputs(&fields, value.as_object().unwrap());
        assert!(check(json!({"total": 3, "extra": true})).is_ok());
        assert_eq!(check(json!({})).unwrap_err()[0].to_string(), "total: required (number), but missing");
        assert!(check(json!({"total": "3"})).is_err());
    }
}
