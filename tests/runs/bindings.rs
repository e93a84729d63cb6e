//! Executing capabilities: every protocol against a server process of its own, scripts in the real sandbox.

mod choice;
mod http;
mod mcp;
mod place;
mod registry;
mod rpc;
mod script;
