//! Sessions as text.

use std::fmt::Write as _;

use serde_json::Value;

use crate::output::{
    HANGING, TerminalCaps, TextStyle, byte_size, cells, counted, cut, estimate_sign, grouped, inflected,
    push_row, tokens, wrap,
};
use skills_api::{ComposedView, DiffLine, LevelSize, SessionSummary, SessionView, SkillDrift};
use skills_config::{Invocation, arguments};
use skills_session::{ComposedPart, Entry, Instructions, PartKind, Settings, Turn};
use skills_skill::safe_text;
use skills_skill::tokens::TokenCount;

fn unescape(text: &str) -> String {
    safe_text::line(text).into_owned()
}

/// Formats date and time in UTC, to the minute.
fn moment(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).ok().filter(|_| millis > 0);
    time.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

/// `session list`: the first `limit` sessions, and how many there are, at least if the list is not complete; `advice` is
/// how to create the first session.
pub fn session_list(
    sessions: &[SessionSummary],
    (limit, is_complete): (usize, bool),
    advice: &str,
    look: TerminalCaps,
) -> String {
    let mut out = String::new();
    if sessions.is_empty() {
        let _ = writeln!(out, "no sessions; {advice}");
        return out;
    }
    for session in sessions.iter().take(limit) {
        let active =
            if session.active.is_empty() { "no skills loaded".to_owned() } else { session.active.join(", ") };
        let active = match &session.agent {
            Some(agent) => format!("agent {agent}: {active}"),
            None => active,
        };
        let _ = writeln!(
            out,
            "{}  {}  {}",
            TextStyle::Strong.paint(&session.session_id, look.color),
            TextStyle::Muted.paint(
                &format!("{:>12}  changed {}", counted(session.entries, "entry"), moment(session.changed_ms)),
                look.color
            ),
            cut(&safe_text::line(&active), look.text_width(120).saturating_sub(75).max(20), look.unicode),
        );
    }
    let total = counted(sessions.len(), "session");
    let total = if is_complete { total } else { format!("at least {total}") };
    let total = if limit < sessions.len() {
        let dot = if look.unicode { "·" } else { "-" };
        format!("{limit} of {total} {dot} more: --limit {}", sessions.len())
    } else {
        total
    };
    let _ = writeln!(out, "{}", TextStyle::Muted.paint(&total, look.color));
    out
}

/// `session show`
pub fn session_view(
    view: &SessionView,
    call: &ComposedView,
    called: &Invocation,
    look: TerminalCaps,
) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", TextStyle::Strong.paint(&view.session_id, look.color));
    for line in wrap(&settings(&view.settings).join(", "), look.text_width(120).saturating_sub(2)) {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "  active {} of {}", view.active.len(), view.settings.cap);
    for (at, skill) in view.active.iter().enumerate() {
        let drift = view.drift.get(&skill.name).and_then(SkillDrift::describe);
        let drift = drift.map(|drift| format!("  {drift}")).unwrap_or_default();
        let delivered = call.delivered_in(&skill.name);
        let delivered = match delivered {
            Some(entry) => format!("  in the result of entry {entry}"),
            // Loaded before bodies were placed in results: it is only in the instructions.
            None if call.instructions == Instructions::ToolResult => "  in the instructions".to_owned(),
            None => String::new(),
        };
        let last = if at + 1 == view.active.len() && at > 0 { "  takes precedence" } else { "" };
        let _ = writeln!(
            out,
            "  {} {}  {} tok{}{}{}",
            at + 1,
            look.name(&safe_text::line(&skill.name), 24),
            call.body_size(&skill.name).map_or_else(
                || tokens(TokenCount { tokens: skill.tokens, estimated: true }, look.unicode),
                |size| tokens(size.count(), look.unicode)
            ),
            TextStyle::Muted.paint(&delivered, look.color),
            TextStyle::Warn.paint(&drift, look.color),
            TextStyle::Muted.paint(last, look.color),
        );
    }
    let changed: Vec<String> = view
        .active
        .iter()
        .filter(|skill| view.drift.get(&skill.name).is_some_and(SkillDrift::needs_reload))
        .map(|skill| unescape(&skill.name))
        .collect();
    if !changed.is_empty() {
        let operands = std::iter::once(&view.session_id).chain(&changed).map(String::as_str);
        let line = called.completed(&format!("skills session load {}", arguments(operands, "--add")));
        let reload = TextStyle::Muted.paint(&format!("reload: {line}"), look.color);
        let _ = writeln!(out, "{}", look.command_row("  ", &reload));
    }
    out.push('\n');
    out.push_str(&composed_sizes(call, look));
    if !view.transcript.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint("transcript", look.color));
    }
    let available = look.text_width(120).saturating_sub(8).max(20);
    for entry in &view.transcript {
        let _ = writeln!(out, "{:>4}  {}", entry.number, cut(&turn(entry), available, look.unicode));
    }
    out
}

/// Describes where the bodies of skills are placed, and which other settings differ from those of a new session.
pub fn settings(settings: &Settings) -> Vec<String> {
    let usual = Settings::default();
    let mut out = vec![settings.instructions.label().to_owned()];
    out.extend(settings.agent.as_deref().map(|agent| format!("agent {}", unescape(agent))));
    out.extend(settings.client.as_deref().map(|client| format!("catalog format {}", unescape(client))));
    let all = [
        (settings.form != usual.form, format!("catalog format {}", settings.form)),
        (settings.locations != usual.locations, "no locations".to_owned()),
        (settings.compat != usual.compat, "with old tool names".to_owned()),
        (settings.cap != usual.cap, format!("at most {} active", settings.cap)),
        (settings.window != usual.window, format!("window {} tok", grouped(u64::from(settings.window)))),
    ];
    out.extend(all.into_iter().filter(|(other, _)| *other).map(|(_, text)| text));
    out
}

/// Describes where the bodies of a call are, for readers of the text output.
pub fn places(call: &ComposedView, unicode: bool) -> String {
    let mut out = format!("{}\n", call.instructions.label());
    for body in &call.delivered {
        let tokens = tokens(body.size.count(), unicode);
        let _ =
            writeln!(out, "{}, {tokens} tok: in the result of entry {}", unescape(&body.skill), body.entry);
    }
    out
}

fn turn(entry: &Entry) -> String {
    unescape(&match &entry.turn {
        Turn::Message { speaker, text } => format!("{speaker}: {text}"),
        Turn::Call { tool, arguments, result } => {
            let led = match result {
                Ok(_) => format!("{} B", Entry::result_text(result).len()),
                Err(error) => format!("{}: {}", error.code, error.message),
            };
            format!("{tool} {arguments} -> {led}")
        }
    })
}

/// Renders sizes by disclosure level, with the share of the window.
pub fn composed_sizes(call: &ComposedView, look: TerminalCaps) -> String {
    let mut out = String::new();
    let size = call.size;
    let listed = |part: &&ComposedPart| part.kind == PartKind::Available && part.skill.is_some();
    let entries = counted(call.composed.parts.iter().filter(listed).count(), "entry");
    let client = call.client.as_deref().map(unescape);
    let seen = client.as_ref().map_or_else(|| entries.clone(), |client| format!("{entries} as {client}"));
    let rows: [(&str, LevelSize); 5] = [
        ("base", size.base),
        ("L1 catalog", size.l1),
        ("L2 bodies", size.l2),
        ("L3 files", size.l3),
        ("history", size.history),
    ];
    for (name, level) in rows {
        let note = match name {
            "L1 catalog" => format!("  {seen}"),
            "L2 bodies" if !call.delivered.is_empty() => {
                let size: LevelSize = call.delivered.iter().map(|body| body.size).sum();
                format!("  {} tok of it in tool results", tokens(size.count(), look.unicode))
            }
            _ => String::new(),
        };
        let note = TextStyle::Muted.paint(&note, look.color);
        let _ = writeln!(out, "  {}{note}", line(name, level, size.window, look.unicode));
    }
    let all: LevelSize = rows.iter().map(|(_, level)| *level).sum();
    let _ = writeln!(
        out,
        "  {}",
        TextStyle::Strong.paint(&line("sum", all, size.window, look.unicode), look.color)
    );
    let mut by = format!(
        "tokens are counted with the o200k vocabulary; {} marks an estimate",
        estimate_sign(look.unicode)
    );
    if let (Some(client), Some(fill)) = (client, &call.allowance)
        && let Some(limit) = fill.limit
    {
        let (used, limit) = (grouped(fill.used as u64), grouped(limit as u64));
        let _ = write!(by, "; {client} itself counts {used} of {limit} {}", fill.unit);
    }
    for line in wrap(&by, look.text_width(120).saturating_sub(2)) {
        let _ = writeln!(out, "  {}", TextStyle::Muted.paint(&line, look.color));
    }
    out
}

fn line(name: &str, level: LevelSize, window: u32, unicode: bool) -> String {
    let share = if window == 0 { 0.0 } else { f64::from(level.tokens) / f64::from(window) * 100.0 };
    format!(
        "{name:<13} {:>10} tok {:>9}  {share:>5.1} %",
        tokens(level.count(), unicode),
        byte_size(level.bytes)
    )
}

/// Renders a diff, marked with characters, so that it needs no color.
pub fn difference(lines: &[DiffLine], look: TerminalCaps) -> String {
    let mut out = String::new();
    for line in lines {
        let (style, sign, text) = match line {
            DiffLine::Same(text) => (TextStyle::Muted, "  ", text),
            DiffLine::Added(text) => (TextStyle::Good, "+ ", text),
            DiffLine::Removed(text) => (TextStyle::Bad, "- ", text),
        };
        for line in look.rows(sign, sign, &safe_text::exact(text)) {
            let _ = writeln!(out, "{}", style.paint(&line, look.color));
        }
    }
    out
}

/// Renders a receipt of loading or unloading; `show` is the command that counts exactly.
pub fn receipt(value: &Value, show: &str, look: TerminalCaps) -> String {
    let mut out = String::new();
    let names = |key: &str| -> Vec<String> {
        value[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(unescape).collect()
    };
    for (sign, style, key) in [("+", TextStyle::Good, "loaded"), ("-", TextStyle::Muted, "unloaded")] {
        for name in names(key) {
            let _ = writeln!(out, "{}", style.paint(&format!("{sign} {name}"), look.color));
        }
    }
    for name in names("ignored") {
        let _ = writeln!(out, "{}", TextStyle::Warn.paint(&format!("! {name} was not loaded"), look.color));
    }
    let active = value["active"].as_array().map_or(&[][..], Vec::as_slice);
    let name_of = |skill: &Value| unescape(skill["name"].as_str().unwrap_or_default());
    let name_width = active.iter().map(|skill| cells(&name_of(skill))).max().unwrap_or(0);
    for skill in active {
        let text = |key: &str| unescape(skill[key].as_str().unwrap_or_default());
        let tokens = grouped(skill["tokens"].as_u64().unwrap_or_default());
        let sign = if skill["tokens_estimated"] == false { "" } else { estimate_sign(look.unicode) };
        let name = name_of(skill);
        let gap = " ".repeat(name_width - cells(&name));
        let tokens = format!("{sign}{tokens}");
        for row in look.rows("  ", HANGING, &format!("{name}{gap}  {tokens:>6} tok  {}", text("location"))) {
            let _ = writeln!(out, "{row}");
        }
        let requires: Vec<String> = skill["requires"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(unescape)
            .collect();
        if !requires.is_empty() {
            push_row(&mut out, "    related files: ", &requires.join(", "), look);
        }
    }
    let estimated = active.iter().any(|skill| skill["tokens_estimated"] != false);
    let note = format!("; {} is an estimate, `{show}` counts exactly", estimate_sign(look.unicode));
    let note = if estimated { note.as_str() } else { "" };
    let count = inflected(active.len(), "skill loaded", "skills loaded");
    let _ = writeln!(out, "{count}{}", TextStyle::Muted.paint(note, look.color));
    out
}
