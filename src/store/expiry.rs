//! The expiry of a wait as recorded on a run: why it failed, or why it was canceled without a denial.

use serde_json::{Value, json};

use super::RunRecord;
use skills_model::{Expiry, Gate, expired_at_text};

/// Error code of a run whose wait expired.
const CODE: &str = "expired";

/// Returns the error to record on a run whose wait expired.
pub(super) fn ended(waiting: &RunRecord, expiry: Expiry, at: i64) -> Value {
    let signal = match &waiting.gate {
        Some(Gate::Signal { name, .. }) => Some(name),
        _ => None,
    };
    let awaited = signal.map_or_else(|| "a decision".to_owned(), |name| format!("the signal {name}"));
    let message = match expiry {
        Expiry::Deny => {
            let end = if signal.is_some() { "canceled" } else { "denied" };
            format!("{} without {awaited} and was {end}", expired_at_text(at))
        }
        Expiry::Fail => {
            let waited = at.saturating_sub(waiting.since_ms) / 1000;
            let again = if signal.is_some() { "wait" } else { "request approval" };
            format!("expired after {waited} s without {awaited}; resume it to {again} again")
        }
    };
    json!({ "code": CODE, "message": message, "expired_ms": at })
}

/// Describes what happens to a run when its wait for this gate expires.
pub fn expiry_outcome(then: Expiry, gate: Option<&Gate>) -> &'static str {
    match (then, gate) {
        (Expiry::Deny, Some(Gate::Signal { .. })) => "then canceled",
        (Expiry::Deny, _) => "then denied and canceled",
        (Expiry::Fail, _) => "then fails, can be resumed",
    }
}

impl RunRecord {
    /// Returns when the wait expired, if that ended the run; milliseconds since 1970-01-01 UTC.
    pub fn expired_ms(&self) -> Option<i64> {
        let error = self.error.as_ref().filter(|error| error["code"] == CODE)?;
        // Stores of earlier versions did not record the time; the run has been in its state since then.
        Some(error["expired_ms"].as_i64().unwrap_or(self.since_ms))
    }
}
