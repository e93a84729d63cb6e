//! The `OpenAPI` 3.1 document of the service (<https://spec.openapis.org/oas/v3.1.1>), generated from the operation
//! table and the types of requests and responses.

mod errors;
mod schemas;

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

pub(super) use self::errors::by_status;
use self::schemas::{Direction, Schemas};
use super::app::{DOCUMENT, LIVEZ, PROMETHEUS, READYZ};
use super::constant::ConstantDocument;
use super::problem::{PROBLEM, Problem};
use skills_api::METRICS_CONTENT_TYPE;
use skills_api::operations::{Operation, Route, Scope, operations, simplify};

/// Returns the document, which is generated once.
pub fn document() -> &'static Value {
    static GENERATED: LazyLock<Value> = LazyLock::new(generate);
    &GENERATED
}

/// Returns the document as it is checked in: indented, with a final line feed.
pub fn document_text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));
    &TEXT
}

/// Returns the response with the document.
pub(super) fn answer(request_headers: &HeaderMap) -> Response {
    static DOCUMENT: ConstantDocument = ConstantDocument::new("application/json", document_text);
    DOCUMENT.answer(request_headers)
}

fn generate() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    let mut parts: Vec<(Direction, Value)> = Vec::new();
    // Schemas are collected separately, because their names are final only when all are known; `$part` marks where they
    // belong.
    for operation in operations() {
        let schema = schemas.request_schema(|generator| operation.bounded_arguments(generator));
        let answered = schemas.answered(|generator| operation.answer(generator));
        parts.push((Direction::Answered, answered));
        let answer = part(parts.len());
        for (n, route) in std::iter::once(&operation.route).chain(&operation.aliases).enumerate() {
            let (body, in_path, in_query) = split(route, schema.clone());
            let body = body.map(|(body, required)| {
                parts.push((Direction::Request, body));
                (part(parts.len()), required)
            });
            let mut parameters: Vec<Value> = Vec::new();
            for parameter in in_path.into_iter().chain(in_query) {
                parts.push((Direction::Request, parameter));
                parameters.push(part(parts.len()));
            }
            let entry = described(operation, route, n > 0, &parameters, body.as_ref(), &answer);
            put(&mut paths, route.path, &route.method.to_string().to_lowercase(), entry);
        }
    }
    let problem = schemas.answered(Problem::json_schema);
    parts.push((Direction::Answered, problem));
    let problem = part(parts.len());
    own_routes(&mut paths);
    let mut places: Vec<(Direction, &mut Value)> =
        parts.iter_mut().map(|(direction, value)| (*direction, value)).collect();
    let mut components = schemas.components(&mut places);
    components.values_mut().chain(parts.iter_mut().map(|(_, part)| part)).for_each(simplify);
    schemas::name_variants(&mut components);
    let mut paths = Value::Object(paths);
    fill(&mut paths, &parts);
    let mut problem = problem;
    fill(&mut problem, &parts);
    components.insert("Problem".to_owned(), problem);
    components.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Skill Workbench",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Find, run and supervise Agent Skills.",
            "description": DESCRIPTION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{ "url": "/" }],
        "security": [{ "apiKey": [] }, { "bearer": [] }, {}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": errors::responses(),
            "parameters": parameters(),
            "headers": headers(),
            "securitySchemes": {
                "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "bearer": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}

const DESCRIPTION: &str = "Every response is a JSON object and has the header `x-trace-id`, with the \
    trace id of the request if it has one. Errors are problem documents (RFC 9457) with an `error.code` from a fixed list. On loopback, authentication may be disabled; otherwise send `x-api-key` or `Authorization: Bearer`.";

const PART: &str = "$part";

fn part(count: usize) -> Value {
    json!({ PART: count - 1 })
}

/// Replaces the placeholders with the schemas.
fn fill(value: &mut Value, parts: &[(Direction, Value)]) {
    let at = value.get(PART).and_then(Value::as_u64);
    if let Some((_, schema)) = at.and_then(|at| parts.get(at as usize)) {
        *value = schema.clone();
        return;
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, parts)),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, parts)),
        _ => {}
    }
}

type Body = Option<(Value, bool)>;

/// Splits the arguments of an operation by their location on this route: the body and whether it is required, path,
/// query.
fn split(route: &Route, request_schema: Value) -> (Body, Vec<Value>, Vec<Value>) {
    let Value::Object(mut object) = request_schema else { return (None, Vec::new(), Vec::new()) };
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    let mut rest = properties.map(std::mem::take).unwrap_or_default();
    let required: Vec<String> = object
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let mut in_path = Vec::new();
    for name in route.parameters() {
        if let Some(schema) = rest.shift_remove(name) {
            in_path.push(parameter("path", name, schema, true));
        }
    }
    let required: Vec<String> = required.into_iter().filter(|name| rest.contains_key(name)).collect();
    if route.asks_by_query() {
        let in_query = rest
            .into_iter()
            .map(|(name, schema)| parameter("query", &name, present(schema), required.contains(&name)))
            .collect();
        return (None, in_path, in_query);
    }
    if rest.is_empty() {
        return (None, in_path, Vec::new());
    }
    object.shift_remove("$schema");
    object.insert("properties".to_owned(), Value::Object(rest));
    if required.is_empty() {
        object.shift_remove("required");
    } else {
        object.insert("required".to_owned(), json!(required));
    }
    (Some((Value::Object(object), !required.is_empty())), in_path, Vec::new())
}

fn parameter(place: &str, name: &str, mut schema: Value, required: bool) -> Value {
    let members = schema.as_object_mut();
    let description = members.and_then(|members| members.shift_remove("description"));
    if place == "path" {
        // An empty segment would be another path.
        if let Some(members) = schema.as_object_mut() {
            members.insert("minLength".to_owned(), json!(1));
        }
    }
    simplify(&mut schema);
    let mut parameter = json!({ "name": name, "in": place, "required": required, "schema": schema });
    if let (Some(members), Some(description)) = (parameter.as_object_mut(), description) {
        members.insert("description".to_owned(), description);
    }
    parameter
}

/// Removes null from a schema: a query omits absent parameters and cannot express null.
fn present(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    members.shift_remove("default");
    if let Some(kinds) = members.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            members.insert("type".to_owned(), kind);
        }
    }
    if let Some(any) = members.get_mut("anyOf").and_then(Value::as_array_mut) {
        any.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = any.as_slice() {
            let only = only.clone();
            members.shift_remove("anyOf");
            members.extend(only);
        }
    }
    schema
}

fn put(paths: &mut Map<String, Value>, path: &str, method: &str, entry: Value) {
    let place = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
    if let Some(place) = place.as_object_mut() {
        place.insert(method.to_owned(), entry);
    }
}

fn described(
    operation: &Operation,
    route: &Route,
    alias: bool,
    parameters: &[Value],
    body: Option<&(Value, bool)>,
    answer: &Value,
) -> Value {
    let mut parameters = parameters.to_vec();
    parameters.push(json!({ "$ref": "#/components/parameters/TraceId" }));
    if operation.takes("idempotency_key") && !route.asks_by_query() {
        parameters.push(json!({ "$ref": "#/components/parameters/IdempotencyKey" }));
    }
    let mut content = json!({ "application/json": { "schema": answer } });
    if operation.follows
        && let Some(kinds) = content.as_object_mut()
    {
        parameters.push(json!({ "$ref": "#/components/parameters/LastEventId" }));
        kinds.insert("text/event-stream".to_owned(), json!({ "schema": { "type": "string" } }));
    }
    let name = operation.name.replace('.', "_");
    let id = if alias { format!("{name}_{}", route.path.matches('/').count()) } else { name };
    let mut responses = Map::from_iter([(
        operation.status.to_string(),
        json!({
            "description": operation.summary,
            "headers": { "x-trace-id": { "$ref": "#/components/headers/TraceId" } },
            "content": content,
        }),
    )]);
    if operation.shared {
        parameters.push(json!({ "$ref": "#/components/parameters/IfNoneMatch" }));
        for headers in
            responses.values_mut().filter_map(|response| response.get_mut("headers")?.as_object_mut())
        {
            headers.insert("etag".to_owned(), json!({ "$ref": "#/components/headers/ETag" }));
        }
        responses.insert("304".to_owned(), json!({ "$ref": "#/components/responses/NotModified" }));
    }
    if operation.waits {
        let about = "The run has not ended: it is waiting for a signal, or the service is shutting down. \
            `Location` has its address.";
        let later = json!({
            "description": about,
            "headers": {
                "x-trace-id": { "$ref": "#/components/headers/TraceId" },
                "Location": { "$ref": "#/components/headers/Location" },
            },
            "content": { "application/json": { "schema": answer } },
        });
        responses.insert("202".to_owned(), later);
    }
    for status in errors::of(operation) {
        responses
            .insert(status.to_string(), json!({ "$ref": format!("#/components/responses/Error{status}") }));
    }
    responses.insert("431".to_owned(), json!({ "$ref": "#/components/responses/HeadTooLarge" }));
    responses.sort_keys();
    let scope = operation.scope.map(|scope| scope.to_string());
    let mut entry = json!({
        "operationId": id,
        "summary": operation.summary,
        "description": needs(operation.scope),
        "tags": [subject(operation)],
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(members) = entry.as_object_mut() {
        if let Some((schema, required)) = body {
            let content = json!({ "application/json": { "schema": schema } });
            members.insert("requestBody".to_owned(), json!({ "required": required, "content": content }));
        }
        if let Some(scope) = scope {
            members.insert("x-scope".to_owned(), json!(scope));
        } else {
            members.insert("security".to_owned(), json!([]));
        }
        // A route with other path parameters is an alternative, not a deprecated form.
        if alias && route.parameters().eq(operation.route.parameters()) {
            members.insert("deprecated".to_owned(), json!(true));
        }
    }
    entry
}

/// Describes which callers may use an operation.
fn needs(scope: Option<Scope>) -> String {
    scope.map_or_else(
        || OPEN.to_owned(),
        |scope| format!("Requires the scope `{scope}` if authentication is enabled."),
    )
}

const OPEN: &str = "No authentication required.";

/// Returns the subject of an operation: the first word of its name.
pub(super) fn subject(operation: &Operation) -> &'static str {
    operation.name.split('.').next().unwrap_or(operation.name)
}

/// Returns the subjects in the order of the table.
pub(super) fn subjects() -> Vec<&'static str> {
    let mut subjects = Vec::new();
    for operation in operations() {
        let subject = subject(operation);
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects
}

fn tags() -> Vec<Value> {
    subjects().into_iter().map(|subject| json!({ "name": subject })).collect()
}

fn parameters() -> Value {
    json!({
        "TraceId": {
            "name": "x-trace-id",
            "in": "header",
            "description": "Trace id of this call; `traceparent` is also accepted, and one is generated \
                if both are absent.",
            "schema": { "type": "string", "pattern": "^[A-Za-z0-9_.:/+=-]{1,128}$" },
        },
        "IdempotencyKey": {
            "name": "x-idempotency-key",
            "in": "header",
            "description": "Idempotency key that makes the call safe to repeat; the same as \
                `idempotency_key` in the body.",
            "schema": { "type": "string", "pattern": "^[!-~]{1,255}$" },
        },
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The `etag` of a cached response: the response is sent only if it has changed.",
            "schema": { "type": "string" },
        },
        "LastEventId": {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "With `Accept: text/event-stream`: the id of the last received event; takes \
                precedence over `after`.",
            "schema": { "type": "integer", "minimum": 0, "maximum": u64::MAX },
        },
    })
}

fn headers() -> Value {
    let text = |description: &str| json!({ "description": description, "schema": { "type": "string" } });
    json!({
        "TraceId": text("Trace id of the call."),
        "ETag": text("Identifies this response, for `If-None-Match`."),
        "Location": text("Address of the run."),
        "RateLimit": text("Remaining requests and seconds until the limit resets: `\"default\";r=9;t=42`."),
        "RateLimitPolicy": text("The limit: requests in a window of seconds, `\"default\";q=10;w=60`."),
        "RetryAfter": text("Seconds until the request may be sent again."),
        "Allow": text("Methods that the path supports."),
    })
}

/// Adds the routes that are not operations.
fn own_routes(paths: &mut Map<String, Value>) {
    let response = |description: &str, kind: &str, schema: Value| json!({ "description": description, "content": { kind: { "schema": schema } } });
    let text = json!({ "type": "string" });
    let readiness = json!({
        "type": "object",
        "required": ["status", "scan", "index"],
        "properties": {
            "status": { "type": "string", "enum": ["ready", "starting", "failing", "ending"] },
            "scan": { "type": "boolean", "description": "All roots have been read." },
            "index": { "type": "boolean", "description": "All skills can be ranked." },
        },
    });
    let open = |id: &str, summary: &str, responses: Value| {
        json!({
            "operationId": id, "summary": summary, "description": OPEN, "tags": ["runtime"], "security": [],
            "responses": responses,
        })
    };
    put(
        paths,
        LIVEZ,
        "get",
        open(
            "livez",
            "Liveness check: whether the process responds.",
            json!({
                "200": response("The process responds.", "text/plain", text.clone()),
            }),
        ),
    );
    put(
        paths,
        READYZ,
        "get",
        open(
            "readyz",
            "Readiness check: whether the service can handle requests.",
            json!({
                "200": response("The service is ready.", "application/json", readiness.clone()),
                "503": response("The service is starting, failing or shutting down.", "application/json", readiness),
            }),
        ),
    );
    put(
        paths,
        DOCUMENT,
        "get",
        open(
            "openapi",
            "The OpenAPI document.",
            json!({
                "200": response("The OpenAPI document.", "application/json", json!({ "type": "object" })),
            }),
        ),
    );
    let refused = |status: u16| json!({ "$ref": format!("#/components/responses/Error{status}") });
    put(
        paths,
        PROMETHEUS,
        "get",
        json!({
            "operationId": "metrics_prometheus",
            "summary": "Every metric as OpenMetrics text.",
            "description": needs(Some(Scope::Read)),
            "tags": ["runtime"],
            "x-scope": Scope::Read.to_string(),
            "responses": {
                "200": response("The metrics.", METRICS_CONTENT_TYPE, text),
                "401": refused(401), "403": refused(403), "429": refused(429), "500": refused(500),
            },
        }),
    );
}

/// Returns the media type of errors with their schema.
fn problem_content(schema: Value) -> Value {
    json!({ PROBLEM: { "schema": schema } })
}

#[cfg(test)]
mod tests;
