//! Limits the nesting of JSON values. A parser accepts [`serde_json`]'s maximum of 128 levels; what is accepted is later
//! read again inside of other values, and has to be readable there, too.

use serde_json::Value;

/// Maximum number of levels of a value from a caller, a file, a script or a service.
pub const MAX_LEVELS: usize = 64;

/// Maximum number of levels of a value that is stored or sent: that of a caller inside of others.
pub const MAX_STORED_LEVELS: usize = 100;

/// Returns whether a value has more than this number of nested lists and objects.
pub fn exceeds(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels.checked_sub(1).is_none_or(|levels| items.iter().any(|item| exceeds(item, levels)))
        }
        Value::Object(fields) => {
            levels.checked_sub(1).is_none_or(|levels| fields.values().any(|field| exceeds(field, levels)))
        }
        _ => false,
    }
}

/// Returns whether a JSON text has more than this number of nested lists and objects.
pub fn text_exceeds(json: &str, levels: usize) -> bool {
    let (mut open, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                open += 1;
                if open > levels {
                    return true;
                }
            }
            b']' | b'}' if !quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_counted_in_values_and_in_texts() {
        for (value, levels) in [
            (json!(1), 0),
            (json!("[[["), 0),
            (json!("a\"[\\"), 0),
            (json!([]), 1),
            (json!({"a": [1, {}], "b[": 2}), 3),
            (json!([[], [[]], []]), 3),
        ] {
            assert!(!exceeds(&value, levels), "{value}");
            assert!(!text_exceeds(&value.to_string(), levels), "{value}");
            if levels > 0 {
                assert!(exceeds(&value, levels - 1), "{value}");
                assert!(text_exceeds(&value.to_string(), levels - 1), "{value}");
            }
        }
    }
}
