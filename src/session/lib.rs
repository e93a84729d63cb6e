//! The context of a model: the catalog of skills, the bodies of loaded skills, the tools it may call, and the history,
//! composed byte for byte.
//!
//! Skills are disclosed progressively in three levels (<https://agentskills.io/specification>, "Progressive
//! disclosure"): each skill's name and description in every call (L1), the body of a skill once it is loaded (L2), its
//! files when they are read (L3). Everything here is pure except [`read`], which reads a file of a bundle.
// Text of bundles is untrusted: an invalid range must not panic.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod active;
mod agent;
mod budget;
mod compose;
mod delivered_bodies;
mod failure;
mod marked;
mod payload;
pub mod read;
mod scale;
mod state;
mod tools;
mod transcript;

pub use active::{Active, LoadChange, LoadMode, Receipt, Unloaded};
pub use agent::{Agent, AgentLimits, ORCHESTRATOR, call_order, parse_agent};
pub use budget::{
    BudgetResult, BudgetedCatalog, BundledSize, Fill, ListedEntry, Truncation, Unit, apply_budget,
    without_description,
};
pub use compose::{
    ComposeInput, Composed, ComposedPart, Form, Instructions, PartKind, ToolNameFormat, body_text,
    catalog_text, compose, entry_text,
};
pub use delivered_bodies::{DeliveredBody, in_answers};
pub use failure::{ScriptPreview, ToolError, ToolFailure};
pub use marked::escape_tags;
pub use payload::{Api, Payload, payload};
pub use state::{DEFAULT_CAP, MAX_CAP, Session, SessionId, Settings};
pub use tools::{
    Compat, ListArguments, LoadArguments, ReadArguments, ReadSkillArguments, RunScriptArguments, Tool,
    ToolSpec, UnloadArguments, arguments,
};
pub use transcript::{Entry, MessageRole, Turn};
