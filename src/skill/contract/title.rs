//! Titles of runs: a template of the contract filled with the inputs, or derived from the inputs.

use serde_json::{Map, Value};

use crate::safe_text;
use skills_base::text::collapse_whitespace;

/// Maximum number of characters of a title.
const MAX_TITLE: usize = 200;
/// Maximum number of characters of one input in a title.
const MAX_VALUE: usize = 60;
/// Maximum number of inputs in a derived title.
const MAX_DERIVED: usize = 3;

/// Returns the placeholders of a template, in order.
pub(super) fn placeholders(template: &str) -> Vec<&str> {
    pieces(template).into_iter().filter_map(Result::err).collect()
}

/// Splits a template into its literal parts (`Ok`) and its placeholders (`Err`). An unbalanced brace is literal.
fn pieces(template: &str) -> Vec<Result<&str, &str>> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        out.push(Ok(before));
        out.push(Err(name.trim()));
        rest = behind;
    }
    out.push(Ok(rest));
    out
}

/// Renders a template, replacing `{inputs.NAME}` by the inputs. Missing inputs are omitted.
pub fn render_title(template: &str, inputs: &Map<String, Value>) -> String {
    let mut out = String::new();
    for part in pieces(template) {
        match part {
            Ok(text) => out.push_str(text),
            Err(name) => {
                let mut path = name.split('.').skip(1);
                let first = path.next().and_then(|name| inputs.get(name));
                let value = first.and_then(|first| path.try_fold(first, |value, name| value.get(name)));
                out.push_str(&value.and_then(short).unwrap_or_default());
            }
        }
    }
    cut(collapse_whitespace(&out), MAX_TITLE)
}

/// Derives a title from the first inputs that have a short form: `region: eu-west-1, version: 5.4.0`. Returns an empty
/// title if there are none.
pub fn derived_title(inputs: &Map<String, Value>) -> String {
    let parts = inputs.iter().filter_map(|(name, value)| Some(format!("{name}: {}", unambiguous(value)?)));
    cut(parts.take(MAX_DERIVED).collect::<Vec<_>>().join(", "), MAX_TITLE)
}

/// Like [`short`], with texts in quotation marks that could be taken for several inputs.
fn unambiguous(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => {
            let all: Option<Vec<String>> = items.iter().map(unambiguous).collect();
            all.map(|all| cut(all.join(", "), MAX_VALUE)).filter(|text| !text.is_empty())
        }
        value => {
            let text = short(value)?;
            let is_clear = !value.is_string() || safe_text::is_one_field(text.trim_end_matches('…'));
            Some(if is_clear { text } else { Value::from(text).to_string() })
        }
    }
}

/// Formats a value on one line; returns `None` if it has no short form.
fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => collapse_whitespace(text),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Array(items) => {
            let all: Option<Vec<String>> = items.iter().map(short).collect();
            all?.join(", ")
        }
        Value::Null | Value::Object(_) => return None,
    };
    (!text.is_empty()).then(|| cut(text, MAX_VALUE))
}

fn cut(text: String, max: usize) -> String {
    if text.chars().count() <= max {
        return text;
    }
    text.chars().take(max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inputs(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn template_reads_inputs_by_path() {
        let values =
            inputs(json!({"version": "5.4.0", "to": {"region": "eu-west-1"}, "tags": ["a", "b"], "n": 3}));
        for (template, title) in [
            ("Deploy {inputs.version} to {inputs.to.region}", "Deploy 5.4.0 to eu-west-1"),
            ("{inputs.n} of { inputs.tags }", "3 of a, b"),
            ("Deploy {inputs.gone} now", "Deploy now"),
            ("a { b } {inputs.n", "a {inputs.n"),
            ("plain", "plain"),
        ] {
            assert_eq!(render_title(template, &values), title, "{template}");
        }
        let long = inputs(json!({"text": "x ".repeat(500)}));
        assert_eq!(render_title("{inputs.text}", &long).chars().count(), MAX_VALUE);
    }

    #[test]
    fn a_title_without_a_template_names_the_first_inputs() {
        let values = inputs(json!({"a": "one\ntwo", "b": {"c": 1}, "d": 2, "e": true, "f": "left out"}));
        assert_eq!(derived_title(&values), "a: one two, d: 2, e: true");
        assert_eq!(derived_title(&Map::new()), "");
        let values = inputs(json!({"about": "Inv, amount: 12", "amount": 90, "tags": ["a", "b, to: bo"]}));
        let numbered = inputs(json!({"about": "Haus 🄂 amount 1🄃"}));
        assert_eq!(derived_title(&numbered), "about: \"Haus 🄂 amount 1🄃\"");
        let title = "about: \"Inv, amount: 12\", amount: 90, tags: a, \"b, to: bo\"";
        assert_eq!(derived_title(&values), title);
    }

    #[test]
    fn findings_about_placeholders_are_limited() {
        let title = "{inputs.a}".repeat(100_000);
        let text =
            format!("id: x.y\nversion: 1.0.0\ntitle: '{title}'\nsteps: [{{id: a, wait_for_signal: go}}]\n");
        let found = crate::contract::parse(std::path::Path::new("skill.yaml"), &text).1;
        let found =
            found.iter().filter(|finding| finding.field.as_deref().is_none_or(|field| field == "title"));
        assert_eq!(found.count(), 101);
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics(template in "[a-z{}. ]{0,30}") {
            drop(render_title(&template, &Map::new()));
            placeholders(&template);
        }
    }
}
