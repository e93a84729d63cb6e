//! The MCP adapter: the operations that are tools, the runtime tools of a session, and skills as resources and prompts,
//! over stdio and streamable HTTP.
//!
//! Names, schemas, scopes and errors come from [`skills_api::operations`] and are only translated to the protocol here
//! (<https://modelcontextprotocol.io/specification/2025-11-25>, and the stateless revision 2026-07-28).

mod answer;
mod call;
mod caller;
mod compact;
mod connections;
mod elicitation;
mod http;
mod jsonrpc;
mod next_steps;
mod notifications;
mod oversized;
mod page;
mod progress;
mod prompts;
mod resources;
mod runtime;
mod server;
mod stdio;
mod tools;
mod uri;

pub use caller::Transport;
pub use connections::SessionLimits;
pub use http::{HttpSettings, routes};
pub use server::{Server, Settings};
pub use stdio::serve;
