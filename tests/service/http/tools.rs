//! The MCP server of a service, spoken to as a client over streamable HTTP does.

use serde_json::{Value, json};

use super::test_server::{Answer, TestServer};

/// A connection of an MCP client.
pub struct Tools<'a> {
    test_server: &'a TestServer,
    key: Option<&'a str>,
    session: String,
}

impl<'a> Tools<'a> {
    /// Connects, with a key if the service requires one.
    pub async fn of(test_server: &'a TestServer, key: Option<&'a str>) -> Self {
        let mut tools = Self { test_server, key, session: String::new() };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "codes", "version": "1" },
        });
        let answer =
            tools.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).await;
        answer.header("mcp-session-id").expect("a session").clone_into(&mut tools.session);
        tools.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        tools
    }

    async fn send(&self, message: &Value) -> Answer {
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        headers.extend(self.key.map(|key| ("x-api-key", key)));
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
            headers.push(("mcp-protocol-version", "2025-06-18"));
        }
        self.test_server.ask("POST", "/mcp", &headers, &message.to_string()).await
    }

    /// A client of the revision in which every request is self-contained.
    pub fn alone(test_server: &'a TestServer) -> Self {
        Self { test_server, key: None, session: String::new() }
    }

    /// The result of a tool's call in that revision.
    pub async fn stateless(&self, tool: &str, arguments: &Value) -> Value {
        let about = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "alone", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": about });
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        answered(tool, &self.test_server.ask("POST", "/mcp", &headers, &message.to_string()).await)
    }

    /// The complete response to a request of any method.
    pub async fn request(&self, method: &str, params: &Value) -> Value {
        let answer =
            self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await;
        let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
        std::iter::once(answer.body.as_str())
            .chain(lines)
            .filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok())
            .find(|message| message["id"] == 7)
            .unwrap_or_else(|| panic!("{method}: {} {}", answer.head, answer.body))
    }

    /// The body of the error of a tool's call.
    pub async fn error(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer =
            self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await;
        let result = answered(tool, &answer);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        serde_json::from_str::<Value>(text).unwrap()["error"].clone()
    }
}

/// The first text of a result as JSON.
fn text(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// The result in a response: the last event of a stream, or the body.
fn answered(tool: &str, answer: &Answer) -> Value {
    let events = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
    let result = events
        .chain([answer.body.as_str()])
        .filter_map(|text| serde_json::from_str::<Value>(text).ok())
        .find(|message| message["id"] == 7)
        .unwrap_or_else(|| panic!("{tool}: {} {}", answer.head, answer.body));
    result["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn stateless_load_returns_the_session_for_the_next_call() {
    let test_server = TestServer::open().await;
    let tools = Tools::alone(&test_server);
    let result = tools.stateless("skills.read", &json!({ "path": "SKILL.md" })).await;
    assert_eq!(result["isError"], true, "{result}");
    let error: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "not_loaded");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("pass `session_id` as returned by skills.load"), "{message}");
    let skill = test_server.call("skill.list", json!({})).await.json()["skills"][0]["skill_id"].clone();
    let loaded = tools.stateless("skills.load", &json!({ "names": [skill] })).await;
    let session = &text(&loaded)["session_id"];
    assert!(session.is_string(), "{loaded}");
    let read = tools.stateless("skills.read", &json!({ "path": "SKILL.md", "session_id": session })).await;
    assert_eq!(text(&read)["skill"], skill, "{read}");
}
