//! The deadline of a wait, the same text in every adapter.

use std::time::Duration;

use skills_base::duration::to_millis;

/// The remaining time of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    None,
    Expired,
    /// It expires in these milliseconds.
    In(i64),
}

impl Deadline {
    pub fn of(expires_ms: Option<i64>, now_ms: i64) -> Self {
        match expires_ms {
            None => Self::None,
            Some(at) if at <= now_ms => Self::Expired,
            Some(at) => Self::In(at.saturating_sub(now_ms)),
        }
    }

    /// Returns whether it has expired, or expires in less than this time.
    pub fn is_within(self, time: Duration) -> bool {
        match self {
            Self::None => false,
            Self::Expired => true,
            Self::In(left_ms) => left_ms < to_millis(time),
        }
    }

    /// Formats it, and the remaining milliseconds with `format_ms`: `expires in 5 m`.
    pub fn text(self, format_ms: impl Fn(i64) -> String) -> String {
        match self {
            Self::None => "no deadline".to_owned(),
            Self::Expired => "expired".to_owned(),
            Self::In(left_ms) => format!("expires in {}", format_ms(left_ms)),
        }
    }
}
