//! The command line adapter: arguments in, text or JSON and an exit code out. No decisions.

use std::process::ExitCode;

/// Parses the process's arguments and runs the command; without one, the workbench.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
