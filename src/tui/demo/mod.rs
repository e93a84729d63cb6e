//! Demonstrations: a script of keys and captions that drives the workbench as a user would. Results are live, not
//! recorded; stepping back shows captured frames.

mod asciicast;
mod demo_screen;
mod player;
mod redact;
mod script;

pub use asciicast::AsciicastWriter;
pub use demo_screen::DemoScreen;
pub use player::{DemoCommand, Player};
pub use redact::Redaction;
pub use script::{Input, Script, Step, shipped};

use std::path::PathBuf;
use std::time::Duration;

/// How a demonstration is played.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The script to play.
    pub script: Script,
    /// Continue automatically after this time.
    pub auto: Option<Duration>,
    /// Write a recording (asciicast) to this file.
    pub record: Option<PathBuf>,
    /// Write an image (SVG) of each step to this folder.
    pub pictures: Option<PathBuf>,
    /// What is redacted on the screen.
    pub redaction: Redaction,
}
