//! Requests to a service as another program would send them, and its unmodified responses.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use crate::failure::Failure;
use crate::runs::Reporter;
use skills_api::operations::{Operation, to_query};
use skills_api::remote::{Address, KEY_VARIABLE, Key};
use skills_api::{Code, Error};
use skills_base::sync::MutexExt as _;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum total time spent waiting for the rate limit.
const MAX_RATE_LIMIT_WAIT: Duration = Duration::from_secs(180);
/// The MCP revision that this client requests.
const REVISION: &str = "2025-06-18";

/// The response: the result, or the content of the error envelope.
pub type ProbeResponse = Result<Value, Value>;

/// An unmodified response.
pub struct RawResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl RawResponse {
    /// Returns the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the error code, if it is an error.
    pub fn code(&self) -> Option<String> {
        self.json()["error"]["code"].as_str().map(str::to_owned)
    }

    /// Returns whether it was rate-limited, with too long a delay to retry.
    pub fn is_limited(&self) -> bool {
        self.status == 429
    }

    /// Returns the retry delay that the service requests.
    fn pause(&self) -> Duration {
        Duration::from_secs(self.header("retry-after").and_then(|text| text.parse().ok()).unwrap_or(1))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A client of the service.
pub struct Probe {
    client: Client,
    address: Address,
    key: Option<Key>,
    session: OnceCell<Option<String>>,
    request_count: AtomicU64,
    /// Total time spent waiting for the rate limit.
    waited: Mutex<Duration>,
    reporter: Mutex<Reporter>,
}

impl Probe {
    pub fn new(address: Address, key: Option<Key>, reporter: Reporter) -> Result<Self, Failure> {
        // Another part of the process may already have installed a provider, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().timeout(REQUEST_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        let builder = if address.is_loopback() { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| {
            Error::new(Code::InvalidConfiguration, format!("cannot create an HTTP client: {error}"))
        })?;
        Ok(Self {
            client,
            address,
            key,
            session: OnceCell::new(),
            request_count: AtomicU64::new(0),
            waited: Mutex::default(),
            reporter: Mutex::new(reporter),
        })
    }

    /// Returns whether an API key is set.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Creates a request without a key.
    pub fn unauthenticated_request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
        self.client.request(method, self.address.at(path))
    }

    /// Creates a request with the key, if there is one.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let request = self.unauthenticated_request(method, path);
        match &self.key {
            Some(key) => request.header(AUTHORIZATION, key.header().clone()),
            None => request,
        }
    }

    /// Checks that this caller has access at all, before every check fails for that reason.
    ///
    /// # Errors
    /// Returns `unauthorized` or `forbidden`, with what to pass.
    pub async fn admitted(&self) -> Result<(), Failure> {
        let answer = self.send(self.request("GET", "/v1/skills/list?limit=1")).await?;
        let code = match answer.status {
            401 => Code::Unauthorized,
            403 => Code::Forbidden,
            _ => return Ok(()),
        };
        let key_note = self.key.as_ref().map_or_else(
            || "no key was given".to_owned(),
            |key| format!("the key came from {}", key.source()),
        );
        let reason = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        let message = format!(
            "access to {} denied ({reason}); {key_note}; provide a key with the scopes `read` and `run` in {KEY_VARIABLE} or \
             --api-key-file",
            self.address
        );
        Err(Error::new(code, message).into())
    }

    /// Sends a request; if it is rate-limited, retries after the time that the service names.
    ///
    /// # Errors
    /// Returns `upstream_failure` if the service does not respond.
    pub async fn send(&self, request: RequestBuilder) -> Result<RawResponse, Failure> {
        let mut request = request;
        loop {
            let again = request.try_clone();
            let answer = self.send_once(request).await?;
            let pause = answer.pause();
            match again {
                Some(again) if answer.is_limited() && self.may_wait(pause) => {
                    tokio::time::sleep(pause).await;
                    request = again;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// Returns whether to wait for this long once more; if so, it is reported.
    fn may_wait(&self, pause: Duration) -> bool {
        let mut waited = self.waited.locked();
        let all = waited.saturating_add(pause);
        if all > MAX_RATE_LIMIT_WAIT {
            return false;
        }
        *waited = all;
        let words = format!("rate limit exceeded; retrying in {} s", pause.as_secs());
        self.reporter.locked().print_line(&words);
        true
    }

    /// Sends a request and returns the response. A connection that the service closed after the previous request, for
    /// example after an unread body, contains no information about this request: it is sent once more, over a new
    /// connection.
    ///
    /// # Errors
    /// Returns `upstream_failure` if the service does not respond.
    pub async fn send_once(&self, request: RequestBuilder) -> Result<RawResponse, Failure> {
        let again = request.try_clone();
        match self.sent(request).await {
            Err((error, true)) => match again {
                Some(again) => self.sent(again).await.map_err(|(error, _)| error),
                None => Err(error),
            },
            answer => answer.map_err(|(error, _)| error),
        }
    }

    /// Returns the response, or why there is none and whether the connection was lost.
    async fn sent(&self, request: RequestBuilder) -> Result<RawResponse, (Failure, bool)> {
        let failed = |error: reqwest::Error| {
            let broke = !error.is_connect() && !error.is_timeout();
            let mut why: &dyn std::error::Error = &error;
            while let Some(cause) = why.source() {
                why = cause;
            }
            let address = &self.address;
            let what = if error.is_connect() {
                format!("cannot connect to {address}")
            } else {
                format!("{address} does not respond")
            };
            let message = format!("{what}: {why}; is `skills serve` running there?");
            let error = Error::service_unreachable(Code::UpstreamFailure, &self.address, message);
            (Failure::from(error), broke)
        };
        let answer = request.send().await.map_err(failed)?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(RawResponse { status, headers, body: answer.text().await.map_err(failed)? })
    }

    /// Calls an operation by its route.
    pub async fn http(
        &self,
        operation: &Operation,
        arguments: &Map<String, Value>,
    ) -> Result<ProbeResponse, Failure> {
        let route = operation.route;
        let Some((mut path, rest)) = route.fill(arguments.clone()) else {
            return Err(Failure::usage(format!("missing path argument of {}", operation.name)));
        };
        let request = if route.asks_by_query() {
            let query = to_query(&rest);
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            self.request(&route.method.to_string(), &path)
        } else {
            let body = Value::Object(rest).to_string();
            self.request(&route.method.to_string(), &path).header(CONTENT_TYPE, "application/json").body(body)
        };
        let answer = self.send(request).await?;
        let body = answer.json();
        if (200..300).contains(&answer.status) {
            return Ok(Ok(body));
        }
        if body["error"].is_object() {
            return Ok(Err(body["error"].clone()));
        }
        // The response is from a proxy, or from another program.
        let message = format!("status {} without a valid error body", answer.status);
        Ok(Err(json!({ "code": Value::Null, "message": message })))
    }

    pub async fn tool(
        &self,
        operation: &Operation,
        arguments: &Map<String, Value>,
    ) -> Result<ProbeResponse, Failure> {
        let mut arguments = arguments.clone();
        arguments.insert("explain".to_owned(), json!(true));
        let params = json!({ "name": operation.name, "arguments": arguments });
        let answer = self.rpc("tools/call", params).await?;
        if answer.get("error").is_some() {
            return Ok(Err(answer["error"].clone()));
        }
        let result = &answer["result"];
        if result["isError"] == json!(true) {
            // An error is text: the output schema of a tool only describes its results.
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let body: Value = serde_json::from_str(text).unwrap_or(Value::Null);
            return Ok(Err(body["error"].clone()));
        }
        Ok(Ok(result["structuredContent"].clone()))
    }

    /// Sends a request of the Model Context Protocol over streamable HTTP.
    pub async fn rpc(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let session = self.session.get_or_try_init(|| self.initialize()).await?.clone();
        let (answer, _) = self.post(session.as_deref(), Some(self.next()), method, params).await?;
        Ok(answer)
    }

    async fn initialize(&self) -> Result<Option<String>, Failure> {
        let client = json!({ "name": "skills-verify", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
        let (_, headers) = self.post(None, Some(self.next()), "initialize", params).await?;
        let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        self.post(session.as_deref(), None, "notifications/initialized", json!({})).await?;
        Ok(session)
    }

    fn next(&self) -> u64 {
        self.request_count.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn post(
        &self,
        session: Option<&str>,
        id: Option<u64>,
        method: &str,
        params: Value,
    ) -> Result<(Value, HeaderMap), Failure> {
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        let mut request = self
            .request("POST", "/mcp")
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION)
            .body(message.to_string());
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let answer = self.send(request).await?;
        if answer.is_limited() {
            let error = json!({ "error": answer.json()["error"] });
            return Ok((error, answer.headers));
        }
        if !(200..300).contains(&answer.status) {
            let message = format!("/mcp returned status {} for {method}: {}", answer.status, answer.body);
            return Err(Error::new(Code::UpstreamFailure, message).into());
        }
        let Some(id) = id else { return Ok((Value::Null, answer.headers)) };
        let body = answered(&answer.body, id).ok_or_else(|| {
            Error::new(
                Code::UpstreamFailure,
                format!("/mcp returned no response to {method}: {}", answer.body),
            )
        })?;
        Ok((body, answer.headers))
    }
}

/// Returns the response to a request, from a body that is JSON or server-sent events.
fn answered(body: &str, id: u64) -> Option<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data:"));
    std::iter::once(body)
        .chain(lines)
        .filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok())
        .find(|message| message["id"] == json!(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_found_in_either_form() {
        let json_body = r#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#;
        assert_eq!(answered(json_body, 3).unwrap()["result"]["a"], 1);
        let events = format!("id: 0\nretry: 3000\ndata:\n\nevent: message\ndata: {json_body}\n\n");
        assert_eq!(answered(&events, 3).unwrap()["result"]["a"], 1);
        assert!(answered(&events, 4).is_none());
    }
}
