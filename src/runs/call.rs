//! A call of a capability as a step makes it: its inputs, its reply and its failures.
//!
//! The engine knows only capabilities; the broker selects the binding that executes one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use strum::Display;
use tokio_util::sync::CancellationToken;

use skills_base::hex;
use skills_model::ApprovalReason;
use skills_skill::contract::{Capability, Conformance};
use skills_store::RunOptions;

/// A call requested by a step.
#[derive(Clone)]
pub struct Call {
    /// The capability, as pinned when the run was launched.
    pub capability: Arc<Capability>,
    /// Inputs, checked against the declared fields.
    pub inputs: Map<String, Value>,
    /// What the run is attached to, if anything: `{"type", "ref", "content"}`.
    pub target: Option<Value>,
    /// Key by which a receiver can drop duplicates; the same for every attempt of the step.
    pub idempotency_key: String,
    pub trace_id: String,
    /// Path of the step in its run (`extract`, `each[2]`, `report/render`).
    pub step: String,
    /// Timeout of this invocation.
    pub timeout: Duration,
    /// What decides which bindings may execute it.
    pub conditions: CallConditions,
    /// Files for a script's work directory: file name to absolute path.
    pub files: BTreeMap<String, PathBuf>,
    /// SHA-256 of these files, by name, as launched; empty for a run that was launched without them.
    pub file_digests: BTreeMap<String, String>,
    /// Digests of what may execute the call, by binding, as launched and approved; `None` for a run that was launched
    /// without them.
    pub pins: Option<BTreeMap<String, String>>,
    /// Receives output lines as they are printed; may be called from any thread and must not block.
    pub log: LogSink,
}

/// What decides, besides the capability, which bindings may execute a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallConditions {
    /// Minimum conformance level.
    pub conformance: Conformance,
    /// Whether a script may run without isolation if none is available.
    pub unsandboxed: bool,
    /// Who started the run, or resumed it last; `None` for a call of no particular person.
    pub ordered_by: Option<String>,
}

impl CallConditions {
    /// Returns the conditions of the calls of a run with these options, of no particular person; `usual` is the
    /// conformance level of runs that state none.
    pub fn of_run(options: &RunOptions, usual: Conformance) -> Self {
        let stated = options.conformance.as_deref().and_then(|level| level.parse().ok());
        Self { conformance: stated.unwrap_or(usual), unsandboxed: options.unsandboxed, ordered_by: None }
    }
}

impl From<Conformance> for CallConditions {
    /// A sandboxed call of no particular person.
    fn from(conformance: Conformance) -> Self {
        Self { conformance, ..Self::default() }
    }
}

/// Receiver of a running step's output lines.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// A line that a step printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogLine {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Its text without the line end, truncated at 4 KiB.
    pub text: String,
}

/// A file that a step produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Artifact {
    /// SHA-256 of its content in hexadecimal: its name in the artifact store.
    pub digest: String,
    /// Path in the step's work directory.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Media type, detected by name and content.
    pub media_type: String,
}

/// The reply to a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reply {
    /// Output fields.
    pub outputs: Map<String, Value>,
    /// The binding that executed it.
    pub binding: String,
    /// Bindings tried before it, with the reasons of their failure.
    pub tried: Vec<FailedAttempt>,
    /// The isolation in force, if a script ran.
    pub isolation: Option<Value>,
    /// Files produced.
    pub artifacts: Vec<Artifact>,
}

/// A binding that did not execute a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailedAttempt {
    /// Id of the binding.
    pub binding: String,
    /// Why the call failed.
    pub reason: String,
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CallFailure {
    /// The inputs are invalid for the capability.
    InvalidRequest,
    /// No binding of the capability is available, or its service is not configured.
    InvalidConfiguration,
    /// The conformance level of the binding is too low.
    ConformanceUnmet,
    /// The bundle of the binding is not trusted, or changed since it was.
    Untrusted,
    /// The policy denies the bundle of the binding.
    Forbidden,
    /// What would execute the call is no longer what was launched or approved.
    SkillChanged,
    /// A gate or missing isolation forbids the call.
    SafetyDenied,
    /// The script or the service returned a failure or an invalid response.
    RuntimeError,
    /// The service cannot be reached, or closed the connection.
    UpstreamFailure,
    /// The service did not answer in time.
    UpstreamTimeout,
    /// The step timed out.
    StepTimeout,
    /// The caller asked to stop.
    Canceled,
}

/// What went wrong on the other side of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureKind {
    /// It returned an error; `status` has its code.
    ErrorAnswer,
    /// Its response was invalid.
    InvalidAnswer,
    /// It was unreachable, or closed the connection.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// It failed repeatedly and is not called for some time.
    BreakerOpen,
    /// It is not configured here, or incorrectly.
    NotConfigured,
    /// What would execute the call is not trusted here.
    Untrusted,
    /// The bundle is no longer what was launched or approved.
    SkillChanged,
    /// Its conformance level is too low.
    NotConforming,
    /// It rejected the inputs.
    InvalidInputs,
    /// A safety rule forbids it.
    SafetyDenied,
    /// The call was stopped.
    Stopped,
}

impl FailureKind {
    /// Returns what went wrong as a phrase that follows the name of a capability.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::ErrorAnswer => "its service returned an error",
            Self::InvalidAnswer => "its service returned an invalid response",
            Self::Unreachable => "its service was unreachable or closed the connection",
            Self::Timeout => "timed out",
            Self::BreakerOpen => {
                "its service failed repeatedly and is temporarily not called (circuit \
                breaker)"
            }
            Self::NotConfigured => "no binding is configured correctly",
            Self::Untrusted => "its binding is not trusted",
            Self::SkillChanged => {
                "its bundle or a file passed to it changed since the run was launched or approved"
            }
            Self::NotConforming => "no binding has the required conformance level",
            Self::InvalidInputs => "its service rejected the inputs",
            Self::SafetyDenied => "this machine cannot execute it safely",
            Self::Stopped => "the run was canceled",
        }
    }
}

/// How a script exited that reported an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScriptExit {
    /// The exit code.
    #[serde(rename = "exit_code")]
    pub code: i32,
    /// The last line that it printed to stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_line: Option<String>,
}

/// A failure as shown to everyone who may see the run: without the target of the binding and the content of its
/// response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PublicFailure {
    /// What went wrong.
    pub kind: FailureKind,
    /// The capability that was called.
    pub capability: String,
    /// HTTP status or JSON-RPC error code, if there was a response with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    /// How the script exited, if it reported an error.
    #[serde(flatten)]
    pub exit: Option<ScriptExit>,
    /// The failure as a sentence.
    pub message: String,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[error("{message}")]
pub struct CallError {
    /// How it failed.
    pub code: CallFailure,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// The binding that failed last.
    pub binding: Option<String>,
    /// Bindings tried before it.
    #[serde(default)]
    pub tried: Vec<FailedAttempt>,
    /// The end of the script's stderr, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Machine-readable details, such as `{"limit": "disk_bytes", "allowed": 268435456}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<Value>>,
    /// The failure without addresses and response content; `None` if the message contains neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<Box<PublicFailure>>,
}

impl CallError {
    /// A failure before any binding was selected.
    pub fn new(code: CallFailure, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            binding: None,
            tried: Vec::new(),
            stderr: None,
            reason: None,
            public: None,
        }
    }

    /// Returns the message for everyone who may see the run.
    pub fn public_message(&self) -> &str {
        self.public.as_ref().map_or(&self.message, |public| &public.message)
    }

    /// Returns whether a retry may help.
    pub fn retryable(&self) -> bool {
        matches!(
            self.code,
            CallFailure::RuntimeError
                | CallFailure::UpstreamFailure
                | CallFailure::UpstreamTimeout
                | CallFailure::StepTimeout
        )
    }
}

/// Executes capabilities.
#[async_trait]
pub trait Caller: Send + Sync + 'static {
    /// Executes a capability through its binding and the fallbacks after it.
    ///
    /// When `cancel` fires, children are killed before this returns. Dropping the future does the same.
    async fn call(&self, call: Call, cancel: CancellationToken) -> Result<Reply, CallError>;

    /// Returns the digests of what can execute a capability now, by binding; recorded with a run at its launch.
    /// Bindings that ship with this program need none.
    fn pins(&self, _capability: &str) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns what would execute a capability now, compared with the digests that were recorded at launch.
    fn present_bindings(
        &self,
        _capability: &Capability,
        _conditions: &CallConditions,
        _launched: &BTreeMap<String, String>,
    ) -> PresentBindings {
        PresentBindings::default()
    }

    /// Returns why nothing can execute a capability now although it may have bindings: none is trusted, configured or
    /// found. `None` if one can be called; whether its service is reachable is not checked.
    fn obstacle(&self, _capability: &Capability, _conditions: &CallConditions) -> Option<CallError> {
        None
    }

    /// Explains which binding would execute a capability now, and why; nothing is called.
    fn explain(&self, capability: &Capability, conditions: &CallConditions) -> Explanation;
}

/// What would execute a capability now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PresentBindings {
    /// The bindings that a call may use, in this order: id and address.
    pub callable: Vec<(String, String)>,
    /// Why approval is required because they differ from the launch; `None` if nothing changed.
    pub changed: Option<ApprovalReason>,
}

/// The complete decision for a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// Id of the capability.
    pub capability: String,
    /// Minimum conformance level.
    pub conformance: Conformance,
    /// The binding that would be called first, if any is available.
    pub chosen: Option<String>,
    /// The chain in the order in which it would be tried, then the others.
    pub bindings: Vec<BindingChoice>,
    /// The decision as text.
    pub summary: String,
}

impl Explanation {
    /// Returns the bindings that a call would try, in this order.
    pub fn chain(&self) -> impl Iterator<Item = &BindingChoice> {
        self.bindings.iter().take_while(|choice| choice.place != BindingChoice::NOT_CHOSEN)
    }

    /// Returns the binding that would be called first.
    pub fn first_called(&self) -> Option<&BindingChoice> {
        let chosen = self.chosen.as_ref()?;
        self.bindings.iter().find(|choice| choice.binding == *chosen)
    }

    /// Removes what would tell an outsider what to attack: protocols, services and addresses.
    #[must_use]
    pub fn without_places(mut self) -> Self {
        for choice in &mut self.bindings {
            choice.protocol.clear();
            choice.service.clear();
            choice.target.clear();
            choice.isolation.clear();
            // The reason may contain an address.
            choice.obstacle = choice.obstacle.take().map(|_| "it cannot be called".to_owned());
        }
        self.summary = match &self.chosen {
            Some(binding) => format!("binding {binding}"),
            None => "no binding is available".to_owned(),
        };
        self
    }
}

/// A binding in an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BindingChoice {
    /// Id of the binding.
    pub binding: String,
    /// How it reaches its service: `script`, `openapi`, `mcp`, `openrpc`, `builtin`.
    pub protocol: String,
    /// The service it calls.
    pub service: String,
    /// What it calls, for display (`scripts/extract.py`, `POST https://…`).
    pub target: String,
    /// Conformance level.
    pub conformance: Conformance,
    /// Why it has this position: `override`, `default`, `fallback of …`, `not chosen`.
    pub place: String,
    /// Why it cannot be called now, if it cannot.
    pub obstacle: Option<String>,
    /// State of its breaker for the person who calls: `closed`, `open for 12 s more`, `half open`. For no particular
    /// person: `closed` or `open for some callers`.
    pub breaker: String,
    /// Isolation of a script, or network access of a call.
    pub isolation: String,
}

impl BindingChoice {
    /// The place of a binding outside of the chain.
    pub const NOT_CHOSEN: &'static str = "not chosen";
    /// Kinds of isolation that are followed by a host or a program.
    pub(crate) const OTHER_MACHINE: &'static str = "another machine";
    pub(crate) const OTHER_PROCESS: &'static str = "another process on this machine";
    pub(crate) const PROGRAM: &'static str = "your program, not sandboxed";

    /// Returns an isolation without host and program, which would tell an outsider what to attack.
    pub fn public_isolation(isolation: &str) -> &str {
        let kinds = [Self::OTHER_MACHINE, Self::OTHER_PROCESS, Self::PROGRAM];
        kinds.into_iter().find(|kind| isolation.starts_with(kind)).unwrap_or(isolation)
    }
}

/// Returns the key by which a receiver can drop duplicates of a step: the same for every attempt of it in a run, and
/// different for every other step and run.
pub fn idempotency_key(run: &str, step: &str) -> String {
    // A run's id is a UUID, so no other pair of run and step yields the same text.
    hex::encode(&Sha256::digest(format!("{run}/{step}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotency_key_is_unique_per_run_and_step() {
        assert_eq!(idempotency_key("r", "a"), idempotency_key("r", "a"));
        assert_ne!(idempotency_key("r", "a"), idempotency_key("r", "b"));
        assert_ne!(idempotency_key("r", "a"), idempotency_key("s", "a"));
    }
}
