//! One promise of a service, and what became of looking at it.

use serde::Serialize;
use serde_json::Value;

use super::probe::Answered;

/// Its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
    /// It could not be checked, or there is nothing to check.
    NotTried,
}

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub check: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// What was found, where it does not hold or is worth a word.
    pub note: String,
    /// The scope that a key needs for it to be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What to do where it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}

impl Check {
    pub fn new(check: impl Into<String>, holds: bool, note: impl Into<String>) -> Self {
        let outcome = if holds { Outcome::Holds } else { Outcome::Fails };
        Self { check: check.into(), outcome, note: note.into(), scope: None, advice: None }
    }

    /// Holds where there is nothing to say against it.
    pub fn against(check: impl Into<String>, against: Option<String>) -> Self {
        Self::new(check, against.is_none(), against.unwrap_or_default())
    }

    pub fn not_tried(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self { outcome: Outcome::NotTried, ..Self::new(check, false, why) }
    }

    /// Something that the key given here may not do.
    pub fn forbidden(check: impl Into<String>, scope: &str) -> Self {
        let why = format!("the API key lacks the scope `{scope}`");
        Self { scope: Some(scope.to_owned()), ..Self::not_tried(check, why) }
    }

    /// The result of a response; none if it was rate-limited.
    pub fn of(check: impl Into<String>, answer: &Answered, holds: bool, note: impl Into<String>) -> Self {
        if answer.is_limited() {
            return Self::not_tried(check, LIMITED);
        }
        Self::new(check, holds, note)
    }

    /// The same with what to do where it fails.
    pub fn or(mut self, advice: &'static str) -> Self {
        if self.outcome == Outcome::Fails {
            self.advice = Some(advice);
        }
        self
    }
}

/// The missing scope named by a rejection.
pub fn missing_scope(error: &Value) -> Option<&str> {
    let message = error["message"].as_str().filter(|_| error["code"] == "forbidden")?;
    message.split_once("needs the scope `")?.1.split('`').next()
}

/// Why something is not tried that the limit of requests keeps back.
pub const LIMITED: &str = "the rate limit is exhausted, and waiting for it timed out: try again later, \
    or use a key with a higher limit";
