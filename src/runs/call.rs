//! One call of a capability, as a step makes it: what goes in, what comes back, how it fails.
//!
//! The engine knows capabilities alone; which binding executes one is the broker's business.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::Display;
use tokio_util::sync::CancellationToken;

use skills_model::ApprovalReason;
use skills_skill::contract::{Capability, Conformance};

/// What a step asks for.
#[derive(Clone)]
pub struct Call {
    /// The capability, as pinned when the run was launched.
    pub capability: Arc<Capability>,
    /// Its inputs, checked against its declared fields.
    pub inputs: Map<String, Value>,
    /// What the run is attached to, where it is: `{"type", "ref", "content"}`.
    pub target: Option<Value>,
    /// The key by which a receiver can drop repetitions; the same for every attempt of the step.
    pub idempotency_key: String,
    /// Trace of the run.
    pub trace_id: String,
    /// Path of the step in its run (`extract`, `each[2]`, `report/render`).
    pub step: String,
    /// Bound on this one invocation.
    pub timeout: Duration,
    /// Minimum conformance level.
    pub conformance: Conformance,
    /// Run a script without isolation where none can be had.
    pub unsandboxed: bool,
    /// Files for a script's work directory: name there to absolute path.
    pub files: BTreeMap<String, PathBuf>,
    /// Digests of what may execute it, by binding, as launched and approved; a binding without one is not
    /// checked.
    pub pins: BTreeMap<String, String>,
    /// Takes output lines as they are printed; may be called from any thread, must not block.
    pub log: LogSink,
}

/// Where output lines of a step go while it runs.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// A line that a step printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogLine {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Its text, as printed, without the line end; cut at 4 KiB.
    pub text: String,
}

/// A file that a step left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Artifact {
    /// SHA-256 of its content, hexadecimal: its name in the store of artifacts.
    pub digest: String,
    /// Path in the step's work directory.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Media type by name and content.
    pub media_type: String,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reply {
    /// Produced fields.
    pub outputs: Map<String, Value>,
    /// The binding that executed it.
    pub binding: String,
    /// Bindings that were tried before it, with why they failed.
    pub tried: Vec<Tried>,
    /// The isolation in force, where a script ran.
    pub isolation: Option<Value>,
    /// Files left behind.
    pub artifacts: Vec<Artifact>,
}

/// A binding that did not execute a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// Which.
    pub binding: String,
    /// Why not.
    pub reason: String,
}

/// In which way a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CallFailure {
    /// The inputs do not fit the capability.
    InvalidRequest,
    /// Nothing executes the capability here, or its service is not configured.
    InvalidConfiguration,
    /// What would execute it is not conforming enough.
    ConformanceUnmet,
    /// The bundle that brings the binding is not trusted, or changed since it was.
    Untrusted,
    /// What would execute it is not what was launched or approved any longer.
    SkillChanged,
    /// A gate or the missing isolation forbids it.
    SafetyDenied,
    /// The script or the service answered with a failure, or with something that is not an answer.
    RuntimeError,
    /// The service cannot be reached or broke off.
    UpstreamFailure,
    /// The service did not answer in time.
    UpstreamTimeout,
    /// The step's own time was over.
    StepTimeout,
    /// The caller asked to stop.
    Canceled,
}

/// What went wrong at the other end of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureKind {
    /// It answered with an error; `status` has its number.
    ErrorAnswer,
    /// What it answered is not an answer to the call.
    InvalidAnswer,
    /// It could not be reached, or broke the connection off.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// It failed again and again, and is not called for a while.
    BreakerOpen,
    /// It is not configured here, or not correctly.
    NotConfigured,
    /// What would execute the call is not trusted here.
    Untrusted,
    /// The bundle is not what was launched or approved any longer.
    SkillChanged,
    /// It is not conforming enough.
    NotConforming,
    /// The inputs were refused.
    InvalidInputs,
    /// A safety rule forbids it.
    SafetyDenied,
    /// The call was stopped.
    Stopped,
}

impl FailureKind {
    /// What went wrong, as a sentence behind the name of a capability.
    #[must_use]
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
            Self::SkillChanged => "its bundle changed since the run was launched or approved",
            Self::NotConforming => "no binding has the required conformance level",
            Self::InvalidInputs => "its service rejected the inputs",
            Self::SafetyDenied => "this machine cannot execute it safely",
            Self::Stopped => "the run was canceled",
        }
    }
}

/// How a call failed, for everybody who may see its run: where a binding leads and what came back is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PublicFailure {
    /// What went wrong.
    pub kind: FailureKind,
    /// The capability that was called.
    pub capability: String,
    /// HTTP status or JSON-RPC error code, where an answer had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    /// The failure in a sentence.
    pub message: String,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[error("{message}")]
pub struct CallError {
    /// How.
    pub code: CallFailure,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// The binding that failed last.
    pub binding: Option<String>,
    /// Bindings that were tried before it.
    #[serde(default)]
    pub tried: Vec<Tried>,
    /// The end of what the script printed to stderr, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Details for programs, as `{"limit": "disk_bytes", "allowed": 268435456}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<Value>>,
    /// The failure without addresses and without what came back; none where the message has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<Box<PublicFailure>>,
}

impl CallError {
    /// A failure before any binding was chosen.
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

    /// The error message, for all users who may see the run.
    pub fn public_message(&self) -> &str {
        self.public.as_ref().map_or(&self.message, |public| &public.message)
    }

    /// Whether trying again may help.
    #[must_use]
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
    /// Executes a capability, through its binding and the fallbacks behind it.
    ///
    /// When `cancel` fires, children are killed before this returns. Dropping the future does the same.
    async fn call(&self, call: Call, cancel: CancellationToken) -> Result<Reply, CallError>;

    /// Digests of what can execute a capability now, by binding: kept with a run when it is launched. What
    /// comes with this program needs none.
    fn pins(&self, _capability: &str) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Why a person is asked before a capability is executed by something else than was there at the launch;
    /// none where it is the same.
    fn changed(
        &self,
        _capability: &Capability,
        _conformance: Conformance,
        _unsandboxed: bool,
        _launched: &BTreeMap<String, String>,
    ) -> Option<ApprovalReason> {
        None
    }

    /// Why nothing can execute it at this moment, though bindings may be there: none of them is trusted,
    /// configured or found. None where one can be called; whether its service answers is not asked.
    fn obstacle(
        &self,
        _capability: &Capability,
        _conformance: Conformance,
        _unsandboxed: bool,
    ) -> Option<CallError> {
        None
    }

    /// Which binding would execute it now, and why; nothing is called.
    fn explain(&self, capability: &Capability, conformance: Conformance) -> Explanation;
}

/// The complete decision for a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// The capability.
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
    /// The decision without what tells an outsider what to attack: protocols, services, addresses.
    #[must_use]
    pub fn without_places(mut self) -> Self {
        for choice in &mut self.bindings {
            choice.protocol.clear();
            choice.service.clear();
            choice.target.clear();
            choice.isolation.clear();
            // The reason may name an address.
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
    /// Which.
    pub binding: String,
    /// How it reaches its service: `script`, `openapi`, `mcp`, `openrpc`, `builtin`.
    pub protocol: String,
    /// The service it goes to.
    pub service: String,
    /// What it calls, for display (`scripts/extract.py`, `POST https://…`).
    pub target: String,
    /// Conformance level.
    pub conformance: Conformance,
    /// Why it has this position: `override`, `default`, `fallback of …`, `not chosen`.
    pub place: String,
    /// Why it cannot be called now, if it cannot.
    pub obstacle: Option<String>,
    /// State of its breaker: `closed`, `open until …`, `half open`.
    pub breaker: String,
    /// Isolation of a script, or network access of a call.
    pub isolation: String,
}
