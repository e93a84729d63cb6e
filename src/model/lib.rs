//! What is executed: the states of a run and the commands that move it.

mod state;
mod types;

pub use state::{allowed, transition};
pub use types::time_was_over;
pub use types::{
    ApprovalReason, Approvals, Choice, Command, CommandName, Decision, Expiry, Gate, Lease, Next,
    RunSnapshot, RunState, TransitionError, Verdict, WorkerReport,
};
