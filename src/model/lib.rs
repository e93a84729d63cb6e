//! The run model: the states of a run and the commands that change them.

mod state;
mod types;

pub use state::{allowed, check_offered, transition};
pub use types::expired_at_text;
pub use types::{
    ApprovalReason, Approvals, BEFORE_FIRST_STEP, Choice, Command, CommandName, Decision, Expiry, Gate,
    Lease, RunSnapshot, RunState, Transition, TransitionError, Verdict, WorkerReport, approval_label,
    step_label,
};
