//! Problems between the files of a catalog: duplicate ids, dangling references, and capabilities without a binding.

use std::collections::BTreeSet;
use std::path::Path;

use super::Capabilities;
use crate::binding::request;
use crate::gates::ambiguity;
use skills_skill::contract::{Binding, Capability};
use skills_skill::{Finding, Severity};

/// Builds a finding about a whole file.
pub(super) fn file_finding(
    code: &str,
    severity: Severity,
    file: &Path,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Finding {
    Finding {
        code: code.to_owned(),
        severity,
        field: None,
        file: file.to_owned(),
        span: None,
        message: message.into(),
        help: help.into(),
        fixable: false,
    }
}

/// Builds the finding for an id that two files define.
pub(super) fn duplicate_id(what: &str, id: &str, first: &Path, second: &Path) -> Finding {
    file_finding(
        &format!("{what}-duplicate"),
        Severity::Error,
        second,
        format!("the {what} `{id}` is already defined in {}, which has precedence", first.display()),
        "Rename one of the two, or remove one",
    )
}

/// Checks all references.
pub(super) fn references(catalog: &mut Capabilities) {
    let mut found = Vec::new();
    for offered in catalog.bindings.values() {
        let binding = &offered.binding;
        let capability = catalog.declared.get(&binding.capability);
        found.extend(capability.is_none().then(|| undeclared(binding)));
        found.extend(fallback(catalog, binding));
        if let Some(capability) = capability {
            found.extend(undeclared_inputs(binding, capability));
            found.extend(undeclared_outputs(binding, capability));
        }
    }
    for capability in catalog.declared.values() {
        if !catalog.by_capability.contains_key(&capability.id) {
            found.push(file_finding(
                "capability-unbound",
                Severity::Warning,
                &capability.location,
                format!("no binding implements `{}`", capability.id),
                format!("Add a file in bindings/ with `capability: {}`", capability.id),
            ));
        }
        for gate in &capability.safety.mandatory_pre_gates {
            let (message, help) = match catalog.declared.get(&gate.capability) {
                None => (
                    format!(
                        "`{}` has the gate `{}`, which is not declared, so it cannot run",
                        capability.id, gate.capability
                    ),
                    format!("Add capabilities/{}.yaml and a binding for it", gate.capability),
                ),
                Some(declared) => match ambiguity(declared, capability) {
                    None => continue,
                    Some(message) => (message, "Change the inputs of one of the two capabilities".to_owned()),
                },
            };
            let (code, file) = ("capability-gate", &capability.location);
            found.push(file_finding(code, Severity::Error, file, message, help));
        }
    }
    found.sort_by(|a, b| (&a.file, &a.code).cmp(&(&b.file, &b.code)));
    catalog.findings.extend(found);
}

/// Builds the finding for a binding of a capability that is not declared.
fn undeclared(binding: &Binding) -> Finding {
    file_finding(
        "binding-capability",
        Severity::Warning,
        &binding.location,
        format!("the binding `{}` implements `{}`, which is not declared", binding.id, binding.capability),
        format!("Add capabilities/{}.yaml, or use a declared capability", binding.capability),
    )
}

/// Checks that a binding falls back to a binding of the same capability.
fn fallback(catalog: &Capabilities, binding: &Binding) -> Option<Finding> {
    let fallback = binding.fallback.as_ref()?;
    let problem = match catalog.bindings.get(fallback) {
        None => "does not exist".to_owned(),
        Some(other) if other.binding.capability != binding.capability => {
            format!("implements `{}` instead of `{}`", other.binding.capability, binding.capability)
        }
        Some(_) => return None,
    };
    Some(file_finding(
        "binding-fallback",
        Severity::Error,
        &binding.location,
        format!("the binding `{}` falls back to `{fallback}`, which {problem}", binding.id),
        "Set metadata.fallback_binding_id to a binding of the same capability",
    ))
}

fn undeclared_inputs(binding: &Binding, capability: &Capability) -> Option<Finding> {
    let unknown: BTreeSet<String> = request::inputs_of(&binding.request)
        .into_iter()
        .filter(|name| !capability.inputs.contains_key(name))
        .collect();
    if unknown.is_empty() {
        return None;
    }
    let names: Vec<_> = unknown.into_iter().collect();
    Some(file_finding(
        "binding-request",
        Severity::Warning,
        &binding.location,
        format!(
            "the request of `{}` reads inputs that `{}` does not declare: {}",
            binding.id,
            binding.capability,
            names.join(", ")
        ),
        format!("Declare them in {}, or use declared inputs", binding.capability),
    ))
}

fn undeclared_outputs(binding: &Binding, capability: &Capability) -> Option<Finding> {
    let unknown: Vec<&str> = binding
        .response
        .keys()
        .filter(|name| !capability.outputs.contains_key(*name))
        .map(String::as_str)
        .collect();
    if unknown.is_empty() {
        return None;
    }
    Some(file_finding(
        "binding-response",
        Severity::Info,
        &binding.location,
        format!(
            "`{}` produces what `{}` does not declare: {}",
            binding.id,
            binding.capability,
            unknown.join(", ")
        ),
        format!("Declare it in the outputs of {}, so that contracts can use it", binding.capability),
    ))
}
