//! The panes of the workbench, each a folder of its own.

pub mod attach;
pub mod browse;
pub mod discover;
pub mod golden;
pub mod runs;
pub mod session;
