//! What is executed: the states of a run and the commands that move it.

mod state;
mod words;

pub use state::{allowed, transition};
pub use words::time_was_over;
pub use words::{
    Approvals, Asked, Choice, Command, CommandName, Decision, Expiry, Gate, Lease, Next, Refusal, RunState,
    Standing, Verdict, WorkerMove,
};
