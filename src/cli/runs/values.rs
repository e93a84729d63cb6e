//! Inputs, outputs and states of runs as text.

use serde_json::Value;

use crate::output::{TerminalCaps, TextStyle, broken, cells};
use skills_skill::safe_text;

/// Renders an object as rows of name and value, each indented by `indent` cells; other values completely.
pub fn rows(value: &Value, indent: usize, look: TerminalCaps) -> String {
    let pad = " ".repeat(indent);
    let Value::Object(fields) = value else {
        return lines(value, look.text_width(100).saturating_sub(indent))
            .iter()
            .map(|line| format!("{pad}{line}\n"))
            .collect();
    };
    let name_width = fields.keys().map(|name| cells(&safe_text::line(name))).max().unwrap_or(0).clamp(4, 24);
    let available = look.text_width(100).saturating_sub(indent + name_width + 2).max(16);
    let mut out = String::new();
    for (name, value) in fields {
        let mut name = TextStyle::Muted.paint(&look.name(&safe_text::line(name), name_width), look.color);
        for line in lines(value, available) {
            out += &format!("{pad}{name}  {line}\n");
            name = " ".repeat(name_width);
        }
    }
    out
}

/// Renders a value in lines, with all of its spaces: small values as one line of JSON, large ones indented.
fn lines(value: &Value, available: usize) -> Vec<String> {
    match value {
        Value::String(text) if text.is_empty() => vec!["\"\"".to_owned()],
        Value::String(text) => {
            text.split('\n').flat_map(|line| folded(&safe_text::exact(line), available)).collect()
        }
        other => {
            let small = safe_text::exact(&other.to_string());
            if cells(&small) <= available.min(200) {
                return vec![small];
            }
            let large = serde_json::to_string_pretty(other).unwrap_or(small);
            large.lines().flat_map(|line| folded(&safe_text::exact(line), available)).collect()
        }
    }
}

fn folded(line: &str, available: usize) -> Vec<String> {
    if cells(line) <= available { vec![line.to_owned()] } else { broken(line, available) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CAPS: TerminalCaps = TerminalCaps { color: false, unicode: true, width: 60, terminal: true };

    #[test]
    fn outputs_are_rows_of_name_and_value() {
        let value =
            json!({ "total": 1204.5, "booking": "B-1009", "rows": [{ "sum": 1 }], "note": "two\nlines" });
        insta::assert_snapshot!(rows(&value, 2, CAPS), @r#"
          total    1204.5
          booking  B-1009
          rows     [{"sum":1}]
          note     two
                   lines
        "#);
    }

    #[test]
    fn large_values_are_indented_json() {
        let value = json!({ "rows": (0..4).map(|i| json!({ "number": i, "text": "a row of a table" })).collect::<Vec<_>>() });
        let text = rows(&value, 0, CAPS);
        assert!(text.starts_with("rows  [\n        {\n"), "{text}");
        assert!(text.lines().all(|line| cells(line) <= 60), "{text}");
    }

    #[test]
    fn white_space_of_values_is_exact() {
        let code = "if a:\n    b\t=  1 ";
        let text = rows(&json!({ "code": code, "name": "North     Paper", "list": ["a    b"] }), 0, CAPS);
        for line in
            ["code  if a:", "          b␉=  1⟨U+0020⟩", "name  North     Paper", r#"list  ["a    b"]"#]
        {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        let long = format!("{}  {}", "a".repeat(50), "b".repeat(20));
        let text = rows(&json!({ "long": long, "list": [{ "long": long }] }), 0, CAPS);
        assert!(text.contains(&format!("long  {}\n       {}\n", "a".repeat(50), "b".repeat(20))), "{text}");
        assert!(!text.contains('…') && text.matches(&"b".repeat(20)).count() == 2, "{text}");
        assert!(text.lines().all(|line| cells(line) <= 60), "{text}");
    }

    #[test]
    fn control_sequences_in_values_are_escaped() {
        let text = rows(&json!({ "a\u{1b}[2J": "b\u{1b}[31m\u{202e}" }), 0, CAPS);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    }
}
