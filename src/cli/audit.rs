//! `skills audit`: verifies and shows the audit log.

use std::fmt::Write as _;

use super::Context;
use super::args::AuditAction;
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, cells, counted, grouped};
use skills_api::{AuditFilter, AuditReport, CoreParts};
use skills_base::audit::Line;
use skills_skill::safe_text;

/// Runs `skills audit …`.
pub async fn run(cx: &mut Context, action: &AuditAction) -> Result<Exit, Failure> {
    match action {
        AuditAction::Verify => {
            let client = cx.open(CoreParts::Catalog).await?;
            let report = client.audit_log().verify().await?;
            if cx.out.json {
                cx.out.value(&report)?;
            } else {
                let text = cx.completed_in(&verified(&report, cx.out.look));
                cx.out.text(&text)?;
            }
            let is_complete = report.unchecked.is_none();
            Ok(if report.verification.is_intact() && is_complete {
                Exit::Success
            } else {
                Exit::ChecksFailed
            })
        }
        AuditAction::Show(args) => {
            let filter = AuditFilter {
                run: args.run.clone(),
                kind: args.kind.clone(),
                by: args.by.clone(),
                limit: usize::from(args.limit),
            };
            let client = cx.open(CoreParts::Catalog).await?;
            let lines = client.audit_log().show(filter).await?;
            if cx.out.json {
                cx.out.value(&lines)?;
            } else {
                let mut text: String = lines.iter().map(|line| shown(line, cx.out.look)).collect();
                if lines.is_empty() {
                    let has_filter = [&args.run, &args.kind, &args.by].into_iter().any(Option::is_some);
                    text.push_str(if has_filter { "no entries match\n" } else { "no entries\n" });
                }
                cx.out.text(&text)?;
            }
            Ok(Exit::Success)
        }
    }
}

fn verified(report: &AuditReport, look: TerminalCaps) -> String {
    let found = &report.verification;
    let file = report.file.display().to_string();
    let mut out = format!("{}\n", TextStyle::Strong.paint(&safe_text::line(&file), look.color));
    if !report.exists && found.is_intact() && report.unchecked.is_none() {
        let why = if report.mode == "off" { "disabled in the configuration" } else { "no entries yet" };
        let _ = writeln!(out, "  no audit log: {why}");
        return out;
    }
    let numbers = match (found.first, found.last) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
        _ => String::new(),
    };
    let _ = writeln!(out, "  {}{numbers}", counted(found.lines, "line"));
    if found.torn > 0 {
        let _ = writeln!(out, "  {} truncated by a crash and recorded as such", grouped(found.torn));
    }
    if found.torn_end > 0 {
        let bytes = counted(found.torn_end, "byte");
        let _ = writeln!(
            out,
            "  {} the last line was truncated by a crash ({bytes}); the next entry records it",
            TextStyle::Warn.paint("note:", look.color)
        );
    }
    if let Some(broken) = &found.broken {
        let seq = broken.seq.map(|seq| format!(" (number {seq})")).unwrap_or_default();
        let _ = writeln!(
            out,
            "  {} line {}{seq}: {}",
            TextStyle::Bad.paint("broken:", look.color),
            broken.line,
            safe_text::line(&broken.why)
        );
        out += "  the lines before it are valid; keep the file and compare it with a backup\n";
    } else {
        let head = found.head.as_deref().unwrap_or("none");
        let _ =
            writeln!(out, "  {}, ending in {head}", TextStyle::Good.paint("hash chain is valid", look.color));
    }
    for check in &report.anchors {
        let place = if check.place == "store" { "the store" } else { "audit.anchor" };
        let _ = match (&check.anchor, &check.broken) {
            (Some(anchor), None) => {
                let behind = found.last.unwrap_or_default().saturating_sub(anchor.seq);
                let ahead =
                    if behind == 0 { String::new() } else { format!("; {} after it", grouped(behind)) };
                writeln!(out, "  anchor in {place}: valid up to line {}{ahead}", anchor.seq)
            }
            (Some(anchor), Some(broken)) => writeln!(
                out,
                "  {} anchor in {place} (line {}): line {} {}",
                TextStyle::Bad.paint("broken:", look.color),
                anchor.seq,
                broken.seq.unwrap_or(broken.line),
                safe_text::line(&broken.why)
            ),
            // The reason follows.
            (None, _) if check.place == "store" && report.unchecked.is_some() => Ok(()),
            (None, _) => writeln!(out, "  anchor in {place}: none yet"),
        };
    }
    if let Some(why) = &report.unchecked {
        let _ = writeln!(
            out,
            "  {} anchor in the store: not checked, truncation of the log would not be detected: {}",
            TextStyle::Bad.paint("incomplete:", look.color),
            safe_text::line(why)
        );
    }
    out
}

fn shown(line: &Line, look: TerminalCaps) -> String {
    let by = line.by.as_deref().map(|by| format!(" by {}", safe_text::field(by))).unwrap_or_default();
    let fields: Vec<String> = (line.data.iter().chain(&line.detail))
        .map(|(name, value)| {
            let json = || safe_text::line(&value.to_string()).into_owned();
            format!("{}={}", safe_text::field(name), value.as_str().map_or_else(json, safe_text::field))
        })
        .collect();
    let fields = fields.join(" ");
    let (at, kind) = (safe_text::line(&line.at), safe_text::line(&line.kind));
    let width = cells(&format!("{:>6}  {at}  {kind}{by}  {fields}", line.seq));
    let muted = |text: &str| TextStyle::Muted.paint(text, look.color);
    let mut out = format!("{:>6}  {}  {}", line.seq, muted(&at), TextStyle::Strong.paint(&kind, look.color));
    if width <= look.text_width(usize::MAX) {
        let _ = writeln!(out, "{by}  {}", muted(&fields));
        return out;
    }
    out.push('\n');
    for part in [by.trim_start(), &fields].into_iter().filter(|part| !part.is_empty()) {
        for row in look.rows(HANGING, HANGING, part) {
            let _ = writeln!(out, "{}", muted(&row));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(to: &str) -> Line {
        Line {
            seq: 7,
            at: "2026-11-30T11:09:28.515Z".to_owned(),
            kind: "run.assigned".to_owned(),
            by: Some("eve".to_owned()),
            data: json!({ "bytes": 1, "to": to }).as_object().cloned().unwrap_or_default(),
            detail: serde_json::Map::new(),
            prev: String::new(),
        }
    }

    #[test]
    fn no_value_imitates_a_field_or_an_entry() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let head = "     7  2026-11-30T11:09:28.515Z  run.assigned";
        assert_eq!(shown(&entry("kim"), look), format!("{head} by eve  bytes=1 to=kim\n"));
        let forged = shown(&entry("kim step=s"), look);
        assert_eq!(forged, format!("{head} by eve  bytes=1 to=\"kim step=s\"\n"));
        let forged = format!("kim{}     8  2026-11-30T11:09:29.000Z  run.approved by boss", " ".repeat(80));
        let text = shown(&entry(&forged), look);
        assert!(text.starts_with(&format!("{head}\n{HANGING}by eve\n{HANGING}bytes=1 to=\"kim")), "{text}");
        assert!(text.lines().all(|row| cells(row) <= 80), "{text}");
        assert!(text.lines().skip(1).all(|row| row.starts_with(HANGING)), "{text}");
    }
}
