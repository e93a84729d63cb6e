//! Runs of a single capability: a generated contract with one step.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::launch::{PreparedLaunch, inputs_error, policy_options, title_of};
use super::{Launches, Plans, capabilities, contracts};
use crate::{CapabilityRequest, Code, Error, Launched};
use skills_runs::{Capabilities, Plan, check_inputs};
use skills_skill::contract::{Capability, Contract, MergeStrategy, Source, Step, StepAction};
use skills_skill::{EffectMode, Role, Skill, SkillId};
use skills_store::{PolicySubject, RunOptions};

/// Prefix of the skill name of such a run, before the capability.
const PREFIX: &str = "capability:";
/// The only step.
const STEP: &str = "call";

/// Returns the capability that a run's skill names, if it is not a skill of the catalog.
pub(super) fn capability_of(skill: &str) -> Option<&str> {
    skill.strip_prefix(PREFIX)
}

/// Returns what a policy compares with its rules for a run of a single capability.
pub(super) fn policy_subject(capability: &Capability) -> PolicySubject {
    let effect = if capability.properties.side_effects { EffectMode::Enrich } else { EffectMode::ReadOnly };
    PolicySubject {
        id: format!("{PREFIX}{}", capability.id),
        domain: capability.id.split_once('.').map(|(domain, _)| domain.to_owned()),
        role: Role::Utility.to_string(),
        effect: effect.to_string(),
        location: capability.location.to_string_lossy().into_owned(),
        ..PolicySubject::default()
    }
}

impl Launches {
    /// Launches a run of a single capability.
    pub(super) async fn execute_capability(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        let plans = Arc::clone(&self.plans);
        let requested = request.clone();
        let prepared = crate::work::run_blocking(move || {
            let capabilities = plans.services.capabilities()?;
            let capability = capabilities::known(&capabilities, requested.capability.trim())?;
            let id = format!("{PREFIX}{}", capability.id);
            // Rules are checked first: a caller without permission does not learn its inputs.
            let unpinned = plan(&capabilities, &capability, &requested.inputs, None)?;
            let options = policy_options(&requested.options);
            let approval = plans.permissions.approval_of_plan(&id, &unpinned, &options)?;
            let inputs = if capability.inputs.is_empty() {
                // A capability that declares no inputs accepts everything.
                requested.inputs
            } else {
                check_inputs(&capability.inputs, &requested.inputs)
                    .map_err(|wrong| inputs_error(&id, &wrong))?
            };
            let plan = plan(&capabilities, &capability, &inputs, approval)?;
            Ok(PreparedLaunch {
                title: title_of(&id, &plan.contract, &inputs),
                expires_in_s: None,
                skill_id: SkillId::new(id.as_str()),
                plan: plans.pinned(&id, &plan, &options)?,
                inputs,
                options: RunOptions {
                    place: plans.place_of_capability(&capability),
                    ..plans.run_options(&requested.options)?
                },
            })
        })
        .await?;
        let launched = self.begin(prepared, None, &request.options, request.started_by).await?;
        self.returned(launched, request.options.wait).await
    }
}

impl Plans {
    /// Returns the digest and version of the plan that a run of a capability would be launched with now.
    pub(super) fn present_capability(
        &self,
        capability: &str,
        inputs: &Value,
        approval: Option<String>,
    ) -> Result<(Option<String>, Option<String>), Error> {
        let capabilities = self.services.capabilities()?;
        let capability = capabilities::known(&capabilities, capability)?;
        let input_map = inputs.as_object().cloned().unwrap_or_default();
        let digest = plan(&capabilities, &capability, &input_map, approval).ok().map(|plan| plan.digest());
        Ok((digest, Some(capability.version.clone())))
    }

    /// Returns the digests of the plans that a skill would be launched with now: without an approval, and with the one
    /// that the policy requires.
    pub(in crate::local) fn present_digests(&self, skill: &Arc<Skill>) -> Vec<String> {
        let Ok(read) = contracts::read(skill) else { return Vec::new() };
        let Ok(plan) = self.pin_untrusting(&read, None) else { return Vec::new() };
        let mut digests = vec![plan.digest()];
        if let Ok(Some(rule)) =
            self.permissions.approval_of_plan(skill.id.as_str(), &plan, &RunOptions::default())
        {
            digests.push(Plan { approval: Some(rule), ..plan }.digest());
        }
        digests
    }
}

/// Returns the plan of a run that passes these inputs to a capability and returns its outputs.
fn plan(
    capabilities: &Capabilities,
    capability: &Capability,
    inputs: &Map<String, Value>,
    approval: Option<String>,
) -> Result<Plan, Error> {
    let contract = contract(capability, inputs);
    Plan::pin(&contract, &|_| None, &|id| capabilities.capability(id).cloned(), approval).map_err(|error| {
        let reason = serde_json::to_value(&error).ok();
        Error {
            reason,
            ..Error::new(Code::InvalidConfiguration, format!("{} cannot run: {error}", contract.id))
        }
    })
}

fn contract(capability: &Capability, inputs: &Map<String, Value>) -> Contract {
    let path = |namespace: &str, field: &str| vec![namespace.to_owned(), field.to_owned()];
    let step = Step {
        id: STEP.to_owned(),
        action: StepAction::Capability(capability.id.clone()),
        // Only given inputs: optional ones stay absent.
        input: inputs.keys().map(|f| (f.clone(), Source::Reference(path("inputs", f)))).collect(),
        output: capability.outputs.keys().map(|f| (f.clone(), path("outputs", f))).collect(),
        depends_on: Vec::new(),
        condition: None,
        retry: None,
        foreach: None,
        repeat: None,
        router: None,
        scatter: None,
        merge_strategy: MergeStrategy::default(),
        timeout: None,
        line: 0,
    };
    Contract {
        id: format!("{PREFIX}{}", capability.id),
        version: capability.version.clone(),
        name: None,
        description: Some(capability.description.clone()),
        title: None,
        expires_in_seconds: None,
        approvals: None,
        inputs: capability.inputs.clone(),
        outputs: capability.outputs.clone(),
        steps: vec![step],
        findings: Vec::new(),
        location: PathBuf::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use skills_skill::contract::{Field, FieldType};

    #[test]
    fn absent_inputs_are_omitted_and_all_outputs_returned() {
        let field = |kind, required| Field { required, ..Field::of(kind) };
        let capability = Capability {
            id: "text.count".into(),
            version: "1.0.0".into(),
            description: "Counts".into(),
            inputs: BTreeMap::from([
                ("text".to_owned(), field(FieldType::String, true)),
                ("unit".to_owned(), field(FieldType::String, false)),
            ]),
            outputs: BTreeMap::from([("count".to_owned(), field(FieldType::Integer, true))]),
            properties: skills_skill::contract::Properties::default(),
            safety: skills_skill::contract::Safety::default(),
            location: PathBuf::new(),
        };
        let input_map = json!({"text": "a b"});
        let contract = contract(&capability, input_map.as_object().unwrap());
        assert_eq!(contract.id, "capability:text.count");
        let step = &contract.steps[0];
        assert_eq!(step.input.keys().collect::<Vec<_>>(), ["text"]);
        assert_eq!(step.output["count"], ["outputs", "count"]);
        assert_eq!(capability_of(&contract.id), Some("text.count"));
        assert_eq!(capability_of("text.count"), None);
    }
}
