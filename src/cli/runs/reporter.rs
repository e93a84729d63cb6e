//! Messages of a command in addition to its result: lines on standard error, a progress line on a terminal, prompts.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::failure::Failure;
use crate::output::{HANGING, TerminalCaps, TextStyle, stderr_caps};
use skills_api::{Code, Error};
use skills_skill::safe_text;

/// Standard error of a command that executes a run. Silent with `--json`, where only errors are written to it.
pub struct Reporter {
    /// Its capabilities.
    pub look: TerminalCaps,
    quiet: bool,
    moving: bool,
    /// Whether it reports in labeled lines.
    pub labeled: bool,
}

impl Reporter {
    /// Creates a reporter on standard error.
    pub fn new(look: TerminalCaps, quiet: bool) -> Self {
        Self { look, quiet, moving: false, labeled: false }
    }

    /// Creates a reporter of labeled lines on standard error.
    pub fn labeled(look: TerminalCaps) -> Self {
        Self { labeled: true, ..Self::new(look, false) }
    }

    /// Returns whether a progress line may be shown.
    pub fn moves(&self) -> bool {
        self.look.terminal && self.look.color && !self.quiet
    }

    /// Prints complete lines above the progress line.
    pub fn print_line(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        let text = text.trim_end_matches('\n');
        self.clear();
        let look = if self.labeled { self.look.labeled() } else { self.look };
        // If standard error is closed, nothing can be reported.
        drop(writeln!(io::stderr().lock(), "{}", look.fitted(text)));
    }

    /// Prints a message that may contain text of others, indented like `head`.
    pub fn print_message(&mut self, head: &str, text: &str) {
        self.print_line(&self.look.message_rows(head, HANGING, text).join("\n"));
    }

    /// Prints a message that the user, or the calling program, must see: with `--json` too.
    pub fn warn(&mut self, text: &str) {
        self.clear();
        let text = self.look.labeled_message("warning:", TextStyle::Warn, text);
        drop(write!(io::stderr().lock(), "{text}"));
    }

    /// Shows a text in the progress line.
    pub fn show(&mut self, text: &str) {
        if self.moves() {
            let mut err = io::stderr().lock();
            drop(write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()));
            self.moving = true;
        }
    }

    /// Removes the progress line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.moving) {
            let mut err = io::stderr().lock();
            drop(write!(err, "\r\x1b[K").and_then(|()| err.flush()));
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Prompts on the terminal, on one line, and returns the line entered; `means` names the options to pass without a
/// terminal.
///
/// # Errors
/// Returns `confirmation_required` if there is no terminal to prompt on.
pub fn ask(question: &str, means: &str) -> Result<String, Failure> {
    Ok(ask_text(question, means)?.to_lowercase())
}

/// Like [`ask`], without converting the answer to lowercase.
pub fn ask_text(question: &str, means: &str) -> Result<String, Failure> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let message = format!("confirmation required: not running in a terminal; {means}");
        return Err(Error::new(Code::ConfirmationRequired, message).into());
    }
    let mut err = io::stderr().lock();
    let question = safe_text::line(question);
    drop(write!(err, "{} ", stderr_caps(true).fitted(&question)).and_then(|()| err.flush()));
    let mut line = String::new();
    io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::usage(format!("cannot read the reply: {error}")))?;
    Ok(line.trim().to_owned())
}
