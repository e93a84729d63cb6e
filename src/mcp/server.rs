//! The server of one connection: its capabilities, and the dispatch of requests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetSkillRequestParams, GetSkillResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListSkillsResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
    ReadResourceResponse, Reference, RequestMetaObject, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell, Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::caller::{Transport, limit_large_result};
use super::compact::EXPLAIN;
use super::next_steps::NextSteps;
use super::{answer, call, notifications, prompts, resources, runtime, tools};
use skills_api::operations::{Caller, Permit, Scope, Service, call_permit, operations, with_permit};
use skills_api::{CoreParts, Error, Event, SharedClient, new_trace_id};
use skills_config::Invocation;

/// How long a call waits for the first scan of the skills.
const SCAN_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of concurrent calls per connection; further ones wait.
const MAX_CONCURRENT_CALLS: u32 = 256;

/// Instructions for models about this server.
const INSTRUCTIONS: &str = "Skills are instructions for kinds of tasks. Check the available skills \
    before a complex task: skills.list lists them, or with `query` the matching ones. Load a skill with skills.load before using it, and follow the instructions in the result; if two loaded skills conflict, the later one has precedence. skills.read reads files of a loaded skill, skills.run_script runs its scripts. skill.discover ranks skills for a request; skill.execute and skill.attach run skills with a contract, and capability.execute runs one capability. Results are short; `explain: true` returns all details, such as the score breakdown.";

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How calls arrive.
    pub transport: Transport,
    /// The session that connections continue; if absent, each has its own.
    pub session: Option<String>,
    /// How this process was called, for commands that use the same core; `None` if its store is in memory and cannot be
    /// used from outside of this process.
    pub called: Option<Invocation>,
    /// Whether the runtime tools are also offered under their older names.
    pub compat: bool,
    /// Fires at shutdown: calls that wait for a run stop waiting, and the run is released.
    pub leave: CancellationToken,
}

impl Settings {
    /// Returns how a user can reach the same core outside of the connection.
    pub(super) fn onward(&self) -> NextSteps {
        match self.transport {
            Transport::Process(_) => self.called.clone().map_or(NextSteps::Nowhere, NextSteps::Commands),
            Transport::Http => NextSteps::Service,
        }
    }

    fn caller(&self, cx: &RequestContext<RoleServer>) -> Result<Caller, Error> {
        self.transport.caller(cx, &self.leave)
    }
}

/// The server of one connection.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub service: Service,
    pub settings: Settings,
    /// The connection's session, once it exists.
    pub session: Mutex<Option<String>>,
    scanned: OnceCell<()>,
    indexed: OnceCell<()>,
    /// A permit for each call in progress.
    places: Semaphore,
    /// Notifies the client of changes.
    forwarding: OnceLock<JoinSet<()>>,
    /// Events since the connection was made, for that task: a change right after the first response is one too.
    events: Mutex<Option<broadcast::Receiver<Event>>>,
}

impl Server {
    /// Creates the server of one connection.
    pub fn new(service: Service, settings: Settings) -> Self {
        let session = Mutex::new(None);
        let places = Semaphore::new(MAX_CONCURRENT_CALLS as usize);
        let (scanned, indexed) = (OnceCell::new(), OnceCell::new());
        let forwarding = OnceLock::new();
        let events = Mutex::new(Some(service.core.events()));
        let inner = Inner { service, settings, session, scanned, indexed, places, forwarding, events };
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(super) fn core(&self) -> &SharedClient {
        &self.inner.service.core
    }

    /// Returns when no call is in progress.
    pub(super) async fn quiet(&self) {
        // The semaphore is never closed.
        drop(self.inner.places.acquire_many(MAX_CONCURRENT_CALLS).await);
    }

    /// Waits until the skills are read, and for a ranking also indexed, so that the first call of a new process does
    /// not find nothing; after a timeout the call uses what is available.
    pub(super) async fn ready(&self, needs: CoreParts) {
        let cell = match needs {
            CoreParts::Catalog => &self.inner.scanned,
            CoreParts::Index => &self.inner.indexed,
        };
        cell.get_or_init(|| wait_for(self.core(), needs)).await;
    }

    /// Returns the core, once the skills are read, for a caller who may read them, and the permit of the call.
    async fn for_reader(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<(&SharedClient, Option<Permit>), ErrorData> {
        let caller = self.inner.settings.caller(cx).map_err(|error| resources::failed(&error))?;
        let admitted = async {
            may_read(&caller)?;
            self.ready(CoreParts::Catalog).await;
            self.core().wait_for_catalog().await?;
            let permit = call_permit(&caller).await?;
            // Its key may have ended in the meantime.
            may_read(&caller.current().await?)?;
            Ok(permit)
        };
        let permit = admitted.await.map_err(|error| resources::failed(&error))?;
        Ok((self.core(), permit))
    }

    /// Takes a permit for a large text, and keeps it until the text is sent.
    async fn limit_large_text(&self, cx: &RequestContext<RoleServer>, bytes: usize) -> Result<(), ErrorData> {
        let limited = async {
            let caller = self.inner.settings.caller(cx)?;
            limit_large_result(cx, &caller, bytes, true).await
        };
        limited.await.map_err(|error| resources::failed(&error))
    }
}

fn may_read(caller: &Caller) -> Result<(), Error> {
    if caller.may(Scope::Read) {
        return Ok(());
    }
    let message = format!("listing skills needs the scope `{}`", Scope::Read);
    Err(Error::needs_scope(Scope::Read, message))
}

/// Waits until a part of the core is complete; after a timeout the caller uses what is available.
pub(super) async fn wait_for(core: &SharedClient, needs: CoreParts) {
    if tokio::time::timeout(SCAN_TIMEOUT, wait_until_complete(core, needs)).await.is_err() {
        tracing::warn!("the scan is incomplete; using the skills found so far");
    }
}

async fn wait_until_complete(core: &SharedClient, needs: CoreParts) {
    // Subscribe first, so that no event between the query and the wait is lost.
    let mut news = core.events();
    loop {
        match core.load_state().await {
            Ok(found) if found.scan.done && (needs == CoreParts::Catalog || found.index.done) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("cannot read the scan progress: {error}");
                return;
            }
        }
        if matches!(news.recv().await, Err(broadcast::error::RecvError::Closed)) {
            return;
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_skills_with_directory_read()
            .build();
        let implementation = Implementation::new("skill-workbench", env!("CARGO_PKG_VERSION"))
            .with_title("Skill Workbench")
            .with_description(env!("CARGO_PKG_DESCRIPTION"));
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asks = |meta: &RequestMetaObject| meta.get(EXPLAIN) == Some(&Value::Bool(true));
        let own = request.and_then(|request| request.meta);
        let offered = tools::listed_tools(self.inner.settings.compat);
        let tools = if own.as_ref().is_some_and(asks) || asks(&cx.meta) {
            offered.map(tools::with_output_schema).collect()
        } else {
            offered.cloned().collect()
        };
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let compat = self.inner.settings.compat;
        let Some(kind) = tools::named(&request.name, compat) else {
            let names = tools::listed_tools(compat).map(|tool| tool.name.as_ref());
            let near = skills_api::near(&request.name, names);
            let hint = near.first().map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            return Err(ErrorData::invalid_params(format!("unknown tool {:?}{hint}", request.name), None));
        };
        let caller = match self.inner.settings.caller(&cx) {
            Ok(caller) => caller,
            Err(error) => return Ok(answer::failed(&error, &new_trace_id()).into()),
        };
        let _place = self.inner.places.acquire().await;
        Ok(match kind {
            tools::Kind::Operation(operation) => {
                call::operation(self, operation, request, &caller, &cx).await
            }
            tools::Kind::Runtime(named) => runtime::call(self, named, request, &caller, &cx).await,
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        with_permit(permit, resources::list(core, request)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        let read = async {
            let result = resources::read(core, &request.uri).await?;
            self.limit_large_text(&cx, result.contents.iter().map(resources::content_bytes).sum()).await?;
            Ok(result.into())
        };
        with_permit(permit, read).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        with_permit(permit, resources::folder(core, &request.uri)).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        with_permit(permit, resources::skills(core, request)).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        with_permit(permit, resources::skill(core, &request.uri)).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        with_permit(permit, prompts::list(core, request)).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        let get = async {
            let result = prompts::get(core, request).await?;
            self.limit_large_text(&cx, prompts::text_bytes(&result)).await?;
            Ok(result.into())
        };
        with_permit(permit, get).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (core, permit) = self.for_reader(&cx).await?;
        let chosen = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let (argument, value) = (&request.argument.name, &request.argument.value);
        let info = match &request.r#ref {
            Reference::Resource(template) => {
                with_permit(permit, resources::complete(core, &template.uri, argument, value, &chosen))
                    .await?
            }
            // Free text after a command cannot be completed.
            _ => CompletionInfo::default(),
        };
        Ok(CompleteResult::new(info))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A request of a known method is passed here if its parameters cannot be read.
        let Some(required) = required_params(&request.method) else {
            let message = format!("method `{}` not found", request.method);
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
        };
        let has = |name: &str| request.params.as_ref().is_some_and(|params| params.get(name).is_some());
        let missing = required.iter().find(|name| !has(name));
        let missing = missing.map(|name| format!(": `{name}` is missing")).unwrap_or_default();
        let message = format!("invalid parameters of `{}`{missing}", request.method);
        Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None))
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        // A client may repeat the notification. The task does not own the server, so it ends with the session.
        let core = Arc::clone(self.core());
        let events = self.inner.events.lock().await.take();
        self.inner.forwarding.get_or_init(|| {
            let events = events.unwrap_or_else(|| core.events());
            JoinSet::from_iter([async move { notifications::forward(&core, events, cx.peer).await }])
        });
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(notifications::supported_subscriptions())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        notifications::listen(self, &subscription).await;
        Ok(())
    }
}

/// Returns the parameters that a method of this server requires; `None` for other methods.
fn required_params(method: &str) -> Option<&'static [&'static str]> {
    match method {
        "tools/call" | "prompts/get" => Some(&["name"]),
        "resources/read" | "resources/directory/read" | "skills/get" => Some(&["uri"]),
        "completion/complete" => Some(&["ref", "argument"]),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" | "skills/list" => {
            Some(&[])
        }
        _ => None,
    }
}

/// Returns whether the result of this operation depends on the skills being read.
pub(super) fn wants_skills(name: &str) -> bool {
    // Health reports the progress of the scan, which waiting would hide.
    operations().iter().any(|operation| operation.name == name && operation.scope.is_some())
}
