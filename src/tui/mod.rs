//! The workbench: a terminal application over `gateway::Client`. Screen state lives in one task;
//! panes turn actions into effects, the application alone runs effects, answers come back as messages.

pub mod action;
pub mod field;
pub mod glyphs;
pub mod keymap;
pub mod located;
pub mod pane;
pub mod panes;
pub mod theme;
pub mod widgets;
