//! Checks the calls of a contract against known capabilities: whether the capability exists, accepts these inputs with
//! these types, and produces the outputs that the step maps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use skills_base::files::Folder;

use super::check::{OWN_SKILL, Places};
use super::nesting::{MAX_CONTRACTS, MAX_DEPTH, MAX_STEPS, Nesting};
use super::reader::Reader;
use super::types::{
    Binding, Capability, Contract, Field, FieldType, MergeStrategy, Protocol, Source, Step, StepAction,
};
use crate::lint::rules;
use crate::{Finding, Severity};

/// The capabilities that a contract may call.
pub trait KnownCapabilities {
    /// Returns the ids of all capabilities that are declared or have a binding.
    fn ids(&self) -> Vec<&str>;

    /// Returns the declaration of a capability, if there is one.
    fn declared(&self, id: &str) -> Option<&Capability>;

    /// Returns whether a binding of a capability maps a response field to this output.
    fn maps_output(&self, id: &str, output: &str) -> bool;

    /// Returns whether a service is declared.
    fn has_service(&self, id: &str) -> bool;

    /// Checks a value against a field.
    ///
    /// # Errors
    /// Returns a message that states what is wrong.
    fn check(&self, field: &Field, value: &Value) -> Result<(), String>;
}

/// The contracts that `uses: skill:ID` can refer to, by the ids of their skills and by their own ids.
pub type KnownContracts = BTreeMap<String, Arc<Contract>>;

/// The declaration of what a step calls.
#[derive(Clone, Copy)]
struct Callee<'a> {
    id: &'a str,
    inputs: &'a BTreeMap<String, Field>,
    outputs: &'a BTreeMap<String, Field>,
    /// Whether all inputs are accepted: true for a capability that declares no inputs, false for a skill.
    takes_all: bool,
}

/// The context of the contract being checked.
#[derive(Clone, Copy)]
struct CheckContext<'a> {
    contract: &'a Contract,
    capabilities: &'a dyn KnownCapabilities,
    skills: Option<&'a KnownContracts>,
}

/// Returns findings about the calls of a contract. `skill` has the names of the contract's own skill; `skills` has the
/// contracts of all skills, if they are known.
pub fn check_calls(
    location: &Path,
    source: &str,
    contract: &Contract,
    skill: &[&str],
    capabilities: &dyn KnownCapabilities,
    skills: Option<&KnownContracts>,
) -> Vec<Finding> {
    let file = location.file_name().map_or(Path::new("skill.yaml"), Path::new);
    let mut reader = Reader::new(file, source.strip_prefix('\u{feff}').unwrap_or(source));
    let Some(root) = reader.root() else { return reader.findings() };
    let places = Places::of(&root, contract);
    let context = CheckContext { contract, capabilities, skills };
    let ids = capabilities.ids();
    let nesting = Nesting::of(contract, &|id| skills?.get(id).cloned());
    let shortest_cycles = nesting.shortest_cycles(contract);
    defaults(&mut reader, &places, "inputs", &contract.inputs, capabilities);
    for step in &contract.steps {
        let path = format!("steps.{}", step.id);
        if let StepAction::Skill(id) = &step.action {
            nested(&mut reader, &places, step, id, skill, &context);
            let at = places.within(step, &["uses"]);
            if let Some(cycle) =
                cycle(contract, id, &nesting, &shortest_cycles).filter(|_| !skill.contains(&id.as_str()))
            {
                let message = format!("skills call each other in a cycle: {}", cycle.join(" → "));
                reader.invalid(&path, &at, message, "Remove one of these calls.");
            } else if nesting.cycles.is_empty() && nesting.of_step(step).depth > MAX_DEPTH {
                let message =
                    format!("step `{}` runs skills nested more than {MAX_DEPTH} levels deep", step.id);
                reader.invalid(&path, &at, message, "Run the innermost skills from a step of this contract.");
            }
        }
        for (capability, keys) in called(step) {
            if !ids.contains(&capability) {
                let at = places.within(step, keys);
                let message = format!(
                    "step `{}` calls `{capability}`, which is not declared and has no binding",
                    step.id
                );
                reader.note(&rules::CONTRACT_CAPABILITY, &path, &at, message);
                reader.suggest(capability, ids.iter().copied());
            }
        }
        if let Some(callee) = context.callee(step) {
            inputs(&mut reader, &places, step, callee, &context);
            outputs(&mut reader, &places, step, callee, &context);
        }
    }
    too_large(&mut reader, &places, contract, &nesting);
    reader.findings()
}

/// Reports a contract that runs too many steps or contracts.
fn too_large(reader: &mut Reader<'_>, places: &Places<'_>, contract: &Contract, nesting: &Nesting) {
    let Some(step) = nesting.largest_step(contract).filter(|_| nesting.cycles.is_empty()) else { return };
    let steps = nesting.of_contract(contract).steps;
    let message = if nesting.is_cut {
        format!("the contract runs more than {MAX_CONTRACTS} other contracts, directly or through others")
    } else if steps > MAX_STEPS {
        format!(
            "the contract runs {steps} steps, including those of nested skills; the maximum is {MAX_STEPS}"
        )
    } else {
        return;
    };
    let path = format!("steps.{}", step.id);
    let help = "Run fewer skills from it, or call capabilities instead.";
    reader.invalid(&path, &places.within(step, &["uses"]), message, help);
}

/// Returns findings about a binding of a bundle: an undeclared capability, or a script that is missing from the
/// bundle. `file` is relative to the bundle.
pub fn check_binding(
    file: &Path,
    source: &str,
    binding: &Binding,
    bundle: &Folder,
    capabilities: &dyn KnownCapabilities,
) -> Vec<Finding> {
    let mut reader = Reader::new(file, source.strip_prefix('\u{feff}').unwrap_or(source));
    let Some(root) = reader.root() else { return Vec::new() };
    let at = |key: &str| root.get(key).map_or_else(|| root.at.clone(), |entry| entry.value.at.clone());
    if capabilities.declared(&binding.capability).is_none() {
        let message = format!(
            "the binding `{}` implements `{}`, which is not declared",
            binding.id, binding.capability
        );
        reader.note(&rules::CONTRACT_CAPABILITY, "capability", &at("capability"), message);
        let declared = capabilities.ids().into_iter().filter(|id| capabilities.declared(id).is_some());
        reader.suggest(&binding.capability, declared);
    }
    // A declared service defines itself what executes its operations, and can be configured anywhere.
    let operation = Path::new(&binding.operation);
    let is_file = operation.starts_with("scripts") || operation.extension().is_some();
    if binding.protocol == Protocol::Script && is_file && !capabilities.has_service(&binding.service) {
        let folder = if operation.starts_with("scripts") { "" } else { "scripts/" };
        let script = bundle.metadata(&format!("{folder}{}", binding.operation));
        if !script.is_ok_and(|found| found.is_file()) {
            let message = format!(
                "the binding `{}` executes `{}`, which is not in the bundle",
                binding.id, binding.operation
            );
            let finding = reader.note(&rules::CONTRACT_REFERENCE, "operation", &at("operation"), message);
            "Add the script to `scripts/`, or correct `operation`.".clone_into(&mut finding.help);
        }
    }
    reader.findings()
}

impl<'a> CheckContext<'a> {
    /// Returns what a step calls; `None` if that depends on a value or is a scatter, or if it is not declared.
    fn callee(&self, step: &'a Step) -> Option<Callee<'a>> {
        if step.router.is_some() || step.scatter.is_some() {
            return None;
        }
        match &step.action {
            StepAction::Capability(id) => {
                let Capability { inputs, outputs, .. } = self.capabilities.declared(id)?;
                Some(Callee { id, inputs, outputs, takes_all: inputs.is_empty() })
            }
            StepAction::Skill(id) => {
                let contract: &'a Contract = self.skills?.get(id)?;
                Some(Callee { id, inputs: &contract.inputs, outputs: &contract.outputs, takes_all: false })
            }
            StepAction::WaitForSignal(_) => None,
        }
    }

    /// Returns the declared type of a reference, and whether the run checks it beforehand.
    fn type_of(&self, reference: &[String]) -> Option<(FieldType, bool)> {
        if let [namespace, input] = reference
            && namespace == "inputs"
        {
            return self.contract.inputs.get(input).map(|field| (field.kind, true));
        }
        let mut writers = self.contract.steps.iter().flat_map(|step| {
            let fields = step.output.iter().filter(|(_, target)| target.as_slice() == reference);
            fields.map(move |(field, _)| (step, field))
        });
        let (step, field) = writers.next()?;
        let joined = step.foreach.is_some() || step.merge_strategy != MergeStrategy::Overwrite;
        if joined || writers.next().is_some() {
            return None;
        }
        Some((self.callee(step)?.outputs.get(field)?.kind, false))
    }
}

/// Reports every default that does not match the type of its field.
fn defaults(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    key: &str,
    fields: &BTreeMap<String, Field>,
    capabilities: &dyn KnownCapabilities,
) {
    for (name, field) in fields {
        if let Some(default) = &field.default
            && let Err(problem) = capabilities.check(field, default)
        {
            let path = format!("{key}.{name}.default");
            let message = format!("`{path}`: {problem}");
            let at = places.at(&[key, name, "default"]);
            reader.invalid(&path, &at, message, "Change the default, or the type of the field.");
        }
    }
}

/// Reports a step that calls its own skill, or a skill that does not exist.
fn nested(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    step: &Step,
    id: &str,
    skill: &[&str],
    context: &CheckContext<'_>,
) {
    let path = format!("steps.{}", step.id);
    let at = places.within(step, &["uses"]);
    if id == context.contract.id {
        return; // noted where the contract is read
    }
    if skill.contains(&id) {
        reader.invalid(&path, &at, format!("step `{}` runs its own skill", step.id), OWN_SKILL);
        return;
    }
    let Some(skills) = context.skills else { return };
    if !skills.contains_key(id) {
        let message =
            format!("step `{}` runs the skill `{id}`, which does not exist or has no contract", step.id);
        let finding = reader.note(&rules::CONTRACT_REFERENCE, &path, &at, message);
        // The skill may be in another root.
        finding.severity = Severity::Warning;
        "Correct the id, or add the skill to the roots.".clone_into(&mut finding.help);
        reader.suggest(id, skills.keys().map(String::as_str));
    }
}

/// Returns the shortest cycle of calls through a skill that a contract calls, if there is one.
fn cycle(
    contract: &Contract,
    first: &str,
    nesting: &Nesting,
    shortest_cycles: &BTreeMap<&str, Option<&str>>,
) -> Option<Vec<String>> {
    // Noted where the contract is read.
    let mut next = shortest_cycles.contains_key(first).then_some(first).filter(|id| *id != contract.id);
    next?;
    let mut way = vec![contract.id.clone()];
    while let Some(id) = next {
        way.push(nesting.contract(id)?.id.clone());
        next = shortest_cycles.get(id).copied().flatten();
    }
    Some(way)
}

/// Returns every capability that a step names, with its key path.
fn called(step: &Step) -> Vec<(&str, &'static [&'static str])> {
    let keys: &'static [&'static str] = if step.router.is_some() {
        &["config", "router"]
    } else if step.scatter.is_some() {
        &["config", "scatter"]
    } else {
        &["uses"]
    };
    let called = step.called_capabilities().into_iter();
    called.filter(|id| !id.starts_with("skill:")).map(|id| (id, keys)).collect()
}

fn inputs(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    step: &Step,
    callee: Callee<'_>,
    context: &CheckContext<'_>,
) {
    let id = callee.id;
    let bound = |name: &String| {
        let of_item =
            step.foreach.as_ref().is_some_and(|f| f.item == *name || f.index_as.as_ref() == Some(name));
        of_item || step.input.contains_key(name)
    };
    let required = callee.inputs.iter().filter(|(_, field)| field.required && field.default.is_none());
    for (name, _) in required.filter(|(name, _)| !bound(name)) {
        let path = format!("steps.{}.input", step.id);
        let message = format!("step `{}` lacks `{name}`, which `{id}` requires", step.id);
        reader.note(&rules::CONTRACT_INPUT, &path, &places.within(step, &["input"]), message);
    }
    for (name, source) in &step.input {
        let path = format!("steps.{}.input.{name}", step.id);
        let at = places.within(step, &["input", name.as_str()]);
        let Some(field) = callee.inputs.get(name) else {
            if !callee.takes_all {
                let message = format!("step `{}`: `{id}` has no input `{name}`", step.id);
                reader.note(&rules::CONTRACT_INPUT, &path, &at, message);
                let free = callee.inputs.keys().filter(|name| !step.input.contains_key(*name));
                reader.suggest(name, free.map(String::as_str));
            }
            continue;
        };
        if let Some(value) = constant(source)
            && !value.is_null()
            && let Err(problem) = context.capabilities.check(field, &value)
        {
            let message = format!("step `{}`, input `{name}` of `{id}`: {problem}", step.id);
            reader.note(&rules::CONTRACT_INPUT, &path, &at, message);
        }
        if let Source::Reference(reference) = source
            && let Some((kind, checked)) = context.type_of(reference)
            && !fits(kind, field.kind)
        {
            let message = format!(
                "step `{}`, input `{name}` of `{id}`: expected {}, `{}` is declared as {kind}",
                step.id,
                field.kind,
                reference.join(".")
            );
            let finding = reader.note(&rules::CONTRACT_INPUT, &path, &at, message);
            if !checked {
                // A binding may produce more outputs than its capability declares.
                finding.severity = Severity::Warning;
            }
        }
    }
}

/// Returns whether a value of one type may be valid for another: a number may be an integer.
fn fits(actual: FieldType, requested: FieldType) -> bool {
    let is_number = |kind| matches!(kind, FieldType::Integer | FieldType::Number);
    actual == requested
        || actual == FieldType::Any
        || requested == FieldType::Any
        || (is_number(actual) && is_number(requested))
}

/// Reports every field that a step takes from a call that does not produce it.
fn outputs(
    reader: &mut Reader<'_>,
    places: &Places<'_>,
    step: &Step,
    callee: Callee<'_>,
    context: &CheckContext<'_>,
) {
    if callee.outputs.is_empty() {
        return;
    }
    for field in step.output.keys() {
        let name = field.split('.').next().unwrap_or(field);
        let is_declared = callee.outputs.contains_key(field) || callee.outputs.contains_key(name);
        if is_declared || context.capabilities.maps_output(callee.id, name) {
            continue;
        }
        let path = format!("steps.{}.output.{field}", step.id);
        let message = format!("step `{}`: `{}` has no output `{field}`", step.id, callee.id);
        let at = places.within(step, &["output", field.as_str()]);
        let declared: Vec<&str> = callee.outputs.keys().map(String::as_str).collect();
        let help = match reader.nearest(name, declared.iter().copied()) {
            Some(near) => format!("Did you mean `{near}`?"),
            None => format!("Use one of: {}.", declared.join(", ")),
        };
        reader.note(&rules::CONTRACT_OUTPUT, &path, &at, message).help = help;
    }
}

/// Returns the value of a source that contains no references.
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
