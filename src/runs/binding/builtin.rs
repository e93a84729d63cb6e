//! Functions of this program that bindings can name: pure and total, without scripts or services.
//!
//! | operation | inputs | outputs |
//! |---|---|---|
//! | `text.template` | `template` with `{{name}}`, `variables` | `text`, `unresolved` (names without a value), `status` `ok` or `partial` |
//! | `text.split` | `text`, `separator` (default line feed) | `parts`, `count` |
//! | `text.join` | `items`, `separator` (default line feed) | `text` |
//! | `json.parse` | `text` | `data` |
//! | `json.merge` | `records` | `record` (later fields win), `conflicts` (fields that differed), `field_count` |
//! | `json.pick` | `record`, `fields` | `record` with these fields, `missing` |
//! | `json.rename` | `record`, `mapping` (old to new), `drop_unmapped` | `record`, `mapped_count` |
//! | `list.length` | `items`: a list, an object or a string | `count` |
//! | `list.unique` | `records`, `key_fields` (none: the whole record) | `records` (first of each), `duplicates` |
//! | `value.compare` | `left`, `operator` (`== != < <= > >= in`), `right` | `holds`, and the same as `allowed`, so that it can serve as a gate |

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Value, json};
use skills_base::canonical::digest_of;
use skills_base::json_value::value_text;

use crate::RESULT_BYTES;

use super::super::broker::CallObstruction;
use super::super::call::CallFailure;
use super::BindingFailure;
use super::request::kind;

/// Maximum number of fields by which `list.unique` compares records.
const MAX_KEY_FIELDS: usize = 100;

type Function = fn(&Map<String, Value>) -> Result<Value, String>;

const FUNCTIONS: [(&str, Function); 10] = [
    ("text.template", template),
    ("text.split", split),
    ("text.join", join),
    ("json.parse", parse),
    ("json.merge", merge),
    ("json.pick", pick),
    ("json.rename", rename),
    ("list.length", length),
    ("list.unique", unique),
    ("value.compare", compare),
];

/// Checks that the function exists.
pub fn known(operation: &str) -> Result<(), CallObstruction> {
    if FUNCTIONS.iter().any(|(name, _)| *name == operation) {
        return Ok(());
    }
    let names: Vec<_> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
    Err(CallObstruction::unconfigured(format!(
        "unknown function `{operation}`; available: {}",
        names.join(", ")
    )))
}

/// Calls a function.
pub fn call(operation: &str, request: &Value) -> Result<Value, BindingFailure> {
    let invalid = |why: String| {
        let message = format!("function {operation}: {why}");
        BindingFailure::before(CallFailure::InvalidRequest, message)
    };
    let Some((_, function)) = FUNCTIONS.iter().find(|(name, _)| *name == operation) else {
        return Err(BindingFailure::before(
            CallFailure::InvalidConfiguration,
            format!("no function `{operation}`"),
        ));
    };
    let arguments =
        request.as_object().ok_or_else(|| invalid(format!("takes an object, not {}", kind(request))))?;
    function(arguments).map_err(invalid)
}

fn text<'v>(arguments: &'v Map<String, Value>, name: &str) -> Result<&'v str, String> {
    wanted(arguments, name, "a string", Value::as_str)
}

fn list<'v>(arguments: &'v Map<String, Value>, name: &str) -> Result<&'v Vec<Value>, String> {
    wanted(arguments, name, "a list", Value::as_array)
}

fn object<'v>(arguments: &'v Map<String, Value>, name: &str) -> Result<&'v Map<String, Value>, String> {
    wanted(arguments, name, "an object", Value::as_object)
}

fn wanted<'v, T>(
    arguments: &'v Map<String, Value>,
    name: &str,
    what: &str,
    read: impl Fn(&'v Value) -> Option<T>,
) -> Result<T, String> {
    let value = arguments.get(name).ok_or_else(|| format!("`{name}` is missing, expected {what}"))?;
    read(value).ok_or_else(|| format!("`{name}` is {}, expected {what}", kind(value)))
}

fn template(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (mut rest, variables) = (text(arguments, "template")?, object(arguments, "variables")?);
    let (mut out, mut unresolved) = (String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else { break };
        out.push_str(before);
        if let Some(value) = variables.get(name.trim()) {
            out.push_str(&value_text(value));
        } else {
            out.extend(["{{", name, "}}"]);
            unresolved.push(name.trim().to_owned());
        }
        rest = behind;
        limited(out.len())?;
    }
    out.push_str(rest);
    let status = if unresolved.is_empty() { "ok" } else { "partial" };
    Ok(json!({ "text": out, "unresolved": unresolved, "status": status }))
}

fn separator(arguments: &Map<String, Value>) -> Result<&str, String> {
    if arguments.contains_key("separator") { text(arguments, "separator") } else { Ok("\n") }
}

fn split(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (text_value, separator) = (text(arguments, "text")?, separator(arguments)?);
    if separator.is_empty() {
        return Err("`separator` is empty".to_owned());
    }
    let parts: Vec<&str> = text_value.split(separator).collect();
    Ok(json!({ "count": parts.len(), "parts": parts }))
}

fn join(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (items, separator) = (list(arguments, "items")?, separator(arguments)?);
    let mut text = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&value_text(item));
        limited(text.len())?;
    }
    Ok(json!({ "text": text }))
}

/// Rejects a result that is too large to be recorded, before it is complete.
fn limited(bytes: usize) -> Result<(), String> {
    if bytes > RESULT_BYTES {
        return Err(format!("the result has more than {RESULT_BYTES} bytes"));
    }
    Ok(())
}

fn parse(arguments: &Map<String, Value>) -> Result<Value, String> {
    let data: Value = serde_json::from_str(text(arguments, "text")?)
        .map_err(|error| format!("`text` is not JSON: {error}"))?;
    Ok(json!({ "data": data }))
}

fn merge(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (mut record, mut conflicts, mut known) = (Map::new(), Vec::new(), HashSet::new());
    for (at, item) in list(arguments, "records")?.iter().enumerate() {
        let fields = item
            .as_object()
            .ok_or_else(|| format!("`records.{at}` is {}, expected an object", kind(item)))?;
        for (name, value) in fields {
            let before = record.insert(name.clone(), value.clone());
            if before.is_some_and(|before| before != *value) && known.insert(name) {
                conflicts.push(name.clone());
            }
        }
    }
    Ok(json!({ "field_count": record.len(), "record": record, "conflicts": conflicts }))
}

fn pick(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (record, mut picked, mut missing) = (object(arguments, "record")?, Map::new(), Vec::new());
    for field in list(arguments, "fields")? {
        let name =
            field.as_str().ok_or_else(|| format!("`fields` contains {}, expected names", kind(field)))?;
        match record.get(name) {
            Some(_) if picked.contains_key(name) => {}
            Some(value) => drop(picked.insert(name.to_owned(), value.clone())),
            None => missing.push(name.to_owned()),
        }
    }
    Ok(json!({ "record": picked, "missing": missing }))
}

fn rename(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (record, mapping) = (object(arguments, "record")?, object(arguments, "mapping")?);
    let drops = arguments.get("drop_unmapped").and_then(Value::as_bool).unwrap_or(false);
    let (mut out, mut mapped) = (Map::new(), 0_u64);
    for (name, value) in record {
        let new = match mapping.get(name) {
            Some(Value::String(new)) => {
                mapped += 1;
                new
            }
            Some(other) => return Err(format!("`mapping.{name}` is {}, expected a name", kind(other))),
            None if drops => continue,
            None => name,
        };
        if out.insert(new.clone(), value.clone()).is_some() {
            return Err(format!("two fields would have the name `{new}`"));
        }
    }
    Ok(json!({ "record": out, "mapped_count": mapped }))
}

fn length(arguments: &Map<String, Value>) -> Result<Value, String> {
    let count = match arguments.get("items") {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        Some(Value::String(text)) => text.chars().count(),
        Some(other) => return Err(format!("`items` is {}, which has no length", kind(other))),
        None => return Err("`items` is missing".to_owned()),
    };
    Ok(json!({ "count": count }))
}

fn unique(arguments: &Map<String, Value>) -> Result<Value, String> {
    let records = list(arguments, "records")?;
    let keys: Vec<String> = match arguments.get("key_fields") {
        None => Vec::new(),
        Some(_) => list(arguments, "key_fields")?.iter().map(value_text).collect(),
    };
    if keys.len() > MAX_KEY_FIELDS {
        return Err(format!("`key_fields` has {} fields, the maximum is {MAX_KEY_FIELDS}", keys.len()));
    }
    let mut seen = HashSet::new();
    let unique_records: Vec<&Value> = records
        .iter()
        .filter(|record| {
            let digest = if keys.is_empty() {
                digest_of(record)
            } else {
                let null = &Value::Null;
                let parts: Vec<&Value> = keys.iter().map(|key| record.get(key).unwrap_or(null)).collect();
                digest_of(&json!(parts))
            };
            seen.insert(digest)
        })
        .collect();
    Ok(json!({ "duplicates": records.len() - unique_records.len(), "records": unique_records }))
}

fn compare(arguments: &Map<String, Value>) -> Result<Value, String> {
    let get = |name: &str| arguments.get(name).ok_or_else(|| format!("`{name}` is missing"));
    let (left, right, operator) = (get("left")?, get("right")?, text(arguments, "operator")?);
    let ordering = match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let incomparable = || format!("{} and {} cannot be compared", kind(left), kind(right));
    let order = || ordering.ok_or_else(incomparable);
    let is_same = || {
        let is_structure = |value: &Value| value.is_array() || value.is_object();
        let are_null = left.is_null() || right.is_null();
        // Otherwise a list would differ from the values in it, and a gate would allow a list of refused values.
        if !are_null && (is_structure(left) || is_structure(right)) && kind(left) != kind(right) {
            return Err(incomparable());
        }
        Ok(left == right || order().is_ok_and(Ordering::is_eq))
    };
    let is_true = match operator {
        "==" => is_same()?,
        "!=" => !is_same()?,
        "<" => order()?.is_lt(),
        "<=" => order()?.is_le(),
        ">" => order()?.is_gt(),
        ">=" => order()?.is_ge(),
        "in" => match right {
            Value::Array(items) => items.contains(left),
            Value::String(container) => left.as_str().is_some_and(|part| container.contains(part)),
            Value::Object(fields) => left.as_str().is_some_and(|name| fields.contains_key(name)),
            other => return Err(format!("{} cannot contain elements", kind(other))),
        },
        other => return Err(format!("`operator` is `{other}`; expected ==, !=, <, <=, >, >= or in")),
    };
    Ok(json!({ "holds": is_true, "allowed": is_true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(operation: &str, request: Value) -> Value {
        call(operation, &request).unwrap_or_else(|failed| json!(failed.message))
    }

    #[test]
    fn each_function_matches_its_table_row() {
        assert_eq!(
            run(
                "text.template",
                json!({"template": "Hi {{ name }}, {{n}} of {{m}} {{", "variables": {"name": "Ann", "n": 2}})
            ),
            json!({"text": "Hi Ann, 2 of {{m}} {{", "unresolved": ["m"], "status": "partial"})
        );
        assert_eq!(
            run("text.split", json!({"text": "a,b", "separator": ","})),
            json!({"count": 2, "parts": ["a", "b"]})
        );
        assert_eq!(run("text.join", json!({"items": ["a", 1]})), json!({"text": "a\n1"}));
        let long = "x".repeat(RESULT_BYTES / 2);
        let joined = join(json!({"items": ["", "", ""], "separator": long}).as_object().unwrap());
        assert!(joined.is_ok());
        let joined = join(json!({"items": ["", "", "", ""], "separator": long}).as_object().unwrap());
        assert!(joined.unwrap_err().contains("more than 1048576 bytes"));
        let twice = json!({"template": "{{a}}{{a}}{{a}}", "variables": {"a": long}});
        assert!(template(twice.as_object().unwrap()).unwrap_err().contains("more than 1048576 bytes"));
        assert_eq!(run("json.parse", json!({"text": "{\"a\": [1]}"})), json!({"data": {"a": [1]}}));
        assert_eq!(
            run("json.merge", json!({"records": [{"a": 1, "b": 1}, {"b": 2}, {"b": 3, "c": 1}]})),
            json!({"field_count": 3, "record": {"a": 1, "b": 3, "c": 1}, "conflicts": ["b"]})
        );
        assert_eq!(
            run("json.pick", json!({"record": {"a": 1, "b": 2}, "fields": ["b", "z"]})),
            json!({"record": {"b": 2}, "missing": ["z"]})
        );
        assert_eq!(
            run(
                "json.rename",
                json!({"record": {"a": 1, "b": 2}, "mapping": {"a": "x"}, "drop_unmapped": true})
            ),
            json!({"record": {"x": 1}, "mapped_count": 1})
        );
        assert_eq!(run("list.length", json!({"items": "héé"})), json!({"count": 3}));
        assert_eq!(
            run(
                "list.unique",
                json!({"records": [{"k": 1, "v": 1}, {"k": 1, "v": 2}, {"k": 2}], "key_fields": ["k"]})
            ),
            json!({"duplicates": 1, "records": [{"k": 1, "v": 1}, {"k": 2}]})
        );
        assert_eq!(
            run("list.unique", json!({"records": [{"a": 1}, 2, {"a": 1}]}))["records"],
            json!([{"a": 1}, 2])
        );
        assert_eq!(
            run("json.pick", json!({"record": {"a": 1}, "fields": ["a", "a"]})),
            json!({"record": {"a": 1}, "missing": []})
        );
        assert_eq!(
            run("value.compare", json!({"left": 2, "operator": "<=", "right": 2.0})),
            json!({"holds": true, "allowed": true})
        );
        assert_eq!(
            run("value.compare", json!({"left": "b", "operator": "in", "right": ["a"]}))["allowed"],
            false
        );
        for (left, right, is_same) in [
            (json!(2), json!(2.0), true),
            (json!(0), json!(-0.0), true),
            (json!(["a"]), json!(["a"]), true),
            (json!(["a"]), json!(null), false),
            (json!("2"), json!(2), false),
        ] {
            let compared = |operator: &str| {
                let request = json!({"left": left, "operator": operator, "right": right});
                run("value.compare", request)["holds"].clone()
            };
            assert_eq!((compared("=="), compared("!=")), (json!(is_same), json!(!is_same)), "{left} {right}");
        }
    }

    #[test]
    fn invalid_inputs_are_reported() {
        for (operation, request, message) in [
            ("text.template", json!({"variables": {}}), "`template` is missing, expected a string"),
            ("json.merge", json!({"records": [1]}), "`records.0` is a number"),
            ("json.rename", json!({"record": {"a": 1, "b": 2}, "mapping": {"a": "b"}}), "two fields"),
            ("value.compare", json!({"left": [], "operator": "<", "right": 1}), "cannot be compared"),
            (
                "value.compare",
                json!({"left": ["a", "b"], "operator": "!=", "right": "a"}),
                "cannot be compared",
            ),
            (
                "value.compare",
                json!({"left": "a", "operator": "==", "right": {"a": 1}}),
                "cannot be compared",
            ),
            ("value.compare", json!({"left": 1, "operator": "~", "right": 1}), "expected =="),
            ("text.split", json!({"text": "a", "separator": ""}), "empty"),
            ("json.parse", json!({"text": "{"}), "not JSON"),
            ("list.length", json!([1]), "takes an object"),
            (
                "list.unique",
                json!({"records": [1], "key_fields": vec!["x"; 101]}),
                "`key_fields` has 101 fields, the maximum is 100",
            ),
        ] {
            let reply = run(operation, request);
            assert!(reply.as_str().is_some_and(|reply| reply.contains(message)), "{operation}: {reply}");
        }
        assert!(known("shell.exec").unwrap_err().message.contains("text.template"));
    }
}
