//! Request templates and response references: map a call's inputs to the request of a service, and its response to the
//! outputs of a capability.
//!
//! A template string that is exactly a reference (`input.text`, `target.content`, `run.trace_id`) is replaced by the
//! value; `${input.text}` inside a longer string is replaced by its text; everything else is constant. Missing values
//! are omitted from objects, are `null` in lists, and empty in strings.

use serde_json::{Map, Value};

use crate::call::Call;

/// Namespaces with which a template reference can begin.
const NAMESPACES: [&str; 4] = ["input", "inputs", "target", "run"];

/// Values that template references resolve to.
pub struct TemplateValues {
    input: Value,
    target: Value,
    run: Value,
}

impl TemplateValues {
    /// Collects the values of a call.
    pub fn of(call: &Call) -> Self {
        Self {
            input: Value::Object(call.inputs.clone()),
            target: call.target.clone().unwrap_or(Value::Null),
            run: run(call),
        }
    }

    fn root(&self, namespace: &str) -> Option<&Value> {
        match namespace {
            "input" | "inputs" => Some(&self.input),
            "target" => Some(&self.target),
            "run" => Some(&self.run),
            _ => None,
        }
    }

    fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        let mut at = self.root(first)?;
        for part in rest {
            at = step(at, part)?;
        }
        (!at.is_null()).then_some(at)
    }
}

/// Returns what receivers learn about the run: the trace id, the step, and the idempotency key by which they can drop
/// duplicates.
pub fn run(call: &Call) -> Value {
    serde_json::json!({
        "trace_id": call.trace_id,
        "idempotency_key": call.idempotency_key,
        "step": call.step,
    })
}

/// Returns whether a binding has a request template; if not, the inputs are sent unchanged.
pub fn is_stated(template: &Value) -> bool {
    template.as_object().is_none_or(|map| !map.is_empty())
}

/// Renders a template; returns the inputs themselves if it is empty.
pub fn render(template: &Value, values: &TemplateValues) -> Value {
    if is_stated(template) { fill(template, values).unwrap_or(Value::Null) } else { values.input.clone() }
}

fn fill(template: &Value, values: &TemplateValues) -> Option<Value> {
    Some(match template {
        Value::String(text) => match reference(text) {
            Some(path) => return values.get(&path).cloned(),
            None => Value::String(interpolate(text, values)),
        },
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, values).unwrap_or(Value::Null)).collect())
        }
        Value::Object(map) => Value::Object(
            map.iter().filter_map(|(key, value)| Some((key.clone(), fill(value, values)?))).collect(),
        ),
        other => other.clone(),
    })
}

/// Parses a text that consists of exactly one reference.
fn reference(text: &str) -> Option<Vec<&str>> {
    let path: Vec<&str> = text.split('.').collect();
    let is_plain_reference =
        |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    (path.len() > 1 && NAMESPACES.contains(&path[0]) && path.iter().all(is_plain_reference)).then_some(path)
}

/// Finds each `${reference}` in a string: pairs of preceding text and path, and the remaining text.
fn holes(text: &str) -> (Vec<(&str, Vec<&str>)>, &str) {
    let (mut found, mut rest) = (Vec::new(), text);
    let mut from = 0;
    while let Some(start) = rest[from..].find("${").map(|at| at + from) {
        let inside = &rest[start + 2..];
        match inside.find('}').and_then(|end| Some((end, reference(&inside[..end])?))) {
            Some((end, path)) => {
                found.push((&rest[..start], path));
                rest = &inside[end + 1..];
                from = 0;
            }
            // Not a reference of ours; it may be a template of the service itself.
            None => from = start + 2,
        }
    }
    (found, rest)
}

fn interpolate(text: &str, values: &TemplateValues) -> String {
    let (holes, rest) = holes(text);
    let mut out = String::with_capacity(text.len());
    for (before, path) in holes {
        out.push_str(before);
        match values.get(&path) {
            Some(Value::String(value)) => out.push_str(value),
            Some(value) => out.push_str(&value.to_string()),
            None => {}
        }
    }
    out.push_str(rest);
    out
}

/// Returns the names of the inputs that a template reads.
pub fn inputs_of(template: &Value) -> Vec<String> {
    match template {
        Value::String(text) => {
            let paths = match reference(text) {
                Some(path) => vec![path],
                None => holes(text).0.into_iter().map(|(_, path)| path).collect(),
            };
            let inputs = paths.into_iter().filter(|path| path[0].starts_with("input"));
            inputs.map(|path| path[1].to_owned()).collect()
        }
        Value::Array(items) => items.iter().flat_map(inputs_of).collect(),
        Value::Object(map) => map.values().flat_map(inputs_of).collect(),
        _ => Vec::new(),
    }
}

fn step<'v>(value: &'v Value, part: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Maps a response to the outputs of a capability. Without a mapping the response's own fields are the outputs.
///
/// `texts_are_json` is upstream's `response_mode: json`: the part `content_json` of a reference parses the text
/// `content` as JSON.
///
/// # Errors
/// Returns a message if the response does not match the mapping.
pub fn outputs(
    mapping: &std::collections::BTreeMap<String, String>,
    answer: Value,
    texts_are_json: bool,
) -> Result<Map<String, Value>, String> {
    if mapping.is_empty() {
        return match answer {
            Value::Object(map) => Ok(map),
            Value::Null => Ok(Map::new()),
            other => Err(format!("the response is {}, expected an object with the outputs", kind(&other))),
        };
    }
    let mut out = Map::new();
    for (field, reference) in mapping {
        if let Some(value) = read(&answer, reference, texts_are_json)?.filter(|value| !value.is_null()) {
            out.insert(field.clone(), value);
        }
    }
    Ok(out)
}

/// Resolves a reference (`response.items.0.name`); `None` if the path does not exist.
fn read(answer: &Value, reference: &str, texts_are_json: bool) -> Result<Option<Value>, String> {
    let mut parts = reference.split('.');
    if parts.next() != Some("response") {
        return Err(format!("`{reference}` is not a reference into the response; use response.FIELD"));
    }
    let mut at = answer.clone();
    for part in parts {
        let next = match step(&at, part) {
            Some(next) => Some(next.clone()),
            None if texts_are_json => part
                .strip_suffix("_json")
                .and_then(|name| step(&at, name))
                .and_then(Value::as_str)
                .map(|text| {
                    serde_json::from_str(unfenced(text))
                        .map_err(|error| format!("the text at `{reference}` is not JSON: {error}"))
                })
                .transpose()?,
            None => None,
        };
        let Some(next) = next else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

/// Removes the Markdown code fence that language models often put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    inside.strip_prefix("json").unwrap_or(inside).trim()
}

/// Returns the name of a value's type for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn template_values() -> TemplateValues {
        TemplateValues {
            input: json!({"text": "hi", "n": 3, "list": [{"a": 1}], "none": null}),
            target: json!({"type": "run", "content": {"x": true}}),
            run: json!({"trace_id": "t-1", "idempotency_key": "k"}),
        }
    }

    #[test]
    fn references_keep_their_type_and_absent_ones_are_omitted() {
        let template = json!({
            "a": "input.n", "b": "input.none", "c": ["input.missing", "input.list.0.a"],
            "d": {"e": "target.content.x"}, "f": "input", "g": "inputting.text", "h": "run.trace_id", "i": 7
        });
        assert_eq!(
            render(&template, &template_values()),
            json!({"a": 3, "c": [null, 1], "d": {"e": true}, "f": "input", "g": "inputting.text", "h": "t-1", "i": 7})
        );
    }

    #[test]
    fn placeholders_are_filled_and_other_text_is_kept() {
        let fill = |text: &str| render(&json!([text]), &template_values())[0].clone();
        assert_eq!(
            fill("say ${input.text}, ${input.n} times: ${input.list}!"),
            "say hi, 3 times: [{\"a\":1}]!"
        );
        assert_eq!(fill("${input.missing}|${other} ${ ${input.text}"), "|${other} ${ hi");
        assert_eq!(fill("${input.text"), "${input.text");
        // A value that looks like a template is not expanded.
        let sly = TemplateValues { input: json!({"x": "${run.idempotency_key}"}), ..template_values() };
        assert_eq!(render(&json!(["<${input.x}>"]), &sly)[0], "<${run.idempotency_key}>");
    }

    #[test]
    fn inputs_without_a_template_are_sent_unchanged() {
        assert_eq!(render(&json!({}), &template_values()), template_values().input);
    }

    #[test]
    fn inputs_are_found_at_any_depth() {
        let template =
            json!({"a": "input.x", "b": ["say ${input.y.z} ${run.trace_id}"], "c": {"d": "target.content"}});
        assert_eq!(inputs_of(&template), ["x", "y"]);
    }

    #[test]
    fn responses_are_read_by_path() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let answer = json!({"choices": [{"message": {"content": "```json\n{\"label\": \"spam\"}\n```"}}], "gone": null});
        let mapping = map(&[
            ("label", "response.choices.0.message.content_json.label"),
            ("gone", "response.gone"),
            ("deep", "response.a.b"),
            ("all", "response"),
        ]);
        let out = outputs(&mapping, answer.clone(), true).unwrap();
        assert_eq!(out["label"], "spam");
        assert_eq!(out["all"], answer);
        assert!(!out.contains_key("gone") && !out.contains_key("deep"));
        assert!(!outputs(&mapping, answer, false).unwrap().contains_key("label"));
        let prose = json!({"choices": [{"message": {"content": "It is spam."}}]});
        assert!(outputs(&mapping, prose, true).unwrap_err().contains("is not JSON"));
        assert!(outputs(&map(&[("a", "input.x")]), json!({}), false).unwrap_err().contains("response.FIELD"));
        assert!(outputs(&BTreeMap::new(), json!([1]), false).unwrap_err().contains("a list"));
    }
}
