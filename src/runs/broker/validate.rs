//! What goes in and what comes out, compared with what the capability declares.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fields::{FieldProblem, check_inputs, check_outputs};
use skills_skill::contract::{Capability, Conformance, Field};

/// The inputs with defaults filled in. What is not declared is handed on: public contracts give hints beside.
///
/// # Errors
/// Every input that is missing or of another kind, in one sentence.
pub fn inputs(capability: &Capability, given: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let (declared, others): (Map<_, _>, Map<_, _>) =
        given.clone().into_iter().partition(|(name, _)| capability.inputs.contains_key(name));
    let mut checked = check_inputs(&capability.inputs, &declared).map_err(|problems| listed(&problems))?;
    checked.extend(others);
    Ok(checked)
}

/// Whether outputs are what a binding of this conformance promises: all declared ones, those required, or nothing.
///
/// # Errors
/// Every output that is missing or of another kind, in one sentence.
pub fn outputs(
    capability: &Capability,
    conformance: Conformance,
    given: &Map<String, Value>,
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
    check_outputs(&promised, given).map_err(|problems| listed(&problems))
}

fn listed(problems: &[FieldProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
