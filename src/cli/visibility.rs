//! `skills visibility`: which clients show which skills to their models, and why not.

use std::fmt::Write as _;
use std::ops::Range;

use super::Context;
use super::args::VisibilityArgs;
use super::dialog::{clean, sentences};
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, cells, counted, push_parts, wrap};
use skills_api::{
    CoreParts, Visibility, VisibilityCell, VisibilityReport, VisibilityRequest, VisibilityRow, visibility,
};
use skills_config::quoted;
use skills_skill::safe_text;

/// Width in cells of the longest state with its number of words.
const MIN_COLUMN_WIDTH: usize = 6;

pub async fn run(cx: &mut Context, args: &VisibilityArgs) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Catalog).await?;
    let request = VisibilityRequest {
        skill: args.skill.clone(),
        clients: args.client.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
    };
    let report = visibility(&*core, &request).await?;
    let one = args.skill.as_ref().and(report.skills.first());
    cx.show(&report, |is_plain, look| match (one, is_plain) {
        (Some(row), true) => labeled_one(&report, row),
        (None, true) => labeled(&report),
        (Some(row), false) => render_one(&report, row, look),
        (None, false) => render(&report, look),
    })?;
    let is_shown = |row: &VisibilityRow| {
        row.cells
            .iter()
            .any(|cell| matches!(cell.state, Visibility::Full | Visibility::Cut | Visibility::Undefined))
    };
    Ok(if one.is_some_and(|row| !is_shown(row)) { Exit::ChecksFailed } else { Exit::Success })
}

fn text_style(state: Visibility) -> TextStyle {
    match state {
        Visibility::Full | Visibility::Cut => TextStyle::Strong,
        Visibility::Dropped => TextStyle::Bad,
        Visibility::Undefined | Visibility::OtherText => TextStyle::Warn,
        _ => TextStyle::Muted,
    }
}

fn sign(cell: &VisibilityCell, look: TerminalCaps) -> String {
    match cell.state {
        Visibility::Cut => format!("{} {}", cell.state.sign(look.unicode), cell.words),
        state => state.sign(look.unicode).to_owned(),
    }
}

/// Describes what a client's model receives.
fn described(cell: &VisibilityCell) -> String {
    let words =
        if cell.state == Visibility::Cut { format!(" to {} words", cell.words) } else { String::new() };
    let assumed = if cell.assumed { ", folder assumed" } else { "" };
    format!("{}{words}{assumed}", cell.state.label())
}

/// Renders the notes of a report as labeled lines.
fn labeled_notes(report: &VisibilityReport) -> String {
    report.notes().iter().map(|note| format!("Note: {}\n", sentences(vec![clean(note)]))).collect()
}

/// Renders the matrix as labeled lines.
fn labeled(report: &VisibilityReport) -> String {
    let mut out = labeled_notes(report);
    for client in &report.clients {
        let skills = counted(client.with_description, "skill");
        let _ = writeln!(out, "Client {}: {skills} with description.", clean(&client.name));
    }
    for (number, row) in (1..).zip(&report.skills) {
        let id = clean(&safe_text::name(row.skill_id.as_str()));
        let mut parts = vec![id, format!("Description: {}", counted(row.words, "word"))];
        let cells = row.cells.iter().zip(&report.clients);
        parts.extend(cells.map(|(cell, client)| format!("{}: {}", clean(&client.name), described(cell))));
        let _ = writeln!(out, "{number}. {}", sentences(parts));
    }
    let clients = counted(report.clients.len(), "client");
    let _ = writeln!(out, "{}, {clients}.", counted(report.total, "skill file"));
    if let Some(next) = &report.next {
        let _ = writeln!(out, "More: --cursor {}", quoted(next));
    }
    out
}

/// Renders one skill as labeled lines.
fn labeled_one(report: &VisibilityReport, row: &VisibilityRow) -> String {
    let location = clean(&row.location.display().to_string());
    let mut out = format!("Skill {}. File: {location}\n", clean(&safe_text::name(row.skill_id.as_str())));
    if row.cells.iter().any(|cell| cell.assumed) {
        out += &labeled_notes(report);
    }
    for (number, (cell, client)) in (1..).zip(row.cells.iter().zip(&report.clients)) {
        let version = client.version.as_deref().unwrap_or("untested");
        let name = clean(&format!("{} {version}", client.name));
        let mut parts = vec![format!("Client {name}: {}", described(cell))];
        parts
            .extend(cell.location.iter().map(|path| format!("File: {}", clean(&path.display().to_string()))));
        for (label, value) in [("Reason", &cell.reason), ("Repaired", &cell.repaired), ("Shown", &cell.shown)]
        {
            let value = value.as_ref().filter(|value| !value.is_empty());
            parts.extend(value.map(|value| format!("{label}: {}", clean(value))));
        }
        if cell.state != Visibility::Full || cell.repaired.is_some() {
            parts.push(format!("Source: {}", clean(&client.sources_of(cell))));
        }
        let _ = writeln!(out, "{number}. {}", sentences(parts));
    }
    out
}

/// Renders the matrix.
fn render(report: &VisibilityReport, look: TerminalCaps) -> String {
    let mut out = String::new();
    let ids = report.skills.iter().map(|row| row.skill_id.as_str());
    let width = look.name_width(ids, 16, 40);
    out.push_str(&super::list::notes(&report.notes(), look));
    // As many clients as fit next to each other are in one table.
    let available = look.text_width(usize::MAX).saturating_sub(width + 7);
    let (mut tables, mut start, mut used) = (Vec::new(), 0, 0);
    for (at, client) in report.clients.iter().enumerate() {
        let needed = 2 + column(&safe_text::line(&client.name));
        if used + needed > available && at > start {
            tables.push(start..at);
            (start, used) = (at, 0);
        }
        used += needed;
    }
    tables.push(start..report.clients.len());
    for clients in tables {
        if clients.start > 0 {
            out.push('\n');
        }
        table(report, &clients, width, look, &mut out);
    }
    out.push('\n');
    for row in legend(look) {
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&row, look.color));
    }
    let clients = counted(report.clients.len(), "client");
    let _ = writeln!(out, "{}, {clients}", counted(report.total, "skill file"));
    if let Some(next) = &report.next {
        let _ = writeln!(out, "more: --cursor {}", quoted(next));
    }
    out
}

/// Returns the signs with their meanings, in rows that fit the terminal.
fn legend(look: TerminalCaps) -> Vec<String> {
    let entries = Visibility::ALL.map(|state| format!("{} {}", state.sign(look.unicode), state.label()));
    let width = look.text_width(usize::MAX);
    let mut rows: Vec<String> = Vec::new();
    for entry in entries {
        match rows.last_mut() {
            Some(row) if cells(row) + 3 + cells(&entry) <= width => {
                *row += "   ";
                *row += &entry;
            }
            _ => rows.push(entry),
        }
    }
    rows
}

/// Returns the width of the column of a client.
fn column(name: &str) -> usize {
    cells(name).max(MIN_COLUMN_WIDTH)
}

/// Renders the columns of some of the clients.
fn table(
    report: &VisibilityReport,
    clients: &Range<usize>,
    width: usize,
    look: TerminalCaps,
    out: &mut String,
) {
    let (start, count) = (clients.start, clients.len());
    let mut head = format!("{:<width$}  {:>5}", "skill", "words");
    let mut shown = format!("{:<width$}  {:>5}", "with description", "");
    for client in report.clients.iter().skip(start).take(count) {
        let name = safe_text::line(&client.name).into_owned();
        let wide = column(&name);
        let _ = write!(head, "  {name:<wide$}");
        let _ = write!(shown, "  {:<wide$}", client.with_description);
    }
    let _ = writeln!(out, "{}\n{}", TextStyle::Muted.paint(head.trim_end(), look.color), shown.trim_end());
    let mut root = "";
    for row in &report.skills {
        if row.root != root {
            root = &row.root;
            let _ = writeln!(out, "\n{}", TextStyle::Strong.paint(&safe_text::line(root), look.color));
        }
        let id = look.name(&safe_text::name(row.skill_id.as_str()), width);
        let mut line = format!("{id}  {:>5}", row.words);
        for (cell, client) in row.cells.iter().zip(&report.clients).skip(start).take(count) {
            let text = sign(cell, look);
            let gap = " ".repeat(column(&client.name).saturating_sub(cells(&text)));
            let _ = write!(line, "  {}{gap}", text_style(cell.state).paint(&text, look.color));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Renders one skill: each client with its reason and source.
fn render_one(report: &VisibilityReport, row: &VisibilityRow, look: TerminalCaps) -> String {
    let mut out = String::new();
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let muted = |text: &str| TextStyle::Muted.paint(text, look.color);
    let location = safe_text::line(&row.location.display().to_string()).into_owned();
    let id = safe_text::name(row.skill_id.as_str());
    push_parts(&mut out, &[(TextStyle::Strong, &*id), (TextStyle::Muted, &*location)], look);
    if row.cells.iter().any(|cell| cell.assumed) {
        let _ = write!(out, "\n{}", super::list::notes(&report.notes(), look).trim_end_matches('\n'));
        out.push('\n');
    }
    let indent = 18;
    let width = look.text_width(100 + indent).saturating_sub(indent).max(40);
    let text = |out: &mut String, label: &str, text: &str| {
        for (at, line) in wrap(&safe_text::line(text), width).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(out, "    {}{line}", muted(&format!("{label:<14}")));
        }
    };
    for (cell, client) in row.cells.iter().zip(&report.clients) {
        let version = client.version.as_deref().unwrap_or("untested");
        let state = match cell.state {
            Visibility::Cut => format!("truncated to {} of {} words", cell.words, row.words),
            state => state.label().to_owned(),
        };
        let sign = cell.state.sign(look.unicode);
        let title = format!("{} {}", client.name, version);
        let _ = writeln!(
            out,
            "\n{} {}  {state}{}",
            text_style(cell.state).paint(sign, look.color),
            strong(&safe_text::line(&title)),
            if cell.assumed { " (assumed)" } else { "" }
        );
        if let Some(path) = &cell.location {
            text(&mut out, "file", &path.display().to_string());
        }
        if cell.state == Visibility::Full && cell.repaired.is_none() {
            continue;
        }
        for (label, value) in [("reason", &cell.reason), ("repaired", &cell.repaired), ("shown", &cell.shown)]
        {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                text(&mut out, label, value);
            }
        }
        if !client.limit.is_empty() && matches!(cell.state, Visibility::Cut | Visibility::NameOnly) {
            text(&mut out, "limit", &client.limit);
        }
        text(&mut out, "source", &client.sources_of(cell));
    }
    out
}
