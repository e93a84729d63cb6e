//! Carrying capabilities out: every protocol against a server process of its own, scripts in the real sandbox.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot set up has to fail it"
)]

#[path = "bindings/choice.rs"]
mod choice;
#[path = "bindings/http.rs"]
mod http;
#[path = "bindings/mcp.rs"]
mod mcp;
#[path = "bindings/place.rs"]
mod place;
#[path = "bindings/registry.rs"]
mod registry;
#[path = "bindings/rpc.rs"]
mod rpc;
#[path = "bindings/script.rs"]
mod script;
