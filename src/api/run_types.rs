//! What goes through the door about runs, as data with serde: the same in every adapter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::contract_types::InputFields;
use super::operations::Scope;
use super::run_history::EarlierAttempt;
use super::session_client::SessionAccess;
use super::{Code, LocalFiles};
use skills_model::{Choice, Expiry, Verdict};
use skills_runs::Artifact;
use skills_skill::contract::Conformance;
use skills_skill::{AttachTarget, EffectMode, SkillId};
use skills_store::{
    AuditMode, Checkpoint, Decided, IdempotencyOutcome, RunEvent, RunId, RunRecord, StepStatus,
};

/// How to execute.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionOptions {
    /// Answer when the run has ended or waits, instead of at once.
    pub wait: bool,
    /// The trace it belongs to; made where absent.
    #[schemars(regex(pattern = "^[!-~]{1,255}$"))]
    pub trace_id: Option<String>,
    /// Makes the launch safe to repeat: the same key and payload answer the same run.
    #[schemars(regex(pattern = "^[!-~]{1,255}$"))]
    pub idempotency_key: Option<String>,
    /// Least conformance of the bindings; as configured, where absent.
    pub conformance: Option<Conformance>,
    /// What is written down.
    pub audit_mode: AuditMode,
    /// How long it may wait for a person or a signal, in seconds.
    #[schemars(range(min = 1))]
    pub expires_in: Option<u64>,
    /// What happens then.
    pub on_expiry: Expiry,
    /// Run scripts without isolation where none can be had.
    pub unsandboxed: bool,
    /// Files for the work directories of its scripts: name there to path.
    pub files: BTreeMap<String, String>,
}

/// A run to launch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchRequest {
    /// Id, unambiguous name, or location.
    pub skill: String,
    /// Its inputs.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// How.
    #[serde(default)]
    pub options: ExecutionOptions,
    /// Who asks; the user's name where absent.
    #[serde(default)]
    pub started_by: Option<String>,
}

/// A launched run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Launched {
    /// As it stands now.
    pub run: RunRecord,
    /// What became of the key.
    pub idempotency: IdempotencyOutcome,
    /// Whether a worker that is alive can take it (this process's, or another's seen lately).
    pub worker_alive: bool,
}

/// What to do to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum RunOrder {
    /// Approve or deny the gate that waits. What is missing is refused with what would be decided: what was read is
    /// what is decided.
    Decide {
        /// Yes or no.
        verdict: Verdict,
        /// The step. Required.
        step: Option<String>,
        /// Digest of what was read. Required of an approval.
        inputs_digest: Option<String>,
        /// Who decides.
        approver: Option<String>,
        /// Free text.
        notes: Option<String>,
        /// For a step of unknown outcome.
        choice: Option<Choice>,
        /// What the step gave, where it happened: its outputs as an object of fields.
        #[serde(default)]
        result: Option<Value>,
    },
    /// Let a held or failed run go on.
    Resume {
        /// From this checkpoint instead of the head.
        checkpoint: Option<u64>,
        /// Corrected inputs of the run, joined over its own.
        inputs: Option<Map<String, Value>>,
        /// Go on although the skill changed since the launch (the pinned contract runs).
        despite_change: bool,
        /// Who orders it; the account, where absent.
        by: Option<String>,
    },
    /// Send a signal.
    Signal {
        /// Its name.
        name: String,
        /// Given to the waiting step as its output.
        payload: Value,
        /// Who orders it; the account, where absent.
        by: Option<String>,
    },
    /// Stop it.
    Cancel {
        /// Who orders it; the account, where absent.
        by: Option<String>,
    },
    /// A new run that goes on from a checkpoint at once.
    Replay {
        /// The head, where absent.
        checkpoint: Option<u64>,
        /// Who orders it; the account, where absent.
        by: Option<String>,
    },
    /// A new held run from a checkpoint.
    Fork {
        /// The head, where absent.
        checkpoint: Option<u64>,
        /// Who orders it; the account, where absent.
        by: Option<String>,
    },
}

/// What an order led to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ordered {
    /// The run (for replay and fork the new one) as it stands now.
    pub run: RunRecord,
    /// In a sentence ("approved", "was already approved by ana").
    pub note: String,
    /// Whether a worker that is alive can take it on (this process's, or another's seen lately).
    pub worker_alive: bool,
    /// Whether somebody had ordered the same before, so that this order changed nothing.
    #[serde(default)]
    pub repeated: bool,
    /// How a resumed run goes on; absent for other orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ResumeMode>,
}

/// How a resumed run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeMode {
    /// Its state is restored from a checkpoint, and the steps after it run.
    CheckpointResume,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepState {
    /// Not yet reached.
    Pending,
    /// Begun, without a result so far.
    Running,
    /// At a gate for a person.
    WaitingForHuman,
    /// At a signal.
    WaitingForSignal,
    /// With a result.
    Completed,
    /// Passed over.
    Skipped,
    /// For good.
    Failed,
    /// Begun, and stopped or lost before it had a result: whether it happened, the run does not say.
    Interrupted,
}

/// A step of a run as a monitor shows it, in contract order; nested steps and iterations follow their parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepView {
    /// Its path: `extract`, `each[2]`, `report/render`.
    pub step: String,
    /// How deep it is nested; 0 for steps of the contract itself.
    pub depth: u32,
    /// Capability, skill or signal it is about.
    pub uses: String,
    /// Where it stands.
    pub state: StepState,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_ms: Option<i64>,
    /// Milliseconds since 1970-01-01 UTC.
    pub ended_ms: Option<i64>,
    /// Attempts so far.
    pub attempts: u32,
    /// Its inputs, where recorded.
    pub inputs: Option<Value>,
    /// What it produced, or its error.
    pub result: Option<Value>,
    /// The result in a few words (`214 rows, 4 columns`, `http 502`).
    pub gist: Option<String>,
    /// The binding that carried it out.
    pub binding: Option<String>,
    /// Isolation that was in force, in a few words.
    pub isolation: Option<String>,
    /// Files it left.
    pub artifacts: Vec<Artifact>,
    /// The status recorded, once it is.
    pub status: Option<StepStatus>,
}

impl DecisionSheet {
    /// What stands in place of the inputs where what would run was changed since a person was asked.
    pub const CHANGED: &'static str = "changed since it asked: a yes asks again";
}

/// Everything a person needs to decide a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionSheet {
    /// The run.
    pub run: RunId,
    /// The skill.
    pub skill_id: String,
    /// What would happen, in a sentence of plain words.
    pub headline: String,
    /// The step's path.
    pub step: String,
    /// Its place, from 1, and how many there are.
    pub place: (u32, u32),
    /// True when nobody knows how the step ended: the answers are rerun, happened, skip and fail.
    pub outcome_unknown: bool,
    /// The capability, empty for a gate before the first step.
    pub capability: String,
    /// What is declared about it (`standard, not idempotent`).
    pub capability_note: String,
    /// The binding that would be called, as a person reads it, or why none can.
    pub binding: String,
    /// What it would run in, or how far it leaves this machine.
    pub isolation: String,
    /// Why a person is asked.
    pub why: String,
    /// A warning, where it cannot be undone or would be repeated.
    pub irreversible: Option<String>,
    /// What it would be given.
    pub inputs: Value,
    /// What it gives: a result that a person states for an unknown outcome has to fit.
    #[serde(default)]
    pub outputs: InputFields,
    /// Binds the decision to exactly this.
    pub inputs_digest: String,
    /// Who is offered as approver, and where that name comes from.
    pub approver: Option<(String, String)>,
    /// Since when it waits, milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// When it expires.
    pub expires_ms: Option<i64>,
    /// What happens then.
    #[serde(default)]
    pub on_expiry: Expiry,
    /// What changed since the launch, where that is what is asked about: a yes has to name `inputs_digest`.
    #[serde(default)]
    pub changed: Option<String>,
    /// Why a yes would only fail the step, with what to do: it is refused. A no is always taken.
    #[serde(default)]
    pub blocked: Option<String>,
    /// The scope that the caller's key lacks: neither a yes nor a no is taken from it. A client finds out for itself.
    #[serde(skip)]
    pub missing_scope: Option<Scope>,
    /// The sidecar that wants the run paused: after a yes it is held until somebody resumes it.
    #[serde(default)]
    pub pause: Option<String>,
}

/// One run whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunDetail {
    /// As it stands.
    pub run: RunRecord,
    /// Version of its contract.
    pub contract_version: String,
    /// Whether the skill's contract is still the one that was launched; none where the skill is gone.
    pub contract_unchanged: Option<bool>,
    /// Its failed stretches before the last resume, oldest first.
    #[serde(default)]
    pub earlier: Vec<EarlierAttempt>,
    /// Its steps.
    pub steps: Vec<StepView>,
    /// Its checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Its events so far, oldest first.
    pub events: Vec<RunEvent>,
    /// Decisions on it.
    pub decisions: Vec<Decided>,
    /// What to decide, when it waits for a person.
    pub sheet: Option<DecisionSheet>,
    /// Runs that were replayed or forked from it.
    pub descendants: Vec<RunId>,
    /// The isolation that scripts of this run get here, in a sentence.
    pub isolation: String,
    /// Why the process that answers cannot work it; none where it can, and once the run has ended.
    #[serde(default)]
    pub elsewhere: Option<String>,
    /// What its contract takes as inputs, to be corrected.
    #[serde(default)]
    pub input_fields: InputFields,
}

/// A skill to attach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachRequest {
    /// Id, unambiguous name, or location.
    pub skill: String,
    /// What kind of thing it is attached to.
    pub target_type: String,
    /// Which one: `RUN`, `RUN/STEP`, `session:ID`, `task:ID`, `artifact:DIGEST`, `skill:ID/RELATIVE/PATH`; a path only
    /// with `local_files`.
    pub target_ref: String,
    /// Its inputs.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// How.
    #[serde(default)]
    pub options: ExecutionOptions,
    /// Who asks.
    #[serde(default)]
    pub started_by: Option<String>,
    /// Whose sessions can be its target.
    #[serde(skip)]
    pub sessions: SessionAccess,
    /// The files that the caller may name by their paths; none, where absent. Never sent: whoever calls from elsewhere
    /// names no file of this machine.
    #[serde(skip)]
    pub local_files: Option<LocalFiles>,
}

/// Content to store as an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArtifact {
    /// What the file is called.
    pub name: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// Who stores it; the account, where absent.
    pub by: Option<String>,
}

/// An artifact that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoredArtifact {
    /// How a target names it: `artifact:` and the digest.
    pub target_ref: String,
    /// SHA-256 of the content, hexadecimal.
    pub digest: String,
    /// The name it was given.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Media type by content, and by name where the content does not tell.
    pub media_type: String,
}

/// The four checks of an attachment, in the order in which they are made.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumIter,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AttachCheck {
    /// The skill exists and its contract loads.
    Exists,
    /// Its invocation allows attaching.
    Invocation,
    /// The target's type is among its targets.
    TargetType,
    /// The target exists.
    Target,
}

/// How one check went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttachCheckResult {
    /// Which.
    pub check: AttachCheck,
    /// Whether it holds; none where an earlier one failed.
    pub holds: Option<bool>,
    /// What was found, or why not.
    pub note: String,
}

/// The reason of a failed attachment, beside its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttachReason {
    /// Which check failed.
    pub check: AttachCheck,
    /// What was given.
    pub given: String,
    /// What would be allowed.
    pub allowed: Vec<String>,
    /// Why the skill does not load, where that is the check: `not_found`, or what is wrong with one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Code>,
}

/// What attaching would do, before it is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttachPreview {
    /// The four checks.
    pub checks: Vec<AttachCheckResult>,
    /// Why it cannot be attached, if it cannot.
    pub reason: Option<AttachReason>,
    /// What was resolved, in words ("output of run …, step extract").
    pub target_label: Option<String>,
    /// The target's content, as the skill will get it; long ones cut for the screen, never for the skill.
    pub content: Option<Value>,
    /// Its size in bytes as JSON.
    pub content_bytes: Option<u64>,
    /// What is wrong with the inputs: field and sentence.
    pub input_problems: Vec<(String, String)>,
    /// Its effect.
    pub effect_mode: Option<EffectMode>,
    /// What it may do to the target and beyond, in sentences.
    pub may_do: Vec<String>,
    /// The same as a command line.
    pub cli: String,
    /// The same as an HTTP request.
    pub curl: String,
}

/// A finished (or waiting) attachment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attached {
    /// The skill.
    pub skill_id: SkillId,
    /// As given.
    pub target_type: AttachTarget,
    /// As given.
    pub target_ref: String,
    /// The run that executes it, as it stands.
    pub execution: RunRecord,
    /// What a control signal led to, if the skill answered one.
    pub control: Option<String>,
    /// ISO 8601, UTC.
    pub attached_at: String,
}

/// A reference that exists, offered as completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetChoice {
    /// What goes into the field.
    pub target_ref: String,
    /// What it is, for people.
    pub label: String,
    /// When it came to be, milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<i64>,
}
