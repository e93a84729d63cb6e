//! Parses `capabilities/*.yaml`, `bindings/**/*.yaml` and `services/*.yaml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::parse::fields;
use super::reader::Reader;
use super::types::{
    Binding, Capability, Conformance, Gate, GateFailure, Properties, Protocol, Safety, Service,
};
use crate::Finding;
use crate::yaml::{Content, Node};

/// Keys of a capability, of its `properties` and of its `safety`. Some are information for people only.
const CAPABILITY_KEYS: &[&str] = &[
    "id",
    "version",
    "description",
    "inputs",
    "outputs",
    "properties",
    "safety",
    "metadata",
    "cognitive_hints",
    "status",
    "replacement",
    "requires",
];
const PROPERTY_KEYS: &[&str] =
    &["deterministic", "side_effects", "idempotent", "audit_level", "state_access"];
const SAFETY_KEYS: &[&str] = &[
    "trust_level",
    "requires_confirmation",
    "mandatory_pre_gates",
    "reversible",
    "allowed_targets",
    "data_classification",
    "scope_constraints",
    "risk_level",
    "rationale",
    "description",
    "mitigations",
];

fn open<'a>(location: &'a Path, source: &'a str) -> Reader<'a> {
    Reader::new(
        location.file_name().map_or(location, Path::new),
        source.strip_prefix('\u{feff}').unwrap_or(source),
    )
}

/// Parses a capability. Returns `None` if it cannot be used at all, with the reason among the findings.
pub fn parse_capability(location: &Path, source: &str) -> (Option<Capability>, Vec<Finding>) {
    let mut reader = open(location, source);
    let capability = reader.root().and_then(|root| {
        let empty = Node { value: Content::Map(Vec::new()), at: root.at.clone() };
        let properties = root.get("properties").map_or(&empty, |entry| &entry.value);
        let safety = root.get("safety").map_or(&empty, |entry| &entry.value);
        reader.misspelled(&root, CAPABILITY_KEYS);
        reader.only(properties, "properties", PROPERTY_KEYS);
        reader.only(safety, "safety", SAFETY_KEYS);
        let mut gates = Vec::new();
        for gate in reader.list(safety, "safety", "mandatory_pre_gates") {
            let path = "safety.mandatory_pre_gates";
            if let Some(capability) = reader.required(gate, path, "capability") {
                let words = "block, require_human, degrade, warn";
                // A gate that does not state what a denial means gets the strictest effect.
                let on_fail = reader.word(gate, path, "on_fail", words).unwrap_or(GateFailure::Block);
                gates.push(Gate { capability, on_fail });
            }
        }
        Some(Capability {
            id: reader.required(&root, "", "id")?,
            version: reader.text(&root, "", "version").unwrap_or_else(|| "0.0.0".to_owned()),
            description: reader.text(&root, "", "description").unwrap_or_default(),
            inputs: fields(&mut reader, &root, "inputs"),
            outputs: fields(&mut reader, &root, "outputs"),
            properties: Properties {
                deterministic: reader.flag(properties, "properties", "deterministic").unwrap_or(false),
                // A missing declaration is not a guarantee: unless stated otherwise, a capability has side effects.
                side_effects: reader.flag(properties, "properties", "side_effects").unwrap_or(true),
                idempotent: reader.flag(properties, "properties", "idempotent").unwrap_or(false),
            },
            safety: Safety {
                trust_level: reader
                    .word(safety, "safety", "trust_level", "sandbox, standard, elevated, privileged")
                    .unwrap_or_default(),
                requires_confirmation: reader
                    .flag(safety, "safety", "requires_confirmation")
                    .unwrap_or(false),
                mandatory_pre_gates: gates,
                reversible: reader.flag(safety, "safety", "reversible"),
            },
            location: location.to_owned(),
        })
    });
    (capability, reader.findings())
}

pub fn parse_binding(location: &Path, source: &str) -> (Option<Binding>, Vec<Finding>) {
    let mut reader = open(location, source);
    let binding = reader.root().and_then(|root| {
        let metadata = object(&root, "metadata");
        let word = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        let response: BTreeMap<String, String> = reader
            .map(&root, "", "response")
            .iter()
            .filter_map(|entry| match &entry.value.value {
                Content::Text(text) => Some((entry.key.clone(), text.trim().to_owned())),
                _ => None,
            })
            .collect();
        reader.required(&root, "", "protocol")?;
        let words = "script, pythoncall, openapi, mcp, openrpc, builtin";
        let protocol: Protocol = reader.word(&root, "", "protocol", words)?;
        Some(Binding {
            id: reader.required(&root, "", "id")?,
            capability: reader.required(&root, "", "capability")?,
            // Scripts of the bundle and built-in functions do not need a service.
            service: match protocol {
                Protocol::Script | Protocol::Builtin => {
                    reader.text(&root, "", "service").unwrap_or_else(|| protocol.to_string())
                }
                Protocol::OpenApi | Protocol::Mcp | Protocol::OpenRpc => {
                    reader.required(&root, "", "service")?
                }
            },
            protocol,
            operation: reader.required(&root, "", "operation")?,
            request: Reader::json(&root, "request").unwrap_or(Value::Object(Map::new())),
            response,
            conformance: word("conformance_profile")
                .or_else(|| word("conformance"))
                .and_then(|text| text.parse().ok())
                .unwrap_or(Conformance::Standard),
            fallback: word("fallback_binding_id"),
            metadata,
            location: location.to_owned(),
        })
    });
    (binding, reader.findings())
}

pub fn parse_service(location: &Path, source: &str) -> (Option<Service>, Vec<Finding>) {
    let mut reader = open(location, source);
    let service = reader.root().and_then(|root| {
        let mut settings = root.to_json_map();
        settings.shift_remove("id");
        Some(Service { id: reader.required(&root, "", "id")?, settings, location: location.to_owned() })
    });
    (service, reader.findings())
}

fn object(node: &Node, key: &str) -> Map<String, Value> {
    match Reader::json(node, key) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
