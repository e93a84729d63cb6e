//! Routes of HTTP requests: a method and a path with named parameters.

use serde_json::{Map, Value};
use strum::Display;

/// The methods in use (RFC 9110, RFC 5789).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Method {
    Get,
    /// Executes an action.
    Post,
    /// Replaces.
    Put,
    /// Changes parts.
    Patch,
}

/// A route: `/v1/runs/{run_id}/cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    pub method: Method,
    /// Its path, with parameters in braces that are named like the arguments.
    pub path: &'static str,
}

impl Route {
    pub(super) const fn get(path: &'static str) -> Self {
        Self { method: Method::Get, path }
    }

    pub(super) const fn post(path: &'static str) -> Self {
        Self { method: Method::Post, path }
    }

    pub(super) const fn put(path: &'static str) -> Self {
        Self { method: Method::Put, path }
    }

    pub(super) const fn patch(path: &'static str) -> Self {
        Self { method: Method::Patch, path }
    }

    /// Returns the names of its parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Returns whether arguments that are not in the path go into the query instead of a body.
    pub fn asks_by_query(&self) -> bool {
        self.method == Method::Get
    }

    /// Returns the path with its parameters filled in and percent-encoded (RFC 3986), and the remaining arguments.
    ///
    /// Returns `None` if a parameter is missing or not a string.
    pub fn fill(&self, mut arguments: Map<String, Value>) -> Option<(String, Map<String, Value>)> {
        let mut path = String::new();
        for part in self.path.split('/').skip(1) {
            path.push('/');
            match part.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) => path.push_str(&encoded(arguments.shift_remove(name)?.as_str()?)),
                None => path.push_str(part),
            }
        }
        Some((path, arguments))
    }
}

/// Percent-encodes everything but unreserved characters, for a part of a path or query.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_filled_in_and_the_rest_is_left() {
        let route = Route::post("/v1/runs/{run_id}/steps/{step}");
        assert_eq!(route.parameters().collect::<Vec<_>>(), ["run_id", "step"]);
        let Value::Object(arguments) = json!({ "run_id": "a/b", "step": "each[2] ä", "notes": 1 }) else {
            unreachable!()
        };
        let (path, rest) = route.fill(arguments).unwrap();
        assert_eq!(path, "/v1/runs/a%2Fb/steps/each%5B2%5D%20%C3%A4");
        assert_eq!(Value::Object(rest), json!({ "notes": 1 }));
        assert!(route.fill(Map::new()).is_none());
    }
}
