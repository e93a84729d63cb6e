//! Records that stores save and return.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{Display, EnumIter, EnumString};

use super::lease::RunLease;
use super::{EventKind, RunQuery};
use skills_model::{Command, CommandName, Decision, Expiry, Gate, RunState, TransitionError};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub String);

        /// Rejects the ids of another service that would control a terminal.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                match text.chars().find(|c| !is_printable(*c)) {
                    None => Ok(Self(text)),
                    Some(c) => {
                        let message = format!("an id contains the character {}", c.escape_unicode());
                        Err(serde::de::Error::custom(message))
                    }
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.chars().try_for_each(|c| {
                    if is_printable(c) { f.write_char(c) } else { write!(f, "{}", c.escape_unicode()) }
                })
            }
        }
    };
}

/// Returns whether a character may be part of an id.
fn is_printable(c: char) -> bool {
    c.is_ascii_graphic() || c.is_alphanumeric()
}

text_id! {
    /// A run's id: a UUID version 7 (RFC 9562), so that ids sort by time.
    RunId
}
text_id! {
    /// A worker's id: host, process and a number.
    WorkerId
}

/// Makes a launch safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Idempotency {
    /// The principal of the caller; keys are separate for each principal.
    pub principal: String,
    /// The caller's key.
    pub key: String,
    /// SHA-256 of the payload in canonical JSON.
    pub payload_digest: String,
    /// How long the key is valid, in seconds.
    pub ttl_seconds: u64,
}

/// A run to be created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Launch {
    /// Its id, made by the caller.
    pub id: RunId,
    /// Id of the skill.
    pub skill_id: String,
    /// Digest of its contract: what was launched is what runs.
    pub contract_digest: String,
    /// The contract itself, as JSON, so that a run outlives an edit.
    pub contract: Arc<Value>,
    /// Inputs.
    pub inputs: Value,
    /// What it is attached to, if anything.
    pub target: Option<Value>,
    /// Trace id.
    pub trace_id: String,
    /// The principal who started it.
    pub started_by: String,
    /// Steps of its contract.
    pub steps: u32,
    /// How it is to be executed.
    pub options: RunOptions,
    /// Key, if given.
    pub idempotency: Option<Idempotency>,
}

/// What the audit log records of a run in addition to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AuditMode {
    /// States, decisions and digests.
    #[default]
    Standard,
    /// Inputs and outputs of every step too.
    Full,
    /// Only what the run needs to continue.
    Off,
}

/// How a run is executed; stored with it.
// Most fields are those of the launch. Later changes: approved bindings extend `pins`, corrected inputs change `title` and
// `inputs_by`, `resumed_by`, and the fields from `assigned` to `notifying` are annotations of a run in progress (`Store::annotate`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RunOptions {
    /// Minimum conformance level of bindings (`experimental`, `standard`, `strict`); default: as
    /// configured.
    pub conformance: Option<String>,
    /// What is recorded.
    pub audit_mode: AuditMode,
    /// Maximum time to wait for an approval or a signal, in seconds; default: no limit.
    pub expires_in_s: Option<u64>,
    /// What happens then.
    pub on_expiry: Expiry,
    /// Run scripts unsandboxed if no sandbox is available.
    pub unsandboxed: bool,
    /// Digests of its bindings and scripts at launch, by binding, without those that ship with this program: what was
    /// edited or added since then requires approval. Absent if an earlier version launched it without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pins: Option<BTreeMap<String, String>>,
    /// Files handed to scripts: name in the work directory to absolute path.
    pub files: BTreeMap<String, String>,
    /// SHA-256 of these files at launch, by name in the work directory: a script starts only with this content. Absent
    /// if an earlier version launched it without them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub file_digests: BTreeMap<String, String>,
    /// What it is called in lists: the contract's template with its inputs, or its first inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Labels given at launch: `env: prod`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Others who chose its inputs: who corrected them, and who started the run that it was forked from. For a policy
    /// they started it too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs_by: Vec<String>,
    /// Who resumed it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_by: Option<String>,
    /// The person it was assigned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned: Option<Assignment>,
    /// Start of the wait that was escalated, milliseconds since 1970-01-01 UTC: each is escalated once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalated_ms: Option<i64>,
    /// Who that wait was escalated to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalated_to: Vec<String>,
    /// Number of the latest event of which a webhook was notified: of several processes, one sends the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notified: Option<u64>,
    /// Messages of webhooks that are not delivered yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notifying: Vec<PendingDelivery>,
    /// The root of skills that it was launched from. Only a worker with this root executes the run, because
    /// others have different scripts. Absent: it was launched by an earlier version, and no worker executes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What the rules of the policy apply to. Absent: it was launched by an earlier version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy_subjects: Vec<PolicySubject>,
    /// The folder that each of its capabilities was defined in at launch, by the id of the capability, without those that
    /// ship with this program: the run continues while these folders are trusted. Absent: it was launched by an earlier
    /// version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definitions: Option<BTreeMap<String, String>>,
}

/// A part of a run to which rules of the policy apply, as it was when the run was launched: a skill that is renamed,
/// replaced or removed afterwards does not exempt the run from them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicySubject {
    /// Id of the skill, or `capability:ID` for a run of a single capability.
    pub id: String,
    /// Tags of the skill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Subject area of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Role of the skill.
    pub role: String,
    /// Effects of the skill.
    pub effect: String,
    /// Location of the skill.
    pub location: String,
    /// The label of its root.
    pub root: String,
    /// Other paths of the same files: its real path, and those in other roots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_paths: Vec<OtherPath>,
    /// A capability that is called and that the bundle of this skill contains: only `deny` and `require_approval` apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

/// Another path of the files of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherPath {
    /// Path of the main file.
    pub location: String,
    /// The label of its root; empty if it is in none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root: String,
}

/// What a change of a run's options requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// The run is assigned to this person (empty: unassigned).
    AssignedTo(String),
    /// The wait that began at this moment (milliseconds since 1970-01-01 UTC) continues and was not escalated.
    NotEscalated(i64),
    /// These are the latest event of which a webhook was notified, and the messages that are not delivered yet.
    Notifications(Option<u64>, Vec<PendingDelivery>),
}

/// A message of a webhook that is not delivered yet: it is being sent, or is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Notifying")]
pub struct PendingDelivery {
    /// Number of the event that it is about.
    pub event: u64,
    /// How often it was sent without success.
    pub failures: u32,
    /// When it is sent again, milliseconds since 1970-01-01 UTC. Some time later another process may send it.
    pub due_ms: i64,
}

/// The person who is responsible for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Assignment {
    /// The person.
    pub to: String,
    /// Who assigned it.
    pub by: String,
    /// What the next person has to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
}

/// Use of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum IdempotencyOutcome {
    /// No idempotency key.
    None,
    /// The key is new.
    Created,
    /// The existing run of the key is returned.
    Reused,
    /// The key had expired and is reused.
    Expired,
}

/// The result of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchOutcome {
    /// The run, new or found.
    pub run: RunRecord,
    /// Use of the key.
    pub idempotency: IdempotencyOutcome,
}

/// The current state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRecord {
    /// Id of the run.
    pub id: RunId,
    /// Id of the skill.
    pub skill_id: String,
    /// State of the run.
    pub state: RunState,
    /// Pending until resumed.
    #[serde(rename = "held")]
    pub paused: bool,
    /// What it waits for.
    pub gate: Option<Gate>,
    /// The last decision.
    pub decided: Option<Decision>,
    /// Digest of the contract it runs.
    pub contract_digest: String,
    /// Inputs.
    pub inputs: Value,
    /// What it is attached to: `{"type", "ref", "content"}`.
    pub target: Option<Value>,
    /// How it is executed.
    pub options: RunOptions,
    /// Outputs, once completed.
    pub outputs: Option<Value>,
    /// Why it failed, or expired.
    pub error: Option<Value>,
    /// Trace.
    pub trace_id: String,
    /// Who started it.
    pub started_by: String,
    /// The run and checkpoint it was replayed or forked from.
    pub source: Option<(RunId, u64)>,
    /// Completed steps and total steps.
    pub progress: (u32, u32),
    /// The current step.
    pub step: Option<String>,
    /// Number of the head checkpoint.
    pub head: u64,
    /// Current fencing token: incremented when the run is claimed or its lease expires.
    pub fence: u64,
    /// The current lease holder, while it is running or replaying.
    #[serde(default, rename = "hold")]
    pub lease: Option<RunLease>,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Start of this state.
    pub since_ms: i64,
    /// When a waiting run expires.
    pub expires_ms: Option<i64>,
    /// Commands that are allowed in the current state.
    pub allowed: Vec<CommandName>,
}

/// A run given to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Claimed {
    /// The run, already in its new state.
    pub run: RunRecord,
    /// What it was launched with, as JSON.
    pub contract: Arc<Value>,
    /// The fencing token to report with.
    pub fence: u64,
    /// The head checkpoint to continue from.
    pub checkpoint: Checkpoint,
    /// Whether the lease of another worker had expired.
    #[serde(default)]
    pub takeover: bool,
    /// Steps with an intent but no result: they were in progress when the worker was lost.
    pub unfinished: Vec<StepIntent>,
}

/// Records that a step is about to start; written before it has any external effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepIntent {
    /// Id of the step.
    pub step: String,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// SHA-256 of its inputs in canonical JSON.
    pub inputs_digest: String,
    /// The key by which a receiver can drop duplicates; the same for every attempt.
    pub idempotency_key: String,
    /// Whether repeating it is safe.
    pub repeatable: bool,
    /// The capability that is called, if the step names several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Digest of the bindings that could be called, which an approval of the step covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings: Option<String>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepStatus {
    /// Completed with a result.
    Completed,
    /// Its condition was false, or a gate skipped it.
    Skipped,
    /// Permanently.
    Failed,
}

/// A finished step. Recorded once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepRecord {
    /// Id of the step.
    pub step: String,
    /// How it ended.
    pub status: StepStatus,
    /// Its inputs.
    pub inputs: Value,
    /// What it produced, or the error.
    pub result: Value,
    /// The binding that executed it.
    pub binding: Option<String>,
    /// Isolation that was in force, where a script ran.
    pub isolation: Option<Value>,
    /// Attempts it took.
    pub attempts: u32,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_ms: i64,
    /// Milliseconds since 1970-01-01 UTC.
    pub ended_ms: i64,
    /// Size of the record in bytes of JSON, if inputs and result are omitted as too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
}

impl StepRecord {
    /// Size of a record in bytes of JSON up to which inputs and result are never omitted.
    pub const SHORT_BYTES: u64 = 1024;
}

/// The state between two steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoint {
    /// Number within the run, from 0.
    pub number: u64,
    /// Paths of the steps completed at this point.
    pub done: Vec<String>,
    /// `vars`, `outputs`, `working`, …, as JSON.
    pub state: Value,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
}

/// An event to be recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NewEvent {
    /// `run.created`, `step.started`, `step.completed`, `gate.waiting`, `step.log`, ….
    #[schemars(with = "String")]
    pub kind: EventKind,
    /// The step it concerns.
    pub step: Option<String>,
    /// Content of the event.
    pub data: Value,
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunEvent {
    /// Id of the run.
    pub run: RunId,
    /// Number within the run, from 1, without gaps.
    pub number: u64,
    /// Number over all runs of the store.
    pub global: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: NewEvent,
}

/// Who decided, with notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionRecord {
    /// The authenticated principal, or the given name.
    pub approver: Option<String>,
    /// Free text.
    pub notes: Option<String>,
}

/// A recorded decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Decided")]
pub struct RecordedDecision {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// What was decided.
    pub decision: Decision,
    /// By whom.
    #[serde(flatten)]
    pub by: DecisionRecord,
}

/// The result of a command, as its transaction saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOutcome {
    /// Without inputs, contents of its target and outputs that are too long for a list.
    pub run: RunRecord,
    /// The state it had before.
    pub before: RunState,
    /// What the command changed.
    pub effect: CommandEffect,
    /// The run as its expired wait left it, if the expiry had not been recorded before.
    pub expired: Option<Box<RunRecord>>,
    /// The event that records the command, and its number in the run; `None` if it changed nothing.
    pub event: Option<(u64, NewEvent)>,
}

/// What a command changed.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandEffect {
    /// The state of the run changed.
    Applied,
    /// A signal that no step waits for yet was stored.
    Stored,
    /// Nothing: the same command was applied before. For a decision, with the one that was recorded first.
    Repeated(Option<Box<RecordedDecision>>),
}

/// What a sidecar requests for the run it watches.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// The request as text, for the record.
    pub description: String,
    /// The command with a signal's payload, or why the request is not a valid command.
    pub command: Result<(Command, Option<Value>), String>,
    /// The sidecar's reason for the request.
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlOutcome {
    /// The command was applied; describes its effect.
    Applied(String),
    /// It was refused, with the reason.
    Refused(String),
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunFilter {
    /// Only these states; empty for all.
    pub states: Vec<RunState>,
    /// Only this skill.
    pub skill_id: Option<String>,
    /// Part of an id, a skill or a step; or a trace id or its first 8 or more characters.
    pub text: Option<String>,
    /// Only runs of this trace.
    pub trace_id: Option<String>,
    /// A filter in the language of [`RunQuery`](crate::RunQuery): `state:failed skill:deploy* age:>1h`.
    pub r#where: Option<String>,
    /// Cursor of the previous page.
    pub cursor: Option<String>,
    /// Maximum number of rows; 0 means 100.
    pub limit: usize,
}

impl RunFilter {
    /// Minimum length of a trace id prefix in a search text: shorter ones match too many ids.
    pub const TRACE_PREFIX: usize = 8;
    /// Time limit of a search.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
    /// Maximum numbers of searches at the same time, in long texts and in other columns; further ones wait.
    pub(crate) const MAX_SEARCHES: [usize; 2] = [2, 8];
    /// How long they wait.
    pub(crate) const MAX_SEARCH_WAIT: Duration = Duration::from_secs(10);

    /// Returns whether it has conditions that no index covers.
    pub(crate) fn is_search(&self) -> bool {
        self.text.is_some() || self.r#where.as_ref().is_some_and(|query| !query.trim().is_empty())
    }

    /// Returns whether it compares texts of any length, such as inputs.
    pub(crate) fn searches_long_texts(&self) -> bool {
        let query = self.r#where.as_deref().map(RunQuery::parse);
        query.is_some_and(|query| query.is_ok_and(|query| query.searches_long_texts()))
    }
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunPage {
    /// Runs. Inputs, outputs and target contents of more than 4 KiB of JSON are omitted; the run itself has
    /// them.
    pub runs: Vec<RunRecord>,
    /// Cursor of the next page, if any.
    pub next: Option<String>,
    /// Runs by state, over the whole store.
    pub counts: BTreeMap<RunState, u64>,
}

/// Why a store cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Unavailability {
    /// There is no space left to write to.
    DiskFull,
    /// Its file or folder cannot be written.
    ReadOnly,
    /// Its file cannot be opened, or is not one of this program.
    Unopenable,
    /// Another process holds its lock.
    Busy,
    /// The disk failed to read or write.
    Io,
    /// Its content is not that of a valid store.
    Damaged,
    /// Its file is no longer at its path.
    Missing,
    /// Another store is at its path.
    Replaced,
    /// It was written by a later version of this program.
    Newer,
}

/// A store that could not be written at the last attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteFailure {
    /// Start of the failures, milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// What went wrong last.
    pub error: StoreError,
}

/// Why an operation of the store failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The state machine rejects it.
    #[error(transparent)]
    Refused(#[from] TransitionError),
    /// The state machine rejects a decision, and the step was decided before.
    #[error("{refusal}")]
    AlreadyDecided {
        first: Box<RecordedDecision>,
        /// The error of the state machine.
        refusal: TransitionError,
    },
    /// No such run.
    #[error("run `{0}` not found")]
    NoRun(RunId),
    /// No such checkpoint of this run.
    #[error("run {run} has no checkpoint {checkpoint}")]
    NoCheckpoint {
        run: RunId,
        /// The requested number.
        checkpoint: u64,
    },
    /// The key was used with another payload.
    #[error("the idempotency key {key:?} was used for another payload by run {run}; use a new key")]
    IdempotencyConflict {
        key: String,
        /// The run that was launched with it.
        run: RunId,
    },
    /// The assignment has changed since the run was read.
    #[error("run {run} has been {} since it was loaded; reload it and try again",
        .assigned.as_ref().map_or_else(|| "unassigned".to_owned(), |now| format!("assigned to {}", now.to)))]
    AssignmentConflict { run: RunId, assigned: Option<Assignment> },
    /// Another process made the change first, or it is no longer due.
    #[error("run {run} has changed since it was loaded; reload it and try again")]
    PreconditionFailed { run: RunId },
    /// The document was changed concurrently.
    #[error("{name} has been modified since it was loaded; reload it and try again")]
    DocumentConflict {
        /// The document.
        name: String,
    },
    /// The session was changed concurrently.
    #[error("session {id} has been modified or deleted since it was loaded; reload it and try again")]
    SessionConflict { id: String },
    /// A database of a later version of this program.
    #[error(
        "{place} was written by a newer version (schema {found}, supported: {known}); use that version, \
            or another store"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its schema version.
        found: i64,
        /// The version that this program supports.
        known: i64,
    },
    /// Another store cannot be copied into one that has records.
    #[error(
        "{place} already has {found}; only an empty store can take the records of another one. Name a new file, \
            database or schema with --store"
    )]
    NotEmpty {
        place: String,
        /// What it has: `3 runs`.
        found: String,
    },
    /// The store cannot be used now, or not in its current state.
    #[error("cannot {action}: {reason}")]
    Unavailable {
        /// The cause, for callers that react to it.
        cause: Unavailability,
        /// What was attempted.
        action: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The request is invalid.
    #[error("{0}")]
    InvalidRequest(String),
    /// The disk or the server failed; with the error of the library and what was attempted.
    #[error("cannot {action}: {reason}")]
    Failed {
        /// What was attempted.
        action: String,
        /// Why it failed.
        reason: String,
    },
}

impl StoreError {
    /// Returns why the store cannot be used, if that is what failed.
    pub fn unavailability(&self) -> Option<Unavailability> {
        match self {
            Self::Unavailable { cause, .. } => Some(*cause),
            Self::Newer { .. } => Some(Unavailability::Newer),
            _ => None,
        }
    }
}

/// How many rows of a table were copied from another store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TableRows {
    /// Name of the table.
    pub table: String,
    /// Number of rows.
    pub rows: u64,
}
