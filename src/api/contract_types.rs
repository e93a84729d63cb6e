//! Serializable types of contracts and capabilities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use skills_runs::Explanation;
use skills_skill::contract::{Contract, Field};
use skills_skill::{Finding, SkillId};

/// The contract of a skill, for Browse and forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContractView {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// The contract.
    pub contract: Contract,
    /// Digest of the contract.
    pub digest: String,
    /// Per step: its calls, bindings and gates.
    pub steps: Vec<ContractStep>,
    /// Whether it may run, and if not, why and what to do.
    pub blocked: Option<String>,
    /// Findings of the parser, and about missing capabilities and bindings.
    pub findings: Vec<Finding>,
    /// The isolation of its scripts on this machine, as text.
    pub isolation: String,
}

/// A step of a contract with its capabilities and gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContractStep {
    /// Id of the step.
    pub id: String,
    /// Steps that must complete first.
    pub after: Vec<String>,
    /// `capability …`, `skill …`, `signal …`.
    pub uses: String,
    /// Its control flow as short text (`for each item of inputs.files`, `3 attempts`).
    pub flow: Vec<String>,
    /// The binding that would execute it, for display, or why none is available.
    pub binding: Option<String>,
    /// Whether a capability that it calls has no available binding, so that `binding` says why.
    #[serde(default)]
    pub unbound: bool,
    /// Required approvals and gates, as text; if it may call several capabilities, also in a skill that it runs, and these
    /// differ, for each of them.
    pub gates: Vec<String>,
    /// The capabilities with external side effects that it may call without an approval or a gate that could prevent it,
    /// also in a skill that it runs, as text.
    #[serde(default)]
    pub unapproved: Option<String>,
    /// Whether repeating it is safe, as text.
    pub effect: String,
    /// Whether it, or a skill that it runs, has external side effects.
    #[serde(default)]
    pub acts: bool,
}

/// Input fields of a skill, for a launch form.
pub type InputFields = BTreeMap<String, Field>;

/// A capability with its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CapabilityExplanation {
    /// Description of the capability.
    pub description: String,
    /// Declared inputs by name.
    pub inputs: BTreeMap<String, Field>,
    /// Declared outputs by name.
    pub outputs: BTreeMap<String, Field>,
    /// Gates and confirmation, as text.
    pub gates: Vec<String>,
    /// The decision.
    pub explanation: Explanation,
    /// Steps that use it: `skill/step`.
    pub used_by: Vec<String>,
}
