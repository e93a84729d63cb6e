//! A complete call in the format of the common model APIs: instructions, tools and history.
//!
//! Formats as in the services' own references: Anthropic Messages (<https://docs.claude.com/en/api/messages>), `OpenAI`
//! Responses (<https://platform.openai.com/docs/api-reference/responses>) and Chat Completions
//! (<https://platform.openai.com/docs/api-reference/chat>).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::{Display, EnumIter, EnumString};

use super::compose::ToolNameFormat;
use super::tools::ToolSpec;
use super::transcript::{Entry, MessageRole, Turn};

/// A model service's request form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    OpenaiResponses,
    /// `OpenAI` Chat Completions.
    OpenaiChat,
}

/// A request and notes about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Payload {
    /// Body of the request.
    pub body: Value,
    /// Expected objections of the service, and what to do.
    pub notes: Vec<String>,
}

/// Returns the request of the next call.
pub fn payload(
    api: Api,
    model: &str,
    instructions: &str,
    transcript: &[Arc<Entry>],
    tools: &[ToolSpec],
    max_tokens: u32,
) -> Payload {
    let mut notes = Vec::new();
    let begins_with_user = transcript
        .first()
        .is_some_and(|entry| matches!(&entry.turn, Turn::Message { speaker: MessageRole::User, .. }));
    if !begins_with_user {
        // The transcript is append-only, so a conversation that began with a call cannot be fixed.
        let what = if transcript.is_empty() {
            "there are no messages, but most APIs require a user message first: add one"
        } else {
            "this transcript does not start with a user message, which most APIs require: create a new session and \
                add a message before loading skills"
        };
        notes.push(what.to_owned());
    }
    let ends_with_assistant = transcript
        .last()
        .is_some_and(|entry| matches!(&entry.turn, Turn::Message { speaker: MessageRole::Assistant, .. }));
    if ends_with_assistant {
        notes.push("the last message is the assistant's, which some models reject".to_owned());
    }
    let body = match api {
        Api::Anthropic => anthropic(model, instructions, transcript, tools, max_tokens),
        Api::OpenaiResponses => responses(model, instructions, transcript, tools, max_tokens),
        Api::OpenaiChat => chat(model, instructions, transcript, tools, max_tokens),
    };
    Payload { body, notes }
}

fn wire(tool: &str) -> String {
    ToolNameFormat::Underscored.name(tool)
}

fn anthropic(
    model: &str,
    instructions: &str,
    transcript: &[Arc<Entry>],
    tools: &[ToolSpec],
    max_tokens: u32,
) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    // Roles must alternate there, so adjacent messages of one role are merged.
    let mut push = |role: &'static str, block: Value| match messages.last_mut() {
        Some((last, blocks)) if *last == role => blocks.push(block),
        _ => messages.push((role, vec![block])),
    };
    for entry in transcript {
        match &entry.turn {
            Turn::Message { speaker, text } => {
                let role = if *speaker == MessageRole::User { "user" } else { "assistant" };
                push(role, json!({"type": "text", "text": text}));
            }
            Turn::Call { tool, arguments, result } => {
                let id = entry.call_id();
                push(
                    "assistant",
                    json!({"type": "tool_use", "id": id, "name": wire(tool), "input": object(arguments)}),
                );
                let mut block =
                    json!({"type": "tool_result", "tool_use_id": id, "content": Entry::result_text(result)});
                if result.is_err() {
                    block["is_error"] = Value::Bool(true);
                }
                push("user", block);
            }
        }
    }
    let messages: Vec<Value> =
        messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    let tools: Vec<Value> = tools
        .iter()
        .map(|t| json!({"name": t.name, "description": t.description, "input_schema": t.input_schema}))
        .collect();
    let mut body = json!({"model": model, "max_tokens": max_tokens, "messages": messages, "tools": tools});
    if !instructions.is_empty() {
        body["system"] = json!([{"type": "text", "text": instructions}]);
    }
    body
}

fn responses(
    model: &str,
    instructions: &str,
    transcript: &[Arc<Entry>],
    tools: &[ToolSpec],
    max_tokens: u32,
) -> Value {
    let mut input = Vec::new();
    for entry in transcript {
        match &entry.turn {
            Turn::Message { speaker, text } => {
                input.push(json!({"type": "message", "role": speaker.to_string(), "content": text}));
            }
            Turn::Call { tool, arguments, result } => {
                let id = entry.call_id();
                input.push(json!({
                    "type": "function_call", "call_id": id, "name": wire(tool),
                    "arguments": object(arguments).to_string(),
                }));
                input.push(json!({
                    "type": "function_call_output", "call_id": id, "output": Entry::result_text(result),
                }));
            }
        }
    }
    let tools: Vec<Value> = tools
        .iter()
        .map(|t| {
            json!({
                "type": "function", "name": t.name, "description": t.description, "parameters": t.input_schema,
                "strict": false,
            })
        })
        .collect();
    let mut body = json!({"model": model, "input": input, "tools": tools, "max_output_tokens": max_tokens});
    if !instructions.is_empty() {
        body["instructions"] = Value::String(instructions.to_owned());
    }
    body
}

fn chat(
    model: &str,
    instructions: &str,
    transcript: &[Arc<Entry>],
    tools: &[ToolSpec],
    max_tokens: u32,
) -> Value {
    let mut messages = Vec::new();
    if !instructions.is_empty() {
        messages.push(json!({"role": "system", "content": instructions}));
    }
    for entry in transcript {
        match &entry.turn {
            Turn::Message { speaker, text } => {
                messages.push(json!({"role": speaker.to_string(), "content": text}));
            }
            Turn::Call { tool, arguments, result } => {
                let id = entry.call_id();
                messages.push(json!({
                    "role": "assistant", "content": null,
                    "tool_calls": [{
                        "id": id, "type": "function",
                        "function": {"name": wire(tool), "arguments": object(arguments).to_string()},
                    }],
                }));
                messages
                    .push(json!({"role": "tool", "tool_call_id": id, "content": Entry::result_text(result)}));
            }
        }
    }
    let tools: Vec<Value> = tools
        .iter()
        .map(|t| {
            json!({
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.input_schema},
            })
        })
        .collect();
    json!({"model": model, "messages": messages, "tools": tools, "max_completion_tokens": max_tokens})
}

/// Returns arguments as an object, which every API requires.
fn object(arguments: &Value) -> Value {
    if arguments.is_object() { arguments.clone() } else { json!({}) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{ToolError, ToolFailure};
    use crate::tools::Tool;

    fn transcript() -> Vec<Arc<Entry>> {
        let turns = [
            Turn::Message { speaker: MessageRole::User, text: "profile orders.csv".into() },
            Turn::Call {
                tool: "skills.load".into(),
                arguments: json!({"names": ["csv-profile"]}),
                result: Ok(json!({"active": []})),
            },
            Turn::Call {
                tool: "skills.read".into(),
                arguments: json!({"path": "../x"}),
                result: Err(ToolError::new(ToolFailure::PathEscape, "no")),
            },
            Turn::Message { speaker: MessageRole::Assistant, text: "done".into() },
        ];
        (1..).zip(turns).map(|(number, turn)| Arc::new(Entry { number, at_ms: 0, turn })).collect()
    }

    fn of(api: Api) -> Value {
        payload(
            api,
            "a-model",
            "RULES",
            &transcript(),
            &Tool::specs(ToolNameFormat::Underscored, false),
            1024,
        )
        .body
    }

    #[test]
    fn anthropic_turns_alternate_and_every_use_has_its_result() {
        let body = of(Api::Anthropic);
        assert_eq!(body["system"][0]["text"], "RULES");
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"]);
        assert_eq!(messages[1]["content"][0]["id"], messages[2]["content"][0]["tool_use_id"]);
        assert_eq!(messages[4]["content"][0]["is_error"], true);
        assert_eq!(body["tools"][1]["name"], "skills_load");
        assert!(body["tools"][1]["input_schema"]["properties"]["names"].is_object());
    }

    #[test]
    fn responses_pair_calls_with_outputs_and_arguments_are_text() {
        let body = of(Api::OpenaiResponses);
        let input = body["input"].as_array().unwrap();
        assert_eq!(body["instructions"], "RULES");
        assert_eq!(input[1]["call_id"], input[2]["call_id"]);
        assert_eq!(input[1]["arguments"], r#"{"names":["csv-profile"]}"#);
        assert!(input[4]["output"].as_str().unwrap().contains("path_escape"));
    }

    #[test]
    fn chat_has_each_result_before_the_next_message() {
        let body = of(Api::OpenaiChat);
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]);
        assert_eq!(messages[2]["tool_calls"][0]["id"], messages[3]["tool_call_id"]);
    }

    #[test]
    fn conversation_without_a_user_message_is_reported() {
        let calls = &transcript()[1..];
        let made = payload(Api::Anthropic, "m", "", calls, &[], 1);
        assert!(
            made.notes[0].contains("new session"),
            "saying something now would not help: {:?}",
            made.notes
        );
        let empty = payload(Api::Anthropic, "m", "", &[], &[], 1);
        assert!(empty.notes[0].contains("no messages") && !empty.notes[0].contains("new session"));
        assert!(made.body.get("system").is_none());
    }
}
