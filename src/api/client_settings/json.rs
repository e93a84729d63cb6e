//! Settings files in JSON, JSON with comments and JSON5.

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

/// Parses a JSON object.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| invalid(error.line(), error.column()))
}

/// Parses a JSON object with comments and, if allowed, commas before a closing bracket.
pub(super) fn object_with_comments(text: &str, commas: bool) -> Result<Map<String, Value>, String> {
    parse(text, &ParseOptions { allow_trailing_commas: commas, ..WITH_COMMENTS })
}

/// Parses a JSON5 object.
pub(super) fn json5_object(text: &str) -> Result<Map<String, Value>, String> {
    parse(text, &ParseOptions { allow_missing_commas: false, ..ParseOptions::default() })
}

const WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: false,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse(text: &str, options: &ParseOptions) -> Result<Map<String, Value>, String> {
    match jsonc_parser::parse_to_serde_value(text, options) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(invalid(1, 1)),
        Err(error) => Err(invalid(error.line_display(), error.column_display())),
    }
}

/// A project's file can be a link: the message has nothing of its content.
fn invalid(line: usize, column: usize) -> String {
    format!("not a JSON object, see line {line}, column {column}")
}

/// Returns the object that a member of an object is, if there is one.
pub(super) fn member<'a>(
    settings: &'a Map<String, Value>,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, String> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(member)) => Ok(Some(member)),
        Some(_) => Err(format!("`{key}` is not an object")),
    }
}

/// Returns the list that a member of an object is; an empty one if there is none.
pub(super) fn list<'a>(settings: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], String> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("`{key}` is not a list")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{json5_object, object, object_with_comments};

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn comments_and_trailing_commas_are_accepted_where_the_client_accepts_them() {
        let text = "{ // ä\n\"a\": [\"],\", \"// no /* comment */\" , ], /* c */ \"b\": {\"c\": 1,},}//";
        let expected = map(json!({"a": ["],", "// no /* comment */"], "b": {"c": 1}}));
        assert_eq!(object_with_comments(text, true).unwrap(), expected);
        assert_eq!(
            object_with_comments(text, false).unwrap_err(),
            "not a JSON object, see line 2, column 35"
        );
        assert_eq!(json5_object(text).unwrap(), expected);
        assert_eq!(object(text).unwrap_err(), "not a JSON object, see line 1, column 3");
    }

    #[test]
    fn json5_is_accepted_only_where_the_client_accepts_it() {
        let text = "{a: 'one', 'b': +0xf, c: .5}";
        assert_eq!(json5_object(text).unwrap(), map(json!({"a": "one", "b": 15, "c": 0.5})));
        assert!(object_with_comments(text, true).is_err());
    }

    #[test]
    fn invalid_text_is_rejected_with_its_position() {
        let deep = format!("{{\"a\": {}", "[".repeat(100_000));
        let comments = format!("{{{}", "/*a".repeat(350_000));
        let invalid = [
            "",
            "[]",
            "null",
            "{,}",
            r#"{"a":,}"#,
            r#"{"a": 1 "b": 2}"#,
            r#"{"a": [1,,]}"#,
            "{} {}",
            &deep,
            &comments,
        ];
        for text in invalid {
            for read in [object, |text: &str| object_with_comments(text, true), json5_object] {
                let error = read(text).unwrap_err();
                assert!(error.starts_with("not a JSON object, see line 1, column "), "{error}");
            }
        }
        assert_eq!(
            object_with_comments("{\n  \"secret\": oops\n}", true).unwrap_err(),
            "not a JSON object, see line 2, column 13"
        );
    }
}
