//! Who calls: the person this process belongs to, or whom the HTTP service made sure of.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;

use crate::gateway::operations::{Caller, Principal};
use crate::gateway::{Code, Error, new_trace_id};

/// How calls come in.
#[derive(Debug, Clone)]
pub enum Door {
    /// From the process that started this one; every call is its person's.
    Process(Principal),
    /// Over HTTP: the service puts the [`Principal`] into the request's extensions.
    Http {
        /// The service asks for keys: a request without a principal is refused.
        keys: bool,
    },
}

impl Door {
    /// The caller of one request.
    ///
    /// # Errors
    /// `unauthorized` where keys are asked for and nobody was made sure of.
    pub fn caller(&self, cx: &RequestContext<RoleServer>) -> Result<Caller, Error> {
        let principal = match self {
            Self::Process(principal) => Some(principal.clone()),
            Self::Http { keys } => {
                let parts = cx.extensions.get::<Parts>();
                let found = parts.and_then(|parts| parts.extensions.get::<Principal>()).cloned();
                if *keys && found.is_none() {
                    return Err(Error::new(Code::Unauthorized, "send a key in the header `x-api-key`"));
                }
                found
            }
        };
        Ok(Caller { principal, trace_id: trace_id(cx), leave: cx.ct.clone() })
    }

    /// Whether what is kept for this connection is there for its next call. Since revision 2026-07-28 requests over
    /// HTTP stand alone.
    pub fn lasts(&self, cx: &RequestContext<RoleServer>) -> bool {
        match self {
            Self::Process(_) => true,
            Self::Http { .. } => !is_stateless(cx),
        }
    }
}

/// Whether this request is of a revision without handshake, in which servers ask nothing by themselves.
pub fn is_stateless(cx: &RequestContext<RoleServer>) -> bool {
    cx.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The trace the client is in (`traceparent` of W3C Trace Context in `_meta`), else a new one.
fn trace_id(cx: &RequestContext<RoleServer>) -> String {
    cx.meta.get_traceparent().and_then(trace_of).unwrap_or_else(new_trace_id)
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
    fn a_trace_is_taken_over_only_when_it_is_one() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace_of(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(), Some(id));
        for wrong in ["", "00", "00-xyz-1-01", "00-00000000000000000000000000000000-1-01"] {
            assert_eq!(trace_of(wrong), None, "{wrong}");
        }
    }
}
