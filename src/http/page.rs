//! The documentation page: every operation, type and error of the document on one page without network access and
//! scripts.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::app::{DOCUMENT, LIVEZ, PROMETHEUS, READYZ};
use super::constant::ConstantDocument;
use super::openapi::{by_status, document, subjects};
use super::{codes, openapi};
use skills_api::operations::{Operation, operations};
use skills_base::json_value::value_text;

const STYLE: &str = include_str!("page.css");
/// The page loads nothing: names and descriptions remain text.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Returns the page as a response.
pub(super) fn answer(request_headers: &HeaderMap) -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(page);
    static DOCUMENT: ConstantDocument = ConstantDocument::new("text/html; charset=utf-8", || PAGE.as_str());
    let mut response = DOCUMENT.answer(request_headers);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn page() -> String {
    let mut out = String::with_capacity(400_000);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" \
         href=\"data:,\"><title>Skill Workbench: service</title><style>{STYLE}</style><nav><b>Skill Workbench</b> {}",
        env!("CARGO_PKG_VERSION")
    );
    for subject in subjects() {
        let _ = write!(out, "<a href=\"#{subject}\">{subject}</a>");
    }
    out.push_str("<a href=\"#errors\">errors</a><a href=\"#types\">types</a></nav><main>");
    introduction(&mut out);
    for subject in subjects() {
        let _ = write!(out, "<h2 id=\"{subject}\">{subject}</h2>");
        operations().iter().filter(|operation| openapi::subject(operation) == subject).for_each(
            |operation| {
                section(&mut out, operation);
            },
        );
    }
    errors(&mut out);
    types(&mut out);
    out.push_str("</main></html>\n");
    out
}

fn introduction(out: &mut String) {
    let _ = write!(
        out,
        "<h1>The service</h1><p>Find, run and supervise skills. Every response is a JSON object; <a \
            href=\"{DOCUMENT}\">{DOCUMENT}</a> is the OpenAPI 3.1 document. If authentication is \
                enabled, send the API key in <code>x-api-key</code> or <code>Authorization: Bearer</code>. <code>x-trace-id</code> is the trace id of a call and is returned with the response; <code>x-idempotency-key</code> makes a launch safe to repeat.</p>\
         <p>Health checks and metrics: <a href=\"{LIVEZ}\">{LIVEZ}</a>, <a href=\"{READYZ}\">{READYZ}</a>, \
         <a href=\"{PROMETHEUS}\">{PROMETHEUS}</a>.</p><h3>Getting started</h3>"
    );
    example(out, "curl -s http://127.0.0.1:8080/v1/skills/discover --json '{\"intent\": \"sum up a log\"}'");
    example(out, "curl -s http://127.0.0.1:8080/v1/skills/log-digest/execute --json '{}'");
    example(out, "curl -sN http://127.0.0.1:8080/v1/events -H 'accept: text/event-stream'");
}

fn example(out: &mut String, line: &str) {
    let _ = write!(out, "<pre>{}</pre>", escaped(line));
}

fn section(out: &mut String, operation: &Operation) {
    let name = operation.name;
    let scope = operation.scope.map_or_else(|| "open".to_owned(), |scope| format!("scope {scope}"));
    let _ = write!(
        out,
        "<section id=\"{name}\"><h3><span class=\"{0}\">{0}</span> <code>{1}</code></h3><p>{2} \
         <small>{name}, {scope}{3}</small></p>",
        operation.route.method,
        escaped(operation.route.path),
        marked(operation.summary),
        if operation.tool { ", also a tool of the MCP server" } else { "" },
    );
    let entry = &document()["paths"][operation.route.path][operation.route.method.to_string().to_lowercase()];
    let mut rows = String::new();
    for parameter in entry["parameters"].as_array().into_iter().flatten().filter(|p| p["name"].is_string()) {
        let required = parameter["required"] == true;
        let place = parameter["in"].as_str().unwrap_or_default();
        row(
            &mut rows,
            parameter["name"].as_str().unwrap_or_default(),
            place,
            &parameter["schema"],
            required,
            &parameter["description"],
        );
    }
    let body = &entry["requestBody"]["content"]["application/json"]["schema"];
    for (name, schema) in body["properties"].as_object().into_iter().flatten() {
        row(&mut rows, name, "body", schema, is_required(body, name), &schema["description"]);
    }
    if !rows.is_empty() {
        let _ = write!(out, "<table>{rows}</table>");
    }
    example(out, &curl(operation, body));
    let status = operation.status.to_string();
    let answer = &entry["responses"][&status]["content"]["application/json"]["schema"];
    let _ = write!(out, "<p>Returns {status} with {}", kind(answer));
    if operation.follows {
        out.push_str(", or server-sent events where <code>text/event-stream</code> is accepted");
    }
    out.push_str(".</p>");
    for alias in &operation.aliases {
        let _ =
            write!(out, "<p><small>Also {} <code>{}</code></small></p>", alias.method, escaped(alias.path));
    }
    out.push_str("</section>");
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
}

fn row(out: &mut String, name: &str, place: &str, schema: &Value, required: bool, description: &Value) {
    let _ = write!(
        out,
        "<tr><th>{}{}<td>{place}<td>{}<td>{}",
        escaped(name),
        if required { "<sup title=\"required\">*</sup>" } else { "" },
        kind(schema),
        marked(description.as_str().unwrap_or_default()),
    );
}

/// Describes a schema in a word or two, with links to the types it names.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()) {
        return format!("<a href=\"#type-{name}\">{name}</a>");
    }
    if let Some(values) = schema["enum"].as_array() {
        let words: Vec<String> =
            values.iter().map(|value| format!("<code>{}</code>", escaped(&value_text(value)))).collect();
        return words.join(" ");
    }
    if let Some(value) = schema.get("const") {
        return format!("<code>{}</code>", escaped(&value_text(value)));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(several) = schema[key].as_array() {
            let kinds: Vec<String> = several.iter().map(kind).collect();
            return kinds.join(" or ");
        }
    }
    let one = |word: &str| match word {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map to {}", kind(&schema["additionalProperties"]))
        }
        word => word.to_owned(),
    };
    match &schema["type"] {
        Value::String(word) => one(word),
        Value::Array(words) => {
            words.iter().filter_map(Value::as_str).map(one).collect::<Vec<String>>().join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

/// Returns a shell command that calls an operation.
fn curl(operation: &Operation, body: &Value) -> String {
    let mut arguments = Map::new();
    for name in operation.route.parameters() {
        arguments.insert(name.to_owned(), json!(sample(name, &Value::Null)));
    }
    let path =
        operation.route.fill(arguments).map_or_else(|| operation.route.path.to_owned(), |(path, _)| path);
    let method = operation.route.method.to_string();
    let mut line = format!("curl -s http://127.0.0.1:8080{path}");
    let body_fields: Map<String, Value> = body["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_required(body, name))
        .map(|(name, schema)| (name.clone(), sample(name, schema)))
        .collect();
    if method == "PUT" || method == "PATCH" || (method == "POST" && body.is_null()) {
        let _ = write!(line, " -X {method}");
    }
    if !body.is_null() {
        let _ = write!(line, " --json '{}'", Value::Object(body_fields));
    }
    line
}

/// Returns an example value.
fn sample(name: &str, schema: &Value) -> Value {
    match name {
        "skill_id" => json!("log-digest"),
        "run_id" => json!("RUN"),
        "session_id" => json!("SESSION"),
        "capability_id" => json!("CAPABILITY"),
        "intent" => json!("sum up a log"),
        "client" => json!("claude-code"),
        "tool" => json!("skills.load"),
        "target_type" => json!("run"),
        "target_ref" => json!("RUN"),
        "speaker" => json!("user"),
        "api" => json!("anthropic"),
        _ => match schema["type"].as_str() {
            Some("array") => json!([]),
            Some("object") => json!({}),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            _ => json!("…"),
        },
    }
}

fn errors(out: &mut String) {
    out.push_str(
        "<h2 id=\"errors\">errors</h2><p>An error is a problem document: <code>error.code</code> is one of \
                  these, <code>error.message</code> states what is wrong, where, and what to do.</p><table>",
    );
    for (status, codes) in by_status() {
        for code in codes {
            let _ =
                write!(out, "<tr id=\"{code}\"><th>{code}<td>{status}<td>{}", marked(codes::meaning(code)));
        }
    }
    out.push_str("</table>");
}

fn types(out: &mut String) {
    out.push_str("<h2 id=\"types\">types</h2>");
    for (name, schema) in document()["components"]["schemas"].as_object().into_iter().flatten() {
        let about = schema["description"].as_str().unwrap_or_default();
        let _ = write!(out, "<section id=\"type-{name}\"><h3>{name}</h3><p>{}</p>", marked(about));
        match schema["properties"].as_object().filter(|all| !all.is_empty()) {
            Some(properties) => {
                out.push_str("<table>");
                for (name, property) in properties {
                    row(out, name, "", property, is_required(schema, name), &property["description"]);
                }
                out.push_str("</table>");
            }
            None => variants(out, schema),
        }
        out.push_str("</section>");
    }
}

/// Renders a type with several variants.
fn variants(out: &mut String, schema: &Value) {
    if let (Some(values), Some(descriptions)) =
        (schema["enum"].as_array(), schema["x-enum-descriptions"].as_array())
    {
        out.push_str("<table>");
        for (value, description) in values.iter().zip(descriptions) {
            let (value, about) = (escaped(&value.to_string()), description.as_str().unwrap_or_default());
            let _ = write!(out, "<tr><td>{value}<td>{}", marked(about));
        }
        out.push_str("</table>");
        return;
    }
    let several = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    let Some(several) = several else {
        let _ = write!(out, "<p>{}</p>", kind(schema));
        return;
    };
    out.push_str("<table>");
    for one in several {
        let keys: Vec<String> = one["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, schema)| format!("{}: {}", escaped(name), kind(schema)))
            .collect();
        let shape = if keys.is_empty() { kind(one) } else { keys.join(", ") };
        let _ = write!(out, "<tr><td>{shape}<td>{}", marked(one["description"].as_str().unwrap_or_default()));
    }
    out.push_str("</table>");
}

/// Renders a sentence with its `code` marked up.
fn marked(text: &str) -> String {
    let mut out = String::new();
    for (n, part) in text.split('`').enumerate() {
        let part = escaped(part);
        let _ = if n % 2 == 1 { write!(out, "<code>{part}</code>") } else { write!(out, "{part}") };
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn page_lists_every_operation_and_code_with_valid_links() {
        let page = page();
        let parts = |before: &str| -> BTreeSet<String> {
            page.split(before).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
        };
        let (ids, links) = (parts(" id=\""), parts("href=\"#"));
        for operation in operations() {
            assert!(ids.contains(operation.name), "{}", operation.name);
        }
        for code in by_status().into_values().flatten() {
            assert!(ids.contains(&code.to_string()), "{code}");
        }
        assert_eq!(links.difference(&ids).collect::<Vec<_>>(), Vec::<&String>::new());
        assert!(!page.contains("http://cdn") && !page.contains("<script"), "the page loads nothing");
    }

    #[test]
    fn shell_example_is_complete() {
        let discover = skills_api::operations::operation("skill.discover").unwrap();
        let body = &document()["paths"]["/v1/skills/discover"]["post"]["requestBody"]["content"]["application/json"]
            ["schema"];
        let line = curl(discover, body);
        assert!(line.starts_with("curl -s http://127.0.0.1:8080/v1/skills/discover --json '{"), "{line}");
    }
}
