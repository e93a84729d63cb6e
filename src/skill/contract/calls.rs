//! What can be said about the calls of a contract where the capabilities are known: is there such a capability, does it
//! take this input, is a constant of the type that it wants.

use std::path::Path;

use serde_json::Value;

use super::check::Places;
use super::reader::{Reader, nearest, suggest};
use super::types::{Capability, Contract, Field, Source, Step, StepAction};
use crate::lint::rules;
use crate::{Finding, Severity};

/// The capabilities that a contract may call.
pub trait KnownCapabilities {
    /// Ids of all that are declared, or have a binding.
    fn ids(&self) -> Vec<&str>;

    /// The declaration of one, where there is one.
    fn declared(&self, id: &str) -> Option<&Capability>;

    /// Holds a value against a field.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self, field: &Field, value: &Value) -> Result<(), String>;
}

/// Findings about the calls of a contract. `skill` has the names under which this very skill is called.
#[must_use]
pub fn check_calls(
    location: &Path,
    source: &str,
    contract: &Contract,
    skill: &[&str],
    known: &dyn KnownCapabilities,
) -> Vec<Finding> {
    let file = location.file_name().map_or(Path::new("skill.yaml"), Path::new);
    let mut reader = Reader::new(file, source.strip_prefix('\u{feff}').unwrap_or(source));
    let Some(root) = reader.root() else { return reader.findings() };
    let places = Places::of(&root);
    let ids = known.ids();
    for step in &contract.steps {
        let path = format!("steps.{}", step.id);
        if let StepAction::Skill(id) = &step.action
            && *id != contract.id
            && skill.contains(&id.as_str())
        {
            let at = places.within(step, &["uses"]);
            reader.invalid(&path, &at, format!("step `{}` runs its own skill", step.id));
        }
        for (capability, keys) in called(step) {
            if !ids.contains(&capability) {
                let at = places.within(step, keys);
                let message = format!(
                    "step `{}` calls `{capability}`, which is not declared and has no binding",
                    step.id
                );
                let finding = reader.note(&rules::CONTRACT_CAPABILITY, &path, &at, message);
                suggest(finding, capability, ids.iter().copied());
            }
        }
        // Where a value or a merge decides, the inputs are those of several.
        if let StepAction::Capability(id) = &step.action
            && step.router.is_none()
            && step.scatter.is_none()
            && let Some(capability) = known.declared(id)
        {
            inputs(&mut reader, &places, step, capability, known);
        }
    }
    reader.findings()
}

/// Every capability that a step names, with its key path.
fn called(step: &Step) -> Vec<(&str, &'static [&'static str])> {
    let mut all: Vec<(&str, &'static [&'static str])> = Vec::new();
    if let StepAction::Capability(id) = &step.action
        && step.router.is_none()
        && step.scatter.is_none()
    {
        all.push((id, &["uses"]));
    }
    if let Some(router) = &step.router {
        let cases = router.cases.values().chain(&router.default);
        all.extend(cases.map(|id| (id.as_str(), &["config", "router"][..])));
    }
    if let Some(scatter) = &step.scatter {
        all.extend(scatter.capabilities.iter().map(|id| (id.as_str(), &["config", "scatter"][..])));
    }
    all.retain(|(id, _)| !id.starts_with("skill:"));
    all
}

fn inputs(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    step: &Step,
    capability: &Capability,
    known: &dyn KnownCapabilities,
) {
    let id = &capability.id;
    let given = |name: &String| {
        let of_item =
            step.foreach.as_ref().is_some_and(|f| f.item == *name || f.index_as.as_ref() == Some(name));
        of_item || step.input.contains_key(name)
    };
    let missing: Vec<&String> = capability
        .inputs
        .iter()
        .filter(|&(name, field)| field.required && field.default.is_none() && !given(name))
        .map(|(name, _)| name)
        .collect();
    for name in &missing {
        let path = format!("steps.{}.input", step.id);
        let message = format!("step `{}` lacks `{name}`, which `{id}` requires", step.id);
        reader.note(&rules::CONTRACT_INPUT, &path, &places.within(step, &["input"]), message);
    }
    for (name, source) in &step.input {
        let path = format!("steps.{}.input.{name}", step.id);
        let at = places.within(step, &["input", name.as_str()]);
        let Some(field) = capability.inputs.get(name) else {
            // What is not declared reaches the binding all the same: public contracts give hints in this way.
            // It is a mistake where it seems to be for an input that is not given.
            let free = capability.inputs.keys().filter(|known| !step.input.contains_key(*known));
            let near = nearest(name, free.map(String::as_str));
            if near.is_some() || !missing.is_empty() {
                let message = format!("step `{}`: `{id}` has no input `{name}`", step.id);
                let finding = reader.note(&rules::CONTRACT_INPUT, &path, &at, message);
                finding.severity = Severity::Warning;
                if let Some(near) = near {
                    finding.help = format!("Did you mean `{near}`?");
                }
            }
            continue;
        };
        if let Some(value) = constant(source)
            && !value.is_null()
            && let Err(problem) = known.check(field, &value)
        {
            let message = format!("step `{}`, input `{name}` of `{id}`: {problem}", step.id);
            reader.note(&rules::CONTRACT_INPUT, &path, &at, message);
        }
    }
}

/// The value of a source that reads nothing.
fn constant(source: &Source) -> Option<Value> {
    Some(match source {
        Source::Reference(_) => return None,
        Source::Literal(value) => value.clone(),
        Source::List(items) => Value::Array(items.iter().map(constant).collect::<Option<_>>()?),
        Source::Object(map) => Value::Object(
            map.iter().map(|(key, item)| Some((key.clone(), constant(item)?))).collect::<Option<_>>()?,
        ),
    })
}
