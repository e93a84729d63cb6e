//! The checked and typed form of a contract. Created only by the parser.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumIter, EnumString};

use crate::Finding;

/// The type of an input or output.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    EnumIter,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "the JSON types, and `any`")]
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
    /// Its type.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether it is required; default false.
    pub required: bool,
    /// For people.
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
    #[must_use]
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
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    EnumIter,
    schemars::JsonSchema,
)]
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
    /// Expression that gives the list.
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
    /// Expression whose value, as text, chooses.
    pub on: String,
    /// Value to capability.
    pub cases: BTreeMap<String, String>,
    /// When no case matches.
    pub default: Option<String>,
}

/// How results of a scatter are combined.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Merge {
    /// Capability to its output; failed ones are absent.
    Collect,
    /// Field to the list of its values; failed ones are skipped.
    ConcatLists,
    /// The first success in time.
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
    /// Field to source.
    pub input: BTreeMap<String, Source>,
    /// Produced field to target path (`vars.rows`).
    pub output: BTreeMap<String, Vec<String>>,
    /// Steps that must complete first: as declared, else the previous step.
    pub depends_on: Vec<String>,
    /// Skipped if this expression is false.
    pub condition: Option<String>,
    /// Repeated on failure.
    pub retry: Option<Retry>,
    /// Repeated per item.
    pub foreach: Option<Foreach>,
    /// Repeated while it holds.
    #[serde(rename = "while")]
    pub repeat: Option<While>,
    /// Another capability by value.
    pub router: Option<Router>,
    /// Several capabilities at once.
    pub scatter: Option<Scatter>,
    /// How its outputs are merged with existing values.
    pub merge_strategy: MergeStrategy,
    /// Time limit of one invocation.
    pub timeout: Option<Duration>,
    /// Line in the file, from 1.
    pub line: u32,
}

/// A complete contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Contract {
    /// `domain.slug`.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// For people.
    pub name: Option<String>,
    /// For people and routers.
    pub description: Option<String>,
    /// Template of the title of its runs: `Deploy {inputs.version} to {inputs.region}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How long its runs wait for an approval or a signal, where the launch does not say; seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
    /// Its inputs.
    pub inputs: BTreeMap<String, Field>,
    /// Its outputs.
    pub outputs: BTreeMap<String, Field>,
    /// In file order.
    pub steps: Vec<Step>,
    /// All findings of the parser: unknown keys, missing producers, contradictions.
    pub findings: Vec<Finding>,
    /// Path of the file.
    pub location: PathBuf,
}

/// Conformance level of a binding, in increasing order.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    schemars::JsonSchema,
)]
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

/// How far a capability is trusted to be called.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TrustLevel {
    /// Can cause no harm.
    Sandbox,
    /// As most.
    #[default]
    Standard,
    /// Acts on the world.
    Elevated,
    /// Acts on the world as somebody important.
    Privileged,
}

/// What a gate does when its capability does not allow.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GateFailure {
    /// The step fails (`safety_denied`).
    Block,
    /// A person decides.
    RequireHuman,
    /// The step is skipped, and that is recorded.
    Degrade,
    /// The step runs, and a warning is recorded.
    Warn,
}

/// One mandatory gate before a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gate {
    /// Asked first, with the step's inputs; its output field `allowed` decides, absent means no.
    pub capability: String,
    /// What happens on no.
    pub on_fail: GateFailure,
}

/// `safety` of a capability.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Safety {
    /// How far it is trusted.
    pub trust_level: TrustLevel,
    /// A person has to approve each time.
    pub requires_confirmation: bool,
    /// Asked before it runs.
    pub mandatory_pre_gates: Vec<Gate>,
    /// Whether it can be undone, where stated.
    pub reversible: Option<bool>,
}

/// `properties` of a capability: what repeating it would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Properties {
    /// Same inputs, same outputs.
    pub deterministic: bool,
    /// Changes something outside.
    pub side_effects: bool,
    /// Twice is as once.
    pub idempotent: bool,
}

/// A capability: what a step calls, anyone who executes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capability {
    /// `domain.noun.verb`.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// For people.
    pub description: String,
    /// Its inputs.
    pub inputs: BTreeMap<String, Field>,
    /// Its outputs.
    pub outputs: BTreeMap<String, Field>,
    /// What repeating means.
    pub properties: Properties,
    /// What has to happen first.
    pub safety: Safety,
    /// Path of the file.
    pub location: PathBuf,
}

/// How a binding reaches its service.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    EnumIter,
    schemars::JsonSchema,
)]
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
    /// Unique.
    pub id: String,
    /// Which capability.
    pub capability: String,
    /// Which service, by id.
    pub service: String,
    /// How.
    pub protocol: Protocol,
    /// Path, tool, method or function.
    pub operation: String,
    /// Request template: leaves are references (`input.text`), `${input.text}` inside texts, or constants.
    pub request: Value,
    /// Produced field to reference into the response.
    pub response: BTreeMap<String, String>,
    /// How much is known about it.
    pub conformance: Conformance,
    /// Tried when this one fails.
    pub fallback: Option<String>,
    /// Everything else of `metadata` (method, response mode, …).
    pub metadata: Map<String, Value>,
    /// Path of the file.
    pub location: PathBuf,
}

/// A service: where bindings go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Service {
    /// Unique.
    pub id: String,
    /// As written: base address, module, command, auth reference; secrets are named, never held.
    pub settings: Map<String, Value>,
    /// Path of the file.
    pub location: PathBuf,
}
