//! The caller: the user of this process, or the caller that the HTTP service authenticated.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use tokio_util::sync::CancellationToken;

use super::jsonrpc::LargeResult;
use skills_api::operations::{
    Caller, LARGE_RESPONSE_BYTES, Principal, ReturnedRun, RunObserver, large_response_permit,
};
use skills_api::{Code, Error, new_trace_id};

/// How calls arrive.
#[derive(Debug, Clone)]
pub enum Transport {
    /// From the process that started this one; every call is made by its user.
    Process(Principal),
    /// Over HTTP: the service puts the [`Caller`] into the request's extensions.
    Http,
}

impl Transport {
    /// Returns the caller of a request, whose waits end when `leave` fires. Canceling a call does not fire it: the
    /// launched run continues, and the response is dropped.
    ///
    /// # Errors
    /// Returns `unauthorized` for an HTTP request without an authentication context.
    pub fn caller(
        &self,
        cx: &RequestContext<RoleServer>,
        leave: &CancellationToken,
    ) -> Result<Caller, Error> {
        let trace = trace_id(cx);
        let (principal, credentials, trace_id) = match self {
            Self::Process(principal) => (Some(principal.clone()), None, trace.unwrap_or_else(new_trace_id)),
            Self::Http => {
                let parts = cx.extensions.get::<Parts>();
                let found = parts.and_then(|parts| parts.extensions.get::<Caller>()).ok_or_else(|| {
                    Error::new(
                        Code::Unauthorized,
                        "missing authentication context; send a key in \
                        `x-api-key`",
                    )
                })?;
                // The header has the trace id of the HTTP request; that in the message is more specific to the call.
                let trace_id = trace.unwrap_or_else(|| found.trace_id.clone());
                (found.principal.clone(), found.credentials.clone(), trace_id)
            }
        };
        let local = matches!(self, Self::Process(_));
        let (leave, observer) = (leave.clone(), RunObserver::default());
        let returned_run = ReturnedRun::default();
        Ok(Caller { principal, credentials, local, trace_id, leave, body: None, observer, returned_run })
    }

    /// Returns whether state kept for this connection is available to its next call. Since revision 2026-07-28 requests
    /// over HTTP are stateless.
    pub fn lasts(&self, cx: &RequestContext<RoleServer>) -> bool {
        match self {
            Self::Process(_) => true,
            Self::Http => !is_stateless(cx),
        }
    }
}

/// Returns whether this request is of a revision without handshake, in which servers send no requests.
pub fn is_stateless(cx: &RequestContext<RoleServer>) -> bool {
    cx.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns where the permit of a large result is kept until it is sent; `None` if not over HTTP.
pub fn large_result(cx: &RequestContext<RoleServer>) -> Option<&LargeResult> {
    cx.extensions.get::<Parts>()?.extensions.get()
}

/// Takes a permit for a result with a large text, and keeps it until the result is sent.
///
/// # Errors
/// Returns `rate_limited` if too many large results of the caller are not sent, unless the result is one of a change:
/// it is not withheld, so that the change is not repeated.
pub async fn limit_large_result(
    cx: &RequestContext<RoleServer>,
    caller: &Caller,
    text_bytes: usize,
    read_only: bool,
) -> Result<(), Error> {
    let Some(large) = large_result(cx).filter(|large| !large.is_held()) else { return Ok(()) };
    if text_bytes as u64 <= LARGE_RESPONSE_BYTES {
        return Ok(());
    }
    match large_response_permit(caller, text_bytes as u64).await {
        Ok(permit) => large.hold(permit),
        Err(error) if read_only => return Err(error),
        Err(_) => large.hold(None),
    }
    Ok(())
}

/// Returns the trace id of the client (`traceparent` of W3C Trace Context in `_meta`).
fn trace_id(cx: &RequestContext<RoleServer>) -> Option<String> {
    cx.meta.get_traceparent().and_then(trace_of)
}

fn trace_of(parent: &str) -> Option<String> {
    let id = parent.split('-').nth(1)?;
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) && id.bytes().any(|b| b != b'0');
    is_id.then(|| id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_trace_is_adopted() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace_of(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(), Some(id));
        for wrong in ["", "00", "00-xyz-1-01", "00-00000000000000000000000000000000-1-01"] {
            assert_eq!(trace_of(wrong), None, "{wrong}");
        }
    }
}
