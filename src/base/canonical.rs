//! Canonical JSON: equal values have equal digests, whatever the order of their keys.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::hex;

/// Serializes without spaces and with the keys of every object in byte order. Numbers are formatted as `serde_json`
/// does: a digest is only compared with digests of this program.
pub fn canonical_json(value: &Value) -> String {
    String::from_utf8(canonical_bytes(value)).unwrap_or_default()
}

fn canonical_bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

/// Returns the SHA-256 of the canonical JSON in hexadecimal.
pub fn digest_of(value: &Value) -> String {
    hex::encode(&Sha256::digest(canonical_bytes(value)))
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            out.push(b'{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_simple(key, out);
                out.push(b':');
                write(item, out);
            }
            out.push(b'}');
        }
        simple => write_simple(simple, out),
    }
}

fn write_simple(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // A text or a number can be encoded, and writing to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_order_of_keys_is_ignored() {
        let a = json!({"b": [1, {"y": null, "x": "ü\""}], "a": 1.5});
        let b = json!({"a": 1.5, "b": [1, {"x": "ü\"", "y": null}]});
        assert_eq!(canonical_json(&a), r#"{"a":1.5,"b":[1,{"x":"ü\"","y":null}]}"#);
        assert_eq!(digest_of(&a), digest_of(&b));
        assert_ne!(digest_of(&json!([1, 2])), digest_of(&json!([2, 1])));
        assert_eq!(digest_of(&json!({})).len(), 64);
    }
}
