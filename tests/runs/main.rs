//! Runs, stores, bindings, sandbox and sessions through the library, crashes included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../binary/mod.rs"]
mod binary;
#[path = "../postgres/mod.rs"]
mod postgres;
#[path = "../runs_place/mod.rs"]
mod runs_place;
#[path = "../session_place/mod.rs"]
mod session_place;
#[path = "../store_kit/mod.rs"]
mod store_kit;

mod bindings;
mod chaos;
mod core_attach;
mod core_commands;
mod core_reloads;
mod core_runs;
mod core_service;
mod engine;
mod faults;
mod leases;
mod operators;
mod policy_rules;
mod reminders;
mod sandbox_attacks;
mod sandbox_runs;
mod session_attacks;
mod session_payloads;
mod sessions;
mod store_safety;
mod store_sqlite;
mod workers;
