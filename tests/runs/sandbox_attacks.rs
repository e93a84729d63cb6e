//! Attacks that a script of a bundle may try: each succeeds without isolation, and fails inside.
pub mod attack_setup;
mod files;
mod network;
mod processes;
mod resources;
