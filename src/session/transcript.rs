//! The messages and calls of a session, in order. Entries are append-only, so a host can cache every prefix.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::ToolError;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, strum::Display, strum::EnumString, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(rename = "Speaker")]
pub enum MessageRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// An event in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Turn {
    /// A message was appended.
    Message {
        /// Author of the message.
        speaker: MessageRole,
        /// Text of the message.
        text: String,
    },
    /// A runtime tool was called.
    Call {
        /// Name of the tool, with a dot.
        tool: String,
        /// As given.
        arguments: Value,
        /// Response of the tool.
        #[schemars(with = "ToolResult")]
        result: Result<Value, ToolError>,
    },
}

/// A `Result` as JSON, with tags that are not specific to one language.
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum ToolResult {
    /// Result of the tool.
    Ok(Value),
    /// Why it failed.
    Err(ToolError),
}

/// An entry of the transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "TranscriptEntry")]
pub struct Entry {
    /// Number, from 1.
    pub number: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// What happened.
    #[serde(flatten)]
    pub turn: Turn,
}

impl Entry {
    /// Returns the id that connects a call and its result in a model's API.
    pub fn call_id(&self) -> String {
        format!("call_{:06}", self.number)
    }

    /// Returns a result as the model reads it.
    pub fn result_text(result: &Result<Value, ToolError>) -> String {
        match result {
            Ok(value) => value.to_string(),
            Err(error) => {
                serde_json::json!({"error": {"code": error.code, "message": error.message}}).to_string()
            }
        }
    }
}
