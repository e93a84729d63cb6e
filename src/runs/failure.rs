//! Why a step failed, as recorded with the step and its run.

use serde_json::{Map, Value, json};

use super::call::{CallError, CallFailure};
use skills_base::memory::value_bytes;

/// A step that failed permanently.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    /// The failed step; `None` if the end of the run itself failed.
    pub step: Option<String>,
    /// The error code, if it differs from the call's.
    pub code: Option<&'static str>,
    pub error: CallError,
    pub inputs: Map<String, Value>,
    pub attempts: u32,
    /// When the step started, if it did.
    pub started_ms: Option<i64>,
}

impl Failure {
    /// Rewrites the failure of a call that was stopped because another step had failed first.
    pub fn after(mut self, first: &Self) -> Self {
        if self.error.code == CallFailure::Canceled {
            self.error.public = None;
            self.error.message = format!("stopped because {} failed", first.place());
        }
        self
    }

    /// Names what failed: `step sum`, or `another step` if no step is to blame.
    pub fn place(&self) -> String {
        self.step.as_ref().map_or_else(|| "another step".to_owned(), |step| format!("step {step}"))
    }

    /// A failure before anything of the step was called.
    pub fn before(step: &str, code: CallFailure, message: impl Into<String>) -> Self {
        Self {
            step: Some(step.to_owned()),
            code: None,
            error: CallError::new(code, message),
            inputs: Map::new(),
            attempts: 0,
            started_ms: None,
        }
    }

    /// Returns the failure as it is recorded.
    pub fn json(&self) -> Value {
        let code = self.code.map_or_else(|| self.error.code.to_string(), str::to_owned);
        error_json(&self.error, &code, self.step.as_deref())
    }
}

/// Maximum size of a text of an error in bytes: lists of runs contain it.
const MAX_TEXT_BYTES: usize = 8 << 10;
/// Maximum memory in bytes of the structured parts of an error.
const MAX_DETAIL_BYTES: usize = 64 << 10;

/// Returns a text of an error, shortened if it is long: messages may quote inputs.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_TEXT_BYTES).last();
    format!("{}…", text.get(..end.unwrap_or_default()).unwrap_or_default())
}

/// Returns a part of an error, or null if it is too large.
fn limited(part: Value) -> Value {
    if value_bytes(&part) <= MAX_DETAIL_BYTES { part } else { Value::Null }
}

/// Returns an error as JSON: `code`, `message`, `step`, and details about the binding. `message` and `reason` are for
/// everyone who may see the run; `detail`, `binding` and `tried` contain the call's target and response, and are
/// removed for callers without that permission.
pub(super) fn error_json(error: &CallError, code: &str, step: Option<&str>) -> Value {
    let mut out = json!({"code": code, "message": shortened(error.public_message())});
    if let Some(public) = &error.public {
        out["reason"] =
            json!({"kind": public.kind, "capability": public.capability, "status": public.status});
        if let Some(exit) = &public.exit {
            out["reason"]["exit_code"] = exit.code.into();
            out["reason"]["stderr_line"] = exit.stderr_line.as_deref().into();
        }
        out["detail"] = shortened(&error.message).into();
    }
    if let Some(step) = step {
        out["step"] = step.into();
    }
    if let Some(binding) = &error.binding {
        out["binding"] = binding.as_str().into();
    }
    if !error.tried.is_empty() {
        out["tried"] = limited(json!(error.tried));
    }
    if let Some(stderr) = &error.stderr {
        out["stderr"] = stderr.as_str().into();
    }
    if let Some(reason) = &error.reason {
        out["reason"] = limited(Value::clone(reason));
    }
    if error.public.is_some() {
        // Filters match an error by the text that lists show of it.
        out["summary"] = skills_store::failure_summary(&out).into();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_error_are_limited() {
        let mut error = CallError::new(CallFailure::InvalidRequest, "ä".repeat(1_000_000));
        error.reason = Some(Box::new(json!(vec![1; 10_000])));
        let json = error_json(&error, "invalid_request", None);
        let message = json["message"].as_str().unwrap();
        assert!(message.len() < 9000 && message.ends_with("ä…"), "{} bytes", message.len());
        assert_eq!(json["reason"], Value::Null);
        let short = error_json(&CallError::new(CallFailure::InvalidRequest, "no"), "invalid_request", None);
        assert_eq!(short, json!({"code": "invalid_request", "message": "no"}));
    }
}
