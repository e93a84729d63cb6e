//! Serializable types of runs, shared by all adapters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::contract_types::InputFields;
use super::operations::Scope;
use super::run_history::EarlierAttempt;
use super::session_client::SessionAccess;
use super::{Code, LocalFiles};
use skills_base::number::byte_size;
use skills_config::quoted;
use skills_model::{Choice, Expiry, Verdict};
use skills_registry::policy::RequiredApprovals;
use skills_runs::Artifact;
use skills_skill::contract::Conformance;
use skills_skill::{AttachTarget, EffectMode, SkillId, safe_text};
use skills_store::{
    AuditMode, Checkpoint, IdempotencyOutcome, RecordedDecision, RunEvent, RunId, RunRecord, StepStatus,
};

/// Execution options.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionOptions {
    /// Respond when the run has ended or waits, instead of immediately.
    pub wait: bool,
    /// Trace id of the run; generated if absent.
    #[schemars(regex(pattern = "^[!-~]{1,255}$"))]
    pub trace_id: Option<String>,
    /// Idempotency key: the same key and payload return the same run.
    #[schemars(regex(pattern = "^[!-~]{1,255}$"))]
    pub idempotency_key: Option<String>,
    /// Minimum conformance level of bindings; default: as configured.
    pub conformance: Option<Conformance>,
    /// What is recorded.
    pub audit_mode: AuditMode,
    /// Maximum time to wait for an approval or a signal, in seconds; at most 100 years.
    #[schemars(range(min = 1, max = skills_base::duration::MAX_SECONDS))]
    pub expires_in: Option<u64>,
    /// What happens then.
    pub on_expiry: Expiry,
    /// Run scripts unsandboxed if no sandbox is available.
    pub unsandboxed: bool,
    /// Files for the work directories of its scripts: file name to path.
    pub files: BTreeMap<String, String>,
    /// Labels for filters, metrics and policy: `{"env": "prod"}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A run to launch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchRequest {
    /// Id, unambiguous name, or location.
    pub skill: String,
    /// Values of the inputs by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Execution options.
    #[serde(default)]
    pub options: ExecutionOptions,
    /// Who launches it; default: the user's name.
    #[serde(default)]
    pub started_by: Option<String>,
}

/// A launched run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Launched {
    /// Current state of the run.
    pub run: RunRecord,
    /// Use of the key.
    pub idempotency: IdempotencyOutcome,
    /// Whether an active worker can claim it (of this process, or of another one seen recently).
    pub worker_alive: bool,
}

/// A command on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum RunCommand {
    /// Approve or deny the pending gate. If fields are missing, the command is rejected with what would be decided, so
    /// that only what was reviewed is decided.
    Decide {
        /// Approval or denial.
        verdict: Verdict,
        /// The step. Required.
        step: Option<String>,
        /// Digest of what was reviewed. Required for an approval.
        inputs_digest: Option<String>,
        /// Who decides.
        approver: Option<String>,
        /// Free text.
        notes: Option<String>,
        /// For a step with an unknown outcome.
        choice: Option<Choice>,
        /// Result of the step, if it was completed: an object of its outputs.
        #[serde(default)]
        result: Option<Value>,
    },
    /// Resume a paused or failed run.
    Resume {
        /// From this checkpoint instead of the head.
        checkpoint: Option<u64>,
        /// Corrected inputs of the run, merged into its own.
        inputs: Option<Map<String, Value>>,
        /// Continue although the skill changed since the launch (the pinned contract runs).
        despite_change: bool,
        /// Who resumes it; default: the account.
        by: Option<String>,
        /// When the run entered the state that the caller has seen (its `since_ms`); the command is rejected if the run
        /// has changed its state since. Not compared if omitted.
        #[serde(default)]
        since_ms: Option<i64>,
    },
    /// Send a signal.
    Signal {
        /// Its name.
        name: String,
        /// Becomes the output of the waiting step.
        payload: Value,
        /// Who sends it; default: the account.
        by: Option<String>,
        /// As for `resume`.
        #[serde(default)]
        since_ms: Option<i64>,
    },
    /// Cancel the run.
    Cancel {
        /// Who cancels it; default: the account.
        by: Option<String>,
    },
    /// Assign it to a person, or unassign it.
    Assign {
        /// The person; if omitted, the run is unassigned.
        to: Option<String>,
        /// Note for the assignee.
        note: Option<String>,
        /// Who the run was assigned to when the caller read it (empty: unassigned); the command is rejected if that
        /// changed. Not compared if omitted.
        assignee: Option<String>,
        /// Who assigns it; default: the account.
        by: Option<String>,
    },
    /// Create a run that continues immediately from a checkpoint.
    Replay {
        /// The checkpoint; default: the head.
        checkpoint: Option<u64>,
        /// Who replays it; default: the account.
        by: Option<String>,
        /// As for `resume`.
        #[serde(default)]
        since_ms: Option<i64>,
    },
    /// Create a paused run from a checkpoint.
    Fork {
        /// The checkpoint; default: the head.
        checkpoint: Option<u64>,
        /// Who forks it; default: the account.
        by: Option<String>,
        /// As for `resume`.
        #[serde(default)]
        since_ms: Option<i64>,
    },
}

impl RunCommand {
    /// Applies a command that names no digest only while the run is in the state in which it was shown.
    #[must_use]
    pub fn if_unchanged(mut self, run: &RunRecord) -> Self {
        if let Self::Resume { since_ms, .. }
        | Self::Signal { since_ms, .. }
        | Self::Replay { since_ms, .. }
        | Self::Fork { since_ms, .. } = &mut self
        {
            *since_ms = Some(run.since_ms);
        }
        self
    }
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Ordered")]
pub struct CommandResult {
    /// The current state of the run (for replay and fork, of the new one).
    pub run: RunRecord,
    /// Description of the result ("approved", "was already approved by ana").
    pub note: String,
    /// Whether an active worker can claim it (of this process, or of another one seen recently).
    pub worker_alive: bool,
    /// Whether the command was a repetition without effect.
    #[serde(default)]
    pub repeated: bool,
    /// How a resumed run continues; absent for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ResumeMode>,
}

/// How a resumed run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeMode {
    /// Its state is restored from a checkpoint, and the steps after it run.
    CheckpointResume,
}

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepState {
    /// Not yet reached.
    Pending,
    /// Started, no result yet.
    Running,
    /// Waiting for approval.
    WaitingForHuman,
    /// Waiting for a signal.
    WaitingForSignal,
    /// Completed with a result.
    Completed,
    /// Skipped.
    Skipped,
    /// Permanently.
    Failed,
    /// Started, and stopped or lost without a result: its outcome is unknown.
    Interrupted,
}

/// A step of a run as a monitor shows it, in contract order; nested steps and iterations follow their parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepView {
    /// Its path: `extract`, `each[2]`, `report/render`.
    pub step: String,
    /// How deep it is nested; 0 for steps of the contract itself.
    pub depth: u32,
    /// The capability, skill or signal that it uses; of several capabilities, the one that was called, or all before that.
    pub uses: String,
    /// State of the step.
    pub state: StepState,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_ms: Option<i64>,
    /// Milliseconds since 1970-01-01 UTC.
    pub ended_ms: Option<i64>,
    /// Attempts so far.
    pub attempts: u32,
    /// Inputs of the step, if recorded.
    pub inputs: Option<Value>,
    /// What it produced, or its error.
    pub result: Option<Value>,
    /// The result as short text (`214 rows, 4 columns`, `http 502`).
    #[serde(rename = "gist")]
    pub summary: Option<String>,
    /// The binding that executed it.
    pub binding: Option<String>,
    /// Isolation in effect, as short text.
    pub isolation: Option<String>,
    /// Files it left.
    pub artifacts: Vec<Artifact>,
    /// The status recorded, once it is.
    pub status: Option<StepStatus>,
    /// While it runs: the 95th percentile of its duration over the last completed runs of the contract, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
    /// Size of its record in bytes of JSON, if inputs and result are omitted: a response contains up to 8 MiB of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
}

impl DecisionPreview {
    /// Returns the labels of the run on one line: `env=prod, team=web`.
    pub fn labels_text(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.join(", ")
    }

    /// Returns why the caller's approval would be rejected, as far as it is known.
    pub fn approval_obstacle(&self) -> Option<&str> {
        self.blocked.as_deref().or(self.not_approver.as_deref())
    }

    /// Shown in place of the inputs if what would run was changed since approval was requested.
    pub const CHANGED: &'static str = "changed since requested: approval leads to another request";
}

/// Everything needed to decide a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "DecisionSheet")]
pub struct DecisionPreview {
    /// Id of the run.
    pub run: RunId,
    /// Id of the skill.
    pub skill_id: String,
    /// What would happen, as text.
    pub headline: String,
    /// The step's path.
    pub step: String,
    /// Position of the step, from 1, and the total.
    pub place: (u32, u32),
    /// The labels of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether the outcome of the step is unknown: the choices are rerun, happened, skip and fail.
    pub outcome_unknown: bool,
    /// The capability, empty for a gate before the first step.
    pub capability: String,
    /// Its declared properties (`standard, not idempotent`).
    pub capability_note: String,
    /// The binding that would be called, for display, or why none is available.
    pub binding: String,
    /// The other bindings of its chain, for display: an approval allows them too, because they are called if this one
    /// fails or is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// Isolation, or network access.
    pub isolation: String,
    /// Why approval is required.
    pub why: String,
    /// A warning if it cannot be undone or would be repeated.
    pub irreversible: Option<String>,
    /// Inputs of the step.
    pub inputs: Value,
    /// Its outputs, which a result stated for an unknown outcome must match.
    #[serde(default)]
    pub outputs: InputFields,
    /// Files of the run that are passed to its scripts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SuppliedFile>,
    /// What the run is attached to, if anything: bindings receive it as `target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<DecisionTarget>,
    /// Digest to which the decision is bound.
    pub inputs_digest: String,
    /// Default approver, and the origin of the name.
    pub approver: Option<(String, String)>,
    /// Start of waiting, milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// When it expires.
    pub expires_ms: Option<i64>,
    /// What happens then.
    #[serde(default)]
    pub on_expiry: Expiry,
    /// What changed since the launch, if that requires approval, which must name `inputs_digest`.
    #[serde(default)]
    pub changed: Option<String>,
    /// Why an approval would make the step fail, and what to do; it is rejected. Denying is always
    /// possible.
    #[serde(default)]
    pub blocked: Option<String>,
    /// The form of `blocked` without addresses and paths, if it differs. Callers without the scope `admin` receive it
    /// as `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_public: Option<String>,
    /// Why an approval by the caller does not count: the principal of the key, or for a local caller the account of the
    /// process, unless it names another approver. Absent for unauthenticated callers of a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_approver: Option<String>,
    /// The requirements that `not_approver` is determined by. Only known to the core of the process.
    #[serde(skip)]
    pub required: Option<RequiredApprovals>,
    /// The scope that the caller's key lacks to approve or deny. Determined by the client.
    #[serde(skip)]
    pub missing_scope: Option<Scope>,
    /// The sidecar that requests a pause: after approval the run is paused until it is resumed.
    #[serde(default)]
    pub pause: Option<String>,
}

/// A file that a run passes to its scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SuppliedFile {
    /// Name in the work directory.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// SHA-256 of its content at launch: a script starts only with this content. Absent if an earlier version launched
    /// the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl SuppliedFile {
    /// Returns it on one line: `pay.csv  /home/ann/pay.csv  sha256 9f…`. Name and path are quoted where one could be
    /// taken for the rest of the line.
    pub fn text(&self) -> String {
        let digest = self.sha256.as_deref().unwrap_or("not recorded");
        safe_text::line(&format!("{}  {}  sha256 {digest}", quoted(&self.name), quoted(&self.path)))
            .into_owned()
    }
}

/// What a run that waits for a decision is attached to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionTarget {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The reference that it was attached by.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its name or title, if its content states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Size of its content in bytes as JSON.
    pub content_bytes: u64,
    /// SHA-256 of its content as canonical JSON.
    pub sha256: String,
    /// Its content; truncated only for display: `run.target` has all of it.
    pub content: Value,
    /// Whether the content is truncated.
    #[serde(default)]
    pub truncated: bool,
}

impl DecisionTarget {
    /// Returns it without its content on one line: `artifact artifact:394a (o.json), 55 B as JSON, sha256 9f…`.
    /// Reference and label are quoted where one could be taken for the rest of the line.
    pub fn text(&self) -> String {
        let label = self.label.as_deref().filter(|label| *label != self.reference);
        let label = label.map(|label| format!(" ({})", quoted(label))).unwrap_or_default();
        let (kind, reference, size) = (&self.kind, quoted(&self.reference), byte_size(self.content_bytes));
        safe_text::line(&format!("{kind} {reference}{label}, {size} as JSON, sha256 {}", self.sha256))
            .into_owned()
    }

    /// Returns the fields of its content, or all of it as one.
    pub fn fields(&self) -> Value {
        match &self.content {
            Value::Object(fields) => Value::Object(fields.clone()),
            content => json!({ "content": content }),
        }
    }
}

/// A complete run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunDetail {
    /// Current state of the run.
    pub run: RunRecord,
    /// Version of its contract.
    pub contract_version: String,
    /// Whether the skill's contract is still the launched one; none if the skill is not loaded or can no longer run.
    pub contract_unchanged: Option<bool>,
    /// Its failed attempts before the last resume, oldest first.
    #[serde(default)]
    pub earlier: Vec<EarlierAttempt>,
    /// Steps of the run.
    pub steps: Vec<StepView>,
    /// Its newest checkpoints, oldest first: at most 1,000, fewer if they are large. The others are in
    /// `run.checkpoints`, as is the state of one that is too large alone (`omitted_bytes` in its place).
    pub checkpoints: Vec<Checkpoint>,
    /// Its newest events, oldest first: at most 10,000, fewer if they are large. The others are in `run.events`.
    pub events: Vec<RunEvent>,
    /// Decisions on it.
    pub decisions: Vec<RecordedDecision>,
    /// What to decide, when it waits for a person.
    pub sheet: Option<DecisionPreview>,
    /// Runs that were replayed or forked from it.
    pub descendants: Vec<RunId>,
    /// The isolation of this run's scripts on this machine, as text.
    pub isolation: String,
    /// Why the responding process cannot execute it; none if it can, or if the run has ended.
    #[serde(default)]
    pub elsewhere: Option<String>,
    /// The inputs of its contract, for correction.
    #[serde(default)]
    pub input_fields: InputFields,
}

impl RunDetail {
    /// Maximum number of its checkpoints in a response.
    pub const MAX_CHECKPOINTS: usize = 1000;
    /// Maximum number of its events in a response.
    pub const MAX_EVENTS: usize = 10_000;
    /// Maximum memory for the data of its events in a response, in bytes.
    pub const MAX_EVENT_BYTES: usize = 8 << 20;

    /// Returns why the responding process cannot check whether its skill changed since the launch: it only resumes it
    /// with the contract of the launch.
    pub fn resume_obstacle(&self) -> Option<&str> {
        self.elsewhere.as_deref().filter(|_| self.contract_unchanged.is_none())
    }

    /// Returns the number of the last checkpoint before those in the response, if there are any.
    pub fn earlier_checkpoint(&self) -> Option<u64> {
        self.checkpoints.first()?.number.checked_sub(1)
    }
}

/// A skill to attach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachRequest {
    /// Id, unambiguous name, or location.
    pub skill: String,
    /// Type of the target.
    pub target_type: String,
    /// Reference to the target: `RUN`, `RUN/STEP`, `session:ID`, `task:ID`, `artifact:DIGEST`,
    /// `skill:ID/RELATIVE/PATH`; a path only with `local_files`.
    pub target_ref: String,
    /// Values of the inputs by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Execution options.
    #[serde(default)]
    pub options: ExecutionOptions,
    /// Who attaches it.
    #[serde(default)]
    pub started_by: Option<String>,
    /// The sessions that may be its target.
    #[serde(skip)]
    pub sessions: SessionAccess,
    /// The local files that the caller may name by path; none if omitted. Never sent: remote callers cannot name local
    /// files.
    #[serde(skip)]
    pub local_files: Option<LocalFiles>,
}

/// Content to store as an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArtifact {
    pub name: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// Who stores it; default: the account.
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
    /// Media type by content, else by name.
    pub media_type: String,
}

/// The four checks of an attachment, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, strum::Display, strum::EnumIter, schemars::JsonSchema)]
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

/// The note of a check after a failed one.
pub(crate) const SKIPPED: &str = "skipped: an earlier check failed";

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttachCheckResult {
    /// The check.
    pub check: AttachCheck,
    /// Whether it passed; none if an earlier one failed.
    #[serde(rename = "holds")]
    pub passed: Option<bool>,
    /// Evidence, or why there is none.
    pub note: String,
}

/// The reason of a failed attachment, in addition to its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttachReason {
    /// The check that failed.
    pub check: AttachCheck,
    /// The given value.
    #[serde(rename = "given")]
    pub value: String,
    /// Allowed values.
    pub allowed: Vec<String>,
    /// Why the skill cannot be loaded: `not_found`, or what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Code>,
}

/// Preview of an attachment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttachPreview {
    /// The four checks.
    pub checks: Vec<AttachCheckResult>,
    /// Why it cannot be attached, if it cannot.
    pub reason: Option<AttachReason>,
    /// The resolved target, as text ("output of run …, step extract").
    pub target_label: Option<String>,
    /// The target's content as passed to the skill; truncated only for display.
    pub content: Option<Value>,
    /// Size of the content in bytes as JSON.
    pub content_bytes: Option<u64>,
    /// Errors of the inputs: field and message.
    pub input_problems: Vec<(String, String)>,
    /// Effect of the skill.
    pub effect_mode: Option<EffectMode>,
    /// Permitted effects on the target and beyond, as text.
    pub may_do: Vec<String>,
    /// The equivalent command line.
    pub cli: String,
    /// The equivalent HTTP request.
    pub curl: String,
}

/// A finished (or waiting) attachment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attached {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// As given.
    pub target_type: AttachTarget,
    /// As given.
    pub target_ref: String,
    /// The run that executes it.
    pub execution: RunRecord,
    /// The result of a control signal, if the skill returned one.
    pub control: Option<String>,
    /// ISO 8601, UTC.
    pub attached_at: String,
}

/// A reference that exists, offered as completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetChoice {
    /// The value for the field.
    pub target_ref: String,
    /// Description for display.
    pub label: String,
    /// Creation time, milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<i64>,
}
