//! Tests of the complete table: names, routes, results, queries, scopes.

use std::collections::BTreeSet;

use serde_json::{Map, json};

use super::*;

fn properties(operation: &Operation) -> Vec<String> {
    let mut generator = SchemaGenerator::default();
    let schema = operation.arguments(&mut generator).to_value();
    let definitions = Value::Object(generator.take_definitions(true));
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    let object = name.map_or(&schema, |name| &definitions[name]);
    object["properties"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn names_and_routes_are_unique_and_paths_use_arguments() {
    let mut names = BTreeSet::new();
    let mut routes = BTreeSet::new();
    for operation in operations() {
        assert!(names.insert(operation.name), "{} is there twice", operation.name);
        let known = properties(operation);
        for route in std::iter::once(&operation.route).chain(&operation.aliases) {
            assert!(routes.insert((route.method.to_string(), route.path)), "{} is there twice", route.path);
            for parameter in route.parameters() {
                assert!(known.iter().any(|name| name == parameter), "{}: {parameter}", operation.name);
            }
        }
        assert!(operation.summary.ends_with('.'), "{}: {}", operation.name, operation.summary);
    }
}

#[test]
fn every_response_is_an_object() {
    for operation in operations() {
        let mut generator = SchemaGenerator::default();
        let schema = operation.answer(&mut generator).to_value();
        let definitions = Value::Object(generator.take_definitions(true));
        let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        let object = name.map_or(&schema, |name| &definitions[name]);
        assert_eq!(object["type"], "object", "{}: {object}", operation.name);
    }
}

#[test]
fn query_string_round_trips_arguments() {
    let list = operation("run.list").unwrap();
    let Value::Object(arguments) = json!({
        "states": ["waiting_for_human", "failed"], "skill_id": "a&b=c", "text": "1", "limit": 5,
    }) else {
        unreachable!()
    };
    let query = to_query(&arguments);
    assert_eq!(query, "states=waiting_for_human&states=failed&skill_id=a%26b%3Dc&text=1&limit=5");
    let pairs = [
        ("states", "waiting_for_human"),
        ("states", "failed"),
        ("skill_id", "a&b=c"),
        ("text", "1"),
        ("limit", "5"),
    ];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(from_query(list, pairs).unwrap(), arguments);
    let comma = [("states".to_owned(), "failed,running".to_owned())];
    assert_eq!(from_query(list, comma).unwrap()["states"], json!(["failed", "running"]));
}

#[test]
fn invalid_query_names_parameter_and_reason() {
    let list = operation("run.list").unwrap();
    let refused =
        |name: &str, value: &str| from_query(list, [(name.to_owned(), value.to_owned())]).unwrap_err();
    let unknown = refused("stats", "x");
    assert_eq!((unknown.code, unknown.suggestions), (Code::InvalidRequest, vec!["states".to_owned()]));
    assert!(refused("limit", "many").message.contains("`limit`: \"many\""));
    let twice = [("limit".to_owned(), "1".to_owned()), ("limit".to_owned(), "2".to_owned())];
    assert!(from_query(list, twice).unwrap_err().message.contains("twice"));
    // Path parameters are not part of the query.
    let show = operation("run.show").unwrap();
    assert!(from_query(show, [("run_id".to_owned(), "x".to_owned())]).is_err());
    assert_eq!(from_query(show, []).unwrap(), Map::new());
}

#[test]
fn invalid_arguments_name_their_location() {
    let error =
        read::<arguments::ExecuteArguments>(json!({ "skill_id": "a", "options": { "expires_in": "soon" } }));
    let message = error.unwrap_err().message;
    assert!(message.contains("`options.expires_in`"), "{message}");
    for limit in [json!(0), json!(-1), json!(1001), json!(1.5)] {
        let error = read::<arguments::RunListArguments>(json!({ "limit": limit })).unwrap_err();
        assert_eq!(error.message, format!("`limit`: {limit} is out of range; allowed: 1 to 1000"));
    }
    let error = read::<crate::LintFilter>(json!({ "limit": -1 })).unwrap_err();
    assert_eq!(error.message, "`limit` is -1; negative numbers are not allowed");
    let error = read::<arguments::RunArguments>(json!({ "run_id": "a", "force": true })).unwrap_err();
    assert!(error.message.contains("force"), "{error}");
}

#[test]
fn a_missing_scope_is_named() {
    let principal = Principal { name: "ana".to_owned(), scopes: BTreeSet::from([Scope::Read]) };
    let caller = Caller { principal: Some(principal), ..Caller::anyone() };
    assert!(caller.may(Scope::Read) && !caller.may(Scope::Decide) && Caller::anyone().may(Scope::Admin));
    assert_eq!(caller.name(Some("eve".to_owned())).as_deref(), Some("ana"));
    let message = |local| {
        let caller = Caller { local, ..caller.clone() };
        operation("skill.execute_async").unwrap().may(&caller).unwrap_err().message
    };
    assert_eq!(
        message(false),
        "the key ana lacks the scope `run`, which this request requires; use a key that has it (scopes of ana: read)"
    );
    assert!(message(true).contains("restart the server with this scope"), "{}", message(true));
}

#[test]
fn remote_callers_cannot_name_paths_of_the_server() {
    use crate::ExecutionOptions;
    let files = std::collections::BTreeMap::from([("a".to_owned(), "/etc/passwd".to_owned())]);
    let options = ExecutionOptions { files, ..ExecutionOptions::default() };
    let error = arguments::limited(options, &Caller::anyone(), None, None).unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
    let twice = ExecutionOptions { trace_id: Some("a".to_owned()), ..ExecutionOptions::default() };
    assert!(arguments::limited(twice, &Caller::anyone(), Some("b".to_owned()), None).is_err());
}

#[test]
fn a_wrong_argument_is_named_with_what_is_expected() {
    let message = |place: &str, error: &str| argument_message(place, error);
    let integer = message("limit", "invalid type: string \"a, expected b\", expected u32");
    assert_eq!(integer, "`limit` is \"a, expected b\"; expected an integer");
    let list = message("skills", "invalid type: map, expected a sequence");
    assert_eq!(list, "`skills` is an object; expected a list");
    assert_eq!(
        message("made", "invalid type: null, expected a boolean"),
        "`made` is null; expected true or false"
    );
    assert_eq!(
        message("wait_ms", "invalid value: integer `-1`, expected u64"),
        "`wait_ms` is -1; negative numbers are not allowed"
    );
    assert_eq!(
        message("by", "invalid type: boolean `true`, expected a string"),
        "`by` is true; expected a string"
    );
    let options = message("options", "invalid type: floating point `1.5`, expected struct ExecutionOptions");
    assert_eq!(options, "`options` is 1.5; expected an object");
    assert_eq!(message(".", "missing field `intent`"), "missing field `intent`");
}

/// What has no maximum: JSON of any form is limited by the size of a body.
#[test]
fn each_text_and_list_of_arguments_has_a_maximum() {
    fn without(schema: &Value, path: &str, found: &mut Vec<String>) {
        let is = |kind: &str| {
            let stated = &schema["type"];
            stated == kind || stated.as_array().is_some_and(|all| all.iter().any(|one| one == kind))
        };
        let has = |names: &[&str]| names.iter().any(|name| schema.get(*name).is_some());
        if is("string") && !has(&["maxLength", "enum", "const"]) {
            found.push(path.to_owned());
        }
        if is("array") && !has(&["maxItems"]) {
            found.push(format!("{path}[]"));
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            without(member, &format!("{path}.{name}"), found);
        }
        for part in ["anyOf", "allOf", "oneOf"].iter().filter_map(|kind| schema[*kind].as_array()).flatten() {
            without(part, path, found);
        }
        if let Some(items) = schema.get("items") {
            without(items, &format!("{path}[]"), found);
        }
    }
    for operation in operations() {
        let mut found = Vec::new();
        let schema = operation.bounded_arguments(&mut SchemaGenerator::default()).to_value();
        without(&schema, operation.name, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
