//! The one door to the core: what every adapter may ask, what it gets, and how it fails.

mod client;
mod error;
mod types;

pub use client::{Client, SharedClient};
pub use error::{Code, Error, ErrorBody, ErrorDetail};
pub use types::{
    ClientView, ClientViewEntry, ClientViewState, Connection, Diagnostics, Event, FileContent, FileEntry,
    FileText, IndexProgress, LevelTokens, ListFilter, OperationCount, SkillDetail, SkillList, SkillSummary,
};
