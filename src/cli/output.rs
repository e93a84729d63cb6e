//! Output of commands: standard output with or without color, as wide as the terminal; a closed pipe (`| head`) ends
//! the program silently.

pub use skills_base::duration::elapsed_micros;
pub use skills_base::number::{byte_size, counted, grouped, inflected};
pub use skills_skill::text_width::{broken, cells};
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;
use unicode_segmentation::UnicodeSegmentation;

use super::args::Global;
use super::links::Hyperlinks;
use skills_skill::safe_text;
use skills_skill::tokens::TokenCount;

/// The style of a piece of text, using the 16 colors that every terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    Strong,
    Muted,
    Good,
    Warn,
    Bad,
    Info,
    SignalName,
    SignalDescription,
    SignalBody,
    SignalSemantic,
    SignalRule,
}

impl TextStyle {
    /// The styles of the five signals, in the order of a score's columns.
    pub const SIGNALS: [Self; 5] =
        [Self::SignalName, Self::SignalDescription, Self::SignalBody, Self::SignalSemantic, Self::SignalRule];

    /// Returns the SGR parameters (ECMA-48). No background, black or white, so that it is readable on any background.
    fn codes(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Muted => "2",
            Self::Good | Self::SignalBody => "32",
            Self::Warn => "33",
            Self::Bad => "1;31",
            Self::Info | Self::SignalDescription => "36",
            Self::SignalName => "34",
            Self::SignalSemantic => "35",
            Self::SignalRule => "90",
        }
    }

    /// Applies the style to a line, whose own control characters become visible, and line breaks spaces.
    pub fn paint(self, text: &str, color: bool) -> String {
        let codes = self.codes();
        let text = safe_text::line(text);
        if !color || text.is_empty() { text.into_owned() } else { format!("\x1b[{codes}m{text}\x1b[0m") }
    }
}

/// The capabilities of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalCaps {
    /// Whether colors may be written.
    pub color: bool,
    /// Whether characters beyond ASCII may be written.
    pub unicode: bool,
    /// Width in cells.
    pub width: usize,
    /// Whether it is a terminal (bundle text is sanitized in any case; only `--source` is raw into a pipe).
    pub terminal: bool,
}

/// A width larger than that of any text. Labeled lines have it in addition to the width of the terminal.
const ENDLESS: usize = 1 << 20;

/// The first character of a row that is not broken: a control character, which safe text does not contain.
const UNBROKEN: &str = "\u{2}";

/// A space where a row is not broken: a control character, which safe text does not contain.
const JOINING_SPACE: &str = "\u{1}";

impl TerminalCaps {
    /// Returns the capabilities for labeled lines: without colors, characters beyond ASCII and a width.
    pub fn labeled(self) -> Self {
        Self { color: false, unicode: false, width: ENDLESS + self.screen_width() % ENDLESS, ..self }
    }

    /// Returns whether text is wrapped or truncated to the width.
    fn is_bounded(self) -> bool {
        self.terminal && self.width < ENDLESS
    }

    /// Returns the width for text that may be wrapped or truncated: that of the terminal, at most `most` cells. In a
    /// pipe and in labeled lines text and paths are complete, on one line.
    pub fn text_width(self, most: usize) -> usize {
        if self.is_bounded() { self.width.min(most) } else { ENDLESS }
    }

    /// Returns the width at which the terminal continues a line in its first column.
    fn screen_width(self) -> usize {
        if self.terminal { self.width % ENDLESS } else { ENDLESS }
    }

    /// Returns the capabilities for text of at most `most` cells in a line.
    pub fn at_most(self, most: usize) -> Self {
        if self.is_bounded() { Self { width: self.width.min(most), ..self } } else { self }
    }

    /// Breaks a row with text of others into lines that fit the terminal: the first one begins with `head`, the others with
    /// `rest`, which is at least as wide. The terminal would continue a longer line in its first column, where it looks like
    /// a row of this program.
    pub fn rows(self, head: &str, rest: &str, text: &str) -> Vec<String> {
        let width = self.screen_width();
        let is_short = text.is_empty() || cells(head) + cells(text) <= width;
        let mut lines =
            if is_short { vec![text.to_owned()] } else { broken(text, width.saturating_sub(cells(rest))) };
        for (at, line) in lines.iter_mut().enumerate() {
            line.insert_str(0, if at == 0 { head } else { rest });
        }
        lines
    }

    /// Breaks a message like [`Self::rows`], except for commands in backticks that fit a row, so that they can be copied.
    pub fn message_rows(self, head: &str, rest: &str, text: &str) -> Vec<String> {
        let text = joined_commands(text, self.screen_width().saturating_sub(cells(rest)));
        let rows = self.rows(head, rest, &text);
        rows.into_iter().map(|row| row.replace(JOINING_SPACE, " ")).collect()
    }

    /// Breaks the rows of a text that are wider than the terminal, except for those of [`Self::command_row`]. A row that is
    /// broken loses its styles.
    pub fn fitted(self, text: &str) -> Cow<'_, str> {
        let width = if self.is_bounded() { self.width } else { usize::MAX };
        // No character takes more cells than bytes.
        if text.lines().all(|line| line.len() <= width) && !text.contains(UNBROKEN) {
            return Cow::Borrowed(text);
        }
        let rows = text.split_inclusive('\n').map(|row| {
            let line = row.trim_end_matches('\n');
            if let Some(command) = row.strip_prefix(UNBROKEN) {
                return command.to_owned();
            }
            let plain = if line.len() > width { without_styles(line) } else { String::new() };
            if cells(&plain) <= width {
                return row.to_owned();
            }
            let broken = self.hanging_rows(plain.trim_end()).join("\n");
            if line.len() < row.len() { broken + "\n" } else { broken }
        });
        Cow::Owned(rows.collect())
    }

    /// Breaks a row that is wider than the terminal: only further lines are indented.
    fn hanging_rows(self, row: &str) -> Vec<String> {
        let row = joined_commands(row, self.screen_width().saturating_sub(cells(HANGING)));
        let first = broken(&row, self.screen_width()).into_iter().next().unwrap_or_default();
        let rest = self.rows(HANGING, HANGING, row[first.len()..].trim_start());
        let rows = std::iter::once(first).chain(rest);
        rows.map(|row| row.replace(JOINING_SPACE, " ")).collect()
    }

    /// Returns a row with a command, which is not broken, so that it can be copied, unless spaces in an argument could fill
    /// the row.
    pub fn command_row(self, head: &str, command: &str) -> String {
        if has_spaced_argument(command) {
            format!("{head}{command}")
        } else {
            self.unbroken_row(head, command)
        }
    }

    /// Returns a row that is not broken, because only the user's own words can fill it.
    pub fn unbroken_row(self, head: &str, text: &str) -> String {
        format!("{}{head}{text}", if self.terminal { UNBROKEN } else { "" })
    }

    /// Renders a message with its label. On a terminal its further lines and rows are indented, because it may contain text
    /// of others.
    pub fn labeled_message(self, label: &str, style: TextStyle, text: &str) -> String {
        let mut text = format!("{label} {}", safe_text::block(text));
        if self.terminal {
            let heads = std::iter::once("").chain(std::iter::repeat("  "));
            let rows = text.lines().zip(heads).flat_map(|(line, head)| self.message_rows(head, "  ", line));
            text = rows.collect::<Vec<_>>().join("\n");
        }
        let after = text.strip_prefix(label).unwrap_or(&text);
        format!("{}{after}\n", style.paint(label, self.color))
    }

    /// Formats a name as a cell of a column: truncated on a terminal. In a pipe it is complete, padded to the column's
    /// width, because other commands accept it.
    pub fn name(self, name: &str, width: usize) -> String {
        fit(name, if self.is_bounded() { width } else { width.max(cells(name)) }, self.unicode)
    }

    /// Returns the width of a column of names: that of the longest, on a terminal at most `most` cells.
    pub fn name_width<'a>(self, names: impl Iterator<Item = &'a str>, least: usize, most: usize) -> usize {
        let longest = names.map(|name| cells(&safe_text::name(name))).max().unwrap_or(0);
        // Widths beyond 16 bits cannot be formatted.
        longest.max(least).min(if self.is_bounded() { most.max(least) } else { usize::from(u16::MAX) })
    }
}

/// Replaces the spaces in commands in backticks that fit a row.
fn joined_commands(text: &str, width: usize) -> String {
    let parts: Vec<String> = text
        .split('`')
        .map(|part| {
            // The command may be in parentheses and followed by a punctuation mark.
            let is_command = part.starts_with("skills ") && cells(part) + cells("(``),") <= width;
            if is_command { part.replace(' ', JOINING_SPACE) } else { part.to_owned() }
        })
        .collect();
    parts.join("`")
}

/// Returns whether a quoted argument of a command contains white space.
fn has_spaced_argument(command: &str) -> bool {
    let mut chars = command.chars();
    // Whether the quotation has escape sequences: `$'…'`.
    let mut quotation = None;
    let mut before = ' ';
    while let Some(c) = chars.next() {
        match quotation {
            None if c == '\'' => quotation = Some(before == '$'),
            None | Some(true) if c == '\\' => {
                chars.next();
            }
            Some(_) if c == '\'' => quotation = None,
            Some(_) if c.is_whitespace() => return true,
            _ => {}
        }
        before = c;
    }
    false
}

/// Removes the styles of this program and the hyperlinks.
fn without_styles(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.chars().next() {
            Some('[') => out.push_str(part.split_once('m').map_or("", |(_, text)| text)),
            // The address of a hyperlink, whose end begins the next part.
            Some(']') => {}
            _ => out.push_str(part.strip_prefix('\\').unwrap_or(part)),
        }
    }
    out
}

/// Environment that determines the capabilities.
struct TerminalEnvironment<'a> {
    terminal: bool,
    no_color: bool,
    term: Option<&'a str>,
    locale: Option<&'a str>,
    columns: Option<usize>,
}

impl TerminalEnvironment<'_> {
    fn look(&self) -> TerminalCaps {
        let dumb = self.terminal && matches!(self.term, Some("dumb" | "") | None);
        let utf8 = self.locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        TerminalCaps {
            color: self.terminal && !self.no_color && !dumb,
            // A pipe accepts UTF-8 whatever the terminal after it; the Linux console lacks the characters.
            unicode: utf8 && !(self.terminal && matches!(self.term, Some("linux" | "dumb"))),
            width: self.columns.unwrap_or(80).clamp(40, 200),
            terminal: self.terminal,
        }
    }
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn look_of(terminal: bool, global_no_color: bool) -> TerminalCaps {
    let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG"));
    let term = std::env::var("TERM").ok();
    let columns = if terminal {
        crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns))
    } else {
        env("COLUMNS").and_then(|columns| columns.parse().ok())
    };
    TerminalEnvironment {
        terminal,
        no_color: global_no_color || env("NO_COLOR").is_some(),
        term: term.as_deref(),
        locale: locale.as_deref(),
        columns: columns.filter(|&columns| columns > 0),
    }
    .look()
}

/// Returns the capabilities of standard error.
pub fn stderr_caps(no_color: bool) -> TerminalCaps {
    look_of(io::stderr().is_terminal(), no_color)
}

/// Returns the capabilities of standard output.
pub fn stdout_caps(no_color: bool) -> TerminalCaps {
    look_of(io::stdout().is_terminal(), no_color)
}

/// Standard output of a command.
pub struct Out {
    sink: Box<dyn Write>,
    /// Its capabilities.
    pub look: TerminalCaps,
    pub json: bool,
    /// Whether it consists of labeled lines.
    pub labeled: bool,
    /// What is hyperlinked.
    pub links: Hyperlinks,
}

impl Out {
    /// Returns the process's standard output.
    pub fn stdout(global: &Global) -> Self {
        let look = stdout_caps(global.no_color);
        Self {
            sink: Box::new(BufWriter::new(io::stdout())),
            look,
            json: global.json,
            labeled: global.plain,
            links: Hyperlinks::default(),
        }
    }

    /// Writes a line.
    pub fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.text(text.as_ref().trim_end_matches(' '))?;
        self.sink.write_all(b"\n")
    }

    /// Writes rows, broken to the width of the terminal, or labeled lines.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let look = if self.labeled { self.look.labeled() } else { self.look };
        self.sink.write_all(look.fitted(text).as_bytes())
    }

    /// Writes bytes unchanged: contents, and formats for other programs.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)
    }

    /// Writes a value as JSON, indented on a terminal, on one line in a pipe.
    pub fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        if self.look.terminal {
            let text = serde_json::to_string_pretty(value)?;
            self.sink.write_all(safe_text::json(&text).as_bytes())?;
        } else {
            serde_json::to_writer(&mut self.sink, value)?;
        }
        self.sink.write_all(b"\n")
    }

    /// Writes a value as JSON if that is requested, otherwise as the text that `render` returns.
    pub fn show(
        &mut self,
        value: &impl Serialize,
        render: impl FnOnce(TerminalCaps) -> String,
    ) -> io::Result<()> {
        if self.json { self.value(value) } else { self.text(&render(self.look)) }
    }

    /// Writes a value as JSON if that is requested, otherwise as this line.
    pub fn show_line(&mut self, value: &impl Serialize, line: impl AsRef<str>) -> io::Result<()> {
        if self.json { self.value(value) } else { self.line(line) }
    }

    /// Writes a value as one line of JSON, even on a terminal.
    pub fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        if self.look.terminal {
            let text = serde_json::to_string(value)?;
            self.sink.write_all(safe_text::json(&text).as_bytes())?;
        } else {
            serde_json::to_writer(&mut self.sink, value)?;
        }
        self.sink.write_all(b"\n")
    }

    /// Styles text, if colors are enabled.
    pub fn paint(&self, style: TextStyle, text: &str) -> String {
        style.paint(text, self.look.color)
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Truncates the text to at most `width` cells, with an ellipsis.
pub fn cut(text: &str, width: usize, unicode: bool) -> String {
    if cells(text) <= width {
        return text.to_owned();
    }
    let ellipsis = if unicode { "…" } else { "..." };
    let available = width.saturating_sub(cells(ellipsis));
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = cells(grapheme);
        if used + wide > available {
            break;
        }
        used += wide;
        out.push_str(grapheme);
    }
    out.truncate(out.trim_end().len());
    out.push_str(ellipsis);
    out
}

/// Formats the text in exactly `width` cells: truncated or padded with spaces.
pub fn fit(text: &str, width: usize, unicode: bool) -> String {
    padded(cut(text, width, unicode), width)
}

/// The same, where a text that is too long keeps its end, which distinguishes it from others.
pub fn fit_end(text: &str, width: usize, unicode: bool) -> String {
    padded(cut_middle(text, width, unicode), width)
}

fn padded(mut text: String, width: usize) -> String {
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(cells(&text))));
    text
}

/// Truncates the text in its middle to at most `width` cells: its end distinguishes it from others.
pub fn cut_middle(text: &str, width: usize, unicode: bool) -> String {
    if cells(text) <= width {
        return text.to_owned();
    }
    let mut out = cut(text, width / 3, unicode);
    let mut left = width.saturating_sub(cells(&out));
    let mut end = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        let Some(rest) = left.checked_sub(cells(grapheme)) else { break };
        (end, left) = (at, rest);
    }
    out.push_str(&text[end..]);
    out
}

/// Wraps a styled text that begins after `indent` cells of a line of `width`; its further lines begin below it.
pub fn wrap_after(indent: usize, text: &str, width: usize, style: TextStyle, color: bool) -> String {
    let lines = wrap(text, width.saturating_sub(indent).max(20));
    let lines: Vec<String> = lines.iter().map(|line| style.paint(line, color)).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Wraps a paragraph into lines of at most `width` cells at spaces; a longer word is split.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        if !line.is_empty() {
            if used + 1 + cells(word) > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            } else {
                line.push(' ');
                used += 1;
            }
        }
        for grapheme in word.graphemes(true) {
            let wide = cells(grapheme);
            if used + wide > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            used += wide;
            line.push_str(grapheme);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Spaces in front of the further lines of a row, where no row of this program begins.
pub const HANGING: &str = "            ";

/// Appends a row with text of others, whose further lines are aligned with the end of `head`.
pub fn push_row(out: &mut String, head: &str, text: &str, look: TerminalCaps) {
    for line in look.rows(head, &" ".repeat(cells(head)), text) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// Appends a painted row with text of others, or, if it is wider than the terminal, rows without color.
pub fn push_painted(out: &mut String, look: TerminalCaps, row: impl Fn(TerminalCaps) -> String) {
    let rows = look.message_rows("", HANGING, &row(TerminalCaps { color: false, ..look }));
    let text = if rows.len() == 1 { row(look) } else { rows.join("\n") };
    out.push_str(&text);
    out.push('\n');
}

/// Appends a row of several parts, or each of them in lines of its own if the row is wider than the terminal.
pub fn push_parts(out: &mut String, parts: &[(TextStyle, &str)], look: TerminalCaps) {
    let texts: Vec<&str> = parts.iter().map(|(_, text)| *text).collect();
    if cells(&texts.join("  ")) <= look.screen_width() {
        let painted: Vec<String> = parts.iter().map(|(style, text)| style.paint(text, look.color)).collect();
        out.push_str(&painted.join("  "));
        out.push('\n');
        return;
    }
    for (at, (style, text)) in parts.iter().enumerate() {
        for line in look.rows(if at == 0 { "" } else { HANGING }, HANGING, text) {
            out.push_str(&style.paint(&line, look.color));
            out.push('\n');
        }
    }
}

/// Formats tokens, marking an estimate: `≈14,639`.
pub fn tokens(count: TokenCount, unicode: bool) -> String {
    format!(
        "{}{}",
        if count.estimated { estimate_sign(unicode) } else { "" },
        grouped(u64::from(count.tokens))
    )
}

/// Returns the sign of an estimate.
pub fn estimate_sign(unicode: bool) -> &'static str {
    if unicode { "≈" } else { "~" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(terminal: bool, term: &'static str) -> TerminalEnvironment<'static> {
        TerminalEnvironment {
            terminal,
            no_color: false,
            term: Some(term),
            locale: Some("C.UTF-8"),
            columns: None,
        }
    }

    #[test]
    fn color_needs_a_terminal_and_no_opt_out() {
        assert!(around(true, "xterm-256color").look().color);
        assert!(!around(false, "xterm-256color").look().color);
        assert!(!around(true, "dumb").look().color);
        assert!(!TerminalEnvironment { no_color: true, ..around(true, "xterm") }.look().color);
        assert_eq!(TextStyle::Bad.paint("x", false), "x");
    }

    #[test]
    fn glyphs_follow_locale_and_console() {
        assert!(around(true, "xterm").look().unicode);
        assert!(!around(true, "linux").look().unicode);
        assert!(!TerminalEnvironment { locale: Some("C"), ..around(true, "xterm") }.look().unicode);
    }

    #[test]
    fn only_text_on_a_terminal_is_truncated() {
        let screen = TerminalCaps { color: false, unicode: true, width: 60, terminal: true };
        assert_eq!((screen.text_width(110), screen.name("pdf-tables", 5)), (60, "pdf-…".to_owned()));
        for look in [screen.labeled(), TerminalCaps { terminal: false, ..screen }] {
            assert!(look.text_width(110) > 110);
            assert_eq!(look.name("pdf-tables", 5), "pdf-tables");
        }
        let path = "/home/kim/skills/pdf-tables/SKILL.md";
        assert_eq!(cut_middle(path, 24, true), "/home/k…-tables/SKILL.md");
        assert_eq!(cut_middle(path, 100, true), path);
    }

    #[test]
    fn wide_characters_are_truncated_and_padded_by_cells() {
        assert_eq!(cut("表データ抽出", 7, true), "表デー…");
        assert_eq!(fit("表", 4, true), "表  ");
        assert_eq!(cut("abcdef", 5, false), "ab...");
    }

    #[test]
    fn a_word_of_a_megabyte_is_wrapped_in_one_pass() {
        let word = "x".repeat(1_000_000);
        assert_eq!(wrap(&word, usize::MAX), [word.as_str()], "without a terminal there is no width");
        let lines = wrap(&word, 80);
        assert_eq!((lines.len(), lines.concat() == word), (12_500, true));
        let sentence = "ab ".repeat(300_000);
        assert_eq!(wrap(&sentence, usize::MAX), [sentence.trim_end()]);
        assert_eq!(wrap("表格提取工具 ab", 8), ["表格提取", "工具 ab"]);
    }

    #[test]
    fn painted_text_is_one_line() {
        assert_eq!(TextStyle::Strong.paint("01a2\nFORGED\u{1b}[2J", false), "01a2 FORGED␛[2J");
        assert_eq!(TextStyle::Strong.paint("a\r\nb", true), "\u{1b}[1ma b\u{1b}[0m");
    }

    #[test]
    fn text_of_others_never_begins_in_the_first_column() {
        let screen = TerminalCaps { color: false, unicode: true, width: 40, terminal: true };
        let forged = format!("w.py{}  hooks     none", " ".repeat(24));
        let mut out = String::new();
        push_row(&mut out, "  scripts   ", &forged, screen);
        assert_eq!(out.lines().next(), Some("  scripts   w.py"));
        assert!(out.lines().all(|line| cells(line) <= 40), "{out}");
        assert!(out.lines().skip(1).all(|line| line.starts_with(HANGING)), "{out}");
        let added = screen.rows("+ ", "+ ", &format!("log.{}- Upload all keys.", " ".repeat(40)));
        assert!(added.len() > 1 && added.iter().all(|line| line.starts_with("+ ")), "{added:?}");
        assert_eq!(screen.rows("- ", "- ", ""), ["- "]);
        let mut out = String::new();
        push_parts(&mut out, &[(TextStyle::Strong, "pay"), (TextStyle::Muted, forged.as_str())], screen);
        assert!(
            out.starts_with("pay\n") && out.lines().skip(1).all(|line| line.starts_with(HANGING)),
            "{out}"
        );
        let mut out = String::new();
        let color = TerminalCaps { color: true, ..screen };
        push_painted(&mut out, color, |look| TextStyle::Strong.paint("pay", look.color));
        push_painted(&mut out, color, |look| format!("{}: no", TextStyle::Strong.paint(&forged, look.color)));
        assert!(out.starts_with("\u{1b}[1mpay\u{1b}[0m\nw.py\n"), "{out}");
        assert!(out.lines().skip(2).all(|line| line.starts_with(HANGING)), "{out}");
        assert_eq!(out.matches('\u{1b}').count(), 2, "{out}");
        let piped = TerminalCaps { terminal: false, ..screen };
        for look in [piped, piped.labeled()] {
            assert_eq!(look.at_most(10).rows("+ ", "+ ", &forged), [format!("+ {forged}")]);
        }
        assert_eq!(screen.labeled().labeled().rows("+ ", "+ ", &forged), screen.rows("+ ", "+ ", &forged));
    }

    #[test]
    fn rows_that_are_wider_than_the_terminal_are_broken() {
        let screen = TerminalCaps { color: true, unicode: true, width: 40, terminal: true };
        let name = TextStyle::Strong.paint(&format!("wire-a{}wire  denied", " ".repeat(34)), true);
        let text = format!("{name}\n  short\n{}\n", screen.command_row("  next: ", &"x".repeat(60)));
        let fitted = screen.fitted(&text).into_owned();
        let rows: Vec<&str> = fitted.lines().collect();
        assert!(rows.iter().all(|row| !row.starts_with("wire  denied")), "{rows:?}");
        assert_eq!(rows[0], "wire-a");
        assert_eq!(rows[rows.len() - 2..], ["  short", &format!("  next: {}", "x".repeat(60))]);
        // A command whose argument could fill the row is broken, and nothing is in a pipe.
        let spaces = " ".repeat(60);
        for argument in
            [format!("'a{spaces}b'"), format!("'it'\\''s{spaces}b'\\'''"), format!("$'it\\'s{spaces}b'")]
        {
            let row = screen.command_row("", &format!("skills why {argument}"));
            assert!(screen.fitted(&row).lines().count() > 1, "{argument}");
        }
        let quoted = screen.command_row("", &format!("skills why 'it'\\''s{}' b c", "x".repeat(60)));
        assert_eq!(screen.fitted(&quoted).lines().count(), 1);
        let command = format!("skills why 'a{spaces}b'");
        let pipe = TerminalCaps { terminal: false, ..screen };
        assert_eq!(pipe.fitted(&pipe.command_row("", &command)), command);
        assert_eq!(screen.fitted(&" ".repeat(60)).trim(), "");
        assert_eq!(screen.labeled().fitted(&text), text.replace(UNBROKEN, ""));
    }

    #[test]
    fn commands_in_messages_are_not_broken() {
        let screen = TerminalCaps { color: false, unicode: true, width: 40, terminal: true };
        let message = |text: &str| screen.labeled_message("error:", TextStyle::Bad, text);
        assert_eq!(
            message("`pay` is not trusted; review it, then run `skills trust pay-invoices`; or ask"),
            "error: `pay` is not trusted; review\n  it, then run\n  `skills trust pay-invoices`; or ask\n"
        );
        let long = format!("run `skills trust {}`", "pay ".repeat(12));
        assert!(message(&long).lines().all(|row| cells(row) <= 40), "{}", message(&long));
        let forged = format!("unknown account DE00{}✓ completed\n✓ completed", " ".repeat(20));
        assert_eq!(message(&forged).matches("\n✓").count(), 0, "{}", message(&forged));
        let piped = TerminalCaps { terminal: false, ..screen };
        assert_eq!(piped.labeled_message("error:", TextStyle::Bad, &forged), format!("error: {forged}\n"));
    }

    #[test]
    fn ligatures_do_not_hide_that_a_row_is_too_long() {
        let screen = TerminalCaps { color: false, unicode: true, width: 40, terminal: true };
        let forged = format!("{}  iban    DE00 ALICE", "\u{644}\u{627}".repeat(8));
        let rows = screen.rows("  about   ", HANGING, &forged);
        assert!(rows.len() > 1 && rows.iter().all(|row| row.chars().count() <= 40), "{rows:?}");
    }

    #[test]
    fn paragraphs_break_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("turn tables into rows", 11), ["turn tables", "into rows"]);
        assert_eq!(wrap("abcdefghijkl", 8), ["abcdefgh", "ijkl"]);
    }
}
