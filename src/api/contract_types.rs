//! What goes through the door about contracts and capabilities, as data with serde.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use skills_runs::Explanation;
use skills_skill::contract::{Contract, Field};
use skills_skill::{Finding, SkillId};

/// The contract of a skill, for Browse and forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContractView {
    /// The skill.
    pub skill_id: SkillId,
    /// The contract.
    pub contract: Contract,
    /// Its digest.
    pub digest: String,
    /// Per step: what it calls, through which binding, behind which gates.
    pub steps: Vec<ContractStep>,
    /// Whether it may run here, and if not why and what to do.
    pub blocked: Option<String>,
    /// Findings about it, the parser's and those of missing capabilities and bindings.
    pub findings: Vec<Finding>,
    /// The isolation that its scripts would get here, in a sentence.
    pub isolation: String,
}

/// A step of a contract with what stands behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContractStep {
    /// The step.
    pub id: String,
    /// Steps that have to be through first.
    pub after: Vec<String>,
    /// `capability …`, `skill …`, `signal …`.
    pub uses: String,
    /// Its control flow in a few words (`for each item of inputs.files`, `3 attempts`).
    pub flow: Vec<String>,
    /// The binding that would carry it out, as a person reads it, or why none can.
    pub binding: Option<String>,
    /// Who is asked before it runs: confirmations and gates in words.
    pub gates: Vec<String>,
    /// Whether repeating it is safe, in words.
    pub effect: String,
    /// Whether it changes something outside of its run.
    #[serde(default)]
    pub acts: bool,
}

/// What a skill wants as inputs, for a launch form.
pub type InputFields = BTreeMap<String, Field>;

/// A capability with its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CapabilityExplanation {
    /// What it says about itself.
    pub description: String,
    /// Its inputs.
    pub inputs: BTreeMap<String, Field>,
    /// Its outputs.
    pub outputs: BTreeMap<String, Field>,
    /// Gates and confirmation, in words.
    pub gates: Vec<String>,
    /// The decision.
    pub explanation: Explanation,
    /// Steps of known skills that use it: `skill/step`.
    pub used_by: Vec<String>,
}
