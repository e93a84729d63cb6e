//! The broker: selects the binding that executes a capability, calls it, and falls back to others where that is safe.
//!
//! The user's choice (`bindings:` in the configuration, or `skills activate`) comes first, else the default; then its
//! chain of fallbacks. A binding is skipped if its conformance level is too low, it is not trusted or not configured,
//! or its circuit breaker is open. A call that may have had an effect that must not be repeated is never passed to a
//! fallback.

mod breaker;
mod decide;
mod explain;
mod pins;
mod validate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::artifacts::Artifacts;
use super::binding::{BindingCall, BindingContext, BindingFailure, Effect, request};
use super::call::{
    Call, CallConditions, CallError, CallFailure, Caller, Explanation, FailedAttempt, FailureKind,
    PresentBindings, PublicFailure, Reply, ScriptExit,
};
use super::capabilities::{Capabilities, RegisteredBinding};
use skills_base::sync::RwLockExt as _;
use skills_model::ApprovalReason;
use skills_sandbox::{Contents, Limits, Sandbox};
use skills_skill::contract::{Capability, Endpoint, Protocol};

use breaker::Breakers;
pub use breaker::Clock;
pub use decide::CallObstruction;
use decide::{Decision, decide};
use pins::{Edit, Pins};
pub(super) use pins::{Pin, is_complete};

/// Checks whether content that was read from a bundle or registry folder may be executed; the error says why not and
/// what to do.
pub type BundleCheck = Arc<dyn Fn(&Path, &Contents) -> Result<(), BundleRefusal> + Send + Sync>;

/// Why nothing of a bundle may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleRefusal {
    /// It is not trusted, or differs from what was trusted.
    Untrusted(String),
    /// The policy denies it.
    Denied(String),
}

impl From<BundleRefusal> for CallObstruction {
    fn from(refusal: BundleRefusal) -> Self {
        match refusal {
            BundleRefusal::Untrusted(why) => Self::new(CallFailure::Untrusted, why),
            BundleRefusal::Denied(why) => Self::new(CallFailure::Forbidden, why),
        }
    }
}

/// Looks up an environment variable of this program.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// User configuration of the broker.
#[derive(Clone)]
pub struct BrokerSettings {
    /// Endpoints by service. A service that is not configured here is never contacted, whatever a bundle says.
    pub services: BTreeMap<String, Endpoint>,
    /// Binding to use instead of the default, by capability.
    pub overrides: BTreeMap<String, String>,
    /// Resource limits of scripts; their time limit is the step's.
    pub limits: Limits,
    /// Resolves `${NAME}` in headers and variables of services.
    pub environment: Environment,
    /// Clock of the circuit breakers.
    pub clock: Clock,
}

impl Default for BrokerSettings {
    /// No services or overrides, the program's own environment, the real clock.
    fn default() -> Self {
        Self {
            services: BTreeMap::new(),
            overrides: BTreeMap::new(),
            limits: Limits::default(),
            environment: Arc::new(|name| std::env::var(name).ok()),
            clock: Arc::new(Instant::now),
        }
    }
}

/// Executes capabilities through their bindings.
pub struct Broker {
    catalog: RwLock<Arc<Capabilities>>,
    overrides: RwLock<Arc<BTreeMap<String, String>>>,
    check: BundleCheck,
    breakers: Breakers,
    context: Arc<BindingContext>,
    pins: Pins,
}

impl Broker {
    /// Creates a broker for a catalog.
    pub fn new(
        capabilities: Arc<Capabilities>,
        settings: BrokerSettings,
        sandbox: Sandbox,
        check: BundleCheck,
        artifacts: Arc<Artifacts>,
    ) -> Self {
        let BrokerSettings { services, overrides, limits, environment, clock } = settings;
        Self {
            catalog: RwLock::new(capabilities),
            overrides: RwLock::new(Arc::new(overrides)),
            check: Arc::clone(&check),
            breakers: Breakers::new(clock),
            context: Arc::new(BindingContext::new(services, limits, environment, sandbox, artifacts, check)),
            pins: Pins::default(),
        }
    }

    /// Returns the current catalog.
    pub fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(&self.catalog.read_locked())
    }

    /// Replaces the catalog, as after a change on disk. Calls in progress continue with the previous one.
    pub fn replace(&self, capabilities: Arc<Capabilities>) {
        *self.catalog.write_locked() = capabilities;
    }

    /// Returns the folders of the bindings that could execute a capability now under these conditions.
    pub fn folders_of(&self, capability: &str, conditions: &CallConditions) -> Vec<PathBuf> {
        let decision = self.decide(&self.capabilities(), capability, conditions);
        let callable = decision.chain.iter().filter(|choice| choice.obstacle.is_none());
        callable.map(|choice| choice.offered.place.root().to_owned()).collect()
    }

    /// Replaces the overrides, as after `skills activate`.
    pub fn set_overrides(&self, overrides: BTreeMap<String, String>) {
        *self.overrides.write_locked() = Arc::new(overrides);
    }

    fn decide(&self, catalog: &Arc<Capabilities>, capability: &str, conditions: &CallConditions) -> Decision {
        self.decision_context(catalog).decide(capability, conditions)
    }

    fn decision_context(&self, catalog: &Arc<Capabilities>) -> DecisionContext {
        DecisionContext {
            catalog: Arc::clone(catalog),
            overrides: Arc::clone(&self.overrides.read_locked()),
            check: Arc::clone(&self.check),
            binding: Arc::clone(&self.context),
        }
    }

    /// Runs [`Self::decide`] on a blocking thread if it has to read bundles: a trust check may read all files of a
    /// bundle.
    async fn decide_blocking(&self, catalog: &Arc<Capabilities>, call: &Call) -> Result<Decision, CallError> {
        let (id, conditions) = (&call.capability.id, &call.conditions);
        let part_of_program = |offered: &Arc<RegisteredBinding>| {
            offered.place.shipped && offered.binding.protocol == Protocol::Builtin
        };
        if catalog.bindings_of(id).iter().all(part_of_program) {
            return Ok(self.decide(catalog, id, conditions));
        }
        let (context, id, conditions) = (self.decision_context(catalog), id.clone(), conditions.clone());
        let decided = tokio::task::spawn_blocking(move || context.decide(&id, &conditions));
        decided.await.map_err(|error| CallError::new(CallFailure::RuntimeError, error.to_string()))
    }

    fn pin(&self, offered: &RegisteredBinding) -> Pin {
        self.pins.of(offered, &self.context.services)
    }

    /// Makes one attempt through one binding, from the request to validated outputs.
    async fn attempt(
        &self,
        job: &BindingCall<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, BindingFailure> {
        let binding = &job.offered.binding;
        let answer = self.context.execute(job, cancel).await?;
        let modes = ["response_mode", "response_format"];
        let texts =
            modes.iter().any(|key| binding.metadata.get(*key).and_then(|mode| mode.as_str()) == Some("json"));
        let outputs = request::outputs(&binding.response, answer.response, texts)
            .map_err(|why| BindingFailure::answer(format!("{}: {why}", job.target)))?;
        validate::outputs(&job.call.capability, binding.conformance, &outputs).map_err(|why| {
            BindingFailure::answer(format!(
                "{}: the response does not match `{}` at conformance level {}: {why}",
                job.target, binding.capability, binding.conformance
            ))
        })?;
        Ok(Reply {
            outputs,
            binding: binding.id.clone(),
            tried: Vec::new(),
            isolation: answer.isolation,
            artifacts: answer.artifacts,
        })
    }
}

#[async_trait]
impl Caller for Broker {
    async fn call(&self, mut call: Call, cancel: CancellationToken) -> Result<Reply, CallError> {
        let deadline = Instant::now() + call.timeout;
        call.inputs = validate::inputs(&call.capability, &call.inputs).map_err(|why| {
            let message = format!("invalid inputs for `{}`: {why}", call.capability.id);
            CallError::new(CallFailure::InvalidRequest, message)
        })?;
        let catalog = self.capabilities();
        let decision = self.decide_blocking(&catalog, &call).await?;
        if let Some(CallObstruction { code, message }) = decision.refused {
            return Err(CallError::new(code, message));
        }
        let values = request::TemplateValues::of(&call);
        let person = call.conditions.ordered_by.as_deref().unwrap_or_default();
        let mut tried: Vec<FailedAttempt> = Vec::new();
        let mut failed: Option<(String, BindingFailure)> = None;
        for choice in &decision.chain {
            let id = &choice.offered.binding.id;
            let mut pass_over = |failure: BindingFailure| {
                tried.push(FailedAttempt { binding: id.clone(), reason: failure.message.clone() });
                // The failure of an attempt is more informative than the reason why another one was not made.
                if failed.is_none() || failure.effect == Effect::Possible || failure.counts {
                    failed = Some((id.clone(), failure));
                }
            };
            if let Some(CallObstruction { code, message }) = &choice.obstacle {
                pass_over(BindingFailure::before(*code, message.clone()));
                continue;
            }
            if call.pins.as_ref().is_some_and(|pins| choice.is_added(pins)) {
                let target = self.context.target(&choice.offered);
                let message = format!(
                    "the binding `{id}` ({target}) did not exist when the run was launched, and is not approved; \
                     resume the run to review it"
                );
                pass_over(BindingFailure::before(CallFailure::SkillChanged, message));
                continue;
            }
            let permit = match self.breakers.enter(id, person) {
                Ok(permit) => permit,
                Err(state) => {
                    let message = format!("`{id}` is skipped, its circuit breaker is {state}");
                    let failure = BindingFailure::before(CallFailure::UpstreamFailure, message);
                    pass_over(BindingFailure { kind: Some(FailureKind::BreakerOpen), ..failure });
                    continue;
                }
            };
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                pass_over(BindingFailure::step_timeout(call.timeout));
                break;
            }
            let target = self.context.target(&choice.offered);
            let job =
                BindingCall { offered: &choice.offered, call: &call, values: &values, remaining, target };
            match self.attempt(&job, &cancel).await {
                Ok(reply) => {
                    permit.succeeded();
                    return Ok(Reply { tried, ..reply });
                }
                Err(failure) => {
                    // An attempt that starts late, on a busy machine, is stopped before its own timeout expires.
                    let is_late = failure.code == CallFailure::Canceled && Instant::now() >= deadline;
                    let failure = if is_late { job.out_of_time(failure) } else { failure };
                    if failure.counts {
                        permit.failed();
                    } else {
                        drop(permit);
                    }
                    let last = matches!(failure.code, CallFailure::Canceled | CallFailure::StepTimeout);
                    let unsafe_now = failure.effect == Effect::Possible && !repeatable(&call.capability);
                    pass_over(failure);
                    if last || unsafe_now {
                        break;
                    }
                }
            }
        }
        Err(chain_failure(&decision, &call.capability, &self.context, tried, failed))
    }

    fn pins(&self, capability: &str) -> BTreeMap<String, String> {
        let catalog = self.capabilities();
        let pinned = catalog.bindings_of(capability).iter().filter(|offered| is_pinned(offered));
        let digests = |offered: &Arc<RegisteredBinding>| {
            let pin = self.pin(offered);
            pin.parts.into_iter().chain([(offered.binding.id.clone(), pin.digest)])
        };
        pinned.flat_map(digests).chain(definition_pin(&catalog, capability)).collect()
    }

    fn present_bindings(
        &self,
        capability: &Capability,
        conditions: &CallConditions,
        launched: &BTreeMap<String, String>,
    ) -> PresentBindings {
        let catalog = self.capabilities();
        let decision = self.decide(&catalog, &capability.id, conditions);
        let (mut what, mut now) = (Vec::new(), BTreeMap::new());
        if let Some((key, digest)) = definition_pin(&catalog, &capability.id)
            && launched.get(&key).is_some_and(|before| *before != digest)
        {
            what.push(format!("the definition of {key} changed since the launch"));
            now.insert(key, digest);
        }
        let called = || decision.chain.iter().filter(|choice| choice.obstacle.is_none());
        for choice in called().filter(|choice| is_pinned(&choice.offered)) {
            let id = &choice.offered.binding.id;
            let (before, present) = (launched.get(id), self.pin(&choice.offered));
            // By its id: addresses are not shown to everyone who may read the run, or sent to webhooks.
            match before {
                Some(before) if *before == present.digest => continue,
                Some(before) if !is_complete(before) => what.push(format!(
                    "the run was launched by an earlier version, which recorded no digests of the files \
                        that the binding {id} can read"
                )),
                Some(_) => {
                    let edits = present.edits(launched);
                    if edits.is_empty() {
                        what.push(format!("the binding {id} or a file next to it changed since the launch"));
                    }
                    for Edit { what: edited, part, now: content } in edits {
                        what.push(edited);
                        now.insert(part, content);
                    }
                }
                None if !choice.is_added(launched) => continue,
                None => what.push(format!("the binding {id} did not exist when the run was launched")),
            }
            now.insert(id.clone(), present.digest);
        }
        let reason =
            || ApprovalReason::Changed { what: what.join("; "), now: now.clone(), call: None, besides: None };
        let identify = |choice: &decide::Choice| {
            (choice.offered.binding.id.clone(), self.context.address(&choice.offered))
        };
        PresentBindings {
            callable: called().map(identify).collect(),
            changed: (!now.is_empty()).then(reason),
        }
    }

    fn obstacle(&self, capability: &Capability, conditions: &CallConditions) -> Option<CallError> {
        let catalog = self.capabilities();
        let decision = self.decide(&catalog, &capability.id, conditions);
        if let Some(CallObstruction { code, message }) = decision.refused {
            return Some(CallError::new(code, message));
        }
        let first = decision.chain.first()?;
        let CallObstruction { code, message } = first.obstacle.as_ref()?;
        if decision.chain.iter().any(|choice| choice.obstacle.is_none()) {
            return None;
        }
        let binding = &first.offered.binding.id;
        let message = format!("`{}` (binding `{binding}`): {message}", capability.id);
        let failure = BindingFailure::before(*code, message.clone());
        let public = public(&capability.id, &first.offered, &self.context, &failure);
        let binding = Some(binding.clone());
        Some(CallError { binding, public: Some(Box::new(public)), ..CallError::new(*code, message) })
    }

    fn explain(&self, capability: &Capability, conditions: &CallConditions) -> Explanation {
        let catalog = self.capabilities();
        let decision = self.decide(&catalog, &capability.id, conditions);
        explain::explain(&capability.id, conditions, &decision, &self.context, &self.breakers)
    }
}

/// What a decision depends on, which may be made on another thread.
struct DecisionContext {
    catalog: Arc<Capabilities>,
    overrides: Arc<BTreeMap<String, String>>,
    check: BundleCheck,
    binding: Arc<BindingContext>,
}

impl DecisionContext {
    fn decide(&self, capability: &str, conditions: &CallConditions) -> Decision {
        decide(capability, conditions.conformance, &self.catalog, &self.overrides, &|offered| {
            refused(&self.check, &self.catalog, offered)
                .or_else(|| self.binding.obstacle(offered, &self.catalog, conditions.unsandboxed))
        })
    }
}

/// Returns why a binding may not be called because of its bundle.
fn refused(
    check: &BundleCheck,
    catalog: &Capabilities,
    offered: &RegisteredBinding,
) -> Option<CallObstruction> {
    if offered.place.shipped {
        return None;
    }
    let read = catalog.source(&offered.binding.location).map(|(_, read)| read).unwrap_or_default();
    check(offered.place.root(), &read).err().map(CallObstruction::from)
}

impl decide::Choice {
    /// Returns whether a binding was added after a launch with these digests, other than by a user of this machine who
    /// selected it for the capability.
    fn is_added(&self, launched: &BTreeMap<String, String>) -> bool {
        let is_known = launched.contains_key(&self.offered.binding.id);
        is_pinned(&self.offered) && !is_known && self.place != "override"
    }
}

/// Returns whether a binding can be edited while a run waits, which excludes the ones that ship with this program.
fn is_pinned(offered: &RegisteredBinding) -> bool {
    !offered.place.shipped && offered.binding.protocol != Protocol::Builtin
}

/// Returns the key and the digest that pin the definition of a capability; `None` if it ships with this program, or if
/// the pins of its scripts cover it because it is part of their bundles.
fn definition_pin(catalog: &Capabilities, capability: &str) -> Option<(String, String)> {
    let (place, content) = catalog.source(&catalog.capability(capability)?.location)?;
    let is_covered = |offered: &Arc<RegisteredBinding>| {
        offered.binding.protocol == Protocol::Script && offered.place.root() == place.root()
    };
    let mut pinned = catalog.bindings_of(capability).iter().filter(|offered| is_pinned(offered)).peekable();
    if place.shipped || (pinned.peek().is_some() && pinned.all(is_covered)) {
        return None;
    }
    Some((format!("capability:{capability}"), content.into_values().next()?))
}

/// Returns whether executing a capability twice has no further effect.
fn repeatable(capability: &Capability) -> bool {
    let properties = &capability.properties;
    !properties.side_effects || properties.idempotent || properties.deterministic
}

/// Builds the failure of a chain: that of the last binding that was attempted, else the first obstruction.
fn chain_failure(
    decision: &Decision,
    capability: &Capability,
    context: &BindingContext,
    mut tried: Vec<FailedAttempt>,
    failed: Option<(String, BindingFailure)>,
) -> CallError {
    let Some((binding, failure)) = failed else {
        let message = format!("no binding implements `{}`", capability.id);
        return CallError::new(CallFailure::InvalidConfiguration, message);
    };
    let mut message = format!("`{}` (binding `{binding}`): {}", capability.id, failure.message);
    let at = tried.iter().position(|other| other.binding == binding);
    if failure.effect == Effect::Possible && !repeatable(capability) {
        let at = decision.chain.iter().position(|choice| choice.offered.binding.id == binding);
        if let Some(next) = at.and_then(|at| decision.chain.get(at + 1)) {
            message = format!(
                "{message}; its fallback `{}` was not tried, because this call may already have had side \
                    effects",
                next.offered.binding.id
            );
        }
    }
    if let Some(at) = at {
        tried.remove(at);
    }
    if !tried.is_empty() {
        let others: Vec<String> =
            tried.iter().map(|other| format!("`{}` ({})", other.binding, other.reason)).collect();
        message = format!("{message}; also in its chain: {}", others.join(", "));
    }
    let chosen = decision.chain.iter().find(|choice| choice.offered.binding.id == binding);
    let public = chosen.map(|choice| Box::new(public(&capability.id, &choice.offered, context, &failure)));
    CallError {
        code: failure.code,
        message,
        binding: Some(binding),
        tried,
        stderr: failure.stderr,
        reason: failure.reason.map(Box::new),
        public,
    }
}

/// Builds the failure shown to everyone who may see the run: without the target of the binding and the content of its
/// response. Messages of scripts and built-in functions about their inputs are included.
fn public(
    capability: &str,
    offered: &RegisteredBinding,
    context: &BindingContext,
    failure: &BindingFailure,
) -> PublicFailure {
    let kind = failure.kind();
    let is_local = matches!(offered.binding.protocol, Protocol::Script | Protocol::Builtin);
    let about_call =
        matches!(kind, FailureKind::InvalidAnswer | FailureKind::InvalidInputs | FailureKind::Timeout);
    let problem = match failure.status {
        _ if is_local && about_call => failure.message.replace(&context.target(offered), "its script"),
        Some(status) => format!("{} ({status})", kind.sentence()),
        None => kind.sentence().to_owned(),
    };
    PublicFailure {
        kind,
        capability: capability.to_owned(),
        status: failure.status,
        exit: failure.exit.clone().map(|exit| ScriptExit {
            stderr_line: exit.stderr_line.map(|line| line.replace(&context.target(offered), "its script")),
            ..exit
        }),
        message: format!("`{capability}`: {problem}"),
    }
}
