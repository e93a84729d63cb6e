//! What is executed: the states of a run and the commands that move it, and the small expression
//! language of contracts. Pure: nothing here reads a clock, a disk or a network.

pub mod expression;
mod state;

pub use state::{
    Command, CommandName, Decision, Gate, Lease, Next, Refusal, RunState, Standing, Verdict, WorkerMove,
    allowed, transition,
};
