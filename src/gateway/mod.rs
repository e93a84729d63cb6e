//! The one door to the core: what every adapter may ask, what it gets, and how it fails.

mod checkup;
mod client;
mod detail;
mod error;
mod listing;
mod local;
mod names;
mod schema;
#[cfg(test)]
mod testing;
mod types;

pub use checkup::{Check, Health};
pub use client::{Client, SharedClient};
pub use error::{Code, Error, ErrorBody, ErrorDetail};
pub use schema::{schema, schema_drift};
pub use types::{
    ClientView, ClientViewEntry, ClientViewState, Connection, Diagnostics, Event, FileContent, FileEntry,
    FileText, IndexProgress, LevelTokens, ListFilter, OperationCount, SkillDetail, SkillList, SkillSummary,
};
