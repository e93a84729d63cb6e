//! A finding in two lines: severity, location and problem; below it what to do.

use std::fmt::Write as _;

use super::output::{TerminalCaps, TextStyle, wrap};
use skills_skill::{Finding, Severity, safe_text};

pub fn text_style(severity: Severity) -> TextStyle {
    match severity {
        Severity::Error => TextStyle::Bad,
        Severity::Warning => TextStyle::Warn,
        Severity::Info => TextStyle::Info,
    }
}

/// Renders the finding, indented by two cells.
pub fn render(finding: &Finding, look: TerminalCaps) -> String {
    let mut place = finding.file.display().to_string();
    if let Some(span) = finding.span {
        let _ = write!(place, ":{}:{}", span.line, span.column);
    }
    let word = finding.severity.to_string();
    let available = look.text_width(100) - 2;
    let mut out = String::new();
    let head = format!("{word} {}: {}", safe_text::line(&place), safe_text::line(&finding.message));
    for (i, line) in wrap(&head, available).into_iter().enumerate() {
        let line = match line.strip_prefix(&word).filter(|_| i == 0) {
            Some(rest) => format!("{}{rest}", text_style(finding.severity).paint(&word, look.color)),
            None => format!("  {line}"),
        };
        let _ = writeln!(out, "  {line}");
    }
    let field = finding.field.as_ref().map_or_else(String::new, |field| format!(" ({field})"));
    for line in wrap(&format!("{}{}", safe_text::line(&finding.help), safe_text::line(&field)), available - 2)
    {
        let _ = writeln!(out, "    {}", TextStyle::Muted.paint(&line, look.color));
    }
    out
}
