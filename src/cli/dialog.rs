//! Linear dialog for screen readers and terminals without cursor movement: labeled lines in ASCII.

use std::io::{BufRead, StdinLock, StdoutLock, Write};

use super::failure::Failure;
use skills_skill::safe_text;

/// A line-based dialog.
pub struct Dialog<R, W> {
    /// Source of the answers.
    pub input: R,
    /// Destination of the lines.
    pub output: W,
}

impl Dialog<StdinLock<'static>, StdoutLock<'static>> {
    /// Returns the dialog on standard input and output.
    pub fn of_terminal() -> Self {
        Self { input: std::io::stdin().lock(), output: std::io::stdout().lock() }
    }
}

impl<R: BufRead, W: Write> Dialog<R, W> {
    /// Prints a line.
    ///
    /// # Errors
    /// Returns an error if the output is closed.
    pub fn print_line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        writeln!(self.output, "{}", line.as_ref()).map_err(Failure::from)
    }

    /// Prompts for a line; returns `None` at the end of the input.
    pub fn ask(&mut self, prompt: &str) -> Result<Option<String>, Failure> {
        self.print_line(prompt)?;
        write!(self.output, "> ").map_err(Failure::from)?;
        self.output.flush().map_err(Failure::from)?;
        let mut line = String::new();
        let read = self
            .input
            .read_line(&mut line)
            .map_err(|error| Failure::usage(format!("cannot read the reply: {error}")))?;
        Ok((read > 0).then(|| line.trim().to_owned()))
    }
}

/// Begins a text with a capital letter.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Joins parts to sentences, each with a full stop.
pub fn sentences(parts: Vec<String>) -> String {
    let end = |part: String| if part.ends_with('.') { part } else { part + "." };
    parts.into_iter().filter(|part| !part.is_empty()).map(end).collect::<Vec<_>>().join(" ")
}

/// Formats a text as lines for a dialog: without indentation, with letters and ASCII characters only.
pub fn clean_lines(text: &str) -> String {
    text.lines().map(|line| clean(line.trim()) + "\n").collect()
}

/// Formats text of runs and skills on one line, with letters and ASCII characters only.
pub fn clean(text: &str) -> String {
    let line = safe_text::line(text).replace('…', "...");
    let ascii = |c: char| match c {
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        '–' | '—' | '−' => '-',
        '×' => 'x',
        c if c.is_ascii() || c.is_alphanumeric() => c,
        _ => '?',
    };
    line.chars().map(ascii).collect()
}
