//! Short summaries of results: `214 rows × 4 columns`, `total 1204.5`, `http 502`.

use serde_json::{Map, Value};
use skills_base::number::counted;
use skills_skill::safe_text;

/// Maximum number of fields shown.
const FIELDS: usize = 3;
/// Last words of names that are units, not plurals: `late_ms`.
const UNITS: [&str; 9] = ["s", "ms", "us", "ns", "seconds", "minutes", "hours", "days", "bytes"];
/// Maximum number of characters of a text.
const MAX_TEXT_LEN: usize = 32;

/// Summarizes what a step produced; `None` if it produced nothing.
pub(super) fn of_result(result: &Value) -> Option<String> {
    match result {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(fields) => Some(of_fields(fields)),
        other => Some(value(other)),
    }
}

/// Summarizes why a step failed.
pub(super) fn of_failure(error: &Value) -> String {
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    match (text("message"), text("code")) {
        // The capability and the binding are shown next to it.
        (Some(message), _) => {
            // "`CAPABILITY`: …", "`CAPABILITY` (binding `BINDING`): …", and "… through `BINDING`: …" of earlier versions.
            let without_prefix = ["`: ", "`): "].into_iter().filter_map(|end| message.split_once(end));
            let shortest = without_prefix.min_by_key(|(head, _)| head.len());
            let why = shortest.filter(|(head, _)| head.starts_with('`')).map_or(message, |(_, why)| why);
            cut(why, 2 * MAX_TEXT_LEN)
        }
        (None, Some(code)) => code.replace('_', " "),
        (None, None) => cut(&error.to_string(), 2 * MAX_TEXT_LEN),
    }
}

/// Summarizes the inputs of a call for its approval: a text that could be taken for other inputs is in quotation marks.
pub(super) fn of_inputs(inputs: &Map<String, Value>) -> String {
    joined(inputs, unambiguous)
}

/// Summarizes fields with their values.
fn of_fields(fields: &Map<String, Value>) -> String {
    joined(fields, |text| cut(text, MAX_TEXT_LEN))
}

/// Summarizes fields, with their texts as `show` returns them.
fn joined(fields: &Map<String, Value>, show: impl Fn(&str) -> String) -> String {
    let shown = fields.iter().filter(|(_, v)| !v.is_null()).take(FIELDS);
    let parts: Vec<String> = shown.map(|(name, v)| field(name, v, &show)).collect();
    let more = fields.values().filter(|v| !v.is_null()).count().saturating_sub(FIELDS);
    let mut text = parts.join(", ");
    if more > 0 {
        text = format!("{text}, {more} more");
    }
    text
}

fn field(name: &str, value_of: &Value, show: impl Fn(&str) -> String) -> String {
    let name = name.replace('_', " ");
    match value_of {
        Value::Array(items) => {
            // Records are shown with their number of fields, like a table.
            let width = match items.first() {
                Some(Value::Object(fields)) if items.len() > 1 => Some(fields.len()),
                _ => None,
            };
            let columns = width.map(|n| format!(" × {}", counted(n, "column"))).unwrap_or_default();
            let is_unit = name.rsplit(' ').next().is_some_and(|word| UNITS.contains(&word));
            if name.ends_with('s') && !is_unit && items.len() != 1 {
                format!("{} {name}{columns}", items.len())
            } else {
                format!("{name}: {}{columns}", counted(items.len(), "item"))
            }
        }
        Value::Object(fields) => format!("{name} with {}", counted(fields.len(), "field")),
        Value::String(text) => format!("{name} {}", show(text)),
        other => format!("{name} {}", value(other)),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text, MAX_TEXT_LEN),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => counted(items.len(), "item"),
        Value::Object(fields) => counted(fields.len(), "field"),
        other => other.to_string(),
    }
}

/// Returns a text, truncated: as JSON if it could be taken for several fields. Of several lines the first one is shown.
fn unambiguous(text: &str) -> String {
    if safe_text::is_one_field(text) {
        return cut(text, MAX_TEXT_LEN);
    }
    let mut short: String = text.chars().take(MAX_TEXT_LEN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Value::from(short).to_string()
}

/// Returns the first line, truncated.
fn cut(text: &str, at: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= at && line.len() == text.trim().len() {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(at).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_summarized_in_plain_language() {
        let summary = |value: Value| of_result(&value).unwrap_or_default();
        assert_eq!(
            summary(json!({ "rows": [{ "a": 1, "b": 2 }, { "a": 3, "b": 4 }] })),
            "2 rows × 2 columns"
        );
        assert_eq!(
            summary(json!({ "total": 1204.5, "entry_id": "B-7", "ok": true })),
            "total 1204.5, entry id B-7, ok yes"
        );
        assert_eq!(summary(json!({ "a": 1, "b": 2, "c": 3, "d": 4, "e": null })), "a 1, b 2, c 3, 1 more");
        assert_eq!(
            summary(json!({ "late_ms": [0.21, 2.96, 4.0], "sizes": [1, 2] })),
            "late ms: 3 items, 2 sizes"
        );
        assert_eq!(summary(json!({})), "");
        assert_eq!(summary(json!({ "text": "one\ntwo" })), "text one…");
    }

    #[test]
    fn no_input_imitates_other_inputs() {
        let summary = |value: Value| of_inputs(value.as_object().unwrap());
        assert_eq!(
            summary(json!({ "account": "office 4711", "amount": 42 })),
            "account office 4711, amount 42"
        );
        let forged =
            json!({ "account": "office", "address": "Elm St 1, amount 12, iban DE11 PAPER", "amount": 90 });
        assert_eq!(
            summary(forged),
            r#"account office, address "Elm St 1, amount 12, iban DE11 P…", amount 90"#
        );
        for (text, shown) in [
            ("", r#""""#),
            (" a", r#"" a""#),
            ("a ", r#""a ""#),
            ("a  b", r#""a  b""#),
            ("a\tb", r#""a\tb""#),
            ("a\u{a0}b", "\"a\u{a0}b\""),
            (r#"a", b "c"#, r#""a\", b \"c""#),
            ("to: b", r#""to: b""#),
            ("a，b", r#""a，b""#),
            ("office‚ amount 12", r#""office‚ amount 12""#),
            ("office، b", r#""office، b""#),
            ("officeˏ b", r#""officeˏ b""#),
            ("iban=DE", r#""iban=DE""#),
            ("office” b", r#""office” b""#),
            ("2026-11-30T11:09", r#""2026-11-30T11:09""#),
            ("a-b.c/d@e_f+g", "a-b.c/d@e_f+g"),
            ("Müller 東京 №7 ½", r#""Müller 東京 №7 ½""#),
            ("Müller 東京 7", r#""Müller 東京 7""#),
            ("Müller 7", "Müller 7"),
            ("東京大学", "東京大学"),
            ("1丶 amountः 12", r#""1丶 amountः 12""#),
            ("one\ntwo", "one…"),
        ] {
            assert_eq!(summary(json!({ "x": text })), format!("x {shown}"));
        }
    }

    #[test]
    fn a_failure_is_summarized_by_its_message() {
        assert_eq!(of_failure(&json!({ "code": "upstream_failure", "message": "http 502" })), "http 502");
        assert_eq!(of_failure(&json!({ "code": "step_timeout" })), "step timeout");
        for prefix in ["`a.b`", "`a.b` (binding `c`)", "`a.b` through `c`"] {
            let failed = json!({ "message": format!("{prefix}: scripts/x.sh exited with code 3") });
            assert_eq!(of_failure(&failed), "scripts/x.sh exited with code 3");
        }
    }
}
