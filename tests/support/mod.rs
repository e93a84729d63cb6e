//! Values and screens that several tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::struct_field_names,
    reason = "values and screens of tests"
)]

pub mod answers;
pub mod catalogs;
pub mod corpus;
pub mod delegate_runs;
pub mod fake_client;
pub mod fake_runs;
pub mod fixed_clock_client;
pub mod note_pane;
pub mod pty;
pub mod run_commands;
pub mod run_pane;
pub mod run_samples;
pub mod screen;
pub mod steady_sessions;
