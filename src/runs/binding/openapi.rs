//! HTTP calls: a method, a path with placeholders, and a query or a JSON body.
//!
//! `operation` is the path relative to the service's address (`chat/completions`, `/cases/{id}`), with the method in
//! front (`GET /cases`) or in `metadata.method`; the default is POST. Request fields fill the placeholders. Of the
//! remaining fields, those listed in `metadata.query` (with GET, HEAD and DELETE: all) go into the query, and the
//! others form the JSON body.

use reqwest::{Method, Url};
use serde_json::{Map, Value};

use super::super::call::CallFailure;
use super::http::{accepted, json};
use super::request::kind;
use super::{BindingCall, BindingContext, BindingFailure, BindingResponse};
use skills_skill::contract::{Binding, ServiceTarget};

/// Returns the call target for display.
pub fn target(binding: &Binding, reach: Option<&ServiceTarget>) -> String {
    let (method, path) = operation(binding);
    match reach {
        Some(ServiceTarget::Http { url, .. }) => {
            format!("{method} {}/{}", url.trim_end_matches('/'), path.trim_start_matches('/'))
        }
        _ => format!("{method} {path} of service {}", binding.service),
    }
}

/// Returns method and path.
fn operation(binding: &Binding) -> (String, &str) {
    let stated = binding.metadata.get("method").and_then(Value::as_str);
    match binding.operation.split_once(' ') {
        Some((method, path)) if method.chars().all(|c| c.is_ascii_alphabetic()) => {
            (method.to_uppercase(), path.trim())
        }
        _ => (stated.unwrap_or("POST").to_uppercase(), binding.operation.as_str()),
    }
}

pub async fn execute(
    context: &BindingContext,
    job: &BindingCall<'_>,
) -> Result<BindingResponse, BindingFailure> {
    let binding = &job.offered.binding;
    let (endpoint, base) = context.http_service(job)?;
    let invalid = |why: String| BindingFailure::before(CallFailure::InvalidConfiguration, why);
    let (method, path) = operation(binding);
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| {
        invalid(format!("the binding `{}` has `{method}`, which is not an HTTP method", binding.id))
    })?;
    let rendered = job.request();
    let mut url = Url::parse(base).map_err(|error| {
        invalid(format!("`services.{}.url` is not a valid address: {error}", binding.service))
    })?;
    let body = match rendered {
        Value::Object(mut fields) => {
            append(&mut url, path, &mut fields).map_err(|why| {
                BindingFailure::before(CallFailure::InvalidRequest, format!("{}: {why}", job.target))
            })?;
            let all = [Method::GET, Method::HEAD, Method::DELETE].contains(&method);
            let listed = binding.metadata.get("query").and_then(Value::as_array);
            let in_query =
                |name: &str| all || listed.is_some_and(|names| names.iter().any(|other| other == name));
            let (query, body): (Map<_, _>, Map<_, _>) =
                fields.into_iter().partition(|(name, _)| in_query(name));
            write_query(&mut url, &query).map_err(|why| {
                BindingFailure::before(CallFailure::InvalidRequest, format!("{}: {why}", job.target))
            })?;
            (!all).then_some(Value::Object(body))
        }
        other => {
            append(&mut url, path, &mut Map::new()).map_err(invalid)?;
            Some(other)
        }
    };
    let mut request = context.http.client()?.request(method, url);
    if let Some(body) = &body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let request = context.with_auth(request, &binding.service, endpoint, job.call)?;
    let answered = context.http.exchange(request, job, endpoint).await?;
    accepted(&answered, &job.target)?;
    json(&answered, &job.target).map(BindingResponse::of)
}

/// Appends a path, filling its placeholders from the fields, which are consumed. A value always becomes one segment,
/// whatever characters it contains.
fn append(url: &mut Url, path: &str, fields: &mut Map<String, Value>) -> Result<(), String> {
    if path.contains(['?', '#', '\\']) || path.contains("//") {
        return Err(format!("`{path}` is not a path below the service's address"));
    }
    let mut segments = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let mut segment = String::new();
        let mut rest = part;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) =
                after.split_once('}').ok_or_else(|| format!("`{path}` has an unclosed placeholder"))?;
            segment.push_str(before);
            match fields.shift_remove(name) {
                Some(Value::String(text)) if !text.is_empty() => segment.push_str(&text),
                Some(value @ (Value::Number(_) | Value::Bool(_))) => segment.push_str(&value.to_string()),
                Some(other) => return Err(format!("`{{{name}}}` in the path cannot be {}", kind(&other))),
                None => return Err(format!("`{{{name}}}` in the path has no value in the request")),
            }
            rest = behind;
        }
        segment.push_str(rest);
        // They would be removed, also those between two dots.
        if segment.contains(['\t', '\n', '\r']) {
            return Err(format!("a value in the path `{path}` contains a tab or a line break"));
        }
        if segment == "." || segment == ".." {
            return Err(format!("the path `{path}` leaves the service's address"));
        }
        segments.push(segment);
    }
    let mut at =
        url.path_segments_mut().map_err(|()| "the service's address cannot have a path".to_owned())?;
    at.pop_if_empty().extend(segments);
    Ok(())
}

fn write_query(url: &mut Url, fields: &Map<String, Value>) -> Result<(), String> {
    if fields.is_empty() {
        return Ok(());
    }
    let mut pairs = url.query_pairs_mut();
    for (name, value) in fields {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            match value {
                Value::String(text) => pairs.append_pair(name, text),
                Value::Number(_) | Value::Bool(_) => pairs.append_pair(name, &value.to_string()),
                other => return Err(format!("`{name}` in the query cannot be {}", kind(other))),
            };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(path: &str, fields: &Value) -> Result<String, String> {
        let mut url = Url::parse("http://host/v1/").unwrap();
        let mut fields = fields.as_object().cloned().unwrap();
        append(&mut url, path, &mut fields)?;
        write_query(&mut url, &fields)?;
        Ok(url.to_string())
    }

    #[test]
    fn placeholders_are_one_segment_and_the_rest_is_the_query() {
        assert_eq!(url("chat/completions", &json!({})).unwrap(), "http://host/v1/chat/completions");
        assert_eq!(
            url(
                "/cases/{id}/files/{n}.json",
                &json!({"id": "a/b ?", "n": 7, "tag": ["x", "y"], "deep": true})
            )
            .unwrap(),
            "http://host/v1/cases/a%2Fb%20%3F/files/7.json?tag=x&tag=y&deep=true"
        );
    }

    #[test]
    fn no_path_escapes_the_service() {
        for (path, fields) in [
            ("../admin", json!({})),
            ("a/{id}", json!({"id": ".."})),
            ("a/{id}", json!({"id": ".\n."})),
            ("a/{id}", json!({"id": "\t"})),
            ("a/{id}", json!({"id": "..\r"})),
            ("//evil.example/x", json!({})),
            ("a?b", json!({})),
            ("a/{id}", json!({})),
            ("a/{id}", json!({"id": {"x": 1}})),
            ("a/{id", json!({"id": "x"})),
        ] {
            assert!(url(path, &fields).is_err(), "{path}");
        }
        assert!(url("a", &json!({"q": {"x": 1}})).unwrap_err().contains("an object"));
    }
}
