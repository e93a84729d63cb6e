//! Responses of the document without a result: errors, grouped by status with their codes, "not modified", and the
//! refusal of a head that is too large.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use super::problem_content;
use skills_api::Code;
use skills_api::operations::Operation;

/// Statuses that every operation may return.
const COMMON_STATUSES: [u16; 9] = [400, 401, 403, 404, 405, 409, 429, 500, 503];
/// Statuses of operations with a request body.
const BODY_STATUSES: [u16; 3] = [408, 413, 415];
/// Statuses of operations that are not read-only.
const WRITE_STATUSES: [u16; 5] = [412, 428, 501, 502, 504];

/// Returns the codes of each status, in the order of the code table.
pub(crate) fn by_status() -> BTreeMap<u16, Vec<Code>> {
    let mut all: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::iter() {
        all.entry(code.status()).or_default().push(code);
    }
    all
}

/// Returns the error statuses of an operation.
pub(super) fn of(operation: &Operation) -> Vec<u16> {
    let mut all = COMMON_STATUSES.to_vec();
    if !operation.route.asks_by_query() {
        all.extend(BODY_STATUSES);
    }
    if !operation.hints.read_only {
        all.extend(WRITE_STATUSES);
    }
    all.sort_unstable();
    all
}

/// Returns one response for each status.
pub(super) fn responses() -> Value {
    let not_modified = json!({
        "description": "The response that `If-None-Match` names is still current.",
        "headers": {
            "x-trace-id": { "$ref": "#/components/headers/TraceId" },
            "etag": { "$ref": "#/components/headers/ETag" },
        },
    });
    let large_head = json!({
        "description": "The request line and the headers exceed 64 KiB. No content; the connection is closed.",
    });
    let mut responses =
        Map::from_iter([("NotModified".to_owned(), not_modified), ("HeadTooLarge".to_owned(), large_head)]);
    for (status, codes) in by_status() {
        let named: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let mut headers = json!({ "x-trace-id": { "$ref": "#/components/headers/TraceId" } });
        if let Some(headers) = headers.as_object_mut() {
            let more: &[(&str, &str)] = match status {
                429 => &[
                    ("RateLimit", "RateLimit"),
                    ("RateLimit-Policy", "RateLimitPolicy"),
                    ("Retry-After", "RetryAfter"),
                ],
                405 => &[("Allow", "Allow")],
                503 => &[("Retry-After", "RetryAfter")],
                _ => &[],
            };
            for (name, header) in more {
                headers
                    .insert((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{header}") }));
            }
        }
        let response = json!({
            "description": named.join(", "),
            "x-codes": codes,
            "headers": headers,
            "content": problem_content(schema),
        });
        responses.insert(format!("Error{status}"), response);
    }
    Value::Object(responses)
}
