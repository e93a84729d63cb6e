//! A value pretty-printed as JSON with roles: small lists and objects are on one line, long ones can be truncated with
//! a count of the rest. Always safe to draw.

use serde_json::Value;

use super::format::{count, counted};
use super::rich::{RichLine, Seg};
use super::text_width::{cells, cut_end};
use super::wrap::break_code;
use crate::theme::Role;
use skills_skill::safe_text;

/// Indentation per level, in cells.
const INDENT: usize = 2;
/// Maximum width of a list or an object on one line.
const ON_ONE_LINE: u16 = 72;
/// Maximum number of displayed items of a list, members of an object and lines of a text while collapsed.
const ITEMS: usize = 2;
const FIELDS: usize = 16;
const TEXT_LINES: usize = 6;
/// Maximum nesting depth; deeper values are only counted, even if everything is shown.
const MAX_DEPTH: usize = 48;

/// The layout parameters.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// Available width, in cells.
    pub width: u16,
    /// Whether everything is shown.
    pub expanded: bool,
    pub ellipsis: &'a str,
}

/// Returns the lines of a value, and whether something was omitted.
pub fn lines(value: &Value, layout: Layout<'_>) -> (Vec<RichLine>, bool) {
    let mut printer = Printer { layout, out: Vec::new(), left_out: false };
    printer.print(value, 0, Vec::new(), "");
    (printer.out, printer.left_out)
}

struct Printer<'a> {
    layout: Layout<'a>,
    out: Vec<RichLine>,
    left_out: bool,
}

impl Printer<'_> {
    /// Prints a value after `before` (its key), followed by `after` (a comma).
    fn print(&mut self, value: &Value, depth: usize, before: Vec<Seg>, after: &str) {
        let indent = depth * INDENT;
        let head: u16 = before.iter().map(|seg| cells(&seg.text)).sum();
        let available = self.layout.width.saturating_sub(indent as u16 + head + after.len() as u16);
        if let Some(inline) = inline(value, available.min(ON_ONE_LINE)) {
            let mut segs = before;
            segs.extend(inline);
            segs.push(Seg::new(after, Role::Text));
            self.line(indent, segs);
            return;
        }
        match value {
            Value::Array(items) if depth < MAX_DEPTH => {
                let shown = self.shown_of(items.len(), ITEMS);
                self.open(indent, before, "[");
                for (at, item) in items.iter().take(shown).enumerate() {
                    self.print(item, depth + 1, Vec::new(), comma(at, items.len()));
                }
                self.rest(items.len() - shown, depth + 1);
                self.line(indent, vec![Seg::new(format!("]{after}"), Role::Text)]);
            }
            Value::Object(map) if depth < MAX_DEPTH => {
                let shown = self.shown_of(map.len(), FIELDS);
                self.open(indent, before, "{");
                for (at, (key, member)) in map.iter().take(shown).enumerate() {
                    let key = vec![Seg::new(quoted(key), Role::CodeKey), Seg::new(": ", Role::Text)];
                    self.print(member, depth + 1, key, comma(at, map.len()));
                }
                self.rest(map.len() - shown, depth + 1);
                self.line(indent, vec![Seg::new(format!("}}{after}"), Role::Text)]);
            }
            Value::String(text) => self.text(text, indent, before, after),
            deep => {
                self.left_out = true;
                let mut segs = before;
                segs.push(Seg::new(format!("{} {}", self.layout.ellipsis, preview_text(deep)), Role::Muted));
                self.line(indent, segs);
            }
        }
    }

    /// Prints a text that is too long for its line: broken after its line breaks, then at the width.
    fn text(&mut self, text: &str, indent: usize, before: Vec<Seg>, after: &str) {
        let quoted = quoted(text);
        let head: u16 = before.iter().map(|seg| cells(&seg.text)).sum();
        let available = self.layout.width.saturating_sub(indent as u16 + head + 1).max(12);
        let mut rows: Vec<String> = Vec::new();
        for part in behind_breaks(&quoted) {
            if !self.layout.expanded && cells(part) > available {
                self.left_out = true;
                rows.push(cut_end(part, available, self.layout.ellipsis).into_owned());
            } else {
                let broken = break_code(&[Seg::new(part, Role::CodeString)], available);
                rows.extend(broken.iter().map(|row| row.iter().map(|seg| seg.text.as_str()).collect()));
            }
            if !self.layout.expanded && rows.len() > TEXT_LINES {
                break;
            }
        }
        let all = quoted.matches("\\n").count() + 1;
        let cut = !self.layout.expanded && rows.len() > TEXT_LINES;
        rows.truncate(if cut { TEXT_LINES } else { rows.len() });
        let last = rows.len().saturating_sub(1);
        let pad = indent + usize::from(head);
        for (at, row) in rows.into_iter().enumerate() {
            let mut segs = if at == 0 { before.clone() } else { Vec::new() };
            segs.push(Seg::new(row, Role::CodeString));
            if at == last && !cut {
                segs.push(Seg::new(after, Role::Text));
            }
            self.line(if at == 0 { indent } else { pad }, segs);
        }
        if cut {
            self.left_out = true;
            let more =
                format!("{} {}", self.layout.ellipsis, counted(all - TEXT_LINES.min(all), "more line"));
            self.line(pad, vec![Seg::new(more, Role::Muted)]);
        }
    }

    /// Returns how many members are shown: all, or the first few if many more would follow.
    fn shown_of(&self, len: usize, few: usize) -> usize {
        if self.layout.expanded || len <= few + 2 { len } else { few }
    }

    fn open(&mut self, indent: usize, mut before: Vec<Seg>, sign: &str) {
        before.push(Seg::new(sign, Role::Text));
        self.line(indent, before);
    }

    fn rest(&mut self, more: usize, depth: usize) {
        if more > 0 {
            self.left_out = true;
            let message = format!("{} {} more", self.layout.ellipsis, count(more));
            self.line(depth * INDENT, vec![Seg::new(message, Role::Muted)]);
        }
    }

    fn line(&mut self, indent: usize, mut segs: Vec<Seg>) {
        segs.insert(0, Seg::new(" ".repeat(indent), Role::Text));
        self.out.push(RichLine::from_segs(segs));
    }
}

fn comma(at: usize, len: usize) -> &'static str {
    if at + 1 < len { "," } else { "" }
}

fn preview_text(value: &Value) -> String {
    match value {
        Value::Array(items) => counted(items.len(), "item"),
        Value::Object(map) => counted(map.len(), "field"),
        other => other.to_string(),
    }
}

/// Returns a text as a JSON string, safe to draw.
fn quoted(text: &str) -> String {
    safe_text::line(&Value::from(text).to_string()).into_owned()
}

/// Splits a quoted text after each escaped line break.
fn behind_breaks(quoted: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, letter) in quoted.char_indices() {
        if escaped && letter == 'n' && at + 2 < quoted.len() {
            out.push(&quoted[start..=at]);
            start = at + 1;
        }
        escaped = letter == '\\' && !escaped;
    }
    out.push(&quoted[start..]);
    out
}

/// Formats a value on one line if it is short and nested at most once.
fn inline(value: &Value, available: u16) -> Option<Vec<Seg>> {
    let mut segs = Vec::new();
    push_inline(value, 0, usize::from(available), &mut segs)?;
    let used: usize = segs.iter().map(|seg| usize::from(cells(&seg.text))).sum();
    (used <= usize::from(available)).then_some(segs)
}

fn push_inline(value: &Value, depth: usize, available: usize, segs: &mut Vec<Seg>) -> Option<()> {
    // A value with more parts than cells cannot fit.
    if segs.len() > available.max(4) {
        return None;
    }
    let mark = |sign: &str| Seg::new(sign, Role::Text);
    match value {
        Value::Null => segs.push(Seg::new("null", Role::CodeKeyword)),
        Value::Bool(flag) => segs.push(Seg::new(flag.to_string(), Role::CodeKeyword)),
        Value::Number(number) => segs.push(Seg::new(number.to_string(), Role::CodeNumber)),
        Value::String(text) if text.len() > 4 * available.max(8) => return None,
        // A text of several lines reads better on several lines.
        Value::String(text) if text.trim_end().contains('\n') => return None,
        Value::String(text) => segs.push(Seg::new(quoted(text), Role::CodeString)),
        Value::Array(items) if items.is_empty() => segs.push(mark("[]")),
        Value::Object(map) if map.is_empty() => segs.push(mark("{}")),
        Value::Array(items) if depth == 0 => {
            let nested = items.iter().any(|item| item.is_array() || item.is_object());
            if nested && items.len() > 1 {
                return None;
            }
            for (at, item) in items.iter().enumerate() {
                segs.push(mark(if at == 0 { "[" } else { ", " }));
                push_inline(item, depth + 1, available, segs)?;
            }
            segs.push(mark("]"));
        }
        Value::Object(map) if depth == 0 && map.len() <= 4 => {
            for (at, (key, member)) in map.iter().enumerate() {
                segs.push(mark(if at == 0 { "{ " } else { ", " }));
                segs.push(Seg::new(quoted(key), Role::CodeKey));
                segs.push(mark(": "));
                push_inline(member, depth + 1, available, segs)?;
            }
            segs.push(mark(" }"));
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: &Value, width: u16, expanded: bool) -> (String, bool) {
        let (lines, left_out) = lines(value, Layout { width, expanded, ellipsis: "…" });
        (lines.iter().map(|line| line.plain_text() + "\n").collect(), left_out)
    }

    #[test]
    fn short_values_are_inline_and_long_lists_are_truncated() {
        let sample: Vec<Value> = (0..214).map(|n| json!(["2026-10-03", "paper", n])).collect();
        let value = json!({ "rows": 214, "columns": ["date", "text", "amount"], "sample": sample });
        let message = "{\n  \"rows\": 214,\n  \"columns\": [\"date\", \"text\", \"amount\"],\n  \"sample\": [\n    \
                    [\"2026-10-03\", \"paper\", 0],\n    [\"2026-10-03\", \"paper\", 1],\n    … 212 more\n  ]\n}\n";
        assert_eq!(text(&value, 60, false), (message.to_owned(), true));
        let (expanded, left_out) = text(&value, 60, true);
        assert_eq!((expanded.lines().count(), left_out), (220, false));
        assert_eq!(serde_json::from_str::<Value>(&expanded).unwrap(), value);
    }

    #[test]
    fn multiline_texts_keep_their_line_breaks() {
        let value = json!({ "log": "first line\nsecond\n" });
        let message = "{\n  \"log\": \"first line\\n\n         second\\n\"\n}\n";
        assert_eq!(text(&value, 40, true).0, message);
        let long = "a line\n".repeat(40);
        let (short, left_out) = text(&json!(long), 40, false);
        assert!(left_out && short.ends_with("… 35 more lines\n"), "{short}");
    }

    #[test]
    fn output_fits_its_width_and_is_escaped() {
        let value = json!({ "k\u{1b}[31m": "x\u{202e}y".repeat(30), "deep": [[[[1, [2]]]]] });
        for expanded in [false, true] {
            let (message, _) = text(&value, 30, expanded);
            assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message:?}");
            assert!(message.lines().all(|line| cells(line) <= 30), "{message}");
        }
    }

    #[test]
    fn deeply_nested_value_is_counted_not_expanded() {
        let mut value = json!(["bottom", ["b"]]);
        for _ in 0..200 {
            value = json!([value, [1]]);
        }
        let (message, left_out) = text(&value, 40, true);
        assert!(left_out && message.contains("… 2 items"), "{message}");
    }
}
