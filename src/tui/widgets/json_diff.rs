//! What differs between two JSON values, by path: added, taken away, changed.

use serde_json::Value;

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Keys and indices, `/` between them; empty for the whole.
    pub path: String,
    /// Before; none where it was added.
    pub before: Option<Value>,
    /// After; none where it was taken away.
    pub after: Option<Value>,
}

/// All differences, in the order of the paths; the smallest parts that differ.
#[must_use]
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut out = Vec::new();
    compare("", Some(before), Some(after), &mut out);
    out
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                compare(&below(key), one.get(key), other.get(key), out);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for at in 0..one.len().max(other.len()) {
                compare(&below(&at.to_string()), one.get(at), other.get(at), out);
            }
        }
        _ => out.push(Change { path: path.to_owned(), before: before.cloned(), after: after.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_smallest_parts_that_differ_are_told() {
        let before = json!({"vars": {"rows": [1, 2], "ok": true}, "old": 1});
        let after = json!({"vars": {"rows": [1, 3, 4], "ok": true}, "new": {}});
        let told: Vec<(String, bool, bool)> = changes(&before, &after)
            .into_iter()
            .map(|change| (change.path, change.before.is_some(), change.after.is_some()))
            .collect();
        let wanted = [
            ("new", false, true),
            ("old", true, false),
            ("vars/rows/1", true, true),
            ("vars/rows/2", false, true),
        ];
        assert_eq!(told, wanted.map(|(path, before, after)| (path.to_owned(), before, after)));
        assert!(changes(&after, &after).is_empty());
    }
}
