//! HTTP transport: one request and its response, with timeouts, and the mapping of responses to errors.

use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::address::{Address, KEY_VARIABLE, Key};
use crate::operations::{Liveness, Method, NewestEvent, Operation, operation, to_query};
use crate::{Code, Error, ErrorBody};
use skills_runs::root_cause;
use skills_skill::safe_text;

/// Connection timeout.
const CONNECTING: Duration = Duration::from_secs(5);
/// Timeout for the start of a response, and for its next chunk.
pub const READING: Duration = Duration::from_secs(30);
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(20);
/// Maximum size of a response in bytes: the catalog of 15,000 skills has a fifth of it.
const MAX_RESPONSE_BYTES: usize = 256 << 20;
/// Maximum time between the head of a response and its end.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(120);
/// Maximum number of bytes of a response in an error.
const MAX_SHOWN_BYTES: usize = 120;

/// Why a request has no result.
#[derive(Debug)]
pub enum TransportError {
    /// The service returned this error.
    Server(Error),
    /// The service is busy and executed nothing; how long to wait before a retry.
    RateLimited(Error, Duration),
    /// Nothing was sent.
    NotSent(Error),
    /// It was sent, but its outcome is unknown.
    ResponseLost(Error),
}

impl TransportError {
    pub fn error(self) -> Error {
        match self {
            Self::Server(error)
            | Self::RateLimited(error, _)
            | Self::NotSent(error)
            | Self::ResponseLost(error) => error,
        }
    }
}

/// The HTTP transport to one service.
pub struct HttpTransport {
    client: Client,
    address: Address,
    key: Option<Key>,
    reading: Duration,
}

impl HttpTransport {
    /// Creates the transport to an address; nothing is sent.
    ///
    /// # Errors
    /// Returns `invalid_configuration` if this system has no usable TLS.
    pub fn new(address: Address, key: Option<Key>, reading: Duration) -> Result<Self, Error> {
        // Another part of the process may already have installed a provider, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let agent = concat!("skill-workbench/", env!("CARGO_PKG_VERSION"));
        // A redirect would send the key elsewhere, and turn POST into GET.
        let builder = Client::builder()
            .user_agent(agent)
            .connect_timeout(CONNECTING)
            .tcp_keepalive(READING)
            // Shorter than the timeout of services, so that no command is sent on a connection that is being closed.
            .pool_idle_timeout(IDLE)
            .redirect(Policy::none());
        let builder = if address.is_loopback() { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| {
            let message = format!("cannot create the HTTP client: {}", root_cause(&error));
            Error::new(Code::InvalidConfiguration, message)
        })?;
        Ok(Self { client, address, key, reading })
    }

    /// Returns the timeout for the start of a response, and for its next chunk.
    pub fn reading(&self) -> Duration {
        self.reading
    }

    /// Returns whether requests carry a key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends one request; the response must start within `patience`.
    pub async fn ask<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Map<String, Value>,
        patience: Duration,
    ) -> Result<R, TransportError> {
        let operation = find_operation(name)?;
        let request = self.request(operation, arguments)?.header(ACCEPT, "application/json");
        let response = self.sent(request, name, patience).await?;
        let body = self.read_response(response, "application/json").await?;
        serde_json::from_slice(&body).map_err(|error| {
            let message = format!(
                "invalid response from {} to {name} ({error}); is the same version running there?",
                self.address
            );
            TransportError::Server(Error::new(Code::UpstreamFailure, message))
        })
    }

    pub async fn text(&self, path: &str) -> Result<String, TransportError> {
        let request = self.with_auth(self.client.get(self.address.at(path)));
        let response = self.sent(request, path, self.reading).await?;
        let body = self.read_response(response, "").await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Opens an event stream that continues after an event; its chunks are read by [`Self::next_chunk`].
    pub async fn stream(&self, name: &'static str, after: Option<u64>) -> Result<Response, TransportError> {
        let request = self.request(find_operation(name)?, Map::new())?.header(ACCEPT, "text/event-stream");
        let request = match after {
            Some(after) => request.header("last-event-id", after),
            None => request,
        };
        let response = self.sent(request, name, self.reading).await?;
        if response.status().is_success() && media_type(&response).starts_with("text/event-stream") {
            return Ok(response);
        }
        if response.status().is_success() {
            let message = format!(
                "{} has no event stream: it responded to {name} with {}",
                self.address,
                media_type(&response)
            );
            return Err(TransportError::Server(Error::new(Code::NotImplemented, message)));
        }
        match self.read_response(response, "").await {
            Err(trouble) => Err(trouble),
            Ok(_) => Err(TransportError::ResponseLost(self.unreachable("the event stream ended"))),
        }
    }

    /// Returns the next chunk of a response; `None` at its end.
    pub async fn next_chunk(
        &self,
        response: &mut Response,
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, TransportError> {
        match tokio::time::timeout(patience, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => {
                let message = format!("{} closed the connection ({})", self.address, root_cause(&error));
                Err(TransportError::ResponseLost(self.unreachable(message)))
            }
            Err(_) => Err(TransportError::ResponseLost(self.timeout_error("its response", patience))),
        }
    }

    /// Checks that a service of this version responds and accepts the caller.
    pub async fn handshake(&self) -> Result<(), TransportError> {
        let alive = match self.ask::<Liveness>("runtime.health", Map::new(), self.reading).await {
            // Recorded data can be read even if the store is not accepting writes.
            Err(TransportError::Server(error)) if error.code == Code::StoreUnavailable => None,
            alive => Some(alive?),
        };
        let ours = env!("CARGO_PKG_VERSION");
        if let Some(alive) = alive.filter(|alive| generation(&alive.version) != generation(ours)) {
            let message = format!(
                "{} runs version {}, this is {ours}: use the same version",
                self.address, alive.version
            );
            return Err(TransportError::Server(Error::new(Code::InvalidConfiguration, message)));
        }
        self.ask::<NewestEvent>("event.newest", Map::new(), self.reading).await.map(drop)
    }

    fn request(
        &self,
        operation: &Operation,
        arguments: Map<String, Value>,
    ) -> Result<RequestBuilder, TransportError> {
        let Some((mut path, rest)) = operation.route.fill(arguments) else {
            let message = format!("{} lacks an argument of its path", operation.name);
            return Err(TransportError::Server(Error::new(Code::InternalError, message)));
        };
        let body = if operation.route.asks_by_query() {
            let query = to_query(&rest);
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            None
        } else {
            let body = serde_json::to_vec(&rest).map_err(|error| {
                let message = format!("cannot serialize the arguments of {}: {error}", operation.name);
                TransportError::Server(Error::new(Code::InternalError, message))
            })?;
            Some(body)
        };
        let url = self.address.at(&path);
        let request = match operation.route.method {
            Method::Get => self.client.get(url),
            Method::Post => self.client.post(url),
            Method::Put => self.client.put(url),
            Method::Patch => self.client.patch(url),
        };
        let request = self.with_auth(request);
        Ok(match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body),
            None => request,
        })
    }

    fn with_auth(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.header(AUTHORIZATION, key.header()),
            None => request,
        }
    }

    async fn sent(
        &self,
        request: RequestBuilder,
        what: &str,
        patience: Duration,
    ) -> Result<Response, TransportError> {
        match tokio::time::timeout(patience, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.broken(&error)),
            Err(_) => Err(TransportError::ResponseLost(self.timeout_error(what, patience))),
        }
    }

    fn timeout_error(&self, what: &str, patience: Duration) -> Error {
        let message = format!("{} did not respond to {what} within {} s", self.address, patience.as_secs());
        Error::service_unreachable(Code::UpstreamTimeout, &self.address, message)
    }

    /// The error for a connection that could not be established, or was lost.
    pub fn unreachable(&self, message: impl Into<String>) -> Error {
        Error::service_unreachable(Code::UpstreamFailure, &self.address, message)
    }

    fn broken(&self, error: &reqwest::Error) -> TransportError {
        let cause = root_cause(error);
        let address = &self.address;
        if error.is_builder() {
            let message = format!("{address} is not a valid address: {cause}");
            return TransportError::Server(Error::new(Code::InvalidRequest, message));
        }
        if error.is_connect() {
            let message = format!("cannot connect to {address}: {cause}; is `skills serve` running there?");
            return TransportError::NotSent(self.unreachable(message));
        }
        let message = format!("{address} closed the connection before it responded ({cause})");
        TransportError::ResponseLost(self.unreachable(message))
    }

    /// Reads the body of a successful response of the expected media type (any, for an empty one), or maps the response
    /// to an error.
    async fn read_response(
        &self,
        mut response: Response,
        requested: &str,
    ) -> Result<Vec<u8>, TransportError> {
        let status = response.status();
        let media = media_type(&response);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let elsewhere = header(LOCATION).map(str::to_owned);
        let pause = header(RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok());
        let body = self.body(&mut response).await?;
        if status.is_success() {
            if media.starts_with(requested) {
                return Ok(body);
            }
            return Err(TransportError::Server(self.unexpected_response(status, &media, &body)));
        }
        if status.is_redirection() {
            let to = elsewhere.unwrap_or_else(|| "elsewhere".to_owned());
            let message = format!("{} redirects to {to}: use that address if it is correct", self.address);
            return Err(TransportError::Server(Error::new(Code::InvalidConfiguration, message)));
        }
        let Ok(parsed) = serde_json::from_slice::<ErrorBody>(&body) else {
            return Err(self.non_json_error(status, &media, &body));
        };
        let parsed = parsed.error;
        let message = match parsed.code {
            // The service names HTTP headers, which callers of this program do not set.
            Code::Unauthorized if self.key.is_none() => {
                format!("the service requires an API key; {}", self.key_advice())
            }
            Code::Unauthorized => format!("{}; {}", parsed.message, self.key_advice()),
            Code::Forbidden if parsed.is_missing_scope() && self.key.is_none() => {
                format!("{}; {}", parsed.message, self.key_advice())
            }
            _ => parsed.message,
        };
        let message = safe_text::line(&message).into_owned();
        let reason = parsed.reason.map(without_command);
        let error = Error { code: parsed.code, message, suggestions: parsed.suggestions, reason };
        Err(match error.code {
            // Nothing was executed: the same request may be sent again after the pause.
            Code::RateLimited | Code::NotReady => {
                TransportError::RateLimited(error, Duration::from_secs(pause.unwrap_or(1)))
            }
            _ => TransportError::Server(error),
        })
    }

    async fn body(&self, response: &mut Response) -> Result<Vec<u8>, TransportError> {
        let mut body = Vec::new();
        let started = Instant::now();
        while let Some(chunk) = self.next_chunk(response, self.reading).await? {
            if started.elapsed() > MAX_RESPONSE_TIME.max(self.reading) {
                let limit = MAX_RESPONSE_TIME.max(self.reading).as_secs();
                let message = format!("{} did not complete its response within {limit} s", self.address);
                let error = Error::service_unreachable(Code::UpstreamTimeout, &self.address, message);
                return Err(TransportError::ResponseLost(error));
            }
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                let message = format!(
                    "the response from {} has more than {} MiB",
                    self.address,
                    MAX_RESPONSE_BYTES >> 20
                );
                return Err(TransportError::Server(Error::new(Code::UpstreamFailure, message)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Maps an error that is not in this program's format: from a proxy, or from another program.
    fn non_json_error(&self, status: StatusCode, media: &str, body: &[u8]) -> TransportError {
        let body_excerpt = excerpt(body);
        let address = &self.address;
        let (code, message) = match status.as_u16() {
            401 | 407 => {
                (Code::Unauthorized, format!("{address} requires an API key; {}", self.key_advice()))
            }
            403 => {
                (Code::Forbidden, format!("{address} denied access: {body_excerpt}; {}", self.key_advice()))
            }
            413 => (Code::PayloadTooLarge, format!("the request is too large for {address}")),
            429 => {
                let error = Error::new(Code::RateLimited, format!("{address} is overloaded: {body_excerpt}"));
                return TransportError::RateLimited(error, Duration::from_secs(1));
            }
            // A proxy cannot reach the service: it may be back soon.
            502..=504 => {
                let message = format!("{address} returned {status}: the upstream service does not respond");
                return TransportError::ResponseLost(self.unreachable(message));
            }
            _ => return TransportError::Server(self.unexpected_response(status, media, body)),
        };
        TransportError::Server(Error::new(code, message))
    }

    fn unexpected_response(&self, status: StatusCode, media: &str, body: &[u8]) -> Error {
        let media = if media.is_empty() { "no media type" } else { media };
        tracing::info!(%status, media, body = %excerpt(body), "unexpected response");
        let message = format!(
            "{} is not a Skill Workbench service ({status}); use the address that `skills serve` prints",
            self.address
        );
        Error::new(Code::InvalidConfiguration, message)
    }

    fn key_advice(&self) -> String {
        let file = "use --api-key-file or `api_key_file` in config.yaml";
        match &self.key {
            None => format!("set {KEY_VARIABLE}, or {file}"),
            Some(key) if key.source() == KEY_VARIABLE => {
                format!("correct the key in {KEY_VARIABLE}, or {file}")
            }
            Some(key) => format!("correct the key from {}, or set {KEY_VARIABLE}, or {file}", key.source()),
        }
    }
}

fn find_operation(name: &'static str) -> Result<&'static Operation, TransportError> {
    operation(name).ok_or_else(|| {
        TransportError::Server(Error::new(Code::InternalError, format!("unknown operation `{name}`")))
    })
}

/// Returns the part of a version that both sides must share.
fn generation(version: &str) -> Option<(&str, &str)> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    Some((major, if major == "0" { minor } else { "" }))
}

fn media_type(response: &Response) -> String {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.unwrap_or_default().to_ascii_lowercase()
}

/// Returns the beginning of a response on one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_SHOWN_BYTES)]).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(MAX_SHOWN_BYTES).collect();
    if line.is_empty() { "nothing".to_owned() } else { safe_text::line(&line).into_owned() }
}

/// Removes a command to be copied from the reason of an error: only this process determines which one is shown.
fn without_command(mut reason: Value) -> Value {
    if let Some(fields) = reason.as_object_mut() {
        fields.retain(|name, value| {
            name != "command" || value.as_str().is_none_or(|command| !command.starts_with("skills "))
        });
    }
    reason
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compatible_versions_are_accepted() {
        assert_eq!(generation("0.1.0"), generation("0.1.9"));
        assert_ne!(generation("0.1.0"), generation("0.2.0"));
        assert_eq!(generation("1.2.0"), generation("1.9.1"));
        assert_ne!(generation("1.0.0"), generation("2.0.0"));
    }

    #[test]
    fn an_excerpt_is_one_safe_line() {
        assert_eq!(excerpt(b"<html>\n  hello"), "<html> hello");
        assert_eq!(excerpt(b" "), "nothing");
        assert!(!excerpt(b"\x1b[31mred").contains('\x1b'));
    }

    #[test]
    fn commands_of_a_service_are_not_shown_for_copying() {
        let reason = json!({"command": "skills runs show x  \u{2713} completed", "state": "failed"});
        assert_eq!(without_command(reason), json!({"state": "failed"}));
        let of_a_state = json!({"command": "approve", "state": "failed"});
        assert_eq!(without_command(of_a_state.clone()), of_a_state);
    }
}
