//! The expiry of a wait as recorded on a run: why it failed, or why it was canceled without a denial.

use serde_json::{Value, json};

use super::RunRecord;
use skills_model::{Expiry, expired_at_text};

/// Error code of a run whose wait expired.
const CODE: &str = "expired";

/// Returns the error to record on a run whose wait expired.
pub(super) fn ended(waiting: &RunRecord, expiry: Expiry, at: i64) -> Value {
    let message = match expiry {
        Expiry::Deny => format!("{} without a decision and was denied", expired_at_text(at)),
        Expiry::Fail => {
            let waited = at.saturating_sub(waiting.since_ms) / 1000;
            format!("expired after {waited} s without a decision; resume it to request approval again")
        }
    };
    json!({ "code": CODE, "message": message, "expired_ms": at })
}

impl RunRecord {
    /// Returns when the wait expired, if that ended the run; milliseconds since 1970-01-01 UTC.
    pub fn expired_ms(&self) -> Option<i64> {
        let error = self.error.as_ref().filter(|error| error["code"] == CODE)?;
        // Stores of earlier versions did not record the time; the run has been in its state since then.
        Some(error["expired_ms"].as_i64().unwrap_or(self.since_ms))
    }
}
