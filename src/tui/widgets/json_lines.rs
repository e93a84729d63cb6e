//! JSON as lines with roles: a collapsible tree, and a complete value for a dialog. Always safe to draw.

use std::collections::HashSet;

use serde_json::Value;

use super::format::{byte_size, counted};
use super::rich::{RichLine, Seg};
use super::text_width::{cells, cut_end, exact};
use super::wrap::{break_code, wrap};
use crate::theme::Role;

#[derive(Debug, Clone, PartialEq)]
pub struct TreeRow {
    /// Its path: keys and indices, separated by `/`.
    pub path: String,
    /// Nesting depth.
    pub depth: usize,
    /// The key or index.
    pub name: String,
    /// The value, or the number of members of a list or object.
    pub value: Seg,
    /// Whether it is collapsed; `None` if it cannot be.
    pub folded: Option<bool>,
}

/// Returns all rows of a value; paths in `folded` are collapsed.
pub fn tree<S: std::hash::BuildHasher>(value: &Value, folded: &HashSet<String, S>) -> Vec<TreeRow> {
    let mut out = Vec::new();
    children(value, "", 0, folded, &mut out);
    out
}

fn children<S: std::hash::BuildHasher>(
    value: &Value,
    path: &str,
    depth: usize,
    folded: &HashSet<String, S>,
    out: &mut Vec<TreeRow>,
) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return,
    };
    for (key, value) in members {
        let path = if path.is_empty() { key.clone() } else { format!("{path}/{key}") };
        let size = match value {
            Value::Object(map) => map.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        let is_folded = (size > 0).then(|| folded.contains(&path));
        let name = exact(&key);
        out.push(TreeRow { path: path.clone(), depth, name, value: short(value), folded: is_folded });
        if is_folded == Some(false) {
            children(value, &path, depth + 1, folded, out);
        }
    }
}

/// Formats a value briefly: scalars in full, others by their number of members.
pub fn short(value: &Value) -> Seg {
    match value {
        Value::Null => Seg::new("null", Role::Muted),
        Value::Bool(flag) => Seg::new(flag.to_string(), Role::CodeKeyword),
        Value::Number(number) => Seg::new(number.to_string(), Role::CodeNumber),
        Value::String(text) if text.is_empty() => Seg::new("\"\"", Role::CodeString),
        Value::String(text) => Seg::new(exact(text), Role::CodeString),
        Value::Array(items) if items.is_empty() => Seg::new("[]", Role::Muted),
        Value::Array(items) => Seg::new(counted(items.len(), "item"), Role::Muted),
        Value::Object(map) if map.is_empty() => Seg::new("{}", Role::Muted),
        Value::Object(map) => Seg::new(counted(map.len(), "field"), Role::Muted),
    }
}

/// Formats a value on one line, truncated to a width; the rest is reported by size.
pub fn on_one_line(value: &Value, width: u16, ellipsis: &str) -> Vec<Seg> {
    let (text, role) = match value {
        Value::Array(_) | Value::Object(_) => (exact(&value.to_string()), Role::Text),
        scalar => {
            let seg = short(scalar);
            (seg.text, seg.role)
        }
    };
    if cells(&text) <= width {
        return vec![Seg::new(text, role)];
    }
    let size = byte_size(text.len() as u64);
    let available = width.saturating_sub(cells(&size) + 2);
    vec![
        Seg::new(cut_end(&text, available, ellipsis).into_owned(), role),
        Seg::new(format!("  {size}"), Role::Muted),
    ]
}

/// Maximum number of lines of a text value; the rest is only counted.
const TEXT_LINES: usize = 60;

/// Formats every field of an object (or the value itself) in full: names in a column, long lines broken, every space
/// preserved; `more` is what shows all of a text that is truncated.
pub fn fields(value: &Value, width: u16, more: &str) -> Vec<RichLine> {
    let Value::Object(map) = value else { return laid_out(value, width, more) };
    if map.is_empty() {
        return vec![RichLine::of("none", Role::Muted)];
    }
    let column = map.keys().map(|key| cells(&exact(key))).max().unwrap_or(0).min(width / 3) + 2;
    let mut out = Vec::new();
    for (key, value) in map {
        let name = cut_end(&exact(key), column - 2, "…").into_owned();
        let pad = " ".repeat(usize::from(column - cells(&name).min(column)));
        for (at, line) in laid_out(value, width.saturating_sub(column).max(8), more).into_iter().enumerate() {
            let head = if at == 0 { format!("{name}{pad}") } else { " ".repeat(usize::from(column)) };
            let mut segs = vec![Seg::new(head, Role::Text)];
            segs.extend(line.segs);
            out.push(RichLine::from_segs(segs));
        }
    }
    out
}

/// Returns whether [`fields`] truncates no text.
pub fn is_complete(value: &Value, width: u16) -> bool {
    const MARK: &str = "\u{e000}";
    let is_cut = |seg: &Seg| seg.role == Role::Warning && seg.text.contains(MARK);
    !fields(value, width, MARK).iter().any(|line| line.segs.iter().any(is_cut))
}

fn laid_out(value: &Value, width: u16, more: &str) -> Vec<RichLine> {
    let (lines, role) = match value {
        Value::String(text) if !text.is_empty() => {
            (text.split('\n').map(exact).collect::<Vec<_>>(), Role::CodeString)
        }
        Value::Array(items) if !items.is_empty() => (dense(value, width), Role::Text),
        Value::Object(map) if !map.is_empty() => (dense(value, width), Role::Text),
        scalar => return vec![RichLine::from_segs(vec![short(scalar)])],
    };
    let mut out = Vec::new();
    for line in &lines {
        // A broken line of JSON continues at its indentation; the spaces of a text are part of it.
        let rest = if value.is_string() { line.as_str() } else { line.trim_start_matches(' ') };
        let indent = " ".repeat(line.len() - rest.len());
        for mut part in break_code(&[Seg::new(rest, role)], width.saturating_sub(indent.len() as u16).max(8))
        {
            if !indent.is_empty() {
                part.insert(0, Seg::new(indent.as_str(), role));
            }
            out.push(RichLine::from_segs(part));
        }
    }
    if out.len() > TEXT_LINES {
        let text = format!("{}: {more}", counted(out.len() - TEXT_LINES, "more line"));
        out.truncate(TEXT_LINES);
        out.extend(wrap(&[Seg::new(text, Role::Warning)], width).into_iter().map(RichLine::from_segs));
    }
    out
}

/// Formats JSON on as few lines as a width allows: what fits on a line is on one, so that a list of small objects reads
/// like a table.
fn dense(value: &Value, width: u16) -> Vec<String> {
    let mut out = Vec::new();
    put_dense(value, "", 0, width, "", &mut out);
    out
}

/// Indentation of nested JSON.
const INSIDE: usize = 2;
/// Maximum nesting depth; deeper values are on one line, to be wrapped.
const MAX_DEPTH: usize = 24;

fn put_dense(value: &Value, name: &str, depth: usize, width: u16, behind: &str, out: &mut Vec<String>) {
    let indent = " ".repeat(INSIDE * depth);
    let line = exact(&format!("{name}{}{behind}", flat(value)));
    let fits = usize::from(cells(&line)) + indent.len() <= usize::from(width);
    let (open, close) = match value {
        Value::Array(items) if !items.is_empty() && !fits && depth < MAX_DEPTH => ('[', ']'),
        Value::Object(map) if !map.is_empty() && !fits && depth < MAX_DEPTH => ('{', '}'),
        _ => {
            out.push(format!("{indent}{line}"));
            return;
        }
    };
    out.push(format!("{indent}{}{open}", exact(name.trim_end())));
    match value {
        Value::Array(items) => {
            for (item, left) in items.iter().zip((0..items.len()).rev()) {
                put_dense(item, "", depth + 1, width, if left > 0 { "," } else { "" }, out);
            }
        }
        Value::Object(map) => {
            for ((key, item), left) in map.iter().zip((0..map.len()).rev()) {
                let name = format!("{}: ", Value::from(key.as_str()));
                put_dense(item, &name, depth + 1, width, if left > 0 { "," } else { "" }, out);
            }
        }
        _ => {}
    }
    out.push(format!("{indent}{close}{behind}"));
}

/// Formats JSON on one line with spaces between its parts.
fn flat(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", ")),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let parts: Vec<String> = map
                .iter()
                .map(|(key, item)| format!("{}: {}", Value::from(key.as_str()), flat(item)))
                .collect();
            format!("{{ {} }}", parts.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_folds_and_names_its_paths() {
        let value = json!({"vars": {"rows": [{"a": 1}, {"a": 2}]}, "outputs": {}});
        let all = tree(&value, &HashSet::new());
        let paths: Vec<&str> = all.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(
            paths,
            ["vars", "vars/rows", "vars/rows/0", "vars/rows/0/a", "vars/rows/1", "vars/rows/1/a", "outputs"]
        );
        let folded = HashSet::from(["vars/rows".to_owned()]);
        let closed = tree(&value, &folded);
        assert_eq!(closed.len(), 3);
        assert_eq!(closed[1].value.text, "2 items");
    }

    #[test]
    fn a_list_of_small_objects_reads_like_a_table() {
        let value = json!([{"text": "paper", "price": 18.4}, {"text": "toner", "note": "a\u{1b}[2Jb"}]);
        let texts: Vec<String> = laid_out(&value, 37, "").iter().map(RichLine::plain_text).collect();
        assert_eq!(
            texts,
            [
                "[",
                r#"  { "text": "paper", "price": 18.4 },"#,
                "  {",
                r#"    "text": "toner","#,
                r#"    "note": "a\u001b[2Jb""#,
                "  }",
                "]"
            ]
        );
        assert_eq!(laid_out(&json!({"a": [1, 2]}), 36, "")[0].plain_text(), r#"{ "a": [1, 2] }"#);
    }

    #[test]
    fn white_space_of_values_is_exact() {
        let value = json!({
            "supplier": "North     Paper    GmbH",
            "items": [{"text": "paper A4,    box"}],
            "code": "if a:\n    b\t=  1 \n",
        });
        let mut lines: Vec<String> = fields(&value, 60, "").iter().map(RichLine::plain_text).collect();
        lines.sort();
        let mut expected = [
            "supplier  North     Paper    GmbH",
            "items     [{ \"text\": \"paper A4,    box\" }]",
            "code      if a:",
            "              b␉=  1⟨U+0020⟩",
            "          ",
        ];
        expected.sort_unstable();
        assert_eq!(lines, expected);
        let narrow: Vec<String> =
            laid_out(&json!("one two   three"), 8, "").iter().map(RichLine::plain_text).collect();
        assert_eq!(narrow, ["one two ", "  three"]);
        let one_line: String =
            on_one_line(&json!({"a": "b   c"}), 40, "…").iter().map(|seg| seg.text.as_str()).collect();
        assert_eq!(one_line, r#"{"a":"b   c"}"#);
        assert_eq!(short(&json!("b   c")).text, "b   c");
    }

    #[test]
    fn inputs_of_a_step_are_complete_and_escaped() {
        let value = json!({"to": "ana", "body": "one\u{1b}[31m two three four five six", "n": 3});
        let lines: Vec<String> = fields(&value, 24, "").iter().map(RichLine::plain_text).collect();
        let all = lines.join("\n");
        assert!(all.contains("to    ana") && all.contains("six") && !all.contains('\u{1b}'), "{all}");
        assert!(lines.iter().all(|line| cells(line) <= 24), "{all}");
        let long = json!({ "log": "line\n".repeat(69) });
        let lines = fields(&long, 40, "y copies all of it");
        assert_eq!(lines.last().unwrap().plain_text().trim(), "10 more lines: y copies all of it");
    }
}
