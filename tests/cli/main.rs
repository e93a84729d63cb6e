//! The `skills` binary as a command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../binary/mod.rs"]
mod binary;
#[path = "../cli_runs_fixture/mod.rs"]
mod cli_runs_fixture;

mod cli_answers;
mod cli_authoring;
mod cli_documents;
mod cli_errors;
mod cli_eval;
mod cli_golden;
mod cli_lint;
mod cli_recovery;
mod cli_roots;
mod cli_runs;
mod cli_session;
mod cli_storage;
mod cli_trust;
mod cli_unloaded_skills;
mod untrusted_files;
