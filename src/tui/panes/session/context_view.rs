//! The composed call as lines to draw: rails by level, long sections collapsed, every line safe.

use std::sync::Arc;

use super::Fold;
use crate::glyphs::UNICODE;
use crate::theme::Role;
use crate::widgets::{RichLine, Seg, break_code, byte_size, cells, count, counted, token_count};
use skills_api::{ComposedView, DiffLine, LevelSize};
use skills_session::{ComposedPart, Entry, PartKind, Turn};
use skills_skill::safe_text;

/// Number of catalog entries, and of lines of a body, that stay visible when collapsed.
const FOLDED_ROWS: usize = 3;

/// A line of the composed call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// Its disclosure level; 0 for rules and prompts.
    pub level: usize,
    pub text: RichLine,
    /// The note at the right.
    pub note: String,
    /// The section that it collapses or expands.
    pub fold: Option<Fold>,
    /// Whether it abbreviates a longer text: it is truncated instead of wrapped.
    pub short: bool,
}

impl Line {
    fn new(level: usize, text: RichLine) -> Self {
        Self { level, text, note: String::new(), fold: None, short: false }
    }

    fn gap() -> Self {
        Self::new(0, RichLine::default())
    }
}

/// Wraps the lines to rows of at most `width` cells: nothing that the model receives is truncated, except collapsed
/// sections.
pub(super) fn fitted(lines: Vec<Line>, width: u16) -> Vec<Line> {
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let note = cells(&line.note);
        let available = width.saturating_sub(note + u16::from(note > 0)).max(1);
        if line.short || line.text.width() <= usize::from(available) {
            rows.push(line);
            continue;
        }
        let band = line.text.band;
        let mut parts = break_code(&line.text.segs, available).into_iter();
        let first = parts.next().unwrap_or_default();
        let level = line.level;
        rows.push(Line { text: RichLine { segs: first, ..line.text.clone() }, ..line });
        rows.extend(parts.map(|segs| Line::new(level, RichLine { segs, band, source: 0 })));
    }
    rows
}

fn text_line(text: &str, role: Role) -> RichLine {
    RichLine::of(safe_text::line(text), role)
}

/// Joins the lines of an entry: tags directly, lines of a text with a space.
fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if !out.is_empty() && !line.trim_start().starts_with('<') {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}

/// Formats a line of markup: tags in the color of code, the rest as text.
fn markup(text: &str) -> RichLine {
    let mut segs = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, tag) = match rest.find('<') {
            Some(0) => {
                let end = rest.find('>').map_or(rest.len(), |end| end + 1);
                (&rest[..end], true)
            }
            Some(start) => (&rest[..start], false),
            None => (rest, false),
        };
        segs.push(Seg::new(safe_text::line(part), if tag { Role::CodeKey } else { Role::Text }));
        rest = &rest[part.len()..];
    }
    RichLine::from_segs(segs)
}

/// Returns the lines of the entire call, and below it the bodies in tool results of the transcript. `open` returns
/// whether a section is expanded.
pub(super) fn lines(view: &ComposedView, entries: &[Arc<Entry>], open: &dyn Fn(&Fold) -> bool) -> Vec<Line> {
    let composed = &view.composed;
    let mut out = Vec::new();
    let mut listed = 0;
    let all = composed.parts.iter().filter(|p| p.kind == PartKind::Available && p.skill.is_some()).count();
    let is_open = open(&Fold::Catalog);
    for (part, size) in view.part_sizes() {
        let text = composed.of(part);
        let cost = cost_of(size);
        match part.kind {
            PartKind::Prompt | PartKind::Rules | PartKind::Inline => {
                base(&mut out, text, part, view);
            }
            PartKind::Available if part.skill.is_none() => {
                let opening = text.starts_with("<available") || text.starts_with('[');
                if opening {
                    out.push(Line::gap());
                }
                let mut line = Line::new(1, markup(text.trim_end()));
                if opening {
                    line.note = format!("L1  {}", cost_of(view.size.l1));
                    line.fold = Some(Fold::Catalog);
                }
                out.push(line);
            }
            PartKind::Available => {
                listed += 1;
                if !is_open && listed <= FOLDED_ROWS {
                    // An entry on one line; expanded, as it is sent.
                    let line = Line::new(1, markup(&format!("  {}", on_one_line(text))));
                    out.push(Line { short: true, note: cost, ..line });
                } else if is_open {
                    let first = out.len();
                    out.extend(text.lines().map(|line| Line::new(1, markup(&format!("  {line}")))));
                    if let Some(line) = out.get_mut(first) {
                        line.note = cost;
                    }
                } else if listed == FOLDED_ROWS + 1 {
                    let more = format!("  … {} more", count(all - FOLDED_ROWS));
                    out.push(Line {
                        fold: Some(Fold::Catalog),
                        ..Line::new(1, RichLine::of(more, Role::Muted))
                    });
                }
            }
            PartKind::AgentSkill | PartKind::ActiveSkill => {
                let Some(name) = &part.skill else {
                    around(&mut out, text, view);
                    continue;
                };
                let all: Vec<&str> = text.lines().collect();
                if let [first, inner @ .., last] = all.as_slice() {
                    body(&mut out, name, (first, inner, last), &cost, open);
                }
            }
        }
    }
    answers(&mut out, view, entries, open);
    out
}

/// Appends bodies in tool results, as the model reads them.
fn answers(out: &mut Vec<Line>, view: &ComposedView, entries: &[Arc<Entry>], open: &dyn Fn(&Fold) -> bool) {
    if view.delivered.is_empty() {
        return;
    }
    out.push(Line::gap());
    let all: LevelSize = view.delivered.iter().map(|delivered| delivered.size).sum();
    let head = RichLine::of("in tool results, after these instructions", Role::Muted);
    out.push(Line { note: format!("L2  {}", cost_of(all)), ..Line::new(2, head) });
    for delivered in &view.delivered {
        let entry = entries.iter().find(|entry| entry.number == delivered.entry);
        let Some(text) = entry.and_then(|entry| entry.bodies().find(|body| body.skill == delivered.skill))
        else {
            continue;
        };
        let inner: Vec<&str> = text.body.lines().collect();
        let first = format!("{}, the result of entry {}", delivered.skill, delivered.entry);
        body(out, &delivered.skill, (&first, &inner, ""), &cost_of(delivered.size), open);
    }
}

fn base(out: &mut Vec<Line>, text: &str, part: &ComposedPart, view: &ComposedView) {
    if !out.is_empty() {
        out.push(Line::gap());
    }
    let first = out.len();
    let role = if part.kind == PartKind::Rules { Role::Muted } else { Role::Text };
    out.extend(text.trim_end().lines().map(|line| Line::new(0, text_line(line, role))));
    if part.kind == PartKind::Rules
        && let Some(line) = out.get_mut(first)
    {
        line.note = format!("base  {}", cost_of(view.size.base));
    }
}

/// Formats the cost of a part. When it is drawn, the sign of an estimate is replaced by the terminal's glyph.
fn cost_of(size: LevelSize) -> String {
    token_count(size.count(), &UNICODE)
}

/// Appends the text around the bodies.
fn around(out: &mut Vec<Line>, text: &str, view: &ComposedView) {
    let opening = text.starts_with("<active");
    if opening {
        out.push(Line::gap());
    }
    let mut line = Line::new(2, markup(text.trim_end()));
    if opening {
        let body: LevelSize = view.delivered.iter().map(|body| body.size).sum();
        let here = LevelSize { tokens: view.size.l2.tokens.saturating_sub(body.tokens), ..view.size.l2 };
        line.note = format!("L2  {}", cost_of(here));
    }
    out.push(line);
}

/// Appends a body between its first and its last line, truncated to a few lines until it is expanded.
fn body(
    out: &mut Vec<Line>,
    name: &str,
    (first, inner, last): (&str, &[&str], &str),
    cost: &str,
    open: &dyn Fn(&Fold) -> bool,
) {
    let fold = Fold::Body(name.to_owned());
    let head = Line::new(2, markup(&format!("  {first}")));
    out.push(Line { note: cost.to_owned(), fold: Some(fold.clone()), ..head });
    let shown = if open(&fold) { inner.len() } else { inner.len().min(FOLDED_ROWS) };
    let (seen, hidden) = inner.split_at(shown);
    out.extend(seen.iter().map(|line| Line::new(2, text_line(&format!("    {line}"), Role::Text))));
    if !hidden.is_empty() {
        let more = format!("    … {}", counted(hidden.len(), "line"));
        out.push(Line { fold: Some(fold), ..Line::new(2, RichLine::of(more, Role::Muted)) });
    }
    if !last.is_empty() {
        out.push(Line::new(2, markup(&format!("  {last}"))));
    }
}

/// Returns the differences from the last call, below the settings that changed.
pub(super) fn difference(changes: &[String], diff: &[DiffLine]) -> Vec<Line> {
    let head = changes.iter().map(|changes| Line::new(0, text_line(changes, Role::Info)));
    let gap = (!changes.is_empty()).then(Line::gap);
    let lines = diff.iter().map(|line| match line {
        DiffLine::Same(text) => Line::new(0, text_line(&format!("  {text}"), Role::Muted)),
        DiffLine::Added(text) => {
            let mut line = Line::new(0, text_line(&format!("+ {text}"), Role::Text));
            line.text.band = Some(Role::DiffAdd);
            line
        }
        DiffLine::Removed(text) => {
            let mut line = Line::new(0, text_line(&format!("- {text}"), Role::Text));
            line.text.band = Some(Role::DiffDel);
            line
        }
    });
    head.chain(gap).chain(lines).collect()
}

/// Returns the transcript, each entry on one line; an expanded one in full.
pub(super) fn transcript(entries: &[Arc<Entry>], open: &dyn Fn(&Fold) -> bool) -> Vec<Line> {
    let mut out = Vec::new();
    for entry in entries {
        let fold = Fold::Entry(entry.number);
        let (level, segs, note, is_open) = turn(entry);
        let mut line = Line::new(level, RichLine::from_segs(segs));
        line.note = note;
        line.fold = Some(fold.clone());
        line.short = true;
        out.push(line);
        if open(&fold) {
            out.extend(
                is_open.lines().map(|line| Line::new(level, text_line(&format!("     {line}"), Role::Text))),
            );
            out.push(Line::gap());
        }
    }
    out
}

/// Returns level, line, note and full text of an entry.
pub(super) fn turn(entry: &Entry) -> (usize, Vec<Seg>, String, String) {
    let number = Seg::new(format!("{:>3}  ", entry.number), Role::Muted);
    match &entry.turn {
        Turn::Message { speaker, text } => {
            let segs = vec![
                number,
                Seg::new(format!("{speaker}  "), Role::Muted),
                Seg::new(safe_text::line(text), Role::Text),
            ];
            (0, segs, byte_size(text.len() as u64), text.clone())
        }
        Turn::Call { tool, arguments, result } => {
            let level = match (tool.as_str(), result) {
                ("skills.read" | "skills.run_script" | "read_skill_resource", Ok(_)) => 3,
                ("skills.load" | "read_skill", Ok(_)) => 2,
                _ => 0,
            };
            let segs = vec![
                number,
                Seg::new(format!("{}  ", safe_text::line(tool)), Role::Text),
                Seg::new(safe_text::line(&brief(arguments)), Role::Muted),
            ];
            let note = match result {
                Err(error) => error.code.to_string(),
                Ok(value) => match tool.as_str() {
                    "skills.load" | "skills.unload" => "receipt".to_owned(),
                    "skills.run_script" => format!("exit {}", value["exit_code"]),
                    _ => byte_size(Entry::result_text(result).len() as u64),
                },
            };
            let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
            let is_open = match result {
                Ok(value) => format!("{}\n→ {}", pretty(arguments), pretty(value)),
                Err(error) => format!("{}\n✗ {}", pretty(arguments), error.message),
            };
            (level, segs, note, is_open)
        }
    }
}

/// Formats arguments briefly, without empty ones.
fn brief(arguments: &serde_json::Value) -> String {
    let Some(object) = arguments.as_object() else { return String::new() };
    let empty = |value: &serde_json::Value| {
        value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty)
            || value == &serde_json::json!(0)
            || value == &serde_json::json!(false)
    };
    let word = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    };
    let parts: Vec<String> = object
        .iter()
        .filter(|(_, value)| !empty(value))
        .map(|(key, value)| if key == "path" { word(value) } else { format!("{key} {}", word(value)) })
        .collect();
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_description_are_separated() {
        let entry = "<skill>\n<name>ml</name>\n<description>Counts\nwords</description>\n</skill>\n";
        let joined = "<skill><name>ml</name><description>Counts words</description></skill>";
        assert_eq!(on_one_line(entry), joined);
    }
}
