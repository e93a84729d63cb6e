//! The HTTP client of all bindings: no proxy, no cookies, redirects within the same origin only, responses of limited
//! size.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;

use super::super::call::{BindingChoice, Call, CallFailure};
use super::super::value_count::{MAX_JSON_VALUES, has_few_values};
use super::{BindingCall, BindingContext, BindingFailure, Effect, excerpt};
use skills_skill::contract::{Endpoint, ServiceTarget};

/// Maximum size of a response in bytes.
const MAX_ANSWER: usize = 8 << 20;
/// Maximum number of redirects per request.
const MAX_REDIRECTS: usize = 5;
/// Connection timeout.
const CONNECTING: Duration = Duration::from_secs(10);

/// The HTTP client for all services, created on first use: loading the system's certificates is slow.
#[derive(Default)]
pub struct Http {
    client: OnceLock<Result<Client, String>>,
}

/// A complete response.
pub struct HttpResponse {
    pub status: StatusCode,
    pub media_type: String,
    pub body: Vec<u8>,
}

impl Http {
    pub fn client(&self) -> Result<&Client, BindingFailure> {
        let made = self.client.get_or_init(|| {
            // Another part of the process may already have installed a provider, which is fine.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let agent = concat!("skill-workbench/", env!("CARGO_PKG_VERSION"));
            let client = Client::builder().user_agent(agent).no_proxy().connect_timeout(CONNECTING);
            client.redirect(Policy::custom(inside_the_origin)).build().map_err(|error| error.to_string())
        });
        made.as_ref().map_err(|why| {
            BindingFailure::before(
                CallFailure::InvalidConfiguration,
                format!("cannot create the HTTP client: {why}"),
            )
        })
    }

    /// Sends a request and reads the complete response, within the job's timeout.
    pub async fn exchange(
        &self,
        request: RequestBuilder,
        job: &BindingCall<'_>,
        endpoint: &Endpoint,
    ) -> Result<HttpResponse, BindingFailure> {
        let patience = job.timeout(Some(endpoint));
        let work = async {
            let mut response = request.send().await.map_err(|error| unreachable(&job.target, &error))?;
            let status = response.status();
            let media_type = response.headers().get(reqwest::header::CONTENT_TYPE);
            let media_type =
                media_type.and_then(|value| value.to_str().ok()).unwrap_or("no media type").to_owned();
            let mut body = Vec::new();
            loop {
                match response.chunk().await {
                    Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_ANSWER => {
                        body.extend_from_slice(&chunk);
                    }
                    Ok(Some(_)) => {
                        let message = format!(
                            "the response from {} has more than {} MiB",
                            job.target,
                            MAX_ANSWER >> 20
                        );
                        return Err(BindingFailure::answer(message));
                    }
                    Ok(None) => return Ok(HttpResponse { status, media_type, body }),
                    Err(error) => {
                        let message = format!(
                            "{} closed the connection during the response: {}",
                            job.target,
                            root_cause(&error)
                        );
                        return Err(BindingFailure::upstream(message, Effect::Possible));
                    }
                }
            }
        };
        tokio::time::timeout(patience.wait, work).await.unwrap_or_else(|_| Err(job.too_late(patience)))
    }
}

impl BindingContext {
    /// Returns the endpoint and address of a job's service.
    pub(super) fn http_service<'m>(
        &'m self,
        job: &BindingCall<'_>,
    ) -> Result<(&'m Endpoint, &'m str), BindingFailure> {
        let service = &job.offered.binding.service;
        match self.services.get(service) {
            Some(endpoint) => match &endpoint.reach {
                ServiceTarget::Http { url, .. } => Ok((endpoint, url)),
                _ => Err(BindingFailure::before(
                    CallFailure::InvalidConfiguration,
                    format!("service {service} has no `url`"),
                )),
            },
            None => Err(BindingFailure::before(
                CallFailure::InvalidConfiguration,
                format!("service {service} is not configured"),
            )),
        }
    }

    /// Adds the headers that every request carries.
    pub(super) fn with_auth(
        &self,
        mut request: RequestBuilder,
        service: &str,
        endpoint: &Endpoint,
        call: &Call,
    ) -> Result<RequestBuilder, BindingFailure> {
        if let ServiceTarget::Http { headers, .. } = &endpoint.reach {
            let headers = self
                .expanded(service, "headers", headers)
                .map_err(|obstacle| BindingFailure::before(obstacle.code, obstacle.message))?;
            for (name, value) in headers {
                let parsed = (
                    reqwest::header::HeaderName::try_from(name.as_str()),
                    reqwest::header::HeaderValue::try_from(value.as_str()),
                );
                let (Ok(header), Ok(mut value)) = parsed else {
                    let message = format!(
                        "`services.{service}.headers.{name}` is not a valid header: names have letters, \
                            digits and `-`, values no line break"
                    );
                    return Err(BindingFailure::before(CallFailure::InvalidConfiguration, message));
                };
                value.set_sensitive(true);
                request = request.header(header, value);
            }
        }
        let request =
            request.header("accept", "application/json").header("x-trace-id", header_text(&call.trace_id));
        Ok(request.header("idempotency-key", header_text(&call.idempotency_key)))
    }
}

/// Converts a text to a header value: characters other than visible ASCII become `_`.
fn header_text(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
}

/// Follows a redirect only within the origin of the original request, because headers with secrets are sent along.
fn inside_the_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error("too many redirects");
    }
    let same = attempt.previous().first().is_some_and(|from| from.origin() == attempt.url().origin());
    if same {
        return attempt.follow();
    }
    let to = attempt.url().host_str().unwrap_or("nowhere").to_owned();
    attempt.error(format!(
        "redirect to another host ({to}) refused; put that address into `services:` if \
        it is correct"
    ))
}

fn unreachable(target: &str, error: &reqwest::Error) -> BindingFailure {
    if error.is_connect() {
        let message = format!("cannot connect to {target}: {}; is the service running?", root_cause(error));
        return BindingFailure::upstream(message, Effect::None);
    }
    if error.is_builder() {
        let message = format!("{target} is not a valid address: {}", root_cause(error));
        return BindingFailure::before(CallFailure::InvalidConfiguration, message);
    }
    BindingFailure::upstream(format!("{target} failed: {}", root_cause(error)), Effect::Possible)
}

/// Returns the innermost error, which is the most specific, without the address: its query can contain a secret.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    let text = at.to_string();
    text.split_once(" for url (").map_or_else(|| text.clone(), |(cause, _)| cause.to_owned())
}

/// Maps the status of a response to success or failure.
pub fn accepted(answered: &HttpResponse, target: &str) -> Result<(), BindingFailure> {
    let status = answered.status;
    if status.is_success() {
        return Ok(());
    }
    let description = format!("{target} answered {status}: {}", excerpt(&answered.body));
    let failed = match status.as_u16() {
        400 | 413 | 422 => BindingFailure::before(CallFailure::InvalidRequest, description),
        401 | 403 | 407 => BindingFailure::before(
            CallFailure::InvalidConfiguration,
            format!(
                "{description}; the service rejects these credentials: correct its `headers` under `services:`"
            ),
        ),
        408 | 429 => BindingFailure::upstream(description, Effect::None),
        500..=599 => BindingFailure::upstream(description, Effect::Possible),
        _ => BindingFailure::before(CallFailure::RuntimeError, description),
    };
    Err(failed.answered(status.as_u16()))
}

/// Parses the body of a response as JSON; an empty one is null.
pub fn json(answered: &HttpResponse, target: &str) -> Result<Value, BindingFailure> {
    if answered.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    if !has_few_values(&answered.body) {
        let message =
            format!("the response from {target} has more than {MAX_JSON_VALUES} JSON values and keys");
        return Err(BindingFailure::answer(message));
    }
    serde_json::from_slice(&answered.body).map_err(|error| {
        BindingFailure::answer(format!(
            "{target} responded with {} that is not JSON ({error}): {}",
            answered.media_type,
            excerpt(&answered.body)
        ))
    })
}

/// Describes the network distance of an address: this machine or a host.
pub fn distance(url: &str) -> String {
    let host =
        reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let host_name = host.trim_matches(['[', ']']);
    let here = host_name == "localhost"
        || host_name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let transport_note = if url.starts_with("http://") && !here { ", unencrypted" } else { "" };
    if here {
        format!("{} ({host})", BindingChoice::OTHER_PROCESS)
    } else {
        format!("{}: {host}{transport_note}", BindingChoice::OTHER_MACHINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_of_a_call_is_described() {
        assert!(distance("http://127.0.0.1:80/x").contains("on this machine"));
        assert!(distance("http://[::1]:80/x").contains("on this machine"));
        assert_eq!(distance("http://api.example.com/v1"), "another machine: api.example.com, unencrypted");
        assert_eq!(distance("https://api.example.com/v1"), "another machine: api.example.com");
    }

    #[test]
    fn public_isolation_names_no_host_and_no_program() {
        for (isolation, public) in [
            (distance("http://127.0.0.1:80/x"), "another process on this machine"),
            (distance("http://[::1]:80/x"), "another process on this machine"),
            (distance("http://api.example.com/v1"), "another machine"),
            (format!("{}: /usr/bin/python3", BindingChoice::PROGRAM), "your program, not sandboxed"),
            ("sandbox, full: Landlock".to_owned(), "sandbox, full: Landlock"),
        ] {
            assert_eq!(BindingChoice::public_isolation(&isolation), public);
        }
    }

    #[test]
    fn trace_headers_contain_no_line_breaks() {
        assert_eq!(header_text("a\r\nx-evil: 1é"), "a__x-evil:_1_");
    }
}
