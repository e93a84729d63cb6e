//! Parses the user's input as a value of the declared type, with a message if it is invalid.

use serde_json::{Map, Value};

use skills_skill::contract::FieldType;

/// Parses a text that is not empty.
///
/// # Errors
/// Returns what is needed instead, in a few words that are shown after the field (`needs a number`).
pub fn read(kind: FieldType, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    match kind {
        FieldType::String => Ok(Value::String(text.to_owned())),
        FieldType::Integer => integer(trimmed).ok_or_else(|| match number(trimmed) {
            Some(_) => "expected an integer".to_owned(),
            None => "expected an integer, such as 3".to_owned(),
        }),
        FieldType::Number => number(trimmed).ok_or_else(|| {
            // A decimal comma is the most likely mistake and gets its own message.
            if number(&trimmed.replace(',', ".")).is_some() {
                "use a decimal point, not a comma".to_owned()
            } else {
                "expected a number".to_owned()
            }
        }),
        FieldType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" => Ok(Value::Bool(true)),
            "false" | "no" => Ok(Value::Bool(false)),
            _ => Err("expected yes or no".to_owned()),
        },
        FieldType::Array if trimmed.starts_with('[') => match serde_json::from_str(trimmed) {
            Ok(list @ Value::Array(_)) => Ok(list),
            Ok(_) => Err("expected a list".to_owned()),
            Err(error) => Err(format!("not a JSON list: {}", place(&error, trimmed))),
        },
        FieldType::Array => Ok(Value::Array(items(trimmed).map(Value::from).collect())),
        FieldType::Object => match serde_json::from_str::<Value>(trimmed) {
            Ok(object @ Value::Object(_)) => Ok(object),
            Ok(other) => Err(format!("expected a JSON object, not {}", with_article(&other))),
            Err(_) if !trimmed.starts_with('{') => Err("expected a JSON object, {\"key\": value}".to_owned()),
            Err(error) => Err(format!("not valid JSON: {}", place(&error, trimmed))),
        },
        FieldType::Any => {
            Ok(serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(text.to_owned())))
        }
    }
}

/// Returns the text after the field: the type, and if it accepts several, the one that was parsed.
pub fn type_name(kind: FieldType, read: Option<&Value>) -> String {
    let named = |value: &Value| value_name(value).to_owned();
    match (kind, read) {
        (FieldType::String, _) => "text".to_owned(),
        (FieldType::Number, _) => "number".to_owned(),
        (FieldType::Integer, _) => "integer".to_owned(),
        (FieldType::Boolean, _) => "yes or no".to_owned(),
        (FieldType::Array, Some(Value::Array(items))) => list_name(items),
        (FieldType::Array, _) => "list".to_owned(),
        (FieldType::Object, _) => "object".to_owned(),
        (FieldType::Any, Some(value)) => named(value),
        (FieldType::Any, None) => "any".to_owned(),
    }
}

fn list_name(items: &[Value]) -> String {
    let mut kinds = items.iter().map(value_name);
    let first = kinds.next();
    match first {
        Some(kind) if kinds.all(|other| other == kind) => match kind {
            "text" => "list of text".to_owned(),
            other => format!("list of {other}s"),
        },
        _ => "list".to_owned(),
    }
}

fn value_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn with_article(value: &Value) -> String {
    match value {
        Value::Null | Value::String(_) => value_name(value).to_owned(),
        Value::Object(_) => "an object".to_owned(),
        _ => format!("a {}", value_name(value)),
    }
}

/// Formats a value as a user would type it into a field of that type.
pub fn typed(kind: FieldType, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Null) => String::new(),
        (FieldType::Any, Value::String(text)) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        (FieldType::Any, other) => other.to_string(),
        (_, Value::String(text)) => text.clone(),
        (FieldType::Array, Value::Array(list)) => {
            let text_of = |item: &Value| match item {
                Value::String(text) if is_plain(text) => Some(text.clone()),
                _ => None,
            };
            let text_of: Option<Vec<String>> = list.iter().map(text_of).collect();
            text_of
                .filter(|items| !items.is_empty())
                .map_or_else(|| value.to_string(), |items| items.join(", "))
        }
        (FieldType::Object, Value::Object(object)) if object.len() > 1 => {
            serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
        }
        (_, other) => other.to_string(),
    }
}

/// Returns whether a text survives a round trip through a comma-separated list.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains([',', '\n']) && !text.starts_with('[')
}

/// Splits a text at commas and line breaks; empty items are skipped.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty())
}

fn integer(text: &str) -> Option<Value> {
    text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok()
}

fn number(text: &str) -> Option<Value> {
    integer(text).or_else(|| {
        // Words like `inf` are numbers to Rust, but not to JSON.
        let digits = text.bytes().any(|b| b.is_ascii_digit());
        let value = text.parse::<f64>().ok().filter(|_| digits)?;
        serde_json::Number::from_f64(value).map(Value::Number)
    })
}

/// Describes where JSON is invalid, for a user who typed one line.
fn place(error: &serde_json::Error, text: &str) -> String {
    if error.is_eof() {
        return "it is not closed".to_owned();
    }
    let message = error.to_string();
    let what = message.split(" at line").next().unwrap_or(&message).to_owned();
    if text.contains('\n') {
        format!("{what}, line {} column {}", error.line(), error.column())
    } else {
        format!("{what}, column {}", error.column())
    }
}

/// Returns the value for a field from external values; null counts as absent.
pub fn known(values: &Map<String, Value>, name: &str) -> Option<Value> {
    values.get(name).filter(|value| !value.is_null()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_type_parses_typed_text() {
        for (kind, text, value) in [
            (FieldType::String, " kept as typed ", json!(" kept as typed ")),
            (FieldType::Number, "0.8", json!(0.8)),
            (FieldType::Number, "3", json!(3)),
            (FieldType::Number, "-1e3", json!(-1000.0)),
            (FieldType::Integer, " 12 ", json!(12)),
            (FieldType::Integer, "18446744073709551615", json!(u64::MAX)),
            (FieldType::Array, "date, amount,vat", json!(["date", "amount", "vat"])),
            (FieldType::Array, "[1, \"a, b\"]", json!([1, "a, b"])),
            (FieldType::Object, "{\"a\": 1}", json!({"a": 1})),
            (FieldType::Any, "3.5", json!(3.5)),
            (FieldType::Any, "three", json!("three")),
        ] {
            assert_eq!(read(kind, text), Ok(value), "{kind} {text}");
        }
    }

    #[test]
    fn error_states_the_expected_value() {
        for (kind, text, message) in [
            (FieldType::Number, "high", "expected a number"),
            (FieldType::Number, "0,8", "use a decimal point, not a comma"),
            (FieldType::Number, "inf", "expected a number"),
            (FieldType::Integer, "3.5", "expected an integer"),
            (FieldType::Integer, "x", "expected an integer, such as 3"),
            (FieldType::Array, "[1, 2", "not a JSON list: it is not closed"),
            (FieldType::Object, "a", "expected a JSON object, {\"key\": value}"),
            (FieldType::Object, "[1]", "expected a JSON object, not a list"),
            (FieldType::Object, "{\"a\" 1}", "not valid JSON: expected `:`, column 6"),
            (FieldType::Object, "{\n\"a\" 1}", "not valid JSON: expected `:`, line 2 column 5"),
        ] {
            assert_eq!(read(kind, text), Err(message.to_owned()), "{kind} {text}");
        }
    }

    #[test]
    fn displayed_value_round_trips() {
        for (kind, value) in [
            (FieldType::String, json!("a\nb")),
            (FieldType::Number, json!(0.8)),
            (FieldType::Array, json!(["date", "amount"])),
            (FieldType::Array, json!(["a, b", 1])),
            (FieldType::Array, json!([])),
            (FieldType::Object, json!({"a": [1], "b": {"c": null}})),
            (FieldType::Any, json!("3")),
            (FieldType::Any, json!("three")),
        ] {
            assert_eq!(read(kind, &typed(kind, &value)), Ok(value.clone()), "{kind} {value}");
        }
        assert_eq!(type_name(FieldType::Array, Some(&json!(["a"]))), "list of text");
        assert_eq!(type_name(FieldType::Array, Some(&json!([1, 2]))), "list of numbers");
        assert_eq!(type_name(FieldType::Array, Some(&json!([1, "a"]))), "list");
    }
}
