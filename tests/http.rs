//! The service over loopback: what a program at the other end of a connection asks, gets, and does wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "http/answers.rs"]
mod answers;
#[path = "http/callers.rs"]
mod callers;
#[path = "http/codes.rs"]
mod codes;
#[path = "http/connections.rs"]
mod connections;
#[path = "http/events.rs"]
mod events;
#[path = "http/house.rs"]
mod house;
#[path = "http/mistakes.rs"]
mod mistakes;
#[path = "http/rough.rs"]
mod rough;
mod runs_place;
#[path = "http/tools.rs"]
mod tools;
#[path = "http/troubles.rs"]
mod troubles;
#[path = "http/verify.rs"]
mod verify;
