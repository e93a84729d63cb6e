//! The service over loopback: what a program at the other end of a connection asks, gets, and does wrong.

mod answers;
mod callers;
mod codes;
mod connections;
mod decisions;
mod events;
mod house;
mod mcp_sessions;
mod mistakes;
mod ownership;
mod paths;
mod proposals;
#[cfg(target_os = "linux")]
mod races;
mod rough;
mod starting;
mod tools;
mod troubles;
mod verify;
