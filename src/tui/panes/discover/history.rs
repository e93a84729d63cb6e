//! The history of requests, newest last, and its recall with Up and Down.

/// Maximum number of entries.
const HISTORY_SIZE: usize = 200;

/// Earlier requests, and the state of the recall.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<String>,
    at: Option<usize>,
    draft: String,
}

impl History {
    /// Creates a history from stored entries, oldest first.
    pub fn from_entries(entries: Vec<String>) -> Self {
        Self { entries, ..Self::default() }
    }

    /// Returns the entries to store, oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Returns whether there is an earlier entry.
    pub fn has_earlier(&self) -> bool {
        self.at.map_or(!self.entries.is_empty(), |at| at > 0)
    }

    /// Returns whether an entry is being recalled.
    pub fn walking(&self) -> bool {
        self.at.is_some()
    }

    /// Adds a request; an existing entry moves to the end.
    pub fn keep(&mut self, intent: &str) {
        let intent = intent.trim();
        self.at = None;
        if intent.is_empty() {
            return;
        }
        self.entries.retain(|known| known != intent);
        self.entries.push(intent.to_owned());
        let excess = self.entries.len().saturating_sub(HISTORY_SIZE);
        self.entries.drain(..excess);
    }

    /// Recalls the previous entry, if any; `present` is the text of the field, restored after the last entry.
    pub fn earlier(&mut self, present: &str) -> Option<&str> {
        let at = if let Some(at) = self.at {
            at.checked_sub(1)?
        } else {
            present.clone_into(&mut self.draft);
            let last = self.entries.len().checked_sub(1)?;
            if self.entries[last] == present.trim() { last.checked_sub(1)? } else { last }
        };
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// Recalls the next entry, or the text that was in the field before.
    pub fn later(&mut self) -> Option<&str> {
        let next = self.at? + 1;
        self.at = (next < self.entries.len()).then_some(next);
        Some(self.at.map_or(self.draft.as_str(), |at| self.entries[at].as_str()))
    }

    /// Ends the recall, when the user types.
    pub fn stop(&mut self) {
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_walks_back_and_down_returns_to_the_draft() {
        let mut history = History::default();
        for intent in ["pdf to csv", "fill a form", "pdf to csv"] {
            history.keep(intent);
        }
        assert_eq!(history.entries(), ["fill a form", "pdf to csv"]);
        assert_eq!(history.earlier("dra"), Some("pdf to csv"));
        assert_eq!(history.earlier("pdf to csv"), Some("fill a form"));
        assert_eq!(history.earlier("fill a form"), None);
        assert_eq!(history.later(), Some("pdf to csv"));
        assert_eq!(history.later(), Some("dra"));
        assert_eq!(history.later(), None);
    }
}
