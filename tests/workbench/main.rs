//! The terminal workbench, by keys and by picture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../support/mod.rs"]
mod support;

mod clients_matrix;
mod frame_by_keys;
mod frame_pictures;
mod pane_attach;
mod pane_browse;
mod pane_collisions;
mod pane_discover;
mod pane_golden;
mod pane_proposals;
mod pane_runs;
mod pane_runs_away;
mod pane_runs_bulk;
mod pane_runs_commands;
mod pane_runs_operating;
mod pane_runs_shipped;
mod pane_session;
mod picture_places;
mod terminal_life;
mod why_report;
