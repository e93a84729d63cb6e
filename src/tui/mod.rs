//! The workbench: a terminal application over `gateway::Client`. Screen state lives in one task;
//! panes turn actions into effects, the application alone runs effects, answers come back as messages.

pub mod action;
pub mod app;
pub mod calls;
pub mod clipboard;
pub mod demo;
pub mod editor;
pub mod field;
mod follow_runs;
pub mod footer;
pub mod form;
pub mod glyphs;
pub mod harness;
pub mod header;
pub mod keymap;
pub mod located;
pub mod notices;
pub mod offers;
pub mod overlay;
pub mod pane;
pub mod panes;
pub mod picture;
pub mod probe;
pub mod progress;
mod run;
pub mod run_traffic;
pub mod session_export;
pub mod session_traffic;
mod settings;
pub mod svg;
pub mod terminal;
pub mod theme;
mod typed;
pub mod widgets;

pub use run::{RunError, run, run_panes};
pub use settings::Settings;
