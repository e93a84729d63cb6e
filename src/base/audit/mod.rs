//! The audit log: records launches, decisions, and changes of what may run, each with its principal. Lines of JSON,
//! each with the SHA-256 of the previous one, so that a change in the middle is detected.
//!
//! An anchor stored next to it records how far it reaches, so that a change at its end is detected too.
//!
//! Several processes append to one file under a lock. A line truncated by a crash is kept, and the next line records
//! it.

mod anchor;
mod chain;
mod line;
mod log;
mod pending;
mod recorder;
mod redact;
#[cfg(test)]
mod tests;

pub use anchor::{Anchor, AnchorCheck};
pub use chain::{Broken, GENESIS, Verification, verify};
pub use line::{Entry, Line, Mode};
pub use log::{AuditError, Log, PurgeResult};
pub use pending::PendingOperation;
pub use recorder::Recorder;
pub use redact::{REDACTED, redacted, redacted_text};
