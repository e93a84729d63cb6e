//! A session: its settings, active skills and transcript. Changes are made in memory; the store saves them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::active::{self, Active, LoadMode, Receipt};
use super::compose::{Form, Instructions};
use super::delivered_bodies::in_answers;
use super::failure::ToolError;
use super::transcript::{Entry, MessageRole, Turn};
use skills_skill::Digest;

/// Default maximum number of active skills.
pub const DEFAULT_CAP: usize = 8;
/// Largest maximum number of active skills: each change of a session writes the bodies of all of them.
pub const MAX_CAP: usize = 64;

/// A session's id: a UUID version 7 (RFC 9562), so that ids sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a session is composed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Maximum number of active skills.
    pub cap: usize,
    /// Format of the catalog.
    pub form: Form,
    /// Where bodies are placed.
    pub instructions: Instructions,
    /// Whether locations are included; hosts without a file system do not need them.
    pub locations: bool,
    /// The client whose budget truncates the catalog; none for the complete catalog.
    pub client: Option<String>,
    /// The model's context window in tokens.
    pub window: u32,
    /// The agent; none for the orchestrator, which has all skills.
    pub agent: Option<String>,
    /// SHA-256 of the path of the agent's file when it was set; none in sessions of earlier versions. A file of another
    /// project with the same id is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_file: Option<Digest>,
    /// Also offer the three old tool names.
    pub compat: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cap: DEFAULT_CAP,
            form: Form::default(),
            instructions: Instructions::default(),
            locations: true,
            client: None,
            window: 200_000,
            agent: None,
            agent_file: None,
            compat: false,
        }
    }
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Session {
    /// Id of the session.
    pub id: SessionId,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// Incremented with every change; a writer with an older version has to read again.
    pub version: u64,
    /// The principal who created it; `None` for the local account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How it is composed.
    pub settings: Settings,
    /// Loaded skills, most recent last.
    pub active: Vec<Active>,
    /// What happened, oldest first.
    pub transcript: Vec<Arc<Entry>>,
}

impl Session {
    /// Creates an empty session.
    pub fn new(id: SessionId, created_ms: i64, settings: Settings) -> Self {
        Self { id, created_ms, version: 0, owner: None, settings, active: Vec::new(), transcript: Vec::new() }
    }

    /// Loads resolved skills; all of them or none. Their bodies are placed as the settings require.
    ///
    /// # Errors
    /// Returns an error for too many skills, or none named; the session is unchanged then.
    pub fn load(&mut self, requested: Vec<Active>, mode: LoadMode) -> Result<Receipt, ToolError> {
        let named: BTreeSet<String> = requested.iter().map(|skill| skill.name.clone()).collect();
        let next = active::loaded(&self.active, requested, mode, self.settings.cap)?;
        let delivered = match self.settings.instructions {
            Instructions::TopLevel => BTreeSet::new(),
            // A body that is in no result yet must not be placed in instructions that the host cannot change.
            Instructions::ToolResult => {
                let in_results = in_answers(&self.transcript, &next);
                let names = next.iter().map(|skill| skill.name.clone());
                names.filter(|name| named.contains(name) || !in_results.contains(name)).collect()
            }
        };
        Ok(self.replace(next, &delivered))
    }

    /// Like [`Session::load`], with the bodies of the named skills in the result, wherever others are placed.
    pub fn load_with_receipt(
        &mut self,
        requested: Vec<Active>,
        mode: LoadMode,
    ) -> Result<Receipt, ToolError> {
        let named: BTreeSet<String> = requested.iter().map(|skill| skill.name.clone()).collect();
        let next = active::loaded(&self.active, requested, mode, self.settings.cap)?;
        Ok(self.replace(next, &named))
    }

    /// Returns the active skills whose body is in the result of a call.
    pub fn in_answers(&self) -> BTreeSet<String> {
        in_answers(&self.transcript, &self.active)
    }

    /// Unloads skills; names that are not loaded are ignored and listed in the receipt.
    pub fn unload(&mut self, names: &[String]) -> Receipt {
        let unknown = |name: &&String| !self.active.iter().any(|skill| skill.name == **name);
        let ignored = names.iter().filter(unknown).cloned().collect();
        Receipt { ignored, ..self.replace(active::unloaded(&self.active, names), &BTreeSet::new()) }
    }

    /// Unloads every skill.
    pub fn unload_all(&mut self) -> Receipt {
        self.replace(Vec::new(), &BTreeSet::new())
    }

    /// Replaces the active skills; `delivered` are those whose body is in the result.
    fn replace(&mut self, next: Vec<Active>, delivered: &BTreeSet<String>) -> Receipt {
        let receipt = active::receipt(&self.active, &next, delivered, &self.settings);
        self.active = next;
        receipt
    }

    /// Returns the loaded skill of this name; default: the most recent one.
    ///
    /// # Errors
    /// Returns [`super::ToolFailure::NotLoaded`], listing the loaded skills.
    pub fn loaded(&self, name: Option<&str>) -> Result<&Active, ToolError> {
        let found = match name {
            Some(name) => self.active.iter().find(|skill| skill.name == name),
            None => self.active.last(),
        };
        found.ok_or_else(|| {
            let there: Vec<&str> = self.active.iter().map(|skill| skill.name.as_str()).collect();
            let message = match name {
                None => "no skill is loaded; load one with skills.load".to_owned(),
                Some(name) if there.is_empty() => {
                    format!("{name} is not loaded, and no other skill is; load it first with skills.load")
                }
                Some(name) => {
                    let there = there.join(", ");
                    format!("{name} is not loaded (loaded: {there}); load it first with skills.load")
                }
            };
            ToolError::new(super::ToolFailure::NotLoaded, message)
        })
    }

    pub fn append(&mut self, at_ms: i64, turn: Turn) -> u64 {
        let number = self.transcript.last().map_or(1, |entry| entry.number + 1);
        self.transcript.push(Arc::new(Entry { number, at_ms, turn }));
        number
    }

    /// Appends a message.
    pub fn say(&mut self, at_ms: i64, speaker: MessageRole, text: impl Into<String>) -> u64 {
        self.append(at_ms, Turn::Message { speaker, text: text.into() })
    }

    /// Appends a call and its result.
    pub fn called(
        &mut self,
        at_ms: i64,
        tool: &str,
        arguments: Value,
        result: Result<Value, ToolError>,
    ) -> u64 {
        self.append(at_ms, Turn::Call { tool: tool.to_owned(), arguments, result })
    }
}
