//! The MCP server of a service, spoken to as a client over streamable HTTP does.

use serde_json::{Value, json};

use crate::house::{Answer, House};

/// A connection of an MCP client.
pub struct Tools<'a> {
    house: &'a House,
    key: Option<&'a str>,
    session: String,
}

impl<'a> Tools<'a> {
    /// Connects, with a key where the service asks for one.
    pub async fn of(house: &'a House, key: Option<&'a str>) -> Self {
        let mut tools = Self { house, key, session: String::new() };
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
        self.house.ask("POST", "/mcp", &headers, &message.to_string()).await
    }

    /// The inside of the error that a tool's call comes to.
    pub async fn error(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer =
            self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await;
        // The answer comes as the last event of a stream, or alone.
        let events = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let told = events
            .chain([answer.body.as_str()])
            .filter_map(|text| serde_json::from_str::<Value>(text).ok())
            .find(|message| message["id"] == 7)
            .unwrap_or_else(|| panic!("{tool}: {} {}", answer.head, answer.body));
        let result = &told["result"];
        assert_eq!(result["isError"], true, "{tool}: {told}");
        let text = result["content"][0]["text"].as_str().unwrap();
        serde_json::from_str::<Value>(text).unwrap()["error"].clone()
    }
}
