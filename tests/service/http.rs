//! The service over loopback: requests, responses and errors of a client.

mod answers;
mod callers;
mod codes;
mod connections;
mod decisions;
mod errors;
mod events;
mod faulty_bundles;
mod mcp_sessions;
mod ownership;
mod paths;
mod proposals;
#[cfg(target_os = "linux")]
mod races;
mod robustness;
mod starting;
mod test_server;
mod tools;
mod verify;
