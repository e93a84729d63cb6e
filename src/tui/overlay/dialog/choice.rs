//! A field that cycles through a few choices.

/// A few options, one of which is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub options: Vec<String>,
    /// Index of the selected one.
    pub at: usize,
}

impl Choice {
    /// Moves the selection; stops at the ends.
    pub fn turn(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.options.len().saturating_sub(1));
    }

    /// Returns the selected option.
    pub fn shown(&self) -> &str {
        self.options.get(self.at).map_or("", String::as_str)
    }
}
