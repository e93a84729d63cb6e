//! Normalizes results for comparison: without ids, times and durations.

use serde_json::{Map, Value};

/// Fields whose values differ in every result.
const MOVING: &[&str] = &[
    "id",
    "run",
    "run_id",
    "session_id",
    "trace_id",
    "attached_at",
    "global",
    "resident_bytes",
    "uptime_seconds",
];

/// Replaces volatile values by `…`, including UUIDs in texts.
pub fn normalize_volatile_fields(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(normalize_volatile_fields).collect()),
        Value::Object(members) => {
            let normalized = members.iter().map(|(key, value)| {
                let moves = MOVING.contains(&key.as_str()) || key.ends_with("_ms") || key.ends_with("_us");
                (
                    key.clone(),
                    if moves && !value.is_null() {
                        Value::from("…")
                    } else {
                        normalize_volatile_fields(value)
                    },
                )
            });
            Value::Object(normalized.collect::<Map<_, _>>())
        }
        Value::String(text) => Value::String(without_ids(text)),
        other => other.clone(),
    }
}

/// Replaces every UUID (RFC 9562) in a text by `…`.
fn without_ids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.get(..36).is_some_and(is_id) {
            out.push('…');
            rest = &rest[36..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

fn is_id(word: &str) -> bool {
    word.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Returns the first difference between two results, as a path and both values; `None` if they are equal.
pub fn difference(one: &Value, other: &Value) -> Option<String> {
    first_difference(one, other, "")
}

fn first_difference(one: &Value, other: &Value, at: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let place = format!("{at}.{key}");
                match (one.get(key), other.get(key)) {
                    (Some(a), Some(b)) => first_difference(a, b, &place),
                    (Some(_), None) => Some(format!("{place} is missing there")),
                    (None, _) => Some(format!("{place} exists only there")),
                }
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .find_map(|(n, (a, b))| first_difference(a, b, &format!("{at}[{n}]"))),
        (one, other) if one == other => None,
        (one, other) => {
            Some(format!("{}: {} and {}", if at.is_empty() { "." } else { at }, cut(one), cut(other)))
        }
    }
}

/// Returns a value as truncated text.
fn cut(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_and_times_are_ignored_and_differences_named() {
        let one = json!({
            "run": { "id": "0198a1b2-0000-7000-8000-00000000abcd", "since_ms": 1, "state": "failed" },
            "message": "run 0198a1b2-0000-7000-8000-00000000abcd failed",
        });
        let other = json!({
            "run": { "id": "0198a1b2-0000-7000-8000-00000000ffff", "since_ms": 2, "state": "failed" },
            "message": "run 0198a1b2-0000-7000-8000-00000000ffff failed",
        });
        assert_eq!(difference(&normalize_volatile_fields(&one), &normalize_volatile_fields(&other)), None);
        let message = difference(&json!({ "a": [1, { "b": 2 }] }), &json!({ "a": [1, { "b": 3 }] }));
        assert_eq!(message.as_deref(), Some(".a[1].b: 2 and 3"));
        assert_eq!(difference(&json!({ "a": 1 }), &json!({})).as_deref(), Some(".a is missing there"));
        assert_eq!(difference(&json!({}), &json!({ "a": 1 })).as_deref(), Some(".a exists only there"));
        assert!(difference(&json!([1]), &json!([1, 2])).is_some());
    }
}
