//! Attacks that a script of a bundle may try: each succeeds without isolation, and fails inside.
#![allow(clippy::expect_used, clippy::panic, reason = "what a test cannot set up has to fail it")]

#[path = "sandbox_attacks/arena.rs"]
mod arena;
#[path = "sandbox_attacks/files.rs"]
mod files;
#[path = "sandbox_attacks/network.rs"]
mod network;
#[path = "sandbox_attacks/processes.rs"]
mod processes;
#[path = "sandbox_attacks/resources.rs"]
mod resources;
