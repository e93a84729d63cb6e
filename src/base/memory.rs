//! Estimates the memory of JSON values, to limit what one caller can make a process hold.

use serde_json::{Map, Value};

/// Estimates the memory of a value, in bytes.
pub fn value_bytes(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(entries) => object_bytes(entries),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + content
}

/// Estimates the memory of the entries of an object, in bytes.
pub fn object_bytes(entries: &Map<String, Value>) -> usize {
    let entry = |(name, value): (&String, &Value)| name.len() + value_bytes(value) - size_of::<Value>();
    // A map has places for at least four entries, and a table of them.
    let places = entries.len().next_power_of_two().max(4);
    let table = places * (size_of::<(u64, String, Value)>() + size_of::<usize>());
    let table = if entries.is_empty() { 0 } else { table };
    table + entries.iter().map(entry).sum::<usize>()
}
