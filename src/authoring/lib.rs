//! What authors do with skills beyond reading them.

pub mod governance;
pub mod proposals;
pub mod write_back;
