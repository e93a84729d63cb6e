//! The schemas of arguments and results as one set of components. A type with fields that are optional in requests but
//! always present in responses has two schemas.

use std::collections::BTreeSet;

use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Location of components in the document.
const PLACE: &str = "#/components/schemas/";
/// Suffix of the name of a request schema that differs from the response schema.
const GIVEN: &str = "Given";

/// Collects schemas of both directions.
pub struct Schemas {
    request_generator: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Schemas {
    pub fn new() -> Self {
        let generator = |contract: Contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.contract = contract;
            });
            settings.into_generator()
        };
        Self { request_generator: generator(Contract::Deserialize), answered: generator(Contract::Serialize) }
    }

    /// Adds the schema of a request body: the object itself, not a reference to it.
    pub fn request_schema(&mut self, schema: impl FnOnce(&mut SchemaGenerator) -> Schema) -> Value {
        let schema = schema(&mut self.request_generator).to_value();
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix(PLACE));
        name.and_then(|name| self.request_generator.definitions().get(name).cloned()).unwrap_or(schema)
    }

    /// Adds the schema of a response.
    pub fn answered(&mut self, schema: impl FnOnce(&mut SchemaGenerator) -> Schema) -> Value {
        schema(&mut self.answered).to_value()
    }

    /// Returns the schemas that `paths` refers to, and updates the references in `paths`.
    pub fn components(mut self, paths: &mut [(Direction, &mut Value)]) -> Map<String, Value> {
        let mut requested = self.request_generator.take_definitions(true);
        let mut all = self.answered.take_definitions(true);
        let differing = differing(&requested, &all);
        let rename = |name: &str| differing.contains(name).then(|| format!("{name}{GIVEN}"));
        for (direction, value) in paths.iter_mut() {
            if *direction == Direction::Request {
                refer(value, &rename);
            }
        }
        for (name, schema) in &mut requested {
            refer(schema, &rename);
            let name = rename(name).unwrap_or_else(|| name.clone());
            all.entry(name).or_insert_with(|| schema.clone());
        }
        let mut used = BTreeSet::new();
        let mut open: Vec<String> = paths.iter().flat_map(|(_, value)| references(value)).collect();
        while let Some(name) = open.pop() {
            if used.insert(name.clone())
                && let Some(schema) = all.get(&name)
            {
                open.extend(references(schema));
            }
        }
        let mut named: Vec<(String, Value)> =
            all.into_iter().filter(|(name, _)| used.contains(name)).collect();
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        named.into_iter().collect()
    }
}

/// Direction in which the values of a schema are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the caller.
    Request,
    /// To the caller.
    Answered,
}

/// Returns the names whose schemas differ between the directions, directly or through their references.
fn differing(requested: &Map<String, Value>, answered: &Map<String, Value>) -> BTreeSet<String> {
    let both = || requested.iter().filter_map(|(name, schema)| Some((name, schema, answered.get(name)?)));
    let mut differing: BTreeSet<String> = both()
        .filter(|(_, requested, answered)| requested != answered)
        .map(|(name, ..)| name.clone())
        .collect();
    loop {
        let through = |schema: &Value| references(schema).iter().any(|name| differing.contains(name));
        let more: Vec<String> = both()
            .filter(|(name, requested, _)| !differing.contains(*name) && through(requested))
            .map(|(name, ..)| name.clone())
            .collect();
        if more.is_empty() {
            return differing;
        }
        differing.extend(more);
    }
}

/// Returns the names of the components that a schema refers to.
pub fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| match value.as_str().and_then(|place| place.strip_prefix(PLACE)) {
                Some(name) if key == "$ref" => vec![name.to_owned()],
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Turns every object variant into a component, named by its parent component and its distinguishing property: all
/// client generators create types for components, but only some of them for inline schemas.
pub fn name_variants(components: &mut Map<String, Value>) {
    let taken: BTreeSet<String> = components.keys().cloned().collect();
    let mut named = Map::new();
    for (name, schema) in components.iter_mut() {
        let variants = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for variant in variants.into_iter().flatten() {
            let Some(label) = label_of(variant) else { continue };
            let own = format!("{name}{}", in_pascal_case(label));
            if !taken.contains(&own) && !named.contains_key(&own) {
                let reference = Value::from(format!("{PLACE}{own}"));
                let schema = std::mem::replace(
                    variant,
                    Value::Object(Map::from_iter([("$ref".to_owned(), reference)])),
                );
                named.insert(own, schema);
            }
        }
    }
    components.extend(named);
}

/// Returns what distinguishes a variant: the value of its tag, else its required property.
fn label_of(variant: &Value) -> Option<&str> {
    let properties = variant.get("properties")?.as_object()?;
    let tag = properties.values().find_map(|property| match property.get("enum")?.as_array()?.as_slice() {
        [value] => value.as_str(),
        _ => None,
    });
    tag.or_else(|| variant.get("required")?.as_array()?.first()?.as_str())
}

fn in_pascal_case(label: &str) -> String {
    let words = label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
        })
        .collect()
}

fn refer(schema: &mut Value, rename: &impl Fn(&str) -> Option<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                let name = value.as_str().and_then(|place| place.strip_prefix(PLACE));
                match name.filter(|_| key == "$ref").and_then(rename) {
                    Some(name) => *value = Value::String(format!("{PLACE}{name}")),
                    None => refer(value, rename),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, rename)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        #[serde(default)]
        depth: u8,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Outer {
        inner: Inner,
    }

    #[test]
    fn variants_that_are_objects_become_components() {
        let mut components = serde_json::from_value(serde_json::json!({ "Gate": { "oneOf": [
            { "type": "string", "enum": ["open"] },
            { "properties": { "human": {} }, "required": ["human"] },
            { "properties": { "kind": { "enum": ["wait_for_signal"] }, "name": {} }, "required": ["name", "kind"] },
        ] } }))
        .unwrap();
        name_variants(&mut components);
        let expected = serde_json::json!([
            { "type": "string", "enum": ["open"] },
            { "$ref": "#/components/schemas/GateHuman" },
            { "$ref": "#/components/schemas/GateWaitForSignal" },
        ]);
        assert_eq!(components["Gate"]["oneOf"], expected);
        assert_eq!(components["GateHuman"]["required"][0], "human");
    }

    #[test]
    fn type_has_two_schemas_if_its_directions_differ() {
        let mut schemas = Schemas::new();
        let mut requested = schemas.request_schema(schemars::SchemaGenerator::subschema_for::<Outer>);
        let mut answered = schemas.answered(schemars::SchemaGenerator::subschema_for::<Outer>);
        let mut places = [(Direction::Request, &mut requested), (Direction::Answered, &mut answered)];
        let components = schemas.components(&mut places);
        assert_eq!(requested["properties"]["inner"]["$ref"], "#/components/schemas/InnerGiven");
        assert_eq!(answered["$ref"], "#/components/schemas/Outer");
        assert_eq!(components["Outer"]["properties"]["inner"]["$ref"], "#/components/schemas/Inner");
        assert_eq!(components["Inner"]["required"], serde_json::json!(["depth"]));
        assert!(components["InnerGiven"].get("required").is_none());
        // The outer one is inlined, so that nothing refers to its other form.
        assert!(!components.contains_key("OuterGiven"), "{components:?}");
    }
}
