//! What authors do with skills beyond reading them.

pub mod golden_baseline;
pub mod golden_file;
pub mod golden_format;
pub mod governance;
pub mod write_back;
