//! The shared core of Skill Workbench: what a skill is, where skills come from, which one fits a
//! request and why. Four thin adapters (terminal workbench, command line, HTTP, MCP) stand on
//! [`gateway`]; nothing below it knows about screens or wires.
//!
//! Imports point one way: `tui`, `cli` → `gateway` → `discovery` → `registry` → `skill`, with
//! `config` and `telemetry` beside them. `tests/catalog/architecture.rs` holds that table and checks it.
#![forbid(unsafe_code)]

pub mod audit;
pub mod blocks;
pub mod cli;
pub mod config;
pub mod discovery;
pub mod engine;
pub mod files;
pub mod gateway;
pub mod governance;
pub mod http;
pub mod mcp;
pub mod policy;
pub mod private_files;
pub mod registry;
pub mod runs;
pub mod sandbox;
pub mod session;
pub mod skill;
pub mod store;
pub mod telemetry;
pub mod tui;
