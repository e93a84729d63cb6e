//! The workbench: a terminal application over `skills_api::Core`. Screen state is owned by one task. Panes turn
//! actions into effects, only the application runs effects, and results return as messages.

pub mod action;
mod aligned_backend;
pub mod app;
pub mod available_commands;
pub mod clipboard;
pub mod command_lines;
pub mod demo;
pub mod editor;
pub mod effects;
pub mod field;
mod follow_runs;
pub mod footer;
pub mod form;
mod form_drafts;
pub mod glyphs;
pub mod golden_requests;
pub mod harness;
pub mod header;
mod input;
pub mod keymap;
pub mod notices;
pub mod overlay;
pub mod pane;
pub mod panes;
pub mod picture;
pub mod probe;
pub mod progress;
pub mod proposal_requests;
mod run;
pub mod run_requests;
pub mod session_export;
pub mod session_requests;
mod settings;
mod shutdown;
pub mod spanned_error;
pub mod svg;
pub mod terminal;
pub mod theme;
mod why_report;
pub mod widgets;

pub use run::{Exit, RunError, run, run_panes};
pub use settings::Settings;
