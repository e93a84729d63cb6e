//! Tests of the complete document.

use std::collections::BTreeSet;

use super::*;

fn every_ref(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str() {
                    Some(place) if key == "$ref" => found.push(place.to_owned()),
                    _ => every_ref(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| every_ref(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = document();
    let mut refs = Vec::new();
    every_ref(document, &mut refs);
    assert!(refs.len() > 300, "{}", refs.len());
    for place in &refs {
        let pointer = place.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{place}");
    }
    for (kind, all) in document["components"].as_object().unwrap() {
        for name in all.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
            let place = format!("#/components/{kind}/{name}");
            assert!(refs.contains(&place), "{place} is not used");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{name}");
        }
    }
    assert!(!document.to_string().contains(PART));
}

#[test]
fn every_route_is_documented_once_with_its_parameters() {
    let document = document();
    let mut ids = BTreeSet::new();
    for operation in operations() {
        for route in std::iter::once(&operation.route).chain(&operation.aliases) {
            let entry = &document["paths"][route.path][route.method.to_string().to_lowercase()];
            assert!(ids.insert(entry["operationId"].as_str().unwrap().to_owned()), "{}", operation.name);
            let parameters = entry["parameters"].as_array().unwrap();
            for name in route.parameters() {
                let found = parameters.iter().find(|p| p["name"] == name && p["in"] == "path");
                assert_eq!(found.unwrap()["required"], true, "{}: {name}", operation.name);
            }
            let body = &entry["requestBody"]["content"]["application/json"]["schema"]["properties"];
            assert!(route.parameters().all(|name| body.get(name).is_none()), "{}", operation.name);
        }
    }
}

#[test]
fn request_may_omit_required_response_fields() {
    let document = document();
    let discover = &document["paths"]["/v1/skills/discover"]["post"];
    let schema = &discover["requestBody"]["content"]["application/json"]["schema"];
    assert!(schema["properties"]["intent"].is_object(), "{schema}");
    let place =
        discover["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
    let answer = document.pointer(place.strip_prefix('#').unwrap()).unwrap();
    assert!(answer["required"].as_array().unwrap().len() > 3, "{answer}");
}
