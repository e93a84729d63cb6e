//! Linear dialog for screen readers and terminals without cursor movement: labeled lines.

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

/// Formats a text as lines for a dialog: without indentation, and without symbols of this program.
pub fn clean_lines(text: &str) -> String {
    text.lines().map(|line| clean(line.trim()) + "\n").collect()
}

/// Formats text of runs and skills on one line. Printable characters are preserved, because screen readers read them;
/// symbols that texts of this program contain become ASCII characters, and invisible characters codes (`<U+00A0>`).
pub fn clean(text: &str) -> String {
    let code = |c: u32| format!("<U+{c:04X}>");
    let mut out = String::with_capacity(text.len());
    for c in safe_text::line(text).replace(" × ", " x ").chars() {
        match c {
            '…' => out.push_str("..."),
            '→' => out.push_str("->"),
            '⟨' => out.push('<'),
            '⟩' => out.push('>'),
            // The pictures of control characters.
            '␀'..='␟' => out += &code(u32::from(c) - u32::from('␀')),
            '␡' => out += &code(0x7f),
            _ if c.is_whitespace() && c != ' ' => out += &code(u32::from(c)),
            _ => out.push(c),
        }
    }
    out
}

/// Like [`clean`], for a text of this program, whose typographic quotation marks become ASCII ones. In a value of a run
/// they would end a quoted part.
pub fn clean_own(text: &str) -> String {
    clean(text).replace(['“', '”'], "\"").replace(['‘', '’'], "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_characters_are_preserved() {
        for text in ["100 €, not ¥; a−b×c∕d ✗ ①", "nai\u{308}ve 表 ✓", "a  b", "“a” ‘b’"]
        {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn own_symbols_and_invisible_characters_are_ascii() {
        assert_eq!(
            clean_own("“a” ‘b’ c… 2 rows × 3 columns, d → e"),
            "\"a\" 'b' c... 2 rows x 3 columns, d -> e"
        );
        assert_eq!(clean("a\u{a0}b\u{1b}\u{7f}\u{202e}\nc"), "a<U+00A0>b<U+001B><U+007F><U+202E> c");
        assert_eq!(clean(&safe_text::name("a\u{3000}")), "a<U+3000>");
    }
}
