//! The audit log: who let what run, decided what, and changed what may run. Lines of JSON, each with the SHA-256 of
//! the one before it, so that a change in the middle shows.
//!
//! An anchor beside it says how far it reaches, so that a change at its end shows too.
//!
//! Several processes append to one file under a lock. A line truncated by a crash is kept, and the next line notes it.

mod anchor;
mod chain;
mod line;
mod log;
mod recorder;
mod redact;
#[cfg(test)]
mod tests;

pub use anchor::{Anchor, AnchorCheck};
pub use chain::{Broken, GENESIS, Verification, verify};
pub use line::{Entry, Line, Mode};
pub use log::{AuditError, Log, Purged};
pub use recorder::Recorder;
pub use redact::{REDACTED, redacted, redacted_text};
