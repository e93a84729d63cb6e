//! Renders findings for users and CI: like compiler diagnostics, or as GitHub workflow commands.

use std::fmt::{self, Write as _};
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};
use unicode_segmentation::GraphemeCursor;

use crate::finding_builder::{floor, slice};
use crate::text_width::broken;
use crate::{Finding, Severity, safe_text};

/// How a report is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportStyle {
    /// Whether to use ANSI colors.
    pub colors: bool,
    /// Whether to use box-drawing characters instead of ASCII.
    pub unicode: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl Default for ReportStyle {
    fn default() -> Self {
        Self { colors: false, unicode: true, width: 80 }
    }
}

/// Renders the findings of one file with their source lines, in the given order. `path` is the display path of the
/// file, `source` its content. Both are passed through `safe_text`.
pub fn report(findings: &[Finding], path: &str, source: &str, look: ReportStyle) -> String {
    let theme = match (look.colors, look.unicode) {
        (true, true) => GraphicalTheme::unicode(),
        (true, false) => {
            GraphicalTheme { characters: miette::ThemeCharacters::ascii(), ..GraphicalTheme::unicode() }
        }
        (false, true) => GraphicalTheme::unicode_nocolor(),
        (false, false) => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(look.width.max(20))
        .with_wrap_lines(false)
        .with_context_lines(0)
        .with_links(false)
        .without_syntax_highlighting();
    let mut out = String::new();
    for finding in findings {
        let drawn = Drawn::new(finding, path, source, look);
        if handler.render_report(&mut out, &drawn).is_err() {
            // Fall back to plain text if the handler fails.
            let _ = write!(out, "{path}: {}: {}", finding.severity, drawn.message);
        }
        out.push('\n');
    }
    // The handler leaves spaces after empty labels.
    out.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// One finding in the format that miette renders; all its text is safe.
#[derive(Debug)]
struct Drawn {
    severity: Severity,
    code: String,
    message: String,
    help: String,
    excerpt: Excerpt,
    mark: Option<Range<usize>>,
}

impl Drawn {
    fn new(finding: &Finding, path: &str, source: &str, look: ReportStyle) -> Self {
        let mut message = safe_text::line(&finding.message).into_owned();
        if finding.fixable {
            message.push_str(" (fixable)");
        }
        let path = safe_text::line(path).into_owned();
        let mut excerpt = Excerpt { path, text: String::new(), line: 0, column: 0 };
        let mut mark = None;
        if let Some(span) = finding.span {
            // The file may have changed since the finding was created.
            let start = floor(source, span.offset as usize);
            let end = floor(source, start.saturating_add(span.length as usize)).max(start);
            let (text, range) =
                window(source, start..end, look.width.saturating_sub(16).max(24), look.unicode);
            excerpt.text = text;
            (excerpt.line, excerpt.column) =
                ((span.line as usize).saturating_sub(1), (span.column as usize).saturating_sub(1));
            mark = Some(range);
        } else {
            // Without a position, the message has to name the file.
            message = format!("{}: {message}", excerpt.path);
        }
        let code = finding.code.clone();
        // The handler would measure with other widths, so that the terminal could continue a line in its first column.
        let rows = |text: &str, indent: usize| broken(text, look.width.max(20) - indent).join("\n");
        let message = rows(&message, "  x ".len());
        let help = rows(&safe_text::line(&finding.help), "  help: ".len());
        Self { severity: finding.severity, code, message, help, excerpt, mark }
    }
}

/// Returns the line of a range for display: a window around the range, made safe, with the range in that window.
fn window(source: &str, at: Range<usize>, width: usize, unicode: bool) -> (String, Range<usize>) {
    let line_start = slice(source, ..at.start).rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = slice(source, at.start..).find('\n').map_or(source.len(), |newline| at.start + newline);
    let end = at.end.min(line_end);
    let ellipsis = if unicode { "…" } else { "..." };
    // A third of the window is for the text before the range.
    let back = slice(source, line_start..at.start).char_indices().rev().nth(width / 3);
    let back = back.filter(|_| line_end - line_start > width);
    // A mark without its base, and a joiner without what follows, would be shown by their codes.
    let line = slice(source, line_start..line_end);
    let from = back.map_or(line_start, |(cut, _)| line_start + cluster_boundaries(line, cut).1).min(at.start);
    let to = slice(source, from..line_end)
        .char_indices()
        .nth(width)
        .map_or(line_end, |(cut, _)| line_start + cluster_boundaries(line, from + cut - line_start).0);
    let end = end.clamp(at.start, to.max(at.start));
    let safe =
        |range: Range<usize>| safe_text::line(slice(source, range).trim_end_matches('\r')).into_owned();
    let mut text = if from > line_start { ellipsis.to_owned() } else { String::new() };
    text.push_str(&safe(from..at.start));
    let mark_start = text.len();
    text.push_str(&safe(at.start..end));
    let mark_end = text.len();
    text.push_str(&safe(end..to.max(end)));
    if to < line_end {
        text.push_str(ellipsis);
    }
    (text, mark_start..mark_end)
}

/// Returns the boundaries of grapheme clusters that are closest to a position: not after it, and not before it.
fn cluster_boundaries(text: &str, at: usize) -> (usize, usize) {
    let cursor = || GraphemeCursor::new(at, text.len(), true);
    if cursor().is_boundary(text, 0) != Ok(false) {
        return (at, at);
    }
    let before = cursor().prev_boundary(text, 0).ok().flatten();
    let after = cursor().next_boundary(text, 0).ok().flatten();
    (before.unwrap_or(at), after.unwrap_or(at))
}

/// One line of a file with its real position.
#[derive(Debug)]
struct Excerpt {
    path: String,
    text: String,
    line: usize,
    column: usize,
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        _: &SourceSpan,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let full_span = SourceSpan::new(0.into(), self.text.len());
        let place = (self.line, self.column);
        Ok(Box::new(MietteSpanContents::new_named(
            self.path.clone(),
            self.text.as_bytes(),
            full_span,
            place.0,
            place.1,
            1,
        )))
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Drawn {}

impl Diagnostic for Drawn {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("{}[{}]", self.severity, self.code)))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Info => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.mark.as_ref().map(|_| &self.excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let mark = self.mark.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(None, (mark.start, mark.len())))))
    }
}

/// Renders findings of one file as GitHub workflow commands, one per line: `::error file=…,line=…::message`
/// (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).
pub fn github(findings: &[Finding], path: &str) -> String {
    let mut out = String::new();
    for finding in findings {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        // Writing to a string cannot fail.
        let _ = write!(out, "::{command} file={}", property(path));
        if let Some(span) = finding.span {
            let _ = write!(out, ",line={},col={}", span.line, span.column);
        }
        let _ = write!(out, ",title={}", property(&finding.code));
        let text = format!("{}. {}", finding.message, finding.help);
        let _ = writeln!(out, "::{}", escaped(&text));
    }
    out
}

fn escaped(text: &str) -> String {
    safe_text::block(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SOURCE: &str = "---\nname: Pdf\ndescripton: x\ndescription: Extracts tables: from \u{202e}[31m PDF files of every kind that a person may come across when they work in an office, so that they can be read\n---\n# Tables\n";

    fn findings() -> Vec<Finding> {
        crate::parse(Path::new("/s/pdf/SKILL.md"), SOURCE.as_bytes(), 0).unwrap().findings
    }

    #[test]
    fn report_has_the_format_of_a_compiler() {
        insta::assert_snapshot!(report(&findings(), "pdf/SKILL.md", SOURCE, ReportStyle::default()));
    }

    #[test]
    fn a_report_in_ascii_is_ascii_and_fits() {
        let text = report(
            &findings(),
            "pdf/SKILL.md",
            SOURCE,
            ReportStyle { unicode: false, ..ReportStyle::default() },
        );
        let lines = text.lines().filter(|line| !line.contains('⟨'));
        assert!(lines.clone().all(|line| line.chars().count() <= 80), "{text}");
        assert!(lines.clone().all(str::is_ascii), "{text}");
    }

    #[test]
    fn an_excerpt_begins_and_ends_with_whole_clusters() {
        let cluster = "\u{9b7}\u{9cd}\u{9ae}";
        let source = format!("{}x{}\r\n", cluster.repeat(40), cluster.repeat(40));
        let start = cluster.len() * 40;
        for width in 24..36 {
            let (text, mark) = window(&source, start..start + 1, width, true);
            assert_eq!(text.get(mark), Some("x"));
            let ends = (format!("…{cluster}"), format!("{cluster}…"));
            assert!(text.starts_with(&ends.0) && text.ends_with(&ends.1) && !text.contains('⟨'), "{text}");
        }
        assert_eq!(window("a: x\r\n", 3..4, 24, true), ("a: x".to_owned(), 3..4));
    }

    #[test]
    fn report_of_a_changed_file_is_rendered() {
        let text = report(&findings(), "pdf/SKILL.md", "---\nname: é…é…é…é…é…é…é…é…", ReportStyle::default());
        assert!(text.contains("name-invalid") && text.contains("smuggled-text"));
        assert!(report(&findings(), "pdf/SKILL.md", "", ReportStyle::default()).contains("unquoted-colon"));
    }

    #[test]
    fn github_commands_are_escaped() {
        let mut finding = findings().remove(0);
        finding.message = "50 %\nof a::b".to_owned();
        finding.help = "Do \u{1b}it.".to_owned();
        finding.span = None;
        assert_eq!(
            github(&[finding], "a,b:c/SKILL.md"),
            "::error file=a%2Cb%3Ac/SKILL.md,title=name-invalid::50 %25%0Aof a::b. Do ␛it.\n"
        );
    }
}
