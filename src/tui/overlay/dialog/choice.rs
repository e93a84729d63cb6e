//! Labels for states and verdicts, and a field that cycles through a few choices.

use skills_model::RunState;

/// A state as text.
#[must_use]
pub fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Pending => "pending",
        RunState::Running => "running",
        RunState::Replaying => "replaying",
        RunState::WaitingForHuman => "waiting for you",
        RunState::WaitingForSignal => "waiting for a signal",
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Canceled => "canceled",
    }
}

/// A few choices of which one holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What can be chosen, as shown.
    pub options: Vec<String>,
    /// Which one holds.
    pub at: usize,
}

impl Choice {
    /// The next or previous one; stops at the ends.
    pub fn turn(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.options.len().saturating_sub(1));
    }

    /// The one that holds.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.options.get(self.at).map_or("", String::as_str)
    }
}
