//! The operation table: every operation of a service, with its route, its MCP tool, the required scope, its arguments
//! and result, and the function that executes it.
//!
//! HTTP, MCP and the remote client translate to and from this table and have no lists of their own, so that they cannot
//! disagree.

mod answers;
pub(crate) mod arguments;
mod capabilities;
mod disclosure;
mod execute;
mod lengths;
mod normalize;
mod operator;
mod plain_schema;
mod principal_limits;
mod proposals;
mod query;
mod redact_paths;
mod returned_run;
mod route;
mod run_observer;
mod runs;
mod service;
mod sessions;
mod skills;
mod value_count;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::{Display, EnumIter, EnumString};
use tokio_util::sync::CancellationToken;

use super::{
    Code, Error, ExecutionOptions, SessionAccess, SharedClient, SharedSessionClient, in_place, new_trace_id,
};
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunId, RunQuery, RunRecord};

pub use crate::work::with_permit;
pub use answers::{
    AgentList, AppendReply, CapabilityList, CheckpointList, ClientProfileList, ClientProfileName, EventList,
    Executed, LegacyStatus, LevelList, LineList, Liveness, NewestEvent, Rescan, SessionList, TargetList,
    ToolReply,
};
pub use disclosure::{may_hold_details, remove_details};
pub use normalize::{difference, normalize_volatile_fields};
pub use plain_schema::simplify;
use principal_limits::CallKind;
pub use principal_limits::{
    LARGE_BODY_BYTES, LARGE_RESPONSE_BYTES, Permit, call_permit, complete_result_permit, event_page_permit,
    large_body_permit, large_read_permit, large_response_permit, large_wait_permit, limited_call,
    response_permit, stream_permit,
};
pub use query::{from_query, to_query};
pub use returned_run::ReturnedRun;
pub(crate) use returned_run::{await_returned_run, release_returned_run};
pub use route::{Method, Route};
pub use run_observer::{AwaitedRun, RunObserver};
pub use value_count::ensure_few_values;

/// Default maximum size of a request body in bytes.
const MAX_BODY: usize = 2 << 20;

/// How old the authentication of a caller may be when it receives data.
pub const MAX_AUTHENTICATION_AGE: Duration = Duration::from_secs(2);

/// Permissions of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, Display, EnumString, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    /// Read skills, runs, sessions and metrics.
    Read,
    /// Launch, attach, control runs, use sessions.
    Run,
    /// Approve and deny.
    Decide,
    /// Read bindings in full, choose them, reset metrics.
    Admin,
}

/// The authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Their name: what runs and decisions are recorded under.
    pub name: String,
    /// Permissions.
    pub scopes: BTreeSet<Scope>,
}

/// The credentials of a caller, which authenticate it again. Their debug form shows no key.
#[async_trait]
pub trait Credentials: std::fmt::Debug + Send + Sync {
    /// Returns the principal that they identify now, with its present scopes.
    ///
    /// # Errors
    /// Returns `unauthorized` if they are no longer valid.
    async fn principal(&self) -> Result<Principal, Error>;
}

/// The context of one call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The caller; `None` without authentication (a service on loopback without keys): then everything is allowed.
    pub principal: Option<Principal>,
    /// What authenticated the principal, if its key can end while the call waits.
    pub credentials: Option<Arc<dyn Credentials>>,
    pub trace_id: String,
    /// Whether the call comes from a process of the local account, which may use every session.
    pub local: bool,
    /// Fires when the caller has disconnected or the service shuts down; pending waits then return.
    pub leave: CancellationToken,
    /// Held until the call ends, if its body is large.
    pub body: Option<Arc<Permit>>,
    /// Receives the run that the call waits for.
    pub observer: RunObserver,
    /// Of one call; dropped when its response is sent.
    pub returned_run: ReturnedRun,
}

impl Caller {
    /// Creates an unauthenticated caller with a new trace id.
    pub fn anyone() -> Self {
        Self {
            principal: None,
            credentials: None,
            local: true,
            trace_id: new_trace_id(),
            leave: CancellationToken::new(),
            body: None,
            observer: RunObserver::default(),
            returned_run: ReturnedRun::default(),
        }
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.principal.as_ref().is_none_or(|principal| principal.scopes.contains(&scope))
    }

    /// Returns the caller with its present scopes: those of a caller that was authenticated before a wait may have been
    /// taken away.
    ///
    /// # Errors
    /// Returns `unauthorized` if its key has ended.
    pub async fn current(&self) -> Result<Self, Error> {
        let Some(credentials) = &self.credentials else { return Ok(self.clone()) };
        let principal = credentials.principal().await?;
        if self.principal.as_ref().is_none_or(|known| known.name != principal.name) {
            return Err(Error::new(Code::Unauthorized, "the API key was removed"));
        }
        Ok(Self { principal: Some(principal), ..self.clone() })
    }

    /// Checks that the caller may filter runs by this text. An invalid text is rejected where it is used.
    ///
    /// # Errors
    /// Returns `forbidden` for details of errors without the scope `admin`.
    pub(super) fn may_filter(&self, text: Option<&str>) -> Result<(), Error> {
        let query = text.and_then(|text| RunQuery::parse(text).ok());
        if query.is_some_and(|query| query.compares_details()) && !self.may(Scope::Admin) {
            let message = "the filter key `detail` needs the scope `admin`; use `error` to filter by the public error text";
            return Err(Error::needs_scope(Scope::Admin, message));
        }
        Ok(())
    }

    /// Describes a missing scope, and what to do.
    fn lacks(&self, scope: Scope) -> String {
        let name = self.principal.as_ref().map_or("", |principal| principal.name.as_str());
        let scopes = self.principal.iter().flat_map(|principal| &principal.scopes);
        let scopes: Vec<String> = scopes.map(ToString::to_string).collect();
        let has = if scopes.is_empty() { "none".to_owned() } else { scopes.join(", ") };
        // The scopes of a process of the local account are an option of that process.
        let (who, advice) = if self.local {
            ("the caller", "restart the server with this scope")
        } else {
            ("the key", "use a key that has it")
        };
        format!(
            "{who} {name} lacks the scope `{scope}`, which this request requires; {advice} (scopes of {name}: {has})"
        )
    }

    /// Returns which sessions the caller may use.
    pub fn session_access(&self) -> SessionAccess {
        match &self.principal {
            Some(principal) if !self.local => SessionAccess::of(&principal.name, self.may(Scope::Admin)),
            Some(principal) => SessionAccess::unrestricted().acting_as(&principal.name),
            None => SessionAccess::unrestricted(),
        }
    }

    /// Returns the name to record: the principal's, else the given one.
    fn name(&self, requested: Option<String>) -> Option<String> {
        self.principal.as_ref().map_or(requested, |principal| Some(principal.name.clone()))
    }

    /// Returns the name under which the caller would decide, and its source; `None` without authentication.
    fn approver(&self) -> Option<(String, String)> {
        let name = self.principal.as_ref()?.name.clone();
        Some((name, KEY_OWNER.to_owned()))
    }
}

/// Source of an approver's name if the caller has a key.
pub(crate) const KEY_OWNER: &str = "principal of the API key";

/// Origin of the name of an approver who is the user of this machine.
pub(crate) const OS_ACCOUNT: &str = "OS account";

/// The clients on which operations are executed.
#[derive(Clone)]
pub struct Service {
    /// Skills and runs.
    pub core: SharedClient,
    pub sessions: SharedSessionClient,
}

/// A call as an operation receives it.
struct CallContext {
    service: Service,
    caller: Caller,
}

impl CallContext {
    /// Returns the session client restricted to the sessions that the caller may use.
    fn sessions(&self) -> SharedSessionClient {
        Arc::clone(&self.service.sessions).with_access(self.caller.session_access())
    }
}

/// The future result of an operation.
pub type ValueFuture = Pending<Value>;

type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

type ValueHandler = Box<dyn Fn(CallContext, Value) -> ValueFuture + Send + Sync>;

/// A result as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializedResult {
    pub json: Vec<u8>,
    /// The run that was waited for and is still executing; its outcome has to be requested later.
    pub continuing_run: Option<RunId>,
    /// Whether the text may contain what only administrators see.
    may_hold_details: bool,
}

impl SerializedResult {
    fn new(answer: &impl Serialize, continuing_run: Option<RunId>) -> Result<Self, Error> {
        let json = serde_json::to_vec(answer).map_err(serialize_error)?;
        Ok(Self { may_hold_details: may_hold_details(&json), json, continuing_run })
    }

    /// Returns whether the text may contain what only administrators see.
    pub fn may_hold_details(&self) -> bool {
        self.may_hold_details
    }

    /// Returns the text that a caller may see; `None` if that is all of it.
    ///
    /// # Errors
    /// Returns `internal_error` if it cannot be written again.
    pub fn redacted_for(&self, caller: &Caller) -> Result<Option<Vec<u8>>, Error> {
        if caller.may(Scope::Admin) || !self.may_hold_details {
            return Ok(None);
        }
        let mut value: Value = serde_json::from_slice(&self.json).map_err(serialize_error)?;
        remove_private(caller, &mut value);
        serde_json::to_vec(&value).map(Some).map_err(serialize_error)
    }
}

/// The future result as JSON text.
pub type JsonFuture = Pending<SerializedResult>;

/// Runs a conversion of a result off the async threads, which large results would block.
async fn convert_blocking<R: Send + 'static, T: Send + 'static>(
    answer: R,
    convert: impl FnOnce(R) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let converting = crate::work::spawn_blocking(move || convert(answer));
    converting.await.map_err(|error| Error::new(Code::InternalError, error.to_string()))?
}

type JsonHandler = Box<dyn Fn(CallContext, Value) -> JsonFuture + Send + Sync>;

/// The behavior of an operation, for clients that decide whether to call it without confirmation (annotations of MCP
/// tools: <https://modelcontextprotocol.io/specification/2025-06-18/schema#toolannotations>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Has no side effects.
    pub read_only: bool,
    /// May destroy data.
    pub destructive: bool,
    /// Repeating the same call has no further effect.
    pub idempotent: bool,
    /// Has effects beyond this service (bindings call others).
    pub open_world: bool,
}

pub struct Operation {
    /// Its name, the same everywhere: `skill.discover`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    pub route: Route,
    /// Older routes with the same meaning.
    pub aliases: Vec<Route>,
    /// Whether it is also an MCP tool.
    pub tool: bool,
    /// The name of that tool, usually that of the operation.
    pub tool_name: &'static str,
    /// The scope that a caller needs, if any.
    pub scope: Option<Scope>,
    /// Its behavior.
    pub hints: Hints,
    /// The HTTP status of success.
    pub status: u16,
    /// Whether it can be followed: over HTTP as server-sent events.
    pub follows: bool,
    /// Whether its result is the same for all callers, so that concurrent requests can share it.
    pub shared: bool,
    /// Whether it ranks many requests.
    pub measures: bool,
    /// Whether it waits for a run, and may return before that has ended.
    pub waits: bool,
    /// Maximum size of a request body in bytes.
    pub max_body: usize,
    /// Page size of a tool call without `limit`: the result has to fit into the model's context and the limits of
    /// clients.
    pub page: Option<usize>,
    /// Whether the result depends on the skills, so that it has to wait for the first scan of the roots.
    needs_catalog: bool,
    /// What its calls count as, in addition to requests.
    counts_as: CallKind,
    arguments: fn(&mut SchemaGenerator) -> Schema,
    answer: fn(&mut SchemaGenerator) -> Schema,
    plan: OnceLock<query::Plan>,
    run: ValueHandler,
    write: JsonHandler,
}

impl Operation {
    fn new<A, R, F, Out>(
        name: &'static str,
        route: Route,
        scope: impl Into<Option<Scope>>,
        summary: &'static str,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
        F: Fn(CallContext, A) -> Out + Send + Sync + Copy + 'static,
        Out: Future<Output = Result<R, Error>> + Send + 'static,
    {
        Self::build(name, route, scope.into(), summary, run, |_: &R| None)
    }

    /// Creates an operation that returns when a run has ended, or earlier if the caller disconnects or the service
    /// shuts down.
    fn waiting<A, R, F, Out>(
        name: &'static str,
        route: Route,
        scope: Scope,
        summary: &'static str,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + AsRef<RunRecord> + Send + 'static,
        F: Fn(CallContext, A) -> Out + Send + Sync + Copy + 'static,
        Out: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let operation = Self::build(name, route, Some(scope), summary, run, |answer: &R| {
            let run: &RunRecord = answer.as_ref();
            (run.state != RunState::Completed).then(|| run.id.clone())
        });
        Self { waits: true, ..operation }
    }

    fn build<A, R, F, Out>(
        name: &'static str,
        route: Route,
        scope: Option<Scope>,
        summary: &'static str,
        run: F,
        continuing_run: fn(&R) -> Option<RunId>,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
        F: Fn(CallContext, A) -> Out + Send + Sync + Copy + 'static,
        Out: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let reads = route.method == Method::Get;
        Self {
            name,
            summary,
            route,
            aliases: Vec::new(),
            tool: false,
            tool_name: name,
            scope,
            hints: Hints { read_only: reads, idempotent: reads, ..Hints::default() },
            status: 200,
            follows: false,
            shared: false,
            measures: false,
            waits: false,
            max_body: MAX_BODY,
            page: None,
            needs_catalog: true,
            counts_as: CallKind::Request,
            plan: OnceLock::new(),
            // The object itself, not a reference to it, because common fields are added to every body.
            arguments: A::json_schema,
            answer: |generator| generator.subschema_for::<R>(),
            run: Box::new(move |context, arguments| {
                Box::pin(async move {
                    let answer = run(context, read(arguments)?).await?;
                    convert_blocking(answer, |answer| serde_json::to_value(answer).map_err(serialize_error))
                        .await
                })
            }),
            write: Box::new(move |context, arguments| {
                Box::pin(async move {
                    let answer = run(context, read(arguments)?).await?;
                    convert_blocking(answer, move |answer| {
                        SerializedResult::new(&answer, continuing_run(&answer))
                    })
                    .await
                })
            }),
        }
    }

    fn aliases(mut self, aliases: impl IntoIterator<Item = Route>) -> Self {
        self.aliases = aliases.into_iter().collect();
        self
    }

    /// Makes it an MCP tool.
    fn tool(mut self) -> Self {
        self.tool = true;
        self
    }

    /// Makes it an MCP tool with a different name.
    fn tool_named(self, tool_name: &'static str) -> Self {
        Self { tool_name, ..self }.tool()
    }

    fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Marks it as read-only, although its arguments are in a body.
    fn read_only(self) -> Self {
        self.hints(Hints { read_only: true, idempotent: true, ..Hints::default() })
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Marks it as a list that can be followed.
    fn follows(mut self) -> Self {
        self.follows = true;
        self
    }

    /// Sets the maximum size of its body.
    fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Marks it as one that ranks many requests.
    fn measures(mut self) -> Self {
        self.measures = true;
        self
    }

    /// Marks its result as large and identical for all callers.
    fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Sets the page size of tool calls.
    fn pages(mut self, items: usize) -> Self {
        self.page = Some(items);
        self
    }

    /// Makes it available while a service that has just started still reads its skills: it is about the process, or
    /// about existing runs.
    fn without_catalog(mut self) -> Self {
        self.needs_catalog = false;
        self
    }

    /// Marks it as a read of complete runs or sessions, or of thousands of runs; a change of a session reads it, too.
    fn large_read(mut self) -> Self {
        self.counts_as = CallKind::LargeRead;
        self
    }

    /// Marks it as one that reads the catalog as clients do.
    fn client_view(mut self) -> Self {
        self.counts_as = CallKind::ClientView;
        self
    }

    /// Marks it as one that copies a run.
    fn fork(mut self) -> Self {
        self.counts_as = CallKind::Fork;
        self
    }

    /// Marks it as one that assigns a run.
    fn assignment(mut self) -> Self {
        self.counts_as = CallKind::Assignment;
        self
    }

    fn plan(&self) -> &query::Plan {
        self.plan.get_or_init(|| query::Plan::of(self))
    }

    /// Returns whether it has an argument of this name.
    pub fn takes(&self, argument: &str) -> bool {
        self.plan().has(argument)
    }

    /// Returns the JSON schema of the arguments, including path parameters; definitions are added to the generator.
    /// Bodies may also name the trace id of the call.
    pub fn arguments(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = (self.arguments)(generator);
        if self.takes_body()
            && let Some(object) = schema.as_object_mut()
            && let Some(properties) = object.entry("properties").or_insert_with(|| json!({})).as_object_mut()
        {
            properties.entry(TRACE_ID).or_insert_with(trace_schema);
        }
        schema
    }

    /// Like [`Self::arguments`], with the default maximum of every text and list. Tools do without: their schemas are in
    /// the context of a model.
    pub fn bounded_arguments(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = self.arguments(generator).to_value();
        lengths::add_maxima(&mut schema);
        // A JSON object or boolean always is a schema.
        Schema::try_from(schema).unwrap_or_default()
    }

    /// Returns whether arguments that are not in the path are sent in a body.
    pub fn takes_body(&self) -> bool {
        !self.route.asks_by_query()
    }

    /// Returns the caller with the trace id from the arguments, and removes it from them unless the operation itself
    /// accepts it.
    fn traced(&self, caller: &Caller, arguments: &mut Value) -> Result<Caller, Error> {
        let mut caller = caller.clone();
        if let Some(arguments) = arguments.as_object_mut().filter(|_| self.takes_body()) {
            let launch = self.plan().launches();
            let named =
                if launch { arguments.get(TRACE_ID).cloned() } else { arguments.shift_remove(TRACE_ID) };
            match named {
                None | Some(Value::Null) => {}
                Some(Value::String(id)) => {
                    if !launch {
                        let options = ExecutionOptions { trace_id: Some(id.clone()), ..Default::default() };
                        options.check()?;
                    }
                    caller.trace_id = id;
                }
                // A launch validates its trace id itself.
                Some(_) if launch => {}
                Some(other) => {
                    let message = format!("`{TRACE_ID}` is {other}; expected a string");
                    return Err(Error::new(Code::InvalidRequest, message));
                }
            }
        }
        Ok(caller)
    }

    /// Returns the JSON schema of the result; definitions are added to the generator.
    pub fn answer(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.answer)(generator)
    }

    /// Executes the operation for an authorized caller. Errors name no path of this machine that the caller did not
    /// name.
    ///
    /// # Errors
    /// Returns `forbidden` for a caller without the scope; `invalid_request` for invalid arguments, naming the field;
    /// and the errors of the operation.
    pub async fn call(&self, service: &Service, caller: &Caller, arguments: Value) -> Result<Value, Error> {
        let run = |context, arguments| (self.run)(context, arguments);
        let (caller, mut answer) = self.guarded(service, caller, arguments, run).await?;
        if !caller.may(Scope::Admin) {
            in_place(|| remove_private(&caller, &mut answer));
        }
        Ok(answer)
    }

    /// Like [`Self::call`] with a result as JSON text: large results are serialized directly, without building a value.
    pub async fn call_as_text(
        &self,
        service: &Service,
        caller: &Caller,
        arguments: Value,
    ) -> Result<SerializedResult, Error> {
        let write = |context, arguments| (self.write)(context, arguments);
        let (caller, answer) = self.guarded(service, caller, arguments, write).await?;
        let redacted = answer.redacted_for(&caller)?;
        Ok(SerializedResult { json: redacted.unwrap_or(answer.json), ..answer })
    }

    /// Like [`Self::call_as_text`] for a result that is the same for all callers: `share` executes the call once for
    /// concurrent requests with the same key. Permission, limits and errors remain those of each caller. Returns the
    /// caller as it is after the call.
    pub async fn call_shared<T, Out>(
        &self,
        service: &Service,
        caller: &Caller,
        arguments: Value,
        share: impl FnOnce(String, JsonFuture) -> Out,
    ) -> Result<(Caller, T), Error>
    where
        T: Send + 'static,
        Out: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let write = |context, arguments: Value| {
            let key = format!("{} {arguments}", self.name);
            share(key, (self.write)(context, arguments))
        };
        self.guarded(service, caller, arguments, write).await
    }

    /// Executes a call under the limits of its caller, who is authenticated again before and after it.
    async fn guarded<T, Out>(
        &self,
        service: &Service,
        caller: &Caller,
        mut arguments: Value,
        run: impl FnOnce(CallContext, Value) -> Out,
    ) -> Result<(Caller, T), Error>
    where
        T: Send + 'static,
        Out: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let caller_input = redact_paths::CallerInput::of(&arguments);
        let caller = self.admit(service, caller, &mut arguments).await?;
        let permit = principal_limits::operation_permit(self, &caller, &arguments).await?;
        // The body of the request, the catalog and the permit were waited for.
        let caller = self.readmit(caller).await?;
        let started = Instant::now();
        let call = run(CallContext { service: service.clone(), caller: caller.clone() }, arguments);
        let principal = caller.principal.as_ref().map(|principal| principal.name.clone());
        let call = caller.returned_run.clone().scope(principal, call);
        // A measurement ends when its caller leaves.
        let answer = principal_limits::run(permit, self.measures, call).await;
        self.log(&caller, started, answer.as_ref().err());
        let caller = self.after_wait(caller, started).await?;
        match answer {
            Ok(answer) => Ok((caller, answer)),
            Err(error) => Err(refused(service, &caller, error, &caller_input).await),
        }
    }

    /// Rejects unauthorized callers, waits for the catalog if it is needed, and returns the caller with the trace id of
    /// the call. A failure is logged.
    async fn admit(
        &self,
        service: &Service,
        caller: &Caller,
        arguments: &mut Value,
    ) -> Result<Caller, Error> {
        let started = Instant::now();
        let admitted = async {
            self.may(caller)?;
            if self.needs_catalog {
                service.core.wait_for_catalog().await?;
            }
            let caller = self.traced(caller, arguments)?;
            lengths::check(self.name, arguments)?;
            Ok(caller)
        };
        admitted.await.map_err(|mut error: Error| {
            redact_paths::shorten(&mut error.message);
            self.log(caller, started, Some(&error));
            error
        })
    }

    /// Authenticates the caller again before it acts.
    async fn readmit(&self, caller: Caller) -> Result<Caller, Error> {
        let caller = caller.current().await?;
        self.may(&caller)?;
        Ok(caller)
    }

    /// Authenticates the caller again before it receives what it waited for. The result of a change is not withheld, so
    /// that it is not repeated.
    async fn after_wait(&self, caller: Caller, started: Instant) -> Result<Caller, Error> {
        let waited = (self.hints.read_only || self.waits) && started.elapsed() >= MAX_AUTHENTICATION_AGE;
        if waited { self.readmit(caller).await } else { Ok(caller) }
    }

    /// Logs each call with its trace id; successful read-only calls at debug level.
    fn log(&self, caller: &Caller, started: Instant, failed: Option<&Error>) {
        let (operation, trace_id) = (self.name, caller.trace_id.as_str());
        let by = caller.principal.as_ref().map(|principal| principal.name.as_str());
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match failed {
            Some(error) => tracing::info!(operation, trace_id, by, ms, code = %error.code, "request failed"),
            None if self.hints.read_only => tracing::debug!(operation, trace_id, by, ms, "request"),
            None => tracing::info!(operation, trace_id, by, ms, "request"),
        }
    }

    /// Checks that a caller may call it.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the missing scope.
    pub fn may(&self, caller: &Caller) -> Result<(), Error> {
        if let Some(scope) = self.scope.filter(|scope| !caller.may(*scope)) {
            return Err(Error::needs_scope(scope, caller.lacks(scope)));
        }
        Ok(())
    }
}

/// Removes what a caller without the scope `admin` may not see.
fn remove_private(caller: &Caller, answer: &mut Value) {
    remove_details(answer);
    if !caller.may(Scope::Decide) {
        disclosure::hide_bindings(answer);
        disclosure::hide_files(answer);
    }
}

/// Returns an error in the form that this caller may see.
async fn refused(
    service: &Service,
    caller: &Caller,
    error: Error,
    caller_input: &redact_paths::CallerInput,
) -> Error {
    let mut error = match error {
        error if caller.may(Scope::Admin) => error,
        error if error.message.contains("postgres://") => {
            service::without_place(disclosure::without_details(error))
        }
        error => disclosure::without_details(error),
    };
    redact_paths::shorten(&mut error.message);
    let preview = error
        .reason
        .as_mut()
        .and_then(|reason| reason.get_mut(redact_paths::DECISION_FIELD)?.as_object_mut());
    if let Some(preview) = preview {
        // It is about the account of this process.
        preview.remove("not_approver");
        if let Some(approver) = caller.approver() {
            preview.insert("approver".to_owned(), json!(approver));
        }
    }
    let mut error = redact_paths::redact_error(service, error, caller_input).await;
    // It may quote notes and names that others wrote, which must not look like lines of this program.
    error.message = safe_text::line(&error.message).into_owned();
    error
}

/// Argument of every body with the trace id of the call.
pub const TRACE_ID: &str = "trace_id";

fn trace_schema() -> Value {
    json!({
        "description": "Trace id of this call.",
        "type": ["string", "null"],
        "pattern": "^[!-~]{1,255}$",
        "default": null,
    })
}

/// Arguments that are free text and may contain a NUL character.
const TEXTS: [&str; 3] = ["content", "intent", "text"];

/// Returns the argument with an invalid NUL character, if any. Values of inputs, payloads and results are checked where
/// they enter a run.
fn with_nul(arguments: &Value) -> Option<&str> {
    let has_nul = |value: &Value| value.as_str().is_some_and(|text| text.contains('\0'));
    let found = arguments.as_object()?.iter().find(|(name, value)| {
        !TEXTS.contains(&name.as_str())
            && (has_nul(value) || value.as_array().is_some_and(|items| items.iter().any(has_nul)))
    });
    found.map(|(name, _)| name.as_str())
}

/// Deserializes arguments; null counts as an empty object.
fn read<A: DeserializeOwned>(arguments: Value) -> Result<A, Error> {
    let arguments = if arguments.is_null() { Value::Object(serde_json::Map::new()) } else { arguments };
    // PostgreSQL cannot store NUL, so an id, a name or a filter with one is rejected for every store.
    if let Some(name) = with_nul(&arguments) {
        return Err(Error::new(Code::InvalidRequest, format!("`{name}`: a NUL character is not allowed")));
    }
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let place = error.path().to_string();
        Error::new(Code::InvalidRequest, argument_message(&place, &error.into_inner().to_string()))
    })
}

/// Rewords an error of the deserializer about an argument (`.`: the whole request) with the names of JSON's types.
fn argument_message(place: &str, error: &str) -> String {
    let mistake = ["invalid type: ", "invalid value: "].iter().find_map(|kind| error.strip_prefix(kind));
    let Some((actual, expected)) = mistake.and_then(|mistake| mistake.rsplit_once(", expected ")) else {
        return if place == "." { error.to_owned() } else { format!("`{place}`: {error}") };
    };
    let actual = match actual {
        "map" => "an object",
        "sequence" => "a list",
        "null" | "unit value" => "null",
        // For example: string "x", integer `5`, boolean `true`.
        other => {
            let kinds = ["string ", "integer ", "boolean ", "floating point ", "character "];
            let value = kinds.iter().find_map(|kind| other.strip_prefix(kind));
            value.map_or(other, |value| value.trim_matches('`'))
        }
    };
    let subject = if place == "." { "the request".to_owned() } else { format!("`{place}`") };
    let is_unsigned = matches!(expected, "usize" | "u8" | "u16" | "u32" | "u64");
    // The type of an argument does not tell whether 0 is allowed.
    if is_unsigned && actual.starts_with('-') {
        return format!("{subject} is {actual}; negative numbers are not allowed");
    }
    let expected = match expected {
        "usize" | "u8" | "u16" | "u32" | "u64" | "isize" | "i8" | "i16" | "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        other => other.strip_prefix("struct ").map_or(other, |_| "an object"),
    };
    format!("{subject} is {actual}; expected {expected}")
}

fn serialize_error(error: serde_json::Error) -> Error {
    Error::new(Code::InternalError, format!("cannot write the response: {error}"))
}

pub fn tool(name: &str) -> Option<&'static Operation> {
    operations().iter().find(|operation| operation.tool && operation.tool_name == name)
}

/// Returns every operation, by subject.
pub fn operations() -> &'static [Operation] {
    static ALL: LazyLock<Vec<Operation>> = LazyLock::new(|| {
        let mut all = service::operations();
        all.extend(skills::operations());
        all.extend(proposals::operations());
        all.extend(capabilities::operations());
        all.extend(runs::operations());
        all.extend(operator::operations());
        all.extend(sessions::operations());
        all
    });
    &ALL
}

pub fn operation(name: &str) -> Option<&'static Operation> {
    operations().iter().find(|operation| operation.name == name)
}

#[cfg(test)]
mod tests;
