//! Values and screens that several tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod answers;
pub mod catalogues;
pub mod fake_client;
pub mod note_pane;
pub mod pty;
pub mod screen;
