//! Runs executed against real stores with a caller that does what a test says: order, control flow, gates, people,
//! signals, faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "engine/kit.rs"]
mod kit;

#[path = "engine/crashes.rs"]
mod crashes;
#[path = "engine/edits.rs"]
mod edits;
#[path = "engine/flow.rs"]
mod flow;
#[path = "engine/gates.rs"]
mod gates;
#[path = "engine/order.rs"]
mod order;
#[path = "engine/people.rs"]
mod people;
