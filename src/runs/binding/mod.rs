//! How a binding executes a call: through a script, over HTTP, JSON-RPC or MCP, or by a built-in function.

mod builtin;
pub(super) mod http;
mod mcp;
mod openapi;
mod openrpc;
pub(super) mod request;
pub(super) mod script;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::artifacts::Artifacts;
use super::broker::{BundleCheck, CallObstruction, Environment};
use super::call::{Artifact, BindingChoice, Call, CallFailure, FailureKind, ScriptExit};
use super::capabilities::{Capabilities, RegisteredBinding, RegisteredService};
use skills_base::canonical::digest_of;
use skills_sandbox::{Limits, Sandbox};
use skills_skill::contract::{Endpoint, Protocol, Service, ServiceTarget};
use skills_skill::safe_text;

use http::Http;
use mcp::Sessions;

/// Maximum number of characters of a response or of output in an error message.
const MAX_SHOWN_CHARS: usize = 300;

/// One call through one binding.
pub(super) struct BindingCall<'a> {
    pub offered: &'a RegisteredBinding,
    pub call: &'a Call,
    pub values: &'a request::TemplateValues,
    /// Remaining time of the step.
    pub remaining: Duration,
    pub target: String,
}

impl BindingCall<'_> {
    /// Renders the binding's request template.
    fn request(&self) -> Value {
        request::render(&self.offered.binding.request, self.values)
    }

    /// Returns the timeout for a response: the remaining time, or the timeout of binding or service if that is shorter.
    fn timeout(&self, endpoint: Option<&Endpoint>) -> CallTimeout {
        let stated = self.offered.binding.metadata.get("timeout_seconds").and_then(Value::as_f64);
        let stated = stated.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let own = [stated, endpoint.and_then(|endpoint| endpoint.timeout)].into_iter().flatten().min();
        match own.filter(|own| *own < self.remaining && !own.is_zero()) {
            Some(wait) => CallTimeout { wait, is_the_steps: false },
            None => CallTimeout { wait: self.remaining, is_the_steps: true },
        }
    }

    /// Converts a failed attempt to a step timeout, keeping its stderr.
    pub fn out_of_time(&self, attempt: BindingFailure) -> BindingFailure {
        let timeout = BindingFailure::step_timeout(self.call.timeout);
        BindingFailure { effect: Effect::Possible, counts: true, stderr: attempt.stderr, ..timeout }
    }

    fn too_late(&self, patience: CallTimeout) -> BindingFailure {
        if patience.is_the_steps {
            return self.out_of_time(BindingFailure::canceled());
        }
        let message = format!("{} did not respond within {} s", self.target, patience.wait.as_secs_f64());
        BindingFailure {
            code: CallFailure::UpstreamTimeout,
            ..BindingFailure::upstream(message, Effect::Possible)
        }
    }
}

/// The timeout for a response, and whether it is the step's own.
#[derive(Clone, Copy)]
struct CallTimeout {
    wait: Duration,
    is_the_steps: bool,
}

/// A response before it is mapped to outputs.
pub(super) struct BindingResponse {
    pub response: Value,
    pub isolation: Option<Value>,
    pub artifacts: Vec<Artifact>,
}

impl BindingResponse {
    fn of(response: Value) -> Self {
        Self { response, isolation: None, artifacts: Vec::new() }
    }
}

/// Whether a failed call may have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It never reached the executing side, or was rejected there.
    None,
    /// It may have been executed, in part or completely.
    Possible,
}

/// One failed attempt.
#[derive(Debug, Clone)]
pub(super) struct BindingFailure {
    pub code: CallFailure,
    pub message: String,
    pub stderr: Option<String>,
    /// Machine-readable details.
    pub reason: Option<Value>,
    pub effect: Effect,
    /// Whether the failure counts against the binding's circuit breaker.
    pub counts: bool,
    /// What went wrong, if the code does not determine it.
    pub kind: Option<FailureKind>,
    /// HTTP status or JSON-RPC error code of the response.
    pub status: Option<i64>,
    /// How the script exited, if it reported an error.
    pub exit: Option<ScriptExit>,
}

impl BindingFailure {
    /// A failure before anything was called.
    pub fn before(code: CallFailure, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            stderr: None,
            reason: None,
            effect: Effect::None,
            counts: false,
            kind: None,
            status: None,
            exit: None,
        }
    }

    /// An invalid response.
    pub fn answer(message: impl Into<String>) -> Self {
        Self { effect: Effect::Possible, counts: true, ..Self::before(CallFailure::RuntimeError, message) }
    }

    /// An unreachable service, or an interrupted connection.
    fn upstream(message: impl Into<String>, effect: Effect) -> Self {
        Self { effect, counts: true, ..Self::before(CallFailure::UpstreamFailure, message) }
    }

    /// Marks this as an error response of the service with the given code.
    fn answered(self, status: impl Into<i64>) -> Self {
        Self { kind: Some(FailureKind::ErrorAnswer), status: Some(status.into()), ..self }
    }

    /// Returns the kind of failure: the explicit one, else the one that the code implies.
    pub fn kind(&self) -> FailureKind {
        self.kind.unwrap_or(match self.code {
            CallFailure::InvalidRequest => FailureKind::InvalidInputs,
            CallFailure::InvalidConfiguration => FailureKind::NotConfigured,
            CallFailure::ConformanceUnmet => FailureKind::NotConforming,
            CallFailure::Untrusted => FailureKind::Untrusted,
            CallFailure::SkillChanged => FailureKind::SkillChanged,
            CallFailure::SafetyDenied | CallFailure::Forbidden => FailureKind::SafetyDenied,
            CallFailure::RuntimeError => FailureKind::InvalidAnswer,
            CallFailure::UpstreamFailure => FailureKind::Unreachable,
            CallFailure::UpstreamTimeout | CallFailure::StepTimeout => FailureKind::Timeout,
            CallFailure::Canceled => FailureKind::Stopped,
        })
    }

    pub fn step_timeout(time: Duration) -> Self {
        Self::before(
            CallFailure::StepTimeout,
            format!(
                "the step timed out after {} s; increase its timeout_seconds if it needs more",
                time.as_secs_f64()
            ),
        )
    }

    fn canceled() -> Self {
        Self { effect: Effect::Possible, ..Self::before(CallFailure::Canceled, "the run was canceled") }
    }
}

/// Everything that bindings need to execute calls.
pub(super) struct BindingContext {
    pub(super) services: BTreeMap<String, Endpoint>,
    limits: Limits,
    environment: Environment,
    sandbox: Sandbox,
    artifacts: Arc<Artifacts>,
    check: BundleCheck,
    http: Http,
    sessions: Sessions,
}

impl BindingContext {
    pub fn new(
        services: BTreeMap<String, Endpoint>,
        limits: Limits,
        environment: Environment,
        sandbox: Sandbox,
        artifacts: Arc<Artifacts>,
        check: BundleCheck,
    ) -> Self {
        let (http, sessions) = (Http::default(), Sessions::default());
        Self { services, limits, environment, sandbox, artifacts, check, http, sessions }
    }

    /// Returns why a binding cannot be called now; `unsandboxed` allows scripts without isolation.
    pub fn obstacle(
        &self,
        offered: &RegisteredBinding,
        catalog: &Capabilities,
        unsandboxed: bool,
    ) -> Option<CallObstruction> {
        let binding = &offered.binding;
        let service = &binding.service;
        let endpoint = self.services.get(service);
        let reach = endpoint.map(|endpoint| &endpoint.reach);
        let wrong = |requested: &str| {
            Some(CallObstruction::unconfigured(format!(
                "service {service} is configured without {requested}, which protocol {} needs: correct `services.{service}` in the configuration",
                binding.protocol
            )))
        };
        match (binding.protocol, reach) {
            (Protocol::Script, _) => script::located(offered, reach, self.description(offered, catalog))
                .err()
                .or_else(|| script::isolated(&self.sandbox, unsandboxed).err()),
            (Protocol::Builtin, _) => builtin::known(&binding.operation).err(),
            (_, None) => Some(unconfigured(offered, self.description(offered, catalog))),
            (_, Some(ServiceTarget::Http { headers, .. })) => {
                self.expanded(service, "headers", headers).err()
            }
            (Protocol::Mcp, Some(ServiceTarget::Command { env, .. })) => {
                self.expanded(service, "env", env).err()
            }
            (Protocol::Mcp, Some(ServiceTarget::Script { .. })) => wrong("`url` or `command`"),
            (Protocol::OpenApi | Protocol::OpenRpc, Some(_)) => wrong("`url`"),
        }
    }

    /// Returns the description of a binding's service: that of the binding's own folder, else one that the user trusts.
    /// Any other could put an address of its author into the advice for the configuration.
    fn description<'c>(&self, offered: &RegisteredBinding, catalog: &'c Capabilities) -> Option<&'c Service> {
        let described = catalog.services(&offered.binding.service);
        let own = described.iter().find(|found| found.place.root() == offered.place.root());
        let found = own.or_else(|| described.iter().find(|found| self.is_trusted(found, catalog)));
        found.map(|found| &found.service)
    }

    /// Returns whether a description is the program's own, or of a folder that may run.
    fn is_trusted(&self, found: &RegisteredService, catalog: &Capabilities) -> bool {
        let place = &found.place;
        if place.shipped {
            return true;
        }
        let read = catalog.source(&found.service.location).map(|(_, read)| read).unwrap_or_default();
        (self.check)(place.root(), &read).is_ok()
    }

    /// Executes a call and waits for its response. If `cancel` fires, everything started for it has been terminated
    /// when this returns.
    pub async fn execute(
        &self,
        job: &BindingCall<'_>,
        cancel: &CancellationToken,
    ) -> Result<BindingResponse, BindingFailure> {
        match job.offered.binding.protocol {
            Protocol::Script => script::execute(self, job, cancel).await,
            Protocol::Builtin => {
                let (operation, request) = (job.offered.binding.operation.clone(), job.request());
                let called = tokio::task::spawn_blocking(move || builtin::call(&operation, &request));
                let failed = |error: tokio::task::JoinError| {
                    BindingFailure::before(CallFailure::RuntimeError, format!("the function failed: {error}"))
                };
                called.await.map_err(failed)?.map(BindingResponse::of)
            }
            Protocol::OpenApi => stopped_by(cancel, openapi::execute(self, job)).await,
            Protocol::OpenRpc => stopped_by(cancel, openrpc::execute(self, job)).await,
            Protocol::Mcp => mcp::execute(self, job, cancel).await,
        }
    }

    /// Returns what a binding calls, for display.
    pub fn target(&self, offered: &RegisteredBinding) -> String {
        let binding = &offered.binding;
        let reach = self.services.get(&binding.service).map(|endpoint| &endpoint.reach);
        match (binding.protocol, reach) {
            (Protocol::Script, _) => match script::located(offered, reach, None) {
                Ok(found) => found.script.display().to_string(),
                Err(_) => binding.operation.clone(),
            },
            (Protocol::Builtin, _) => format!("function {}", binding.operation),
            (Protocol::OpenApi, reach) => openapi::target(binding, reach),
            (Protocol::OpenRpc, Some(ServiceTarget::Http { url, .. })) => {
                format!("method {} at {url}", binding.operation)
            }
            (Protocol::OpenRpc, _) => format!("method {} of service {}", binding.operation, binding.service),
            (Protocol::Mcp, Some(ServiceTarget::Http { url, .. })) => {
                format!("tool {} at {url}", binding.operation)
            }
            (Protocol::Mcp, Some(ServiceTarget::Command { program, .. })) => {
                format!("tool {} of {program}", binding.operation)
            }
            (Protocol::Mcp, _) => format!("tool {} of service {}", binding.operation, binding.service),
        }
    }

    /// Returns what identifies the target of a binding, with a digest of the headers, arguments, variables and folder of
    /// its service as they are configured; empty for a script, whose folder may differ and whose content is pinned.
    pub fn address(&self, offered: &RegisteredBinding) -> String {
        let target = self.target(offered);
        match (offered.binding.protocol, self.services.get(&offered.binding.service)) {
            (Protocol::Script, _) => String::new(),
            (Protocol::Builtin, _) | (_, None) => target,
            (_, Some(service)) => match &service.reach {
                ServiceTarget::Http { headers, .. } => format!("{target} {}", digest_of(&json!(headers))),
                // Arguments and variables may name files relative to the folder in which the program starts.
                ServiceTarget::Command { args, env, directory, .. } => {
                    format!("{target} {}", digest_of(&json!([args, env, directory])))
                }
                ServiceTarget::Script { .. } => target,
            },
        }
    }

    /// Describes the sandbox of a script, or the network distance of a call; `unsandboxed` allows scripts without
    /// isolation.
    pub fn isolation(&self, offered: &RegisteredBinding, unsandboxed: bool) -> String {
        match (
            offered.binding.protocol,
            self.services.get(&offered.binding.service).map(|service| &service.reach),
        ) {
            (Protocol::Script, _) if unsandboxed && script::isolated(&self.sandbox, false).is_err() => {
                "none (--unsandboxed)".to_owned()
            }
            (Protocol::Script, _) => format!("sandbox, {}", self.sandbox.report().summary()),
            (Protocol::Builtin, _) => "in this process, no external access".to_owned(),
            (_, Some(ServiceTarget::Http { url, .. })) => http::distance(url),
            (_, Some(ServiceTarget::Command { program, .. })) => {
                format!("{}: {program}, with only its configured variables", BindingChoice::PROGRAM)
            }
            (_, _) => "not available: its service is not configured".to_owned(),
        }
    }

    /// Replaces `${NAME}` in values from the program's environment.
    fn expanded(
        &self,
        service: &str,
        key: &str,
        values: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, CallObstruction> {
        let one = |(name, text): (&String, &String)| {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some(start) = rest.find("${") {
                let Some(end) = rest[start..].find('}') else { break };
                let variable = &rest[start + 2..start + end];
                let value = (self.environment)(variable).filter(|value| !value.is_empty()).ok_or_else(|| {
                    CallObstruction::unconfigured(format!(
                        "the environment variable {variable}, which `services.{service}.{key}.{name}` names, is not set: set it before the program starts"
                    ))
                })?;
                out.push_str(&rest[..start]);
                out.push_str(&value);
                rest = &rest[start + end + 1..];
            }
            out.push_str(rest);
            Ok((name.clone(), out))
        };
        values.iter().map(one).collect()
    }
}

/// The obstruction for a service that is not configured, with a hint from its description.
fn unconfigured(offered: &RegisteredBinding, described: Option<&Service>) -> CallObstruction {
    let (service, protocol) = (&offered.binding.service, offered.binding.protocol);
    let text = |key: &str| described.and_then(|service| service.settings.get(key)).and_then(Value::as_str);
    let hint = match (protocol, text("base_url").or_else(|| text("url")), text("server")) {
        (Protocol::Mcp, _, Some(server)) => format!(
            "; its registry uses the MCP server `{server}`: `{service}: {{command: …}}` or `{service}: \
                {{url: …}}`"
        ),
        (_, Some(url), _) => format!("; its registry gives the address `{service}: {{url: {url}}}`"),
        _ => String::new(),
    };
    let hint = safe_text::line(&hint);
    CallObstruction::unconfigured(format!(
        "service {service} is not configured: add it under `services:` in the configuration{hint}"
    ))
}

/// Runs `work` until `cancel` fires; the work is then dropped together with its connection.
async fn stopped_by(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<BindingResponse, BindingFailure>>,
) -> Result<BindingResponse, BindingFailure> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(BindingFailure::canceled()),
        done = work => done,
    }
}

/// Returns the beginning of untrusted text, escaped and on one line.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SHOWN_CHARS * 4)]);
    let text = text.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let cut: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    let more = if cut.len() < text.len() || bytes.len() > MAX_SHOWN_CHARS * 4 { "…" } else { "" };
    format!("{}{more}", safe_text::line(&cut))
}
