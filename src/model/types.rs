//! The types of a run: its states, gates, decisions, and all commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunState {
    /// Stored, not claimed. A paused one waits for `resume`.
    Pending,
    /// A worker executes its steps.
    Running,
    /// A worker restores recorded steps of the run it was replayed or forked from.
    Replaying,
    /// Waits for approval.
    WaitingForHuman,
    /// A step waits for a named signal.
    WaitingForSignal,
    /// All steps are complete. Terminal.
    Completed,
    /// A step failed permanently. Not the end: `resume` continues.
    Failed,
    /// Canceled. Terminal.
    Canceled,
}

impl RunState {
    /// The states of runs that are in progress or wait.
    pub const OPEN: [Self; 5] =
        [Self::WaitingForHuman, Self::WaitingForSignal, Self::Running, Self::Replaying, Self::Pending];
    /// The states of runs that are not executed unless a command continues them.
    pub const ENDED: [Self; 3] = [Self::Completed, Self::Failed, Self::Canceled];

    pub fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Replaying => "replaying",
            Self::WaitingForHuman => "waiting for approval",
            Self::WaitingForSignal => "waiting for a signal",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Describes the state of a run as a clause: `it is waiting for a signal`, `it has failed`.
    pub fn clause(self) -> String {
        match self {
            Self::Completed | Self::Failed => format!("it has {}", self.label()),
            Self::Canceled => "it was canceled".to_owned(),
            other => format!("it is {}", other.label()),
        }
    }

    /// Returns whether a worker owns it.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Replaying)
    }

    /// Returns whether it waits for an approval or a signal.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::WaitingForHuman | Self::WaitingForSignal)
    }

    /// Returns whether no command changes it anymore except `replay` and `fork`, which create new runs.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled)
    }

    /// Returns the state for the older run-status routes, which do not support cancellation: canceled is shown as
    /// failed.
    #[must_use]
    pub fn legacy(self) -> Self {
        if self == Self::Canceled { Self::Failed } else { self }
    }
}

/// What a waiting run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// An approval or denial of one step with exactly these inputs.
    Human {
        /// Id of the step.
        step: String,
        /// SHA-256 of what would be executed, in canonical JSON: the step with its occurrence, its
        /// capability and its inputs. An approval applies to exactly this, once.
        inputs_digest: String,
        /// Why a decision is required.
        why: ApprovalReason,
        /// Approvals so far, if several are required.
        #[serde(default, skip_serializing_if = "Approvals::is_empty")]
        approvals: Approvals,
    },
    /// A signal with this name.
    Signal {
        /// Id of the step.
        step: String,
        /// The name it waits for.
        name: String,
    },
}

/// Approvals of a gate that requires several, each from a different person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Approvals {
    /// Number of required approvals, according to the rule when the last one was recorded.
    pub need: u32,
    /// Who has approved, oldest first.
    pub by: Vec<String>,
    /// The choice that all of them made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The result that all of them stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
}

impl Approvals {
    /// Returns whether there is no approval yet.
    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// Returns the choice and the result as a phrase that begins with a space; empty if no choice is needed.
    pub fn shared_choice(&self) -> String {
        let choice = self.choice.map(|choice| format!(" with the choice `{choice}`")).unwrap_or_default();
        let result = self.result.as_ref().map(|result| format!(" and the result {result}"));
        choice + &result.unwrap_or_default()
    }
}

/// Step name of an approval that a policy requires before the first step.
pub const BEFORE_FIRST_STEP: &str = "~policy";

/// Returns what an approval is about, for display: the step, or [`BEFORE_FIRST_STEP`] in words.
pub fn approval_label(step: &str) -> &str {
    if step == BEFORE_FIRST_STEP { "approval required by the policy before the first step" } else { step }
}

/// Returns a step for display in little space, or [`BEFORE_FIRST_STEP`] in words.
pub fn step_label(step: &str) -> &str {
    if step == BEFORE_FIRST_STEP { "before the first step" } else { step }
}

impl Gate {
    /// Creates a gate that waits for approval.
    pub fn human(step: impl Into<String>, inputs_digest: impl Into<String>, why: ApprovalReason) -> Self {
        let (step, inputs_digest) = (step.into(), inputs_digest.into());
        Self::Human { step, inputs_digest, why, approvals: Approvals::default() }
    }

    /// Returns whether both require the same decision, regardless of recorded approvals.
    pub fn is_same_question(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Human { step, inputs_digest, why, .. },
                Self::Human { step: other_step, inputs_digest: other_digest, why: other_why, .. },
            ) => step == other_step && inputs_digest == other_digest && why == other_why,
            _ => self == other,
        }
    }
}

/// Why a decision is required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalReason {
    /// The capability requires approval each time (`requires_confirmation`).
    Confirmation,
    /// A mandatory gate rejected it and requires approval.
    Gate {
        /// The gate's capability.
        capability: String,
        /// Response of the gate, as text.
        reason: String,
    },
    /// The policy requires approval; the rule as text.
    Policy {
        /// The rule.
        rule: String,
    },
    /// Its script or binding was edited after the run was launched.
    Changed {
        /// What changed, as text.
        what: String,
        /// Bindings with their current digests, which an approval accepts for the run.
        now: BTreeMap<String, String>,
        /// The digest of the call as if nothing had changed: approving the change also approves the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// Why the call would require approval if nothing had changed, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        besides: Option<String>,
    },
    /// A step that must not be repeated was interrupted; its outcome is unknown.
    UnknownOutcome,
}

impl ApprovalReason {
    /// Returns the reason as text, as used after "because".
    pub fn describe(&self) -> String {
        match self {
            Self::Confirmation => "the capability always requires approval".to_owned(),
            Self::Gate { capability, reason } => format!("the gate {capability} did not allow it: {reason}"),
            Self::Policy { rule } => format!("required by policy: {rule}"),
            Self::Changed { what, besides, .. } => {
                let executed = "approving executes the current bindings with the definitions of the launch";
                match besides {
                    Some(besides) => format!("{what}; {executed}. Also, {besides}"),
                    None => format!("{what}; {executed}"),
                }
            }
            Self::UnknownOutcome => "its execution was interrupted; the outcome is unknown".to_owned(),
        }
    }
}

/// What to do about a step whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Choice {
    /// Run it again.
    Rerun,
    /// It was completed: continue with the given result.
    Happened,
    /// Skip it, without outputs.
    Skip,
    /// Fail the run at this step.
    Fail,
}

/// What happens when a waiting run expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Expiry {
    /// Denied, which cancels the run.
    #[default]
    Deny,
    /// Failed, so that it can be resumed.
    Fail,
}

/// A decision on a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// Continue.
    Approve,
    /// Cancel.
    Deny,
}

/// A recorded decision, so that repeating it returns the same result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// Approval or denial.
    pub verdict: Verdict,
    /// The step it concerned.
    pub step: String,
    /// Digest of what would be executed, as stated by the gate. Empty in a denial that names only its step, until it
    /// is bound to the gate.
    pub inputs_digest: String,
    /// How to resolve an unknown outcome; only valid in an approval of such a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Result of the step, for the choice `happened`: an object of its outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
}

impl Decision {
    /// Returns whether this decides exactly `gate`.
    pub fn answers(&self, gate: Option<&Gate>) -> bool {
        matches!(gate, Some(Gate::Human { step, inputs_digest, .. })
            if *step == self.step && *inputs_digest == self.inputs_digest)
    }

    /// Returns whether both are for the same gate.
    pub fn same_gate(&self, other: &Self) -> bool {
        self.step == other.step && self.inputs_digest == other.inputs_digest
    }

    /// Completes a denial that names only its step: sets the digest of the gate that waits at this step, or otherwise
    /// that of the newest earlier denial of the step, which it repeats. Returns every other decision unchanged.
    #[must_use]
    pub fn bound_to<'d>(
        mut self,
        gate: Option<&Gate>,
        earlier: impl DoubleEndedIterator<Item = &'d Self>,
    ) -> Self {
        if self.verdict == Verdict::Deny && self.inputs_digest.is_empty() {
            let waiting = match gate {
                Some(Gate::Human { step, inputs_digest, .. }) if *step == self.step => Some(inputs_digest),
                _ => None,
            };
            let denied = |other: &&Self| other.verdict == Verdict::Deny && other.step == self.step;
            let digest = waiting.or_else(|| earlier.rev().find(denied).map(|other| &other.inputs_digest));
            self.inputs_digest = digest.cloned().unwrap_or_default();
        }
        self
    }
}

/// The properties of a run that the transition table depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSnapshot {
    pub state: RunState,
    /// Whether no further step starts until it is resumed: a fork, or a paused run. A pending run is not claimed, an
    /// active one stops before its next step, a waiting one when its wait ends.
    pub paused: bool,
    /// Whether recorded steps have to be restored before new ones run.
    pub replays: bool,
    /// The current fencing token.
    pub fence: u64,
    /// What it waits for, in the two waiting states.
    pub gate: Option<Gate>,
    /// The last decision, if any.
    pub decided: Option<Decision>,
    /// Time at which its wait expired, if that is how the wait ended; milliseconds since 1970-01-01 UTC.
    pub expired_ms: Option<i64>,
}

/// A worker's report about a run that it owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerReport {
    /// A step is complete; more follow. A replay whose recorded steps are all restored becomes running.
    Checkpoint,
    /// A gate requires a decision; the lease is released.
    Wait(Gate),
    /// The run was paused and none of its steps is in progress anymore; the lease is released.
    Pause,
    Complete,
    /// A step failed permanently.
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A worker claims the run.
    Claim {
        /// Whether the current lease has expired, by the store's clock.
        lease_expired: bool,
        /// Whether the maximum number of claims after a lost lease is reached.
        attempts_used_up: bool,
    },
    /// A worker reports progress, with its fencing token.
    Work {
        /// The fencing token of its claim.
        fence: u64,
        report: WorkerReport,
    },
    /// A person decides a gate.
    Decide(Decision),
    /// One of several approvals that a rule requires. The last one decides the gate.
    Endorse {
        /// The approval.
        decision: Decision,
        /// Who approved: each person counts once.
        by: String,
        /// How many the rule requires.
        need: u32,
    },
    /// A decision that answered no gate when it was checked against the rules: valid only if it repeats a recorded one.
    RepeatDecision(Decision),
    /// A signal arrives.
    Signal { name: String },
    /// A person cancels the run.
    Cancel,
    /// A sidecar requests that no further step starts until a person resumes the run.
    Pause,
    /// The gate that waits for a decision no longer matches what would be executed: it is replaced by this one.
    Ask(Gate),
    /// A person lets a paused or failed run continue.
    Resume,
    /// The wait of the run expires.
    Expire(Expiry),
    /// Creates a new run that continues from a checkpoint of this one.
    Replay,
    /// Creates a new paused run with a link to this one.
    Fork,
}

impl Command {
    /// Returns the decision that it contains.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Decide(decision) | Self::Endorse { decision, .. } | Self::RepeatDecision(decision) => {
                Some(decision)
            }
            _ => None,
        }
    }

    /// Returns the decision that it contains, to change it.
    pub fn decision_mut(&mut self) -> Option<&mut Decision> {
        match self {
            Self::Decide(decision) | Self::Endorse { decision, .. } | Self::RepeatDecision(decision) => {
                Some(decision)
            }
            _ => None,
        }
    }
}

/// The name of a command, as offered by adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CommandName {
    Approve,
    Deny,
    Resume,
    Signal,
    Cancel,
    Replay,
    Fork,
}

/// The effect of a transition on the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Unchanged.
    Keep,
    /// Granted to the claiming worker, with the new fencing token.
    Grant,
    /// Released or revoked.
    Release,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The state of the run changes.
    Move {
        state: RunState,
        /// New fencing token.
        fence: u64,
        /// The effect on the lease.
        lease: Lease,
        /// Whether it is paused now.
        paused: bool,
        /// The gate that it waits for now.
        gate: Option<Gate>,
    },
    /// No change; the first result remains valid (a repeated decision or cancellation).
    Unchanged,
    /// No change; the signal is buffered until a step waits for it.
    SignalBuffered,
    /// A new run is created from this one.
    NewRun {
        /// Whether it is paused (a fork) or starts immediately (a replay).
        paused: bool,
    },
}

/// Why a command is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// The state does not accept it (HTTP 409, `invalid_transition`).
    #[error("{}", invalid(.command, *.state, .needed.as_deref(), .allowed))]
    Invalid {
        command: String,
        state: RunState,
        /// What is required instead, as text.
        needed: Option<String>,
        /// The commands that it currently accepts.
        allowed: Vec<CommandName>,
    },
    /// The run was decided differently, or the decision is for another gate (409).
    #[error("{0}")]
    DecisionConflict(String),
    /// The worker's claim is no longer the current one; its write has no effect.
    #[error("stale fencing token {presented}, current {present}: another worker owns the run")]
    StaleFence {
        /// The worker's fencing token.
        presented: u64,
        /// The run's fencing token.
        present: u64,
    },
    /// The run is paused: no further step starts.
    #[error("the run is paused; resume it first")]
    Paused,
    /// The wait of the run has not expired, or is already over.
    #[error("the run has not expired")]
    NotExpired,
    /// The run cannot be claimed in its current state.
    #[error("the run cannot be claimed now")]
    NotClaimable,
}

fn invalid(command: &str, state: RunState, needed: Option<&str>, allowed: &[CommandName]) -> String {
    let (same, others): (Vec<_>, Vec<_>) = allowed.iter().partition(|name| name.to_string() == command);
    if same.is_empty() {
        let why = match needed {
            // The requirement of a waiting run names what it is waiting for.
            Some(needed) if state.is_waiting() => needed.to_owned(),
            Some(needed) => format!("{}; {needed}", state.clause()),
            None => state.clause(),
        };
        return format!("cannot {command} the run: {why}; available commands: {}", list(allowed));
    }
    // The command is accepted in general, but not this one.
    let why = needed.map(|needed| format!(": {needed}")).unwrap_or_default();
    format!("the run does not accept this {command}{why}; other available commands: {}", list(&others))
}

/// Formats a deadline: `expired at 2026-07-14 09:28:30 UTC`.
pub fn expired_at_text(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    format!("expired at {} UTC", at.strftime("%Y-%m-%d %H:%M:%S"))
}

fn list(commands: &[CommandName]) -> String {
    if commands.is_empty() {
        return "none".to_owned();
    }
    commands.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
