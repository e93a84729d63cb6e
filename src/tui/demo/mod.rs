//! Demonstrations: a script of keys and sentences that drives the workbench as a person would. Nothing in it is a
//! recorded answer; looking back shows pictures of what was on the screen.

mod cast;
mod player;
mod redact;
mod script;
mod stage;

pub use cast::AsciicastWriter;
pub use player::{Player, Turn};
pub use redact::Redaction;
pub use script::{Input, Script, Step, shipped};
pub use stage::DemoScreen;

use std::path::PathBuf;
use std::time::Duration;

/// How a demonstration is played.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// What is played.
    pub script: Script,
    /// Continue by itself after so long.
    pub auto: Option<Duration>,
    /// Write a recording (asciicast) here.
    pub record: Option<PathBuf>,
    /// Write a picture (SVG) of each step into this folder.
    pub pictures: Option<PathBuf>,
    /// What is made unreadable on the screen.
    pub redaction: Redaction,
}
