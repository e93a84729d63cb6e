//! The checked and typed form of a contract. Created only by the parser.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumIter, EnumString};

use crate::Finding;

/// The type of an input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum FieldType {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    Any,
}

/// One declared input or output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Field {
    /// Type of the field.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether it is required; default false.
    pub required: bool,
    /// Description for users.
    pub description: Option<String>,
    /// Used when an input is absent.
    pub default: Option<Value>,
    /// The only values allowed, if limited.
    #[serde(rename = "enum")]
    pub allowed: Vec<Value>,
    /// Type of the elements of a list, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Field>>,
}

impl Field {
    /// Creates a field of this type without further properties.
    pub fn of(kind: FieldType) -> Self {
        Self { kind, required: false, description: None, default: None, allowed: Vec::new(), items: None }
    }
}

/// Source of a step input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A dotted reference whose first part is a namespace (`inputs.file`).
    Reference(Vec<String>),
    /// A constant.
    Literal(Value),
    /// A list of sources.
    List(Vec<Source>),
    /// An object of sources.
    Object(BTreeMap<String, Source>),
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepAction {
    /// Call a capability.
    Capability(String),
    /// Run another skill's contract (nesting to depth 10).
    Skill(String),
    /// Wait until a signal of this name arrives; its payload is the step's output.
    WaitForSignal(String),
}

/// How a target written twice is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MergeStrategy {
    /// An error.
    #[default]
    Overwrite,
    /// Lists are joined.
    Append,
    /// Objects are merged at every depth.
    DeepMerge,
    /// The later one has precedence.
    Replace,
}

/// `retry`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Retry {
    /// At least 1.
    pub max_attempts: u32,
    /// Seconds before the first retry; default 1.
    pub backoff_seconds: f64,
    /// Backoff factor for later retries; default 2.
    pub backoff_multiplier: f64,
}

/// `foreach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Foreach {
    /// Expression that evaluates to the list.
    pub items: String,
    /// Input field that holds the item.
    #[serde(rename = "as")]
    pub item: String,
    /// Input field that holds its index, from 0.
    pub index_as: Option<String>,
}

/// `while`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct While {
    /// Expression evaluated after each iteration.
    pub condition: String,
    /// Limit; default 10.
    pub max_iterations: u32,
}

/// `router`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Router {
    /// Expression whose value, as text, selects the capability.
    pub on: String,
    /// Maps values to capabilities.
    pub cases: BTreeMap<String, String>,
    /// The capability if no case matches.
    pub default: Option<String>,
}

/// How results of a scatter are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Merge {
    /// Maps each capability to its output; failed ones are absent.
    Collect,
    /// Maps each field to the list of its values; failed capabilities are skipped.
    ConcatLists,
    /// The first successful result.
    FirstSuccess,
}

/// `scatter`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scatter {
    /// At least two, executed in parallel.
    pub capabilities: Vec<String>,
    /// How they are combined.
    pub merge: Merge,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// Unique in its contract.
    pub id: String,
    /// What it does.
    pub action: StepAction,
    /// Maps input fields to their sources.
    pub input: BTreeMap<String, Source>,
    /// Maps output fields to target paths (`vars.rows`).
    pub output: BTreeMap<String, Vec<String>>,
    /// Steps that must complete first: as declared, else the previous step.
    pub depends_on: Vec<String>,
    /// Skipped if this expression is false.
    pub condition: Option<String>,
    /// Repeated on failure.
    pub retry: Option<Retry>,
    /// Repeated per item.
    pub foreach: Option<Foreach>,
    /// Repeated while the condition is true.
    #[serde(rename = "while")]
    pub repeat: Option<While>,
    /// Selects another capability by value.
    pub router: Option<Router>,
    /// Calls several capabilities in parallel.
    pub scatter: Option<Scatter>,
    /// How its outputs are merged with existing values.
    pub merge_strategy: MergeStrategy,
    /// Time limit of one invocation.
    pub timeout: Option<Duration>,
    /// Line in the file, from 1.
    pub line: u32,
}

impl Step {
    /// Returns the capabilities that it may call, each once: those of its router or scatter, else its own, which is only
    /// a name for planning if there are others. Empty for a nested skill and a signal.
    pub fn called_capabilities(&self) -> Vec<&str> {
        let StepAction::Capability(own) = &self.action else { return Vec::new() };
        let routed = self.router.iter().flat_map(|router| router.cases.values().chain(&router.default));
        let scattered = self.scatter.iter().flat_map(|scatter| &scatter.capabilities);
        let mut seen = BTreeSet::new();
        let mut called: Vec<&str> =
            routed.chain(scattered).map(String::as_str).filter(|id| seen.insert(*id)).collect();
        if called.is_empty() {
            called.push(own);
        }
        called
    }
}

/// What a contract requires for the approvals of its gates. A policy can require more, never less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContractApprovals {
    /// Number of different people who have to approve.
    pub need: u32,
    /// Whether an approval by the person who started the run does not count.
    #[serde(default)]
    pub not_by_starter: bool,
}

/// A complete contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Contract {
    /// `domain.slug`.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// Display name.
    pub name: Option<String>,
    /// Description for users and routers.
    pub description: Option<String>,
    /// Template of the title of its runs: `Deploy {inputs.version} to {inputs.region}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How long its runs wait for an approval or a signal, in seconds, if not specified at launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
    /// What its gates require, in addition to the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ContractApprovals>,
    /// Declared inputs by name.
    pub inputs: BTreeMap<String, Field>,
    /// Declared outputs by name.
    pub outputs: BTreeMap<String, Field>,
    /// In file order.
    pub steps: Vec<Step>,
    /// All findings of the parser: unknown keys, missing producers, contradictions.
    pub findings: Vec<Finding>,
    /// Path of the file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
}

/// Conformance level of a binding, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Conformance {
    /// Fields can be missing.
    Experimental,
    /// The default requirement.
    #[default]
    Standard,
    /// Every declared output, typed.
    Strict,
}

/// Trust level of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TrustLevel {
    /// Harmless.
    Sandbox,
    /// The default.
    #[default]
    Standard,
    /// Has external effects.
    Elevated,
    /// Has external effects with elevated permissions.
    Privileged,
}

/// The effect of a gate whose capability denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GateFailure {
    /// The step fails (`safety_denied`).
    Block,
    /// A person has to decide.
    RequireHuman,
    /// The step is skipped, and that is recorded.
    Degrade,
    /// The step runs, and a warning is recorded.
    Warn,
}

/// One mandatory gate before a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gate {
    /// Called first, with the step's inputs; its output field `allowed` decides, and an absent field denies.
    pub capability: String,
    /// The effect of a denial.
    pub on_fail: GateFailure,
}

/// `safety` of a capability.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Safety {
    /// Its trust level.
    pub trust_level: TrustLevel,
    /// Whether each call requires approval.
    pub requires_confirmation: bool,
    /// Gates that are called before it.
    pub mandatory_pre_gates: Vec<Gate>,
    /// Whether it can be undone, if stated.
    pub reversible: Option<bool>,
}

/// `properties` of a capability: the effects of repeating it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Properties {
    /// Whether the same inputs produce the same outputs.
    pub deterministic: bool,
    /// Whether it has side effects.
    pub side_effects: bool,
    /// Whether repeating it has no further effect.
    pub idempotent: bool,
}

/// A capability: what a step calls, independent of its implementation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capability {
    /// `domain.noun.verb`.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// Description for users.
    pub description: String,
    /// Declared inputs by name.
    pub inputs: BTreeMap<String, Field>,
    /// Declared outputs by name.
    pub outputs: BTreeMap<String, Field>,
    /// The effects of repeating it.
    pub properties: Properties,
    /// Requirements before a call.
    pub safety: Safety,
    /// Path of the file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
}

/// How a binding reaches its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Protocol {
    /// A file of the bundle or a program: JSON on stdin and stdout, in the sandbox.
    #[strum(to_string = "script", serialize = "pythoncall")]
    #[serde(alias = "pythoncall")]
    Script,
    /// HTTP.
    OpenApi,
    /// A tool of an MCP server.
    Mcp,
    /// JSON-RPC 2.0 over HTTP.
    OpenRpc,
    /// Built into this program.
    Builtin,
}

/// A binding: one way to execute a capability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Binding {
    /// Unique id.
    pub id: String,
    /// The capability that it implements.
    pub capability: String,
    /// Id of the service.
    pub service: String,
    /// The protocol.
    pub protocol: Protocol,
    /// Path, tool, method or function.
    pub operation: String,
    /// Request template: leaves are references (`input.text`), `${input.text}` inside texts, or constants.
    pub request: Value,
    /// Produced field to reference into the response.
    pub response: BTreeMap<String, String>,
    /// Its conformance level.
    pub conformance: Conformance,
    /// The binding that is tried if this one fails.
    pub fallback: Option<String>,
    /// Everything else of `metadata` (method, response mode, …).
    pub metadata: Map<String, Value>,
    /// Path of the file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
}

/// A service: the target of bindings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Service {
    /// Unique id.
    pub id: String,
    /// Settings as written: base address, module, command, auth reference; secrets are referenced, never included.
    pub settings: Map<String, Value>,
    /// Path of the file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
}
