//! Operations on capabilities: list them, explain which binding executes one, and set the preferred binding.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::runtime::CapabilityServices;
use super::{contracts, decision_preview, identity};
use crate::{CapabilityExplanation, Code, Error, names};
use skills_base::audit::Entry;
use skills_config::quoted;
use skills_registry::Catalog;
use skills_runs::{Caller as _, Capabilities, Explanation, Plan};
use skills_skill::contract::Capability;

impl CapabilityServices {
    /// Returns the ids of all capabilities, sorted.
    pub(super) async fn capability_ids(self: &Arc<Self>) -> Result<Vec<String>, Error> {
        let services = Arc::clone(self);
        crate::work::run_blocking(move || Ok(services.capabilities()?.ids().map(str::to_owned).collect()))
            .await
    }

    /// Explains which binding executes a capability.
    pub(super) async fn explain(self: &Arc<Self>, requested: &str) -> Result<CapabilityExplanation, Error> {
        let (services, requested) = (Arc::clone(self), requested.trim().to_owned());
        crate::work::run_blocking(move || {
            let capabilities = services.capabilities()?;
            let capability = known(&capabilities, &requested)?;
            services.explained(&capabilities, &capability)
        })
        .await
    }

    /// Sets the preferred binding of a capability on this host, or removes the preference.
    pub(super) async fn activate(
        self: &Arc<Self>,
        requested: &str,
        binding: Option<&str>,
        by: Option<String>,
    ) -> Result<CapabilityExplanation, Error> {
        let (services, requested) = (Arc::clone(self), requested.trim().to_owned());
        let binding = binding.map(|id| id.trim().to_owned());
        let runtime = tokio::runtime::Handle::current();
        crate::work::run_blocking(move || {
            let capabilities = services.capabilities()?;
            let capability = known(&capabilities, &requested)?;
            if let Some(binding) = &binding {
                of_capability(&capabilities, &capability, binding)?;
            }
            services.overrides.choose(&capability.id, binding.as_deref())?;
            let chosen = json!({ "capability": capability.id, "binding": binding });
            let kind = if binding.is_some() { "binding.activated" } else { "binding.cleared" };
            let by = by.unwrap_or_else(identity::account);
            runtime.block_on(services.audit.record(Entry::new(kind, Some(&by), chosen).durably()));
            services.calling()?.broker.set_overrides(services.chosen()?);
            services.explained(&capabilities, &capability)
        })
        .await
    }

    /// Returns why the definition of a capability is not used: its folder is not trusted, or changed since. Names all
    /// folders in that state that define it. Reads from disk.
    pub(super) fn definition_refusal(
        &self,
        capabilities: &Capabilities,
        catalog: &Catalog,
        capability: &Capability,
    ) -> Option<String> {
        // Definitions decide about approvals, gates and default inputs.
        let (place, read) = capabilities.source(&capability.location)?;
        let what = definition_subject(&capability.id);
        let name = trust_name(catalog, place.root());
        let why = self.trust.refusal_of(place.root(), &read, &what, &name)?;
        let state = self.trust.state(place.root());
        let mut others: Vec<String> = Vec::new();
        for location in capabilities.other_definitions(&capability.id) {
            let Some((other, _)) = capabilities.source(location) else { continue };
            let other_state = self.trust.state(other.root());
            let name = quoted(&trust_name(catalog, other.root()));
            let is_alternative = !other_state.may_run() && other_state.summary() == state.summary();
            if is_alternative && other.root() != place.root() && !others.contains(&name) {
                others.push(name);
            }
        }
        if others.is_empty() {
            return Some(why);
        }
        Some(format!("{why}; it is also defined in {}: trust only the one to be used", others.join(", ")))
    }

    /// Like [`Self::definition_refusal`], for the first capability of a plan whose definition is not used.
    pub(super) fn refusal_in_plan(
        &self,
        capabilities: &Capabilities,
        catalog: &Catalog,
        plan: &Plan,
    ) -> Option<String> {
        let mut called = plan.capabilities.keys().filter_map(|id| capabilities.capability(id));
        called.find_map(|capability| self.definition_refusal(capabilities, catalog, capability))
    }

    fn explained(
        &self,
        capabilities: &Capabilities,
        capability: &Capability,
    ) -> Result<CapabilityExplanation, Error> {
        let explanation = self.calling()?.broker.explain(capability, &self.config.conformance.into());
        let explanation = match self.definition_refusal(capabilities, &self.registry.snapshot(), capability) {
            Some(summary) => Explanation { chosen: None, summary, ..explanation },
            None => explanation,
        };
        Ok(CapabilityExplanation {
            description: capability.description.clone(),
            inputs: capability.inputs.clone(),
            outputs: capability.outputs.clone(),
            gates: decision_preview::gates(capability),
            explanation,
            used_by: self.used_by(&capability.id),
        })
    }

    /// Returns the steps of the current skills that call a capability.
    fn used_by(&self, capability: &str) -> Vec<String> {
        let catalog = self.registry.snapshot();
        let mut steps = Vec::new();
        for skill in catalog.entries.iter().map(|entry| &entry.skill) {
            if !skill.root_dir.join("skill.yaml").is_file() {
                continue;
            }
            let Ok(read) = contracts::read(skill) else { continue };
            let calling =
                read.contract.steps.iter().filter(|step| step.called_capabilities().contains(&capability));
            steps.extend(calling.map(|step| format!("{}/{}", skill.id, step.id)));
        }
        steps
    }
}

/// Returns the subject of a sentence about trust in the definition of a capability: trust is in its folder.
pub(super) fn definition_subject(id: &str) -> String {
    format!("the folder with the definition of the capability `{id}`")
}

/// Returns the argument of `skills trust` for a folder: the id of its skill, else its path.
pub(super) fn trust_name<'a>(catalog: &'a Catalog, folder: &'a Path) -> Cow<'a, str> {
    match catalog.in_folder(folder) {
        Some((skill, _)) => Cow::Borrowed(skill.id.as_str()),
        None => folder.to_string_lossy(),
    }
}

pub(super) fn known(capabilities: &Capabilities, requested: &str) -> Result<Arc<Capability>, Error> {
    capabilities.capability(requested).cloned().ok_or_else(|| Error {
        suggestions: names::near(requested, capabilities.ids()),
        ..Error::new(Code::NotFound, format!("capability `{requested}` not found"))
    })
}

fn of_capability(capabilities: &Capabilities, capability: &Capability, binding: &str) -> Result<(), Error> {
    let others = capabilities.bindings_of(&capability.id).iter().map(|offered| offered.binding.id.as_str());
    let others: Vec<&str> = others.collect();
    let have = if others.is_empty() { "there is none".to_owned() } else { others.join(", ") };
    match capabilities.binding(binding) {
        Some(offered) if offered.binding.capability == capability.id => Ok(()),
        Some(offered) => Err(Error {
            suggestions: others.iter().map(ToString::to_string).collect(),
            ..Error::new(
                Code::InvalidRequest,
                format!(
                    "{binding} implements {}, not {}; bindings of {}: {have}",
                    offered.binding.capability, capability.id, capability.id
                ),
            )
        }),
        None => Err(Error {
            suggestions: names::near(binding, others.iter().copied()),
            ..Error::new(
                Code::NotFound,
                format!("binding `{binding}` not found; bindings of `{}`: {have}", capability.id),
            )
        }),
    }
}
