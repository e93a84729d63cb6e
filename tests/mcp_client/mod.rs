//! An MCP client with a simulated user, and the real server as its child.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part of it; a test fails by a panic"
)]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::binary::Home;

/// How long anything is waited for.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// What a client received from its server.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientEvent {
    Elicitation(String),
    Progress(f64, Option<f64>, String),
    Resources,
    Prompts,
}

/// The user of a client; without a reply the client does not support elicitation.
#[derive(Clone)]
pub struct Person {
    answer: Option<ElicitationAction>,
    content: Value,
    version: ProtocolVersion,
    heard: UnboundedSender<ClientEvent>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let can = match self.answer {
            Some(_) => ClientCapabilities::builder().enable_elicitation().build(),
            None => ClientCapabilities::default(),
        };
        ClientConfig::new(can, Implementation::new("desk", "1.0")).with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Err(ErrorData::invalid_params("only forms", None));
        };
        let _ = self.heard.send(ClientEvent::Elicitation(message));
        let answer = ElicitResult::new(self.answer.clone().unwrap());
        Ok(if self.answer == Some(ElicitationAction::Accept) {
            answer.with_content(self.content.clone())
        } else {
            answer
        })
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(ClientEvent::Progress(
            notification.progress,
            notification.total,
            notification.message.unwrap_or_default(),
        ));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(ClientEvent::Resources);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(ClientEvent::Prompts);
    }
}

/// A client whose server is the real binary.
pub struct Client {
    pub peer: RunningService<RoleClient, Person>,
    pub heard: UnboundedReceiver<ClientEvent>,
    _child: tokio::process::Child,
}

impl Client {
    /// A client of this revision over the skills of a home.
    pub async fn of(
        home: &Home,
        args: &[&str],
        version: ProtocolVersion,
        answer: Option<ElicitationAction>,
    ) -> Self {
        let mut command = home.command();
        command.arg("--root").arg(home.skills()).arg("mcp").args(args);
        Self::by(command, version, answer).await
    }

    /// A client of this revision whose server is started by this command.
    pub async fn by(
        command: std::process::Command,
        version: ProtocolVersion,
        answer: Option<ElicitationAction>,
    ) -> Self {
        let mut child = tokio::process::Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let (tell, heard) = unbounded_channel();
        let lifecycle = if version.has_initialize() {
            ClientLifecycleMode::Initialize
        } else {
            ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] }
        };
        let person = Person { answer, content: json!({ "notes": "looks right" }), version, heard: tell };
        let peer = tokio::time::timeout(WAIT_TIMEOUT, person.serve_with_lifecycle(pipes, lifecycle)).await;
        Self { peer: peer.unwrap().unwrap(), heard, _child: child }
    }

    pub async fn new(home: &Home, answer: Option<ElicitationAction>) -> Self {
        Self::of(home, &[], ProtocolVersion::V_2025_11_25, answer).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let request = CallToolRequestParams::new(tool.to_owned())
            .with_arguments(arguments.as_object().unwrap().clone());
        tokio::time::timeout(WAIT_TIMEOUT, self.peer.call_tool(request)).await.unwrap().unwrap()
    }

    /// The text of a call that works, as JSON.
    pub async fn works(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(false), "{tool}: {}", text(&result));
        assert_eq!(result.structured_content, None, "{tool}: nothing is sent twice");
        json(&result)
    }

    /// The structured content of a successful call for the complete result.
    pub async fn explains(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["explain"] = json!(true);
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(false), "{tool}: {}", text(&result));
        let value = result.structured_content.clone().unwrap();
        assert_eq!(json(&result), value, "{tool}: the text says the same");
        value
    }

    /// The output schemas of tools by name, as sent to a client that requests complete results.
    pub async fn described(&self) -> BTreeMap<String, Value> {
        let mut request = PaginatedRequestParams::default();
        request.meta = serde_json::from_value(json!({ "explain": true })).unwrap();
        let tools = self.peer.list_tools(Some(request)).await.unwrap().tools;
        let schema =
            |tool: Tool| Some((tool.name.to_string(), Value::Object((*tool.output_schema?).clone())));
        tools.into_iter().filter_map(schema).collect()
    }

    /// The error body of a call that does not.
    pub async fn fails(&self, tool: &str, arguments: Value) -> Value {
        self.fails_with_a_way_on(tool, arguments).await.0
    }

    /// The error body, and the next steps for a user.
    pub async fn fails_with_a_way_on(&self, tool: &str, arguments: Value) -> (Value, String) {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}: {}", text(&result));
        let part = |at: usize| {
            result.content.get(at).and_then(|block| block.as_text()).map(|text| text.text.clone())
        };
        (serde_json::from_str(&part(0).unwrap()).unwrap(), part(1).unwrap_or_default())
    }

    /// The next received event that matches.
    pub async fn receive<T>(&mut self, what: &str, wanted: impl Fn(ClientEvent) -> Option<T>) -> T {
        let waiting = async {
            loop {
                if let Some(found) = wanted(self.heard.recv().await.unwrap()) {
                    return found;
                }
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, waiting)
            .await
            .unwrap_or_else(|_| panic!("timed out waiting for {what}"))
    }

    /// The elicitations since the last call.
    pub fn elicitations(&mut self) -> Vec<String> {
        let mut elicitations = Vec::new();
        while let Ok(heard) = self.heard.try_recv() {
            if let ClientEvent::Elicitation(message) = heard {
                elicitations.push(message);
            }
        }
        elicitations
    }
}

/// The first text of a result.
pub fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

/// The first text of a result as JSON.
pub fn json(result: &CallToolResult) -> Value {
    serde_json::from_str(&text(result)).unwrap()
}

/// A body of an error without what differs from call to call.
pub fn without_trace(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("trace_id");
    body
}
