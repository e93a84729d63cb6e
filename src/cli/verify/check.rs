//! A conformance check of a service, and its outcome.

use serde::Serialize;
use serde_json::Value;
use skills_api::NEEDED_SCOPE;

use super::probe::RawResponse;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The check passed.
    Holds,
    Fails,
    /// It could not be checked, or there is nothing to check.
    NotTried,
}

/// A conformance check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub check: String,
    pub outcome: Outcome,
    /// What was found, if the check failed or the result is notable.
    pub note: String,
    /// The scope that a key needs for the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What to do if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}

impl Check {
    pub fn new(check: impl Into<String>, passes: bool, note: impl Into<String>) -> Self {
        let outcome = if passes { Outcome::Holds } else { Outcome::Fails };
        Self { check: check.into(), outcome, note: note.into(), scope: None, advice: None }
    }

    /// Creates a check that passes unless there is an objection.
    pub fn against(check: impl Into<String>, against: Option<String>) -> Self {
        Self::new(check, against.is_none(), against.unwrap_or_default())
    }

    pub fn not_tried(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self { outcome: Outcome::NotTried, ..Self::new(check, false, why) }
    }

    /// Creates a check that the given key is not allowed to make.
    pub fn forbidden(check: impl Into<String>, scope: &str) -> Self {
        let why = format!("the API key lacks the scope `{scope}`");
        Self { scope: Some(scope.to_owned()), ..Self::not_tried(check, why) }
    }

    /// Creates a check from a response; it is not tried if the response was rate-limited.
    pub fn of(check: impl Into<String>, answer: &RawResponse, passes: bool, note: impl Into<String>) -> Self {
        if answer.is_limited() {
            return Self::not_tried(check, LIMITED);
        }
        Self::new(check, passes, note)
    }

    /// Adds advice for a failure.
    pub fn or(mut self, advice: &'static str) -> Self {
        if self.outcome == Outcome::Fails {
            self.advice = Some(advice);
        }
        self
    }
}

/// Returns the missing scope named by a rejection.
pub fn missing_scope(error: &Value) -> Option<&str> {
    error["reason"][NEEDED_SCOPE].as_str()
}

/// Why something was not checked because of the rate limit.
pub const LIMITED: &str = "the rate limit is exhausted, and waiting for it timed out: try again later, \
    or use a key with a higher limit";
