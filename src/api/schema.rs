//! The published JSON schema of a skill's frontmatter, and how a copy of it differs.

use serde_json::Value;

use super::{Code, Error};

/// Returns the schema (JSON Schema 2020-12) as it is checked in: indented, with a final line feed.
pub fn schema() -> Result<String, Error> {
    let text = serde_json::to_string_pretty(&skills_skill::schema());
    text.map(|text| text + "\n")
        .map_err(|e| Error::new(Code::InternalError, format!("the schema is not valid JSON: {e}")))
}

/// Returns the first difference between a copy and the schema, as a JSON pointer; `None` if they are equivalent. The
/// order of keys and the formatting are ignored.
///
/// # Errors
/// Returns `invalid_request` for a copy that is not valid JSON.
pub fn schema_drift(copy: &str, schema: &str) -> Result<Option<String>, Error> {
    let parsed = |text: &str| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Error::new(Code::InvalidRequest, format!("not valid JSON: {error}")))
    };
    Ok(difference(&parsed(copy)?, &parsed(schema)?, ""))
}

fn difference(copy: &Value, schema: &Value, at: &str) -> Option<String> {
    match (copy, schema) {
        (Value::Object(a), Value::Object(b)) => {
            if let Some(key) = b.keys().find(|key| !a.contains_key(*key)) {
                return Some(format!("{at}/{key} is missing"));
            }
            if let Some(key) = a.keys().find(|key| !b.contains_key(*key)) {
                return Some(format!("{at}/{key} is no longer in the schema"));
            }
            a.iter().find_map(|(key, value)| difference(value, &b[key], &format!("{at}/{key}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(i, (a, b))| difference(a, b, &format!("{at}/{i}")))
        }
        _ => (copy != schema).then(|| format!("{} differs", if at.is_empty() { "/" } else { at })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_named_by_path() {
        let (a, b) = (r#"{"x": {"y": [1, 2]}}"#, r#"{"x": {"y": [1, 3]}}"#);
        assert_eq!(schema_drift(a, b).unwrap().as_deref(), Some("/x/y/1 differs"));
        assert_eq!(schema_drift(r#"{"x": {}}"#, b).unwrap().as_deref(), Some("/x/y is missing"));
        assert_eq!(schema_drift("{", b).unwrap_err().code, Code::InvalidRequest);
    }
}
