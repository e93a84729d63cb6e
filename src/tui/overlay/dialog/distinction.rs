//! What distinguishes the runs of a dialog: their titles, and the inputs in which they differ.

use serde_json::Value;

use crate::widgets::text_width::shown;

/// Maximum number of characters of an input's value in a row.
const VALUE_LENGTH: usize = 40;

/// Returns the names of the fields in which objects differ, sorted; of a single one all names.
pub(super) fn differing(inputs: &[&Value]) -> Vec<String> {
    let mut names: Vec<String> =
        inputs.iter().filter_map(|one| one.as_object()).flat_map(|fields| fields.keys().cloned()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| inputs.len() == 1 || inputs.iter().any(|one| one.get(name) != inputs[0].get(name)));
    names
}

/// Returns fields on one line, as `name=value`.
pub(super) fn fields(inputs: &Value, names: &[String]) -> String {
    let parts = names.iter().map(|name| {
        let value = match inputs.get(name) {
            Some(Value::String(text)) => shown(text),
            Some(other) => shown(&other.to_string()),
            None => String::new(),
        };
        let cut: String = value.chars().take(VALUE_LENGTH).collect();
        format!("{}={cut}{}", shown(name), if cut.len() < value.len() { "…" } else { "" })
    });
    parts.collect::<Vec<_>>().join("  ")
}

/// Returns whether all values are equal.
pub(super) fn is_same<T: PartialEq>(values: impl IntoIterator<Item = T>) -> bool {
    let mut values = values.into_iter();
    let Some(first) = values.next() else { return true };
    values.all(|value| value == first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_inputs_that_differ_distinguish_runs() {
        let (one, other) = (json!({"to": "ana", "count": 3}), json!({"to": "ana", "count": 104}));
        let names = differing(&[&one, &other]);
        assert_eq!(names, ["count"]);
        assert_eq!(fields(&other, &names), "count=104");
        assert_eq!(differing(&[&one]), ["count", "to"]);
        assert!(is_same([&one, &one]) && !is_same([&one, &other]));
    }
}
