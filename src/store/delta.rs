//! Differences between two JSON values, so that a growing value is not stored in full each time.
//!
//! A difference is an object with one key: `r`, replaced by this value; `a`, a list with these elements appended; `t`,
//! a string with this text appended; `o`, an object with these fields changed (each a difference) and those listed
//! under `d` removed.

use serde_json::{Map, Value, json};
use skills_base::memory::value_bytes;

/// Returns the difference between two values; `None` if they are equal.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    Some(match (before, after) {
        (Value::Object(old), Value::Object(new)) => fields(old, new),
        (Value::Array(old), Value::Array(new)) if new.starts_with(old) => json!({"a": new[old.len()..]}),
        (Value::String(old), Value::String(new)) if new.starts_with(old.as_str()) => {
            json!({"t": new[old.len()..]})
        }
        _ => json!({"r": after}),
    })
}

fn fields(old: &Map<String, Value>, new: &Map<String, Value>) -> Value {
    let changed = new.iter().filter_map(|(name, after)| {
        let change = match old.get(name) {
            Some(before) => difference(before, after)?,
            None => json!({"r": after}),
        };
        Some((name.clone(), change))
    });
    let mut difference = Map::from_iter([("o".to_owned(), Value::Object(changed.collect()))]);
    let gone: Vec<&String> = old.keys().filter(|name| !new.contains_key(*name)).collect();
    if !gone.is_empty() {
        difference.insert("d".to_owned(), json!(gone));
    }
    Value::Object(difference)
}

/// Applies a difference to the earlier value; `None` if they do not match.
pub fn applied(mut before: Value, difference: Value) -> Option<Value> {
    change(&mut before, difference)?;
    Some(before)
}

fn change(value: &mut Value, difference: Value) -> Option<()> {
    let Value::Object(mut difference) = difference else { return None };
    if let Some(replacement) = difference.remove("r") {
        *value = replacement;
        return Some(());
    }
    match value {
        Value::Array(list) => {
            let Some(Value::Array(more)) = difference.remove("a") else { return None };
            list.extend(more);
        }
        Value::String(text) => text.push_str(difference.get("t")?.as_str()?),
        Value::Object(object) => {
            for gone in difference.get("d").and_then(Value::as_array).into_iter().flatten() {
                object.remove(gone.as_str()?);
            }
            let Some(Value::Object(changes)) = difference.remove("o") else { return None };
            for (name, of_field) in changes {
                change(object.entry(name).or_insert(Value::Null), of_field)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// Estimates by how much memory a difference enlarges a value, in bytes.
pub fn added_bytes(difference: &Value) -> usize {
    /// Of a new field in the table of an object, beside its name and value.
    const FIELD_BYTES: usize = 160;
    let part = |name: &str| difference.get(name);
    let fields = part("o").and_then(Value::as_object).into_iter().flatten();
    let fields = fields.map(|(name, change)| {
        let is_new = change.get("r").is_some();
        added_bytes(change) + if is_new { FIELD_BYTES + name.len() } else { 0 }
    });
    let items = part("a").and_then(Value::as_array).into_iter().flatten().map(value_bytes);
    part("r").map_or(0, value_bytes)
        + part("t").and_then(Value::as_str).map_or(0, str::len)
        + items.sum::<usize>()
        + fields.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(before: &Value, after: &Value) -> Option<Value> {
        difference(before, after).map_or_else(|| Some(before.clone()), |d| applied(before.clone(), d))
    }

    #[test]
    fn growth_is_stored_as_the_added_part() {
        let before = json!({"vars": {"i": 6, "rows": ["a", "b"], "log": "one\n", "gone": 1}, "same": [1, 2]});
        let after = json!({"vars": {"i": 7, "rows": ["a", "b", "c"], "log": "one\ntwo\n"}, "same": [1, 2]});
        assert_eq!(
            difference(&before, &after).unwrap(),
            json!({"o": {"vars": {"o": {"i": {"r": 7}, "rows": {"a": ["c"]}, "log": {"t": "two\n"}}, "d": ["gone"]}}})
        );
        assert_eq!(round_trip(&before, &after), Some(after));
        assert_eq!(difference(&before, &before), None);
    }

    #[test]
    fn memory_of_a_growing_value_is_estimated_by_its_differences() {
        let at = |n: usize| {
            let done: Vec<String> = (0..n).map(|i| format!("each[{i}]")).collect();
            let fields: Map<String, Value> = (0..n).map(|i| (format!("field{i}"), i.into())).collect();
            json!({"done": done, "fields": fields, "log": "a line\n".repeat(n), "last": format!("each[{n}]")})
        };
        let mut estimate = value_bytes(&at(10));
        for n in 10..500 {
            estimate += added_bytes(&difference(&at(n), &at(n + 1)).unwrap());
        }
        let exact = value_bytes(&at(500));
        assert!((exact / 2..exact * 3).contains(&estimate), "{estimate} instead of {exact}");
    }

    #[test]
    fn a_difference_that_does_not_fit_is_refused() {
        assert_eq!(applied(json!({"a": 1}), json!({"a": [1]})), None);
        assert_eq!(applied(json!(3), json!({"t": "x"})), None);
        assert_eq!(applied(json!([]), json!([])), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..5_i64).prop_map(Value::from),
            "[ab]{0,3}".prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[aordt]", inner, 0..4).prop_map(|m| m.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn difference_of_any_two_values_applies(before in values(), after in values()) {
            prop_assert_eq!(round_trip(&before, &after), Some(after));
        }
    }
}
