//! Converts arguments to a query string and back: query values are text, and the schema determines their types.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::Operation;
use super::route::encoded;
use crate::{Code, Error};

/// Converts the arguments of an operation to a query string without `?`. A list repeats its name; absent, null and
/// empty list values are omitted.
pub fn to_query(arguments: &Map<String, Value>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in arguments {
        match value {
            Value::Null => {}
            Value::Array(items) => pairs.extend(items.iter().map(|item| pair(name, item))),
            one => pairs.push(pair(name, one)),
        }
    }
    pairs.join("&")
}

fn pair(name: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{}={}", encoded(name), encoded(&text))
}

/// Converts the decoded pairs of a query to arguments of an operation: numbers and booleans by its schema, lists from
/// repeated names or commas.
///
/// # Errors
/// Returns `invalid_request` for an unknown name, a repeated name of a single value, and a value of the wrong type.
pub fn from_query(
    operation: &Operation,
    pairs: impl IntoIterator<Item = (String, String)>,
) -> Result<Map<String, Value>, Error> {
    let plan = operation.plan();
    let mut arguments = Map::new();
    for (name, text) in pairs {
        let in_path = |name: &str| operation.route.parameters().any(|parameter| parameter == name);
        let Some(kind) = plan.arguments.get(&name).filter(|_| !in_path(&name)) else {
            let names = plan.arguments.keys().map(String::as_str).filter(|name| !in_path(name));
            return Err(Error {
                suggestions: crate::near(&name, names),
                ..Error::new(
                    Code::InvalidRequest,
                    format!("unknown query parameter `{name}` for {}", operation.name),
                )
            });
        };
        if let Kind::List(item) = kind {
            let list = arguments.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                for part in text.split(',').filter(|part| !part.is_empty()) {
                    list.push(parse_value(&name, part, item)?);
                }
            }
        } else if arguments.insert(name.clone(), parse_value(&name, &text, kind)?).is_some() {
            return Err(Error::new(Code::InvalidRequest, format!("query parameter `{name}` is given twice")));
        }
    }
    Ok(arguments)
}

/// The names of an operation's arguments and the types of their texts; cached, because generating a schema takes longer
/// than most calls.
pub(super) struct Plan {
    arguments: BTreeMap<String, Kind>,
    /// Whether it accepts a trace id for the run that it launches, with the other fields of a launch.
    launches: bool,
}

impl Plan {
    pub fn of(operation: &Operation) -> Self {
        let mut generator = SchemaGenerator::default();
        let schema = operation.arguments(&mut generator).to_value();
        let definitions = Value::Object(generator.take_definitions(true));
        let resolved_schema = resolved(&schema, &definitions);
        let properties = resolved_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let arguments: BTreeMap<String, Kind> =
            properties.map(|(name, schema)| (name.clone(), kind_of(schema, &definitions))).collect();
        let launches = arguments.contains_key("idempotency_key");
        Self { arguments, launches }
    }

    pub fn launches(&self) -> bool {
        self.launches
    }

    pub fn has(&self, name: &str) -> bool {
        self.arguments.contains_key(name)
    }
}

/// The type of a query value.
enum Kind {
    Text,
    Number,
    Truth,
    List(Box<Kind>),
}

fn kind_of(schema: &Value, definitions: &Value) -> Kind {
    let schema = resolved(schema, definitions);
    // `null` next to a type means that the field is optional, which a query expresses by omitting it.
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let other = any.iter().find(|one| one.get("type").is_none_or(|kind| kind != "null"));
        return other.map_or(Kind::Text, |one| kind_of(one, definitions));
    }
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    };
    match named {
        Some("integer" | "number") => Kind::Number,
        Some("boolean") => Kind::Truth,
        Some("array") => {
            let item = schema.get("items").map_or(Kind::Text, |items| kind_of(items, definitions));
            Kind::List(Box::new(item))
        }
        _ => Kind::Text,
    }
}

/// Returns a schema itself, or the definition it refers to.
fn resolved<'a>(schema: &'a Value, definitions: &'a Value) -> &'a Value {
    schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| definitions.get(reference.rsplit('/').next()?))
        .unwrap_or(schema)
}

fn parse_value(name: &str, text: &str, kind: &Kind) -> Result<Value, Error> {
    let wrong = |requested: &str| {
        Error::new(
            Code::InvalidRequest,
            format!(
                "invalid query parameter `{name}`: {text:?}; expected \
            {requested}"
            ),
        )
    };
    match kind {
        Kind::Text | Kind::List(_) => Ok(Value::String(text.to_owned())),
        Kind::Number => {
            text.parse::<serde_json::Number>().map(Value::Number).map_err(|_| wanted_number(wrong))
        }
        Kind::Truth => text.parse().map(Value::Bool).map_err(|_| wrong("true or false")),
    }
}

fn wanted_number(wrong: impl Fn(&str) -> Error) -> Error {
    wrong("a number")
}
