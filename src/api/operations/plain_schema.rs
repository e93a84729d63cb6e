//! Simplifies JSON schemas for client generators and other programs: what the derive macros generate is correct, but
//! too unusual for many of them.

use serde_json::{Map, Value, json};

/// Rewrites a schema recursively, so that it accepts the same values in a simpler form: a choice of constants is one
/// `enum` (with `x-enum-descriptions`), `{}` accepts everything, no default is null or contradicts its schema, and
/// integers have the formats of the `OpenAPI` registry. Only tuples become wider: lists of that length whose items are
/// any of theirs, because few programs support `prefixItems`.
pub fn simplify(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Some(members) = schema.as_object_mut() else { return };
    gather_constants(members);
    list_constant(members);
    widen_tuple(members);
    drop_default(members);
    rename_format(members);
    for (keyword, inner) in members {
        match (keyword.as_str(), inner) {
            ("properties" | "$defs" | "patternProperties", Value::Object(named)) => {
                named.values_mut().for_each(simplify);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(several)) => several.iter_mut().for_each(simplify),
            ("items" | "not", inner) => simplify(inner),
            // `true` is the usual form here.
            ("additionalProperties", inner) if inner.is_object() => simplify(inner),
            _ => {}
        }
    }
}

/// Merges variants that are only strings into one `enum`.
fn gather_constants(members: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = members.get_mut("oneOf") else { return };
    let mut values = Vec::new();
    let mut descriptions = Vec::new();
    let mut place = None;
    let mut others = Vec::new();
    for variant in std::mem::take(variants) {
        let named: Option<Vec<Value>> = match (variant.get("const"), variant.get("enum")) {
            (Some(value), _) => Some(vec![value.clone()]),
            (None, Some(Value::Array(values))) => Some(values.clone()),
            _ => None,
        };
        match named.filter(|named| named.iter().all(Value::is_string)) {
            Some(named) => {
                place.get_or_insert(others.len());
                let description = variant.get("description").cloned().unwrap_or_else(|| json!(""));
                descriptions.extend(named.iter().map(|_| description.clone()));
                values.extend(named);
            }
            None => others.push(variant),
        }
    }
    let Some(place) = place else {
        *variants = others;
        return;
    };
    let mut choice =
        Map::from_iter([("type".to_owned(), json!("string")), ("enum".to_owned(), json!(values))]);
    if descriptions.iter().any(|description| description != "") {
        choice.insert("x-enum-descriptions".to_owned(), json!(descriptions));
    }
    if others.is_empty() {
        members.shift_remove("oneOf");
        members.extend(choice);
    } else {
        others.insert(place, Value::Object(choice));
        *variants = others;
    }
}

/// Rewrites a constant string as an `enum` with one value, which more programs support than `const`.
fn list_constant(members: &mut Map<String, Value>) {
    if members.get("const").is_some_and(Value::is_string)
        && let Some(value) = members.shift_remove("const")
    {
        members.insert("enum".to_owned(), json!([value]));
    }
}

/// Rewrites a tuple as a list of that many items, each with any of the tuple's types.
fn widen_tuple(members: &mut Map<String, Value>) {
    let Some(Value::Array(places)) = members.shift_remove("prefixItems") else { return };
    let mut kinds: Vec<Value> = Vec::new();
    for place in places {
        if !kinds.contains(&place) {
            kinds.push(place);
        }
    }
    let items = if kinds.len() == 1 { kinds.remove(0) } else { json!({ "anyOf": kinds }) };
    members.insert("items".to_owned(), items);
}

/// Removes a default of null, which contradicts a merely optional field, and an empty default string that is not a
/// valid value.
fn drop_default(members: &mut Map<String, Value>) {
    let needless = match members.get("default") {
        Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty() && members.contains_key("minLength"),
        _ => false,
    };
    if needless {
        members.shift_remove("default");
    }
}

/// Replaces the format of pointer-sized integers, which is not registered, by that of 64-bit integers
/// (<https://spec.openapis.org/registry/format/>).
fn rename_format(members: &mut Map<String, Value>) {
    let registered = match members.get("format").and_then(Value::as_str) {
        Some("uint") => "uint64",
        Some("int") => "int64",
        _ => return,
    };
    members.insert("format".to_owned(), json!(registered));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simplified(mut schema: Value) -> Value {
        simplify(&mut schema);
        schema
    }

    #[test]
    fn constants_become_one_enum() {
        let all = json!({ "description": "A state.", "oneOf": [
            { "type": "string", "enum": ["b", "c"] },
            { "type": "string", "const": "a", "description": "First." },
        ] });
        let expected = json!({
            "description": "A state.", "type": "string", "enum": ["b", "c", "a"],
            "x-enum-descriptions": ["", "", "First."],
        });
        assert_eq!(simplified(all), expected);
        let mixed = json!({ "oneOf": [
            { "type": "object", "properties": { "x": true } },
            { "const": "a", "type": "string" },
            { "const": "b", "type": "string" },
        ] });
        let expected = json!({ "oneOf": [
            { "type": "object", "properties": { "x": {} } },
            { "type": "string", "enum": ["a", "b"] },
        ] });
        assert_eq!(simplified(mixed), expected);
    }

    #[test]
    fn tuples_defaults_and_formats_are_simplified() {
        let tuple = json!({ "type": "array", "prefixItems": [{ "format": "uint" }, { "format": "uint" }], "minItems": 2 });
        assert_eq!(
            simplified(tuple),
            json!({ "type": "array", "minItems": 2, "items": { "format": "uint64" } })
        );
        assert_eq!(simplified(json!({ "const": "a" })), json!({ "enum": ["a"] }));
        let pair = json!({ "prefixItems": [{ "type": "string" }, { "type": "integer" }] });
        let expected = json!({ "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] } });
        assert_eq!(simplified(pair), expected);
        let defaults = json!({ "properties": {
            "a": { "default": null }, "b": { "default": "", "minLength": 1 }, "c": { "default": "" },
        }, "items": true, "additionalProperties": true });
        let expected = json!({ "properties": { "a": {}, "b": { "minLength": 1 }, "c": { "default": "" } },
            "items": {}, "additionalProperties": true });
        assert_eq!(simplified(defaults), expected);
    }
}
