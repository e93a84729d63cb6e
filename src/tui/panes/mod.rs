//! The panes of the workbench, each in a folder.

pub mod attach;
pub mod browse;
pub mod discover;
pub mod golden;
pub mod proposals;
pub mod runs;
pub mod session;
