//! Validates inputs and outputs against the declarations of a capability.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fields::{FieldProblem, check_inputs, check_outputs};
use skills_skill::contract::{Capability, Conformance, Field};

/// Returns the inputs with defaults filled in. Undeclared inputs are passed on, since public contracts use them for
/// hints.
///
/// # Errors
/// Returns one message that lists every missing input and every input of the wrong type.
pub fn inputs(capability: &Capability, inputs: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let (declared, others): (Map<_, _>, Map<_, _>) =
        inputs.clone().into_iter().partition(|(name, _)| capability.inputs.contains_key(name));
    let mut checked = check_inputs(&capability.inputs, &declared).map_err(|problems| listed(&problems))?;
    checked.extend(others);
    Ok(checked)
}

/// Checks outputs against what the conformance level of a binding guarantees: all declared outputs, the required ones,
/// or none.
///
/// # Errors
/// Returns one message that lists every missing output and every output of the wrong type.
pub fn outputs(
    capability: &Capability,
    conformance: Conformance,
    inputs: &Map<String, Value>,
) -> Result<(), String> {
    let promised: BTreeMap<String, Field> = match conformance {
        Conformance::Experimental => return Ok(()),
        Conformance::Standard => capability
            .outputs
            .iter()
            .filter(|(_, field)| field.required)
            .map(|(name, field)| (name.clone(), field.clone()))
            .collect(),
        Conformance::Strict => capability
            .outputs
            .iter()
            .map(|(name, field)| (name.clone(), Field { required: true, ..field.clone() }))
            .collect(),
    };
    check_outputs(&promised, inputs).map_err(|problems| listed(&problems))
}

fn listed(problems: &[FieldProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
