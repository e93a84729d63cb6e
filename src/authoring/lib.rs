//! Functions for authors of skills: golden sets, governance, proposals, and edits of descriptions.

pub mod golden_baseline;
pub mod golden_file;
pub mod golden_format;
pub mod governance;
pub mod proposals;
pub mod write_back;
