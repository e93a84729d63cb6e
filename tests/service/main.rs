//! The service: HTTP, MCP, the remote client, and parity between all adapters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../binary/mod.rs"]
mod binary;
#[path = "../cli_runs_fixture/mod.rs"]
mod cli_runs_fixture;
#[path = "../mcp_client/mod.rs"]
mod mcp_client;
#[path = "../mcp_connected/mod.rs"]
mod mcp_connected;
#[path = "../runs_place/mod.rs"]
mod runs_place;
#[path = "../support/service.rs"]
mod service;

mod http;
mod mcp;
mod parity;
mod remote;
