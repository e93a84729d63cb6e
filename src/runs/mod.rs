//! What is executed: the states of a run and the commands that move it.

mod state;

pub use state::{
    Asked, Choice, Command, CommandName, Decision, Expiry, Gate, Lease, Next, Refusal, RunState, Standing,
    Verdict, WorkerMove, allowed, transition,
};
